"""A floating-point datum: a format and a code. All other properties are computed from these two."""

from __future__ import annotations

from enum import Enum

from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers.exact import GUARD_DIGITS, Exact
from floatlab.numbers.printing import DIGIT_LIMIT, exact_decimal, hexadecimal_float, shortest_decimal, shortest_within
from floatlab.numbers.projection import given_by_table, infinity_code, nan_code, round_exact
from floatlab.numbers.rounding import DEFAULT, Context, Flags, NanRule
from floatlab.presenter import Drawn
from floatlab.record import Record


class NumberClass(Enum):
    """The classes of IEEE 754-2019 clause 5.7.2, and one for x87 codes that are invalid operands."""

    SIGNALING_NAN = "signalingNaN"
    QUIET_NAN = "quietNaN"
    NEGATIVE_INFINITY = "negativeInfinity"
    NEGATIVE_NORMAL = "negativeNormal"
    NEGATIVE_SUBNORMAL = "negativeSubnormal"
    NEGATIVE_ZERO = "negativeZero"
    POSITIVE_ZERO = "positiveZero"
    POSITIVE_SUBNORMAL = "positiveSubnormal"
    POSITIVE_NORMAL = "positiveNormal"
    POSITIVE_INFINITY = "positiveInfinity"
    UNSUPPORTED = "unsupported"


_SIGNED_CLASSES = {
    kind: (NumberClass[f"POSITIVE_{kind}"], NumberClass[f"NEGATIVE_{kind}"])
    for kind in ("INFINITY", "NORMAL", "SUBNORMAL", "ZERO")
}
_INFINITE = _SIGNED_CLASSES["INFINITY"]
_NAN = (NumberClass.QUIET_NAN, NumberClass.SIGNALING_NAN)
_NOT_FINITE = (*_NAN, *_INFINITE, NumberClass.UNSUPPORTED)


