"""Conversions between floating-point numbers and integers (IEEE 754-2019 clauses 5.3.1, 5.4.1, 5.8 and 5.9)."""

from __future__ import annotations

import re

from floatlab.arith.operands import begin, counts_as_nan
from floatlab.arith.specials import propagate
from floatlab.errors import FormatError, quoted
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import Combination, Combine, Derivation, Integral, Round, Rule
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import Rounded, infinity_code, round_exact, round_to_quantum
from floatlab.numbers.reading import read
from floatlab.numbers.rounding import DEFAULT, Context, Flags, NanRule
from floatlab.presenter import Answering
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.numbers.rounding import AnyContext

MAX_INTEGER_BITS = 4096


class Integer(Record):
    """An integer type with `width` bits; if it is signed, its codes are in two's complement."""

    width: int
    signed: bool

    def __post_init__(self) -> None:
        """Raise FormatError for an unsupported width."""
        if not isinstance(self.width, int) or not 1 <= self.width <= MAX_INTEGER_BITS:
            raise FormatError(f"an integer type must have 1 to {MAX_INTEGER_BITS} bits, not {self.width}")

    @property
    def name(self) -> str:
        """The name that TestFloat uses, such as `i32` or `ui64`."""
        return f"{'' if self.signed else 'u'}i{self.width}"

    def value(self, code: int) -> int:
        """Return the integer that a code denotes."""
        return code - (1 << self.width) if self.signed and code >> (self.width - 1) else code

    @property
    def least(self) -> int:
        """The least integer of the type."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The greatest integer of the type."""
        return (1 << (self.width - self.signed)) - 1


# The named integer types, and the default one.
INTEGERS = {kind.name: kind for width in (8, 16, 32, 64, 128) for kind in (Integer(width, True), Integer(width, False))}
DEFAULT_INTEGER = "i32"
_INTEGER = re.compile(r"(u?)(int|i|(?<!u)s|)(8|16|32|64|128)(?:_t)?")


def parse_integer(name: str) -> Integer:
    """Return the integer type with a name: i8 … i128, ui8 … ui128, or a programming language's name (u32, int64_t).

    Raises FormatError for other names.

    >>> parse_integer("ui32") == parse_integer("u32") == parse_integer("uint32_t")
    True
    """
    found = _INTEGER.fullmatch(name.strip().lower())
    if not found or not (found[1] or found[2]):
        hint = f"; did you mean 'i{found[3]}' or 'ui{found[3]}'?" if found else ""
        raise FormatError(f"an integer type must be i or ui followed by 8, 16, 32, 64 or 128, not {quoted(name)}{hint}")
    return INTEGERS[f"{found[1]}i{found[3]}"]


class IntegerResult(Answering, Record):
    """A conversion to an integer: the integer, the rounding (None if nothing was rounded), and the raised flags."""

    operands: tuple[Datum, ...]
    context: Context
    kind: Integer
    value: int
    rounded: Rounded | None
    flags: Flags
    literals: tuple[str | None, ...] = ()
    _ASKS = ".value"

    def __repr__(self) -> str:
        """Show the integer, its bits and the flags."""
        names = ", ".join(self.flags.names) or "no flags"
        return f"IntegerResult({self.kind.name} {self.value} = {self.hexadecimal_code}, {names})"

    @property
    def code(self) -> int:
        """The integer's bits, in two's complement."""
        return self.value & ((1 << self.kind.width) - 1)

    @property
    def hexadecimal_code(self) -> str:
        """The bits in lower-case hexadecimal, zero-padded to the type's width."""
        return f"0x{self.code:0{-(-self.kind.width // 4)}x}"


def round_to_integral(
    a: object, format: Format | str | None = None, context: AnyContext = DEFAULT, exact: bool = True
) -> Derivation:
    """Round a number to an integer, and return it as a floating-point number.

    Parameters
    ----------
    a : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Text is read into the result's format. A float is binary64; a NumPy scalar has the format of its dtype. An int
        must be representable in the result's format.
    format : Format or str, optional
        Format of the result. Default: the operand's format, or binary32 if the operand has no format.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.
    exact : bool, optional
        Whether inexact is raised if rounding changes the value. Default: True.

    Returns
    -------
    Derivation
        `.result` (a Datum), `.flags`, `.steps`, `.error`, `.error_ulps`.

    Raises
    ------
    LiteralError
        The operand is not a number.
    FormatError
        Unknown format.
    ContextError
        Unknown rounding direction or rule.

    Notes
    -----
    IEEE 754-2019 clause 5.9 (roundToIntegral). A format with few exponents may lack the integer: in e2m3fn, 7.5 is the
    largest number, and rounds to 8. The integer is then rounded into the format, which raises flags (in the example,
    overflow and inexact), and the error is measured from the integer. In all other cases, the error is measured from
    the operand.

    Examples
    --------
    >>> round_to_integral("2.5", "fp16").result, round_to_integral("-0.2", "fp16").result
    (Datum(binary16 0x4000 = 2), Datum(binary16 0x8000 = -0))
    """
    work = begin("round_to_integral", (a,), format, context)
    x, rules = work.operands[0], work.context
    if counts_as_nan(x):
        return propagate(work, work.operands)
    if x.is_infinite:
        code, flags = infinity_code(work.format, rules, bool(x.sign_bit))
        return work.special(Rule.INFINITE_RESULT, code, flags)
    value = work.exact(0)
    rounded = round_to_quantum(value, 0, rules)
    integral = Exact(value.negative, rounded.code, 0)
    held = round_exact(integral, work.format, rules)
    work.steps += [Integral(rounded), Combine(Combination.INTEGER, integral), Round(work.format, held)]
    flags = held.flags | rounded.flags if exact else held.flags
    return work.close(held.code, flags, integral if held.flags else value)


