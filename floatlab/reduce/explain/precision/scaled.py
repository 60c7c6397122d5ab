"""Quantised inputs: the FP8 scale that explains a result, and the effect of inputs close to a tie.

Some programs compute scales in binary32, others in binary64. A number close to a tie can therefore round either way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.problem import Fit, ProductProblem, Side, View, middle
from floatlab.reduce.explain.stages import Model, scaled_models

_LINES = 8  # rows and columns that are tried
_OFF = 0.003, 2.0  # times √Σ(x·y)²: the least error of rounding to FP8; the most if all small numbers become 0
_LEAST = 8  # numbers
_STORED = 2.0**-22
_FLIPPED = 0.3  # at most this share of elements depends on a number close to a tie
_CLEARLY = 2  # for each of these, at least so many that only the model explains
_TIES = 3  # of one element, at most
_SAME = 6.0  # of n elements, medians are the same within so many parts of the root of n
_NEARER = 0.05  # the right scale leaves at most this share of the plain product's error


def best_scaled(problem: ProductProblem, side: Side, tick: Callable[[], None]) -> Model | None:
    """Return the model whose scale explains nearly all of the errors of some elements; None if none does."""
    lines = [(each[0], (side.values != 0).sum(axis=each[1])) for each in ((problem.rows, 1), (problem.columns, 0))]
    rows, columns = (which[np.argsort(-count[which], kind="stable")[:_LINES]] for which, count in lines)
    x, y, index = problem.x[rows], problem.y[:, columns], np.ix_(rows, columns)
    totals = problem.totals.take(rows, columns)
    # Zeros fit any scale that rounds the inputs to 0.
    usable = side.finite[index] & problem.known[index] & (totals.squares > 0) & (side.values[index] != 0)
    values, size = side.values[index][usable], np.sqrt(totals.squares[usable])
    if values.size < _LEAST:
        return None  # one of so many scales fits few numbers by chance
    plain = float(np.median(np.abs(values - totals.product[usable]) / size))
    if not _OFF[0] < plain < _OFF[1]:
        return None
    found = []
    for model in scaled_models():
        tick()
        product = problem.made(model, x, y)[usable]
        found.append((float(np.median(np.abs(values - product) / size)), model))
    left, model = min(found, key=lambda each: each[0])
    return model if left < _NEARER * plain else None


def is_flipped(problem: ProductProblem, model: Model, view: View, product: Array, fit: Fit) -> bool:
    """Return whether a few inputs close to a tie explain the residuals of a model."""
    right = view.fit().wrong & ~fit.wrong  # elements that only the model explains
    if fit.wrong.mean() > _FLIPPED or right.sum() < _CLEARLY * fit.wrong.sum() or model.changes is None:
        return False
    x, y = problem.factors
    # The largest change of a number is half the distance of two quantised numbers.
    steps = [
        2 * np.abs(change(side, side, axis) - side).max(axis=axis, keepdims=True)
        for change, side, axis in zip(model.changes, (x, y), (1, 0), strict=True)
    ]
    one = steps[0] * np.abs(y).max(axis=0, keepdims=True) + steps[1] * np.abs(x).max(axis=1, keepdims=True)
    error = np.abs(view.totals.error(view.values, product))
    return bool((error <= _TIES * one + view.half)[fit.wrong].all())


def is_factor_alone(view: View, fault: Fault) -> bool:
    """Return whether a factor explains a result as well without the model of the inputs that it was found beside."""
    if fault.name != "scale":
        return False
    error, room, sigma = view.errors(None, float(dict(fault.evidence)["factor"]))
    if not (np.abs(error) <= room)[view.usable].all():
        return False
    with np.errstate(all="ignore"):
        return bool(middle(np.abs(error) / sigma) <= fault.left * (1 + _SAME / view.values.size**0.5))


def is_stored_scale(fault: Fault) -> bool:
    """Return whether a factor is near enough to 1 to be what rounding two scales to binary32 makes."""
    return fault.name == "scale" and abs(float(dict(fault.evidence)["factor"]) - 1) <= _STORED
