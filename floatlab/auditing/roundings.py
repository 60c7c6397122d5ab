"""Recognises that the numbers of one array are those of another, rounded into a narrower format."""

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

_NARROW = ("bf16", "fp16", "e4m3", "e5m2")  # formats into which numbers are rounded and then stored in a wider one
_DIRECTIONS = (Direction.RNE, Direction.RTZ)
_FIRST = 1 << 10  # the size of the first piece: on it, most candidates fail


class NarrowedCopy(Record):
    """The relation "one array is the other one, rounded": the format, the direction, and what overflow gives.

    `expected_is_rounded` says which array is the copy: expected if True, else actual.
    """

    format: Format
    direction: Direction
    overflow: str = "native"
    expected_is_rounded: bool = False

    @property
    def words(self) -> str:
        """The relation in words."""
        copy, whole = ("expected", "actual") if self.expected_is_rounded else ("actual", "expected")
        how = "" if self.direction is Direction.RNE else f" {IN_WORDS[self.direction]}"
        more = ", saturating" if self.overflow == "saturate" else ""
        return f"{copy} is {whole} rounded to {self.format.name}{how}{more}"


def narrowed_copy(actual: ArraySource, expected: ArraySource) -> NarrowedCopy | None:
    """Return the rounding that turns one array into the other, if there is one; the arrays have the same shape.

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
    """Return what is tried: the array's own format, or if both have the same, the usual narrower ones."""
    pairs = [(actual, False), (expected, True)]
    if actual == expected:
        narrow = [found for found in map(array_format, _NARROW) if found != actual and holds(actual, found)]
        pairs = [(found, turned) for found in narrow for turned in (False, True)]
    for format, turned in pairs:
        for direction in _DIRECTIONS:
            for overflow in ("native", "saturate"):
                yield NarrowedCopy(format, direction, overflow, turned)


def _is_copy(copy: Piece, whole: Piece, rounding: NarrowedCopy) -> bool:
    """Return whether each number of `copy` is the rounded number of `whole`; NaNs of any payload are alike."""
    with np.errstate(all="ignore"):
        found: Array = native(round_array(whole, rounding.format, rounding.direction, rounding.overflow))
        x = native(copy)
        same = (x == found) & (np.signbit(x) == np.signbit(found))
        return bool((same | (np.isnan(x) & np.isnan(found))).all())
