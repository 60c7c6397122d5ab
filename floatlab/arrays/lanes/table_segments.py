"""Finds the segments of a rounding into a format given by a table of numbers.

A *word* is the bit pattern of a binary32 or binary64 number, read as an unsigned integer. A *segment* is a range of
words that are rounded to the same code. The *start* of a segment is its first word. The scalar arithmetic determines
the starts, once for each format, direction and sign. The compiled and the NumPy lane find the segment of a word by a
binary search among the starts. The look-ups of `table_lookups` give the same codes, and are faster.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.lanes.parameters import RoundingRule, container
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.formats.table_format import Real, TableFormat, TwosComplementFormat
from floatlab.numbers import Direction, Flags
from floatlab.numbers.projection import given_by_table
from floatlab.numbers.rounding import increments
from floatlab.record import Individual


class Segments(Individual):
    """The segments of the numbers of one sign, in ascending order of magnitude.

    A segment is a range of words that are rounded to the same code. For each segment, `starts` has the first word
    (without the sign), `codes` has the code, and `flags` has the flags that all of its words raise.
    """

    starts: Array
    codes: Array
    flags: Array


def cut_to_word(x: Real, word: Format) -> tuple[int, bool, bool]:
    """Truncate a magnitude to a word; magnitudes of at least 2^(emax + 1) give infinity.

    Return the word, whether the truncation discards a part, and whether this part is at least half a unit in the last
    place.
    """
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


def first_word(x: Real, strict: bool, word: Format) -> int:
    """Return the word of the smallest number that is at least x; if `strict` is true, the number must be above x.

    If no finite number of the format `word` is large enough, return the word of infinity.
    """
    kept, inexact, _ = cut_to_word(x, word)
    return min(kept + (strict or inexact), word.infinity_magnitude)


@lru_cache(maxsize=64)
def _starts(format: TableFormat, direction: Direction, negative: bool, word: Format) -> Array:
    """Return, for each rank 1, 2, … of one sign, the first word (without the sign) that is rounded to this rank.

    The rank of a number is its index among the numbers of one sign, in ascending order of magnitude; zero has rank 0.
    If numbers can overflow, the last entry is the first word that overflows.
    """
    most, beyond = format.most(negative), format.next_beyond()
    exact = not format.is_irrational
    found = []
    for rank in range(most + (beyond is not None)):
        odd = format.counts_as_odd(rank, negative) if direction is Direction.RNE else bool(rank & 1)
        low, middle, high = (
            bool(increments(direction, negative, odd, True, *at))
            for at in ((False, False), (True, True), (True, False))
        )
        if low:  # every number above the lower neighbour is rounded up
            found.append(first_word(format.real(rank, negative), True, word))
        elif middle or high:
            boundary = format.boundary(rank, negative)
            found.append(first_word(boundary, not middle and (exact or not boundary[0]), word))
        else:
            following = format.real(rank + 1, negative) if rank < most else beyond
            assert following is not None
            found.append(first_word(following, False, word))
    return np.array([max(each, 1) for each in found], container(word))  # zero stays zero


@lru_cache(maxsize=64)
def segments(rule: RoundingRule, negative: bool) -> Segments:
    """Return the segments of one sign, in ascending order: zero, all other numbers, overflow, infinity and NaN.

    A segment is a range of words that are rounded to the same code.
    """
    format, word = rule.format, rule.source
    assert given_by_table(format)
    mirrored = {Direction.RTP: Direction.RTN, Direction.RTN: Direction.RTP}
    direction = rule.direction
    if negative and isinstance(format, TwosComplementFormat):
        # The starts are those of positive numbers, rounded in the opposite direction.
        direction, negative_starts = mirrored.get(direction, direction), False
    else:
        negative_starts = negative
    starts, most = _starts(format, direction, negative_starts, word), format.most(negative)
    numbers = [format.signed_code(negative, rank) for rank in range(len(starts) + 1)][: most + 1]
    settled = [rule.overflow[negative], rule.infinity[negative], rule.nan[negative]]
    (over, _), (infinity, at_infinity), (nan, at_nan) = (_settle(each) for each in settled)
    flags = [0] * len(numbers)
    edge = first_word(format.real(most, negative), True, word)
    if len(starts) > most:  # the last start belongs to overflow
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


def search(rule: RoundingRule, words: Array) -> tuple[Array, Array]:
    """Find the segment of each word by a binary search; return the codes and the flags of the segments."""
    signs = words >> words.dtype.type(rule.source.width - 1)
    magnitudes = words & words.dtype.type((1 << rule.source.width - 1) - 1)
    codes, flags = np.empty(len(words), container(rule.format)), np.empty(len(words), np.uint8)
    for negative in (False, True):
        here = np.flatnonzero(signs == negative)
        of_sign = segments(rule, negative)
        at = np.searchsorted(of_sign.starts, magnitudes[here], "right") - 1
        codes[here], flags[here] = of_sign.codes[at], of_sign.flags[at]
    return codes, flags
