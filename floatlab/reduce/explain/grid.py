"""Find the candidate computations that reproduce a result bit for bit, by replaying them on a sample of its elements.

A *candidate* is an order of addition in an accumulator format, with or without FMA, or a model of a matrix unit. For a
*way*, see `ways.Way`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.sources import Source, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT, as_context
from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.explain.residuals import share_of
from floatlab.reduce.explain.stages import Model
from floatlab.reduce.explain.ways import Way, own_accumulator
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.grouped_schedules import SERIAL
from floatlab.reduce.replay.candidates import EXACT_SUM, FUSED, Candidate, candidate_text, list_candidates
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.explanations import agreement
from floatlab.reduce.results.product_error import spread_indices
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.simulation import simulate

NUMPY = "numpy.matmul of this machine"
# About _MOST elements are replayed, fewer if they have more than about _TERMS terms in all, but at least about _LEAST.
_TERMS, _MOST, _LEAST = 1 << 17, 256, 36
_LONG = 400  # for sums of more terms, formats without processor support are tried in only a few orders
_WHOLE = 1 << 28  # computations are replayed on all elements until this number of multiply-adds is reached
_DIFFERING = 16  # after that, only this many rows and columns in which the results differ are replayed
_EXACT = 1 << 15  # an exact sum that is computed alone costs as much as this many additions
_SLOWER = 16  # an addition in a format without processor support costs as much as this many additions in other formats
_NEAR_LARGEST = 2.0**-64  # sums above this fraction of the largest number are simulated in integers, which is slow
_DIRECTED = ("serial", "reversed", "pairwise", "lanes(4)", "lanes(8)", "splitk(2)")
_COMMON = ("serial", False), ("serial", True), ("pairwise", False), ("reversed", True), ("lanes(2)", True)
_MOSTLY = 0.75  # sums explain a result with wrong elements only if they give at least this share of the sample
_DIRECTIONS = ("RTZ", "RTP", "RTN", "RNA")
_UNITS = ("fp16", "bf16", "e4m3", "e5m2")  # input formats of matrix units
_COMPENSATED = ("kahan", "neumaier", "double")
_SINGLE = parse_format("fp32")


class Replaying(Protocol):
    """A map of the orders in which a library computes the elements of a product; `floatlab.reduce.reveal` makes it."""

    def replay(self, a: object, b: object) -> Array:
        """Return the product of a and b in the library's orders of addition."""


