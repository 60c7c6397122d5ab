"""Find faults in the residuals: wrong elements and regions, a bias, a factor, moved rows, missing terms.

The residual of a result is its difference from the exact product. Functions that search for a fault return its
positions, its bias or its factor. They return None or an empty list if there is no such fault. The caller checks
whether the fault leaves only rounding errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record
from floatlab.reduce.explain.estimates import weighted_median
from floatlab.reduce.results.diagnosis_record import Place
from floatlab.reduce.results.product_error import spread_indices

SIMILAR = 0.02  # rows are similar if their distance (see `row_distances`) is at most this share
_MOST_TERMS = 2048  # the least-squares problem has at most this many unknowns, one per term
_PAIRS = 1 << 20  # at most this many ranges of terms are examined
_RANGES = 8  # at most this many ranges are returned
_WITNESSES = 24  # a range of terms is tested at up to this many elements
_CERTAIN = 0.2  # a fitted count of a term may differ from an integer by less than this
_FILLED = 0.6  # a rectangle is reported if more than this share of its elements is wrong
EXACT = 0.999  # the same share for callers that require nearly all elements of a rectangle to be wrong
_FEW = 8  # up to this many wrong elements that form no rectangles are reported one by one
_SHARE = 0.02  # more than _FEW are reported one by one if they are at most this share of all elements
# Wrong elements are divided into at most _BOXES rectangles, or _LINES if all rectangles lie in one band of rows or of
# columns.
_BOXES, _LINES = 16, 256
LISTED = 1 << 12  # at most this many elements are listed
_FLAT = 1e-6  # numbers count as equal up to this relative difference
_LEAST = 3  # rectangles are reported only if more than this many elements are wrong
# `follows_everywhere` examines the parts of a result in which the sum of (shift/sigma)² exceeds _CLEAR. In at least the
# share _MOST_PARTS of them, the median of error/shift must exceed _FOLLOWED.
_CLEAR = 9.0
_FOLLOWED, _MOST_PARTS = 0.25, 0.75


class Places(Record):
    """The positions of `count` wrong elements.

    If `name` is "region", `where` holds rectangles as half-open ranges of rows and columns. If `name` is "elements",
    `where` holds the indices of at most 4,096 elements.
    """

    name: str
    where: tuple[tuple[tuple[int, int], ...] | tuple[int, ...], ...]
    count: int


def find_places(wrong: Array, filled: float = _FILLED) -> Places | None:
    """Return the positions of the wrong elements in a mask.

    Return None if no element is wrong, or if many scattered elements are wrong.

    A region is returned as rectangles. In each rectangle, more than the share `filled` of the elements is wrong. A few
    wrong elements that form no region are returned as single indices.

    >>> wrong = np.zeros((9, 9), bool)
    >>> wrong[2:4, 3:6] = True
    >>> find_places(wrong)
    Places(name='region', where=(((2, 4), (3, 6)),), count=6)
    """
    count = int(wrong.sum())
    if not count:
        return None
    if count > _LEAST:
        if (boxes := _tail(wrong, count)) is not None:
            return Places("region", boxes, count)
        box = _bounds(wrong)
        if _is_filled(wrong, box, count, filled):
            return Places("region", (box,), count)
        if (boxes := _boxes(wrong, count, filled)) is not None:
            return Places("region", boxes, count)
    if count <= max(_FEW, _SHARE * wrong.size) or (count <= _LEAST and count * 2 <= wrong.size):
        return Places("elements", indices_of(wrong), count)
    return None


def share_of(elements: Array) -> float:
    """Return the share of the elements of a mask that are true, or 0 if the mask has no elements."""
    return float(elements.mean()) if elements.size else 0.0


def indices_of(mask: Array) -> tuple[tuple[int, ...], ...]:
    """Return the indices of the elements in a mask, at most 4,096 of them.

    >>> indices_of(np.array([[False, True], [True, False]]))
    ((0, 1), (1, 0))
    """
    return tuple(tuple(index) for index in np.argwhere(mask)[:LISTED].tolist())


def mask_of(where: Sequence[Place], shape: tuple[int, ...]) -> Array:
    """Return the mask of the elements at the positions `where`: indices or rectangles, as `find_places` gives them.

    >>> mask_of((((0, 2), (1, 2)),), (2, 2)).tolist(), mask_of(((1, 0),), (2, 2)).tolist()
    ([[False, True], [False, True]], [[False, False], [True, False]])
    """
    mask = np.zeros(shape, bool)
    for place in where:
        mask[tuple(slice(*each) if isinstance(each, tuple) else each for each in place)] = True
    return mask


def _bounds(wrong: Array) -> tuple[tuple[int, int], tuple[int, int]]:
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    return (int(rows[0]), int(rows[-1]) + 1), (int(columns[0]), int(columns[-1]) + 1)


def _is_filled(wrong: Array, box: tuple[tuple[int, int], ...], count: int, filled: float) -> bool:
    (top, bottom), (left, right) = box
    return count > filled * (bottom - top) * (right - left)


def runs_of(marks: Array) -> list[tuple[int, int]]:
    """Return the runs of true elements of a one-dimensional mask, as half-open ranges of indices.

    >>> runs_of(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]


