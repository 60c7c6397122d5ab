"""An explanation: a candidate computation, and how many elements of an observed result it reproduces bit for bit."""

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
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.replay.candidates import Candidate, CandidateAdder, adders_along, candidate_text
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.observations import Observed, PrintedArray, PrintedDecimal
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.matrix_units import Machine


class Explanation(Individual):
    """A candidate computation, and how many of the observed elements it reproduces bit for bit.

    Of the `elements` elements, `total` were compared. Large products are compared in a sample first. If the sample
    matches, all elements are compared, unless the product is huge. `codes` holds the codes of the candidate's results
    for the compared elements, in C order. `codes` is None if the sample did not match and the remaining elements were
    therefore not compared. For huge products, `codes` always holds the codes of the sample.
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
        """The order of the additions; None for the exact sum."""
        return self.candidate.schedule

    @property
    def same(self) -> tuple[Schedule, ...]:
        """The other schedules that were tried and have the same tree as `schedule` for this number of terms."""
        return self.candidate.same

    @property
    def adder(self) -> CandidateAdder | None:
        """The arithmetic of the nodes; None for the exact sum, which is rounded once."""
        return self.candidate.adder

    @property
    def fma(self) -> bool:
        """Whether the adder is an `Adder` with FMA."""
        return isinstance(self.adder, Adder) and self.adder.fma

    @property
    def accumulator(self) -> Format | None:
        """The format of partial sums; None for the exact sum."""
        return None if self.adder is None else self.adder.accumulator

    @property
    def products(self) -> Format | None:
        """The format to which an `Adder` without FMA rounds products; None for all other arithmetic."""
        return self.adder.products if isinstance(self.adder, Adder) and not self.fma else None

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines that the candidate models; all of them have the same arithmetic. Empty if it models none."""
        return self.candidate.machines

    @property
    def share(self) -> Fraction:
        """The number of equal elements divided by the number of compared elements."""
        return Fraction(self.matching, self.total)

    @property
    def fits(self) -> bool:
        """Whether the candidate reproduces all elements, or, for huge products, all elements of the sample."""
        return self.matching == self.total and self.codes is not None

    @property
    def text(self) -> str:
        """The candidate as text."""
        return candidate_text(self.candidate, self.format)

    @property
    def summary(self) -> str:
        """The candidate, and how many elements it reproduces, as text.

        >>> from floatlab.reduce.explain.attribution import attribute
        >>> ones = np.ones((2, 2), np.float32)
        >>> attribute(ones, ones, ones + 1, schedules=["serial"]).explanations[0][0].summary
        'all 4 elements equal serial'
        """
        if self.fits:
            where = "elements" if self.total == self.elements else f"elements that were compared, of {self.elements:,},"
            return f"all {self.total:,} {where} equal {self.text}" if self.elements > 1 else self.text
        of = f"{self.total:,}" + ("" if self.total == self.elements else f" (of {self.elements:,})")
        missed = self.total - self.matching
        if missed * 100 < self.total:
            return f"all but {missed:,} of {of} elements equal {self.text}"
        return f"{100 * float(self.share):.3g} % of {of} elements equal {self.text}"


def replay(evaluator: Evaluator, candidate: Candidate, goal: Observed, in_full: bool = False) -> Explanation:
    """Compare a candidate's results with `goal`: the sample first, and then all elements, unless the product is huge.

    If the sample does not match, all elements are compared only if `in_full` is true.
    """
    into, codes = evaluator.into, evaluator.sampled(candidate)
    part = goal
    if isinstance(goal, Source):
        part = Source(goal.codes[evaluator.places], goal.format)
    elif isinstance(goal, PrintedArray):
        part = goal.take(evaluator.places)
    matching = _matching(codes, part, into)
    if evaluator.is_sampled and not evaluator.is_huge:
        if matching < len(codes) and not in_full:
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
    """Replay one order with each adder that `adders_along` yields, and yield an explanation for each adder.

    Stop after the first explanation that fits. `fused` is a function that finds, by probes, the products that the
    library fuses. `fused` is called only if no simpler adder fits.
    """
    inputs = evaluator.terms, evaluator.formats, evaluator.into, evaluator.context
    for adder in adders_along(schedule, *inputs, fused):
        yield (explanation := replay(evaluator, Candidate(schedule, adder, order=order), real))
        if explanation.fits:
            return


def _matching(codes: Array, goal: Observed, format: Format) -> int:
    if isinstance(goal, PrintedDecimal):
        return sum(goal.fits(Datum(format, int(code))) for code in codes)
    if isinstance(goal, PrintedArray):
        return int(goal.fits(codes, format).sum())
    return int(agreement(codes, goal, format).sum())


def agreement(codes: Array, goal: Source, format: Format) -> Array:
    """Return a mask of the elements whose codes are equal or both NaN; +0 also counts as equal to a candidate's −0.

    The sum of terms that are all −0 is −0, but a library whose accumulator starts at +0 returns +0.
    """
    equal: Array = codes == goal.codes
    if not equal.all():
        mine, theirs = (decode(each, format, np.float64) for each in (codes, goal.codes))
        equal |= np.isnan(mine) & np.isnan(theirs)
        equal |= (mine == 0) & np.signbit(mine) & (theirs == 0)
    return equal
