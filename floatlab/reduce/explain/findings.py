"""What is found out about one result: its status, and the causes for which it is not the plain product."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.record import Individual, Record
from floatlab.reduce.explain.problem import ProductProblem, Side, View, find_overflow
from floatlab.reduce.explain.residuals import indices_of
from floatlab.reduce.explain.stages import PLAIN, Model
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Evidence, Place

SINGLE, DOUBLE = parse_format("fp32"), parse_format("fp64")
ENOUGH = 50  # elements; with fewer, a median is not reliable


class SideExplanation(Individual):
    """The explanation of one result: status, causes of its difference from the product, mask of wrong elements."""

    side: Side
    status: str  # product, rounding, bug or unknown
    causes: tuple[DiagnosedCause, ...]
    model: Model = PLAIN
    accumulator: Format = SINGLE
    wrong: Array | None = None
    z: float = 0.0  # the median error in sigmas
    doubt: str = ""  # the factor or bias that explains the result, if something else does too
    rival: str = ""  # what else does; if empty, sums in one direction


class SampledModel(Individual):
    """A model with its residuals in a sample: their median `z` in sigmas and the number of wrong elements."""

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
    """A fault that explains residuals of a model. The name is empty if another explanation fits as well."""

    name: str
    where: tuple[Place, ...] = ()
    evidence: Evidence = ()
    wrong: Array | None = None
    left: float = 0.0  # the median error, in sigmas, that the fault does not explain

    __hash__ = object.__hash__


def stray_words(side: Side, stray: Array) -> str:
    """Return words for the unexpected values: NaN, infinite, or finite although the inputs make NaN or ∞."""
    values = side.values[stray]
    if np.isnan(values).all():
        return "NaN"
    if np.isinf(values).all():
        return "infinite"
    return "NaN or infinite" if not side.finite[stray].any() else "not the NaN or ∞ that the inputs make"


def overflow_of(problem: ProductProblem, side: Side, other: Side) -> DiagnosedCause | None:
    """Return the elements of a result that overflowed to infinity, while the other result holds numbers there."""
    overflow = find_overflow(problem, side) & other.finite
    if not overflow.any():
        return None
    sizes = np.abs(problem.totals.product[overflow])
    most = f"{'up to ' * (sizes.size > 1)}{number_text(float(sizes.max()))}"
    known = (
        ("holds", "infinite"),
        ("elements", f"{sizes.size:,}"),
        ("product", most),
        ("format", side.narrowest.name),
        ("largest", number_text(float(side.narrowest.largest))),
    )
    where = indices_of(overflow)
    return DiagnosedCause("nan", "output", side.name, float(overflow.mean()), where, known)


def number_text(value: float) -> str:
    """Write a number for a person, in few digits.

    >>> number_text(65504), number_text(3.4028235e38), number_text(-0.125)
    ('65,504', '3.40282e+38', '-0.125')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.6g}"
