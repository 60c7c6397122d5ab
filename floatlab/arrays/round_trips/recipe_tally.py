"""The tally of a round trip: counts and errors of an array that was rounded by a recipe.

The scale of each block determines which of its numbers are subnormal, and which overflow.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.lanes.tally_lanes import Tally
from floatlab.arrays.recipes.tiling import even_parts, in_tiles
from floatlab.arrays.round_trips.round_trip import RoundTrip
from floatlab.arrays.round_trips.tally import merge, tally
from floatlab.arrays.types import Array
from floatlab.formats.blocks import Integers
from floatlab.formats.format import Format
from floatlab.formats.recipes import Recipe
from floatlab.record import Individual


class Limits(Individual):
    """The limits of an element format.

    Magnitudes below `smallest` are subnormal, and magnitudes above `beyond` overflow.

    `smallest` is the smallest normal number minus half of the smallest subnormal number, since decoded numbers (element
    × scale, rounded) may be slightly below their exact values.
    """

    smallest: float
    beyond: float
    is_beyond: bool  # whether the magnitude `beyond` itself overflows


@lru_cache(maxsize=256)
def limits_of(element: Format | Integers) -> Limits:
    """Return the limits of an element format.

    In fixed-point formats, formats given by a table and formats without subnormal numbers, `smallest` is 0: no number
    counts as subnormal.

    >>> from floatlab.formats import parse_format
    >>> found = limits_of(parse_format("e4m3"))
    >>> found.smallest, found.beyond, found.is_beyond  # 464 is a tie, which goes to 448
    (0.0146484375, 464.0, False)
    """
    numbers = element if isinstance(element, Format) else element.magnitudes
    if numbers.is_table:
        return Limits(0.0, float(numbers.largest), False)
    half = 2.0 ** (numbers.emax - numbers.precision) if numbers.emax < 1023 else 0.0  # half a unit of the last place
    # A tie above the largest number goes to the largest number if that number is even.
    odd = numbers.precision == 1 or bool(numbers.largest_magnitude & 1)
    is_fixed = isinstance(element, Integers) or numbers.exponent_bits < 2  # fixed point: all steps are equal
    least = 0.0 if is_fixed or not numbers.subnormals else float(numbers.smallest_normal - numbers.smallest / 2)
    return Limits(least, float(numbers.largest) + half, odd)


def tally_of(trip: RoundTrip, recipe: Recipe, first: int = 0, row_length: int | None = None) -> Tally:
    """Return the tally of a round trip.

    If the matrix of the round trip is a part of an array, `first` is the linear index of its first element in the
    array, and `row_length` is the length of the array's rows.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> recipe = parse_recipe("mxfp4")
    >>> from floatlab.arrays.round_trips.round_trip import round_trip
    >>> found = tally_of(round_trip(np.float32([[7.5, 1, 0.2, 0]]), recipe), recipe)
    >>> found.saturated, found.flushed, found.exact, found.largest_relative_at
    (1, 1, 2, 2)
    """
    with np.errstate(all="ignore"):
        return _tally(trip, recipe, first, row_length)


def _tally(trip: RoundTrip, recipe: Recipe, first: int, row_length: int | None) -> Tally:
    rows, columns = trip.x.shape
    stride = columns if row_length is None or rows == 1 else row_length
    down, across = min(trip.tile[0], max(rows, 1)), min(trip.tile[1], max(columns, 1))
    limits = limits_of(recipe.format.element)
    found = []
    for top, left, height, width in even_parts((rows, columns), (down, across)):
        tile = min(down, height), min(across, width)
        factors = trip.factors[top // down :, left // across :][: -(-height // tile[0]), : -(-width // tile[1])]
        sizes = np.abs(np.ascontiguousarray(factors).reshape(-1))
        beyond = limits.beyond * sizes
        if not limits.is_beyond:
            beyond = np.nextafter(beyond, np.inf)
        x, y = (in_tiles(each[top : top + height, left : left + width], tile) for each in (trip.x, trip.values))
        run = tile[0] * tile[1]
        each = tally(x, y, run, limits.smallest * sizes, beyond)
        if trip.minima is not None:
            shifts = trip.minima[top // down :, left // across :][: factors.shape[0], : factors.shape[1]]
            each = each.replace(saturated=_beyond(x, factors, run, (-0.5, limits.beyond), shifts))
        elif isinstance(recipe.format.element, Integers) and not recipe.rule.is_exact:
            kind, unit = recipe.format.element, 2.0**recipe.format.element.quantum
            ends = (kind.lowest - 0.5) * unit, (-kind.lowest - 0.5) * unit
            each = each.replace(saturated=_beyond(x, factors, run, ends))
        found.append(each.replace(largest_relative_at=_index(each.largest_relative_at, tile, width, top, left, stride)))
    whole = merge(found) if len(found) != 1 else found[0]
    at = whole.largest_relative_at
    return whole.replace(largest_relative_at=at + first if at >= 0 else -1)


def _index(at: int, tile: tuple[int, int], width: int, top: int, left: int, stride: int) -> int:
    """Return the array index of element `at` of a part of an array; the elements are numbered tile after tile.

    The part begins at the row `top` and the column `left`, and has `width` columns. `stride` is the length of the
    array's rows. If `at` is −1 (no element), the result is −1.
    """
    if at < 0:
        return at
    number, inside = divmod(at, tile[0] * tile[1])
    down, across = divmod(number, width // tile[1])
    row, column = divmod(inside, tile[1])
    return (top + down * tile[0] + row) * stride + left + across * tile[1] + column


def _beyond(x: Array, factors: Array, run: int, ends: tuple[float, float], shifts: Array | None = None) -> int:
    """Count the numbers x that saturate: (x − shift) / factor is less than ends[0], or is ends[1] or more.

    This function is for element formats whose range is not symmetric around zero.
    """
    wanted = x.astype(np.float64)
    if shifts is not None:
        wanted -= np.repeat(shifts.reshape(-1), run)[: len(x)]
    wanted /= np.repeat(factors.reshape(-1), run)[: len(x)]
    return int(np.count_nonzero(((wanted < ends[0]) | (wanted >= ends[1])) & np.isfinite(wanted)))
