"""Exclude alternative computations before a fault is reported.

A computation with other rounding errors can look like a fault. There are two cases:

- A few elements differ. Libraries compute a product in tiles, which are rectangles of its elements, and may add the
  elements of tiles at the edges in another order. An element is therefore wrong only if its error is larger than the
  errors that orders of addition cause in the same element.
- A result looks like the product times a factor close to 1, or plus a bias. Sums that truncate make each partial sum
  slightly smaller, which looks like a factor just below 1. Sums that round up or down look like a bias. A small factor
  or bias is therefore reported only in two situations: a simulated sum with this factor or bias gives the bits of the
  result, or no sums with directed rounding have errors of this pattern and size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.reduce.explain.faults.patterns import BIAS, drift_of
from floatlab.reduce.explain.grid import grid_of, own_accumulator
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import between, find_places
from floatlab.reduce.explain.stages import PLAIN
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.replay.candidates import Candidate, list_candidates
from floatlab.reduce.replay.evaluator import candidate_codes
from floatlab.reduce.results.diagnosis_record import DiagnosedCause
from floatlab.reduce.results.product_error import spread_indices
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.narrow_sums import promoted

_ROWS, _COLUMNS = 16, 32  # sums in a narrow format are simulated for about this many rows and columns
_FINER = 0.2  # a result is coarser than sums if more than this share of the sums has bits below the result's last bit
_OTHER = 9.0  # the bias of a result must be this many times as significant as the bias of simulated sums
_ENOUGH = 16  # a fault must explain at least this many elements more than it has unknowns
# Sums with directed rounding explain a shift if the cosine between their errors and the shift is at least this share of
# the cosine between the result's errors and the shift.
_PATTERN = 0.8
# Their errors must also contain at least this share of the shift. It is below 1, because other orders of addition may
# cause larger errors than the simulated orders.
_SIZE = 0.4
_SLOPE = 0.15  # the slope of a result against the product may differ by this much from the slope of simulated sums
_ORDERS = (
    "serial", "reversed", "pairwise", "lanes(2)", "lanes(4)", "lanes(8)", "lanes(16)", "splitk(2)", "blocked(64)",
)  # fmt: skip
_TERMS = 1 << 20  # orders are simulated in so few elements that these have about this many terms together
# An element is wrong if its error exceeds the largest simulated one by a factor that grows with the number of differing
# elements. In 109 pairs of correct results whose few differences looked like faults, this factor was at most 3 if 3,000
# elements differed, and at most 1.3 if 3 elements differed.
_LEAST_TIMES, _TIMES_PER_DECADE = 2.0, 0.6
_LONE_TIMES = 1.2  # this factor applies to elements that are not at the edge of a tile
# At least this many elements are wrong together if their median error exceeds the largest simulated one by this factor.
_MANY, _TYPICAL = 16, 1.5
_PART = 0.25  # a whole rectangle is wrong if at least this share of its elements is
_LINE, _LINES = 8, 4  # rows and columns are compared if each has this many elements, and if there are this many of them
# The median error of an outlying row is more than this many times that of the others, and this many sigmas.
_FAR_OFF, _LEAST_SIGMA = 3.0, 0.1
_UNLIKELY, _SURE = (
    1.2,
    2.0,
)  # a row is doubtful, or certainly wrong, above these multiples of the largest simulated error
_STEPS = 1 << 24  # a whole product is simulated with rounding at every step if it has at most this many multiply-adds
_ALIKE, _FEW_TERMS = 32, 8  # equal bits are evidence only for at least this many elements and terms
# Elements are lone if there are at most this many, and none is within this distance of the last row or column.
_LONE, _EDGE = 3, 4


def sums_in(problem: ProductProblem, format: Format) -> tuple[Array, Array, Array]:
    """Return some rows and columns, and their elements computed by sums in which every step is rounded to a format."""
    rows = problem.rows[:_ROWS]
    columns = problem.columns[: max(_COLUMNS, _ROWS * _COLUMNS // len(rows))]
    return rows, columns, promoted(problem.x[rows], problem.y[:, columns], format, problem.terms, False)


def whole_sums_in(problem: ProductProblem, side: Side, format: Format) -> Array | None:
    """Return the product computed by sums in which every step is rounded to a format.

    Return None if it differs from the result in most elements.
    """
    if problem.shape[0] * problem.shape[1] * problem.terms > _STEPS or problem.terms < _FEW_TERMS:
        return None
    total = promoted(problem.x, problem.y, format, problem.terms, False)
    alike = int((total == side.values)[problem.known].sum())
    return total if alike >= _ALIKE and alike > problem.known.sum() / 2 else None


def is_like_sums(problem: ProductProblem, side: Side, format: Format) -> bool:
    """Return whether a result deviates from the product in the way of sums in a narrow format.

    The error bound of these sums is too large to exclude other causes, so their slope against the product is compared.
    Serial sums may stop growing, which makes their slope smaller. The slope of sums in other orders is about 1. The
    slope of a function of the product, such as tanh, is smaller than both.
    """
    rows, columns, total = sums_in(problem, format)
    index = np.ix_(rows, columns)
    if problem.terms <= _FEW_TERMS or _is_coarser(side.values, total) or _is_shifted(problem, side, format, total):
        return False  # for so few terms, every order is replayed elsewhere
    exact, values = problem.totals.product[index], side.values[index]
    with np.errstate(all="ignore"):
        weight = np.where(problem.totals.squares[index] > 0, 1 / problem.totals.squares[index], 0.0)
    usable = np.isfinite(values) & np.isfinite(total) & problem.known[index] & np.isfinite(weight)
    exact, values, total, weight = (each[usable] for each in (exact, values, total, weight))
    power = float((weight * exact * exact).sum())
    if not power:
        return True
    least, slope = (float((weight * exact * each).sum()) / power for each in (total, values))
    return min(least, 1.0) - _SLOPE <= slope <= max(least, 1.0) + _SLOPE


def _is_coarser(values: Array, sums: Array) -> bool:
    """Return whether the values have fewer fraction bits than sums would have; integers are an example."""
    last = _last_places(values)
    return bool(last.size and (_last_places(sums) < last.min()).mean() > _FINER)


def _last_places(values: Array) -> Array:
    """Return the weight of the last nonzero bit of each finite number except 0."""
    fraction, exponent = np.frexp(values[np.isfinite(values) & (values != 0)])
    digits = np.ldexp(fraction, 53).astype(np.int64)
    weights: Array = np.ldexp((digits & -digits).astype(np.float64), exponent - 53)
    return weights


def _is_shifted(problem: ProductProblem, side: Side, format: Format, sums: Array) -> bool:
    """Return whether the errors of a result have significant means, and the errors of sums in a format do not."""
    rows, columns = problem.rows[:_ROWS], problem.columns[: sums.shape[1]]
    index, noise = np.ix_(rows, columns), problem.noise(format)
    totals = problem.totals.take(rows, columns)
    mine, theirs = (
        drift_of(View(totals, values, np.isfinite(values) & problem.known[index], noise, format)).bias
        for values in (side.values[index], sums)
    )
    return any(one > max(BIAS, _OTHER * other) for one, other in zip(mine, theirs, strict=True))


def narrow_share(problem: ProductProblem, format: Format, view: View) -> float:
    """Return the share of simulated sums in a narrow format whose errors exceed the view's error limit."""
    rows, columns, total = sums_in(problem, format)
    part = View(problem.totals.take(rows, columns), total, np.isfinite(total), view.noise, view.format)
    return float(part.fit().wrong.mean())


