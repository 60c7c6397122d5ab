"""Rivals of what is to be claimed: sums in one direction, of a small factor or bias; functions, of narrow sums.

Sums that truncate make each partial sum a little smaller, so that a result looks like the product times a factor just
below one; rounding up or down looks like a bias. A factor or bias of that size is claimed only where an order of
addition, then shifted, gives the bits of the result, or where no such sums make errors of that pattern and size.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.conversion import decode, quantize
from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import between
from floatlab.reduce.explain.stages import PLAIN
from floatlab.reduce.replay.candidates import list_candidates

_ENOUGH = 16  # elements that a factor, or all numbers of a bias, have to explain beyond their own count
_PATTERN = 0.8  # of the cosine between a result's errors and the shift, sums in one direction have to reach
_SIZE = 0.4  # of the shift, they have to make at least: orders differ by more than the ones that are simulated
_SLOPE = 0.15  # by which the slope of a result along the product may be off those of simulated sums


def sums_in(problem: ProductProblem, format: Format) -> tuple[Array, Array, Array]:
    """Return some rows and columns, and their sums whose every step is rounded to a format."""
    rows, columns = problem.rows[:16], problem.columns[:32]
    x, y = problem.x[rows], problem.y[:, columns]
    total = np.zeros((len(rows), len(columns)))
    with np.errstate(all="ignore"):
        for k in range(problem.terms):
            step = np.asarray(quantize(x[:, k : k + 1] * y[k : k + 1], format), np.float64)
            total = np.asarray(quantize(total + step, format), np.float64)
    return rows, columns, total


def is_like_sums(problem: ProductProblem, side: Side, format: Format) -> bool:
    """Say whether a result follows the product as sums in a narrow format do.

    The bound of such sums has room for anything. Sums term by term may stop growing, others follow the product; a
    function of the product, such as tanh, follows it less than both.
    """
    rows, columns, total = sums_in(problem, format)
    index = np.ix_(rows, columns)
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


def narrow_share(problem: ProductProblem, format: Format, view: View) -> float:
    """Return which share of elements sums in a narrow format have that no wider one gives, from some simulated ones."""
    rows, columns, total = sums_in(problem, format)
    part = View(problem.totals.take(rows, columns), total, np.isfinite(total), view.noise, view.format)
    return float(part.fit().wrong.mean())


class ShiftRivals:
    """What else makes the errors of one result that a factor or a bias would make."""

    def __init__(self, problem: ProductProblem, side: Side, tick: object = None) -> None:
        """Choose the elements that are replayed."""
        self.problem, self.side = problem, side
        self.grid = grid_of(problem, PLAIN, side.narrowest, tick if callable(tick) else lambda: None)
        index = np.ix_(self.grid.rows, self.grid.columns)
        self.values, self.totals = side.values[index], problem.totals.take(self.grid.rows, self.grid.columns)
        self._directed: list[Array] | None = None
        self._plain: list[Array] | None = None

    def are_excluded(self, shift: Array, axis: int | None) -> bool:
        """Say whether nothing but a shift explains errors: one number a column (axis 0) or row, or a factor (None)."""
        shift = np.broadcast_to(shift, self.problem.shape)
        empty = (self.problem.totals.size == 0) & (np.abs(shift) > 0)
        if empty.any():  # nothing to round: a bias shows there, and nothing else does
            return bool((self.side.values[empty] != 0).all())
        if self._is_replayed(axis):
            return True
        shift = shift[np.ix_(self.grid.rows, self.grid.columns)]
        return not any(self._is_alike(shift, made) for made in self._directed_errors())

    def _is_alike(self, shift: Array, made: Array) -> bool:
        """Say whether sums with such errors may be what looks like the shift."""
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
        """Say whether a sum in a tried order, then shifted and rounded, has all bits of the result."""
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
