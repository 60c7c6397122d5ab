"""Sums whose rounding errors may look like a fault: sums in a narrow format, and sums with directed rounding.

A result may look like the product times a factor close to 1, or plus a bias. Sums that truncate make each partial sum
slightly smaller, which looks like a factor just below 1. Sums that round up or down look like a bias. A small factor or
bias is therefore reported in two situations only. Either a simulated sum with this factor or bias gives the bits of the
result, or no sums with directed rounding have errors of this pattern and size.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.reduce.explain.estimates import between
from floatlab.reduce.explain.faults.patterns import BIAS, drift_of
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import last_places, share_of
from floatlab.reduce.explain.stages import PLAIN
from floatlab.reduce.replay.candidates import list_candidates
from floatlab.reduce.simulate.narrow_sums import promoted

_ROWS, _COLUMNS = 16, 32  # sums in a narrow format are simulated for about this many rows and columns
_FINER = 0.2  # a result is coarser than sums if more than this share of the sums has bits below the result's last bit
_OTHER = 9.0  # the bias of a result must be this many times as significant as the bias of simulated sums
_ENOUGH = 16  # a fault must explain at least this many more elements than it has free parameters
# Sums with directed rounding explain a shift if their errors are similar to it: the cosine between these errors and the
# shift must be at least _PATTERN times the cosine between the result's errors and the shift.
_PATTERN = 0.8
# These errors must also be at least _SIZE times the shift: less than 1, because other orders may have larger errors.
_SIZE = 0.4
_CUT = 2.0**-10  # a shift of at most this share of Σ|x·y| may be due to truncated inputs
_VARIED = 0.25  # truncated inputs explain a shift if the errors' spread exceeds this share of the simulated spread
_SLOPE = 0.15  # the slope of a result against the product may differ by this much from the slope of simulated sums
_STEPS = 1 << 24  # products with more multiply-adds are not simulated as a whole
_ALIKE, _FEW_TERMS = 32, 8  # equal bits are evidence only for at least this many elements and terms


def sums_in(problem: ProductProblem, format: Format) -> tuple[Array, Array, Array]:
    """Return the indices of some rows and of some columns, and a simulated product of these rows and columns.

    The sums are added in order, and every step is rounded to `format`.
    """
    rows = problem.rows[:_ROWS]
    columns = problem.columns[: max(_COLUMNS, _ROWS * _COLUMNS // len(rows))]
    return rows, columns, promoted(problem.x[rows], problem.y[:, columns], format, problem.terms, False)


def whole_sums_in(problem: ProductProblem, side: Side, format: Format) -> Array | None:
    """Return the product of the inputs, computed by serial sums in which every step is rounded to a format.

    Return None in three cases: the product differs from the result in most elements; the product is too large to be
    simulated; the product has too few elements or terms for equal bits to be evidence.
    """
    if problem.shape[0] * problem.shape[1] * problem.terms > _STEPS or problem.terms < _FEW_TERMS:
        return None
    total = promoted(problem.x, problem.y, format, problem.terms, False)
    alike = int((total == side.values)[problem.known].sum())
    return total if alike >= _ALIKE and alike > problem.known.sum() / 2 else None


def is_like_sums(problem: ProductProblem, side: Side, format: Format) -> bool:
    """Return whether a result, plotted against the exact product, has the slope of sums in a narrow format.

    The error bound of these sums is too large to exclude other causes. The slope of such sums is about 1, or less if
    serial sums stop growing. A function of the product, such as tanh, has an even smaller slope. Return False for sums
    of at most eight terms, which are replayed elsewhere. Also return False if the result has fewer fraction bits than
    such sums, or mean errors that such sums do not have.
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
    """Return whether the values, such as integers, have fewer fraction bits than sums would have."""
    last = last_places(values)
    return bool(last.size) and share_of(last_places(sums) < last.min()) > _FINER


def _is_shifted(problem: ProductProblem, side: Side, format: Format, sums: Array) -> bool:
    """Return whether a result has significant mean errors, although the simulated `sums` in a format have none."""
    rows, columns = problem.rows[:_ROWS], problem.columns[: sums.shape[1]]
    index, noise = np.ix_(rows, columns), problem.noise(format)
    totals = problem.totals.take(rows, columns)
    mine, theirs = (
        drift_of(View(totals, values, np.isfinite(values) & problem.known[index], noise, format)).bias
        for values in (side.values[index], sums)
    )
    return any(one > max(BIAS, _OTHER * other) for one, other in zip(mine, theirs, strict=True))


