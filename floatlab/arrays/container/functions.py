"""What NumPy's functions that are no ufuncs do with a FloatArray: most only move codes, or ask about values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from floatlab.arrays.container.accumulation import matmul, mean, product, total
from floatlab.arrays.container.coded import CodedArray
from floatlab.arrays.container.elements import codes_in
from floatlab.arrays.container.operands import refuse_options, shared_context, shared_format
from floatlab.arrays.container.ufuncs import extreme
from floatlab.errors import UnsupportedError
from floatlab.fpmode import in_default_mode
from floatlab.numbers.rounding import DEFAULT

# Functions that only move elements: they are asked to move the codes.
_MOVERS = {
    "reshape", "ravel", "transpose", "matrix_transpose", "permute_dims", "swapaxes", "moveaxis", "rollaxis", "squeeze",
    "expand_dims", "broadcast_to", "atleast_1d", "atleast_2d", "atleast_3d", "flip", "fliplr", "flipud", "roll",
    "rot90", "tile", "repeat", "take", "take_along_axis", "split", "array_split", "hsplit", "vsplit", "dsplit",
    "delete", "diagonal", "compress", "extract", "copy", "unstack",
}  # fmt: skip
_JOINERS = {"concatenate", "stack", "vstack", "hstack", "dstack", "column_stack", "block", "append"}
# Functions whose answer is no number of the format: they are asked about the values.
_READERS = {
    "shape", "ndim", "size", "array_equal", "array_equiv", "allclose", "isclose", "argmax", "argmin", "argsort",
    "argwhere", "nonzero", "flatnonzero", "count_nonzero", "any", "all", "histogram", "searchsorted", "digitize",
    "array2string", "iscomplexobj", "isrealobj", "may_share_memory", "shares_memory", "nanargmax", "nanargmin",
}  # fmt: skip
_FILLS = {"zeros_like": 0, "ones_like": 1, "empty_like": 0}


def _mapped(change: Callable[[Any], Any], x: Any) -> Any:
    return type(x)(_mapped(change, each) for each in x) if isinstance(x, list | tuple) else change(x)


def _leaves(x: Any) -> list[Any]:
    return [leaf for each in x for leaf in _leaves(each)] if isinstance(x, list | tuple) else [x]


def _moved(function: Any, args: Any, options: dict[str, Any], joins: bool) -> Any:
    arrays = _leaves(args[:2] if function is np.append else args[0])
    format, context = shared_format(arrays), shared_context(arrays)

    def code(x: Any) -> Any:
        if isinstance(x, CodedArray):
            return codes_in(x, format, context or DEFAULT)
        return codes_in(x, format, context or DEFAULT) if joins else x

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
    """Return the values between two bounds, by either of NumPy's names for them."""
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


_OWN: dict[str, Callable[..., Any]] = {
    "sum": lambda x, axis=None, **how: total(x, axis, **how),
    "prod": lambda x, axis=None, **how: product(x, axis, **how),
    "mean": lambda x, axis=None, **how: mean(x, axis, **how),
    **dict.fromkeys(("max", "amax"), lambda x, axis=None, keepdims=False: extreme(x, axis, keepdims, largest=True)),
    **dict.fromkeys(("min", "amin"), lambda x, axis=None, keepdims=False: extreme(x, axis, keepdims, largest=False)),
    "dot": lambda x, y: matmul(x, y),
    "where": _where,
    "sort": _sorted,
    "clip": clipped,
    "full_like": lambda x, fill: x._same(np.full(x.shape, codes_in(fill, x.format, x.context))),
    "outer": lambda x, y: np.multiply.outer(np.ravel(x), np.ravel(y)),
}


@in_default_mode
def apply_function(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Answer one of NumPy's functions that are no ufuncs; raises UnsupportedError for those that have no rounding."""
    name = function.__name__
    if not function.__module__.startswith("numpy") or function.__module__ in ("numpy.linalg", "numpy.fft"):
        name = f"{function.__module__.removeprefix('numpy.')}.{name}"
    if name in _MOVERS or name in _JOINERS:
        refuse_options({key: value for key, value in options.items() if key in ("out", "dtype", "casting")}, name)
        return _moved(function, args, options, name in _JOINERS)
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
    raise UnsupportedError(f"numpy.{name} has no rounding of its own for a FloatArray: ask it about its .values")
