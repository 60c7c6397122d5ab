"""Find faults that are smaller than the rounding error bound.

A fault is found if only a few elements of two results differ, or if the mean error of many elements is significant. The
plain product is the exact product of the unchanged inputs. A model is an assumed change of the inputs (see `stages`). A
shift is an array of the errors that a bias or a factor would cause. Evidence is a tuple of details for the user, each
with a name and a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, log, sqrt

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.reduce.explain.estimates import equal_ratio
from floatlab.reduce.explain.findings import ENOUGH, SampledModel
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import Fit, ProductProblem, Side, View, middle, view_of
from floatlab.reduce.explain.residuals import is_flat
from floatlab.reduce.results.diagnosis_record import Evidence

_DOUBT = 12.0  # a fault is reported if the probability of a coincidence is at most exp(−12)
_LENIENT = 2.0  # the orders of a library may change fewer elements than the simulated orders, by up to this factor
_STRIP = 6  # a tile at an edge that is added in another order has at least this many differing elements
_LONG = 16  # the smallest number of elements whose mean is used
# A bias is certain above BIAS standard deviations, and a factor above _SCALE. In 900 correct results, the largest were
# 11 for a bias and 4 for a factor.
BIAS, _SCALE = 30.0, 10.0
_DOUBTED = 0.6  # a bias or a factor above this share of its limit is likely; above the limit, it is certain
# A factor is reported if it is this many times as significant as the factor of the other result; for a bias, this
# number is squared.
_OTHER = 3.0
_NORMAL = 0.4549  # the median of the square of a standard normal variable
_OUTLYING = 0.02  # share of the largest errors that the mean square error leaves out
CERTAIN = 8.0  # a model is certain if its `certainty` exceeds this many standard deviations
_WORSE = 1.5  # a model is rejected if its median error is more than this many times that of the plain product
_OFF = 0.1  # errors are proportional to a model's changes if their slope is 1 ± this number, plus its uncertainty
OUTLIER = 20.0  # errors above this many times the median error, or above this many sigmas, are outliers
_LOOSE = 1.5  # a residual may exceed its limit by this factor, because the shift is only an estimate
_CHANGES = 0.5  # a model's change is significant if its median exceeds this many sigmas
_FEW = 8  # a factor can explain any result with fewer elements than this
_FINE = 2.0**-12  # rounding inputs to at most 11 digits changes a product by more than this share of Σ|x·y|
# A result is a function of the product if numbers with almost the same product differ little: half their mean square
# difference is less than this share of the mean square distance from the best straight line.
_SMOOTH = 0.1
_EQUAL = 1e-12  # elements of the exact product count as equal if they differ by less, relative to the largest element
_NEARER = 1.0  # a model is named only if it reduces the median error to less than this share
# The least evidence, in bits, for a final rounding or for one of about a hundred sums in narrow formats. With less,
# more than one in a hundred results would fit by chance.
BITS_OF_SUMS = 13.0
BITS_EACH = 8.0  # additional evidence, in bits, that is required for each element that a computation does not reproduce
_APART = 0.01  # two models can be compared only if their products differ by at least this many sigmas


def is_no_order(differing: Array, chance: float, doubt_needed: float = _DOUBT) -> bool:
    """Return whether so few elements differ that another order of addition cannot be the cause.

    `chance` is the share of elements that another order changes. `doubt_needed` is −ln of the largest accepted
    probability of a coincidence.
    """
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
            return False  # a tile at the edge may add these rows or columns in another order
    return True


def least_shown(views: Sequence[View]) -> Evidence:
    """Return, as evidence, the relative error above which a typical element would be recognised as wrong."""
    with np.errstate(all="ignore"):
        limits = [(view.noise.limit(view.totals) + view.half) / np.abs(view.totals.product) for view in views]
        limit = np.maximum.reduce(limits)
    some = limit[np.isfinite(limit)]
    return (("an error is seen if it exceeds", f"{float(np.median(some)):.2g} of the element"),) if some.size else ()


class Drift(Record):
    """Three fits of the errors of a result: by a bias of each column, by a bias of each row, and by one factor.

    `means` holds the fitted biases, and the fitted factor is 1 + `factor`. `bias` (for columns and for rows) and
    `scale` (for the factor) say how significant the fits are, in standard deviations. `residuals` holds the mean square
    errors that remain after each fit. `elements` is the number of distinct elements.
    """

    bias: tuple[float, float]
    scale: float
    factor: float
    residuals: tuple[float, float, float]
    elements: int
    means: tuple[Array, Array]

    __hash__ = object.__hash__


def drift_of(view: View) -> Drift:
    """Return three fits of the errors of a result, which are assumed to be within the rounding error bound."""
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
            long = different_along(np.where(weight > 0, exact, np.nan), axis) >= _LONG
            terms = (mean * mean * sums / max(spread, 1e-12))[long]
            stands.append(float((terms.sum() - terms.size) / sqrt(2 * terms.size)) if terms.size else 0.0)
            # A bias has one free parameter for each of its sums. With one for one or two elements, it fits any result.
            left.append(spread / (1 - sums.size / weight.size) if weight.size > 2 * sums.size else np.inf)
            means.append(mean)
        down = float((weight * exact * exact).sum())
        factor = float((weight * exact * error).sum()) / down if down > 0 else 0.0
        spread = _spread(error - factor * exact, weight)
        scale = factor / sqrt(spread / down) if down > 0 and spread > 0 else 0.0
    residuals = left[0], left[1], spread
    # Constant inputs give equal elements, which count as one observation.
    count = len(np.unique(exact[weight > 0]))
    apart = count / max(1, int((weight > 0).sum()))
    stands, scale = [each * apart for each in stands], scale * sqrt(apart)
    return Drift((stands[0], stands[1]), scale, factor, residuals, count, (means[0], means[1]))


def different_along(numbers: Array, axis: int) -> Array:
    """Return the number of distinct numbers along an axis, without NaNs. The axis is kept with length 1.

    Equal numbers are assumed to come from equal rows or columns of an input, so they are one observation of a bias.
    """
    ordered = np.sort(numbers, axis=axis)  # NaNs come last
    changes: Array = (np.diff(ordered, axis=axis) > 0).sum(axis=axis, keepdims=True)
    count: Array = changes + ~np.isnan(np.take(ordered, [0], axis=axis))
    return count


def _spread(error: Array, weight: Array) -> float:
    """Return the weighted mean square error, without the largest errors, which may be faults.

    The result is the larger of two estimates. The first is the median of the weighted squares, divided by 0.4549: the
    mean of the squares if the errors are normally distributed. It is too small if half of the sums are exact. The
    second is the mean of the squares without the largest 2 %.
    """
    squares = np.sort((error * error * weight)[weight > 0])
    usual = squares[: squares.size - int(_OUTLYING * squares.size)]
    return max(float(np.median(squares)) / _NORMAL, float(usual.mean())) if squares.size else 0.0


def small_fault(mine: Drift, other: Drift, u: float) -> tuple[str, str, bool] | None:
    """Return a bias or factor that is significant in the first result, and far more so than in the second; else None.

    The fault is given as a tuple: its name, its evidence, and whether it is certain.
    """
    found = []
    for axis, words in ((0, "column"), (1, "row")):
        if mine.bias[axis] > max(_DOUBTED * BIAS, _OTHER**2 * other.bias[axis]):
            found.append((mine.residuals[axis], "bias", f"one number a {words}", mine.bias[axis] > BIAS))
    if (
        mine.elements >= _LONG
        and abs(mine.scale) > max(_DOUBTED * _SCALE, _OTHER * abs(other.scale))
        and abs(mine.factor) > u / 4
    ):
        # A factor has one unknown, and a bias has many. The factor is chosen unless it leaves clearly larger errors.
        room = equal_ratio(mine.elements)
        found.append((mine.residuals[2] / room, "scale", f"{1 + mine.factor:.12g}", abs(mine.scale) > _SCALE))
    return min(found)[1:] if found else None


def certainty(one: SampledModel, plain: SampledModel) -> float:
    """Return how clearly the errors of a result contain a model's changes of the product, in standard deviations.

    The errors are those against the plain product. If the model is right, an error is the model's change plus an
    independent rounding error, so the slope of the errors against the changes is 1. Return this slope in units of its
    standard deviation, or 0 if it is not close to 1.
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
    # The part of a change that is proportional to the product could also be due to a factor, so it is removed.
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
    """Compute the certainty of up to two models on all elements, if their certainty in the sample is not conclusive.

    `certain` maps the id of each model to its certainty. The new values are stored in `certain`.
    """
    doubted = [each for each in near if CERTAIN / 4 < certain[id(each)] <= CERTAIN]
    if max(certain.values()) > CERTAIN or first.view.values.size == side.values.size:
        return
    for each in sorted(doubted, key=lambda each: -certain[id(each)])[:2]:
        view = view_of(problem, side, each.accumulator)
        plain = SampledModel(first.z, first.wrong, first.model, first.accumulator, view, None)
        product = problem.whole(each.model)
        certain[id(each)] = certainty(each.replace(view=view, product=product), plain)


