"""Measures the differences of two arrays piece by piece: bits, errors, ulps, tolerances, the worst elements.

Elements with equal codes are only counted, unless they are NaNs. So the time depends mostly on the number of elements
that differ.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, inf
from sys import float_info

import numpy as np

from floatlab.arith.operands import common_format, holds
from floatlab.arrays.codec import native, round_array
from floatlab.arrays.compare.differences import (
    NO_ERRORS,
    ComparedElement,
    Differences,
    Distances,
    ErrorSummary,
    Extreme,
    Finder,
    Operand,
    Specials,
    Tolerance,
)  # fmt: skip
from floatlab.arrays.compare.tolerances import NUMPY, Allclose, AssertClose, ToleranceTest, default_tolerances
from floatlab.arrays.sources import BLOCK, MOST_AT_ONCE, ArraySource, HeldSource, Piece, Source, source_of
from floatlab.arrays.types import Array
from floatlab.arrays.ulps import NOT_COMPARABLE, ulp_distance
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode

WORST = 5  # the default number of listed elements
MOST_WORST = 10_000
_NONE = np.zeros(0, np.intp)
_LARGEST = float_info.max


def _pair(tolerances: object) -> tuple[object, ...]:
    if tolerances is None:
        return ()
    if not isinstance(tolerances, tuple | list) or len(tolerances) != 2:
        raise UnsupportedError("torch_tolerances must be two numbers, (rtol, atol)")
    return tuple(tolerances)


@in_default_mode
def compare(
    actual: object,
    expected: object,
    rtol: float = NUMPY[0],
    atol: float = NUMPY[1],
    *,
    equal_nan: bool = False,
    format: Format | str | None = None,
    torch_tolerances: tuple[float, float] | None = None,
    worst: int = WORST,
    progress: Callable[[int], None] | None = None,
) -> Differences:
    """Compare two arrays: measure errors and ulps, apply the tests of NumPy and PyTorch, and list the worst elements.

    Parameters
    ----------
    actual, expected
        Arrays as for `quantize`, or an `ArraySource`, of any size. Their shapes broadcast.
    rtol, atol, equal_nan
        As in `numpy.allclose`.
    format
        Format whose ulps are counted; arrays of other formats are first rounded into this format. By default the format
        of the arrays. If their formats differ, the default is the narrower format if the other format contains it, else
        a format that contains both.
    torch_tolerances
        (rtol, atol) for `torch.testing.assert_close`; by default PyTorch's defaults, which depend on the dtype. Arrays
        of 8-bit floats must always be equal.
    worst
        Number of elements to list, 0 to 10,000.
    progress
        Called repeatedly with the number of elements done since the last call.

    Returns
    -------
    Differences

    Raises
    ------
    UnsupportedError
        For arrays that are not numeric, for tolerances that are negative or not finite, for an invalid `worst`, and for
        a `format` that is x87 extended or has more than 64 bits.

    Examples
    --------
    >>> found = compare(np.float32([1, 2, 3.0001]), np.float32([1, 2.000001, 3]))
    >>> found.ulps.largest, found.allclose.passes, found.allclose.failing
    (Extreme(value=419, index=(2,)), False, 1)
    >>> print(f"{found.allclose.share.value:.2f} times what is allowed; rtol {found.allclose.least_rtol:.3g} would do")
    3.33 times what is allowed; rtol 3.33e-05 would do
    """
    for name, value in (
        ("rtol", rtol),
        ("atol", atol),
        *(("each of torch_tolerances", each) for each in _pair(torch_tolerances)),
    ):
        # math.isfinite raises an error for large integers.
        if not isinstance(value, int | float | np.floating | np.integer) or not 0 <= value <= _LARGEST:
            raise UnsupportedError(f"{name} must be a finite number from 0 up, not {value!r}")
    if type(worst) is not int or not 0 <= worst <= MOST_WORST:
        raise UnsupportedError(f"worst must be a number of elements from 0 to {MOST_WORST:,}, not {worst!r}")
    x, y = (
        each if isinstance(each, ArraySource) else HeldSource(each, name)
        for each, name in ((actual, "actual"), (expected, "expected"))
    )
    steps = ulp_format(x, y) if format is None else parse_format(format)
    if steps.magnitude_bits > 63 or steps.explicit_integer_bit:
        raise UnsupportedError(f"format is {steps.name}, whose ulps are not counted on arrays; binary64 is the largest")
    sides = [Operand(each.name, each.shape, each.kind, each.format) for each in (x, y)]
    small = y.format.width <= 8 and y.dtype is None  # PyTorch requires such arrays to be equal
    torch = (0.0, 0.0) if small else torch_tolerances or default_tolerances(y)
    tolerances = float(rtol), float(atol)
    shape = broadcast_shapes(x.shape, y.shape)
    why = "shape" if x.shape != y.shape else "dtype" if x.kind != y.kind else ""  # PyTorch raises an error for these
    apart = Tolerance(AssertClose.name, *torch, equal_nan, unlike=why)
    if shape is None:
        return Differences(
            actual=sides[0], expected=sides[1], shape=None, size=0, equal_bits=None, equal=0,
            specials=Specials(0, 0, 0, 0, 0), absolute=NO_ERRORS, relative=NO_ERRORS, ulps=None,
            allclose=Tolerance(Allclose.name, *tolerances, equal_nan, unlike=why), assert_close=apart, worst=(),
            differing=None, failing=None,
        )  # fmt: skip
    judge = ToleranceTest(Allclose(x, y), *tolerances, equal_nan)
    second = None if why else ToleranceTest(AssertClose(x, y), *torch, equal_nan)
    found = _Measure(x, y, shape, judge, second, steps, worst)
    found.run(progress)
    return Differences(
        actual=sides[0],
        expected=sides[1],
        shape=shape,
        size=found.size,
        equal_bits=found.bits if x.format == y.format else None,
        equal=found.equal,
        specials=Specials(*found.specials.tolist()),
        absolute=found.absolute.summary(found.finite, found.unravel),
        relative=found.relative.summary(found.nonzero, found.unravel),
        ulps=found.distances.result(steps, found.unravel),
        allclose=judge.result(found.unravel),
        assert_close=second.result(found.unravel) if second else apart,
        worst=found.worst(),
        differing=None if judge.failing else found.differing.result(found.by_columns),
        failing=found.failing.result(found.by_columns),
    )


def ulp_format(x: ArraySource, y: ArraySource) -> Format:
    """Return the default of `compare`'s parameter `format`."""
    for narrow, wide in ((x.format, y.format), (y.format, x.format)):
        if holds(wide, narrow):
            return narrow
    return common_format([x.format, y.format])


