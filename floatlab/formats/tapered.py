"""Posits and takums: the further a number is from 1, the longer is its exponent field, and the shorter is its fraction.

Codes are in two's complement. The fields of a negative number are read from its own code, not from the negated code.
The formula for the value (see `reading`) accounts for this. When rounding to nearest, the boundary between two
neighbours is a number of the format that is one bit wider. The boundary's code is the code of the lower neighbour with
a 1 appended.
"""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats.exponential import root_of_e
from floatlab.formats.table_format import GUARD, Field, Place, Real, TwosComplementFormat, compare, fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import ClassVar

_EXPONENT = 2  # es of the Posit Standard 2022, for every width
_LEAST_WIDTH = 12  # takums with fewer bits are read as if zeros followed
# The most digits in which a number may agree with an irrational boundary; beyond, rounding raises UnsupportedError.
_DIGITS = 1 << 12


class Posit(TwosComplementFormat):
    """A posit of the Posit Standard (2022), with two exponent bits (es = 2) at every width.

    >>> posit8 = Posit("posit8", 8)
    >>> posit8.largest, posit8.number(0b01001100, 8)
    (Fraction(16777216, 1), (12, -2))
    """

    _fields: ClassVar[tuple[str, ...]] = ("name", "width")

    def __init__(self, name: str, width: int) -> None:
        super().__init__(name, width)

    def _split(self, code: int, width: int) -> tuple[int, int, int, int, int]:
        """Return five numbers: the regime r, the regime's length, the exponent e, the fraction, the fraction's length.

        Lengths are in bits. The fraction is an integer: its bits without the binary point.
        """
        bits = code & ((1 << (width - 1)) - 1)
        first = bits >> (width - 2)
        flipped = bits ^ ((1 << (width - 1)) - 1) if first else bits
        run = width - 1 - flipped.bit_length()
        length = min(run + 1, width - 1)
        left = width - 1 - length
        rest = bits & ((1 << left) - 1)
        fraction_bits = max(left - _EXPONENT, 0)
        # Exponent bits that are cut off are zeros.
        e = rest >> fraction_bits << max(_EXPONENT - left, 0)
        return run - 1 if first else -run, length, e, rest & ((1 << fraction_bits) - 1), fraction_bits

    def number(self, code: int, width: int) -> Real:
        """Return (1 + f)·2^(4r + e) for a positive code with the regime r, the exponent e and the fraction f."""
        r, _, e, f, f_bits = self._split(code, width)
        return (1 << f_bits) + f, (r << _EXPONENT) + e - f_bits

    def fields(self, code: int) -> tuple[Field, ...]:
        """Return the fields sign, regime, exponent and fraction. A field for which no bits are left is omitted."""
        _, length, _, _, fraction = self._split(code, self.width)
        lengths = 1, length, self.width - 1 - length - fraction, fraction
        return fields(code, self.width, ("S", "regime", "exponent", "fraction"), lengths)

    def reading(self, code: int) -> str:
        """Return in words how the fields determine the number."""
        s, (r, _, e, f, f_bits) = self.sign(code), self._split(code, self.width)
        power = (1 - 2 * s) * ((r << _EXPONENT) + e + s)
        return f"({1 - 3 * s} + {f}/{1 << f_bits}) × 2^{power}: regime {r}, exponent {e}"


