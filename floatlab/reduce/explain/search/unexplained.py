"""Search for an explanation of a result that no single model and no single fault explains."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.epilogue.functions import function_of
from floatlab.reduce.explain.estimates import equal_ratio, factor_between, weighted_median
from floatlab.reduce.explain.faults.certain import beyond_rounding
from floatlab.reduce.explain.faults.finder import all_zero
from floatlab.reduce.explain.faults.moved import similar_lines
from floatlab.reduce.explain.faults.patterns import (
    BITS_EACH,
    BITS_OF_SUMS,
    are_among_others,
    are_exact,
    are_live,
    evidence_bits,
    is_apart,
)
from floatlab.reduce.explain.faults.unrelated import is_shifted, unrelated, unrelated_share
from floatlab.reduce.explain.findings import (
    ENOUGH,
    NEAR,
    Fault,
    SideExplanation,
    placed,
)
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.precision.narrow import narrow_formats
from floatlab.reduce.explain.precision.sampled_models import far_replay
from floatlab.reduce.explain.precision.scaled import best_scaled, is_factor_alone, is_stored_scale
from floatlab.reduce.explain.problem import Fit, View, middle, view_of
from floatlab.reduce.explain.residuals import (
    find_places,
    have_few_digits,
    mask_of,
    share_of,
)
from floatlab.reduce.explain.search.models import GAIN, ModelSearch
from floatlab.reduce.explain.stages import PLAIN, Model

_MOST_WRONG = 0.5  # if a larger share is wrong, the result is reported as another product
_MOST_OF_FEW = 0.7  # the same share if a result has too few elements for a reliable median
_MOST_OF_ALL = 0.75  # rectangles with a larger share of the elements are not reported as wrong regions
_RIGHT = 0.2  # if more than this share of the elements is right, the result is not reported as another product
_LOOSE = 1.5  # an estimated shift may leave errors of up to this many error bounds
_LISTED = 16  # up to this many wrong elements are listed even if they are most elements of the result


class UnexplainedSearch(ModelSearch):
    """Searches for the explanation of a result that the other searches do not explain."""

    def _unexplained(self) -> SideExplanation:
        """Return the first explanation that fits, or the status "unknown".

        Every search gets `view`, which compares the result with the exact product, and `fit`, the errors in this view.
        """
        view = self.plain
        fit = view.fit()
        for search in (
            self._as_function,
            self._combined,
            self._far_models,
            self._truncated,
            self._doubtful_faults,
            self._scaled,
            self._scattered,
            self._two_faults,
            self._part_without_terms,
            self._unrelated,
            self._region,
            self._exact_errors,
            self._beyond_rounding,
        ):
            self.tick()
            if (found := search(view, fit)) is not None:
                return found
        return self._found("unknown", (), z=fit.z, view=view)

    def _bug(self, view: View, *faults: Fault) -> SideExplanation:
        """Return an explanation with the status "bug": the result is the plain product with the given faults."""
        return self._found("bug", faults, view=view)

    def _as_function(self, view: View, fit: Fit) -> SideExplanation | None:
        """Return the explanation if the result is a function of the product, such as a GELU."""
        applied = function_of(view, self.side.format, fit.wrong)
        return self._bug(view, Fault("function-applied", (), (("function", applied),))) if applied else None

    def _combined(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by a factor, a bias, or both; some elements may also be wrong.

        Return None if this fails.
        """
        for accumulator in self.accumulators:
            usual = view_of(self.problem, self.side, accumulator)
            if (both := self.faults.combined(usual, self._narrow_views)) is not None:
                return self._found("bug", both, PLAIN, accumulator, None, usual)
        return None

    def _far_models(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by a computation that gives all its bits, although the errors are large.

        Return None if no such computation is found.
        """
        far = None if self.stray.any() else far_replay(self.problem, self.side, view, self.options, self.tick)
        if far is None:
            return None
        status, product = ("rounding", self.problem.whole(far[1])) if far[0] or far[1].name else ("product", None)
        return self._found(status, *far, self.accumulators[0], None, view, product)

    def _truncated(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by truncated sums that give all bits, except those of a few elements far beyond rounding.

        Return None if there are no such sums.
        """
        if self.stray.any() or not fit.wrong.any():
            return None
        found = grid_of(self.problem, PLAIN, self.side.rounded_to, self.tick).truncated_except_few(self.side)
        if found is None or (places := find_places(found[1])) is None:
            return None
        way, missed = found
        far = np.abs(view.totals.error(view.values)) > 2 * self.faults.directed_limit(view)
        least = BITS_OF_SUMS + BITS_EACH * places.count
        if not far[missed].all() or evidence_bits(view, ~missed, self.side.rounded_to) < least:
            return None
        sums = Fault("accumulator", (), (("computed as", way.text),))
        return self._bug(view, placed(view, missed), sums)

    def _doubtful_faults(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by a fault of all elements.

        Sums that are rounded in one direction can look like a bias or a factor. Earlier searches treat every such bias
        or factor as ambiguous. This search treats only some of them as ambiguous. If another explanation fits equally
        well, the status is "unknown". Return None if no such fault fits.
        """
        if not self.faults.doubt:
            return None  # without an ambiguous bias or factor, this search would repeat an earlier one
        self.faults.doubts_all, self.faults.doubt = False, ""
        found = self._with_all_wrong()
        if found is None and self.faults.doubt:
            found = self._found("unknown", (), z=fit.z, view=view)
            return found.replace(doubt=self.faults.doubt, rival=self.faults.rival)
        return found

    def _scaled(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by quantised inputs. The scales are estimated from the result.

        Return None if this fails.
        """
        model = best_scaled(self.problem, self.side, self.tick)
        if model is None:
            return None
        found = (self._verified(model, each, False) for each in self.accumulators)
        return next((each for each in found if each is not None), None)

    @property
    def _narrow_views(self) -> list[View]:
        """Views of the result whose error limits allow for sums in a 16-bit format: one view for each such format."""
        formats = narrow_formats(self.side, self.accumulators[0])
        return [view_of(self.problem, self.side, each) for each in formats]

    def _scattered(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by wrong elements.

        The sums of all other elements are in the usual format or a 16-bit format. Return None if this fails.
        """
        narrow, wrong = self._narrow_views, fit.wrong
        outdone = any(2 * each.fit().wrong.sum() < wrong.sum() for each in narrow)
        scattered = None if outdone else self.faults.scattered(view, wrong)
        for format, each in zip(narrow_formats(self.side, self.accumulators[0]), narrow, strict=True):
            fault = self.faults.of_narrow_sums(each, format, wrong, scattered is not None)
            if fault is not None:
                return self._found("bug", (fault,), PLAIN, format, None, each)
        is_clear = are_among_others(view, wrong) or not view.values[wrong].any()
        return self._bug(view, scattered) if scattered is not None and is_clear else None

    def _part_without_terms(self, view: View, fit: Fit) -> SideExplanation | None:
        part = self.faults.part_without_terms(view, fit.wrong)
        return None if part is None else self._bug(view, part)

    def _unrelated(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain a result that is unrelated to the product, everywhere or within rectangles; otherwise return None."""
        known = unrelated(self.problem, view, self.side)
        if not known:
            return None
        if (moved := similar_lines(view, fit.wrong)) is not None:
            return self._bug(view, moved)
        if (region := self.faults.region_alone(view, fit.wrong)) is not None:
            return self._bug(view, region)
        if share_of(~fit.wrong[are_live(view)]) > _RIGHT:
            return None
        return self._bug(view, all_zero(view, fit.wrong) or Fault("not-the-product", (), known))

    def _region(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by wrong rectangles.

        Return None if the wrong elements form no rectangles, or if at least half of the elements are wrong.
        """
        some = are_live(view)
        places = find_places(fit.wrong)
        if places is None or places.name != "region" or fit.wrong[some].sum() >= _MOST_WRONG * some.sum():
            return None
        return self._found("bug", (placed(view, fit.wrong),), z=fit.z, view=view)

    def _exact_errors(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by wrong elements whose sums are exact in every order of addition, or return None."""
        whole = have_few_digits(self.problem.x) and have_few_digits(self.problem.y)
        if not are_exact(view, fit.wrong) or not (whole or are_among_others(view, fit.wrong)):
            return None
        return self._found("bug", (self._placed(view, fit.wrong),), z=fit.z, view=view)

    def _beyond_rounding(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by elements that are certainly wrong: low precision cannot cause such large errors.

        Return None if there are no such elements, or if the result resembles the product after a number is subtracted
        from each column or each row.
        """
        wrong, some = fit.wrong, are_live(view)
        certain = beyond_rounding(self.problem, view, 2.0**self.side.format.emin)
        if not certain.any() or is_shifted(self.problem, view, self.side):
            return None
        fault = self._placed(view, certain)
        least = _MOST_WRONG if view.values.size >= ENOUGH else _MOST_OF_FEW
        if unrelated_share(view, ~certain) >= least and share_of(wrong[some]) >= least:
            fault = Fault("not-the-product", (), (("wrong elements", f"at least {int(certain.sum()):,}"),))
        elif (wrong & ~certain).any():
            fault = fault.replace(evidence=(*fault.evidence, ("others", "off by more than rounding, too")))
        return self._bug(view, fault)

    def _placed(self, view: View, wrong: Array) -> Fault:
        """Return the fault that lists the wrong elements, or the rectangles that they form.

        If more than half of the elements (and more than 16) would be listed, rectangles are named instead if they cover
        at most 75 % of the result. If there are no such rectangles, the fault is `not-the-product`.
        """
        fault, count = placed(view, wrong), int(wrong.sum())
        if fault.name == "elements" and count > max(_LISTED, _MOST_WRONG * view.usable.sum()):
            places = find_places(wrong, _MOST_WRONG)
            if places is not None and share_of(mask_of(places.where, wrong.shape)) <= _MOST_OF_ALL:
                return Fault(places.name, places.where, (("holds", "other numbers"),), wrong)
            return Fault("not-the-product", (), (("wrong elements", f"{count:,} of {wrong.size:,}"),))
        return fault

    def _with_all_wrong(self) -> SideExplanation | None:
        """Explain the result by a fault that changes all elements of the plain product or of a model's product."""
        for accumulator in self.accumulators:
            view = view_of(self.problem, self.side, accumulator)
            wrong = view.fit().wrong
            fault = self.faults.transposed(view, wrong) or self._fault(view, None, wrong)
            if fault is not None and fault.name:
                return self._found("bug", (fault,), PLAIN, accumulator, None, view)
        for model, accumulator in self._shifted_models:
            product = None if model is PLAIN else self.problem.whole(model)
            view = self._view(accumulator, model, product)
            wrong = view.fit(product).wrong
            fault = self.faults.shifted(view, product, wrong)
            if fault is not None and model is not PLAIN and not self._improves(view, fault):
                continue
            if fault is not None and model.name == "inputs-quantized" and is_stored_scale(fault):
                return self._found("rounding", (), model, accumulator, None, view, product)
            alone = fault is not None and is_factor_alone(view, fault)
            if fault is not None and fault.name and self._is_certain(view, product, wrong):
                kept = (PLAIN, None) if alone else (model, product)
                return self._found("bug", (fault,), kept[0], accumulator, None, view, kept[1])
        return None

    @cached_property
    def _shifted_models(self) -> list[tuple[Model, Format]]:
        """The six likeliest models, with accumulators, that a bias or a factor might complete."""
        found = []
        for each in self.options:
            self.tick()
            left = _shift_left(each.view, each.product)
            # A model that barely changes the product is no alternative to the plain product.
            if left <= NEAR and (each.model is PLAIN or is_apart(each)) and each.view.usable.sum() > GAIN:
                found.append((each.model.weight, left, each.model, each.accumulator))
        return [(model, accumulator) for _, _, model, accumulator in sorted(found, key=lambda each: each[:2])[:6]]

    def _improves(self, view: View, fault: Fault) -> bool:
        """Return whether a model and a fault explain more than a bias or a factor of the plain product does."""
        room = equal_ratio(view.values.size)
        return fault.left * room < _shift_left(view, None) or not _shift_fits(view)


def _shift_left(view: View, product: Array | None) -> float:
    """Return the median error, in sigmas, that remains after subtracting the best bias or factor."""
    with np.errstate(all="ignore"):
        return min(middle(np.abs(error) / sigma) for error, _, sigma in _shift_residuals(view, product))


def _shift_fits(view: View) -> bool:
    """Return whether a bias or a factor explains all errors against the plain product."""
    residuals = _shift_residuals(view, None)
    return any((np.abs(error) <= _LOOSE * room)[view.usable].all() for error, room, _ in residuals)


def _shift_residuals(view: View, product: Array | None) -> Iterator[tuple[Array, Array, Array]]:
    """Yield the errors, their limits and their sigmas after subtracting a bias per column, a bias per row, or a factor.

    The bias or factor is estimated with medians.
    """
    error, room, sigma = view.errors(product)
    yield from ((error - weighted_median(error, sigma, axis), room, sigma) for axis in (0, 1))
    exact = view.totals.product if product is None else product
    if factor := factor_between(np.where(view.usable, view.values, np.nan), exact, sigma):
        yield view.errors(product, factor)