def is_apart(one: SampledModel) -> bool:
    """Return whether a model's change of the product is about as large as rounding errors, or larger."""
    totals = one.view.totals
    with np.errstate(all="ignore"):
        change = np.abs(one.exact - totals.product) / one.view.noise.sigma(totals)
    usable = one.view.usable & (totals.size > 0)
    return bool(usable.any() and np.nanmedian(change[usable]) > _CHANGES)


def is_function_of_product(view: View) -> bool:
    """Return whether the result is a nonlinear function of the product: one function for all rows, or one for each.

    If the values are sorted by the product, neighbours differ little, but the values are far from a straight line.
    """
    product = view.totals.product
    if not view.usable.all() or not np.isfinite(product).all() or is_flat(product):
        return False
    for exact, values in ((product.reshape(1, -1), view.values.reshape(1, -1)), (product, view.values)):
        if exact.shape[1] < _LONG:
            continue
        a, b = (each - each.mean(axis=1, keepdims=True) for each in (exact, values))
        down = (a * a).sum(axis=1, keepdims=True)
        slope = (a * b).sum(axis=1, keepdims=True) / np.where(down > 0, down, 1.0)
        linear = float(((b - slope * a) ** 2).mean())
        order = np.argsort(exact, axis=1)
        steps = np.diff(np.take_along_axis(b - slope * a, order, axis=1), axis=1)
        # Equal rows of an input give equal elements, which are no evidence of a smooth function.
        steps = steps[np.diff(np.take_along_axis(exact, order, axis=1), axis=1) > _EQUAL * np.abs(exact).max()]
        if steps.size >= _LONG and float((steps * steps).mean()) / 2 < _SMOOTH * linear:
            return True
    return False


