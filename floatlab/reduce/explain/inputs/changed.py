"""Faults beside a model of the inputs: the search for faults is repeated with the changed inputs.

With rounded or quantised inputs, moved rows and missing terms are faults of the product of the changed inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.faults.finder import FaultFinder
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.problem import ProductProblem, Side, view_of
from floatlab.reduce.explain.stages import Model
from floatlab.reduce.results.product_error import spread_indices

_LINES, _ELEMENTS = 16, 256  # faults are first looked for in this many rows, and in about this many elements


def fault_beside(
    problem: ProductProblem, side: Side, model: Model, accumulator: Format, tick: Callable[[], None]
) -> Fault | None:
    """Return the fault of a model's product: moved rows or columns, or missing terms; None if there is none."""
    if model.changes is None:
        return None
    changed = _changed(problem, side, model)
    view = view_of(changed, side, accumulator)
    wrong = view.fit().wrong
    finder = FaultFinder(changed, side, tick)
    return finder.moved(view, None, wrong) or finder.terms(view, None, wrong)


def models_with_fault(
    problem: ProductProblem, side: Side, models: list[Model], accumulator: Format, tick: Callable[[], None]
) -> Iterator[tuple[Model, Fault]]:
    """Yield the models that explain a result together with a fault. A part of the elements is examined first."""
    m = min(problem.shape[0], max(_LINES, _ELEMENTS // problem.shape[1]))
    rows, columns = spread_indices(problem.shape[0], m), spread_indices(problem.shape[1], max(_LINES, _ELEMENTS // m))
    codes = np.ascontiguousarray(side.source.codes[np.ix_(rows, columns)])
    part = Side(side.name, Source(codes, side.format, side.source.dtype))
    for model in models:
        tick()
        few = _changed(problem, side, model, rows, columns)
        view = view_of(few, part, accumulator)
        finder = FaultFinder(few, part, tick)
        wrong = view.fit().wrong
        is_whole = part.values.size == side.values.size
        if finder.terms(view, None, wrong) or (is_whole and finder.moved(view, None, wrong)):
            fault = fault_beside(problem, side, model, accumulator, tick)
            if fault is not None:
                yield model, fault


def _changed(
    problem: ProductProblem, side: Side, model: Model, rows: Array | None = None, columns: Array | None = None
) -> ProductProblem:
    """Return the problem with changed inputs: the whole problem, or that of some rows and columns."""
    assert model.changes is not None
    x, y = problem.factors
    left, right = model.changes[0](x, x, 1), model.changes[1](y, y, 0)
    if problem.has_bias:
        left, right = np.hstack([left, problem.x[:, -1:]]), np.vstack([right, problem.y[-1:]])
    if rows is not None and columns is not None:
        left, right = left[rows], right[:, columns]
    formats = (side.format,)
    return ProductProblem(source_of(left), source_of(np.ascontiguousarray(right)), formats, problem.has_bias)
