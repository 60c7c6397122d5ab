"""How two arrays differ, measured piece by piece: bits, errors, ulps, tolerances, the worst elements and where.

The work grows with the number of elements that differ: those whose codes are the same are counted and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, inf
from sys import float_info
from typing import Any

import numpy as np

from floatlab.arith.operands import common_format, holds
from floatlab.arrays.compare.distances import Distances, Ulps
from floatlab.arrays.compare.structure import Finder, Structure
from floatlab.arrays.compare.tolerances import (
    NUMPY,
    Allclose,
    AssertClose,
    Extreme,
    Judge,
    Tolerance,
    default_tolerances,
    unlike,
)
from floatlab.arrays.conversion import encode
from floatlab.arrays.order import NOT_COMPARABLE, ulp_distance
from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.streams import BLOCK, ArraySource, ByRows, HeldSource, Spread, native
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Record

WORST = 5  # elements listed unless more are asked for
MOST_WORST = 10_000
_NONE = np.zeros(0, np.intp)
_LARGEST = float_info.max


class Operand(Record):
    """One of two arrays that were compared."""

    name: str
    shape: tuple[int, ...]
    kind: str  # its dtype where NumPy has it, else its format
    format: Format


class Specials(Record):
    """How many elements differ in what is no finite number, or only in the sign of a zero."""

    nan_in_actual: int
    nan_in_expected: int
    nan_in_both: int
    infinity: int  # one of them infinite and the other not, or infinities of two signs
    sign_of_zero: int


class ErrorSummary(Record):
    """Errors of one kind: the largest and the mean, over `count` elements for which there are such errors."""

    largest: Extreme | None
    mean: float | None
    count: int


class ComparedElement(Record):
    """One element of both arrays: values in binary64, codes, and how they differ; `share` as in Tolerance."""

    index: tuple[int, ...]
    actual: float
    expected: float
    actual_code: int
    expected_code: int
    absolute: float
    ulps: int
    share: float


class Differences(Answering, Record):
    """What `compare` found. Errors are computed in binary64, over elements that are finite in both arrays.

    Where the shapes do not go together there is nothing but the operands, and `shape` is None.
    """

    actual: Operand
    expected: Operand
    shape: tuple[int, ...] | None
    size: int
    equal_bits: int | None  # None where the formats differ
    equal: int  # the same number, whatever the sign of zero; NaNs are none
    specials: Specials
    absolute: ErrorSummary
    relative: ErrorSummary  # over elements that are expected not to be zero
    ulps: Ulps | None
    allclose: Tolerance
    assert_close: Tolerance
    worst: tuple[ComparedElement, ...]  # by share of NumPy's tolerance
    differing: Structure | None
    failing: Structure | None
    _ASKS = ".within (NumPy's tolerance), .assert_close.passes (PyTorch's), or whether .equal is .size"

    def __repr__(self) -> str:
        """Show how many elements are beyond tolerance."""
        names = f"{self.actual.name}, {self.expected.name}"
        if self.shape is None:
            return f"Differences({names}: shapes {self.actual.shape} and {self.expected.shape} do not go together)"
        beyond = f"{self.allclose.failing:,} of {self.size:,} elements beyond"
        return f"Differences({names}: {beyond} rtol {self.allclose.rtol:g}, atol {self.allclose.atol:g})"

    @property
    def within(self) -> bool:
        """Whether everything is within NumPy's tolerance."""
        return self.allclose.passes


def _pair(tolerances: Any) -> tuple[Any, ...]:
    if tolerances is None:
        return ()
    if not isinstance(tolerances, tuple | list) or len(tolerances) != 2:
        raise UnsupportedError("torch_tolerances are two numbers, (rtol, atol)")
    return tuple(tolerances)


