"""Parameters of formats for the lanes: how to decode codes into words, and how to round words.

A *lane* is one of the three implementations of an operation: compiled, NumPy and scalar. A *word* is the bit pattern of
a binary32 or binary64 number, read as an unsigned integer. The results for ∞, NaN, overflow and zero depend only on the
formats and the context. These results are computed here once for all lanes, by the scalar arithmetic. Decoding keeps
the payloads of NaNs if the format has payloads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.types import Array, DType
from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Direction, Exact, Flags, Tininess, round_exact
from floatlab.numbers.datum import code_in
from floatlab.numbers.projection import direction_in, infinity_code, nan_code
from floatlab.numbers.rounding import Negative, Overflow, increments
from floatlab.record import Individual

Settled = tuple[int, Flags] | UnsupportedError  # a code and the flags that it raises, or an error
SINGLE, DOUBLE = WORDS = parse_format("binary32"), parse_format("binary64")
# Rounding to odd first, with this many bits more than the format has, does not change the result.
_EXTRA_BITS = 2
_EXTRA_BITS_DRAWN = 33  # for stochastic rounding: 32 bits to compare with the draw, and one that is sticky


class DecodingRule(Individual):
    """Parameters for decoding codes of `format` into bit patterns of the format `word`.

    `word` contains all numbers of `format`.
    """

    format: Format
    word: Format
    cut: int  # how many bits the significand of a word is longer than that of a code
    adjust: int  # the difference of the biases, added to the exponent field
    same_range: bool  # whether subnormal numbers are also subnormal in the word, so that a shift decodes them
    by_fields: bool  # whether decoding can shift the fields into place and normalise subnormal numbers
    table: Array | None  # for codes of at most 8 bits: the word of each code


class RoundingRule(Individual):
    """Parameters for rounding words (bit patterns of numbers of the format `source`) into a format, in a context.

    If a field is a pair, the first entry is for positive numbers, and the second entry is for negative numbers.
    """

    format: Format
    context: Context
    source: Format
    direction: Direction  # of the context, with ties at precision 1 resolved (`direction_in`)
    cut: int  # number of bits that a normal number loses
    low: int  # the exponent field, in the source, of the smallest normal number of the format
    lift: int  # if there are no subnormals, the codes of zero and its neighbour are 2^lift apart; else 0
    overflow: tuple[Settled, Settled]
    infinity: tuple[Settled, Settled]
    nan: tuple[Settled, Settled]
    zero: tuple[Settled, Settled]
    negative: Settled | None  # the result for negative numbers, if the format has no sign
    refuses: bool  # whether one of these results is an error

    @property
    def keeps_payloads(self) -> bool:
        """Whether NaNs keep the leading bits of their payloads."""
        return self.format.ieee_nans and not self.context.nan.is_default

    @property
    def is_by_word(self) -> bool:
        """Whether the result of a rounding depends only on the number that is rounded.

        This is so if no random numbers are drawn, nothing is flushed to zero, and no value is an error.
        """
        flushes = self.context.flush_inputs or self.context.flush_results
        return not (self.direction.is_stochastic or flushes or self.refuses)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is flushed, no value is an error, and the format has a sign, a zero and subnormal numbers."""
        flushes = self.context.flush_inputs or self.context.flush_results
        return self.format.signed and self.format.zero and not (self.lift or flushes or self.refuses)

    @property
    def drops_signs(self) -> bool:
        """Whether negative numbers are rounded without their sign."""
        return not self.format.signed and self.context.negative is Negative.DROP

    @property
    def largest(self) -> int:
        """The largest number of the format or of the source, whichever is less, as a code of the source."""
        top = word_of(Datum(self.format, self.format.largest_magnitude), self.source)
        return min(top, self.source.largest_magnitude)

    @property
    def tiny(self) -> tuple[int, int, tuple[int, int]]:
        """Three values that decide whether a number is tiny. All words are without their sign bit.

        - The word of 2^emin or, if the word of infinity is less, the word of infinity.
        - The number of bits that a number in the binade below 2^emin loses when it is rounded to the format's precision
          with an unbounded exponent range.
        - For positive and for negative numbers, the smallest word that this rounding takes to 2^emin. From this word
          on, numbers are not tiny after rounding. If tininess is detected before rounding, or if the rounding is
          stochastic, both words are the word of 2^emin.
        """
        source, fmt = self.source, self.format
        normal = min(self.low << source.trailing_bits, source.infinity_magnitude)
        # Below 2^emin, numbers have one bit less if they are subnormal in the source.
        places = max(self.cut - (self.low == 1), 0) if self.low << source.trailing_bits == normal else 0
        if self.context.tininess is Tininess.BEFORE or self.direction.is_stochastic:
            return normal, places, (normal, normal)
        unit, kept = 1 << places, (1 << fmt.precision) - 1
        odd = bool((kept - (1 << fmt.trailing_bits) - (not fmt.zero)) & 1)
        tails = {1: (True, False, False), unit >> 1: (True, True, True), (unit >> 1) + 1: (True, True, False)}

        def edge(negative: bool) -> int:
            steps = (
                rest
                for rest, tail in tails.items()
                if 0 < rest < unit and increments(self.direction, negative, odd, *tail)
            )
            return normal - unit + min(steps, default=unit)

        return normal, places, (edge(False), edge(True))


