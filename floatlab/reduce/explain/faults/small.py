"""Search two results for faults that are smaller than the rounding error bound.

Both results are within the bound of the product, so only the pattern of their errors can show a fault: a few elements
differ, a row or column has larger errors than all others, or a mean error is significant. Usually, the results differ
because their terms were added in different orders. A fault is claimed only if no order causes such a pattern. An order
of addition is named as the cause only if simulated orders cause this pattern, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Individual
from floatlab.reduce.explain.faults.agreement import agree_elsewhere
from floatlab.reduce.explain.faults.fast import find_fast_product
from floatlab.reduce.explain.faults.outliers import (
    are_isolated,
    are_rough,
    beyond_orders,
    few_wrong,
    outlying_lines,
    stand_apart,
)  # fmt: skip
from floatlab.reduce.explain.faults.patterns import (
    BITS_OF_SUMS,
    Drift,
    are_among_others,
    drift_of,
    is_no_order,
    small_fault,
)  # fmt: skip
from floatlab.reduce.explain.faults.rearranged import CERTAIN, POSSIBLE, REARRANGED, rearranged_odds
from floatlab.reduce.explain.faults.rivals import ShiftRivals
from floatlab.reduce.explain.faults.shared import may_be_rounding
from floatlab.reduce.explain.findings import DIRECTED
from floatlab.reduce.explain.first_line import (
    LETTERS,
    bug_line,
    doubt_line,
    lone_line,
    one_sided_line,
    outlying_line,
    rough_line,
)  # fmt: skip
from floatlab.reduce.explain.grid import CandidateGrid
from floatlab.reduce.explain.problem import ProductProblem, Side, view_of
from floatlab.reduce.explain.residuals import find_places, follows_everywhere, indices_of, mask_of, share_of
from floatlab.reduce.explain.ways import Way, own_accumulator
from floatlab.reduce.results.diagnosis_record import DiagnosedCause

# The `doubt_needed` of `is_no_order`: _KNOWN if a computation reproduces a result bit for bit, otherwise _UNKNOWN.
_KNOWN, _UNKNOWN = 8.0, 12.0

# Rearranged products have errors of up to about 1.7 times those of the simulated orders. If errors are more than _ROUGH
# times as large as those, the diagnosis is "unknown".
_ROUGH = 2.0
# Differences of one sign are evidence if at least _FEWEST elements differ, and _EQUAL times as many have equal bits.
_FEWEST, _EQUAL = 6, 4


class Claim(Individual):
    """The status, first line and causes of a diagnosis. If `first` is empty, the usual first line is printed."""

    status: str
    first: str
    causes: tuple[DiagnosedCause, ...] = ()


class SmallFaults:
    """Searches for faults in two results that are both within the rounding error bound of the product."""

    def __init__(
        self,
        problem: ProductProblem,
        sides: tuple[Side, Side],
        grid: CandidateGrid,
        ways: tuple[Sequence[Way], Sequence[Way]],
        tick: Callable[[], None],
    ) -> None:
        """Take both results, the replayed candidates, and for each result the computations that reproduce it."""
        self.problem, self.sides, self.grid, self.ways, self.tick = problem, sides, grid, ways, tick
        self.differing = sides[0].values != sides[1].values
        self.views = [view_of(problem, side, own_accumulator(side.rounded_to)) for side in sides]

    def find(self) -> Claim | None:
        """Return the first claim that holds, or None if the results may differ only by the order of addition."""
        self.tick()
        if claim := self._few():
            return claim
        claim = self._of_each() or self._one_sided()
        return None if claim is None else self._fast(claim)

    def _fast(self, claim: Claim) -> Claim | None:
        """Return the claim, unless a result may be a fast or rearranged product, whose errors look like faults.

        If a result may be such a product, return a claim with the status "unknown" instead. If the result is certainly
        a fast product, return a claim that names the algorithm. If the result is certainly a product that was
        rearranged in any other way, return None, because its errors are rounding errors.
        """
        if claim.status == "rounding":
            return claim  # a computation reproduces the result
        names = {each.name for each in claim.causes}
        if claim.status == "bug" and names <= {"elements", "region"}:
            (cause,) = claim.causes
            view, wrong = self.views[cause.side == "expected"], mask_of(cause.where, self.differing.shape)
            if agree_elsewhere(view, wrong, self.differing, self.problem.x, self.problem.y):
                return claim
        x, y = self.problem.x, self.problem.y
        found = [
            None if ways else find_fast_product(view, x, y) for view, ways in zip(self.views, self.ways, strict=True)
        ]
        causes = tuple(
            DiagnosedCause("fast-product", "result", side.name, 1.0, (), each.evidence)
            for side, each in zip(self.sides, found, strict=True)
            if each is not None and each.is_sure
        )
        if causes:
            return Claim("rounding", "", causes)
        if claim.status == "bug" and any(found):
            letter = LETTERS[claim.causes[0].side]
            return Claim("unknown", doubt_line([f"wrong elements in {letter}"], "the errors of a fast matrix product"))
        if claim.status == "bug" and {each.name for each in claim.causes} <= {"elements", "region"}:
            (cause,) = claim.causes
            view = self.views[cause.side == "expected"]
            wrong = mask_of(cause.where, self.differing.shape)
            odds = rearranged_odds(view, wrong, self.problem.x, self.problem.y)
            if odds > CERTAIN:
                return None
            if odds > POSSIBLE:
                return Claim("unknown", doubt_line([f"wrong elements in {LETTERS[cause.side]}"], REARRANGED))
        return claim

    def _few(self) -> Claim | None:
        """Return a claim if a few elements are wrong, and all others are right bit for bit.

        An element counts as right if it is equal in both results, or if a replayed order gives it.

        The status of the claim is "unknown" if only one to three elements differ and may be wrong. It is also "unknown"
        if each element has only one term, so that there is no order of addition.
        """
        chance = self.grid.chance()
        same = self.sides[0].format == self.sides[1].format
        if same and is_no_order(self.differing, chance, _KNOWN if any(self.ways) else _UNKNOWN):
            both = dict.fromkeys(("actual", "expected"), self.differing)
            if causes := few_wrong(self.problem, self.sides, both, "agree bit for bit"):
                return Claim("bug", bug_line(causes, self.differing), causes)
        nearest = self.grid.nearest
        missed = {
            side.name: nearest[side.name]
            for side, ways in zip(self.sides, self.ways, strict=True)
            if side.name in nearest and not ways and is_no_order(nearest[side.name], chance)
        }
        if causes := few_wrong(self.problem, self.sides, missed, "are what a replayed order gives, bit for bit"):
            return Claim("bug", bug_line(causes, self.differing), causes)
        # A product of one term has no order.
        if same and not all(self.ways) and (self.problem.terms == 1 or are_isolated(self.differing, chance)):
            return self._lone(self.differing)
        return None

    def _one_sided(self) -> Claim | None:
        """Return a claim if all differences have the same direction; otherwise None.

        The directions are up, down, away from zero and toward zero. A factor or a bias causes such differences, so the
        status of the claim is "unknown". But if sums that round in this direction reproduce a result, and at least
        BITS_OF_SUMS elements differ, these sums are the cause.
        """
        count = int(self.differing.sum())
        if all(self.ways) or count < _FEWEST or self.differing.size - count < _EQUAL * count:
            return None
        a, b = (side.values[self.differing] for side in self.sides)
        up = a > b
        away = up == (b > 0)
        if not any(each.all() or not each.any() for each in (up, away)):
            return None
        sums = [self._directed(i) for i in (0, 1) if not self.ways[i] and count >= BITS_OF_SUMS]
        return next(filter(None, sums), Claim("unknown", one_sided_line(count)))

    def _lone(self, elements: Array) -> Claim:
        share, where = share_of(elements), indices_of(elements)
        return Claim("unknown", lone_line(DiagnosedCause("elements", "result", "both", share, where, ())))

    def _of_each(self) -> Claim | None:
        """Return a claim about the first result with unusual rows, columns, mean errors or typical errors.

        Results that a computation in `ways` reproduces are skipped. Return None if nothing is unusual.
        """
        drifts = [drift_of(view) for view in self.views]
        for i, whose in enumerate(("actual", "expected")):
            if self.ways[i]:
                continue
            fault = small_fault(drifts[i], drifts[1 - i], self.views[i].noise.u)
            if fault and fault[2]:
                return self._shift(i, drifts[i], *fault)
            doubtful, wrong = beyond_orders(self.problem, self.sides[i], self.differing)
            among = are_among_others(self.views[i], wrong)
            if wrong.any() and among and (places := find_places(wrong)) is not None:
                known = (("all others", "agree, or differ by rounding"),)
                share = share_of(wrong)
                cause = DiagnosedCause(places.name, "result", whose, share, places.where, known)
                return Claim("bug", bug_line((cause,), self.differing), (cause,))
            if outlying := outlying_lines(self.problem, self.sides, i):
                cause, is_sure = outlying
                if is_sure:
                    return Claim("bug", bug_line((cause,), self.differing), (cause,))
                return Claim("unknown", outlying_line(cause))
            if fault:
                return self._shift(i, drifts[i], *fault)
            if doubtful.any() and stand_apart(self.problem, self.sides[i], self.differing, doubtful):
                return self._lone(doubtful)
            if (times := are_rough(self.problem, self.sides[i])) > _ROUGH:
                return Claim("unknown", rough_line(LETTERS[whose], times))
        return None

    def _directed(self, i: int) -> Claim | None:
        """Return the claim that a result comes from sums with directed rounding, or None if none reproduces it."""
        side = self.sides[i]
        ways = self.grid.directed_ways(side) if self.grid.into == side.rounded_to else []
        if not ways:
            return None
        evidence = (("computed as", ways[0].text),)
        return Claim("rounding", "", (DiagnosedCause("accumulator", "accumulator", side.name, 1.0, (), evidence),))

    def _shift(self, i: int, drift: Drift, name: str, words: str, is_certain: bool) -> Claim:
        """Return a claim that explains significant mean errors by a bias, a factor or sums with directed rounding.

        If several explanations are possible, the status of the claim is "unknown".
        """
        if directed := self._directed(i):
            return directed
        whose = ("actual", "expected")[i]
        axis = {"one number a column": 0, "one number a row": 1}.get(words)
        shift = drift.factor * self.problem.totals.product if axis is None else drift.means[axis]
        rival = self._rival_of_shift(i, shift, axis) or ("" if is_certain else "an order that was not tried")
        error, _, sigma = self.views[i].errors()
        if not rival and not follows_everywhere(error, np.broadcast_to(shift, error.shape), sigma):
            rival = "a part of the result that was computed in another way"
        if rival:
            doubt = f"a bias ({words.replace(' a ', ' per ')})" if " " in words else f"a factor of {words}"
            return Claim("unknown", doubt_line([f"{doubt} in {LETTERS[whose]}"], rival))
        known = ("factor", words) if name == "scale" else ("one number a", words.rpartition(" ")[2])
        cause = DiagnosedCause(name, "result", whose, 1.0, (), (known, ("seen by", "means over many elements")))
        return Claim("bug", bug_line((cause,)), (cause,))

    def _rival_of_shift(self, i: int, shift: Array, axis: int | None) -> str:
        """Return a correct computation that may shift a result in the same way, or an empty string.

        The shift is a bias of each column (axis 0), a bias of each row (axis 1), or a factor (axis None).
        """
        if not ShiftRivals(self.problem, self.sides[i], self.tick).are_excluded(shift, axis):
            return DIRECTED
        is_rounding = may_be_rounding(self.views[i], self.problem.x, self.problem.y, shift, axis)
        return REARRANGED if is_rounding else ""
