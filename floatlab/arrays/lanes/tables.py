"""Formats given by a table, in the NumPy and the compiled lane: words to codes and back, by looking up.

A rounding maps words without sign to segments with one code each. The scalar kernel finds where they start, once for a
format, a direction and a sign; so no lane decides again. A search among the starts is the general way. From binary32
there are faster ones, by the upper bits of a word: `_Narrow` for codes of up to 8 bits, `_Wide` for 16 bits in two's
complement; both are exact, and elements that they leave open are searched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType

import numpy as np

from floatlab.arrays.lanes.numpy_rounding import in_pieces
from floatlab.arrays.lanes.parameters import SINGLE, Recipe, container, recipe_for, word_of
from floatlab.arrays.types import Array, Reader, Rounder
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.formats.table import Real, TableFormat, TwosComplementFormat
from floatlab.numbers import Context, Datum, Direction, Flags
from floatlab.numbers.projection import given_by_table, signed_code
from floatlab.numbers.rounding import increments
from floatlab.record import Individual

_INEXACT, _UNDERFLOW = Flags.INEXACT.value, (Flags.UNDERFLOW | Flags.INEXACT).value
_OPEN = 1 << 31  # a rank in an entry that leaves its bucket to the search
_MAGNITUDE = 0x7FFFFFFF  # of binary32
_CELLS = 5  # bits of the significand that select a bucket of a wide format: 32 buckets in each binade


class Segments(Individual):
    """The segments of a sign: the first word of each without the sign, its code, and the flags that it raises."""

    starts: Array
    codes: Array
    flags: Array


def _cut(x: Real, word: Format) -> tuple[int, bool, bool]:
    """Truncate a magnitude to a word; return whether that loses something, and whether at least half a unit."""
    c, q = x
    if not c:
        return 0, False, False
    e = c.bit_length() + q - 1
    if e > word.emax:
        return word.infinity_magnitude, False, False
    place = max(e, word.emin)
    shift = place - word.trailing_bits - q
    kept = c << -shift if shift < 0 else c >> shift
    rest2, unit = (c - (kept << shift)) * 2 if shift > 0 else 0, 1 << max(shift, 0)
    return (place - word.emin << word.trailing_bits) + kept, rest2 > 0, rest2 >= unit


def _first_word(x: Real, strict: bool, word: Format) -> int:
    """Return the first word at or above a magnitude, or above it if `strict`; infinity if there is none."""
    kept, inexact, _ = _cut(x, word)
    return min(kept + (strict or inexact), word.infinity_magnitude)


@lru_cache(maxsize=64)
def _starts(format: TableFormat, direction: Direction, negative: bool, word: Format) -> Array:
    """Return the first words, without sign, of ranks 1, 2, … of a sign, up to what overflows if anything does."""
    most, beyond = format.most(negative), format.next_beyond()
    exact = not format.is_irrational
    found = []
    for rank in range(most + (beyond is not None)):
        odd = format.counts_as_odd(rank, negative) if direction is Direction.RNE else bool(rank & 1)
        low, middle, high = (
            bool(increments(direction, negative, odd, True, *at))
            for at in ((False, False), (True, True), (True, False))
        )
        if low:  # anything above the number below goes up
            found.append(_first_word(format.real(rank, negative), True, word))
        elif middle or high:
            boundary = format.boundary(rank, negative)
            found.append(_first_word(boundary, not middle and (exact or not boundary[0]), word))
        else:
            following = format.real(rank + 1, negative) if rank < most else beyond
            assert following is not None
            found.append(_first_word(following, False, word))
    return np.array([max(each, 1) for each in found], container(word))  # zero stays zero


@lru_cache(maxsize=64)
def segments(recipe: Recipe, negative: bool) -> Segments:
    """Return the segments of a rounding, from zero over all numbers to infinity and NaN."""
    format, word = recipe.format, recipe.source
    assert given_by_table(format)
    mirrored = {Direction.RTP: Direction.RTN, Direction.RTN: Direction.RTP}
    direction = recipe.direction
    if negative and isinstance(format, TwosComplementFormat):  # each sign mirrors the other
        direction, negative_starts = mirrored.get(direction, direction), False
    else:
        negative_starts = negative
    starts, most = _starts(format, direction, negative_starts, word), format.most(negative)
    numbers = [signed_code(format, negative, rank) for rank in range(len(starts) + 1)][: most + 1]
    settled = [recipe.overflow[negative], recipe.infinity[negative], recipe.nan[negative]]
    (over, _), (infinity, at_infinity), (nan, at_nan) = (_settle(each) for each in settled)
    flags = [0] * len(numbers)
    edge = _first_word(format.real(most, negative), True, word)
    if len(starts) > most:  # the last start is that of overflow
        starts, edge = starts[:-1], int(starts[-1])
    overflows = (Flags.OVERFLOW | Flags.INEXACT).value
    return Segments(
        np.array([0, *starts, edge, word.infinity_magnitude, word.infinity_magnitude + 1], container(word)),
        np.array([*numbers, over, infinity, nan], container(format)),
        np.array([*flags, overflows, at_infinity, at_nan], np.uint8),
    )


def _settle(found: tuple[int, Flags] | UnsupportedError) -> tuple[int, int]:
    if isinstance(found, UnsupportedError):
        raise UnsupportedError(str(found))
    return found[0], found[1].value


def _search(recipe: Recipe, words: Array) -> tuple[Array, Array]:
    """Return the codes of words, and the flags that their segments raise."""
    signs = words >> words.dtype.type(recipe.source.width - 1)
    magnitudes = words & words.dtype.type((1 << recipe.source.width - 1) - 1)
    codes, flags = np.empty(len(words), container(recipe.format)), np.empty(len(words), np.uint8)
    for negative in (False, True):
        here = np.flatnonzero(signs == negative)
        of_sign = segments(recipe, negative)
        at = np.searchsorted(of_sign.starts, magnitudes[here], "right") - 1
        codes[here], flags[here] = of_sign.codes[at], of_sign.flags[at]
    return codes, flags


def _flags(recipe: Recipe, words: Array, codes: Array) -> Array:
    """Return the flags of each rounding: those of its segment, inexact if the value changed, and underflow."""
    word = recipe.source
    flags = _search(recipe, words)[1]
    sign = words.dtype.type((1 << word.width - 1) - 1)
    magnitudes = words & sign
    values = np.empty_like(words)
    words_table(recipe.format, word).take(codes, out=values, mode="clip")
    changed = (values & sign) != magnitudes
    if given_by_table(recipe.format) and recipe.format.is_irrational:
        # The nearest word is not the number: only 0 and ±1 are exact.
        changed |= (magnitudes != 0) & (magnitudes != words.dtype.type(word.bias << word.trailing_bits))
    changed &= (magnitudes < word.infinity_magnitude) & (flags == 0)
    format = recipe.format
    assert given_by_table(format)
    for negative in (False, True):
        normal = _first_word(format.real(format.smallest_normal_magnitude, negative), False, word)
        tiny = changed & (magnitudes < normal) & ((words > sign) == negative)
        flags[tiny] = _UNDERFLOW
    flags[changed & (flags == 0)] = _INEXACT
    quiet = words.dtype.type(word.quiet_bit)
    signaling = (magnitudes > word.infinity_magnitude) & (words & quiet == 0)
    flags[signaling] |= np.uint8(Flags.INVALID.value)
    return flags


class _Narrow:
    """Codes of up to 8 bits from binary32: an entry for each bucket has the start inside it and the codes around."""

    def __init__(self, recipe: Recipe) -> None:
        """Find the least number of bits of the significand with at most one start inside each bucket.

        Buckets of subnormal words may have more: they stand for many binades, and are left to the search.
        """
        self.recipe, self.entries = recipe, np.empty(0, np.uint64)
        for bits in range(1, 8):
            self.shift = SINGLE.trailing_bits - bits
            firsts = np.arange(1 << (8 + bits), dtype=np.int64) << self.shift
            halves = []
            for negative in (False, True):
                of_sign = segments(recipe, negative)
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
        """Return a function that writes codes of words, compiled."""

        def look_up(words: Array, codes: Array) -> None:
            if kernels.look_up_narrow(words, self.entries, self.shift, codes):
                here = np.flatnonzero(self.entries.take(words >> np.uint32(self.shift)) >> np.uint64(63))
                codes[here] = _search(self.recipe, words[here])[0]

        return look_up

    def plain(self) -> Callable[[Array, Array], None]:
        """Return the same with NumPy: by the upper 16 bits, and by a search where these leave it open."""
        recipe = self.recipe
        # The index is the upper half of a word; its last bit is also set if any lower bit is. So an odd index stands
        # for the words after the even one before it.
        evens = np.arange(0, 1 << 16, 2, dtype=np.uint32) << np.uint32(16)
        at, after, last = (_search(recipe, evens + np.uint32(more))[0] for more in (0, 1, (1 << 17) - 1))
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
                to[here] = _search(recipe, words[here])[0]

        return look_up


class _Wide:
    """Codes of 16 bits in two's complement from binary32: the rank at a bucket's start, a slope, and a comparison."""

    def __init__(self, recipe: Recipe) -> None:
        """Find the slope of each bucket that gives the number of starts up to a word, or one less."""
        self.shift = SINGLE.trailing_bits - _CELLS
        most = (1 << 15) - 1
        halves = []
        for negative in (False, True):
            of_sign = segments(recipe, negative)
            starts = of_sign.starts[1 : most + 1].astype(np.int64)  # of ranks 1 … most
            inf = SINGLE.infinity_magnitude
            infinity, nan = of_sign.codes[-2:]
            starts = np.append(starts, inf if infinity == nan else inf + 1)
            if infinity not in (nan, of_sign.codes[most]):
                self.starts = np.empty(0, np.uint32)  # searched
                return
            firsts = np.arange(1 << (8 + _CELLS), dtype=np.int64) << self.shift
            base = np.searchsorted(starts, firsts, "right")
            bucket = starts >> self.shift
            offset, step = starts - firsts[bucket], np.arange(len(starts)) - base[bucket]
            inside = offset > 0
            slopes = np.zeros(len(firsts), np.int64)
            np.maximum.at(slopes, bucket[inside], -((-step[inside] << 32) // offset[inside]))
            late = (offset - 1) * slopes[bucket] >> 32 > step
            opened = np.zeros(len(firsts), bool)
            opened[bucket[inside & late]] = True
            ends = np.append(base[1:], len(starts)) - base
            opened |= (slopes >= _OPEN) | (((1 << self.shift) - 1) * slopes >> 32 > ends)
            halves.append(np.where(opened, _OPEN, base | slopes << 32).astype(np.uint64))
            if negative and not np.array_equal(starts, self.starts[:-1]):
                self.starts = np.empty(0, np.uint32)  # signs differ: searched
                return
            self.starts = np.append(starts, (1 << 32) - 1).astype(np.uint32)
        self.entries = np.concatenate(halves)
        self.recipe = recipe

    def _settle(self, words: Array, codes: Array) -> None:
        here = np.flatnonzero(self.entries.take(words >> np.uint32(self.shift)) == _OPEN)
        codes[here] = _search(self.recipe, words[here])[0]

    def compiled(self, kernels: ModuleType) -> Callable[[Array, Array], None]:
        """Return a function that writes codes of words, compiled."""

        def look_up(words: Array, codes: Array) -> None:
            if kernels.look_up_wide(words, self.entries, self.shift, self.starts, codes):
                self._settle(words, codes)

        return look_up

    def plain(self) -> Callable[[Array, Array], None]:
        """Return the same with NumPy."""
        base = (self.entries & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        slope = (self.entries >> np.uint64(32)).astype(np.uint64)
        has_open = bool((base == _OPEN).any())
        below, last = np.uint32((1 << self.shift) - 1), np.uint32(len(self.starts) - 1)

        def look_up(words: Array, codes: Array) -> None:
            bucket = words >> np.uint32(self.shift)
            ranks = base.take(bucket, mode="clip")
            share = (words & below).astype(np.uint64)
            share *= slope.take(bucket, mode="clip")
            share >>= np.uint64(32)
            open_here = np.flatnonzero(ranks == _OPEN) if has_open else ()
            np.add(ranks, share, out=ranks, casting="unsafe")
            np.minimum(ranks, last, out=ranks)
            magnitudes = words & np.uint32(_MAGNITUDE)
            ranks += magnitudes >= self.starts.take(ranks, mode="clip")
            minus = (words.view(np.int32) >> np.int32(31)).view(np.uint32)
            ranks ^= minus
            ranks -= minus
            np.copyto(codes, ranks, casting="unsafe")
            if len(open_here):
                codes[open_here] = _search(self.recipe, words[open_here])[0]

        return look_up


@lru_cache(maxsize=64)
def _looking_up(recipe: Recipe, kernels: ModuleType | None) -> Callable[[Array, Array], None]:
    """Return the fastest function that writes the codes of words."""
    if recipe.source == SINGLE and recipe.format.width <= 8:
        narrow = _Narrow(recipe)
        if len(narrow.entries):
            return narrow.compiled(kernels) if kernels else narrow.plain()
    if recipe.source == SINGLE and recipe.format.width == 16 and isinstance(recipe.format, TwosComplementFormat):
        wide = _Wide(recipe)
        if len(wide.starts):
            return wide.compiled(kernels) if kernels else wide.plain()

    def searched(words: Array, codes: Array) -> None:
        codes[...] = _search(recipe, words)[0]

    return searched


@lru_cache(maxsize=256)
def rounder(format: Format, context: Context, word: Format, kernels: ModuleType | None) -> Rounder | None:
    """Return a function that rounds words into a table's codes; None if the rounding needs the scalar lane.

    `kernels` is the compiled extension, or None for the NumPy lane.
    """
    recipe = recipe_for(format, context, word)
    if not recipe.is_by_word:
        return None

    def work(words: Array, first: int, codes: Array, flags: Array | None) -> None:
        _looking_up(recipe, kernels)(words, codes)
        if flags is not None:
            flags[...] = _flags(recipe, words, codes)

    return in_pieces(work) if kernels is None else work


@lru_cache(maxsize=64)
def words_table(format: Format, word: Format) -> Array:
    """Return the word of each code, of 2^8 or 2^16; that nearest to it, if the word does not hold the number."""
    assert given_by_table(format)
    table = np.zeros(1 << 8 * container(format).itemsize, container(word))
    for negative in (False, True):
        for rank in range(format.most(negative) + 1):
            kept, _, upper = _cut(format.real(rank, negative), word)
            minus = negative and (rank > 0 or format.negative_zero)
            if not negative or minus:
                table[format.compose(negative, rank)] = word.compose(minus, kept + upper)
    specials = [format.nan_code] if format.has_nan else []
    if format.infinities:
        specials += [format.compose(sign, format.infinity_magnitude) for sign in (False, True)]
    for code in specials:
        table[code] = word_of(Datum(format, code), word)
    return table


def reader(format: Format, word: Format, kernels: ModuleType | None) -> Reader:
    """Return a function that decodes blocks of a table's codes into words."""

    def read(codes: Array, words: Array) -> None:
        table = words_table(format, word)
        if kernels is not None and table.itemsize in (4, 8):
            kernels.take_words(codes, table, table.itemsize, words)
        else:
            table.take(codes, out=words, mode="clip")

    return read


@lru_cache(maxsize=64)
def ranks_table(format: Format, unranked: int) -> Array:
    """Return the rank of each code as int64, with its sign; `unranked` for NaNs."""
    data = (Datum(format, code) for code in range(1 << format.width))
    return np.array([unranked if datum.is_nan else datum.ordinal for datum in data], np.int64)


@lru_cache(maxsize=64)
def codes_table(format: Format) -> tuple[Array, int]:
    """Return the code of each rank in ascending order, infinities included, and the place of zero."""
    assert given_by_table(format)
    top = [format.most(sign) + format.infinities for sign in (False, True)]
    ranks = range(-top[1], top[0] + 1)
    return np.array([format.compose(rank < 0, abs(rank)) for rank in ranks], container(format)), top[1]
