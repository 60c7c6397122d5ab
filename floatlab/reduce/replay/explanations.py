"""An explanation: a candidate computation, and how many elements of an observed result it gives bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Datum
from floatlab.record import Individual
from floatlab.reduce.plan.orders import Schedule
from floatlab.reduce.replay.candidates import Candidate, CandidateAdder, adders_along, candidate_text
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.observations import Observed, Printed
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.machines import Machine


class Explanation(Individual):
    """A candidate computation, and how many of the observed elements it gives bit for bit.

    `total` elements were compared, of `elements`: for large products that do not match, and for huge ones, a sample.
    `codes` has the results that were compared, in C order; None where they were the sample, but the whole is not huge.
    """

    candidate: Candidate
    format: Format
    matching: int
    total: int
    elements: int
    codes: Array | None

    def __repr__(self) -> str:
        """Show the candidate and the count."""
        return f"Explanation({self.text}: {self.matching:,} of {self.total:,})"

    @property
    def schedule(self) -> Schedule | None:
        """The order; None for the exact sum."""
        return self.candidate.schedule

    @property
    def same(self) -> tuple[Schedule, ...]:
        """Other schedules that were tried and are the same tree here."""
        return self.candidate.same

    @property
    def adder(self) -> CandidateAdder | None:
        """What a node does; None for the exact sum, rounded once."""
        return self.candidate.adder

    @property
    def fma(self) -> bool:
        """Whether products are fused onto partial sums, all that can be."""
        return isinstance(self.adder, Adder) and self.adder.fma

    @property
    def accumulator(self) -> Format | None:
        """The format of partial sums; None for the exact sum."""
        return None if self.adder is None else self.adder.accumulator

    @property
    def products(self) -> Format | None:
        """What products are rounded to before they are added; None where they are not."""
        return self.adder.products if isinstance(self.adder, Adder) and not self.fma else None

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines whose model this is."""
        return self.candidate.machines

    @property
    def share(self) -> Fraction:
        """The share of the compared elements that are equal."""
        return Fraction(self.matching, self.total)

    @property
    def fits(self) -> bool:
        """Whether all elements that were compared are reproduced: all there are, or of huge products the sample."""
        return self.matching == self.total and self.codes is not None

    @property
    def text(self) -> str:
        """The candidate in words."""
        return candidate_text(self.candidate, self.format)

    @property
    def said(self) -> str:
        """The candidate, and how much of the result it gives, in words.

        >>> from floatlab.reduce.explain.attribution import attribute
        >>> ones = np.ones((2, 2), np.float32)
        >>> attribute(ones, ones, ones + 1, schedules=["serial"]).explanations[0][0].said
        'all 4 elements equal serial'
        """
        if self.fits:
            where = "elements" if self.total == self.elements else f"elements that were compared, of {self.elements:,},"
            return f"all {self.total:,} {where} equal {self.text}" if self.elements > 1 else self.text
        of = f"{self.total:,}" + ("" if self.total == self.elements else f" (of {self.elements:,})")
        return f"{100 * float(self.share):.3g} % of {of} elements equal {self.text}"


def replay(evaluator: Evaluator, candidate: Candidate, goal: Observed, wholly: bool = False) -> Explanation:
    """Return how much of a result a candidate gives: of the sample, and of the whole if that fits or with `wholly`.

    Of a huge product the sample is all that is compared.
    """
    into, codes = evaluator.into, evaluator.sampled(candidate)
    part = Source(goal.codes[evaluator.places], goal.format) if isinstance(goal, Source) else goal
    matching = _matching(codes, part, into)
    if evaluator.is_sampled and not evaluator.is_huge:
        if matching < len(codes) and not wholly:
            return Explanation(candidate, into, matching, len(codes), evaluator.size, None)
        codes = evaluator.whole(candidate)
        matching = _matching(codes, goal, into)
    return Explanation(candidate, into, matching, len(codes), evaluator.size, codes)


def replay_along(
    evaluator: Evaluator,
    schedule: Schedule,
    real: Observed,
    order: str = "",
    fused: Callable[[], tuple[int, ...]] | None = None,
) -> Iterator[Explanation]:
    """Try accumulators, products, fused multiply-adds and remainders; stop at the first that gives all results.

    `fused` asks the library which products it fuses, where nothing simpler gives all.
    """
    inputs = evaluator.terms, evaluator.formats, evaluator.into, evaluator.context
    for adder in adders_along(schedule, *inputs, fused):
        yield (explanation := replay(evaluator, Candidate(schedule, adder, order=order), real))
        if explanation.fits:
            return


def _matching(codes: Array, goal: Observed, format: Format) -> int:
    if isinstance(goal, Printed):
        return sum(goal.fits(Datum(format, int(code))) for code in codes)
    return int(agreement(codes, goal, format).sum())


def agreement(codes: Array, goal: Source, format: Format) -> Array:
    """Say which elements have the same codes, are both NaNs, or are +0 where the candidate gives −0.

    A sum of zeros that are all −0 is −0, and +0 where a library begins with a zero of its own.
    """
    equal: Array = codes == goal.codes
    if not equal.all():
        mine, theirs = (decode(each, format, np.float64) for each in (codes, goal.codes))
        equal |= np.isnan(mine) & np.isnan(theirs)
        equal |= (mine == 0) & np.signbit(mine) & (theirs == 0)
    return equal
