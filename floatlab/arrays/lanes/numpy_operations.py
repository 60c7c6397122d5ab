"""How blocks of arrays are added, multiplied, divided …: exactly, as pairs of binary64, and then rounded once.

Each operation stands in one table with the pair that is its exact result and the scalar operation that it equals.
Wherever a pair might not be exact (binary64 overflows, or what is missing underflows), where the result is a NaN, and
where a stochastic draw would have to see more digits than a pair shows, the scalar operation gives the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from floatlab import arith
from floatlab.arith.operands import holds
from floatlab.arrays.lanes import compiled_operations, dispatch
from floatlab.arrays.lanes.pairs import (
    Pair,
    fused,
    in_direction,
    is_enough,
    missed,
    narrowed,
    quotient,
    root,
    to_odd,
    two_product,
    two_sum,
)
from floatlab.arrays.lanes.pieces import in_pieces
from floatlab.arrays.lanes.reading import DOUBLE, SINGLE, WORDS, container
from floatlab.arrays.lanes.scalar import OneByOne
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Direction, Flags
from floatlab.numbers.rounding import NanRule, Overflow
from floatlab.record import Record

_LEAST = 2.0**-900  # what is missing of a product from here on is a number of binary64


class Operation(Record):
    """An operation: its name and operands, its exact result, and the scalar operation that it equals."""

    name: str
    operands: tuple[str, ...]
    scalar: Callable[..., Any]
    pair: Callable[..., Pair]  # of whether products need no second float, and numbers
    small: Callable[..., Any]  # where something in between may be too small for a pair
    is_defined: Callable[..., Any]  # where numbers have an answer that is a number
    terms: Callable[..., tuple[Array, Array]] | None  # what is added up at the end

    @property
    def has_ties(self) -> bool:
        """Whether a result can lie halfway between floats that have the digits of its operands."""
        return self.name not in ("divide", "sqrt")


def _product(narrow: bool, x: Array, y: Array) -> Pair:
    return (x * y, None) if narrow else two_product(x, y)


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
            pair=lambda _, x, y: two_sum(x, y), small=_never, is_defined=_always, terms=lambda x, y: (x, y),
        ),
        Operation(
            "subtract", ("x", "y"), arith.subtract,
            pair=lambda _, x, y: two_sum(x, -y), small=_never, is_defined=_always, terms=lambda x, y: (x, -y),
        ),
        Operation(
            "multiply", ("x", "y"), arith.multiply,
            pair=_product, small=_small_product, is_defined=_always, terms=None,
        ),
        Operation(
            "divide", ("x", "y"), arith.divide,
            pair=lambda _, x, y: quotient(x, y), small=_small_quotient, is_defined=lambda x, y: y != 0, terms=None,
        ),
        Operation(
            "sqrt", ("x",), arith.sqrt,
            pair=lambda _, x: root(x), small=lambda x: (x < _LEAST) & (x > 0), is_defined=lambda x: x >= 0, terms=None,
        ),
        Operation(
            "fma", ("x", "y", "z"), arith.fma,
            pair=lambda narrow, x, y, z: fused(_product(narrow, x, y), z),
            small=_small_product, is_defined=_always, terms=lambda x, y, z: (x * y, z),
        ),
    )
}  # fmt: skip


@lru_cache(maxsize=256)
def calculator(
    operation: Operation,
    sources: tuple[Format, ...],
    format: Format,
    context: Context,
    lane: str | None,
    told: bool,
) -> Callable[..., None]:
    """Return what computes a block: codes of each operand, the first one's place, codes of the result, flags or None.

    `told` says whether flags will be asked for. Raises UnsupportedError where the lane that was asked for cannot.
    """
    if lane != "scalar" and all(holds(DOUBLE, each) for each in sources) and _is_within(format, context):
        if not told and ByProcessor.can(operation, sources, format, context):
            return in_pieces(ByProcessor(operation, sources, format, lane))
        by_pairs = partial(Pairwise, operation, sources, format, context, lane)
        made = compiled_operations.runs(operation.name, sources, format, context) if dispatch.is_compiled(lane) else ()
        if made and not (told and format == DOUBLE):
            return compiled_operations.Passes(made, by_pairs)
        return in_pieces(by_pairs())
    if lane not in (None, "scalar"):
        raise UnsupportedError(f"lane {lane} cannot {operation.name} in {format.name}; lane scalar can")
    alone = OneByOne(operation.scalar, sources, format, context)

    def work(*given: Any) -> None:
        *blocks, first, codes, flags = given
        alone.put(np.arange(len(codes)), blocks, first, codes, flags)

    return work


def _is_within(format: Format, context: Context) -> bool:
    """Say whether binary64, rounded to odd, is enough for the format (or is the format)."""
    return context.rounding is not Direction.SR if format == DOUBLE else is_enough(DOUBLE, format)


def rounds_as_processors(context: Context) -> bool:
    """Say whether a context asks of numbers what processors do: to nearest even, beyond the largest ∞, none flushed."""
    flushes = context.flush_inputs or context.flush_results
    return context.rounding is Direction.RNE and context.overflow is Overflow.NATIVE and not flushes


class ByProcessor:
    """An operation that the processor has: in a format of its own, to nearest even, and nobody asks for flags."""

    def __init__(self, operation: Operation, sources: tuple[Format, ...], format: Format, lane: str | None) -> None:
        """Settle how operands are read."""
        self.operation, self.format = operation, format
        self.alone = OneByOne(operation.scalar, sources, format, Context())
        self.readers = [None if each == format else dispatch.reader(each, format, lane) for each in sources]

    @staticmethod
    def can(operation: Operation, sources: tuple[Format, ...], format: Format, context: Context) -> bool:
        """Say whether the processor has the operation, on operands of these formats."""
        same = rounds_as_processors(context) and context.nan is NanRule.FIRST
        return same and format in WORDS and operation.name != "fma" and all(holds(format, each) for each in sources)

    def __call__(self, *given: Any) -> None:
        """Compute a block: codes of each operand, the first one's place, codes of the result, None."""
        *blocks, _, codes, _ = given
        numbers = []
        for block, read in zip(blocks, self.readers, strict=True):
            words = block
            if read is not None:
                words = np.empty(len(block), codes.dtype)
                read(block, words)
            numbers.append(words.view(f"f{words.itemsize}"))
        with np.errstate(all="ignore"):
            found = getattr(np, self.operation.name)(*numbers)
        codes[...] = found.view(codes.dtype)
        nans = np.flatnonzero(np.isnan(found))
        if len(nans):
            self.alone.put_nans(nans, numbers, blocks, codes, None)


