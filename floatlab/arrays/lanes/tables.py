"""Converts words to codes and codes to words, for formats given by a table of numbers.

The look-ups serve two of the three implementations of the array operations: the compiled and the NumPy lane. A *word*
is the bit pattern of a binary32 or binary64 number, read as an unsigned integer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import ModuleType

import numpy as np

from floatlab.arrays.lanes.numpy_rounding import in_pieces
from floatlab.arrays.lanes.parameters import SINGLE, RoundingRule, container, rounding_rule_for, word_of
from floatlab.arrays.lanes.table_lookups import BinadeLookup, NarrowLookup, WideLookup
from floatlab.arrays.lanes.table_registers import ByteLookup, FewLookup
from floatlab.arrays.lanes.table_segments import cut_to_word, first_word, search
from floatlab.arrays.types import Array, Reader, Rounder
from floatlab.formats import Format
from floatlab.formats.table_format import TwosComplementFormat
from floatlab.numbers import Context, Datum, Flags
from floatlab.numbers.projection import given_by_table

_INEXACT, _UNDERFLOW = Flags.INEXACT.value, (Flags.UNDERFLOW | Flags.INEXACT).value


def _add_flags(rule: RoundingRule, words: Array, codes: Array, flags: Array) -> None:
    """Add the flags that the code does not determine: inexact, underflow, invalid (signaling NaNs).

    Words that are rounded to the same code can have different flags.
    """
    format, word = rule.format, rule.source
    assert given_by_table(format)
    sign = words.dtype.type((1 << word.width - 1) - 1)
    magnitudes = words & sign
    values = np.empty_like(words)
    words_table(format, word).take(codes, out=values, mode="clip")
    changed = (values & sign) != magnitudes
    if format.is_irrational:
        # Only the words of 0 and ±1 are exact, since all other numbers are irrational.
        changed |= (magnitudes != 0) & (magnitudes != words.dtype.type(word.bias << word.trailing_bits))
    changed &= (magnitudes < word.infinity_magnitude) & (flags == 0)
    for negative in (False, True):
        normal = first_word(format.real(format.smallest_normal_magnitude, negative), False, word)
        tiny = changed & (magnitudes < normal) & ((words > sign) == negative)
        flags[tiny] = _UNDERFLOW
    flags[changed & (flags == 0)] = _INEXACT
    quiet = words.dtype.type(word.quiet_bit)
    signaling = (magnitudes > word.infinity_magnitude) & (words & quiet == 0)
    flags[signaling] |= np.uint8(Flags.INVALID.value)


@lru_cache(maxsize=64)
def _looking_up(rule: RoundingRule, kernels: ModuleType | None) -> Callable[[Array, Array], None]:
    """Return the fastest function for this rounding; the function rounds words, and writes the codes."""
    if rule.source == SINGLE and rule.format.width <= 8:
        if kernels and kernels.has_registers():
            few, by_bytes = FewLookup(rule), ByteLookup(rule)
            if len(few.table):
                return few.compiled(kernels)
            if len(by_bytes.tables):
                return by_bytes.compiled(kernels)
        narrow = NarrowLookup(rule)
        if len(narrow.entries):
            return narrow.compiled(kernels) if kernels else narrow.plain()
    if rule.source == SINGLE and rule.format.width == 16 and isinstance(rule.format, TwosComplementFormat):
        even = BinadeLookup(rule)
        if len(even.entries):
            return even.compiled(kernels) if kernels else even.plain()
        wide = WideLookup(rule)
        if len(wide.starts):
            return wide.compiled(kernels) if kernels else wide.plain()

    def searched(words: Array, codes: Array) -> None:
        codes[...] = search(rule, words)[0]

    return searched


@lru_cache(maxsize=256)
def rounder(format: Format, context: Context, word: Format, kernels: ModuleType | None) -> Rounder | None:
    """Return a function that rounds words into a format given by a table, or None if only the scalar lane can do this.

    `kernels` is the compiled extension, or None for the NumPy lane.
    """
    rule = rounding_rule_for(format, context, word)
    if not rule.is_by_word:
        return None

    def work(words: Array, first: int, codes: Array, flags: Array | None) -> None:
        if flags is None:
            _looking_up(rule, kernels)(words, codes)
            return
        codes[...], flags[...] = search(rule, words)  # a look-up gives no flags
        _add_flags(rule, words, codes, flags)

    return in_pieces(work) if kernels is None else work


@lru_cache(maxsize=64)
def words_table(format: Format, word: Format) -> Array:
    """Return a table of 2^8 or 2^16 entries that gives the word of each code.

    A word is the bit pattern of a number of the format `word`. If this format does not contain the number of a code,
    the number is rounded to nearest.
    """
    assert given_by_table(format)
    table = np.zeros(1 << 8 * container(format).itemsize, container(word))
    for negative in (False, True):
        for rank in range(format.most(negative) + 1):
            kept, _, upper = cut_to_word(format.real(rank, negative), word)
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
    """Return a function that decodes codes of a format given by a table into bit patterns of the format `word`."""

    def read(codes: Array, words: Array) -> None:
        table = words_table(format, word)
        if kernels is not None and table.itemsize in (4, 8):
            kernels.take_words(codes, table, words, 2 * (codes.itemsize == 2) + (words.itemsize == 8))
        else:
            table.take(codes, out=words, mode="clip")

    return read


@lru_cache(maxsize=64)
def ranks_table(format: Format, unranked: int) -> Array:
    """Return the rank of each code (`Datum.ordinal`, negative below zero) as int64; NaNs get `unranked`."""
    data = (Datum(format, code) for code in range(1 << format.width))
    return np.array([unranked if datum.is_nan else datum.ordinal for datum in data], np.int64)


@lru_cache(maxsize=64)
def codes_table(format: Format) -> tuple[Array, int]:
    """Return all codes except NaNs in ascending order of their numbers, and the index of zero among them."""
    assert given_by_table(format)
    top = [format.most(sign) + format.infinities for sign in (False, True)]
    ranks = range(-top[1], top[0] + 1)
    return np.array([format.compose(rank < 0, abs(rank)) for rank in ranks], container(format)), top[1]
