"""Replay candidates (order, accumulator, FMA, machine) on some elements to find those that match bit for bit."""

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
from floatlab.record import Individual
from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.explain.stages import Model
from floatlab.reduce.plan.composed_schedules import SERIAL
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.replay.candidates import EXACT_SUM, Candidate, candidate_text, list_candidates
from floatlab.reduce.replay.causes import Cause, causes_of
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.explanations import agreement
from floatlab.reduce.results.product_error import spread_indices
from floatlab.reduce.reveal.sized_target import values_of
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.simulation import simulate

NUMPY = "numpy.matmul of this machine"
_TERMS = 1 << 17  # at most this many terms in the replayed elements
_MOST, _LEAST = 256, 36  # elements
_LONG = 400  # terms, beyond which sums in formats without arithmetic of the processor are tried in few orders
_WHOLE = 1 << 28  # multiply-adds of products that are replayed as a whole
_SLOWER = 16  # times slower: additions in formats that the processor does not support
_UNMAPPED = 0.1  # of the elements, at most, of a map that is compared
_DIRECTED = ("serial", "reversed", "pairwise", "lanes(4)", "lanes(8)", "splitk(2)")
_DIRECTIONS = ("RTZ", "RTP", "RTN", "RNA")
_UNITS = ("fp16", "bf16", "e4m3", "e5m2")  # inputs of matrix units
_COMPENSATED = ("kahan", "neumaier", "double")
_SINGLE = parse_format("fp32")
_NAMES = {Cause.ORDER: "order", Cause.FMA: "fma", Cause.ACCUMULATOR: "accumulator", Cause.MACHINE: "accumulator"}


class Replaying(Protocol):
    """A map of the orders of a library by position: `floatlab.reduce.reveal` makes them."""

    def replay(self, a: object, b: object) -> Array:
        """Return the product of a and b in the library's orders of addition."""


class Way(Individual):
    """A computation that gives the replayed elements of a result: a candidate, a compensated sum, or a library's."""

    text: str
    candidate: Candidate | None = None
    compensated: str = ""  # the rule of a compensated sum
    rounds_inputs: bool = False  # the modelled unit rounds the inputs to fewer digits
    inputs: Format | None = None  # the format of the inputs, if all are numbers of a narrower one than their files'
    rules: Context = DEFAULT


