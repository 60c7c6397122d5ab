"""Finds out whether the stored scales were fitted or rounded after the codes had been computed with other scales."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import BLOCK, ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.rerounding.grids import CodeGrid, indices

_SAMPLE = 1 << 18
_FITTED = 0.004  # a scale is fitted if it is this close to the one with the least squared error
_SLACK = 2.0**-7  # as `_COARSE` in `agreement`
_ALMOST_ALL = 0.97  # the share of groups whose codes one factor must explain
_FEWEST = 8  # groups smaller than this are skipped: they may agree by chance


def is_refitted(read: ArraySource, original: ArraySource, grid: CodeGrid, size: int, most: float) -> bool:
    """Return whether a factor near 1 for the scale makes all codes nearest to the original, in nearly every group.

    A group is a run of at most `size` elements of a row with the same scale; if `size` is 0, a run may have any length.
    A quantiser may compute codes with a scale, and then round the scale, or fit it to the codes (llama.cpp's
    make_qx_quants). Rounding changes scales by at most the share `most`. If `most` is 0, only fitted scales are
    accepted: those with the least squared error.
    """
    length = max(read.shape[-1], 1) if read.shape else 1
    if length > BLOCK:
        return False
    total = min(read.size, max(_SAMPLE // length, 1) * length)
    values = grid.values
    ends = np.concatenate(([-np.inf], (values[1:] + values[:-1]) / 2, [np.inf]))
    explained = groups = 0
    with grid.open() as opened, np.errstate(all="ignore"):
        step = BLOCK // length * length
        for first in range(0, total, step):
            count = min(step, total - first)
            q, x = (native(each.read(first, count)).astype(np.float64) for each in (read, original))
            scale, offset = opened.scales(first, count)
            shift = np.where(scale != 0, offset / scale, 0.0)
            at = indices(values, q / scale - shift)
            low, high = _factors(x / scale, ends[at] + shift, ends[at + 1] + shift)
            is_new = (np.diff(scale, prepend=np.nan) != 0) | (np.diff(shift, prepend=np.nan) != 0)
            is_new[::length] = True
            if size:
                is_new[(-first) % size :: size] = True
            starts = np.flatnonzero(is_new)
            sizes = np.diff(starts, append=count)
            low, high = np.maximum.reduceat(low, starts), np.minimum.reduceat(high, starts)
            is_long = sizes >= _FEWEST
            if most:
                fits = (low <= high) & (low <= 1 + most) & (high >= 1 / (1 + most))
            else:
                known = np.isfinite(q) & np.isfinite(x)
                both, own = (np.add.reduceat(np.where(known, q * each, 0.0), starts) for each in (x, q))
                fits = (low <= high) & ((np.abs(both / own - 1) < _FITTED) | (own == 0))
            explained += int(np.count_nonzero(fits & is_long))
            groups += int(np.count_nonzero(is_long))
    return groups > 0 and explained >= _ALMOST_ALL * groups


def _factors(place: Array, least: Array, largest: Array) -> tuple[Array, Array]:
    """Return, for each number, the least and the largest factor for the scale that do not change the number's code.

    `place` has the numbers divided by their stored scales. All quotients from `least` to `largest` are rounded to the
    same code as `place`.
    """
    is_negative = place < 0
    size = np.abs(place)
    least, largest = np.where(is_negative, -largest, least), np.where(is_negative, -least, largest)
    low = np.where(largest > 0, size * (1 - _SLACK) / largest, np.where(size > 0, np.inf, 0.0))
    high = np.where(least > 0, size * (1 + _SLACK) / least, np.inf)
    unknown = ~np.isfinite(place)
    return np.where(unknown, 0.0, low), np.where(unknown, np.inf, high)
