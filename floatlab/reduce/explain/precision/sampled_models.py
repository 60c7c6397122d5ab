"""Find the models of the inputs that explain a sample of the elements of a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.formats import Format
from floatlab.reduce.explain.faults.patterns import (
    BITS_OF_SUMS,
    CERTAIN,
    OUTLIER,
    certainty,
    evidence_bits,
    look_closer,
)
from floatlab.reduce.explain.faults.unrelated import is_noise
from floatlab.reduce.explain.findings import ENOUGH, NEAR, Fault, SampledModel
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.problem import ProductProblem, Side, View, middle, view_of
from floatlab.reduce.explain.shrinking import with_changed_terms
from floatlab.reduce.explain.stages import PLAIN, Model
from floatlab.reduce.explain.ways import names_between, own_accumulator

_FAR = 0.25  # results whose median error is more than _FAR/u sigmas are not replayed
_FEW = 8  # a median is not reliable if there are fewer different elements than this
_CAST = 3  # an unusual accumulator adds this weight (complexity) to the model of unchanged inputs


def likely_models(
    problem: ProductProblem, side: Side, accumulators: tuple[Format, ...], tick: Callable[[], None]
) -> tuple[list[SampledModel], list[SampledModel]]:
    """Return two lists: all models that were tried on the sample, and the models that leave only small errors there.

    The second list begins with the likeliest model. Rare models are tried only if no usual model explains the sample
    well.
    """
    found = list(_sampled(problem, side, accumulators, tick, False))
    # The median of a few different elements may exceed its usual limit by chance.
    few = len(np.unique(problem.sample.product)) < _FEW
    near = [each for each in found if each.z <= NEAR or (few and not each.wrong)]
    best = min((each.wrong for each in near), default=0)
    if not near or (best and not any(each.model is PLAIN and each.wrong == best for each in near)):
        found += _sampled(problem, side, accumulators, tick, True)
        near = [each for each in found if each.z <= NEAR]
    if not near:
        return found, []
    usable = int(near[0].view.usable.sum())
    least = min(each.wrong for each in near)
    own = accumulators[0]
    near.sort(
        key=lambda each: (
            each.wrong > least + usable // 50,
            each.model.weight + (_CAST if each.model is PLAIN and each.accumulator is not own else 0),
            each.accumulator is not own,
            round(each.rms, 2),
        )
    )
    first = near[0]
    different = len(np.unique(first.view.values[first.view.usable]))  # equal elements are not independent
    if different >= ENOUGH and first.model is PLAIN:
        certain = {id(each): certainty(each, first) for each in near}
        look_closer(problem, side, certain, near, first)
        clearer = [each for each in near if certain[id(each)] > CERTAIN]
        clearer.sort(key=lambda each: -certain[id(each)])
        near = clearer + [each for each in near if each not in clearer]
    return found, near


def _sampled(
    problem: ProductProblem, side: Side, accumulators: tuple[Format, ...], tick: Callable[[], None], rare: bool
) -> Iterator[SampledModel]:
    views = [view_of(problem, side, each, sampled=True) for each in accumulators]
    for model, product in problem.sampled_models(tick, rare):
        for accumulator, usual in zip(accumulators, views, strict=True):
            view = with_changed_terms(usual, problem, model, product, sampled=True)
            fit = view.fit(product)
            some = fit.z[view.totals.size > 0]
            errors = np.minimum(fit.z[view.usable], OUTLIER)
            rms = float(np.sqrt(np.mean(errors**2))) if errors.size else 0.0
            wrong = int(fit.wrong.sum())
            yield SampledModel(middle(some if some.size else fit.z), wrong, model, accumulator, view, product, rms)


def far_replay(
    problem: ProductProblem, side: Side, view: View, options: list[SampledModel], tick: Callable[[], None]
) -> tuple[tuple[Fault, ...], Model] | None:
    """Return a computation that gives the result bit for bit, even if the errors exceed the rounding error bound.

    The computation is returned as a pair: its causes, and the model of the inputs. Return None if no computation is
    found, if the errors are about as large as the product, or if the result has too few numbers to be evidence.
    """
    own, into = own_accumulator(side.rounded_to), side.rounded_to
    error, size = np.abs(view.totals.error(view.values))[view.usable], view.totals.size[view.usable]
    fit = view.fit()
    if middle(fit.z) * view.noise.u > _FAR or is_noise(problem, view, side):
        return None
    if evidence_bits(view, fit.wrong, side.coarsest) < BITS_OF_SUMS:
        return None
    plain = next(each for each in options if each.model is PLAIN)
    rounded = [each for each in options if each.model.name == "inputs-rounded" and each.wrong <= plain.wrong]
    likely = sorted(rounded, key=lambda each: (each.rms, each.model.weight))[:2]
    for model in (PLAIN, *(each.model for each in likely)):
        grid = grid_of(problem, model, into, tick)
        made = [np.isfinite(decode(each.codes, each.format)) for each in grid.sides]
        if side.finite.all() and problem.special is None and not all(each.all() for each in made):
            continue  # inputs that overflow give no finite sums
        (ways,) = grid.ways((side,))
        names = names_between([], ways, own)[0] if ways else {}
        directed = model is PLAIN and (error <= 2.1 * problem.terms * view.noise.u * size).all()
        if not ways and into == side.format and directed and (ways := grid.directed_ways(side)):
            names = {"accumulator": ways[0].text}
        if ways:
            return tuple(
                Fault(name, (), (("computed as", text),)) for name, text in names.items() if name != "order"
            ), model
    return None
