"""Recognise fast matrix products, such as Strassen's, by the sizes and the correlations of their errors.

A fast algorithm divides both factors into 2 × 2 blocks, multiplies seven pairs of sums of blocks, and adds these
products. The errors of the result are bounded by the norms of the blocks, not by the terms of each element (Higham,
*Accuracy and Stability of Numerical Algorithms*, section 23.2.2). The smallest elements may therefore have errors that
no order of addition causes. Each of the seven products occurs in several blocks of the result, so the error of a
product occurs in several blocks. This pattern identifies the algorithm. In a conventional product, the rounding errors
of the blocks are independent.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record
from floatlab.reduce.explain.faults.patterns import drift_of
from floatlab.reduce.explain.faults.rearranged import shapes_of
from floatlab.reduce.explain.noise import Noise, multiply_exactly
from floatlab.reduce.explain.problem import View
from floatlab.reduce.explain.residuals import share_of
from floatlab.reduce.results.diagnosis_record import Evidence

_STEP = 0.15  # the mean square error of one rounding, in units of (u·value)²
_WORK = 1 << 26  # products with more multiply-adds are not examined
_DEEP = 1 << 21  # three levels are tried only for products with at most this many multiply-adds
_DEPTHS = (1, 2, 3)  # levels of recursion
_LEAST = 4  # the result has at least this many rows and columns
_CAP = 16.0  # limit of the squared Mahalanobis distance of four errors; larger ones are due to faults
_LARGEST = 12.0  # errors above this many sigmas do not fit an algorithm
# The typical error is between these multiples of the expected one, since the seven products may be more or less exact.
_SCALES = 0.2, 4.0
# An algorithm is certain if the errors are exp(15) times as likely as in a conventional product. It is excluded if they
# are exp(5) times as likely in a conventional product.
_SURE, _EXCLUDED = 15.0, -5.0
_MEDIAN, _MEDIAN_OF_FOUR = 0.4549, 3.3567  # the medians of χ² with 1 and with 4 degrees of freedom
# In a fast product, about half of the elements that are sums of zeros have errors, or none has. A share between 0 and
# _IN_EMPTY excludes a fast product.
_IN_EMPTY = 0.25
_SHARED = 0.25  # at least this share of the positions in a block must have nonzero terms in all four blocks
_CROSSED = 16  # sums of zeros in nonzero rows and columns are examined if there are at least this many
# Errors above this many times u·‖x‖·‖y‖ fit no algorithm. Here ‖x‖ is the largest norm of a row of x, and ‖y‖ that of a
# column of y.
_MOST = 2.0**12
_FLOOR = 1e-6  # variances are at least this share of the median variance


class _Algorithm(Record):
    """A bilinear algorithm for 2 × 2 blocks: each product multiplies a sum of blocks of x by a sum of blocks of y.

    `left` and `right` have the coefficients of the blocks 11, 12, 21, 22 for each of the seven products, and `out` has
    the coefficients of the products for each block of the result.
    """

    name: str
    left: tuple[tuple[int, ...], ...]
    right: tuple[tuple[int, ...], ...]
    out: tuple[tuple[int, ...], ...]


_ALGORITHMS = (
    _Algorithm(
        "Strassen",
        ((1, 0, 0, 1), (0, 0, 1, 1), (1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 0), (-1, 0, 1, 0), (0, 1, 0, -1)),
        ((1, 0, 0, 1), (1, 0, 0, 0), (0, 1, 0, -1), (-1, 0, 1, 0), (0, 0, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1)),
        ((1, 0, 0, 1, -1, 0, 1), (0, 0, 1, 0, 1, 0, 0), (0, 1, 0, 1, 0, 0, 0), (1, -1, 1, 0, 0, 1, 0)),
    ),
    _Algorithm(
        "Winograd",
        ((1, 0, 0, 0), (0, 1, 0, 0), (1, 1, -1, -1), (0, 0, 0, 1), (0, 0, 1, 1), (-1, 0, 1, 1), (1, 0, -1, 0)),
        ((1, 0, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1), (1, -1, -1, 1), (-1, 1, 0, 0), (1, -1, 0, 1), (0, -1, 0, 1)),
        ((1, 1, 0, 0, 0, 0, 0), (1, 0, 1, 0, 1, 1, 0), (1, 0, 0, -1, 0, 1, 1), (1, 0, 0, 0, 1, 1, 1)),
    ),
)


class FastProduct(Record):
    """A fast algorithm that explains the errors of a result.

    If `is_sure`, the errors are far likelier with it than in a conventional or in another rearranged product.
    """

    name: str
    is_sure: bool

    @property
    def evidence(self) -> Evidence:
        """The name of the algorithm as evidence, which is a tuple of pairs (name, text)."""
        return (("algorithm", self.name),)


def find_fast_product(view: View, x: Array, y: Array) -> FastProduct | None:
    """Return the fast algorithm that explains all errors of a result, or None if none does.

    Very large products, results with fewer than four rows or columns, and mostly empty products are not examined.
    """
    (m, n), k = view.values.shape, x.shape[1]
    if min(m, n) < _LEAST or k < 2 or m * n * k > _WORK or not view.usable.all():
        return None
    error = np.asarray(view.totals.error(view.values))
    if _is_beyond(view, error, x, y) or view.totals.off_grid(view.values).any():
        return None  # all numbers of a fast product are sums of products of the inputs, so they are on the grid
    drift = drift_of(view)
    empty = np.asarray(view.totals.size == 0)
    are_shared = np.all([~each for each in _halved(empty)], axis=0)
    if are_shared.sum() < _LEAST or share_of(are_shared) < _SHARED:
        return None  # the products occur in several blocks, so most errors of a block say nothing if others are empty
    in_empty = error[empty] != 0
    if in_empty.any() and share_of(in_empty) < _IN_EMPTY:
        return None
    crossed = np.asarray(empty & np.asarray(x.any(axis=1))[:, None] & y.any(axis=0))
    if crossed.sum() >= _CROSSED and share_of(error[crossed] != 0) < _IN_EMPTY < share_of(error[~empty] != 0):
        return None  # in a fast product, numbers of other rows cancel in these elements, and leave rounding errors
    # The alternatives are a conventional product, with or without a small bias or factor, and other rearranged
    # products.
    shifts = [np.zeros(error.shape), *drift.means, drift.factor * view.totals.product]
    # Other rearranged products have errors of other sizes. Errors that rows or columns share are subtracted.
    others = [(view.noise.u * shape) ** 2 for shape in shapes_of(x, y)]
    unshared = error - error.mean(axis=0) - error.mean(axis=1, keepdims=True) + error.mean()
    extra = np.asarray(view.half) ** 2 / 3 + np.zeros(error.shape)
    usual = view.noise.sigma(view.totals) ** 2 * (view.totals.size > 0)
    best: tuple[float, float, str] | None = None
    for peeled in (False, True)[: 1 + (m % 2 or n % 2 or k % 2)]:
        # An odd size is padded with zeros, or its last row or column is computed in the conventional way.
        (left, right), inner = _cropped(x, y, peeled), np.s_[: m - m % 2 * peeled, : n - n % 2 * peeled]
        for algorithm in _ALGORITHMS:
            for levels in _DEPTHS[: 2 if m * n * k > _DEEP else 3]:
                with np.errstate(all="ignore"):
                    alone = _covariances(left, right, algorithm, levels, view.noise, peeled)
                    made = alone.copy()
                    for i, more in enumerate(_halved(extra[inner])):
                        made[i, i] += more
                    if not _fits(error[inner], made):
                        continue
                    conventional, *rearranged = (
                        _independent(each[inner], extra[inner], alone) for each in (usual, *others)
                    )
                    found = _likelihood(error[inner], made)
                    gain = found - max(_likelihood((error - shift)[inner], conventional) for shift in shifts)
                    if gain > _EXCLUDED and (best is None or gain > best[0]):
                        certain = found - max(_likelihood(unshared[inner], each) for each in rearranged)
                        best = gain, min(gain, certain), algorithm.name
    return None if best is None else FastProduct(best[2], best[1] > _SURE)


def _independent(variance: Array, extra: Array, fast: Array) -> Array:
    """Return the covariances of the errors of the four blocks if these errors are independent.

    The variances are `variance` + `extra`. Where `variance` is 0, the variance on the diagonal of `fast` replaces it.
    `extra` is added in both cases.
    """
    found = np.zeros_like(fast)
    for i, (each, more) in enumerate(zip(_halved(variance), _halved(extra), strict=True)):
        found[i, i] = np.where(each > 0, each, fast[i, i]) + more
    return found


def _is_beyond(view: View, error: Array, x: Array, y: Array) -> bool:
    """Return whether some error is too large for any fast algorithm, so that the expensive tests can be skipped."""
    with np.errstate(all="ignore"):
        norms = float((x * x).sum(axis=1).max() * (y * y).sum(axis=0).max()) ** 0.5
        beyond = np.abs(error) > _MOST * view.noise.u * norms + 2 * np.asarray(view.half)
    return bool(beyond.any())


def _cropped(x: Array, y: Array, peeled: bool) -> tuple[Array, Array]:
    (m, k), n = x.shape, y.shape[1]
    return (x[: m - m % 2, : k - k % 2], y[: k - k % 2, : n - n % 2]) if peeled else (x, y)


def _halved(x: Array) -> list[Array]:
    """Return the four blocks of a matrix. Zeros are appended to odd numbers of rows or columns."""
    x = np.pad(x, [(0, size % 2) for size in x.shape])
    m, n = (size // 2 for size in x.shape)
    return [x[:m, :n], x[:m, n:], x[m:, :n], x[m:, n:]]


def _joined(blocks: list[Array], shape: tuple[int, ...]) -> Array:
    return np.block([blocks[:2], blocks[2:]])[: shape[0], : shape[1]]


def _summed(blocks: list[Array], signs: tuple[int, ...]) -> Array:
    return np.asarray(sum(sign * block for sign, block in zip(signs, blocks, strict=True) if sign))


def _covariances(x: Array, y: Array, algorithm: _Algorithm, levels: int, noise: Noise, peeled: bool) -> Array:
    """Return the covariances of the errors of the result's four blocks, as an array (4, 4, rows, columns)."""
    parts, others = _halved(x), _halved(y)
    products, variances = [], []
    for signs, weights in zip(algorithm.left, algorithm.right, strict=True):
        left, right = _summed(parts, signs), _summed(others, weights)
        products.append(left @ right)
        # Each addition of blocks is rounded, which changes the product as rounded inputs would.
        steps = sum(map(abs, signs)) + sum(map(abs, weights)) - 2
        rounded = _STEP * noise.u**2 * steps * ((left * left) @ (right * right))
        variances.append(_variance(left, right, algorithm, levels - 1, noise, peeled) + rounded)
    out = np.array(algorithm.out, np.float64)
    found: Array = np.einsum("ar,br,rmn->abmn", out, out, np.array(variances))
    for i, row in enumerate(algorithm.out):
        total = np.zeros_like(products[0])
        for sign, product in zip(row, products, strict=True):
            total = total + sign * product
            found[i, i] += _STEP * noise.u**2 * total * total * abs(sign)
    return found


