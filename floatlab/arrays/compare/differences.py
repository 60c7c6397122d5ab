"""What a comparison of two arrays finds: `Differences` and its parts, and what counts distances and places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.presenter import Answering
from floatlab.record import Record

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_DISTANCE_DIGITS = 12  # leading binary digits of a distance that are told apart: exact up to 4,096
_CUT = 53 - _DISTANCE_DIGITS  # trailing digits of binary64 that are not
_ONE = int(np.array([1.0]).view(np.int64)[0]) >> _CUT
_LONGEST = 1 << 24  # an axis of more indices is not kept track of one by one
_DIGITS = (4, 5)  # of the numbers of a map's rows and columns: at most 16 and 32
_PIECE = 1 << 13  # elements that are put on the map at once: what they need then is no fresh memory each time


class Extreme(Record):
    """A largest value, and the index of the first element that has it."""

    value: float | int
    index: tuple[int, ...]


class Tolerance(Record):
    """One definition of near enough: what it says of two arrays.

    `share` is the largest |actual − expected| / (atol + rtol·|expected|): what lies above 1 fails, and infinite where
    no tolerance would do. `least_rtol` is the smallest that would pass with this atol, `least_atol` with this rtol,
    None where none would; both are exact in the dtype that tolerances are computed in. The greatest differences are
    those of elements that fail, in the dtype of the arrays, as both libraries print them.
    """

    name: str
    rtol: float
    atol: float
    equal_nan: bool
    passes: bool = False
    failing: int = 0
    share: Extreme | None = None
    least_rtol: float | None = None
    least_atol: float | None = None
    greatest_absolute: Extreme | None = None
    greatest_relative: Extreme | None = None
    unlike: str = ""  # what keeps a library from comparing at all: shape or dtype


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
    """Distances in ulps as they come by: exact up to 4,096, and past that by their twelve leading digits.

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


def _place(distances: Array) -> Array:
    """Return the place of a distance among all that are told apart: the upper bits of its binary64."""
    odd = np.where(distances >> 53 > 0, distances & ~np.int64((1 << 11) - 1), distances)  # no rounding up
    bits = odd.astype(np.float64).view(np.int64) >> _CUT
    return np.where(distances > 0, bits - _ONE + 1, 0)


def _distance(place: int) -> int:
    """Return the smallest distance of a place."""
    if not place:
        return 0
    return int(np.array([(place - 1 + _ONE) << _CUT]).view(np.float64)[0])


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
            count=self.count, size=int(np.prod(shape, dtype=object)), shape=shape[turn], first=self.first,
            last=self.last, extents=tuple(extents[turn]), map=self._map(by_columns),
        )  # fmt: skip


class Operand(Record):
    """One of two arrays that were compared."""

    name: str
    shape: tuple[int, ...]
    kind: str  # its dtype where NumPy has it, else its format
    format: Format


class Specials(Record):
    """How many elements differ in a NaN, an infinity or the sign of a zero."""

    nan_in_actual: int
    nan_in_expected: int
    nan_in_both: int
    infinity: int  # one side infinite and the other not, or infinities of opposite signs
    sign_of_zero: int


class ErrorSummary(Record):
    """The largest and the mean of errors of one kind, over the `count` elements that have such errors."""

    largest: Extreme | None
    mean: float | None
    count: int


NO_ERRORS = ErrorSummary(None, None, 0)


class ComparedElement(Record):
    """One element of both arrays: values in binary64, codes, and how they differ; `share` as in Tolerance."""

    index: tuple[int, ...]
    actual: float
    expected: float
    actual_code: int
    expected_code: int
    absolute: float
    ulps: int
    share: float


class Differences(Answering, Record):
    """What `compare` found. Errors are computed in binary64, over elements that are finite in both arrays.

    Where the shapes do not broadcast, `shape` is None and nothing was measured.
    """

    actual: Operand
    expected: Operand
    shape: tuple[int, ...] | None
    size: int
    equal_bits: int | None  # None where the formats differ
    equal: int  # the same number, whatever the sign of zero; NaNs are none
    specials: Specials
    absolute: ErrorSummary
    relative: ErrorSummary  # over elements whose expected value is not zero
    ulps: Ulps | None
    allclose: Tolerance
    assert_close: Tolerance
    worst: tuple[ComparedElement, ...]  # by share of NumPy's tolerance
    differing: Structure | None
    failing: Structure | None
    diagnosis: object = None  # why they differ, where their inputs are known: a Diagnosis
    _ASKS = ".within (NumPy's tolerance), .assert_close.passes (PyTorch's), or whether .equal is .size"

    def __repr__(self) -> str:
        """Show how many elements are beyond tolerance."""
        names = f"{self.actual.name}, {self.expected.name}"
        if self.shape is None:
            return f"Differences({names}: shapes {self.actual.shape} and {self.expected.shape} do not go together)"
        beyond = f"{self.allclose.failing:,} of {self.size:,} elements beyond"
        return f"Differences({names}: {beyond} rtol {self.allclose.rtol:g}, atol {self.allclose.atol:g})"

    @property
    def within(self) -> bool:
        """Whether everything is within NumPy's tolerance."""
        return self.allclose.passes

    def data(self, element: ComparedElement) -> tuple[Datum, Datum]:
        """Return both numbers of an element."""
        return Datum(self.actual.format, element.actual_code), Datum(self.expected.format, element.expected_code)
