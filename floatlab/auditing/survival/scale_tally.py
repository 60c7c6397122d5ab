"""Statistics of the scales of a recipe: their range, their histogram, and how many do not fit their format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import log2

import numpy as np

from floatlab.arrays.round_trips.recipe_tally import limits_of
from floatlab.arrays.round_trips.round_trip import RoundTrip
from floatlab.arrays.types import Array
from floatlab.formats.recipes import Recipe
from floatlab.record import Record


class ScaleTally(Record):
    """The scales of a tensor's blocks, as they are stored (without the scale of the tensor).

    Of the `blocks`, `empty` have only zeros. All other attributes leave out these blocks. `clipped` blocks need a scale
    that is too large for the format of the scales. `underflowed` blocks need a scale below the smallest positive number
    of this format. `zeros` counts scales that are 0, and `nans` counts scales that are NaN or infinite. `largest` and
    `smallest` are the extreme magnitudes of the remaining scales, and `exponents` has pairs (e, count) in ascending
    order: for `count` of these magnitudes, floor(log2) is e.
    """

    blocks: int
    empty: int
    zeros: int
    nans: int
    clipped: int
    underflowed: int
    largest: float | None
    smallest: float | None
    exponents: tuple[tuple[int, int], ...]

    @property
    def spread(self) -> float | None:
        """log2 of the ratio of the largest scale to the smallest scale, or None if no scale is positive and finite."""
        return log2(self.largest) - log2(self.smallest) if self.largest and self.smallest else None


def scale_tally(trip: RoundTrip, recipe: Recipe) -> ScaleTally | None:
    """Return statistics of the scales with which a recipe rounded a tensor, or None if the recipe has no scales.

    >>> from floatlab.arrays.round_trips.round_trip import round_trip
    >>> from floatlab.formats.recipes import parse_recipe
    >>> recipe = parse_recipe("mxfp4")
    >>> found = scale_tally(round_trip(np.float32([[4.0] * 32 + [1.0] * 32 + [0.0] * 32]), recipe), recipe)
    >>> found.blocks, found.empty, found.largest, found.smallest, found.spread, found.exponents
    (3, 1, 1.0, 0.25, 2.0, ((-2, 1), (0, 1)))
    """
    if trip.scales is None or trip.unit is None:
        return None
    scales = np.abs(trip.scales)
    with np.errstate(all="ignore"):
        clipped, underflowed, empty = _misfits(trip, recipe, scales)
    sizes = scales[np.isfinite(scales) & (scales > 0) & ~empty]
    exponents = np.frexp(sizes)[1] - 1
    least = int(exponents.min(initial=0))
    counts = np.bincount((exponents - least).reshape(-1))
    found = np.flatnonzero(counts)
    return ScaleTally(
        blocks=scales.size,
        empty=int(np.count_nonzero(empty)),
        zeros=int(np.count_nonzero((scales == 0) & ~empty)),
        nans=int(np.count_nonzero(~np.isfinite(scales))),
        clipped=clipped,
        underflowed=underflowed,
        largest=float(sizes.max()) if sizes.size else None,
        smallest=float(sizes.min()) if sizes.size else None,
        exponents=tuple(zip((found + least).tolist(), counts[found].tolist(), strict=True)),
    )


def _misfits(trip: RoundTrip, recipe: Recipe, scales: Array) -> tuple[int, int, Array]:
    """Count the blocks whose scale does not fit the format of the scales.

    The first result counts blocks that need a scale too large for this format. The second counts blocks that need a
    scale below the smallest positive number of this format. The third is a mask of the blocks that have only zeros.
    """
    fmt, none = recipe.format, np.zeros(scales.shape, bool)
    top, least = float(fmt.scale.largest), float(fmt.scale.smallest)
    beyond = limits_of(fmt.scale).beyond  # scales larger than this are clipped, not only rounded
    is_reciprocal = recipe.rule.value.endswith("/ scale") or fmt.minimum
    if not is_reciprocal and not ((scales >= top) | (scales <= least)).any():
        return 0, 0, none
    amax = _largest(np.abs(trip.x), fmt.rows, fmt.block)
    empty = amax == 0
    if is_reciprocal or trip.unit is None:  # reciprocal scales are stored as binary32, whose range suffices
        return 0, 0, empty
    wanted = amax / (np.abs(trip.unit) * float(fmt.magnitudes.largest))
    known = np.isfinite(wanted) & ~empty
    return int(np.count_nonzero(known & (wanted > beyond))), int(np.count_nonzero(known & (wanted < least))), empty


def _largest(sizes: Array, rows: int | None, columns: int | None) -> Array:
    """Return the largest number of each block of a matrix. A block has `rows` × `columns` numbers; None means all.

    >>> _largest(np.arange(12.0).reshape(2, 6), 1, 4).tolist()
    [[3.0, 5.0], [9.0, 11.0]]
    """
    height, width = sizes.shape
    if rows == 1 and columns and width % columns == 0:
        blocks = sizes.reshape(-1, columns)
        while (length := blocks.shape[1]) % 2 == 0:  # faster than `max` along an axis this short
            blocks = np.maximum(blocks[:, : length // 2], blocks[:, length // 2 :])
        found: Array = blocks.max(axis=1).reshape(height, -1)
        return found
    for axis, step in ((0, rows or height), (1, columns or width)):
        sizes = np.maximum.reduceat(sizes, np.arange(0, sizes.shape[axis], step), axis=axis)
    return sizes


def merged_scales(parts: Iterable[ScaleTally | None]) -> ScaleTally | None:
    """Return the statistics of a tensor from those of its parts; None if no part has scales."""
    found = [each for each in parts if each is not None]
    if not found:
        return None
    exponents: Counter[int] = Counter()
    for each in found:
        exponents.update(dict(each.exponents))
    return ScaleTally(
        blocks=sum(each.blocks for each in found),
        empty=sum(each.empty for each in found),
        zeros=sum(each.zeros for each in found),
        nans=sum(each.nans for each in found),
        clipped=sum(each.clipped for each in found),
        underflowed=sum(each.underflowed for each in found),
        largest=max((each.largest for each in found if each.largest is not None), default=None),
        smallest=min((each.smallest for each in found if each.smallest is not None), default=None),
        exponents=tuple(sorted(exponents.items())),
    )
