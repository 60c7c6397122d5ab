"""The rounding errors of sums that include a bias: of sums that start from it, or of inputs with a zero point."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.problem import ProductProblem, View, middle

_MOST = 24.0  # rounding errors are at most this many times their median, if they are divided by their limits
_LINES = 3  # a zero point, which is one number, is recognised in a bias of at least this many numbers


def limit_with_bias(problem: ProductProblem, view: View, off: Array, axis: int, left: Array) -> Array:
    """Return the error limit of each element of a result if a bias was part of its sum.

    `off` has one number per column (axis 0), one per row (axis 1), or one for all elements (axis 2). There are two such
    sums. A sum may start from the bias; each of its steps then rounds a number that includes the bias. Or a zero point
    c may have been added to all numbers of an input. The bias of (x + c) @ y is c times the sum of each column of y.
    This may be a small number, although the terms are as large as those of x + c.

    `left` has the magnitudes of the errors that remain after the bias is subtracted. If most of them are far below this
    limit, the bias was not part of the sums, and the limit is reduced to a multiple of their median.
    """
    totals = view.totals
    with np.errstate(all="ignore"):
        # The partial sums then do not grow from 0 to the product: all of them are about as large as the bias.
        all_large = np.sqrt(3.0) * (np.abs(totals.product) + np.abs(off))
        made = totals.replace(product=all_large, missed=None, size=totals.size + np.abs(off), grain=None)
        limit = view.noise.limit(made)
        for along in (0, 1) if axis == 2 else (axis,):
            part = np.broadcast_to(off, view.values.shape).take([0], along)
            terms = problem.y if along == 0 else problem.x.T
            limit = np.maximum(limit, _limit_with_zero_point(view, part.ravel(), terms, along))
        usual = middle(left / limit)
    return np.asarray(limit * min(1.0, _MOST * usual))


def _limit_with_zero_point(view: View, off: Array, terms: Array, axis: int) -> Array:
    """Return the error limits of sums with a zero point, or 0 if no zero point causes the bias.

    Each column of `terms` has the numbers that are multiplied by the zero point in one column or row of the result.
    """
    sums = terms.sum(axis=0)
    power = float(sums @ sums)
    if len(off) < _LINES or not power:
        return np.zeros((1, 1))
    point = float(off @ sums) / power
    line, totals = ((1, -1) if axis == 0 else (-1, 1)), view.totals
    shift = (point * sums).reshape(line)
    made = totals.replace(
        product=totals.product + shift,
        missed=None,
        size=totals.size + np.abs(point * terms).sum(axis=0).reshape(line),
        squares=2 * (totals.squares + ((point * terms) ** 2).sum(axis=0).reshape(line)),
        grain=None,
    )
    limit = view.noise.limit(made)
    fits = np.abs(shift - off.reshape(line)) <= np.median(limit + view.half, axis=axis, keepdims=True)
    return limit if fits.all() else np.zeros((1, 1))
