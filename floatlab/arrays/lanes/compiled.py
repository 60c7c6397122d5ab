"""The compiled lane: packs the parameters of rounding and decoding for the C extension `floatlab._kernels`.

An operation on arrays is computed in one or two passes. The first pass computes all elements, in binary32 if binary32
is wide enough for the format of the results, and otherwise in binary64. Each result is rounded to odd, and then to the
format of the results. The kernel (the C function that does the pass) marks elements that this pass may not be able to
compute: products of numbers far from 1, overflows, infinities, NaNs, divisions by zero. After a pass in binary32, a
second pass computes the marked elements again in binary64. `numpy_operations` computes the elements that the last pass
marks, as exact pairs of binary64.

A *word* is the bit pattern of a binary32 or binary64 number, read as an unsigned integer. A parameter named `word` is
the format of the words: binary32 or binary64.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from floatlab.arrays.lanes.parameters import (
    RoundingRule,
    Settled,
    container,
    decoding_rule_for,
    rounding_rule_for,
)
from floatlab.arrays.types import Array, Reader, Rounder, Work
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, Tininess, convert
from floatlab.numbers.rounding import draw_rule

try:
    _kernels = import_module("floatlab._kernels")  # a `from` import would load higher layers
except ImportError:  # installed without a C compiler: the NumPy lane is used
    _kernels = None  # type: ignore[assignment]


# The byte with an element's flags can also hold two marks. REFUSED: the context makes this result an error. SPECIAL:
# another pass or another lane must compute the element.
REFUSED, SPECIAL = 1 << 7, 1 << 6
OPERATIONS = (
    "convert", "add", "subtract", "multiply", "divide", "sqrt", "fma",
    "fma_to_nearest", "divide_to_nearest", "sqrt_to_nearest",
)  # fmt: skip
# A number is rounded by adding an addend and then truncating (`cut` in _kernels/word_rounding.h). The columns say how
# the addend is computed:
# 1, 2: which of the discarded bits are set in the addend (a mask), for positive and for negative numbers
# 3: which of these bits are cleared again if the last kept bit is 1 (a mask)
# 4: by how many bits it is then shifted to the right
# 5: a number to add before this shift, if the last kept bit is 1
# 6: a number to add before this shift, in all cases
_ADDENDS = {
    Direction.RNE: (-1, -1, 0, 1, 1, 0),
    Direction.RNA: (-1, -1, 0, 1, 0, 1),
    Direction.RTZ: (0, 0, 0, 0, 0, 0),
    Direction.RAZ: (-1, -1, 0, 0, 0, 0),
    Direction.RTP: (-1, 0, 0, 0, 0, 0),
    Direction.RTN: (0, -1, 0, 0, 0, 0),
    Direction.RTO: (-1, -1, -1, 0, 0, 0),
    **dict.fromkeys((Direction.SR, Direction.SRA, Direction.SRB, Direction.SRC), (0, 0, 0, 0, 0, 0)),
}
_WHOLE, _ANY, _DRAWN, _FIXED, _MAGIC, _READ = range(6)  # the paths of the kernel, as in _kernels/stages.h
_FAR = 1 << 16  # an upper limit for `RoundingRule.low`; it is larger than every exponent field
# The rounding directions of processors, in the order of `directions` in _kernels/stages.h.
_OWN = (Direction.RNE, Direction.RTN, Direction.RTP, Direction.RTZ)
_RULE = 47 * 8  # the size in bytes of a Rule in a stage
_LETTERS = {4: "I", 8: "Q"}


def is_built() -> bool:
    """Return whether the extension was built."""
    return _kernels is not None


def extension() -> ModuleType | None:
    """Return the extension module, or None if it was not built."""
    return _kernels


def _settled(pair: tuple[Settled, Settled]) -> list[tuple[int, int]]:
    return [(0, REFUSED) if isinstance(each, UnsupportedError) else (each[0], each[1].value) for each in pair]


def _as_bytes(numbers: Iterable[int], size: int = 8) -> bytes:
    """Pack integers for the kernels, each in `size` bytes."""
    words = [int(each) & (1 << 8 * size) - 1 for each in numbers]
    return struct.pack(f"={len(words)}{_LETTERS[size]}", *words)


def _fastest_path(rule: RoundingRule) -> tuple[int, int]:
    """Return the kernel's fastest path for this rounding, and the largest magnitude that the path can round.

    The magnitude is −1 if only the general path (`_WHOLE`) can be used; that path rounds all numbers.
    """
    if not rule.is_plain:
        return _WHOLE, -1
    fmt, direction = rule.format, rule.direction
    same_range = rule.low == 1 and fmt.exponent_bits == rule.source.exponent_bits
    if direction is Direction.RNE and same_range and fmt.negative_zero:
        return _FIXED, rule.largest
    # This method rounds by adding a power of two, which must be finite in the source and greater than the number.
    room = (1 << rule.source.exponent_bits) - 2 - rule.cut
    if direction in _OWN and fmt.trailing_bits and rule.cut and rule.low <= room:
        return _MAGIC, min(rule.largest, room << rule.source.trailing_bits)
    return _DRAWN if direction.is_stochastic else _ANY, rule.largest


def _is_processors_own(rule: RoundingRule) -> bool:
    """Return whether a processor instruction gives all results of this conversion, including NaNs."""
    pair = rule.source.name, rule.format.name
    known = rule.direction in _OWN and pair in (("binary32", "binary16"), ("binary64", "binary32"))
    same = rule.keeps_payloads and rule.context.replace(rounding=Direction.RNE, seed=0) == Context()
    return known and same


def _rule(rule: RoundingRule) -> bytes:
    """Pack a rounding as a `Rule` of _kernels/word_rounding.h, followed by the parameters of its random draws."""
    fmt, context, direction = rule.format, rule.context, rule.direction
    assert not fmt.is_table, f"{fmt.name} is rounded by arrays.lanes.tables"
    positive, negative, *addend = _ADDENDS[direction]
    normal, places, edges = rule.tiny
    absent = (rule.negative, rule.negative) if rule.negative is not None else rule.zero
    settled = [_settled(each) for each in (rule.overflow, rule.infinity, rule.nan, rule.zero, absent)]
    return _as_bytes(
        [
            positive, positive ^ negative, *addend,
            fmt.signed << (fmt.width - 1), -int(fmt.negative_zero),
            (1 << (rule.source.trailing_bits - 1)) - 1 if rule.keeps_payloads else 0,
            edges[0], edges[0] ^ edges[1], normal - (1 << places), -int(context.tininess is Tininess.AFTER),
            rule.lift, -int(not fmt.zero), -int(not fmt.signed),
            -int(context.flush_inputs), -int(context.flush_results and fmt.zero),
            -int(rule.drops_signs), int(direction.has_few_bits),
            *(number for (plus, _), (minus, _) in settled for number in (plus, plus ^ minus)),
            *(number for (_, plus), (_, minus) in settled for number in (plus, plus ^ minus)),
            1, rule.cut, min(rule.low, _FAR) - 1, rule.source.width - fmt.width,
            places, normal, fmt.largest_magnitude,
        ],
        rule.source.width // 8,
    ).ljust(_RULE, b"\0") + _as_bytes(draw_rule(context))  # fmt: skip


def _place(buffer: int, size: int, reading: int = -1, row: int = 0, stride: int = 0) -> tuple[int, ...]:
    return buffer, row, stride, size, reading


NOWHERE = _place(-1, 1)


def packed_stage(
    operation: str, rule: RoundingRule, operands: Sequence[tuple[int, ...]], to: tuple[int, ...],
    flags: tuple[int, ...] = NOWHERE, marks: tuple[int, ...] = NOWHERE,
) -> bytes:  # fmt: skip
    """Pack a `Stage` of _kernels/stages.h: an operation, a rounding, and the places of operands and results."""
    path, largest = _fastest_path(rule)
    direction = _OWN.index(rule.direction) if rule.direction in _OWN else 0
    own = _is_processors_own(rule)
    header = [
        rule.source.width // 8, OPERATIONS.index(operation), rule.direction is Direction.RTN,
        container(rule.format).itemsize, path, rule.direction.is_stochastic, rule.refuses,
        direction if path == _MAGIC or own else 0, own, largest, rule.context.seed,
    ]  # fmt: skip
    places = [*operands, NOWHERE, NOWHERE][:3]
    return _as_bytes([*header, *(each for place in (*places, to, flags, marks) for each in place)]) + _rule(rule)


def packed_reading(fmt: Format, word: Format) -> Array:
    """Return the parameters for decoding codes of `fmt` into bit patterns of the format `word`.

    If codes are looked up in a table, return this table; otherwise, return a packed `Reading` of
    _kernels/word_reading.h.
    """
    reading = decoding_rule_for(fmt, word)
    if reading.table is not None:
        return reading.table
    shifted = reading.same_range and fmt.ieee_nans and fmt.width + reading.cut == word.width
    sign = fmt.signed << (fmt.width - 1)
    numbers = (
        2 if shifted else int(fmt.ieee_nans), reading.cut, reading.adjust, fmt.qmin, (1 << fmt.magnitude_bits) - 1,
        sign, word.width - fmt.width, fmt.largest_magnitude, fmt.infinity_magnitude,
        0 if reading.same_range else fmt.smallest_normal_magnitude, -int(fmt.subnormals),
        sign if fmt.nan_in_place_of_negative_zero else -1,
    )  # fmt: skip
    return np.array([int(each) & (1 << word.width) - 1 for each in numbers], container(word))


class KernelPass:
    """One pass over a chunk of arrays.

    The pass reads codes, applies an operation (if there is one), rounds the results, and writes codes or values.
    """

    def __init__(
        self, rule: RoundingRule, sources: tuple[Format, ...], target: Format | None, operation: str = "convert"
    ) -> None:
        """Pack the kernel's parameters; `sources` are the formats of the operands.

        The pass writes values in `target` or, if `target` is None, codes of the rule's format.
        """
        self._refuses, self._marks = rule.refuses, operation != OPERATIONS[0]
        of_operands = [None if each == rule.source else packed_reading(each, rule.source) for each in sources]
        self._readings = *of_operands, None if target is None else packed_reading(rule.format, target)
        word, code, many = rule.source.width // 8, container(rule.format).itemsize, len(sources)
        sizes = [container(each).itemsize for each in sources]
        operands = [_place(3 + i, size, 3 + many + i) for i, size in enumerate(sizes)]
        to = _place(0, code if target is None else word, 3 + 2 * many)
        self._program = packed_stage(operation, rule, operands, to, _place(1, 1), _place(2, 1))

    def __call__(self, operands: tuple[Array, ...], first: int, to: Array, flags: Array | None) -> tuple[int, Any]:
        """Process a chunk whose first element has the index `first`.

        Return a pair. Its first item has all flags and marks that occur in the chunk. Its second item is an array with
        one byte for each element: the marks after an operation, or the flags after a conversion. If no flags were
        needed after a conversion, the second item is None. A mark says that this pass cannot compute the element.
        """
        if flags is None and self._refuses:
            flags = np.empty(len(to), np.uint8)
        marks = np.empty(len(to), np.uint8) if self._marks else None
        _, raised = _kernels.run(self._program, (to, flags, marks), operands + self._readings, len(to), 1, first)
        return raised, flags if marks is None else marks


def rounder(rule: RoundingRule, source: Format, target: Format | None) -> Rounder:
    """Return a function that rounds chunks of codes of `source` into the rule's format.

    The function writes values in `target` or, if `target` is None, codes of the rule's format.
    """
    run = KernelPass(rule, (source,), target)

    def round_block(codes: Array, first: int, to: Array, flags: Array | None) -> None:
        raised, marks = run((codes,), first, to, flags)
        if raised & REFUSED:
            # The scalar conversion of the first refused element raises the error.
            convert(Datum(source, int(codes[np.argmax(marks & REFUSED != 0)])), rule.format, rule.context)

    return round_block


def run_in_passes(passes: list[KernelPass], rest: Callable[[], Work]) -> Work:
    """Return a function that computes the results for one chunk of the arrays at a time, in several passes.

    The first pass computes all elements. Each further pass computes the elements that the previous pass marked. The
    function that `rest()` returns computes the elements that the last pass marked.
    """
    first_pass, others = passes[0], partial(run_in_passes, passes[1:], rest) if passes[1:] else rest

    def work(*arguments: Any) -> None:
        *blocks, first, codes, flags = arguments
        raised, marks = first_pass(tuple(blocks), first, codes, flags)
        if not raised & SPECIAL:
            return
        where = np.flatnonzero(marks)
        some_codes = np.empty(len(where), codes.dtype)
        some_flags = None if flags is None else np.empty(len(where), np.uint8)
        others()(*(block[where] for block in blocks), 0, some_codes, some_flags)
        codes[where] = some_codes
        if flags is not None:
            flags[where] = some_flags

    return work


def reading_program(format: Format, target: Format) -> bytes:
    """Return a kernel program that decodes codes of `format` into bit patterns of the format `target`."""
    word = target.width // 8
    places = [_place(1, container(format).itemsize, 2), NOWHERE, NOWHERE, _place(0, word), NOWHERE, NOWHERE]
    header = [word, 0, 0, word, _READ, *[0] * 6]
    rule = _rule(rounding_rule_for(target, Context(), target))  # unused here, since nothing is rounded
    return _as_bytes([*header, *(each for place in places for each in place)]) + rule


def reader(format: Format, word: Format) -> Reader:
    """Return a function that decodes arrays of codes of `format` into bit patterns of the format `word`."""
    packed, program = packed_reading(format, word), reading_program(format, word)

    def read_block(codes: Array, words: Array) -> None:
        _kernels.run(program, (words,), (codes, packed), len(words), 1, 0)

    return read_block


class KernelProgram:
    """The stages of a recurrence (`arrays.recurrences`): operations on rows of binary64, repeated in each step.

    A row has the numbers of one variable in one step. A stage writes one row of its step, and reads rows of the same
    step or of the previous step.
    """

    def __init__(self, rows: int) -> None:
        """Start with no stages; every step has `rows` rows."""
        self._rows, self.packed = rows, b""
        self.readings: list[Array] = []

    def add(self, operation: str, operands: Sequence[tuple[int, bool]], to: int, rule: RoundingRule) -> None:
        """Add a stage that writes binary64.

        The rows of a step are numbered from 0. An operand is a pair: the number of a row, and whether the row of this
        step is meant (True) or the row of the previous step (False). `to` is the number of the row that is written.
        """
        rows, number = self._rows, -1
        if rule.format != rule.source:
            number = 2 + len(self.readings)
            self.readings.append(packed_reading(rule.format, rule.source))
        given = [_place(0, 8, -1, row + rows * is_now, rows) for row, is_now in operands]
        written = _place(0, 8, number, row=to + rows, stride=rows)
        self.packed += packed_stage(operation, rule, given, written, marks=_place(1, 1))

    def walk(self, states: Array, first: int) -> int:
        """Compute the states that follow states[0], and write them into states[1:]; return the number of steps done.

        `states` has the shape (steps + 1, rows, count). `first` is the number of earlier steps, whose random draws are
        skipped. The computation ends early at an element that the kernel cannot compute.
        """
        steps, _, count = states.shape
        done: int = _kernels.run(
            self.packed, (states, np.empty(count, np.uint8)), tuple(self.readings), count, steps - 1, first * count
        )[0]
        return done


def accumulate(sums: Array, x: Array, y: Array, fma: bool) -> None:
    """Add x[k]·y[k] to `sums` in place, for each k in ascending order; use fused multiply-adds if `fma` is true.

    The arrays are float32 or float64. x[k] and y[k] are broadcast to the shape of `sums`. `sums` must be contiguous and
    have at most two axes.
    """
    lone = (1,) * (2 - sums.ndim)
    shape = (len(x), *lone, *sums.shape)
    left, right = (np.broadcast_to(side.reshape(len(side), *lone, *side.shape[1:]), shape) for side in (x, y))
    _kernels.accumulate(sums.reshape(shape[1:]), left, right, fma)
