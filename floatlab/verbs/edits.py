"""Edits of one floating-point number, such as flipping a bit or going to the next number."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.errors import FloatlabError, LiteralError, UnsupportedError, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Literal, NumberClass, encode, hexadecimal_code
from floatlab.numbers.datum import hexadecimal, shortest
from floatlab.numbers.exact import Exact
from floatlab.numbers.printing import decimal_within
from floatlab.numbers.reading import parse_code, read_literal
from floatlab.numbers.rounding import DEFAULT
from floatlab.record import Record
from floatlab.verbs.question import code_of

_LONGEST_DECIMAL = 24  # decimals longer than this are written in hexadecimal
_FIELD_DIGITS = 100  # reading this many digits is enough to see that a number is too large for its field


class Edit(Record):
    """An edit that has a button: its name, the symbol on the button, a description, and its function."""

    name: str
    sign: str
    summary: str
    apply: Callable[[Datum], Datum]


def literal_of(datum: Datum, context: Context = DEFAULT) -> str:
    """Return text from which exactly this datum can be read again, in its own format and under `context`.

    The text is a decimal (or inf, nan) if that is short, or else a hexadecimal number. If neither would be read as this
    datum, the text is a code with its format.

    >>> from floatlab import decode
    >>> literal_of(decode(0x3C7C, "fp16")), literal_of(decode(0xFF, "e4m3")), literal_of(decode(1 << 64, "x87"))
    ('1.12109375', '-nan', 'bits:0x00010000000000000000@x87')
    """
    if datum.symbol:
        return code_of(datum)
    if datum.is_finite:
        text = decimal_within(datum.exact, _LONGEST_DECIMAL) or hexadecimal(datum)
    elif datum.is_nan and (datum.is_signaling or datum.payload):
        # The text nan(0x…) could be read in another format, which may be too narrow for the payload.
        return code_of(datum)
    else:
        text = shortest(datum)
    try:
        if encode(text, datum.format, context) == datum:
            return text
    except FloatlabError:  # a code that denotes no number, or a special value that the context rejects
        pass
    return code_of(datum)


def with_bit(datum: Datum, bit: int, value: int | None = None) -> Datum:
    """Return the datum with one bit set to `value`, or flipped; bit 0 is the least significant.

    >>> from floatlab import decode
    >>> with_bit(decode(0x3C00, "fp16"), 15)
    Datum(binary16 0xbc00 = -1)
    """
    if not 0 <= bit < datum.format.width:
        raise FloatlabError(f"{datum.format.name} has bits 0 to {datum.format.width - 1}, not {bit}")
    if value is None:
        return Datum(datum.format, datum.code ^ 1 << bit)
    return Datum(datum.format, datum.code & ~(1 << bit) | value << bit)


def _places(fmt: Format) -> dict[str, tuple[int, int]]:
    """Return the lowest bit and the width of each field; the width is 0 if the format lacks the field."""
    if fmt.is_table:  # the fields, if there are any, begin at different bits in different codes
        return dict.fromkeys("SEJT", (0, 0))
    return {
        "S": (fmt.width - 1, int(fmt.signed)),
        "E": (fmt.width - fmt.signed - fmt.exponent_bits, fmt.exponent_bits),
        "J": (fmt.trailing_bits, int(fmt.explicit_integer_bit)),
        "T": (0, fmt.trailing_bits),
    }


def fields(datum: Datum) -> dict[str, str]:
    """Return the code of a datum and the fields of the code, as text.

    The fields are the sign S, the exponent E, the integer bit J (only in x87) and the trailing significand T. Fields
    that the format lacks are left out. The code and T are in hexadecimal, the others in decimal.

    >>> from floatlab import decode
    >>> fields(decode(0x3C7C, "fp16"))
    {'code': '0x3c7c', 'S': '0', 'E': '15', 'T': '0x07c'}
    """
    texts = {"code": hexadecimal_code(datum)}
    for name, (low, width) in _places(datum.format).items():
        value = datum.code >> low & (1 << width) - 1
        if width:
            texts[name] = f"0x{value:0{-(-width // 4)}x}" if name == "T" else str(value)
    return texts


def with_field(datum: Datum, name: str, text: str) -> Datum:
    """Return the datum with one field replaced; raises LiteralError if the field cannot hold the value.

    >>> from floatlab import decode
    >>> with_field(decode(0x3C7C, "fp16"), "E", "16")
    Datum(binary16 0x407c = 2.242)
    """
    if name == "code":  # in any notation that `bits:` accepts
        return read_literal(Literal(f"bits:{text}", parse_code(text)), datum.format).result
    low, width = _places(datum.format)[name]
    most = (1 << width) - 1
    value = _whole(text)
    if value is None or not 0 <= value <= most:
        limit = str(most) if most < 1 << 32 else hex(most)
        raise LiteralError(f"{name} must be a whole number from 0 to {limit}, not {quoted(text)}")
    return Datum(datum.format, datum.code & ~(most << low) | value << low)


def _whole(text: str) -> int | None:
    digits = text.strip().lower().lstrip("0")
    try:
        # Base 0 accepts 0x and 0b, but rejects decimals with leading zeros.
        return int(text, 0) if not digits[:1].isdecimal() else int(digits[:_FIELD_DIGITS])
    except ValueError:
        return None


def _scaled(datum: Datum, power: int) -> Datum:
    """Return the datum multiplied by 2^power, rounded to its format (IEEE 754-2019 5.3.3, scaleB)."""
    if not datum.is_finite:
        return datum
    x = datum.exact
    return encode(Exact(x.negative, x.c, x.q + power), datum.format)


def _negated(datum: Datum) -> Datum:
    fmt = datum.format
    if not fmt.signed:
        raise UnsupportedError(f"{fmt.name} has no sign")
    if fmt.is_table:
        return _negated_entry(datum)
    if not datum.magnitude and not fmt.negative_zero:
        return datum  # in this format, the code of −0 is a NaN or another number
    return with_bit(datum, fmt.width - 1)


def _negated_entry(datum: Datum) -> Datum:
    fmt, negative = datum.format, not datum.sign_bit
    found = datum if datum.is_nan else Datum(fmt, fmt.compose(negative and bool(datum.magnitude), datum.magnitude))
    if datum.is_finite and not datum.symbol and found.exact != -datum.exact:
        raise UnsupportedError(f"{fmt.name} has no {shortest(datum)} with the other sign")
    return found


def _moved(up: bool) -> Callable[[Datum], Datum]:
    def move(datum: Datum) -> Datum:
        if datum.is_nan or datum.number_class is NumberClass.UNSUPPORTED:
            raise UnsupportedError(f"{shortest(datum)} has no neighbours")
        moved = datum.next_up if up else datum.next_down
        if moved == datum:
            end = "last" if up else "first"
            raise UnsupportedError(f"{shortest(datum)} is the {end} number of {datum.format.name}")
        return moved

    return move


def _landmark(magnitude: Callable[[Format], int | None], what: str = "") -> Callable[[Datum], Datum]:
    def go(datum: Datum) -> Datum:
        fmt, found = datum.format, magnitude(datum.format)
        if found is None:
            raise UnsupportedError(f"{fmt.name} has no {what}")
        negative = bool(datum.sign_bit) and not (datum.is_nan and not fmt.ieee_nans)
        return Datum(fmt, fmt.compose(negative and bool(found or fmt.negative_zero), found))

    return go


def _nan(datum: Datum) -> Datum:
    if not datum.format.has_nan:
        raise UnsupportedError(f"{datum.format.name} has no NaN")
    return Datum(datum.format, datum.format.nan_code)


_INFINITY = _landmark(lambda f: f.infinity_magnitude if f.infinities else None, "infinity")
_SUBNORMAL = _landmark(lambda f: f.smallest_magnitude if f.subnormals else None, "subnormal numbers")
EDITS: dict[str, Edit] = {
    edit.name: edit
    for edit in (
        Edit("down", "−ulp", "the next number below", _moved(up=False)),
        Edit("up", "+ulp", "the next number above", _moved(up=True)),
        Edit("negate", "±", "change the sign", _negated),
        Edit("halve", "÷2", "divide by two", lambda d: _scaled(d, -1)),
        Edit("double", "×2", "multiply by two", lambda d: _scaled(d, 1)),
        Edit("zero", "0", "zero", _landmark(lambda f: 0 if f.zero else None, "zero")),
        Edit("one", "1", "one", lambda d: encode("-1" if d.sign_bit and d.format.signed else "1", d.format)),
        Edit("infinity", "∞", "infinity", _INFINITY),
        Edit("nan", "NaN", "not a number", _nan),
        Edit("largest", "max", "the largest number", _landmark(lambda f: f.largest_magnitude)),
        Edit("normal", "norm", "the smallest normal number", _landmark(lambda f: f.smallest_normal_magnitude)),
        Edit("subnormal", "sub", "the smallest subnormal number", _SUBNORMAL),
    )
}


def edited(datum: Datum, name: str) -> Datum:
    """Return the datum after the named edit of EDITS; raises UnsupportedError if the format lacks the new value.

    >>> from floatlab import decode
    >>> edited(decode(0x3C00, "fp16"), "up")
    Datum(binary16 0x3c01 = 1.001)
    """
    return EDITS[name].apply(datum)
