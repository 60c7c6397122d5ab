"""Search for moved rows and missing terms in a result that was computed from rounded or quantised inputs.

The result is compared with the product of the changed inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.faults.finder import FaultFinder
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.precision.scaled import room_of_ties
from floatlab.reduce.explain.problem import ProductProblem, Side, view_of
from floatlab.reduce.explain.residuals import SIMILAR, row_distances, share_of
from floatlab.reduce.explain.stages import Model
from floatlab.reduce.results.product_error import spread_indices

_LINES, _ELEMENTS = 16, 256  # faults are first looked for in this many rows, and in about this many elements

_MOVED = 0.2  # if fewer rows are moved, most elements show the model of the inputs


def fault_beside(
    problem: ProductProblem, side: Side, model: Model, accumulator: Format, tick: Callable[[], None]
) -> Fault | None:
    """Return the fault that remains in a result besides a model: moved rows or columns, or missing terms.

    Return None if there is no such fault. Inputs close to a tie may have been rounded in the other direction. Elements
    that depend on such inputs may be off by as much as this changes them. More than half of the elements must not
    depend on any.
    """
    if model.changes is None:
        return None
    changed = _problem(problem, side, _changed(problem, model))
    view, finder = view_of(changed, side, accumulator), FaultFinder(changed, side, tick)
    wrong = view.fit().wrong
    if fault := finder.moved(view, None, wrong) or finder.terms(view, None, wrong):
        return fault
    room, usable = room_of_ties(problem, model, *map(np.arange, problem.shape)), view.usable
    if not room.any() or 2 * (usable & (room == 0)).sum() <= usable.sum():
        return None
    view.usable = usable & (room == 0)
    fault = finder.terms(view, None, view.fit().wrong)
    if fault is None or (made := fault.product) is None:
        return None
    with np.errstate(all="ignore"):
        left = np.abs(view.totals.error(view.values, made)) - view.noise.limit(view.totals, made) - view.half
    return fault.replace(wrong=wrong) if (left <= room)[usable].all() else None


def models_with_fault(
    problem: ProductProblem, side: Side, models: list[Model], accumulator: Format, tick: Callable[[], None]
) -> Iterator[tuple[Model, Fault]]:
    """Yield the models that explain a result together with a fault. A part of the elements is examined first.

    If a model changes only one input, this part is searched only for missing or doubled terms.
    """
    (m, n), lines = problem.shape, [np.arange(size) for size in problem.shape]
    count = min(m, max(_LINES, _ELEMENTS // n))
    rows, columns = spread_indices(m, count), spread_indices(n, max(_LINES, _ELEMENTS // count))
    values, product = np.where(side.finite, side.values, 0.0), problem.totals.product
    parts = [(rows, columns)]
    # If sampled rows resemble other rows of the plain product, look for moved rows in the sampled columns. Do the same
    # with rows and columns exchanged.
    if _may_be_moved(values[np.ix_(rows, columns)], product[:, columns], rows):
        parts.append((lines[0], columns))
    if _may_be_moved(values[np.ix_(rows, columns)].T, product[rows].T, columns):
        parts.append((rows, lines[1]))
    for model in models:
        tick()
        x, y = _changed(problem, model)
        for i, part in enumerate(parts if model.changes_both else parts[:1]):
            codes = np.ascontiguousarray(side.source.codes[np.ix_(*part)])
            some = Side(side.name, Source(codes, side.format, side.source.dtype))
            few = _problem(problem, side, (x[part[0]], y[:, part[1]]))
            view, finder = view_of(few, some, accumulator), FaultFinder(few, some, tick)
            found = (finder.moved if i else finder.terms)(view, None, view.fit().wrong)
            if found is None and i == 0 and (room := room_of_ties(problem, model, *part)).any():
                view.usable = view.usable & (room == 0)
                found = finder.terms(view, None, view.fit().wrong)
            if found is None:
                continue
            fault = fault_beside(problem, side, model, accumulator, tick)
            if fault is not None:
                yield model, fault
                break


def _may_be_moved(values: Array, product: Array, places: Array) -> bool:
    """Return whether the rows at `places` of a result may be moved rows of the product.

    For each of these rows, the nearest row of the product is found. At least half of the rows must be similar to their
    nearest row. For more than 20 % of the rows, the nearest row must be at another position.
    """
    apart = row_distances(values, product)
    moved = share_of(apart.argmin(axis=1) != places) > _MOVED
    return moved and bool(np.median(apart.min(axis=1)) < SIMILAR)


def _changed(problem: ProductProblem, model: Model) -> tuple[Array, Array]:
    """Return both inputs as a model changes them."""
    assert model.changes is not None
    x, y = problem.factors
    left, right = model.changes[0](x, x, 1), model.changes[1](y, y, 0)
    if problem.has_bias:
        return np.hstack([left, problem.x[:, -1:]]), np.vstack([right, problem.y[-1:]])
    return left, right


def _problem(problem: ProductProblem, side: Side, factors: tuple[Array, Array]) -> ProductProblem:
    x, y = (source_of(np.ascontiguousarray(each)) for each in factors)
    return ProductProblem(x, y, (side.format,), problem.has_bias)
