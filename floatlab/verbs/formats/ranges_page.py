"""The page that compares several formats: ranges on one axis, differences, and conversions that are always exact."""

from __future__ import annotations

from fractions import Fraction
from math import log2

from floatlab.arith import Lack, lacks
from floatlab.formats import Format
from floatlab.numbers import Datum, encode
from floatlab.numbers.printing import rounded_decimal, terminating_decimal
from floatlab.page import model
from floatlab.page.model import AxisInterval, Block, Page, Role, Row, Span, Table, heading, hint, line
from floatlab.page.words import counted, listed
from floatlab.verbs.formats.page import specials_words

_TICKS = 8  # the scale has about this many ticks at most
_MANY = 3  # with this many other formats or more, reasons are omitted
_SHORT = 9  # characters of a number in the table
_DIGITS = (
    "digits m / n: decimals of up to m digits survive the conversion to the format and back (in the range of normal "
    "numbers); n digits are enough to tell all numbers of the format apart"
)


def ranges_page(formats: list[Format]) -> Page:
    """Return the page that compares two or more formats.

    >>> from floatlab import parse_format
    >>> from floatlab.page.text_layout import to_text
    >>> page = ranges_page([parse_format("fp16"), parse_format("bf16")])
    >>> print(to_text(page).partition("thin")[0].rstrip())
      Side by side: the positive numbers on a scale of powers of two
      binary16                          2^-24 ──━━━━━━━━━ 65504
      bfloat16     ──━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
                   ─┼───────┼───────┼───────┼───────┼──────┼───────┼───────┼────────
                   2^-128  2^-96  2^-64   2^-32     1    2^32    2^64    2^96
    """
    names = ", ".join(each.name for each in formats)
    scale = heading("Side by side: the positive numbers on a scale of powers of two")
    key = hint("thin: subnormal numbers, thick: normal ones")
    blocks: list[Block] = [scale, ranges_axis(formats), key, model.Gap()]
    blocks += [heading("Differences"), _differences(formats), hint(_DIGITS), model.Gap()]
    blocks.append(heading("Is a conversion always exact?"))
    for each in formats:
        blocks += _conversions(each, [other for other in formats if other != each])
    return Page(tuple(blocks), f"{names} side by side")


def ranges_axis(formats: list[Format]) -> model.Axis:
    """Draw the positive range of each format as a line: thin for subnormal numbers, thick for normal ones."""
    low = min(each.least_exponent for each in formats)
    high = max(_top(each) for each in formats)

    def place(exponent: float) -> float:
        return (exponent - low) / (high - low) if high > low else 0.0

    lanes = []
    for each in formats:
        largest = line(_largest(each))
        spans = [AxisInterval(place(each.emin), place(_top(each)), largest, role=Role.CHANGED, heavy=True, ends=False)]
        if each.subnormals:
            low_end, label = place(each.qmin), line(f"2^{each.qmin}")
            spans.insert(0, AxisInterval(low_end, place(each.emin), label, role=Role.CHANGED, ends=False, before=True))
        lanes.append(model.Lane(each.name, (), tuple(spans)))
    marks = tuple(
        model.Mark(place(k), "┼", line("1" if not k else f"2^{k}"), role=Role.RULER, priority=_roundness(k))
        for k in _ticks(low, int(high))
    )
    return model.Axis((*lanes, model.Lane("", marks, rows=1)))


def _obstacles(narrow: Format, wide: Format) -> list[str]:
    """Return the reasons, as texts, why `wide` cannot represent every number of `narrow`."""
    words = {
        Lack.DIGITS: f"significands of {counted(wide.precision, 'bit')}, not {narrow.precision}",
        Lack.LARGE: f"nothing beyond {_largest(wide)}",
        Lack.ENTRIES: "other numbers in its table",
        Lack.SMALL: f"nothing nearer to zero than 2^{wide.least_exponent}",
        Lack.STEPS: "larger steps near zero",
        Lack.ZERO: "no zero",
        Lack.SIGN: "no negative numbers",
    }
    return [words[each] for each in lacks(wide, narrow)]