class Datum(Drawn, Record):
    """A floating-point datum (IEEE 754-2019 clause 2.1.23): the pair of a format and a code.

    Two `Datum` objects are equal if their formats and codes are equal: a NaN equals itself, and +0 differs from −0.

    >>> from floatlab import decode
    >>> d = decode(0x3C7C, "fp16")
    >>> d
    Datum(binary16 0x3c7c = 1.121)
    >>> d.biased_exponent, d.trailing_significand, d.number_class.value
    (15, 124, 'positiveNormal')
    """

    format: Format
    code: int

    @property
    def sign_bit(self) -> int:
        """The sign field: 1 for negative codes, 0 for others and in unsigned formats."""
        if given_by_table(self.format):
            return self.format.sign(self.code)
        return self.code >> (self.format.width - 1) if self.format.signed else 0

    @property
    def magnitude(self) -> int:
        """The code without its sign and (in x87) its integer bit; in a format given by a table, the number's rank."""
        return self.format.magnitude(self.code)

    @property
    def biased_exponent(self) -> int:
        """The exponent field E, or 0 in formats given by a table, which have other fields."""
        fmt = self.format
        return self.code >> (fmt.width - fmt.signed - fmt.exponent_bits) & ((1 << fmt.exponent_bits) - 1)

    @property
    def trailing_significand(self) -> int:
        """The trailing significand field T, often called the mantissa; 0 in formats given by a table."""
        return 0 if self.format.is_table else self.code & ((1 << self.format.trailing_bits) - 1)

    @property
    def integer_bit(self) -> int | None:
        """The stored integer bit of x87 extended, or None if the bit is implied."""
        fmt = self.format
        return self.code >> fmt.trailing_bits & 1 if fmt.explicit_integer_bit else None

    @property
    def is_canonical(self) -> bool:
        """Whether encoding the value (or NaN) gives this code (IEEE 754, 3.3)."""
        fmt = self.format
        if not fmt.subnormals and fmt.zero and 0 < self.magnitude < fmt.smallest_normal_magnitude:
            return False
        if self.is_nan and not fmt.ieee_nans and self.magnitude != fmt.magnitude(fmt.nan_code):
            return False
        return self.integer_bit is None or fmt.compose(bool(self.sign_bit), self.magnitude) == self.code

    @property
    def number_class(self) -> NumberClass:
        """The class (IEEE 754, 5.7.2); `unsupported` for x87 codes with integer bit 0 and a nonzero exponent field."""
        fmt = self.format
        magnitude, negative = fmt.magnitude(self.code), self.sign_bit
        if fmt.explicit_integer_bit and not self.integer_bit and self.biased_exponent:
            return NumberClass.UNSUPPORTED
        if magnitude > fmt.largest_magnitude:
            if magnitude == fmt.infinity_magnitude:
                return _INFINITE[negative]
            quiet_bit = fmt.quiet_bit
            return _NAN[bool(quiet_bit and not magnitude & quiet_bit)]
        if magnitude >= fmt.smallest_normal_magnitude:
            return _SIGNED_CLASSES["NORMAL"][negative]
        if magnitude == 0 or not fmt.subnormals:
            if negative and not magnitude and fmt.nan_in_place_of_negative_zero:
                return NumberClass.QUIET_NAN
            return _SIGNED_CLASSES["ZERO"][negative]
        return _SIGNED_CLASSES["SUBNORMAL"][negative]

    @property
    def is_nan(self) -> bool:
        """Whether the datum is a NaN, quiet or signaling."""
        return self.number_class in _NAN

    @property
    def is_infinite(self) -> bool:
        """Whether the datum is +∞ or −∞."""
        return self.number_class in _INFINITE

    @property
    def is_finite(self) -> bool:
        """Whether the datum is a finite number: not ∞, NaN or an unsupported code."""
        return self.number_class not in _NOT_FINITE

    @property
    def is_subnormal(self) -> bool:
        """Whether the datum is a subnormal number."""
        return self.number_class in _SIGNED_CLASSES["SUBNORMAL"]

    @property
    def is_signaling(self) -> bool:
        """Whether the datum is a signaling NaN."""
        return self.number_class is NumberClass.SIGNALING_NAN

    @property
    def payload(self) -> int:
        """A NaN's payload: its trailing significand without the quiet bit (6.2.1); 0 if the format has no payloads."""
        if not self.is_nan:
            raise UnsupportedError(f"{self!r} is not a NaN: it has no payload")
        return self.trailing_significand & (self.format.quiet_bit - 1) if self.format.ieee_nans else 0

    @property
    def exact(self) -> Exact:
        """The exact value, (−1)^s · c · 2^q. Raises UnsupportedError if the value is irrational or not finite."""
        value = self.finite_value
        if value is None:
            raise UnsupportedError(f"{self!r} has no exact value")
        return value

    @property
    def finite_value(self) -> Exact | None:
        """The value, exactly; None for NaN, ∞ and unsupported codes. Raises UnsupportedError for irrational values."""
        fmt, code = self.format, self.code
        magnitude = fmt.magnitude(code)
        if magnitude > fmt.largest_magnitude:
            return None
        if given_by_table(fmt):
            from floatlab.numbers.table_values import value_of

            return value_of(fmt, code)
        negative = fmt.signed and code >> (fmt.width - 1) != 0
        t = fmt.trailing_bits
        field = magnitude >> t
        c = magnitude - (field << t)
        if field:
            if fmt.explicit_integer_bit and not code >> t & 1:
                return None
            return Exact(negative, c + (1 << t), field - fmt.bias - t)
        if not fmt.zero:
            return Exact(negative, c + (1 << t), -fmt.bias - t)
        if negative and not c and fmt.nan_in_place_of_negative_zero:
            return None
        return Exact(negative, c if fmt.subnormals else 0, 1 - fmt.bias - t)

    def bounds(self, digits: int) -> tuple[Exact, Exact]:
        """Return a lower and an upper bound of at least `digits` bits; if the value is rational, both equal it."""
        if given_by_table(self.format):
            from floatlab.numbers.table_values import bounds_of

            return bounds_of(self.format, self.code, digits)
        return self.exact, self.exact

    @property
    def symbol(self) -> str:
        """An irrational value (in logarithmic takums) as text, such as `sqrt(e)^(3/8)`; empty text for all others."""
        if not given_by_table(self.format):
            return ""
        from floatlab.numbers.table_values import symbol

        return symbol(self.format, self.code)

    @property
    def quantum_exponent(self) -> int:
        """q, the exponent of the last place: a rational finite value is c · 2^q with an integer c."""
        fmt = self.format
        if fmt.is_table:
            return self.bounds(fmt.precision)[0].normalized().q if self.magnitude else fmt.qmin
        field = self.magnitude >> fmt.trailing_bits
        return max(field, int(fmt.zero)) - fmt.bias - fmt.trailing_bits

    @property
    def ulp(self) -> Exact:
        """The unit in the last place, 2^q; raises UnsupportedError for NaN, ∞ and unsupported codes.

        In a format given by a table: the distance to the next larger magnitude, or from the largest to the one below.
        """
        if not self.is_finite:
            raise UnsupportedError(f"{self!r} has no ulp")
        if given_by_table(self.format):
            from floatlab.numbers.table_values import gap

            return gap(self.format, self.code)
        return Exact(False, 1, self.quantum_exponent)

    @property
    def ordinal(self) -> int:
        """Signed rank of the value: neighbours differ by 1; zeros have rank 0, and so has e8m0's smallest number.

        >>> from floatlab import decode
        >>> decode(0x3C00, "fp16").ordinal, decode(0x8001, "fp16").ordinal
        (15360, -1)
        """
        if self.is_nan or self.number_class is NumberClass.UNSUPPORTED:
            raise UnsupportedError(f"{self!r} has no rank among numbers")
        fmt, rank = self.format, self.magnitude
        if not fmt.subnormals and fmt.zero:
            rank = max(rank - fmt.smallest_normal_magnitude + 1, 0)
        return -rank if self.sign_bit else rank

    def _at(self, ordinal: int, negative_zero: bool = False) -> Datum:
        fmt = self.format
        magnitude = abs(ordinal)
        if not fmt.subnormals and fmt.zero and magnitude:
            magnitude += fmt.smallest_normal_magnitude - 1
        if magnitude > max(fmt.largest_magnitude, fmt.infinity_magnitude) or (ordinal < 0 and not fmt.signed):
            return self
        negative = ordinal < 0 or (not ordinal and negative_zero and fmt.negative_zero)
        return Datum(fmt, fmt.compose(negative, magnitude))

    @property
    def next_up(self) -> Datum:
        """The least datum that is greater than this one (5.3.1); the datum itself if it is the greatest or a NaN."""
        return self if self.is_nan else self._at(self.ordinal + 1, negative_zero=True)

    @property
    def next_down(self) -> Datum:
        """The greatest datum that is less than this one (5.3.1); the datum itself if it is the least or a NaN."""
        return self if self.is_nan else self._at(self.ordinal - 1)

    def as_integer_ratio(self) -> tuple[int, int]:
        """Return numerator and denominator of the value in lowest terms, like float.as_integer_ratio."""
        return self.exact.as_integer_ratio()

    def __bool__(self) -> bool:
        """Return whether the datum is not a zero, as for a Python float; for NaN, return True."""
        return self.number_class not in _SIGNED_CLASSES["ZERO"]

    def __float__(self) -> float:
        """Return the nearest binary64 (ties to even): the value itself if binary64 can represent it."""
        from struct import unpack

        code = code_in(self, parse_format("binary64"))
        return float(unpack(">d", code.to_bytes(8, "big"))[0])

    def __repr__(self) -> str:
        """Show the format, the code and the shortest decimal that reads back."""
        return f"Datum({self.format.name} {hexadecimal_code(self)} = {shortest(self)})"


