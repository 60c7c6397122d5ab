"""The pages of `formats`: the table of all formats, one format in full, and formats side by side."""

from __future__ import annotations

from fractions import Fraction
from math import log2

from floatlab.arith import Lack, lacks
from floatlab.errors import UnsupportedError
from floatlab.formats import CatalogRow, Format
from floatlab.formats.census import census
from floatlab.numbers import Context, Datum, encode
from floatlab.numbers.datum import exact_text, hexadecimal, hexadecimal_code, shortest
from floatlab.numbers.decimals import decimal_within, rounded_decimal, terminating_decimal
from floatlab.numbers.projection import given_by_table
from floatlab.page import model
from floatlab.page.datum import bits_strip
from floatlab.page.model import AxisInterval, Block, Line, Page, Role, Row, Span, Table, heading, hint, line
from floatlab.page.words import brief, counted, listed, plural

_CODE_TABLE_LIMIT = 256
_CELL = 12  # characters of a value in a code table
_TICKS = 8  # the approximate maximum of ticks on the scale
_MANY = 3  # with this many other formats or more, reasons are left out
_SHORT = 9  # characters of a number in the table
_DIGITS = (
    "digits: decimals of up to the first number of digits come back unchanged (if they are in the range of normal "
    "numbers); with the second number of digits, no two numbers read the same"
)


def _rounded(value: Fraction) -> str:
    """Return a number in a table's few characters: exact if it is short."""
    text = rounded_decimal(value, 5)
    return text if len(text) <= 9 else rounded_decimal(value, 3)


def _shown(format: Format, magnitude: int) -> str:
    """Return a positive number in a table's few characters, also if it is irrational."""
    datum = Datum(format, format.compose(False, magnitude))
    value = datum.bounds(64)[0].as_fraction()
    return rounded_decimal(value, 5, positional=range(-4, 6)) if format.is_table else _rounded(value)


def _count(n: int) -> str:
    return f"{n}" if n < 10_000_000 else rounded_decimal(Fraction(n), 3, positional=range(0))


def _counted(n: int, one: str, many: str = "") -> str:
    return f"{_count(n)} {plural(n, one, many)}"


def specials_words(format: Format) -> str:
    """Name the special values of a format."""
    words = ["∞"] if format.infinities else []
    if format.saturates and format.has_nan:
        words.append("NaR")
    elif format.nan_in_place_of_negative_zero:
        words.append("NaN for −0")
    elif format.nans:
        words.append("NaN" if format.nans == 1 else "NaNs")
    if format.negative_zero:
        words.append("±0")
    elif format.zero:
        words.append("0")
    else:
        words.append("no 0")
    return " ".join(words)


def _name(row: CatalogRow) -> Line:
    return line(Span(row.format.name, Role.VALUE))


def _ranges(rows: list[CatalogRow]) -> Table:
    """Return the range and the precision of each format."""
    header = ("format", "bits", "p", "emin", "emax", "largest", "normal", "subnormal")
    found = []
    for row in rows:
        f = row.format
        cells = (
            str(f.width), str(f.precision), str(f.emin), str(f.emax),
            _shown(f, f.largest_magnitude), _shown(f, f.smallest_normal_magnitude),
            _shown(f, f.smallest_magnitude) if f.subnormals else "none",
        )  # fmt: skip
        found.append((_name(row), *(line(cell) for cell in cells)))
    return Table(header, found, right=(1, 2, 3, 4))


def _codes(rows: list[CatalogRow]) -> Table:
    """Return the number of codes of each kind in each format."""
    header = ("format", "zeros", "subnormals", "normals", "∞", "NaNs", "specials")
    found = []
    for row in rows:
        count = census(row.format)
        counts = (count.zeros, count.subnormals, count.normals, count.infinities, count.nans)
        found.append((_name(row), *(line(_count(n)) for n in counts), line(specials_words(row.format))))
    return Table(header, found, right=(1, 2, 3, 4, 5))


