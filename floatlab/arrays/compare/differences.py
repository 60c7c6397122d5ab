"""`Differences` (the result of a comparison), its parts, and the accumulators for distances and positions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.presenter import Answering
from floatlab.record import Record

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_DISTANCE_DIGITS = 12  # distances that agree in this many leading bits share a counter
_CUT = 53 - _DISTANCE_DIGITS  # the other bits of the binary64 significand, which are dropped
_ONE = int(np.array([1.0]).view(np.int64)[0]) >> _CUT
_LONGEST = 1 << 24  # on longer axes, single indices are not tracked
_DIGITS = (4, 5)  # a map has at most 2^4 rows and 2^5 columns of tiles
_PIECE = 1 << 13  # elements added to the map at once: few enough that NumPy reuses its temporary memory


class Extreme(Record):
    """A largest value, and the index of the first element with this value."""

    value: float | int
    index: tuple[int, ...]


class Tolerance(Record):
    """One tolerance test (allclose or assert_close) and its result for two arrays.

    `share` is the largest |actual − expected| / (atol + rtol·|expected|): a share above 1 fails. The share is infinite
    if the arrays fail with every tolerance, or if the numbers of an element differ where the allowed difference is 0.
    `least_rtol` is the smallest rtol that would pass with this atol; `least_atol` is the smallest atol that would pass
    with this rtol. Each of the two is None if no such tolerance exists. `greatest_absolute` and `greatest_relative` are
    the greatest differences of failing elements, in the dtype of the arrays, as NumPy and PyTorch print them.
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
    unlike: str = ""  # "shape" or "dtype" if the arrays differ in it and the library therefore refuses to compare them


class Ulps(Record):
    """Distances between the elements of two arrays in ulps of a format; pairs with NaNs are left out.

    `percentiles` has entries (percent, distance): at least `percent` % of the pairs have at most this distance. In
    these entries, distances above 4,096 are rounded down, by less than 1 part in 2,000. `histogram` has entries (low,
    high, count): `count` distances are in the range from low to high. Each range begins at 0 or at a power of two, and
    ends before the next power of two.
    """

    format: Format
    count: int
    largest: Extreme | None
    percentiles: tuple[tuple[float, int], ...]
    histogram: tuple[tuple[int, int, int], ...]


class Distances:
    """Counts distances in ulps. Each distance up to 4,096 has a counter; larger ones are counted by their leading bits.

    >>> distances = Distances()
    >>> distances.add(np.array([0, 1, 3, 5000, -1]), np.arange(5))
    >>> found = distances.result(Format("mine", 4, 4), lambda number: (number,))
    >>> found.histogram, found.percentiles[0], found.largest.index
    (((0, 0, 1), (1, 1, 1), (2, 3, 1), (4096, 8191, 1)), (50.0, 1), (3,))
    """

    def __init__(self) -> None:
        self._counts = np.zeros(_place(np.array([(1 << 63) - 1]))[0] + 1, np.int64)
        self._largest, self._where = -1, 0

    def count(self, distance: int, count: int) -> None:
        """Count one distance `count` times."""
        self._counts[_place(np.array([distance]))[0]] += count

    def add(self, distances: Array, index: Array) -> None:
        """Add the distances of the elements with the indices `index`; a negative value means "no distance"."""
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

    def result(self, format: Format, unravel: Callable[[int], tuple[int, ...]]) -> Ulps:
        """Return the statistics of the distances that were added so far.

        `unravel` turns an element's linear index into its indices along the axes.
        """
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
    """Return the index of each distance's counter, computed from the upper bits of the distance's binary64 code."""
    # Clear the low bits of large distances, so that the conversion to float64 does not round them up.
    odd = np.where(distances >> 53 > 0, distances & ~np.int64((1 << 11) - 1), distances)
    bits = odd.astype(np.float64).view(np.int64) >> _CUT
    return np.where(distances > 0, bits - _ONE + 1, 0)


def _distance(place: int) -> int:
    """Return the smallest distance that the counter with this index counts."""
    if not place:
        return 0
    return int(np.array([(place - 1 + _ONE) << _CUT]).view(np.float64)[0])


class Extent(Record):
    """The indices of the selected elements along one axis.

    The indices range from `low` to `high`. `distinct` is the number of different indices. `step` is the greatest common
    divisor of the differences of indices, or 0 if there is only one index. `distinct` and `step` are None for an axis
    longer than 2^24.
    """

    low: int
    high: int
    distinct: int | None
    step: int | None


class Map(Record):
    """The number of selected elements in each tile of an array, which is viewed as a matrix.

    The last axis becomes the columns of the matrix, and all other axes, flattened, become its rows. (In column-major
    order, the first axis becomes the rows, and all others the columns.) `sides` has the numbers of rows and columns of
    the matrix. `part` has the numbers of rows and columns of a tile; the last tiles may be smaller.
    """

    sides: tuple[int, int]
    part: tuple[int, int]
    counts: tuple[tuple[int, ...], ...]


