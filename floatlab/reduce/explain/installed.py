"""Test whether the orders of addition of the installed numpy.matmul give a result bit for bit."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.sources import native_dtype
from floatlab.errors import FloatlabError
from floatlab.reduce.explain.grid import Way
from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.reveal.order_map import order_map
from floatlab.reduce.reveal.order_map_record import OrderMap, compute

_WORK = 1 << 22  # products with more multiply-adds are not probed, because that would take seconds
_TERMS = 1 << 10  # products with more terms per element are not probed either
_CLASSES = 8  # products whose elements are added in more orders than this are not examined
_TARGET = "numpy.matmul"


def installed_ways(problem: ProductProblem, side: Side) -> list[Way]:
    """Return one candidate computation if orders of the installed numpy.matmul give every element; else an empty list.

    numpy.matmul uses different orders in different parts of a product. Every order is tried at every element, because
    the result may have been computed as a part of a larger product, in which the orders occur at other positions.
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