@in_default_mode
def compare(
    actual: Any,
    expected: Any,
    rtol: float = NUMPY[0],
    atol: float = NUMPY[1],
    *,
    equal_nan: bool = False,
    format: Format | str | None = None,
    torch_tolerances: tuple[float, float] | None = None,
    worst: int = WORST,
    progress: Callable[[int], None] | None = None,
) -> Differences:
    """Return how two arrays differ: errors, ulps, whether NumPy and PyTorch call them close, the worst elements.

    Arrays are what `quantize` takes, or an `ArraySource`, of any size; their shapes broadcast. `rtol`, `atol` and
    `equal_nan` are `numpy.allclose`'s; `torch_tolerances` are `torch.testing.assert_close`'s (rtol, atol), which
    otherwise depend on the dtype. Ulps are those of the arrays' format, of the narrower where they have two (the
    other is rounded into it first), or of `format`. `progress` is told how many elements were done, now and then.
    Raises UnsupportedError for what is no array of numbers and for tolerances that are not finite and positive.

    >>> found = compare(np.float32([1, 2, 3.0001]), np.float32([1, 2.000001, 3]))
    >>> found.ulps.largest, found.allclose.passes, found.allclose.failing
    (Extreme(value=419, index=(2,)), False, 1)
    >>> print(f"{found.allclose.share.value:.2f} times what is allowed; rtol {found.allclose.least_rtol:.3g} would do")
    3.33 times what is allowed; rtol 3.33e-05 would do
    """
    for name, value in (
        ("rtol", rtol),
        ("atol", atol),
        *(("torch_tolerances", each) for each in _pair(torch_tolerances)),
    ):
        # Not math.isfinite, which integers may be too large for.
        if not isinstance(value, int | float | np.floating | np.integer) or not 0 <= value <= _LARGEST:
            raise UnsupportedError(f"{name} is {value!r}; a tolerance is a finite number from 0 on")
    if type(worst) is not int or not 0 <= worst <= MOST_WORST:
        raise UnsupportedError(f"worst is {worst!r}; it is how many elements to list, 0 to {MOST_WORST:,}")
    x, y = (
        each if isinstance(each, ArraySource) else HeldSource(each, name)
        for each, name in ((actual, "actual"), (expected, "expected"))
    )
    steps = ulp_format(x, y) if format is None else parse_format(format)
    if steps.magnitude_bits > 63 or steps.explicit_integer_bit:
        raise UnsupportedError(f"format is {steps.name}, whose steps are not counted on arrays; binary64's are")
    measure = _Measure(x, y, (float(rtol), float(atol)), equal_nan, steps, torch_tolerances, worst)
    return measure.run(progress)


def ulp_format(x: ArraySource, y: ArraySource) -> Format:
    """Return the format whose ulps two arrays are compared in: the narrower, where the other has all its numbers."""
    for narrow, wide in ((x.format, y.format), (y.format, x.format)):
        if holds(wide, narrow):
            return narrow
    return common_format([x.format, y.format])