class Takum(TwosComplementFormat):
    """A linear takum (Hunhold, arXiv:2404.18603 and 2408.10594): ±(1 + m)·2^e with e from −255 to 254.

    >>> takum = Takum("takum_linear8", 8)
    >>> [each.bits for each in takum.fields(0b01001100)], takum.reading(0b01001100)
    (['0', '1', '001', '1', '00'], '(1 + 0/64) × 2^2: characteristic 2')
    """

    _fields: ClassVar[tuple[str, ...]] = ("name", "width")

    def __init__(self, name: str, width: int) -> None:
        super().__init__(name, width)

    def _split(self, code: int, width: int) -> tuple[int, int, int, int]:
        """Return four numbers: the characteristic's length r, the characteristic c, the mantissa and its length.

        Lengths are in bits. The mantissa is an integer: its bits without the binary point. A code of fewer than 12 bits
        is read as if zeros followed.
        """
        missing = max(_LEAST_WIDTH - width, 0)
        code, width = code << missing, width + missing
        up, regime = code >> (width - 2) & 1, code >> (width - 5) & 7
        r = regime if up else 7 - regime
        p = width - 5 - r
        c = code >> p & ((1 << r) - 1)
        return r, (1 << r) - 1 + c if up else 1 - (2 << r) + c, code & ((1 << p) - 1), p

    def number(self, code: int, width: int) -> Real:
        """Return (1 + m)·2^c for a positive code with the characteristic c and the mantissa m."""
        _, c, m, p = self._split(code, width)
        return (1 << p) + m, c - p

    def fields(self, code: int) -> tuple[Field, ...]:
        """Return sign, direction, regime, characteristic and mantissa."""
        r, _, _, _ = self._split(code, self.width)
        left = self.width - 5
        lengths = 1, 1, 3, min(r, left), max(left - r, 0)
        return fields(code, self.width, ("S", "D", "regime", "characteristic", "mantissa"), lengths)

    def reading(self, code: int) -> str:
        """Return in words how the fields determine the number."""
        s, (_, c, m, p) = self.sign(code), self._split(code, self.width)
        return f"({1 - 3 * s} + {m}/{1 << p}) × 2^{(1 - 2 * s) * (c + s)}: characteristic {c}"


class LogarithmicTakum(Takum):
    """A logarithmic takum (arXiv:2404.18603): ±(√e)^ℓ; `power` computes ℓ from the characteristic and the mantissa."""

    _fields: ClassVar[tuple[str, ...]] = ("name", "width")

    is_irrational = True

    def __init__(self, name: str, width: int) -> None:
        super().__init__(name, width)

    def power(self, code: int, width: int | None = None) -> Fraction:
        """Return ℓ, the exponent of √e in the value of a code.

        With the characteristic c and the mantissa m, ℓ is c + m for a positive code, and −(c + m) for a negative code.
        The fields of a negative code are read from the code itself, not from the negated code.

        >>> LogarithmicTakum("takum_log8", 8).power(0x04)
        Fraction(-191, 1)
        """
        from fractions import Fraction

        width = width or self.width
        _, c, m, p = self._split(code, width)
        power = Fraction((c << p) + m, 1 << p)
        return -power if code >> (width - 1) else power

    def number(self, code: int, width: int) -> Real:
        """Return √e^ℓ, truncated to at least width + GUARD digits."""
        return root_of_e(self.power(code, width), width + GUARD)

    def bounds(self, rank: int, digits: int) -> tuple[Real, Real]:
        """Return a lower and an upper bound of the positive number with this rank.

        For the number 1, both bounds are 1. For other numbers, the bounds are one unit of the last digit apart, and the
        lower bound has at least `digits` digits.
        """
        power = self.power(rank)
        c, q = root_of_e(power, digits)
        return (c, q), (c + bool(power), q)

    def _against(self, x: Real, power: Fraction) -> int:
        """Return −1, 0 or 1 if the magnitude `x` is below, equal to or above √e^power.

        Raises UnsupportedError if the first `_DIGITS` digits do not decide the comparison.
        """
        digits = self.width + GUARD
        while digits < _DIGITS:
            c, q = root_of_e(power, digits)
            low = compare(x, (c, q))
            if not power or low < 0:
                return low
            if compare(x, (c + 1, q)) >= 0:
                return 1
            digits *= 2
        raise UnsupportedError(f"{self.name}: a number within 2^-{_DIGITS} of a boundary √e^({power}) is not decided")

    def compare(self, x: Real, rank: int, negative: bool) -> int:
        """Return −1, 0 or 1 if the magnitude `x` is below, equal to or above the number with this rank."""
        return self._against(x, self.power(rank))

    def reaches(self, x: Real, rank: int, negative: bool) -> int:
        """Return −1, 0 or 1 if `x` is below, on or above the boundary between the numbers of `rank` and `rank` + 1."""
        return self._against(x, self.power(2 * rank + 1, self.width + 1)) if rank else 1

    def _between(self, x: Real, rank: int, negative: bool, linear: bool) -> Place:
        if linear:  # truncation does not matter: the neighbours have far more digits than the 32 bits of the draw
            return super()._between(x, rank, negative, linear)
        return Place(rank, 2 + self.reaches(x, rank, negative), 2, None)

    def reading(self, code: int) -> str:
        """Return in words how the fields determine the number."""
        _, c, m, p = self._split(code, self.width)
        return f"{'−' * self.sign(code)}√e^({self.power(code)}): characteristic {c}, mantissa {m}/{1 << p}"
