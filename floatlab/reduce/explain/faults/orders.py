"""Simulate orders of addition in single elements, and widen the error limits of a few elements.

Error limits are multiples of the expected errors (see `noise`). The multiple is large enough for a simulated sample of
the elements, but a few other elements may have larger errors. An example is a sum of cosines whose phase changes little
from term to term. The partial sums become much larger than the final sum before the terms cancel, and successive
rounding errors have the same sign. Elements that exceed the limits are therefore simulated one by one. Libraries add
long sums in panels. This usually makes errors smaller, but in such an element they may be larger than those of one
serial sum, so orders with panels are simulated, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, native_dtype
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.problem import ProductProblem, Side, view_of
from floatlab.reduce.explain.ways import own_accumulator
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.replay.candidates import Candidate
from floatlab.reduce.replay.evaluator import candidate_codes
from floatlab.reduce.simulate.adders import Adder

USUAL = (
    "serial", "reversed", "pairwise", "lanes(2)", "lanes(4)", "lanes(8)", "lanes(16)", "splitk(2)", "blocked(64)",
)  # fmt: skip
_PANELS = 128, 192, 256, 320, 384, 448, 512  # lengths of panels; libraries add the sum of each panel to the result
_WITHIN = "serial", "lanes(4)", "lanes(8)", "lanes(16)"  # orders within a panel
_PERMUTATIONS = 12  # serial sums of randomly permuted terms
# Limits are widened if at most _LEAST elements exceed them, or if these elements have at most _SUSPECTS terms in all.
_SUSPECTS, _LEAST = 1 << 18, 32


def panels(terms: int) -> tuple[str, ...]:
    """Return orders for sums of `terms` terms. Each order adds panels of terms, and then the sums of the panels."""
    lengths = sorted({each for each in (*_PANELS, -(-terms // 2), -(-terms // 3)) if _PANELS[0] <= each < terms})
    return tuple(f"blocked({length}, {order})" for length in lengths for order in _WITHIN)


def order_errors(
    problem: ProductProblem,
    into: Format,
    accumulator: Format,
    places: tuple[Array, Array],
    orders: Sequence[str] = USUAL,
    permutation: Array | None = None,
) -> Array:
    """Return the absolute errors of the elements at `places`: for each order, a row without FMA and a row with FMA."""
    (x, y), (rows, columns) = problem.sources, places
    chosen = slice(None) if permutation is None else permutation
    terms = (
        Source(np.ascontiguousarray(x.codes[rows].T[chosen]), x.format),
        Source(np.ascontiguousarray(y.codes[:, columns][chosen]), y.format),
    )
    totals, found = problem.totals, []
    exact = totals.product[rows, columns]
    missed = 0.0 if totals.missed is None else totals.missed[rows, columns]
    for order in map(parse_schedule, orders):
        for fma in (False, True):
            codes = candidate_codes(Candidate(order, Adder(accumulator, fma=fma)), terms, into)
            with np.errstate(all="ignore"):
                error = np.abs(np.asarray(decode(codes, into), np.float64) - exact - missed)
            found.append(np.where(np.isfinite(error), error, 0.0))
    return np.array(found)


def largest_errors(
    problem: ProductProblem, into: Format, accumulator: Format, places: tuple[Array, Array], permuted: bool
) -> Array:
    """Return the largest errors of the elements at `places` in unusual orders, or 0 if there are no such orders.

    These orders are sums of panels and, if `permuted` is true, serial sums of randomly permuted terms.
    """
    errors = [np.zeros((1, len(places[0])))]
    if orders := panels(problem.terms):
        errors.append(order_errors(problem, into, accumulator, places, orders))
    rng = np.random.default_rng(0)
    for _ in range(_PERMUTATIONS * permuted):
        permutation = rng.permutation(problem.sources[0].codes.shape[1])
        errors.append(order_errors(problem, into, accumulator, places, ("serial",), permutation))
    largest: Array = np.concatenate(errors).max(axis=0)
    return largest


def widen_limits(problem: ProductProblem, sides: Sequence[Side]) -> None:
    """Widen the limits of a few elements that exceed their error limits, if simulated orders have large errors, too."""
    accumulator = own_accumulator(sides[0].rounded_to)
    kind = native_dtype(accumulator)
    if kind is None or kind.itemsize < 4 or any(own_accumulator(side.rounded_to) != accumulator for side in sides):
        return
    beyond = np.zeros(problem.shape, np.bool_)
    for side in sides:
        view = view_of(problem, side, accumulator)
        with np.errstate(all="ignore"):
            possible = np.abs(view.totals.error(view.values)) - view.half <= view.noise.most(view.totals)
        beyond |= view.fit().wrong & possible
    if not 0 < beyond.sum() <= max(_LEAST, _SUSPECTS // problem.terms):
        return
    rows, columns = np.nonzero(beyond)
    orders = (*USUAL, *panels(problem.terms))
    made = order_errors(problem, accumulator, accumulator, (rows, columns), orders).max(axis=0)
    simulated = np.zeros(problem.shape)
    simulated[rows, columns] = made * 2.0**accumulator.precision
    problem.totals = problem.totals.replace(simulated=simulated)
