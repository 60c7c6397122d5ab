"""The NumPy lane: splits a chunk of floats into integer fields, rounds the significands, and composes codes.

`numbers.rounding`, which accepts arrays as well as integers, decides how to round. This module is the general path,
which supports all rules. Most numbers take a faster path (`numpy_shortcuts`), or are looked up in a table that the
general path computed.

A *word* is the bit pattern of a binary32 or binary64 number, read as an unsigned integer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from floatlab.arrays.lanes.numpy_shortcuts import FastRounder, has_fast_path
from floatlab.arrays.lanes.parameters import RoundingRule, Settled, container, decoding_rule_for
from floatlab.arrays.types import Array, Reader, Rounder, Work
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Direction, Flags, Tininess
from floatlab.numbers.rounding import STREAM, compared_draw, draw_rule, increments, split, tail

_INEXACT, _UNDERFLOW = Flags.INEXACT.value, (Flags.UNDERFLOW | Flags.INEXACT).value
PIECE = 1 << 16  # elements processed at once, so that intermediate arrays stay in the cache
_FAR = 63  # the largest valid shift of a 64-bit integer


def in_pieces(work: Work) -> Work:
    """Return a function that does `work` on `PIECE` elements at a time.

    The function takes the arguments of `work`: input chunks, index of the first element, output chunk, flags or None.

    >>> lengths = []
    >>> in_pieces(lambda read, first, to, flags: lengths.append((first, len(to))))(range(10**5), 7, range(10**5), None)
    >>> lengths
    [(7, 65536), (65543, 34464)]
    """

    def whole(*given: Any) -> None:
        *blocks, first, to, flags = given
        if len(to) <= PIECE:
            work(*given)
            return
        for at in range(0, len(to), PIECE):
            piece = slice(at, at + PIECE)
            piece_flags = None if flags is None else flags[piece]
            work(*(block[piece] for block in blocks), first + at, to[piece], piece_flags)

    return whole


def draws(seed: int, first: int, count: int) -> Array:
    """Return the random draws of `count` elements from index `first` on, equal to those of `numbers.rounding.draw`."""
    z = np.arange(1, count + 1, dtype=np.uint64)
    z *= np.uint64(STREAM)
    z += np.uint64((seed + first * STREAM) % (1 << 64))
    other = z >> np.uint64(30)
    for factor, shift in ((0xBF58476D1CE4E5B9, 27), (0x94D049BB133111EB, 31)):
        z ^= other
        z *= np.uint64(factor)
        np.right_shift(z, np.uint64(shift), out=other)
    z ^= other
    z >>= np.uint64(32)
    return z


def compared_draws(context: Context, first: int, count: int) -> Array:
    """Return, for each of `count` elements from index `first` on, a number that decides the stochastic rounding.

    Let f be the discarded part of an element, in units in the last place. The element is rounded away from zero if the
    returned number is less than floor(2^32·f).
    """
    drawn = draws(context.seed, first, count)
    if context.rounding is Direction.SR and context.draw is None:
        return drawn
    compared: Array = compared_draw(draw_rule(context), drawn)  # type: ignore[arg-type,assignment]
    return compared


def _settle(found: Settled) -> tuple[int, int]:
    if isinstance(found, UnsupportedError):
        raise UnsupportedError(str(found))
    return found[0], found[1].value


class Parts:
    """The fields of a chunk: sign, unsigned code, exponent field, significand with its hidden bit, special values."""

    def __init__(self, bits: Array, rule: RoundingRule) -> None:
        """Split the bits of binary32 (as uint32) or binary64 (as uint64)."""
        t, w = rule.source.trailing_bits, rule.source.exponent_bits
        # As signed integers, words have the sign of their numbers. These integers can also hold ranks, shifts and
        # magnitudes.
        word: Any = np.int32 if bits.dtype == np.uint32 else np.int64
        whole: Array = bits.view(word)
        self.negative = whole < 0
        self.magnitude = whole & word((1 << (t + w)) - 1)
        field = self.magnitude >> t
        self.special = field == (1 << w) - 1
        normal = field != 0
        self.c = (self.magnitude & ((1 << t) - 1)) | (normal.astype(word) << t)
        if rule.context.flush_inputs:
            self.c[~normal] = 0
            self.magnitude[~normal] = 0
        self.e = np.maximum(field, 1)
        if rule.drops_signs:
            self.negative = np.zeros_like(self.negative)


def _cut(
    c: Array, shift: Array, negative: Array, base: Array, direction: Direction, drawn: Array | None
) -> tuple[Array, Array, Array]:
    """Truncate significands; return the kept bits, whether to round away from zero, and whether bits were lost.

    The parity of `base` plus the kept bits decides ties. `drawn` has the results of `compared_draws`, or is None.
    """
    near = np.minimum(shift, 8 * c.itemsize - 2)  # a larger shift also discards all of c
    kept, rest2, unit = split(c, near)
    inexact, half, tie = tail(rest2, unit, False)
    if drawn is not None:
        rest, shift = rest2.astype(np.int64) >> 1, shift.astype(np.int64)
        # floor(2^32·rest/unit), for shifts of any size, within 64 bits.
        small = rest << np.maximum(32 - shift, 0)
        below = np.minimum(np.maximum(shift - 32, 0), _FAR)
        threshold = np.where(shift <= 32, small, rest >> below)
        if direction.has_few_bits:
            threshold |= (rest >> below << below) != rest
        return kept, drawn.astype(np.int64) < threshold, inexact
    odd = ((base + kept) & 1) != 0
    return kept, increments(direction, negative, odd, inexact, half, tie), inexact


def encode_block(bits: Array, rule: RoundingRule, drawn: Array | None = None) -> tuple[Array, Array]:
    """Round a chunk of floats, given as bit patterns; return the codes (uint64) and the flags (uint8) of the results.

    `drawn` has the results of `compared_draws` if the rounding is stochastic. Raises UnsupportedError if the context
    makes a value an error (`absent="error"`).
    """
    fmt, context, t = rule.format, rule.context, rule.format.trailing_bits
    parts = Parts(bits, rule)
    negative, c, e = parts.negative, parts.c, parts.e
    if not fmt.signed:
        negative = negative & (c != 0)
    tiny = (parts.magnitude < (rule.low << rule.source.trailing_bits)) & (c != 0)
    lifted = np.where(tiny, rule.lift, 0)
    shift = rule.cut + np.maximum(rule.low - e, 0) + lifted
    base = np.where(lifted != 0, 0, (np.maximum(e - rule.low, 0) << t) - (not fmt.zero))
    kept, step, inexact = _cut(c, shift, negative, base, rule.direction, drawn)
    rank = base + ((kept + step) << lifted)
    if context.tininess is Tininess.AFTER and tiny.any():
        tiny &= ~_reaches(parts, negative, tiny, rule, drawn)
    flags = np.where(inexact, np.where(tiny, _UNDERFLOW, _INEXACT), 0).astype(np.uint8)
    codes = _composed(np.maximum(rank, 0), negative, rule)
    below = negative & ((rank > 0) if fmt.zero else np.ones_like(negative))  # used only for unsigned formats
    if context.flush_results and fmt.zero:
        flushed = [(_settle(zero)[0], Flags.UNDERFLOW | Flags.INEXACT) for zero in rule.zero]
        _put(codes, flags, tiny, flushed, negative)
        rank = np.where(tiny, 0, rank)
    finite = ~parts.special  # negative numbers may be errors in this context; negative NaNs are not
    _put(codes, flags, (rank > fmt.largest_magnitude) & finite, rule.overflow, negative)
    if not fmt.zero:
        flags[(rank < 0) & (c != 0)] = _UNDERFLOW
        _put(codes, flags, c == 0, rule.zero, negative)
    if rule.negative is not None:
        _put(codes, flags, below & finite, (rule.negative, rule.negative), negative)
    if parts.special.any():
        _specials(codes, flags, parts, rule)
    return codes, flags


def _reaches(parts: Parts, negative: Array, tiny: Array, rule: RoundingRule, drawn: Array | None) -> Array:
    """Return a mask of the numbers below 2^emin that would be rounded to 2^emin with an unbounded exponent range."""
    source_t, t = rule.source.trailing_bits, rule.format.trailing_bits
    reached = np.zeros_like(tiny)
    if rule.low > 1:
        near = np.flatnonzero(tiny & (parts.magnitude >= ((rule.low - 1) << source_t)))
        places = np.full(len(near), rule.cut, parts.c.dtype)
    else:  # in the binade below 2^emin, all numbers of the source are subnormal
        near = np.flatnonzero(tiny & (parts.c >= 1 << (source_t - 1)))
        places = np.full(len(near), rule.cut - 1, parts.c.dtype)
    if not len(near):
        return reached
    c, places = (parts.c[near] << 1, places + 1) if rule.cut == 0 else (parts.c[near], places)
    base = np.full(len(near), -(1 << t) - (not rule.format.zero), parts.c.dtype)
    some = None if drawn is None else drawn[near]
    kept, step, _ = _cut(c, places, negative[near], base, rule.direction, some)
    reached[near] = (kept + step) >> rule.format.precision != 0
    return reached


def _composed(rank: Array, negative: Array, rule: RoundingRule) -> Array:
    fmt = rule.format
    codes = rank.astype(np.uint64)
    if fmt.signed:
        signed = negative if fmt.negative_zero or not fmt.zero else negative & (rank != 0)
        codes |= signed.astype(np.uint64) << np.uint64(fmt.width - 1)
    return codes


def _put(codes: Array, flags: Array, where: Array, pair: Sequence[Settled], negative: Array) -> None:
    """Write a code and flags where the mask `where` is set.

    `pair` has the code and the flags for positive and for negative numbers. If `pair` has an error in place of a code,
    UnsupportedError is raised.
    """
    for sign, settled in enumerate(pair):
        here = where & (negative == bool(sign))
        if here.any():
            codes[here], flags[here] = _settle(settled)


def _specials(codes: Array, flags: Array, parts: Parts, rule: RoundingRule) -> None:
    """Write the results for infinities and NaNs."""
    t = rule.source.trailing_bits
    payload = parts.magnitude & ((1 << t) - 1)
    _put(codes, flags, parts.special & (payload == 0), rule.infinity, parts.negative)
    nans = parts.special & (payload != 0)
    _put(codes, flags, nans, rule.nan, parts.negative)
    quiet = 1 << (t - 1)
    if rule.keeps_payloads:
        kept = (payload[nans] & (quiet - 1)) >> rule.cut
        codes[nans] |= kept.astype(np.uint64)
    flags[nans & (payload & quiet == 0)] |= np.uint8(Flags.INVALID.value)


# The upper 16 bits of a word are enough to round binary32 into formats with at most this many trailing bits and at
# least this quantum exponent. The last of the 16 bits is then below the guard bit, and can mark that a lower bit is
# set.
_TABLE_DIGITS, _TABLE_QUANTUM = 5, -131
_WORTH_A_TABLE = 1 << 15  # the table is used for at least this many elements


def has_table(rule: RoundingRule) -> bool:
    """Return whether a table indexed by the upper 16 bits of binary32 codes can give all results of the rounding."""
    fmt = rule.format
    return (
        rule.source.width == 32
        and fmt.trailing_bits <= _TABLE_DIGITS
        and fmt.qmin >= _TABLE_QUANTUM
        and not rule.direction.is_stochastic
        and not rule.refuses
    )


@lru_cache(maxsize=64)
def table_for(rule: RoundingRule) -> tuple[Array, Array]:
    """Return two tables indexed by the upper 16 bits of a binary32 code.

    The first table has codes. Each entry of the second table has a code in its lower half, and the flags in its upper
    half.
    """
    codes, flags = encode_block(np.arange(1 << 16, dtype=np.uint32) << np.uint32(16), rule)
    held = container(rule.format)
    both: Any = np.dtype(f"u{2 * held.itemsize}").type
    codes_and_flags: Array = flags.astype(both) << both(8 * held.itemsize)
    codes_and_flags |= codes.astype(both)
    return codes.astype(held), codes_and_flags


def rounder(rule: RoundingRule) -> Rounder:
    """Return a function that rounds chunks of words (bit patterns of numbers) into codes.

    The function also writes flags if it is given an array for the flags.
    """
    context, drawn_at = rule.context, rule.direction.is_stochastic

    def slow(words: Array, first: int, codes: Array, flags: Array | None) -> None:
        made, raised = encode_block(words, rule, compared_draws(context, first, len(words)) if drawn_at else None)
        codes[...] = made
        if flags is not None:
            flags[...] = raised

    work: Rounder = in_pieces(slow)
    if has_fast_path(rule):
        work = FastRounder(
            rule, partial(compared_draws, context), lambda words, drawn: encode_block(words, rule, drawn)
        )
    if not has_table(rule):
        return work
    look_up = in_pieces(lambda words, first, codes, flags: _look_up(table_for(rule), words, codes, flags))

    def by_size(words: Array, first: int, codes: Array, flags: Array | None) -> None:
        (look_up if len(words) >= _WORTH_A_TABLE else work)(words, first, codes, flags)

    return by_size


def _look_up(tables: tuple[Array, Array], words: Array, codes: Array, flags: Array | None) -> None:
    """Round by the tables of `table_for`.

    The index is the upper half of the word. If any bit of the lower half is 1, the lowest bit of the index is set to 1.
    """
    places = words & np.uint32(0xFFFF)
    places += np.uint32(0xFFFF)  # carries into bit 16 if any low bit is set
    places >>= np.uint32(16)
    places |= words >> np.uint32(16)
    if flags is None:
        np.take(tables[0], places, out=codes, mode="clip")
        return
    found = tables[1].take(places, mode="clip")
    np.copyto(codes, found, casting="unsafe")
    found >>= found.dtype.type(4 * found.itemsize)
    np.copyto(flags, found, casting="unsafe")


def reader(fmt: Format, word: Format) -> Reader:
    """Return a function that decodes arrays of codes of `fmt` into bit patterns of the format `word`."""
    reading = decoding_rule_for(fmt, word)
    unsigned: Any = container(word).type
    number: Any = np.float32 if word.width == 32 else np.float64
    infinity = unsigned(word.infinity_magnitude)
    every = (1 << word.width) - 1
    moved = reading.adjust << word.trailing_bits
    moved_on = unsigned(moved & every)
    # Infinity is decoded like a finite number; adding this integer then gives the infinity of `word`.
    to_infinity = unsigned(word.infinity_magnitude - (fmt.infinity_magnitude << reading.cut) - moved & every)
    one_up, least = unsigned(1 << word.trailing_bits), number(2.0**fmt.emin)

    def read_block(codes: Array, words: Array) -> None:
        if reading.table is not None:
            np.take(reading.table, codes, out=words, mode="clip")
            return
        wide = codes.astype(unsigned)
        magnitude = wide & unsigned((1 << fmt.magnitude_bits) - 1)
        np.left_shift(magnitude, unsigned(reading.cut), out=words)
        words += moved_on
        if not reading.same_range:
            small = magnitude < unsigned(fmt.smallest_normal_magnitude)
            if fmt.subnormals:
                # For subnormal numbers and zero, an exponent field one higher gives the number plus 2^emin; 2^emin is
                # then subtracted.
                words += small * one_up
                with np.errstate(invalid="ignore"):  # NaNs, which are corrected below
                    numbers = words.view(number)
                    numbers -= small * least
            else:
                words *= ~small
        if int(magnitude.max(initial=0)) > fmt.largest_magnitude:
            beyond = magnitude > unsigned(fmt.largest_magnitude)
            if fmt.ieee_nans:
                words += beyond * to_infinity
            else:
                np.copyto(words, infinity | unsigned(word.quiet_bit), where=beyond)
                if fmt.infinities:
                    np.copyto(words, infinity, where=magnitude == unsigned(fmt.infinity_magnitude))
        if fmt.signed:
            wide >>= unsigned(fmt.width - 1)
            wide <<= unsigned(word.width - 1)
            words |= wide
            if fmt.nan_in_place_of_negative_zero:
                words[(magnitude == 0) & (wide != 0)] |= infinity | unsigned(word.quiet_bit)

    def read(codes: Array, words: Array) -> None:
        for at in range(0, len(codes), PIECE):
            read_block(codes[at : at + PIECE], words[at : at + PIECE])

    return read