def hexadecimal_code(datum: Datum) -> str:
    """Return the code in lower-case hexadecimal, zero-padded to the format's width.

    >>> from floatlab import decode
    >>> hexadecimal_code(decode(0x0A, "tf32"))
    '0x0000a'
    """
    return f"0x{datum.code:0{-(-datum.format.width // 4)}x}"


def decode(code: int, format: Format | str) -> Datum:
    """Return the datum of a code in a format.

    Parameters
    ----------
    code : int
        The bits, as an unsigned integer of the format's width.
    format : Format or str
        The format, or its name.

    Returns
    -------
    Datum

    Raises
    ------
    FormatError
        The code is not an unsigned integer of the format's width, or the format is unknown.

    Examples
    --------
    >>> float(decode(0x38, "e4m3")), float(decode(0x38, "e4m3fnuz"))
    (1.0, 0.5)
    """
    fmt = parse_format(format)
    if not hasattr(code, "__index__"):
        raise FormatError(f"a code must be an integer, not {type(code).__name__}")
    number = code.__index__()
    if not 0 <= number < 1 << fmt.width:
        raise FormatError(
            f"{fmt.name} codes have {fmt.width} bits: 0 to 0x{(1 << fmt.width) - 1:x}, and this one is "
            + (f"{number.bit_length()} bits long" if number > 0 else "negative")
        )
    return Datum(fmt, number)


