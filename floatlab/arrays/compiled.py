"""The compiled lane: recipes and readings as `floatlab._kernels` takes them, where it was built."""

from __future__ import annotations

import struct

import numpy as np

from floatlab.arrays.integers import encode_block
from floatlab.arrays.reading import word_of
from floatlab.arrays.recipe import Recipe
from floatlab.errors import UnsupportedError
from floatlab.numbers import Datum, Direction, Tininess

try:
    from floatlab import _kernels
except ImportError:  # no compiler was there when floatlab was installed: the NumPy lane serves
    _kernels = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from floatlab.arrays.lanes import Reader, Rounder
    from floatlab.arrays.reading import Reading
    from floatlab.arrays.recipe import Settled

    Array = np.ndarray[Any, np.dtype[Any]]

REFUSED = 1 << 7  # beside the flags of an element: the context refuses it
# The addends of directed roundings (see _kernels_word.h): for which signs and parities there is one, whether it is
# doubled, and whether it is one less; bit 2·negative + odd.
_ADDENDS = {
    Direction.RNA: (0b1111, 0, 0),
    Direction.RTZ: (0, 0, 0),
    Direction.RAZ: (0b1111, 0b1111, 0b1111),
    Direction.RTP: (0b0011, 0b1111, 0b1111),
    Direction.RTN: (0b1100, 0b1111, 0b1111),
    Direction.RTO: (0b0101, 0b1111, 0b1111),
}
_HOW = {Direction.RNE: 0, Direction.SR: 2}


def is_built() -> bool:
    """Say whether the extension is there."""
    return _kernels is not None


def _settled(pair: tuple[Settled, Settled]) -> list[int]:
    found: list[int] = []
    for each in pair:
        found += (0, REFUSED) if isinstance(each, UnsupportedError) else (each[0], each[1].value)
    return found


def _as_bytes(numbers: Iterable[int]) -> bytes:
    """Pack integers as the kernels' 64-bit fields."""
    words = [int(each) & (1 << 64) - 1 for each in numbers]
    return struct.pack(f"={len(words)}Q", *words)


def _largest(recipe: Recipe) -> int:
    """Return the word up to which additions to powers of two round: neither rounds past the format nor overflows."""
    source, fmt = recipe.source, recipe.format
    top = min(word_of(Datum(fmt, fmt.largest_magnitude), source), source.largest_magnitude)
    room = ((1 << source.exponent_bits) - 2 - recipe.cut) << source.trailing_bits
    return top if recipe.low == 1 else min(top, room)


def _recipe_bytes(recipe: Recipe) -> bytes:
    fmt, context = recipe.format, recipe.context
    addend, doubled, less = _ADDENDS.get(recipe.direction, (0, 0, 0))
    numbers = [
        recipe.is_plain, _HOW.get(recipe.direction, 1), doubled, less, addend,
        fmt.trailing_bits, recipe.cut, recipe.low, recipe.lift, fmt.largest_magnitude,
        fmt.signed << (fmt.width - 1), -int(fmt.negative_zero), fmt.signed, fmt.zero,
        (1 << (recipe.source.trailing_bits - 1)) - 1 if recipe.keeps_payloads else 0,
        fmt.width - 1, _largest(recipe),
        context.flush_inputs, context.flush_results and fmt.zero, context.tininess is Tininess.AFTER, context.seed,
    ]  # fmt: skip
    negative = (recipe.negative, recipe.negative) if recipe.negative is not None else recipe.zero
    for pair in (recipe.overflow, recipe.infinity, recipe.nan, recipe.zero, negative):
        numbers += _settled(pair)
    return _as_bytes(numbers)


def rounder(recipe: Recipe, count: int) -> Rounder:
    """Return what rounds a block of words into codes, and tells flags where it is given room for them."""
    packed, refuses = _recipe_bytes(recipe), recipe.refuses
    round_words = _kernels.round_words

    def round_block(words: Array, first: int, codes: Array, flags: Array | None) -> None:
        if flags is None and refuses:
            flags = np.empty(len(words), np.uint8)
        raised = round_words(words, words.itemsize, codes, codes.itemsize, flags, packed, first)
        if raised & REFUSED and flags is not None:
            where = int(np.argmax(flags & REFUSED != 0))
            encode_block(words[where : where + 1], recipe, first + where)  # the NumPy lane says why

    return round_block


def reader(reading: Reading) -> Reader:
    """Return what reads a block of codes as words."""
    fmt = reading.format
    packed = reading.table if reading.table is not None else _as_bytes((
        fmt.trailing_bits, reading.cut, reading.adjust, fmt.qmin, (1 << fmt.magnitude_bits) - 1,
        fmt.signed << (fmt.width - 1), fmt.largest_magnitude, fmt.infinity_magnitude,
        fmt.subnormals, reading.same_range, fmt.ieee_nans, fmt.nan_in_place_of_negative_zero,
    ))  # fmt: skip

    def read_block(codes: Array, words: Array) -> None:
        _kernels.read_codes(codes, codes.itemsize, words, words.itemsize, packed)

    return read_block
