"""Why one result is, or is not, the product of its inputs: one hypothesis after another, each verified on all elements.

A hypothesis is a model of the inputs (`stages`), an accumulator, and perhaps a fault (`residuals`, `regions`). It is
taken only if what it leaves is rounding in every element. Those that need less are tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.record import Individual, Record
from floatlab.reduce.explain.noise import multiply_exactly
from floatlab.reduce.explain.problem import Problem, Side, View, middle, view_of
from floatlab.reduce.explain.regions import find_places
from floatlab.reduce.explain.residuals import factor_between, moved_rows, term_counts, term_range, weighted_median
from floatlab.reduce.explain.stages import PLAIN, Model, input_models, sum_models, transposed_inputs

Evidence = tuple[tuple[str, str], ...]

SINGLE, DOUBLE = parse_format("fp32"), parse_format("fp64")
_NEAR = 3.0  # sigmas that the median element is off at most
_BETTER = 0.4  # a model that leaves less than this share of what a simpler one leaves is the better one
_ENOUGH = 50  # elements, for that
_WORK = 1 << 29  # multiply-adds of models that go product by product
_UNRELATED = 0.5  # of the root of Σ(x·y)²: more than rounding inputs to two digits changes
_ALIKE = 0.3  # of the result


class DiagnosedCause(Record):
    """One cause: its name, the stage, whose it is, the share of elements, where, and what is known of it.

    `where` holds indices of elements, half-open ranges of rows and columns for regions, ranges of terms, or for what
    moved pairs of the place and the place that it came from. Nothing in it means everywhere.
    """

    name: str
    stage: str
    side: str
    share: float
    where: tuple[tuple[tuple[int, int], ...] | tuple[int, ...], ...]
    evidence: Evidence


class SideExplanation(Individual):
    """What one result is: its status, the causes for which it is not the plain product, and which elements are wrong."""

    side: Side
    status: str  # product, rounding, bug or unknown
    causes: tuple[DiagnosedCause, ...]
    model: Model = PLAIN
    accumulator: Format = SINGLE
    wrong: Array | None = None
    z: float = 0.0  # the median error in sigmas


class Fault(Record):
    """What a residual was explained by, beside the model of the inputs."""

    name: str
    where: tuple[tuple[tuple[int, int], ...] | tuple[int, ...], ...] = ()
    evidence: Evidence = ()
    wrong: Array | None = None

    __hash__ = object.__hash__


class SideExplainer:
    """The search for what one result is."""

    def __init__(self, problem: Problem, side: Side, tick: Callable[[], None]) -> None:
        """Look for NaNs and infinities that the inputs do not explain; they are set aside."""
        self.problem, self.side, self.tick = problem, side, tick
        self.stray = self._stray()
        self.before: tuple[DiagnosedCause, ...] = ()
        if self.stray.any():
            places = find_places(self.stray)
            where = tuple(tuple(map(int, at)) for at in np.argwhere(self.stray)[:4096])
            found = Fault("nan", where, () if places is None else (("places", places.name),), self.stray)
            self.before = (self._cause(found, "result"),)

    @property
    def accumulators(self) -> tuple[Format, ...]:
        """The formats in which sums of this result may usually have been made."""
        if self.side.format.precision > SINGLE.precision:
            return (DOUBLE, SINGLE)
        return (SINGLE,)

    def explain(self) -> SideExplanation:
        """Return the first hypothesis that leaves rounding alone."""
        if not (self.side.finite & self.problem.known).any():
            status = "bug" if self.stray.any() else "product"
            return self._found(status, ())
        for search in (self._with_most_right, self._with_all_wrong, self._of_sums, self._narrower):
            found = search()
            if found is not None:
                return found
        return self._unexplained()

    # what is right in most elements

    def _options(self) -> Iterator[tuple[float, Model, Format, View, Array | None]]:
        """Give the models of inputs with the median error that each leaves in the sample."""
        problem = self.problem
        x, y = problem.x[problem.rows], problem.y[:, problem.columns]
        formats = problem.sources[0].format, problem.sources[1].format
        views = [view_of(problem, self.side, each, sampled=True) for each in self.accumulators]
        for model in (PLAIN, *input_models(formats, problem.x, problem.y)):
            self.tick()
            product = None if model is PLAIN else model.make(x, y, problem.x, problem.y)
            for accumulator, view in zip(self.accumulators, views, strict=True):
                yield middle(view.fit(product).z), model, accumulator, view, product

    def _with_most_right(self) -> SideExplanation | None:
        self.options = list(self._options())
        near = [each for each in self.options if each[0] <= _NEAR]
        near.sort(key=lambda each: (each[1].weight, each[2] is not self.accumulators[0], each[0]))
        if not near:
            return None
        count = int(view_of(self.problem, self.side, SINGLE, sampled=True).usable.sum())
        ranked = [near.pop(0)]
        for each in near:
            better = _BETTER if count >= _ENOUGH else 0.02
            if each[2] is ranked[0][2] and each[0] < better * ranked[0][0] and each[1].name != ranked[0][1].name:
                ranked.insert(0, each)
            else:
                ranked.append(each)
        for _, model, accumulator, _, _ in ranked[:8]:
            self.tick()
            found = self._verified(model, accumulator)
            if found is not None:
                return found
        return None

    def _verified(self, model: Model, accumulator: Format) -> SideExplanation | None:
        """Return what a model and at most one fault leave no more than rounding of."""
        view = view_of(self.problem, self.side, accumulator)
        product = None if model is PLAIN else self._product(model)
        fit = view.fit(product)
        if not fit.wrong.any():
            return self._found("product" if model is PLAIN else "rounding", (), model, accumulator, fit.z, view)
        flushed = self._flushed(view, product, fit.wrong)
        if flushed is not None:
            return self._found("rounding", (flushed,), model, accumulator, fit.z, view)
        places = find_places(fit.wrong)
        fault = None
        if places is None or places.count > 4:
            fault = self._fault(view, product, fit.wrong, model)
        if fault is None and places is not None and places.count * 2 <= fit.wrong.size:
            evidence = self._content(fit.wrong) if places.name == "region" else ()
            fault = Fault(places.name, places.where, evidence, fit.wrong)
        if fault is None:
            return None
        return self._found("bug", (fault,), model, accumulator, fit.z, view)

    def _product(self, model: Model) -> Array:
        x, y = self.problem.x, self.problem.y
        return model.make(x, y, x, y)

    def _content(self, wrong: Array) -> Evidence:
        values = self.side.values[wrong]
        return (("holds", "zeros" if not values.any() else "other numbers"),)

    def _flushed(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Explain wrong zeros that subnormal results would have been."""
        least = 2.0**self.side.format.emin
        values = self.side.values
        exact = view.totals.product if product is None else product
        if ((values != 0) & (np.abs(values) < least)).any():
            return None
        near = np.abs(values - exact) <= least * (1 if (values[wrong] == 0).all() else self.problem.terms)
        if (near & (np.abs(exact) <= least * (1 + 1e-6) + self.problem.terms * least * (values != 0)))[wrong].all():
            return Fault("flush-to-zero", (), (("flushed", "results"),), wrong)
        return None

    # faults of many elements

    def _fault(self, view: View, product: Array | None, wrong: Array, model: Model) -> Fault | None:
        for fault in (self._bias, self._scale, self._moved, self._terms):
            self.tick()
            found = fault(view, product, wrong)
            if found is not None:
                return found
        return None

    def _bias(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        error = np.where(view.usable, view.totals.error(view.values, product), np.nan)
        sigma = view.noise.sigma(view.totals, product) + view.half + 2.0**-view.format.precision * np.abs(view.values)
        for axis, words in ((0, "column"), (1, "row")):
            shift = weighted_median(error, sigma, axis)
            unknowns = int(wrong.any(axis=axis).sum())
            if wrong.sum() < unknowns + 3 or not np.isfinite(shift).all():
                continue
            if not view.fit(product, shift=shift).wrong.any():
                most = float(np.abs(shift).max())
                alike = bool(np.ptp(shift) <= 8 * float(sigma.max()))
                evidence = (("one number a", "result" if alike else words), ("largest", f"{most:.6g}"))
                return Fault("bias", (), evidence, wrong)
        return None

    def _scale(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        exact = view.totals.product if product is None else product
        limit = view.noise.limit(view.totals, product) + view.half
        factor = factor_between(np.where(view.usable, view.values, np.nan), exact, limit)
        if not factor or wrong.sum() < 4 or view.fit(product, factor=factor).wrong.any():
            return None
        return Fault("scale", (), (("factor", f"{factor:.9g}"),), wrong)

    def _moved(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        if product is not None:
            return None
        exact = view.totals.product
        everything = [np.arange(count) for count in wrong.shape]
        for name, turned, axis in (("rows-moved", False, 0), ("columns-moved", True, 1)):
            values, goal, mask = (each.T if turned else each for each in (view.values, exact, wrong))
            to = moved_rows(values, goal, mask.any(axis=1))
            if to is None or goal.shape[1] < 2:
                continue
            at = np.flatnonzero(to != np.arange(len(to)))
            index = list(everything)
            index[axis] = to
            if wrong.sum() >= len(at) + 3 and not view.against(view.totals.take(*index)).fit().wrong.any():
                pairs = tuple((int(i), int(to[i])) for i in at)
                again = len(set(to.tolist())) < len(to)
                return Fault(name, pairs, (("kind", "copied" if again else "permuted"),), wrong)
        return None

    def _terms(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        x, y = self.problem.x, self.problem.y
        if product is not None or wrong.sum() < 3:
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

    # what is wrong in most elements

    def _with_all_wrong(self) -> SideExplanation | None:
        """Look for faults of all elements: first of the plain product, then beside models of the inputs."""
        for accumulator in self.accumulators:
            view = view_of(self.problem, self.side, accumulator)
            wrong = view.fit().wrong
            fault = self._transposed(view, wrong) or self._fault(view, None, wrong, PLAIN)
            if fault is not None:
                return self._found("bug", (fault,), PLAIN, accumulator, None, view)
        found = []
        for _, model, accumulator, view, product in self.options:
            self.tick()
            left = self._left(view, product)
            if left <= _NEAR:
                found.append((model.weight, left, model, accumulator))
        for _, _, model, accumulator in sorted(found, key=lambda each: each[:2])[:6]:
            view = view_of(self.problem, self.side, accumulator)
            product = self._product(model)
            wrong = view.fit(product).wrong
            fault = self._bias(view, product, wrong) or self._scale(view, product, wrong)
            if fault is not None:
                return self._found("bug", (fault,), model, accumulator, None, view)
        return None

    def _left(self, view: View, product: Array | None) -> float:
        """Return the median error, in sigmas, that the best bias or factor leaves of a sample."""
        error = np.where(view.usable, view.totals.error(view.values, product), np.nan)
        sigma = view.noise.sigma(view.totals, product) + view.half + 2.0**-view.format.precision * np.abs(view.values)
        with np.errstate(all="ignore"):
            lefts = [middle(view.fit(product, shift=weighted_median(error, sigma, axis)).z) for axis in (0, 1)]
        exact = view.totals.product if product is None else product
        factor = factor_between(np.where(view.usable, view.values, np.nan), exact, sigma)
        return min(*lefts, middle(view.fit(product, factor=factor).z) if factor else np.inf)

    def _transposed(self, view: View, wrong: Array) -> Fault | None:
        if wrong.sum() < 3:
            return None
        rows, columns = self.problem.rows, self.problem.columns
        values, usable = (each[np.ix_(rows, columns)] for each in (view.values, view.usable))
        for name, which, x, y in transposed_inputs(self.problem.x, self.problem.y):
            self.tick()
            part = View(multiply_exactly(x[rows], y[:, columns], False), values, usable, view.noise, view.format)
            if middle(part.fit().z) <= _NEAR:
                fit = view.against(multiply_exactly(x, y, self.problem.precise)).fit()
                if not fit.wrong.any():
                    return Fault(name, (), (("transposed", which),), wrong)
        return None

    # narrower formats inside the sums

    def _of_sums(self) -> SideExplanation | None:
        problem = self.problem
        x, y = problem.x[problem.rows], problem.y[:, problem.columns]
        found = []
        for accumulator in self.accumulators:
            view = view_of(problem, self.side, accumulator, sampled=True)
            for model in sum_models(accumulator, problem.terms):
                self.tick()
                product = model.make(x, y, problem.x, problem.y)
                fit = view.fit(product)
                if middle(fit.z) > _NEAR:
                    continue
                # A partial sum next to a tie may have gone the other way: by one of its ulps.
                step = 2.0 ** (1 - parse_format(dict(model.evidence)["format"]).precision)
                share = float(fit.wrong.sum() / max(1, view.usable.sum()))
                off = np.abs(view.totals.error(view.values, product)) > 2 * step * view.totals.size
                if share <= 0.1 and not (off & fit.wrong).any():
                    found.append((share, middle(fit.z), model, accumulator))
        if not found:
            return None
        _, z, model, accumulator = min(found, key=lambda each: each[:2])
        return self._found("rounding", (), model, accumulator, np.array([z]))

    def _narrower(self) -> SideExplanation | None:
        """Try sums whose every step was rounded to a format that has all these numbers."""
        for name in ("fp32", "tf32", "fp16", "bf16"):
            format = parse_format(name)
            if format.precision >= self.accumulators[0].precision or self.side.narrowest.precision > format.precision:
                continue
            view = view_of(self.problem, self.side, format)
            fit = view.fit()
            if middle(fit.z) <= _NEAR and not fit.wrong.any():
                fault = Fault("accumulator", (), (("format", format.name),))
                return self._found("rounding", (fault,), PLAIN, format, fit.z)
        return None

    def _unexplained(self) -> SideExplanation:
        """Say that a result is another product, or none, where no precision explains how far off it is."""
        view = view_of(self.problem, self.side, self.accumulators[0])
        error, totals = np.abs(view.totals.error(view.values)), view.totals
        with np.errstate(all="ignore"):
            far = error > _UNRELATED * np.sqrt(totals.squares) + _ALIKE * np.abs(totals.product)
        fit = view.fit()
        share = float(far[view.usable].mean())
        if share >= 0.5:
            return self._found("bug", (Fault("not-the-product", (), (("beyond", f"{share:.3g}"),)),), view=view)
        places = find_places(fit.wrong)
        if places is not None and fit.wrong.mean() < 0.9 and places.name == "region":
            fault = Fault("region", places.where, self._content(fit.wrong), fit.wrong)
            return self._found("bug", (fault,), z=fit.z, view=view)
        return self._found("unknown", (), z=fit.z, view=view)

    # results

    def _stray(self) -> Array:
        """Say which elements are NaN or infinite, or are not, against what the inputs make."""
        problem, side = self.problem, self.side
        exact, values = problem.totals.product, side.values
        with np.errstate(all="ignore"):
            most = float(side.narrowest.largest) * (1 - 2.0**-side.narrowest.precision)
            overflow = np.isinf(values) & (np.sign(values) == np.sign(exact)) & (np.abs(exact) >= most)
            stray: Array = problem.known & ~side.finite & ~overflow
            if problem.special is not None:
                alike = (np.isnan(values) & np.isnan(problem.special)) | (values == problem.special)
                stray |= ~problem.known & ~alike
        return stray

    def _cause(self, fault: Fault, stage: str) -> DiagnosedCause:
        share = 1.0 if fault.wrong is None else float(fault.wrong.mean())
        return DiagnosedCause(fault.name, stage, self.side.name, share, fault.where, fault.evidence)

    def _found(
        self,
        status: str,
        faults: tuple[Fault, ...],
        model: Model = PLAIN,
        accumulator: Format = SINGLE,
        z: Array | None = None,
        view: View | None = None,
    ) -> SideExplanation:
        causes = [self._cause(each, "result") for each in faults]
        if model.name:
            causes.insert(0, self._cause(Fault(model.name, (), model.evidence), model.stage))
        own = self.accumulators[0]
        if accumulator is not own and status in ("product", "rounding", "bug") and not faults:
            causes.append(self._cause(Fault("accumulator", (), (("format", accumulator.name),)), "accumulator"))
        if view is not None and self._is_cast(view):
            causes.append(self._cause(Fault("output-rounded", (), (("format", self.side.narrowest.name),)), "output"))
        if self.before:
            status = "bug" if status != "unknown" else status
        elif status == "product" and causes:
            status = "rounding"
        wrong = next((each.wrong for each in faults if each.wrong is not None), None)
        error = 0.0 if z is None else middle(z)
        return SideExplanation(
            self.side, status, (*self.before, *causes), model, accumulator, self.stray if self.before else wrong, error
        )

    def _is_cast(self, view: View) -> bool:
        """Say whether numbers of a narrower format are what rounding the result made."""
        if self.side.narrowest.precision >= self.side.format.precision or not isinstance(view.half, np.ndarray):
            return False
        bare = View(view.totals, view.values, view.usable, view.noise, self.side.format)
        return bool(bare.fit().wrong.any())
