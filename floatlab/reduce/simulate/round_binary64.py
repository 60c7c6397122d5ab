"""Rounded sums by means of Python's floats: serial sums in a narrow format, and exact sums that are rounded once.

`math.fsum` gives the binary64 number nearest to an exact sum. A second call, which also subtracts this number, gives
the sign of the remainder. The number and the sign determine the exact sum rounded to odd at 53 bits. Rounding the odd
result to a format that is at least two bits narrower gives the same result as rounding the exact sum (S. Boldo, G.
Melquiond, *Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd*, IEEE Transactions on
Computers 57(4), 2008).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import fsum, isfinite, ldexp

from floatlab.arith.operands import holds
from floatlab.arrays.lanes.parameters import DOUBLE, is_enough
from floatlab.formats import Format
from floatlab.numbers import Context, Direction

FLOAT, WORD = struct.Struct("=d"), struct.Struct("=Q")


def nearest_normal(format: Format) -> Callable[[float], float | None]:
    """Return a function that rounds binary64 numbers to the precision of a format, to nearest even.

    The function rounds as if the format had no smallest exponent, so results that are subnormal in the format are
    wrong. The function returns None for overflows and NaNs.

    >>> from floatlab.formats import parse_format
    >>> near = nearest_normal(parse_format("fp16"))
    >>> near(2049.0), near(-2051.0), near(65520.0)
    (2048.0, -2052.0, None)
    """
    drop, most = 53 - format.precision, float(format.largest)
    below, kept = (1 << drop - 1) - 1, ~((1 << drop) - 1)
    put, word_of, made, float_of = FLOAT.pack, WORD.unpack, WORD.pack, FLOAT.unpack

    def near(number: float) -> float | None:
        (word,) = word_of(put(number))
        (found,) = float_of(made((word + below + (word >> drop & 1)) & kept))
        return found if -most <= found <= most else None

    return near


def can_add_serially(format: Format, context: Context) -> bool:
    """Return whether `add_serially` is correct for a format and a context.

    Rounding a sum first to 53 and then to p bits gives the same result as rounding it once if 53 ≥ 2p + 2. Subnormal
    sums are exact. (S. A. Figueroa, *When is double rounding innocuous?*, SIGNUM Newsletter 30(3), 1995.)
    """
    plain = context.rounding is Direction.RNE and not (context.flush_inputs or context.flush_results)
    return plain and format.signed and 2 <= format.precision <= 25 and format.subnormals and holds(DOUBLE, format)


def add_serially(total: float, terms: list[float], format: Format) -> list[float]:
    """Add terms to `total` one by one; return the sum after each term, but stop before a sum that overflows.

    All numbers belong to the format. Each sum is rounded to the format, to nearest even, with Python's floats.

    >>> from floatlab.formats import parse_format
    >>> add_serially(2046.0, [1.0, 1.0, 1.0, 3.0, 65504.0], parse_format("fp16"))
    [2047.0, 2048.0, 2048.0, 2052.0]
    """
    nearest, normal = nearest_normal(format), 2.0**format.emin
    found = []
    for term in terms:
        near = total + term
        rounded = near if -normal < near < normal else nearest(near)
        if rounded is None:
            break
        total = rounded
        found.append(total)
    return found


def odd_sum(numbers: Sequence[float]) -> float | None:
    """Return the exact sum of numbers, rounded to odd in binary64.

    The result is None if the sum is zero or not finite, or if the sum or an intermediate sum overflows in `fsum`.

    >>> odd_sum([1.0, 2.0**-60]).hex(), odd_sum([1.0, -(2.0**-60)]).hex(), odd_sum([1.5, 2.0**-40]).hex()
    ('0x1.0000000000001p+0', '0x1.fffffffffffffp-1', '0x1.8000000001000p+0')
    """
    try:
        near = fsum(numbers)
        missed = fsum((*numbers, -near)) if isfinite(near) else 0.0
    except (OverflowError, ValueError):
        return None
    if not missed:
        return near if near and isfinite(near) else None
    (word,) = WORD.unpack(FLOAT.pack(near))
    if word & 1:
        return near
    back = (missed > 0) != (near > 0)
    return float(FLOAT.unpack(WORD.pack(word - 1 if back else word + 1))[0])


def exact_adder(format: Format, context: Context) -> Callable[[Sequence[float]], float | None] | None:
    """Return a function that adds binary64 numbers exactly, and rounds the sum once into a format, to nearest even.

    If the format or the context is not supported, return None in place of a function. The returned function gives None
    if an intermediate sum overflows or the result is not finite. It also gives None if the result is zero, because the
    sign of this zero is not determined.

    >>> from floatlab.formats import parse_format
    >>> add = exact_adder(parse_format("fp16"), Context())
    >>> add([2048.0, 1.0]), add([2048.0, 1.0, 2.0**-30]), add([65504.0, 16.0]), add([1.0, -1.0])
    (2048.0, 2050.0, None, None)
    """
    if context.rounding is not Direction.RNE or context.flush_inputs or context.flush_results:
        return None
    if format == DOUBLE:
        return _nearest_sum
    if not (format.signed and format.subnormals and format.precision >= 2 and is_enough(DOUBLE, format)):
        return None
    near, normal, place = nearest_normal(format), 2.0**format.emin, format.qmin

    def add(numbers: Sequence[float]) -> float | None:
        odd = odd_sum(numbers)
        if odd is None:
            return None
        if -normal < odd < normal:
            return ldexp(round(ldexp(odd, -place)), place) or None
        return near(odd)

    return add


def _nearest_sum(numbers: Sequence[float]) -> float | None:
    try:
        near = fsum(numbers)
    except (OverflowError, ValueError):
        return None
    return near if near and isfinite(near) else None
