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
# Quantisers of less than 3 bits may leave more, even with the right scales.
MOST_LEFT_OF_FEW_BITS = 0.9
_FEW_BITS = 3.0
# Small numbers may all become 0 if they share a scale with larger ones. So a block is bad only if its largest error is
# also larger than 0.26 of the largest number in its row and among 8 neighbouring blocks (as in formats of 4 bits), and
# larger than 2^-7 of the largest number in the tensor (as in formats of 8 bits), rounded up to a power of two.
_BESIDE, _AROUND, _ANYWHERE = 0.26, 8, 6
_SIZES = (32, 16)  # sizes of the blocks in which errors are measured; the first one that divides the rows is used


class Fidelity(Record):
    """The errors of a quantised weight relative to its original.

    `left` is |read − original| / |original| in the Euclidean norm. `sqnr` is −20·log10(`left`), in dB; it is infinite
    if there is no error. `cosine` is the cosine of the angle between both weights. `largest_error` and `mse` are
    absolute. `nans` elements are NaN or infinite but finite in the original; all other measures leave them out.
    `bad_blocks` of `blocks` (of 32 or 16 elements in a row) have a larger relative error than any quantiser causes.
    `most` is a limit: with the right scales, `left` is below it.
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
    most: float = MOST_LEFT

    @property
    def fits(self) -> bool:
        """Whether the error is small enough for a quantiser with the right scales."""
        return self.left < self.most and not self.bad_blocks and not self.nans


def measure(read: ArraySource, original: ArraySource, most: int | None = None, bits: float = 4.0) -> Fidelity:
    """Measure a weight against its original, which has the same shape; `most` limits the number of elements.

    `bits` is the size of a code. If a code has less than 3 bits, no block is counted as bad.

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
    bad = np.zeros(1 << 12, np.int64)  # number of bad blocks, indexed by the exponent of the block's largest error
    few = bits < _FEW_BITS
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
                if not few:
                    bad += _bad_blocks(error.reshape(-1, size), x.reshape(-1, size), first // size, length // size)
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
        bad_blocks=int(bad[max(_exponent(largest) - _ANYWHERE, 0) :].sum()),
        most=MOST_LEFT_OF_FEW_BITS if few else MOST_LEFT,
    )


def _exponent(x: float) -> int:
    """Return the index in the result of `_bad_blocks` at which blocks with the largest error x are counted."""
    return int(np.frexp(x)[1]) + (1 << 11)


def _bad_blocks(error: Array, x: Array, first: int, in_row: int) -> Array:
    """Count the blocks whose error is larger than any quantiser causes.

    The result has a count for each binary exponent of a block's largest error, at the index that `_exponent` returns.
    `first` is the number of the first block, and `in_row` the number of blocks in a row.
    """
    noise, signal = np.square(error).sum(axis=1), np.square(x).sum(axis=1)
    bad = np.flatnonzero(noise > MOST_LEFT**2 * signal)
    if not len(bad):
        return np.zeros(1 << 12, np.int64)
    largest, worst = np.abs(x).max(axis=1), np.abs(error[bad]).max(axis=1)
    at = np.arange(first, first + len(x))
    beside = np.maximum(_largest_of(largest, at // in_row)[bad], _largest_of(largest, at // _AROUND)[bad])
    worst = worst[worst > _BESIDE * beside]
    return np.bincount(np.frexp(worst)[1] + (1 << 11), minlength=1 << 12)


def _largest_of(values: Array, groups: Array) -> Array:
    """Return the largest value of each value's group; `groups` has the numbers of the groups, in ascending order."""
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    found: Array = np.repeat(np.maximum.reduceat(values, starts), np.diff(starts, append=len(values)))
    return found
