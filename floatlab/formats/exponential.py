"""Computes bounds on powers of √e (the values of logarithmic takums) to any number of digits, in integer arithmetic."""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

_GUARD = 32  # binary digits beyond the requested ones; rounding errors in the sums below affect fewer than ten of them


def _inverse_tanh(n: int, bits: int) -> int:
    """Return artanh(1/n)·2^bits as an integer. Each term of the series adds an error of less than one unit."""
    power, total, k = (1 << bits) // n, 0, 1
    while power:
        total += power // k
        power //= n * n
        k += 2
    return total


@lru_cache(maxsize=16)
def _ln_2(bits: int) -> int:
    """Return ln 2 · 2^bits as an integer, computed as a sum of three inverse hyperbolic tangents."""
    return 18 * _inverse_tanh(26, bits) - 2 * _inverse_tanh(4801, bits) + 8 * _inverse_tanh(8749, bits)


@lru_cache(maxsize=1 << 12)
def root_of_e(power: Fraction, digits: int) -> tuple[int, int]:
    """Return (c, q) with c·2^q ≤ (√e)^power < (c + 1)·2^q, where c has at least `digits` binary digits.

    For power 0, return (1, 0), since the value is exactly 1; no other rational power of e is rational (Lindemann).

    >>> from fractions import Fraction
    >>> c, q = root_of_e(Fraction(2), 50)
    >>> round(c * 2.0**q, 12)
    2.718281828459
    """
    if not power:
        return 1, 0
    bits = digits + _GUARD + power.numerator.bit_length()
    y = (power.numerator << bits) // (2 * power.denominator)
    twos, rest = divmod(y, _ln_2(bits))
    term = total = 1 << bits
    k = 1
    while term:
        term = (term * rest >> bits) // k
        total += term
        k += 1
    # The true value is within `slack` units of the computed one. If truncation gives different results at both ends of
    # this interval, compute more digits.
    slack, cut = 1 << _GUARD // 2 + power.numerator.bit_length(), bits - digits
    low, high = (total - slack) >> cut, (total + slack) >> cut
    return (low, twos - digits) if low == high else root_of_e(power, digits + _GUARD)
