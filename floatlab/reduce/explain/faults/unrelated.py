"""Recognise results that are not the product: errors are too large, or the correlation with the product too small."""

from __future__ import annotations

from math import sqrt

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import parse_format
from floatlab.reduce.explain.findings import ENOUGH
from floatlab.reduce.explain.noise import Totals
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import correlation, lines_without, share_of
from floatlab.reduce.explain.stages import INT4_HALF_STEPS, coarsest_models
from floatlab.reduce.results.diagnosis_record import Evidence

_BFLOAT = parse_format("bf16")
_FAR = 0.2  # errors above this multiple of √Σ(x·y)² exceed those of inputs rounded to two significant bits
_UNRELATED = 0.5  # smallest share of unrelated elements in a result that is not the product
_FEW = 4  # fewer wrong elements than this are reported one by one, unless they are most elements
_LEAST_SHARE = 0.3  # smallest share of unrelated elements if a lost correlation shows that a result is another product
_UNSURE = 8.0  # the median of n errors may be larger than that of all errors by the factor 1 + 8/n
_FEW_VALUES = 256  # a result with at most this many different numbers may have been quantised
# The coarsest computations must keep a correlation of at least _KEPT with the product. A result is unrelated if its
# correlation is below _LOST times that of the coarsest computation, and at least _SIGMAS standard deviations smaller.
_KEPT, _LOST, _SIGMAS = 0.5, 0.3, 5.0
_RELATED = 0.8  # numbers with at least this correlation with the product are related to it
_LONG = 8  # `is_shifted` tries only columns and rows that have at least this many elements
_EMPTY = 0.1  # a computation is left out as almost zero if its sum of squares is at most this share of the result's


def unrelated(problem: ProductProblem, view: View, side: Side) -> Evidence:
    """Return the evidence that a result is not the product of the inputs, or () if the result may be the product."""
    times, share = times_coarsest(problem, side), unrelated_share(view)
    wrong = view.fit().wrong
    are_few = wrong.sum() < min(_FEW, _UNRELATED * view.usable.sum())
    far = times > 1 + _UNSURE / view.values.size and (share >= _UNRELATED or view.values.size < ENOUGH)
    if far and not are_few and not is_shifted(problem, view, side):
        return (("beyond", f"{times:.3g} times inputs of 4 bits"),)
    return () if share < _LEAST_SHARE else _lost_correlation(problem, side)


def is_shifted(problem: ProductProblem, view: View, side: Side) -> bool:
    """Return whether a result is related to the product after one number per column or per row is subtracted."""
    for axis in (0, 1):
        if view.values.shape[axis] < _LONG or not view.usable.all():
            continue
        values = view.values - np.median(view.totals.error(view.values), axis=axis, keepdims=True)
        shifted = View(view.totals, values, view.usable, view.noise, view.format)
        if times_coarsest(problem, side, values) <= 1 and unrelated_share(shifted) < _UNRELATED:
            return True
    return False


def times_coarsest(problem: ProductProblem, side: Side, values: Array | None = None) -> float:
    """Return the median ratio of a result's errors to the largest plausible errors, or 0 if no error is known.

    Only sampled elements are used. The largest plausible error is twice the largest of up to three errors. The first is
    the error of inputs quantised to 4 bits, and the second is the error of partial sums in bfloat16. If the result has
    few different numbers, the third is the error of an output quantised to 4 bits. By default, `values` are the values
    of the result.
    """
    index, sample = np.ix_(problem.rows, problem.columns), problem.sample
    usable = side.finite[index] & problem.known[index] & (sample.size > 0)
    values, exact = (side.values if values is None else values)[index], sample.product
    if not usable.any():
        return 0.0
    with np.errstate(all="ignore"):
        room = np.zeros(values.shape)
        for made in _coarsest_products(problem):
            room = np.maximum(room, np.abs(made - exact))
        few = np.unique(values).size
        if few <= min(_FEW_VALUES, values.size / 2):
            room = np.maximum(room, np.abs(exact).max() / INT4_HALF_STEPS)
        # Partial sums may be rounded to bfloat16. If terms cancel, these errors exceed those of rounded inputs.
        room = np.maximum(room, sample.size * 2.0**-_BFLOAT.precision)
        scale = np.sqrt(np.where(sample.squares > 0, sample.squares, 1.0))
        # The errors of quantised inputs may cancel by chance, so allow in each element at least the median error.
        room = np.maximum(room / scale, np.median((room / scale)[usable]))
        return float(np.median((np.abs(sample.error(values)) / scale / (2 * room))[usable]))


