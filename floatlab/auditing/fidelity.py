"""How well a quantised weight represents its original: errors of the whole tensor and of its blocks."""

from __future__ import annotations

from math import ceil, fsum, inf, isfinite, log10, sqrt

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import BLOCK, ArraySource
from floatlab.arrays.types import Array
from floatlab.record import Record

# If a block has its own scale, and this scale is right, every quantiser leaves a relative error below MOST_LEFT. The
# worst case is a block of 32 in e2m1: OCP's rule saturates the largest element from 7.9 to 6, and all others become 0.
# This leaves about 0.3.
MOST_LEFT = 0.5
# Quantisers of less than 3 bits may leave a larger error, even with the right scales.
MOST_LEFT_OF_FEW_BITS = 0.9
_FEW_BITS = 3.0
# A relative error above MOST_LEFT does not prove that a block is bad: small numbers may all become 0 if they share a
# scale with larger ones. The largest error of a bad block must also exceed two limits:
# 1. 0.26 of the largest number in its row or in its aligned group of 8 blocks: 4-bit formats may have one scale for
#    this row or group;
# 2. 2^-7·P, where P is the least power of two above all numbers of the tensor: 8-bit formats may have one scale for all
#    of them.
# If each group has its own scale, limit 1 is 0.26 of the largest number in the group. Limit 2 is then 2^-13·P, but at
# least 2^-17, since the scales of smaller numbers may be subnormal in e4m3 (NVFP4) or in binary16.
_BESIDE, _AROUND, _ANYWHERE = 0.26, 8, 6
_ANYWHERE_OF_GROUPS, _TINY = 12, 2.0**-17
# Limits of the error of rounding to nearest: for normal numbers, relative to the number (_OWN); for subnormal ones,
# relative to the largest number in the group (_OF_GROUP). A scale that is a power of two may be up to twice too large;
# _OF_GROUP allows for this. _OWN_OF_4_BITS suits e2m1, NF4 and integers.
_OWN = {"e4m3fn": 2.0**-4, "e4m3fnuz": 2.0**-4, "e5m2": 2.0**-3, "e5m2fnuz": 2.0**-3}
_OF_GROUP = {"e4m3fn": 2.0**-17, "e4m3fnuz": 2.0**-16, "e5m2": 2.0**-31, "e5m2fnuz": 2.0**-31}
_OWN_OF_4_BITS, _BITS_OF_INTEGERS = 0.25, 8
_MX_BLOCK, _SATURATED = 32, 0.125
_ORIGINAL = 2.0**-8  # the original and the scale may have been rounded to bfloat16
_TWICE = 2.0  # truncation leaves up to twice the error of rounding to nearest
_SIZES = (32, 16)  # sizes of the blocks in which errors are measured; the first one that divides the rows is used


class Fidelity(Record):
    """The errors of a quantised weight relative to its original.

    `relative_error` is |q − x| / |x| in the Euclidean norm, where q is the weight and x its original. `sqnr` is
    −20·log10(`relative_error`) in dB; it is infinite if there is no error. `cosine` is the cosine of the angle between
    q and x; it is 0 if q or x has only zeros. `largest_error` and `mse` are absolute. `largest` is the largest
    magnitude in x. `nans` counts the elements that are NaN or infinite in q but finite in x. `unknown` counts the
    elements that are NaN or infinite in x. Elements of both kinds are left out of the errors. They still count in
    `elements`, and in `mse` as elements without an error. `blocks` counts blocks of 32 or 16 neighbouring elements.
    `bad_blocks` counts the blocks whose error is larger than any quantiser causes. `most` and `nearest` are upper
    limits of the relative error: `most` for any quantiser with the right scales, `nearest` for rounding x to nearest in
    the weight's format.
    """

    elements: int
    relative_error: float
    sqnr: float
    cosine: float
    mse: float
    largest_error: float
    largest: float
    nans: int
    blocks: int
    bad_blocks: int
    most: float = MOST_LEFT
    nearest: float = MOST_LEFT
    unknown: int = 0

    @property
    def fits(self) -> bool:
        """Whether a quantiser with the right scales can leave such errors."""
        return self.relative_error < self.most and not self.bad_blocks and not self.nans

    @property
    def is_close(self) -> bool:
        """Whether rounding to nearest can leave an error of this size."""
        return self.relative_error <= self.nearest


