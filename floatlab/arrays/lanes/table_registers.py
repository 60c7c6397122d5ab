"""Rounds words of binary32 to codes of up to 8 bits, by tables that fit into vector registers (_kernels/registers.h).

A word is the bit pattern of a number, read as an unsigned integer. A segment is a range of words that are rounded to
the same code, and its start is its first word. Each class computes its tables from the starts, which `table_segments`
finds. On processors without such registers, `table_lookups` gives the same codes.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from floatlab.arrays.lanes.parameters import SINGLE, RoundingRule
from floatlab.arrays.lanes.table_segments import search, segments
from floatlab.arrays.types import Array

_LEVELS = 5  # levels of the binary search, for 31 starts
_KEPT = 7  # the number of significand bits that are used; the last of them is set if any lower bit is set
_NO_PARITY = 8  # added to the shift in binades where rounding does not depend on the parity of the rank
_RANKS = 1 << 7
_SPECIAL, _SUBNORMAL = 1, 2  # bits of the result of look_up_bytes: it met infinities or NaNs; it met subnormal words
_HIDDEN = 1 << SINGLE.trailing_bits
_INFINITY = SINGLE.infinity_magnitude


def _distinct(rule: RoundingRule, negative: bool, end: int) -> tuple[Array, Array]:
    """Return the starts of the segments of one sign, and the codes of these segments.

    A segment is a range of words that are rounded to the same code, and its start is the first of these words. Only
    starts below the word `end` are returned. Empty segments are left out, and neighbouring segments with the same code
    are merged.
    """
    of_sign = segments(rule, negative)
    starts = of_sign.starts.astype(np.int64)
    used = np.append(starts[1:] != starts[:-1], True) & (starts < end)
    starts, codes = starts[used], of_sign.codes[used]
    new = np.append(True, codes[1:] != codes[:-1])
    return starts[new], codes[new]


def _reversed(number: int, bits: int) -> int:
    return int(f"{number:0{bits}b}"[::-1], 2) if bits else 0


class FewLookup:
    """A look-up by binary search, for roundings that have at most 32 segments (both signs together).

    A segment is a range of words that are rounded to the same code.
    """

    def __init__(self, rule: RoundingRule) -> None:
        """Order the segments of both signs by value; if there are more than 32 segments, `table` is empty."""
        self.table = np.empty(0, np.int32)
        end = 1 << (SINGLE.width - 1)
        (below, low), (above, high) = (_distinct(rule, negative, end) for negative in (True, False))
        # The key of a negative word is −1 − magnitude. In this order, a negative segment starts with its largest
        # magnitude.
        starts = np.concatenate([-np.append(below[1:], end)[::-1], above])[1:]
        codes = np.concatenate([low[::-1], high])
        if len(codes) > 1 << _LEVELS:
            return
        full = np.full((1 << _LEVELS) - 1, end - 1)
        full[: len(starts)] = starts
        levels = np.zeros(1 << _LEVELS, np.int32)
        for level in range(_LEVELS):
            for place in range(1 << level):
                levels[(1 << level) + _reversed(place, level)] = full[(2 * place + 1 << _LEVELS - 1 - level) - 1]
        last = len(codes) - 1
        of_places = codes[[min(_reversed(place, _LEVELS), last) for place in range(1 << _LEVELS)]]
        self.table = np.concatenate([levels, of_places.view(np.int32)])

    def compiled(self, kernels: ModuleType) -> Callable[[Array, Array], None]:
        """Return a compiled function that rounds binary32 numbers (as bit patterns), and writes the codes."""

        def look_up(words: Array, codes: Array) -> None:
            kernels.look_up_few(words, self.table, codes, 0)

        return look_up


class ByteLookup:
    """A look-up for roundings with evenly spaced segments in each binade, and with the same segments for both signs.

    A segment is a range of words that are rounded to the same code. The look-up uses only the `_KEPT` leading bits of
    the significand, which must determine the code. A binary search finds the codes of infinities and NaNs. If the
    tables cannot give the codes of subnormal numbers, the search finds these codes, too.
    """

    def __init__(self, rule: RoundingRule) -> None:
        """Find the table entries of each binade.

        `tables` stays empty if the two signs have different segments, if there are too many segments, or if no entries
        give the right codes of a binade of normal numbers.
        """
        self.rule, self.tables, self.searched = rule, np.empty(0, np.uint8), _SPECIAL
        starts, codes = _distinct(rule, False, _INFINITY)
        below, low = _distinct(rule, True, _INFINITY)
        if not np.array_equal(starts, below) or len(starts) > _RANKS:
            return
        # Ranks of the first and of the last word for each exponent and each value of the kept bits.
        kept = np.arange(1 << _KEPT, dtype=np.int64)
        unit = _HIDDEN >> (_KEPT - 1)
        first = np.arange(0, _INFINITY, _HIDDEN)[:, None] + (kept >> 1) * unit + (kept & 1)
        ranks, last = (np.searchsorted(starts, each, "right") - 1 for each in (first, first + (kept & 1) * (unit - 2)))
        if not np.array_equal(ranks[1:], last[1:]):
            return
        tables: Array = np.zeros((4, 256), np.uint8)
        for exponent, of_binade in enumerate(ranks):
            fitted = self._fit(of_binade, kept)
            if fitted is None and exponent:
                return
            if fitted is None or (not exponent and not np.array_equal(of_binade, last[0])):
                self.searched |= _SUBNORMAL
                fitted = 0, _KEPT | _NO_PARITY, 0
            tables[:3, exponent] = fitted
        tables[3, : len(codes)], tables[3, _RANKS : _RANKS + len(low)] = codes, low
        self.tables = tables

    @staticmethod
    def _fit(ranks: Array, kept: Array) -> tuple[int, int, int] | None:
        """Return the entries of a binade: an addend for the kept bits, a right shift, and the binade's first rank.

        The rank of a segment is its index. `_NO_PARITY` is added to the shift if the parity of the rank does not
        matter. The result is None if no such numbers give all ranks of the binade.
        """
        base, steps = int(ranks[0]), np.flatnonzero(np.diff(ranks)) + 1
        if not len(steps):
            return 0, _KEPT | _NO_PARITY, base
        # Directed roundings have one start less, since none lies at the end of a binade.
        for shift in (_KEPT + 1 - len(steps).bit_length(), _KEPT - len(steps).bit_length()):
            unit = 1 << max(shift, 0)
            for add, parity in ((unit - int(steps[0]), 0), ((unit >> 1) - 1, 1)):
                up = parity & (kept >> shift)
                if shift >= 0 and add >= 0 and np.array_equal(base + (kept + add + up >> shift), ranks):
                    return add, shift | (0 if parity else _NO_PARITY), base
        return None

    def compiled(self, kernels: ModuleType) -> Callable[[Array, Array], None]:
        """Return a compiled function that rounds binary32 numbers (as bit patterns), and writes the codes."""

        def look_up(words: Array, codes: Array) -> None:
            found = kernels.look_up_bytes(words, self.tables, codes, 0) & self.searched
            if found:
                fields = words & np.uint32(_INFINITY)
                here = np.flatnonzero((fields == _INFINITY) | (fields == 0 if found & _SUBNORMAL else False))
                codes[here] = search(self.rule, words[here])[0]

        return look_up
