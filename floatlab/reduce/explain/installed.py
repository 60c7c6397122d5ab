"""Test whether the installed NumPy, or a library whose orders are known, gives a result bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from floatlab.arrays.conversion import decode, quantize
from floatlab.arrays.sources import Source, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.formats import parse_format
from floatlab.reduce.explain.grid import NUMPY, Replaying
from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.explain.residuals import share_of
from floatlab.reduce.explain.ways import Way
from floatlab.reduce.reveal.order_map import order_map
from floatlab.reduce.reveal.order_map_record import OrderMap, compute
from floatlab.reduce.reveal.sized_target import values_of

_SINGLE = parse_format("fp32")
_WORK = 1 << 22  # products with more multiply-adds are not probed, because that would take seconds
_TERMS = 1 << 10  # products with more terms per element are not probed either
_CLASSES = 8  # products whose elements are added in more different orders than this are not examined
_TARGET = "numpy.matmul"
_UNMAPPED = 0.1  # a map of orders is compared if at most this share of its elements has no order


def installed_ways(problem: ProductProblem, side: Side) -> list[Way]:
    """Return a list with one `Way` if each element has the bits that some order of the installed numpy.matmul gives.

    Otherwise return an empty list. Only products of finite binary32 or binary64 numbers are examined, and no large
    ones. numpy.matmul uses different orders in different parts of a product. Every order is tried at every element. The
    reason is that the result may be a part of a larger product, in which the orders occur at other positions.
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
            texts.append(f"{each.text} ({100 * share_of(given):.3g} %)")
            left &= ~given
    return [] if left.any() else [Way(f"orders of {_TARGET} of this machine: {'; '.join(texts)}")]


@lru_cache(maxsize=8)
def _map_of(shape: tuple[int, int, int], dtype: str) -> OrderMap | None:
    try:
        return order_map(_TARGET, shape, dtype)
    except FloatlabError:
        return None


def numpy_product(x: Source, y: Source) -> Array | None:
    """Return NumPy's product on this machine if both factors are binary32, or both are binary64; else None."""
    kind = native_dtype(x.format)
    if x.format != y.format or kind is None or kind.itemsize == 2:
        return None
    with np.errstate(all="ignore"):
        made: Array = np.ascontiguousarray(x.codes).view(kind) @ np.ascontiguousarray(y.codes).view(kind)
    return made


def library_ways(problem: ProductProblem, side: Side, maps: Sequence[Replaying]) -> list[Way]:
    """Return a `Way` for each library that reproduces a result: NumPy on this machine, and the libraries of `maps`.

    Elements for which a map has no order are not compared. A map without an order for more than a tenth of the elements
    is ignored.
    """
    found = []
    x, y = problem.sources
    if side.format == x.format and (product := numpy_product(x, y)) is not None:
        if np.array_equal(product, side.values, equal_nan=True):
            found.append(Way(NUMPY))
    elif x.format == y.format and x.format.precision < _SINGLE.precision and side.format in (x.format, _SINGLE):
        with np.errstate(all="ignore"):
            made = (problem.x.astype(np.float32) @ problem.y.astype(np.float32)).astype(np.float64)
        if np.array_equal(np.asarray(quantize(made, side.format), np.float64), side.values):
            found.append(Way(f"{NUMPY}, in binary32"))
    for each in maps:
        try:
            replayed = source_of(np.asarray(each.replay(*(values_of(source) for source in problem.sources))))
        except FloatlabError:
            continue  # the map is for another shape or format
        if replayed.format != side.format or replayed.codes.size != side.values.size:
            continue
        values = np.asarray(decode(replayed.codes, replayed.format), np.float64).reshape(side.values.shape)
        unknown = np.isnan(values)  # the map has no order for these elements
        if share_of(unknown) <= _UNMAPPED and ((values == side.values) | unknown).all():
            found.append(Way(f"the orders of {getattr(each, 'target', 'a map')}"))
    return found
