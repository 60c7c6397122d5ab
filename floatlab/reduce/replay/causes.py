"""Explains why two observed results differ: finds pairs of candidates that reproduce them, and compares each pair."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from itertools import pairwise

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.arrays.ulps import NAN_RANK, ordinal
from floatlab.errors import PlanError
from floatlab.formats import Format
from floatlab.numbers import Datum, read
from floatlab.record import Individual
from floatlab.reduce.replay.candidates import Candidate
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.explanations import Explanation
from floatlab.reduce.replay.observations import PrintedDecimal
from floatlab.reduce.simulate.adders import Adder, PartlyFused

MAX_PAIRS = 256


class Cause(Enum):
    """A property in which two candidate computations differ."""

    ORDER = "order"
    FMA = "FMA"
    ACCUMULATOR = "accumulator"
    MACHINE = "machine"
    INPUTS = "inputs"


class Verdict(Enum):
    """What explains the difference of two results: one of the causes that were tried, several of them, or none."""

    SAME = "one computation gives both"
    FMA = "explained by FMA alone"
    ORDER = "explained by order alone"
    BOTH = "explained by order and FMA together"
    INPUTS = "explained by inputs that were rounded"
    OTHER = "explained by another accumulator or machine"
    NONE = "not explained by any tried cause"


_VERDICTS = {
    (): Verdict.SAME,
    (Cause.ORDER,): Verdict.ORDER,
    (Cause.FMA,): Verdict.FMA,
    (Cause.ORDER, Cause.FMA): Verdict.BOTH,
}
_RANK = {each: i for i, each in enumerate(Cause)}


def verdict_of(causes: tuple[Cause, ...]) -> Verdict:
    """Return the verdict on two candidates, each of which reproduces one of two results.

    `causes` lists all causes in which the candidates differ.
    """
    return Verdict.INPUTS if Cause.INPUTS in causes else _VERDICTS.get(causes, Verdict.OTHER)


class Path(Individual):
    """The steps from one result to the other; each step adds the effect of one cause.

    `codes` holds the codes of the first result, and the codes after each step.
    """

    causes: tuple[Cause, ...]
    format: Format
    codes: tuple[Array, ...]

    def __repr__(self) -> str:
        """Show each cause with the largest change that the cause makes."""
        return f"Path({', '.join(f'{cause.value} {step:+d}' for cause, step in self.steps)})"

    @property
    def moves(self) -> list[Array]:
        """For each cause, an array: how far the cause moves each element, in steps to the next number of the format."""
        return [moved(before, after, self.format) for before, after in pairwise(self.codes)]

    @property
    def steps(self) -> list[tuple[Cause, int]]:
        """Each cause, with its move of largest magnitude (see `moves`)."""
        return [
            (cause, int(moves[np.abs(moves).argmax()])) for cause, moves in zip(self.causes, self.moves, strict=True)
        ]


def moved(before: Array, after: Array, format: Format) -> Array:
    """Return how far each element moved, in steps to the next number of the format, as int64; 0 for NaNs."""
    first, second = (ordinal(Source(codes, format)) for codes in (before, after))
    return np.where((first == NAN_RANK) | (second == NAN_RANK), 0, second - first)


class ExplanationPair(Individual):
    """Two candidates that reproduce the two observed results, their differences, and the paths between the results."""

    first: Explanation
    second: Explanation
    causes: tuple[Cause, ...]
    paths: tuple[Path, ...]


class Refutation(Individual):
    """A cause that does not explain why two results differ.

    `tried` is the number of pairs of candidates that differ in this cause alone. None of these pairs reproduces both
    results. `first` and `second` are the pair chosen by `refutations_of`, and `path` shows how their results differ.
    """

    cause: Cause
    tried: int
    first: Explanation
    second: Explanation
    path: Path

    def __repr__(self) -> str:
        """Return the two explanations and the path from one to the other as text."""
        return f"Refutation({self.first.text} → {self.second.text}: {self.path!r})"


def pairs_of(
    evaluator: Evaluator, explanations: tuple[tuple[Explanation, ...], ...], apart: PrintedDecimal | Fraction | None
) -> tuple[tuple[ExplanationPair, ...], int]:
    """Return up to 256 pairs of candidates (one candidate for each of two results), and the number of all such pairs.

    Each candidate of a pair reproduces its result. Unless `apart` is None, the two results must also differ by this
    amount. Pairs that differ in the fewest causes come first.
    """
    firsts, seconds = ([each for each in ranked if each.fits] for ranked in explanations)
    found = [(first, second) for first in firsts for second in seconds if _is_apart(first, second, apart)]
    causes = {pair: causes_of(pair[0].candidate, pair[1].candidate) for pair in found}
    found.sort(key=lambda pair: (len(causes[pair]), any(_RANK[each] > 1 for each in causes[pair])))
    pairs = tuple(
        ExplanationPair(*pair, causes[pair], _paths(evaluator, *pair, causes[pair])) for pair in found[:MAX_PAIRS]
    )
    return pairs, len(found)


def refutations_of(
    evaluator: Evaluator, explanations: tuple[tuple[Explanation, ...], ...], tried: list[Candidate]
) -> tuple[Refutation, ...]:
    """Return the evidence that neither FMA alone nor order alone explains a difference.

    The caller has looked for a pair of candidates that differs in only one cause and reproduces both results, and has
    found none. The refutation of a cause has one pair of candidates that differ in this cause alone. If there is no
    such pair, the cause has no refutation. Pairs that reproduce one of the results are preferred, then pairs of
    candidates that are early in `tried`.
    """
    simplicity = {each: i for i, each in enumerate(tried)}
    firsts, seconds = ([each for each in ranked if each.candidate in simplicity] for ranked in explanations)
    found = []
    for cause in (Cause.FMA, Cause.ORDER):
        alone = [
            (first, second)
            for first in firsts
            for second in seconds
            if causes_of(first.candidate, second.candidate) == (cause,)
        ]
        if not alone:
            continue
        first, second = min(
            alone,
            key=lambda pair: (-sum(each.fits for each in pair), sum(simplicity[each.candidate] for each in pair)),
        )
        codes = evaluator.compared(first.candidate), evaluator.compared(second.candidate)
        found.append(Refutation(cause, len(alone), first, second, Path((cause,), evaluator.into, codes)))
    return tuple(found)


def _is_apart(first: Explanation, second: Explanation, apart: PrintedDecimal | Fraction | None) -> bool:
    """Return whether the absolute difference of two results, exact or rounded, is `apart`.

    The rounded difference has the format of the results. If `apart` is None, return True. Otherwise, return False for
    results that are not finite.
    """
    if apart is None:
        return True
    x, y = (Datum(first.format, int(each.codes[0])) for each in (first, second) if each.codes is not None)
    if not x.is_finite or not y.is_finite:
        return False
    exact = abs(y.exact.as_fraction() - x.exact.as_fraction())
    rounded = read(exact, first.format).result
    if isinstance(apart, PrintedDecimal):
        return apart.holds(exact) or apart.fits(rounded)
    return apart in (exact, rounded.exact.as_fraction())


def causes_of(one: Candidate, other: Candidate) -> tuple[Cause, ...]:
    """Return the causes in which two candidates differ.

    If the candidates model different machines, or only one of them models a machine, the only cause is the machine.

    >>> from floatlab.reduce.plan.schedules import PAIRWISE
    >>> from floatlab.reduce.plan.grouped_schedules import SERIAL
    >>> causes_of(Candidate(PAIRWISE, Adder()), Candidate(SERIAL, Adder(fma=True)))
    (<Cause.ORDER: 'order'>, <Cause.FMA: 'FMA'>)
    """
    if one.machines != other.machines:
        return (Cause.MACHINE,)
    found = [Cause.INPUTS] if one.inputs != other.inputs else []
    if one.schedule is not None and other.schedule is not None and one.schedule != other.schedule:
        found.append(Cause.ORDER)
    mine, others = one.adder, other.adder
    if mine == others:
        return tuple(found)
    kinds = Adder | PartlyFused
    if isinstance(mine, kinds) and isinstance(others, kinds) and mine.accumulator == others.accumulator:
        return (*found, Cause.FMA if mine.fma or others.fma else Cause.ACCUMULATOR)
    return (*found, Cause.ACCUMULATOR)


def _paths(
    evaluator: Evaluator, first: Explanation, second: Explanation, causes: tuple[Cause, ...]
) -> tuple[Path, ...]:
    """Return the paths from one result to the other; each step of a path applies one cause.

    If there are two causes, there are two paths, one for each order of the causes. There is no path in four cases: the
    candidates do not differ; a result has no codes; the candidates differ in the rounding of inputs and in another
    cause; the adder of one candidate cannot add in the order of the other candidate.
    """
    if first.codes is None or second.codes is None or not causes:
        return ()
    if len(causes) == 1:
        return (Path(causes, evaluator.into, (first.codes, second.codes)),)
    one, other = first.candidate, second.candidate
    if one.inputs != other.inputs:
        return ()
    try:
        turned = [
            evaluator.compared(Candidate(x.schedule, y.adder, inputs=x.inputs)) for x, y in ((other, one), (one, other))
        ]
    except PlanError:  # an adder cannot add in the other candidate's order
        return ()
    return tuple(
        Path(order, evaluator.into, (first.codes, middle, second.codes))
        for order, middle in zip((causes, causes[::-1]), turned, strict=True)
    )