def word_of(datum: Datum, word: Format) -> int:
    """Return the code of a datum's value in the format `word`, which must contain the value.

    NaNs keep their payloads if both formats have payloads.

    >>> from floatlab.numbers import decode
    >>> hex(word_of(decode(0x3C7C, "fp16"), parse_format("fp32")))
    '0x3f8f8000'
    """
    negative = bool(datum.sign_bit)
    if datum.symbol:
        return code_in(datum, word)
    if datum.is_finite:
        return round_exact(datum.exact, word).code
    if datum.is_infinite:
        return word.compose(negative, word.infinity_magnitude)
    if datum.format.ieee_nans:
        payload = datum.trailing_significand << (word.trailing_bits - datum.format.trailing_bits)
        return word.compose(negative, word.infinity_magnitude | payload)
    return word.compose(negative, word.infinity_magnitude | word.quiet_bit)


@lru_cache(maxsize=256)
def decoding_rule_for(format: Format, word: Format) -> DecodingRule:
    """Return the parameters for decoding codes of `format` into bit patterns of the format `word`.

    `word` must contain all numbers of `format`.
    """
    adjust, table = word.bias - format.bias, None
    if format.width <= 8 and not (format.is_table and not holds(word, format)):
        table = np.zeros(256, container(word))
        table[: 1 << format.width] = [word_of(Datum(format, code), word) for code in range(1 << format.width)]
    moves = not format.is_table and format.zero and format.magnitude_bits > 1 and not format.explicit_integer_bit
    return DecodingRule(
        format=format,
        word=word,
        cut=word.trailing_bits - format.trailing_bits,
        adjust=adjust,
        same_range=adjust == 0 and format.subnormals,
        by_fields=moves and (adjust == 0 or format.least_exponent >= word.emin),
        table=table,
    )


def can_read(format: Format, word: Format) -> bool:
    """Return whether the compiled and the NumPy lane can decode codes of `format` into the format `word`.

    These lanes decode the bit fields of a code, or look up the code in a table.
    """
    reading = decoding_rule_for(format, word)
    return reading.by_fields or reading.table is not None


def words_containing(format: Format) -> list[Format]:
    """Return which of binary32 and binary64 contain a format, in this order.

    >>> [word.name for word in words_containing(parse_format("e11m9"))]
    ['binary64']
    """
    return [word for word in WORDS if holds(word, format)]


@lru_cache(maxsize=256)
def container(format: Format) -> DType:
    """Return the dtype of a format's codes: the smallest sufficient unsigned integers, of at most 64 bits.

    Raises FormatError for wider codes.

    >>> container(parse_format("e4m3")), container(parse_format("tf32"))
    (dtype('uint8'), dtype('uint32'))
    """
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        if format.width <= 8 * kind(0).itemsize:
            return np.dtype(kind)
    raise FormatError(f"{format.name} has codes of {format.width} bits; arrays hold at most 64")