def _coarsest_products(problem: ProductProblem) -> list[Array]:
    """Return the sampled elements of the products that `coarsest_models` give."""
    x, y = problem.x[problem.rows], problem.y[:, problem.columns]
    return [problem.made(model, x, y) for model in coarsest_models()]


def unrelated_share(view: View, some: Array | bool = True) -> float:
    """Return how little a result depends on the product: from 0 (related) to 1 (unrelated).

    This is the larger of two numbers. The first is the share of elements, among those in the mask `some`, whose errors
    are too large to come from rounded inputs. Here, an error is the difference from the multiple of the product that
    fits the result best. The second number is 1 − |r|, where r is the correlation between the result and the product.
    Rows or columns with outliers are left out of the correlation (see `_outliers`).
    """
    totals, usable = view.totals, view.usable & some
    usable = usable & (totals.squares > 0) if (usable & (totals.squares > 0)).any() else usable
    with np.errstate(all="ignore"):
        scale = np.where(totals.squares > 0, np.sqrt(totals.squares), 1.0)
        a, b = (each[usable] / scale[usable] for each in (totals.product, view.values))
        far = np.abs(b - (float(a @ b) / max(float(a @ a), 1e-300)) * a)
    share = share_of(far > _FAR)
    kept = view.usable & ~_outliers(totals, view.values, view.usable)
    return max(share, 1.0 - abs(correlation(view.values / scale, totals.product / scale, kept)))


def is_noise(problem: ProductProblem, view: View, side: Side) -> bool:
    """Return whether a result has many different numbers, large errors, and no correlation with the product.

    No order of addition gives such a result, not even in a narrow format in which large sums stop growing.
    """
    with np.errstate(all="ignore"):
        values, exact = (each / np.sqrt(view.totals.squares) for each in (view.values, view.totals.product))
    if abs(correlation(values, exact, view.usable)) * sqrt(values.size) > _SIGMAS:
        return False
    return np.unique(values).size > _FEW_VALUES and times_coarsest(problem, side) > 1


def _lost_correlation(problem: ProductProblem, side: Side) -> Evidence:
    """Return, as evidence, a result's correlation with the product, if this correlation is implausibly small.

    The evidence also has the smallest plausible correlation. If the correlation is large enough, or if there are too
    few elements, return an empty tuple. Results of quantised inputs and of partial sums in bfloat16 are correlated with
    the product even if their errors are as large as the product. The correlation is first computed with every element
    divided by √Σ(x·y)². It is then also computed without this division, so that rows and columns of large numbers,
    where a correlation is clearest, have more weight. Quantisation may turn almost all numbers into zeros. Therefore,
    also return an empty tuple if at least half of the numbers of the result are zero, and the other numbers are related
    to the product.

    Rows or columns are left out if they contain an element without a known error or an outlier (see `_outliers`),
    because a few huge numbers suffice to destroy a correlation.
    """
    index, sample = np.ix_(problem.rows, problem.columns), problem.sample
    values, exact = side.values[index], sample.product
    bad = ~(side.finite[index] & problem.known[index] & (sample.squares > 0))
    if values.size < ENOUGH:
        return ()
    kept = lines_without(bad | _outliers(sample, values, ~bad))
    values, exact, size = values[kept], exact[kept], np.sqrt(sample.squares[kept])
    if values.size < ENOUGH or _keeps_large_numbers(values, exact, size):
        return ()
    models, noise = [each[kept] for each in _coarsest_products(problem)], sample.size[kept] * 2.0**-_BFLOAT.precision
    with np.errstate(all="ignore"):
        one = np.ones(exact.shape)
        for less, scale in ((_without_lines, size), (_without_lines, one), (_without_factors, one)):
            goal, result = less(exact / scale), less(values / scale)
            power, spread = _power(goal), _power(noise / scale)
            others = [less(made / scale) for made in models]
            found = [_correlation(each, goal)[0] for each in others if _power(each) > _EMPTY * _power(result)]
            # If all computations are left out as almost zero, any correlation is expected to remain.
            least = min(found, default=1.0) * sqrt(power / (power + spread) if power > 0 else 0.0)
            own, sigma = _correlation(result, goal)
            if least >= _KEPT and abs(own) < _LOST * least and least - abs(own) > _SIGMAS * sigma:
                known = ("correlation with the product", f"{own:.2g}")
                return (known, ("with inputs of 4 bits", f"{least:.2g}")) if found else (known,)
    return ()


