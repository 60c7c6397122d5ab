"""The statistics of an array and its rounded copy (`Tally`), computed by the compiled extension or in NumPy.

The extension and NumPy give the same bits, because the order of the additions is defined. Sums are computed in
binary64. A chunk has 2048 elements, and element i of a chunk belongs to sum i mod 16. Each of these 16 sums is added
serially. Then sum j + 8 is added to sum j, and so on with 4, 2 and 1. The sums of the chunks are added serially. No
operation is fused.
"""

from __future__ import annotations

from math import inf

import numpy as np

from floatlab.arrays.lanes import compiled
from floatlab.arrays.types import Array
from floatlab.record import Record

CHUNK, LANES = 2048, 16
EXPONENTS = 1 << 11  # exponent fields of binary64
UPPER_HALVES = 1 << 15  # the upper 16 bits of the codes of positive numbers of binary32
_SLAB = 16 * CHUNK  # the number of elements that the NumPy lane computes at a time


class Histogram(Record):
    """A histogram: the indices of its nonempty bins, in ascending order, and the counts in these bins."""

    bins: Array
    counts: Array

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return int(self.counts.sum())

    def __eq__(self, other: object) -> bool:
        """Compare all bins and counts."""
        if not isinstance(other, Histogram):
            return NotImplemented
        return np.array_equal(self.bins, other.bins) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # arrays are mutable


class Tally(Record):
    """The statistics of an array x and its rounded copy y.

    The function `merge` combines the tallies of several parts of an array.

    Counts of elements:

    * `elements`: all elements; `nonfinite`: x is NaN or infinite;
    * `zeros`: x is 0; `exact`: y equals x, and both are finite;
    * `lost`: x is finite, but y is NaN or infinite; `saturated`: both are finite, and |x| is at least the overflow
      threshold;
    * `flushed`: x is not 0, but y is 0; `subnormal`: y is not 0, but |y| is below the smallest normal number.

    `exponents` counts the finite nonzero numbers of x by their exponent field in binary64. The field is floor(log2 |x|)
    + 1023, or 0 below 2^−1022. `largest` and `smallest` are the largest and the smallest magnitudes of these numbers.
    If there are no such numbers, `largest` is 0, and `smallest` is ∞.

    Errors and sums include only elements that are finite in both arrays. `largest_error` is the largest |y − x|;
    `error_squares`, `squares`, `rounded_squares` and `products` are the sums of (y − x)², x², y² and x·y. The relative
    errors |y − x| / |x| leave out elements with x = 0. `relative_errors` counts the relative errors by the upper 16
    bits of their binary32 codes. `relative_sum` is the sum of the relative errors, and `largest_relative` is the
    largest one. `largest_relative_at` is the index of the first element with the largest relative error, or −1 if there
    are no relative errors.
    """

    elements: int
    nonfinite: int
    zeros: int
    exact: int
    lost: int
    saturated: int
    flushed: int
    subnormal: int
    exponents: Histogram
    largest: float
    smallest: float
    largest_error: float
    relative_errors: Histogram
    relative_sum: float
    largest_relative: float
    largest_relative_at: int
    error_squares: float
    squares: float
    rounded_squares: float
    products: float

    @property
    def measured(self) -> int:
        """The number of elements that are finite in both arrays."""
        return self.elements - self.nonfinite - self.lost

    @property
    def mean_relative(self) -> float:
        """The mean of the relative errors, or 0 if there are none."""
        count = self.relative_errors.total
        return self.relative_sum / count if count else 0.0

    def relative_quantile(self, share: float) -> float:
        """Return the quantile `share` of the relative errors; the result may be too large by up to 1 part in 128.

        >>> from floatlab.arrays.round_trips.tally import tally
        >>> x = np.arange(1, 1001, dtype=np.float32)
        >>> found = tally(x, x + 1)
        >>> found.relative_quantile(0.999), found.largest_relative
        (0.50390625, 1.0)
        """
        counts = self.relative_errors.counts
        if not len(counts):
            return 0.0
        reached = np.cumsum(counts)
        at = int(np.searchsorted(reached, share * float(reached[-1])))
        upper = int(self.relative_errors.bins[min(at, len(counts) - 1)])
        bound = float(np.uint32(upper + (upper > 0) << 16).view(np.float32))
        return min(bound, self.largest_relative)


# The figures, in the order in which the compiled lane returns them; the sums follow them.
_FIGURES = (
    "nonfinite", "zeros", "exact", "lost", "saturated", "flushed", "subnormal", "largest", "smallest", "largest_error",
    "largest_relative", "largest_relative_at",
)  # fmt: skip
_SUMS = ("error_squares", "squares", "rounded_squares", "products", "relative_sum")


