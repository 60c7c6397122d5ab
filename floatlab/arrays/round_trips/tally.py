"""Counts, histograms, extremes and sums of an array and its rounded copy, which show what a format does to the numbers.

The results have the same bits in every lane (compiled or NumPy). `lanes.tally_lanes` computes the results, and defines
the order of the sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, inf

import numpy as np

from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.tally_lanes import EXPONENTS, UPPER_HALVES, Histogram, Tally, measure, nonempty
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.fpmode import in_default_mode

_MOST = (1 << 32) - 2  # counters have 32 bits
_KINDS = (np.dtype(np.float32), np.dtype(np.float64))


@in_default_mode
def tally(
    x: Array,
    y: Array,
    run: int | None = None,
    smallest: object = 0.0,
    threshold: object = inf,
    first: int = 0,
    lane: str | None = None,
) -> Tally:
    """Count and measure what a rounding did to an array.

    Parameters
    ----------
    x
        The original numbers, float32 or float64.
    y
        The rounded numbers, of the same dtype and shape.
    run
        The number of consecutive elements, in C order, that share `smallest` and `threshold`; by default all elements.
    smallest
        The smallest normal number of the target format, times the scale of elements: one number, or one for each run.
    threshold
        The smallest magnitude that rounds beyond the largest number of the target format, times the scale of elements:
        one number, or one for each run.
    first
        The index of the first element, for `largest_relative_at`.
    lane
        `compiled` or `numpy`; by default the fastest. Both lanes give the same results.

    Returns
    -------
    Tally

    Raises
    ------
    UnsupportedError
        For other dtypes, for shapes that do not match, and for more than 2^32 − 2 elements.

    Examples
    --------
    >>> from floatlab import arrays
    >>> x = np.array([0.1, 3, 500, 1e-3, 0, 1e-9], np.float32)
    >>> y = arrays.quantize(x, "e4m3", overflow="saturate")
    >>> found = tally(x, y, smallest=2.0**-6, threshold=464.0)
    >>> found.exact, found.saturated, found.subnormal, found.flushed, found.largest_error
    (2, 1, 1, 1, 52.0)
    >>> found.largest_relative, found.largest_relative_at
    (1.0, 5)
    """
    compiled = dispatch.is_compiled(dispatch.parse_lane(lane))
    flat, rounded = np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(y).reshape(-1)
    if flat.size > _MOST:
        raise UnsupportedError(f"x has {flat.size:,} elements; at most {_MOST:,} are tallied at once: merge pieces")
    if flat.dtype not in _KINDS or flat.dtype != rounded.dtype or np.shape(x) != np.shape(y):
        raise UnsupportedError(
            "x and y must be arrays of one shape, both float32 or both float64, "
            f"not {flat.dtype.name} {np.shape(x)} and {rounded.dtype.name} {np.shape(y)}"
        )
    length = max(flat.size if run is None else run, 1)
    limits = _limits(smallest, "smallest", length, flat.size), _limits(threshold, "threshold", length, flat.size)
    found = measure(flat, rounded, length, *limits, compiled)
    at = found.largest_relative_at
    return found if at < 0 else found.replace(largest_relative_at=at + first)


def merge(tallies: Iterable[Tally]) -> Tally:
    """Return the tally of several parts of an array together; the order of the parts does not matter.

    Each sum is the exact total of the parts' sums, rounded once. (A total that overflows or is not finite is added up
    with ordinary float additions.) If there are no parts, all counts are 0.

    >>> x = np.float32([1, 2, 3, 5])
    >>> pieces = [tally(x[i:i + 2], x[i:i + 2] * 2, first=i) for i in (0, 2)]
    >>> merge(pieces) == tally(x, x * 2), merge(pieces).squares
    (True, 39.0)
    """
    pieces = list(tallies)
    largest = max((each.largest_relative for each in pieces), default=0.0)
    at = [each.largest_relative_at for each in pieces if each.largest_relative == largest]

    def total(name: str) -> float:
        values = [getattr(each, name) for each in pieces]
        try:
            return fsum(values)
        except (OverflowError, ValueError):  # beyond binary64, or infinities of both signs
            return float(sum(values))

    def count(name: str) -> int:
        return sum(getattr(each, name) for each in pieces)

    return Tally(
        elements=count("elements"),
        nonfinite=count("nonfinite"),
        zeros=count("zeros"),
        exact=count("exact"),
        lost=count("lost"),
        saturated=count("saturated"),
        flushed=count("flushed"),
        subnormal=count("subnormal"),
        exponents=_united([each.exponents for each in pieces], EXPONENTS),
        largest=max((each.largest for each in pieces), default=0.0),
        smallest=min((each.smallest for each in pieces), default=inf),
        largest_error=max((each.largest_error for each in pieces), default=0.0),
        relative_errors=_united([each.relative_errors for each in pieces], UPPER_HALVES),
        relative_sum=total("relative_sum"),
        largest_relative=largest,
        largest_relative_at=min((each for each in at if each >= 0), default=-1),
        error_squares=total("error_squares"),
        squares=total("squares"),
        rounded_squares=total("rounded_squares"),
        products=total("products"),
    )


def _limits(given: object, name: str, run: int, count: int) -> Array:
    """Return a float64 number for each run of `run` elements; a single given number is used for all runs."""
    limits, runs = np.asarray(given, np.float64), -(-count // run)
    if limits.ndim == 0:
        return np.full(runs, limits)
    limits = np.ascontiguousarray(limits).reshape(-1)
    if len(limits) != runs:
        needed = f"{runs} numbers for {count} elements in runs of {run}"
        raise UnsupportedError(f"{name} must have {needed}, not {len(limits)}")
    return limits


def _united(histograms: list[Histogram], length: int) -> Histogram:
    counts = np.zeros(length, np.int64)
    for each in histograms:
        counts[each.bins] += each.counts
    return Histogram(*nonempty(counts))
