"""Formats side by side: their ranges on one scale, what tells them apart, and which conversions are always exact."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith import Lack, lacks
from floatlab.formats import Format
from floatlab.numbers import encode
from floatlab.numbers.decimals import rounded_decimal, terminating_decimal
from floatlab.page.model import (
    Axis,
    AxisInterval,
    Block,
    Gap,
    Lane,
    Mark,
    Page,
    Role,
    Row,
    Span,
    Table,
    heading,
    hint,
    line,
)
from floatlab.page.words import counted, listed
from floatlab.verbs.formats.page import specials_words

_TICKS = 8  # at most about so many on the scale
_MANY = 3  # other formats from which on a list says no reasons
_SHORT = 9  # characters of a number in the table

_DIGITS = (
    "digits: decimals of up to the first number of digits come back unchanged (if they are in the range of normal "
    "numbers); with the second number of digits, no two numbers read the same"
)


def ranges_page(formats: list[Format]) -> Page:
    """Compare two or more formats.

    >>> from floatlab import parse_format
    >>> from floatlab.page.layout import to_text
    >>> page = ranges_page([parse_format("fp16"), parse_format("bf16")])
    >>> print(to_text(page).partition("thin")[0].rstrip())
      Side by side: the positive numbers on a scale of powers of two
      binary16                          2^-24 ──━━━━━━━━━ 65504
      bfloat16     ──━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
                   ─┼───────┼───────┼───────┼───────┼──────┼───────┼───────┼────────
                   2^-128  2^-96  2^-64   2^-32     1    2^32    2^64    2^96
    """
    names = ", ".join(each.name for each in formats)
    blocks: list[Block] = [
        heading("Side by side: the positive numbers on a scale of powers of two"),
        ranges_axis(formats),
        hint("thin: subnormal numbers, thick: normal ones"),
        Gap(),
        heading("What tells them apart"),
        _differences(formats),
        hint(_DIGITS),
        Gap(),
        heading("Is a conversion always exact?"),
    ]
    for each in formats:
        blocks += _conversions(each, [other for other in formats if other != each])
    return Page(tuple(blocks), f"{names} side by side")


def ranges_axis(formats: list[Format]) -> Axis:
    """Draw the positive range of each format as a lane of one axis: subnormal numbers thin, normal ones thick."""
    low = min(each.least_exponent for each in formats)
    high = max(_top(each) for each in formats)

    def place(exponent: float) -> float:
        return (exponent - low) / (high - low) if high > low else 0.0

    lanes = []
    for each in formats:
        largest = line(_value(each.largest))
        spans = [AxisInterval(place(each.emin), place(_top(each)), largest, role=Role.CHANGED, heavy=True, ends=False)]
        if each.subnormals:
            low_end, label = place(each.qmin), line(f"2^{each.qmin}")
            spans.insert(0, AxisInterval(low_end, place(each.emin), label, role=Role.CHANGED, ends=False, before=True))
        lanes.append(Lane(each.name, (), tuple(spans)))
    marks = tuple(
        Mark(place(k), "┼", line("1" if not k else f"2^{k}"), role=Role.RULER, priority=_roundness(k))
        for k in _ticks(low, int(high))
    )
    return Axis((*lanes, Lane("", marks, rows=1)))


def _obstacles(narrow: Format, wide: Format) -> list[str]:
    """Return what keeps numbers of `narrow` from being numbers of `wide`, in words."""
    words = {
        Lack.DIGITS: f"significands of {counted(wide.precision, 'bit')}, not {narrow.precision}",
        Lack.LARGE: f"nothing past {_value(wide.largest)}",
        Lack.SMALL: f"nothing nearer to zero than 2^{wide.least_exponent}",
        Lack.STEPS: "coarser steps near zero",
        Lack.ZERO: "no zero",
        Lack.SIGN: "no negative numbers",
    }
    return [words[each] for each in lacks(wide, narrow)]


def _missing(narrow: Format, wide: Format) -> list[str]:
    """Return the special values that `narrow` has and `wide` has not."""
    pairs = (
        ("∞", narrow.infinities, wide.infinities),
        ("NaN", narrow.has_nan, wide.has_nan),
        ("−0", narrow.negative_zero, wide.negative_zero),
    )
    return [name for name, has, kept in pairs if has and not kept]


def _conversions(format: Format, others: list[Format]) -> list[Block]:
    """Say into which of the other formats a format's numbers go unchanged, and what is in the way elsewhere."""
    exact = [(each, _missing(format, each)) for each in others if not lacks(each, format)]
    whole = [each.name for each, missing in exact if not missing]
    words = [f"always into {listed(whole)}"] if whole else []
    words += [f"always into {each.name}, but for {listed(missing)}" for each, missing in exact if missing]
    changing = [each for each in others if lacks(each, format)]
    if len(others) < _MANY:
        words += [f"not always into {each.name}: {', '.join(_obstacles(format, each))}" for each in changing]
    elif changing:
        words.append(f"not always into {listed([each.name for each in changing])}")
    return [Row(format.name if not i else "", each) for i, each in enumerate(words)]


def _differences(formats: list[Format]) -> Table:
    rows = tuple(
        (
            Span(each.name, Role.VALUE),
            f"{each.width}",
            f"{each.precision}",
            _digits(each.precision),
            f"2^{each.least_exponent}",
            _value(each.largest),
            _above_one(each),
            specials_words(each),
        )
        for each in formats
    )
    header = ("format", "bits", "p", "digits", "smallest", "largest", "step at 1", "specials")
    return Table(header, rows, right=(1, 2))


def _digits(precision: int) -> str:
    """Return how many decimal digits survive in p binary ones, and how many it takes to tell them apart.

    These are C's FLT_DIG and FLT_DECIMAL_DIG: ⌊(p − 1)·log10 2⌋ and ⌈1 + p·log10 2⌉.
    """
    return f"{len(str(1 << precision - 1)) - 1} / {len(str(1 << precision)) + 1}"


def _above_one(format: Format) -> str:
    """Return the step from 1 to the next number up, asked from the numbers themselves."""
    one = encode("1", format)
    if not one.is_finite or one.exact != 1 or not one.next_up.is_finite:
        return "no 1"
    step = (one.next_up.exact - one.exact).normalized()
    return "1" if not step.q else f"2^{step.q}"


def _value(value: Fraction) -> str:
    """Return a number in a table's few characters: exact where it is short, else rounded after ≈."""
    exact = terminating_decimal(value, _SHORT)
    if exact is not None and len(exact) <= _SHORT:
        return exact
    return "≈ " + rounded_decimal(value, 3, positional=range(-4, _SHORT - 2))


def _top(format: Format) -> float:
    """Return log2 of the largest number."""
    from fractions import Fraction
    from math import log2

    leading = format.largest / (Fraction(2) ** format.emax)
    return format.emax + log2(leading)


def _ticks(low: int, high: int) -> list[int]:
    """Return exponents for the scale: multiples of a power of two, so that 1 is among them where it can be."""
    step = 1
    while (high - low) // step > _TICKS:
        step *= 2
    return list(range(-(-low // step) * step, high + 1, step))


def _roundness(k: int) -> int:
    """Return how round an exponent is: 0 above all, then multiples of large powers of two."""
    return (k & -k).bit_length() if k else 1 << 10
