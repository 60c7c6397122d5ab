"""Arrays stored as consecutive uncompressed numbers: raw files, and the data of `.npy` and `.safetensors` files."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import IO

import numpy as np

from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.packing import packed_length, unpack
from floatlab.arrays.sources import ArraySource, Piece, Source, array_format, native_dtype
from floatlab.arrays.types import Array, DType
from floatlab.errors import FileFormatError, FormatError, UnsupportedError, quoted
from floatlab.files.safe_open import keeping_open, length_of, named, read_into
from floatlab.formats import Format

_NUMPY = re.compile(r"[iu][1248]|f[248]|u?int(8|16|32|64)|bool|\?")
_FILLED = 8  # this many codes of any width end on a byte boundary


class RawSource(ArraySource):
    """An array in a file, beginning at byte `offset`: numbers of a dtype, or codes of a format.

    Codes of fewer than eight bits are packed.
    """

    def __init__(
        self,
        name: str,
        path: str,
        file: IO[bytes],
        shape: tuple[int, ...],
        kind: Format | DType,
        offset: int,
        by_columns: bool = False,
        swapped: bool = False,
    ) -> None:
        """Take an open file whose length has been checked; if `swapped`, codes in it are not in native byte order."""
        super().__init__(name, shape, kind, by_columns)
        self.path, self.file, self.offset = path, file, offset
        self.stored = container(kind) if isinstance(kind, Format) else kind
        if swapped:
            self.stored = self.stored.newbyteorder()

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on; raises FileFormatError if the file has become shorter."""
        with named(self.path):
            if self.dtype is None and self.format.width < 8:
                return Source(self._unpacked(first, count), self.format)
            return piece(self._filled(np.empty(count, self.stored), self.offset + first * self.stored.itemsize), self)

    def _filled(self, found: Array, offset: int) -> Array:
        read_into(self.file, found.view(np.uint8), offset)
        return found

    def _unpacked(self, first: int, count: int) -> Array:
        """Read `count` packed codes of fewer than eight bits from index `first` on.

        Reading starts at a code that begins at the start of a byte. The codes before index `first` are dropped.
        """
        width, before = self.format.width, first % _FILLED
        octets = np.empty(packed_length(before + count, width), np.uint8)
        self._filled(octets, self.offset + (first - before) * width // 8)
        return unpack(octets, width, before + count)[before:]

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def bits_of_kind(kind: Format | DType) -> int:
    """Return the bits per element in a file.

    Codes of fewer than eight bits are packed; other elements take whole bytes.
    """
    if isinstance(kind, Format) and kind.width < 8:
        return kind.width
    return 8 * (container(kind) if isinstance(kind, Format) else kind).itemsize


def piece(stored: Array, source: ArraySource) -> Piece:
    """Return stored numbers in the form that `ArraySource.read` returns.

    The result is a `Source` (codes with their format), or an array of the dtype of `source`. Raises FileFormatError for
    codes with too many bits.
    """
    if source.dtype is None:
        format = source.format
        if stored.size and int(stored.max()) >> format.width:
            raise FileFormatError(f"has codes of more than {format.width} bits, which is {format.name}'s width")
        return Source(stored.astype(stored.dtype.newbyteorder("="), copy=False), format)
    # Bytes other than 0 and 1 are not valid NumPy bools.
    return stored.view(np.uint8) != 0 if source.dtype.kind == "b" else stored.astype(source.dtype, copy=False)


@lru_cache(maxsize=64)
def parse_dtype(text: str) -> tuple[Format | DType, bool]:
    """Return the format or dtype with a name such as f32, >f4, bf16, e2m1 or int32, and whether bytes must be swapped.

    Names of formats have priority, so that f16 is binary16. `<` or `>` before a name is the byte order; the default is
    little-endian. If NumPy has the type, the returned dtype includes the byte order, and the bool is False. Otherwise
    the bool says whether the byte order differs from the machine's. Raises UnsupportedError for an unknown name.

    >>> parse_dtype(">bf16")[0].name, parse_dtype("f32")[0], parse_dtype("int8")[0]
    ('bfloat16', dtype('float32'), dtype('int8'))
    """
    order = text[:1] if text[:1] in "<>" else "<"
    swapped = np.dtype(f"{order}u2") != np.dtype("=u2")
    name = text[1:] if text[:1] in ("<", ">") else text
    try:
        fmt = array_format(name)
    except FormatError:
        if not _NUMPY.fullmatch(name):
            raise UnsupportedError(
                f"--dtype {quoted(text)} is not a dtype: use names of formats (fp32, bf16, e4m3) or of NumPy (int8)"
            ) from None
        kind = np.dtype(name)
    else:
        native = native_dtype(fmt)
        if native is None:
            return fmt, swapped
        kind = native
    return (kind.newbyteorder() if swapped else kind), False


def parse_shape(text: str) -> tuple[int, ...]:
    """Parse a shape such as 400x400 or 400,400; raises UnsupportedError.

    >>> parse_shape("400x300")
    (400, 300)
    """
    parts = text.replace("×", "x").replace(",", "x").split("x")
    if not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in parts) or len(parts) > 32:
        raise UnsupportedError(f"--shape {quoted(text)} is not a shape: shapes look like 400x400")
    return tuple(int(part) for part in parts)


def open_raw(path: str, dtype: str, shape: str | None = None) -> ArraySource:
    """Open a file of raw numbers of this dtype. Without a shape, the array has one axis.

    Raises FileFormatError if the length of the file does not fit, and UnsupportedError for a bad dtype or shape.
    """
    kind, swapped = parse_dtype(dtype)
    wanted = None if shape is None else parse_shape(shape)
    with keeping_open(path) as file, named(path):
        length = length_of(file)
        width = bits_of_kind(kind)
        if wanted is None:
            if length * 8 % width >= 8 or length % (width // 8 or 1):
                raise FileFormatError(f"has {length:,} bytes, which is not a whole number of {quoted(dtype)} elements")
            wanted = (length * 8 // width,)
        needed = -(-prod(wanted) * width // 8)
        if needed != length:
            raise FileFormatError(f"has {length:,} bytes, but {shape} elements of {quoted(dtype)} take {needed:,}")
        return RawSource(path, path, file, wanted, kind, 0, swapped=swapped)
