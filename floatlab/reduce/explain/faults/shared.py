"""Rounding errors that all elements of a column or of a row share.

In most products, the rounding errors of the elements are independent. In rearranged products, some errors are shared:

- If y is changed before the product and rounded again, as in (x / s) @ (y * s), column j has the errors x @ dy, where
  dy are the rounding errors of this column of y. If rows of x are similar, the elements of column j have similar
  errors.
- If the mean m of the columns of y is multiplied separately, as in x @ (y - m) + x @ m, all elements of row i have the
  rounding error of element i of x @ m.
- Winograd's algorithm for inner products adds (x1 + y2)·(x2 + y1) for each pair of terms. It subtracts the sum of all
  x1·x2 from each row, and the sum of all y1·y2 from each column. All elements of a row or a column share the rounding
  error of this sum (S. Winograd, *A new algorithm for inner product*, IEEE Transactions on Computers C-17, 1968).

Such errors look like a bias. They are as large as the rounding error of one product. This product is the mean row of x
times a column of y in the first case, a row of x times m in the second case, and a row or a column times itself in the
third case. A bias is certain only if it is larger than these errors.

If all rows of x are alike, or all columns of y are alike, any change of the other input looks like a bias or a factor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.estimates import PROVED, are_alike, shift_bits
from floatlab.reduce.explain.noise import Totals, half_ulp
from floatlab.reduce.explain.problem import ProductProblem, View
from floatlab.reduce.explain.residuals import share_of

# Shared errors are at most this many sigmas (root mean square over all columns or rows). In 13 rearranged products
# whose shared errors looked like a bias, they were at most 1.8.
_LARGER = 4.0
# One row may be multiplied separately from the differences between rows. The sigma of this row is taken to be at
# least this share of the sigma of an element.
_APART = 0.4
# A shift is one number for all columns, instead of independent errors of the columns, if its mean exceeds its spread
# and is significant by this many standard deviations.
_COHERENT = 6.0
# Running sums: from row to row, the mean square change of the errors is below _STEADY times that of independent errors.
_STEADY = 0.5
_USUAL = 0.7  # the median error of usual sums is at most this many sigmas
_LEAST = 8  # running sums are recognised in at least this many rows (or columns), a bias in this many sums of zeros
ROUNDED = 4.0  # rounded scales cause a factor that differs from 1 by at most this many unit roundoffs
# Sums of zeros show a bias if the share _NEARLY_ALL of them equals the bias, up to the relative difference _EQUAL.
_EQUAL, _NEARLY_ALL = 2.0**-8, 0.95
_SURELY = 6.0  # standard deviations by which the mean factor of all rows, and that of all columns, must differ from 1
_ALL = slice(None)
_FEW_BITS = 0.125  # rounding to a few bits changes a number by at most this share
# An input has few magnitudes if there are at most _MAGNITUDES. Multiples may be off by the share _NEARLY.
_MAGNITUDES, _NEARLY = 4, 2.0**-20
_LARGEST = 6.0  # a change of an input causes errors of at most this many standard deviations
_SPREAD = 0.58  # the standard deviation of a rounding error, in half ulps


def may_be_rounding(
    view: View, x: Array, y: Array, shift: Array, axis: int | None, product: Array | None = None
) -> bool:
    """Return whether rounding in a rearranged product may be the reason for a shift.

    The shift is a bias of each column (axis 0), a bias of each row (axis 1), or a factor (axis None). `product` is the
    product of a model of the inputs, or None for the exact product.
    """
    if axis is not None:
        if _is_in_zeros(view, x, y, shift):
            return False
        return may_be_shared(view, x, y, shift, axis) or (product is None and _are_running_sums(view, shift, axis))
    with np.errstate(all="ignore"):
        factor = np.abs(shift / view.totals.product)
        sigmas = np.abs(shift) / (view.noise.sigma(view.totals) + view.half)
    known = view.usable & np.isfinite(factor) & np.isfinite(sigmas)
    if not known.any() or float(np.median(factor[known])) <= ROUNDED * view.noise.u:
        return True
    if _is_in_every_line(view, x, y, shift):
        return False
    is_small = float(np.median(sigmas[known])) <= _LARGER
    return is_small and any(may_be_shared(view, x, y, shift, each, True) for each in (0, 1))


def _is_in_zeros(view: View, x: Array, y: Array, shift: Array) -> bool:
    """Return whether elements that have only zero terms equal the shift.

    A rearranged product computes such an element from other numbers, which cancel, so its error would differ from the
    shift. Elements in zero rows of x or in zero columns of y are not examined.
    """
    crossed = np.asarray(x.any(axis=1))[:, None] & y.any(axis=0)
    zeros: Array = view.usable & (view.totals.size == 0) & crossed
    shifts = np.broadcast_to(shift, zeros.shape)[zeros]
    same = np.abs(view.values[zeros] - shifts) <= _EQUAL * np.abs(shifts)
    return bool(zeros.sum() >= _LEAST and shifts.any() and share_of(same) >= _NEARLY_ALL)


def _is_in_every_line(view: View, x: Array, y: Array, shift: Array) -> bool:
    """Return whether a common factor is significant both in the columns and in the rows of a result.

    Rearranged products also cause errors that the elements of a column share. Such errors have different signs in
    different columns, so their mean over all columns is small. Therefore, the mean factor of all columns must be
    significant. For the same reason, the mean factor of all rows must be significant. The product of the mean row of x
    and the mean column of y has a rounding error, which all elements may share. The shift must be larger than this
    error.
    """
    with np.errstate(all="ignore"):
        weight = 1 / (view.noise.sigma(view.totals) ** 2 + np.asarray(view.half) ** 2 / 3)
        weight = np.where(view.usable & (view.totals.size > 0) & np.isfinite(weight), weight, 0.0)
        product, error = view.totals.product, np.where(weight > 0, view.totals.error(view.values), 0.0)
        size = float(np.median(np.abs(shift)[weight > 0])) if weight.any() else 0.0
        if size <= _LARGER * float(_sigma(view, x.mean(axis=0)[:, None], y.mean(axis=1)[:, None])[0]):
            return False
        for axis in (0, 1):
            factors = (weight * product * error).sum(axis=axis) / (weight * product * product).sum(axis=axis)
            if _significance(factors[np.isfinite(factors)]) < _SURELY:
                return False
    return True


def _significance(numbers: Array) -> float:
    """Return by how many standard deviations the mean of normal variables differs from 0.

    This is Student's t, converted to a standard normal variable: D. L. Wallace, *Bounds on normal approximations to
    Student's and the chi-square distributions* (Annals of Mathematical Statistics 30, 1959).

    >>> round(_significance(np.array([1.0, 2.0, 3.0])), 2), round(_significance(1 + np.arange(20) / 10), 2)
    (1.77, 6.83)
    """
    count = len(np.unique(numbers)) - 1  # equal numbers come from equal rows or columns, so they count once
    if count < 1:
        return 0.0
    square = (count + 1) * float(numbers.mean()) ** 2 / float(numbers.var(ddof=1))
    return (8 * count + 1) / (8 * count + 3) * float(np.sqrt(count * np.log1p(square / count)))


def may_be_shared(view: View, x: Array, y: Array, shift: Array, axis: int, is_factor: bool = False) -> bool:
    """Return whether a shift is small enough to consist of errors that the elements of a rearranged product share.

    `shift` has the errors that a bias or a factor would cause. The mean of each column (axis 0) or of each row (axis 1)
    is compared with the size of the shared errors. If `is_factor` is true, the shift comes from one factor for all
    elements. The signs of the columns' means are then ignored, as if all signs were equal.

    >>> from floatlab.reduce.explain.noise import multiply_exactly, noise_of
    >>> from floatlab.formats import parse_format
    >>> rng, single = np.random.default_rng(1), parse_format("fp32")
    >>> x, y = rng.random((30, 20)), rng.random((20, 30))
    >>> totals = multiply_exactly(x, y, False)
    >>> view = View(totals, totals.product, np.ones((30, 30), bool), noise_of(single), single)
    >>> signs = rng.choice([-1.0, 1.0], (1, 30))
    >>> may_be_shared(view, x, y, 1e-6 * signs, 0), may_be_shared(view, x, y, 1e-4 * signs, 0)
    (True, False)
    >>> may_be_shared(view, x, y, np.full((1, 30), 1e-6), 0)  # the errors of the columns would not all be equal
    False
    """
    shift = np.broadcast_to(shift, view.values.shape)
    with np.errstate(all="ignore"):
        square = view.noise.sigma(view.totals) ** 2 + np.asarray(view.half) ** 2 / 3
        weight = np.where(view.usable & (square > 0) & (view.totals.size > 0), 1 / square, 0.0)
    weight = np.where(np.isfinite(weight), weight, 0.0)
    exact = view.totals.product
    if axis == 1:
        x, y, shift, weight, exact = y.T, x.T, shift.T, weight.T, exact.T
    columns = weight.any(axis=0)
    if not columns.any():
        return True
    weight, sums = weight[:, columns], weight[:, columns].sum(axis=0)
    y, means = y[:, columns], (weight * shift[:, columns]).sum(axis=0) / sums
    with np.errstate(all="ignore"):
        sizes = _APART * np.sqrt(np.nanmedian(np.where(weight > 0, 1 / weight, np.nan), axis=0))
    # The mean row of x may be multiplied separately. Try the mean with the weights of the errors, and the usual mean.
    rows = [x.T @ weight / sums, np.broadcast_to(x.mean(axis=0)[:, None], y.shape)]
    if _is_rough(view, shift.T if axis == 1 else shift):
        rows.append(y)  # Winograd's algorithm for inner products subtracts a sum of products y·y from each column
    for row in rows:
        sizes = np.maximum(sizes, _sigma(view, row, y))
    with np.errstate(all="ignore"):
        ratio = np.where(means == 0, 0.0, means / sizes)
    # Equal columns of y have equal errors.
    lines = len(np.unique((weight * exact[:, columns]).sum(axis=0) / sums))
    mean, spread, rms = abs(float(np.mean(ratio))), float(np.std(ratio)), float(np.sqrt(np.mean(ratio * ratio)))
    mean, spread = (rms, 0.0) if is_factor else (mean, spread)
    is_coherent = spread <= mean and mean * lines**0.5 > _COHERENT
    return rms <= _LARGER and not is_coherent


def _is_rough(view: View, shift: Array) -> bool:
    """Return whether the errors that remain after a shift is subtracted are larger than those of usual sums."""
    with np.errstate(all="ignore"):
        left = np.abs(view.totals.error(view.values) - shift) / (view.noise.sigma(view.totals) + view.half)
    left = left[view.usable & np.isfinite(left)]
    return bool(left.size) and float(np.median(left)) > _USUAL


def _are_running_sums(view: View, shift: Array, axis: int) -> bool:
    """Return whether the errors, after a shift is subtracted, change little from one row (or column) to the next one.

    A program may compute each row of the product from the previous row: it multiplies the difference of the two rows of
    x by y, and adds the product to the previous row. The errors of the rows then add up.
    """
    with np.errstate(all="ignore"):
        sigma = view.noise.sigma(view.totals)
        left, sizes = (view.totals.error(view.values) - shift) / sigma, np.abs(shift) / sigma
    left, sizes = (np.where(view.usable & np.isfinite(each), each, 0.0) for each in (left, sizes))
    if float((sizes * sizes).mean()) > (_LARGER * _LARGER) * float((left * left).mean()):
        return False  # running sums do not cause a shift that is this much larger than the other errors
    steps = np.diff(left, axis=axis)
    usual = 2 * float((left * left).mean()) * steps.size
    return left.shape[axis] >= _LEAST and float((steps * steps).sum()) < _STEADY * usual


def _sigma(view: View, row: Array, y: Array) -> Array:
    """Return, for each column of y, the expected root mean square error of its dot product with a row of numbers.

    Column j of `row` has the row of numbers, such as a row of x, that is multiplied by column j of y. An algorithm may
    multiply both factors by an orthogonal matrix. This spreads large numbers over all terms. Therefore, Σ(x·y)² is
    assumed to be at least Σx²·Σy²/n, where n is the number of terms.
    """
    terms, n = row * y, len(y)
    even = (row * row).sum(axis=0) * (y * y).sum(axis=0) / n
    total, squares = terms.sum(axis=0), np.maximum((terms * terms).sum(axis=0), even)
    sigma = view.noise.sigma(Totals(total, None, np.abs(terms).sum(axis=0), squares, None, n))
    # A part that is multiplied separately may have been rounded to the format of the result.
    last = _SPREAD * half_ulp(total, view.format) if isinstance(view.half, np.ndarray) else 0.0
    return np.asarray(np.hypot(sigma, last))


def fits_any_line(
    problem: ProductProblem, axis: int, kept: Sequence[Array | slice] = (_ALL, _ALL), up_to_factor: bool = False
) -> bool:
    """Return whether one number per column (axis 0) or per row (axis 1) would explain any change of the inputs.

    The numbers are added to the product or, if `up_to_factor` is true, multiply it. They explain any change of y if all
    rows of x are alike, and any change of x if all columns of y are alike. Only the `kept` rows and columns are
    compared.
    """
    return are_alike((problem.x, problem.y.T)[axis][kept[axis]], up_to_factor)


def fits_any_change(problem: ProductProblem, factor: float | Array, axis: int | None, right: Array) -> bool:
    """Return whether a factor or a bias would explain every change of the inputs, and is therefore no evidence.

    The factor may be one number or one per line. A bias has one number per column (axis 0) or per row (axis 1). If all
    rows of x are alike, every change of y looks like such a factor or bias. Rows of x are left out of this comparison
    if most elements in their rows of the result are not `right`. The same applies to changes of x and the columns of y.
    Also return True if rounded inputs may have the effect of the factor.
    """
    kept = [right.mean(axis=1) > 0.5, right.mean(axis=0) > 0.5]
    if axis in (0, 1) and fits_any_line(problem, axis, kept):
        return True
    off = float(np.abs(np.asarray(factor) - 1).max())
    if off and may_be_rounded_inputs(problem, off):
        return True
    if not isinstance(factor, np.ndarray):
        return False
    return fits_any_line(problem, int(factor.shape[1] == 1), kept, up_to_factor=True)


def may_be_changed_input(
    problem: ProductProblem, view: View, shift: Array, axis: int, error: Array, room: Array, wrong: Array
) -> bool:
    """Return whether a change of one input explains a shift and the wrong elements beside it, if there are any.

    The change may be any quantisation of y, for a shift of each column (axis 0), or of x, for a shift of each row (axis
    1). If m is the mean row of x, and dy is the change of a column of y, this column is shifted by m @ dy, and the
    error (r - m) @ dy remains in the element of row r. `error` has the errors that remain. The change explains them if
    they are about this large, and if it would also leave most errors of the elements that are not wrong within `room`.
    """
    lines, off = (problem.x if axis == 0 else problem.y.T), shift.mean(axis=axis, keepdims=True)
    mean = lines.mean(axis=0)
    with np.errstate(all="ignore"):
        share = np.linalg.norm(lines - mean, axis=1) / np.linalg.norm(mean)
        share = share[:, None] if axis == 0 else share
        left = share * np.sqrt(np.mean(off * off))
        rounded = half_ulp(view.totals.product, view.format)  # the change acts before the rounding of `View.stored`
        # Both the shift and the errors that remain are uncertain by `room`.
        most = _LARGEST * np.maximum(left, share * np.abs(off)) + 2 * room + rounded
        is_explained = bool((error <= most)[wrong].all())
    right = np.isfinite(error) & ~wrong
    count = problem.independent if wrong.any() else right.size  # without wrong elements, all are compared
    return is_explained and shift_bits(count, left, room, right, off.size) < PROVED


def may_be_rounded_inputs(problem: ProductProblem, off: float) -> bool:
    """Return whether rounding the inputs may have the effect of one factor, 1 + `off`.

    |`off`| must be at most 1/8, and one of two conditions must hold. Either an input has only a few magnitudes, which
    are small multiples of the smallest one, or both inputs have rank one.
    """
    if abs(off) > _FEW_BITS:
        return False
    inputs = problem.x, problem.y.T
    are_few = any(_most_steps(each) * abs(off) <= 0.5 for each in inputs)
    return are_few or all(are_alike(each, up_to_factor=True) for each in inputs)


def _most_steps(numbers: Array) -> float:
    """Return the largest magnitude as a multiple of the smallest one, or ∞.

    Return ∞ if another magnitude is no multiple of the smallest one, or if there are more than four magnitudes.

    >>> _most_steps(np.array([0.1, -0.2, 0.0, 0.7])), _most_steps(np.array([0.1, 0.25]))
    (7.0, inf)
    """
    sizes = np.abs(numbers[numbers != 0])
    with np.errstate(all="ignore"):
        steps = np.unique((sizes / sizes.min(initial=np.inf)).astype(np.float32))
    if not 0 < steps.size <= _MAGNITUDES or not np.isfinite(steps).all():
        return np.inf
    are_whole = (np.abs(steps - np.rint(steps)) <= _NEARLY * steps).all()
    return float(np.rint(steps[-1])) if are_whole else np.inf
