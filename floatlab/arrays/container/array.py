"""FloatArray: an array whose values are numbers of one format, with NumPy's operators and functions."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from floatlab.arrays.container import accumulation
from floatlab.arrays.container.coded import Axis, CodedArray
from floatlab.arrays.container.protocols import (
    apply_function,
    apply_ufunc,
    check_not_empty,
    clipped,
    extreme,
    rounded_operation,
)
from floatlab.fpmode import methods_in_default_mode


@methods_in_default_mode
class FloatArray(CodedArray, np.lib.mixins.NDArrayOperatorsMixin):
    """An array of any shape whose values are all numbers of one format.

    Operators and NumPy's ufuncs return FloatArrays, and comparisons and predicates return arrays of bool; the rules are
    in `docs/containers.md`.

    Parameters
    ----------
    x
        Numbers: an array of NumPy, ml_dtypes, PyTorch or JAX, nested lists, a number, a Datum, a FloatArray.
    format
        Format of the values: a format, its name or a dtype. The default is the format of `x`, or float64 for lists,
        Python numbers and integers. Each number is rounded once into this format.
    context
        Rounding context for `x`, every result and every assigned value.

    Raises
    ------
    UnsupportedError
        For arguments that are not numeric.
    FormatError
        For an unknown format, and for a format that float64 does not contain.

    Examples
    --------
    >>> FloatArray([0.1, 3.3, 448, 1000], "e4m3")
    FloatArray([0.1015625, 3.25, 448.0, nan], e4m3fn)
    >>> FloatArray([1, 2, 3], "bf16") / 3
    FloatArray([0.33398438, 0.66796875, 1.0], bfloat16)
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # equality is element by element, as in NumPy

    def __contains__(self, value: object) -> bool:
        return bool(np.any(self == value))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _public(apply_ufunc(ufunc, method, inputs, kwargs))

    def __array_function__(self, function: Any, types: object, args: Any, kwargs: Any) -> Any:
        return _public(apply_function(function, args, kwargs))

    def fma(self, y: object, z: object) -> FloatArray:
        """Return x·y + z, rounded once."""
        return _own(rounded_operation("fma", (self, y, z)))

    def clip(self, min: object = None, max: object = None) -> FloatArray:
        """Return the values limited to two bounds; a bound without a format is rounded into the array's format."""
        return _own(clipped(self, min, max))

    def sum(self, axis: Axis = None, keepdims: bool = False, **how: Unpack[accumulation.Summation]) -> FloatArray:
        """Return the sum along axes. The module `accumulation` explains the other keywords."""
        return _own(accumulation.reduced(self, "add", axis, keepdims, **how))

    def prod(self, axis: Axis = None, keepdims: bool = False, **how: Unpack[accumulation.Summation]) -> FloatArray:
        """Return the product along axes; arguments as for `sum`."""
        return _own(accumulation.reduced(self, "multiply", axis, keepdims, **how))

    def mean(self, axis: Axis = None, keepdims: bool = False, **how: Unpack[accumulation.Summation]) -> FloatArray:
        """Return the mean along axes; the division is rounded to the accumulator's format. Arguments as for `sum`."""
        return _own(accumulation.reduced(self, "add", axis, keepdims, mean=True, **how))

    def matmul(self, other: object, **how: Unpack[accumulation.Summation]) -> FloatArray:
        """Return the matrix product. The module `accumulation` explains the keywords."""
        return _own(accumulation.matmul(self, other, **how))

    def dot(self, other: object, **how: Unpack[accumulation.Summation]) -> FloatArray:
        """Return the product of two vectors or matrices; arguments as for `matmul`."""
        return self.matmul(other, **how)

    def max(self, axis: Axis = None, keepdims: bool = False) -> FloatArray:
        """Return the largest value along axes; NaN if any value is NaN, as in NumPy."""
        return _own(extreme(self, axis, keepdims, largest=True))

    def min(self, axis: Axis = None, keepdims: bool = False) -> FloatArray:
        """Return the smallest value along axes; NaN if any value is NaN, as in NumPy."""
        return _own(extreme(self, axis, keepdims, largest=False))

    def argmax(self, axis: int | None = None) -> Any:
        """Return the index of the largest value along an axis, by default in the flattened array."""
        check_not_empty(self, axis, "largest")
        return np.argmax(self.values, axis)

    def argmin(self, axis: int | None = None) -> Any:
        """Return the index of the smallest value along an axis, by default in the flattened array."""
        check_not_empty(self, axis, "smallest")
        return np.argmin(self.values, axis)

    def any(self, axis: Axis = None) -> Any:
        """Return whether any value is not zero."""
        return np.any(self.values, axis)

    def all(self, axis: Axis = None) -> Any:
        """Return whether no value is zero."""
        return np.all(self.values, axis)


def _own(x: CodedArray) -> FloatArray:
    return x if isinstance(x, FloatArray) else FloatArray._of(x._codes, x._format, x._context)


def _public(result: Any) -> Any:
    """Replace the CodedArrays in a result by FloatArrays."""
    if isinstance(result, list | tuple):
        return type(result)(map(_public, result))
    return _own(result) if isinstance(result, CodedArray) else result