def measure(x: Array, y: Array, run: int, smallest: Array, threshold: Array, built: bool) -> Tally:
    """Return the tally of contiguous arrays.

    `smallest` (smallest normal numbers) and `threshold` (overflow thresholds) have one number for each `run` elements.
    The NumPy lane is used if `built` is false, or if the compiled lane was not built.
    """
    kernels = compiled.extension()
    if not built or kernels is None:
        return _measure(x, y, run, smallest, threshold)
    *figures, sums, exponents, relative = kernels.tally(x.itemsize, x, y, run, smallest, threshold)
    return Tally(
        elements=len(x),
        exponents=_histogram(*exponents),
        relative_errors=_histogram(*relative),
        **dict(zip(_FIGURES + _SUMS, (*figures, *sums), strict=True)),
    )


def _histogram(bins: bytes, counts: bytes) -> Histogram:
    return Histogram(np.frombuffer(bins, np.uint16), np.frombuffer(counts, np.int64))


def nonempty(counts: Array) -> tuple[Array, Array]:
    """Return the indices of the nonempty bins, and the counts in these bins.

    >>> nonempty(np.array([0, 5, 0, 7]))
    (array([1, 3], dtype=uint16), array([5, 7]))
    """
    bins = np.flatnonzero(counts)
    return bins.astype(np.uint16), counts[bins]


def _measure(x: Array, y: Array, run: int, smallest: Array, threshold: Array) -> Tally:
    """Return the tally, computed in NumPy."""
    exponents, relative = np.zeros(EXPONENTS, np.int64), np.zeros(UPPER_HALVES, np.int64)
    counts = np.zeros(7, np.int64)
    extremes = np.array([0.0, -inf, 0.0, -inf])  # |x|, −|x|, |y − x|, relative error
    sums, at = np.zeros(5), 0
    for start in range(0, len(x), _SLAB):
        count = min(_SLAB, len(x) - start)
        runs = slice(start // run, (start + count - 1) // run + 1)
        of_element = np.repeat(np.stack([smallest[runs], threshold[runs]]), run, axis=1) if run < len(x) else None
        least, beyond = (smallest[0], threshold[0]) if of_element is None else of_element[:, start % run :][:, :count]
        with np.errstate(all="ignore"):
            a, b = x[start : start + _SLAB].astype(np.float64), y[start : start + _SLAB].astype(np.float64)
            exponents += np.bincount(a.view(np.int64) >> 52 & EXPONENTS - 1, minlength=EXPONENTS)
            finite, kept = np.isfinite(a), np.isfinite(b)
            measured = finite & kept
            size = np.abs(np.where(finite, a, 0))
            a, b = np.where(measured, a, 0), np.where(measured, b, 0)
            rounded_size, nonzero = np.abs(b), measured & (a != 0)
            error = b - a
            distance = np.abs(error)
            ratio = np.divide(distance, np.abs(a), where=nonzero, out=np.zeros(len(a)))
            counts += [
                np.count_nonzero(each)
                for each in (
                    finite & (size == 0),
                    measured & (error == 0),
                    finite & ~kept,
                    measured & (size >= beyond),
                    nonzero & (b == 0),
                    (rounded_size < least) & (b != 0),
                    nonzero,
                )
            ]
            found = [
                size.max(),
                np.max(-size, where=size > 0, initial=-inf),
                distance.max(),
                np.max(ratio, where=nonzero, initial=-inf),
            ]
            if found[3] > extremes[3]:
                at = start + int(np.argmax(np.where(nonzero, ratio, -1)))
            extremes = np.maximum(extremes, found)
            upper = ratio.astype(np.float32).view(np.uint32) >> 16
            relative += np.bincount(upper, minlength=UPPER_HALVES)
            terms = (error * error, a * a, b * b, a * b, ratio)
            sums = np.array([_added(total, each) for total, each in zip(sums, terms, strict=True)])
    nonfinite = int(exponents[-1])
    exponents[-1] = 0
    exponents[0] -= counts[0]
    relative[0] -= len(x) - counts[6]
    return Tally(
        elements=len(x),
        nonfinite=nonfinite,
        zeros=int(counts[0]),
        exact=int(counts[1]),
        lost=int(counts[2]),
        saturated=int(counts[3]),
        flushed=int(counts[4]),
        subnormal=int(counts[5]),
        largest=float(extremes[0]),
        smallest=-float(extremes[1]),
        largest_error=float(extremes[2]),
        largest_relative=max(float(extremes[3]), 0.0),
        largest_relative_at=at if counts[6] else -1,
        **dict(zip(_SUMS, sums.tolist(), strict=True)),
        exponents=Histogram(*nonempty(exponents)),
        relative_errors=Histogram(*nonempty(relative)),
    )


def _added(total: float, terms: Array) -> float:
    """Return the total plus the sums of the chunks, in the order that the module defines."""
    padded = np.zeros(-(-len(terms) // CHUNK) * CHUNK)
    padded[: len(terms)] = terms
    lanes = np.add.reduce(padded.reshape(-1, CHUNK // LANES, LANES), axis=1)
    while (half := lanes.shape[1] // 2) > 0:
        lanes = lanes[:, :half] + lanes[:, half:]
    found: Array = np.add.accumulate(np.concatenate([[total], lanes[:, 0]]))
    return float(found[-1])
