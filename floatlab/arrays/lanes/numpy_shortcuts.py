"""The fast path of the NumPy lane: rounds a chunk of an array in about a dozen NumPy calls.

The time depends mainly on the number of calls. Adding a suitable power of two to a float rounds the float. Let x be a
float to be rounded, T the number of its trailing significand bits, u the unit in the last place at |x| of the format
into which x is rounded, and M = 2^T·u. The floats near M + |x| are the multiples of u. The processor's sum is therefore
M + r, where r is |x| rounded to nearest even. The bits of the sum minus the bits of M, as integers, are the kept bits.
The kept bits and the exponent of M give the code of the result. The difference (M + r) − M is exact; comparing r with
|x| gives the flag *inexact*, and the results in the other rounding directions. If the format has the exponent range of
the source, every number is rounded at the same bit. Integer operations are then faster.

Rare elements (such as NaNs, infinities and overflows to a NaN) are collected, and the general path,
`numpy_rounding.encode_block`, rounds them. A *word* is the bit pattern of a binary32 or binary64 number, read as an
unsigned integer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from floatlab.arrays.lanes.parameters import RoundingRule, Settled
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.numbers import Direction, Flags, Tininess

Draws = Callable[[int, int], Array]  # (first, count) -> draws
Slow = Callable[[Array, Array | None], tuple[Array, Array]]  # (words, draws) -> (codes, flags)

_BYTES = 1 << 17  # bytes of a chunk that are processed at a time, so that a few arrays of this size stay in the cache
_ASIDE = 1 << 13  # the number of elements per call of the general path
_INEXACT, _UNDERFLOW = Flags.INEXACT.value, Flags.UNDERFLOW.value


def has_fast_path(rule: RoundingRule) -> bool:
    """Return whether the fast path supports this rounding."""
    source, fmt, context = rule.source, rule.format, rule.context
    flushes = context.flush_inputs or context.flush_results
    plain = not (rule.lift or flushes or rule.refuses) and fmt.width <= source.width
    if rule.low == 1 or not plain:
        return plain
    # The powers of two that are added, and their units in the last place, must be normal numbers. The processor breaks
    # ties by the parity of the significand. This equals the parity of the code unless the precision is 1.
    largest = fmt.emax + 1 + source.bias + rule.cut
    least = rule.low + rule.cut - source.trailing_bits - 1
    by_digits = fmt.trailing_bits > 0 or rule.direction is not Direction.RNE
    return rule.cut > 0 and by_digits and least > 0 and largest < (1 << source.exponent_bits) - 1


def _known(settled: Settled) -> tuple[int, int]:
    assert not isinstance(settled, UnsupportedError)  # contexts that raise errors take the general path
    return settled[0], settled[1].value


class FastRounder:
    """Rounds chunks of an array by the fast path; `draws` gives random draws, and `slow` is the general path."""

    def __init__(self, rule: RoundingRule, draws: Draws, slow: Slow) -> None:
        """Compute everything that is the same for all chunks."""
        source, fmt = rule.source, rule.format
        self.rule, self.draws, self.slow, self.direction = rule, draws, slow, rule.direction
        self.signed, self.zero, self.full = fmt.signed, fmt.zero, rule.low << source.trailing_bits
        self.t, self.cut, self.low, self.alike = source.trailing_bits, rule.cut, rule.low, rule.low == 1
        self.word: Any = np.int32 if source.width == 32 else np.int64
        self.float: Any = np.float32 if source.width == 32 else np.float64
        self.width, self.sign = source.width, 1 << (fmt.width - 1)
        self.special = source.infinity_magnitude
        self.largest = rule.largest
        self.drawn = rule.direction.is_stochastic
        # All words from `beyond` on overflow in every direction. The powers of two to add would be too large for them.
        self.beyond = self.special if self.alike else (fmt.emax + 1 + source.bias) << self.t
        self.limits = self._limits()
        self.negative = None if rule.negative is None else _known(rule.negative)
        _, places, self.tiny = rule.tiny
        self.unit_below = 1 << places  # the unit in the last place below 2^emin with an unbounded exponent range

    def _limits(self) -> tuple[int, int, int] | None:
        """Return the results of overflow: the codes without sign for positive and for negative numbers, and the flags.

        Return None if overflows must take the general path. This is so in three cases: an overflow gives neither the
        largest number nor the code after it; an overflow does not raise *inexact*; or positive and negative overflows
        raise different flags.
        """
        fmt = self.rule.format
        found: list[tuple[int, int]] = []
        for sign, settled in enumerate(self.rule.overflow if self.signed else self.rule.overflow[:1]):
            code, flags = _known(settled)
            magnitude = code - sign * self.sign
            if magnitude not in (fmt.largest_magnitude, fmt.largest_magnitude + 1) or not flags & _INEXACT:
                return None
            found.append((magnitude, flags))
        (positive, flags), (negative, others) = found[0], found[-1]
        return (positive, negative, flags) if flags == others else None

    def __call__(self, words: Array, first: int, codes: Array, flags: Array | None) -> None:
        """Round a chunk of words whose first element has the index `first`."""
        aside: list[tuple[Array, Array, Array | None]] = []
        size = _BYTES // words.itemsize
        for at in range(0, len(words), size):
            piece = words[at : at + size]
            drawn = self.draws(first + at, len(piece)) if self.drawn else None
            seldom = self._round(piece, codes[at : at + size], None if flags is None else flags[at : at + size], drawn)
            if seldom is not None:
                where, given = seldom
                aside.append((where + at, given, None if drawn is None else drawn[where]))
        if not aside:
            return
        where, given = (np.concatenate([each[i] for each in aside]) for i in range(2))
        some = np.concatenate([each[2] for each in aside]) if self.drawn else None
        for at in range(0, len(where), _ASIDE):
            part = slice(at, at + _ASIDE)
            made, made_flags = self.slow(given[part], None if some is None else some[part])
            codes[where[part]] = made
            if flags is not None:
                flags[where[part]] = made_flags

    def _round(
        self, words: Array, codes: Array, flags: Array | None, drawn: Array | None
    ) -> tuple[Array, Array] | None:
        """Round a part of a chunk; return the indices and the words of the elements that need the general path.

        The returned words are copies, since `codes` and `words` may share memory. Return None if no element needs the
        general path.
        """
        whole: Array = words.view(self.word)
        if self.rule.drops_signs:
            whole = whole & self.word((1 << (self.width - 1)) - 1)
        magnitude = whole & self.word((1 << (self.width - 1)) - 1)
        top = int(magnitude.max())
        overflows = top > self.largest
        seldom = self._rare_cases(magnitude, top, flags is not None)
        if top > self.beyond:
            np.minimum(magnitude, self.word(self.beyond), out=magnitude)
        rank, inexact = (self._shifted if self.alike else self._added)(magnitude, whole, drawn, flags is not None)
        if overflows and self.limits is None:
            seldom.append(rank > self.rule.format.largest_magnitude)
        if flags is not None:
            assert inexact is not None
            self._write_flags(flags, inexact, magnitude, whole, rank if overflows else None)
        if overflows and self.limits is not None:
            self._limit(rank, whole)
        if self.signed:
            self._sign(rank, whole)
        elif self.negative is not None:
            below = whole < 0
            below &= rank > 0 if self.zero else magnitude != 0
            np.copyto(rank, self.negative[0], where=below)
            if flags is not None:
                np.copyto(flags, self.negative[1], where=below)
        where = np.flatnonzero(np.logical_or.reduce(seldom)) if seldom else None
        aside = None if where is None or not len(where) else (where, words[where])
        np.copyto(codes, rank, casting="unsafe")
        return aside

    def _rare_cases(self, magnitude: Array, top: int, with_flags: bool) -> list[Array]:
        """Return masks of the numbers that need the general path. `top` is the largest magnitude.

        NaNs and infinities need the general path. If the format has no zero, numbers below 2^emin need it, too. So do
        numbers just below 2^emin if flags are requested, rounding is stochastic, and tininess is detected after
        rounding: a random draw may then decide whether such a number is tiny.
        """
        found = []
        if top >= self.special:
            found.append(magnitude >= self.special)
        if not self.zero:
            found.append(magnitude < self.full)
        if with_flags and self.drawn and self.rule.context.tininess is Tininess.AFTER:
            # A random draw decides whether these numbers round up to 2^emin.
            found.append((magnitude < self.full) & (magnitude >= self.full - self.unit_below))
        return found

    def _added(
        self, magnitude: Array, whole: Array, drawn: Array | None, with_flags: bool
    ) -> tuple[Array, Array | None]:
        """Round by floating-point additions, as the module describes.

        Return the rank (the code without sign) of each result, and a mask of the inexact results.
        """
        x, direction, t = magnitude.view(self.float), self.direction, self.t
        power = magnitude & self.word(((1 << (self.width - 1)) - 1) >> t << t)
        np.clip(power, self.low << t, self.beyond, out=power)
        power += self.word(self.cut << t)
        total = x + power.view(self.float)
        rank = total.view(self.word) - power
        inexact = None
        if with_flags or direction is not Direction.RNE:
            back = np.subtract(total, power.view(self.float), out=total)
            inexact = back != x
            self._correct(rank, x, back, power, whole, drawn)
        power -= self.word((self.low + self.cut) << t)
        power >>= self.word(self.cut)
        rank += power
        if not self.zero:
            rank -= self.word(1)
        if direction is Direction.RTO:
            rank |= inexact
        return rank, inexact

    def _correct(self, rank: Array, x: Array, back: Array, power: Array, whole: Array, drawn: Array | None) -> None:
        """Change ranks that were rounded to nearest even into the ranks for the context's rounding direction.

        A rank is the code of a result without the sign. `back` has the numbers of the given ranks.
        """
        direction = self.direction
        if direction is Direction.RNE:
            return
        if direction is Direction.RNA:
            # Ties that were rounded down: the error is half a unit.
            half = (power - self.word((self.t + 1) << self.t)).view(self.float)
            rank += (x - back) == half
            return
        if direction is Direction.RAZ:
            rank += back < x
            return
        if direction in (Direction.RTP, Direction.RTN):
            away = whole >= 0 if direction is Direction.RTP else whole < 0
            step = (back < x) & away
            rank += step.view(np.int8) - ((back > x) > away).view(np.int8)
            return
        up = back > x
        rank -= up
        if drawn is not None:
            unit = (power - self.word(self.t << self.t)).view(self.float)
            back -= unit * up
            rest = np.subtract(x, back, out=back)
            rest /= unit
            rest *= self.float(2.0**32)
            threshold = rest.astype(np.int64)
            if direction.has_few_bits:
                threshold |= threshold != rest
            rank += drawn < threshold

    def _shifted(
        self, magnitude: Array, whole: Array, drawn: Array | None, with_flags: bool
    ) -> tuple[Array, Array | None]:
        """Return the same results as `_added`, by integer operations; all numbers must be rounded at the same bit."""
        cut, word, direction = self.cut, self.word, self.direction
        unit = 1 << cut
        if not cut:
            return magnitude.copy(), np.zeros(len(whole), bool) if with_flags else None
        inexact = (magnitude & word(unit - 1)) != 0 if with_flags or direction is Direction.RTO else None
        if direction is Direction.RNE:
            rank = magnitude >> word(cut)
            rank &= word(1)
            rank += word(unit // 2 - 1)
            rank += magnitude
        elif direction is Direction.RNA:
            rank = magnitude + word(unit // 2)
        elif direction is Direction.RAZ:
            rank = magnitude + word(unit - 1)
        elif direction in (Direction.RTP, Direction.RTN):
            rank = whole >> word(self.width - 1)  # −1 for negative numbers
            if direction is Direction.RTP:
                np.invert(rank, out=rank)
            rank &= word(unit - 1)
            rank += magnitude
        else:
            rank = magnitude.copy()
        rank >>= word(cut)
        if direction is Direction.RTO:
            rank |= inexact
        if drawn is not None:
            rest = (magnitude & word(unit - 1)).astype(np.int64)
            threshold = rest << 32 - cut if cut <= 32 else rest >> cut - 32
            if cut > 32 and direction.has_few_bits:
                threshold |= (rest & ((1 << (cut - 32)) - 1)) != 0
            rank += drawn < threshold
        return rank, inexact

    def _write_flags(self, flags: Array, inexact: Array, magnitude: Array, whole: Array, rank: Array | None) -> None:
        """Write the flags of finite numbers.

        `rank` holds the codes without sign; it is None if no number overflows.
        """
        positive, negative = self.tiny
        if positive != negative:
            by_sign = whole >> self.word(self.width - 1)
            by_sign &= self.word(positive - negative)
            magnitude = np.add(by_sign, magnitude, out=by_sign)
        tiny = magnitude < self.word(positive)
        tiny &= inexact
        np.multiply(inexact.view(np.uint8), _INEXACT, out=flags)
        np.multiply(tiny.view(np.uint8), _UNDERFLOW, out=tiny.view(np.uint8))
        flags |= tiny.view(np.uint8)
        if rank is not None and self.limits is not None:
            over = (rank > self.word(self.rule.format.largest_magnitude)).view(np.uint8)
            flags |= np.multiply(over, self.limits[2], out=over)

    def _limit(self, rank: Array, whole: Array) -> None:
        assert self.limits is not None
        positive, negative, _ = self.limits
        if positive == negative:
            np.minimum(rank, self.word(positive), out=rank)
            return
        limits = whole >> self.word(self.width - 1)
        limits &= self.word(negative - positive)
        limits += self.word(positive)
        np.minimum(rank, limits, out=rank)

    def _sign(self, rank: Array, whole: Array) -> None:
        fmt = self.rule.format
        sign = whole.view(f"u{whole.itemsize}") >> whole.view(f"u{whole.itemsize}").dtype.type(self.width - fmt.width)
        sign &= sign.dtype.type(self.sign)
        if not fmt.negative_zero:
            sign *= rank != 0
        np.bitwise_or(rank, sign.view(self.word), out=rank)
