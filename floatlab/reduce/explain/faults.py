"""Faults that change many elements: a bias, a factor, rows or columns moved, terms left out, operands transposed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.noise import multiply_exactly
from floatlab.reduce.explain.problem import Problem, View, middle
from floatlab.reduce.explain.residuals import factor_between, moved_rows, term_counts, term_range, weighted_median
from floatlab.reduce.explain.stages import transposed_inputs

NEAR = 3.0  # sigmas that the median element is off at most
ENOUGH = 50  # elements, so that a median says something
_LONG = 8  # elements along an axis whose mean shows a bias
_LEAST = 3  # elements beyond the unknowns of a fault, so that they confirm it


class FaultFinder:
    """The search for faults of many elements; each is returned only if it leaves rounding in every element."""

    def __init__(self, problem: Problem, tick: Callable[[], None]) -> None:
        """Take the inputs."""
        self.problem, self.tick = problem, tick

    def find(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the first fault that fits."""
        for look in (self.bias, self.scale, self.moved, self.terms):
            self.tick()
            if (found := look(view, product, wrong)) is not None:
                return found
        return None

    def bias(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for one number that was added to each column, or to each row."""
        error = np.where(view.usable, view.totals.error(view.values, product), np.nan)
        sigma = view.noise.sigma(view.totals, product) + view.half + 2.0**-view.format.precision * np.abs(view.values)
        for axis, words in ((0, "column"), (1, "row")):
            shift = weighted_median(error, sigma, axis)
            unknowns = int(wrong.any(axis=axis).sum())
            drifts = wrong.shape[axis] >= _LONG and self.drifts(view, product)
            if (wrong.sum() < unknowns + _LEAST and not drifts) or not np.isfinite(shift).all():
                continue
            if not view.fit(product, shift=shift).wrong.any():
                most = float(np.abs(shift).max())
                alike = bool(np.ptp(shift) <= 8 * float(sigma.max()))
                evidence = (("one number a", "result" if alike else words), ("largest", f"{most:.6g}"))
                return Fault("bias", (), evidence, wrong)
        return None

    def scale(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for one factor of all elements."""
        exact = view.totals.product if product is None else product
        limit = view.noise.limit(view.totals, product) + view.half
        factor = factor_between(np.where(view.usable, view.values, np.nan), exact, limit)
        few = wrong.sum() < (2 if view.format.precision > 11 else 3) and not self.drifts(view, product)
        if not factor or few or view.fit(product, factor=factor).wrong.any():
            return None
        return Fault("scale", (), (("factor", f"{factor:.9g}"),), wrong)

    def drifts(self, view: View, product: Array | None) -> bool:
        """Say whether most of many elements are farther off than rounding, though each may be rounding."""
        return int(view.usable.sum()) >= ENOUGH and middle(view.fit(product).z) > NEAR

    def moved(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for rows or columns that are other rows or columns."""
        if product is not None:
            return None
        exact = view.totals.product
        everything = [np.arange(count) for count in wrong.shape]
        for name, turned, axis in (("rows-moved", False, 0), ("columns-moved", True, 1)):
            values, goal, mask = (each.T if turned else each for each in (view.values, exact, wrong))
            to = moved_rows(values, goal, np.asarray(mask.any(axis=1)))
            if to is None or goal.shape[1] < 2:
                continue
            at = np.flatnonzero(to != np.arange(len(to)))
            index = list(everything)
            index[axis] = to
            if wrong.sum() >= len(at) + _LEAST and not view.against(view.totals.take(*index)).fit().wrong.any():
                pairs = tuple((int(i), int(to[i])) for i in at)
                again = len(set(to.tolist())) < len(to)
                return Fault(name, pairs, (("kind", "copied" if again else "permuted"),), wrong)
        return None

    def terms(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for terms that were left out, or added more than once."""
        x, y = self.problem.x, self.problem.y
        if product is not None or wrong.sum() < _LEAST:
            return None
        error = np.where(view.usable, view.totals.error(view.values), np.nan)
        limit = view.noise.limit(view.totals) + view.half
        ranged = term_range(x, y, error, limit)
        if ranged is not None:
            first, stop, times = ranged
            extra = times * (x[:, first:stop] @ y[first:stop])
            if not view.fit(view.totals.product + extra).wrong.any():
                name = "terms-missing" if times < 0 else "terms-twice"
                return Fault(name, ((first, stop),), (("terms", str(stop - first)),), wrong)
        counts = term_counts(x, y, error)
        if counts is not None and not view.fit(view.totals.product + (x * counts) @ y).wrong.any():
            at = np.flatnonzero(counts)
            name = "terms-missing" if (counts[at] < 0).all() else "terms-twice"
            evidence = (("terms", str(len(at))),)
            return Fault(name, tuple((int(k), int(k) + 1) for k in at), evidence, wrong)
        return None

    def left(self, view: View, product: Array | None) -> float:
        """Return the median error, in sigmas, that the best bias or factor leaves of a sample."""
        error = np.where(view.usable, view.totals.error(view.values, product), np.nan)
        sigma = view.noise.sigma(view.totals, product) + view.half + 2.0**-view.format.precision * np.abs(view.values)
        with np.errstate(all="ignore"):
            lefts = [middle(view.fit(product, shift=weighted_median(error, sigma, axis)).z) for axis in (0, 1)]
        exact = view.totals.product if product is None else product
        factor = factor_between(np.where(view.usable, view.values, np.nan), exact, sigma)
        return min(*lefts, middle(view.fit(product, factor=factor).z) if factor else np.inf)

    def transposed(self, view: View, wrong: Array) -> Fault | None:
        """Look for a product of transposed factors, or a transposed result."""
        if wrong.sum() < _LEAST:
            return None
        rows, columns = self.problem.rows, self.problem.columns
        values, usable = (each[np.ix_(rows, columns)] for each in (view.values, view.usable))
        for name, which, x, y in transposed_inputs(self.problem.x, self.problem.y):
            self.tick()
            part = View(multiply_exactly(x[rows], y[:, columns], False), values, usable, view.noise, view.format)
            if middle(part.fit().z) <= NEAR:
                fit = view.against(multiply_exactly(x, y, self.problem.precise)).fit()
                if not fit.wrong.any():
                    return Fault(name, (), (("transposed", which),), wrong)
        return None
