"""Rounds an original with the scales of a quantised weight, and compares the resulting codes with the stored codes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import BLOCK, ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.rerounding.blocks import Piece, factors_of
from floatlab.auditing.rerounding.grids import CodeGrid, OpenGrid, indices
from floatlab.record import Record

# Up to this distance from a tie, a number may be rounded to either side: _COARSE times the number plus _FINE times the
# step of the code. A quantiser may compute in bfloat16, or divide by a scale that is not yet rounded. `CodeAgreement`
# defines far and nearest codes, and bad blocks.
_COARSE = 2.0**-7
_FINE = 1e-5
_SIZE = 16  # elements of a block; a row whose length is no multiple of this is one block
# In a bad block, the sum of the squared errors of far codes exceeds this share of the original's sum of squares.
_BAD = 0.1
_SHORTEST = 16  # `bad_rows` has no rows shorter than this
_FEW_FAR = 1e-3  # if more than this share of the codes is far, the codes do not belong to the original
_NEAREST = 0.99  # if at least this share of the codes is nearest, the weight was rounded to nearest
# Error feedback (GPTQ) adds the error of a number to later numbers of its row. Then at least 0.5 of the codes are
# nearest, at most 0.15 are far, and at most 0.5 of the blocks have only nearest codes.
_FED_BACK = 0.5, 0.15, 0.5
_LOCAL = 0.2  # damage is local if at most this share of the blocks is wrong
_FEW_BAD = 0.1  # if at most this share of the blocks is bad and all other codes are nearest, no errors were fed back
_LARGE = 0.12  # like _BAD, but for `other_blocks` (see `CodeAgreement`)
# After directed or stochastic rounding, more than this share of the codes is nearest; with a wrong scale, less.
_ALL_NEXT = 0.4
# A code is deep if it is more than _DEEP_FROM steps from the original, but not far. After directed or
# stochastic rounding, at least the share _DEEP of the codes that are not nearest is deep; after noise, a smaller share.
_DEEP, _DEEP_FROM = 0.08, 0.75
# An odd block is a multiple of the original, so most of its codes are not nearest. The factor is above _ODD_FACTOR or
# below its reciprocal, and the cosine is above _ODD_COSINE. Scales below the share _TINY of the largest one may be
# subnormal, and so inexact; their blocks are skipped.
_ODD_FACTOR, _ODD_COSINE, _TINY = 1.25, 0.9, 2.0**-12
# The numbers that share a scale are clipped by a wrong scale if more than half of them are beyond the outermost codes,
# and their relative error exceeds _CLIPPED. OCP's rule for MX leaves at most 0.25.
_CLIPPED = 0.3
_MOST_CLIPPED = 0.3  # if more than this share of the numbers is clipped, error feedback may explain any error
_MOST_ROWS = 1 << 12  # the largest length of `bad_rows`
# Indices of `_Tally.counts`.
_FAR, _BAD_BLOCKS, _OTHER_BLOCKS, _IN_BAD, _PUSHED_BLOCKS, _DEEP_CODES, _ODD_BLOCKS, _IN_ODD, _HEAVY_BLOCKS = (
    2,
    *range(7, 15),
)
_CLIPPED_BLOCKS = 15


class CodeAgreement(Record):
    """Counts that compare the codes of a weight with its original, divided by the stored scales.

    Of the `elements`, `nearest` have the code that rounding the original to nearest gives. Each number of the original
    lies between two codes; `far` elements have neither of these two codes. `clipped` counts numbers of the original
    that are beyond the outermost code and were rounded to it. `flushed` counts numbers that are not 0 but have the code
    of 0.

    A block has 16 elements of a row. Of the `blocks`, `exact_blocks` have only nearest codes, and `bad_blocks` have far
    codes that cause a large error. `stray` counts far codes outside of bad blocks. `pushed_blocks` counts bad blocks
    whose far codes may come from error feedback, which adds the error of an element to the next elements of its row.
    These are blocks in rows in which clipping causes much of the error, and blocks that have only very small numbers.
    `other_blocks` counts bad blocks that hold multiples of the original, or unrelated numbers.

    `deep` counts codes that are not far, but more than 0.75 steps from the original. `odd_blocks` counts blocks that
    are multiples of the original, and in which most codes are not nearest. `in_odd` counts the codes in odd blocks that
    are not nearest. `heavy_blocks` counts those `other_blocks` whose errors are too large for error feedback. In each
    of the `clipped_blocks`, the scale is so small that more than half of the numbers with this scale are beyond the
    outermost codes.

    `bad_rows` has the indices of rows whose numbers do not resemble the original.
    """

    elements: int
    nearest: int
    far: int
    clipped: int
    flushed: int
    bad_blocks: int
    bad_rows: tuple[int, ...]
    blocks: int
    exact_blocks: int
    other_blocks: int
    stray: int
    pushed_blocks: int
    deep: int = 0
    odd_blocks: int = 0
    in_odd: int = 0
    heavy_blocks: int = 0
    clipped_blocks: int = 0

    @property
    def belongs(self) -> bool:
        """Whether rounding the original with the stored scales, in any direction, may give these codes."""
        return not self.bad_blocks and not self.bad_rows and self.far <= _FEW_FAR * self.elements

    @property
    def is_nearest(self) -> bool:
        """Whether rounding the original to nearest with the stored scales gives these codes."""
        return self.belongs and self.nearest >= _NEAREST * self.elements

    @property
    def is_locally_wrong(self) -> bool:
        """Whether a few blocks are wrong, but all other codes follow from the original."""
        is_local = 0 < self.other_blocks <= _LOCAL * self.blocks and self.stray <= _FEW_FAR * self.elements
        return (
            is_local
            and 2 * self.other_blocks > self.bad_blocks - self.pushed_blocks
            and self.nearest >= _ALL_NEXT * self.elements
        )

    @property
    def is_nearest_elsewhere(self) -> bool:
        """Whether nearly all codes are nearest to the original, apart from a few bad blocks.

        If so, there was no error feedback: a quantiser with error feedback, such as GPTQ, adds the error of one element
        to the next elements, and these then get other codes.
        """
        others = self.elements - self.nearest - _SIZE * self.bad_blocks
        return self.bad_blocks <= _FEW_BAD * self.blocks and others <= (1 - _NEAREST) * self.elements

    @property
    def is_directed(self) -> bool:
        """Whether the codes are as expected after rounding to nearest, directed rounding or stochastic rounding.

        This test is stricter than `belongs`: in addition, a share of at least `_ALL_NEXT` of the codes must be nearest,
        and one of two conditions must hold. Either nearly all codes are nearest (`is_nearest`), or, of the codes that
        are not nearest, at least the share `_DEEP` is deep.
        """
        is_possible = self.belongs and self.nearest >= _ALL_NEXT * self.elements
        return is_possible and (self.is_nearest or self.deep >= _DEEP * (self.elements - self.nearest))

    @property
    def has_odd_blocks(self) -> bool:
        """Whether a few blocks are multiples of the original (odd blocks), and nearly all other codes are nearest."""
        others = self.elements - self.nearest - self.in_odd
        return 0 < self.odd_blocks <= _LOCAL * self.blocks and others <= (1 - _NEAREST) * self.elements

    @property
    def is_fed_back(self) -> bool:
        """Whether errors may have been fed back, as in GPTQ.

        This is possible if at least half of the codes are nearest, few codes are far, no row is bad, and at least half
        of the blocks have a code that is not nearest.
        """
        is_rounded = self.share(self.nearest) >= _FED_BACK[0] and self.share(self.far) <= _FED_BACK[1]
        return is_rounded and not self.bad_rows and self.exact_blocks <= _FED_BACK[2] * self.blocks

    @property
    def may_be_pushed(self) -> bool:
        """Whether error feedback may explain all bad blocks, because numbers are clipped or very small."""
        if self.share(self.clipped) > _MOST_CLIPPED:
            return True
        is_possible = self.pushed_blocks > 0 and not self.other_blocks and not self.bad_rows
        return is_possible and self.share(self.nearest) >= _FED_BACK[0]

    def share(self, count: int) -> float:
        """Return a count as a share of the elements."""
        return count / max(self.elements, 1)


def agreement(read: ArraySource, original: ArraySource, grid: CodeGrid, most: int | None = None) -> CodeAgreement:
    """Count how many codes of a weight agree with its original; `most` limits the number of elements.

    If a weight never uses an outermost code, such as −128, numbers are clipped at the outermost code that occurs.
    """
    found = _compared(read, original, grid, most)
    elements, near, far, clipped, flushed, blocks, exact_blocks, *of_blocks = found.counts.tolist()
    bad_blocks, other_blocks, inside, pushed_blocks, deep, odd_blocks, in_odd, heavy, cut = of_blocks
    return CodeAgreement(
        elements=elements, nearest=near, far=far, clipped=clipped, flushed=flushed, bad_blocks=bad_blocks,
        bad_rows=tuple(found.rows), blocks=blocks, exact_blocks=exact_blocks, other_blocks=other_blocks,
        stray=far - inside, pushed_blocks=pushed_blocks, deep=deep, odd_blocks=odd_blocks, in_odd=in_odd,
        heavy_blocks=heavy, clipped_blocks=cut,
    )  # fmt: skip


def nearest_by_column(read: ArraySource, original: ArraySource, grid: CodeGrid, most: int) -> Array | None:
    """Return four counts for each column of the original.

    The counts are those of zeros, zeros with nearest codes, nonzero numbers, and nonzero numbers with nearest codes.
    """
    return _compared(read, original, grid, most, by_column=True).columns


def _compared(
    read: ArraySource, original: ArraySource, grid: CodeGrid, most: int | None, by_column: bool = False
) -> _Tally:
    values = grid.values
    with grid.open() as opened, np.errstate(all="ignore"):
        found = _counted(read, original, opened, values, most, by_column)
        low, high = found.lowest, found.highest
        if found.counts[_FAR] and (low, high) != (0, len(values) - 1):
            # Keep the codes on both sides of 0: if all codes are 0, all numbers would otherwise count as clipped.
            middle = int(indices(values, np.zeros(1))[0]) if grid.lowest is None else len(values) // 2
            low, high = min(low, max(middle - 1, 0)), max(high, min(middle + 1, len(values) - 1))
            found = _counted(read, original, opened, values[low : high + 1], most, by_column)
    return found


def _counted(
    read: ArraySource, original: ArraySource, opened: OpenGrid, values: Array, most: int | None, by_column: bool
) -> _Tally:
    """Compare a weight with its original, rounded to `values` (the numbers of the possible codes); return the tally."""
    length = max(read.shape[-1], 1) if read.shape else 1
    total = read.size if most is None else min(read.size, most)
    if length <= BLOCK:  # whole rows
        total = max(total // length, 1) * length
    step = BLOCK // length * length if length <= BLOCK else BLOCK
    tally = _Tally(values, length, by_column, opened.may_vanish)
    for first in range(0, total, step):
        count = min(step, total - first)
        q, x = (native(each.read(first, count)) for each in (read, original))
        tally.add(first, q, x, *opened.scales(first, count))
    return tally


class _Tally:
    """Computes the counts of `CodeAgreement`, piece by piece. `values` are the numbers of all codes, ascending.

    The comparison is computed in binary32, whose rounding errors are far smaller than the tolerance.
    """

    def __init__(self, values: Array, length: int, by_column: bool = False, may_vanish: bool = True) -> None:
        self.values, self.length, self.may_vanish = values.astype(np.float32), length, may_vanish
        middle, end = (self.values[1:] + self.values[:-1]) / 2, np.array([np.inf], np.float32)
        # Each code's neighbours, and the limits between which numbers are rounded to it.
        self.below, self.above = np.append(-end, self.values[:-1]), np.append(self.values[1:], end)
        self.least, self.largest = np.append(-end, middle), np.append(middle, end)
        self.gap = np.minimum(self.above - self.values, self.values - self.below)
        self.size = _SIZE if length % _SIZE == 0 else min(length, BLOCK)
        self.index = _index_by_half(values.tobytes())
        self.last, self.step = len(values) - 1, float(np.diff(self.values).min(initial=np.inf))
        self.lowest, self.highest = self.last, 0
        self.counts = np.zeros(16, np.int64)
        self.columns = np.zeros((4, length), np.int64) if by_column else None
        self.rows: list[int] = []

    def add(self, first: int, q: Array, x: Array, scale: Array, offset: Array | float) -> None:
        """Compare a piece of a weight, q, with the same piece of its original, x, and add to the counts."""
        x = x.astype(np.float64, copy=False)
        there = scale != 0
        inverse = 1 / scale
        if not there.all():
            inverse = np.where(there, inverse, 0.0)
        part, shift = x * inverse, offset * inverse
        place = (part - shift).astype(np.float32)
        if not there.all():
            # A scale becomes 0 if it is at most half of the smallest scale that its type has.
            smallest = np.abs(scale[there]).min() if there.any() and self.may_vanish else 0.0
            is_small = np.abs(x) <= smallest * np.abs(self.values).max() / 2
            place = np.where(there | is_small, place, np.float32(np.inf))
        at = self.index[(q * inverse - shift).astype(np.float16).view(np.uint16)]
        self.lowest, self.highest = min(self.lowest, int(at.min())), max(self.highest, int(at.max()))
        slack = np.abs(part, dtype=np.float32, casting="same_kind") * np.float32(_COARSE) + self.gap[at] * _FINE
        if np.isinf(slack).any():  # a tiny scale; the difference of two infinities would be NaN
            slack = np.minimum(slack, np.finfo(np.float32).max)
        top, bottom = place + slack, place - slack
        near = (top >= self.least[at]) & (bottom <= self.largest[at])
        far = (top < self.below[at]) | (bottom > self.above[at])
        known = np.isfinite(x) & np.isfinite(q)
        if not known.all():
            near, far = near & known, far & known
        ends = np.flatnonzero((at == 0) | (at == len(self.values) - 1))
        outwards = (place[ends] - self.values[at[ends]]) * np.where(at[ends] == 0, np.float32(-1), np.float32(1))
        clipped = outwards > self.gap[at[ends]] / 2
        is_cut = clipped & ~far[ends] & known[ends]
        self.counts += np.array(
            [
                np.count_nonzero(known),
                np.count_nonzero(near),
                np.count_nonzero(far),
                np.count_nonzero(is_cut),
                np.count_nonzero(x[q == 0]),
                len(near) // self.size,
                np.count_nonzero(near.reshape(-1, self.size).all(axis=1)) if len(near) % self.size == 0 else 0,
                *(0,) * 9,
            ]
        )
        if (~near & known).any():
            self._count_others(q, x, scale, place, at, known & ~near, far)
        if np.count_nonzero(is_cut) > self.size / 2:
            self._count_clipped(q, x, scale, known, ends[is_cut])
        if self.columns is not None:
            used, zero = known & (x != 0), known & (x == 0)
            kinds = (zero, zero & near, used, used & near)
            self.columns += [each.reshape(-1, self.length).sum(axis=0) for each in kinds]
        if far.any():
            within = np.clip(place, self.values[0], self.values[-1]) * scale + offset
            within = np.where(known, np.where(there, within, x), 0.0)
            is_clipped = np.zeros(len(far), bool)
            is_clipped[ends] = clipped
            size = self.size if len(q) % self.size == 0 else len(q)
            piece = Piece(
                np.where(known, q, 0.0), np.where(known, x, 0.0), within, part, far, (at > 0) & (at < self.last),
                is_clipped, size, self.length if self.length <= BLOCK else len(q),
            )  # fmt: skip
            self._judge(first, piece)

    def _count_others(
        self, q: Array, x: Array, scale: Array, place: Array, at: Array, other: Array, far: Array
    ) -> None:
        """Count deep codes and odd blocks (see `CodeAgreement`); `other` marks the codes that are not nearest."""
        step = np.where(place > self.values[at], self.above[at] - self.values[at], self.values[at] - self.below[at])
        self.counts[_DEEP_CODES] += np.count_nonzero(
            other & ~far & (np.abs(place - self.values[at]) > _DEEP_FROM * step)
        )
        if len(q) % self.size:
            return
        others = np.count_nonzero(other.reshape(-1, self.size), axis=1)
        scales = np.abs(np.broadcast_to(scale, q.shape)).reshape(-1, self.size).max(axis=1)
        chosen = np.flatnonzero((2 * others > self.size) & (scales >= _TINY * scales.max()))
        factor, cosine = factors_of(*(each.reshape(-1, self.size)[chosen] for each in (q, x)))
        is_odd = ((factor > _ODD_FACTOR) | (factor < 1 / _ODD_FACTOR)) & (cosine > _ODD_COSINE)
        self.counts[_ODD_BLOCKS] += np.count_nonzero(is_odd)
        self.counts[_IN_ODD] += others[chosen[is_odd]].sum()

    def _count_clipped(self, q: Array, x: Array, scale: Array, known: Array, places: Array) -> None:
        """Count the blocks whose scale clips most of their numbers; `places` has the indices of the clipped numbers."""
        scales = np.broadcast_to(scale, q.shape)
        rows = scales.reshape(-1, self.length) if len(q) % self.length == 0 else scales.reshape(1, -1)
        size = self.size if len(q) % self.size == 0 else len(q)
        if (scales == scales[0]).all():
            size = len(q)
        elif (rows == rows[:, :1]).all():
            size = rows.shape[1]
        shares = np.bincount(places // size, minlength=len(q) // size) / size
        error, own = (np.where(known, each, 0.0).reshape(-1, size) for each in (q - x, x))
        is_large = np.square(error).sum(axis=1) > _CLIPPED**2 * np.square(own).sum(axis=1)
        self.counts[_CLIPPED_BLOCKS] += np.count_nonzero((shares > 0.5) & is_large) * max(size // self.size, 1)

    def _judge(self, first: int, piece: Piece) -> None:
        """Count bad blocks and rows of a piece."""
        wrong, own = piece.by_block(np.where(piece.far, piece.q - piece.within, 0.0)), piece.by_block(piece.within)
        multiple = piece.multiples()
        bad = (wrong > _BAD * own) | multiple
        if not bad.any():
            return
        small, pushed = piece.small(self.step), piece.pushed() & ~multiple
        pushed |= small
        other = (wrong > _LARGE * own) & ~pushed
        other[other] = ~piece.is_still_there(other)
        other |= multiple & ~pushed
        heavy = other & piece.heavy(float(np.diff(self.values).max(initial=0)))
        self.counts[[_BAD_BLOCKS, _OTHER_BLOCKS, _IN_BAD, _PUSHED_BLOCKS, _HEAVY_BLOCKS]] += [
            np.count_nonzero(bad),
            np.count_nonzero(other),
            np.count_nonzero(piece.far.reshape(-1, piece.size)[bad]),
            np.count_nonzero(bad & pushed),
            np.count_nonzero(heavy),
        ]
        if piece.length < _SHORTEST:
            return
        for row in piece.bad_rows(bad & ~pushed).tolist():
            at = first // self.length + row
            if at not in self.rows[-1:] and len(self.rows) < _MOST_ROWS:
                self.rows.append(at)


@lru_cache(maxsize=16)
def _index_by_half(octets: bytes) -> Array:
    """Return, for each binary16 code, the index of the nearest number among the float64 numbers in `octets`."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float64)
    return indices(np.frombuffer(octets), np.where(np.isnan(every), 0.0, every)).astype(np.int16)
