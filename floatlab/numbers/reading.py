"""Values into formats: text, Python numbers and data of other formats, each rounded once and directly."""

from __future__ import annotations

import sys

from floatlab.errors import FormatError, LiteralError, UnsupportedError, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import format_called
from floatlab.fpmode import in_default_mode
from floatlab.numbers.datum import Datum, decode, special_code
from floatlab.numbers.decimals import integer_from_digits
from floatlab.numbers.exact import Exact, Ratio
from floatlab.numbers.literals import Code, Infinity, Literal, NotANumber, parse_literal
from floatlab.numbers.projection import infinity_code, nan_code, round_exact
from floatlab.numbers.rounding import DEFAULT, Context, Flags, as_context
from floatlab.numbers.steps import Decode, Derivation, Encode, Read, Round, Rule, Special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.numbers.rounding import AnyContext
    from floatlab.numbers.steps import Operand, Step, Truth


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


def read(value: Any, format: Format | str, context: AnyContext = DEFAULT) -> Derivation:
    """Round a value into a format once, directly, and show the way.

    Parameters
    ----------
    value : str, int, float, Fraction, Decimal, NumPy scalar, Exact or Datum
        Text as users type it (`1.5`, `1/3`, `0x1.8p3`, `nan(0x1)`), or a code (`bits:0x3c7c`), which is taken as it is.
        A float is the binary64 number that Python made of what was typed, a NumPy scalar a number of its dtype: the
        error counts from there.
    format : Format or str
        The target format, or its name.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; a direction's name (`"RTZ"`) will do. Default: nearest even.

    Returns
    -------
    Derivation
        `.result` (a Datum), `.flags`, `.steps`, `.error`, `.error_ulps`.

    Raises
    ------
    LiteralError
        The value is not a number.
    UnsupportedError
        The format cannot hold the value at all (the payload of a NaN).

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
        return read_literal(parse_literal(value), fmt, context)
    if isinstance(value, Literal):
        return read_literal(value, fmt, context)
    if isinstance(value, Datum):
        return convert(value, fmt, context)
    own = own_datum(value)
    if own is not None:
        return convert(own, fmt, context)
    number = value if isinstance(value, Ratio) else _ratio_of(value)
    if isinstance(number, Datum):
        return convert(number, fmt, context)
    if isinstance(number, Literal):
        return read_literal(number, fmt, context)
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
    truth = datum.exact if datum.is_finite else None
    return Derivation("decode", (literal,), context, (Decode(datum), Encode(datum, truth)), datum, Flags.NONE)


@in_default_mode
def _ratio_of(value: Any) -> Ratio | Datum | Literal:
    """Return the exact value of a number that brings no format and is no text; raises LiteralError for others."""
    if isinstance(value, Exact):
        return Ratio(value.negative, value.c, twos=value.q)
    dtype = getattr(value, "dtype", None)
    if isinstance(value, (type, bytes)) or getattr(dtype, "kind", "f") in "cmMSUO" or "complex" in str(dtype):
        raise _refusal(value)
    n = whole_number(value)
    if n is not None:
        return Ratio(n < 0, abs(n))
    try:
        if hasattr(value, "as_tuple"):
            return _decimal(value)
        if hasattr(value, "as_integer_ratio"):
            n, d = value.as_integer_ratio()
            return Ratio(n < 0 or (not n and _signed_zero(value)), abs(n), d)
        if hasattr(value, "numerator") and hasattr(value, "denominator"):
            return Ratio(value.numerator < 0, abs(int(value.numerator)), int(value.denominator))
    except (OverflowError, ValueError):  # ∞ or NaN
        return binary64_datum(float(value))
    except TypeError:  # an array or a tensor that is not one integer
        pass
    if dtype is not None and getattr(dtype, "itemsize", 99) <= 8 and not getattr(value, "shape", ()):
        try:
            return binary64_datum(float(value))  # small integers such as int4 of ml_dtypes, which have no __index__
        except (TypeError, ValueError):
            pass
    raise _refusal(value)


def _signed_zero(value: Any) -> bool:
    """Say whether a zero of a NumPy type is −0; fractions have no such thing."""
    return hasattr(value, "dtype") and str(value).startswith("-")


def _refusal(value: Any) -> LiteralError:
    return LiteralError(f"{type(value).__name__} {quoted(str(value))} is not a number floatlab can read")


def _decimal(value: Any) -> Ratio | Literal:
    """Return a decimal.Decimal without writing out its power of ten."""
    sign, digits, exponent = value.as_tuple()
    if exponent == "F":
        return Literal(str(value), Infinity(bool(sign)))
    if exponent in ("n", "N"):
        return Literal(str(value), NotANumber(bool(sign), exponent == "N", int(exponent == "N")))
    return Ratio(bool(sign), integer_from_digits("".join(map(str, digits))), tens=exponent)


def encode(value: Any, format: Format | str, context: AnyContext = DEFAULT) -> Datum:
    """Return the datum that a value rounds to: the result of `read`, without its steps.

    Parameters
    ----------
    value : str, int, float, Fraction, Decimal, NumPy scalar, Exact or Datum
        As for `read`.
    format : Format or str
        The target format, or its name.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; a direction's name (`"RTZ"`) will do. Default: nearest even.

    Returns
    -------
    Datum

    Raises
    ------
    LiteralError, UnsupportedError
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
        Rounding direction, overflow, NaN and flush rules; a direction's name (`"RTZ"`) will do. Default: nearest even.

    Returns
    -------
    Derivation
        `.result` (a Datum), `.flags`, `.steps`, `.error`, `.error_ulps`.

    Notes
    -----
    IEEE 754-2019 clause 5.4.2 (convertFormat). The payload of a NaN is kept from its leading digit on. A signaling NaN,
    and an x87 code that is no number, raise invalid and become quiet NaNs.

    Examples
    --------
    >>> d = convert(encode("1000", "fp32"), "e4m3")
    >>> d.result, d.flags.names
    (Datum(e4m3fn 0x7f = nan), ['overflow', 'inexact'])
    """
    fmt, context = parse_format(format), as_context(context)
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


# The format of NumPy's longdouble, by how many trailing digits it has on this machine.
_LONG_DOUBLES = {52: "binary64", 63: "x87", 112: "binary128"}


def binary64_datum(value: float) -> Datum:
    """Return a Python float as what it is."""
    from struct import pack

    return Datum(parse_format("binary64"), int.from_bytes(pack(">d", value), "big"))


def own_datum(value: Any) -> Datum | None:
    """Return a number in the format that it brings; None for text, integers, fractions, and whatever brings none.

    A Python float is a binary64 number. A NumPy scalar, or an array or tensor without axes of any library, is a number
    of its dtype. Bits are kept where the library shows them: those of NumPy's and ml_dtypes' NaNs are.

    >>> own_datum(0.1), own_datum("0.1"), own_datum(1)
    (Datum(binary64 0x3fb999999999999a = 0.1), None, None)
    """
    if isinstance(value, float):
        return binary64_datum(value)
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(value, type) or getattr(value, "shape", None) != ():
        return None
    if type(dtype).__module__.partition(".")[0] == "numpy" and dtype.name.startswith(
        ("longdouble", "float96", "float128")
    ):
        return _long_double(value, dtype)
    format = format_called(str(dtype).rpartition(".")[2])
    if format is None:
        return None
    if hasattr(value, "tobytes") and getattr(dtype, "isnative", True):
        return Datum(format, int.from_bytes(value.tobytes(), sys.byteorder) & ((1 << format.width) - 1))
    return _converted(value.detach() if hasattr(value, "detach") else value, format)


def _converted(value: Any, format: Format) -> Datum:
    """Return a number by way of a Python float, which holds all numbers of the format."""
    return convert(binary64_datum(float(value)), format).result


def _long_double(value: Any, dtype: Any) -> Datum | None:
    name = _LONG_DOUBLES.get(int(sys.modules["numpy"].finfo(dtype).nmant))
    if name is None:
        return None
    format = parse_format(name)
    octets = value.astype(dtype.newbyteorder("=")).tobytes()
    used = octets[: format.width // 8] if sys.byteorder == "little" else octets[-(format.width // 8) :]
    return Datum(format, int.from_bytes(used, sys.byteorder))


def whole_number(value: Any) -> int | None:
    """Return an integer of Python, or of a library's integer dtype, as a Python int; None for everything else.

    Raises LiteralError for True and False, which are no numbers here.

    >>> whole_number(3), whole_number(3.0), whole_number("3")
    (3, None, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, str | float | Datum | type):
        return None
    if isinstance(value, bool) or str(getattr(value, "dtype", "")).rpartition(".")[2] == "bool":
        raise LiteralError(f"{quoted(str(value))} is a truth value, not a number floatlab reads: give 1 or 0")
    if not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except (TypeError, ValueError):  # an array or a tensor that is not one integer
        return None
