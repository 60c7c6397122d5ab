"""Exact numbers, from unbounded integers: (−1)^s · c · 2^q, ratios, roots, and the values of literals.

This module has no flags, contexts or rounding directions; numbers are exact, or truncated with a sticky bit.
"""

from __future__ import annotations

import re

from floatlab.errors import LiteralError, UnsupportedError
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Self

    from floatlab.formats import Format

# The number of digits kept below the last place; further digits become a sticky bit. Stochastic rounding needs 32.
GUARD_DIGITS = 64
MAX_EXPANDED_BITS = 1 << 24  # larger integers are not expanded: an exponent is easier to read
_HASH_MODULUS_BITS = 61  # sys.hash_info: Python hashes numbers modulo 2^61 − 1


class Exact(Record):
    """The number (−1)^negative · c · 2^q, with c ≥ 0 and any integer q; not normalised, and zero has a sign.

    Sums, differences and products are Exact, too. Comparison is by value: −0 == +0, and an Exact equals an int or a
    Fraction of the same value.

    >>> Exact(False, 3, -1) + Exact(True, 1, 0)
    Exact(negative=False, c=1, q=-1)
    >>> Exact(False, 4, -2) == 1
    True
    """

    negative: bool
    c: int
    q: int

    @classmethod
    def from_integer(cls, n: int) -> Self:
        """Return an integer as an Exact."""
        return cls(n < 0, abs(n), 0)

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a negative c: the sign has its own field."""
        if self.c < 0:
            raise UnsupportedError("Exact takes its sign in `negative`; c must be at least 0")

    @property
    def exponent(self) -> int:
        """Exponent of the leading digit; meaningless for zero."""
        return self.c.bit_length() + self.q - 1

    def normalized(self) -> Exact:
        """Return this number with an odd c. For zero, both c and q become 0.

        >>> Exact(True, 12, 0).normalized()
        Exact(negative=True, c=3, q=2)
        """
        if not self.c:
            return Exact(self.negative, 0, 0)
        zeros = (self.c & -self.c).bit_length() - 1
        return Exact(self.negative, self.c >> zeros, self.q + zeros)

    def scaled(self, q: int) -> int:
        """Return the signed integer n with n·2^q equal to this number; the argument q must not exceed `self.q`."""
        n = self.c << (self.q - q)
        return -n if self.negative else n

    def __add__(self, other: Exact) -> Exact:
        """Add exactly. x + (−x) is +0 here (IEEE 754, 6.3); for the direction RTN, callers change this zero to −0."""
        if not isinstance(other, Exact):
            return NotImplemented
        q, a, b = self.q, self.c, other.c
        if q > other.q:
            a <<= q - other.q
            q = other.q
        else:
            b <<= other.q - q
        total = (-a if self.negative else a) + (-b if other.negative else b)
        negative = total < 0 if total else self.negative and other.negative
        return Exact(negative, abs(total), q)

    def __sub__(self, other: Exact) -> Exact:
        """Subtract exactly."""
        return self + -other if isinstance(other, Exact) else NotImplemented

    def __mul__(self, other: Exact) -> Exact:
        """Multiply exactly."""
        if not isinstance(other, Exact):
            return NotImplemented
        return Exact(self.negative != other.negative, self.c * other.c, self.q + other.q)

    def __neg__(self) -> Exact:
        """Return the negated number; the sign of zero changes, too."""
        return Exact(not self.negative, self.c, self.q)

    def __abs__(self) -> Exact:
        """Return the magnitude."""
        return Exact(False, self.c, self.q)

    def __bool__(self) -> bool:
        """Return whether the number is nonzero."""
        return self.c != 0

    def _compare(self, other: Exact) -> int:
        sides = [0 if not x.c else -1 if x.negative else 1 for x in (self, other)]
        if sides[0] != sides[1] or not sides[0]:
            return sides[0] - sides[1]
        if self.exponent != other.exponent:
            return sides[0] if self.exponent > other.exponent else -sides[0]
        q = min(self.q, other.q)
        a, b = self.scaled(q), other.scaled(q)
        return (a > b) - (a < b)

    def __eq__(self, other: object) -> bool:
        """Compare values with an Exact, an int, or a number with `as_integer_ratio`, such as a Fraction."""
        if isinstance(other, Exact):
            return self._compare(other) == 0
        if isinstance(other, int):
            return self == Exact.from_integer(other)
        ratio = getattr(other, "as_integer_ratio", None)
        if ratio is None:
            return NotImplemented
        try:
            numerator, denominator = ratio()
        except (OverflowError, ValueError):  # float infinity or NaN
            return False
        return self * Exact.from_integer(denominator) == Exact.from_integer(numerator)

    def __lt__(self, other: Exact) -> bool:
        """Compare values."""
        return self._compare(other) < 0 if isinstance(other, Exact) else NotImplemented

    def __le__(self, other: Exact) -> bool:
        """Compare values."""
        return self._compare(other) <= 0 if isinstance(other, Exact) else NotImplemented

    def __hash__(self) -> int:
        """Hash like Python's numbers, modulo 2^61 − 1. Since 2^61 ≡ 1, a huge q needs no huge integer."""
        p = (1 << _HASH_MODULUS_BITS) - 1
        h = (self.c % p << self.q % _HASH_MODULUS_BITS) % p
        return -2 if h == 1 and self.negative else -h if self.negative else h

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return the numerator and denominator in lowest terms.

        Raises UnsupportedError if the exponent of the reduced form (`normalized`) is beyond ±2^24.

        >>> Exact(True, 6, -2).as_integer_ratio()
        (-3, 2)
        """
        n = self.normalized()
        if abs(n.q) > MAX_EXPANDED_BITS:
            raise UnsupportedError(f"a ratio with 2^{abs(n.q)} in it is too large to write out")
        c = -n.c if n.negative else n.c
        return (c << n.q, 1) if n.q >= 0 else (c, 1 << -n.q)

    def as_fraction(self) -> Fraction:
        """Return the number as a Fraction; raises UnsupportedError as `as_integer_ratio` does."""
        from fractions import Fraction

        return Fraction(*self.as_integer_ratio())


def square_root(x: Exact, digits: int) -> tuple[Exact, bool]:
    """Return the square root of x ≥ 0 to at least `digits` binary digits, and whether anything was truncated.

    >>> square_root(Exact(False, 9, 0), 4), square_root(Exact(False, 2, 0), 4)
    ((Exact(negative=False, c=3, q=0), False), (Exact(negative=False, c=11, q=-3), True))
    """
    from math import isqrt

    if x.negative and x.c:
        raise UnsupportedError("a negative number has no square root")
    scale = max(2 * digits - x.c.bit_length(), 0)
    scale += (x.q - scale) & 1
    c = x.c << scale
    root = isqrt(c)
    found = Exact(False, root, (x.q - scale) // 2)
    return (found.normalized(), False) if root * root == c else (found, True)


class SquareRoot(Record):
    """The exact square root of a number; the root may be irrational."""

    radicand: Exact

    def bounds(self, digits: int) -> tuple[Exact, Exact]:
        """Return bounds on an irrational root: they have at least `digits` bits, and differ by 1 in the last bit."""
        root, _ = square_root(self.radicand, digits)
        return root, root + Exact(False, 1, root.q)


# Digits kept exactly beyond a format's precision; the remaining digits of longer numbers become a sticky bit.
LONG = 8192
# A number more than this many binades outside a format's range is replaced by a power of two that is also far outside
# and rounds the same way.
FAR = 1 << 17
# If −_DECIDED_BELOW < q < _DECIDED_ABOVE, numbers c·2^q such as midpoints have fewer significant decimal digits than
# the 200,000 that are read.
_DECIDED_BELOW, _DECIDED_ABOVE = 285_000, 660_000


def _is_decided(format: Format, negative: bool, c: int, q: int) -> bool:
    """Return whether no boundary of rounding lies between c·2^q and (c + 1)·2^q."""
    from floatlab.formats.table_format import TableFormat

    assert isinstance(format, TableFormat)
    below, above = (format.place((each, q), negative) for each in (c, c + 1))
    return (below.rank, below.rest2) == (above.rank, above.rest2)


class Ratio(Record):
    """The number (−1)^negative · numerator/denominator · 2^twos · 10^tens.

    If `truncated` is true, the true numerator is larger, by less than one: the decimal that was read had more digits
    than any format can distinguish, and some of the discarded digits were not zero.
    """

    negative: bool
    numerator: int
    denominator: int = 1
    twos: int = 0
    tens: int = 0
    truncated: bool = False

    @property
    def is_dyadic(self) -> bool:
        """Whether the fields state an integer times a power of two, and nothing was truncated.

        The denominator is then 1, and `tens` is at least 0.
        """
        return self.denominator == 1 and self.tens >= 0 and not self.truncated

    def _binade(self) -> tuple[int, int]:
        """Return bounds on the exponent of the leading binary digit, without computing 10^`tens`."""
        near = self.numerator.bit_length() - self.denominator.bit_length() + self.twos
        near += self.tens * 3321928094887362347870319429489390 // 10**33
        slack = 2 + (abs(self.tens) >> 90)
        return near - slack, near + slack

    def enclose(self, format: Format) -> tuple[Exact, bool]:
        """Return a binary number x and a sticky bit that can be rounded instead of this number.

        In every direction, the rounded result in the format is the same. If the number is short enough, x is exact.
        Otherwise x is truncated at least GUARD_DIGITS digits below the format's precision, and the sticky bit tells
        whether nonzero digits were cut off. For a number far outside the format's range (`FAR`), x is a power of two
        that is far outside, too. Raises LiteralError for a decimal of over 200,000 digits (the rest is not read) if the
        first digits do not decide the rounding.

        >>> from floatlab import parse_format
        >>> Ratio(False, 3, 4).enclose(parse_format("e4m3"))
        (Exact(negative=False, c=3, q=-2), False)
        """
        if not self.numerator:
            return Exact(self.negative, 0, 0), False
        low, high = self._binade()
        if low > format.emax + FAR or high < format.qmin - FAR:
            return Exact(self.negative, 1, low if low > 0 else high), False
        if self.truncated and not -_DECIDED_BELOW < max(low - format.precision, format.qmin) < _DECIDED_ABOVE:
            raise LiteralError(f"{format.name} has too many digits near this number to round it from its first digits")
        n, d, twos = self.numerator, self.denominator, self.twos + self.tens
        if self.tens >= 0:
            n *= 5**self.tens
        else:
            d *= 5**-self.tens
        if d & (d - 1) == 0:
            twos -= d.bit_length() - 1
            excess = n.bit_length() - format.precision - LONG
            if excess <= 0:
                return Exact(self.negative, n, twos), self.truncated
            c = n >> excess
            return Exact(self.negative, c, twos + excess), self.truncated or c << excess != n
        for guard in (GUARD_DIGITS, LONG):
            scale = max(format.precision + guard + 2 - n.bit_length() + d.bit_length(), 0)
            c, rest = divmod(n << scale, d)
            if not rest and not self.truncated:  # the division is exact
                return Exact(self.negative, c, twos - scale).normalized(), False
            if not format.is_irrational or _is_decided(format, self.negative, c, twos - scale):
                break
        return Exact(self.negative, c, twos - scale), True

    @property
    def expandable(self) -> bool:
        """Whether `as_fraction` can return the number.

        This requires that the number is not truncated, and that its powers of two and ten are not too large to write
        out.
        """
        return not self.truncated and max(abs(self.twos), 4 * abs(self.tens)) <= MAX_EXPANDED_BITS

    def is_short(self, bits: int) -> bool:
        """Return whether the number can be expanded to at most about `bits` bits, so that exact arithmetic is fast."""
        parts = self.numerator.bit_length() + self.denominator.bit_length() + abs(self.twos) + 4 * abs(self.tens)
        return self.expandable and parts <= bits

    def as_fraction(self) -> Fraction:
        """Return the number as a Fraction; raises UnsupportedError if the number is too large or was truncated.

        >>> Ratio(True, 1, 3, tens=1).as_fraction()
        Fraction(-10, 3)
        """
        from fractions import Fraction

        if not self.expandable:
            raise UnsupportedError("the exact value is too long to write out")
        value = Fraction(self.numerator, self.denominator)
        value *= Fraction(2) ** self.twos * Fraction(10) ** self.tens
        return -value if self.negative else value


class Infinity(Record):
    """±∞."""

    negative: bool


class NotANumber(Record):
    """A NaN with the sign, payload and kind (quiet or signaling) that were typed."""

    negative: bool
    signaling: bool = False
    payload: int = 0


class Code(Record):
    """A code that was typed instead of a value.

    `width` is the number of bits of the digits typed, including leading zeros; `binary` is false for hexadecimal
    digits.
    """

    code: int
    width: int
    binary: bool


class Literal(Record):
    """A value as it was typed, and its meaning."""

    text: str
    value: Ratio | Infinity | NotANumber | Code

    @property
    def is_bare_hexadecimal(self) -> bool:
        """Whether the text is a hexadecimal integer, which the user may have meant as a code."""
        return re.fullmatch("0x[0-9a-f_]+", self.text.lower()) is not None
