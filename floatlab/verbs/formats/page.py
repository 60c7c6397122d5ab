"""The pages of `formats`: the table of all formats, one format in full, and formats side by side."""

from __future__ import annotations

from fractions import Fraction

from floatlab.errors import UnsupportedError
from floatlab.formats import CatalogRow, Format
from floatlab.formats.census import census
from floatlab.numbers import Context, Datum, Exact, encode
from floatlab.numbers.datum import exact_text, hexadecimal, hexadecimal_code, shortest
from floatlab.numbers.dialects import dialects_of
from floatlab.numbers.printing import decimal_within, rounded_decimal
from floatlab.numbers.projection import given_by_table
from floatlab.page import model
from floatlab.page.datum import bits_strip
from floatlab.page.model import Block, Line, Page, Role, Row, Span, Table, heading, hint, line
from floatlab.page.words import brief, plural

_CODE_TABLE_LIMIT = 256
_CELL = 12  # characters of a value in a code table


def _rounded(value: Fraction) -> str:
    """Return a number as text, rounded to five digits, or to three digits if the text would exceed nine characters."""
    text = rounded_decimal(value, 5)
    return text if len(text) <= 9 else rounded_decimal(value, 3)


def _shown(format: Format, magnitude: int) -> str:
    """Return the number with the code `magnitude` and sign 0, rounded to a few digits.

    If the format is defined by a table, the number can be irrational. Then a close lower bound is rounded.
    """
    datum = Datum(format, format.compose(False, magnitude))
    value = datum.bounds(64)[0].as_fraction()
    return rounded_decimal(value, 5, positional=range(-4, 6)) if format.is_table else _rounded(value)


def _count(n: int) -> str:
    return f"{n}" if n < 10_000_000 else rounded_decimal(Fraction(n), 3, positional=range(0))


def _counted(n: int, one: str, many: str = "") -> str:
    return f"{_count(n)} {plural(n, one, many)}"


def specials_words(format: Format) -> str:
    """Return the names of the special values of a format."""
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
    """Return the table of the range and precision of formats."""
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
    """Return a table that says, for each format, how many of its codes are zeros, normal numbers, NaNs and so on."""
    header = ("format", "zeros", "subnormals", "normals", "∞", "NaNs", "specials")
    found = []
    for row in rows:
        count = census(row.format)
        counts = (count.zeros, count.subnormals, count.normals, count.infinities, count.nans)
        found.append((_name(row), *(line(_count(n)) for n in counts), line(specials_words(row.format))))
    return Table(header, found, right=(1, 2, 3, 4, 5))


def _tables(rows: list[CatalogRow]) -> Table:
    """Return a page table with the ranges and special values of formats that are defined by a table of numbers."""
    found = []
    for row in rows:
        f = row.format
        largest, smallest = (_shown(f, each) for each in (f.largest_magnitude, 1))
        cells = (str(f.width), str(f.precision), largest, smallest, specials_words(f))
        found.append((_name(row), *(line(cell) for cell in cells)))
    return Table(("format", "bits", "p", "largest", "smallest", "specials"), found, right=(1, 2))


def formats_table(rows: list[CatalogRow]) -> Table:
    """Return one wide table of ranges and codes, for a window that scrolls.

    >>> from floatlab.formats import CATALOG
    >>> formats_table(list(CATALOG)).header[6:11]
    ('normal', 'subnormal', 'zeros', 'subnormals', 'normals')
    """
    ranges, codes = _ranges(rows), _codes(rows)
    shift = len(ranges.header) - 1  # both tables have the column of names
    return Table(
        ranges.header + codes.header[1:],
        tuple((*left, *right[1:]) for left, right in zip(ranges.rows, codes.rows, strict=True)),
        ranges.right + tuple(shift + column for column in codes.right),
    )