def are_exact(view: View, wrong: Array) -> bool:
    """Return whether all wrong elements have small errors, and sums that are exact in every order of addition.

    An error is small if rounded inputs would cause larger errors. Return False if there are no wrong elements.
    """
    small = np.abs(view.totals.error(view.values)) <= _FINE * view.totals.size
    return bool(wrong.any() and (small & view.noise.is_exact(view.totals))[wrong].all())


def are_among_others(view: View, wrong: Array) -> bool:
    """Return whether at least as many numbers are right as wrong. Zeros do not count as right.

    If fewer are right, there is no evidence that the result is a product of these inputs with a few wrong elements.
    """
    return bool(view.right(wrong).sum() >= wrong.sum())


def are_live(view: View) -> Array:
    """Return the mask of the usable elements (`view.usable`) that show anything about a computation.

    In other usable elements, the products are 0 or negligible, so every computation gives the given bias (or 0).
    """
    size, given = view.totals.size, 0.0 if view.bias is None else view.bias
    live: Array = view.usable & ((size > np.abs(given) * (1 + _EQUAL)) | (view.values != given))
    return live


def live_z(view: View, fit: Fit) -> float:
    """Return the median error, in sigmas, of the elements that `are_live`."""
    return middle(np.where(are_live(view), fit.z, np.nan))


def explains_more(view: View, product: Array) -> bool:
    """Return whether a model's product explains a result better than the plain product does.

    This is the case if some errors against the plain product exceed even the error limits of the model's product. It is
    also the case if the model clearly reduces the median error.
    """
    error, room = (np.abs(view.totals.error(view.values)), view.noise.limit(view.totals, product) + view.half)
    usable = view.usable & (view.totals.size > 0)
    if not (error <= room)[usable].all():
        return True
    with np.errstate(all="ignore"):
        left = np.abs(view.totals.error(view.values, product))[usable]
    return bool(np.median(left) * equal_ratio(left.size) < np.median(error[usable]))


def is_nearer(view: View, product: Array) -> bool:
    """Return whether the median error is smaller against a model's product than against the plain product.

    Only elements in which these errors differ are compared. Return True if there are no such elements.
    """
    usable = view.usable & (view.totals.size > 0) & (view.values != 0)
    with np.errstate(all="ignore"):
        left, error = (
            np.abs(view.totals.error(view.values, each))[usable] / view.totals.size[usable] for each in (product, None)
        )
    changed = left != error
    return not changed.any() or float(np.median(left[changed])) < _NEARER * float(np.median(error[changed]))


