"""Hypotheses on why one result differs from the product of its inputs. Each hypothesis is verified on all elements.

A hypothesis consists of three parts: a model, which says how the inputs may have been changed (see `stages`); the
format of the sums; and possibly a fault (`faults`). In general, a hypothesis is accepted only if it leaves every error
within the rounding error bound, except at the positions of the fault. Simpler hypotheses are tried first.
"""

from __future__ import annotations

from functools import cached_property
from math import inf

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import parse_format
from floatlab.reduce.explain.epilogue.given_bias import may_be_misadded
from floatlab.reduce.explain.faults.agreement import agree_elsewhere
from floatlab.reduce.explain.faults.doubts import IN_ANOTHER_WAY, drops_terms, rival_of
from floatlab.reduce.explain.faults.fast import find_fast_product
from floatlab.reduce.explain.faults.outliers import are_lone, exceed_others, standing_out
from floatlab.reduce.explain.faults.patterns import (
    BITS_EACH,
    BITS_OF_SUMS,
    are_exact,
    are_live,
    evidence_bits,
    live_z,
    place_bits,
)
from floatlab.reduce.explain.faults.rearranged import CERTAIN, REARRANGED, rearranged_odds
from floatlab.reduce.explain.faults.unrelated import times_coarsest
from floatlab.reduce.explain.findings import MOVED, NEAR, SINGLE, Fault, SideExplanation, placed
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.precision.narrow import best_replay, has_exact_sums, partial_sums
from floatlab.reduce.explain.precision.near import rounded_again
from floatlab.reduce.explain.precision.outputs import best_cast, misses_of, other_roundings, printed_digits
from floatlab.reduce.explain.problem import View, view_of
from floatlab.reduce.explain.residuals import (
    find_places,
    has_few_bits,
    is_flat,
    is_moved_exactly,
    share_of,
)
from floatlab.reduce.explain.search.models import GAIN
from floatlab.reduce.explain.search.unexplained import UnexplainedSearch
from floatlab.reduce.explain.stages import PLAIN
from floatlab.reduce.results.diagnosis_record import Evidence
from floatlab.reduce.simulate.narrow_sums import promoted

_SCATTERED = 0.4  # sums in a narrow format may fail to reproduce at most this share of the elements
_CHOICES = {"inputs-rounded", "inputs-quantized", "inputs-split", "output-rounded"}  # choices of precision
_LOCAL, _SHIFTS = {"elements", "region", "not-the-product"}, {"bias", "scale"}
# The evidence for sums in a narrow format must be BITS_OF_SUMS bits, plus BITS_EACH for each element that they do not
# reproduce. _BITS_ENOUGH bits always suffice.
_BITS_ENOUGH = 60.0
_BITS_OF_FOUR = 8.0  # evidence, in bits, required for one of four candidates: binary16 or bfloat16, with or without FMA
_TWICE = "rounding", "twice"  # a vague cause: it explains errors slightly above half an ulp, whatever made them
_FEW = 4  # a result with fewer different numbers than this may also come from a final rounding
_SUMS = 8  # sums of narrow formats are computed for this many rows and columns
_MOST_CAST = 1 << 16  # roundings of both inputs and result are tried for results of at most this many elements
# At least _SEVERAL wrong elements, none off by more than _COARSE·Σ|x·y|, may come from inputs of few digits.
_SEVERAL, _COARSE = 3, 2.0**-8
_STAGNANT = 2.0**-8  # sums in bfloat16 may lose this share of Σ|x·y| in each step
_MOST_WRONG = 0.5  # if a larger share is wrong, the result is reported as another product