def checked_codes(codes: object, of: Format | int, name: str = "codes") -> Array:
    """Return codes as an array of integers. Raises UnsupportedError for codes that are not integers or are too wide.

    `of` is the format, or the width of its codes in bits. Error messages call the codes `name`.
    """
    try:
        array = np.asarray(codes)
    except (TypeError, ValueError) as trouble:
        raise UnsupportedError(f"{name} must be an array of integers: {str(trouble).splitlines()[0]}") from None
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iu":
        raise UnsupportedError(f"{name} must be an array of integers, not of {array.dtype.name}")
    width, whose = (of, f"codes of {of} bits") if isinstance(of, int) else (of.width, f"codes of {of.name}")
    if array.dtype.kind == "u" and 8 * array.itemsize <= width:  # no code of this dtype can be too wide
        return array
    if array.size and ((array.dtype.kind == "i" and int(array.min()) < 0) or int(array.max()) >> width):
        wrong = int(array.max()) if int(array.min()) >= 0 else int(array.min())
        raise UnsupportedError(f"{name} must be {whose}, from 0 to {(1 << width) - 1:#x}, not {wrong:#x}")
    return array


def can_round(source: Format, format: Format) -> bool:
    """Return whether the compiled and the NumPy lane can round numbers of the format `source` into `format`."""
    if format.is_table:
        return format.width <= 16
    return (
        not format.explicit_integer_bit
        and format.width <= 64
        and format.trailing_bits <= source.trailing_bits
        and format.emin >= source.emin
    )


def is_enough(word: Format, format: Format, drawn: bool = False) -> bool:
    """Return True if rounding numbers to odd in `word`, before rounding them into `format`, does not change results.

    `drawn` tells whether the rounding to `format` is stochastic. The result is also False if the compiled and the NumPy
    lane cannot round numbers of the format `word` into `format`.

    >>> bf16 = parse_format("bf16")
    >>> is_enough(SINGLE, bf16), is_enough(SINGLE, bf16, drawn=True)
    (True, False)
    """
    digits, depth = word.precision - format.precision, format.qmin - word.qmin
    return digits >= (_EXTRA_BITS_DRAWN if drawn else _EXTRA_BITS) and depth > _EXTRA_BITS and can_round(word, format)


def rounds_as_processors(context: Context) -> bool:
    """Return whether a context rounds as processors do: to nearest even, with native overflow, without flushing."""
    flushes = context.flush_inputs or context.flush_results
    return context.rounding is Direction.RNE and context.overflow is Overflow.NATIVE and not flushes


def _settled(ask: Callable[[], tuple[int, Flags]]) -> Settled:
    try:
        return ask()
    except UnsupportedError as refusal:
        return refusal


@lru_cache(maxsize=256)
def rounding_rule_for(format: Format, context: Context, source: Format) -> RoundingRule:
    """Return the parameters for rounding numbers of the format `source` (binary32 or binary64) into `format`."""

    def rounded(x: Exact) -> tuple[int, Flags]:
        found = round_exact(x, format, context)
        return found.code, found.flags

    def pair(ask: Callable[[bool], tuple[int, Flags]]) -> tuple[Settled, Settled]:
        return _settled(lambda: ask(False)), _settled(lambda: ask(True))

    pairs = {
        "overflow": pair(lambda negative: rounded(Exact(negative, 1, format.emax + 2))),
        "infinity": pair(lambda negative: infinity_code(format, context, negative)),
        "nan": pair(lambda negative: nan_code(format, context, negative and not context.nan.is_default)),
        "zero": pair(lambda negative: rounded(Exact(negative, 0, 0))),
    }
    negative = None if format.signed else _settled(lambda: rounded(Exact(True, 1, 0)))
    settled = (negative, *(each for both in pairs.values() for each in both))
    return RoundingRule(
        format=format,
        context=context,
        source=source,
        direction=direction_in(format, context),
        cut=source.trailing_bits - format.trailing_bits,
        low=format.emin + source.bias,
        lift=0 if format.subnormals else format.trailing_bits,
        negative=negative,
        refuses=any(isinstance(each, UnsupportedError) for each in settled),
        **pairs,
    )