def narrow_share(problem: ProductProblem, format: Format, view: View) -> float:
    """Return the share of simulated sums in a narrow format whose errors exceed the error limits of `view`."""
    rows, columns, total = sums_in(problem, format)
    part = View(problem.totals.take(rows, columns), total, np.isfinite(total), view.noise, view.format)
    return share_of(part.fit().wrong)


class ShiftRivals:
    """Alternative computations whose rounding errors may look like a factor or a bias.

    A shift is an array of the errors that a factor or a bias would cause.
    """

    def __init__(self, problem: ProductProblem, side: Side, tick: Callable[[], None]) -> None:
        """Choose the elements on which the alternative computations are replayed."""
        self.problem, self.side = problem, side
        self.grid = grid_of(problem, PLAIN, side.rounded_to, tick)
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

    def are_inputs_cut(self, shift: Array) -> bool:
        """Return whether inputs that were truncated to fixed-point numbers may explain a small shift.

        An example is Ozaki's scheme, which divides the digits of the inputs into slices and may omit the last slices.
        If the inputs have one sign, such a product has similar errors in many elements, as if a bias had been added.
        But these errors vary more than rounding errors do.
        """
        shift = np.broadcast_to(shift, self.problem.shape)[np.ix_(self.grid.rows, self.grid.columns)]
        with np.errstate(all="ignore"):
            share = np.abs(shift) / self.totals.size
        share = share[np.isfinite(share) & (share > 0)]
        if not share.size or not 0 < float(np.median(share)) < _CUT:
            return False
        x, y = self.problem.x[self.grid.rows], self.problem.y[:, self.grid.columns]
        bits = round(-np.log2(float(np.median(share))))
        scales = [_power_above(each, axis) for each, axis in ((x, 1), (y, 0))]
        error = self.totals.error(self.values)
        for count in (bits - 2, bits - 1, bits):
            lost = [side - np.trunc(np.ldexp(side / scale, count)) * np.ldexp(scale, -count)
                    for side, scale in zip((x, y), scales, strict=True)]  # fmt: skip
            for made in (lost[0] @ y + x @ lost[1], lost[0] @ y, x @ lost[1]):
                if self._leaves_as_much(shift, error, -made):
                    return True
        return False

    def _leaves_as_much(self, shift: Array, error: Array, made: Array) -> bool:
        """Return whether truncated inputs, which cause the errors `made`, may explain the shift.

        The errors `made` must mostly have the sign of the shift. They are then scaled to the size of the shift. Both
        the errors of the result and the scaled errors deviate from the shift. The median deviation of the result's
        errors must exceed a quarter of the median deviation of the scaled errors.
        """
        with np.errstate(all="ignore"):
            weight = np.where((self.totals.size > 0) & np.isfinite(error), 1 / self.totals.size, 0.0)
            h, mine, theirs = (np.where(weight > 0, each * weight, 0.0) for each in (shift, error, made))
        power = float((h * h).sum())
        times = float((h * theirs).sum()) / power if power else 0.0
        if times <= 0:
            return False
        left, spread = (float(np.median(np.abs(each - h))) for each in (mine, theirs / times))
        return left > _VARIED * spread

    def _is_alike(self, shift: Array, made: Array) -> bool:
        """Return whether the errors `made` of simulated sums are similar enough to the shift to explain it."""
        noise = self.problem.noise(self.grid.accumulator)
        with np.errstate(all="ignore"):
            sigma = noise.sigma(self.totals) + half_ulp(self.values, self.side.rounded_to) * self.grid.is_narrow
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
        """Return whether replayed sums give the result bit for bit after a bias or a factor is applied and rounded."""
        if self.side.rounded_to != self.side.format:
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


def _power_above(numbers: Array, axis: int) -> Array:
    """Return, for each row or column, a power of two that exceeds all its magnitudes."""
    most = np.abs(numbers).max(axis=axis, keepdims=True)
    made: Array = np.ldexp(1.0, np.frexp(np.where(most == 0, 1.0, most))[1])
    return made
