"""Describe how a weight differs from its original: by a factor, by the order of its rows, or only in some rows.

A factor is stated only if dividing by it leaves an error that is as small as that of a quantised weight. An order is
stated only if nearly all rows resemble rows of the original.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.fidelity import MOST_LEFT
from floatlab.auditing.line_orders import ALMOST_ALL, MOST_ROWS, SAMPLE, SHORTEST, exchanged, order_of, unit_rows
from floatlab.errors import plural

RESCALED = "its columns are multiples of the original's, as after AWQ or SmoothQuant: is this its original?"

# Factors are accepted if the relative error after the division is below _LEFT in nearly all groups.
_LEFT = 0.35
_SAME_NORM, _CORRELATED = 0.02, 0.9  # limits for equal norms: median relative difference, correlation
_SPREAD, _SPREAD_ROWS = 0.02, 0.15  # factors of columns, and of rows, count as equal if they deviate less than this
_EXPLAINED = 0.8  # a factor must leave less than this share of the error
_OFF = 0.08  # quantisers change the mean size of medium-sized numbers (see `factor_off`) by less than this share
_BEGINNING = 1 << 8  # of large weights, only this many numbers at the start of each row are compared
_BLOCKS = (128, 64, 32, 16)  # the usual sizes of blocks that share a scale
# The factors by which a scale is too large or too small if a step of its computation is left out.
_STEPS = (
    (448, "448 is the largest number of e4m3"), (57344, "57344 is the largest number of e5m2"),
    (240, "240 is the largest number of e4m3fnuz"), (2688, "2688 is 6 · 448, the largest number of NVFP4 blocks"),
    (6, "6 is the largest number of e2m1"), (127, "127 is the largest number of int8"),
    (7, "7 is the largest number of int4"),
)  # fmt: skip


def both(read: ArraySource, original: ArraySource) -> tuple[Array, Array] | None:
    """Return the first rows of a weight and of its original as float64.

    Return None for empty arrays and very long rows.

    An element that is NaN or infinite in the weight or in the original becomes 0 in both.
    """
    length = read.shape[-1] if read.shape else 1
    count = min(read.size, max(SAMPLE // max(length, 1), 8) * length)
    if not count or count > MOST_AT_ONCE:
        return None
    q, x = (native(each.read(0, count)).astype(np.float64).reshape(-1, length) for each in (read, original))
    bad = ~(np.isfinite(q) & np.isfinite(x))
    return (np.where(bad, 0.0, q), np.where(bad, 0.0, x)) if bad.any() else (q, x)


def relation(read: ArraySource, original: ArraySource, group: int = 0) -> str:
    """Describe how a weight relates to its original. Return "" if no relation is found.

    `group` is the number of elements in a row that share a scale, or 0 if this number is not known.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.random.default_rng(1).normal(size=(8, 64))
    >>> relation(HeldSource(np.round(x, 1) * 37.9), HeldSource(x))
    'its numbers are 37.9 times too large; divided by that, the relative error is 0.031'
    >>> relation(HeldSource(np.roll(x, 4, axis=0)), HeldSource(x))
    "its rows are the original's in another order: the halves are exchanged"
    """
    pair = both(read, original)
    if pair is None or not pair[0].any() or not pair[1].any():
        return ""
    q, x = pair
    words = next((words for words in _relations(q, x, read.shape, group) if words), "")
    if words or q.size == read.size or prod(read.shape[:-1]) > MOST_ROWS:
        return words
    return order_of(_beginnings(read), _beginnings(original), read.shape, "rows")


def exchanged_lines(read: ArraySource, original: ArraySource) -> str:
    """Describe the few rows or columns of a matrix that are exchanged with each other.

    Return "" if no exchange is found.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.random.default_rng(1).normal(size=(64, 64))
    >>> order = [*range(3), 5, 4, 3, *range(6, 64)]
    >>> exchanged_lines(HeldSource(x[:, order]), HeldSource(x))
    'its columns 3 and 5 are exchanged; the rest fits'
    """
    pair = both(read, original)
    if pair is None:
        return ""
    q, x = pair
    found = exchanged(q, x, "rows")
    return found or (exchanged(q.T, x.T, "columns") if len(read.shape) == 2 else "")


def order_of_all(read: ArraySource, original: ArraySource) -> str:
    """Describe the order in which a weight has the numbers of its original. Return "" if no such order is found."""
    pair = both(read, original)
    if pair is None or len(read.shape) != 2 or pair[0].size != read.size:
        return ""
    q, x = pair
    words = _shifted(q.reshape(-1), x.reshape(-1)) or order_of(q, x, read.shape, "rows")
    return words or order_of(q.T, x.T, read.shape[::-1], "columns")


def _beginnings(source: ArraySource) -> Array:
    """Return the first 256 numbers of each row of a large array; NaN and infinities become 0."""
    length, pieces = source.shape[-1], []
    count = max(SAMPLE // length, 1) * length
    for first in range(0, source.size, count):
        rows = native(source.read(first, min(count, source.size - first))).reshape(-1, length)
        pieces.append(rows[:, :_BEGINNING].astype(np.float64))
    found = np.concatenate(pieces)
    return np.where(np.isfinite(found), found, 0.0)


def _relations(q: Array, x: Array, shape: tuple[int, ...], group: int) -> Iterator[str]:
    yield _one_factor(q, x)
    yield _factor_of_rows(q, x)
    yield _factor_of_columns(q, x)
    yield _factor_of_blocks(q, x, group)
    yield _shifted(q.reshape(-1), x.reshape(-1))
    yield order_of(q, x, shape, "rows")
    if q.size == np.prod(shape) and len(shape) == 2:
        yield _transposed(q, x)
        yield order_of(q.T, x.T, shape[::-1], "columns")
    yield _wrong_rows(q, x)


def factor_off(read: ArraySource, original: ArraySource) -> str:
    """Describe the factor by which a weight with a small error is too large or too small, or return "".

    Only numbers between 1/8 and 1/2 of the largest one in their block decide whether there is a factor. Rounding hardly
    changes the mean size of these numbers. If the numbers have only few different values, all of them may have been
    rounded in the same direction. In this case, no factor is returned. The factor itself is measured on all numbers.

    >>> from floatlab.arrays.sources import HeldSource
    >>> x = np.random.default_rng(1).normal(size=(64, 64))
    >>> q = np.round(x, 1)
    >>> factor_off(HeldSource(q * 1.3), HeldSource(x)), factor_off(HeldSource(q), HeldSource(x))
    ('its numbers are 1.3 times too large; divided by that, the relative error is 0.029', '')
    """
    pair = both(read, original)
    if pair is None:
        return ""
    q, x = pair
    size = next((size for size in (32, 16) if x.shape[1] % size == 0), 0)
    if not size:
        return ""
    numbers, top = x.reshape(-1, size), np.abs(x.reshape(-1, size)).max(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        share = np.abs(numbers) / top
    middle = (share > 0.125) & (share < 0.5)
    spread = np.histogram(share[middle], bins=16)[0]
    if spread.sum() < 1 << 9 or spread.min() < spread.sum() / 160 or spread.max() > spread.sum() / 4:
        return ""
    chosen, exact = q.reshape(-1, size)[middle], numbers[middle]
    count = len(chosen) // 8 * 8
    factors, _ = _fitted(chosen[:count].reshape(8, -1), exact[:count].reshape(8, -1))
    if len(factors) < 8 or abs(factors.mean() - 1) < _OFF or factors.std() > 0.03:
        return ""
    before = float(np.linalg.norm(q - x) / np.linalg.norm(x))
    whole, left = _fitted(q.reshape(1, -1), x.reshape(1, -1))
    return _one_factor(q, x) if left[0] < before / 2 and abs(whole[0] - 1) > _OFF else ""


def _fitted(q: Array, x: Array) -> tuple[Array, Array]:
    """Return, for each row, the factor f for which the error |q − f·x| is smallest, and this error relative to |q|.

    Rows of zeros are left out.
    """
    with np.errstate(all="ignore"):
        signal, own = np.square(x).sum(axis=-1), np.square(q).sum(axis=-1)
        factor = (q * x).sum(axis=-1) / signal
        left = np.sqrt(np.maximum(np.square(q - factor[..., None] * x).sum(axis=-1) / own, 0))
    known = (signal > 0) & (own > 0)
    return factor[known], left[known]


def _is_fit(factor: Array, left: Array) -> bool:
    return len(left) > 0 and bool((left < _LEFT).mean() >= ALMOST_ALL) and bool((factor != 0).all())


def _one_factor(q: Array, x: Array) -> str:
    top = np.abs(q).max()
    factor, left = _fitted((q / top).reshape(1, -1), x.reshape(1, -1))
    if not _is_fit(factor, left):
        return ""
    rows, _ = _fitted(q / top, x)
    if len(rows) and np.percentile(np.abs(rows / factor[0] - 1), 90) > _LEFT / 2:
        return ""
    amount = float(factor[0]) * float(top)
    if isfinite(amount) and np.square(q / amount - x).sum() > _EXPLAINED**2 * np.square(q - x).sum():
        return ""
    if not (isfinite(amount) and amount and isfinite(1 / amount)):
        return f"its numbers are over 1e300 times too {'small' if abs(amount) < 1 else 'large'}"
    if abs(abs(amount) - 1) < _SPREAD:
        return "its numbers have the opposite sign" if amount < 0 else ""
    sign = ", with the opposite sign" if amount < 0 else ""
    left_over = f"divided by that, the relative error is {float(left[0]):.2g}"
    return f"its numbers are {times_off(abs(amount))}{sign}; {left_over}{_explain_factor(abs(amount))}"


def times_off(factor: float) -> str:
    """Say in words by which factor numbers are too large or too small.

    >>> times_off(448.2), times_off(0.25)
    ('448 times too large', '4 times too small')
    """
    return f"{factor:.3g} times too large" if factor > 1 else f"{1 / factor:.3g} times too small"


def _explain_factor(factor: float) -> str:
    """Return a remark on a power of two, or on a usual factor of scales, such as 448. Return "" for other factors."""
    ratio = max(factor, 1 / factor)
    for number, words in _STEPS:
        if abs(ratio / number - 1) < 0.01:
            return f" ({words}: was a step of the scale left out?)"
    power = round(float(np.log2(ratio)))
    return f" (2^{power}: is the bias of an exponent wrong?)" if power and abs(ratio / 2**power - 1) < 0.01 else ""


def _range(factor: Array) -> str:
    low, high = np.percentile(np.abs(factor), [1, 99])
    return f"by factors from {low:.3g} to {high:.3g}"


def _varies(factor: Array, spread: float = _SPREAD_ROWS) -> bool:
    return bool(np.abs(factor).std() > spread * np.abs(factor).mean())


def _factor_of_rows(q: Array, x: Array) -> str:
    if min(q.shape) < 8:
        return ""
    factor, left = _fitted(q, x)
    if not (_is_fit(factor, left) and (_varies(factor) or (factor < 0).any())):
        return ""
    off = np.flatnonzero(np.abs(factor - 1) > MOST_LEFT)
    if words := _of_sign(factor, off, "rows"):
        return words
    if len(off) == 1 and len(factor) == len(q):
        return f"row {off[0]:,} is {times_off(abs(float(factor[off[0]])))}: is its scale that of another row?"
    return f"its rows are multiples of the original's, {_range(factor)}: are the scales those of another layer?"


def _of_sign(factor: Array, off: Array, noun: str) -> str:
    """Say that all rows or blocks at `off` (indices) have the opposite sign. Return "" if this is not true."""
    if not len(off) or (np.abs(factor[off] + 1) > MOST_LEFT).any():
        return ""
    return f"{len(off):,} of {len(factor):,} {noun} {plural(len(off), 'has', 'have')} the opposite sign"


def _factor_of_columns(q: Array, x: Array) -> str:
    if min(q.shape) < 8:
        return ""
    factor, left = _fitted(q.T, x.T)
    if not (_is_fit(factor, left) and _varies(factor, _SPREAD)):
        return ""
    sizes = [size for size in (16, 32) if q.shape[1] % size == 0]
    blocks = min((np.median(_fitted(q.reshape(-1, n), x.reshape(-1, n))[1]) for n in sizes), default=np.inf)
    return RESCALED if np.median(left) < 0.8 * blocks else ""


def _factor_of_blocks(q: Array, x: Array, group: int) -> str:
    rows, length = q.shape
    # If the size of the groups is known, only this size is tried. The factor of a larger block would be a mean over its
    # groups, of which only one may have a wrong scale.
    for size in (group,) if group in _BLOCKS else _BLOCKS:
        if length % size or (size == length and rows < 2):
            continue
        factor, left = _fitted(q.reshape(-1, size), x.reshape(-1, size))
        off = np.flatnonzero(np.abs(factor - 1) > MOST_LEFT)
        if not _is_fit(factor, left) or not (_varies(factor) or (len(off) and size < 64)):
            continue
        if words := _of_sign(factor, off, f"blocks of {size} in a row"):
            return words
        if len(off) == 1:
            at = int(off[0])
            where = f" (row {at * size // length:,})" if len(factor) * size == q.size else ""
            return f"1 block of {size} in a row{where} is {times_off(abs(float(factor[at])))}: is its scale wrong?"
        few = f"{len(off):,} of {len(factor):,} blocks of {size} in a row"
        return f"{few} are multiples of the original's, {_range(factor)}: are the scales those of another layer?"
    for size in (each for each in _BLOCKS if length % each == 0):  # blocks with wrong signs may have any size
        factor, left = _fitted(q.reshape(-1, size), x.reshape(-1, size))
        off = np.flatnonzero(np.abs(factor - 1) > MOST_LEFT)
        if _is_fit(factor, left) and (words := _of_sign(factor, off, f"blocks of {size} in a row")):
            return words
    return ""


def is_rotated(read: ArraySource, original: ArraySource) -> bool:
    """Return whether the rows or columns of a weight have nearly the same norms as those of its original.

    Quantisers such as QuaRot and SpinQuant multiply weights by an orthogonal matrix before they round them.
    """
    pair = both(read, original)
    if pair is None or min(pair[0].shape) < SHORTEST:
        return False
    for axis in (0, 1):
        own, other = (np.linalg.norm(each, axis=axis) for each in pair)
        if not other.all() or not own.all() or other.std() == 0:
            continue
        is_same = np.median(np.abs(own / other - 1)) < _SAME_NORM
        if is_same and np.corrcoef(own, other)[0, 1] > _CORRELATED:
            return True
    return False


def _transposed(q: Array, x: Array) -> str:
    if q.shape[0] != q.shape[1] or q.shape[0] < 8:
        return ""
    factor, left = _fitted(q.T.reshape(1, -1), x.reshape(1, -1))
    return "it is the transposed original" if _is_fit(factor, left) and abs(factor[0] - 1) < MOST_LEFT else ""


def _shifted(q: Array, x: Array) -> str:
    for by in (1, 2, 4, 8, 16, 32):
        if len(q) < 64 * by:
            break
        for here, there in ((q[by:], x[:-by]), (q[:-by], x[by:])):
            factor, left = _fitted(here.reshape(1, -1), there.reshape(1, -1))
            if _is_fit(factor, left):
                return f"its numbers are shifted by {by}: are codes missing, or is there a header in the data?"
    return ""


def _wrong_rows(q: Array, x: Array) -> str:
    """Name the rows with large errors.

    Return "" if no row or nearly every row has a large error, or if there are few rows.
    """
    error, signal = np.square(q - x).sum(axis=1), np.square(x).sum(axis=1)
    bad = np.flatnonzero(error > MOST_LEFT**2 * signal)
    if not 0 < len(bad) < 0.9 * len(q) or len(q) < 4:
        return ""
    first, last = int(bad[0]), int(bad[-1])
    which = f"row {first:,}" if first == last else f"rows {first:,} to {last:,}"
    if len(bad) < 0.9 * (last - first + 1):
        which = f"{len(bad):,} rows between {first:,} and {last:,}"
    alike = unit_rows(q[bad]) * unit_rows(x[bad])
    other = f"{plural(len(bad), 'holds', 'hold')} other numbers than the original"
    if np.median(alike.sum(axis=1)) >= MOST_LEFT:
        other = f"{plural(len(bad), 'is', 'are')} far from the original"
    return f"{which} of {len(q):,} {other}, the rest fits"
