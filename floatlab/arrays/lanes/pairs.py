"""Exact results as pairs of floats: what the processor rounds to nearest, and what that misses.

A pair (s, e) stands for a number: s is the binary64 (or binary32) nearest to it, and e is what is missing, s + e
being the number exactly. Of quotients and roots, which no two floats add up to, e has the sign of what is missing
and is zero where nothing is: that is all that a direction asks for, ties aside, and they have none. Rounding to odd
turns a pair into one float that rounds again as the number itself does, into any format of two digits fewer.

T. J. Dekker, *A floating-point technique for extending the available precision* (Numerische Mathematik 18, 1971);
S. Boldo and G. Melquiond, *Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd*
(IEEE Transactions on Computers 57(4), 2008).
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.numbers import Direction
from floatlab.numbers.rounding import increments

Pair = tuple[Array, Array | None]  # None: nothing is missing anywhere

_WORDS = {4: np.int32, 8: np.int64}
_HALVES = float(1 + (1 << 27))  # splits binary64 into two halves of at most 26 digits and a sign


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b as a pair; exact unless the sum overflows, and then e is a NaN."""
    s = a + b
    c = s - a
    return s, (a - (s - c)) + (b - c)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a·b in binary64 as a pair; exact where |a·b| is from 2^-900 on, and e is a NaN where a half overflows."""
    s = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return s, a_low * b_low - (((s - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(a: Array) -> tuple[Array, Array]:
    c = _HALVES * a
    high = c - (c - a)
    return high, a - high


def quotient(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a/b in binary64 as a pair, where |a| and the quotient are from 2^-900 on."""
    s = a / b
    product, rest = two_product(s, b)
    return s, ((a - product) - rest) * np.copysign(1.0, b)  # a − s·b has no more digits than a float


def root(a: Array) -> tuple[Array, Array]:
    """Return √a in binary64 as a pair, where a is from 2^-900 on."""
    s = np.sqrt(a)
    square, rest = two_product(s, s)
    return s, (a - square) - rest


def fused(product: Pair, c: Array) -> tuple[Array, Array]:
    """Return a·b + c as a pair, of the product's pair; s is the correctly rounded fma (Boldo and Melquiond, fig. 2)."""
    high, low = product
    if low is None:
        return two_sum(high, c)
    u_high, u_low = two_sum(c, low)
    t_high, t_low = two_sum(high, u_high)
    s, e = two_sum(t_high, to_odd(two_sum(t_low, u_low)).view(t_high.dtype))
    plain = (s == 0) | ~np.isfinite(s)  # where the sign of a zero, and an infinity, are those of high + c
    return np.where(plain, high + c, s), e


def missed(pair: Pair) -> Array | np.bool:
    """Say where s is not all of the number; a NaN in e, of a result that is no number, misses nothing."""
    e = pair[1]
    return np.False_ if e is None else (e < 0) | (e > 0)


def _cut(pair: Pair) -> tuple[Array, Array | np.bool, Array | np.bool]:
    """Return the number cut toward zero, as words; whether that misses anything; and whether s lies beyond it."""
    s, e = pair
    words = s.view(_WORDS[s.itemsize])
    if e is None:
        return words, np.False_, np.False_
    above, below = e > 0, e < 0
    back = np.where(words < 0, above, below)
    return words - back, above | below, back


def to_odd(pair: Pair) -> Array:
    """Return a pair rounded to odd, as words: cut toward zero, and the last digit 1 where anything is missing."""
    kept, inexact, _ = _cut(pair)
    return kept | inexact


def narrowed(pair: Pair) -> Pair:
    """Return a pair of binary64 as one of binary32, for rounding to odd, infinite where that has no room."""
    s, e = pair
    near = s.astype(np.float32)
    rest = s - near
    return near, rest if e is None else np.where(rest == 0, e, rest)


def in_direction(pair: Pair, direction: Direction) -> Array:
    """Return a pair of binary64 rounded in a direction other than SR, as words; of quotients and roots, RNA is RNE."""
    if direction is Direction.RNE:
        return pair[0].view(np.int64)
    kept, inexact, back = _cut(pair)
    tie = np.zeros_like(inexact)
    if direction is Direction.RNA and pair[1] is not None:
        tie = 2 * np.abs(pair[1]) == np.spacing(np.abs(kept.view(np.float64)))
    step = increments(direction, kept < 0, kept & 1 != 0, inexact, back | tie, tie)
    return kept + step