class _RunningErrors:
    """Running sum and maximum of one kind of error."""

    def __init__(self) -> None:
        self.sums: list[float] = []
        self.largest: tuple[float, int] = (0.0, 0)  # the error, and the index of its element

    def add(self, errors: Array, index: Array) -> None:
        if not len(errors):
            return
        self.sums.append(float(np.sum(errors)))
        most = int(np.argmax(errors))
        if len(self.sums) == 1 or errors[most] > self.largest[0]:
            self.largest = float(errors[most]), int(index[most])

    def summary(self, count: int, unravel: Callable[[int], tuple[int, ...]]) -> ErrorSummary:
        """Return the largest and the mean error over `count` elements."""
        if not count:
            return ErrorSummary(None, None, 0)
        try:
            total = fsum(self.sums)
        except OverflowError:
            total = inf
        return ErrorSummary(Extreme(self.largest[0], unravel(self.largest[1])), total / count, count)


class _Measure:
    """Reads both arrays once, and accumulates all counts and errors for `compare`."""

    def __init__(
        self, x: ArraySource, y: ArraySource, shape: tuple[int, ...], judge: ToleranceTest,
        second: ToleranceTest | None, steps: Format, worst: int,
    ) -> None:  # fmt: skip
        self.names = x.name, y.name
        if x.shape != y.shape or x.by_columns != y.by_columns:
            x, y = _spread(x, shape), _spread(y, shape)
        self.x, self.y = x, y
        self.by_columns = self.x.by_columns
        # The shape; its axes are reversed if the arrays are read in column-major order.
        self.counted = shape[::-1] if self.by_columns else shape
        self.size = int(np.prod(shape, dtype=object))
        self.judge, self.second, self.steps, self.most = judge, second, steps, worst
        self.distances, self.absolute, self.relative = Distances(), _RunningErrors(), _RunningErrors()
        self.differing, self.failing = Finder(self.counted), Finder(self.counted)
        self.bits = self.equal = self.finite = self.nonzero = 0
        self.specials = np.zeros(5, np.int64)  # in the order of Specials
        self.listed: list[tuple[float, int, tuple[int, ...]]] = []

    def run(self, progress: Callable[[int], None] | None) -> None:
        for first in range(0, self.size, BLOCK):
            count = min(BLOCK, self.size - first)
            with np.errstate(all="ignore"):
                self._compare_pieces(first, self.x.read(first, count), self.y.read(first, count))
            if progress is not None:
                progress(count)

    def _compare_pieces(self, first: int, x: Piece, y: Piece) -> None:
        """Compare a piece of each array: count all elements, but measure only NaNs and elements that differ."""
        x, y = (
            each.view(np.uint8) if isinstance(each, np.ndarray) and each.dtype == np.bool_ else each for each in (x, y)
        )
        a, b = source_of(x, self.names[0]), source_of(y, self.names[1])
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
        self.specials += _count_specials(p, q)
        if self.judge.equal_nan:
            # With equal_nan, two NaNs count as equal. If both arrays have the same format, the codes of the NaNs must
            # be equal, too.
            alike = np.isnan(p) & np.isnan(q) & (same[rest] | (a.format != b.format))
            rest, p, q, finite, index = (each[~alike] for each in (rest, p, q, finite, index))
            if not len(rest):
                return
        absolute = self._errors(p, q, finite, index)
        distances = self._steps(a, b, p, q, rest, index)
        share, fails = self.judge.add(p, q, index)
        if self.second is not None:
            self.second.add(p, q, index)
        if self.judge.failing:
            self.failing.add(index[fails])
        else:  # differences within the tolerance are reported only if no element fails
            self.differing.add(index)
        self._keep_worst(share, index, (p, q, a.codes[rest], b.codes[rest], absolute, distances))

    def _errors(self, p: Array, q: Array, finite: Array, index: Array) -> Array:
        """Measure errors in binary64; return the absolute errors (infinite or NaN where an operand is not finite)."""
        wide = q.astype(np.float64)
        absolute: Array = np.abs(p.astype(np.float64) - wide)
        based = finite & (wide != 0)
        self.absolute.add(absolute[finite], index[finite])
        self.relative.add(absolute[based] / np.abs(wide[based]), index[based])
        return absolute

    def _steps(self, a: Source, b: Source, p: Array, q: Array, rest: Array, index: Array) -> Array:
        """Return the distance of each pair in ulps, or −1 if a number of the pair is a NaN."""
        x, y = (
            Source(each.codes[rest] if each.format == self.steps
                   else round_array(Source(each.codes[rest], each.format), self.steps, as_codes=True), self.steps)
            for each in (a, b)
        )  # fmt: skip
        distances = ulp_distance(x, y)
        distances[np.isnan(p) | np.isnan(q)] = NOT_COMPARABLE
        self.distances.add(distances, index)
        return distances

    def _keep_worst(self, share: Array, index: Array, columns: tuple[Array, ...]) -> None:
        """Keep the elements with the largest shares; among equal shares, keep the first elements.

        A share is a difference divided by the allowed difference.
        """
        if not self.most:
            return
        full = len(self.listed) == self.most
        better = np.flatnonzero(share > self.listed[-1][0]) if full else np.arange(len(share))
        if len(better) > self.most:
            better = better[np.argsort(-share[better], kind="stable")[: self.most]]
        for i in better.tolist():
            self.listed.append((float(share[i]), int(index[i]), tuple(each[i].item() for each in columns)))
        self.listed.sort(key=lambda each: (-each[0], each[1]))
        del self.listed[self.most :]

    def unravel(self, number: int) -> tuple[int, ...]:
        """Convert the linear index of an element into the indices along the axes."""
        places = []
        for n in reversed(self.counted):
            number, place = divmod(number, n)
            places.append(place)
        return tuple(places if self.by_columns else places[::-1])

    def worst(self) -> tuple[ComparedElement, ...]:
        """Return the elements with the largest shares of the tolerance, which `_keep_worst` kept."""
        return tuple(
            ComparedElement(
                index=self.unravel(number), actual=float(p), expected=float(q), actual_code=a, expected_code=b,
                absolute=float(error), ulps=ulps, share=share,
            )
            for share, number, (p, q, a, b, error, ulps) in self.listed
        )  # fmt: skip