def _boxes(wrong: Array, count: int, filled: float) -> tuple[tuple[tuple[int, int], ...], ...] | None:
    """Return rectangles that contain all wrong elements, as half-open ranges of rows and of columns.

    The rows that contain wrong elements are divided into runs of adjacent rows, and the columns likewise. Each
    rectangle belongs to one run of rows and one run of columns. Return None if too few elements of a rectangle are
    wrong, if there may be too many rectangles, or if they contain fewer than four wrong elements on average.
    """
    rows, columns = (runs_of(np.asarray(wrong.any(axis=axis))) for axis in (1, 0))
    if len(rows) * len(columns) > (_LINES if min(len(rows), len(columns)) == 1 else _BOXES):
        return None
    found = []
    for top, bottom in rows:
        for left, right in columns:
            part = wrong[top:bottom, left:right]
            if part.any():
                (a, b), (c, d) = _bounds(part)
                box = (top + a, top + b), (left + c, left + d)
                if not _is_filled(wrong, box, int(part.sum()), filled):
                    return None
                found.append(box)
    return tuple(found) if count >= 4 * len(found) else None


def _tail(wrong: Array, count: int) -> tuple[tuple[tuple[int, int], ...], ...] | None:
    """Return two rectangles if the wrong elements are the last `count` elements of the matrix; else None.

    The elements are taken in C order. The first wrong element must not be the first element of its row, and this row
    must not be the last one. The first rectangle is the wrong part of this row, and the second has all later rows. An
    interrupted copy leaves such elements.
    """
    (m, n), (row, column) = wrong.shape, divmod(wrong.size - count, wrong.shape[1])
    if not column or row == m - 1 or not wrong.ravel()[-count:].all():
        return None
    return ((row, row + 1), (column, n)), ((row + 1, m), (0, n))


def is_flat(product: Array) -> bool:
    """Return whether all elements are nearly the same number, as in a product of constant inputs."""
    flat: Array = np.abs(product - product.flat[0]) <= _FLAT * np.abs(product.flat[0])
    return bool(flat.all())


def has_few_bits(number: float) -> bool:
    """Return whether a number has at most 11 significant bits, as numbers of binary16 and bfloat16 have."""
    scaled = np.frexp(number)[0] * 2.0**11
    return bool(scaled == np.rint(scaled))


def last_places(values: Array) -> Array:
    """Return the weight of the last nonzero bit of each finite number except 0."""
    fraction, exponent = np.frexp(values[np.isfinite(values) & (values != 0)])
    digits = np.ldexp(fraction, 53).astype(np.int64)
    weights: Array = np.ldexp((digits & -digits).astype(np.float64), exponent - 53)
    return weights


def have_few_digits(x: Array) -> bool:
    """Return whether all numbers are multiples k·s of one power of two s, with integers k from −256 to 256."""
    step = float(last_places(x).min(initial=np.inf))
    return bool(np.abs(x).max(initial=0.0) <= 256 * step)


