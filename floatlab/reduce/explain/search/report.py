"""Base class of the search: stores what is known about one result, and makes explanations from causes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.faults.finder import FaultFinder
from floatlab.reduce.explain.findings import (
    DOUBLE,
    SINGLE,
    Fault,
    SideExplanation,
    explains_stray,
    find_stray,
    stray_fault,
)
from floatlab.reduce.explain.precision.outputs import casts_of
from floatlab.reduce.explain.problem import ProductProblem, Side, View, middle, view_of
from floatlab.reduce.explain.residuals import (
    share_of,
)
from floatlab.reduce.explain.stages import PLAIN, Model, known_of
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Place

# With these causes, no final rounding is reported.
_NO_CAST = {"flush-to-zero", "output-rounded", "not-the-product", "function-applied"}


class SideReport:
    """Makes the explanations of one result from models, faults and accumulators."""

    def __init__(self, problem: ProductProblem, side: Side, differing: Array, tick: Callable[[], None]) -> None:
        """Find stray elements, such as unexpected NaNs, which the later search ignores.

        `side` is the result. `differing` is the mask of the elements in which it differs from the result with which it
        is compared. `tick` is called again and again during the search.
        """
        self.problem, self.side, self.differing, self.tick = problem, side, differing, tick
        self.faults = FaultFinder(problem, side, tick)
        self.stray = find_stray(problem, side)
        self.parts: dict[Place, tuple[DiagnosedCause, ...]] = {}  # the causes of rectangles, see `_one_part`
        self.doubt: tuple[str, str] | None = None  # two equally good explanations: (a fault, a correct computation)
        self.before: tuple[DiagnosedCause, ...] = ()
        if self.stray.any():
            self.before = (self._cause(stray_fault(side, self.stray), "result"),)

    @property
    def accumulators(self) -> tuple[Format, ...]:
        """The accumulator formats that are tried for this result; the first is the one that libraries usually use."""
        if self.side.format.precision <= SINGLE.precision:
            return (SINGLE,)
        # NumPy widens sums in binary32 if they are multiplied by a number in binary64.
        inputs = max(each.format.precision for each in self.problem.sources)
        narrow = min(inputs, self.side.rounded_to.precision) <= SINGLE.precision
        return (DOUBLE, SINGLE) if narrow else (DOUBLE,)

    @property
    def plain(self) -> View:
        """The view that compares the result with the exact product of the unchanged inputs.

        Its error limits are those of sums in the usual accumulator.
        """
        return view_of(self.problem, self.side, self.accumulators[0])

    def _in_doubt(self, what: str, rival: str) -> SideExplanation:
        """Return the status "unknown": the fault `what` and the correct computation `rival` fit equally well."""
        return self._found("unknown", ()).replace(doubt=what, rival=rival)

    def _cause(self, fault: Fault, stage: str) -> DiagnosedCause:
        share = 1.0 if fault.wrong is None else share_of(fault.wrong)
        return DiagnosedCause(fault.name, stage, self.side.name, share, fault.where, fault.evidence)

    def _found(
        self,
        status: str,
        faults: tuple[Fault, ...],
        model: Model = PLAIN,
        accumulator: Format = SINGLE,
        z: Array | None = None,
        view: View | None = None,
        product: Array | None = None,
    ) -> SideExplanation:
        """Return an explanation whose causes are the given ones, stray elements, and an unusual final rounding.

        The accumulator is a cause only if it is not the usual one and there are no faults. The final rounding is
        examined only if `view` is given. Stray elements that the causes do not explain turn the status into "bug",
        unless it is "unknown". A result with the status "product" and any cause gets the status "rounding".
        """
        causes = [self._cause(each, "result") for each in faults]
        if model.name:
            evidence = known_of(model, *self.problem.factors)
            causes.insert(0, self._cause(Fault(model.name, (), evidence), model.stage))
        own = self.accumulators[0]
        if accumulator is not own and status in ("product", "rounding", "bug") and not faults:
            causes.append(self._cause(Fault("accumulator", (), (("format", accumulator.name),)), "accumulator"))
        named = {each.name for each in causes}
        if view is not None and status != "unknown" and not named & _NO_CAST:
            found = casts_of(self.problem, self.side, view, product, faults)
            causes += [self._cause(Fault("output-rounded", (), known), "output") for known in found]
        if self.before and explains_stray(self.problem, self.side, self.stray, faults, model, accumulator):
            self.before, self.stray = (), np.zeros_like(self.stray)
        if self.before:
            status = "bug" if status != "unknown" else status
        elif status == "product" and causes:
            status = "rounding"
        wrong = next((each.wrong for each in faults if each.wrong is not None), None)
        error = 0.0 if z is None else middle(z)
        return SideExplanation(
            self.side, status, (*self.before, *causes), model, accumulator, self.stray if self.before else wrong, error
        )
