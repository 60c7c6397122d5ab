"""How well a quantised weight represents its original: errors of the whole tensor and of its blocks."""

from __future__ import annotations

from math import fsum, inf, log10, sqrt

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import BLOCK, ArraySource
from floatlab.arrays.types import Array
from floatlab.record import Record

# A quantiser whose scales fit leaves a smaller relative error in every block. In e2m1, an element changes by at most a
# quarter of the block's largest magnitude: OCP's rule saturates 7.9 to 6. If 32 elements beside the largest one all
# become 0, they add at most a third.
MOST_LEFT = 0.5
# Blocks below 2^-12 of the tensor's largest magnitude are not counted as bad, because their scales can underflow.
_TINY = 12
_SIZES = (32, 16)  # sizes of the blocks in which errors are measured; the first one that divides the rows is used


class Fidelity(Record):
    """The errors of a quantised weight relative to its original.

    `left` is |read − original| / |original| in the Euclidean norm. `sqnr` is −20·log10(`left`), in dB; it is infinite
    if there is no error. `cosine` is the cosine of the angle between both weights. `largest_error` and `mse` are
    absolute. `nans` elements are NaN or infinite but finite in the original; all other measures leave them out.
    `bad_blocks` of `blocks` (of 32 or 16 elements in a row) have a larger relative error than any quantiser causes.
    """

    elements: int
    left: float
    sqnr: float
    cosine: float
    mse: float
    largest_error: float
    largest: float
    nans: int
    blocks: int
    bad_blocks: int

    @property
    def fits(self) -> bool:
        """Whether the error is small enough for a quantiser with the right scales."""
        return self.left < MOST_LEFT and not self.bad_blocks and not self.nans


def measure(read: ArraySource, original: ArraySource, most: int | None = None) -> Fidelity:
    """Measure a weight against its original, which has the same shape; `most` limits the number of elements.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.float32([[1, 2, 3, 4] * 8])
    >>> found = measure(HeldSource(x * 2), HeldSource(x))
    >>> found.left, round(found.cosine, 9), found.bad_blocks, found.fits
    (1.0, 1.0, 1, False)
    """
    length = read.shape[-1] if read.shape else 1
    size = next((size for size in _SIZES if length and length % size == 0), 0)
    total = read.size if most is None else min(read.size, most)
    sums: list[tuple[float, ...]] = []
    largest_error = largest = 0.0
    nans = blocks = 0
    bad = np.zeros(1 << 12, np.int64)  # number of bad blocks, indexed by the exponent of the block's largest magnitude
    with np.errstate(all="ignore"):
        for first in range(0, total, BLOCK):
            count = min(BLOCK, total - first)
            q, x = (native(each.read(first, count)).astype(np.float64) for each in (read, original))
            lost = ~np.isfinite(q) & np.isfinite(x)
            nans += int(np.count_nonzero(lost))
            either = lost | ~np.isfinite(x)
            if either.any():
                q, x = np.where(either, 0.0, q), np.where(either, 0.0, x)
            error = q - x
            # BLAS is not used here, since its sums depend on the number of threads.
            sums.append(tuple(float((a * b).sum()) for a, b in ((error, error), (x, x), (q, q), (q, x))))
            largest_error = max(largest_error, float(np.abs(error).max(initial=0)))
            largest = max(largest, float(np.abs(x).max(initial=0)))
            if size and count % size == 0:
                blocks += count // size
                bad += _bad_blocks(error.reshape(-1, size), x.reshape(-1, size))
    noise, signal, own, both = (fsum(column) for column in zip(*sums, strict=True)) if sums else (0.0,) * 4
    left = sqrt(noise / signal) if signal else (inf if noise else 0.0)
    return Fidelity(
        elements=total,
        left=left,
        sqnr=-20 * log10(left) if 0 < left < inf else (inf if not left else -inf),
        cosine=both / sqrt(signal) / sqrt(own) if signal and own else 0.0,
        mse=noise / total if total else 0.0,
        largest_error=largest_error,
        largest=largest,
        nans=nans,
        blocks=blocks,
        bad_blocks=int(bad[max(_exponent(largest) - _TINY, 0) :].sum()),
    )


def _exponent(x: float) -> int:
    """Return the index in the array of bad blocks for blocks whose largest magnitude is x."""
    return int(np.frexp(x)[1]) + (1 << 11)


def _bad_blocks(error: Array, x: Array) -> Array:
    """Count the blocks whose relative error exceeds MOST_LEFT, by the exponent of the block's largest magnitude."""
    noise, signal = np.square(error).sum(axis=1), np.square(x).sum(axis=1)
    found = np.abs(x[noise > MOST_LEFT**2 * signal]).max(axis=1, initial=0)
    exponents = np.frexp(found[found > 0])[1] + (1 << 11)
    return np.bincount(exponents, minlength=1 << 12)
