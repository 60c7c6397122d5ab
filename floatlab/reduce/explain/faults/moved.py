"""Decide whether rows or columns of a result were certainly moved, or agree with the product only by chance.

Moved rows are also recognised if their numbers are only similar to those of the product.
"""

from __future__ import annotations

from math import log2

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.estimates import PROVED, shift_bits
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.problem import ProductProblem, View
from floatlab.reduce.explain.residuals import SIMILAR, have_few_digits, row_distances, share_of
from floatlab.reduce.results.product_error import spread_indices

_LONG = 8  # rows are compared only if they have at least this many numbers; fewer may be similar by chance
_LINES = 64  # about this many rows are examined first
_DIFFERENT = 0.2  # rows count as different if their distance (see `row_distances`) is above this share
# If rows were moved, more than the share _FOUND of about _NUMBERS numbers is found in the same columns of the product.
_FOUND, _NUMBERS = 0.25, 256
_BITS = 20.0  # a number shows where it belongs if it is at least 2**20 times as large as its error limit


def may_hold_rows(values: Array, product: Array, limits: Array) -> bool:
    """Return whether the numbers of a result occur in the same columns of the product, up to the largest of the limits.

    If not, the rows of the result are no moved rows of the product. Zeros are not looked up.

    >>> product, limits = np.arange(12.0).reshape(4, 3), np.full((4, 3), 0.1)
    >>> may_hold_rows(product[[2, 0, 3, 1]], product, limits), may_hold_rows(product + 0.5, product, limits)
    (True, False)
    """
    room = np.nan_to_num(limits, nan=np.inf).max(initial=0.0)
    at = np.flatnonzero(values)
    rows, columns = np.divmod(at[spread_indices(len(at), _NUMBERS)], values.shape[1])
    with np.errstate(all="ignore"):
        found = (np.abs(values[rows, columns] - product[:, columns]) <= room).any(axis=0)
    return not at.size or share_of(found) > _FOUND


def show_sources(problem: ProductProblem, moved: Array, limits: Array) -> bool:
    """Return whether moved rows or columns hold enough precise numbers to show where each of them belongs.

    `moved` holds the numbers of these rows or columns, and `limits` their error limits. Equal numbers count as one. If
    an input has only numbers of few digits, return False, because such numbers may agree by chance.
    """
    if have_few_digits(problem.x) or have_few_digits(problem.y):
        return False
    precise = (np.abs(moved) >= 2.0**_BITS * limits) & (moved != 0)
    return len(np.unique(np.abs(moved[precise]))) * _BITS >= PROVED


def are_surely_moved(problem: ProductProblem, view: View, moved: Fault, wrong: Array) -> bool:
    """Return whether it is unlikely that moved rows or columns agree with the product by chance.

    The source of each moved row was chosen from all rows. Each moved row therefore needs separate evidence, unless all
    moved rows are shifted by the same distance, or are in reverse order. A moved row must also agree with only one row
    of the product. The same applies to columns.
    """
    error, room, _ = view.errors()
    axis = int(moved.name == "columns-moved")
    count = wrong.shape[axis]
    here, source = np.array(moved.where, np.int64).T
    is_regular = np.ptp((source - here) % count) == 0 or np.ptp(source + here) == 0
    choices = 1 if is_regular else len(here)
    if shift_bits(problem.independent, error, room, wrong) <= PROVED + choices * log2(count):
        return False
    goal = view.totals.product
    limit, half = view.noise.limit(view.totals), np.broadcast_to(view.half, goal.shape)
    for to, _ in moved.where:
        mine, known, ulp = (each.take([to], axis) for each in (view.values, view.usable, half))
        fits = (np.abs(mine - goal) <= limit + ulp) | ~known
        if np.count_nonzero(fits.all(axis=1 - axis)) != 1:
            return False
    return True


def similar_lines(view: View, wrong: Array) -> Fault | None:
    """Return the fault if each row is similar to one row of the product, and to no other row, but some were moved.

    The errors of the numbers may be as large as those of inputs that were quantised to 4 bits. The same is tried for
    columns. Return None if neither rows nor columns were moved.
    """
    for name, turned in (("rows-moved", False), ("columns-moved", True)):
        values, product = (each.T if turned else each for each in (view.values, view.totals.product))
        if values.shape[1] < _LONG or not view.usable.all():
            continue
        size = np.sqrt(np.mean(product * product, axis=0))
        a, b = (each / np.where(size > 0, size, 1.0) for each in (values, product))
        to = _sources(a[:: max(1, len(a) // _LINES)], b)
        if to is None or (to := _sources(a, b)) is None:
            continue
        at = np.flatnonzero(to != np.arange(len(to)))
        if at.size:
            kind = "copied" if len(set(to.tolist())) < len(to) else "permuted"
            known = ("kind", kind), ("others", "off by more than rounding, too")
            return Fault(name, tuple((int(i), int(to[i])) for i in at), known, wrong)
    return None


def _sources(a: Array, b: Array) -> Array | None:
    """Return, for each row of a, the index of the only row of b to which it is similar; None if any row has none."""
    apart = row_distances(a, b)
    to = apart.argmin(axis=1)
    near = apart <= _DIFFERENT
    return to if (apart.min(axis=1) <= SIMILAR).all() and (near.sum(axis=1) == 1).all() else None
