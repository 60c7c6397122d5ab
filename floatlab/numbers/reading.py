"""Reads values (text, numbers, or a `Datum` of another format) exactly, and rounds each once into a format.

No Python float is ever an intermediate between text and bits. A number is kept as a ratio with a separate power of ten,
so that an exponent far out of range needs no long integer. The digits beyond MAX_DIGITS are not kept: a rounding
depends only on whether any of these digits is nonzero.
"""

from __future__ import annotations

import re

from floatlab.errors import FormatError, LiteralError, UnsupportedError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.datum import Datum, decode, special_code
from floatlab.numbers.derivation import Decode, Derivation, Encode, Read, Round, Rule, Special
from floatlab.numbers.exact import GUARD_DIGITS, Code, Exact, Infinity, Literal, NotANumber, Ratio
from floatlab.numbers.printing import integer_from_digits
from floatlab.numbers.projection import infinity_code, nan_code, round_exact
from floatlab.numbers.rounding import DEFAULT, Context, Direction, Flags, as_context
from floatlab.numbers.scalars import exact_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.numbers.derivation import Operand, Step, Truth
    from floatlab.numbers.rounding import AnyContext

# No midpoint between two neighbours of a format (W ≤ 19, T ≤ 236, IEEE 754's bias) has as many significant digits as
# MAX_DIGITS: the longest, near 2^−262380, have about 183,500.
MAX_DIGITS = 200_000
MAX_EXPONENT_DIGITS = 1000
MAX_CODE_BITS = 4096


def _digits(digit: str) -> str:
    return f"{digit}+(?:_{digit}+)*"


def _based(prefix: str, digit: str, mark: str) -> str:
    d = _digits(digit)
    return rf"{prefix}(?:({d})(?:\.({d})?)?|\.({d}))(?:{mark}([+-]?\d+))?"


# Patterns of lower-case text; re compiles (and caches) each at first use.
_DECIMAL = _based("", r"\d", "e")
_HEXADECIMAL = _based("0x", "[0-9a-f]", "p")
_BINARY = _based("0b", "[01]", "p")
_POWER = r"(2|10)\s*\^\s*([+-]?\d+)"
_NAN = r"(s|q)?nan(?:\((.*)\))?"
_CODE = rf"0x({_digits('[0-9a-f]')})|(?:0b)?({_digits('[01]')})"

_FORMS = "numbers look like 1.5 -3e-5 1/3 0x1.8p3 2^-24 inf nan nan(0x1) snan bits:0x3c7c"


def _exponent(text: str | None, whole: str) -> int:
    if not text:
        return 0
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > MAX_EXPONENT_DIGITS:
        raise LiteralError(
            f"{quoted(whole)}: the exponent has {len(digits):,} digits; at most {MAX_EXPONENT_DIGITS:,} are read"
        )
    return int(digits or "0") * (-1 if text[0] == "-" else 1)


def _decimal(found: re.Match[str], negative: bool, whole: str) -> Ratio:
    integer, fraction = found[1] or "", found[2] or found[3] or ""
    if "_" in integer or "_" in fraction:
        integer, fraction = integer.replace("_", ""), fraction.replace("_", "")
    significant = (integer + fraction).lstrip("0")
    trimmed = significant.rstrip("0")
    tens = _exponent(found[4], whole) - len(fraction) + len(significant) - len(trimmed)
    if not trimmed:
        return Ratio(negative, 0)
    kept = trimmed[:MAX_DIGITS]
    tens += len(trimmed) - len(kept)
    return Ratio(negative, integer_from_digits(kept), tens=tens, truncated=len(kept) < len(trimmed))


def _radix(found: re.Match[str], negative: bool, bits: int, whole: str) -> Ratio:
    integer, fraction = (found[1] or "").replace("_", ""), (found[2] or found[3] or "").replace("_", "")
    c = int((integer + fraction).lstrip("0") or "0", 1 << bits)  # linear: the base is a power of two
    return Ratio(negative, c, twos=_exponent(found[4], whole) - bits * len(fraction) if c else 0)


