"""NumPy's functions on FloatArrays.

Comparisons and predicates (`_ANSWERS`) return arrays of bool. Arithmetic (`_ROUNDED`) is correctly rounded. Maxima,
minima and changes of sign are exact. Other ufuncs are computed in float64 and then rounded. Most functions that are not
ufuncs only rearrange codes (`_MOVERS`) or test values (`_READERS`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

from floatlab.arrays.container.accumulation import matmul
from floatlab.arrays.container.coded import (
    Axis,
    CodedArray,
    codes_in,
    finished,
    is_number,
    own_format,
    refuse_options,
    shared_context,
    shared_format,
    typed,
    values_of,
)  # fmt: skip
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.operations import operate
from floatlab.arrays.types import Array
from floatlab.arrays.ulps import next_after, spacing
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers.rounding import DEFAULT

# Correctly rounded by `operations`, for every format, rounding direction and rule.
_ROUNDED = {"add", "subtract", "multiply", "divide", "sqrt"}
# Functions that return one of the operands; True for those that return the larger one.
_CHOICES = {"maximum": True, "minimum": False, "fmax": True, "fmin": False}
_ANSWERS = {
    "less", "less_equal", "equal", "not_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "signbit",
    "logical_and", "logical_or", "logical_xor", "logical_not",
}  # fmt: skip
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_or": "any", "logical_and": "all",
}  # fmt: skip
# Functions that only move elements: they are applied to the codes.
_MOVERS = {
    "reshape", "ravel", "transpose", "matrix_transpose", "permute_dims", "swapaxes", "moveaxis", "rollaxis", "squeeze",
    "expand_dims", "broadcast_to", "atleast_1d", "atleast_2d", "atleast_3d", "flip", "fliplr", "flipud", "roll",
    "rot90", "tile", "repeat", "take", "take_along_axis", "split", "array_split", "hsplit", "vsplit", "dsplit",
    "delete", "diagonal", "compress", "extract", "copy", "unstack",
}  # fmt: skip
_JOINERS = {"concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "append"}
# Functions whose result is not a number of the format: they are applied to the values.
_READERS = {
    "shape", "ndim", "size", "array_equal", "array_equiv", "allclose", "isclose", "argmax", "argmin", "argsort",
    "argwhere", "nonzero", "flatnonzero", "count_nonzero", "any", "all", "histogram", "searchsorted", "digitize",
    "array2string", "iscomplexobj", "isrealobj", "may_share_memory", "shares_memory", "nanargmax", "nanargmin",
}  # fmt: skip
_FILLS = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}


@in_default_mode
def rounded_operation(name: str, values: tuple[object, ...], into: Format | None = None) -> CodedArray:
    """Return the correctly rounded result of an operation on FloatArrays.

    NaN results have the same codes as those of the scalar operation.
    """
    format, context = shared_format(values), shared_context(values)
    given = [typed(x, format, context or DEFAULT) for x in values]
    codes = operate(name, given, into or format, context=context, as_codes=True)
    return CodedArray._of(codes, into or format, context)


def _ordered(name: str, values: tuple[object, ...]) -> CodedArray:
    """Evaluate `spacing` (units in the last place) or `nextafter` (the neighbours toward other numbers)."""
    format, context = shared_format(values), shared_context(values)
    given = [values_of(x, format, context or DEFAULT) for x in values]
    found = spacing(given[0], format) if name == "spacing" else next_after(given[0], given[1], format)
    return finished(found, format, context)


def _as_float(number: Any) -> float | None:
    """Return a number as a float, or None if no float equals it."""
    try:
        ratio = number.as_integer_ratio()
    except (OverflowError, ValueError):  # an infinity or a NaN
        return float(number)
    except AttributeError:  # a complex number
        return None
    with suppress(OverflowError):
        near = float(number)
        if near - near == 0 and near.as_integer_ratio() == ratio:
            return near
    return None


def _exactly(x: object) -> Array:
    """Return an operand of a comparison as float64 or bool.

    Raises UnsupportedError if float64 does not represent the operand.
    """
    if is_number(x):
        near = _as_float(x.item() if isinstance(x, np.generic) else x)
        if near is None:
            raise UnsupportedError(f"{x} is not a float64, and comparisons do not round")
        return np.asarray(near)
    if own_format(x) is not None:
        return values_of(x, DOUBLE, DEFAULT, np.float64)
    array = np.asarray(x)
    if array.dtype.kind in "USO":
        raise UnsupportedError(f"an operand must be a number or an array of numbers, not {type(x).__name__}")
    return array if array.dtype == bool else values_of(array, DOUBLE, DEFAULT, np.float64)


def _chosen(ufunc: np.ufunc, x: Array, y: Array) -> Array:
    """Return the maximum or minimum of two arrays as NumPy does, but with +0 greater than −0 (IEEE 754-2019 9.6)."""
    with np.errstate(all="ignore"):
        # NumPy's fmax and fmin treat a signaling NaN as a number or as a NaN, depending on the length of the array.
        x, y = x * x.dtype.type(1), y * y.dtype.type(1)
        zero = x + y if _CHOICES[ufunc.__name__] else -(-x - y)
        found: Array = np.where((x == 0) & (y == 0), zero, ufunc(x, y))
    return found


@in_default_mode
def check_not_empty(x: CodedArray, axis: Axis, what: str) -> None:
    """Raise UnsupportedError if there are no values along `axis`.

    `what` is an adjective for the message, such as "largest".
    """
    axes = range(x.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, x.ndim)
    rest = prod(length for i, length in enumerate(x.shape) if i not in axes)
    if rest and not x.size:
        raise UnsupportedError(f"an empty array has no {what} value")


def extreme(x: CodedArray, axis: Axis, keepdims: bool, largest: bool) -> CodedArray:
    """Return the largest or the smallest value along axes; NaN if any value is NaN; +0 is larger than −0.

    Raises UnsupportedError if there are no values.
    """
    values = x.values
    check_not_empty(x, axis, "largest" if largest else "smallest")
    found = np.asarray((np.max if largest else np.min)(values, axis=axis, keepdims=keepdims))
    wanted = np.any((values == 0) & (np.signbit(values) != largest), axis=axis, keepdims=keepdims)
    zero = np.where(wanted == largest, 0.0, -0.0)
    return finished(np.where(found == 0, zero, found).astype(found.dtype), x.format, x._context)


def _with_sign(x: CodedArray, name: str) -> CodedArray:
    """Flip or clear the sign bit, and keep all other bits, also in NaNs (IEEE 754-2019 5.5.1).

    In unsigned formats, and in formats that are given by a table, the number is instead negated (or made positive) and
    rounded into the format. In formats whose NaN has the code of −0, zero and NaN stay unchanged.
    """
    fmt, codes = x.format, x.codes
    if fmt.is_table:
        return finished(-x.values if name == "negative" else np.abs(x.values), fmt, x._context, x.context)
    if not fmt.signed:
        if name == "negative":
            return finished(-x.values, fmt, x._context, x.context)
        return x.copy()
    sign = codes.dtype.type(1 << (fmt.width - 1))
    changed = codes ^ sign if name == "negative" else codes & ~sign
    if fmt.nan_in_place_of_negative_zero:
        changed = np.where(codes & ~sign == 0, codes, changed)
    return CodedArray._of(changed, fmt, x._context)


def _computed(ufunc: np.ufunc, values: tuple[object, ...], into: Format | None) -> Any:
    """Compute a ufunc in float64, and round the results into the format.

    The result is correctly rounded if the float64 result is exact. `_chosen` computes maxima and minima.
    """
    format, context = shared_format(values), shared_context(values)
    rules = context or DEFAULT
    if ufunc.__name__ in _CHOICES:
        found = _chosen(ufunc, *(values_of(x, format, rules) for x in values))
        return finished(found, into or format, context, rules if into else DEFAULT)
    count = 1 if ufunc.__name__ == "ldexp" else len(values)  # the second operand of ldexp is not a number of the format
    given = [*(values_of(x, format, rules, np.float64) for x in values[:count]), *map(np.asarray, values[count:])]
    with np.errstate(all="ignore"):
        found = ufunc(*given)
    results = [
        finished(each, into or format, context, rules) if np.asarray(each).dtype.kind == "f" else each
        for each in (found if isinstance(found, tuple) else (found,))
    ]
    return tuple(results) if isinstance(found, tuple) else results[0]


def _called(ufunc: np.ufunc, values: tuple[Any, ...], into: Format | None) -> Any:
    name = ufunc.__name__
    if name in ("equal", "not_equal") and any(x is None or isinstance(x, str) for x in values):
        return np.full(next(x.shape for x in values if isinstance(x, CodedArray)), name == "not_equal")
    if name in _ANSWERS:
        return ufunc(*map(_exactly, values))
    if name in _ROUNDED:
        return rounded_operation(name, values, into)
    if name == "square":
        return rounded_operation("multiply", values * 2, into)
    if name == "reciprocal":
        return rounded_operation("divide", (1, *values), into)
    if into is None and name in ("spacing", "nextafter"):
        return _ordered(name, values)
    if name == "matmul":
        return matmul(*values, format=into)
    if into is None and name in ("negative", "absolute", "fabs"):
        return _with_sign(values[0], name)
    if into is None and name in ("positive", "conjugate"):
        return values[0].copy()
    return _computed(ufunc, values, into)


def _spread(x: Any, axes: int) -> Any:
    shaped = x if isinstance(x, CodedArray) or is_number(x) else np.asarray(x)
    return shaped if is_number(shaped) else shaped.reshape(*shaped.shape, *(1,) * axes)


@in_default_mode
def apply_ufunc(ufunc: np.ufunc, method: str, values: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Evaluate one of NumPy's ufuncs: the result has the operands' common format, or the format of `out`."""
    outs = options.pop("out", ())
    name = ufunc.__name__
    if method == "reduce" and name in _REDUCTIONS and not outs:
        how = {key: options[key] for key in ("axis", "keepdims") if key in options}
        refuse_options({key: options[key] for key in options if key not in ("axis", "keepdims", "dtype")}, name)
        return getattr(values[0], _REDUCTIONS[name])(**({"axis": 0} | how))
    if method == "outer":
        values = (_spread(values[0], np.ndim(values[1])), values[1])
    elif method != "__call__":
        raise UnsupportedError(f"numpy.{name}.{method} is not defined for a FloatArray; its .values are plain floats")
    refuse_options(options, name)
    if len(outs) > 1 or (outs and isinstance(outs[0], CodedArray) and name in _ANSWERS):
        raise UnsupportedError(f"out of numpy.{name} must be one array of the result's type")
    if not outs:
        return _called(ufunc, values, None)
    out = outs[0]
    found = _called(ufunc, values, out.format if isinstance(out, CodedArray) else None)
    if found.shape != out.shape:
        raise UnsupportedError(f"out must have shape {found.shape}, not {out.shape}")
    if isinstance(out, CodedArray):
        out[...] = found
        return out
    if isinstance(found, CodedArray):
        found = decode(found.codes, found.format, out.dtype)  # raises an error if the dtype does not contain the format
    elif found.dtype != out.dtype:
        raise UnsupportedError(f"out must have dtype {found.dtype}, not {out.dtype}")
    out[...] = found
    return out


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    return type(x)(_mapped(change, each) for each in x) if isinstance(x, list | tuple) else change(x)


