"""The diagnosis of two results of one product: whether they differ by rounding or by a bug, why, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.fpmode import in_default_mode
from floatlab.reduce.explain.faults.agreement import related_fault
from floatlab.reduce.explain.faults.orders import widen_limits
from floatlab.reduce.explain.faults.outliers import widened
from floatlab.reduce.explain.faults.patterns import (
    BITS_OF_SUMS,
    evidence_bits,
    is_function_of_product,
    least_shown,
    place_bits,
)
from floatlab.reduce.explain.faults.small import SmallFaults
from floatlab.reduce.explain.findings import DIRECTED, STAGES, SideExplanation, merged, with_overflow
from floatlab.reduce.explain.first_line import (
    LETTERS,
    bug_line,
    doubt_line,
    faults_among,
    identical_line,
    lone_line,
    rounding_line,
    shared_line,
    unexplained_line,
)  # fmt: skip
from floatlab.reduce.explain.grid import Replaying, grid_of
from floatlab.reduce.explain.input_changes.alike_formats import with_formats
from floatlab.reduce.explain.installed import installed_ways, library_ways
from floatlab.reduce.explain.precision.outputs import printed_from, unlike_formats
from floatlab.reduce.explain.problem import ProductProblem, Side, matrices_of, view_of
from floatlab.reduce.explain.residuals import mask_of, share_of
from floatlab.reduce.explain.search.hypotheses import SideExplainer
from floatlab.reduce.explain.stages import PLAIN
from floatlab.reduce.explain.ways import Way, names_between, own_accumulator
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Diagnosis

_FEW = 4  # a result with fewer different numbers than this may fit a computation by chance


@in_default_mode
def diagnose(
    x: object,
    y: object,
    actual: object,
    expected: object,
    *,
    maps: Sequence[Replaying] = (),
    progress: Callable[[], None] | None = None,
    keep_interrupted: bool = False,
    problem: ProductProblem | None = None,
) -> Diagnosis:
    """Return why two results that should be the product x·y differ.

    Parameters
    ----------
    x, y : array_like
        The factors. y is a vector or a matrix. x has one axis or more; its last axis and the first axis of y are
        summed.
    actual, expected : array_like
        The two results, each with the shape of the product, or at least with its number of elements.
    maps : sequence of OrderMap, optional
        Maps of the orders in which a library adds the terms of each element. Their method `replay(x, y)` gives a
        product that is compared bit for bit.
    progress : callable, optional
        Called without arguments after each step. An exception that it raises ends the search.
    keep_interrupted : bool
        If true, Ctrl-C during the search ends it and returns the findings so far, instead of raising KeyboardInterrupt.
        This does not apply to the computation of the exact product, before the search.
    problem : ProductProblem, optional
        The exact product of these factors, if it is already computed.

    Returns
    -------
    Diagnosis
        The status, the first line, the causes with their positions, and which result is nearer to the exact product.

    Raises
    ------
    UnsupportedError
        If the shapes do not fit together, the product has no terms or elements, or a format is more precise than
        binary64.

    Notes
    -----
    Each result is first compared with the exact product. If its errors exceed the rounding error bound of these inputs,
    one hypothesis after another is verified on every element. If both results are within the bound, candidate
    computations are replayed. Some causes, such as rounded inputs, affect all elements. Such a cause is named only if
    it leaves no error beyond the bound, or if the result is reproduced bit for bit.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x, y = rng.random((40, 50), np.float32), rng.random((50, 30), np.float32)
    >>> wrong = x @ y
    >>> wrong[11, 7] += 1
    >>> diagnose(x, y, x @ y, wrong).first
    'Yes: element (11, 7) of B is wrong; all others agree.'
    """
    factors, results = matrices_of(x, y, actual, expected)
    with np.errstate(all="ignore"):  # arithmetic on results may overflow or meet NaN
        problem = problem or ProductProblem(*factors, (results[0].format, results[1].format), tick=progress)
        pair = _PairDiagnosis(problem, results, maps, progress or (lambda: None))
        try:
            return pair.diagnose()
        except KeyboardInterrupt:
            if not keep_interrupted:
                raise
            return pair.found_so_far()


class _PairDiagnosis:
    """Diagnoses two results. The findings of each step are kept, so that an interrupted search can report them."""

    def __init__(
        self,
        problem: ProductProblem,
        results: tuple[Source, Source],
        maps: Sequence[Replaying],
        tick: Callable[[], None],
    ) -> None:
        self.maps, self.tick = maps, tick
        self.found: list[SideExplanation] = []
        self.within: tuple[SideExplanation, ...] = ()  # both results, once both are within the rounding error bound
        self._found: dict[object, tuple[list[Way], list[Way]]] = {}
        self.libraries: list[list[Way]] | None = None
        self.sides = Side("actual", results[0]), Side("expected", results[1])
        self.problem = problem
        first, second = self.sides
        self.differing = (first.values != second.values) & ~(np.isnan(first.values) & np.isnan(second.values))

    def diagnose(self) -> Diagnosis:
        widen_limits(self.problem, self.sides)
        first, second = self.explained = self._replayed() or tuple(map(self._explain, self.sides))
        if not self.differing.any():
            return self._identical()
        first, second = self.explained = (
            with_overflow(self.problem, first, second),
            with_overflow(self.problem, second, first),
        )
        causes = merged(first.causes, second.causes)
        states = {first.status, second.status}
        if self._is_shared():
            shared = tuple(each.replace(side="both") for each in first.causes)
            order = DiagnosedCause("order", "order", "both", share_of(self.differing), (), ())
            return self._done("rounding", shared_line(shared), (*shared, order))
        if "bug" in states:
            # The wrong elements of a result that is "unknown" are not certain.
            causes = merged(*(() if each.status == "unknown" else each.causes for each in self.explained))
            causes = tuple(widened(each, self.problem, self.sides, self.differing) for each in causes)
            return self._done("bug", bug_line(causes, self.differing, "unknown" not in states), causes)
        are_replayed = states == {"product"} and all(self._ways())  # computations give the bits of both results
        if not are_replayed and (related := related_fault(self.problem, self.explained)) is not None:
            return self._done("bug", bug_line((related,)), (related,))
        if "unknown" in states:
            return (states == {"product", "unknown"} and self._printed()) or self._unknown(causes)
        return (not causes and self._printed()) or self._rounding(causes)

    def _explain(self, side: Side) -> SideExplanation:
        self.found.append(SideExplainer(self.problem, side, self.differing, self.tick).explain())
        return self.found[-1]

    def _is_shared(self) -> bool:
        """Return whether both results have the same faults and differ from each other only by rounding."""
        names = [tuple(cause.name for cause in each.causes) for each in self.explained]
        faulty = set(names[0]) & (_SHARED | _ALIKE)
        if names[0] != names[1] or not faulty or set(names[0]) - faulty - _CAST:
            return False
        faults = [tuple((cause.name, cause.where, cause.evidence) for cause in each.causes) for each in self.explained]
        if faults[0] == faults[1] and faulty <= _ALIKE:
            # The same fault explains all elements of both results, except the wrong ones. So only these may differ.
            wrong = np.zeros(self.problem.shape, bool)
            for cause in self.explained[0].causes:
                wrong |= mask_of(cause.where, wrong.shape) if cause.name in ("elements", "region") else False
            return not (self.differing & wrong).any()
        views = [view_of(self.problem, each.side, each.accumulator) for each in self.explained]
        with np.errstate(all="ignore"):
            room = sum(view.errors()[1] for view in views)
            apart = np.abs(views[0].values - views[1].values) > room
        return not (apart | (self.sides[0].finite != self.sides[1].finite)).any()

    def found_so_far(self) -> Diagnosis:
        """Return a diagnosis from the results that were examined before the search was interrupted."""
        causes = tuple(cause for each in self.found for cause in each.causes)
        if any(each.status == "bug" for each in self.found):
            return Diagnosis("bug", f"Stopped. {bug_line(causes, self.differing, False)}", causes, None, True)
        seen = self.found or self.within
        said = [f"{LETTERS[each.side.name]} is {_STOPPED[each.status]}" for each in seen]
        what = f"so far, {' and '.join(said)}" if said else "before anything was found"
        return Diagnosis("unknown", f"Stopped: {what}; a complete search would settle it.", causes, None, True)

    def _replayed(self) -> tuple[SideExplanation, SideExplanation] | None:
        """Return the explanations of both results if replayed computations give both bit for bit; otherwise None.

        Both results must also be within the rounding error bound.
        """
        accumulators = [own_accumulator(side.format) for side in self.sides]
        views = [view_of(self.problem, *each) for each in zip(self.sides, accumulators, strict=True)]
        first, second = (
            SideExplanation(side, "product", (), PLAIN, accumulator)
            for side, accumulator in zip(self.sides, accumulators, strict=True)
        )
        widest = self.problem.widest.precision
        if any(side.rounded_to != side.format or side.format.precision < widest for side in self.sides):
            return None
        known = self.problem.known.all() and all(side.finite.all() for side in self.sides)
        if not known or any(view.fit().wrong.any() for view in views):
            return None
        self.explained = self.within = first, second
        ways = self._ways()
        self.libraries = [library_ways(self.problem, side, self.maps) for side in self.sides]
        if all(one or other for one, other in zip(ways, self.libraries, strict=True)):
            return first, second
        return None

    def _done(self, status: str, first: str, causes: tuple[DiagnosedCause, ...]) -> Diagnosis:
        return Diagnosis(status, first, causes, self._nearer())

    def _nearer(self) -> str | None:
        errors = []
        for side in self.sides:
            known = side.finite & self.problem.known
            with np.errstate(all="ignore"):
                q = np.abs(self.problem.totals.error(side.values)) / np.where(
                    self.problem.totals.size > 0, self.problem.totals.size, 1.0
                )
            errors.append((int((~known).sum()), float(np.mean(q[known] ** 2)) if known.any() else 0.0))
        return None if errors[0] == errors[1] else "actual" if errors[0] < errors[1] else "expected"

    def _identical(self) -> Diagnosis:
        if any(each.status == "unknown" for each in self.explained):
            said = "All numbers are equal, but both are off by more than rounding, as with quantised inputs."
            return Diagnosis("identical", said, (), None)
        wrong = next((each.causes for each in self.explained if each.status == "bug"), ())
        faults = tuple(each.replace(side="both") for each in faults_among(wrong))
        return Diagnosis("identical", identical_line(faults), faults, None)

    def _unknown(self, causes: tuple[DiagnosedCause, ...]) -> Diagnosis:
        """Replay candidate computations for the results that are not explained yet, and return the diagnosis.

        The status is "unknown" if a few elements may be wrong, if a result is not reproduced, or if it may be
        reproduced by chance. The diagnosis then also says what information would settle the question. Otherwise, the
        status is "rounding".
        """
        lone = [each for each in causes if each.name == "elements"]
        if lone:
            return self._done("unknown", lone_line(lone[0]), tuple(each for each in causes if each not in lone))
        ways = self._ways()
        unknown = [each for each in self.explained if each.status == "unknown"]
        if all(ways[self.explained.index(each)] and self._is_evidence(each) for each in unknown):
            return self._rounding(causes)
        letter = " and ".join(LETTERS[each.side.name] for each in unknown)
        doubts = [f"{each.doubt} in {LETTERS[each.side.name]}" for each in unknown if each.doubt]
        if doubts:
            rivals = [each.rival for each in unknown if each.rival]
            rival = rivals[0] if rivals else DIRECTED
            return self._done("unknown", doubt_line(doubts, rival), causes)
        views = [view_of(self.problem, each.side, own_accumulator(each.side.rounded_to)) for each in unknown]
        return self._done("unknown", unexplained_line(letter, all(map(is_function_of_product, views))), causes)

    def _is_evidence(self, found: SideExplanation) -> bool:
        """Return whether it is unlikely that a computation gives all numbers of this result by chance."""
        view = view_of(self.problem, found.side, own_accumulator(found.side.rounded_to))
        wrong = view.fit().wrong
        few = bool(found.doubt) and len(np.unique(view.values)) < _FEW
        bits = evidence_bits(view, wrong, found.side.coarsest) + place_bits(view, wrong)
        return not wrong.any() or (not few and bits >= BITS_OF_SUMS)

    def _ways(self) -> tuple[list[Way], list[Way]]:
        """Return, for each result, the computations that reproduce it."""
        key = tuple((each.side.rounded_to, each.model) for each in self.explained)
        if key not in self._found:
            self._found[key] = self._searched_ways()
        return self._found[key]

    def _searched_ways(self) -> tuple[list[Way], list[Way]]:
        found: tuple[list[Way], list[Way]] = ([], [])
        for i, each in enumerate(self.explained):
            if each.model.name and not each.model.is_one_rounding:
                continue  # orders are replayed only with unchanged inputs, or with inputs rounded to one format
            into = each.side.rounded_to
            alike = (self.explained[0].side.rounded_to, self.explained[0].model) == (
                self.explained[1].side.rounded_to,
                self.explained[1].model,
            )
            if alike and i:
                continue
            grid = grid_of(self.problem, each.model, into, self.tick)
            self.grid = grid
            grid.differing = self.differing
            sides = self.sides if alike else (each.side,)
            for j, ways in enumerate(grid.ways(sides)):
                found[j if alike else i].extend(ways)
        return found

    def _printed(self) -> Diagnosis | None:
        """Return the diagnosis if one result is right, and the other is the same result, rounded to few digits.

        Otherwise, return None.
        """
        for one, other in (self.explained, self.explained[::-1]):
            if other.status == "product" and (digits := printed_from(one.side, other.side)):
                cause = DiagnosedCause("output-rounded", "output", one.side.name, 1.0, (), digits)
                return self._done("rounding", rounding_line((cause,), self._worth()), (cause,))
        return None

    def _rounding(self, causes: tuple[DiagnosedCause, ...]) -> Diagnosis:
        """Return the diagnosis of two results whose errors rounding explains. `SmallFaults` may still find a fault."""
        causes = self._with_replayed_formats(causes)
        ways = self._all_ways()
        plain = [each for each in self.explained if not each.model.name and each.status == "product"]
        claim = SmallFaults(self.problem, self.sides, self.grid, ways, self.tick).find() if len(plain) == 2 else None
        if claim is not None:
            said = claim.first or rounding_line(claim.causes, self._worth())
            return self._done(claim.status, said, claim.causes)
        if not causes and (unlike := unlike_formats(self.problem, self.sides)):
            return self._done("rounding", rounding_line((unlike,), self._worth()), (unlike,))
        one, other = self.explained
        found = list(causes)
        if one.model == other.model and {each.name for each in one.causes} == {each.name for each in other.causes}:
            own = own_accumulator(one.side.rounded_to)
            names, _ = names_between(ways[0], ways[1], own)
            share = share_of(self.differing)
            views = [view_of(self.problem, side, own_accumulator(side.rounded_to)) for side in self.sides]
            for name, text in names.items():
                if any((each.name, each.side) == (name, "both") for each in causes):
                    continue
                whose = self._whose(name, ways)
                evidence = (("computed as", text), *least_shown(views))
                found.append(DiagnosedCause(name, STAGES.get(name, name), whose, share, (), evidence))
        return self._done("rounding", rounding_line(tuple(found), self._worth()), tuple(found))

    def _with_replayed_formats(self, causes: tuple[DiagnosedCause, ...]) -> tuple[DiagnosedCause, ...]:
        """Return the causes. If TF32 and binary16 both explain a result, name only the format that gives its bits."""
        for each in self.explained:
            models = [] if each.other_format is None else [each.model, each.other_format]
            into = each.side.rounded_to
            replayed = [
                dict(model.evidence)["format"]
                for model in models
                if grid_of(self.problem, model, into, self.tick).ways((each.side,))[0]
            ]
            if len(replayed) == 1:
                causes = with_formats(causes, each.side.name, replayed)
        return causes

    def _all_ways(self) -> tuple[list[Way], list[Way]]:
        """Return, for each result, the computations that reproduce it, including library calls."""
        ways = self._ways()
        if self.libraries is None:
            self.libraries = [library_ways(self.problem, side, self.maps) for side in self.sides]
        for i, side in enumerate(self.sides):
            if not ways[i] and not self.libraries[i] and not self.explained[i].causes:
                self.tick()
                self.libraries[i] = installed_ways(self.problem, side)
        return ways[0] + self.libraries[0], ways[1] + self.libraries[1]

    def _whose(self, name: str, ways: tuple[list[Way], list[Way]]) -> str:
        if name in ("order", "fma"):
            return "both"
        own = own_accumulator(self.sides[0].rounded_to)
        mine = [any(name in names_between([way], [], own)[0] for way in each) for each in ways]
        return "both" if mine[0] == mine[1] else "actual" if mine[0] else "expected"

    def _worth(self) -> float:
        """Return the largest difference between the results in an element, relative to the sum of both error bounds."""
        first, second = (
            view_of(
                self.problem,
                each.side,
                min(each.accumulator, own_accumulator(each.side.rounded_to), key=attrgetter("precision")),
            )
            for each in self.explained
        )
        with np.errstate(all="ignore"):
            room = sum(view.noise.limit(view.totals) + view.half for view in (first, second))
            share = np.abs(first.values - second.values) / room
        share = share[np.isfinite(share)]
        return float(share.max()) if share.size else 0.0


_SHARED = {"bias", "scale", "terms-missing", "terms-twice", "transposed-operand", "transposed-output"}
_SHARED |= {"rows-moved", "columns-moved"}
# With one of these faults, every number of a result is known up to rounding, except in wrong elements and regions.
_ALIKE = {"transposed-operand", "transposed-output", "rows-moved", "columns-moved", "function-applied", "clipped"}
_ALIKE |= {"elements", "region"}
_CAST = {"output-rounded"}
_STOPPED = {
    "product": "equal to the product within rounding",
    "rounding": "equal to the product except for a choice of precision",
    "unknown": "off by more than rounding",
}
