"""Decide whether a result has the errors of a rearranged product.

A rearranged product does not compute an element by adding the element's terms x·y, but by adding other numbers.
Examples are FFTs, Winograd's convolutions, prefix sums, and products in which the means of the inputs are multiplied
and added separately. The errors are then proportional to norms of whole rows, columns or matrices. Therefore, the
errors of small elements are larger than any order of addition causes, and these elements look wrong.

Two explanations of all errors are compared by their likelihoods: conventional sums with some wrong elements, and a
rearranged product without wrong elements.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record
from floatlab.reduce.explain.faults.patterns import drift_of
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import View

REARRANGED = "the errors of an FFT or of another rearranged product"
_FREEDOM = 4.0  # errors follow Student's distribution with this many degrees of freedom, which has long tails
_SPREAD = 0.58  # the standard deviation of a rounding error, in half ulps
# Typical errors of conventional sums, in sigmas. Those of libraries are smaller than 1.
_SCALES = tuple((2.0 ** np.arange(-8, 1.5, 0.5)).tolist())
_EVEN = 2.0 ** np.arange(-16, 0.5, 0.5)  # typical errors of rearranged products, as shares of the largest ones
# Errors of transforms are at most this many times u·√n·‖x‖·‖y‖. Here ‖x‖ is the largest norm of a row of x, and ‖y‖
# that of a column of y.
_AMPLIFIED = 48.0
_WRONG = 4.0  # the error e of a wrong element may have any size; its assumed probability density is exp(−_WRONG)/e
POSSIBLE, CERTAIN = -6.0, 10.0  # a rearranged product is possible, or certain, above these values of `rearranged_odds`
_NORMAL = 0.6745  # the median size of a standard normal variable
_PEAK = 6.0  # errors are even if none exceeds this many standard deviations
# At most _FEW errors above _LONE standard deviations are those of wrong elements if no other error is above _GAP.
_LONE, _GAP = 40.0, 12.0
_FLOOR = 2.0**-20  # the smallest standard deviation that is assumed for an error, as a share of the median sigma
_LARGER = 4.0  # if wrong elements have exact sums, their errors are at most this many times the largest other error
# Limits for wrong elements whose sums are exact: they are faults if there are at most _FEW of them, and _OTHERS times
# as many right ones. Errors up to _ULPS·u times the size of the sums may be those of a rearranged product.
_FEW, _OTHERS, _ULPS = 3, 8, 4.0
# Errors are alike in lines if the lines have at least _EACH elements on average, and the squared deviations from the
# means of the lines add up to less than _ALIKE times the squared errors.
_EACH, _ALIKE = 3, 0.1
_SHIFTED = 0.25  # a factor or bias explains most of the errors if it leaves less than this share of their squares
_EVERYWHERE = 8  # a rearranged product of exact sums is certain only if at least this many elements are wrong
_MIDDLE = 1 / 8  # errors of at most 1 + _MIDDLE half ulps of a narrow format may be due to rearranging
_SAMPLE = 1 << 16  # at most this many of the right elements are compared


def rearranged_odds(view: View, wrong: Array, x: Array, y: Array) -> float:
    """Return how much likelier a rearranged product is than conventional sums with wrong elements.

    The result is the logarithm of the likelihood ratio of these two explanations of all errors. It is −∞ if the errors
    exclude a rearranged product, or if no element is wrong. A rearranged product is possible above `POSSIBLE`, and
    certain above `CERTAIN`.

    >>> from floatlab.reduce.explain.noise import multiply_exactly, noise_of
    >>> from floatlab.formats import parse_format
    >>> rng, single = np.random.default_rng(1), parse_format("fp32")
    >>> x, y = rng.standard_normal((30, 20)), rng.standard_normal((20, 30))
    >>> totals, usable = multiply_exactly(x, y, False), np.ones((30, 30), bool)
    >>> even = totals.product + 1e-5 * rng.standard_normal((30, 30))
    >>> wrong = np.abs(totals.product) < 0.5
    >>> rearranged_odds(View(totals, even, usable, noise_of(single), single), wrong, x, y) > CERTAIN
    True
    >>> view = View(totals, np.where(wrong, even, totals.product), usable, noise_of(single), single)
    >>> rearranged_odds(view, wrong, x, y) > POSSIBLE
    False
    """
    usable = view.usable & np.isfinite(view.totals.product)
    wrong = wrong & usable
    if not wrong.any():
        return -np.inf
    error = np.abs(view.totals.error(view.values))
    shapes = list(shapes_of(x, y))
    most = _AMPLIFIED * view.noise.u * view.totals.terms**0.5
    others = usable & ~wrong
    if isinstance(view.half, np.ndarray):
        # Errors far below an ulp of the narrow format change a result only if the exact sum is close to a tie.
        excess = error - view.half
        if ((excess <= _MIDDLE * view.half) & (excess <= most * shapes[0]))[wrong].all():
            return 0.0
    if not (error <= most * shapes[0])[wrong].all():
        return -np.inf  # the errors are too large
    are_exact = bool(view.noise.is_exact(view.totals)[wrong].all())
    many = wrong.sum() > _FEW or others.sum() < _OTHERS * wrong.sum()
    small = error <= _ULPS * view.noise.u * np.maximum(view.totals.size, shapes[-1])
    if are_exact and view.totals.grain is not None and (error < view.totals.grain)[wrong].all():
        # The error of a conventional sum is 0 or at least one grain. The error of a rearranged product may be smaller.
        if small[wrong].all() and _are_everywhere(wrong, others) and not _are_shifted(view):
            return np.inf
        return 0.0 if many else -np.inf
    if not others.any() or not error[others].any():
        return -np.inf  # all other sums are exact
    # Many errors below a few ulps of the largest numbers are never certain faults.
    is_small = many and bool((error <= _ULPS * view.noise.u * shapes[0])[wrong].all())
    is_small = is_small and not _are_alike_in_lines(view, wrong, x, y)
    if are_exact and is_small:
        return 0.0
    if are_exact and error[wrong].max() > _LARGER * error[others].max():
        return -np.inf
    right = np.flatnonzero(others)[:: max(1, int(others.sum()) // _SAMPLE)]
    chosen, count = np.concatenate([np.flatnonzero(wrong), right]), int(wrong.sum())
    sigma = np.where(view.noise.is_exact(view.totals), 0.0, view.noise.sigma(view.totals))
    # Numbers of a result are rounded at least once, whatever the algorithm.
    last = _SPREAD * (half_ulp(view.values, view.format) + np.zeros(error.shape))
    grain = np.zeros(error.shape) if view.totals.grain is None else view.totals.grain
    grain = np.where(np.isfinite(grain), grain, 0.0)
    e, sigma, last, grain = (each.reshape(-1)[chosen] for each in (error, sigma, last, grain))
    least = max(_FLOOR * float(np.median(sigma)), 1e-300)
    size = np.maximum(e[:count], 1e-320)
    wrong_ones = -float(np.log(size).sum()) - count * (_WRONG + np.log(chosen.size))
    usual = _Errors(e[count:], last[count:], grain[count:], least)
    conventional = wrong_ones + max(usual.likelihood(scale * sigma[count:]) for scale in _SCALES)
    all_of_them = _Errors(e, last, grain, least)
    scales = [scale * shape.reshape(-1)[chosen] for shape in shapes for scale in (_EVEN * most).tolist()]
    likelihoods = [all_of_them.likelihood(each) for each in scales]
    odds, best = float(max(likelihoods) - conventional), int(np.argmax(likelihoods))
    # Even if a wide distribution fits all errors best, outliers show that some elements are wrong.
    if not all_of_them.are_even(scales[best]) or _are_shifted(view):
        if all_of_them.has_lone_outliers(scales[best]):
            return -np.inf
        # A rearranged product may have wrong elements, too.
        first = best - best % _EVEN.size
        alike = max(usual.likelihood(each[count:]) for each in scales[first : first + _EVEN.size])
        odds = min(odds, 0.0, float(max(likelihoods) - wrong_ones - alike))
    return max(odds, 0.0) if is_small else odds


def _are_everywhere(wrong: Array, others: Array) -> bool:
    """Return whether the wrong elements are spread over the whole result."""
    if wrong.sum() < _EVERYWHERE or others.sum() > _OTHERS * wrong.sum():
        return False
    counts = (wrong.sum(axis=axis) for axis in (0, 1))
    return all(each.size == 1 or each.max() <= wrong.sum() / 2 for each in counts)


def _are_alike_in_lines(view: View, wrong: Array, x: Array, y: Array) -> bool:
    """Return whether the wrong elements of each column, or of each row, have the same error, as if a bias were added.

    Elements of zero rows and columns do not count, because a rearranged product may have such errors there, too.
    """
    some = wrong & np.asarray(x.any(axis=1))[:, None] & y.any(axis=0)
    error = np.where(some, view.totals.error(view.values), 0.0)
    for axis in (0, 1):
        count = some.sum(axis=axis, keepdims=True)
        left = np.where(some, error - error.sum(axis=axis, keepdims=True) / np.maximum(count, 1), 0.0)
        if some.sum() >= _EACH * (count > 0).sum() and (left * left).sum() < _ALIKE * (error * error).sum():
            return True
    return False


def _are_shifted(view: View) -> bool:
    """Return whether a factor, or a bias of each row or column, explains most of the errors."""
    drift, error = drift_of(view), view.totals.error(view.values)
    with np.errstate(all="ignore"):
        square = view.noise.sigma(view.totals) ** 2 + np.asarray(view.half) ** 2 / 3
        square = (error * error / square)[view.usable & (square > 0) & (view.totals.size > 0)]
    return bool(min(drift.residuals) < _SHIFTED * square.mean()) if square.size else False


class _Errors(Record):
    """The errors of some elements, and bounds on their distribution.

    `last` is the standard deviation of each element's final rounding. All partial sums of an element are multiples of
    its `grain`. `least` is the smallest standard deviation that is assumed for an error.
    """

    error: Array
    last: Array
    grain: Array
    least: float

    __hash__ = object.__hash__

    def _spread(self, scale: Array) -> Array:
        """Return the standard deviations of the errors if their typical sizes are `scale`."""
        spread: Array = np.maximum(np.hypot(scale, self.last), self.least)
        return spread

    def likelihood(self, scale: Array) -> float:
        """Return the logarithm of the likelihood of the errors if their typical sizes are `scale`."""
        # If the grain is larger than the errors, a sum is exact or far off. Estimate the share of exact sums.
        coarse = self.grain > scale
        exact = coarse & (self.error == 0)
        share = float(exact.sum()) / max(1, int(coarse.sum()))
        mixed = [int(exact.sum()) * np.log(share) if share else 0.0]
        mixed.append(int((coarse & ~exact).sum()) * np.log(1 - share) if share < 1 else 0.0)
        spread = self._spread(scale)[~exact]
        far = (self.error[~exact] / spread) ** 2
        return float(sum(mixed) - (np.log(spread) + (_FREEDOM + 1) / 2 * np.log1p(far / _FREEDOM)).sum())

    def has_lone_outliers(self, scale: Array) -> bool:
        """Return whether at most `_FEW` errors exceed `_LONE` standard deviations, and all others are far smaller."""
        far = self.error / self._spread(scale)
        far *= _NORMAL / max(float(np.median(far)), 1e-300)
        return 0 < (far > _LONE).sum() <= _FEW and not ((far > _GAP) & (far <= _LONE)).any()

    def are_even(self, scale: Array) -> bool:
        """Return whether no error is an outlier if the typical sizes of the errors are `scale`."""
        far = self.error / self._spread(scale)
        return bool(far.max() <= _PEAK * float(np.median(far)) / _NORMAL)


def shapes_of(x: Array, y: Array) -> Iterator[Array]:
    """Yield arrays to which the errors of a rearranged product may be proportional.

    Four arrays are products of two norms: the norm of a row of x, and the norm of a column of y. The row is either the
    element's row or the row with the largest norm. The column is chosen likewise. The first array uses both largest
    norms. The last array uses the norms of the element's row and column.

    The four other arrays are √(Σ a²·b²). Errors have these sizes if the inputs were divided by a scale and rounded.
    Here a is a number of x, or the root mean square of the column of x in which this number is. Likewise, b is a number
    of y, or the root mean square of the row of y in which this number is.
    """
    rows, columns = (np.sqrt((side * side).sum(axis=axis, keepdims=True)) for side, axis in ((x, 1), (y, 0)))
    shape = len(x), y.shape[1]
    largest = float(rows.max()), float(columns.max())
    yield np.broadcast_to(np.float64(largest[0] * largest[1]), shape)
    yield np.broadcast_to(rows * largest[1], shape)
    yield np.broadcast_to(largest[0] * columns, shape)
    left, right = x * x, y * y
    down, across = np.broadcast_to(left.mean(axis=0), x.shape), np.broadcast_to(right.mean(axis=1)[:, None], y.shape)
    for a, b in ((left, right), (down, right), (left, across), (down, across)):
        yield np.sqrt(a @ b)
    yield rows * columns
