"""Exact results as pairs of floats: the result rounded to nearest by the processor, and its rounding error.

A pair (s, e) denotes the number s + e: s is the nearest binary64 (or binary32), and e is the residual. A quotient or a
root is usually not the sum of two floats. In the pair of a quotient or a root, only the sign of e is right (e is zero
if s is exact). Since quotients and roots have no ties, the sign of e is enough, except for stochastic rounding. The e
of a fused multiply-add may itself be rounded to odd. `to_odd` turns a pair into one float. Rounding this float into a
format with at least two bits fewer gives the same result as rounding the exact number.

T. J. Dekker, *A floating-point technique for extending the available precision* (Numerische Mathematik 18, 1971); S.
Boldo and G. Melquiond, *Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd* (IEEE
Transactions on Computers 57(4), 2008).
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.numbers import Direction
from floatlab.numbers.rounding import increments

Pair = tuple[Array, Array | None]  # the nearest floats, and the residuals (None if all of them are zero)

_WORDS = {4: np.int32, 8: np.int64}
_HALVES = float(1 + (1 << 27))  # splits binary64 into two halves of at most 26 bits and a sign


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b as an exact pair (s, e), so that s + e = a + b. If s is infinite, e is a NaN."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a·b in binary64 as a pair (s, e).

    The pair is exact if a or b is zero, or if |a·b| ≥ 2^-900. But if splitting a factor overflows, e is a NaN.
    """
    s = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return s, a_low * b_low - (((s - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(a: Array) -> tuple[Array, Array]:
    c = _HALVES * a
    high = c - (c - a)
    return high, a - high


def quotient(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a/b in binary64 as a pair (s, e); a must be zero, or both |a| and |a/b| at least 2^-900."""
    s = a / b
    product, rest = two_product(s, b)
    return s, ((a - product) - rest) * np.copysign(1.0, b)  # a − s·b is a float


def root(a: Array) -> tuple[Array, Array]:
    """Return √a in binary64 as a pair (s, e); a must be zero or at least 2^-900."""
    s = np.sqrt(a)
    square, rest = two_product(s, s)
    return s, (a - square) - rest


def fused(product: Pair, c: Array) -> tuple[Array, Array]:
    """Return a·b + c as a pair (s, e); `product` is the pair of a·b, and s is the rounded fma.

    The algorithm is that of Boldo and Melquiond, fig. 2.
    """
    high, low = product
    if low is None:
        return two_sum(high, c)
    u_high, u_low = two_sum(c, low)
    t_high, t_low = two_sum(high, u_high)
    s, e = two_sum(t_high, to_odd(two_sum(t_low, u_low)).view(t_high.dtype))
    plain = (s == 0) | ~np.isfinite(s)  # high + c has the right sign of zero, and handles infinities
    return np.where(plain, high + c, s), e


def missed(pair: Pair) -> Array | np.bool:
    """Return a mask of the pairs whose residual is not zero.

    A residual that is NaN counts as zero. Either the result of such a pair is not finite, or the caller computes it in
    another way.
    """
    e = pair[1]
    return np.False_ if e is None else (e < 0) | (e > 0)


def _cut(pair: Pair) -> tuple[Array, Array | np.bool, Array | np.bool]:
    """Truncate s + e toward zero, to the format of s, for each pair (s, e). Return the bit patterns and two masks.

    The first mask marks the inexact results (e is not zero). The second mask marks the pairs with |s + e| < |s|. The
    result of such a pair is not s, but the next float toward zero.
    """
    s, e = pair
    words = s.view(_WORDS[s.itemsize])
    if e is None:
        return words, np.False_, np.False_
    above, below = e > 0, e < 0
    back = np.where(words < 0, above, below)
    return words - back, above | below, back


def to_odd(pair: Pair) -> Array:
    """Return a pair rounded to odd: truncated toward zero, with the last bit set if bits are lost.

    The floats are returned as their bit patterns, read as unsigned integers.
    """
    kept, inexact, _ = _cut(pair)
    return kept | inexact


def narrowed(pair: Pair) -> Pair:
    """Convert a pair of binary64 to a pair of binary32.

    Rounding the result to odd in binary32 gives the same number as rounding the given pair to odd in binary32. In the
    result (s, e), s is infinite if the number overflows, and only the sign of e is exact.
    """
    s, e = pair
    near = s.astype(np.float32)
    rest = s - near
    return near, rest if e is None else np.where(rest == 0, e, rest)


def in_direction(pair: Pair, direction: Direction) -> Array:
    """Round a pair of binary64 numbers to one binary64 number, in any direction except stochastic.

    The bits of the result are returned as int64.

    For quotients and roots, pass RNE instead of RNA. Quotients and roots have no ties, and only the signs of their
    residuals are known.
    """
    if direction is Direction.RNE:
        return pair[0].view(np.int64)
    kept, inexact, back = _cut(pair)
    tie = np.zeros_like(inexact)
    if direction is Direction.RNA and pair[1] is not None:
        tie = 2 * np.abs(pair[1]) == np.spacing(np.abs(kept.view(np.float64)))
    step = increments(direction, kept < 0, kept & 1 != 0, inexact, back | tie, tie)
    return kept + step