def quieted(datum: Datum, format: Format, context: Context) -> tuple[int, Flags]:
    """Convert a NaN operand to a quiet NaN; return its code and the flags, with `invalid` if the operand was signaling.

    Unless `context.nan` selects the default NaN, a payload keeps its leading digits, as in hardware (6.2.3).
    """
    raised = Flags.INVALID if datum.is_signaling else Flags.NONE
    if context.nan.is_default:
        code, flags = nan_code(format, context, False)
        return code, flags | raised
    payload = 0
    if datum.format.ieee_nans and format.ieee_nans:
        shift = format.trailing_bits - datum.format.trailing_bits
        payload = datum.payload << shift if shift >= 0 else datum.payload >> -shift
    code, flags = nan_code(format, context, bool(datum.sign_bit), payload)
    return code, flags | raised


def special_code(datum: Datum, format: Format, context: Context = DEFAULT) -> tuple[int, Flags]:
    """Return the code of a NaN, ∞ or unsupported datum in another format, and the flags that the conversion raises."""
    if datum.number_class is NumberClass.UNSUPPORTED:
        code, flags = nan_code(format, context, format.ieee_nans and context.nan is NanRule.X86)
        return code, flags | Flags.INVALID
    if datum.is_nan:
        return quieted(datum, format, context)
    return infinity_code(format, context, bool(datum.sign_bit))


def code_in(datum: Datum, format: Format) -> int:
    """Convert a datum to another format, rounding to nearest, and return the new code."""
    if datum.symbol:
        return round_exact(datum.bounds(format.precision + GUARD_DIGITS)[datum.sign_bit], format, sticky=True).code
    value = datum.finite_value
    return special_code(datum, format)[0] if value is None else round_exact(value, format).code


def special_text(datum: Datum) -> str:
    """Return ∞, a NaN (with its payload) or `unsupported` as text; `read` accepts all but `unsupported`."""
    if datum.number_class is NumberClass.UNSUPPORTED:
        return "unsupported"
    signed = datum.is_infinite or datum.format.nans > 0
    sign = "-" if datum.sign_bit and signed else ""
    if datum.is_infinite:
        return f"{sign}inf"
    payload = f"({datum.payload:#x})" if datum.payload else ""
    return f"{sign}{'s' if datum.is_signaling else ''}nan{payload}"


def exact_text(datum: Datum, limit: int = DIGIT_LIMIT) -> str:
    """Return the value as text: a decimal, c * 2^q, a power of √e (`symbol`), or a word for NaN and ∞ (`special_text`).

    >>> exact_text(decode(1, "fp16")), exact_text(decode(0xFC00, "fp16"))
    ('5.9604644775390625e-8', '-inf')
    """
    return datum.symbol or exact_decimal(datum.exact, limit) if datum.is_finite else special_text(datum)


def shortest(datum: Datum) -> str:
    """Return the shortest decimal that reads back as this datum (rounding to nearest); of several, return the nearest.

    >>> shortest(decode(0x7BFF, "fp16")), shortest(decode(1, "fp64"))
    ('65500', '5e-324')
    """
    if not datum.is_finite:
        return special_text(datum)
    if given_by_table(datum.format) and datum.magnitude:
        from floatlab.numbers.table_values import catchment

        return shortest_within(bool(datum.sign_bit), *catchment(datum.format, datum.code))
    return shortest_decimal(datum.exact, datum.format, datum.magnitude)


def hexadecimal(datum: Datum) -> str:
    """Return a datum as C's `%a`, with a leading 1 (0 for zero); irrational numbers, ∞ and NaN as `exact_text` does.

    >>> hexadecimal(decode(0x3C7C, "fp16")), hexadecimal(decode(1, "fp16"))
    ('0x1.1fp+0', '0x1p-24')
    """
    return datum.symbol or hexadecimal_float(datum.exact) if datum.is_finite else special_text(datum)
