"""Arrays of any kind as inputs. A `Source` is in memory; an `ArraySource` is read piece by piece.

`floatlab.files` has the ArraySources for files. Indices into an ArraySource follow the order of the numbers in memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from math import prod
from typing import Any, Self

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.types import Array, DType
from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import format_called
from floatlab.fpmode import in_default_mode
from floatlab.numbers.rounding import Flags
from floatlab.record import Record

BLOCK = 1 << 17  # the number of elements in a piece
MOST_AT_ONCE = 1 << 25  # the largest number of elements of an array that must be loaded whole
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_NATIVE = {"binary16": np.float16, "binary32": np.float32, "binary64": np.float64}
_INTEGERS = "iub"
# For each integer type of ml_dtypes and PyTorch that NumPy lacks, a NumPy integer type that contains it.
_NARROW_INTEGERS = {"int2": np.int8, "int4": np.int8, "uint2": np.uint8, "uint4": np.uint8}
_DOUBLE = parse_format("binary64")
_MOST_INTEGER = 1 << 53  # float64 represents all integers up to this one
# Flags of conversions that change the number: it is rounded, or has no code, such as ∞ in e2m1 or −1 in ue5m3.
CHANGED = Flags.INEXACT | Flags.INVALID


class Origin(Record):
    """The format of numbers before their conversion into another format, and how many numbers have changed."""

    format: Format | None  # None for text, fractions and integers, which have no format
    inexact: int  # the number of values that the conversion changed


class Source(Record):
    """An array of floats: the codes (in an array of the same shape), their format, and the dtype of the floats."""

    codes: Array
    format: Format
    dtype: DType | None = None  # None for FloatArrays, integers, and tensors of dtypes that NumPy lacks
    origin: Origin | None = None  # None if the numbers always had this format


@lru_cache(maxsize=64)
def format_of(dtype: DType) -> Format | None:
    """Return the format of a floating dtype of NumPy (up to 64 bits) or ml_dtypes, or None for other dtypes.

    >>> format_of(np.dtype(np.float16)).name
    'binary16'
    """
    return format_called(dtype.name) if dtype.itemsize in _UNSIGNED and dtype.kind in "fV" else None


def native_dtype(format: Format) -> DType | None:
    """Return NumPy's own dtype for a format, or None if NumPy has none.

    >>> from floatlab.formats import parse_format
    >>> native_dtype(parse_format("fp16")), native_dtype(parse_format("bf16"))
    (dtype('float16'), None)
    """
    kind = _NATIVE.get(format.name)
    return None if kind is None else np.dtype(kind)


def array_format(format: object) -> Format:
    """Return the format for a name, a Format or a dtype.

    Raises FormatError for an unknown format, and for one that has numbers that float64 does not contain.
    """
    if isinstance(format, np.dtype) or (isinstance(format, type) and issubclass(format, np.generic | float)):
        found = format_of(np.dtype(format))
        if found is None:
            raise FormatError(f"dtype {np.dtype(format).name} is not a format of floatlab: name one, such as 'fp16'")
        return found
    fmt = parse_format(format)  # type: ignore[arg-type]  # raises the error for invalid types
    if not holds(_DOUBLE, fmt):
        raise FormatError(f"{fmt.name} has numbers that float64 does not hold; a FloatArray cannot compute with them")
    return fmt


def is_typed(x: object) -> bool:
    """Return whether an operand has a format or a dtype; Python numbers and lists have neither."""
    return isinstance(getattr(x, "format", None), Format) or any(
        hasattr(x, each) for each in ("dtype", "__array__", "__dlpack__")
    )


def is_floating(x: object) -> bool:
    """Return whether an operand has its own floating-point format; integers, Python numbers and lists have none.

    >>> is_floating(np.float16(1)), is_floating(np.int8(1)), is_floating(1.0)
    (True, False, False)
    """
    dtype = getattr(x, "dtype", None)
    kind = getattr(dtype, "kind", None) or str(dtype).rpartition(".")[2][:1]  # the first letter of a PyTorch dtype
    return is_typed(x) and kind not in ("i", "u") and not (kind == "b" and str(dtype).endswith("bool"))


@in_default_mode
def source_of(x: Any, name: str = "x") -> Source:
    """Return a `Source` for an array of floats or integers, for numbers and lists, and for tensors of other libraries.

    Integers and Python floats become binary64. The codes of an array of floats share the memory of the array. Raises
    UnsupportedError for arrays that are not numeric, for masked arrays, and for integers beyond 2^53. The message
    begins with the argument's name, `name`.
    """
    if type(x) is np.ndarray and (plain := kind_of(x.dtype)) is not None:
        return Source(x.view(plain[1]), plain[0], x.dtype)
    if isinstance(getattr(x, "format", None), Format) and isinstance(getattr(x, "codes", None), np.ndarray):
        return Source(x.codes, x.format, None, x.origin if isinstance(x, Source) else None)
    if hasattr(x, "mask") and hasattr(x, "filled"):
        raise UnsupportedError(f"{name} is a masked array, but codes have no mask: give {name}.filled(…)")
    array = _array(x, name)
    if isinstance(array, Source):
        return array
    if isinstance(x, list | tuple) and array.dtype.kind in "iuf" and _holds_bool(x):
        raise UnsupportedError(f"{name} must hold floats or integers, not True or False among them")
    if array.dtype.kind in "iu":
        if array.size and max(int(array.max()), -int(array.min())) > _MOST_INTEGER:
            raise UnsupportedError(
                f"{name} holds integers beyond 2^53, which float64 cannot all represent: convert them first"
            )
        return Source(array.astype(np.float64).view(np.uint64), _DOUBLE)
    found = kind_of(array.dtype)
    if found is None:
        held = "strings" if array.dtype.kind in "US" else array.dtype.name
        raise UnsupportedError(f"{name} must be an array of floats or integers, not of {held}")
    return Source(array.view(found[1]), found[0], array.dtype)


@lru_cache(maxsize=64)
def kind_of(dtype: DType) -> tuple[Format, DType] | None:
    """Return the format of a dtype, and the dtype of its codes in memory; None if `format_of` finds no format."""
    found = format_of(dtype)
    return None if found is None else (found, np.dtype(_UNSIGNED[dtype.itemsize]).newbyteorder(dtype.byteorder))


def _holds_bool(x: object) -> bool:
    return any(map(_holds_bool, x)) if isinstance(x, list | tuple) else isinstance(x, bool | np.bool_)


def _array(x: object, name: str) -> Array | Source:
    """Convert anything that NumPy accepts, and tensors of other libraries on any device, to an array.

    The result is a Source if NumPy lacks the tensor's dtype.
    """
    try:
        if hasattr(x, "detach"):
            x = x.detach().cpu()
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            return np.from_dlpack(x)
        return np.asarray(x)
    except (BufferError, NotImplementedError, OverflowError, RuntimeError, TypeError, ValueError) as trouble:
        found = _bits_of(x)
        if found is None:
            said = str(trouble).splitlines()
            raise UnsupportedError(f"{name} is not an array of numbers: {said[0] if said else trouble!r}") from None
        return found


def _bits_of(x: Any) -> Source | None:
    """Return the codes of a tensor whose dtype NumPy lacks (torch's bfloat16, float8); None for other objects."""
    found = format_called(str(getattr(x, "dtype", "")).rpartition(".")[2])
    if found is None or found.width not in (8, 16) or not hasattr(x, "view") or getattr(x, "is_meta", False):
        return None
    library = sys.modules[type(x).__module__.partition(".")[0]]
    integers = np.asarray(x.view(library.uint8 if found.width == 8 else library.int16))
    return Source(integers.view(np.uint8 if found.width == 8 else np.uint16), found)


Piece = Array | Source


class ArraySource:
    """An array with a name, a shape, and a dtype or a format; reading can start at any index.

    `dtype` is the dtype of the numbers, or None if they are read as codes. `format` is the format of the floats; for
    integers it is binary64. `by_columns` is true if the order is column-major, as in Fortran. `origin` describes
    numbers that were converted, for instance from text.
    """

    name: str
    shape: tuple[int, ...]
    format: Format
    dtype: DType | None
    by_columns: bool = False
    origin: Origin | None = None

    def __init__(self, name: str, shape: tuple[int, ...], kind: Format | DType, by_columns: bool = False):
        """Set the array's attributes; `kind` is the format of its codes, or the dtype of its numbers."""
        self.name, self.shape, self.by_columns = name, shape, by_columns and len(shape) > 1
        if isinstance(kind, Format):
            self.format, self.dtype = kind, None
            return
        found = _DOUBLE if kind.kind in _INTEGERS else format_of(kind)
        if found is None:
            hint = ": give its real and imaginary parts" if kind.kind == "c" else ""
            raise UnsupportedError(f"{name} must be an array of floats or integers, not of {kind.name}{hint}")
        self.format, self.dtype = found, kind.newbyteorder("=")

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def kind(self) -> str:
        """The name of the dtype, or of the format if the array is read as codes."""
        return self.format.name if self.dtype is None else self.dtype.name

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on: floats or integers of `dtype`, or codes of `format`."""
        raise NotImplementedError

    def blocks(self, length: int = BLOCK) -> Iterator[Piece]:
        """Yield all numbers, `length` at a time."""
        for first in range(0, self.size, length):
            yield self.read(first, min(length, self.size - first))

    def whole(self) -> Piece:
        """Return all numbers in the shape of the array; raises UnsupportedError for over 2^25 numbers."""
        if self.size > MOST_AT_ONCE:
            raise UnsupportedError(f"{self.name} has {self.size:,} numbers; at most {MOST_AT_ONCE:,} are taken at once")
        found, order = self.read(0, self.size), "F" if self.by_columns else "C"
        if isinstance(found, Source):
            return found.replace(codes=found.codes.reshape(self.shape, order=order))  # type: ignore[call-overload]
        return found.reshape(self.shape, order=order)  # type: ignore[call-overload]

    def close(self) -> None:
        """Close the file, if there is one."""

    def __enter__(self) -> Self:
        """Return the array itself; it is closed at the end of the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, if there is one."""
        self.close()


class HeldSource(ArraySource):
    """An array in memory: a NumPy array, a list, a tensor of another library, or a FloatArray.

    >>> source = HeldSource(np.float16([[1, 2], [3, 4]]), "x")
    >>> source.shape, source.kind, source.read(1, 2)
    ((2, 2), 'float16', array([2., 3.], dtype=float16))
    """

    def __init__(self, x: object, name: str = "x") -> None:
        """Take the array, without a copy if it is contiguous. Raises the errors of `source_of`."""
        array, kind = _held(x, name)
        super().__init__(name, array.shape, kind)
        self._flat = array.reshape(-1)

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on."""
        found = self._flat[first : first + count]
        return Source(found, self.format) if self.dtype is None else found.astype(self.dtype, copy=False)


def _held(x: object, name: str) -> tuple[Array, Format | DType]:
    """Return the array and its dtype if the dtype is NumPy's own, otherwise the codes and the format of the floats."""
    if not hasattr(x, "codes"):
        with suppress(Exception):  # tensors of dtypes that NumPy lacks; source_of raises the error
            array = np.asarray(x.detach().cpu() if hasattr(x, "detach") else x)
            if array.dtype.name in _NARROW_INTEGERS:
                array = array.astype(_NARROW_INTEGERS[array.dtype.name])
            if array.dtype.kind in _INTEGERS:
                return array, array.dtype
    source = source_of(x, name)
    # Some dtypes of ml_dtypes, such as float8_e5m2, have the same `kind` as NumPy's own floats.
    if source.dtype is None or source.dtype.newbyteorder("=") != native_dtype(source.format):
        return source.codes, source.format
    return source.codes.view(source.dtype), source.dtype
