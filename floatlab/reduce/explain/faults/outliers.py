"""Elements, rows and columns with larger errors than any order of addition causes.

Another order of addition may change only a few elements. Libraries compute a product in tiles, which are rectangles of
its elements, and may use another order in the tiles at the edges. An element is therefore called wrong only if its
error is larger than the errors that simulated orders cause in the same element.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.faults.orders import largest_errors, order_errors
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import find_places, mask_of, share_of
from floatlab.reduce.explain.ways import own_accumulator
from floatlab.reduce.results.diagnosis_record import DiagnosedCause
from floatlab.reduce.results.product_error import spread_indices

_TERMS = 1 << 20  # orders are simulated in elements that together have about this many terms
# An element is wrong if its error exceeds the largest simulated one by a factor that grows with the number of differing
# elements. In 109 pairs of correct results whose few differences looked like faults, this factor was at most 3 if 3,000
# elements differed, and at most 1.3 if 3 elements differed.
_LEAST_TIMES, _TIMES_PER_DECADE = 2.0, 0.6
_LONE_TIMES = 1.2  # the same factor for lone elements (see `are_lone`)
# If at least _MANY elements differ, and their median error is more than _TYPICAL times the largest simulated one, all
# of them are wrong.
_MANY, _TYPICAL = 16, 1.5
_PART = 0.25  # a whole rectangle is wrong if at least this share of its elements is wrong
# Rows are compared if each has at least _LINE elements, and if there are at least _LINES rows; likewise columns.
_LINE, _LINES = 8, 4
# The median error of an outlying row is more than _FAR_OFF times the largest of three numbers: the median of all rows,
# that of the same row in the other result, and _LEAST_SIGMA sigmas.
_FAR_OFF, _LEAST_SIGMA = 3.0, 0.1
# A row is doubtful if its error exceeds _UNLIKELY times the largest simulated one. Above _SURE times, it is wrong.
_UNLIKELY, _SURE = 1.2, 2.0
# Elements are lone if there are at most LONE of them, none of which is in the last _EDGE rows or columns.
LONE, _EDGE = 3, 4
_LONE_DOUBTED = 1.5  # if at most LONE elements differ, errors above this many times the simulated ones are doubtful
# Doubtful errors, and errors slightly above their limits, are reported if the largest of them exceeds _GAP times the
# largest other error.
_GAP = 1.7
_CERTAIN = 1.25  # errors above a limit are doubtful; if the largest is above this many times the limit, all are wrong
# `are_isolated` assumes that another order changes the share `chance` / _LENIENT of the elements. The probability that
# it changes only the differing ones must be below exp(−_DOUBTED).
_LENIENT, _DOUBTED = 2.0, 1.5
# A result is rough if the typical error of n elements is more than 1 + _ROUGH/√n times that of every simulated order.
# At most _MOST_ROUGH elements are examined.
_ROUGH, _MOST_ROUGH = 4.0, 1024


def standing_out(problem: ProductProblem, side: Side, differing: Array, accumulator: Format | None = None) -> Array:
    """Return the mask of the differing elements whose errors are too large for the simulated orders of addition.

    By default, orders are simulated in the usual accumulator. In two cases, all differing elements are returned. In the
    first case, many elements differ, and their median error is too large. In the second case, the differing elements
    form rectangles, and at least a quarter of their errors are too large.
    """
    found = np.zeros_like(differing)
    accumulator = accumulator or own_accumulator(side.rounded_to)
    rows, columns, times = _times_of_likely(problem, side, differing, accumulator)
    if not rows.size:
        return found
    lone = are_lone(differing)
    most = _LONE_TIMES if lone else _LEAST_TIMES + _TIMES_PER_DECADE * np.log10(differing.sum())
    stands = times > most
    together = rows.size >= _MANY and float(np.median(times)) > _TYPICAL
    places = find_places(differing)
    is_box = places is not None and places.name == "region"
    if together or (is_box and share_of(stands) >= _PART):
        return differing.copy()
    found[rows[stands], columns[stands]] = True
    return found


def _times_usual(
    problem: ProductProblem, side: Side, accumulator: Format, rows: Array, columns: Array, permuted: bool = False
) -> Array:
    """Return the error of each given element, divided by the largest error of this element in the simulated orders."""
    usual = order_errors(problem, side.rounded_to, accumulator, (rows, columns)).max(axis=0)
    with np.errstate(all="ignore"):
        error = np.abs(problem.totals.error(side.values))[rows, columns]
        sigma = problem.noise(accumulator).sigma(problem.totals)[rows, columns]
    # If all simulated orders have small errors in an element by chance, assume errors of typical size.
    typical = usual[sigma > 0] / sigma[sigma > 0]
    usual = np.maximum(usual, np.median(typical) * sigma if typical.size else 0.0)
    half = half_ulp(side.values[rows, columns], side.rounded_to)
    times: Array = error / np.maximum(usual + half, 1e-320)
    (far,) = np.nonzero(times > _LONE_TIMES)
    if far.size:
        unusual = largest_errors(problem, side.rounded_to, accumulator, (rows[far], columns[far]), permuted)
        usual[far] = np.maximum(usual[far], unusual)
        times = error / np.maximum(usual + half, 1e-320)
    return times


def outlying_lines(problem: ProductProblem, sides: tuple[Side, Side], i: int) -> tuple[DiagnosedCause, bool] | None:
    """Return, as a cause, the rows or columns whose median errors are far larger than usual; otherwise None.

    Two errors count as usual: the median of the median errors of all rows (or columns) of the result, and the median
    error of the same row or column in the other result. No simulated order of addition causes errors far larger than
    both. The cause comes with a second value, which is True if these rows or columns are certainly wrong. Every single
    error is assumed to be within the rounding error bound.
    """
    accumulator = own_accumulator(sides[i].rounded_to)
    sigma = problem.noise(accumulator).sigma(problem.totals)
    with np.errstate(all="ignore"):
        usable = problem.known & sides[0].finite & sides[1].finite & (problem.totals.size > 0)
        mine, theirs = (
            np.where(usable, np.abs(problem.totals.error(side.values)) / np.maximum(sigma, 1e-320), 0.0)
            for side in (sides[i], sides[1 - i])
        )
    for axis in (0, 1):
        if mine.shape[1 - axis] < _LINE or mine.shape[axis] < _LINES:
            continue
        own, other = (np.median(each, axis=1 - axis) for each in (mine, theirs))
        off = own > _FAR_OFF * np.maximum(np.maximum(np.median(own), other), _LEAST_SIGMA)
        if not 0 < off.sum() <= off.size // _LINES:
            continue
        wrong = np.zeros_like(usable)
        wrong[(off, slice(None)) if axis == 0 else (slice(None), off)] = True
        rows, columns = np.nonzero(wrong & usable)
        some = spread_indices(rows.size, max(2 * _MANY, _TERMS // problem.terms))
        times = float(np.median(_times_usual(problem, sides[i], accumulator, rows[some], columns[some])))
        wrong &= sides[0].values != sides[1].values
        places = find_places(wrong)
        if times > _UNLIKELY and places is not None:
            known = (("all others", "are rounding, or agree"),)
            share = share_of(wrong)
            found = DiagnosedCause(places.name, "result", sides[i].name, share, places.where, known)
            return found, times > _SURE
    return None


def few_wrong(
    problem: ProductProblem, sides: tuple[Side, Side], few: dict[str, Array], others: str
) -> tuple[DiagnosedCause, ...]:
    """Return the wrong elements of each result as causes, if only a few elements or a region differ.

    `few` maps the name of a result to the mask of its differing elements; a result without a mask is skipped. Elements
    are wrong if no order of addition explains their errors, and if the errors of the other result are not larger in
    these elements. `others` describes all other elements.
    """
    causes = []
    errors = [np.abs(problem.totals.error(side.values)) for side in sides]
    for side, mine, theirs in zip(sides, errors, errors[::-1], strict=True):
        if side.name not in few:
            continue
        wrong = standing_out(problem, side, few[side.name])
        wrong &= mine >= theirs
        places = find_places(wrong)
        if places is not None:
            said = others if wrong.sum() == few[side.name].sum() else "agree, or differ by rounding"
            known = (("all others", said),)
            causes.append(DiagnosedCause(places.name, "result", side.name, share_of(wrong), places.where, known))
    return tuple(causes)


def are_rough(problem: ProductProblem, side: Side) -> float:
    """Return the ratio of a result's typical error to the largest typical error of the simulated orders.

    The typical error is the median or the root mean square, whichever gives the smaller ratio. Return 0 if the ratio is
    not significantly larger than 1, or if there are fewer than 16 usable elements.
    """
    accumulator = own_accumulator(side.rounded_to)
    rows, columns = np.nonzero(side.finite & problem.known & (problem.totals.size > 0))
    some = spread_indices(rows.size, max(2 * _MANY, min(_MOST_ROUGH, _TERMS // problem.terms)))
    rows, columns = rows[some], columns[some]
    if rows.size < _MANY:
        return 0.0
    sigma = problem.noise(accumulator).sigma(problem.totals)[rows, columns]
    sigma = sigma + half_ulp(side.values[rows, columns], side.rounded_to)
    mine = np.abs(problem.totals.error(side.values))[rows, columns] / sigma
    theirs = order_errors(problem, side.rounded_to, accumulator, (rows, columns)) / sigma
    times = [
        float(own) / max(float(usual.max()), 1e-300)
        for own, usual in (
            (np.median(mine), np.median(theirs, axis=1)),
            (np.sqrt(np.mean(mine**2)), np.sqrt(np.mean(theirs**2, axis=1))),
        )
    ]
    least = 1 + _ROUGH / rows.size**0.5
    return min(times) if min(times) > least else 0.0


def are_saturated(view: View, wrong: Array) -> bool:
    """Return whether all wrong numbers look clipped.

    They then have the largest magnitude of the result, and the sign of the exact numbers, which are larger.

    >>> from floatlab.formats import parse_format
    >>> from floatlab.reduce.explain.noise import multiply_exactly, noise_of
    >>> x, y, single = np.eye(2), np.array([[3.0, -2.5], [1.0, 0.5]]), parse_format("fp32")
    >>> view = View(multiply_exactly(x, y, False), y.clip(-2, 2), np.ones((2, 2), bool), noise_of(single), single)
    >>> are_saturated(view, np.abs(y) > 2), are_saturated(view, np.abs(y) > 0.5)
    (True, False)
    """
    values, exact = view.values[wrong], view.totals.product[wrong]
    largest = np.abs(view.values[view.usable]).max(initial=0.0)
    return bool(((np.abs(values) == largest) & (np.sign(values) * exact > largest)).all())


def are_lone(differing: Array) -> bool:
    """Return whether at most three elements differ, and no tile at an edge explains their positions.

    The elements must lie in different rows and columns, and none of them may be in the last four rows or columns.
    """
    rows, columns = np.nonzero(differing)
    if len(set(rows.tolist())) < rows.size or len(set(columns.tolist())) < columns.size:
        return False  # two elements are in the same row or column, which may belong to another tile
    inside = (rows < differing.shape[0] - _EDGE) & (columns < differing.shape[1] - _EDGE)
    return rows.size <= LONE and bool(inside.all())


def are_isolated(differing: Array, chance: float) -> bool:
    """Return whether only one to three elements differ, although another order would change more elements.

    The elements must be in different rows and columns. Let R be the part of the result from their topmost row to the
    last row, and from their leftmost column to the last column. A tile at the lower right corner of the result that
    contains the elements also contains R. Another order of addition in this tile would change more elements of R.
    `chance` is the share of elements that another order changes.
    """
    rows, columns = np.nonzero(differing)
    if not 0 < rows.size <= LONE or min(len(set(rows.tolist())), len(set(columns.tolist()))) < rows.size:
        return False  # two elements in the same row or column may belong to a tile
    down, across = differing.shape[0] - rows.min(), differing.shape[1] - columns.min()
    expected = chance / _LENIENT * float(down * across)
    return expected > rows.size and expected - rows.size * (1 + np.log(expected / rows.size)) > _DOUBTED


def beyond_orders(problem: ProductProblem, side: Side, differing: Array) -> tuple[Array, Array]:
    """Return two masks of differing elements.

    The first mask marks doubtful errors, which another order of addition is unlikely to cause. The second mask marks
    errors that are too large for another order. The second mask is empty if no error is far too large.
    """
    doubtful, wrong = np.zeros_like(differing), np.zeros_like(differing)
    few = differing.sum() <= LONE
    # If many elements differ, the terms may even have been permuted.
    rows, columns, times = _times_of_likely(problem, side, differing, own_accumulator(side.rounded_to), not few)
    if rows.size:
        most = _LEAST_TIMES + _TIMES_PER_DECADE * np.log10(differing.sum())
        doubtful[rows, columns] = times > (_LONE_DOUBTED if few else most)
        if (times > _CERTAIN * most).any():
            wrong[rows, columns] = times > most
    return doubtful, wrong


def stand_apart(problem: ProductProblem, side: Side, differing: Array, doubtful: Array) -> bool:
    """Return whether few elements differ, or whether the largest doubtful error is far above all other errors.

    Errors are compared in units of sigma, the expected root mean square error of an element. If many elements differ
    and the doubtful errors are not far above the others, an order that was not simulated is likelier than a fault.
    """
    sigma = problem.noise(own_accumulator(side.rounded_to)).sigma(problem.totals)
    with np.errstate(all="ignore"):
        z = np.abs(problem.totals.error(side.values)) / np.maximum(sigma, 1e-320)
    z = np.where(side.finite & problem.known & (problem.totals.size > 0), z, 0.0)
    return bool(differing.sum() <= LONE or z[doubtful].max() > _GAP * z[~doubtful].max(initial=0.0))


def exceed_others(problem: ProductProblem, side: Side, view: View, wrong: Array) -> bool:
    """Return whether the errors of the wrong elements are far above those of all other elements.

    In two cases, an algorithm with larger errors than usual is likelier than a fault. In the first case, the errors are
    only slightly above their limits, and other errors are nearly as large in units of their limits. In the second case,
    another element has a larger error, and the typical error of all elements is larger than in the simulated orders.
    """
    with np.errstate(all="ignore"):
        error = np.where(view.usable, np.abs(view.totals.error(view.values)), 0.0)
        beyond = np.maximum(error - view.half, 0.0)
        share = np.where(beyond > 0, beyond / np.maximum(view.noise.limit(view.totals), 1e-320), 0.0)
    if share[wrong].max(initial=0.0) <= _GAP * share[~wrong].max(initial=0.0):
        return False
    return error[wrong].max() > error[~wrong].max(initial=0.0) or not are_rough(problem, side)


def _times_of_likely(
    problem: ProductProblem, side: Side, differing: Array, accumulator: Format, permuted: bool = False
) -> tuple[Array, Array, Array]:
    """Return the rows, the columns and the relative errors of the differing elements with the largest errors.

    The elements are chosen by their errors relative to sigma, the expected root mean square error. The returned errors
    are relative to those of simulated orders (see `_times_usual`).
    """
    rows, columns = np.nonzero(differing & side.finite & problem.known)
    if not rows.size:
        return rows, columns, np.zeros(0)
    with np.errstate(all="ignore"):
        error = np.abs(problem.totals.error(side.values))[rows, columns]
        sigma = problem.noise(accumulator).sigma(problem.totals)[rows, columns]
        likely = np.argsort(-error / np.maximum(sigma, 1e-320), kind="stable")
    likely = likely[: max(32, _TERMS // problem.terms)]
    rows, columns = rows[likely], columns[likely]
    return rows, columns, _times_usual(problem, side, accumulator, rows, columns, permuted)


def widened(
    cause: DiagnosedCause, problem: ProductProblem, sides: tuple[Side, Side], differing: Array
) -> DiagnosedCause:
    """Return a cause extended to all differing elements, if they lie in one row or one column.

    Some of these elements have errors that rounding could explain. These elements are included if no order of addition
    explains the differences in the whole row or column. This is the case if the row or column is not near the edge of
    the result, because only the tiles at the edges may use another order. It is also the case if the errors of all
    differing elements are larger than those of the simulated orders.
    """
    if cause.name not in ("elements", "region") or sides[0].format != sides[1].format or "all" in dict(cause.evidence):
        return cause
    claimed = mask_of(cause.where, differing.shape)
    for axis in (0, 1):
        (lines,) = np.nonzero(differing.any(axis=1 - axis))
        if lines.size != 1 or claimed.sum() in (0, differing.sum()) or (claimed & ~differing).any():
            continue
        if differing.shape[axis] == 1:
            continue  # the result has no other row or column
        inside = lines[0] < differing.shape[axis] - _EDGE
        side = sides[cause.side == "expected"]
        if inside or standing_out(problem, side, differing)[differing].all():
            places = find_places(differing)
            if places is not None:
                share = share_of(differing)
                return cause.replace(name=places.name, where=places.where, share=share)
    return cause