def _leaves(x: Any) -> list[Any]:
    return [leaf for each in x for leaf in _leaves(each)] if isinstance(x, list | tuple) else [x]


def _moved(function: Any, args: Any, options: dict[str, Any], joins: bool) -> Any:
    arrays = _leaves(args[:2] if function is np.append else args[0])
    format, context = shared_format(arrays), shared_context(arrays)

    def code(x: Any) -> Any:
        return codes_in(x, format, context or DEFAULT) if joins or isinstance(x, CodedArray) else x

    first = 2 if function is np.append else 1
    found = function(*(_mapped(code, each) for each in args[:first]), *args[first:], **options)
    return _mapped(lambda codes: CodedArray._of(codes, format, context), found)


def _where(condition: Any, *choices: Any) -> Any:
    if not choices:
        return np.nonzero(np.asarray(condition))
    format, context = shared_format(choices), shared_context(choices)
    x, y = (codes_in(each, format, context or DEFAULT) for each in choices)
    return CodedArray._of(np.where(np.asarray(condition) != 0, x, y), format, context)


def _sorted(x: CodedArray, axis: int | None = -1) -> CodedArray:
    if axis is None:
        x, axis = x.ravel(), 0
    return x._same(np.take_along_axis(x.codes, np.argsort(x.values, axis, kind="stable"), axis))