def row_distances(a: Array, b: Array) -> Array:
    """Return ‖a − b‖² / (‖a‖² + ‖b‖²) for each row of a (first axis) and each row of b; 0 if both rows are zero.

    >>> row_distances(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    with np.errstate(all="ignore"):
        sizes = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)
        apart: Array = (sizes - 2 * a @ b.T) / np.where(sizes > 0, sizes, 1.0)
    return apart


def moved_rows(values: Array, product: Array, wrong: Array) -> Array | None:
    """Return, for each row of a result, the index of the product's row that was moved to this position.

    Return None if no row was moved.

    `wrong` is the mask of the rows that differ from the row of the product at the same position. Each of these rows is
    assigned the most similar row of the product.
    """
    with np.errstate(all="ignore"):
        weight = np.sqrt(np.mean(product * product, axis=0))
        weight = np.where(weight > 0, weight, 1.0)
        apart = row_distances(values[wrong] / weight, product / weight)
    to = np.arange(len(values))
    nearest = np.where(np.isnan(apart), np.inf, apart).argmin(axis=1)
    to[wrong] = nearest
    return to if (to != np.arange(len(to))).any() else None


def is_moved_exactly(pairs: Sequence[Sequence[object]], axis: int, made: Array, values: Array) -> bool:
    """Return whether each moved row (axis 0) or column (axis 1) of a result equals its source in the array `made`.

    `pairs` holds, for each moved row or column, its index in the result and the index of its source in `made`.
    """
    to, source = np.array(pairs, np.int64).T
    return np.array_equal(np.take(values, to, axis), np.take(made, source, axis))


def term_ranges(x: Array, y: Array, error: Array, limit: Array) -> list[tuple[int, int, int]]:
    """Return at most eight ranges of terms that may have been omitted or counted twice, as (first, stop, times).

    The number `times` is −1 for omitted terms, and 1 for terms that were counted twice. The error of each element is
    then plus or minus the sum of the terms in the range. This sum is the difference of two prefix sums. Up to 24 of the
    larger errors are picked, and the shortest ranges that explain all of these are returned. The list is empty if no
    range explains them, if there are too many ranges to try, or if all errors are within their limits.
    """
    m, columns = error.shape
    with np.errstate(all="ignore"):
        clarity = np.where(np.isfinite(error), np.abs(error) / np.maximum(limit, 1e-300), 0).ravel()
    at = np.argsort(clarity)[::-1][: max(1, m * columns // 2)]
    at = at[spread_indices(len(at), _WITNESSES)]
    if clarity[at[0]] <= 1:
        return []
    rows, places = np.divmod(at, columns)
    terms = x[rows].T * y[:, places]
    sums = np.concatenate([np.zeros((1, len(at))), np.cumsum(terms, axis=0)])
    r, most = error.ravel()[at], 2 * limit.ravel()[at] + 1e-13 * np.abs(terms).sum(axis=0)
    for times in (-1, 1):
        goal = sums[:, 0] + times * r[0]  # if the range begins at term k, it ends where the prefix sum is goal[k]
        order = np.argsort(sums[:, 0])
        low, high = (np.searchsorted(sums[order, 0], goal + s * most[0]) for s in (-1, 1))
        count = high - low
        if count.sum() > _PAIRS:
            continue
        first = np.repeat(np.arange(len(goal)), count)
        stop = order[np.concatenate([np.arange(a, b) for a, b in zip(low, high, strict=True)] or [first]).astype(int)]
        first, stop = first[stop > first], stop[stop > first]
        for i in range(1, len(at)):
            fits = np.abs(sums[stop, i] - sums[first, i] - times * r[i]) <= most[i]
            first, stop = first[fits], stop[fits]
        if len(first):
            shortest = np.argsort(stop - first, kind="stable")[:_RANGES]
            return [(int(first[i]), int(stop[i]), times) for i in shortest]
    return []


def term_counts(x: Array, y: Array, error: Array) -> Array | None:
    """Return the excess count of each term: −1 if it was omitted, 0 if it was counted once, 1 if it was counted twice.

    The counts are found by least squares. Return None if some counts are not close to integers, if all counts are 0, if
    there are too few elements for the number of terms, or if an error is not finite.
    """
    n = x.shape[1]
    if n > _MOST_TERMS or 2 * n > error.size or not np.isfinite(error).all():
        return None
    left, right = (np.sqrt(np.mean(side * side, axis=axis, keepdims=True)) for side, axis in ((x, 1), (y, 0)))
    left, right = np.where(left > 0, left, 1.0), np.where(right > 0, right, 1.0)
    a, b, r = x / left, y / right, error / left / right
    gram = (a.T @ a) * (b @ b.T)
    try:
        found = np.linalg.solve(gram + 1e-12 * np.trace(gram) / n * np.eye(n), ((a.T @ r) * b).sum(axis=1))
    except np.linalg.LinAlgError:
        return None
    whole = np.rint(found)
    return whole if whole.any() and np.abs(found - whole).max() < _CERTAIN else None


def lines_without(bad: Array) -> tuple[Array, ...]:
    """Return an index, made by `np.ix_`, of the rows and columns that remain when no element in a mask is left.

    Again and again, the row or column with the largest share of such elements is left out.

    >>> bad = np.zeros((3, 4), bool)
    >>> bad[2, 1] = bad[0, 1] = True
    >>> [each.ravel().tolist() for each in lines_without(bad)]
    [[0, 1, 2], [0, 2, 3]]
    """
    rows, columns = (np.ones(count, bool) for count in bad.shape)
    by_row, by_column = bad.sum(axis=1), bad.sum(axis=0)
    while by_row.any():
        if by_row.max() * rows.sum() > by_column.max() * columns.sum():
            at = by_row.argmax()
            rows[at], by_row[at] = False, 0
            by_column -= bad[at] & columns
        else:
            at = by_column.argmax()
            columns[at], by_column[at] = False, 0
            by_row -= bad[:, at] & rows
    return np.ix_(rows, columns)


def correlation(values: Array, product: Array, usable: Array) -> float:
    """Return the correlation of a result with the product, after the means of rows and columns are subtracted.

    Rows or columns that contain elements that are not usable are left out. Return 1 if too few elements remain, or if
    the correlation is not defined.
    """
    index = lines_without(~usable)
    values, product = values[index], product[index]
    if min(values.shape) < 4 or values.size < 30:
        return 1.0
    a, b = (each - each.mean(axis=0) - each.mean(axis=1, keepdims=True) + each.mean() for each in (values, product))
    with np.errstate(all="ignore"):
        found = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    return found if np.isfinite(found) else 1.0


def follows_everywhere(error: Array, shift: Array, sigma: Array) -> bool:
    """Return whether the errors contain a shift in most parts of a result, not only in a few elements.

    A shift is an array of the errors that a bias or a factor would cause. `sigma` has the expected root mean square
    rounding error of each element. If the shift exceeds the rounding errors in fewer than two parts, return True.

    >>> shift, error = np.ones((8, 8)), np.zeros((8, 8))
    >>> error[:2, :2] = 1
    >>> follows_everywhere(error, shift, 0.1 * shift), follows_everywhere(error + 1, shift, 0.1 * shift)
    (False, True)
    """
    with np.errstate(all="ignore"):
        slopes, power = error / shift, (shift / sigma) ** 2
        usable = np.isfinite(slopes) & np.isfinite(power) & (power > 0)
        slopes, width = np.where(usable, slopes, np.nan), sigma / np.abs(shift)
    parts = [np.array_split(np.arange(count), max(1, min(4, count // 4))) for count in error.shape]
    seen = []
    for rows in parts[0]:
        for columns in parts[1]:
            part = np.ix_(rows, columns)
            if float(power[part][usable[part]].sum()) > _CLEAR:
                middle = weighted_median(slopes[part].reshape(-1, 1), width[part].reshape(-1, 1), 0)
                seen.append(float(middle[0, 0]) > _FOLLOWED)
    return len(seen) < 2 or float(np.mean(seen)) >= _MOST_PARTS
