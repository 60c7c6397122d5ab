"""Recognises that the numbers of one array are those of another array, rounded to a narrower format."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.codec import native, round_array
from floatlab.arrays.sources import BLOCK, ArraySource, Piece, array_format
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers.rounding import IN_WORDS, Direction
from floatlab.record import Record

# Formats to which numbers are often rounded before they are stored in a wider format.
_NARROW = ("bf16", "fp16", "e4m3", "e5m2")
_DIRECTIONS = (Direction.RNE, Direction.RTZ)
_FIRST = 1 << 10  # number of elements in the first piece, in which most wrong candidates already differ


class NarrowedCopy(Record):
    """The relation "one array is the other one, rounded": the format, the direction, and the result of overflows.

    `expected_is_rounded` is true if expected is the rounded array, and false if actual is.
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


def narrowed_copy(actual: ArraySource, expected: ArraySource) -> NarrowedCopy | None:
    """Return the rounding that turns one array into the other, None if there is none; both have the same shape.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.float32([0.1, 0.2, 3])
    >>> narrowed_copy(HeldSource(x.astype(np.float16)), HeldSource(x)).words
    'actual is expected rounded to binary16'
    """
    kinds = [each.dtype.kind for each in (actual, expected) if each.dtype is not None]
    if actual.by_columns != expected.by_columns or any(kind != "f" for kind in kinds):
        return None
    left = list(_candidates(actual.format, expected.format))
    first = 0
    while left and first < actual.size:
        count = min(BLOCK if first else _FIRST, actual.size - first)
        x, y = actual.read(first, count), expected.read(first, count)
        left = [each for each in left if _is_copy(*((y, x) if each.expected_is_rounded else (x, y)), each)]
        first += count
    return left[0] if left and actual.size else None


def _candidates(actual: Format, expected: Format) -> Iterator[NarrowedCopy]:
    """Yield the roundings to try: to the format of either array, or to narrower ones if both have the same format."""
    pairs = [(actual, False), (expected, True)]
    if actual == expected:
        narrow = [found for found in map(array_format, _NARROW) if found != actual and holds(actual, found)]
        pairs = [(found, turned) for found in narrow for turned in (False, True)]
    for format, turned in pairs:
        for direction in _DIRECTIONS:
            for overflow in ("native", "saturate"):
                yield NarrowedCopy(format, direction, overflow, turned)


def _is_copy(copy: Piece, whole: Piece, rounding: NarrowedCopy) -> bool:
    """Return whether each number of `copy` is the rounded number of `whole`; all NaNs count as equal."""
    with np.errstate(all="ignore"):
        found: Array = native(round_array(whole, rounding.format, rounding.direction, rounding.overflow))
        x = native(copy)
        same = (x == found) & (np.signbit(x) == np.signbit(found))
        return bool((same | (np.isnan(x) & np.isnan(found))).all())
