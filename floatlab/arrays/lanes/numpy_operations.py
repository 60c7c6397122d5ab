"""Operations on chunks of arrays: results are computed as exact pairs of binary64 (`pairs`), and then rounded once.

For each operation, `OPERATIONS` has a function that returns the exact result as a pair, and the equivalent scalar
operation. The scalar operation is used in three cases: a pair might be inexact, because binary64 overflows or the
second number of the pair underflows; the result is NaN; or stochastic rounding needs more bits than binary64 has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from floatlab import arith
from floatlab.arith.operands import holds
from floatlab.arrays.lanes import compiled, dispatch, pairs
from floatlab.arrays.lanes.numpy_rounding import in_pieces
from floatlab.arrays.lanes.parameters import (
    DOUBLE,
    SINGLE,
    WORDS,
    can_read,
    is_enough,
    rounding_rule_for,
    rounds_as_processors,
)
from floatlab.arrays.types import Array, Work
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, Direction, Flags
from floatlab.numbers.rounding import STREAM, NanRule, Overflow
from floatlab.record import Record

_LEAST = 2.0**-900  # binary64 represents the rounding error of products from this magnitude on


class Operation(Record):
    """An operation: its name and operands, its exact result, and the equivalent scalar operation."""

    name: str
    operands: tuple[str, ...]
    scalar: Callable[..., Derivation]
    pair: Callable[..., pairs.Pair]  # arguments: whether a product fits one float; the operands
    small: Callable[..., Array | bool]  # returns a mask: an intermediate result may be too small for a pair
    is_defined: Callable[..., Array | bool]  # returns a mask: the operation is defined for these finite operands
    terms: Callable[..., tuple[Array, Array]] | None  # returns the two terms of the last addition, if there is one

    @property
    def has_ties(self) -> bool:
        """Whether a result can be a tie in the precision of the operands. Quotients and roots are never ties."""
        return self.name not in ("divide", "sqrt")


def _product(narrow: bool, x: Array, y: Array) -> pairs.Pair:
    return (x * y, None) if narrow else pairs.two_product(x, y)


def _small_product(x: Array, y: Array, *_: Array) -> Array:
    return (np.abs(x * y) < _LEAST) & (x != 0) & (y != 0)


def _small_quotient(x: Array, y: Array) -> Array:
    return (np.minimum(np.abs(x), np.abs(x / y)) < _LEAST) & (x != 0)


def _never(*_: Array) -> bool:
    return False


def _always(*_: Array) -> bool:
    return True


OPERATIONS = {
    each.name: each
    for each in (
        Operation(
            "add", ("x", "y"), arith.add,
            pair=lambda _, x, y: pairs.two_sum(x, y), small=_never, is_defined=_always, terms=lambda x, y: (x, y),
        ),
        Operation(
            "subtract", ("x", "y"), arith.subtract,
            pair=lambda _, x, y: pairs.two_sum(x, -y), small=_never, is_defined=_always, terms=lambda x, y: (x, -y),
        ),
        Operation(
            "multiply", ("x", "y"), arith.multiply,
            pair=_product, small=_small_product, is_defined=_always, terms=None,
        ),
        Operation(
            "divide", ("x", "y"), arith.divide,
            pair=lambda _, x, y: pairs.quotient(x, y),
            small=_small_quotient, is_defined=lambda x, y: y != 0, terms=None,
        ),
        Operation(
            "sqrt", ("x",), arith.sqrt,
            pair=lambda _, x: pairs.root(x),
            small=lambda x: (x < _LEAST) & (x > 0), is_defined=lambda x: x >= 0, terms=None,
        ),
        Operation(
            "fma", ("x", "y", "z"), arith.fma,
            pair=lambda narrow, x, y, z: pairs.fused(_product(narrow, x, y), z),
            small=_small_product, is_defined=_always, terms=lambda x, y, z: (x * y, z),
        ),
    )
}  # fmt: skip


class ScalarOperation:
    """Computes an operation element by element: the scalar lane, and the fallback of the other lanes."""

    def __init__(
        self, operation: Operation, sources: tuple[Format, ...], format: Format, context: Context
    ) -> None:  # fmt: skip
        self.scalar, self.sources, self.format, self.context = operation.scalar, sources, format, context

    def answer(self, codes: tuple[int, ...], index: int) -> tuple[int, int]:
        """Return the code and the flags of the result for these operand codes.

        `index` is the index of the random draw.
        """
        context = self.context
        if context.rounding.is_stochastic:
            # The seed is advanced, so that the operation takes the draw with this index.
            context = context.replace(seed=(context.seed + index * STREAM) % (1 << 64))
        data = (Datum(format, code) for format, code in zip(self.sources, codes, strict=True))
        derivation = self.scalar(*data, format=self.format, context=context)
        return derivation.result.code, derivation.flags.value

    def put(self, where: Array, blocks: list[Array], first: int, codes: Array, flags: Array | None) -> None:
        """Compute and write the results of some elements of a chunk; `where` has the indices of these elements."""
        rows = zip(*(block[where].tolist() for block in blocks), strict=True)
        for i, row in zip(where.tolist(), rows, strict=True):
            codes[i], raised = self.answer(row, first + i)
            if flags is not None:
                flags[i] = raised

    def put_nans(
        self, where: Array, numbers: list[Array], blocks: list[Array], codes: Array, flags: Array | None
    ) -> None:
        """Write the results of the elements with the indices `where`; all these results are NaNs.

        A NaN result depends only on the labels of its operands (`_kinds`). So the scalar operation is called only once
        for each combination of labels.
        """
        kinds = [_kinds(number[where], block[where]) for number, block in zip(numbers, blocks, strict=True)]
        if all(np.isfinite(number[where]).all() for number in numbers):
            kinds = []  # finite operands: each NaN comes from an invalid operation, so all are the same
        left = np.arange(len(where))
        while len(left):
            code, raised = self.answer(tuple(int(block[where[left[0]]]) for block in blocks), 0)
            same = np.ones(len(left), bool)
            for kind in kinds:
                same &= kind[left] == kind[left[0]]
            codes[where[left[same]]] = code
            if flags is not None:
                flags[where[left[same]]] = raised
            left = left[~same]

    def __call__(self, *arguments: Any) -> None:
        """Compute a chunk; arguments: operands' codes, index of the first element, result's codes, flags or None."""
        *blocks, first, codes, flags = arguments
        self.put(np.arange(len(codes)), blocks, first, codes, flags)


def _kinds(number: Array, codes: Array) -> Array:
    """Return a label for each element of an operand; elements with the same label have the same effect on a NaN result.

    Each NaN code, ∞, −∞, 0 and −0 have their own labels. All other numbers of one sign share a label.
    """
    kind = np.where((number == 0) | np.isinf(number), number, np.copysign(1.0, number)).astype(np.float64)
    return np.where(np.isnan(number), codes.astype(np.uint64), kind.view(np.uint64))


@lru_cache(maxsize=256)
def calculator(
    operation: Operation, sources: tuple[Format, ...], format: Format, context: Context, lane: str | None,
    with_flags: bool,
) -> Work:  # fmt: skip
    """Return a function that computes an operation for a chunk of the arrays.

    The arguments of the function are the operands' codes, the index of the first element, the output, and an array for
    flags or None. `with_flags` tells whether flags will be requested. Raises UnsupportedError if the requested lane
    cannot compute the operation.
    """
    alone = ScalarOperation(operation, sources, format, context)
    # True if the format is binary64, or if rounding to odd in binary64 first does not change the result in the format.
    within = not context.rounding.is_stochastic if format == DOUBLE else is_enough(DOUBLE, format)
    if format.is_table and not rounding_rule_for(format, context, DOUBLE).is_by_word:
        within = False  # rounding to odd first would change the result of a draw
    if lane != "scalar" and within and all(holds(DOUBLE, each) for each in sources):
        if not with_flags and _is_processors_own(operation, sources, format, context):
            return in_pieces(_by_processor(operation, alone, lane))
        by_pairs = partial(Pairwise, operation, alone, lane)
        passes = _passes(operation.name, sources, format, context) if dispatch.is_compiled(lane) else []
        if passes and not (with_flags and format == DOUBLE):
            return compiled.run_in_passes(passes, by_pairs)
        return in_pieces(by_pairs())
    if lane not in (None, "scalar"):
        raise UnsupportedError(f"lane {lane} cannot {operation.name} in {format.name}; lane scalar can")
    return alone


def _passes(operation: str, sources: tuple[Format, ...], format: Format, context: Context) -> list[compiled.KernelPass]:
    """Return the passes of the compiled lane: in binary32, in binary64, or both in this order.

    The list is empty if the compiled lane cannot be used, so that the results must be computed as pairs.
    """
    if context.flush_inputs or format.is_table or any(each.is_table for each in sources):
        return []
    words: tuple[Format, ...] = WORDS
    name, drawn = operation, context.rounding.is_stochastic
    if format == DOUBLE:
        # The kernel uses the processor's own operation, which returns no flags.
        words, name = (DOUBLE,) if operation == "fma" and context == Context() else (), "fma_to_nearest"
    elif drawn and not all(holds(SINGLE, each) for each in sources):
        words = ()  # a second pass would not know the indices of its elements, which select the random draws
    found: list[compiled.KernelPass] = []
    for word in words:
        if not all(holds(word, each) and can_read(each, word) for each in sources):
            continue
        if format != DOUBLE and not is_enough(word, format, drawn):
            continue
        rule = rounding_rule_for(format, context, word)
        if rule.refuses:
            return []
        found.append(compiled.KernelPass(rule, sources, None, name))
    return found


def _is_processors_own(
    operation: Operation, sources: tuple[Format, ...], format: Format, context: Context
) -> bool:  # fmt: skip
    """Return whether the processor's own operation gives the right results for these formats and this context."""
    same = rounds_as_processors(context) and context.nan is NanRule.FIRST
    return same and format in WORDS and operation.name != "fma" and all(holds(format, each) for each in sources)


