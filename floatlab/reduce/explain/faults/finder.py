"""Search for faults of many elements: a bias, a factor, moved rows or columns, omitted terms, transposed operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.faults.outliers import standing_out
from floatlab.reduce.explain.faults.patterns import BIAS, drift_of, may_be_flushed
from floatlab.reduce.explain.faults.rivals import ShiftRivals, whole_sums_in
from floatlab.reduce.explain.findings import ENOUGH, Fault, number_text
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.noise import multiply_exactly
from floatlab.reduce.explain.problem import ProductProblem, Side, View, middle
from floatlab.reduce.explain.residuals import (
    between,
    factor_between,
    find_places,
    follows_everywhere,
    indices_of,
    moved_rows,
    robust_shifts,
    shortest_between,
    term_counts,
    term_range,
    weighted_median,
)
from floatlab.reduce.explain.stages import PLAIN, transposed_inputs

NEAR = 3.0  # largest median error that counts as rounding, in sigmas (expected root mean square errors)
_REPLAYED = 0.98  # flushing is reported if a simulated sum that flushes reproduces at least this share of elements
_LONG = 8  # smallest number of elements along an axis whose mean error can show a bias
_CLEARLY = 1.2  # largest median error, in sigmas, that a fault may leave if single elements do not confirm it
_COARSE = 8  # significant bits; a bias or a factor is looked for only in results with at least this many
_SHORT = 11  # significant bits; a factor needs 3 wrong elements as evidence up to this precision, and 2 above it
_SAME = 6.0  # two medians of n elements count as equal if their ratio is at most 1 + this number / √n
_LEAST = 3  # a fault is confirmed if the wrong elements outnumber its unknowns by at least this many
_SAME_NUMBERS = 4  # a result of equal elements is reported as constant if it has at least this many
_FLAT = 1e-6  # numbers that differ by less than this share of them count as equal
_CLIPPED = 4  # clipping is reported if the bound replaces at least this many different numbers
_SCATTERED = 0.4  # largest share of elements that may be wrong in a result that is otherwise right or shifted
_FAR = 4.0  # smallest median shift, in error bounds, by a bias or factor that is reported beside wrong elements
_TELLING = 0.5  # largest median error bound, relative to the product; above it, any shift would fit
_SURELY = 3.0  # among narrow sums, an element is wrong only if its error exceeds this many error bounds
_AXES = ("column", "row", "result")


class FaultFinder:
    """Searches a result for faults of many elements. The faults it returns explain all errors larger than rounding."""

    def __init__(self, problem: ProductProblem, side: Side, tick: Callable[[], None]) -> None:
        """Take the inputs and the result."""
        self.problem, self.side, self.tick = problem, side, tick
        self.doubts_all = True  # if true, every shift that directed rounding could cause counts as ambiguous
        self.doubt = ""  # the last shift that was not reported because it is ambiguous

    def find(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the first fault that fits, or None. Its name is empty if another explanation fits equally well."""
        for look in (self.constant, self.clipped, self.shifted, self.moved, self.terms):
            self.tick()
            if (found := look(view, product, wrong)) is not None:
                return found
        return None

    def constant(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Recognise a result whose elements are all equal, usually to zero, although the product has other values."""
        values = view.values
        if values.size < _SAME_NUMBERS or not wrong.any() or (values != values.flat[0]).any():
            return None
        exact = view.totals.product if product is None else product
        if (np.abs(exact - exact.flat[0]) <= _FLAT * np.abs(exact.flat[0])).all():
            return None  # the product is one number, too
        number, least = float(values.flat[0]), 2.0**self.side.format.emin
        if number == 0 and any((np.abs(x[x != 0]) < least).any() for x in (self.problem.x, self.problem.y)):
            return None  # the processor may have flushed the inputs to zero
        known = ("holds", "zeros") if number == 0 else ("number", number_text(number))
        return Fault("region", (tuple((0, count) for count in values.shape),), (known, ("all", "elements")), wrong)

    def clipped(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for a lower or upper bound that replaces all numbers beyond it, such as the 0 of a ReLU."""
        values = view.values[view.usable]
        if not values.size or not wrong.any() or values.min() == values.max():
            return None
        exact = (view.totals.product if product is None else product)[wrong]
        mine, known, left = view.values[wrong], [], np.ones(int(wrong.sum()), bool)
        for bound, beyond, words in (
            (float(values.min()), exact < mine, "below"), (float(values.max()), exact > mine, "above"),
        ):  # fmt: skip
            bounded = (mine == bound) & beyond & left
            if len(np.unique(exact[bounded])) >= _CLIPPED:
                known.append((words, f"all numbers {words} {number_text(bound)} are {number_text(bound)}"))
                left &= ~bounded
        return Fault("clipped", (), tuple(known), wrong) if known and not left.any() else None

    def flushed(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if subnormal results, products or partial sums were flushed to zero."""
        least = 2.0**self.side.format.emin
        values = self.side.values
        exact = view.totals.product if product is None else product
        if product is None and may_be_flushed(view, wrong, least):
            grid = grid_of(self.problem, PLAIN, self.side.narrowest, self.tick)
            if grid.flushing_share(self.side) >= _REPLAYED:
                return Fault("flush-to-zero", (), (("flushed", "products or partial sums"),), wrong)
        if ((values != 0) & (np.abs(values) < least)).any():
            return None
        room = 1 if (values[wrong] == 0).all() else self.problem.terms
        most = least * room * (1 + 4 * self.problem.terms * view.noise.u)
        small = (np.abs(values - exact) <= most) & (np.abs(exact) <= most) & (view.totals.size > 0)
        if small[wrong].all():
            return Fault("flush-to-zero", (), (("flushed", "results"),), wrong)
        return None

    def shifted(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the bias or the factor, whichever leaves smaller residuals."""
        if view.format.precision < _COARSE:
            return None  # with so few bits, the error bound admits any bias or factor
        found = [each for each in (self.bias(view, product, wrong), self.scale(view, product, wrong)) if each]
        self.tick()
        # A factor has one unknown, and a bias has many. The factor is chosen unless its residuals are clearly larger.
        room = 1 + _SAME / np.sqrt(view.values.size)
        if not found:
            return None
        best = min(found, key=lambda each: each.left / (room if each.evidence[0][0] == "factor" else 1.0))
        if not best.name:
            key, value = best.evidence[0]
            each = "for all elements" if value == "result" else f"per {value}"
            self.doubt = f"a factor of {value}" if key == "factor" else f"a bias (one number {each})"
        return best

    def bias(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for a bias: one number added to all elements of each column or of each row."""
        error, room, sigma = view.errors(product)
        if not np.isfinite(error[view.usable]).all() or self._needs_none(view, product):
            return None
        drifts, found = self.drifts(view, product), []
        means = drift_of(view).bias if product is None and wrong.sum() > _LEAST else (0.0, 0.0)
        for axis, words in ((0, "column"), (1, "row")):
            confirmed = int(wrong.sum()) - int(wrong.any(axis=axis).sum()) >= _LEAST
            if not (confirmed or (drifts and wrong.shape[axis] >= _LONG) or means[axis] > BIAS):
                continue
            # Every element gives a lower and an upper bound of the added number.
            shift, holds = between(error - room, error + room, axis)
            with np.errstate(all="ignore"):
                left = middle(np.abs(error - shift) / sigma)
            everywhere = follows_everywhere(error, np.broadcast_to(shift, error.shape), sigma)
            if holds and everywhere and (confirmed or left <= _CLEARLY):
                alike = bool(np.ptp(shift) <= 8 * float(np.nanmax(sigma)))
                evidence = (
                    ("one number a", "result" if alike else words),
                    ("largest", f"{float(np.abs(shift).max()):.6g}"),
                )
                near = (np.abs(shift) <= self._directed_limit(view)).all()
                has_rival = near and self._has_rival(view, product, shift, axis)
                name = "" if has_rival or self._needs_no_model(view, product) else "bias"
                found.append(Fault(name, (), evidence, wrong, left))
        return min(found, key=lambda each: each.left) if found else None

    def scale(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for one factor of all elements. The fault has no name if truncating sums may explain the factor, too."""
        exact = view.totals.product if product is None else product
        values = np.where(view.usable, view.values, np.nan)
        limit = view.noise.limit(view.totals, product) + view.half
        rough = factor_between(values, exact, limit)
        confirmed = wrong.sum() >= (2 if view.format.precision > _SHORT else 3)
        if not rough or not (confirmed or self.drifts(view, product)):
            return None
        if self._needs_none(view, product):
            return None
        error, room, sigma = view.errors(product, rough)
        if not np.isfinite(error[view.usable]).all():
            return None
        with np.errstate(all="ignore"):
            ends = (rough * exact + error - room) / exact, (rough * exact + error + room) / exact
            zero = exact == 0
            low, high = (np.where(zero, np.nan, end(*ends)) for end in (np.minimum, np.maximum))
        factor, holds = between(low.reshape(-1, 1), high.reshape(-1, 1), 0)
        factor[...] = shortest_between(float(np.nanmax(low)), float(np.nanmin(high))) if holds else factor
        with np.errstate(all="ignore"):
            error = np.abs(error + (rough - factor) * exact)
            left = middle(error / sigma)
        if not holds or (error > room)[view.usable & zero].any() or not (confirmed or left <= _CLEARLY):
            return None
        off = float(factor[0, 0]) - 1
        if abs(off) < view.noise.u / 4:
            return None
        whole, _, sigma = view.errors(product)
        if not follows_everywhere(whole, off * exact, sigma):
            return None
        near = abs(off) <= 1.05 * self.problem.terms * view.noise.u
        has_rival = near and self._has_rival(view, product, off * exact, None)
        name = "" if has_rival or self._needs_no_model(view, product) else "scale"
        return Fault(name, (), (("factor", f"{1 + off:.9g}"),), wrong, left)

    def scattered(self, view: View, wrong: Array) -> Fault | None:
        """Return the wrong elements as a fault if most elements of the result are right."""
        if not wrong.any() or middle(view.fit().z) > NEAR or wrong[view.usable].mean() >= _SCATTERED:
            return None
        return self.placed(view, wrong)

    def of_narrow_sums(self, view: View, format: Format, beyond: Array, by_bits: bool) -> Fault | None:
        """Look for faults beside sums in a narrow format; `beyond` masks the errors too large for the usual format.

        With `by_bits`, the sums must reproduce most elements bit for bit.
        """
        made = whole_sums_in(self.problem, self.side, format)
        if made is not None:
            off = beyond & (made != self.side.values)
            clipped = self.clipped(view, made, off)
            stands = standing_out(self.problem, self.side, off, format)
            return clipped or (self.placed(view, stands) if stands.any() else None)
        if by_bits:
            return None
        wrong = view.fit().wrong
        found = self.transposed(view, wrong) or self.moved(view, None, wrong) or self.clipped(view, None, wrong)
        return found or self.scattered(view, view.fit(times=_SURELY).wrong)

    def placed(self, view: View, wrong: Array) -> Fault:
        """Return the wrong elements as a fault: single elements or rectangles, and whether all of them are zero."""
        places = find_places(wrong)
        name, where = ("elements", indices_of(wrong)) if places is None else (places.name, places.where)
        zero = not view.values[wrong].any()
        boxes = [tuple(slice(*span) for span in box if isinstance(span, tuple)) for box in where]
        if zero and name == "region" and any(view.values[box].any() for box in boxes):
            name, where = "elements", indices_of(wrong)  # the rectangle also has right elements
        more = (("elements", f"{int(wrong.sum()):,}"),) * bool(name == "elements" and wrong.sum() > len(where))
        holds = more + (("holds", "zeros" if zero else "other numbers"),) * (
            name == "region" or (zero and len(where) > 1)
        )
        return Fault(name, where, holds, wrong)

    def combined(self, view: View, narrow: Sequence[View]) -> tuple[Fault, ...] | None:
        """Look for a factor with a bias, or either with wrong elements: in the usual sums, then in narrow ones."""
        found = self._combined(view, narrow, 1.0)
        for each in narrow if found is None else ():
            found = found or self._combined(each, (), _SURELY)
            if found and found[-1].wrong is not None and find_places(found[-1].wrong) is None:
                found = None  # such sums may cause scattered errors themselves
        return found

    def _combined(self, view: View, rivals: Sequence[View], times: float) -> tuple[Fault, ...] | None:
        """Search one view for a factor, a bias or both. No wrong element may lie within the error bound of `rivals`."""
        usable, exact = view.usable, view.totals.product
        if view.format.precision < _COARSE or not usable.any():
            return None
        values, found = np.where(usable, view.values, np.nan), []
        for factor, axis in robust_shifts(values, exact, view.errors()[2]):
            off = np.zeros((1, 1))
            _, room, sigma = view.errors(None, factor)
            with np.errstate(all="ignore"):
                error = values - factor * exact
                if axis is not None:
                    error = error.reshape(-1, 1) if axis == 2 else error
                    off = weighted_median(error, sigma.reshape(error.shape), min(axis, 1) if axis < 2 else 0)
                shift = (factor - 1) * exact + off
                room = times * (room + 2.0**-view.format.precision * np.abs(off))
                telling = float(np.nanmedian(room[usable] / np.abs(factor * exact[usable]))) < _TELLING
                error = np.abs(values - factor * exact - off)
                wrong = usable & ~(error <= room)
                rooms = [np.broadcast_to(_SURELY * each.errors(None, factor)[1], error.shape) for each in rivals]
                clear = all(
                    float(np.nanmedian(np.abs(shift[usable]) / np.maximum(each[usable], 1e-320))) > _FAR / _SURELY
                    for each in (_SURELY * room, *rooms)
                )
            unknowns = (factor != 1) + (0 if axis is None else off.size)
            right = int(usable.sum() - wrong.sum())
            doubted = any((wrong & (error <= each)).any() for each in rooms)
            if (
                clear
                and telling
                and not doubted
                and right >= 4 * unknowns + _LONG
                and wrong.sum() <= _SCATTERED * usable.sum()
            ):
                found.append((wrong, factor, axis, off))
        if not found:
            return None
        least = min(int(each[0].sum()) for each in found)
        wrong, factor, axis, off = next(each for each in found if each[0].sum() <= least + usable.sum() // 100)
        faults = []
        if factor != 1:
            with np.errstate(all="ignore"):
                unsure = float(np.nanmedian(view.errors(None, factor)[2] / np.abs(factor * exact)))
            digits = int(np.clip(-np.log10(max(unsure / usable.sum() ** 0.5, 1e-9)), 2, 9))
            faults.append(Fault("scale", (), (("factor", f"{factor:.{digits}g}"),)))
        if axis is not None:
            one = ("number", number_text(float(off[0, 0])))
            known = (("one number a", _AXES[axis]), *((one,) if axis == 2 else ()))
            faults.append(Fault("bias", (), (*known, ("largest", f"{float(np.abs(off).max()):.6g}"))))
        if wrong.any():
            faults.append(self.placed(view, wrong))
        return tuple(faults)

    def _needs_none(self, view: View, product: Array | None) -> bool:
        """Return whether rounding alone, without a shift, explains the errors."""
        error, room, _ = view.errors(product)
        return bool((np.abs(error) <= room)[view.usable].all()) and not self.drifts(view, product)

    def _directed_limit(self, view: View) -> Array:
        """Return the error bound of sums that are rounded in one direction (toward zero, up or down)."""
        limit: Array = 1.05 * self.problem.terms * view.noise.u * view.totals.size
        return limit

    def _has_rival(self, view: View, product: Array | None, shift: Array, axis: int | None) -> bool:
        """Return whether sums that are rounded in one direction may explain the shift."""
        if self.doubts_all or self._needs_no_model(view, product):
            return True
        if product is not None:  # matrix units round inputs like these models, and truncate the sums
            return axis is None and float(np.nansum(shift * product)) < 0
        return not self.rivals.are_excluded(shift, axis)

    def _needs_no_model(self, view: View, product: Array | None) -> bool:
        """Return whether sums of the unchanged inputs that are rounded in one direction explain all errors."""
        error = np.abs(view.totals.error(view.values))
        return product is not None and bool((error <= self._directed_limit(view))[view.usable].all())

    @cached_property
    def rivals(self) -> ShiftRivals:
        """The alternatives to a shift: sums of these inputs that are rounded in one direction."""
        return ShiftRivals(self.problem, self.side, self.tick)

    def drifts(self, view: View, product: Array | None) -> bool:
        """Return whether the median error is too large for rounding, even if every single error is within its bound."""
        return int(view.usable.sum()) >= ENOUGH and middle(view.fit(product).z) > NEAR

    def moved(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for rows or columns of the result that hold another row or column of the product."""
        if product is not None:
            return None
        exact = view.totals.product
        everything = [np.arange(count) for count in wrong.shape]
        for name, turned, axis in (("rows-moved", False, 0), ("columns-moved", True, 1)):
            values, goal, mask = (each.T if turned else each for each in (view.values, exact, wrong))
            # A shift of rows leaves rows of zeros at an edge. They match no row of the product.
            off, filled = (np.asarray(each.any(axis=1)) for each in (mask, values))
            zero = off & ~filled
            to = moved_rows(values, goal, off & filled)
            if to is None or goal.shape[1] < 2:
                continue
            at = np.flatnonzero(to != np.arange(len(to)))
            index = list(everything)
            index[axis] = to
            left = view.against(view.totals.take(*index)).fit().wrong
            if (mask & ~zero[:, None]).sum() >= len(at) + _LEAST and not (left.T if turned else left)[~zero].any():
                pairs = tuple((int(i), int(to[i])) for i in at)
                kind = "copied" if len(set(to[~zero].tolist())) < (~zero).sum() else "permuted"
                noun = name.partition("-")[0]
                zeros = ((f"{noun} of zeros", ", ".join(map(str, np.flatnonzero(zero).tolist()))),) * bool(zero.any())
                return Fault(name, pairs, (("kind", kind), *zeros), wrong)
        return None

    def terms(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Look for terms of the sums that were omitted or added more than once."""
        x, y = self.problem.x, self.problem.y
        if product is not None or wrong.sum() < _LEAST:
            return None
        error = np.where(view.usable, view.totals.error(view.values), np.nan)
        limit = view.noise.limit(view.totals) + view.half
        ranged = term_range(x, y, error, limit)
        if ranged is not None and ranged[1] - ranged[0] < self.problem.terms:
            first, stop, times = ranged
            extra = times * (x[:, first:stop] @ y[first:stop])
            if not view.fit(view.totals.product + extra).wrong.any():
                name = "terms-missing" if times < 0 else "terms-twice"
                return Fault(name, ((first, stop),), (("terms", str(stop - first)),), wrong)
        counts = term_counts(x, y, error)
        if (
            counts is not None
            and not (counts == -1).all()
            and not view.fit(view.totals.product + (x * counts) @ y).wrong.any()
        ):
            at = np.flatnonzero(counts)
            name = "terms-missing" if (counts[at] < 0).all() else "terms-twice"
            evidence = (("terms", str(len(at))),)
            return Fault(name, tuple((int(k), int(k) + 1) for k in at), evidence, wrong)
        return None

    def left(self, view: View, product: Array | None) -> float:
        """Return the median error, in sigmas, that remains after subtracting the best bias or factor."""
        error, _, sigma = view.errors(product)
        with np.errstate(all="ignore"):
            lefts = [middle(np.abs(error - weighted_median(error, sigma, axis)) / sigma) for axis in (0, 1)]
        exact = view.totals.product if product is None else product
        factor = factor_between(np.where(view.usable, view.values, np.nan), exact, sigma)
        if factor:
            error, _, sigma = view.errors(product, factor)
            with np.errstate(all="ignore"):
                lefts.append(middle(np.abs(error) / sigma))
        return min(lefts)

    def transposed(self, view: View, wrong: Array) -> Fault | None:
        """Return the fault if the result is a product of transposed or swapped factors, or the transposed product."""
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