def _tables(rows: list[CatalogRow]) -> Table:
    """Return the range and the special values of formats given by a table."""
    found = []
    for row in rows:
        f = row.format
        largest, smallest = (_shown(f, each) for each in (f.largest_magnitude, 1))
        cells = (str(f.width), str(f.precision), largest, smallest, specials_words(f))
        found.append((_name(row), *(line(cell) for cell in cells)))
    return Table(("format", "bits", "p", "largest", "smallest", "specials"), found, right=(1, 2))


def formats_table(rows: list[CatalogRow]) -> Table:
    """Return the tables of `formats_page` as one table, for a scrolling window.

    >>> from floatlab.formats import CATALOG
    >>> formats_table(list(CATALOG)).header[6:11]
    ('normal', 'subnormal', 'zeros', 'subnormals', 'normals')
    """
    ranges, codes = _ranges(rows), _codes(rows)
    shift = len(ranges.header) - 1  # both have the name column
    return Table(
        ranges.header + codes.header[1:],
        tuple((*left, *right[1:]) for left, right in zip(ranges.rows, codes.rows, strict=True)),
        ranges.right + tuple(shift + column for column in codes.right),
    )


def formats_page(rows: list[CatalogRow]) -> Page:
    """Return the tables of formats: first the ranges, then the use of the codes."""
    others = (
        "Also p3109_k<K>p<P><s|u><e|f>, and any e<W>m<T>[fn|f|fnuz][_ieee]. Numbers in this table are rounded; "
        "floatlab formats NAME gives one format exactly, with its source."
    )
    ranges = heading("Ranges: digits, exponents, the largest number, the smallest normal and subnormal")
    codes = heading("Codes per class, both signs together")
    tables = [row for row in rows if row.format.is_table]
    rows = [row for row in rows if not row.format.is_table]
    blocks = [ranges, _ranges(rows), model.Gap(), codes, _codes(rows), model.Gap()]
    if tables:
        title = "Formats given by a table of values: the most digits, the largest and the smallest positive number"
        blocks += [heading(title), _tables(tables), model.Gap()]
    return Page((*blocks, hint(others)), "the formats that have names")


def _landmark(label: str, format: Format, magnitude: int) -> list[Block]:
    datum = Datum(format, format.compose(False, magnitude))
    value = exact_text(datum, 60)
    short = brief(datum) if datum.symbol else hexadecimal(datum)
    return [
        Row(label, line(Span(hexadecimal_code(datum), Role.CODE), " ", Span(short, Role.PLAIN))),
        Row("", Span(value, Role.VALUE)),
    ]


def _stands_for(format: Format, literal: str, context: Context | None = None) -> str:
    """Describe the result of encoding a literal in the format."""
    try:
        result = encode(literal, format, context or Context())
    except UnsupportedError as error:
        return f"refused: {error}"
    return f"{hexadecimal_code(result)} {brief(result)}"


def answers(format: Format) -> list[tuple[str, str]]:
    """Return the format's behaviour where libraries disagree; every entry is computed, not written down."""
    largest = Datum(format, format.compose(False, format.largest_magnitude)).bounds(format.precision)[1]
    beyond = largest + largest
    over = " · ".join(
        f"{rule}: {brief(encode(beyond, format, Context(overflow=rule)))}" for rule in ("native", "saturate")
    )
    toward_zero = brief(encode(beyond, format, Context(rounding="RTZ")))
    found = [
        ("overflow", f"{over} · RTZ and RTO: {toward_zero}"),
        ("inf", _stands_for(format, "inf") + ("" if format.infinities else " (has no ∞)")),
        ("nan", _stands_for(format, "nan") + ("" if format.has_nan else " (has no NaN)")),
        ("-0", _stands_for(format, "-0") + ("" if format.negative_zero else " (has no −0)")),
    ]
    if given_by_table(format):
        return [*found, ("nearest", format.nearest), ("payloads", "none")]
    if not format.zero:
        kept = {rule: _stands_for(format, "0", Context(absent=rule)) for rule in ("largest", "nan")}
        found.append(("0", f"{kept['largest']} (has no zero: the smallest) · --absent nan: {kept['nan']}"))
    if not format.signed:
        found.append(("-1", f"{_stands_for(format, '-1')} (has no sign)"))
    if format.precision == 1:
        tie = "to the even code (P3109)" if format.ties_to_even_code else "to the larger (IEEE 754-2019 4.3.1)"
        found.append(("ties", tie))
    if format.ieee_nans:
        most = format.quiet_bit - 1
        found.append(("payloads", f"quiet 0 to {most:#x}, signaling 1 to {most:#x}"))
    else:
        found.append(("payloads", "none; no signaling NaN" if format.has_nan else "none"))
    if format.explicit_integer_bit:
        found.append(("spare codes", "integer bit 0 over E > 0 is unsupported; 1 over E 0 reads as E 1"))
    return found


