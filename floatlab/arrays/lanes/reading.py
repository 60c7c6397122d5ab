"""Codes as arrays hold them, and what a lane must know to read them as binary32 or binary64 words.

NaNs keep their payloads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.types import Array, DType
from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Datum, round_exact
from floatlab.record import Record


class Reading(Record):
    """A format whose numbers are all numbers of `word`, as a lane reads it."""

    format: Format
    word: Format
    cut: int  # digits that a significand gains
    adjust: int  # what an exponent field gains
    same_range: bool  # subnormal numbers are the word's own, and only shift
    by_fields: bool  # sign, exponent and significand can be moved as they are, or turned into normal numbers
    table: Array | None  # for codes of at most 8 bits: the word of each code

    _fields = ("format", "word")

    def __init__(self, format: Format, word: Format) -> None:
        """Settle what depends on the two formats only."""
        adjust = word.bias - format.bias
        settled: dict[str, object] = {
            "format": format,
            "word": word,
            "cut": word.trailing_bits - format.trailing_bits,
            "adjust": adjust,
            "same_range": adjust == 0 and format.subnormals,
            "by_fields": format.zero
            and format.magnitude_bits > 1
            and not format.explicit_integer_bit
            and (adjust == 0 or format.least_exponent >= word.emin),
            "table": table_of(format, word) if format.width <= 8 else None,
        }
        for field, value in settled.items():
            object.__setattr__(self, field, value)


def word_of(datum: Datum, word: Format) -> int:
    """Return the code in `word` of a datum whose number `word` holds; NaNs keep payloads that both formats have.

    >>> from floatlab.numbers import decode
    >>> hex(word_of(decode(0x3C7C, "fp16"), parse_format("fp32")))
    '0x3f8f8000'
    """
    negative = bool(datum.sign_bit)
    if datum.is_finite:
        return round_exact(datum.exact, word).code
    if datum.is_infinite:
        return word.compose(negative, word.infinity_magnitude)
    if datum.format.ieee_nans:
        payload = datum.trailing_significand << (word.trailing_bits - datum.format.trailing_bits)
        return word.compose(negative, word.infinity_magnitude | payload)
    return word.compose(negative, word.infinity_magnitude | word.quiet_bit)


def table_of(format: Format, word: Format) -> Array:
    """Return the word of every code of a small format, read by the codec."""
    found = np.zeros(256, container(word))
    found[: 1 << format.width] = [word_of(Datum(format, code), word) for code in range(1 << format.width)]
    return found


@lru_cache(maxsize=256)
def reading_for(format: Format, word: Format) -> Reading:
    """Return how a format is read as words that hold it."""
    return Reading(format, word)


SINGLE, DOUBLE = WORDS = parse_format("binary32"), parse_format("binary64")


def words_that_hold(format: Format) -> list[Format]:
    """Return the words that hold all of a format, the narrower first.

    >>> [word.name for word in words_that_hold(parse_format("e11m9"))]
    ['binary64']
    """
    return [word for word in WORDS if holds(word, format)]


@lru_cache(maxsize=256)
def container(format: Format) -> DType:
    """Return the dtype of a format's codes: the smallest unsigned integers that hold them, of at most 64 bits.

    >>> container(parse_format("e4m3")), container(parse_format("tf32"))
    (dtype('uint8'), dtype('uint32'))
    """
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        if format.width <= 8 * kind(0).itemsize:
            return np.dtype(kind)
    raise FormatError(f"{format.name} has codes of {format.width} bits; arrays hold at most 64")


def checked_codes(codes: Any, of: Format | int, name: str = "codes") -> Array:
    """Return codes as the array of integers that they are; raises UnsupportedError where a format has no such codes.

    `of` is the format, or how many bits its codes have; `name` is what the caller calls them.
    """
    try:
        array = np.asarray(codes)
    except (TypeError, ValueError) as trouble:
        raise UnsupportedError(f"{name} is no array of integers: {str(trouble).splitlines()[0]}") from None
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iu":
        raise UnsupportedError(f"{name} is an array of {array.dtype.name}; codes are integers")
    width, whose = (of, "they") if isinstance(of, int) else (of.width, f"those of {of.name}")
    if array.dtype.kind == "u" and 8 * array.itemsize <= width:  # no integer of this dtype is too wide
        return array
    if array.size and ((array.dtype.kind == "i" and int(array.min()) < 0) or int(array.max()) >> width):
        raise UnsupportedError(
            f"{name} has codes that are not {width} bits: {whose} go from 0 to {(1 << width) - 1:#x}"
        )
    return array
