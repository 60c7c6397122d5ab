"""The searches by which libraries find the scale and the minimum of a block, where no formula gives them.

A search computes in binary32, in the library's order of operations. Each operation is computed in binary64 and then
rounded into binary32. Since 53 ≥ 2·24 + 2, rounding a sum, difference, product, quotient or square root to binary64
first does not change the result (Figueroa, When is double rounding innocuous?, 1995).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from struct import pack, unpack

from floatlab.arith.blocks.formulas import NAN, Value, ratio
from floatlab.arith.blocks.records import ScaleStep
from floatlab.numbers.exact import Infinity, NotANumber
from floatlab.record import Record

_STEPS = 20
_TOP = 15  # the largest element of q4_k


class Found(Record):
    """The result of a search for one block: the variables that the search computes, and each element's integer."""

    values: dict[str, Value] = {}
    elements: tuple[Value, ...] = ()

    def steps(self, search: str) -> tuple[ScaleStep, ...]:
        """Return a step for each variable. The formula of a step, such as `qkx2(x)`, names the search."""
        return tuple(ScaleStep(name, f"{search}(x)", value) for name, value in self.values.items())


def _single(x: float) -> float:
    """Return x rounded to nearest into binary32."""
    try:
        found: float = unpack("<f", pack("<f", x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)
    return found


def _quotient(a: float, b: float) -> float:
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return _single(a / b)


def _nearest(x: float) -> int:
    """Return the nearest integer from 0 to 15, ties to even. For ∞ and NaN, return 0, as the library does."""
    return min(max(round(x), 0), _TOP) if math.isfinite(x) else 0


def _sum(terms: Sequence[float]) -> float:
    total = terms[0]
    for term in terms[1:]:
        total = _single(total + term)
    return total


def qkx2(values: Sequence[Value]) -> Found:
    """Return the scale `step`, the negated minimum `depth` and the elements of a block of q4_k.

    This is make_qkx2_quants of ggml, with the weights of quantize_row_q4_K_ref. The search divides the range of the
    block into 15 steps; then it tries 14.0, 14.1, …, 16.0 steps. Each of these numbers of steps determines the
    elements. A least-squares fit to the elements gives a new scale and minimum. The search keeps the pair with the
    least weighted square error. The minimum is at most 0. The range first begins at the least value, or at 0 if all
    values are positive. After each improvement, the range begins at the new minimum.

    >>> found = qkx2([ratio(n) for n in range(-3, 13)])
    >>> [int(each.as_fraction()) for each in found.values.values()], [int(q.as_fraction()) for q in found.elements][:4]
    ([1, 3], [0, 1, 2, 3])
    """
    x = [_float(value) for value in values]
    spread = _single(math.sqrt(_quotient(_sum([0.0, *(_single(each * each) for each in x)]), float(len(x)))))
    weights = [_single(spread + abs(each)) for each in x]
    low = high = x[0]
    for each in x[1:]:
        low, high = (each if each < low else low), (each if each > high else high)
    low = min(low, 0.0)
    if high == low:
        return _found(0.0, -low, [0] * len(x))
    inverse, best = _elements(x, _TOP, low, high)
    scale = _quotient(1.0, inverse)
    least = _error(x, weights, best, scale, low)
    for step in range(_STEPS + 1):
        tried = _single(_single(_single(_single(0.1) * step) - 1) + _TOP)
        _, q = _elements(x, tried, low, high)
        fit = _fit(x, weights, q)
        if fit is None:
            continue
        error = _error(x, weights, q, *fit)
        if error < least:
            best, least, (scale, low) = q, error, fit
    return _found(scale, -low, best)


def _elements(x: list[float], count: float, low: float, high: float) -> tuple[float, list[int]]:
    """Divide the range from `low` to `high` into `count` steps, and return 1/step and an integer for each value.

    The integer is the value's distance from `low` in steps, rounded to the nearest integer from 0 to 15.
    """
    inverse = _quotient(count, _single(high - low))
    return inverse, [_nearest(_single(inverse * _single(each - low))) for each in x]


def _fit(x: list[float], weights: list[float], q: list[int]) -> tuple[float, float] | None:
    """Return the scale and the minimum with which the integers `q` fit `x` best (weighted least squares).

    The minimum is at most 0. Return None if the fit is not determined, for example if all integers are equal.
    """
    zeros = [0.0]
    w, wx = _sum(weights), _sum([_single(a * b) for a, b in zip(weights, x, strict=True)])
    wq = [_single(a * b) for a, b in zip(weights, q, strict=True)]
    of_q = _sum(zeros + wq)
    of_qq = _sum(zeros + [_single(a * b) for a, b in zip(wq, q, strict=True)])
    of_qx = _sum(zeros + [_single(a * b) for a, b in zip(wq, x, strict=True)])
    divisor = _single(_single(w * of_qq) - _single(of_q * of_q))
    if not divisor > 0:
        return None
    scale = _quotient(_single(_single(w * of_qx) - _single(wx * of_q)), divisor)
    low = _quotient(_single(_single(of_qq * wx) - _single(of_q * of_qx)), divisor)
    return (_quotient(of_qx, of_qq), 0.0) if low > 0 else (scale, low)


def _error(x: list[float], weights: list[float], q: list[int], scale: float, low: float) -> float:
    total = 0.0
    for each, weight, n in zip(x, weights, q, strict=True):
        off = _single(_single(_single(scale * n) + low) - each)
        total = _single(total + _single(weight * _single(off * off)))
    return total


def _float(value: Value) -> float:
    if isinstance(value, NotANumber):
        return math.nan
    if isinstance(value, Infinity):
        return -math.inf if value.negative else math.inf
    return float(value.as_fraction())


def _value(x: float) -> Value:
    if math.isnan(x):
        return NAN
    return Infinity(x < 0) if math.isinf(x) else ratio(Fraction(x))


def _found(scale: float, depth: float, elements: list[int]) -> Found:
    return Found({"step": _value(scale), "depth": _value(depth)}, tuple(ratio(n) for n in elements))


SEARCHES: dict[str, Callable[[Sequence[Value]], Found]] = {"qkx2": qkx2}
