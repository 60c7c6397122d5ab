"""Integers to and from decimal digits at any length.

Python's own int(str) and str(int) are quadratic, and refuse more than 4,300 digits so that no
stranger's text can stall a program. Halving the digits instead is fast, and leaves that limit on.
"""

from __future__ import annotations

_CHUNK = 2000


def integer_from_digits(digits: str) -> int:
    """Return the integer that a string of ASCII digits spells.

    >>> integer_from_digits("9" * 5000) == 10**5000 - 1
    True
    """
    powers: dict[int, int] = {}

    def read(low: int, high: int) -> int:
        length = high - low
        if length <= _CHUNK:
            return int(digits[low:high])
        right = length // 2
        if right not in powers:
            powers[right] = 10**right
        return read(low, high - right) * powers[right] + read(high - right, high)

    return read(0, len(digits)) if digits else 0


def digits_of(n: int) -> str:
    """Return the decimal digits of n ≥ 0, without leading zeros.

    >>> len(digits_of(2**100_000))
    30103
    """
    if n.bit_length() <= 3 * _CHUNK:  # fewer than _CHUNK digits, without raising 10 to a power
        return str(n)
    powers = [10**_CHUNK]
    while powers[-1] <= n:
        powers.append(powers[-1] * powers[-1])

    def write(value: int, level: int) -> str:
        if level < 0:
            return str(value).rjust(_CHUNK, "0")
        high, low = divmod(value, powers[level])
        return write(high, level - 1) + write(low, level - 1)

    return write(n, len(powers) - 1).lstrip("0")