def formats_page(rows: list[CatalogRow]) -> Page:
    """Return the page of all formats."""
    others = (
        "Also p3109_k<K>p<P><s|u><e|f> (Binary<K>p…), any e<W>m<T>[fn|f|fnuz][_ieee], any ue<W>m<T>. Numbers "
        "in this table are rounded; floatlab formats NAME gives one format exactly, with its source. Recipes with "
        "scales, such as mxfp4, nvfp4, nvfp4/16x16, e4m3/tensor or e4m3/128x128:te, are shown with their scale rules."
    )
    ranges = heading("Ranges: digits, exponents, the largest number, the smallest normal and subnormal numbers")
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
    """Return the result of encoding a literal in the format, as text."""
    try:
        result = encode(literal, format, context or Context())
    except UnsupportedError as error:
        return f"refused: {error}"
    return f"{hexadecimal_code(result)} {brief(result)}"


def disputed_results(format: Format) -> list[tuple[str, str]]:
    """Return rows with the format's results in cases in which libraries disagree, such as overflow and ties."""
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
        found.append(("0", f"{kept['largest']} (has no zero; 0 becomes the smallest) · --absent nan: {kept['nan']}"))
    if not format.signed:
        kept = {rule: brief(encode("-1", format, Context(negative=rule))) for rule in ("zero", "drop")}
        dialects = f"--negative zero: {kept['zero']} · drop: {kept['drop']}"
        found.append(("-1", f"{_stands_for(format, '-1')} (has no sign) · {dialects}"))
    if format.is_p3109:
        found += _saturation(format, beyond)
    if format.precision == 1:
        tie = "to the even code (P3109)" if format.ties_to_even_code else "to the larger (IEEE 754-2019 4.3.1)"
        found.append(("ties", tie))
    if format.ieee_nans:
        most = format.quiet_bit - 1
        found.append(("payloads", f"quiet 0 to {most:#x}, signaling 1 to {most:#x}"))
    else:
        found.append(("payloads", "none; no signaling NaN" if format.has_nan else "none"))
    if format.explicit_integer_bit:
        found.append(("spare codes", "integer bit 0 with E > 0 is unsupported; integer bit 1 with E 0 is read as E 1"))
    return found


def _saturation(format: Format, beyond: Exact) -> list[tuple[str, str]]:
    """Return the results of P3109's saturation rules.

    If P3109's executable specification gives another result, return this result, too.
    """
    found: dict[str, str] = {}
    for rule in ("saturate", "propagate", "none", "none-nan"):
        context = Context(overflow=rule)
        values = {"beyond": encode(beyond, format, context)}
        values["to odd"] = encode(beyond, format, context.replace(rounding="RTO"))
        values |= {text: encode(text, format, context) for text in ("inf", "-inf", *([] if format.signed else ["-1"]))}
        found[rule] = f"--overflow {rule}: " + ", ".join(f"{given} → {brief(x)}" for given, x in values.items())
    *report, specification = found.values()
    rows = list(zip(("SatFinite", "SatPropagate", "SatNone"), report, strict=True))
    if specification.partition(": ")[2] != report[-1].partition(": ")[2]:
        rows.append(("", f"in the executable specification (July 2026), {specification}"))
    return rows


def _dialects(format: Format) -> list[Block]:
    """Return rows on each dialect (the rules of a processor or library): results in special cases, and the source."""
    rows: list[Block] = []
    for dialect in dialects_of(format):
        context = dialect.context(format, Context())
        beyond = Datum(format, format.compose(False, format.largest_magnitude)).exact
        values = {"beyond": encode(beyond + beyond, format, context)}
        values |= {text: encode(text, format, context) for text in ("inf", "nan", *([] if format.signed else ["-1"]))}
        gives = ", ".join(f"{given} → {hexadecimal_code(x)} {brief(x)}" for given, x in values.items())
        rows.append(Row("--as", line(Span(dialect.name, Role.CODE), f": {gives}")))
        rows.append(Row("", hint(f"{dialect.words}; {dialect.source}").content))
        if dialect.left:
            rows.append(Row("", hint(f"not modelled: {dialect.left}").content))
    return rows


def format_page(row: CatalogRow) -> Page:
    """Return the full page of one format. If the format has at most 256 codes, the page has a table of them."""
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
    blocks += [model.Gap(), heading("Cases in which libraries disagree: the results here")]
    blocks += [Row(label, answer) for label, answer in disputed_results(f)]
    if rows := _dialects(f):
        blocks += [model.Gap(), heading("Rounding rules of processors and libraries (--as NAME)"), *rows]
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
