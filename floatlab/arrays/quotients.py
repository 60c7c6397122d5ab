"""Quotients in float64 that round into a narrower format exactly as the true quotients do.

Let x and the divisor d be float64s, and let m be a number of the target format, or the midpoint of two neighbouring
numbers, such that m·d is exact in float64. Then the float64 nearest to x/d is m only if x = m·d. Proof: if m·d is a
power of two, so are m and d, since the product of their odd parts is 1. Then x/d is exact, and equals m only if x =
m·d. Otherwise, every float64 x ≠ m·d differs from m·d by at least an ulp of m·d, which is more than 2^−53·m·d. So x/d
differs from m by more than 2^−53·m. Since 2^−53·m is at least half an ulp of m, x/d differs from m by more than half an
ulp, and is not rounded to m. Since rounding is monotone, the rounded quotient is on the same side of every m as x/d,
and both round to the same number of the target format. The theorem does not hold for stochastic rounding, nor if m·d
has more than 53 bits. In these cases the quotient is first rounded to odd in float64; the second rounding, into the
target format, is then also correct (see `lanes.pairs`).
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.lanes import pairs
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.types import Array
from floatlab.formats.format import Format

DIGITS = DOUBLE.precision
TINY = -200  # smaller exponents are replaced by this, which is still far below the range of binary32
_HUGE = 900
_LOST = (1 << 29) - 1  # the significand bits of float64 that float32 lacks


def is_quotient(digits: int, format: Format) -> bool:
    """Return whether a float64 quotient rounds to the same number of `format` as the exact quotient.

    The divisor has at most `digits` significant bits.
    """
    return digits + format.precision + 1 <= DIGITS


def quotient(x: Array, divisor: Array, digits: int, format: Format) -> Array:
    """Return x / divisor as a float64 that rounds into `format` like the exact quotient.

    The divisor has at most `digits` significant bits. In stochastic rounding, and for quotients that underflow, the
    float64 and the exact quotient may round differently. If `is_quotient(digits, format)` is true, NumPy divides,
    including infinities and NaNs. If it is false, quotients of infinities and NaNs are undefined, and the divisor must
    be positive.
    """
    if not is_quotient(digits, format):
        return divide_to_odd(x, divisor)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.divide(x, divisor, dtype=np.float64)


def divide_to_odd(x: Array, divisor: Array, least: int = TINY) -> Array:
    """Return x / divisor, rounded to odd in float64; the divisor must be positive.

    For infinities and NaNs, the result is undefined.

    Exponents of quotients are limited to the range from `least` to 900. With the default `least`, the quotients still
    round correctly (also stochastically) into any format whose range is at most that of binary32.

    >>> divide_to_odd(np.array([1.0, 1.0]), np.array([10.0, 4.0])).tolist()
    [0.09999999999999999, 0.25]
    """
    with np.errstate(all="ignore"):
        m, e = np.frexp(np.abs(x).astype(np.float64))
        d, f = np.frexp(divisor)
        magnitude = pairs.to_odd(pairs.quotient(m, d)).view(np.float64)
        return np.copysign(np.ldexp(magnitude, np.clip(e - f, least, _HUGE)), x)


def narrow_to_odd(x: Array) -> Array:
    """Round float64 numbers to float32, in the direction "to odd". The array `x` is overwritten.

    Rounding these float32 numbers into a small format is faster than rounding the float64 numbers, and gives the same
    results. Numbers outside float32's normal range are rounded to nearest, not to odd.

    >>> narrow_to_odd(np.array([1.0, 1 + 2.0**-40, 1 - 2.0**-40])).tolist()
    [1.0, 1.0000001192092896, 0.9999999403953552]
    """
    bits = x.view(np.int64)
    bits |= ((bits & _LOST) + _LOST) & (_LOST + 1)
    bits &= ~_LOST
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return x.astype(np.float32)
