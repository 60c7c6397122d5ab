"""Arrays that are read piece by piece, so that none of them has to be in memory: here those that are, to begin with.

`floatlab.files` has the ones that lie in files. Numbers are counted in the order in which they lie in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from math import prod
from typing import Any, Self

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.reading import DOUBLE
from floatlab.arrays.sources import Origin, Source, format_of, source_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError
from floatlab.formats import Format

Piece = Array | Source

BLOCK = 1 << 17  # numbers in a piece
MOST_AT_ONCE = 1 << 25  # numbers of an array that has to be in memory after all
_INTEGERS = "iub"


class ArraySource:
    """An array with a name, a shape and a dtype or a format, whose numbers are read from anywhere on.

    `dtype` is NumPy's where it has one of its own, else None; `format` is that of the floats, and binary64 for
    integers, which are taken as numbers. `by_columns` where the first axis counts fastest, as in Fortran. `origin`
    says of text what reading it changed.
    """

    name: str
    shape: tuple[int, ...]
    format: Format
    dtype: DType | None
    by_columns: bool = False
    origin: Origin | None = None

    def __init__(self, name: str, shape: tuple[int, ...], kind: Format | DType, by_columns: bool = False):
        """Say what the array is; `kind` is the format of its codes, or NumPy's own dtype."""
        self.name, self.shape, self.by_columns = name, shape, by_columns and len(shape) > 1
        if isinstance(kind, Format):
            self.format, self.dtype = kind, None
            return
        found = DOUBLE if kind.kind in _INTEGERS else format_of(kind)
        if found is None:
            words = "its real and imaginary parts each are an array" if kind.kind == "c" else "floats and integers are"
            raise UnsupportedError(f"{name} is an array of {kind.name}, which is not read: {words}")
        self.format, self.dtype = found, kind.newbyteorder("=")

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return prod(self.shape)

    @property
    def kind(self) -> str:
        """The name of its dtype where NumPy has it, else of its format."""
        return self.format.name if self.dtype is None else self.dtype.name

    def read(self, first: int, count: int) -> Piece:
        """Return so many numbers from one on: floats or integers of `dtype`, or the codes of `format`."""
        raise NotImplementedError

    def blocks(self, length: int = BLOCK) -> Iterator[Piece]:
        """Yield all numbers, `length` at a time."""
        for first in range(0, self.size, length):
            yield self.read(first, min(length, self.size - first))

    def whole(self) -> Piece:
        """Return all numbers in their shape. Raises UnsupportedError for more than 2^25."""
        if self.size > MOST_AT_ONCE:
            raise UnsupportedError(f"{self.name} has {self.size:,} numbers; at most {MOST_AT_ONCE:,} are taken at once")
        found, order = self.read(0, self.size), "F" if self.by_columns else "C"
        if isinstance(found, Source):
            return found.replace(codes=found.codes.reshape(self.shape, order=order))  # type: ignore[call-overload]
        shaped: Array = found.reshape(self.shape, order=order)  # type: ignore[call-overload]
        return shaped

    def close(self) -> None:
        """Let go of the file."""

    def __enter__(self) -> Self:
        """Stay open until the end of a `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file."""
        self.close()


class HeldSource(ArraySource):
    """An array in memory: what NumPy takes, tensors of other libraries, FloatArrays.

    >>> source = HeldSource(np.float16([[1, 2], [3, 4]]), "x")
    >>> source.shape, source.kind, source.read(1, 2)
    ((2, 2), 'float16', array([2., 3.], dtype=float16))
    """

    def __init__(self, x: Any, name: str = "x") -> None:
        """Take the array as it is, without a copy where it lies in one piece. Raises as `source_of`."""
        array, kind = _held(x, name)
        super().__init__(name, array.shape, kind)
        self._flat = array.reshape(-1)

    def read(self, first: int, count: int) -> Piece:
        """Return so many numbers from one on."""
        found = self._flat[first : first + count]
        return Source(found, self.format) if self.dtype is None else found.astype(self.dtype, copy=False)


def _held(x: Any, name: str) -> tuple[Array, Format | DType]:
    """Return floats and integers as NumPy has them, and other floats as codes of their format."""
    if not hasattr(x, "codes"):
        with suppress(Exception):  # tensors of dtypes that NumPy has no name for; source_of says what is wrong
            array = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
            if array.dtype.kind in _INTEGERS:
                return array, array.dtype
    source = source_of(x, name)
    if source.dtype is None or source.dtype.kind != "f":
        return source.codes, source.format
    return source.codes.view(source.dtype), source.dtype


class Spread(ArraySource):
    """An array that is repeated along axes, as NumPy broadcasts."""

    def __init__(self, source: ArraySource, shape: tuple[int, ...]) -> None:
        """Take the array into memory, and count through it by its new shape."""
        super().__init__(source.name, shape, source.format if source.dtype is None else source.dtype)
        self._held = source.whole()

    def read(self, first: int, count: int) -> Piece:
        """Return so many numbers from one on."""
        places = np.unravel_index(np.arange(first, first + count), self.shape)
        held = self._held.codes if isinstance(self._held, Source) else self._held
        axes = places[len(places) - held.ndim :]
        found = held[tuple(np.where(n == 1, 0, at) for n, at in zip(held.shape, axes, strict=True))]
        found = np.broadcast_to(found, count)  # what had no axis
        return Source(found, self.format) if self.dtype is None else found


class ByRows(ArraySource):
    """An array whose first axis counts fastest, read as if its last one did."""

    def __init__(self, source: ArraySource) -> None:
        """Take the array into memory. Raises UnsupportedError for more than 2^25 numbers."""
        super().__init__(source.name, source.shape, source.format if source.dtype is None else source.dtype)
        if source.size > MOST_AT_ONCE:
            raise UnsupportedError(
                f"{source.name} lies in memory by columns, and the other array by rows: such are compared up to "
                f"{MOST_AT_ONCE:,} numbers; save both in one order"
            )
        held = source.whole()
        self._flat = (held.codes if isinstance(held, Source) else held).reshape(-1)

    def read(self, first: int, count: int) -> Piece:
        """Return so many numbers from one on."""
        found = self._flat[first : first + count]
        return Source(found, self.format) if self.dtype is None else found


def native(piece: Piece) -> Array:
    """Return a piece as NumPy computes with it: as it is, or the values of its codes.

    >>> native(Source(np.uint8([0x38, 0x40]), Format("mine", 4, 4))).tolist()
    [1.0, 2.0]
    """
    return decode(piece.codes, piece.format) if isinstance(piece, Source) else piece