def _number(text: str, negative: bool, whole: str) -> Ratio | None:
    """Read an unsigned number without a fraction bar (decimal, hexadecimal, binary, or c*2^q); None for other text."""
    if found := re.fullmatch(_DECIMAL, text):
        return _decimal(found, negative, whole)
    if found := re.fullmatch(_HEXADECIMAL, text):
        return _radix(found, negative, 4, whole)
    if found := re.fullmatch(_BINARY, text):
        return _radix(found, negative, 1, whole)
    return _scaled(text, negative, whole) if "^" in text or "**" in text else None


def _scaled(text: str, negative: bool, whole: str) -> Ratio | None:
    """Read a product such as `2^q`, `c*10^r` or `c*2^q*10^r` (`**` may replace `^`); return None for other text."""
    factors = [factor.strip() for factor in text.replace("**", "^").split("*", 3)]
    twos = tens = 0
    while factors and len(factors) < 4 and (found := re.fullmatch(_POWER, factors[-1])):
        exponent = _exponent(found[2], whole)
        twos, tens = (twos + exponent, tens) if found[1] == "2" else (twos, tens + exponent)
        factors.pop()
    if len(factors) > 1 or (factors and "^" in factors[0]):
        return None
    base = _number(factors[0], negative, whole) if factors else Ratio(negative, 1)
    return None if base is None else base.replace(twos=base.twos + twos, tens=base.tens + tens)


def _signed(text: str) -> tuple[bool, str]:
    return (text[0] == "-", text[1:].lstrip()) if text[:1] in ("+", "-") else (False, text)


def _ratio(text: str, whole: str) -> Ratio | None:
    negative, body = _signed(text)
    above, bar, below = body.partition("/")
    if not bar:
        return _number(body, negative, whole)
    downward, below = _signed(below.strip())
    n, d = _number(above.strip(), negative != downward, whole), _number(below, False, whole)
    if n is None or d is None:
        return None
    if not d.numerator:
        raise LiteralError(f"{quoted(whole)}: a fraction with denominator 0 is not a number; inf and nan are read")
    if n.truncated or d.truncated:
        raise LiteralError(f"{quoted(whole)}: a fraction takes at most {MAX_DIGITS:,} digits above and below its bar")
    return Ratio(n.negative, n.numerator, d.numerator, n.twos - d.twos, n.tens - d.tens)


def _payload(text: str | None, signaling: bool, whole: str) -> int:
    if text is None or not text.strip():
        return int(signaling)
    value = _number(text.strip(), False, whole)
    if value is None or not value.is_dyadic or value.twos < 0 or value.twos + value.tens > MAX_CODE_BITS:
        raise LiteralError(f"{quoted(whole)}: a NaN's payload must be an unsigned integer such as 1 or 0x1f")
    payload: int = value.numerator * 10**value.tens << value.twos
    return payload


def parse_code(text: str, whole: str | None = None) -> Code:
    """Read a code: hexadecimal (`0x3c7c`) or binary (`_` may separate fields); errors quote `whole`, by default `text`.

    >>> parse_code("0_01111_0001111100")
    Code(code=15484, width=16, binary=True)
    """
    found = re.fullmatch(_CODE, text.strip().lower())
    if not found:
        raise LiteralError(
            f"{quoted(whole or text)}: a code must be hexadecimal with 0x, such as 0x3c7c, "
            "or binary digits, such as 0_01111_0001111100"
        )
    digits = (found[1] or found[2]).replace("_", "")
    width = len(digits) * (4 if found[1] else 1)
    if width > MAX_CODE_BITS:
        raise LiteralError(
            f"{quoted(whole or text)}: a code of {width:,} bits; no format has more than {MAX_CODE_BITS}"
        )
    return Code(int(digits, 16 if found[1] else 2), width, binary=not found[1])