def format_page(row: CatalogRow) -> Page:
    """Return one format in full, with its code table if it has at most 256 codes."""
    f = row.format
    count = census(f)
    one = encode("1", f)
    if f.is_table:
        lengths: list[Block] = [
            Row("precision", f"p is at most {f.precision} digits; it falls with the distance from 1")
            if f.saturates and f.has_nan else Row("precision", f"p is at most {f.precision} digits"),
        ]  # fmt: skip
    else:
        hidden = f"p = {_counted(f.precision, 'digit')}, the hidden one included"
        stored = f"p = {f.precision} digits, all of them stored"
        lengths = [
            Row("precision", line(stored if f.explicit_integer_bit else hidden)),
            Row("exponent", f"{f.exponent_bits} bits, bias {f.bias}, emin {f.emin}, emax {f.emax}"),
        ]
    blocks: list[Block] = [
        model.Note(line(Span(f.name, Role.HEADING), f"  {row.purpose}")),
        bits_strip(one, "", line(Span(hexadecimal_code(one), Role.CODE), f" = {shortest(one)}")),
        Row("also called", ", ".join(row.aliases) if row.aliases else "no other name"),
        Row("source", row.source),
        *lengths,
        *_landmark("largest", f, f.largest_magnitude),
        *_landmark("smallest" if f.is_table and not f.subnormals else "normal", f, f.smallest_normal_magnitude),
    ]
    if f.subnormals:
        blocks += _landmark("subnormal", f, f.smallest_magnitude)
    kinds = (("zero", "zeros"), ("subnormal", "subnormals"), ("normal", "normals"), ("infinity", "infinities"))
    totals = (count.zeros, count.subnormals, count.normals, count.infinities, count.nans)
    counted = ", ".join(
        _counted(total, one, many) for total, (one, many) in zip(totals, (*kinds, ("NaN", "NaNs")), strict=True)
    )
    if count.unsupported:
        counted += f", {_count(count.unsupported)} that are not canonical"
    blocks.append(Row("codes", counted))
    blocks += [model.Gap(), heading("Where libraries disagree, this is the answer here")]
    blocks += [Row(label, answer) for label, answer in answers(f)]
    if 1 << f.width <= _CODE_TABLE_LIMIT:
        blocks += [model.Gap(), heading("Every code"), model.Grid(tuple(_cells(f)))]
    return Page(tuple(blocks), f"the format {f.name}")


def _cells(format: Format) -> list[Line]:
    cells = []
    for code in range(1 << format.width):
        datum = Datum(format, code)
        exact = datum.is_finite and not datum.symbol
        value = decimal_within(datum.exact, _CELL) if exact else shortest(datum)
        if value is None:
            x = datum.exact.normalized()
            value = f"{'-' * x.negative}2^{x.q}" if x.c == 1 else shortest(datum)
        cells.append(line(Span(hexadecimal_code(datum), Role.CODE), f" {value}"))
    return cells


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
    scale = heading("Side by side: the positive numbers on a scale of powers of two")
    key = hint("thin: subnormal numbers, thick: normal ones")
    blocks: list[Block] = [scale, ranges_axis(formats), key, model.Gap()]
    blocks += [heading("What tells them apart"), _differences(formats), hint(_DIGITS), model.Gap()]
    blocks.append(heading("Is a conversion always exact?"))
    for each in formats:
        blocks += _conversions(each, [other for other in formats if other != each])
    return Page(tuple(blocks), f"{names} side by side")


