"""Recognises that one array is another array, rounded to a narrower format."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.codec import native, round_array
from floatlab.arrays.sources import BLOCK, ArraySource, Piece, Source, array_format
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers.rounding import IN_WORDS, Direction
from floatlab.record import Record

# Formats to which numbers are often rounded before they are stored in a wider format.
_NARROW = ("bf16", "fp16", "e4m3", "e5m2")
_DIRECTIONS = (Direction.RNE, Direction.RTZ)
_FIRST = 1 << 10  # number of elements in the first piece; it is small, but suffices to exclude most candidates


class NarrowedCopy(Record):
    """A rounding that turns one of the arrays `actual` and `expected` into the other: its format and its rules.

    `overflow` is the rule for numbers beyond the range of the format. If `expected_is_rounded` is true, the array
    `expected` is the rounded one; otherwise, the array `actual` is.
    """

    format: Format
    direction: Direction
    overflow: str = "native"
    expected_is_rounded: bool = False

    @property
    def words(self) -> str:
        """The relation as a phrase, such as "actual is expected rounded to binary16"."""
        copy, whole = ("expected", "actual") if self.expected_is_rounded else ("actual", "expected")
        how = "" if self.direction is Direction.RNE else f" {IN_WORDS[self.direction]}"
        more = ", saturating" if self.overflow == "saturate" else ""
        return f"{copy} is {whole} rounded to {self.format.name}{how}{more}"


class CopySearch:
    """Looks for the rounding that turns one of two arrays into the other, while both are read for another purpose.

    The caller must read the two arrays through the attributes `actual` and `expected`, so that the search sees the
    numbers. A piece is tested as soon as it has been read from both arrays. Later, `found` reads only the pieces that
    have not been tested, and only if a rounding is still possible.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.float32([0.1, 0.2, 3])
    >>> CopySearch(HeldSource(x.astype(np.float16)), HeldSource(x)).found().words
    'actual is expected rounded to binary16'
    """

    def __init__(self, actual: ArraySource, expected: ArraySource) -> None:
        """Take two arrays of the same shape."""
        self.actual, self.expected = _Watched(actual, self._see), _Watched(expected, self._see)
        self._sources = actual, expected
        kinds = [each.dtype.kind for each in self._sources if each.dtype is not None]
        is_possible = actual.by_columns == expected.by_columns and all(kind == "f" for kind in kinds)
        self._left = list(_candidates(actual.format, expected.format)) if is_possible else []
        self._pieces: dict[ArraySource, tuple[int, Piece]] = {}
        # Elements from `_same` up to `_next` have been tested. The elements before `_same` are equal in both arrays;
        # they are tested last.
        self._same = self._next = 0

    def _see(self, source: ArraySource, first: int, piece: Piece) -> None:
        self._pieces[source] = first, piece
        if not self._left or len(self._pieces) < 2:
            return
        (start, x), (other, y) = (self._pieces[each] for each in (self.actual, self.expected))
        if start != other:
            return
        self._pieces.clear()
        if start != self._next:
            return
        self._next += len(_numbers(x))
        if self._same == start and np.array_equal(_numbers(x), _numbers(y)):
            self._same = self._next
        else:
            self._test(x, y)

    def _test(self, x: Piece, y: Piece) -> None:
        for part in (slice(0, _FIRST), slice(_FIRST, None)):
            one, other = _part(x, part), _part(y, part)
            if len(_numbers(one)):
                self._left = [
                    each
                    for candidates in _by_rounding(self._left)
                    for each in _copies(
                        *((other, one) if candidates[0].expected_is_rounded else (one, other)), candidates
                    )
                ]

    def found(self) -> NarrowedCopy | None:
        """Test the pieces that have not been tested. Return the rounding, or None if no rounding was found."""
        actual, expected = self._sources
        for begin, end in ((self._next, actual.size), (0, self._same)):
            for first in range(begin, end, BLOCK):
                if not self._left:
                    return None
                count = min(BLOCK, end - first)
                self._test(actual.read(first, count), expected.read(first, count))
        return self._left[0] if self._left and actual.size else None


class _Watched(ArraySource):
    """An array that reports each piece that is read from it."""

    def __init__(self, source: ArraySource, see: Callable[[ArraySource, int, Piece], None]) -> None:
        self.name, self.shape, self.format, self.dtype = source.name, source.shape, source.format, source.dtype
        self.by_columns, self.origin = source.by_columns, source.origin
        self._source, self._seen = source, see

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on, and report them as a piece."""
        piece = self._source.read(first, count)
        self._seen(self, first, piece)
        return piece


def _numbers(piece: Piece) -> Array:
    """Return the stored numbers or codes of a piece."""
    return piece.codes if isinstance(piece, Source) else piece


def _part(piece: Piece, part: slice) -> Piece:
    return piece.replace(codes=piece.codes[part]) if isinstance(piece, Source) else piece[part]


def _candidates(actual: Format, expected: Format) -> Iterator[NarrowedCopy]:
    """Yield the roundings to try: to the format of each array or, if both have the same format, to narrower formats."""
    pairs = [(actual, False), (expected, True)]
    if actual == expected:
        narrow = [found for found in map(array_format, _NARROW) if found != actual and holds(actual, found)]
        pairs = [(found, turned) for found in narrow for turned in (False, True)]
    for format, turned in pairs:
        for direction in _DIRECTIONS:
            for overflow in ("native", "saturate"):
                yield NarrowedCopy(format, direction, overflow, turned)


def _by_rounding(candidates: list[NarrowedCopy]) -> list[list[NarrowedCopy]]:
    """Group candidates that differ only in their rule for overflow."""
    found: dict[tuple[Format, Direction, bool], list[NarrowedCopy]] = {}
    for each in candidates:
        found.setdefault((each.format, each.direction, each.expected_is_rounded), []).append(each)
    return list(found.values())


def _copies(copy: Piece, whole: Piece, candidates: list[NarrowedCopy]) -> list[NarrowedCopy]:
    """Return the candidates for which `copy` is `whole` after rounding.

    The `candidates` differ only in their rule for overflow. If nothing overflows, all of them give the same numbers, so
    only the first one is computed.
    """
    kept, first = [], candidates[0]
    with np.errstate(all="ignore"):
        rounded = native(round_array(whole, first.format, first.direction, first.overflow))
        overflows = len(candidates) > 1 and not np.isfinite(rounded).all()
        for each in candidates:
            if overflows and each is not first:
                rounded = native(round_array(whole, each.format, each.direction, each.overflow))
            if _same_numbers(native(copy), rounded):
                kept.append(each)
    return kept


def _same_numbers(x: Array, y: Array) -> bool:
    """Return whether all numbers and their signs are equal; all NaNs count as equal."""
    same = (x == y) & (np.signbit(x) == np.signbit(y))
    return bool((same | (np.isnan(x) & np.isnan(y))).all())
