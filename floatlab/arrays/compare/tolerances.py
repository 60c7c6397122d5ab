"""The tolerance tests of NumPy and PyTorch: which elements pass, and the smallest tolerances that suffice.

Both libraries test |actual − expected| ≤ atol + rtol·|expected|, but in different arithmetic, which matters near the
limit. NumPy computes in the arrays' dtype. PyTorch computes 16-bit floats in binary32, and rounds every result to the
16-bit format. This module follows each library's arithmetic. Equal numbers always pass. A pair of an infinity and a
different number fails. NumPy's test has one exception: an infinity in `actual` passes against a finite expected number
if the allowed difference overflows to infinity. A NaN passes only with another NaN, and only if `equal_nan` is true.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isnan

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.compare.differences import Extreme, Tolerance
from floatlab.arrays.conversion import quantize
from floatlab.arrays.lanes.parameters import SINGLE
from floatlab.arrays.sources import ArraySource
from floatlab.arrays.types import Array

NUMPY = (1e-5, 1e-8)  # the defaults of numpy.allclose: rtol, atol
# The default rtol and atol of torch.testing.assert_close by dtype; arrays of other dtypes must be equal.
TORCH = {
    "binary16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "binary32": (1.3e-6, 1e-5),
    "binary64": (1e-7, 1e-7),
}


class Allclose:
    """The test of `numpy.allclose`, in NumPy's arithmetic for the dtypes of the arrays."""

    name = "numpy.allclose"

    def __init__(self, actual: ArraySource, expected: ArraySource) -> None:
        """Choose the dtype in which NumPy reads `expected`.

        It is float64 for integers, and the array's own dtype for NumPy's floats. Other formats are read as `decode`
        converts them: into float32 or float64.
        """
        kind = expected.dtype
        if kind is None:
            kind = np.dtype(np.float32 if holds(SINGLE, expected.format) else np.float64)  # as `decode` does
        self.kind = np.result_type(kind, 1.0)
        self.grid = self.kind

    def errors(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return |x − y|, and the magnitudes |y|, on which the allowed difference depends."""
        y = y.astype(self.kind, copy=False)
        return np.abs(x - y), np.abs(y)

    def allowed(self, size: Array, rtol: float, atol: float) -> Array:
        """Return the allowed difference for expected values with the magnitudes `size`."""
        return self.kind.type(atol) + self.kind.type(rtol) * size

    def bounded(self, error: Array, size: Array) -> Array:
        """Return a mask of the elements to which the tolerance applies: those with a finite expected number.

        All other elements pass the test only if both numbers are equal.
        """
        return np.isfinite(size)


class AssertClose:
    """The test of `torch.testing.assert_close`, in PyTorch's arithmetic, for two arrays of one dtype."""

    name = "torch.testing.assert_close"

    def __init__(self, actual: ArraySource, expected: ArraySource) -> None:
        """Choose the dtype of PyTorch's arithmetic: float64 for floats that float32 does not contain, else float32."""
        integers = expected.dtype is not None and expected.dtype.kind in "iub"
        self.narrow = None if integers or expected.format.precision > 11 else expected.format
        wide = not integers and not holds(SINGLE, expected.format)
        self.kind = self.grid = np.dtype(np.float64 if wide else np.float32)

    def _rounded(self, x: Array) -> Array:
        if self.narrow is None:
            return x
        if self.narrow.name == "binary16":
            return x.astype(np.float16).astype(np.float32)
        return quantize(x, self.narrow)

    def errors(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return |x − y|, and the magnitudes |y|, on which the allowed difference depends."""
        x, y = x.astype(self.kind, copy=False), y.astype(self.kind, copy=False)
        return np.abs(self._rounded(x - y)), np.abs(y)

    def allowed(self, size: Array, rtol: float, atol: float) -> Array:
        """Return the allowed difference for expected values with the magnitudes `size`.

        If the arrays have a format of at most 11 digits, atol, the product and the sum are rounded to this format. rtol
        is not rounded.
        """
        base = self._rounded(np.asarray(atol, self.kind))
        return self._rounded(base + self._rounded(self.kind.type(rtol) * size))

    def bounded(self, error: Array, size: Array) -> Array:
        """Return a mask of the elements to which the tolerance applies: those with a finite error.

        All other elements pass the test only if both numbers are equal.
        """
        return np.isfinite(error)


def default_tolerances(expected: ArraySource) -> tuple[float, float]:
    """Return PyTorch's default rtol and atol for the dtype of the array."""
    integers = expected.dtype is not None and expected.dtype.kind in "iub"
    return (0.0, 0.0) if integers else TORCH.get(expected.format.name, (0.0, 0.0))


class ToleranceTest:
    """Accumulates the result of one tolerance test. Only pairs that may differ need to be passed to `add`."""

    def __init__(self, rule: Allclose | AssertClose, rtol: float, atol: float, equal_nan: bool) -> None:
        self.rule, self.rtol, self.atol, self.equal_nan = rule, rtol, atol, equal_nan
        self.failing = 0
        self.hopeless = False  # whether a pair fails with every tolerance
        self.share = self.absolute = self.relative = (-1.0, 0)
        self._codes = np.dtype(f"u{rule.grid.itemsize}")
        self._top = self._code(inf) - 1  # the code of the largest finite number
        self._lowest = {"rtol": 0, "atol": 0}  # codes of the smallest sufficient tolerances

    def _code(self, tolerance: float) -> int:
        """Return the bits of a tolerance as an integer; a larger tolerance has a larger integer."""
        return int(np.asarray(tolerance, self.rule.grid).view(self._codes))

    def _number(self, code: int) -> float:
        return float(np.asarray(code, self._codes).view(self.rule.grid))

    def add(self, x: Array, y: Array, index: Array) -> tuple[Array, Array]:
        """Test pairs of numbers, whose linear indices are `index`.

        Return the share of each pair (the difference divided by the allowed difference), and a mask of the pairs that
        fail.
        """
        rule = self.rule
        with np.errstate(all="ignore"):
            error, size = rule.errors(x, y)
            equal = x == y
            if self.equal_nan:
                equal |= np.isnan(x) & np.isnan(y)
            bounded = rule.bounded(error, size) & ~np.isnan(error)
            allowed = rule.allowed(size, self.rtol, self.atol)
            near = equal | (bounded & (error <= allowed))
            share = np.where(bounded, error.astype(np.float64) / allowed, inf)
            share[np.isnan(share)] = inf
            share[equal] = 0.0
            fails = ~near
            self.failing += int(np.count_nonzero(fails))
            self.share = _larger(self.share, share, index)
            self.hopeless |= bool(np.any(~bounded & ~equal))
            if fails.any():
                beyond, beside = error[fails], size[fails]
                self.absolute = _larger(self.absolute, beyond, index[fails])
                self.relative = _larger(self.relative, self._quotient(beyond, beside), index[fails])
            lies = bounded & ~equal
            self._widen(error[lies], size[lies])
        return share, fails

    def _quotient(self, error: Array, size: Array) -> Array:
        quotient: Array = error / size
        return self.rule._rounded(quotient) if isinstance(self.rule, AssertClose) else quotient

    def _widen(self, error: Array, size: Array) -> None:
        """Increase the smallest sufficient rtol and atol until pairs with |x − y| = `error` and |y| = `size` pass."""
        for which, other in (("rtol", self.atol), ("atol", self.rtol)):
            known = self._lowest[which]

            def near(code: int, error: Array, size: Array, which: str = which, other: float = other) -> Array:
                tolerance = self._number(code)
                rtol, atol = (tolerance, other) if which == "rtol" else (other, tolerance)
                return error <= self.rule.allowed(size, rtol, atol)

            if known >= 0:
                self._lowest[which] = _smallest(near, known, self._top, error, size)

    def _tolerance(self, which: str) -> float | None:
        code = self._lowest[which]
        return None if code < 0 or self.hopeless else self._number(code)

    def result(self, unravel: Callable[[int], tuple[int, ...]]) -> Tolerance:
        """Return the result of the test; `unravel` converts a linear index into the indices along the axes."""

        def extreme(found: tuple[float, int]) -> Extreme | None:
            return None if found[0] == -1.0 else Extreme(found[0], unravel(found[1]))

        return Tolerance(
            name=self.rule.name, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan, passes=not self.failing,
            failing=self.failing, share=extreme(self.share), least_rtol=self._tolerance("rtol"),
            least_atol=self._tolerance("atol"), greatest_absolute=extreme(self.absolute),
            greatest_relative=extreme(self.relative),
        )  # fmt: skip


def _larger(found: tuple[float, int], values: Array, index: Array) -> tuple[float, int]:
    """Return `found` (the largest value so far and its first index), updated with more values and their indices.

    A NaN counts as the largest value, as in NumPy and PyTorch.
    """
    if not values.size or isnan(found[0]):
        return found
    at = int(np.argmax(values))
    value = float(values[at])
    return (value, int(index[at])) if isnan(value) or value > found[0] else found


def _smallest(near: Callable[[int, Array, Array], Array], low: int, top: int, error: Array, size: Array) -> int:
    """Return the code of the smallest tolerance that all pairs pass, from `low` to `top`; −1 if no tolerance suffices.

    The code of a tolerance is its bits as an integer. `near(code, error, size)` returns a mask of the pairs that pass
    with the tolerance of this code.
    """
    far = ~near(low, error, size)
    if not far.any():
        return low
    error, size = error[far], size[far]
    if not near(top, error, size).all():
        return -1
    while top - low > 1:
        middle = (low + top) // 2
        far = ~near(middle, error, size)
        if far.any():
            low, error, size = middle, error[far], size[far]
        else:
            top = middle
    return top
