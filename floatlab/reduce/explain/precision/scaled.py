"""Quantised inputs: the FP8 scale that explains a result, and the effect of inputs that are close to a tie.

Some programs compute scales in binary32, and others in binary64. A number close to a tie may therefore be rounded up or
down.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.estimates import equal_ratio
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.problem import Fit, ProductProblem, Side, View, middle
from floatlab.reduce.explain.residuals import share_of
from floatlab.reduce.explain.stages import Change, Model, scaled_models

_ALL = slice(None)
_LINES = 8  # scales are tried on this many rows and columns
# Rounding to FP8 causes median errors in this range, in units of √Σ(x·y)². The largest errors occur if all small
# numbers become 0.
_OFF = 0.003, 2.0
_LEAST = 8  # with fewer numbers than this, one of the many scales may fit by chance
_STORED = 2.0**-22  # rounding two scales to binary32 changes a product by at most this relative error
_FLIPPED = 0.3  # a model with residuals from ties is named only if at most this share of elements is wrong
_MOST_FLIPPED = 0.5  # ties are examined only if at most this share of elements is wrong
_CLEARLY = 2  # for each wrong element, such a model must explain this many others
_DRAWS = 16  # inputs are changed by small random amounts this many times
_TIE = 2.0**-20  # an input is close to a tie if a change by this relative amount changes how it is rounded
_NEARER = 0.05  # with the right scale, the median error is less than this share of the plain product's error


def best_scaled(problem: ProductProblem, side: Side, tick: Callable[[], None]) -> Model | None:
    """Return the FP8 model whose scale explains nearly the whole error in a sample; None if no scale does."""
    lines = [(each[0], (side.values != 0).sum(axis=each[1])) for each in ((problem.rows, 1), (problem.columns, 0))]
    rows, columns = (which[np.argsort(-count[which], kind="stable")[:_LINES]] for which, count in lines)
    x, y, index = problem.x[rows], problem.y[:, columns], np.ix_(rows, columns)
    totals = problem.totals.take(rows, columns)
    # A zero fits every scale that rounds the inputs to 0, so zeros are left out.
    usable = side.finite[index] & problem.known[index] & (totals.squares > 0) & (side.values[index] != 0)
    values, size = side.values[index][usable], np.sqrt(totals.squares[usable])
    if values.size < _LEAST:
        return None  # among many scales, one fits a few numbers by chance
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


def explains_enough(view: View, fit: Fit) -> bool:
    """Return whether a model explains enough elements to be named, although ties must explain some of its residuals."""
    right = view.fit().wrong & ~fit.wrong  # elements that only the model explains
    return share_of(fit.wrong) <= _FLIPPED and bool(right.sum() >= _CLEARLY * fit.wrong.sum())


def may_be_flipped(problem: ProductProblem, model: Model, view: View, product: Array, fit: Fit) -> Array:
    """Return the mask of the elements that are wrong perhaps only because inputs are close to a tie.

    The program then rounded these numbers in one direction, and the model rounded them in the other.
    """
    found = _ties_of(problem, model) if share_of(fit.wrong) <= _MOST_FLIPPED else None
    if found is None:
        return np.zeros(fit.wrong.shape, np.bool_)
    (a, size_a), (b, size_b) = found
    with np.errstate(all="ignore"):
        room = view.half + view.noise.limit(view.totals, product)
        most = _moved(a, size_b, fit.wrong, room) + _moved(b.T, size_a.T, fit.wrong.T, room.T).T
        error = np.abs(view.totals.error(view.values, product))
    return np.asarray(fit.wrong & (most > 0) & (error <= room + most))


def room_of_ties(problem: ProductProblem, model: Model, rows: Array, columns: Array) -> Array:
    """Return how much elements of a model's product may change if inputs close to ties are rounded the other way.

    The elements are those at the given rows and columns.
    """
    found = _ties_of(problem, model, rows, columns)
    if found is None:
        return np.zeros((len(rows), len(columns)))
    (a, size_a), (b, size_b) = found
    room: Array = a @ size_b + size_a @ b
    return room


def _ties_of(
    problem: ProductProblem, model: Model, rows: Array | slice = _ALL, columns: Array | slice = _ALL
) -> tuple[tuple[Array, Array], tuple[Array, Array]] | None:
    """Return `_near_ties` of rows of x and of columns of y, or None if the model does not quantise the inputs."""
    if model.name != "inputs-quantized" or model.changes is None:
        return None
    (x, y), (first, second) = problem.factors, model.changes
    return _near_ties(first, x[rows], x, 1), _near_ties(second, y[:, columns], y, 0)


def _near_ties(change: Change, part: Array, whole: Array, axis: int) -> tuple[Array, Array]:
    """Return the steps by which changed numbers of an input may differ from those of a model, and their magnitudes.

    A step is 0 if the number is not close to a tie.
    """
    rng = np.random.default_rng(1)
    low, high = np.full(part.shape, np.inf), np.full(part.shape, -np.inf)
    for _ in range(_DRAWS):
        # If all numbers changed in the same direction, the scale would, too. So the changes are random.
        made = change(part * (1 + rng.uniform(-_TIE, _TIE, part.shape)), whole, axis)
        low, high = np.minimum(low, made), np.maximum(high, made)
    size = np.maximum(np.abs(low), np.abs(high))
    step, slack = high - low, 8 * _TIE * size  # the scales change, too, by about _TIE
    return np.where(step > slack, step + slack, 0.0), size


def _moved(steps: Array, others: Array, wrong: Array, room: Array) -> Array:
    """Return the largest changes of a product if numbers of its first factor are rounded in the other direction.

    `steps` holds the change of each of these numbers, and `others` the magnitudes of the second factor. A number
    changes a whole row of the product. So it counts only if at least half of the elements that it alone would move by
    more than twice `room` are wrong.
    """
    most = np.zeros(wrong.shape)
    for i in np.flatnonzero(wrong.any(axis=1)):
        terms = np.flatnonzero(steps[i])
        change = steps[i, terms, None] * others[terms]
        moved = change > 2 * room[i]  # smaller changes may not show after rounding
        counts = 2 * (moved & wrong[i]).sum(axis=1) >= moved.sum(axis=1)
        most[i] = change[counts].sum(axis=0)
    return most


def is_factor_alone(view: View, fault: Fault) -> bool:
    """Return whether a fault is a factor that also explains the result without a model of the inputs.

    The fault was found together with a model. Without the model, the errors must be about as small as with it.
    """
    if fault.name != "scale":
        return False
    error, room, sigma = view.errors(None, float(dict(fault.evidence)["factor"]))
    if not (np.abs(error) <= room)[view.usable].all():
        return False
    with np.errstate(all="ignore"):
        return bool(middle(np.abs(error) / sigma) <= fault.left * equal_ratio(view.values.size))


def is_stored_scale(fault: Fault) -> bool:
    """Return whether a fault is a factor so close to 1 that rounding two scales to binary32 may have caused it."""
    return fault.name == "scale" and abs(float(dict(fault.evidence)["factor"]) - 1) <= _STORED
