"""The NumPy lane: a block of floats taken apart with integers, cut, and put together as codes.

The decision itself is `numbers.rounding`'s, which takes arrays as it takes integers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.pieces import in_pieces
from floatlab.arrays.reading import container
from floatlab.arrays.recipe import Recipe
from floatlab.errors import UnsupportedError
from floatlab.numbers import Direction, Flags, Tininess
from floatlab.numbers.rounding import draw, increments, split, tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from floatlab.arrays.lanes import Reader, Rounder
    from floatlab.arrays.reading import Reading
    from floatlab.arrays.recipe import Settled

    Array = np.ndarray[Any, np.dtype[Any]]

_INEXACT, _UNDERFLOW = Flags.INEXACT.value, (Flags.UNDERFLOW | Flags.INEXACT).value
_FAR = 63  # the furthest that NumPy shifts a 64-bit integer


def draws(seed: int, first: int, count: int) -> Array:
    """Return the draws of elements `first` to `first + count`."""
    found: Array = draw(seed, np.arange(first, first + count, dtype=np.uint64))
    return found


def _settle(found: Settled) -> tuple[int, int]:
    if isinstance(found, UnsupportedError):
        raise UnsupportedError(str(found))
    return found[0], found[1].value


class Parts:
    """The parts of a block: sign, magnitude, exponent field, significand with its hidden bit, and what is special."""

    def __init__(self, bits: Array, recipe: Recipe) -> None:
        """Take the bits of binary32 (as uint32) or binary64 (as uint64) apart."""
        t, w = recipe.source.trailing_bits, recipe.source.exponent_bits
        # A signed word holds every magnitude, shift and rank, and its sign is the number's.
        word: Any = np.int32 if bits.dtype == np.uint32 else np.int64
        whole: Array = bits.view(word)
        self.negative = whole < 0
        self.magnitude = whole & word((1 << (t + w)) - 1)
        field = self.magnitude >> t
        self.special = field == (1 << w) - 1
        normal = field != 0
        self.c = (self.magnitude & ((1 << t) - 1)) | (normal.astype(word) << t)
        if recipe.context.flush_inputs:
            self.c[~normal] = 0
            self.magnitude[~normal] = 0
        self.e = np.maximum(field, 1)


def _cut(c: Array, shift: Array, negative: Array, base: Array, direction: Direction, drawn: Array | None) -> Any:
    """Cut significands and ask the kernel; return what is kept, whether it steps up, and whether anything was lost."""
    near = np.minimum(shift, 8 * c.itemsize - 2)  # nothing of c is kept long before
    kept, rest2, unit = split(c, near)
    inexact, half, tie = tail(rest2, unit, False)
    if drawn is not None:
        rest, shift = rest2.astype(np.int64) >> 1, shift.astype(np.int64)
        # floor(2^32·rest/unit), for shifts of any size, without leaving 64 bits.
        small = rest << np.maximum(32 - shift, 0)
        threshold = np.where(shift <= 32, small, rest >> np.minimum(np.maximum(shift - 32, 0), _FAR))
        return kept, drawn.astype(np.int64) < threshold, inexact
    odd = ((base + kept) & 1) != 0
    return kept, increments(direction, negative, odd, inexact, half, tie), inexact


def _encode_plainly(bits: Array, recipe: Recipe) -> Array | None:
    """Return the codes of a block where nothing is special: a plain recipe, and no number beyond the largest.

    The same cut in fewer passes, since passes are what this lane pays for; None where the block is not of that kind.
    """
    source, fmt = recipe.source, recipe.format
    whole: Array = bits.view(np.int32 if source.width == 32 else np.int64)
    magnitude = whole & ((1 << (source.width - 1)) - 1)
    if int(magnitude.max()) > recipe.largest:
        return None
    base: Any = 0
    if recipe.low == 1:
        # The same range: every number is cut at the same place, and its exponent field is already the code's.
        kept, rest2, unit = split(magnitude, recipe.cut)
    else:
        field = magnitude >> source.trailing_bits
        # Zero and the source's subnormal numbers get a hidden bit they have not: so far down, all are below half.
        c = (magnitude & ((1 << source.trailing_bits) - 1)) | (1 << source.trailing_bits)
        normal = np.clip(field, recipe.low, 1 << source.exponent_bits)  # faster than a maximum
        base = (normal - recipe.low) << fmt.trailing_bits
        normal -= field
        normal += recipe.cut
        kept, rest2, unit = split(c, np.clip(normal, 0, 8 * c.itemsize - 2))
    inexact, half, tie = tail(rest2, unit, False)
    inexact &= magnitude != 0
    kept += base
    kept += increments(recipe.direction, whole < 0, (kept & 1) != 0, inexact, half, tie)
    narrower = source.width - fmt.width
    sign = (whole >> narrower) & ((1 << (fmt.width - 1)) - (0 if narrower else 1 << fmt.width))  # as a signed word
    kept |= sign if fmt.negative_zero else np.where(kept == 0, 0, sign)
    codes: Array = kept
    return codes


def encode_block(bits: Array, recipe: Recipe, first: int = 0) -> tuple[Array, Array]:
    """Return the codes (uint64) of a block of floats, and the flags of each (uint8).

    `first` is the place of the block's first element in the whole array, for stochastic draws.
    Raises UnsupportedError where the context refuses a value.
    """
    fmt, context, t = recipe.format, recipe.context, recipe.format.trailing_bits
    parts = Parts(bits, recipe)
    negative, c, e = parts.negative, parts.c, parts.e
    if not fmt.signed:
        negative = negative & (c != 0)
    drawn = draws(context.seed, first, len(bits)) if recipe.direction is Direction.SR else None
    tiny = (parts.magnitude < (recipe.low << recipe.source.trailing_bits)) & (c != 0)
    lifted = np.where(tiny, recipe.lift, 0)
    shift = recipe.cut + np.maximum(recipe.low - e, 0) + lifted
    base = np.where(lifted != 0, 0, (np.maximum(e - recipe.low, 0) << t) - (not fmt.zero))
    kept, step, inexact = _cut(c, shift, negative, base, recipe.direction, drawn)
    rank = base + ((kept + step) << lifted)
    if context.tininess is Tininess.AFTER and tiny.any():
        tiny &= ~_reaches(parts, negative, tiny, recipe, drawn)
    flags = np.where(inexact, np.where(tiny, _UNDERFLOW, _INEXACT), 0).astype(np.uint8)
    codes = _composed(np.maximum(rank, 0), negative, recipe)
    below = negative & ((rank > 0) if fmt.zero else np.ones_like(negative))  # only asked where there is no sign
    if context.flush_results and fmt.zero:
        flushed = [(_settle(zero)[0], Flags.UNDERFLOW | Flags.INEXACT) for zero in recipe.zero]
        _put(codes, flags, tiny, flushed, negative)
        rank = np.where(tiny, 0, rank)
    _put(codes, flags, rank > fmt.largest_magnitude, recipe.overflow, negative)
    if not fmt.zero:
        flags[(rank < 0) & (c != 0)] = _UNDERFLOW
        _put(codes, flags, c == 0, recipe.zero, negative)
    if recipe.negative is not None:
        _put(codes, flags, below, (recipe.negative, recipe.negative), negative)
    if parts.special.any():
        _specials(codes, flags, parts, recipe)
    return codes, flags


def _reaches(parts: Parts, negative: Array, tiny: Array, recipe: Recipe, drawn: Array | None) -> Array:
    """Say which tiny numbers p digits, were there room below emin, would round up to 2^emin."""
    source_t, t = recipe.source.trailing_bits, recipe.format.trailing_bits
    reached = np.zeros_like(tiny)
    if recipe.low > 1:
        near = np.flatnonzero(tiny & (parts.magnitude >= ((recipe.low - 1) << source_t)))
        places = np.full(len(near), recipe.cut, parts.c.dtype)
    else:  # the binade below lies among the source's own subnormal numbers
        near = np.flatnonzero(tiny & (parts.c >= 1 << (source_t - 1)))
        places = np.full(len(near), recipe.cut - 1, parts.c.dtype)
    if not len(near):
        return reached
    c, places = (parts.c[near] << 1, places + 1) if recipe.cut == 0 else (parts.c[near], places)
    base = np.full(len(near), -(1 << t) - (not recipe.format.zero), parts.c.dtype)
    some = None if drawn is None else drawn[near]
    kept, step, _ = _cut(c, places, negative[near], base, recipe.direction, some)
    reached[near] = (kept + step) >> recipe.format.precision != 0
    return reached


def _composed(rank: Array, negative: Array, recipe: Recipe) -> Array:
    fmt = recipe.format
    codes = rank.astype(np.uint64)
    if fmt.signed:
        signed = negative if fmt.negative_zero or not fmt.zero else negative & (rank != 0)
        codes |= signed.astype(np.uint64) << np.uint64(fmt.width - 1)
    return codes


def _put(codes: Array, flags: Array, where: Array, pair: Sequence[Settled], negative: Array) -> None:
    """Put what was settled, for each sign, where it belongs; raises UnsupportedError where that is a refusal."""
    for sign, settled in enumerate(pair):
        here = where & (negative == bool(sign))
        if here.any():
            codes[here], flags[here] = _settle(settled)


def _specials(codes: Array, flags: Array, parts: Parts, recipe: Recipe) -> None:
    """Put what stands for infinities and NaNs."""
    t = recipe.source.trailing_bits
    payload = parts.magnitude & ((1 << t) - 1)
    _put(codes, flags, parts.special & (payload == 0), recipe.infinity, parts.negative)
    nans = parts.special & (payload != 0)
    _put(codes, flags, nans, recipe.nan, parts.negative)
    quiet = 1 << (t - 1)
    if recipe.keeps_payloads:
        kept = (payload[nans] & (quiet - 1)) >> recipe.cut
        codes[nans] |= kept.astype(np.uint64)
    flags[nans & (payload & quiet == 0)] |= np.uint8(Flags.INVALID.value)


# From binary32 into a format with at most this many trailing digits and this low a last place, a rounding depends on
# the upper half of the bits and on whether anything lies below: the last bit of the half is below the guard digit.
_TABLE_DIGITS, _TABLE_QUANTUM = 5, -131
_WORTH_A_TABLE = 1 << 15  # elements


def has_table(recipe: Recipe) -> bool:
    """Say whether a table of 2^16 entries is the whole rounding."""
    fmt = recipe.format
    return (
        recipe.source.width == 32
        and fmt.trailing_bits <= _TABLE_DIGITS
        and fmt.qmin >= _TABLE_QUANTUM
        and recipe.direction is not Direction.SR
        and not recipe.refuses
    )


@lru_cache(maxsize=64)
def table_for(recipe: Recipe) -> tuple[Array, Array]:
    """Return the codes and the flags of every upper half, as this lane makes them."""
    codes, flags = encode_block(np.arange(1 << 16, dtype=np.uint32) << np.uint32(16), recipe)
    return codes.astype(np.uint8 if recipe.format.width <= 8 else np.uint16), flags


def rounder(recipe: Recipe) -> Rounder:
    """Return what rounds a block of words into codes, and tells flags where it is given room for them."""
    tabled = has_table(recipe)
    swift = recipe.is_plain and recipe.direction is not Direction.SR and recipe.is_apart

    def round_block(words: Array, first: int, codes: Array, flags: Array | None) -> None:
        if not tabled or len(words) < _WORTH_A_TABLE:
            plainly = _encode_plainly(words, recipe) if swift and flags is None else None
            if plainly is not None:
                codes[...] = plainly
                return
            made, raised = encode_block(words, recipe, first)
            codes[...] = made
            if flags is not None:
                flags[...] = raised
            return
        table = table_for(recipe)
        places = (words >> np.uint32(16)) | ((words & np.uint32(0xFFFF)) != 0)
        np.take(table[0], places, out=codes, mode="clip")
        if flags is not None:
            np.take(table[1], places, out=flags, mode="clip")

    return in_pieces(round_block)


def reader(reading: Reading) -> Reader:
    """Return what reads a block of codes as words."""
    fmt, word = reading.format, reading.word
    unsigned: Any = container(word).type
    number: Any = np.float32 if word.width == 32 else np.float64
    infinity = unsigned(word.infinity_magnitude)

    def read_block(codes: Array, words: Array) -> None:
        if reading.table is not None:
            np.take(reading.table, codes, out=words, mode="clip")
            return
        wide = codes.astype(unsigned)
        magnitude = wide & unsigned((1 << fmt.magnitude_bits) - 1)
        sign = (wide >> unsigned(fmt.width - 1) << unsigned(word.width - 1)) if fmt.signed else unsigned(0)
        moved = magnitude << unsigned(reading.cut)
        words[...] = moved + unsigned(reading.adjust << word.trailing_bits & (1 << word.width) - 1)
        if not reading.same_range:
            # The conversion of an integer normalises it; its exponent is then put right.
            small = magnitude < unsigned(fmt.smallest_normal_magnitude)
            counted = magnitude[small].astype(number).view(unsigned)
            placed = counted + unsigned(fmt.qmin << word.trailing_bits & (1 << word.width) - 1)
            words[small] = placed if fmt.subnormals else 0
            words[magnitude == 0] = 0
        beyond = magnitude > unsigned(fmt.largest_magnitude)
        if beyond.any():
            payload = moved & unsigned((1 << word.trailing_bits) - 1) if fmt.ieee_nans else unsigned(word.quiet_bit)
            words[beyond] = (infinity | payload)[beyond] if fmt.ieee_nans else infinity | payload
            if fmt.infinities:
                words[magnitude == unsigned(fmt.infinity_magnitude)] = infinity
        words |= sign
        if fmt.nan_in_place_of_negative_zero:
            words[(magnitude == 0) & (sign != 0)] |= infinity | unsigned(word.quiet_bit)

    return read_block
