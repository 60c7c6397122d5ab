"""Numbers of Python and of other libraries as exact values: a `Datum` of their format, or a ratio."""

from __future__ import annotations

import sys

from floatlab.errors import LiteralError, quoted
from floatlab.formats import parse_format
from floatlab.formats.catalog import format_called
from floatlab.fpmode import in_default_mode
from floatlab.numbers.datum import Datum, code_in
from floatlab.numbers.exact import Exact, Infinity, Literal, NotANumber, Ratio
from floatlab.numbers.printing import integer_from_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def exact_value(value: object) -> Ratio | Datum | Literal:
    """Return a number exactly, before any rounding; raises LiteralError for objects that are not numbers.

    >>> exact_value(-3).as_fraction(), exact_value(0.5)
    (Fraction(-3, 1), Datum(binary64 0x3fe0000000000000 = 0.5))
    """
    own = own_datum(value)
    return _ratio_of(value) if own is None else own


@in_default_mode
def _ratio_of(value: Any) -> Ratio | Datum | Literal:
    """Return the exact value of a number without a format, such as a fraction; raises LiteralError for non-numbers."""
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


def _signed_zero(value: object) -> bool:
    """Return whether a zero of a NumPy type is −0; False for fractions."""
    return hasattr(value, "dtype") and str(value).startswith("-")


def _refusal(value: object) -> LiteralError:
    return LiteralError(f"{type(value).__name__} {quoted(str(value))} is not a number floatlab can read")


def _decimal(value: Any) -> Ratio | Literal:
    """Return the exact value of a decimal.Decimal, without expanding its power of ten."""
    sign, digits, exponent = value.as_tuple()
    if exponent == "F":
        return Literal(str(value), Infinity(bool(sign)))
    if exponent in ("n", "N"):
        return Literal(str(value), NotANumber(bool(sign), exponent == "N", int(exponent == "N")))
    return Ratio(bool(sign), integer_from_digits("".join(map(str, digits))), tens=exponent)


# The format of NumPy's longdouble, by the number of trailing significand bits that `numpy.finfo` gives on this machine.
_LONG_DOUBLES = {52: "binary64", 63: "x87", 112: "binary128"}


def binary64_datum(value: float) -> Datum:
    """Return a Python float as a `Datum`."""
    from struct import pack

    return Datum(parse_format("binary64"), int.from_bytes(pack(">d", value), "big"))


def own_datum(value: Any) -> Datum | None:
    """Return a number in its own format, or None for objects without a format, such as text, integers and fractions.

    A Python float has the format binary64. A NumPy scalar, or a zero-dimensional array or tensor of any library, has
    the format of its dtype if this is a floating-point dtype. The bits of the number, also those of a NaN, are
    preserved if the library gives access to the bits, as NumPy and ml_dtypes do.

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
    number = binary64_datum(float(value.detach() if hasattr(value, "detach") else value))
    return Datum(format, code_in(number, format))  # exact: a Python float represents all numbers of the format


def _long_double(value: Any, dtype: Any) -> Datum | None:
    name = _LONG_DOUBLES.get(int(sys.modules["numpy"].finfo(dtype).nmant))
    if name is None:
        return None
    format = parse_format(name)
    octets = value.astype(dtype.newbyteorder("=")).tobytes()
    used = octets[: format.width // 8] if sys.byteorder == "little" else octets[-(format.width // 8) :]
    return Datum(format, int.from_bytes(used, sys.byteorder))


def whole_number(value: Any) -> int | None:
    """Return an integer of Python, or of a library's integer dtype, as a Python int; None for all other objects.

    Raises LiteralError for True and False, which floatlab does not read as numbers.

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
