"""FP8 inputs with a scale that is not known: the one whose product is nearest to a result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.explain.stages import Model, scaled_models

_LINES = 8  # rows and columns that are tried
_OFF = 0.003, 0.3  # of the root of Σ(x·y)², which rounding to FP8 changes
_NEARER = 0.05  # times the error of the plain product, at most, the right scale leaves


def best_scaled(problem: ProductProblem, side: Side, tick: Callable[[], None]) -> Model | None:
    """Return the model whose scale explains nearly all of the errors of some elements; None if none does."""
    rows, columns = problem.rows[:: max(1, len(problem.rows) // _LINES)], problem.columns[:_LINES]
    x, y, index = problem.x[rows], problem.y[:, columns], np.ix_(rows, columns)
    totals = problem.totals.take(rows, columns)
    usable = side.finite[index] & problem.known[index] & (totals.squares > 0)
    values, size = side.values[index][usable], np.sqrt(totals.squares[usable])
    if not values.size:
        return None
    plain = float(np.median(np.abs(values - totals.product[usable]) / size))
    if not _OFF[0] < plain < _OFF[1]:
        return None
    found = []
    for model in scaled_models():
        tick()
        product = model.make(x, y, problem.x, problem.y)[usable]
        found.append((float(np.median(np.abs(values - product) / size)), model))
    left, model = min(found, key=lambda each: each[0])
    return model if left < _NEARER * plain else None