def standing_out(problem: ProductProblem, side: Side, differing: Array, accumulator: Format | None = None) -> Array:
    """Return the mask of those differing elements whose errors are too large for any order of addition.

    Orders are simulated in the usual accumulator unless another one is given. If the differing elements form a
    rectangle, and the errors of enough of them are too large, the whole rectangle is returned.
    """
    found = np.zeros_like(differing)
    rows, columns = np.nonzero(differing & side.finite & problem.known)
    if not rows.size:
        return found
    accumulator = accumulator or own_accumulator(side.narrowest)
    with np.errstate(all="ignore"):
        error = np.abs(problem.totals.error(side.values))[rows, columns]
        sigma = problem.noise(accumulator).sigma(problem.totals)[rows, columns]
        likely = np.argsort(-error / np.maximum(sigma, 1e-320), kind="stable")
    likely = likely[: max(32, _TERMS // problem.terms)]
    rows, columns = rows[likely], columns[likely]
    times = _times_usual(problem, side, accumulator, rows, columns)
    lone = are_lone(differing)
    most = _LONE_TIMES if lone else _LEAST_TIMES + _TIMES_PER_DECADE * np.log10(differing.sum())
    stands = times > most
    together = rows.size >= _MANY and float(np.median(times)) > _TYPICAL
    places = find_places(differing)
    is_box = places is not None and places.name == "region"
    if together or (is_box and stands.mean() >= _PART):
        return differing.copy()
    found[rows[stands], columns[stands]] = True
    return found


def _times_usual(problem: ProductProblem, side: Side, accumulator: Format, rows: Array, columns: Array) -> Array:
    """Return the errors of some elements, divided by the largest errors of the simulated orders."""
    usual = _order_errors(problem, side.narrowest, accumulator, rows, columns)
    with np.errstate(all="ignore"):
        error = np.abs(problem.totals.error(side.values))[rows, columns]
        sigma = problem.noise(accumulator).sigma(problem.totals)[rows, columns]
    # In some elements, all simulated orders have small errors by chance.
    typical = usual[sigma > 0] / sigma[sigma > 0]
    usual = np.maximum(usual, np.median(typical) * sigma if typical.size else 0.0)
    usual = usual + half_ulp(side.values[rows, columns], side.narrowest)
    times: Array = error / np.maximum(usual, 1e-320)
    return times


def outlying_lines(problem: ProductProblem, sides: tuple[Side, Side], i: int) -> tuple[DiagnosedCause, bool] | None:
    """Return the rows or columns with much larger errors than all others, if no simulated order makes such errors.

    The second value says whether they are certainly wrong. Each single error is within the error bound of rounding.
    """
    accumulator = own_accumulator(sides[i].narrowest)
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
        places = find_places(wrong)
        if times > _UNLIKELY and places is not None:
            known = (("all others", "are rounding, or agree"),)
            share = float(wrong.mean())
            found = DiagnosedCause(places.name, "result", sides[i].name, share, places.where, known)
            return found, times > _SURE
    return None


def few_wrong(
    problem: ProductProblem, sides: tuple[Side, Side], few: dict[str, Array], others: str
) -> tuple[DiagnosedCause, ...]:
    """Return the wrong elements of each result as causes, if only a few elements or a region differ.

    `few` maps the name of a result to the mask of its differing elements; other results are skipped. Elements are wrong
    if no order of addition explains their errors. `others` describes all other elements.
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
            causes.append(DiagnosedCause(places.name, "result", side.name, float(wrong.mean()), places.where, known))
    return tuple(causes)


def _order_errors(problem: ProductProblem, into: Format, accumulator: Format, rows: Array, columns: Array) -> Array:
    """Return the largest error of the simulated orders for each element."""
    x, y = problem.sources
    terms = (
        Source(np.ascontiguousarray(x.codes[rows].T), x.format),
        Source(np.ascontiguousarray(y.codes[:, columns]), y.format),
    )
    totals, most = problem.totals, np.zeros(len(rows))
    exact = totals.product[rows, columns]
    missed = 0.0 if totals.missed is None else totals.missed[rows, columns]
    for order in map(parse_schedule, _ORDERS):
        for fma in (False, True):
            codes = candidate_codes(Candidate(order, Adder(accumulator, fma=fma)), terms, into)
            with np.errstate(all="ignore"):
                error = np.abs(np.asarray(decode(codes, into), np.float64) - exact - missed)
            most = np.fmax(most, np.where(np.isfinite(error), error, 0.0))
    return most


def are_lone(differing: Array) -> bool:
    """Return whether so few elements differ, so far from the last row and column, that no tile edge is the cause."""
    rows, columns = np.nonzero(differing)
    if len(set(rows.tolist())) < rows.size or len(set(columns.tolist())) < columns.size:
        return False  # two elements are in the same row or column, which may belong to another tile
    inside = (rows < differing.shape[0] - _EDGE) & (columns < differing.shape[1] - _EDGE)
    return rows.size <= _LONE and bool(inside.all())


def widened(
    cause: DiagnosedCause, problem: ProductProblem, sides: tuple[Side, Side], differing: Array
) -> DiagnosedCause:
    """Return a cause extended to all differing elements, if they lie in one row or one column.

    Some of these elements have errors that rounding could explain. They are included because another order of addition
    is not the reason for the difference: the row or column is not at the edge of a tile, or its errors are larger than
    those of all simulated orders.
    """
    if cause.name not in ("elements", "region") or sides[0].format != sides[1].format or "all" in dict(cause.evidence):
        return cause
    claimed = np.zeros_like(differing)
    for place in cause.where:
        claimed[tuple(slice(*each) if isinstance(each, tuple) else each for each in place)] = True
    for axis in (0, 1):
        (lines,) = np.nonzero(differing.any(axis=1 - axis))
        if lines.size != 1 or claimed.sum() in (0, differing.sum()) or (claimed & ~differing).any():
            continue
        inside = lines[0] < differing.shape[axis] - _EDGE
        side = sides[cause.side == "expected"]
        if inside or standing_out(problem, side, differing)[differing].all():
            places = find_places(differing)
            if places is not None:
                share = float(differing.mean())
                return cause.replace(name=places.name, where=places.where, share=share)
    return cause


class ShiftRivals:
    """Alternative computations whose rounding errors may look like a factor or a bias.

    A shift is an array of the errors that a factor or a bias would cause.
    """

    def __init__(self, problem: ProductProblem, side: Side, tick: Callable[[], None]) -> None:
        """Choose the elements on which the alternative computations are replayed."""
        self.problem, self.side = problem, side
        self.grid = grid_of(problem, PLAIN, side.narrowest, tick)
        index = np.ix_(self.grid.rows, self.grid.columns)
        self.values, self.totals = side.values[index], problem.totals.take(self.grid.rows, self.grid.columns)
        self._directed: list[Array] | None = None
        self._plain: list[Array] | None = None

    def are_excluded(self, shift: Array, axis: int | None) -> bool:
        """Return whether no alternative computation explains the errors, so that the shift is real.

        The shift is a bias of each column (axis 0), a bias of each row (axis 1), or a factor (axis None).
        """
        shift = np.broadcast_to(shift, self.problem.shape)
        empty = (self.problem.totals.size == 0) & (np.abs(shift) > 0)
        if empty.any():  # sums of zeros are exact, so only a bias can change them
            return bool((self.side.values[empty] != 0).all())
        if self._is_replayed(axis):
            return True
        shift = shift[np.ix_(self.grid.rows, self.grid.columns)]
        return not any(self._is_alike(shift, made) for made in self._directed_errors())

    def _is_alike(self, shift: Array, made: Array) -> bool:
        """Return whether sums with the errors `made` may look like the shift."""
        noise = self.problem.noise(self.grid.accumulator)
        with np.errstate(all="ignore"):
            sigma = noise.sigma(self.totals) + half_ulp(self.values, self.side.narrowest) * self.grid.is_narrow
            h, mine, theirs = (each / sigma for each in (shift, self.totals.error(self.values), made))
        usable = (self.totals.size > 0) & np.isfinite(h) & np.isfinite(mine) & np.isfinite(theirs)
        h, mine, theirs = h[usable], mine[usable], theirs[usable]
        power = float(h @ h)
        if not power or not float(theirs @ theirs):
            return False
        cosines = [float(h @ each) / max(float(np.sqrt(power * (each @ each))), 1e-300) for each in (mine, theirs)]
        return float(h @ theirs) >= _SIZE * power and cosines[1] >= _PATTERN * cosines[0]

    def _directed_errors(self) -> list[Array]:
        if self._directed is None:
            errors = []
            for _, _, codes in self.grid.directed():
                made = np.asarray(decode(codes, self.grid.into), np.float64).reshape(self.values.shape)
                errors.append(np.asarray(self.totals.error(made)))
            self._directed = errors
        return self._directed

    def _is_replayed(self, axis: int | None) -> bool:
        """Return whether a replayed sum equals the result bit for bit after a shift and a final rounding."""
        if self.side.narrowest != self.side.format:
            return False
        unknowns = 1 if axis is None else self.values.shape[1 - axis]
        half = half_ulp(self.values, self.side.format)
        for made in self._plain_sums():
            with np.errstate(all="ignore"):
                if axis is None:
                    ends = (self.values - half) / made, (self.values + half) / made
                    known = (made != 0) & np.isfinite(ends[0])
                    low, high = (np.where(known, end(*ends), np.nan).reshape(-1, 1) for end in (np.minimum, np.maximum))
                    sound = bool((self.values[made == 0] == 0).all())
                else:
                    known = self.values != made
                    low, high, sound = self.values - half - made, self.values + half - made, True
            if known.sum() >= unknowns + _ENOUGH and sound and between(low, high, axis or 0)[1]:
                return True
        return False

    def _plain_sums(self) -> list[Array]:
        if self._plain is None:
            grid, found = self.grid, []
            formats = grid.sides[0].format, grid.sides[1].format
            for candidate in list_candidates(self.problem.terms, formats, grid.into, elements=grid.evaluator.size):
                if not candidate.machines:
                    try:
                        codes = grid.evaluator.sampled(candidate)
                    except FloatlabError:
                        continue
                    found.append(np.asarray(decode(codes, grid.into), np.float64).reshape(self.values.shape))
            self._plain = found
        return self._plain