def _by_processor(operation: Operation, alone: ScalarOperation, lane: str | None) -> Work:
    """Return a function that computes one chunk of the arrays at a time, by the processor's own operation.

    The format is binary32 or binary64. Results are rounded to nearest even, and no flags are returned.
    """
    readers = [dispatch.float_reader(each, alone.format, lane) for each in alone.sources]

    def work(*arguments: Any) -> None:
        *blocks, _, codes, _ = arguments
        numbers = [read(block) for read, block in zip(readers, blocks, strict=True)]
        with np.errstate(all="ignore"):
            result = getattr(np, operation.name)(*numbers)
        codes[...] = result.view(codes.dtype)
        nans = np.flatnonzero(np.isnan(result))
        if len(nans):
            alone.put_nans(nans, numbers, blocks, codes, None)

    return work


class Pairwise:
    """Computes an operation for one chunk of the arrays at a time.

    Operands are decoded to binary64, or to binary32 if that is enough. The exact result is computed as a pair of floats
    (see `pairs`), rounded to odd, and then rounded into the format. If the format is binary64, the pair is rounded
    directly into binary64.
    """

    def __init__(self, operation: Operation, alone: ScalarOperation, lane: str | None) -> None:
        """Compute everything that is the same for all chunks."""
        self.operation, self.alone = operation, alone
        self.sources, self.context = sources, context = alone.sources, alone.context
        format = alone.format
        self.direct = format == DOUBLE
        # Products of binary32 numbers are exact in binary64; quotients, roots and sums are within its range.
        self.narrow = not self.direct and all(holds(SINGLE, each) for each in sources)
        drawn = context.rounding.is_stochastic
        self.short_of_digits = drawn and not is_enough(DOUBLE, format, drawn)
        self.single = not drawn and is_enough(SINGLE, format)
        self.all_single = self.single and self.narrow and operation.name in ("add", "subtract")
        words = [SINGLE if holds(SINGLE, each) else DOUBLE for each in sources]
        self.readers = [dispatch.float_reader(each, word, lane) for each, word in zip(sources, words, strict=True)]
        if not self.direct:
            # The numbers to be rounded are results, so `flush_inputs` does not apply to them.
            rules = context.replace(flush_inputs=False)
            self.round = dispatch.rounder(DOUBLE, format, rules, lane)
            if self.single:
                self.round_single = dispatch.rounder(SINGLE, format, rules, lane)

    def __call__(self, *arguments: Any) -> None:
        """Compute a chunk; the arguments are those of `ScalarOperation`."""
        *blocks, first, codes, flags = arguments
        with np.errstate(all="ignore"):
            numbers = [self._number(i, block) for i, block in enumerate(blocks)]
            pair = self.operation.pair(self.narrow, *numbers)
            if self.context.rounding is Direction.RTN and self.operation.terms:
                _negate_zeros(pair[0], self.operation.terms(*numbers))
            whole = bool(np.isfinite(pair[0]).all())
            nans, doubtful = self._set_aside(numbers, pair, whole)
            if self.single:
                self._round_single(pair, numbers, whole, first, codes, flags)
            else:
                self._round(pair, first, codes, flags)
            if not whole and flags is not None and self.operation.name == "divide":
                x, y = numbers
                flags[(y == 0) & (x != 0) & np.isfinite(x)] = Flags.DIVIDE_BY_ZERO.value
        if len(nans):
            self.alone.put_nans(nans, numbers, blocks, codes, flags)
        if len(doubtful):
            self.alone.put(doubtful, blocks, first, codes, flags)

    def _number(self, i: int, block: Array) -> Array:
        """Decode a chunk of codes of operand `i` to floats: to binary64, or to binary32 if that is enough."""
        number = self.readers[i](block)
        if not self.all_single:
            number = number.astype(np.float64, copy=False)
        if self.context.flush_inputs and self.sources[i].zero:
            subnormal = np.abs(number) < float(self.sources[i].smallest_normal)
            number = np.where(subnormal, np.copysign(number.dtype.type(0), number), number)
        return number

    def _set_aside(self, numbers: list[Array], pair: pairs.Pair, whole: bool) -> tuple[Array, Array]:
        """Return two arrays of indices: those of NaN results, and those of other results that the pairs cannot give.

        The results with these indices are computed by the scalar operation, so they are replaced by 1 in `pair`.
        `whole` tells whether all results are finite.
        """
        s, e = pair
        doubtful: Any = np.False_
        if not self.narrow:
            doubtful = self.operation.small(*numbers) | ~np.isfinite(0.0 if e is None else e)
            for number in numbers:
                doubtful &= np.isfinite(number)
            doubtful &= self.operation.is_defined(*numbers)
        if self.direct:
            doubtful |= self._is_at_an_edge(s)
        if self.short_of_digits:
            doubtful |= pairs.missed(pair)
        nans = np.isnan(s) & ~doubtful if not whole else np.False_
        aside = np.flatnonzero(nans), np.flatnonzero(doubtful)
        for where in aside:
            s[where] = 1
        return aside

    def _is_at_an_edge(self, s: Array) -> Array:
        """Return a mask of the binary64 results to which a rule for overflow or for flushing may apply."""
        found = np.isfinite(s) & (np.abs(s) >= 2.0**DOUBLE.emax)
        if self.context.overflow is Overflow.SATURATE:
            found |= np.isinf(s)
        if self.context.flush_results:
            found |= (s != 0) & (np.abs(s) < float(DOUBLE.smallest_normal))
        return found

    def _round(self, pair: pairs.Pair, first: int, codes: Array, flags: Array | None) -> None:
        if self.direct:
            direction = self.context.rounding
            if direction is Direction.RNA and not self.operation.has_ties:
                direction = Direction.RNE
            codes[...] = pairs.in_direction(pair, direction).view(np.uint64)
            if flags is not None:
                flags[...] = pairs.missed(pair) * np.uint8(Flags.INEXACT.value)
            return
        self.round(pairs.to_odd(pair).view(np.uint64), first, codes, flags)

    def _round_single(
        self, pair: pairs.Pair, numbers: list[Array], whole: bool, first: int, codes: Array, flags: Array | None
    ) -> None:
        """Round the results to odd in binary32, and then from binary32 into the format.

        This is faster than rounding from binary64. Results that are too large for binary32 are rounded from binary64.
        """
        if self.all_single:
            beyond = np.False_ if whole else np.isinf(pair[0]) & np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        else:
            wide, pair = pair[0], pairs.narrowed(pair)
            beyond = np.isinf(pair[0]) & np.isfinite(wide)
        where = np.flatnonzero(beyond)
        pair[0][where] = 1
        self.round_single(pairs.to_odd(pair).view(np.uint32), first, codes, flags)
        if len(where):
            made, raised = np.empty(len(where), codes.dtype), np.empty(len(where), np.uint8)
            again = self.operation.pair(self.narrow, *(number[where].astype(np.float64) for number in numbers))
            self.round(pairs.to_odd(again).view(np.uint64), 0, made, raised)
            codes[where] = made
            if flags is not None:
                flags[where] = raised


def _negate_zeros(s: Array, terms: tuple[Array, Array]) -> None:
    """Make a zero sum −0 unless both terms are +0 (IEEE 754-2019 6.3, rounding toward −∞)."""
    a, b = terms
    s[(s == 0) & (np.signbit(a) | np.signbit(b))] = -0.0
