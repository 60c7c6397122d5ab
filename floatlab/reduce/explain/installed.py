"""Candidate computations that add each element in an order of the installed NumPy, found for the product's shape."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.sources import native_dtype
from floatlab.errors import FloatlabError
from floatlab.reduce.explain.grid import Way
from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.reveal.mapping import order_map
from floatlab.reduce.reveal.order_map import OrderMap, compute

_WORK = 1 << 22  # multiply-adds of products whose orders are probed: some tenths of a second
_TERMS = 1 << 10  # longer sums are not probed: finding their order takes seconds
_CLASSES = 8
_TARGET = "numpy.matmul"


def installed_ways(problem: ProductProblem, side: Side) -> list[Way]:
    """Return the orders of the installed numpy.matmul if each element of a result is added along one of them.

    Libraries take other tiles for other numbers of rows and columns, so that an element may be of another class than in
    the whole product.
    """
    (x, y), (rows, columns) = problem.sources, problem.shape
    kind = native_dtype(side.format)
    same = x.format == y.format == side.format and kind is not None and kind.itemsize > 2
    large = problem.terms > _TERMS or rows * columns * problem.terms > _WORK
    if not same or kind is None or large or problem.special is not None:
        return []
    found = _map_of((rows, problem.terms, columns), kind.name)
    if found is None or len(found.classes) > _CLASSES:
        return []
    left, texts = np.ones(problem.shape, bool), []
    for each in found.classes:
        if each.candidate is None or not left.any():
            continue
        codes = np.empty_like(side.source.codes)
        compute(each.candidate, problem.sources, np.ones(problem.shape, bool), side.format, codes)
        given = left & (codes == side.source.codes)
        if given.any():
            texts.append(f"{each.text} ({100 * float(given.mean()):.3g} %)")
            left &= ~given
    return [] if left.any() else [Way(f"orders of {_TARGET} of this machine: {'; '.join(texts)}")]


@lru_cache(maxsize=8)
def _map_of(shape: tuple[int, int, int], dtype: str) -> OrderMap | None:
    try:
        return order_map(_TARGET, shape, dtype)
    except FloatlabError:
        return None