class _Measure:
    """Two arrays on their way past each other."""

    def __init__(
        self,
        x: ArraySource,
        y: ArraySource,
        tolerances: tuple[float, float],
        equal_nan: bool,
        steps: Format,
        torch_tolerances: tuple[float, float] | None,
        worst: int,
    ) -> None:
        self.a, self.b = (Operand(each.name, each.shape, each.kind, each.format) for each in (x, y))
        self.tolerances, self.equal_nan, self.steps, self.most = tolerances, equal_nan, steps, worst
        self.alike = x.kind == y.kind
        small = y.format.width <= 8 and y.dtype is None  # PyTorch wants them equal, and takes no tolerance
        self.torch = (0.0, 0.0) if small else torch_tolerances or default_tolerances(y)
        self.same_shape = x.shape == y.shape
        self.shape = _broadcast(x.shape, y.shape)
        if self.shape is None:
            return
        self.x, self.y = _side_by_side(x, y, self.shape)
        self.by_columns = self.x.by_columns
        # The order in which elements are numbered.
        self.counted = self.shape[::-1] if self.by_columns else self.shape
        self.size = int(np.prod(self.shape, dtype=object))
        self.judge = Judge(Allclose(x, y), *tolerances, equal_nan)
        torch_agrees = self.alike and self.same_shape
        self.second = Judge(AssertClose(x, y), *self.torch, equal_nan) if torch_agrees else None
        self.distances = Distances()
        self.differing, self.failing = Finder(self.counted), Finder(self.counted)
        self.bits = self.equal = self.finite = self.nonzero = 0
        self.nans, self.infinity, self.signs = [0, 0, 0], 0, 0
        self.sums: dict[str, list[float]] = {"absolute": [], "relative": []}
        self.largest: dict[str, tuple[float, int]] = {}
        self.listed: list[tuple[float, int, tuple[Any, ...]]] = []

    def run(self, progress: Callable[[int], None] | None) -> Differences:
        """Go through both arrays once."""
        if self.shape is None:
            return self._apart()
        for first in range(0, self.size, BLOCK):
            count = min(BLOCK, self.size - first)
            with np.errstate(all="ignore"):
                self._see(first, self.x.read(first, count), self.y.read(first, count))
            if progress is not None:
                progress(count)
        return self._found()

    def _see(self, first: int, x: Any, y: Any) -> None:
        """Count a piece of each array, and measure where they are not the same."""
        x, y = (each.view(np.uint8) if getattr(each, "dtype", None) == np.bool_ else each for each in (x, y))
        a, b = source_of(x, self.a.name), source_of(y, self.b.name)
        if a.format == b.format:
            same = a.codes == b.codes
            self.bits += int(np.count_nonzero(same))
        p, q = native(x), native(y)
        if a.format != b.format:
            same = (p == q) & (np.signbit(p) == np.signbit(q))
        finite = np.isfinite(p)
        if same.all():
            rest = np.flatnonzero(np.isnan(p)) if not finite.all() else _NONE
        else:
            finite &= np.isfinite(q)
            rest = np.flatnonzero(~same | np.isnan(p))
        self.finite += int(np.count_nonzero(finite))
        self.nonzero += int(np.count_nonzero((q != 0) & finite))
        self.equal += len(p) - len(rest)
        self.distances.count(0, len(p) - len(rest))
        if not len(rest):
            return
        p, q, finite, index = p[rest], q[rest], finite[rest], rest + first
        self.equal += int(np.count_nonzero(p == q))
        self._specials(p, q)
        if self.equal_nan:
            # NaNs that are to be equal differ in their bits at most.
            alike = np.isnan(p) & np.isnan(q) & (same[rest] | (a.format != b.format))
            rest, p, q, finite, index = (each[~alike] for each in (rest, p, q, finite, index))
            if not len(rest):
                return
        absolute = self._errors(p, q, finite, index)
        distances = self._steps(a, b, p, q, rest, index)
        share, fails = self.judge.see(p, q, index)
        if self.second is not None:
            self.second.see(p, q, index)
        if self.judge.failing:
            self.failing.see(index[fails])
        else:  # of no interest once something fails
            self.differing.see(index)
        self._list(share, index, (p, q, a.codes[rest], b.codes[rest], absolute, distances))

    def _specials(self, p: Array, q: Array) -> None:
        no_p, no_q = np.isnan(p), np.isnan(q)
        for i, each in enumerate((no_p & ~no_q, no_q & ~no_p, no_p & no_q)):
            self.nans[i] += int(np.count_nonzero(each))
        infinite = (np.isinf(p) | np.isinf(q)) & ~no_p & ~no_q & (p != q)
        self.infinity += int(np.count_nonzero(infinite))
        self.signs += int(np.count_nonzero((p == 0) & (q == 0) & (np.signbit(p) != np.signbit(q))))

    def _errors(self, p: Array, q: Array, finite: Array, index: Array) -> Array:
        """Measure errors in binary64; return the absolute ones, infinite or NaN where there is none."""
        wide = q.astype(np.float64)
        absolute: Array = np.abs(p.astype(np.float64) - wide)
        based = finite & (wide != 0)
        for name, errors, at in (
            ("absolute", absolute[finite], index[finite]),
            ("relative", absolute[based] / np.abs(wide[based]), index[based]),
        ):
            if len(errors):
                self.sums[name].append(float(np.sum(errors)))
                most = int(np.argmax(errors))
                if name not in self.largest or errors[most] > self.largest[name][0]:
                    self.largest[name] = float(errors[most]), int(at[most])
        return absolute

    def _steps(self, a: Source, b: Source, p: Array, q: Array, rest: Array, index: Array) -> Array:
        """Return how many ulps lie between, −1 where one is a NaN."""
        codes = [
            each.codes[rest] if each.format == self.steps else encode(Source(each.codes[rest], each.format), self.steps)
            for each in (a, b)
        ]
        distances = ulp_distance(Source(codes[0], self.steps), Source(codes[1], self.steps))
        distances[np.isnan(p) | np.isnan(q)] = NOT_COMPARABLE
        self.distances.see(distances, index)
        return distances

    def _list(self, share: Array, index: Array, of: tuple[Array, ...]) -> None:
        """Keep the elements that use the largest share of the tolerance, the first of those that use the same."""
        if not self.most:
            return
        full = len(self.listed) == self.most
        better = np.flatnonzero(share > self.listed[-1][0]) if full else np.arange(len(share))
        if len(better) > self.most:
            better = better[np.argsort(-share[better], kind="stable")[: self.most]]
        for i in better.tolist():
            self.listed.append((float(share[i]), int(index[i]), tuple(each[i].item() for each in of)))
        self.listed.sort(key=lambda each: (-each[0], each[1]))
        del self.listed[self.most :]

    def _unravel(self, number: int) -> tuple[int, ...]:
        """Return the index of an element by its number."""
        found = []
        for n in reversed(self.counted):
            number, place = divmod(number, n)
            found.append(place)
        return tuple(found if self.by_columns else found[::-1])

    def _mean(self, name: str, count: int) -> ErrorSummary:
        largest = Extreme(0.0, self._unravel(0)) if count else None
        if name in self.largest:
            largest = Extreme(self.largest[name][0], self._unravel(self.largest[name][1]))
        try:
            total = fsum(self.sums[name])
        except OverflowError:
            total = inf
        return ErrorSummary(largest, total / count if count else None, count)

    def _found(self) -> Differences:
        second = self.second
        torch = second.verdict(self._unravel) if second else self._unlike("dtype" if self.same_shape else "shape")
        alike = self.a.format == self.b.format
        worst = tuple(
            ComparedElement(self._unravel(number), float(p), float(q), a, b, float(d), ulps, share)
            for share, number, (p, q, a, b, d, ulps) in self.listed
        )
        return Differences(
            self.a,
            self.b,
            self.shape,
            self.size,
            self.bits if alike else None,
            self.equal,
            Specials(self.nans[0], self.nans[1], self.nans[2], self.infinity, self.signs),
            self._mean("absolute", self.finite),
            self._mean("relative", self.nonzero),
            self.distances.found(self.steps, self._unravel),
            self.judge.verdict(self._unravel),
            torch,
            worst,
            None if self.judge.failing else self.differing.found(self.by_columns),
            self.failing.found(self.by_columns),
        )

    def _unlike(self, what: str) -> Tolerance:
        return unlike(AssertClose, *self.torch, self.equal_nan, what)

    def _apart(self) -> Differences:
        """Return what there is to say of arrays whose shapes do not go together."""
        numpy = unlike(Allclose, *self.tolerances, self.equal_nan, "shape")
        none = ErrorSummary(None, None, 0)
        no = Specials(0, 0, 0, 0, 0)
        torch = self._unlike("shape")
        return Differences(self.a, self.b, None, 0, None, 0, no, none, none, None, numpy, torch, (), None, None)


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that two shapes have together, or None."""
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    short = (1,) * (len(long) - len(short)) + short
    if any(m != n and 1 not in (m, n) for m, n in zip(long, short, strict=True)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(long, short, strict=True))


def _side_by_side(x: ArraySource, y: ArraySource, shape: tuple[int, ...]) -> tuple[ArraySource, ArraySource]:
    """Return arrays of one shape that are read in one order."""
    if x.shape == y.shape and x.by_columns == y.by_columns:
        return x, y
    found = [ByRows(each) if each.by_columns else each for each in (x, y)]
    first, second = (each if each.shape == shape else Spread(each, shape) for each in found)
    return first, second