class Spread(ArraySource):
    """An array that is broadcast to another shape."""

    def __init__(self, source: ArraySource, shape: tuple[int, ...]) -> None:
        """Load the array, and broadcast it to the shape without a copy."""
        super().__init__(source.name, shape, source.format if source.dtype is None else source.dtype)
        whole = source.whole()
        self._flat = np.broadcast_to(whole.codes if isinstance(whole, Source) else whole, shape).flat

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on."""
        piece = self._flat[first : first + count]
        return Source(piece, self.format) if self.dtype is None else piece


def _spread(source: ArraySource, shape: tuple[int, ...]) -> ArraySource:
    """Return an array broadcast to the shape `shape`, in row-major order.

    Raises UnsupportedError if the array is in column-major order and has more than 2^25 elements.
    """
    if source.by_columns:
        if source.size > MOST_AT_ONCE:
            raise UnsupportedError(
                f"{source.name} is column-major, and the other array row-major: such arrays are compared up to "
                f"{MOST_AT_ONCE:,} numbers; save both in the same order"
            )
        source = HeldSource(source.whole(), source.name)
    return source if source.shape == shape else Spread(source, shape)


def broadcast_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the shape that two shapes broadcast to, or None if they do not broadcast.

    NumPy's own function refuses large shapes.

    >>> broadcast_shapes((3, 1), (4,)), broadcast_shapes((3,), (4,))
    ((3, 4), None)
    """
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    short = (1,) * (len(long) - len(short)) + short
    if any(m != n and 1 not in (m, n) for m, n in zip(long, short, strict=True)):
        return None
    return tuple(n if m == 1 else m for m, n in zip(long, short, strict=True))


def _count_specials(p: Array, q: Array) -> list[int]:
    """Count the pairs with special values, in the order of the fields of `Specials`."""
    no_p, no_q = np.isnan(p), np.isnan(q)
    infinite = (np.isinf(p) | np.isinf(q)) & ~no_p & ~no_q & (p != q)
    signs = (p == 0) & (q == 0) & (np.signbit(p) != np.signbit(q))
    return [int(np.count_nonzero(each)) for each in (no_p & ~no_q, no_q & ~no_p, no_p & no_q, infinite, signs)]
