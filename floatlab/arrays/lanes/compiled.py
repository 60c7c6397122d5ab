"""The compiled lane: recipes and readings as `floatlab._kernels` takes them, where it was built."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from floatlab.arrays.lanes import scalar
from floatlab.arrays.lanes.reading import Reading, container, reading_for
from floatlab.arrays.lanes.rounding_parameters import Recipe, Settled
from floatlab.arrays.types import Array, Reader, Rounder
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Direction, Tininess

try:
    _kernels = import_module("floatlab._kernels")  # by name: a `from` would import the package's face, a floor up
except ImportError:  # no compiler was there when floatlab was installed: the NumPy lane serves
    _kernels = None  # type: ignore[assignment]


# Beside the flags of an element: the context refuses it, or another lane is to compute it.
REFUSED, SPECIAL = 1 << 7, 1 << 6
_READINGS = ("shifted", "ieee", "other")
OPERATIONS = (
    "convert", "add", "subtract", "multiply", "divide", "sqrt", "fma",
    "fma_to_nearest", "divide_to_nearest", "sqrt_to_nearest",
)  # fmt: skip
# The addend of a rounding (`cut` in _kernels_word.h): which digits of what is cut off are added, for positive and for
# negative numbers; not where the digit before is odd; and whether half of that, with 1 where it is odd, or with 1.
_ADDENDS = {
    Direction.RNE: (-1, -1, 0, 1, 1, 0),
    Direction.RNA: (-1, -1, 0, 1, 0, 1),
    Direction.RTZ: (0, 0, 0, 0, 0, 0),
    Direction.RAZ: (-1, -1, 0, 0, 0, 0),
    Direction.RTP: (-1, 0, 0, 0, 0, 0),
    Direction.RTN: (0, -1, 0, 0, 0, 0),
    Direction.RTO: (-1, -1, -1, 0, 0, 0),
    Direction.SR: (0, 0, 0, 0, 0, 0),
}
_WHOLE, _ANY, _DRAWN, _FIXED, _MAGIC = range(5)
_FAR = 1 << 16  # a smallest normal number that high is far from all words
# The directions that processors have, as x86 numbers them.
_OWN = (Direction.RNE, Direction.RTN, Direction.RTP, Direction.RTZ)


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


def _way(recipe: Recipe) -> tuple[int, int]:
    """Return the quickest way to round, and the word up to which it serves."""
    if not recipe.is_plain:
        return _WHOLE, -1
    if recipe.direction is not Direction.RNE:
        return _DRAWN if recipe.direction is Direction.SR else _ANY, recipe.largest
    fmt = recipe.format
    if recipe.low == 1 and fmt.exponent_bits == recipe.source.exponent_bits and fmt.negative_zero:
        return _FIXED, recipe.largest
    # By adding a power of two: it is a number of the word, and greater than what is rounded.
    room = (1 << recipe.source.exponent_bits) - 2 - recipe.cut
    if fmt.trailing_bits and recipe.cut and recipe.low <= room:
        return _MAGIC, min(recipe.largest, room << recipe.source.trailing_bits)
    return _ANY, recipe.largest


def _processors_own(recipe: Recipe) -> int:
    """Return 1 and the direction of a conversion that processors have, NaNs included; 0 where they have none."""
    pair = recipe.source.name, recipe.format.name
    known = {("binary32", "binary16"): _OWN, ("binary64", "binary32"): _OWN[:1]}.get(pair, ())
    same = recipe.keeps_payloads and recipe.context.replace(rounding=Direction.RNE, seed=0) == Context()
    return 1 + known.index(recipe.direction) if same and recipe.direction in known else 0


def _recipe_bytes(recipe: Recipe) -> bytes:
    fmt, context, direction, (way, largest) = recipe.format, recipe.context, recipe.direction, _way(recipe)
    normal, places, edges = recipe.tiny
    numbers = [
        way, direction is Direction.SR, recipe.refuses, *_ADDENDS[direction],
        fmt.trailing_bits, min(recipe.low, _FAR), recipe.lift, fmt.largest_magnitude,
        fmt.signed << (fmt.width - 1), -int(fmt.negative_zero), fmt.signed, fmt.zero,
        (1 << (recipe.source.trailing_bits - 1)) - 1 if recipe.keeps_payloads else 0,
        fmt.width - 1, largest,
        *edges, normal - (1 << places), places, context.tininess is Tininess.AFTER, normal,
        context.flush_inputs, context.flush_results and fmt.zero,
        _processors_own(recipe), 1, context.seed,
    ]  # fmt: skip
    negative = (recipe.negative, recipe.negative) if recipe.negative is not None else recipe.zero
    for pair in (recipe.overflow, recipe.infinity, recipe.nan, recipe.zero, negative):
        numbers += _settled(pair)
    return _as_bytes(numbers)


def _reading_bytes(reading: Reading | None) -> Any:
    if reading is None:
        return None
    if reading.table is not None:
        return reading.table
    fmt, width = reading.format, reading.word.width
    shifted = reading.same_range and fmt.ieee_nans and fmt.width + reading.cut == width
    sign = fmt.signed << (fmt.width - 1)
    return _as_bytes((
        _READINGS.index("shifted" if shifted else "ieee" if fmt.ieee_nans else "other"),
        reading.cut, reading.adjust, fmt.qmin, (1 << fmt.magnitude_bits) - 1,
        sign, width - fmt.width, fmt.largest_magnitude, fmt.infinity_magnitude,
        0 if reading.same_range else fmt.smallest_normal_magnitude, -int(fmt.subnormals),
        sign if fmt.nan_in_place_of_negative_zero else -1,
    ))  # fmt: skip


class KernelPass:
    """One pass: codes of operands read as words, an operation or none, the rounding, and codes or values written."""

    def __init__(
        self, recipe: Recipe, sources: tuple[Reading | None, ...], target: Reading | None, operation: str = "convert"
    ) -> None:
        """Pack what the kernel is told; a reading of None stands for what are words already, or codes to be written."""
        self._recipe, self._format = recipe, recipe.format
        self._packed = _recipe_bytes(recipe)
        self._sources, self._target = [_reading_bytes(each) for each in sources], _reading_bytes(target)
        self._operation = OPERATIONS.index(operation)
        self._word_size = recipe.source.width // 8
        self._code_size = container(recipe.format).itemsize
        self._negative_zero = recipe.direction is Direction.RTN

    def __call__(self, operands: tuple[Array, ...], first: int, to: Array, flags: Array | None) -> tuple[int, Any]:
        """Do a block, whose first element has this place in the whole; return what any element raised, and marks."""
        if flags is None and self._recipe.refuses:
            flags = np.empty(len(to), np.uint8)
        marks = np.empty(len(to), np.uint8) if self._operation else None
        given = tuple((x, x.itemsize, read) for x, read in zip(operands, self._sources, strict=True))
        raised = _kernels.run(
            self._word_size, self._operation, given, to, to.itemsize, self._code_size, self._target, flags, marks,
            self._packed, first, self._negative_zero,
        )  # fmt: skip
        return raised, flags if marks is None else marks


def rounder(recipe: Recipe, source: Format, target: Format | None) -> Rounder:
    """Return what rounds a block of one format's codes into another's, or into values that `target` holds."""
    word, fmt, context = recipe.source, recipe.format, recipe.context
    read = None if source == word else reading_for(source, word)
    run = KernelPass(recipe, (read,), None if target is None else reading_for(fmt, target))

    def convert(given: Array, first: int, to: Array, flags: Array | None) -> None:
        raised, told = run((given,), first, to, flags)
        if raised & REFUSED:
            where = int(np.argmax(told & REFUSED != 0))
            # The codec says why.
            scalar.round_codes(given[where : where + 1], source, fmt, context, 0, np.empty(1, np.uint64), None)

    return convert


def reader(reading: Reading) -> Reader:
    """Return what reads a block of codes as words."""
    packed = _reading_bytes(reading)

    def read_block(codes: Array, words: Array) -> None:
        size = words.itemsize
        _kernels.run(size, 0, ((codes, codes.itemsize, packed),), words, size, size, None, None, None, None, 0, False)

    return read_block


def flag_sets(flags: Array) -> Array:
    """Return how many elements raised each of the 32 sets of flags; NumPy counts where the extension was not built."""
    if not is_built() or not flags.flags.c_contiguous:
        return np.bincount(flags, minlength=32)
    counts = np.zeros(256, np.int64)
    _kernels.count(flags, counts)
    return counts[:32]


_READING_SIZE = 256 * 8  # what a stage of a recurrence has room for: a table of words
_FIELDS = 8  # of 64 bits, before the recipe


def stage(operation: str, operands: Sequence[int], to: int, recipe: Recipe, target: Reading | None) -> bytes:
    """Return a stage of a recurrence as `walk` takes it: rows of operands, the row that is written, the rounding.

    All rows are binary64; a target of None stands for results that are words as they are.
    """
    size = 8 if target is None else container(recipe.format).itemsize
    rows = [*operands, 0, 0, 0][:3]
    fields = [OPERATIONS.index(operation), *rows, to, size, recipe.direction is Direction.RTN, 0]
    assert len(fields) == _FIELDS
    how = b"" if target is None else bytes(_reading_bytes(target))
    return _as_bytes(fields) + _recipe_bytes(recipe) + how.ljust(_READING_SIZE, b"\0")


def walk(*given: object) -> int:
    """Do steps of a recurrence, as `_kernels.walk`; return how many were done."""
    return int(_kernels.walk(*given))


def accumulate(sums: Array, x: Array, y: Array, fma: bool) -> None:
    """Add x[k]·y[k] to `sums` for one k after the other, in place; float32 or float64, x and y broadcast to sums.

    `sums` is contiguous and has at most two axes.
    """
    lone = (1,) * (2 - sums.ndim)
    shape = (len(x), *lone, *sums.shape)
    left, right = (np.broadcast_to(side.reshape(len(side), *lone, *side.shape[1:]), shape) for side in (x, y))
    _kernels.accumulate(sums.reshape(shape[1:]), left, right, fma)
