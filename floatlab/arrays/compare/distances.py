"""Distances in ulps, counted: exact up to 4,096, and past that by their twelve leading digits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from floatlab.arrays.compare.tolerances import Extreme
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.record import Record

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_DIGITS = 12  # leading binary digits of a distance that are told apart
_CUT = 53 - _DIGITS  # trailing digits of binary64 that are not


class Ulps(Record):
    """How many steps of a format lie between the elements of two arrays, over pairs of numbers.

    `percentiles` are pairs (percent, distance): the smallest distance that so many have at most, with as much as
    1/2048 of it missing past 4,096. `histogram` are (low, high, count): distances from low to high, in powers of two.
    """

    format: Format
    count: int
    largest: Extreme | None
    percentiles: tuple[tuple[float, int], ...]
    histogram: tuple[tuple[int, int, int], ...]


class Distances:
    """Distances as they come by.

    >>> distances = Distances()
    >>> distances.see(np.array([0, 1, 3, 5000, -1]), np.arange(5))
    >>> found = distances.found(Format("mine", 4, 4), lambda number: (number,))
    >>> found.histogram, found.percentiles[0], found.largest.index
    (((0, 0, 1), (1, 1, 1), (2, 3, 1), (4096, 8191, 1)), (50.0, 1), (3,))
    """

    def __init__(self) -> None:
        """Start without having seen any."""
        self._counts = np.zeros(_place(np.array([(1 << 63) - 1]))[0] + 1, np.int64)
        self._largest, self._where = -1, 0

    def count(self, distance: int, count: int) -> None:
        """Take one distance, so many times."""
        self._counts[_place(np.array([distance]))[0]] += count

    def see(self, distances: Array, index: Array) -> None:
        """Take distances of the elements numbered so; those below 0 are none."""
        known = distances >= 0
        places = _place(distances[known])
        if not len(places):
            return
        low = int(places.min())
        found = np.bincount(places - low)
        self._counts[low : low + len(found)] += found
        most = int(np.argmax(distances))
        if distances[most] > self._largest:
            self._largest, self._where = int(distances[most]), int(index[most])

    def found(self, format: Format, unravel: Callable[[int], tuple[int, ...]]) -> Ulps:
        """Return what was counted."""
        total = int(self._counts.sum())
        seen = np.flatnonzero(self._counts)
        lows = [_distance(int(place)) for place in seen]
        counts = self._counts[seen]
        so_far = np.cumsum(counts)
        percentiles = []
        for percent in PERCENTILES if total else ():
            needed = -(-total * round(percent * 10) // 1000)
            percentiles.append((percent, lows[int(np.searchsorted(so_far, needed))]))
        bins: dict[int, int] = {}
        for low, count in zip(lows, counts.tolist(), strict=True):
            bins[low.bit_length()] = bins.get(low.bit_length(), 0) + count
        histogram = tuple(((1 << n) >> 1, (1 << n) - 1, count) for n, count in sorted(bins.items()))
        largest = None
        if total:
            value, where = (self._largest, self._where) if self._largest > 0 else (0, 0)
            largest = Extreme(value, unravel(where))
        return Ulps(format, total, largest, tuple(percentiles), histogram)


def _place(distances: Array) -> Any:
    """Return the place of a distance among all that are told apart: the upper bits of its binary64."""
    odd = np.where(distances >> 53 > 0, distances & ~np.int64((1 << 11) - 1), distances)  # no rounding up
    bits = odd.astype(np.float64).view(np.int64) >> _CUT
    return np.where(distances > 0, bits - _ONE + 1, 0)


_ONE = int(np.array([1.0]).view(np.int64)[0]) >> _CUT


def _distance(place: int) -> int:
    """Return the smallest distance of a place."""
    if not place:
        return 0
    return int(np.array([(place - 1 + _ONE) << _CUT]).view(np.float64)[0])
