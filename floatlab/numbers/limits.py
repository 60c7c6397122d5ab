"""The limits of a format under the names of `numpy.finfo`, exact and for every format."""

from __future__ import annotations

from fractions import Fraction

from floatlab.errors import FormatError, UnsupportedError, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import format_called
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import round_exact
from floatlab.record import Record


class FloatInfo(Record):
    """The result of `finfo`: the limits of a format, under the names of `numpy.finfo`.

    Numbers of the format are `Datum` objects: `max`, `min`, `tiny`, `smallest_normal`, `smallest_subnormal`. `eps`,
    `epsneg` and `resolution` are Fractions, since some formats cannot represent them.
    """

    format: Format

    def __repr__(self) -> str:
        """Show the widths of the fields and the range."""
        counts = ", ".join(f"{name}={getattr(self, name)}" for name in ("bits", "nmant", "nexp", "minexp", "maxexp"))
        return f"FloatInfo({self.format.name}, {counts})"

    def _datum(self, negative: bool, magnitude: int) -> Datum:
        return Datum(self.format, self.format.compose(negative, magnitude))

    @property
    def bits(self) -> int:
        """Width of the codes in bits."""
        return self.format.width

    @property
    def nmant(self) -> int:
        """Trailing significand bits: precision − 1."""
        return self.format.precision - 1

    @property
    def nexp(self) -> int:
        """Exponent field width in bits."""
        return self.format.exponent_bits

    iexp = nexp

    @property
    def minexp(self) -> int:
        """Exponent of the smallest normal number: emin."""
        return self.format.emin

    @property
    def maxexp(self) -> int:
        """Exponent of the smallest power of two that overflows: emax + 1."""
        return self.format.emax + 1

    @property
    def machep(self) -> int:
        """−`nmant`: the exponent of `eps`, except in some formats given by a table."""
        return -self.nmant

    @property
    def negep(self) -> int:
        """Exponent of `epsneg`, except in some formats given by a table."""
        return max(self.machep - 1, self.format.least_exponent)

    @property
    def eps(self) -> Fraction:
        """2^`machep`: if 1 is a normal number, this is the distance from 1 to the next larger number.

        In a format given by a table, `eps` is always this distance. Raises UnsupportedError if the next larger number
        does not exist or is irrational.
        """
        if self.format.is_table:
            return self._step_from_one(up=True)
        return Fraction(2) ** self.machep

    @property
    def epsneg(self) -> Fraction:
        """Distance from 1 to the next smaller number; raises UnsupportedError as `eps` does."""
        if self.format.is_table:
            return self._step_from_one(up=False)
        return Fraction(2) ** self.negep

    def _step_from_one(self, up: bool) -> Fraction:
        one = Datum(self.format, round_exact(Exact(False, 1, 0), self.format).code)
        other = one.next_up if up else one.next_down
        if other == one:
            raise UnsupportedError(f"{self.format.name} has no number {'above' if up else 'below'} 1")
        return abs(other.exact.as_fraction() - 1)

    @property
    def precision(self) -> int:
        """Decimal digits of precision: the largest n with 10^−n ≥ 2^`machep`."""
        return len(str(1 << self.nmant)) - 1

    @property
    def resolution(self) -> Fraction:
        """10^−precision."""
        return Fraction(1, 10**self.precision)

    @property
    def max(self) -> Datum:
        """The largest finite number."""
        return self._datum(False, self.format.largest_magnitude)

    @property
    def min(self) -> Datum:
        """The most negative finite number; in an unsigned format, the smallest positive number."""
        signed = self.format.signed
        return self._datum(True, self.format.largest_magnitude) if signed else self.smallest_subnormal

    @property
    def smallest_normal(self) -> Datum:
        """The smallest positive normal number."""
        return self._datum(False, self.format.smallest_normal_magnitude)

    tiny = smallest_normal

    @property
    def smallest_subnormal(self) -> Datum:
        """The smallest positive number; it is normal in a format without subnormal numbers."""
        return self._datum(False, self.format.smallest_magnitude)


def finfo(format: object) -> FloatInfo:
    """Return the limits of a format, like `numpy.finfo` for dtypes.

    Parameters
    ----------
    format
        A format, its name, a floating-point dtype or scalar type, or an object with a `.format`, such as a Datum.

    Returns
    -------
    FloatInfo
        `bits`, `eps`, `epsneg`, `max`, `min`, `tiny`, `smallest_normal`, `smallest_subnormal`, `precision`,
        `resolution`, `nmant`, `nexp`, `iexp`, `minexp`, `maxexp`, `machep`, `negep`. All are exact.

    Raises
    ------
    FormatError
        The format is unknown, or the argument is neither a format nor a dtype of floats.

    Examples
    --------
    >>> limits = finfo("e4m3")
    >>> float(limits.max), limits.smallest_subnormal
    (448.0, Datum(e4m3fn 0x01 = 0.002))
    >>> limits.eps, limits.maxexp, limits.nmant
    (Fraction(1, 8), 9, 3)
    """
    if isinstance(format, str | Format):
        return FloatInfo(parse_format(format))
    named = getattr(format, "format", None)
    if not isinstance(named, Format):
        if isinstance(format, type):  # float, or a scalar type of NumPy or ml_dtypes
            name = "float64" if format is float else format.__name__
        else:
            name = str(getattr(getattr(format, "dtype", format), "name", ""))
        named = format_called(name)
    if named is None:
        raise FormatError(f"{quoted(str(format))} is neither a format nor a dtype of floats")
    return FloatInfo(named)
