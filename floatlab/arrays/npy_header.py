"""Reads headers of untrusted `.npy` files: limits their length, checks them, and never unpickles anything."""

from __future__ import annotations

import io
import struct
import warnings
from math import prod
from typing import IO

import numpy as np

from floatlab.arrays.types import DType
from floatlab.errors import FileFormatError, quoted
from floatlab.record import Record

PLAIN = "biufc"  # the kinds of dtypes that are plain numbers
MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000  # the largest allowed size of a header in bytes, as in NumPy
_MAX_AXES = 32  # NumPy's own limit before version 2.0
# For each version, the `struct` format of the header's length, and the function that parses the header.
_VERSIONS = {
    (1, 0): ("<H", np.lib.format.read_array_header_1_0),
    (2, 0): ("<I", np.lib.format.read_array_header_2_0),
}


class Header(Record):
    """The header of a `.npy` file.

    `by_columns` is true for column-major order. The elements begin `offset` bytes after the start of the header.
    """

    shape: tuple[int, ...]
    by_columns: bool
    dtype: DType
    offset: int

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        return self.size * self.dtype.itemsize


def read_header(stream: IO[bytes], length: int) -> Header:
    """Return the header of a `.npy` file of `length` bytes that starts at the stream's position.

    Raises FileFormatError for an invalid header, for a dtype that is not numeric, and for a shape that does not match
    the number of bytes. The message is a predicate: the caller puts the file's name before it.

    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float16))
    >>> _ = file.seek(0)
    >>> read_header(file, len(file.getvalue()))
    Header(shape=(2, 3), by_columns=False, dtype=dtype('float16'), offset=128)
    """
    start = stream.read(8) or b""  # None if reading would block
    if len(start) < 8 or start[:6] != MAGIC:
        raise FileFormatError("is not a .npy file: its first bytes are wrong")
    if (version := (start[6], start[7])) not in _VERSIONS:
        raise FileFormatError(f"is .npy of version {version[0]}.{version[1]}; versions 1.0 and 2.0 are read")
    form, parse = _VERSIONS[version]
    stated = stream.read(struct.calcsize(form))
    if len(stated) < struct.calcsize(form):
        raise FileFormatError("is not a .npy file: it ends in its header")
    (declared,) = struct.unpack(form, stated)
    if declared > _MAX_HEADER:
        raise FileFormatError(f"is not a .npy file of plain numbers: its header has {declared:,} bytes")
    text = stream.read(declared)
    if len(text) < declared:
        raise FileFormatError("is not a .npy file: it ends in its header")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns about headers written by Python 2
            shape, by_columns, dtype = parse(io.BytesIO(stated + text), max_header_size=_MAX_HEADER)
    except Exception as trouble:
        # NumPy parses the header as a Python literal, and does not document the exceptions.
        raise FileFormatError(f"is not a .npy file ({type(trouble).__name__} in its header)") from None
    return _checked(Header(shape, bool(by_columns), dtype, 8 + len(stated) + declared), length)


def _checked(header: Header, length: int) -> Header:
    dtype, shape = header.dtype, header.shape
    if dtype.hasobject or dtype.kind not in PLAIN or dtype.shape:
        raise FileFormatError(f"holds {quoted(str(dtype))}, which is not read")
    if len(shape) > _MAX_AXES or any(type(n) is not int or not 0 <= n < 1 << 63 for n in shape):
        raise FileFormatError("has an impossible shape")
    given = length - header.offset
    if header.nbytes != given:
        words = str(shape) if len(shape) < 5 else f"of {len(shape)} axes"
        raise FileFormatError(f"has {given:,} bytes of numbers, but its shape {words} takes {header.nbytes:,}")
    return header
