"""The headers of `.npy`, read as what anyone may have written: short, checked, and never unpickled."""

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

PLAIN = "biufc"  # the kinds of dtype that are numbers and nothing else
MAGIC = b"\x93NUMPY"
_MAX_HEADER = 10_000  # bytes, NumPy's own limit: a dtype, an order and a shape
_MAX_AXES = 32  # NumPy's own limit until 2.0
# What parses each version's header, and how its length is written.
_VERSIONS = {
    (1, 0): ("<H", np.lib.format.read_array_header_1_0),
    (2, 0): ("<I", np.lib.format.read_array_header_2_0),
}


class Header(Record):
    """What a `.npy` says of its array; the numbers begin `offset` bytes from the start."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: DType
    offset: int

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self.size * self.dtype.itemsize


def read_header(stream: IO[bytes], length: int) -> Header:
    """Return the header of a `.npy` of `length` bytes that starts where the stream stands.

    Raises FileFormatError, whose text goes on after the name of the file, for what is no header, for a dtype that is
    no plain number, and for a shape that takes more or fewer bytes than there are.

    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float16))
    >>> _ = file.seek(0)
    >>> read_header(file, len(file.getvalue()))
    Header(shape=(2, 3), by_columns=False, dtype=dtype('float16'), offset=128)
    """
    start = stream.read(8) or b""  # None where reading would wait
    if len(start) < 8 or start[:6] != MAGIC:
        raise FileFormatError("is no .npy: it does not begin as one")
    if (version := (start[6], start[7])) not in _VERSIONS:
        raise FileFormatError(f"is .npy of version {version[0]}.{version[1]}; 1.0 and 2.0 hold plain arrays")
    form, parse = _VERSIONS[version]
    stated = stream.read(struct.calcsize(form))
    if len(stated) < struct.calcsize(form):
        raise FileFormatError("is no .npy: it ends in its header")
    (told,) = struct.unpack(form, stated)
    if told > _MAX_HEADER:
        raise FileFormatError(f"is no .npy of plain numbers: its header has {told:,} bytes")
    text = stream.read(told)
    if len(text) < told:
        raise FileFormatError("is no .npy: it ends in its header")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's words on headers that Python 2 wrote
            shape, by_columns, dtype = parse(io.BytesIO(stated + text), max_header_size=_MAX_HEADER)
    except Exception as trouble:
        # NumPy parses the header as Python's literals; what may go wrong in that is not listed anywhere.
        raise FileFormatError(f"is no .npy ({type(trouble).__name__} in its header)") from None
    return _checked(Header(shape, bool(by_columns), dtype, 8 + len(stated) + told), length)


def _checked(header: Header, length: int) -> Header:
    dtype, shape = header.dtype, header.shape
    if dtype.hasobject or dtype.kind not in PLAIN or dtype.shape:
        raise FileFormatError(f"holds {quoted(str(dtype))}, which is never read")
    if len(shape) > _MAX_AXES or any(type(n) is not int or not 0 <= n < 1 << 63 for n in shape):
        raise FileFormatError("has a shape that no array has")
    given = length - header.offset
    if header.nbytes != given:
        words = str(shape) if len(shape) < 5 else f"of {len(shape)} axes"
        raise FileFormatError(f"has {given:,} bytes of numbers, and its shape {words} takes {header.nbytes:,}")
    return header