class CandidateGrid:
    """Replays candidate computations on a sample of the elements and compares them with both results."""

    def __init__(self, problem: ProductProblem, model: Model, into: Format, tick: Callable[[], None]) -> None:
        """Choose the sample, and round the inputs if `model` rounds them. `into` is the format of the results."""
        self.problem, self.into, self.tick = problem, into, tick
        self.differing: Array | None = None  # the mask of the elements in which the two results differ, if it is known
        self.nearest: dict[str, Array] = {}  # per result: the elements that the best rejected `Way` lacks
        self.shares: dict[str, list[tuple[float, Candidate]]] = {}  # per result: (share reproduced, candidate)
        m, n = problem.shape
        most = min(_MOST, max(_LEAST, _TERMS // problem.terms))
        if float(problem.totals.size.max(initial=0)) > float(into.largest) * _NEAR_LARGEST:
            most = max(_LEAST, most // _SLOWER)
        self.rows = spread_indices(m, max(int(most**0.5), most // n))
        self.columns = spread_indices(n, max(1, most // len(self.rows)))
        x, y = (self._changed(side, model, axis) for side, axis in zip(problem.sources, (1, 0), strict=True))
        self.sides = (
            Source(x.codes[self.rows], x.format), Source(np.ascontiguousarray(y.codes[:, self.columns]), y.format),
        )  # fmt: skip
        self.whole_sides = x, y
        self.evaluator = Evaluator(self.sides, into)
        self._directed: dict[str, Evaluator] = {}
        self.accumulator = own_accumulator(into)
        self.is_narrow = into.precision < self.accumulator.precision

    def _changed(self, side: Source, model: Model, axis: int) -> Source:
        evidence = dict(model.evidence)
        if model.name != "inputs-rounded":
            return side
        kind = native_dtype(side.format)
        values = np.asarray(quantize(side, evidence["format"], rounding=evidence["rounding"]), kind)
        if self.problem.has_bias and kind is not None:
            last = np.s_[:, -1] if axis else np.s_[-1]
            values[last] = side.codes.view(kind)[last]
        return side if kind is None else source_of(values)

    def _observed(self, side: Side) -> Source:
        return self._goal(side, np.ix_(self.rows, self.columns))

    def _goal(self, side: Side, index: tuple[Array | slice, ...]) -> Source:
        """Return the elements of a result at `index`, encoded in the format of the replays."""
        if side.format == self.into:
            return Source(side.source.codes[index].reshape(-1), self.into)
        return Source(np.asarray(encode(source_of(side.values[index].reshape(-1)), self.into)), self.into)

    def directed(self, directions: Sequence[str] = _DIRECTIONS) -> Iterator[tuple[str, Candidate, Array]]:
        """Yield candidates that round in other directions than RNE.

        Each item has the rounding direction, the candidate, and the codes of its sums.
        """
        formats = self.sides[0].format, self.sides[1].format
        for direction in directions:
            rules = as_context(direction)
            evaluator = self._directed.setdefault(direction, Evaluator(self.sides, self.into, rules))
            kinds = (self.accumulator,)
            candidates = list_candidates(self.problem.terms, formats, self.into, _DIRECTED, kinds, (), 1, rules)
            # Matrix units often add blocks of products exactly, and truncate each sum. Their inputs are not binary64.
            if direction == "RTZ" and max(each.precision for each in formats) <= _SINGLE.precision:
                adder = Adder(self.accumulator, fma=True, context=rules)
                candidates += [Candidate(parse_schedule(text), adder) for text in FUSED[1:]]
            for candidate in candidates:
                self.tick()
                yield direction, candidate, evaluator.sampled(candidate)

    def flushing_share(self, side: Side, wrong: Array) -> float:
        """Return the share of elements that the best flushing sum reproduces.

        A flushing sum replaces subnormal inputs, subnormal results of operations, or both by zero. Return the smaller
        of two shares: the share of all replayed elements, and the share of the replayed elements that `wrong` marks.
        Return 0 if `wrong` marks no replayed element.
        """
        goal, best = self._observed(side), 0.0
        off = wrong[np.ix_(self.rows, self.columns)].reshape(-1)
        if not off.any():
            return 0.0
        formats = self.sides[0].format, self.sides[1].format
        for inputs, results in ((True, True), (False, True), (True, False)):
            rules = Context(flush_inputs=inputs, flush_results=results)
            evaluator = Evaluator(self.sides, self.into, rules)
            orders = list_candidates(
                self.problem.terms, formats, self.into, _DIRECTED, (self.accumulator,), (), 1, rules
            )
            for candidate in orders:
                self.tick()
                alike = agreement(evaluator.sampled(candidate), goal, self.into)
                best = max(best, min(share_of(alike), share_of(alike[off])))
        return best

    def directed_ways(self, side: Side) -> list[Way]:
        """Return the computations that reproduce a result and round in another direction than RNE."""
        goal = self._observed(side)
        ways = [
            self._directed_way(direction, candidate)
            for direction, candidate, codes in self.directed()
            if agreement(codes, goal, self.into).all()
        ]
        return self._verified(ways, side, False)

    def _directed_way(self, direction: str, candidate: Candidate) -> Way:
        text = f"{candidate_text(candidate, self.into)}, rounding {direction}"
        return Way(text, candidate, rules=as_context(direction))

    def truncated_except_few(self, side: Side) -> tuple[Way, Array] | None:
        """Return the truncated sums that give most elements of a result, and the mask of the other elements.

        Return None if no truncated sums give most elements, if the result is not in the format of the replays, if an
        input is NaN or infinite, or if the product is too large for replaying all elements.
        """
        if self.problem.totals.product.size * self.problem.terms > _WHOLE or side.format != self.into:
            return None
        goal, found = self._observed(side), []
        for _, candidate, codes in self.directed(("RTZ",)):
            found.append((share_of(agreement(codes, goal, self.into)), candidate))
        share, candidate = max(found, key=lambda each: each[0])
        if share < _MOSTLY:
            return None
        way = self._directed_way("RTZ", candidate)
        missed = self.mismatches(way, side)
        return None if missed is None else (way, missed)

    def ways(self, sides: Sequence[Side]) -> list[list[Way]]:
        """Return, for each result, the computations that reproduce it in all elements that `_verified` checks."""
        goals = [self._observed(side) for side in sides]
        found: list[list[Way]] = [[] for _ in sides]
        formats = self.sides[0].format, self.sides[1].format
        candidates = list_candidates(self.problem.terms, formats, self.into, elements=self.evaluator.size)
        for candidate in candidates:
            self.tick()
            if self.problem.terms > _LONG and _is_slow(candidate):
                continue
            try:
                codes = self.evaluator.sampled(candidate)
            except FloatlabError:
                continue
            text = candidate_text(candidate, self.into)
            self._collect(codes, goals, found, Way(text, candidate, rounds_inputs=self._rounds_inputs(candidate)))
            for side, goal in zip(sides, goals, strict=True):
                share = share_of(agreement(codes, goal, self.into))
                self.shares.setdefault(side.name, []).append((share, candidate))
        for evaluator, way in self._units():
            self.tick()
            assert way.candidate is not None
            self._collect(evaluator.sampled(way.candidate), goals, found, way)
        if self.into.name in ("binary32", "binary64"):
            for name in _COMPENSATED:
                self.tick()
                codes = simulate(self.evaluator._pairs, SERIAL, self._compensated(name))
                self._collect(codes, goals, found, Way(f"{name} sum", None, name))
        return [self._verified(ways, side) for ways, side in zip(found, sides, strict=True)]

    def _compensated(self, name: str) -> Compensated:
        return Compensated(name, self.into, self.into, DEFAULT)

    def _rounds_inputs(self, candidate: Candidate) -> bool:
        """Return whether the candidate models a matrix unit that would round these inputs."""
        return any(
            row.terms.precision < side.format.precision
            and not np.array_equal(quantize(values, row.terms, context=row.reading), values, equal_nan=True)
            for row in candidate.machines[:1]
            for side in self.whole_sides
            for values in (decode(side.codes, side.format),)
        )

    def _units(self) -> Iterator[tuple[Evaluator, Way]]:
        """Yield models of matrix units whose input format is narrower than the inputs' format, but holds all inputs."""
        for format in map(parse_format, _UNITS):
            if self.sides[0].format.precision <= format.precision:
                continue
            if all(
                np.array_equal(decode(encode(side, format), format), decode(side.codes, side.format))
                for side in self.whole_sides
            ):
                evaluator = Evaluator(_in_format(self.sides, format), self.into)
                for each in list_candidates(self.problem.terms, (format, format), self.into, ()):
                    if each.machines:
                        yield evaluator, Way(candidate_text(each, self.into), each, inputs=format)

    def _verified(self, ways: list[Way], side: Side, keeps_nearest: bool = True) -> list[Way]:
        """Return the computations in `ways` that also reproduce the elements outside the sample.

        After about _WHOLE multiply-adds, the remaining computations are checked only in a few rows and columns in which
        the two results differ. If an input is NaN or infinite, nothing is checked. If `keeps_nearest` is true,
        `nearest` keeps the mask of the elements that the best rejected computation does not reproduce.
        """
        kept, work = [], 0
        each_work = self.problem.shape[0] * self.problem.shape[1] * self.problem.terms
        for way in ways:
            work += each_work * (_SLOWER if way.candidate is not None and _is_narrow(way.candidate) else 1)
            if way.candidate == EXACT_SUM:
                work += self._slow_exact_sums * _EXACT
            missed = self.mismatches(way, side) if work <= _WHOLE else None
            if not missed.any() if missed is not None else not self._fails_where_differing(way, side):
                kept.append(way)
            elif missed is None:
                continue
            elif keeps_nearest and (side.name not in self.nearest or missed.sum() < self.nearest[side.name].sum()):
                self.nearest[side.name] = missed
        return kept

    @property
    def _slow_exact_sums(self) -> int:
        """The number of slow exact sums: all if inputs are more precise than binary32, else those that cancel to 0."""
        if any(side.format.precision > _SINGLE.precision for side in self.sides):
            return self.problem.totals.product.size
        return int(((self.problem.totals.product == 0) & (self.problem.totals.size > 0)).sum())

    def _collect(self, codes: Array, goals: Sequence[Source], found: list[list[Way]], way: Way) -> None:
        for goal, ways in zip(goals, found, strict=True):
            if agreement(codes, goal, self.into).all():
                ways.append(way)

    def chance(self) -> float:
        """Return a low estimate of the share of elements that another order of addition changes.

        Five common candidates are compared in pairs. The result is the share of sums that differ in the most similar
        pair.
        """
        codes = []
        for text, fma in _COMMON:
            codes.append(
                self.evaluator.sampled(Candidate(parse_schedule(text), Adder(own_accumulator(self.into), fma=fma)))
            )
        return min(share_of(one != other) for one, other in combinations(codes, 2))

    def mismatches(self, way: Way, side: Side) -> Array | None:
        """Return the mask of elements that a computation does not reproduce, or None if an input is NaN or infinite."""
        return None if self.problem.special is not None else self._missed(way, side, self.whole_sides, np.s_[:, :])

    def _missed(self, way: Way, side: Side, sides: tuple[Source, ...], index: tuple[Array | slice, ...]) -> Array:
        """Multiply `sides` as in `way`; return the mask of elements that differ from the result's part at `index`."""
        whole = Evaluator(sides if way.inputs is None else _in_format(sides, way.inputs), self.into, way.rules)
        if way.candidate is not None:
            codes = whole.whole(way.candidate)
        else:
            codes = simulate(whole._factors, SERIAL, self._compensated(way.compensated)).reshape(-1)
        goal = self._goal(side, index)
        shape = sides[0].codes.shape[0], sides[1].codes.shape[1]
        return ~agreement(codes, goal, self.into).reshape(shape)

    def _fails_where_differing(self, way: Way, side: Side) -> bool:
        """Return whether a computation fails to reproduce a few rows and columns in which the two results differ.

        Most elements of a result in a narrow format are the same in every computation, so they are no evidence. Return
        False if it is not known where the results differ, or if an input is NaN or infinite.
        """
        if self.differing is None or not self.differing.any() or self.problem.special is not None:
            return False
        places = np.argwhere(self.differing)
        rows, columns = places[spread_indices(len(places), _DIFFERING)].T
        rows, columns = np.unique(rows), np.unique(columns)
        x, y = self.whole_sides
        sides = (
            Source(x.codes[rows], x.format), Source(np.ascontiguousarray(y.codes[:, columns]), y.format),
        )  # fmt: skip
        return bool(self._missed(way, side, sides, np.ix_(rows, columns)).any())


def _in_format(sides: tuple[Source, ...], format: Format) -> tuple[Source, ...]:
    return tuple(Source(np.asarray(encode(side, format)), format) for side in sides)


def grid_of(problem: ProductProblem, model: Model, into: Format, tick: Callable[[], None]) -> CandidateGrid:
    """Return the `CandidateGrid` for a model and a format. The grid is cached: both results share the replayed sums."""
    key = model.name, model.evidence, into.name
    if key not in problem.grids:
        problem.grids[key] = CandidateGrid(problem, model, into, tick)
    grid = problem.grids[key]
    assert isinstance(grid, CandidateGrid)
    return grid


def _is_slow(candidate: Candidate) -> bool:
    """Return whether a candidate is slow to simulate: an unusual order in a format that the processor cannot add."""
    return _is_narrow(candidate) and candidate.schedule is not None and candidate.schedule.text not in _DIRECTED


def _is_narrow(candidate: Candidate) -> bool:
    return any(each.accumulator.precision < _SINGLE.precision for each in candidate.adders)
