"""Search for shifts: a bias that is added to the elements of a result, or a factor of all elements.

Some elements may have errors that the shift does not explain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.epilogue.added_bias import limit_with_bias
from floatlab.reduce.explain.epilogue.given_bias import fate_of_bias
from floatlab.reduce.explain.estimates import (
    PROVED,
    between,
    equal_ratio,
    factor_between,
    likeliest_factor,
    line_factors,
    robust_shifts,
    shift_bits,
    shortest_between,
    weighted_median,
    within,
)
from floatlab.reduce.explain.faults.patterns import BIAS, drift_of, live_z
from floatlab.reduce.explain.faults.rivals import ShiftRivals
from floatlab.reduce.explain.faults.shared import (
    fits_any_change,
    fits_any_line,
    may_be_changed_input,
    may_be_rounded_inputs,
    may_be_rounding,
)
from floatlab.reduce.explain.findings import ENOUGH, NEAR, SINGLE, Fault, number_text, placed
from floatlab.reduce.explain.problem import ProductProblem, Side, View, middle
from floatlab.reduce.explain.residuals import find_places, follows_everywhere, is_flat, share_of

_LONG = 8  # smallest number of elements along an axis whose mean error can show a bias
_CLEARLY = 1.2  # largest median error, in sigmas, that a fault may leave if single elements do not confirm it
_COARSE = 8  # a bias or a factor is looked for only in results with at least this many significant bits
_SHORT = 11  # up to this many significant bits, a factor needs 3 wrong elements as evidence; above, it needs 2
_LEAST = 3  # a fault must explain at least this many more elements than it has free parameters
_SIGNIFICANT = 6.0  # a bias is significant if one sign of the errors prevails by this many standard deviations
_VISIBLE = 0.25  # a bias is visible without statistics if it changes more than this share of the numbers by over 1 ulp
_SCATTERED = 0.4  # largest share of elements that may be wrong in a result that is otherwise right or shifted
_FAR = 4.0  # if some elements are also wrong, the median shift must be at least this many error bounds
_TELLING = 0.5  # if the median error bound is a larger share of the product than this, any shift would fit
_SMALLER = 0.5  # a model explains a result if it leaves less than this share of the median error of the plain product
_SURELY = 3.0  # if sums may be narrow, an element is wrong only if its error exceeds this many of their error bounds
# In results of at most _ADJUSTED elements, the estimated bias is adjusted. Factor and bias are estimated _TURNS times.
_ADJUSTED, _TURNS = 1 << 18, 3
_ROUND = 1e-3  # if there is also a bias, the first estimate of a factor is rounded, changing by at most this share
_AXES = ("column", "row", "result")
CUT = "inputs that were cut off to fewer digits"


class ShiftFinder:
    """Searches a result for a bias or a factor.

    A shift is an array of the errors that a bias or a factor would cause.
    """

    def __init__(self, problem: ProductProblem, side: Side, tick: Callable[[], None]) -> None:
        """Take the inputs and the result."""
        self.problem, self.side, self.tick = problem, side, tick
        self.doubts_all = True  # if true, every shift that directed rounding could cause counts as ambiguous
        self.doubt = ""  # the last shift that was not reported because it is ambiguous
        self.rival = ""  # the computation that may have caused `doubt`; if empty, sums rounded in one direction

    def shifted(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the bias or the factor, whichever leaves smaller residuals; None if neither fits."""
        if view.format.precision < _COARSE or is_flat(view.totals.product) or is_flat(view.values):
            return None  # with so few bits, or so few different numbers, any bias or factor fits
        found = self._shifted(view, product, wrong)
        if found is None and product is None:
            found = next(filter(None, (self._shifted(stored, None, wrong) for stored in view.stored())), None)
        return found

    def _shifted(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        found = [each for each in (self.bias(view, product, wrong), self.scale(view, product, wrong)) if each]
        self.tick()
        # A factor has one free parameter, and a bias has many. The factor is chosen unless its residuals are clearly
        # larger.
        room = equal_ratio(view.values.size)
        if not found:
            return None
        best = min(found, key=lambda each: each.left / (room if each.evidence[0][0] == "factor" else 1.0))
        if not best.name:
            key, value = best.evidence[0]
            each = "for all elements" if value == "result" else f"per {value}"
            self.doubt = f"a factor of {value}" if key == "factor" else f"a bias (one number {each})"
        return best

    def bias(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if a bias explains all errors: one number added to each column or to each row; else None.

        The name of the fault is empty if a computation without a bias may also explain the errors.
        """
        error, room, sigma = view.errors(product)
        if not np.isfinite(error[view.usable]).all() or self._needs_none(view, product):
            return None
        if fate := fate_of_bias(self.problem, view, product, wrong):
            return Fault("bias", (), (("the given bias", fate),), wrong)
        drifts, found = self.drifts(view, product), []
        means = drift_of(view).bias if product is None and wrong.sum() > _LEAST else (0.0, 0.0)
        for axis, words in ((0, "column"), (1, "row")):
            if fits_any_line(self.problem, axis):
                continue  # one number per line explains any change of the other input
            if _is_constant(view.values, axis, room) and not _is_constant(view.totals.product, axis, room):
                continue  # one number per line fits any product
            confirmed = int(wrong.sum()) - int(wrong.any(axis=axis).sum()) >= _LEAST
            if not (confirmed or (drifts and wrong.shape[axis] >= _LONG) or means[axis] > BIAS):
                continue
            # Every element gives a lower and an upper bound of the added number.
            allowed = room
            shift, holds = between(error - room, error + room, axis)
            if not holds and (product is None or self._is_better(view, product, axis)):
                shift = weighted_median(error, sigma, axis)
                limit = limit_with_bias(self.problem, view, shift, axis, np.abs(error - shift))
                allowed = np.maximum(room, limit + view.half)
                shift, holds = between(error - allowed, error + allowed, axis)
            if not holds:
                continue
            rest = np.abs(error - shift)
            with np.errstate(all="ignore"):
                left = middle(rest / sigma)
            everywhere = follows_everywhere(error, np.broadcast_to(shift, error.shape), sigma)
            if self._is_hidden(view, error, axis):
                continue
            is_rounding = may_be_rounding(view, self.problem.x, self.problem.y, shift, axis, product)
            no_wrong = np.zeros_like(wrong)  # a bias leaves no wrong element
            if product is None and may_be_changed_input(self.problem, view, shift, axis, rest, allowed, no_wrong):
                continue
            if everywhere and not is_rounding and (confirmed or left <= _CLEARLY):
                alike = bool(np.ptp(shift) <= 8 * float(np.nanmax(sigma)))
                if alike and isinstance(view.half, np.ndarray):  # the output is narrow, so sigma is too small a measure
                    alike = between((error - room).reshape(-1, 1), (error + room).reshape(-1, 1), 0)[1]
                evidence = (
                    ("one number a", "result" if alike else words),
                    ("largest", f"{float(np.abs(shift).max()):.6g}"),
                )
                near = (np.abs(shift) <= self.directed_limit(view)).all()
                has_rival = near and self._has_rival(view, product, shift, axis)
                has_rival = has_rival or (product is None and self._may_be_cut(view, shift, True))
                name = "" if has_rival or self._needs_no_model(view, product) else "bias"
                found.append(Fault(name, (), evidence, wrong, left))
        return min(found, key=lambda each: each.left) if found else None

    def _is_better(self, view: View, product: Array, axis: int) -> bool:
        """Return whether a model's product plus a bias leaves far smaller errors than the plain product plus a bias."""
        lefts = []
        for error, _, sigma in (view.errors(product), view.errors()):
            lefts.append(middle(np.abs(error - weighted_median(error, sigma, axis))))
        return lefts[0] < _SMALLER * lefts[1]

    def _is_hidden(self, view: View, error: Array, axis: int) -> bool:
        """Return whether the errors give no evidence of a bias because the output format is narrow.

        This is the case if few errors exceed one ulp, and if the signs of the errors are as balanced as without a bias.
        """
        if not isinstance(view.half, np.ndarray):
            return False
        if share_of((np.abs(error) > 2 * view.half)[view.usable]) > _VISIBLE:
            return False
        signs = np.where(view.usable, np.sign(error), 0.0)
        counts = np.maximum((signs != 0).sum(axis=axis), 1)
        # If both signs are equally likely, these are squares of standard normal variables.
        squares = signs.sum(axis=axis) ** 2 / counts
        return float((squares - 1).sum()) <= _SIGNIFICANT * float(np.sqrt(2 * squares.size))

    def scale(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if one factor of all elements explains all errors, or else None.

        The name of the fault is empty if sums that are rounded toward zero, or truncated inputs, may also explain the
        errors.
        """
        exact = view.totals.product if product is None else product
        if is_flat(np.abs(exact)):
            return None
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
        if not holds or (np.abs(error) > room)[view.usable & zero].any():
            return None
        least, most = likeliest_factor(rough, error[view.usable], exact[view.usable], sigma[view.usable])
        first, last = max(float(np.nanmax(low)), least), min(float(np.nanmin(high)), most)
        factor[...] = shortest_between(first, last) if first <= last else factor
        with np.errstate(all="ignore"):
            error = np.abs(error + (rough - factor) * exact)
            left = middle(error / sigma)
        if not (confirmed or left <= _CLEARLY):
            return None
        off = float(factor[0, 0]) - 1
        if may_be_rounded_inputs(self.problem, off):
            return None
        if may_be_rounding(view, self.problem.x, self.problem.y, off * exact, None):
            return None
        whole, _, sigma = view.errors(product)
        if not follows_everywhere(whole, off * exact, sigma):
            return None
        near = abs(off) <= 1.05 * self.problem.terms * view.noise.u
        has_rival = near and self._has_rival(view, product, off * exact, None)
        has_rival = has_rival or (product is None and self._may_be_cut(view, off * exact))
        name = "" if has_rival or self._needs_no_model(view, product) else "scale"
        return Fault(name, (), (("factor", f"{float(factor[0, 0]):.9g}"),), wrong, left)

    def combined(self, view: View, narrow: Sequence[View]) -> tuple[Fault, ...] | None:
        """Return the faults if a factor, a bias or both explain all errors, except those of some wrong elements.

        `view` has the error bounds of the usual accumulator, and the views in `narrow` have the larger error bounds of
        sums in narrower formats. If the error of a wrong element is within these larger bounds, sums in a narrower
        format may explain it. A factor or bias is then accepted only if the evidence for it is a proof (at least
        `PROVED` bits), and the wrong elements form rectangles or are few. Return None if no factor or bias is accepted.
        """
        if self._needs_no_shift(view):
            return None
        found = self._combined(view, narrow)
        for stored in view.stored():
            if found is None or found[-1].name not in ("scale", "bias"):
                again = self._combined(stored, narrow)
                found = again if again is not None and (found is None or len(again) < len(found)) else found
        return found

    def _combined(self, view: View, rivals: Sequence[View]) -> tuple[Fault, ...] | None:
        usable, exact = view.usable, view.totals.product
        if view.format.precision < _COARSE or not usable.any() or is_flat(np.abs(exact)) or is_flat(view.values):
            return None
        values, found = np.where(usable, view.values, np.nan), []
        sigma = view.errors()[2]
        options: list[tuple[float | Array, int | None, bool]] = []
        for each, axis in robust_shifts(values, exact, sigma):
            options += [(each, axis, refined) for refined in (False, True) if not refined or each != 1]
        options += [(each, None, True) for each in line_factors(values, exact, sigma)]
        for first, axis, refined in options:
            factor, off = self._estimated(view, values, first, axis, refined)
            _, room, sigma = view.errors(None, factor)
            with np.errstate(all="ignore"):
                axis = axis if off.any() else None
                shift = (factor - 1) * exact + off
                room = room + 2.0**-view.format.precision * np.abs(off)
                error = np.abs(values - factor * exact - off)
                if axis is not None:
                    with_bias = limit_with_bias(self.problem, view, off / factor, axis, error / np.abs(factor))
                    room = np.maximum(room, abs(factor) * with_bias + view.half)
                telling = middle(room[usable] / np.abs((factor * exact)[usable])) < _TELLING
                wrong = usable & ~(error <= room)
                rooms = [np.broadcast_to(_SURELY * each.errors(None, factor)[1], error.shape) for each in rivals]
                clear = all(
                    _FAR / _SURELY < middle(np.abs(shift[usable]) / np.maximum(each[usable], 1e-320)) < np.inf
                    for each in (_SURELY * room, *rooms)
                )
            factors = factor.size if isinstance(factor, np.ndarray) else int(factor != 1)
            unknowns = factors + (0 if axis is None else off.size)
            right = int((usable & ~wrong & (shift != 0)).sum())  # a factor does not show in sums of zeros
            doubted = any((wrong & (error <= each)).any() for each in rooms)
            places = find_places(wrong)
            if fits_any_change(self.problem, factor, axis, usable & ~wrong):
                continue
            along = int(factor.shape[1] == 1) if isinstance(factor, np.ndarray) else axis
            if along in (0, 1) and may_be_changed_input(self.problem, view, shift, along, error, room, wrong):
                continue
            if places is None and self._may_be_cut(view, shift, bool(wrong.any())):
                continue
            is_likely = min(right, self.problem.independent) >= 4 * unknowns + _LONG
            is_likely = is_likely and clear and telling and not doubted
            left = float(np.median((error / room)[wrong])) if wrong.any() else np.inf
            evidence = shift_bits(self.problem.independent, shift, room, usable & ~wrong, unknowns, left)
            is_proved = evidence >= PROVED and (places is not None or not wrong.any())
            if (is_likely or is_proved) and wrong.sum() <= _SCATTERED * usable.sum():
                found.append((wrong, factor, axis, off, unknowns))
        if not found:
            return None
        # Each free parameter must explain a few more elements.
        wrong, factor, axis, off, _ = min(found, key=lambda each: int(each[0].sum()) + _LEAST * each[-1])
        faults = []
        if isinstance(factor, np.ndarray):
            faults.append(Fault("scale", (), (("factor", f"one factor per {_AXES[factor.shape[1] == 1]}"),)))
        elif factor != 1:
            with np.errstate(all="ignore"):
                unsure = float(np.nanmedian(view.errors(None, factor)[2] / np.abs(factor * exact)))
            digits = int(np.clip(-np.log10(max(unsure / usable.sum() ** 0.5, 1e-9)), 2, 9))
            faults.append(Fault("scale", (), (("factor", f"{factor:.{digits}g}"),)))
        if axis is not None:
            one = ("number", number_text(float(off[0, 0])))
            known = (("one number a", _AXES[axis]), *((one,) if axis == 2 else ()))
            faults.append(Fault("bias", (), (*known, ("largest", f"{float(np.abs(off).max()):.6g}"))))
        if wrong.any():
            faults.append(self.rest(view, factor, off, wrong))
        return tuple(faults)

    def _estimated(
        self, view: View, values: Array, factor: float | Array, axis: int | None, refined: bool
    ) -> tuple[float | Array, Array]:
        """Return a factor and a bias that fit as many elements as possible. `factor` is the first estimate.

        If `refined` is true, both are estimated alternately, because an error in one of them changes the other.
        """
        exact, off = view.totals.product, np.zeros((1, 1))
        if axis is not None and refined:
            ends = float(factor) * (1 - _ROUND), float(factor) * (1 + _ROUND)
            factor = shortest_between(min(ends), max(ends))
        for _ in range(_TURNS if refined else 1):
            _, room, sigma = view.errors(None, factor)
            room = room + 2.0**-view.format.precision * np.abs(off)
            if axis is None or refined:
                with np.errstate(all="ignore"):
                    factor = within(factor, values - off, exact, room)
            if axis is None:
                break
            with np.errstate(all="ignore"):
                error = values - factor * exact
            error = error.reshape(-1, 1) if axis == 2 else error
            off = weighted_median(error, sigma.reshape(error.shape), min(axis, 1) if axis < 2 else 0)
            if isinstance(view.half, np.ndarray) and view.values.size <= _ADJUSTED:
                room = np.broadcast_to(room, values.shape).reshape(error.shape)
                start = off if off.size > 1 else float(off[0, 0])
                off = np.reshape(within(start, error, np.ones(error.shape), room), off.shape)
        return factor, off

    def rest(self, view: View, factor: float | Array, off: Array, wrong: Array) -> Fault:
        """Return the fault of the elements that remain wrong after a factor and a bias `off` are taken into account."""
        return placed(view, wrong)

    def _needs_none(self, view: View, product: Array | None) -> bool:
        """Return whether rounding alone, without a shift, explains the errors."""
        error, room, _ = view.errors(product)
        return bool((np.abs(error) <= room)[view.usable].all()) and not self.drifts(view, product)

    def directed_limit(self, view: View) -> Array:
        """Return the error bound of sums that are rounded in one direction (toward zero, up or down)."""
        limit: Array = 1.05 * self.problem.terms * view.noise.u * view.totals.size
        return limit

    def _has_rival(self, view: View, product: Array | None, shift: Array, axis: int | None) -> bool:
        """Return whether sums that are rounded in one direction may explain the shift."""
        if self.doubts_all or self._needs_no_model(view, product):
            return True
        # Matrix units that round inputs like these models also truncate sums, which looks like a factor below 1.
        if product is not None:
            return axis is None and float(np.nansum(shift * product)) < 0
        return not self.rivals.are_excluded(shift, axis)

    def _may_be_cut(self, view: View, shift: Array, is_likely: bool = False) -> bool:
        """Return whether a shift may be due to truncated inputs. If so, this cause is stored in `rival`.

        Programs that compute binary64 products from slices of digits truncate inputs. So results that are more precise
        than binary32 are always examined. Others are examined only if `is_likely` is true: for a bias, or for a result
        with wrong elements, but not for a factor alone.
        """
        is_likely = is_likely or view.format.precision > SINGLE.precision
        is_cut = is_likely and self.rivals.are_inputs_cut(shift)
        self.rival = CUT if is_cut else self.rival
        return is_cut

    def _needs_no_model(self, view: View, product: Array | None) -> bool:
        """Return whether the errors need no model, although `product` is the product of a model of the inputs.

        This is the case if all errors against the exact product are within the bound of sums that are rounded in one
        direction. Return False if `product` is None.
        """
        return product is not None and self._needs_no_shift(view)

    def _needs_no_shift(self, view: View) -> bool:
        """Return whether all errors are within the bound of sums that are rounded in one direction."""
        error = np.abs(view.totals.error(view.values))
        return bool((error <= self.directed_limit(view))[view.usable].all())

    @cached_property
    def rivals(self) -> ShiftRivals:
        """The alternatives to a shift: sums of these inputs that are rounded in one direction."""
        return ShiftRivals(self.problem, self.side, self.tick)

    def drifts(self, view: View, product: Array | None) -> bool:
        """Return whether the median error is too large for rounding, even if every single error is within its bound."""
        return int(view.usable.sum()) >= ENOUGH and live_z(view, view.fit(product)) > NEAR


def _is_constant(values: Array, axis: int, room: Array) -> bool:
    """Return whether the numbers along an axis are equal, up to errors as large as `room`, in every row or column."""
    with np.errstate(all="ignore"):
        return bool((np.abs(values - values.take([0], axis)) <= 2 * room).all())
