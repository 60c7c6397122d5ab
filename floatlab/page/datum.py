"""Drawing a datum: its bits under a ruler, its code and value, and the whole page of one value."""

from __future__ import annotations

from floatlab.numbers import Datum, Derivation, Exact, NumberClass
from floatlab.numbers.datum import exact_text, hexadecimal, hexadecimal_code, shortest
from floatlab.numbers.projection import given_by_table
from floatlab.page import words
from floatlab.page.model import Block, Line, Page, Role, Row, Span, Strip, line
from floatlab.page.words import PAGE_DIGITS

_ROLES = {"sign": Role.SIGN, "exponent": Role.EXPONENT, "significand": Role.SIGNIFICAND}  # by kind of field

_SPECIALS = {
    NumberClass.POSITIVE_INFINITY: "positive infinity",
    NumberClass.NEGATIVE_INFINITY: "negative infinity",
    NumberClass.POSITIVE_ZERO: "positive zero",
    NumberClass.NEGATIVE_ZERO: "negative zero: equal to zero, with the other sign",
    NumberClass.UNSUPPORTED: "not a number: the integer bit contradicts the exponent (Intel: an unnormal)",
}


def fields_of(datum: Datum) -> list[tuple[str, Role, str]]:
    """Return the name, the role and the bits of each field, from left to right.

    >>> from floatlab import decode
    >>> [(name, bits) for name, _, bits in fields_of(decode(0x38, "e4m3"))]
    [('S', '0'), ('exp', '0111'), ('mantissa', '000')]
    """
    fmt, fields, start = datum.format, [], 0
    if given_by_table(fmt):
        return [(field.name, _ROLES[field.kind], field.bits) for field in fmt.fields(datum.code)]
    bits = f"{datum.code:0{fmt.width}b}"
    for name, role, width in (
        ("S", Role.SIGN, int(fmt.signed)),
        ("exp", Role.EXPONENT, fmt.exponent_bits),
        ("J", Role.IMPLICIT, int(fmt.explicit_integer_bit)),
        ("mantissa", Role.SIGNIFICAND, fmt.trailing_bits),
    ):
        if width:
            fields.append((name, role, bits[start : start + width]))
        start += width
    return fields