def ranges_axis(formats: list[Format]) -> model.Axis:
    """Draw the positive range of each format as a lane of one axis: subnormal numbers thin, normal ones thick."""
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
    """Return the reasons why numbers of `narrow` may not be numbers of `wide`, in words."""
    words = {
        Lack.DIGITS: f"significands of {counted(wide.precision, 'bit')}, not {narrow.precision}",
        Lack.LARGE: f"nothing past {_largest(wide)}",
        Lack.ENTRIES: "other numbers in its table",
        Lack.SMALL: f"nothing nearer to zero than 2^{wide.least_exponent}",
        Lack.STEPS: "coarser steps near zero",
        Lack.ZERO: "no zero",
        Lack.SIGN: "no negative numbers",
    }
    return [words[each] for each in lacks(wide, narrow)]


def _missing(narrow: Format, wide: Format) -> list[str]:
    """Return the special values that `narrow` has but `wide` lacks."""
    specials = {"∞": "infinities", "NaN": "has_nan", "−0": "negative_zero"}
    return [name for name, has in specials.items() if getattr(narrow, has) and not getattr(wide, has)]


def _conversions(format: Format, others: list[Format]) -> list[Block]:
    """List the other formats that represent all numbers of a format exactly, and the obstacles in the others."""
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
    rows = []
    for each in formats:
        digits = "vary" if each.is_table else _digits(each.precision)
        sizes = (f"{each.width}", f"{each.precision}", digits)
        reach = (f"2^{each.least_exponent}", _largest(each), _above_one(each))
        rows.append((Span(each.name, Role.VALUE), *sizes, *reach, specials_words(each)))
    header = ("format", "bits", "p", "digits", "smallest", "largest", "step at 1", "specials")
    return Table(header, rows, right=(1, 2))


def _digits(precision: int) -> str:
    """Return how many decimal digits survive in a p-bit significand, and how many identify each number.

    These are C's FLT_DIG and FLT_DECIMAL_DIG: ⌊(p − 1)·log10 2⌋ and ⌈1 + p·log10 2⌉.
    """
    return f"{len(str(1 << precision - 1)) - 1} / {len(str(1 << precision)) + 1}"


def _above_one(format: Format) -> str:
    """Return the step from 1 to the next number, computed by `next_up`."""
    one = encode("1", format)
    if not one.is_finite or one.exact != 1 or not one.next_up.is_finite or one.next_up == one:
        return "no 1"
    if one.next_up.symbol:
        return _value((one.next_up.bounds(64)[0] - one.exact).as_fraction())
    step = (one.next_up.exact - one.exact).normalized()
    return "1" if not step.q else f"2^{step.q}"


def _value(value: Fraction) -> str:
    """Return a number in a table's few characters: exact if it is short, else rounded after ≈."""
    exact = terminating_decimal(value, _SHORT)
    if exact is not None and len(exact) <= _SHORT:
        return exact
    return "≈ " + rounded_decimal(value, 3, positional=range(-4, _SHORT - 2))


def _largest(format: Format) -> str:
    """Return the largest number in a table's few characters, rounded if it is irrational."""
    datum = Datum(format, format.compose(False, format.largest_magnitude))
    return _value(datum.bounds(64)[0].as_fraction())


def _top(format: Format) -> float:
    """Return log2 of the largest number."""
    largest = Datum(format, format.compose(False, format.largest_magnitude)).bounds(64)[0].as_fraction()
    leading = largest / (Fraction(2) ** format.emax)
    return format.emax + log2(leading)


def _ticks(low: int, high: int) -> list[int]:
    """Return exponents for the scale: multiples of a power of two, with 1 among the marks if possible."""
    step = 1
    while (high - low) // step > _TICKS:
        step *= 2
    return list(range(-(-low // step) * step, high + 1, step))


def _roundness(k: int) -> int:
    """Return a sort key for round exponents: 0 comes first, then multiples of large powers of two."""
    return (k & -k).bit_length() if k else 1 << 10