def parse_literal(text: str, bits: bool = False) -> Literal:
    """Read a value as users type it, and return it with its text.

    Accepted are decimal, hexadecimal (`0x1.8p3`) and binary numbers, fractions (`1/3`), powers (`3*2^-24`), `inf`,
    `nan`, `nan(payload)`, `snan`, and codes. If `bits` is true, text other than infinities and NaNs is read as a code,
    even without the prefix `bits:`. Raises LiteralError for other text.

    >>> parse_literal("-1/3").value
    Ratio(negative=True, numerator=1, denominator=3, twos=0, tens=0, truncated=False)
    """
    stripped = " ".join(text.split()).replace("\N{MINUS SIGN}", "-").replace("×", "*")
    if not stripped:
        raise LiteralError(f"an empty value; {_FORMS}")
    if not stripped.isascii():
        raise LiteralError(f"{quoted(text)} is not a number ({_FORMS})")
    lowered = stripped.lower()
    if lowered.startswith("bits:"):
        return Literal(stripped, parse_code(stripped[5:], text))
    negative, body = _signed(lowered)
    if body in ("inf", "infinity"):
        return Literal(stripped, Infinity(negative))
    if "nan" in body and (found := re.fullmatch(_NAN, body)):
        signaling = found[1] == "s"
        return Literal(stripped, NotANumber(negative, signaling, _payload(found[2], signaling, text)))
    if bits:
        return Literal(f"bits:{stripped}", parse_code(stripped, text))
    value = _ratio(lowered, text)
    if value is None:
        raise LiteralError(f"{quoted(text)} is not a number ({_FORMS})")
    return Literal(stripped, value)


def _finish(
    operation: str,
    operand: Operand,
    before: tuple[Step, ...],
    exact: Exact,
    sticky: bool,
    truth: Truth,
    format: Format,
    context: Context,
) -> Derivation:
    rounded = round_exact(exact, format, context, sticky)
    result = Datum(format, rounded.code)
    steps = (*before, Round(format, rounded), Encode(result, truth))
    return Derivation(operation, (operand,), context, steps, result, rounded.flags)


def _special(
    operation: str, operand: Operand, before: tuple[Step, ...], rule: Rule, code: int, flags: Flags,
    format: Format, context: Context,
) -> Derivation:  # fmt: skip
    result = Datum(format, code)
    steps = (*before, Special(rule, flags), Encode(result, None))
    return Derivation(operation, (operand,), context, steps, result, flags)


def read(value: object, format: Format | str, context: AnyContext = DEFAULT) -> Derivation:
    """Round a value into a format once, directly, and record every step.

    Parameters
    ----------
    value : str, int, float, Fraction, Decimal, NumPy scalar, Exact or Datum
        Text as users type it (`1.5`, `1/3`, `0x1.8p3`, `nan(0x1)`), or a code (`bits:0x3c7c`), which is used unchanged.
        A float means exactly the binary64 number that Python stores; a NumPy scalar means exactly the number that its
        dtype stores. Errors are measured from this number.
    format : Format or str
        The target format, or its name.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.

    Returns
    -------
    Derivation
        `.result` (a Datum), `.flags`, `.steps`, `.error`, `.error_ulps`.

    Raises
    ------
    LiteralError
        The value is not a number.
    FormatError
        The format is unknown, or a typed code does not fit the format.
    UnsupportedError
        The format has no code for the value, for example for a NaN's payload.

    Notes
    -----
    IEEE 754-2019 clause 5.12.2 (convertFromDecimalCharacter), for decimals of any length.

    Examples
    --------
    >>> d = read("1/3", "fp16")
    >>> d.result, d.error_ulps, d.flags.names
    (Datum(binary16 0x3555 = 0.3333), Fraction(-1, 3), ['inexact'])
    """
    fmt, context = parse_format(format), as_context(context)
    if isinstance(value, str):
        value = parse_literal(value)
    number = value if isinstance(value, Literal | Datum | Ratio) else exact_value(value)
    if isinstance(number, Literal):
        return read_literal(number, fmt, context)
    if isinstance(number, Datum):
        return convert(number, fmt, context)
    exact, sticky = number.enclose(fmt)
    return _finish("read", number, (Read(exact, sticky),), exact, sticky, number, fmt, context)


def read_literal(literal: Literal, format: Format, context: Context = DEFAULT) -> Derivation:
    """Round a parsed literal into a format, as `read` does.

    >>> read_literal(parse_literal("1e999999999"), parse_format("fp16")).flags.names
    ['overflow', 'inexact']
    """
    value = literal.value
    try:
        if isinstance(value, Ratio):
            exact, sticky = value.enclose(format)
            return _finish("read", literal, (Read(exact, sticky),), exact, sticky, value, format, context)
        if isinstance(value, Infinity):
            code, flags = infinity_code(format, context, value.negative)
            return _special("read", literal, (), Rule.INFINITY, code, flags, format, context)
        if isinstance(value, NotANumber):
            code, flags = nan_code(format, context, value.negative, value.payload, value.signaling)
            return _special("read", literal, (), Rule.NAN, code, flags, format, context)
    except UnsupportedError as error:
        raise UnsupportedError(f"{quoted(literal.text)}: {error}") from None
    return _read_code(literal, value, format, context)


