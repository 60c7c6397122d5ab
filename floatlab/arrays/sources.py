"""Input arrays of any kind, as the codes of a format."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np

from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import format_called
from floatlab.fpmode import in_default_mode
from floatlab.record import Record

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_NATIVE = {"binary16": np.float16, "binary32": np.float32, "binary64": np.float64}
_MOST_INTEGER = 1 << 53  # float64 has all integers up to here


class Origin(Record):
    """What numbers were before they were read into their present format."""

    format: Format | None  # None for text, fractions and integers, which bring none
    inexact: int  # how many of them reading changed


class Source(Record):
    """An array of floats: its codes, of its own shape and memory, their format, and NumPy's dtype of such floats."""

    codes: Array
    format: Format
    dtype: DType | None = None  # None where NumPy has none, and for what was integers
    origin: Origin | None = None  # None where they always had this format


@lru_cache(maxsize=64)
def format_of(dtype: DType) -> Format | None:
    """Return the format of a dtype's elements: NumPy's floats and those of ml_dtypes; None for other dtypes.

    >>> format_of(np.dtype(np.float16)).name
    'binary16'
    """
    return format_called(dtype.name) if dtype.itemsize in _UNSIGNED and dtype.kind in "fV" else None


def native_dtype(format: Format) -> DType | None:
    """Return the dtype that NumPy itself has for a format's numbers; None where it has none.

    >>> from floatlab.formats import parse_format
    >>> native_dtype(parse_format("fp16")), native_dtype(parse_format("bf16"))
    (dtype('float16'), None)
    """
    kind = _NATIVE.get(format.name)
    return None if kind is None else np.dtype(kind)


@in_default_mode
def source_of(x: Any, name: str = "x") -> Source:
    """Return the codes of an array of floats or integers, or of anything with `__dlpack__` or `__array__`.

    Integers and lists of numbers become float64. The codes share the array's memory. Raises UnsupportedError, which
    names the argument, for what holds no numbers.
    """
    if type(x) is np.ndarray and (plain := kind_of(x.dtype)) is not None:
        return Source(x.view(plain[1]), plain[0], x.dtype)
    if isinstance(getattr(x, "format", None), Format) and isinstance(getattr(x, "codes", None), np.ndarray):
        return Source(x.codes, x.format, None, x.origin if isinstance(x, Source) else None)
    if hasattr(x, "mask") and hasattr(x, "filled"):
        raise UnsupportedError(f"{name} is a masked array, and codes have no mask: give {name}.filled(…)")
    array = _array(x, name)
    if isinstance(array, Source):
        return array
    if isinstance(x, list | tuple) and array.dtype.kind in "iuf" and _holds_bool(x):
        raise UnsupportedError(f"{name} holds True or False among numbers; floats and integers are taken")
    if array.dtype.kind in "iu":
        if array.size and max(int(array.max()), -int(array.min())) > _MOST_INTEGER:
            raise UnsupportedError(
                f"{name} holds integers beyond 2^53, where float64 has not all of them: convert them first"
            )
        return Source(array.astype(np.float64).view(np.uint64), parse_format("binary64"))
    found = kind_of(array.dtype)
    if found is None:
        held = "strings" if array.dtype.kind in "US" else array.dtype.name
        raise UnsupportedError(f"{name} is an array of {held}; floats and integers are taken")
    return Source(array.view(found[1]), found[0], array.dtype)


@lru_cache(maxsize=64)
def kind_of(dtype: DType) -> tuple[Format, DType] | None:
    """Return the format of a dtype of floats, and the dtype of its codes as they lie in memory; None for others."""
    found = format_of(dtype)
    return None if found is None else (found, np.dtype(_UNSIGNED[dtype.itemsize]).newbyteorder(dtype.byteorder))


def _holds_bool(x: object) -> bool:
    return any(map(_holds_bool, x)) if isinstance(x, list | tuple) else isinstance(x, bool | np.bool_)


def _array(x: object, name: str) -> Array | Source:
    """Take what NumPy takes, and tensors of other libraries, on whatever device they are."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
    try:
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            return np.from_dlpack(x)
        return np.asarray(x)
    except (BufferError, NotImplementedError, OverflowError, RuntimeError, TypeError, ValueError) as trouble:
        found = _bits_of(x)
        if found is None:
            said = str(trouble).splitlines()
            raise UnsupportedError(f"{name} is no array of numbers: {said[0] if said else trouble!r}") from None
        return found


def _bits_of(x: Any) -> Source | None:
    """Take a tensor whose dtype NumPy has no name for (torch's bfloat16 and float8): its bits cross as integers."""
    found = format_called(str(getattr(x, "dtype", "")).rpartition(".")[2])
    if found is None or found.width not in (8, 16) or not hasattr(x, "view"):
        return None
    library = sys.modules[type(x).__module__.partition(".")[0]]
    integers = np.asarray(x.view(library.uint8 if found.width == 8 else library.int16))
    return Source(integers.view(np.uint8 if found.width == 8 else np.uint16), found)