def _outliers(totals: Totals, values: Array, usable: Array) -> Array:
    """Return the mask of the three largest errors if they have more power than all others; else an empty mask."""
    if values.size < _FEW:
        return np.zeros(values.shape, np.bool_)
    with np.errstate(all="ignore"):
        errors = np.where(usable & (totals.squares > 0), np.abs(totals.error(values)) / np.sqrt(totals.squares), 0.0)
        large: Array = errors > np.partition(errors, -_FEW, axis=None)[-_FEW]
        return large & (_power(errors[large]) > _power(errors[~large]))


def _keeps_large_numbers(values: Array, exact: Array, size: Array) -> bool:
    """Return whether most numbers are zero, and the other numbers are related to the product.

    Quantisation has this effect if the numbers have very different sizes. If the output was quantised, the numbers that
    are not zero are the largest ones of the product, or of its rows or columns. If the inputs were quantised with one
    scale each, the numbers that are not zero are correlated with the product.
    """
    kept = values != 0
    if not kept.any() or share_of(kept) > _UNRELATED:
        return False
    if (np.abs(values - exact)[kept] <= np.abs(exact)[kept]).all():  # also true of a multiple of the smallest number
        large, small = np.where(kept, np.abs(exact), np.inf), np.where(kept, 0.0, np.abs(exact))
        for axis in (None, 0, 1):
            if (small.max(axis) <= large.min(axis) * (1 + _FAR)).all():
                return True
    if kept.sum() < ENOUGH:
        return False
    with np.errstate(all="ignore"):
        return bool(np.corrcoef((values / size)[kept], (exact / size)[kept])[0, 1] >= _RELATED)


def keeps_one_number(view: View, wrong: Array) -> bool:
    """Return whether the wrong elements are zeros beside one far larger number in the result, or in each row or column.

    Quantisation of the output with one scale for the result, or for each row or column, has this effect.
    """
    size, kept = np.abs(view.totals.product), view.usable & (view.values != 0)
    for axis in (None, 0, 1):
        largest = np.where(kept, size, 0.0).max(axis=axis, keepdims=True)
        small = INT4_HALF_STEPS * size <= largest
        if not kept[wrong].any() and small[wrong].all() and (kept.sum(axis=axis) <= 1).all():
            return True
    return False


def _without_lines(values: Array) -> Array:
    """Subtract the means of rows and columns from the values; in a single row or column, subtract its mean."""
    if 1 in values.shape:
        return np.asarray(values - values.mean())
    less: Array = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    return less


def _without_factors(values: Array) -> Array:
    """Return the values minus (mean of the row) · (mean of the column) / (mean of all values).

    If all terms are positive, each sum is roughly a number that belongs to its row, times a number that belongs to its
    column. This is true even if the terms are in a wrong order.
    """
    return np.asarray(values - np.outer(values.mean(axis=1), values.mean(axis=0)) / values.mean())


def _power(values: Array) -> float:
    """Return the sum of the squares."""
    return float((values * values).sum())


def _correlation(a: Array, b: Array) -> tuple[float, float]:
    """Return the correlation of two arrays, and its standard deviation for independent arrays.

    If the correlation is not defined, return 0 and ∞.
    """
    power = _power(a) * _power(b)
    if not 0 < power < np.inf:
        return 0.0, np.inf
    return float((a * b).sum()) / sqrt(power), sqrt(_power(a * b) / power)
