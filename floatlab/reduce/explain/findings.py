"""What is found out about one result: its status, and the causes for which it is not the plain product."""

from __future__ import annotations

from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.record import Individual, Record
from floatlab.reduce.explain.problem import Side, View
from floatlab.reduce.explain.stages import PLAIN, Model
from floatlab.reduce.results.verdicts import DiagnosedCause, Evidence, Place

SINGLE, DOUBLE = parse_format("fp32"), parse_format("fp64")
ENOUGH = 50  # elements, so that a median says something


class SideExplanation(Individual):
    """What one result is: its status, why it is not the plain product, and which elements are wrong."""

    side: Side
    status: str  # product, rounding, bug or unknown
    causes: tuple[DiagnosedCause, ...]
    model: Model = PLAIN
    accumulator: Format = SINGLE
    wrong: Array | None = None
    z: float = 0.0  # the median error in sigmas
    doubt: str = ""  # two explanations of which none is excluded


class SampledModel(Individual):
    """A model of the inputs with what it leaves in a sample: the median in sigmas, and how many elements are wrong."""

    z: float
    wrong: int
    model: Model
    accumulator: Format
    view: View
    product: Array | None
    rms: float = 0.0  # the root mean square in sigmas

    @property
    def exact(self) -> Array:
        """The product in the sample."""
        return self.view.totals.product if self.product is None else self.product


class Fault(Record):
    """What a residual was explained by, beside the model of the inputs; without a name where a rival fits as well."""

    name: str
    where: tuple[Place, ...] = ()
    evidence: Evidence = ()
    wrong: Array | None = None
    left: float = 0.0  # the median error, in sigmas, beside it

    __hash__ = object.__hash__