class Structure(Record):
    """How many elements of an array are selected, and where they are.

    `first` and `last` are the linear indices of the first and last selected element in the order in which elements are
    read. `extents` describes the indices along each axis. `map` describes how the selected elements are distributed
    over the array.
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
        """The number of elements in the smallest box (a range on each axis) that contains all selected elements."""
        found = 1
        for each in self.extents:
            found *= each.high - each.low + 1
        return found


class Finder:
    """Accumulator for the positions of selected elements, which must be added in ascending order.

    >>> finder = Finder((4, 8))
    >>> finder.add(np.array([2, 10, 18]))
    >>> [(each.low, each.high, each.step) for each in finder.result().extents]
    [(0, 2, 1), (2, 2, 0)]
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.count, self.first, self.last = shape, 0, 0, 0
        self._low, self._high = [0] * len(shape), [0] * len(shape)
        # Allocated on first use: arrays that agree need none.
        self._touched: list[Array | None] | None = None
        self._sides = (int(np.prod(shape[:-1], dtype=object)), shape[-1] if shape else 1)
        # The sides of a tile are powers of two, so that an element's tile is found by shifts.
        self._shifts = [max((n - 1).bit_length() - _DIGITS[i], 0) for i, n in enumerate(self._sides)]
        self._across = self._parts(1)
        self._counts = np.zeros(0, np.int64)

    def _parts(self, side: int) -> int:
        return -(-self._sides[side] >> self._shifts[side])

    def add(self, index: Array) -> None:
        """Add the selected elements with the linear indices `index`, which must be in ascending order."""
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
        """Return, for each element, the number of the tile that contains the element."""
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

    def result(self, by_columns: bool = False) -> Structure | None:
        """Return a `Structure` (where the selected elements are), or None if no element was selected.

        `by_columns` reverses the order of the axes.
        """
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
    """One of the two compared arrays."""

    name: str
    shape: tuple[int, ...]
    kind: str  # the name of its dtype, or the name of its format if the array is read as codes
    format: Format


class Specials(Record):
    """Counts of pairs of elements: pairs with NaNs, unequal pairs with an infinity, and zeros of different signs."""

    nan_in_actual: int
    nan_in_expected: int
    nan_in_both: int
    infinity: int  # only one side infinite, or infinities of opposite signs
    sign_of_zero: int


class ErrorSummary(Record):
    """The largest and the mean error of one kind, over the `count` elements for which this error is defined."""

    largest: Extreme | None
    mean: float | None
    count: int


NO_ERRORS = ErrorSummary(None, None, 0)


class ComparedElement(Record):
    """One element of both arrays: values in binary64, codes, and differences. `Tolerance` explains `share`."""

    index: tuple[int, ...]
    actual: float
    expected: float
    actual_code: int
    expected_code: int
    absolute: float
    ulps: int
    share: float


class Differences(Answering, Record):
    """The result of `compare`. Errors are computed in binary64, for elements that are finite in both arrays.

    If the shapes do not broadcast, `shape` is None and nothing was measured.
    """

    actual: Operand
    expected: Operand
    shape: tuple[int, ...] | None
    size: int
    equal_bits: int | None  # None if the formats differ
    equal: int  # pairs of equal numbers; 0 and −0 are equal, NaNs are not
    specials: Specials
    absolute: ErrorSummary
    relative: ErrorSummary  # only elements whose expected value is not zero
    ulps: Ulps | None
    allclose: Tolerance
    assert_close: Tolerance
    worst: tuple[ComparedElement, ...]  # the elements with the largest shares of NumPy's tolerance
    differing: Structure | None  # the differing elements; None if there are none, or if an element fails NumPy's test
    failing: Structure | None  # the elements that fail NumPy's test; None if there are none
    diagnosis: object = None  # a Diagnosis of the causes, if the inputs are known
    _ASKS = ".within (NumPy's tolerance), .assert_close.passes (PyTorch's), or whether .equal is .size"

    def __repr__(self) -> str:
        """Show the number of elements beyond tolerance."""
        names = f"{self.actual.name}, {self.expected.name}"
        if self.shape is None:
            return f"Differences({names}: shapes {self.actual.shape} and {self.expected.shape} do not fit together)"
        beyond = f"{self.allclose.failing:,} of {self.size:,} elements beyond"
        return f"Differences({names}: {beyond} rtol {self.allclose.rtol:g}, atol {self.allclose.atol:g})"

    @property
    def within(self) -> bool:
        """Whether all elements are within NumPy's tolerance."""
        return self.allclose.passes

    def data(self, element: ComparedElement) -> tuple[Datum, Datum]:
        """Return both numbers of an element."""
        return Datum(self.actual.format, element.actual_code), Datum(self.expected.format, element.expected_code)
