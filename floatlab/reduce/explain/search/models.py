"""Search for models of the inputs that explain a result, with or without a fault, and verify them on all elements."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from itertools import chain
from math import log2
from typing import cast

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.epilogue.given_bias import lines_of_bias
from floatlab.reduce.explain.estimates import shift_bits
from floatlab.reduce.explain.faults.patterns import BITS_OF_SUMS, explains_more, is_nearer, live_z, outdoing
from floatlab.reduce.explain.faults.rivals import narrow_share
from floatlab.reduce.explain.findings import (  # fmt: skip
    MOVED,
    NEAR,
    Fault,
    SampledModel,
    SideExplanation,
    placed,
)
from floatlab.reduce.explain.input_changes.alike_formats import is_same_rounding, with_formats
from floatlab.reduce.explain.input_changes.pairs import (
    ChangePair,
    alike_pairs,
    likely_pairs,
    single_changes,
    with_equals,
)
from floatlab.reduce.explain.input_changes.telling import gives_numbers, is_telling
from floatlab.reduce.explain.input_changes.with_faults import fault_beside, models_with_fault
from floatlab.reduce.explain.movements.lines import moved_lines
from floatlab.reduce.explain.movements.reread import readings
from floatlab.reduce.explain.precision.narrow import narrow_sums
from floatlab.reduce.explain.precision.parts import parts_in_another_precision, rectangles_without
from floatlab.reduce.explain.precision.sampled_models import likely_models
from floatlab.reduce.explain.precision.scaled import explains_enough, is_factor_alone, may_be_flipped
from floatlab.reduce.explain.problem import Fit, ProductProblem, Side, View, view_of
from floatlab.reduce.explain.residuals import find_places, share_of
from floatlab.reduce.explain.search.report import SideReport
from floatlab.reduce.explain.shrinking import with_changed_terms
from floatlab.reduce.explain.stages import ALIKE, PLAIN, Model
from floatlab.reduce.results.diagnosis_record import Place

# If narrower sums also fit, a fault is reported only if far fewer elements are wrong than such sums would make wrong:
# at most _SURPRISING times their share in a simulation.
_SURPRISING = 0.2
_BESIDES = 3  # with at most this many models, moved rows and missing terms are searched for on all elements
_BESIDE_TURNED = {"elements", "region", "inputs-rounded", "inputs-quantized", "inputs-split", "output-rounded"}
_EDGES = 4
_TRIED = 8  # largest number of models that are verified on all elements
GAIN = 8  # a model or a final rounding that is reported together with a fault must explain at least this many elements
_MOST_WRONG = 0.5  # a model explains a result only if at most this share is wrong


class ModelSearch(SideReport):
    """Searches for models of the inputs that explain one result."""

    is_reread = False  # whether the result, or an input, is read in the transposed order
    besides = 0  # number of models with which moved rows and missing terms were searched for

    # hypotheses that leave small errors in the sample

    @cached_property
    def _sampled(self) -> tuple[list[SampledModel], list[SampledModel]]:
        return likely_models(self.problem, self.side, self.accumulators, self.tick)

    @property
    def options(self) -> list[SampledModel]:
        """All models of the inputs that were tried, each with its errors in a sample of the elements."""
        return self._sampled[0]

    @property
    def near(self) -> list[SampledModel]:
        """The models of the inputs that leave only small errors in the sample (see `options`), the likeliest first."""
        return self._sampled[1]

    def _models(self) -> SideExplanation | None:
        least = min((each.wrong for each in self.near), default=0)
        return self._first([each for each in self.near if each.wrong == least], False)

    @cached_property
    def _likely_pairs(self) -> tuple[list[ChangePair], int]:
        if any(each.model is PLAIN for each in self.near):
            return [], 0  # most elements need no change of the inputs
        return likely_pairs(self.problem, self.side, self.accumulators, self.tick)

    def _pairs(self) -> SideExplanation | None:
        """Explain the result by a different change of each input, such as two block formats with different scales.

        Return None if no pair of changes fits.
        """
        if self._likely_pairs[1] and self.problem.scaled_output(self.side):
            # If inputs have few digits, results may look like multiples of a scale by chance.
            with self.problem.unscaled(self.side):
                pairs = likely_pairs(self.problem, self.side, self.accumulators, self.tick)
                if found := self._first_pair(*pairs, faulty=False):
                    return found
        return self._first_pair(*self._likely_pairs, faulty=False)

    def _pairs_of_few_errors(self) -> SideExplanation | None:
        """Explain the result by a change of each input, even if most elements are right without these changes."""
        pairs = likely_pairs(self.problem, self.side, self.accumulators, self.tick)
        return self._first_pair(*pairs, faulty=False)

    def _pairs_with_fault(self) -> SideExplanation | None:
        return self._first_pair(*self._likely_pairs, faulty=True)

    def _first_pair(self, pairs: list[ChangePair], tried: int, faulty: bool) -> SideExplanation | None:
        for i, likely in enumerate(pairs):
            # Similar changes may have the same effect on the sample, so try these, too, unless a fault is expected.
            for pair in (likely,) if faulty else chain((likely,), alike_pairs(likely, self.problem)):
                self.tick()
                product = self.problem.whole(pair.model)
                view = self._view(pair.accumulator, pair.model, product)
                if not is_telling(view, product, tried):
                    continue
                if any(self._fits(model, pair.accumulator) for model in single_changes(pair)):
                    continue  # nothing shows that both inputs were changed
                if self._verified(pair.model, pair.accumulator, faulty):
                    equals = [each for each in pairs[i + 1 :] if self._fits(each.model, each.accumulator)]
                    return self._verified(with_equals(pair, equals, self.problem), pair.accumulator, faulty)
        return None

    def _models_beside_fault(self) -> SideExplanation | None:
        """Explain the result by changed inputs together with missing terms, moved rows or moved columns."""
        if self.narrower is not None:
            return None
        kinds = ("inputs-rounded", "inputs-quantized")
        models = [model for model, _ in self.problem.sampled_models(self.tick) if model.name in kinds]
        models.sort(key=lambda each: each.weight)  # the first accepted pair has the simplest model
        own = self.accumulators[0]
        for model, fault in models_with_fault(self.problem, self.side, models, own, self.tick):
            product = self.problem.whole(model)
            view = self._view(own, model, product)
            if model.changes_both or self._is_needed(view, product, fault):
                return self._found("bug", (fault,), model, own, None, view, product)
        return None

    def _is_needed(self, view: View, product: Array, fault: Fault) -> bool:
        """Return whether a model is needed to explain a result after a fault is undone.

        Return False if the product with this fault is not known.
        """
        if fault.product is None:
            return False
        undone = copy(view)
        undone.values = view.values - (fault.product - product)
        return is_telling(undone, product) and explains_more(undone, product)

    def _view(self, accumulator: Format, model: Model, product: Array | None) -> View:
        """Return the view of the result that has error limits for the product of a model."""
        return with_changed_terms(view_of(self.problem, self.side, accumulator), self.problem, model, product)

    def _fits(self, model: Model, accumulator: Format, wrong: Array | None = None) -> bool:
        """Return whether a model leaves only rounding errors, except in the elements that are marked as wrong."""
        product = self.problem.whole(model)
        found = self._view(accumulator, model, product).fit(product).wrong
        return not (found if wrong is None else found & ~wrong).any()

    def _lines_of_bias(self) -> SideExplanation | None:
        """Explain the result by rows or columns in which the given bias is missing or was added wrongly."""
        view = self.plain
        found = lines_of_bias(self.problem, view)
        if found is None or (places := find_places(found[1])) is None or places.name != "region":
            return None
        known = ("holds", "other numbers"), ("the given bias", found[0])
        return self._found("bug", (Fault("region", places.where, known, found[1]),), view=view)

    def _models_with_fault(self) -> SideExplanation | None:
        return self._first(self.near, True)

    def _first(self, models: list[SampledModel], faulty: bool) -> SideExplanation | None:
        """Explain the result by the model that leaves the fewest wrong elements.

        If `faulty` is true, one fault is allowed.
        """
        best: tuple[SideExplanation, SampledModel] | None = None
        plain = [each for each in models[_TRIED:] if each.model is PLAIN]
        for each in models[:_TRIED] + plain:
            # The sample may lack the elements in which two models differ, such as a row with a tie.
            if best is not None and (each.model is PLAIN or each.wrong > best[1].wrong):
                continue
            self.tick()
            found = self._verified(each.model, each.accumulator, faulty)
            if found is not None and (best is None or found.listed < best[0].listed):
                best = found, each
                if not faulty or each.model is PLAIN:
                    break
        return None if best is None else self._with_other_format(*best)

    def _with_other_format(self, found: SideExplanation, used: SampledModel) -> SideExplanation:
        """Return `found`. If TF32 inputs and binary16 inputs both explain the result, the causes name both formats."""
        for other in self.near:
            if is_same_rounding(found.model, other.model) and self._fits(other.model, used.accumulator, found.wrong):
                return found.replace(causes=with_formats(found.causes, self.side.name, ALIKE), other_format=other.model)
        return found

    def _verified(self, model: Model, accumulator: Format, faulty: bool) -> SideExplanation | None:
        """Explain the result by a model, which is verified on all elements.

        Return None if the model does not fit, or if the plain product fits equally well.

        A model fits if it leaves only rounding errors and, if `faulty` is true, one fault.
        """
        product = None if model is PLAIN else self.problem.whole(model)
        view = self._view(accumulator, model, product)
        fit = view.fit(product)
        if model.name not in ("", "flush-to-zero") and not view.values[view.usable].any():
            return None  # a result of zeros is no evidence of changed inputs
        is_usual = product is not None and accumulator is self.accumulators[0]
        if product is not None and is_usual and not (is_nearer(view, product) or gives_numbers(view, product)):
            return None
        if not fit.wrong.any():
            shift = None if product is None else outdoing(view, product)
            if shift is not None and shift[1]:
                self.doubt = self.doubt or (shift[0], model.words)
            vain = product is not None and accumulator is self.accumulators[0] and not explains_more(view, product)
            if shift is not None or vain:
                return None
            if product is not None and is_usual and not is_telling(view, product):
                return self._in_doubt("wrong elements", model.words) if view.fit().wrong.any() else None
            status = "product" if model is PLAIN else "rounding"
            return self._found(status, (), model, accumulator, fit.z, view, product)
        flushed = self.faults.flushed(view, product, fit.wrong)
        if flushed is not None:
            return self._found("rounding", (flushed,), model, accumulator, fit.z, view, product)
        is_named = explains_enough(view, fit) and live_z(view, fit) <= NEAR
        if not (faulty or is_named):
            return None
        if product is not None and (flipped := may_be_flipped(self.problem, model, view, product, fit)).any():
            others = fit.replace(wrong=fit.wrong & ~flipped)
            if not is_named:
                return None  # it is not known which of the elements are wrong
            if not others.wrong.any():
                return self._found("rounding", (), model, accumulator, fit.z, view, product)
            fit = others
        right = view.usable & ~fit.wrong & (view.totals.size > 0)
        if not faulty or (product is not None and not 2 * (view.values[right] != 0).sum() > max(right.sum(), GAIN)):
            return None  # if most right elements are zero, the few others are no evidence of changed inputs
        if self.narrower is not None and share_of(fit.wrong) > _SURPRISING * narrow_share(
            self.problem, self.narrower.accumulator, self.plain
        ):
            return None
        places = find_places(fit.wrong)
        fault = None
        if product is not None and places is not None and (parts := self._by_parts(model, accumulator, fit.wrong)):
            return parts
        if places is None or places.count > 4:
            fault = self._fault(view, product, fit.wrong)
            if fault is None and model.changes is not None and self.narrower is None and self.besides < _BESIDES:
                self.besides += 1
                fault = fault_beside(self.problem, self.side, model, accumulator, self.tick)
        if fault is not None and not fault.name:
            return None
        # The model must correct at least three times as many elements as it leaves wrong. A rectangle counts as four
        # elements at most, because four numbers describe it.
        gained = 0 if product is None else int((view.fit().wrong & ~fit.wrong).sum())
        unknowns = 0 if places is None else places.count
        if places is not None and places.name == "region":
            unknowns = min(unknowns, _EDGES * len(places.where))
        is_gain = product is None or (places is not None and gained >= max(GAIN, 3 * unknowns))
        # A number where all terms are zero says nothing about the other sums.
        summed = view.usable & (view.totals.size > 0)
        if fault is None and places is not None and is_gain and share_of(fit.wrong[summed]) <= _MOST_WRONG:
            fault = placed(view, fit.wrong)
        if fault is None:
            return None
        if product is not None and is_factor_alone(view, fault):
            model, product = PLAIN, None
        return self._found("bug", (fault,), model, accumulator, fit.z, view, product)

    @cached_property
    def narrower(self) -> SideExplanation | None:
        """The explanation that every step of the sums is rounded to a narrower format, or None if this does not fit."""
        found = narrow_sums(self.problem, self.side, self.accumulators[0])
        if found is None:
            return None
        z, format = found
        fault = Fault("accumulator", (), (("format", format.name),))
        return self._found("rounding", (fault,), PLAIN, format, z)

    def _fault(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        found = self.faults.find(view, product, wrong)
        if found is None or self._is_certain(view, product, wrong):
            return found
        return found if product is None and found.name in MOVED and self._is_proved(view, wrong) else None

    def _two_faults(self, view: View, fit: Fit) -> SideExplanation | None:
        """Explain the result by two faults at once; one of them moves elements to other positions."""
        wrong = fit.wrong
        both = self.faults.transposed_and_scaled(view, wrong) or self.faults.moved_and_biased(view, wrong)
        both = both or moved_lines(view, self.problem.independent, wrong)
        return self._found("bug", both, view=view) if both else self._in_another_order(view, wrong)

    def _in_another_order(self, view: View, wrong: Array) -> SideExplanation | None:
        """Explain a result that is transposed, or has transposed factors; return None if this fails.

        The result may also have been computed in another precision, or have wrong elements or regions.
        """
        if self.is_reread or self.stray.any():
            return None
        for fault, problem, side, differing in readings(self.problem, self.side, view, self.differing, wrong):
            again = type(self)(problem, side, differing, self.tick)
            again.is_reread = True
            found = again.explain()
            if found.status in ("product", "rounding") or (
                found.status == "bug" and {each.name for each in found.causes} <= _BESIDE_TURNED
            ):
                is_turned = fault.name == "transposed-output"
                causes = [each.replace(where=_turned(each.where)) if is_turned else each for each in found.causes]
                return self._found("bug", (fault,)).replace(causes=(self._cause(fault, "result"), *causes))
        return None

    def _by_parts(self, model: Model, accumulator: Format, off: Array) -> SideExplanation | None:
        """Explain rectangles of the result by a model, and all other elements by the plain product.

        `off` marks the elements that the model does not explain. Return None if a rectangle contains such an element,
        or if there are too few elements of either kind.
        """
        wrong = view_of(self.problem, self.side, accumulator).fit().wrong
        where = rectangles_without(wrong, off)
        if not where:
            return None
        found = self._found("rounding", (), model, accumulator)
        causes = tuple(each.replace(share=share_of(wrong), where=where) for each in found.causes)
        return found.replace(causes=causes, model=PLAIN)

    def _one_part(self) -> SideExplanation | None:
        """Explain the result if the rectangle around all wrong elements has another precision; else return None."""
        wrong = self.plain.fit().wrong
        found = self._found("bug", (Fault("elements", (), (), wrong),))
        explained = self._with_precision_of_parts(found)
        return None if explained is found else explained

    def _with_precision_of_parts(self, found: SideExplanation) -> SideExplanation:
        """Return `found`, or an explanation that names the precision of the wrong rectangles as the cause.

        The second is returned if wrong elements are the only cause in `found`, and one other precision explains all
        rectangles of wrong elements.
        """

        def explain(problem: ProductProblem, side: Side, off: Array) -> SideExplanation:
            return type(self)(problem, side, off, self.tick).explain()

        return parts_in_another_precision(self.problem, found, explain, self.parts)

    def explain(self) -> SideExplanation:
        """Return the explanation of the result. The subclass `SideExplainer` implements this method."""
        raise NotImplementedError

    def _is_proved(self, view: View, wrong: Array) -> bool:
        """Return whether moved rows, moved columns or missing terms are unlikely to explain all errors by chance."""
        error, room, _ = view.errors()
        return shift_bits(self.problem.independent, error, room, wrong, 2) > self._bits_of_range

    @property
    def _bits_of_range(self) -> float:
        """The evidence, in bits, that is required for a range of missing or doubled terms.

        About n² / 2 ranges are possible among n terms. Therefore, the evidence must be 2·log2(n) bits larger than
        BITS_OF_SUMS, the evidence that is required for sums in a narrow format.
        """
        return BITS_OF_SUMS + 2 * log2(self.problem.terms)

    def _is_certain(self, view: View, product: Array | None, wrong: Array) -> bool:
        """Return whether a fault is certain.

        It is certain if no narrower accumulator fits (see `narrower`). It is also certain if more than 20 elements are
        wrong, and the median of their errors is more than eight times the largest error of the final rounding.
        """
        if self.narrower is None:
            return True
        error = np.abs(view.totals.error(view.values, product))[wrong]
        room = np.broadcast_to(view.half, wrong.shape)[wrong] + 1e-300
        return wrong.sum() > 20 and float(np.median(error / room)) > 8


def _turned(where: tuple[Place, ...]) -> tuple[Place, ...]:
    """Return the positions that indices or rectangles of a matrix have in the transposed matrix."""
    return cast("tuple[Place, ...]", tuple(place[::-1] for place in where))