def _read_code(literal: Literal, typed: Code, format: Format, context: Context) -> Derivation:
    if typed.binary and typed.width != format.width:
        raise FormatError(
            f"{quoted(literal.text)}: {format.name} codes have {format.width} bits, and this one has {typed.width}"
        )
    try:
        datum = decode(typed.code, format)
    except FormatError as error:
        raise FormatError(f"{quoted(literal.text)}: {error}") from None
    truth: Truth | None = None
    if datum.is_finite:
        truth = datum if datum.symbol else datum.exact
    return Derivation("decode", (literal,), context, (Decode(datum), Encode(datum, truth)), datum, Flags.NONE)


def encode(value: object, format: Format | str, context: AnyContext = DEFAULT) -> Datum:
    """Return the datum that a value rounds to: the result of `read`, without its steps.

    Parameters
    ----------
    value : str, int, float, Fraction, Decimal, NumPy scalar, Exact or Datum
        As for `read`.
    format : Format or str
        The target format, or its name.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.

    Returns
    -------
    Datum

    Raises
    ------
    LiteralError, FormatError, UnsupportedError
        As for `read`.

    Examples
    --------
    >>> encode(0.1, "fp16"), encode("nan(0x3)", "fp16")
    (Datum(binary16 0x2e66 = 0.1), Datum(binary16 0x7e03 = nan(0x3)))
    """
    return read(value, format, context).result


def convert(datum: Datum, format: Format | str, context: AnyContext = DEFAULT) -> Derivation:
    """Convert a datum to another format, rounding once.

    Parameters
    ----------
    datum : Datum
        The number to convert.
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
    IEEE 754-2019 clause 5.4.2 (convertFormat). The payload of a NaN keeps its leading digits, unless the
    context's NaN rule returns the default NaN. A signaling NaN and an unsupported x87 code raise invalid, and become
    quiet NaNs if the format has NaNs.

    Examples
    --------
    >>> d = convert(encode("1000", "fp32"), "e4m3")
    >>> d.result, d.flags.names
    (Datum(e4m3fn 0x7f = nan), ['overflow', 'inexact'])
    """
    fmt, context = parse_format(format), as_context(context)
    if datum.symbol:
        return _convert_irrational(datum, fmt, context)
    truth = datum.finite_value
    if truth is None:
        return _convert_special(datum, fmt, context)
    exact = truth
    before: tuple[Step, ...] = (Decode(datum),)
    if context.flush_inputs and datum.is_subnormal:
        exact = Exact(truth.negative, 0, truth.q)
        before += (Special(Rule.FLUSHED_INPUT, Flags.NONE),)
    return _finish("convert", datum, before, exact, False, truth, fmt, context)


def _convert_special(datum: Datum, fmt: Format, context: Context) -> Derivation:
    code, flags = special_code(datum, fmt, context)
    rule = Rule.INFINITY if datum.is_infinite else Rule.NAN
    return _special("convert", datum, (Decode(datum),), rule, code, flags, fmt, context)


def _convert_irrational(datum: Datum, fmt: Format, context: Context) -> Derivation:
    """Convert a datum that is a power of √e. A sticky bit replaces the digits far beyond the format's precision."""
    exact = datum.bounds(fmt.precision + 2 * GUARD_DIGITS)[datum.sign_bit]
    near = Datum(fmt, round_exact(exact, fmt, sticky=True).code)
    if near.symbol == datum.symbol:
        return Derivation("convert", (datum,), context, (Decode(datum), Encode(near, datum)), near, Flags.NONE)
    if fmt.is_irrational:
        from floatlab.numbers.table_values import is_boundary

        # The number is a tie, but the truncated number is below the tie. If the tie goes up, use a number above it.
        goes_up = near.magnitude & 1 or context.rounding is Direction.RNA
        if goes_up and is_boundary(fmt, near.magnitude, datum.format, datum.code):
            exact = Exact(exact.negative, exact.c + 1, exact.q)
    return _finish("convert", datum, (Decode(datum),), exact, True, datum, fmt, context)