def _missing(narrow: Format, wide: Format) -> list[str]:
    """Return the special values that `narrow` has but `wide` lacks."""
    specials = {"∞": "infinities", "NaN": "has_nan", "−0": "negative_zero"}
    return [name for name, has in specials.items() if getattr(narrow, has) and not getattr(wide, has)]


def _conversions(format: Format, others: list[Format]) -> list[Block]:
    """Return lines that say, for each other format, whether conversions to it are always exact and, if not, why.

    If there are at least `_MANY` other formats, the reasons are left out.
    """
    exact = [(each, _missing(format, each)) for each in others if not lacks(each, format)]
    whole = [each.name for each, missing in exact if not missing]
    words = [f"always into {listed(whole)}"] if whole else []
    words += [f"always into {each.name}, except for {listed(missing)}" for each, missing in exact if missing]
    changing = [each for each in others if lacks(each, format)]
    if len(others) < _MANY:
        words += [f"not always into {each.name}: {', '.join(_obstacles(format, each))}" for each in changing]
    elif changing:
        words.append(f"not always into {listed([each.name for each in changing])}")
    return [Row(format.name if not i else "", each) for i, each in enumerate(words)]


def _differences(formats: list[Format]) -> Table:
    rows = []
    for each in formats:
        digits = "vary" if each.is_table else _digits(each.precision)
        sizes = (f"{each.width}", f"{each.precision}", digits)
        reach = (f"2^{each.least_exponent}", _largest(each), _above_one(each))
        rows.append((Span(each.name, Role.VALUE), *sizes, *reach, specials_words(each)))
    header = ("format", "bits", "p", "digits", "smallest", "largest", "step at 1", "specials")
    return Table(header, rows, right=(1, 2))


def _digits(precision: int) -> str:
    """Return two numbers of decimal digits: how many a format preserves, and how many identify each of its numbers.

    With p for the precision, these are C's FLT_DIG and FLT_DECIMAL_DIG: ⌊(p − 1)·log10 2⌋ and ⌈1 + p·log10 2⌉.
    """
    return f"{len(str(1 << precision - 1)) - 1} / {len(str(1 << precision)) + 1}"


def _above_one(format: Format) -> str:
    """Return the distance from 1 to the next larger number of a format, as text.

    Return "no 1" if the format does not contain 1, or if it contains no larger finite number.
    """
    one = encode("1", format)
    if not one.is_finite or one.exact != 1 or not one.next_up.is_finite or one.next_up == one:
        return "no 1"
    if one.next_up.symbol:
        return _value((one.next_up.bounds(64)[0] - one.exact).as_fraction())
    step = (one.next_up.exact - one.exact).normalized()
    return "1" if not step.q else f"2^{step.q}"


def _value(value: Fraction) -> str:
    """Return a number as text for a table. A long number is rounded and marked by ≈."""
    exact = terminating_decimal(value, _SHORT)
    if exact is not None and len(exact) <= _SHORT:
        return exact
    return "≈ " + rounded_decimal(value, 3, positional=range(-4, _SHORT - 2))


def _largest(format: Format) -> str:
    """Return the largest number of a format as text for a table; if it is irrational, it is rounded."""
    datum = Datum(format, format.compose(False, format.largest_magnitude))
    return _value(datum.bounds(64)[0].as_fraction())


def _top(format: Format) -> float:
    """Return the base-2 logarithm of the largest number of a format."""
    largest = Datum(format, format.compose(False, format.largest_magnitude)).bounds(64)[0].as_fraction()
    leading = largest / (Fraction(2) ** format.emax)
    return format.emax + log2(leading)


def _ticks(low: int, high: int) -> list[int]:
    """Return the exponents of the ticks: multiples of a power of two, including exponent 0 if possible."""
    step = 1
    while (high - low) // step > _TICKS:
        step *= 2
    return list(range(-(-low // step) * step, high + 1, step))


def _roundness(k: int) -> int:
    """Return the priority of a tick at exponent k.

    It is highest for k = 0. Otherwise, the larger the power of two that divides k, the higher it is.
    """
    return (k & -k).bit_length() if k else 1 << 10
