"""Exact rational numbers with powers of two and ten kept apart, so that 1e-999999999 stays small."""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.exact import MAX_EXPANDED_BITS, Exact
from floatlab.numbers.projection import GUARD_DIGITS
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

# Digits beyond a format's precision that are kept exactly; of longer numbers the rest becomes a sticky bit.
LONG = 8192
# How far outside a format's range (in binades) a number may lie before a stand-in takes its place.
FAR = 1 << 17


class Ratio(Record):
    """The number (−1)^negative · numerator/denominator · 2^twos · 10^tens.

    `truncated` says that the true numerator is larger, by less than one: a decimal with more digits
    than any format can tell apart was cut, and the rest was not zero.
    """

    negative: bool
    numerator: int
    denominator: int = 1
    twos: int = 0
    tens: int = 0
    truncated: bool = False

    @property
    def is_dyadic(self) -> bool:
        """Whether the parts say without a division that it is an integer times a power of two."""
        return self.denominator == 1 and self.tens >= 0 and not self.truncated

    def _binade(self) -> tuple[int, int]:
        """Return bounds on the exponent of the leading binary digit, without forming 10^tens."""
        near = self.numerator.bit_length() - self.denominator.bit_length() + self.twos
        near += self.tens * 3321928094887362347870319429489390 // 10**33
        slack = 2 + (abs(self.tens) >> 90)
        return near - slack, near + slack

    def enclose(self, format: Format) -> tuple[Exact, bool]:
        """Return (x, sticky) that rounds into the format as this number does, in every direction.

        x is exact, with sticky false, where that is cheap; else it is cut GUARD_DIGITS below the
        format's precision. A number far outside the range is replaced by another one there.

        >>> from floatlab import parse_format
        >>> Ratio(False, 3, 4).enclose(parse_format("e4m3"))
        (Exact(negative=False, c=3, q=-2), False)
        """
        if not self.numerator:
            return Exact(self.negative, 0, 0), False
        low, high = self._binade()
        if low > format.emax + FAR or high < format.qmin - FAR:
            return Exact(self.negative, 1, low if low > 0 else high), False
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
        scale = max(format.precision + GUARD_DIGITS + 2 - n.bit_length() + d.bit_length(), 0)
        c, rest = divmod(n << scale, d)
        if not rest and not self.truncated:  # the fives of the denominator were in the numerator too
            return Exact(self.negative, c, twos - scale).normalized(), False
        return Exact(self.negative, c, twos - scale), True

    @property
    def expandable(self) -> bool:
        """Whether as_fraction can write it out."""
        return not self.truncated and max(abs(self.twos), 4 * abs(self.tens)) <= MAX_EXPANDED_BITS

    def is_short(self, bits: int) -> bool:
        """Say whether it can be written out in about so many bits: whether exact work with it is quick."""
        parts = self.numerator.bit_length() + self.denominator.bit_length() + abs(self.twos) + 4 * abs(self.tens)
        return self.expandable and parts <= bits

    def as_fraction(self) -> Fraction:
        """Return the number as a Fraction; raises UnsupportedError where it is too large or was cut.

        >>> Ratio(True, 1, 3, tens=1).as_fraction()
        Fraction(-10, 3)
        """
        from fractions import Fraction

        if not self.expandable:
            raise UnsupportedError("the exact value is too long to write out")
        value = Fraction(self.numerator, self.denominator)
        value *= Fraction(2) ** self.twos * Fraction(10) ** self.tens
        return -value if self.negative else value
