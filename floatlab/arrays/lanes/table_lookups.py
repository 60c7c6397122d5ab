"""Look-ups from words of binary32 to codes of formats given by a table: faster than a search, and exact.

A word is the bit pattern of a number, read as an unsigned integer. Its upper bits select a bucket, and each bucket has
an entry. Each class computes its entries from the starts of `table_segments`; a start is the first word that is rounded
to a code. A few "open" buckets have no correct entry; a binary search finds the codes of their words. The compiled
forms are in _kernels/table.h.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

from floatlab.arrays.lanes.parameters import SINGLE, RoundingRule
from floatlab.arrays.lanes.table_segments import search, segments
from floatlab.arrays.types import Array

# The entry of an open binade; the entry of an open bucket has the same top bit.
_OPEN_ENTRY = np.uint64(1 << 63)
# An entry of `WideLookup` contains the height of a straight line as a fixed-point number with _FRACTION bits after the
# binary point, as in _kernels/table.h. The bit before the binary point is bit _POINT of the entry.
_FRACTION = 26
_POINT = _FRACTION + 16
_MOST_RANK = (1 << 15) - 1
_MAGNITUDE = 0x7FFFFFFF  # of binary32


class NarrowLookup:
    """A look-up of codes of up to 8 bits.

    A bucket is a range of words. The entry of a bucket has a word (the start) and two codes: one code for the words
    below the start, and one code for all other words.
    """

    def __init__(self, rule: RoundingRule) -> None:
        """Split the words into buckets by as few significand bits as possible.

        A start is the first word that is rounded to a code. A bucket of normal numbers has at most one start. A bucket
        of subnormal numbers covers many binades, so it may have several starts; a search then finds the codes of its
        words. If seven significand bits are too few, `entries` stays empty.
        """
        self.rule, self.entries = rule, np.empty(0, np.uint64)
        for bits in range(1, 8):
            self.shift = SINGLE.trailing_bits - bits
            firsts = np.arange(1 << (8 + bits), dtype=np.int64) << self.shift
            halves = []
            for negative in (False, True):
                of_sign = segments(rule, negative)
                starts = of_sign.starts.astype(np.int64)
                at = np.searchsorted(starts, firsts, "right") - 1
                last = np.searchsorted(starts, firsts + (1 << self.shift) - 1, "right") - 1
                edges = np.where(last > at, starts[last] - firsts, (1 << 32) - 1)
                opened = (last > at) & (starts[np.minimum(at + 1, len(starts) - 1)] != starts[last])
                if opened[1 << bits :].any():
                    break
                below, above = (of_sign.codes[each].astype(np.uint64) for each in (at, last))
                entries = edges.astype(np.uint64) | below << np.uint64(32) | above << np.uint64(48)
                halves.append(entries | opened.astype(np.uint64) << np.uint64(63))
            else:
                self.entries = np.concatenate(halves)
                return

    def compiled(self, kernels: ModuleType) -> Callable[[Array, Array], None]:
        """Return a compiled function that rounds binary32 numbers (as bit patterns), and writes the codes."""

        def look_up(words: Array, codes: Array) -> None:
            if kernels.look_up_narrow(words, self.entries, codes, self.shift):
                here = np.flatnonzero(self.entries.take(words >> np.uint32(self.shift)) >> np.uint64(63))
                codes[here] = search(self.rule, words[here])[0]

        return look_up

    def plain(self) -> Callable[[Array, Array], None]:
        """Return the same function as `compiled`, in NumPy.

        The function looks up the code by the upper 16 bits of the word. If these bits do not determine the code, a
        search finds the code.
        """
        rule = self.rule
        # An index is the upper 16 bits of a word; its last bit is also set if any of the lower 16 bits of the word is
        # set. So an even index stands for a single word. An odd index stands for all words between the words of the
        # two neighbouring even indices.
        evens = np.arange(0, 1 << 16, 2, dtype=np.uint32) << np.uint32(16)
        at, after, last = (search(rule, evens + np.uint32(more))[0] for more in (0, 1, (1 << 17) - 1))
        table = np.stack([at, after], axis=1).reshape(-1)
        is_open = np.stack([np.zeros(len(evens), bool), after != last], axis=1).reshape(-1)
        has_open = bool(is_open.any())

        def look_up(words: Array, to: Array) -> None:
            places = words & np.uint32(0xFFFF)
            places += np.uint32(0xFFFF)  # carries into bit 16 if any low bit is set
            places >>= np.uint32(16)
            places |= words >> np.uint32(16)
            table.take(places, out=to, mode="clip")
            if has_open:
                here = np.flatnonzero(is_open.take(places, mode="clip"))
                to[here] = search(rule, words[here])[0]

        return look_up


def _wide_starts(rule: RoundingRule, negative: bool) -> Array | None:
    """Return the first word that is rounded to rank 1, the first that is rounded to rank 2, …, and the first for NaR.

    The words are those of one sign, without their sign bit. The ranks are the codes of positive numbers; NaR is the
    single NaN of posits and takums. The result is None unless infinity is rounded to NaR or to the largest number.
    """
    of_sign, most, inf = segments(rule, negative), (1 << 15) - 1, SINGLE.infinity_magnitude
    infinity, nan = of_sign.codes[-2:]
    if infinity not in (nan, of_sign.codes[most]):
        return None
    return np.append(of_sign.starts[1 : most + 1].astype(np.int64), inf if infinity == nan else inf + 1)


class BinadeLookup:
    """A look-up of 16-bit codes in two's complement, with one entry for each sign and exponent of binary32.

    A start is the first word that is rounded to a code; in each binade, the starts must be evenly spaced. A rank is the
    code of a magnitude. An entry holds the rank at the beginning of the binade, an addend, a right shift, and a flag.
    The addend is added to the trailing significand of a word, the sum is shifted to the right, and the rank of the
    entry is added. This gives the rank of the word. If the flag is set, and truncating the significand would give an
    odd rank, 1 more is added before the shift.
    """

    shift = SINGLE.trailing_bits

    def __init__(self, rule: RoundingRule) -> None:
        """Find the entry of each binade.

        `entries` stays empty if `_wide_starts` returns None, or if no entry gives the right codes of some binade of
        normal numbers.
        """
        self.rule, entries = rule, []
        for negative in (False, True):
            starts = _wide_starts(rule, negative)
            if starts is None:
                break
            for field in range(1 << SINGLE.exponent_bits):
                low, high = np.searchsorted(starts, [field << self.shift, (field + 1) << self.shift], "right")
                last = np.searchsorted(starts, (field + 1) << self.shift)
                entry = self._fit(int(low), starts[low : min(last, high)] - (field << self.shift))
                if entry is None and field:
                    break
                entries.append(_OPEN_ENTRY if entry is None else entry)
        complete = len(entries) == 2 << SINGLE.exponent_bits
        self.entries = np.array(entries if complete else [], np.uint64)

    def _fit(self, base: int, offsets: Array) -> int | None:
        """Return the entry of a binade, or None if no entry gives the right codes.

        `base` is the rank at the beginning of the binade. `offsets` are the first words of the codes inside the binade,
        counted from the first word of the binade.
        """
        count = max(len(offsets), 1)
        shift = self.shift - (count.bit_length() - 1)
        unit = 1 << shift
        ways = [(unit - int(offsets[0]) if len(offsets) else 0, 0), ((unit >> 1) - 1, 1)]
        steps = np.arange(len(offsets))
        for add, odd in ways if count & (count - 1) == 0 else ():
            at, before = (m + add + ((base + (m >> shift)) & odd) >> shift for m in (offsets, offsets - 1))
            if (at == steps + 1).all() and (before == steps).all() and (0 <= add < 1 << 24):
                return add | shift << 24 | odd << 29 | base << 32
        return None

    def _settle(self, words: Array, codes: Array) -> None:
        here = np.flatnonzero(self.entries.take(words >> np.uint32(self.shift)) == _OPEN_ENTRY)
        codes[here] = search(self.rule, words[here])[0]

    def compiled(self, kernels: ModuleType) -> Callable[[Array, Array], None]:
        """Return a compiled function that rounds binary32 numbers (as bit patterns), and writes the codes."""

        def look_up(words: Array, codes: Array) -> None:
            if kernels.look_up_binades(words, self.entries, codes, self.shift):
                self._settle(words, codes)

        return look_up

    def plain(self) -> Callable[[Array, Array], None]:
        """Return the same function as `compiled`, in NumPy."""
        parts = [(0, 24), (24, 5), (29, 1), (32, 16)]
        add, shift, odd, base = (
            (self.entries >> np.uint64(low) & np.uint64((1 << bits) - 1)).astype(np.uint32) for low, bits in parts
        )
        opened = self.entries == _OPEN_ENTRY
        has_open, has_odd = bool(opened.any()), bool(odd.any())

        def look_up(words: Array, codes: Array) -> None:
            fields = words >> np.uint32(self.shift)
            m = words & np.uint32((1 << self.shift) - 1)
            ranks, by = base.take(fields, mode="clip"), shift.take(fields, mode="clip")
            if has_odd:
                parity = (m >> by) + ranks
                parity &= odd.take(fields, mode="clip")
                m += parity
            m += add.take(fields, mode="clip")
            m >>= by
            ranks += m
            minus = (words.view(np.int32) >> np.int32(31)).view(np.uint32)
            ranks ^= minus
            ranks -= minus
            np.copyto(codes, ranks, casting="unsafe")
            if has_open and len(here := np.flatnonzero(opened.take(fields, mode="clip"))):
                codes[here] = search(self.rule, words[here])[0]

        return look_up


class WideLookup:
    """A look-up of 16-bit codes in two's complement.

    A bucket is a range of words, and a rank is the code of a magnitude. In each bucket, a straight line gives the rank
    of a word, or a number that is 1 too small. A comparison with a start (the first word that is rounded to a code)
    decides between the two. If no line fits a bucket, a search finds the codes of the words.
    """

    shift = 16

    def __init__(self, rule: RoundingRule) -> None:
        """Fit a straight line to the ranks in each bucket of words.

        The line gives a number k for each word. If the word is at least the start with index k (counted from 0), the
        rank of the word is k + 1, otherwise k. `starts` stays empty if `_wide_starts` returns None.
        """
        self.rule, self.starts = rule, np.empty(0, np.uint32)
        both = [each for negative in (False, True) if (each := _wide_starts(rule, negative)) is not None]
        if len(both) < len((False, True)):
            return
        # The second half of `starts` belongs to negative numbers. Their entries refer to it only if these starts differ
        # from those of positive numbers.
        side = 0 if np.array_equal(both[0], both[1]) else 1 << _POINT + 15
        self.entries = np.concatenate([self._lines(starts) for starts in both])
        self.entries[len(self.entries) // 2 :] += np.uint64(side)
        self.starts = np.concatenate(both).astype(np.uint32)

    def _lines(self, starts: Array) -> Array:
        """Return the entries for numbers of one sign: the height and slope of the line in each bucket.

        The line of a bucket is checked at the first word of each code that begins inside the bucket, and at the word
        before it. If a line fails the check, a search finds the codes of its bucket.
        """
        firsts = np.arange(1 << (31 - self.shift), dtype=np.int64) << self.shift
        base = np.searchsorted(starts, firsts, "right")
        bucket = starts >> self.shift
        offset, step = starts - firsts[bucket], np.arange(len(starts))
        inside = offset > 0
        bucket, offset, step = bucket[inside], offset[inside], step[inside]
        count = np.bincount(bucket, minlength=len(firsts))
        low, high = np.full(len(firsts), 1 << 32), np.zeros(len(firsts), np.int64)
        np.minimum.at(low, bucket, offset)
        np.maximum.at(high, bucket, offset)
        several = count > 1
        slopes, heights = np.zeros(len(firsts), np.int64), np.minimum(base, _MOST_RANK) << _FRACTION
        slopes[several] = (count[several] - 1 << _FRACTION) // np.maximum(high - low, 1)[several]
        heights[count > 0] += 1 << (_FRACTION - 1)  # at each start, the line should be halfway between two integers
        heights[several] -= slopes[several] * low[several]
        at, before = (heights[bucket] + slopes[bucket] * each >> _FRACTION for each in (offset, offset - 1))
        opened = (slopes >= 1 << 16) | (heights < 0)
        opened[bucket[(at < step) | (at > step + 1) | (before < step - 1) | (before > step)]] = True
        last = heights + slopes * ((1 << self.shift) - 1) >> _FRACTION
        opened |= last > np.minimum(base + count, _MOST_RANK)
        opened |= (heights >> _FRACTION) < base - 1
        lines = np.where(opened, base << _POINT | count, heights << 16 | slopes).astype(np.uint64)
        return lines | np.where(opened, _OPEN_ENTRY, np.uint64(0))

    def compiled(self, kernels: ModuleType) -> Callable[[Array, Array], None]:
        """Return a compiled function that rounds binary32 numbers (as bit patterns), and writes the codes."""

        def look_up(words: Array, codes: Array) -> None:
            kernels.look_up_wide(words, self.entries, self.starts, codes, self.shift)

        return look_up

    def plain(self) -> Callable[[Array, Array], None]:
        """Return the same function as `compiled`, in NumPy."""
        heights, slopes = self.entries >> np.uint64(16), self.entries & np.uint64((1 << 16) - 1)
        opened = self.entries >= _OPEN_ENTRY
        has_open = bool(opened.any())
        below = np.uint32((1 << self.shift) - 1)

        def look_up(words: Array, codes: Array) -> None:
            bucket = words >> np.uint32(self.shift)
            place = slopes.take(bucket, mode="clip")
            place *= words & below
            place += heights.take(bucket, mode="clip")
            place >>= np.uint64(_FRACTION)
            ranks = place.astype(np.uint16)
            reached = words & np.uint32(_MAGNITUDE) >= self.starts.take(ranks, mode="clip")
            ranks &= np.uint16(_MOST_RANK)
            ranks += reached
            minus = (words.view(np.int32) >> np.int32(31)).astype(np.uint16)
            ranks ^= minus
            np.subtract(ranks, minus, out=codes)
            if has_open and len(here := np.flatnonzero(opened.take(bucket, mode="clip"))):
                codes[here] = search(self.rule, words[here])[0]

        return look_up
