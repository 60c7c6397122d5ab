"""Turn the findings about one result into its explanation: a status, causes, and the mask of wrong elements."""

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
    find_stray,
    makes_stray,
    stray_words,
)
from floatlab.reduce.explain.precision.outputs import casts_of
from floatlab.reduce.explain.problem import (
    ProductProblem,
    Side,
    View,
    middle,
)  # fmt: skip
from floatlab.reduce.explain.residuals import find_places, indices_of, share_of
from floatlab.reduce.explain.stages import PLAIN, Model, known_of
from floatlab.reduce.results.diagnosis_record import DiagnosedCause

# With these causes, no final rounding is reported.
_NO_CAST = {"flush-to-zero", "output-rounded", "not-the-product", "function-applied"}


class SideReport:
    """Makes the explanations of one result from models, faults and accumulators."""

    def __init__(self, problem: ProductProblem, side: Side, differing: Array, tick: Callable[[], None]) -> None:
        """Find stray elements, such as unexpected NaNs, which the later search ignores.

        `differing` is the mask of the elements in which the result differs from the other result.
        """
        self.problem, self.side, self.differing, self.tick = problem, side, differing, tick
        self.faults = FaultFinder(problem, side, tick)
        self.stray = find_stray(problem, side)
        self.doubt: tuple[str, str] | None = None  # two explanations that fit equally well: a factor or bias; a model
        self.before: tuple[DiagnosedCause, ...] = ()
        if self.stray.any():
            places = find_places(self.stray)
            where = indices_of(self.stray)
            known = () if places is None else (("places", places.name),)
            found = Fault("nan", where, (*known, ("holds", stray_words(side, self.stray))), self.stray)
            self.before = (self._cause(found, "result"),)

    @property
    def accumulators(self) -> tuple[Format, ...]:
        """The accumulator formats that are tried for this result; the first is the one that libraries usually use."""
        if self.side.format.precision <= SINGLE.precision:
            return (SINGLE,)
        return (DOUBLE,) if self.side.narrowest.precision > SINGLE.precision else (DOUBLE, SINGLE)

    def _in_doubt(self, what: str, rival: str) -> SideExplanation:
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
        overflows = any(each.name == "accumulator" for each in faults) and self._overflows(accumulator)
        if self.before and (overflows or (model.name and makes_stray(self.problem, model, self.stray))):
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

    def _overflows(self, accumulator: Format) -> bool:
        """Return whether every unexpected NaN or infinity may come from a partial sum that overflowed."""
        return bool((self.problem.totals.size[self.stray] >= float(accumulator.largest) / 2).all())