@in_default_mode
def clipped(x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    """Return the values limited to two bounds, which NumPy calls `a_min` and `a_max`, or `min` and `max`."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _method(name: str) -> Callable[..., Any]:
    return lambda x, axis=None, **how: getattr(x, name)(axis, **how)


_OWN: dict[str, Callable[..., Any]] = {
    **{name: _method(name.removeprefix("a")) for name in ("sum", "prod", "mean", "max", "amax", "min", "amin")},
    "dot": lambda x, y: matmul(x, y),
    "where": _where,
    "sort": _sorted,
    "clip": clipped,
    "full_like": lambda x, fill: x._same(np.full(x.shape, codes_in(fill, x.format, x.context))),
    "outer": lambda x, y: np.multiply.outer(np.ravel(x), np.ravel(y)),
}


@in_default_mode
def apply_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Evaluate a NumPy function that is not a ufunc; raises UnsupportedError if its rounding is not defined."""
    name = function.__name__
    if not function.__module__.startswith("numpy") or function.__module__ in ("numpy.linalg", "numpy.fft"):
        name = f"{function.__module__.removeprefix('numpy.')}.{name}"
    if name in _MOVERS or name in _JOINERS:
        refuse_options({key: value for key, value in options.items() if key in ("out", "dtype", "casting")}, name)
        return _moved(function, args, options, name in _JOINERS)
    if name.removeprefix("nan") in ("argmax", "argmin") and isinstance(args[0], CodedArray):
        axis = args[1] if len(args) > 1 else options.get("axis")
        check_not_empty(args[0], axis, "largest" if name.endswith("max") else "smallest")
    if name in _READERS:
        return function(
            *(_mapped(lambda x: x.values if isinstance(x, CodedArray) else x, each) for each in args), **options
        )
    if name in _FILLS:
        refuse_options(options, name)
        return _OWN["full_like"](args[0], _FILLS[name])
    if name in _OWN:
        try:
            return _OWN[name](*args, **options)
        except TypeError as trouble:
            raise UnsupportedError(f"numpy.{name} of a FloatArray: {str(trouble).replace('<lambda>', name)}") from None
    raise UnsupportedError(f"numpy.{name} is not defined on a FloatArray: call it on the .values")