def _ruler(fields: list[tuple[str, Role, str]], total: int, power: int) -> str:
    """Return one line of the ruler above the bits: one decimal digit of each bit number.

    `power` is 100, 10 or 1, and selects the digit. Hundreds and tens are written only at the first bit and at multiples
    of 100 and of 10, except at bit 0.
    """
    rows, bit = [], total
    for _, _, bits in fields:
        shown = range(bit - 1, bit - len(bits) - 1, -1)
        bit -= len(bits)
        rows.append(
            "".join(
                str(n // power % 10) if n == total - 1 or (n % power == 0 and (n >= power or power == 1)) else " "
                for n in shown
            )
        )
    return " ".join(rows).rstrip()


def bits_strip(datum: Datum, label: str, aside: Line = (), ruler: bool = True) -> Strip:
    """Draw a datum's fields under a ruler of bit numbers."""
    fmt = datum.format
    fields = fields_of(datum)
    names: list[Span | str] = []
    drawn: list[Span | str] = []
    breaks: list[int] = []
    taken = column = 0
    for name, role, bits in fields:
        width = len(bits)
        shown = name if len(name) <= width else name[:4]
        names += [Span(shown[:width].ljust(width), role), " "]
        drawn += [Span(bits, role), " "]
        breaks += [column + i for i in range(width) if i == 0 or (fmt.width - taken - i) % 8 == 0]
        taken, column = taken + width, column + width + 1
    lines: list[Line] = []
    if ruler:
        powers = [power for power in (100, 10, 1) if fmt.width > power or power == 1]
        lines = [line(Span(_ruler(fields, fmt.width, power), Role.RULER)) for power in powers]
        lines.append(line(*names[:-1]))
    lines.append(line(*drawn[:-1]))
    return Strip(label, tuple(lines), tuple(breaks[1:]), aside)


def significand(datum: Datum) -> Line:
    """Return a finite datum as d.ddd × 2^e; the leading digit is the hidden bit (0 for subnormals)."""
    fmt, x = datum.format, datum.exact
    digits = words.point(f"{x.c:0{fmt.precision}b}")
    return line("−" if x.negative else "", digits, f" × 2^{x.q + fmt.trailing_bits}")


def coded(datum: Datum, value: str | None = None) -> Line:
    """Return a datum's code and its value."""
    return line(Span(hexadecimal_code(datum), Role.CODE), f" {words.brief(datum) if value is None else value}")


def datum_strip(datum: Datum, label: str, ruler: bool = False) -> Strip:
    """Draw a datum's bits beside its code and value."""
    return bits_strip(datum, label, coded(datum, words.equals(datum)), ruler)


def _exponent_words(datum: Datum) -> str:
    fmt, field = datum.format, datum.biased_exponent
    if field or not fmt.zero:
        return f"E {field} − bias {fmt.bias}" if fmt.bias >= 0 else f"E {field} + {-fmt.bias}"
    return f"E 0: emin is {fmt.emin}"


def significand_row(datum: Datum, label: str = "") -> Row:
    """Return a row that shows a finite datum as d.ddd × 2^e.

    If the format is defined by a table, the row explains the fields of the code instead.
    """
    if given_by_table(datum.format):
        return Row(label or "fields", datum.format.reading(datum.code) if datum.magnitude else "zero")
    return Row(label or "significand", significand(datum), _exponent_words(datum))


def _neighbours(datum: Datum) -> Row:
    below, above = datum.next_down, datum.next_up
    missing = line(Span("none", Role.HINT))
    return Row("neighbours", coded(below) if below != datum else missing, coded(above) if above != datum else missing)


def show_page(derivation: Derivation, interval: bool = False) -> Page:
    """Return the page of one value in one format."""
    datum, fmt = derivation.result, derivation.result.format
    blocks: list[Block] = [datum_strip(datum, fmt.name, ruler=True)]
    if fmt.name == "tf32":
        blocks.append(Row("in 32 bits", Span(f"0x{datum.code << 13:08x}", Role.CODE), "in a 32-bit register"))
    if datum.is_finite:
        blocks.append(significand_row(datum))
    blocks += _rounding(derivation)
    if datum.is_finite:
        blocks.append(Row("exactly", Span(exact_text(datum, PAGE_DIGITS), Role.VALUE)))
        other = line("hex ", hexadecimal(datum)) if not datum.symbol else line(words.brief(datum))
        blocks.append(Row("", other, line("shortest ", shortest(datum))))
    if not datum.is_nan and datum.number_class is not NumberClass.UNSUPPORTED:
        blocks.append(_neighbours(datum))
    if note := words.replaced_words(derivation):
        blocks.append(Row("replaced", Span(note, Role.HINT)))
    if note := _in_words(datum):
        blocks.append(Row("note", Span(note, Role.HINT)))
    if interval and fmt.is_irrational:
        ends = "its ends are powers of √e: there is no number line" if datum.is_finite else "no real number rounds here"
        blocks.append(Row("interval", Span(ends, Role.HINT)))
    elif interval:
        from floatlab.page.number_line import interval_rows, scale_rows  # imported here, since few pages need them

        blocks += interval_rows(datum, derivation.context) + scale_rows(derivation)
    return Page(tuple(blocks), f"{words.operand_text(derivation)} in {fmt.name}")


def _rounding(derivation: Derivation) -> list[Block]:
    typed = line("from ", words.operand_text(derivation))
    rounded, direction = derivation.rounded, derivation.context.rounding
    if derivation.operation == "decode":
        return []
    if rounded is None:
        return [Row("read", words.operand_text(derivation), words.flags_line(derivation.flags))]
    seen = words.read_line(derivation)
    rows: list[Block] = [Row("read", seen, typed)]
    far = words.far_away(derivation)
    decided = (
        line("larger than every number") if far and rounded.overflowed else words.decision(rounded, derivation.context)
    )
    rows.append(Row(f"round {direction.value}", decided, words.verdict_line(derivation)))
    x = None if rounded.between is None or direction.is_stochastic else rounded.between.boundary
    if x is not None and rounded.flags:
        rows.append(Row("", f"the boundary is {words.brief(Exact(rounded.negative and x.c > 0, x.c, x.q))}"))
    if note := words.tininess_words(rounded):
        rows.append(Row("", note))
    if rounded.carried and not rounded.overflowed and not far:
        rows.append(Row("", "the carry runs into the exponent"))
    return rows


def _in_words(datum: Datum) -> str:
    """Return a remark about a special value, an extreme number, a subnormal or a large integer; "" for other values."""
    fmt, kind = datum.format, datum.number_class
    if datum.is_nan:
        if not fmt.ieee_nans:
            codes = (
                "the only NaN"
                if fmt.nans + fmt.nan_in_place_of_negative_zero == 1 and not (fmt.signed and fmt.nans)
                else "a NaN"
            )
            return f"{codes}: not a number; {fmt.name} has no payloads and no signaling NaNs"
        quiet = "signaling: using it raises invalid" if datum.is_signaling else "quiet"
        return f"not a number, {quiet}; payload {datum.payload and hex(datum.payload)}"
    if kind in _SPECIALS:
        return _SPECIALS[kind]
    if not datum.is_canonical:
        return "a pseudo-denormal: E is 0 and the integer bit is 1; results encode the same value with E 1"
    magnitude = datum.magnitude
    if magnitude < fmt.smallest_normal_magnitude and fmt.is_table:
        return "denormal: a power of two below the smallest number with a mantissa"
    if magnitude < fmt.smallest_normal_magnitude:
        lead = f"{_smallest('number', datum)}; " if magnitude == 1 else ""
        digits = datum.trailing_significand.bit_length()
        return (
            f"{lead}subnormal: below 2^{fmt.emin} the exponent is constant and leading digits are lost, "
            f"{digits} of {fmt.precision} {'is' if digits == 1 else 'are'} left"
        )
    if datum in (datum.next_down, datum.next_up) or magnitude == fmt.largest_magnitude:
        return "the finite number furthest below zero" if datum.sign_bit else "the largest finite number"
    if magnitude == fmt.smallest_magnitude:
        return _smallest("number", datum) + ("" if fmt.zero else f"; {fmt.name} has no zero")
    if magnitude == fmt.smallest_normal_magnitude:
        return _smallest("normal number", datum)
    if fmt.is_table:
        return ""
    step = datum.quantum_exponent
    if step > 0:
        limit = 1 << fmt.precision
        shown = f" = {limit}" if fmt.precision < 64 else ""
        return f"beyond 2^{fmt.precision}{shown} not every integer exists: the distance to the next number is " + (
            f"{1 << step}" if step < 40 else f"2^{step}"
        )
    return ""


def _smallest(what: str, datum: Datum) -> str:
    return f"the negative {what} nearest to zero" if datum.sign_bit else f"the smallest positive {what}"
