"""Computations without a fault that explain the errors of a result as well as a fault does.

A fault is claimed only if none of them does.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.faults.patterns import may_be_flushed
from floatlab.reduce.explain.faults.rearranged import REARRANGED, may_be_rearranged
from floatlab.reduce.explain.findings import SideExplanation
from floatlab.reduce.explain.noise import half_ulp, noise_of
from floatlab.reduce.explain.problem import ProductProblem, View
from floatlab.reduce.explain.residuals import last_places
from floatlab.reduce.explain.stages import PLAIN

_LOCAL = {"elements", "region", "not-the-product"}
_PRECISION = {"inputs-rounded", "inputs-quantized", "inputs-split", "output-rounded"}
# Partial sums in a narrow format cause errors of up to this many half ulps of the largest partial sum.
_HALVES = 4.0
# With such sums, an element is within half an ulp of the product with a probability of about exp(−0.36). If many
# elements are that close, a few wrong elements are the likelier explanation; its cost is −ln of a probability, too.
_WITHIN, _CLAIM, _EACH = 0.36, 10.0, 6.0
_RESCALED = 1 / 32  # a factor this close to 1 beside quantised inputs may be part of another scale


def rival_of(problem: ProductProblem, view: View, found: SideExplanation) -> tuple[str, str] | None:
    """Return the fault of an explanation and a computation without it, in words; None if only the fault fits.

    `view` is that of the usual accumulator.
    """
    names = {each.name for each in found.causes}
    if found.status != "bug" or "nan" in names:
        return None
    if names <= _LOCAL:
        wrong = view.fit().wrong
        if may_be_flushed(view, wrong, 2.0**found.side.format.emin):
            return "wrong elements", "subnormal numbers that were flushed to zero"
        if may_be_rearranged(view, wrong, problem.x, problem.y):
            return "wrong elements", REARRANGED
    product = None if found.model is PLAIN else problem.whole(found.model)
    is_local = names & _LOCAL and names <= _LOCAL | _PRECISION
    if is_local and found.wrong is not None and may_be_rounded_again(view, product, found.wrong):
        format = found.side.narrowest.name
        return "wrong elements", f"results or partial sums that were rounded to {format} in another way"
    if "bias" in names and may_be_fixed_point(view, product):
        return "a bias", "fixed-point numbers that were truncated"
    factors = [dict(each.evidence).get("factor", "") for each in found.causes if each.name == "scale"]
    near = [each for each in factors if each[:1].isdigit() and abs(float(each) - 1) < _RESCALED]
    if "inputs-quantized" in names and near:
        return f"a factor of {near[0]}", "inputs quantised with another scale"
    return None


def may_be_rounded_again(view: View, product: Array | None, wrong: Array) -> bool:
    """Return whether partial sums in the narrow format of a result, or another rounding of it, explain wrong elements.

    The product is that of a model of the inputs, or None for the exact one.
    """
    if not isinstance(view.half, np.ndarray):
        return False
    error = np.abs(view.totals.error(view.values, product))
    exact = noise_of(view.format).is_exact(view.totals, product)  # no partial sum is rounded in the narrow format
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(view.values), np.sqrt(view.totals.squares))
        room = _HALVES * half_ulp(largest, view.format) + view.noise.limit(view.totals, product)
    seen = view.usable & ~wrong & ~exact
    claim = _CLAIM + _EACH * int(wrong.sum())
    return bool(((error <= room) & ~exact)[wrong].all()) and _WITHIN * int(seen.sum()) < claim


def may_be_fixed_point(view: View, product: Array | None) -> bool:
    """Return whether all numbers are multiples of one number, which the product is not, and are off by a few of it."""
    places = last_places(view.values[view.usable])
    if not places.size:
        return False
    step = float(places.min())
    exact = (view.totals.product if product is None else product)[view.usable]
    with np.errstate(all="ignore"):
        between = np.remainder(exact, step) != 0
    error = np.abs(view.totals.error(view.values, product))[view.usable]
    return bool(between.mean() > 0.5 and (error <= (view.totals.terms + 1) * step).all())