class Pairwise:
    """An operation on blocks: numbers as binary64, the exact result as a pair, rounded to odd, and into the format."""

    def __init__(
        self, operation: Operation, sources: tuple[Format, ...], format: Format, context: Context, lane: str | None
    ) -> None:  # fmt: skip
        """Settle what is the same for all blocks."""
        self.operation, self.sources, self.format, self.context = operation, sources, format, context
        self.alone = OneByOne(operation.scalar, sources, format, context)
        self.direct = format == DOUBLE
        # Products of two numbers of binary32 are numbers of binary64, and quotients, roots and sums stay inside.
        self.narrow = not self.direct and all(holds(SINGLE, each) for each in sources)
        drawn = context.rounding is Direction.SR
        self.short_of_digits = drawn and not is_enough(DOUBLE, format, drawn)
        self.single = not drawn and is_enough(SINGLE, format)
        self.all_single = self.single and self.narrow and operation.name in ("add", "subtract")
        self.words = [SINGLE if holds(SINGLE, each) else DOUBLE for each in sources]
        self.readers = [
            None if word == each else dispatch.reader(each, word, lane)
            for each, word in zip(sources, self.words, strict=True)
        ]
        if not self.direct:
            # What is rounded is a result: none of it counts as an input that is flushed.
            rules = context.replace(flush_inputs=False)
            self.round = dispatch.rounder(DOUBLE, format, rules, lane)
            if self.single:
                self.round_single = dispatch.rounder(SINGLE, format, rules, lane)

    def __call__(self, *given: Any) -> None:
        """Compute a block: codes of each operand, the first one's place, codes of the result, flags or None."""
        *blocks, first, codes, flags = given
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
        """Return a block of codes as floats: binary64, or binary32 where that is enough."""
        words, read = block, self.readers[i]
        if read is not None:
            words = np.empty(len(block), container(self.words[i]))
            read(block, words)
        number = words.view(f"f{words.itemsize}")
        if not self.all_single:
            number = number.astype(np.float64, copy=False)
        if self.context.flush_inputs and self.sources[i].zero:
            subnormal = np.abs(number) < float(self.sources[i].smallest_normal)
            number = np.where(subnormal, np.copysign(number.dtype.type(0), number), number)
        return number

    def _set_aside(self, numbers: list[Array], pair: Pair, whole: bool) -> tuple[Array, Array]:
        """Return where the result is a NaN and where the pair may not be exact; 1 takes its place there."""
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
            doubtful |= missed(pair)
        nans = np.isnan(s) & ~doubtful if not whole else np.False_
        aside = np.flatnonzero(nans), np.flatnonzero(doubtful)
        for where in aside:
            s[where] = 1
        return aside

    def _is_at_an_edge(self, s: Array) -> Any:
        """Say where binary64 itself, as the result's format, may have to obey more than a direction."""
        found = np.isfinite(s) & (np.abs(s) >= 2.0**DOUBLE.emax)
        if self.context.overflow is Overflow.SATURATE:
            found |= np.isinf(s)
        if self.context.flush_results:
            found |= (s != 0) & (np.abs(s) < float(DOUBLE.smallest_normal))
        return found

    def _round(self, pair: Pair, first: int, codes: Array, flags: Array | None) -> None:
        if self.direct:
            direction = self.context.rounding
            if direction is Direction.RNA and not self.operation.has_ties:
                direction = Direction.RNE
            codes[...] = in_direction(pair, direction).view(np.uint64)
            if flags is not None:
                flags[...] = missed(pair) * np.uint8(Flags.INEXACT.value)
            return
        self.round(to_odd(pair).view(np.uint64), first, codes, flags)

    def _round_single(
        self, pair: Pair, numbers: list[Array], whole: bool, first: int, codes: Array, flags: Array | None
    ) -> None:
        """Round by way of binary32, which is quicker; what is too large for it goes the long way."""
        if self.all_single:
            beyond = np.False_ if whole else np.isinf(pair[0]) & np.isfinite(numbers[0]) & np.isfinite(numbers[1])
        else:
            wide, pair = pair[0], narrowed(pair)
            beyond = np.isinf(pair[0]) & np.isfinite(wide)
        where = np.flatnonzero(beyond)
        pair[0][where] = 1
        self.round_single(to_odd(pair).view(np.uint32), first, codes, flags)
        if len(where):
            made, raised = np.empty(len(where), codes.dtype), np.empty(len(where), np.uint8)
            again = self.operation.pair(self.narrow, *(number[where].astype(np.float64) for number in numbers))
            self.round(to_odd(again).view(np.uint64), 0, made, raised)
            codes[where] = made
            if flags is not None:
                flags[where] = raised


def _negate_zeros(s: Array, terms: tuple[Array, Array]) -> None:
    """Make a zero sum −0 unless both terms are +0 (6.3, toward −∞)."""
    a, b = terms
    s[(s == 0) & (np.signbit(a) | np.signbit(b))] = -0.0
