"""Find elements that are certainly wrong in a result whose other errors are not explained.

Each of three observations shows that low precision is not the cause of an error. First, some elements are right to the
last bits, and the others are far off: inputs of less precision would change all of them. Second, an error is so large
that even inputs of 4 bits and lost terms could not cause it. Third, all elements of the exact product are the same
number, and all but a few elements of the result are this number, too.
"""

from __future__ import annotations

from math import log

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.faults.doubts import may_be_flushed
from floatlab.reduce.explain.problem import ProductProblem, View
from floatlab.reduce.explain.residuals import is_flat, share_of
from floatlab.reduce.explain.stages import INT4_HALF_STEPS

_DIGITS = (11, 7)  # significant bits of the inputs that are assumed to be less precise
_CHANGED = 0.4  # rounding to _DIGITS bits must change at least this share of an input, and of the wrong elements
# At least _RIGHT elements must be right, with _BITS bits of evidence in all. One element counts at most _MOST_BITS.
_RIGHT, _BITS, _MOST_BITS = 2, 30.0, 20.0
_FAR = 16.0  # the median error of wrong elements must be at least this many times the error limit of right elements
_COARSE = 2.0**-14  # errors below this share of √Σ(x·y)² may be rounding errors of a rearranged product
# An element has about (Σ|x·y|)² / Σ(x·y)² large terms. A right element is evidence only if it has at least _TERMS times
# as many of them as the median wrong element.
_TERMS = 0.5
_SIGMAS, _LOST = 10.0, 1.1  # multiples of the standard deviation and of Σ|x·y|; see `beyond_precision`
_OTHERS = 8  # if all exact products are the same number, at least this many elements must be right for each wrong one


def beyond_rounding(problem: ProductProblem, view: View, least: float) -> Array:
    """Return the mask of the elements that are certainly wrong. It is empty if low precision may explain all errors.

    `least` is the smallest normal number of the result's format. Smaller numbers may have been flushed to zero.
    """
    wrong = view.fit().wrong
    if not wrong.any() or may_be_flushed(view, wrong, least, problem.x, problem.y):
        return np.zeros_like(wrong)
    right = view.usable & ~wrong & (view.totals.size > 0)
    if is_flat(view.totals.product) and right.sum() >= _OTHERS * wrong.sum() and is_flat(view.values[right]):
        return wrong
    return wrong if _are_some_right(problem, view, wrong, right) else beyond_precision(problem, view)


def beyond_precision(problem: ProductProblem, view: View) -> Array:
    """Return the mask of errors that are too large for any rounding of inputs, sums or results to 4 bits.

    If numbers are rounded to 4 bits with one scale, the error of each number is at most 1/14 of the largest number.
    These errors are treated as independent, and their sum may reach ten standard deviations. If inputs are clipped or
    sums stop growing, an element may lose up to Σ|x·y|.
    """
    totals, (x, y) = view.totals, (problem.x, problem.y)
    with np.errstate(all="ignore"):
        a, b = (float(np.abs(each).max(initial=0.0)) / INT4_HALF_STEPS / 3**0.5 for each in (x, y))
        rows, columns = (x * x).sum(axis=1, keepdims=True), (y * y).sum(axis=0, keepdims=True)
        spread = np.sqrt(a * a * columns + b * b * rows + len(y) * (a * b) ** 2)
        room = _SIGMAS * spread + _LOST * totals.size + np.abs(totals.product).max(initial=0.0) / INT4_HALF_STEPS
        far: Array = view.usable & ~(np.abs(totals.error(view.values)) <= room + view.noise.limit(totals))
    return far


def _are_some_right(problem: ProductProblem, view: View, wrong: Array, right: Array) -> bool:
    """Return whether some elements are right to the last bits, which shows that the inputs were not less precise."""
    totals = view.totals
    with np.errstate(all="ignore"):
        scale = np.where(totals.squares > 0, np.sqrt(totals.squares), np.inf)
        error = float(np.median((np.abs(totals.error(view.values)) / scale)[wrong]))
        limit = (view.noise.limit(totals) + view.half) / scale
        terms = totals.size**2 / np.where(totals.squares > 0, totals.squares, np.inf)
    right = right & (view.values != 0) & ~_are_largest(view.values) & _would_change(problem, view, wrong)
    right &= terms >= _TERMS * float(np.median(terms[wrong]))
    count = len(np.unique(view.values[right]))
    if count < _RIGHT or not error > _COARSE:
        return False
    chance = np.maximum(limit / error, 2.0**-_MOST_BITS)
    # Compare with the expected number of elements that are right by chance.
    by_chance = float(chance[view.usable & np.isfinite(chance)].sum())
    bits = count * np.log2(count / by_chance) - (count - by_chance) / log(2)
    return bool(np.median(chance[right]) <= 1 / _FAR and count > by_chance and bits >= _BITS)


def _are_largest(values: Array) -> Array:
    """Return the mask of the largest number of each row and each column.

    If a row or column is quantised, its largest number determines the scale, and so remains unchanged.
    """
    sizes, found = np.abs(values), np.zeros(values.shape, np.bool_)
    for axis in (0, 1):
        if values.shape[axis] > 1:
            found |= sizes == sizes.max(axis=axis, keepdims=True)
    return found


def _would_change(problem: ProductProblem, view: View, wrong: Array) -> Array:
    """Return the mask of the elements that less precise inputs would change by more than rounding errors.

    Three roundings are tried: of the first input, of the second input, and of both. Each of them must change the
    element. A rounding that changes fewer than 40 % of the wrong elements is skipped.
    """
    x, y = (_shortened(each) for each in (problem.x, problem.y))
    room = view.noise.limit(view.totals) + view.half
    changed, tried = np.ones_like(wrong), False
    for a, b in ((x, problem.y), (problem.x, y), (x, y)):
        if a is None or b is None:
            continue
        with np.errstate(all="ignore"):
            differ = np.abs(a @ b - view.totals.product) > room
        if share_of(differ[wrong]) >= _CHANGED:
            changed, tried = changed & differ, True
    return changed & tried


def _shortened(numbers: Array) -> Array | None:
    """Return numbers rounded to 11 significant bits.

    If this changes only a few numbers, return them rounded to 7 bits. If this also changes only a few numbers, return
    None.
    """
    if not numbers.any():
        return None
    fraction, exponent = np.frexp(numbers)
    for digits in _DIGITS:
        made: Array = np.ldexp(np.round(np.ldexp(fraction, digits)), exponent - digits)
        if share_of((made != numbers)[numbers != 0]) >= _CHANGED:
            return made
    return None
