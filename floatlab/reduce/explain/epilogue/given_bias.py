"""Recognise mistakes with the bias that the user gave: it is missing, or was added twice or to other elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.estimates import PROVED, shift_bits
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, View

AROUND_BIAS = "before and after the bias"  # the product is rounded, the bias is added, and the sum is rounded again
_USUAL = "is missing", "was added twice"
_LIKELY = 16.0  # evidence, in bits, for an unusual fault of the bias


def named_bias(problem: ProductProblem, fault: Fault) -> Fault:
    """Return a fault of missing or doubled terms in which the bias, the last term of each sum, is called the bias.

    If the bias is the only such term, the fault is one of the bias.
    """
    *others, (first, stop) = cast("tuple[tuple[int, int], ...]", fault.where)
    if not problem.has_bias or stop < problem.terms:
        return fault
    missing, twice = _USUAL
    times = dict(fault.evidence).get("times")  # given if the bias was added more than twice
    fate = missing if fault.name == "terms-missing" else f"was added {times} times" if times else twice
    known = (("the given bias", fate),)
    where = (*others, *(((first, stop - 1),) if first < stop - 1 else ()))
    if not where:
        return fault.replace(name="bias", where=(), evidence=known)
    count = ("terms", str(sum(end - start for start, end in where)))
    rest = tuple(each for each in fault.evidence if each[0] != "terms")
    return fault.replace(where=where, evidence=(count, *rest, *known))


def may_be_misadded(problem: ProductProblem, view: View) -> bool:
    """Return whether a mistake with the given bias explains all wrong elements of a result, even if only by chance."""
    found = fate_of_bias(problem, view, None, view.fit().wrong, 0.0) or lines_of_bias(problem, view, 0.0)
    return bool(found)


def fate_of_bias(
    problem: ProductProblem, view: View, product: Array | None, wrong: Array, proved: float = PROVED
) -> str:
    """Return what was done wrong with the given bias, as text, if this explains all elements of a result; else "".

    `product` is the product of a model, or None for the exact product. `wrong` marks the elements whose errors exceed
    the limit when the result is compared with the product plus the bias. A result in a narrow format may have been
    rounded before the bias was added. In this case, at least `proved` bits of evidence are required to exclude a
    coincidence.
    """
    given = problem.given_bias
    if given is None or not wrong.any():
        return ""
    base = view.totals.product if product is None else product
    room = view.noise.limit(view.totals) + view.half
    for words, change in _changes(problem, given):
        least = PROVED if product is not None else 0.0 if words in _USUAL else _LIKELY
        is_likely = not least or shift_bits(problem.independent, change, room, view.usable) >= least
        if is_likely and not view.fit(base + change).wrong.any():
            return words
    if isinstance(view.half, np.ndarray):
        wide = _rounded_before(view, base, given)
        room = wide.noise.limit(view.totals) + wide.half
        for words, change in _changes(problem, given):
            is_proved = shift_bits(problem.independent, change, room, view.usable) >= proved
            if is_proved and wide.fit(base).wrong.any() and not wide.fit(base + change).wrong.any():
                return words
    return ""


def lines_of_bias(problem: ProductProblem, view: View, proved: float = PROVED) -> tuple[str, Array] | None:
    """Return what was done with the given bias in some whole rows or columns, and the mask of their elements.

    Return None if no such mistake explains all wrong elements. At least `proved` bits of evidence are required from the
    elements in these rows or columns, and as many from all other elements; otherwise, return None, too.
    """
    given = problem.given_bias
    if given is None or not view.fit().wrong.any():
        return None
    base = view.totals.product
    wide = _rounded_before(view, base, given) if isinstance(view.half, np.ndarray) else view
    wrong, room = wide.fit().wrong, wide.noise.limit(view.totals) + wide.half
    for words, change in _changes(problem, given):
        off = wide.fit(base + change).wrong
        for axis in (1, 0):
            lines = np.broadcast_to(wrong.any(axis=axis, keepdims=True), wrong.shape)
            bits = [shift_bits(problem.independent, change, room, view.usable & part) for part in (lines, ~lines)]
            if not (off & lines).any() and min(bits) >= proved:
                return words, lines
    return None


def _rounded_before(view: View, base: Array, given: Array) -> View:
    """Return a view that allows for two more roundings, one before each addition of the bias.

    The bias may have been added twice.
    """
    rounded = half_ulp(base - given, view.format) + half_ulp(base, view.format)
    return View(view.totals, view.values, view.usable, view.noise, view.format, view.half + rounded)


def _changes(problem: ProductProblem, given: Array) -> Iterator[tuple[str, Array]]:
    """Yield possible mistakes with the bias: a description, and the change of the result."""
    for words, times in zip((*_USUAL, "was subtracted"), (-1, 1, -2), strict=True):
        yield words, times * given
    for words, other in problem.misplaced_biases:
        yield words, other - given
