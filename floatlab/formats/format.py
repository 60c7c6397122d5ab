"""A floating-point format: its set of values and their codes.

A code without its sign (and, in x87 extended, without its integer bit) is called its *magnitude*. In the order of
their magnitudes, the codes of each sign form a strip

    finite ... | infinity, if there is one | NaNs, if there are any

In a signed format, the code whose only set bit is the sign is −0, or a NaN. Finite magnitudes increase with the
absolute values. Neighbouring values have neighbouring magnitudes, except that codes are unused between zero and its
neighbours in a format without subnormals. No value in this module is a float.
"""

from __future__ import annotations

from floatlab.errors import FormatError
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import ClassVar

MAX_EXPONENT_BITS = 19
MAX_BIAS = 1 << 20
MAX_TRAILING_BITS = 236  # as in binary256 (IEEE 754-2019 table 3.5, column binary{k})


class Format(Record):
    """A format of floating-point numbers (IEEE 754-2019 clause 3, generalised to machine-learning formats).

    Lengths are in bits. The defaults are those of IEEE 754, with w = `exponent_bits` and t = `precision` − 1:
    `bias=None` is 2^(w−1) − 1, and `nans=None` is 2^t − 1 NaNs per sign, all codes above infinity.

    >>> half = Format("half", precision=11, exponent_bits=5)
    >>> half.emin, half.emax, half.width, half.largest
    (-14, 15, 16, Fraction(65504, 1))
    """

    name: str
    precision: int  # p, the digits of the significand, including the hidden one
    exponent_bits: int  # w
    bias: int
    infinities: bool
    nans: int  # NaNs per sign at the end of the strip
    zero: bool  # False for e8m0
    negative_zero: bool  # False: the code of −0 is a NaN (fnuz, signed P3109), or there is no sign
    signed: bool
    subnormals: bool  # False: the only number with exponent field 0 is zero (in e8m0: 2^−127)
    explicit_integer_bit: bool  # x87 extended
    ties_to_even_code: bool  # P3109: at p = 1, ties go to the even code; also selects P3109's overflow
    trailing_bits: int  # t = p − 1
    width: int  # k
    emin: int
    qmin: int  # emin − t, the exponent of the last place of subnormals
    magnitude_bits: int
    largest_magnitude: int
    infinity_magnitude: int  # −1 if there is none
    smallest_normal_magnitude: int
    nan_in_place_of_negative_zero: bool  # a NaN has the code of −0 (fnuz and signed P3109)

    _fields: ClassVar[tuple[str, ...]] = (
        "name", "precision", "exponent_bits", "bias", "infinities", "nans", "zero", "negative_zero",
        "signed", "subnormals", "explicit_integer_bit", "ties_to_even_code",
    )  # fmt: skip

    is_table: ClassVar[bool] = False  # whether it is a TableFormat, whose magnitudes are ranks in a table
    is_irrational: ClassVar[bool] = False  # whether the numbers are powers of √e, so that only 0 and ±1 are rational

    def __init__(
        self,
        name: str,
        precision: int,
        exponent_bits: int,
        bias: int | None = None,
        infinities: bool = True,
        nans: int | None = None,
        zero: bool = True,
        negative_zero: bool = True,
        signed: bool = True,
        subnormals: bool = True,
        explicit_integer_bit: bool = False,
        ties_to_even_code: bool = False,
    ) -> None:
        """Check the parameters, and derive the other fields."""
        p, w = precision, exponent_bits
        for what, value, least, most in (
            ("precision", p, 1, MAX_TRAILING_BITS + 1),
            ("exponent bits", w, 1, MAX_EXPONENT_BITS),
            ("bias", 0 if bias is None else bias, -MAX_BIAS, MAX_BIAS),
            ("NaN codes per sign", 0 if nans is None else nans, 0, 1 << MAX_TRAILING_BITS),
        ):
            if not isinstance(value, int) or not least <= value <= most:
                raise FormatError(f"{name}: {what} must be an integer from {least} to {most}, not {value!r}")
        t = p - 1
        magnitudes = 1 << (w + t)
        if nans is None:
            nans = (1 << t) - 1
        bias = (1 << (w - 1)) - 1 if bias is None else bias
        # In a format without zero, exponent field 0 is a normal binade, not zero and the subnormals.
        emin = zero - bias
        settled: dict[str, str | int] = {
            "name": name,
            "precision": p,
            "exponent_bits": w,
            "bias": bias,
            "infinities": infinities,
            "nans": nans,
            "zero": zero,
            "negative_zero": negative_zero and signed and zero,
            "signed": signed,
            "subnormals": subnormals and t > 0,
            "explicit_integer_bit": explicit_integer_bit,
            "ties_to_even_code": ties_to_even_code,
            "trailing_bits": t,
            "width": signed + w + t + explicit_integer_bit,
            "emin": emin,
            "qmin": emin - t,
            "magnitude_bits": w + t,
            "largest_magnitude": magnitudes - nans - infinities - 1,
            "infinity_magnitude": magnitudes - nans - 1 if infinities else -1,
            "smallest_normal_magnitude": 1 << t if zero else 0,
            "nan_in_place_of_negative_zero": signed and zero and not negative_zero,
        }
        for field, settled_value in settled.items():
            object.__setattr__(self, field, settled_value)
        if not zero and t:
            raise FormatError(f"{name}: a format without zero must have precision 1, not {p}")
        if not zero and signed:
            raise FormatError(f"{name}: a format without zero must be unsigned (signed=False)")
        if self.largest_magnitude < self.smallest_normal_magnitude:
            raise FormatError(f"{name}: no normal number is left; it needs more exponent bits or fewer special codes")

    @property
    def emax(self) -> int:
        """Exponent of the largest finite number's leading digit."""
        return (self.largest_magnitude >> self.trailing_bits) - self.bias

    @property
    def is_p3109(self) -> bool:
        """Whether P3109's rules apply to overflow and to ties at p = 1; also true for formats given by a table."""
        return self.ties_to_even_code

    @property
    def least_exponent(self) -> int:
        """Exponent of the smallest positive number, which is a power of two."""
        return self.qmin if self.subnormals else self.emin

    @property
    def smallest_magnitude(self) -> int:
        """Magnitude (the code without its sign) of the smallest positive number, which may be subnormal."""
        if not self.zero:
            return 0
        return 1 if self.subnormals else self.smallest_normal_magnitude

    @property
    def ieee_nans(self) -> bool:
        """Whether NaNs have a quiet bit and payloads (IEEE 754, 6.2.1).

        The result is true if infinity and NaNs have the codes of IEEE 754, and the trailing significand has more than
        one bit.
        """
        t = self.trailing_bits
        return self.infinities and self.nans == (1 << t) - 1 and t > 1

    @property
    def quiet_bit(self) -> int:
        """The mask of the bit that distinguishes quiet from signaling NaNs; 0 if the format has no such bit."""
        return 1 << (self.trailing_bits - 1) if self.ieee_nans else 0

    @property
    def saturates(self) -> bool:
        """Whether, by the format's definition, numbers beyond the largest are rounded to the largest, as in posits."""
        return False

    @property
    def lowest_magnitude(self) -> int:
        """Magnitude (the code without its sign) of the most negative number.

        In formats given by a table, this magnitude may differ from `largest_magnitude`.
        """
        return self.largest_magnitude

    @property
    def ties_away(self) -> bool:
        """Whether roundTiesToEven rounds ties away from zero: at p = 1, no significand is even (IEEE 754, 4.3.1)."""
        return not self.trailing_bits and not self.ties_to_even_code

    @property
    def has_nan(self) -> bool:
        """Whether any code is a NaN."""
        return self.nans > 0 or self.nan_in_place_of_negative_zero

    @property
    def nan_code(self) -> int:
        """The code of the default NaN. Raises FormatError if the format has no NaN.

        If the format has a quiet bit, the default NaN is the positive quiet NaN with payload 0. Otherwise, it is the
        last positive code if this is a NaN, or else the code of −0.
        """
        if self.ieee_nans:
            return self.compose(False, self.infinity_magnitude + self.quiet_bit)
        if self.nans:
            return self.compose(False, (1 << self.magnitude_bits) - 1)
        if self.nan_in_place_of_negative_zero:
            return 1 << (self.width - 1)
        raise FormatError(f"{self.name} has no NaN")

    def compose(self, negative: bool, magnitude: int) -> int:
        """Return the code of a sign and a magnitude.

        >>> from floatlab import parse_format
        >>> hex(parse_format("fp16").compose(True, 0x3C00))
        '0xbc00'
        """
        if self.explicit_integer_bit:
            t = self.trailing_bits
            field = magnitude >> t
            magnitude = ((field << 1 | (field > 0)) << t) | (magnitude & ((1 << t) - 1))
        return int(negative) << (self.width - 1) | magnitude

    def signed_code(self, negative: bool, magnitude: int) -> int:
        """Return the code of a sign and a magnitude; −0 becomes 0 in a format without −0.

        >>> from floatlab import parse_format
        >>> hex(parse_format("e4m3").signed_code(True, 0)), hex(parse_format("e4m3fnuz").signed_code(True, 0))
        ('0x80', '0x0')
        """
        if magnitude == 0 and self.zero and not self.negative_zero:
            negative = False
        return self.compose(negative, magnitude)

    def signed_nan(self, negative: bool) -> int:
        """Return the code of the default NaN. The NaN has the given sign if NaNs of this format have signs."""
        if self.nans and self.signed:
            return self.compose(negative, self.magnitude(self.nan_code))
        return self.nan_code

    def magnitude(self, code: int) -> int:
        """Return a code without its sign bit and, in x87 extended, without its integer bit.

        >>> from floatlab import parse_format
        >>> hex(parse_format("fp16").magnitude(0xBC00))
        '0x3c00'
        """
        if self.signed:
            code &= (1 << (self.width - 1)) - 1
        if self.explicit_integer_bit:
            t = self.trailing_bits
            field = code >> (t + 1)
            # A pseudo-denormal (exponent field 0, integer bit 1) has the same value as the code with exponent field 1.
            return (field or code >> t) << t | (code & ((1 << t) - 1))
        return code

    def _value(self, magnitude: int) -> Fraction:
        from fractions import Fraction

        field, trailing = divmod(magnitude, 1 << self.trailing_bits)
        if field or not self.zero:
            trailing += 1 << self.trailing_bits
        return trailing * Fraction(2) ** (max(field, int(self.zero)) - self.bias - self.trailing_bits)

    @property
    def largest(self) -> Fraction:
        """The largest finite number, exactly."""
        return self._value(self.largest_magnitude)

    @property
    def smallest_normal(self) -> Fraction:
        """The smallest positive normal number, exactly."""
        return self._value(self.smallest_normal_magnitude)

    @property
    def smallest(self) -> Fraction:
        """The smallest positive number, exactly."""
        return self._value(self.smallest_magnitude)


class CatalogRow(Record):
    """A named format: its aliases, its source, and its purpose."""

    format: Format
    aliases: tuple[str, ...]
    source: str
    purpose: str
