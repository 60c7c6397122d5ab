"""Exact sums of long arrays, by a superaccumulator; and matrix products with about twice the digits of binary64.

The superaccumulator (U. W. Kulisch, *Computer Arithmetic and Validity*, 2008) splits each significand at bit 27 into
two limbs. Limbs of equal weight are added in binary64, where their sum is exact. Python integers combine these sums.
"""

from __future__ import annotations

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.pairs import two_product, two_sum
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.numbers import Datum, Exact

_LIMB = 27
_MASK = (1 << _LIMB) - 1
_CHUNK = 1 << 17  # the largest number of limbs in one sum: 2^17 limbs of 36 bits add up to less than 2^53


def exact_totals(x: Source, y: Source | None = None) -> tuple[Exact, Exact] | None:
    """Return Σ x and Σ |x|, or Σ x·y and Σ |x·y|, exactly; None if a number is not finite.

    x and y are one-dimensional.

    >>> from floatlab.arrays.sources import source_of
    >>> [float(each.as_fraction()) for each in exact_totals(source_of(np.float32([1, 2**-60, -1])))]
    [8.673617379884035e-19, 2.0]
    """
    sides = [x] if y is None else [x, y]
    if not all(holds(DOUBLE, side.format) for side in sides):
        return _one_by_one(sides)
    parts = []
    for side in sides:
        values = decode(side.codes, side.format, np.float64)
        if not np.isfinite(values).all():
            return None
        fraction, exponent = np.frexp(values)
        digits = side.format.precision
        parts.append((np.ldexp(fraction, digits).astype(np.int64), exponent.astype(np.int64) - digits, digits))
    total = whole = Exact(False, 0, 0)
    for start in range(0, len(x.codes), _CHUNK):
        rows = slice(start, start + _CHUNK)
        for c, q in _products([(c[rows], q[rows], digits) for c, q, digits in parts]):
            total += _gathered(c, q)
        # Compute |x·y| from |x| and |y|, since the partial products of one product may differ in sign.
        for c, q in _products([(np.abs(c[rows]), q[rows], digits) for c, q, digits in parts]):
            whole += _gathered(c, q)
    return total, whole


def _products(parts: list[tuple[Array, Array, int]]) -> list[tuple[Array, Array]]:
    """Return pairs of arrays: integers c, |c| < 2^63, and exponents q.

    Over all pairs, Σ c·2^q is the sum of the terms or products.
    """
    if len(parts) == 1:
        return [(parts[0][0], parts[0][1])]
    (a, p, a_digits), (b, q, b_digits) = parts
    if a_digits + b_digits <= 62:
        return [(a * b, p + q)]
    halves = [((each >> _LIMB, _LIMB), (each & _MASK, 0)) for each in (a, b)]
    return [(u * v, p + q + i + j) for u, i in halves[0] for v, j in halves[1]]


def _gathered(c: Array, q: Array) -> Exact:
    """Return Σ c·2^q for at most 2^17 integers c, |c| < 2^63."""
    used = c != 0
    c, q = c[used], q[used]
    if not len(c):
        return Exact(False, 0, 0)
    low = int(q.min())
    place = q - low
    total = 0
    for limb, shift in ((c & _MASK, 0), (c >> _LIMB, _LIMB)):
        sums = np.bincount(place, weights=limb.astype(np.float64))
        for i in np.flatnonzero(sums).tolist():
            total += int(sums[i]) << (i + shift)
    return Exact(total < 0, abs(total), low)


def _one_by_one(sides: list[Source]) -> tuple[Exact, Exact] | None:
    total = whole = Exact(False, 0, 0)
    for row in zip(*(side.codes.tolist() for side in sides), strict=True):
        data = [Datum(side.format, code) for side, code in zip(sides, row, strict=True)]
        if not all(each.is_finite for each in data):
            return None
        term = data[0].exact if len(data) == 1 else data[0].exact * data[1].exact
        total, whole = total + term, whole + abs(term)
    return total, whole


def matrix_totals(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """Return A·B as a pair of float64 arrays (high, low), and |A|·|B| as a float64 array.

    `high` is the float64 nearest to high + low. The factors are float arrays of shapes (rows, n) and (n, columns). The
    error of a pair is below n²·2^-104·|A|·|B| if binary64 can represent the rounding errors of all products and sums.
    If cancellation makes an element of A·B smaller than this bound, the pair of this element may have no correct digit.

    >>> high, low, size = matrix_totals(np.float32([[1, 2**-30, -1]]), np.float32([[1], [2**-40], [1]]))
    >>> high.item() == 2**-70, size.item()
    (True, 2.0)
    """
    x, y = (np.asarray(side, np.float64) for side in (a, b))
    narrow = all(np.asarray(side).dtype.itemsize <= 4 for side in (a, b))
    return *pair_totals(x.T[:, :, None], y[:, None, :], narrow), np.abs(x) @ np.abs(y)


def pair_totals(x: Array, y: Array, narrow: bool) -> tuple[Array, Array]:
    """Return the sums of x·y along the first axis, each as a pair (high, low); see `matrix_totals`.

    x and y are float64 arrays that broadcast. `narrow` may be true only if binary64 represents all products exactly.
    """
    shape = np.broadcast_shapes(x.shape[1:], y.shape[1:])
    high, low = np.zeros(shape), np.zeros(shape)
    with np.errstate(all="ignore"):
        for left, right in zip(x, y, strict=True):
            product, missed = (left * right, None) if narrow else two_product(left, right)
            high, rest = two_sum(high, product)
            low += rest
            if missed is not None:
                low += missed
        return two_sum(high, low)
