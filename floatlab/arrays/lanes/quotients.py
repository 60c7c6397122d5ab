"""Quotients of arrays for a later rounding into a small format: float64, and yet rounded once.

Let m be a number of the format that is rounded into, or a tie between two, and m·d exact in float64 for the divisor d.
Then the float64 nearest to x/d is m only where x = m·d. For another x differs from m·d by at least an ulp of it, so
x/d from m by more than half an ulp of m (that ulp is more than 2^−53·m·d, and half of m's at most 2^−53·m). As
rounding is monotone, the quotient stays on its side of every m, and a second rounding is as good as the first.

Only a random draw looks closer than that, and where m·d has more than 53 digits nothing is said. There the quotient
is rounded to odd, after which a second rounding is as good as the first too (see `pairs`).
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.lanes import pairs
from floatlab.arrays.lanes.reading import DOUBLE
from floatlab.arrays.types import Array
from floatlab.formats import Format

DIGITS = DOUBLE.precision
TINY = -200  # a binade that is tiny for every small format, and from which no draw tells smaller ones
_HUGE = 900
_LOST = (1 << 29) - 1  # the digits of float64 that float32 has not


def is_quotient(digits: int, format: Format) -> bool:
    """Say whether a quotient in float64, by a divisor of so many digits, rounds into a format as the exact one does."""
    return digits + format.precision + 1 <= DIGITS


def quotient(x: Array, divisor: Array, digits: int, format: Format) -> Array:
    """Return x / divisor, of so many digits, as float64 that rounds into a format as the exact quotient does.

    In every direction but stochastic. What underflows is lost; special values give what NumPy gives.
    """
    if not is_quotient(digits, format):
        return divide_to_odd(x, divisor)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found: Array = np.divide(x, divisor, dtype=np.float64)
        return found


def divide_to_odd(x: Array, divisor: Array) -> Array:
    """Return x / divisor (> 0) as float64 rounded to odd; far outside, a number in its place that rounds as it does.

    Special values give anything.

    >>> divide_to_odd(np.array([1.0, 1.0]), np.array([10.0, 4.0])).tolist()
    [0.09999999999999999, 0.25]
    """
    with np.errstate(all="ignore"):
        m, e = np.frexp(np.abs(x).astype(np.float64))
        d, f = np.frexp(divisor)
        magnitude = pairs.to_odd(pairs.quotient(m, d)).view(np.float64)
        found: Array = np.copysign(np.ldexp(magnitude, np.clip(e - f, TINY, _HUGE)), x)
        return found


def narrow_to_odd(x: Array) -> Array:
    """Return float64 as float32, rounded to odd: whichever small format comes next cannot tell, and is made faster.

    Takes the array apart in place; what float32's normal numbers do not reach is rounded to nearest.

    >>> narrow_to_odd(np.array([1.0, 1 + 2.0**-40, 1 - 2.0**-40])).tolist()
    [1.0, 1.0000001192092896, 0.9999999403953552]
    """
    bits = x.view(np.int64)
    bits |= ((bits & _LOST) + _LOST) & (_LOST + 1)
    bits &= ~_LOST
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return x.astype(np.float32)