def _variance(x: Array, y: Array, algorithm: _Algorithm, levels: int, noise: Noise, peeled: bool) -> Array:
    usual = noise.sigma(multiply_exactly(x, y, False)) ** 2
    if not levels or min(*x.shape, *y.shape) < 2:
        return usual
    left, right = _cropped(x, y, peeled)
    found = _covariances(left, right, algorithm, levels, noise, peeled)
    usual[: len(left), : right.shape[1]] = _joined([found[i, i] for i in range(4)], (len(left), right.shape[1]))
    return usual


def _fits(error: Array, blocks: Array) -> bool:
    """Return whether the errors are about as large as expected, and none of them is too large."""
    squares = error**2 / _joined([blocks[i, i] for i in range(4)], error.shape)
    some = squares[error != 0]
    if not some.size or not np.isfinite(some).all():
        return False
    scale = float(np.median(some) / _MEDIAN) ** 0.5
    return bool(_SCALES[0] <= scale <= _SCALES[1]) and float(some.max()) <= (_LARGEST * max(scale, 0.5)) ** 2


def _likelihood(error: Array, blocks: Array) -> float:
    """Return the log-likelihood of the errors of the four blocks, up to a constant."""
    m, n = (size - blocks.shape[axis] for axis, size in zip((2, 3), error.shape, strict=True))
    matrix = np.moveaxis(blocks[:, :, :m, :n], (0, 1), (2, 3)).copy()
    diagonal = matrix[..., range(4), range(4)]
    matrix[..., range(4), range(4)] = np.maximum(diagonal, _FLOOR * np.median(diagonal)) * (1 + _FLOOR)
    vector = np.stack([each[:m, :n] for each in _halved(error)], axis=-1)[..., None]
    size = np.sqrt(matrix[..., range(4), range(4)])
    matrix, vector = matrix / size[..., None] / size[..., None, :], vector / size[..., None]
    far = (vector * np.linalg.solve(matrix, vector)).sum(axis=(-2, -1))
    some = far[far > 0]  # sums of few digits are often exact, which says nothing about the size of the other errors
    scale = max(float(np.median(some)) / _MEDIAN_OF_FOUR if some.size else 0.0, _FLOOR)
    spread = np.linalg.slogdet(matrix)[1] + 2 * np.log(size).sum(axis=-1) + 4 * np.log(scale)
    return -0.5 * float((np.minimum(far / scale, _CAP) + spread).sum())