def to_integer(
    a: object,
    width: int | str = 32,
    signed: bool = True,
    format: Format | str | None = None,
    context: AnyContext = DEFAULT,
    exact: bool = True,
) -> IntegerResult:
    """Convert to an integer of a given type; a result out of the type's range raises invalid.

    Parameters
    ----------
    a : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Text is read into `format`. A float is binary64; a NumPy scalar has the format of its dtype. An int must be
        representable in `format`.
    width : int or str, optional
        Width in bits, from 1 to 4096, or the name of a type (`"i32"`, `"u8"`). Default: 32.
    signed : bool, optional
        Whether the integer is signed (two's complement). Ignored if `width` is the name of a type. Default: True.
    format : Format or str, optional
        Format into which text is read. Default: binary32.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.
    exact : bool, optional
        Whether inexact is raised if rounding changes the value. Default: True.

    Returns
    -------
    IntegerResult
        `.value`, `.flags`, `.rounded`.

    Raises
    ------
    LiteralError
        The operand is not a number.
    FormatError
        Unknown format, width or type.
    ContextError
        Unknown rounding direction or rule.

    Notes
    -----
    IEEE 754-2019 clause 5.8 (convertToInteger). The context's NaN rule determines the result for NaN and for numbers
    out of range. The NaN rules `first` and `x86` give the least integer of a signed type, and the greatest integer of
    an unsigned type. The other rules give the nearest integer in the range; for NaN, `arm` gives 0, and RISC-V's rules
    give the greatest integer.

    Examples
    --------
    >>> to_integer("2.5", format="fp16").value, to_integer("1e9", 16, format="fp32").value
    (2, -32768)
    >>> to_integer("300", "u8", format="fp16").value
    255
    """
    kind = parse_integer(width) if isinstance(width, str) else Integer(width, signed)
    work = begin("to_integer", (a,), format, context)
    x, rules = work.operands[0], work.context

    def result(value: int, rounded: Rounded | None, flags: Flags) -> IntegerResult:
        return IntegerResult(work.operands, rules, kind, value, rounded, flags, work.literals)

    if counts_as_nan(x):
        return result(_unfit(0, kind, rules), None, Flags.INVALID)
    sign = -1 if x.sign_bit else 1
    if x.is_infinite:
        return result(_unfit(sign, kind, rules), None, Flags.INVALID)
    value = work.exact(0)
    if value and value.exponent > kind.width:  # far too large to expand
        return result(_unfit(sign, kind, rules), None, Flags.INVALID)
    rounded = round_to_quantum(value, 0, rules)
    n = sign * rounded.code
    if not kind.least <= n <= kind.greatest:
        return result(_unfit(sign, kind, rules), rounded, Flags.INVALID)
    return result(n, rounded, rounded.flags if exact else Flags.NONE)


def _unfit(sign: int, kind: Integer, context: Context) -> int:
    """Return the result for a number out of range (`sign` is its sign, ±1) or for a NaN (`sign` 0)."""
    if context.nan in (NanRule.FIRST, NanRule.X86):
        return kind.least or kind.greatest
    if not sign:
        return 0 if context.nan is NanRule.ARM else kind.greatest
    return kind.least if sign < 0 else kind.greatest


def from_integer(n: int, format: Format | str, context: AnyContext = DEFAULT) -> Derivation:
    """Convert an integer to a format, rounded once.

    Parameters
    ----------
    n : int
        An integer of any length.
    format : Format or str
        The target format, or its name.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.

    Returns
    -------
    Derivation
        `.result` (a Datum), `.flags`, `.steps`, `.error`, `.error_ulps`.

    Notes
    -----
    IEEE 754-2019 clause 5.4.1 (convertFromInt).

    Examples
    --------
    >>> from_integer(2049, "fp16").result
    Datum(binary16 0x6800 = 2048)
    """
    return read(n, format, context)
