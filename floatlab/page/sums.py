"""Texts and rows for pages of sums and products: the order, the formats, the origin of the terms, and short numbers."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arrays.sources import Source
from floatlab.formats import Format
from floatlab.numbers.printing import rounded_decimal, terminating_decimal
from floatlab.page.model import Block, Row
from floatlab.page.words import counted, signed_text
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.matrix_units import Machine
from floatlab.reduce.simulate.scaled_matrix_units import ScaledUnit
from floatlab.reduce.simulate.tensor_core_engine import TensorCore

_PLAIN = range(-4, 9)  # numbers with these decimal exponents are written without an exponent


def order_words(schedule: Schedule, adder: Adder | Compensated | TensorCore) -> str:
    """Describe the summation order and the kind of addition."""
    if isinstance(adder, Compensated):
        return f"{schedule.text}, compensated ({adder.rule})"
    return f"{schedule.text}, fused multiply-add" if isinstance(adder, Adder) and adder.fma else schedule.text


def machine_rows(machine: Machine | ScaledUnit | None) -> list[Block]:
    """Return a row with the machine model and its source."""
    if machine is None:
        return []
    note = f"; {machine.note}" if machine.note else ""
    return [Row("machine", f"{machine.words}{note}")]


def origin_rows(x: Source, y: Source | None) -> list[Block]:
    """Return rows with the original formats of the operands, and how many values their conversion changed."""
    sides = {"terms": x} if y is None else {"a": x, "b": y}
    return [Row(name, _origin_words(side)) for name, side in sides.items() if side.origin is not None]


def _origin_words(source: Source) -> str:
    origin, count = source.origin, source.codes.size
    assert origin is not None
    words = counted(count, "number" if origin.format is None else f"{origin.format.name} number")
    done = "read into" if origin.format is None else "rounded into"
    changed = f"{origin.inexact:,} of them inexactly"
    if origin.inexact in (0, count):
        changed = "all " * (count > 1) + ("inexactly" if origin.inexact else "exactly")
    return f"{words} {done} {source.format.name}, {changed}"


def format_row(x: Source, y: Source | None, adder: Adder | Compensated | TensorCore, into: Format) -> Row:
    """Return a row with the formats to which the terms, the products, the sums and the result are rounded."""
    parts = {"terms": x.format.name}
    if y is not None:
        parts["terms"] = " and ".join(dict.fromkeys([x.format.name, y.format.name]))
        if isinstance(adder, Adder | Compensated):
            parts["products"] = adder.products.name
    parts["sums"] = adder.accumulator.name
    if set(parts.values()) == {into.name}:
        return Row("rounded to", f"{into.name} everywhere")
    parts["result"] = into.name
    return Row("rounded to", ", ".join(f"{name} {format}" for name, format in parts.items()))


def few(x: Fraction) -> str:
    """Return a number rounded to three digits."""
    return rounded_decimal(x, 3, _PLAIN)


def decimal(x: Fraction, digits: int) -> str:
    """Return a number as text: the exact decimal if `digits` digits suffice, otherwise ≈ and a rounded decimal.

    >>> decimal(Fraction(1, 8), 6), decimal(Fraction(1, 3), 6)
    ('0.125', '≈ 0.333333')
    """
    text = rounded_decimal(x, digits)
    if Fraction(text) != x:
        return f"≈ {text}"
    return terminating_decimal(x, digits + 6) or text


def signed(x: Fraction, digits: int = 3) -> str:
    """Return an error as text, with its sign, rounded to `digits` digits.

    >>> signed(Fraction(-1, 3)), signed(Fraction(-112345))
    ('−0.333', '−112,000')
    """
    text = rounded_decimal(x, digits, _PLAIN)
    return signed_text(f"{int(text):,}" if text.lstrip("-").isdigit() else text)
