"""Finds out whether the original's columns were multiplied by factors before rounding, as in AWQ and SmoothQuant."""

from __future__ import annotations

from functools import partial
from math import exp, prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import BLOCK, ArraySource, HeldSource
from floatlab.arrays.types import Array
from floatlab.auditing.line_orders import SAMPLE
from floatlab.auditing.quantized import recognised
from floatlab.auditing.relations import both
from floatlab.auditing.rerounding.agreement import agreement, nearest_by_column
from floatlab.auditing.rerounding.grids import CodeGrid
from floatlab.auditing.stored_parts import StoredParts, Weight
from floatlab.errors import FloatlabError
from floatlab.files.checkpoints import StoredTensor
from floatlab.record import Individual

_FEWEST, _ENOUGH = 8, 16  # the least number of rows for this test, without and with error feedback
_SPREAD = 0.02  # factors count as equal if the standard deviation of their logarithms is smaller than this
# The factors explain the codes if they make at least half of the far codes fit, and leave at most the share _FAR far.
# If errors are fed back, up to the share _MORE_FAR may be far, but the factors must also halve the error.
_FAR, _MORE_FAR = 0.03, 0.12
_LEAST = 0.01  # if less than this share of the codes is far from the original, no factors are looked for
_FEW_COLUMNS = 0.3  # if more than this share of the columns has only nearest codes, no errors were fed back
_MOST_GROUPS = 1 << 9  # columns of weights with more groups than this are not regrouped
_FEW_NUMBERS = 1 << 14  # about this many numbers are compared to find the groups
_BY_CHANCE = 0.01  # columns with only nearest codes prove feedback if their probability by chance is below this


class ColumnFactors(Individual):
    """The factors (in `values`) by which the columns of a weight differ from the columns of its original."""

    values: Array

    @property
    def words(self) -> str:
        """The factors in a sentence."""
        low, high = np.percentile(self.values, [1, 99])
        between = f"by factors from {low:.3g} to {high:.3g}"
        return f"its columns are multiples of the original's, {between}, as after AWQ or SmoothQuant"


def column_factors(read: ArraySource, original: ArraySource, grid: CodeGrid) -> ColumnFactors | None:
    """Return the factors by which the original's columns were multiplied before rounding, or None.

    The factors are estimated from the first matrix of the weight, or from its first rows. Return None if there are
    fewer than 8 rows, if the factors are nearly equal, if they do not explain the codes, or if the original explains
    the codes without factors or with one factor for all columns.
    """
    shape = read.shape
    if len(shape) not in (2, 3) or shape[-2] < _FEWEST:
        return None
    pair = both(read, original)
    if pair is None:
        return None
    q, x = (each[: shape[-2]] for each in pair)
    with np.errstate(all="ignore"):
        signal = np.square(x).sum(axis=0)
        factors = np.where(signal > 0, (q * x).sum(axis=0) / signal, 1.0)
        used = factors[(signal > 0) & (factors != 0)]
        if len(used) < 2 or not (used > 0).mean() > 1 - _FAR or not np.std(np.log(used[used > 0])) > _SPREAD:
            return None
        changed = x * factors
        without = agreement(HeldSource(q), HeldSource(x), grid)
        found = agreement(HeldSource(q), HeldSource(changed), grid)
        one = (q * x).sum() / signal.sum()
        with_one = agreement(HeldSource(q), HeldSource(x * one), grid)
        if with_one.share(with_one.far) <= max(2 * found.share(found.far), _FAR):
            return None  # one factor explains the codes as well
        far, own = found.share(found.far), without.share(without.far)
        if own < _LEAST:
            return None
        if far > min(_FAR, own / 2):
            less = np.square(q - changed).sum() <= np.square(q - one * x).sum() / 4
            if not (len(q) >= _ENOUGH and far <= min(_MORE_FAR, own / 2) and less):
                return None
    return ColumnFactors(used)


def is_fed_back_by_columns(read: ArraySource, original: ArraySource, grid: CodeGrid) -> bool:
    """Return whether some columns have only nearest codes: at most 30 % of the columns, but more than by chance.

    This is so after GPTQ, which rounds one column after the other, and adds the error of each column to the columns
    that follow. Only the columns that are rounded first get these nearest codes. By default, these are the leftmost
    columns, but GPTQ can use any order.
    """
    length = read.shape[-1] if read.shape else 0
    if not 0 < length <= BLOCK:
        return False
    counts = nearest_by_column(read, original, grid, max(SAMPLE // length, _FEWEST) * length)
    if counts is None:
        return False
    zeros, near_zeros, used, near = counts
    exact = (near == used) & (near_zeros == zeros) & (used > 0)
    if not exact.any() or exact.mean() > _FEW_COLUMNS:
        return False
    # The probability that all codes of a column are the nearest ones by chance.
    shares = near_zeros.sum() / max(zeros.sum(), 1), near.sum() / max(used.sum(), 1)
    alone = np.where(used > 0, shares[0] ** zeros * shares[1] ** used, 0.0)
    first = used > 0
    leading = exact[first].cumprod().astype(bool)
    chances = (
        length * alone[exact].min(),
        _at_least(int(exact.sum()), float(alone.sum())),
        alone[first][leading].prod(),
    )
    return bool(min(chances) < _BY_CHANCE / len(chances))


def _at_least(count: int, mean: float) -> float:
    """Return the probability that a Poisson-distributed number with this mean is at least `count`."""
    term, below = exp(-mean), 0.0
    for number in range(count):
        below += term
        term *= mean / (number + 1)
    return max(1 - below, 0.0)


def regrouped(
    parts: StoredParts, weight: Weight, order: StoredTensor, original: ArraySource
) -> tuple[StoredParts, Weight] | None:
    """Assign each column to the group whose scales bring the column's numbers nearest to the original.

    `order` is the tensor with the stored groups (g_idx). Return the stored parts with the changed groups, and the
    weight that they give. Return None if no column changes its group, or if there are too many groups.
    """
    length = weight.shape[-1]
    with order.open() as source:
        named = native(source.whole()).astype(np.int64)
    groups = int(named.max(initial=-1)) + 1
    if not 1 < groups <= _MOST_GROUPS or len(named) != length:
        return None
    count = min(prod(weight.shape[:-1]), max(_FEW_NUMBERS // length, _FEWEST)) * length
    x = native(original.read(0, count)).astype(np.float64).reshape(-1, length)
    errors = []
    for group in range(groups):
        same = _with_groups(parts, weight, order, np.full(length, group))
        if same is None:
            return None
        with same[1].open() as read, np.errstate(all="ignore"):
            error = np.square(native(read.read(0, count)).reshape(-1, length) - x).sum(axis=0)
        errors.append(np.where(np.isnan(error), np.inf, error))
    best = np.argmin(errors, axis=0)
    return None if np.array_equal(best, named) else _with_groups(parts, weight, order, best)


def _with_groups(
    parts: StoredParts, weight: Weight, order: StoredTensor, groups: Array
) -> tuple[StoredParts, Weight] | None:
    changed = parts.having(order.replace(open=partial(HeldSource, groups.astype(np.int32), order.name)))
    try:
        found = recognised(changed, changed.tensors[weight.codes])
    except FloatlabError:
        return None
    return None if found is None else (changed, found)