def allowed(bits: float, kind: str = "", group: int = 0) -> tuple[float, float]:
    """Return two limits of the error of rounding to nearest.

    The first limit is relative to the number itself, and the second is relative to the largest number of its group.
    `kind` is the type of the codes, or empty for blocks of ggml. `bits` is the size of a code; for ggml, this size
    includes the scales (up to one bit for each element). Codes of more than 4 bits count as integers, unless they are
    fp8.

    >>> allowed(8, "e4m3fn"), allowed(8.5), allowed(5)
    ((0.0625, 7.62939453125e-06), (0.0, 0.003937007874015748), (0.25, 0.07142857142857142))
    """
    if kind in _OWN:
        # In MXFP8, the power of two that scales a block may be so small that the largest numbers saturate: 511 to 448.
        return max(_OWN[kind], _SATURATED if group == _MX_BLOCK else 0.0), _OF_GROUP[kind]
    count = min(int(bits) if kind else ceil(bits) - 1, _BITS_OF_INTEGERS)
    return 0.0 if count > 4 else _OWN_OF_4_BITS, 1 / (2**count - 2)


def measure(
    read: ArraySource,
    original: ArraySource,
    most: int | None = None,
    bits: float = 4.0,
    kind: str = "",
    group: int = 0,
    own_scales: bool = False,
) -> Fidelity:
    """Measure a weight against its original of the same shape. With `most`, only the first `most` elements count.

    `bits` is the size of a code. If a code has fewer than 3 bits, no block is counted as bad. `kind` has the same
    meaning as in `allowed`. `group` is the number of neighbouring elements that share a scale (0: all elements, or not
    known). `own_scales` tells whether each group has a scale that does not depend on other groups.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.float32([[1, 2, 3, 4] * 8])
    >>> found = measure(HeldSource(x * 2), HeldSource(x))
    >>> found.relative_error, round(found.cosine, 9), found.bad_blocks, found.fits
    (1.0, 1.0, 1, False)
    """
    length = read.shape[-1] if read.shape else 1
    size = next((size for size in _SIZES if length and length % size == 0), 0)
    total = read.size if most is None else min(read.size, most)
    sums: list[tuple[float, ...]] = []
    largest_error = largest = 0.0
    nans = unknown = blocks = 0
    bad = np.zeros(1 << 12, np.int64)  # number of bad blocks, indexed by the exponent of the block's largest error
    few = bits < _FEW_BITS
    tops: list[float] = []  # for each piece: Σ over its elements of (largest magnitude in the element's group)²
    with np.errstate(all="ignore"):
        for first in range(0, total, BLOCK):
            count = min(BLOCK, total - first)
            q, x = (native(each.read(first, count)).astype(np.float64) for each in (read, original))
            absent = ~np.isfinite(x)
            lost = ~np.isfinite(q) & ~absent
            nans += int(np.count_nonzero(lost))
            unknown += int(np.count_nonzero(absent))
            either = lost | absent
            if either.any():
                q, x = np.where(either, 0.0, q), np.where(either, 0.0, x)
            error = q - x
            # BLAS is not used here, since its sums depend on the number of threads.
            sums.append(tuple(float((a * b).sum()) for a, b in ((error, error), (x, x), (q, q), (q, x))))
            largest_error = max(largest_error, float(np.abs(error).max(initial=0)))
            largest = max(largest, float(np.abs(x).max(initial=0)))
            if 0 < group < BLOCK and not few:
                at = np.arange(first, first + count) // group
                tops.append(float(np.square(_largest_of(np.abs(x), at)).sum()))
            if size and count % size == 0:
                blocks += count // size
                if not few:
                    step = max(group // size, 1) if own_scales and group else 0
                    bad += _bad_blocks(
                        error.reshape(-1, size), x.reshape(-1, size), first // size, length // size, step
                    )
    noise, signal, own, both = (_sum(column) for column in zip(*sums, strict=True)) if sums else (0.0,) * 4
    left = sqrt(noise / signal) if signal else (inf if noise else 0.0)
    left = left if isfinite(left) else inf  # the squares of numbers above 1e154 are infinite
    limit = MOST_LEFT_OF_FEW_BITS if few else MOST_LEFT
    nearest, is_fixed = limit, False
    if signal and not few:
        own_share, share = allowed(bits, kind, group)
        # Some integers have a scale that was fixed before their numbers were known. Such a scale may be far too large.
        is_fixed = bool(kind) and not own_share
        squares = fsum(tops) if tops else total * largest * largest
        nearest = sqrt(own_share**2 + share**2 * squares / signal) + _ORIGINAL
    return Fidelity(
        elements=total,
        relative_error=left,
        sqnr=-20 * log10(left) if 0 < left < inf else (inf if not left else -inf),
        cosine=both / sqrt(signal) / sqrt(own) if 0 < signal < inf and 0 < own < inf and isfinite(both) else 0.0,
        mse=noise / total if total else 0.0,
        largest_error=largest_error,
        largest=largest,
        nans=nans,
        blocks=blocks,
        bad_blocks=int(bad[_least_bad(largest, own_scales and group > 0) :].sum()),
        most=limit if is_fixed else min(limit, _TWICE * nearest),
        nearest=min(limit, nearest),
        unknown=unknown,
    )


def _sum(column: tuple[float, ...]) -> float:
    """Return the correctly rounded sum, or infinity if it overflows."""
    try:
        return fsum(column)
    except (OverflowError, ValueError):
        return inf


def _least_bad(largest: float, own_scales: bool) -> int:
    """Return the first index in the result of `_bad_blocks` at which the counted blocks are bad.

    `_bad_blocks` counts each block at an index that depends on the largest error of the block (see `_exponent`). Blocks
    at smaller indices than the returned one are not bad: their largest errors are below limit 2 of the comment at
    `_BESIDE`. This limit is computed from `largest`, the largest number of the tensor.
    """
    limit = _exponent(largest) - _ANYWHERE
    if own_scales:
        limit = min(limit, max(_exponent(largest) - _ANYWHERE_OF_GROUPS, _exponent(_TINY)))
    return max(limit, 0)


def _exponent(x: float) -> int:
    """Return the index at which `_bad_blocks` counts the blocks whose largest error is x.

    The index is e + 2048, where 2^(e − 1) ≤ x < 2^e.
    """
    return int(np.frexp(x)[1]) + (1 << 11)


def _bad_blocks(error: Array, x: Array, first: int, in_row: int, in_group: int) -> Array:
    """Count the blocks whose error is too large for the numbers in the block and for the numbers around it.

    The result has a count for each binary exponent of a block's largest error, at the index that `_exponent` returns.
    `first` is the index of the first block, and `in_row` is the number of blocks in a row. `in_group` is the number of
    blocks that share a scale. It is 0 if the weight has no groups whose scale depends on their own numbers alone.
    """
    noise, signal = np.square(error).sum(axis=1), np.square(x).sum(axis=1)
    bad = np.flatnonzero(noise > MOST_LEFT**2 * signal)
    if not len(bad):
        return np.zeros(1 << 12, np.int64)
    largest, worst = np.abs(x).max(axis=1), np.abs(error[bad]).max(axis=1)
    at = np.arange(first, first + len(x))
    if in_group:
        beside = _largest_of(largest, at // in_group)[bad]
    else:
        beside = np.maximum(_largest_of(largest, at // in_row)[bad], _largest_of(largest, at // _AROUND)[bad])
    worst = worst[worst > _BESIDE * beside]
    return np.bincount(np.frexp(worst)[1] + (1 << 11), minlength=1 << 12)


def _largest_of(values: Array, groups: Array) -> Array:
    """Return, for each value, the largest value of its group.

    `groups` gives the number of each value's group. These numbers do not decrease.
    """
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    found: Array = np.repeat(np.maximum.reduceat(values, starts), np.diff(starts, append=len(values)))
    return found
