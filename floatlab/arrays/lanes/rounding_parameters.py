"""What a lane must know to round one kind of float into a format: the scalar kernel's decisions, made once as numbers.

A lane takes binary32 or binary64 apart with integers. Whatever depends on the format and the context only (what
stands for ∞, a NaN, an overflow, a zero) is asked of the scalar kernel here, so that no lane decides it again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from floatlab.arrays.lanes.reading import word_of
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, Exact, Flags, Tininess, round_exact
from floatlab.numbers.projection import direction_in, infinity_code, nan_code
from floatlab.numbers.rounding import NanRule, increments
from floatlab.record import Record

Settled = tuple[int, Flags] | UnsupportedError  # a code with the flags it raises, or the refusal


class Recipe(Record):
    """A format and a context, for sources of one format, as a lane uses them; pairs are for positive and negative."""

    format: Format
    context: Context
    source: Format
    direction: Direction  # to nearest at precision 1 is settled already
    cut: int  # digits that a normal number loses
    low: int  # the source's exponent field of the format's smallest normal number
    lift: int  # where there are no subnormal numbers: how far zero's neighbour lies above it, in codes
    overflow: tuple[Settled, Settled]
    infinity: tuple[Settled, Settled]
    nan: tuple[Settled, Settled]
    zero: tuple[Settled, Settled]
    negative: Settled | None  # what stands for negative numbers where there is no sign

    @property
    def keeps_payloads(self) -> bool:
        """Whether NaNs keep the leading digits of their payloads."""
        return self.format.ieee_nans and self.context.nan is not NanRule.RISCV

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to flush or refuse, and the format has a sign, a zero and subnormal numbers."""
        flushes = self.context.flush_inputs or self.context.flush_results
        return self.format.signed and self.format.zero and not (self.lift or flushes or self.refuses)

    @property
    def largest(self) -> int:
        """The source's magnitude of the format's largest number, or of its own: what is not beyond it is no special."""
        top = word_of(Datum(self.format, self.format.largest_magnitude), self.source)
        return min(top, self.source.largest_magnitude)

    @property
    def tiny(self) -> tuple[int, int, tuple[int, int]]:
        """Return what decides whether a number below 2^emin is tiny.

        The word of 2^emin (or of infinity, if that is less); the digits that p digits would lose in the binade below;
        and the words, for positive and for negative numbers, from which these would round up to 2^emin.
        """
        source, fmt = self.source, self.format
        normal = min(self.low << source.trailing_bits, source.infinity_magnitude)
        # A source's own subnormal numbers have one digit less there.
        places = max(self.cut - (self.low == 1), 0) if self.low << source.trailing_bits == normal else 0
        if self.context.tininess is Tininess.BEFORE or self.direction is Direction.SR:
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

    @property
    def refuses(self) -> bool:
        """Whether there are numbers that the context refuses."""
        return _refuses(self)


@lru_cache(maxsize=256)  # every call asks
def _refuses(recipe: Recipe) -> bool:
    settled = (*recipe.overflow, *recipe.infinity, *recipe.nan, *recipe.zero, recipe.negative)
    return any(isinstance(each, UnsupportedError) for each in settled)


def _settled(ask: Callable[[], tuple[int, Flags]]) -> Settled:
    try:
        return ask()
    except UnsupportedError as refusal:
        return refusal


def _pair(ask: Callable[[bool], tuple[int, Flags]]) -> tuple[Settled, Settled]:
    """Ask for a positive number and for a negative one."""
    return _settled(lambda: ask(False)), _settled(lambda: ask(True))


def can_round(source: Format, format: Format) -> bool:
    """Say whether a lane of integers can round this source into this format."""
    return (
        not format.explicit_integer_bit
        and format.width <= 64
        and format.trailing_bits <= source.trailing_bits
        and format.emin >= source.emin
    )


@lru_cache(maxsize=256)
def recipe_for(format: Format, context: Context, source: Format) -> Recipe:
    """Return the recipe for sources of a format, binary32 or binary64."""

    def rounded(x: Exact) -> tuple[int, Flags]:
        found = round_exact(x, format, context)
        return found.code, found.flags

    def nan(negative: bool) -> tuple[int, Flags]:
        return nan_code(format, context, negative and context.nan is not NanRule.RISCV)

    return Recipe(
        format=format,
        context=context,
        source=source,
        direction=direction_in(format, context),
        cut=source.trailing_bits - format.trailing_bits,
        low=format.emin + source.bias,
        lift=0 if format.subnormals else format.trailing_bits,
        overflow=_pair(lambda negative: rounded(Exact(negative, 1, format.emax + 2))),
        infinity=_pair(lambda negative: infinity_code(format, context, negative)),
        nan=_pair(nan),
        zero=_pair(lambda negative: rounded(Exact(negative, 0, 0))),
        negative=None if format.signed else _settled(lambda: rounded(Exact(True, 1, 0))),
    )
