"""Faults below the rounding error bound: few differing elements among identical ones, and significant mean errors."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record
from floatlab.reduce.explain.findings import ENOUGH, SampledModel
from floatlab.reduce.explain.problem import ProductProblem, Side, View, view_of
from floatlab.reduce.results.diagnosis_record import Evidence

_DOUBT = 12.0  # −ln of the largest accepted probability of a coincidence
_LENIENT = 2.0  # an order of a library may change so many times fewer elements than those that were simulated
_STRIP = 6  # elements in rows or columns at an edge: the edge of a tile may make so many
_LONG = 16  # a mean needs at least this many elements
BIAS, _SCALE = 30.0, 10.0  # standard deviations; of 900 correct results, none had more than 11 and 4
_DOUBTED = 0.6  # times these, a bias or a factor is likely, and not certain
_OTHER = 3.0  # and at least this many times the other result's value
_NORMAL = 0.4549  # the median of the square of a normal number
_OUTLYING = 0.02  # of all errors
_SAME = 6.0  # of n elements, spreads are the same within so many parts of the root of n
CERTAIN = 8.0  # standard deviations, so that errors follow a model
_WORSE = 1.5  # of the plain product's median error: a model that leaves more is none
_OFF = 0.1  # from one, at most, is the factor with which they follow it
OUTLIER = 20.0  # medians
_LOOSE = 1.5  # times the limit: means are only estimates of a shift
_CHANGES = 0.5  # sigmas
_FEW = 8  # elements
_EVEN = 4.0  # times the other errors, and an ulp of the largest element, are errors of one size at most
_FINE = 2.0**-12  # of Σ|x·y|: formats of up to 11 digits change inputs by more than that
_GROWTH = 0.7  # a smaller power of the size of elements is no growth as that of rounding errors
_UNLIKE = 4.0  # times as large is the rounding of large elements as that of small ones, so that they can be told apart
_SMOOTH = 0.1  # of the variance around the best line: values that follow the product otherwise
_APART = 0.01  # sigmas between two models, at least, so that one of them can be the better one


def is_no_order(differing: Array, chance: float, doubt_needed: float = _DOUBT) -> bool:
    """Return whether fewer elements differ than another order of addition would change."""
    count, expected = int(differing.sum()), differing.size * chance / _LENIENT
    if count >= expected:
        return False
    doubt = expected - count + (count * log(count / expected) if count else 0.0)
    if doubt < doubt_needed:
        return False
    for axis in (0, 1):
        lines = differing.any(axis=axis)
        size = int(lines.sum()) * differing.shape[axis]
        if count >= _STRIP and count >= size * chance / _LENIENT:
            return False  # other orders in some rows or columns: the edge of a tile
    return True


def least_shown(views: Sequence[View]) -> Evidence:
    """Return the median relative error from which a single wrong element is found, as evidence."""
    with np.errstate(all="ignore"):
        limits = [(view.noise.limit(view.totals) + view.half) / np.abs(view.totals.product) for view in views]
        limit = np.maximum.reduce(limits)
    some = limit[np.isfinite(limit)]
    return (("a wrong element shows from", f"{float(np.median(some)):.2g} of it on"),) if some.size else ()


class Drift(Record):
    """A drift: mean errors fitted as a bias of each column or row, or as a factor, in standard deviations."""

    bias: tuple[float, float]
    scale: float
    factor: float
    residuals: tuple[float, float, float]
    elements: int
    means: tuple[Array, Array]

    __hash__ = object.__hash__


def drift_of(view: View) -> Drift:
    """Measure the drift of a result whose single errors are all within the rounding error bound."""
    totals = view.totals
    error, exact = totals.error(view.values), totals.product
    with np.errstate(all="ignore"):
        square = view.noise.sigma(totals) ** 2 + np.asarray(view.half) ** 2 / 3
        weight = np.where(view.usable & (square > 0) & (totals.size > 0), 1 / square, 0.0)
        weight = np.where(np.isfinite(weight), weight, 0.0)
        error = np.where(weight > 0, error, 0.0)
        stands, left, means = [], [], []
        for axis in (0, 1):
            sums = weight.sum(axis=axis, keepdims=True)
            mean = (weight * error).sum(axis=axis, keepdims=True) / np.where(sums > 0, sums, 1.0)
            spread = _spread(error - mean, weight)
            long = (weight > 0).sum(axis=axis, keepdims=True) >= _LONG
            terms = (mean * mean * sums / max(spread, 1e-12))[long]
            stands.append(float((terms.sum() - terms.size) / sqrt(2 * terms.size)) if terms.size else 0.0)
            # One number for every element or two explains anything.
            left.append(spread if weight.size >= 2 * sums.size else np.inf)
            means.append(mean)
        down = float((weight * exact * exact).sum())
        factor = float((weight * exact * error).sum()) / down if down > 0 else 0.0
        spread = _spread(error - factor * exact, weight)
        scale = factor / sqrt(spread / down) if down > 0 and spread > 0 else 0.0
    residuals = left[0], left[1], spread
    # Equal elements, as constant inputs make them, are one observation.
    count = int((weight > 0).sum())
    apart = len(np.unique(exact[weight > 0])) / max(1, count)
    stands, scale = [each * apart for each in stands], scale * sqrt(apart)
    return Drift((stands[0], stands[1]), scale, factor, residuals, count, (means[0], means[1]))


def _spread(error: Array, weight: Array) -> float:
    """Return the mean square error; the median tells it of normal errors, and nothing of sums half of which are exact.

    The largest errors are left out: they may be faults.
    """
    squares = np.sort((error * error * weight)[weight > 0])
    usual = squares[: squares.size - int(_OUTLYING * squares.size)]
    return max(float(np.median(squares)) / _NORMAL, float(usual.mean())) if squares.size else 0.0


def small_fault(mine: Drift, other: Drift, u: float) -> tuple[str, str, bool] | None:
    """Return a fault in the mean errors of one result only: its name, evidence, and whether it is certain."""
    found = []
    for axis, words in ((0, "column"), (1, "row")):
        if mine.bias[axis] > max(_DOUBTED * BIAS, _OTHER**2 * other.bias[axis]):
            found.append((mine.residuals[axis], "bias", f"one number a {words}", mine.bias[axis] > BIAS))
    if abs(mine.scale) > max(_DOUBTED * _SCALE, _OTHER * abs(other.scale)) and abs(mine.factor) > u / 4:
        # A factor has one unknown, a bias many. The factor is chosen unless its residuals are clearly larger.
        room = 1 + _SAME / sqrt(mine.elements)
        found.append((mine.residuals[2] / room, "scale", f"{1 + mine.factor:.12g}", abs(mine.scale) > _SCALE))
    return min(found)[1:] if found else None


def certainty(one: SampledModel, plain: SampledModel) -> float:
    """Return by how many standard deviations the errors of the plain product follow what a model changes.

    Errors of a result that was made so contain the whole change, and beside it rounding, which knows nothing of it.
    """
    if one is plain or one.accumulator is not plain.accumulator or one.z > _WORSE * plain.z:
        return 0.0
    totals = plain.view.totals
    with np.errstate(all="ignore"):
        sigma = plain.view.noise.sigma(totals) + plain.view.half
        error = totals.error(plain.view.values) / sigma
        change = (one.exact - totals.product) / sigma
    usable = plain.view.usable & np.isfinite(error) & np.isfinite(change)
    error, change = error[usable], change[usable]
    usual = np.abs(error) <= OUTLIER * max(float(np.median(np.abs(error))), 1e-9) if error.size else error
    error, change = error[usual], change[usual]
    # A factor is no proof of a model whose change is one on average: only what is not along the product counts.
    along = totals.product[usable][usual] / sigma[usable][usual]
    error, change = (each - (each @ along) / max(float(along @ along), 1e-300) * along for each in (error, change))
    power = float(change @ change)
    if error.size < ENOUGH or power == 0 or float(np.median(np.abs(change))) < _APART:
        return 0.0
    slope = float(change @ error) / power
    spread = float(np.sqrt(np.mean((error - slope * change) ** 2) / power))
    if abs(slope - 1) > _OFF + CERTAIN / 2 * spread:
        return 0.0
    return slope / max(spread, 1e-9)


def look_closer(
    problem: ProductProblem, side: Side, certain: dict[int, float], near: list[SampledModel], first: SampledModel
) -> None:
    """Measure the certainty of the likeliest models that a sample left in doubt on all elements."""
    doubted = [each for each in near if CERTAIN / 4 < certain[id(each)] <= CERTAIN]
    if max(certain.values()) > CERTAIN or first.view.values.size == side.values.size:
        return
    for each in sorted(doubted, key=lambda each: -certain[id(each)])[:2]:
        view = view_of(problem, side, each.accumulator)
        plain = SampledModel(first.z, first.wrong, first.model, first.accumulator, view, None)
        product = problem.whole(each.model)
        certain[id(each)] = certainty(each.replace(view=view, product=product), plain)


def is_apart(one: SampledModel) -> bool:
    """Return whether a model changes the product at least about as much as rounding does."""
    totals = one.view.totals
    with np.errstate(all="ignore"):
        change = np.abs(one.exact - totals.product) / one.view.noise.sigma(totals)
    usable = one.view.usable & (totals.size > 0)
    return bool(usable.any() and np.nanmedian(change[usable]) > _CHANGES)


def are_even(view: View, wrong: Array) -> bool:
    """Return whether errors are as large in small elements as in large ones, as those of fast algorithms are."""
    error, exact = np.abs(view.totals.error(view.values)), np.abs(view.totals.product[view.usable])
    others = error[view.usable & ~wrong & (error > 0)]
    if 0 < int(wrong.sum()) <= ENOUGH:
        return _are_few_even(view, wrong, error)
    even = others.size > 0 and float(np.median(error[wrong])) <= _EVEN * float(np.median(others))
    small = float(error[wrong].max()) <= _EVEN * view.noise.u * float(exact.max())
    return int(wrong.sum()) > ENOUGH and even and small


def _are_few_even(view: View, wrong: Array, error: Array) -> bool:
    """Return whether errors do not grow with the elements, and a few are wrong only because these are small."""
    right, sigma = view.usable & ~wrong, view.noise.sigma(view.totals)
    beyond = view.fit(times=_EVEN).wrong.any() or float(error[wrong].max()) > float(error[right].max())
    if right.sum() < ENOUGH or beyond:
        return False
    large = sigma[right] > np.median(sigma[right])
    grown = [
        float(np.median(each[large]) / max(np.median(each[~large]), 1e-320)) for each in (sigma[right], error[right])
    ]
    return grown[0] > _UNLIKE and grown[1] < grown[0] ** _GROWTH


def is_function_of_product(view: View) -> bool:
    """Return whether equal elements of the product, in a row or in all rows, are equal in a result that is no multiple.

    The values are sorted by the product: neighbours are more alike than the values and the best multiple are.
    """
    if not view.usable.all() or not np.isfinite(view.totals.product).all():
        return False
    product = view.totals.product
    for exact, values in ((product.reshape(1, -1), view.values.reshape(1, -1)), (product, view.values)):
        if exact.shape[1] < _LONG:
            continue
        a, b = (each - each.mean(axis=1, keepdims=True) for each in (exact, values))
        down = (a * a).sum(axis=1, keepdims=True)
        slope = (a * b).sum(axis=1, keepdims=True) / np.where(down > 0, down, 1.0)
        linear = float(((b - slope * a) ** 2).mean())
        steps = np.diff(np.take_along_axis(b - slope * a, np.argsort(exact, axis=1), axis=1), axis=1)
        if float((steps * steps).mean()) / 2 < _SMOOTH * linear:
            return True
    return False


def are_exact(view: View, wrong: Array) -> bool:
    """Return whether sums that are exact in every order are off, by less than inputs of fewer digits would make."""
    small = np.abs(view.totals.error(view.values)) <= _FINE * view.totals.size
    return bool(wrong.any() and (small & view.noise.is_exact(view.totals))[wrong].all())


def may_be_flushed(view: View, wrong: Array, least: float) -> bool:
    """Return whether products and partial sums below `least` that became zero may explain errors, by their size."""
    most = 2 * view.totals.terms * least
    small = np.abs(view.totals.error(view.values)) <= most + view.noise.limit(view.totals)
    return bool(wrong.any() and (small & (view.totals.size > 0))[wrong].all())


def explains_more(view: View, product: Array) -> bool:
    """Return whether a model leaves less than the plain product; its limit alone has more room."""
    error, room = (np.abs(view.totals.error(view.values)), view.noise.limit(view.totals, product) + view.half)
    usable = view.usable & (view.totals.size > 0)
    if not (error <= room)[usable].all():
        return True
    with np.errstate(all="ignore"):
        left = np.abs(view.totals.error(view.values, product))[usable]
    return bool(np.median(left) * (1 + _SAME / sqrt(max(1, left.size))) < np.median(error[usable]))


def outdoing(view: View, product: Array) -> tuple[str, bool] | None:
    """Return the factor or bias that explains the errors of the plain product as well as a model does, if one does.

    The second value says whether the model explains them as well as that.
    """
    totals = view.totals
    with np.errstate(all="ignore"):
        square = view.noise.sigma(totals) ** 2 + np.asarray(view.half) ** 2 / 3
        usable = view.usable & (square > 0) & (totals.size > 0)
        weight = np.where(usable, 1 / square, 0.0)
        modelled = np.where(usable, totals.error(view.values, product), 0.0)
    if not modelled.any() or usable.sum() < _FEW:
        return None  # no residual can be smaller, or a factor explains anything
    # A product that errs by rounding needs no rival: what the model changes is then too small for one.
    drift = drift_of(view)
    if max(*drift.bias, abs(drift.scale)) < CERTAIN:
        return None
    left, room = _spread(modelled, weight), 1 + _SAME / sqrt(max(1, int(usable.sum())))
    error, limit = totals.error(view.values), _LOOSE * (view.noise.limit(totals) + view.half)
    shifts = *drift.means, drift.factor * totals.product
    words = "a bias (one number per column)", "a bias (one number per row)", f"a factor of {1 + drift.factor:.6g}"
    found = [
        (residual, text)
        for residual, shift, text in zip(drift.residuals, shifts, words, strict=True)
        if residual <= left * room and bool((np.abs(error - shift) <= limit)[usable].all())
    ]
    return (min(found)[1], left <= min(found)[0] * room) if found else None
