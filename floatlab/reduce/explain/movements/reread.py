"""Recognise transposed results and transposed inputs, even if the result was also computed in another precision.

A *reading* is the assumption that the result or some factors are transposed. The correlation between result and product
is computed with and without this assumption. If the assumption makes the correlation far better, the result is
explained again in this reading, like any other result. In this way, all choices of precision are tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import correlation

# A reading is tried if the correlation with its product is at least _LEAST, and closer to 1 than the correlation with
# the plain product by at least the factor _CLOSER.
_LEAST, _CLOSER = 0.9, 8.0

Reading = tuple[Fault, ProductProblem, Side, Array]


def readings(problem: ProductProblem, side: Side, view: View, differing: Array, wrong: Array) -> Iterator[Reading]:
    """Yield the assumptions ("readings") that are likely: which of the result, x and y are transposed.

    Each item has a fault, and the problem, the result and the mask `differing` after they are transposed accordingly.

    A bias that the user gave is stored as the last column of x and the last row of y. Transposing these matrices would
    move it. With a bias, transposed inputs are therefore not tried.
    """
    (x, y), (m, n), k = problem.sources, problem.shape, problem.terms
    index = np.ix_(problem.rows, problem.columns)
    usable, plain = view.usable[index], view.totals.product[index]
    # A few wrong elements, which may be very large, must not hide the correlation.
    clipped = np.clip(view.values, plain.min(), plain.max())
    values = clipped[index]
    off = 1 - correlation(values, plain, usable)
    turned = clipped.T, view.usable.T
    if m == n and _is_closer(correlation(turned[0][index], plain, turned[1][index]), off):
        fault = Fault("transposed-output", (), (("transposed", "the result"),), wrong)
        other = Side(side.name, _transposed(side.source))
        yield fault, ProductProblem(x, y, (side.format,), problem.has_bias), other, differing.T
    if problem.has_bias:
        return
    for which, is_x, is_y in (("x", True, False), ("y", False, True), ("x and y", True, True)):
        if (is_x and m != k) or (is_y and k != n):
            continue
        left, right = problem.x.T if is_x else problem.x, problem.y.T if is_y else problem.y
        if _is_closer(correlation(values, left[problem.rows] @ right[:, problem.columns], usable), off):
            fault = Fault("transposed-operand", (), (("transposed", which),), wrong)
            sources = _transposed(x) if is_x else x, _transposed(y) if is_y else y
            yield fault, ProductProblem(*sources, (side.format,)), side, differing


def _is_closer(found: float, off: float) -> bool:
    """Return whether the correlation `found` is high, and 1 − `found` is far smaller than `off`.

    `found` is the correlation if a matrix is assumed to be transposed, and `off` is 1 minus the correlation without
    this assumption.

    If there are too few elements, both correlations count as 1, so the result is False.
    """
    return found >= _LEAST and (1 - found) * _CLOSER < off


def _transposed(source: Source) -> Source:
    return Source(np.ascontiguousarray(source.codes.T), source.format, source.dtype)
