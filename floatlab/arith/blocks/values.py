"""Reads the values of a block, finds their largest and smallest numbers, and finds the positions of the blocks."""

from __future__ import annotations

from collections.abc import Sequence

from floatlab.arith.blocks.formulas import NAN, Value, is_less, magnitude, ratio, value_of
from floatlab.errors import LiteralError, UnsupportedError, quoted
from floatlab.formats import parse_format
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.catalog import short_name
from floatlab.formats.format import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import EXACT_ERROR_BITS, Derivation
from floatlab.numbers.exact import Code, Infinity, Literal, NotANumber, Ratio
from floatlab.numbers.reading import read


def tiles(format: BlockFormat, rows: int, columns: int) -> list[list[int]]:
    """Return the indices of the elements in each block of a tensor. The last blocks of rows and columns may be smaller.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> tiles(parse_recipe("e4m3/1x2").format, 2, 3), tiles(parse_recipe("e4m3/2x2").format, 2, 3)
    ([[0, 1], [2], [3, 4], [5]], [[0, 1, 3, 4], [2, 5]])
    """
    if format.flat:
        rows, columns = 1, rows * columns
    high, wide = format.rows or rows or 1, format.block or columns or 1
    return [
        [i * columns + j for i in range(top, min(top + high, rows)) for j in range(left, min(left + wide, columns))]
        for top in range(0, rows, high)
        for left in range(0, columns, wide)
    ]


def first_run(places: list[int]) -> int:
    """Return the length of the first row of a block: the number of consecutive indices at the start of `places`.

    >>> first_run([4, 5, 8, 9])
    2
    """
    return next((n for n, place in enumerate(places) if place != places[0] + n), len(places))


def input_format(values: Sequence[object]) -> Format:
    """Return the format in which a library reads the values: binary32, or a narrower format that all values have."""
    formats = {
        value.result.format if isinstance(value, Derivation) else getattr(value, "format", None) for value in values
    }
    found = formats.pop() if len(formats) == 1 else None
    single = parse_format("binary32")
    return found if isinstance(found, Format) and found.width < single.width else single


def typed_text(value: object) -> str | None:
    """Return the text of a value, or None if the value was not given as text.

    If the value is a derivation that began with a text, `@FORMAT` is appended to this text.
    """
    if isinstance(value, Derivation) and isinstance(value.operands[0], Literal):
        return f"{value.operands[0].text}@{short_name(value.result.format)}"
    return value if isinstance(value, str) else None


def exact_value(value: object) -> Value:
    """Return the exact value of anything that `read` accepts, except codes.

    Raises LiteralError for codes, and UnsupportedError for very long numbers.
    """
    given = value.result if isinstance(value, Derivation) else value
    operand = given if isinstance(given, Datum) else read(given, "binary64").operands[0]
    if isinstance(operand, Datum):
        return value_of(operand)
    number = operand.value if isinstance(operand, Literal) else operand
    if isinstance(number, Code):
        raise LiteralError(f"{quoted(str(value))} is a code without a format: write VALUE@FORMAT")
    if isinstance(number, Ratio) and not number.is_short(EXACT_ERROR_BITS):
        raise UnsupportedError(f"{quoted(str(value))} is too long for the exact arithmetic of blocks")
    return number


def without_tens(value: Value) -> Value:
    """Return the same value with `tens` = 0: a power of ten becomes part of the numerator or denominator.

    >>> without_tens(exact_value("0.1"))
    Ratio(negative=False, numerator=1, denominator=10, twos=0, tens=0, truncated=False)
    """
    if not isinstance(value, Ratio) or not value.tens:
        return value
    x = abs(value.as_fraction())
    return Ratio(value.negative, x.numerator, x.denominator)


def largest_magnitude(values: Sequence[Value]) -> Value:
    """Return the largest magnitude: NaN if any value is NaN; otherwise, ∞ if any value is infinite.

    >>> largest_magnitude([ratio(-3), ratio(2)]).as_fraction()
    Fraction(3, 1)
    """
    if special := [value for value in values if not isinstance(value, Ratio)]:
        return NAN if any(isinstance(value, NotANumber) for value in special) else Infinity(False)
    return ratio(max(abs(value.as_fraction()) for value in values if isinstance(value, Ratio)))


def greatest(values: Sequence[Value]) -> Value:
    """Return the largest of 0 and the values; NaNs are ignored."""
    most: Value = ratio(0)
    for value in values:
        most = value if is_less(most, value) else most
    return most


def measures(values: Sequence[Value]) -> dict[str, Value]:
    """Return the variables that the formulas of a scale rule use: amax, low, high and peak of a block.

    `formats.scaling` defines them. If a value is NaN, all four variables are NaN.

    >>> {name: str(each.as_fraction()) for name, each in measures([ratio(2), ratio(-3), ratio(3)]).items()}
    {'amax': '3', 'low': '-3', 'high': '3', 'peak': '-3'}
    """
    low = high = peak = next((value for value in values if isinstance(value, NotANumber)), values[0])
    for value in values:
        low = value if is_less(value, low) else low
        high = value if is_less(high, value) else high
        peak = value if is_less(magnitude(peak), magnitude(value)) else peak
    return {"amax": largest_magnitude(values), "low": low, "high": high, "peak": peak}