def evidence_bits(view: View, explained: Array, output: Format) -> float:
    """Return the evidence, in bits, for a computation that gives exactly the numbers of the `explained` elements.

    If a number differs from the product by k ulps of the format `output`, about 2·k + 1 numbers of the format are at
    least as close to the product. So this number counts log2(2·k + 1) bits. If the sums and the number are multiples of
    a step that is larger than an ulp, k is the number of these steps. Equal numbers count once. Zeros do not count,
    because many causes make zeros.
    """
    explained = explained & view.usable & (view.values != 0)
    _, first = np.unique(view.values[explained], return_index=True)
    error = np.abs(view.totals.error(view.values))[explained][first]
    values, exact = (each[explained][first] for each in (view.values, view.totals.product))
    step = 2 * half_ulp(np.maximum(np.abs(values), np.abs(exact)), output)
    if view.totals.grain is not None:
        grain = view.totals.grain[explained][first]
        with np.errstate(all="ignore"):
            step = np.where(np.fmod(values, grain) == 0, np.maximum(step, grain), step)
    with np.errstate(all="ignore"):
        return float(np.log2(1 + 2 * error / step).sum())


def place_bits(view: View, wrong: Array, counted: Array | bool = True) -> float:
    """Return the evidence, in bits, for a computation that changes exactly the `wrong` elements.

    This is log2 of the number of ways to choose as many elements as are wrong. Only usable elements in the mask
    `counted` count, and equal numbers count once.
    """
    count, some = (len(np.unique(view.values[each & view.usable & counted])) for each in (view.usable, wrong))
    some = min(some, count)
    return (lgamma(count + 1) - lgamma(some + 1) - lgamma(count - some + 1)) / log(2)


def outdoing(view: View, product: Array) -> tuple[str, bool] | None:
    """Return the text of a factor or bias that fits at least as well as a model; None if there is none.

    The text comes with a second value, which is True if the model fits equally well.
    """
    totals = view.totals
    with np.errstate(all="ignore"):
        square = view.noise.sigma(totals) ** 2 + np.asarray(view.half) ** 2 / 3
        usable = view.usable & (square > 0) & (totals.size > 0)
        weight = np.where(usable, 1 / square, 0.0)
        modelled = np.where(usable, totals.error(view.values, product), 0.0)
    if not modelled.any() or usable.sum() < _FEW:
        return None  # the model leaves no error, or there are so few elements that a factor would explain any result
    # Without a significant mean error, there is no factor or bias that could be confused with the model's change.
    drift = drift_of(view)
    if max(*drift.bias, abs(drift.scale)) < CERTAIN:
        return None
    left, room = _spread(modelled, weight), equal_ratio(int(usable.sum()))
    error, limit = totals.error(view.values), _LOOSE * (view.noise.limit(totals) + view.half)
    shifts = *drift.means, drift.factor * totals.product
    words = "a bias (one number per column)", "a bias (one number per row)", f"a factor of {1 + drift.factor:.6g}"
    found = [
        (residual, text)
        for residual, shift, text, axis in zip(drift.residuals, shifts, words, (0, 1, None), strict=True)
        if residual <= left * room
        and bool((np.abs(error - shift) <= limit)[usable].all())
        and (axis is None or not _predicts_means(view, product, drift, axis))
    ]
    return (min(found)[1], left <= min(found)[0] * room) if found else None


def _predicts_means(view: View, product: Array, drift: Drift, axis: int) -> bool:
    """Return whether a model explains why the mean errors of columns (axis 0) or of rows (axis 1) differ.

    A bias has one free number per column or row to fit these mean errors, but the model has no free numbers. So the
    model is likelier than a bias. Fewer than eight columns or rows are no evidence.
    """
    means = drift.means[axis]
    if means.size < _FEW:
        return False
    uneven = View(
        view.totals, view.values - np.median(means), view.usable, view.noise, view.format, np.asarray(view.half)
    )
    left = view.against(view.totals.replace(product=product, missed=None))
    return drift_of(uneven).bias[axis] > 2 * CERTAIN and drift_of(left).bias[axis] < CERTAIN / 2
