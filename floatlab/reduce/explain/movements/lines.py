"""Recognise moved rows and columns in a result, and find the row or column of the product to which each belongs.

This also works if both rows and columns were moved, and if some elements are also wrong. A permutation of the columns
does not change the sorted numbers of a row. So rows are recognised by their sorted numbers. Once the order of the rows
is known, columns are compared number by number.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.estimates import PROVED, shift_bits
from floatlab.reduce.explain.faults.moved import may_hold_rows
from floatlab.reduce.explain.faults.patterns import BITS_EACH
from floatlab.reduce.explain.findings import Fault, placed
from floatlab.reduce.explain.problem import View
from floatlab.reduce.explain.residuals import moved_rows
from floatlab.reduce.results.product_error import spread_indices

_MOST = 1 << 24  # lines are matched in results with at most this many pairs of rows, and of columns
_VOTERS = 256  # at most this many columns vote on the place of each row
_FEW, _SHARE = 8, 0.02  # besides moved lines, at most _FEW elements, or this share of them, may be wrong
_TURNS = 2  # rows and columns are matched this many times, because a match of one improves the match of the other


def moved_lines(view: View, independent: int, wrong: Array) -> tuple[Fault, ...]:
    """Return moved rows, moved columns or both as faults, or an empty tuple if these do not explain the result.

    If a few other elements are wrong, too, the last fault lists them.

    `independent` is the number of independent errors that changes of one input may cause
    (`ProductProblem.independent`).
    """
    (m, n), exact = wrong.shape, view.totals.product
    if not view.usable.all() or not np.isfinite(exact).all() or max(m, n) ** 2 > _MOST or min(m, n) < 2:
        return ()
    error = np.abs(view.totals.error(view.values))
    found: list[tuple[float, Array, Array, Array]] = []
    for rows, columns in _places(view.values, exact, view.errors()[1]):
        left = view.against(view.totals.take(rows, columns)).fit().wrong
        moved = [np.count_nonzero(to != np.arange(len(to))) for to in (rows, columns)]
        if not any(moved) or left.sum() > max(_FEW, _SHARE * left.size):
            continue
        cost = moved[0] * log2(m) + moved[1] * log2(n) + int(left.sum()) * (BITS_EACH + log2(left.size))
        if shift_bits(independent, error, view.errors()[1], wrong & ~left) > PROVED + cost:
            found.append((cost, rows, columns, left))
    if not found:
        return ()
    _, rows, columns, left = min(found, key=lambda each: each[0])
    sources = zip(("rows-moved", "columns-moved"), (rows, columns), strict=True)
    faults = [_fault(name, to, wrong) for name, to in sources if (to != np.arange(len(to))).any()]
    return (*faults, placed(view, left)) if left.any() else tuple(faults)


def _fault(name: str, to: Array, wrong: Array) -> Fault:
    """Return a fault: row (or column) i of the result holds row (or column) `to[i]` of the product."""
    kind = "permuted" if np.unique(to).size == to.size else "copied"
    pairs = tuple((int(i), int(to[i])) for i in np.flatnonzero(to != np.arange(len(to))))
    return Fault(name, pairs, (("kind", kind),), wrong)


def _places(values: Array, exact: Array, limits: Array) -> Iterator[tuple[Array, Array]]:
    """Yield up to three assumptions: only the rows of a result were moved, only its columns, or both.

    Each item has two arrays: for each row of the result, the index of the product's row, and the same for columns.
    An assumption is left out if too few numbers would be right up to the largest of the error limits.
    """
    rows, columns = (np.arange(count) for count in values.shape)
    if may_hold_rows(values, exact, limits):
        yield matched(values, exact), columns
    if may_hold_rows(values.T, exact.T, limits):
        yield rows, matched(values.T, exact.T)
    rows = matched(np.sort(values), np.sort(exact))
    if not may_hold_rows(values.T, exact[rows].T, limits):
        return
    for _ in range(_TURNS):
        columns = matched(values.T, exact[rows].T)
        rows = matched(values, exact[:, columns])
    yield rows, columns


def matched(values: Array, product: Array) -> Array:
    """Return, for each row of a result, the index of the most similar row of the product.

    Some elements of a row of the result may be wrong. For each row of the result, two rows of the product are compared:
    the nearest row, and the row that is nearest in the largest number of columns (see `_elected`). Of these two, the
    row with the smaller median error is chosen.

    >>> product = np.array([[1.0, 8.0, 5.0], [4.0, 2.0, 9.0]])
    >>> matched(np.array([[4.0, 2.0, -99.0], [1.0, 8.0, 5.0]]), product).tolist()
    [1, 0]
    """
    nearest = moved_rows(values, product, np.ones(len(values), np.bool_))
    nearest = np.arange(len(values)) if nearest is None else nearest
    elected = _elected(values, product)
    scale = np.sqrt(np.mean(product * product, axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    errors = [np.median(np.abs(values - product[to]) / scale, axis=1) for to in (nearest, elected)]
    better: Array = np.where(errors[1] < errors[0], elected, nearest)
    return better


def _elected(values: Array, product: Array) -> Array:
    """Return, for each row of a result, the index of the product's row that gets the most votes.

    Up to 256 columns vote. A column votes for the row of the product whose number in this column is nearest to the
    number of the result's row.
    """
    votes = np.zeros((len(values), len(product)), np.int32)
    every = np.arange(len(values))
    for k in spread_indices(values.shape[1], _VOTERS):
        order = np.argsort(product[:, k])
        numbers = product[order, k]
        at = np.searchsorted(numbers, values[:, k]).clip(1, len(numbers) - 1)
        at -= values[:, k] - numbers[at - 1] < numbers[at] - values[:, k]
        votes[every, order[at]] += 1
    return np.asarray(votes.argmax(axis=1))
