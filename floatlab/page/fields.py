"""A datum's bits as a picture: ruler, field names, fields, and the significand with its hidden bit."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers import Datum
from floatlab.page.model import Line, Role, Span, Strip, line


def field_widths(format: Format) -> list[tuple[str, Role, int]]:
    """Return the fields from the left: name, role, and width in bits."""
    fields = [
        ("S", Role.SIGN, int(format.signed)),
        ("exp", Role.EXPONENT, format.exponent_bits),
        ("J", Role.IMPLICIT, int(format.explicit_integer_bit)),
        ("mantissa", Role.SIGNIFICAND, format.trailing_bits),
    ]
    return [field for field in fields if field[2]]


def _ruler(fields: list[tuple[str, Role, int]], total: int, power: int) -> str:
    """Write one digit of each bit's number; above the units only where it changes, and at the first bit."""
    rows, bit = [], total
    for _, _, width in fields:
        shown = range(bit - 1, bit - width - 1, -1)
        bit -= width
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
    fields = field_widths(fmt)
    bits = f"{datum.code:0{fmt.width}b}"
    names: list[Span | str] = []
    drawn: list[Span | str] = []
    breaks: list[int] = []
    taken = column = 0
    for name, role, width in fields:
        shown = name if len(name) <= width else name[:4]
        names += [Span(shown[:width].ljust(width), role), " "]
        drawn += [Span(bits[taken : taken + width], role), " "]
        breaks += [column + i for i in range(width) if i == 0 or (fmt.width - taken - i) % 8 == 0]
        taken, column = taken + width, column + width + 1
    lines: list[Line] = []
    if ruler:
        powers = [power for power in (100, 10, 1) if fmt.width > power or power == 1]
        lines = [line(Span(_ruler(fields, fmt.width, power), Role.RULER)) for power in powers]
        lines.append(line(*names[:-1]))
    lines.append(line(*drawn[:-1]))
    return Strip(label, tuple(lines), tuple(breaks[1:]), aside)


def point(digits: str, tail: str = "") -> Line:
    """Put the binary point after the first digit, and a `|` before what is cut off.

    >>> "".join(run.text for run in point("1011", "01"))
    '1.011|01'
    """
    fraction = line(".", Span(digits[1:], Role.SIGNIFICAND)) if len(digits) > 1 else ()
    cut = line("|", Span(tail, Role.LOST)) if tail else ()
    return line(Span(digits[0], Role.IMPLICIT), fraction, cut)


def significand(datum: Datum) -> Line:
    """Write a finite datum as d.ddd × 2^e, the hidden digit included (0 for subnormals)."""
    fmt, x = datum.format, datum.exact
    digits = point(f"{x.c:0{fmt.precision}b}")
    return line("−" if x.negative else "", digits, f" × 2^{x.q + fmt.trailing_bits}")
