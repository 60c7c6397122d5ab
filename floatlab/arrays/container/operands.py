"""What FloatArrays meet in an operation: the format and the context that operands share, and results in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from floatlab.arith.operands import common_format, reading_context
from floatlab.arrays.container.coded import CodedArray
from floatlab.arrays.container.elements import array_format, codes_in
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.reading import DOUBLE
from floatlab.arrays.operands import is_floating
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum
from floatlab.numbers.rounding import DEFAULT


def own_format(x: object) -> Format | None:
    """Return the format that an operand brings; None for numbers, lists and integers, which take the others'."""
    if isinstance(x, CodedArray | Datum):
        return x.format
    if isinstance(x, np.generic) or not is_floating(x):
        return None
    return source_of(x, "an operand").format


def shared_format(values: Iterable[object]) -> Format:
    """Return the format of a result: the operands' own, else the first of fp16, bf16, fp32 and fp64 that holds all.

    Raises FormatError where none does.
    """
    formats = [format for format in map(own_format, values) if format is not None]
    try:
        return array_format(common_format(formats or [DOUBLE]))
    except FormatError:
        names = ", ".join(dict.fromkeys(each.name for each in formats))
        raise FormatError(f"no one of fp16, bf16, fp32 and fp64 holds {names}: convert one with astype") from None


def shared_context(values: Iterable[object]) -> Context | None:
    """Return the context of a result: that of the operands that have one; raises UnsupportedError where two differ."""
    given = [x._context for x in values if isinstance(x, CodedArray) and x._context is not None]
    if any(each != given[0] for each in given):
        raise UnsupportedError(f"two contexts meet, {given[0]} and {given[1]}: give one to both (with_context)")
    return given[0] if given else None


def typed(x: object, format: Format, context: Context) -> Any:
    """Return an operand that has a format as it is; numbers, integers and lists rounded into this one."""
    if own_format(x) is not None:
        return CodedArray(x) if isinstance(x, Datum) else x
    if isinstance(x, str):
        raise UnsupportedError("an operand is text: numbers and arrays of numbers are taken")
    return CodedArray._of(codes_in(x, format, reading_context(context)), format, None)


def values_of(x: object, format: Format, context: Context, dtype: object = None) -> Array:
    """Return an operand's values, exactly, once it has a format."""
    known = typed(x, format, context)
    exact = known if isinstance(known, CodedArray) else CodedArray(known)
    return decode(exact.codes, exact.format, dtype)


def finished(values: Any, format: Format, context: Context | None, rules: Context = DEFAULT) -> CodedArray:
    """Return values as a FloatArray of this context, rounded by `rules`; every NaN is the format's default one."""
    codes = np.asarray(encode(values, format, context=rules))
    if format.has_nan:
        codes[np.isnan(values)] = format.nan_code
    return CodedArray._of(codes, format, context)


def refuse_options(options: dict[str, object], name: str) -> None:
    """Raise UnsupportedError, which names it, for an option that a function of NumPy has and a FloatArray has not."""
    left = [key for key, value in options.items() if not (key == "where" and value is True) and value is not None]
    if left:
        raise UnsupportedError(f"numpy.{name} of a FloatArray takes no {left[0]}=")
