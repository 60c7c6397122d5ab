"""Where some elements of an array lie: in one row, in a block, in every eighth column, at the end, everywhere."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record

_LONGEST = 1 << 24  # an axis of more indices is not kept track of one by one
_DIGITS = (4, 5)  # of the numbers of a map's rows and columns: at most 16 and 32
_PIECE = 1 << 13  # elements that are put on the map at once: what they need then is no fresh memory each time


class Extent(Record):
    """What is known of the indices along one axis of the elements meant.

    They go from `low` to `high`; `distinct` of them occur, and the differences between those are multiples of `step`
    (0 where there is one). The last two are None for an axis of more than 2^24.
    """

    low: int
    high: int
    distinct: int | None
    step: int | None


class Map(Record):
    """How many of the elements meant lie in each part of an array, laid out as a matrix and cut into equal parts.

    The columns are the indices of the last axis, the rows those of all others, one after another; of an array that is
    read by columns, the rows are those of the first axis. A part has `part` rows and columns, those at the end fewer.
    """

    sides: tuple[int, int]
    part: tuple[int, int]
    counts: tuple[tuple[int, ...], ...]


class Structure(Record):
    """How many elements of an array are meant, and where they lie: along each axis, and from first to last in memory.

    `first` and `last` number the elements in the order in which they were read.
    """

    count: int
    size: int
    shape: tuple[int, ...]
    first: int
    last: int
    extents: tuple[Extent, ...]
    map: Map

    @property
    def box(self) -> int:
        """How many elements the smallest block that has them all contains."""
        found = 1
        for each in self.extents:
            found *= each.high - each.low + 1
        return found


class Finder:
    """Elements counted as they come by, in the order of their numbers.

    >>> finder = Finder((4, 8))
    >>> finder.see(np.array([2, 10, 18]))
    >>> [(each.low, each.high, each.step) for each in finder.found().extents]
    [(0, 2, 1), (2, 2, 0)]
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        """Start without having seen any."""
        self.shape, self.count, self.first, self.last = shape, 0, 0, 0
        self._low, self._high = [0] * len(shape), [0] * len(shape)
        # Made when it is first needed: arrays that agree need none.
        self._touched: list[Array | None] | None = None
        self._sides = (int(np.prod(shape[:-1], dtype=object)), shape[-1] if shape else 1)
        # The sides of a part are powers of two, so that the part of an element is found by shifts.
        self._shifts = [max((n - 1).bit_length() - _DIGITS[i], 0) for i, n in enumerate(self._sides)]
        self._across = self._parts(1)
        self._counts = np.zeros(0, np.int64)

    def _parts(self, side: int) -> int:
        return -(-self._sides[side] >> self._shifts[side])

    def see(self, index: Array) -> None:
        """Take the numbers of some elements, in rising order."""
        if not index.size:
            return
        places = np.unravel_index(index, self.shape) if self.shape else ()
        if self._touched is None:
            self.first = int(index[0])
            self._low = list(self.shape)
            self._touched = [np.zeros(n, bool) if n <= _LONGEST else None for n in self.shape]
            self._counts = np.zeros(self._parts(0) * self._across, np.int64)
        self.count += len(index)
        self.last = int(index[-1])
        for axis, (place, touched) in enumerate(zip(places, self._touched, strict=True)):
            self._low[axis] = min(self._low[axis], int(place.min()))
            self._high[axis] = max(self._high[axis], int(place.max()))
            if touched is not None:
                touched[place] = True
        for start in range(0, len(index), _PIECE):
            piece = slice(start, start + _PIECE)
            parts = self._parts_of(index[piece], tuple(place[piece] for place in places))
            self._counts += np.bincount(parts, minlength=len(self._counts))

    def _parts_of(self, index: Array, places: tuple[Array, ...]) -> Array:
        """Return the number of the part of the map that each element is in."""
        across: Array = (places[-1] if places else index) >> self._shifts[1]
        if len(places) > 1:
            down = (places[0] if len(places) == 2 else index // self._sides[1]) >> self._shifts[0]
            across += np.multiply(down, self._across, out=down)
        return across

    def _map(self, by_columns: bool) -> Map:
        rows = self._counts.reshape(-1, self._across)
        counts = tuple(map(tuple, (rows.T if by_columns else rows).tolist()))
        sides, part = self._sides, (1 << self._shifts[0], 1 << self._shifts[1])
        return Map(sides[::-1], part[::-1], counts) if by_columns else Map(sides, part, counts)

    def found(self, by_columns: bool = False) -> Structure | None:
        """Return where they lie, with the axes turned round for an array that was read by columns; None for none."""
        if not self.count or self._touched is None:
            return None
        extents = []
        for low, high, touched in zip(self._low, self._high, self._touched, strict=True):
            distinct = step = None
            if touched is not None:
                indices = np.flatnonzero(touched)
                distinct, step = len(indices), int(np.gcd.reduce(np.diff(indices)))
            extents.append(Extent(low, high, distinct, step))
        shape, turn = self.shape, slice(None, None, -1 if by_columns else 1)
        return Structure(
            self.count,
            int(np.prod(shape, dtype=object)),
            shape[turn],
            self.first,
            self.last,
            tuple(extents[turn]),
            self._map(by_columns),
        )