class SideExplainer(UnexplainedSearch):
    """Searches for an explanation of one result."""

    def explain(self) -> SideExplanation:
        """Return the first hypothesis that fits.

        If none fits, or if an alternative fits equally well, return the status "unknown". If another precision explains
        all wrong rectangles, this precision is named as the cause.
        """
        return self._with_precision_of_parts(self._checked())

    def _checked(self) -> SideExplanation:
        """Return the first hypothesis that fits, or the status "unknown" if an alternative fits equally well."""
        found, view = self._first_found(), self.plain
        names, wrong = {each.name for each in found.causes}, view.fit().wrong
        is_local = found.status == "bug" and bool(names & _LOCAL)
        # If all elements except the wrong ones have the same bits in both results, the wrong ones cannot come from a
        # different computation, since that would change the errors of all elements.
        if found.model is PLAIN or found.wrong is None:
            is_alone = is_local and agree_elsewhere(view, wrong, self.differing, self.problem.x, self.problem.y)
        else:
            is_alone = is_local and not (self.differing & ~found.wrong).any() and share_of(found.wrong) < _MOST_WRONG
        may_be_fast = found.status == "unknown" or (is_local and not is_alone)
        if may_be_fast and (fast := find_fast_product(view, self.problem.x, self.problem.y)):
            if fast.is_sure:
                return self._found("rounding", (Fault("fast-product", (), fast.evidence),), view=view)
            return self._in_doubt("wrong elements", "the errors of a fast matrix product")
        if found.status == "rounding" and drops_terms(self.problem, found.model):
            return self._in_doubt("missing terms", found.model.words)
        odds = -inf
        if is_local and names <= _LOCAL and not is_alone:
            odds = rearranged_odds(view, wrong, self.problem.x, self.problem.y)
            if odds <= CERTAIN and wrong.any() and not exceed_others(self.problem, self.side, view, wrong):
                return self._in_doubt("wrong elements", REARRANGED)
        if odds > CERTAIN:
            return self._found("rounding", (Fault("order", (), (("errors", REARRANGED),)),), view=view)
        rival = rival_of(self.problem, view, found, is_alone, odds)
        if (
            rival is not None
            and found.model is PLAIN
            and rival[1].endswith(IN_ANOTHER_WAY)
            and (again := rounded_again(view))
        ):
            return self._found("rounding", again)
        is_shift = found.status == "bug" and bool(names & {"scale", "bias"}) and bool(view.fit().wrong.any())
        # Truncation makes all numbers smaller, so it may look like a factor.
        if is_shift and any(not wrong.any() for _, wrong in other_roundings(self.side, view)):
            rival = "a factor or a bias", "results that were rounded to fewer digits"
        return found if rival is None else self._in_doubt(*rival)

    def _first_found(self) -> SideExplanation:
        if not (self.side.finite & self.problem.known).any():
            return self._found("bug" if self.stray.any() else "product", (), PLAIN, self.accumulators[0])
        searches = [self._by_bits, self._plain_or_flushed, self._models, self._pairs, self._only_cast]
        searches += [self._lines_of_bias, self._cast_with_fault, self._models_with_fault, self._pairs_with_fault]
        if self._is_one_number():
            searches = [
                *searches[:3],
                self._only_cast,
                self._of_one_number,
            ]  # equal numbers are too few observations for two changes
        searches += [self._one_part, self._with_all_wrong, self._models_beside_fault, self._of_sums]
        plain = self.plain
        if has_exact_sums(self.problem) and plain.fit().wrong.any() and self.side.format.precision >= SINGLE.precision:
            searches.insert(1, self._of_sums)  # the usual sums are exact, so narrower partial sums are likely
        for search in searches:
            found = search()
            if found is not None:
                if self.doubt is not None and found.status == "bug":
                    return self._in_doubt(*self.doubt)
                if found.status == "bug" and (simpler := self._without_model(found)):
                    return simpler
                several = any(each.name in _CHOICES or ("all", "elements") in each.evidence for each in found.causes)
                # One choice of precision is likelier than two causes at once or an error in all elements.
                tried = found.status == "bug" and several and not self.stray.any()
                return (self._of_sums() if tried else None) or found
        if again := rounded_again(plain):
            if changed := self._pairs_of_few_errors():
                return changed
            if self.faults.terms(plain, None, plain.fit().wrong) is not None:  # too few errors to prove it
                return self._in_doubt("missing terms", f"sums in {plain.format.name}")
            if may_be_misadded(self.problem, plain):
                return self._in_doubt("a fault of the bias", f"sums in {plain.format.name}")
            return self._found("rounding", again, PLAIN, self.accumulators[0])
        if self.doubt is not None:
            return self._in_doubt(*self.doubt)
        if self.narrower is not None:  # the error bound of narrow sums admits many other explanations
            return self._in_doubt("wrong elements", f"sums in {self.narrower.accumulator.name}")
        return self._unexplained()

    def _is_one_number(self) -> bool:
        """Return whether all elements of the result count as one observation.

        This is the case if all elements of the exact product are equal, and the elements of the result differ only as
        rounding allows. It is also the case if all elements of the result are the same number of few bits, because a
        coarse rounding may give this number everywhere. It is never the case if all elements are 0, or if an element is
        not finite.
        """
        values, view = self.side.values, self.plain
        if not values.any() or not self.side.finite.all():
            return False
        if is_flat(view.totals.product):
            return bool(np.ptp(values) <= 2 * np.max(view.noise.limit(view.totals) + view.half))
        return is_flat(values) and has_few_bits(float(values.flat[0]))

    def _without_model(self, found: SideExplanation) -> SideExplanation | None:
        """Return a simpler explanation than `found`, or None if there is none.

        If the model of `found` changes no element by more than rounding does, `found` is returned without this model.
        Otherwise, single faults of the plain product are tried: moved rows or columns, and missing terms. A single
        fault is simpler than a fault together with changed inputs, or than many wrong elements together with a
        rounding.
        """
        names = {each.name for each in found.causes}
        if self.stray.any() or len(names) < 2 or not names & (_LOCAL | MOVED | _SHIFTS):
            return None
        view = self.plain
        wrong = view.fit().wrong
        if found.model is not PLAIN:
            change = np.abs(self.problem.whole(found.model) - view.totals.product)
            if (change <= view.noise.limit(view.totals) + view.half)[view.usable].all():  # no evidence of the model
                causes = tuple(each for each in found.causes if each.name != found.model.name)
                return found.replace(causes=causes, model=PLAIN)
        listed = BITS_EACH * int(found.wrong.sum()) if names & _LOCAL and found.wrong is not None else 0.0
        for look in (self.faults.moved, self.faults.terms):
            fault = look(view, None, wrong)
            if fault is not None and (listed > self._bits_of_range or self._is_proved(view, wrong)):
                return self._found("bug", (fault,), view=view)
        return None

    def _plain_or_flushed(self) -> SideExplanation | None:
        """Explain the result by the plain product with one unusual step, or return None.

        Three steps are tried: numbers are flushed to zero; sums are rounded in one direction; the final rounding is
        unusual, for example to a few digits, as if printed. A second final rounding (see `_TWICE`) is not accepted.
        """
        view = self.plain
        fit = view.fit()
        flushed = self.faults.flushed(view, None, fit.wrong) if fit.wrong.any() else None
        if flushed is not None:
            return self._found("rounding", (flushed,), PLAIN, self.accumulators[0], fit.z, view)
        if not fit.wrong.any() and live_z(view, fit) > NEAR:
            digits, into = printed_digits(self.side, view.totals), self.side.rounded_to
            tried = not digits and into == self.side.format
            ways = grid_of(self.problem, PLAIN, into, self.tick).directed_ways(self.side) if tried else []
            ways = ways if evidence_bits(view, view.usable, into) >= BITS_OF_SUMS else []
            if digits or ways:
                fault = Fault("output-rounded", (), digits)
                fault = Fault("accumulator", (), (("computed as", ways[0].text),)) if ways else fault
                return self._found("rounding", (fault,), PLAIN, self.accumulators[0], fit.z)
        return None if _TWICE in self._cast[0] else self._only_cast()

    def _only_cast(self) -> SideExplanation | None:
        """Return the explanation if only the final rounding differs from the usual one; otherwise None."""
        known, wrong = self._cast
        return None if not known or wrong.any() else self._of_cast(known, ())

    @cached_property
    def _cast(self) -> tuple[Evidence, Array]:
        return best_cast(self.side, self.plain)

    def _cast_with_fault(self) -> SideExplanation | None:
        """Explain a result that was rounded to fewer digits and has some wrong elements; return None if this fails.

        If rounded inputs explain the wrong elements, they are named as a cause instead. If rounded inputs may explain
        them, the status is "unknown".
        """
        known, wrong = self._cast
        places = find_places(wrong)
        if not known or places is None:
            return None
        view = self.plain
        if (view.fit().wrong & ~wrong).sum() < GAIN + wrong.sum():
            return None
        if wrong.size <= _MOST_CAST:
            rounded = Fault("output-rounded", (), known)
            for model, _ in self.problem.sampled_models(self.tick):
                self.tick()
                if model.is_one_rounding and not misses_of(known, self.side, view, self.problem.whole(model)).any():
                    return self._found("rounding", (rounded,), model, self.accumulators[0])
        few = _COARSE * view.totals.size + np.abs(view.values) * 2.0**-view.format.precision
        near = np.abs(view.totals.error(view.values)) <= few
        if wrong.sum() >= _SEVERAL and near[wrong].all():
            return self._in_doubt("wrong elements", "inputs that were rounded before the result was rounded")
        return self._of_cast(known, (placed(view, wrong),))

    def _of_cast(self, known: Evidence, faults: tuple[Fault, ...]) -> SideExplanation:
        z = self.plain.fit().z
        rounded = Fault("output-rounded", (), known)
        return self._found("bug" if faults else "rounding", (*faults, rounded), PLAIN, self.accumulators[0], z)

    def _of_one_number(self) -> SideExplanation:
        """Explain a result whose elements are all equal, such as a product of constant inputs.

        All elements together count as one observation. Sums in binary16 and in bfloat16 are tried. If they do not give
        the result, the status is "unknown" for errors that coarse sums or inputs can cause, and "bug" for larger ones.
        """
        view = self.plain
        wrong = view.fit().wrong
        if are_exact(view, wrong) and wrong.size == 1:
            return self._found("bug", (placed(view, wrong),), view=view)
        telling = evidence_bits(view, view.usable, self.side.coarsest) >= _BITS_OF_FOUR
        for format in map(parse_format, ("fp16", "bf16") if telling else ()):
            for fma in (True, False):
                x, y = self.problem.x[self.problem.rows[:_SUMS]], self.problem.y[:, self.problem.columns[:_SUMS]]
                if (promoted(x, y, format, self.problem.terms, fma) == self.side.values.flat[0]).all():
                    fault = Fault("accumulator", (), (("format", format.name), ("computed as", "serial")))
                    return self._found("rounding", (fault,), PLAIN, SINGLE)
        stagnant = (np.abs(view.totals.error(view.values)) <= self.problem.terms * _STAGNANT * view.totals.size).all()
        if stagnant or times_coarsest(self.problem, self.side) <= 1:
            return self._found("unknown", (), z=view.fit().z, view=view)
        return self._found("bug", (Fault("not-the-product", (), (("all elements", "one number"),)),), view=view)

    def _of_sums(self) -> SideExplanation | None:
        found = partial_sums(self.problem, self.side, self.accumulators, self.tick)
        if found is None:
            return None
        z, model, accumulator = found
        wrong = self.plain.fit().wrong
        bits = evidence_bits(self.plain, wrong, self.side.coarsest) + place_bits(self.plain, wrong)
        if wrong.any() and bits < BITS_OF_SUMS:
            return self._in_doubt("wrong elements", model.words)
        if may_be_misadded(self.problem, self.plain):
            return self._in_doubt("a fault of the bias", model.words)
        return self._found("rounding", (), model, accumulator, np.array([z]))

    def _by_bits(self) -> SideExplanation | None:
        """Explain the result by sums in a narrow format and, where these do not give the bits, by faults.

        Return None if there is too little evidence for such sums.
        """
        plain = self.plain
        wrong = plain.fit().wrong
        if self.stray.any() or not wrong.any():
            return None
        found = best_replay(self.problem, self.side, plain.usable, wrong, self.tick)
        if found is None:
            return None
        replay, missed = found
        fault = Fault(replay.name, (), replay.evidence)
        bits = evidence_bits(plain, wrong & ~missed & replay.is_clear, self.side.coarsest)
        if not missed.any() and (
            bits + place_bits(plain, wrong, replay.is_clear) < BITS_OF_SUMS or self._may_be_cast(plain)
        ):
            self.doubt = "wrong elements", f"sums in {replay.format.name}"
            return None
        if not missed.any():
            return self._found("rounding", (fault,), PLAIN, SINGLE)
        # An element is evidence if these sums reproduce it, and its error is too large for sums in the usual format.
        least = BITS_OF_SUMS + BITS_EACH * int(missed.sum())
        places = find_places(replay.wrong(plain.values, missed), _MOST_WRONG) if bits >= _BITS_ENOUGH else None
        if places is not None and places.name == "region":
            beside = self._found("bug", (Fault("region", places.where, (), missed), fault), PLAIN, SINGLE)
            return self._lines_of_bias() or beside
        gained = int((wrong & ~missed).sum()) >= max(GAIN, int(missed.sum()))
        live = are_live(plain)
        if not gained or share_of(missed[live]) > _SCATTERED or bits < min(least, _BITS_ENOUGH):
            return None
        view = view_of(self.problem, self.side, replay.format)
        moved = self.faults.moved(view, None, missed)
        if moved is not None:
            axis = int(moved.name == "columns-moved")
            moved = moved if is_moved_exactly(moved.where, axis, replay.values, view.values) else None
        moved = moved or self.faults.clipped(view, replay.values, missed)
        if moved is not None:
            return self._found("bug", (moved, fault), PLAIN, SINGLE)
        # Libraries may add the terms of the elements at the edges of tiles in another order. A kernel may also round a
        # partial sum twice, which moves it by one ulp.
        with np.errstate(all="ignore"):
            largest = np.maximum(np.abs(view.values), np.sqrt(view.totals.squares))
            far = np.abs(replay.values - view.values) > 4 * half_ulp(largest, replay.format)
        wrong = standing_out(self.problem, self.side, missed, replay.format) & far | replay.wrong(view.values, missed)
        if wrong.any():
            return self._found("bug", (placed(plain, wrong), fault), PLAIN, SINGLE)
        if are_lone(missed):
            return self._found("unknown", (placed(plain, missed), fault), PLAIN, SINGLE)
        return self._found("rounding", (fault,), PLAIN, SINGLE)

    def _may_be_cast(self, view: View) -> bool:
        """Return whether a result has few different numbers, and a final rounding in some direction explains them."""
        if len(np.unique(view.values)) >= _FEW:
            return False
        room = 2 * half_ulp(view.values, self.side.rounded_to) + view.noise.limit(view.totals)
        return bool((np.abs(view.totals.error(view.values)) <= room).all())
