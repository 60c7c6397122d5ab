"""Estimate the factor or the bias of a result: the median estimate, or the one that fits the most elements."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from floatlab.arrays.types import Array

_LARGEST_FACTOR = 1e5  # factors above this, or below its reciprocal, are not tried
_INTERVALS = 1 << 18  # if no number lies in all intervals, about this many of them are compared
_INSET = 1 / 8  # share of an interval, at each end, that is left out
_NEARLY = 3.0  # a factor nearly fits an element if it leaves an error of at most this many error bounds
_UNSURE = 4.0  # a factor differs from its estimate by at most this many standard deviations
_SAME = 6.0  # two medians of n elements count as equal if their ratio is at most 1 + 6/√n
_ALIKE = 1e-5  # numbers of rows that differ by less than this, relative to the largest number, count as equal
PROVED, _MOST_BITS = 40.0, 8.0  # the evidence that proves a shift, in bits; one element counts at most _MOST_BITS


def shift_bits(
    independent: int, shift: Array, room: Array, right: Array, unknowns: int = 0, left: float = np.inf
) -> float:
    """Return the evidence, in bits, that the `right` elements give for a shift, against any other cause of the errors.

    After the shift is subtracted, the remaining errors of right elements are within `room`. If the errors had another
    cause, the remaining errors would be within `room` only by chance, with the probability room/shift. This probability
    is taken as at least 1/`left`, where `left` is the size of the remaining errors of other elements, in units of
    `room`. The shift has `unknowns` free parameters; for each of these, the element with the most evidence is not
    counted. At most `independent` errors count.

    >>> shift_bits(100, np.full((4, 5), 8.0), np.ones((4, 5)), np.ones((4, 5), bool), unknowns=5)
    45.0
    """
    with np.errstate(all="ignore"):
        bits = np.log2(np.minimum(np.abs(shift) / np.maximum(room, 1e-320), left)[right])
    bits = np.sort(np.clip(bits[~np.isnan(bits)], 0.0, _MOST_BITS))
    counted = bits[: max(0, bits.size - unknowns)]
    return float(counted.sum()) * min(1.0, independent / max(1, counted.size))


def equal_ratio(count: int) -> float:
    """Return the largest ratio of two medians (or spreads) of `count` elements that still count as equal."""
    return 1 + _SAME / sqrt(max(1, count))


def weighted_median(values: Array, sigma: Array, axis: int) -> Array:
    """Return the median along an axis, with weights 1/sigma; NaNs are ignored.

    >>> weighted_median(np.array([[1.0], [2.0], [9.0]]), np.array([[1.0], [1.0], [0.1]]), 0).tolist()
    [[9.0]]
    """
    with np.errstate(all="ignore"):
        weights = np.where(np.isnan(values), 0.0, 1 / np.maximum(sigma, 1e-300))
    order = np.argsort(np.where(np.isnan(values), np.inf, values), axis=axis)
    sums = np.cumsum(np.take_along_axis(weights, order, axis), axis=axis)
    half = np.take(sums, [-1], axis=axis) / 2
    at = np.argmax(sums >= half, axis=axis)
    return np.take_along_axis(values, np.take_along_axis(order, np.expand_dims(at, axis), axis), axis)


def between(low: Array, high: Array, axis: int) -> tuple[Array, bool]:
    """Intersect the intervals from `low` to `high` along an axis.

    Return the middles of the intersections, and whether no intersection is empty.

    Bounds that are NaN are ignored. The middle of an unbounded intersection is 0.

    >>> between(np.array([[1.0], [2.0]]), np.array([[4.0], [3.0]]), 0)
    (array([[2.5]]), True)
    """
    low = np.where(np.isnan(low), -np.inf, low).max(axis=axis, keepdims=True)
    high = np.where(np.isnan(high), np.inf, high).min(axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        middles = np.where(np.isfinite(low) & np.isfinite(high), low / 2 + high / 2, 0.0)
    return middles, bool((low <= high).all())


def shortest_between(low: float, high: float) -> float:
    """Return the middle of an interval, rounded to the fewest decimal digits that keep it inside the interval.

    >>> shortest_between(1.99998, 2.00006), shortest_between(0.33332, 0.33335)
    (2.0, 0.33333)
    """
    middle = low / 2 + high / 2
    found = (float(f"{middle:.{digits}g}") for digits in range(1, 18))
    return next((each for each in found if low <= each <= high), middle)


def factor_between(values: Array, product: Array, limit: Array) -> float | None:
    """Return the median of values/product over the elements whose product exceeds 16 times the rounding error limit.

    Return None if there are no such elements.
    """
    with np.errstate(all="ignore"):
        clear = np.isfinite(values) & (np.abs(product) > 16 * limit) & (product != 0)
        return float(np.median(values[clear] / product[clear])) if clear.any() else None


def within(factor: float | Array, values: Array, exact: Array, room: Array) -> float | Array:
    """Adjust an estimated factor so that it fits as many elements as possible of those that it nearly fits.

    A factor that nearly fits no element is returned unchanged. If `factor` is a row or a column of factors, each factor
    is adjusted. `room` holds the largest allowed error of each element.
    """
    if isinstance(factor, np.ndarray):
        lines = range(factor.size)
        index = [np.s_[i : i + 1] if factor.shape[1] == 1 else np.s_[:, i : i + 1] for i in lines]
        parts = [(float(factor.flat[i]), values[at], exact[at], room[at]) for i, at in zip(lines, index, strict=True)]
        return np.array([within(*each) for each in parts]).reshape(factor.shape)
    with np.errstate(all="ignore"):
        near = (np.abs(values - factor * exact) <= _NEARLY * room) & (exact != 0)
        ends = ((values - room) / exact)[near], ((values + room) / exact)[near]
    if not near.any():
        return factor
    return _most_common(np.minimum(*ends), np.maximum(*ends))


def _most_common(lows: Array, highs: Array) -> float:
    """Return a number that lies in as many of the intervals from `lows` to `highs` as possible.

    If some numbers lie in all intervals, one with few digits is chosen.

    >>> _most_common(np.array([0.0, 0.4, 2.0]), np.array([0.5, 1.0, 3.0]))
    0.4
    """
    low, high = float(lows.max()), float(highs.min())
    if low <= high:
        inset = _INSET * (high - low)  # at the ends, the errors of some elements would equal their limits
        return shortest_between(low + inset, high - inset)
    some = np.s_[:: max(1, lows.size // _INTERVALS)]
    order = np.sort(lows[some])
    inside = np.searchsorted(order, order, "right") - np.searchsorted(np.sort(highs[some]), order, "left")
    return float(order[inside.argmax()])


def likeliest_factor(factor: float, error: Array, exact: Array, sigma: Array) -> tuple[float, float]:
    """Return the limits between which the true factor probably lies.

    The limits follow from the errors that remain with the estimate `factor`. The mean of these errors is far more
    precise than the limits of single errors, which allow many factors, often including 1.
    """
    with np.errstate(all="ignore"):
        slope, z = exact / sigma, error / sigma
    usable = np.isfinite(slope) & np.isfinite(z)
    power = float((slope[usable] ** 2).sum())
    if not power:
        return -np.inf, np.inf
    off = float((slope[usable] * z[usable]).sum()) / power
    unsure = _UNSURE * float(np.sqrt(np.mean((z[usable] - off * slope[usable]) ** 2) / power))
    return factor + off - unsure, factor + off + unsure


def robust_shifts(values: Array, exact: Array, sigma: Array) -> Iterator[tuple[float, int | None]]:
    """Yield pairs of a factor and a kind of bias that may explain a result. Pairs with few free parameters come first.

    The kind is None without a bias, 0 for one number per column, 1 for one number per row, and 2 for one number for all
    elements. A factor is 1 or a median, which a few wrong elements hardly change. Implausibly large or small factors
    are left out.

    >>> exact = np.arange(12.0).reshape(3, 4) ** 2
    >>> [factor for factor, axis in robust_shifts(2 * exact + 5, exact, np.ones((3, 4))) if axis == 2]
    [1.0, 2.0]
    """
    with np.errstate(all="ignore"):
        factors = [_middle(values / exact, sigma / np.abs(exact))]
        for axis in (0, 1):  # a bias that was added to two neighbours cancels in their difference
            steps = [np.diff(each, axis=axis) for each in (values, exact)]
            factors.append(_middle(steps[0] / steps[1], np.nanmedian(sigma) / np.abs(steps[1])))
    options: list[tuple[float, int | None]] = [(factors[0], None), (1.0, 2), (factors[1], 2), (1.0, 0), (1.0, 1)]
    for factor, along in (*options, (factors[1], 0), (factors[2], 1)):
        if 1 / _LARGEST_FACTOR < abs(factor) < _LARGEST_FACTOR:
            yield factor, along


def line_factors(values: Array, exact: Array, sigma: Array) -> Iterator[Array]:
    """Yield an array of factors per column, then an array of factors per row.

    An array with an implausible factor is left out. For a single row or column, nothing is yielded.

    >>> exact = 1 + np.arange(12.0).reshape(3, 4) ** 2
    >>> [each.ravel().tolist() for each in line_factors(exact * [[2], [3], [5]], exact, np.ones((3, 4)))][-1]
    [2.0, 3.0, 5.0]
    """
    with np.errstate(all="ignore"):
        ratio, width = values / exact, sigma / np.abs(exact)
    ratio = np.where(np.isfinite(ratio) & np.isfinite(width), ratio, np.nan)
    for axis in (0, 1):
        if ratio.shape[axis] > 1 and ratio.shape[1 - axis] > 1:
            factors = weighted_median(ratio, width, axis)
            if ((np.abs(factors) > 1 / _LARGEST_FACTOR) & (np.abs(factors) < _LARGEST_FACTOR)).all():
                yield factors


def are_alike(lines: Array, up_to_factor: bool = False) -> bool:
    """Return whether all rows of an input are equal, or multiples of each other if `up_to_factor` is true.

    Any change of the other input then causes equal errors in all rows of the product, or the errors of one row times a
    number for each row. So such errors are no evidence of a bias, or of a factor, per column.

    >>> are_alike(np.array([[1.0, 2.0], [2.0, 4.0]])), are_alike(np.array([[1.0, 2.0], [2.0, 4.0]]), True)
    (False, True)
    """
    if up_to_factor:
        lines = lines[(lines != 0).any(axis=1)]
        if len(lines):
            largest = np.abs(lines).argmax(axis=1)[:, None]
            lines = lines / np.take_along_axis(lines, largest, axis=1)
    return len(lines) < 2 or bool(
        np.abs(lines - lines[0]).max(initial=0.0) <= _ALIKE * np.abs(lines[0]).max(initial=0.0)
    )


def independent_errors(x: Array, y: Array) -> int:
    """Count the independent errors that changes of x, or changes of y, may cause in the product x·y.

    The count for each input is its number of nonzeros. But if all rows of x are multiples of one row, changes of y
    cause only one independent error per column. Likewise, if all columns of y are multiples of one column, changes of x
    cause only one per row. The smaller of both counts is returned.

    >>> x, y = np.ones((30, 4)), np.arange(8.0).reshape(4, 2)
    >>> independent_errors(x, y), independent_errors(x + np.eye(30, 4), y)
    (2, 7)
    """
    counts = int(np.count_nonzero(x)), int(np.count_nonzero(y))
    are_multiples = are_alike(y.T, up_to_factor=True), are_alike(x, up_to_factor=True)
    lines = len(x), y.shape[1]
    return min(line if alike else count for line, count, alike in zip(lines, counts, are_multiples, strict=True))


def _middle(ratio: Array, width: Array) -> float:
    """Return the weighted median of the finite values, or 0 if there are none."""
    known = np.isfinite(ratio) & np.isfinite(width)
    if not known.any():
        return 0.0
    return float(weighted_median(ratio[known][:, None], width[known][:, None], 0)[0, 0])
