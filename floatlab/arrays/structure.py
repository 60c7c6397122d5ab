"""Where some elements of an array lie: in one row, in a block, in every eighth column, at the end, everywhere."""

from __future__ import annotations

import numpy as np

from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

_LONGEST = 1 << 24  # an axis of more indices is not kept track of one by one


class Extent(Record):
    """What is known of the indices along one axis of the elements meant.

    They go from `low` to `high`; `distinct` of them occur, and the differences between those are multiples of `step`
    (0 where there is one). The last two are None for an axis of more than 2^24.
    """

    low: int
    high: int
    distinct: int | None
    step: int | None


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

    def see(self, index: Array) -> None:
        """Take the numbers of some elements, in rising order."""
        if not index.size:
            return
        places = np.unravel_index(index, self.shape) if self.shape else ()
        if self._touched is None:
            self.first = int(index[0])
            self._low = list(self.shape)
            self._touched = [np.zeros(n, bool) if n <= _LONGEST else None for n in self.shape]
        self.count += len(index)
        self.last = int(index[-1])
        for axis, (place, touched) in enumerate(zip(places, self._touched, strict=True)):
            self._low[axis] = min(self._low[axis], int(place.min()))
            self._high[axis] = max(self._high[axis], int(place.max()))
            if touched is not None:
                touched[place] = True

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
            self.count, int(np.prod(shape, dtype=object)), shape[turn], self.first, self.last, tuple(extents[turn])
        )