class CandidateGrid:
    """Candidate computations, replayed on some elements of a product and compared with both results."""

    def __init__(self, problem: ProductProblem, model: Model, into: Format, tick: Callable[[], None]) -> None:
        """Take the inputs, as a model rounds them, and the format of the sums."""
        self.problem, self.into, self.tick = problem, into, tick
        self.nearest: dict[str, Array] = {}  # for a result that no way gives: the elements that the best one misses
        self.shares: dict[str, list[tuple[float, Candidate]]] = {}  # of the sample that each candidate gives
        m, n = problem.shape
        most = min(_MOST, max(_LEAST, _TERMS // problem.terms))
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
        """Return elements of a result as codes of the format of the sums."""
        if side.format == self.into:
            return Source(side.source.codes[index].reshape(-1), self.into)
        return Source(np.asarray(encode(source_of(side.values[index].reshape(-1)), self.into)), self.into)

    def directed(self) -> Iterator[tuple[str, Candidate, Array]]:
        """Give sums in other directions than to nearest even: the direction, the candidate and the codes it makes."""
        formats = self.sides[0].format, self.sides[1].format
        for direction in _DIRECTIONS:
            rules = as_context(direction)
            evaluator = self._directed.setdefault(direction, Evaluator(self.sides, self.into, rules))
            kinds = (self.accumulator,)
            for candidate in list_candidates(self.problem.terms, formats, self.into, _DIRECTED, kinds, (), 1, rules):
                self.tick()
                yield direction, candidate, evaluator.sampled(candidate)

    def flushing_share(self, side: Side) -> float:
        """Return the share of the replayed elements that some sum gives which flushes subnormal numbers to zero."""
        goal, best = self._observed(side), 0.0
        formats = self.sides[0].format, self.sides[1].format
        for inputs, results in ((True, True), (False, True), (True, False)):
            rules = Context(flush_inputs=inputs, flush_results=results)
            evaluator = Evaluator(self.sides, self.into, rules)
            orders = list_candidates(
                self.problem.terms, formats, self.into, _DIRECTED, (self.accumulator,), (), 1, rules
            )
            for candidate in orders:
                self.tick()
                best = max(best, float(agreement(evaluator.sampled(candidate), goal, self.into).mean()))
        return best

    def directed_ways(self, side: Side) -> list[Way]:
        """Return the candidates that reproduce a result with a rounding direction other than RNE."""
        goal = self._observed(side)
        ways = [
            Way(f"{candidate_text(candidate, self.into)}, rounding {direction}", candidate, rules=as_context(direction))
            for direction, candidate, codes in self.directed()
            if agreement(codes, goal, self.into).all()
        ]
        return self._verified(ways, side, False)

    def ways(self, sides: Sequence[Side]) -> list[list[Way]]:
        """Return for each result the candidates that reproduce all replayed elements."""
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
                share = float(agreement(codes, goal, self.into).mean())
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
        """Say whether a modelled unit changes the inputs, which it rounds to its own format."""
        return any(
            row.terms.precision < side.format.precision
            and not np.array_equal(quantize(values, row.terms, context=row.reading), values, equal_nan=True)
            for row in candidate.machines[:1]
            for side in self.whole_sides
            for values in (decode(side.codes, side.format),)
        )

    def _units(self) -> Iterator[tuple[Evaluator, Way]]:
        """Give models of matrix units for inputs in wider files that are all numbers of a format they take."""
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
        """Drop the ways that do not give the whole result, as far as that is computed; keep in mind the nearest one."""
        kept, work = [], 0
        each_work = self.problem.shape[0] * self.problem.shape[1] * self.problem.terms
        for way in ways:
            work += each_work * (_SLOWER if way.candidate is not None and _is_narrow(way.candidate) else 1)
            missed = self.mismatches(way, side) if work <= _WHOLE else None
            if missed is None or not missed.any():
                kept.append(way)
            elif keeps_nearest and (side.name not in self.nearest or missed.sum() < self.nearest[side.name].sum()):
                self.nearest[side.name] = missed
        return kept

    def _collect(self, codes: Array, goals: Sequence[Source], found: list[list[Way]], way: Way) -> None:
        for goal, ways in zip(goals, found, strict=True):
            if agreement(codes, goal, self.into).all():
                ways.append(way)

    def chance(self) -> float:
        """Return the least share of elements in which two orders of addition differ."""
        codes = []
        for text, fma in (
            ("serial", False),
            ("serial", True),
            ("pairwise", False),
            ("reversed", True),
            ("lanes(2)", True),
        ):
            codes.append(
                self.evaluator.sampled(Candidate(parse_schedule(text), Adder(own_accumulator(self.into), fma=fma)))
            )
        return min(float((one != other).mean()) for one, other in combinations(codes, 2))

    def mismatches(self, way: Way, side: Side) -> Array | None:
        """Return the mask of elements that a candidate does not reproduce; None if the inputs are not all finite."""
        if self.problem.special is not None:
            return None
        sides = self.whole_sides if way.inputs is None else _in_format(self.whole_sides, way.inputs)
        whole = Evaluator(sides, self.into, way.rules)
        if way.candidate is not None:
            codes = whole.whole(way.candidate)
        else:
            codes = simulate(whole._factors, SERIAL, self._compensated(way.compensated)).reshape(-1)
        return ~agreement(codes, self._goal(side, np.s_[:, :]), self.into).reshape(self.problem.shape)


def _in_format(sides: tuple[Source, ...], format: Format) -> tuple[Source, ...]:
    return tuple(Source(np.asarray(encode(side, format)), format) for side in sides)


def grid_of(problem: ProductProblem, model: Model, into: Format, tick: Callable[[], None]) -> CandidateGrid:
    """Return the candidates for a model of the inputs; what was computed of them for one result serves the other."""
    key = model.name, model.evidence, into.name
    if key not in problem.grids:
        problem.grids[key] = CandidateGrid(problem, model, into, tick)
    grid = problem.grids[key]
    assert isinstance(grid, CandidateGrid)
    return grid


def numpy_product(x: Source, y: Source) -> Array | None:
    """Return the product that NumPy makes on this machine; None for formats that it has no library routine for."""
    kind = native_dtype(x.format)
    if x.format != y.format or kind is None or kind.itemsize == 2:
        return None
    with np.errstate(all="ignore"):
        made: Array = np.ascontiguousarray(x.codes).view(kind) @ np.ascontiguousarray(y.codes).view(kind)
    return made


def library_ways(problem: ProductProblem, side: Side, maps: Sequence[Replaying]) -> list[Way]:
    """Return the libraries whose product of these inputs has every bit of a result: NumPy's, and those of maps."""
    found = []
    x, y = problem.sources
    if side.format == x.format and (product := numpy_product(x, y)) is not None:
        if np.array_equal(product, side.values, equal_nan=True):
            found.append(Way(NUMPY))
    elif x.format == y.format and x.format.precision < _SINGLE.precision and side.format in (x.format, _SINGLE):
        with np.errstate(all="ignore"):
            made = (problem.x.astype(np.float32) @ problem.y.astype(np.float32)).astype(np.float64)
        if np.array_equal(np.asarray(quantize(made, side.format), np.float64), side.values):
            found.append(Way(f"{NUMPY}, in binary32"))
    for each in maps:
        try:
            replayed = source_of(np.asarray(each.replay(*(values_of(source) for source in problem.sources))))
        except FloatlabError:
            continue  # a map of another shape or format
        if replayed.format != side.format or replayed.codes.size != side.values.size:
            continue
        values = np.asarray(decode(replayed.codes, replayed.format), np.float64).reshape(side.values.shape)
        unknown = np.isnan(values)  # elements without an order in the map
        if unknown.mean() <= _UNMAPPED and ((values == side.values) | unknown).all():
            found.append(Way(f"the orders of {getattr(each, 'target', 'a map')}"))
    return found


def names_between(first: list[Way], second: list[Way], own: Format) -> tuple[dict[str, str], tuple[Way, Way] | None]:
    """Return the names of what separates two results, each with the words for it, and the two ways.

    Where several pairs of ways give both results by as few differences, all their causes are named.
    """
    pairs = [(one, other) for one in first for other in second if one.candidate and other.candidate]
    if pairs:
        causes = {id(pair): _causes(*pair, own) for pair in pairs}
        least = min(map(len, causes.values()))
        if least:
            best = [pair for pair in pairs if len(causes[id(pair)]) == least]
            names = {name: f"{best[0][0].text}, then {best[0][1].text}" for pair in best for name in causes[id(pair)]}
            if any(way.rounds_inputs for way in best[0]):
                names["inputs-rounded"] = next(way.text for way in best[0] if way.rounds_inputs)
            return names, best[0]
    found: dict[str, str] = {}
    for ways in (first, second):
        known = [way for way in ways if way.candidate is not None or way.compensated]
        if not known:
            continue
        plain = [way for way in known if _is_plain(way, own)]
        for way in () if plain else known:
            found["compensated" if way.compensated else _name_of(way, own)] = way.text
            if way.rounds_inputs:
                found["inputs-rounded"] = way.text
    if not found:
        said = next((way.text for way in (*first, *second)), "not known")
        found = {"order": said}
    return found, None


def _causes(one: Way, other: Way, own: Format) -> tuple[str, ...]:
    assert one.candidate is not None
    assert other.candidate is not None
    names = []
    for cause in causes_of(one.candidate, other.candidate):
        name = _NAMES[cause]
        adders = (*one.candidate.adders, *other.candidate.adders)
        if cause is Cause.ACCUMULATOR and _accumulators(one) == _accumulators(other) != (None,):
            # Products that are rounded to the format of the result are what sums in a wider one are made of.
            name = "products" if any(each.products.precision < own.precision for each in adders) else name
        names.append(name)
    return tuple(dict.fromkeys(names))


def _is_slow(candidate: Candidate) -> bool:
    """Return whether simulating a candidate is slow: an unusual order in a format in which no processor adds."""
    return _is_narrow(candidate) and candidate.schedule is not None and candidate.schedule.text not in _DIRECTED


def _is_narrow(candidate: Candidate) -> bool:
    return any(each.accumulator.precision < _SINGLE.precision for each in candidate.adders)


def _accumulators(way: Way) -> tuple[Format | None, ...]:
    assert way.candidate is not None
    return tuple(each.accumulator for each in way.candidate.adders) or (None,)


def _is_plain(way: Way, own: Format) -> bool:
    """Return whether a candidate adds in the usual format, with rounded products or FMA."""
    if way.candidate is None or way.compensated or way.candidate == EXACT_SUM or way.candidate.machines:
        return False
    return all(
        each.accumulator == own and (each.fma or each.products in (own,)) for each in way.candidate.adders
    )  # fmt: skip


def _name_of(way: Way, own: Format) -> str:
    assert way.candidate is not None
    adders = way.candidate.adders
    if adders and all(each.accumulator == own for each in adders):
        return "products"
    return "accumulator"


def own_accumulator(into: Format) -> Format:
    """Return the accumulator that libraries use for results of a format."""
    single = parse_format("fp32")
    return single if into.precision < single.precision else into
