"""The pages of `formats`: the table of all formats, and one format in full."""

from __future__ import annotations

from floatlab.formats import CatalogRow, Format
from floatlab.formats.census import census
from floatlab.numbers import Context, Datum, encode
from floatlab.numbers.datum import exact_text, hexadecimal, hexadecimal_code, shortest, special_text
from floatlab.numbers.decimals import decimal_within, rounded_decimal
from floatlab.page.datum import bits_strip
from floatlab.page.model import Block, Gap, Grid, Line, Note, Page, Role, Row, Span, Table, heading, hint, line
from floatlab.page.words import brief, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction


_CODE_TABLE_LIMIT = 256
_CELL = 12  # characters of a value in a code table


def _rounded(value: Fraction) -> str:
    """Return a number in a table's few characters: exact where it is short."""
    text = rounded_decimal(value, 5)
    return text if len(text) <= 9 else rounded_decimal(value, 3)


def _count(n: int) -> str:
    from fractions import Fraction

    return f"{n}" if n < 10_000_000 else rounded_decimal(Fraction(n), 3, positional=range(0))


def _counted(n: int, one: str, many: str = "") -> str:
    return f"{_count(n)} {plural(n, one, many)}"


def specials_words(format: Format) -> str:
    """Name the special values that a format has."""
    words = ["∞"] if format.infinities else []
    if format.nan_in_place_of_negative_zero:
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
    """Return how far each format reaches, and how finely."""
    header = ("format", "bits", "p", "emin", "emax", "largest", "normal", "subnormal")
    found = []
    for row in rows:
        f = row.format
        cells = (
            str(f.width), str(f.precision), str(f.emin), str(f.emax),
            _rounded(f.largest), _rounded(f.smallest_normal), _rounded(f.smallest) if f.subnormals else "none",
        )  # fmt: skip
        found.append((_name(row), *(line(cell) for cell in cells)))
    return Table(header, found, right=(1, 2, 3, 4))


def _codes(rows: list[CatalogRow]) -> Table:
    """Return what the codes of each format are spent on."""
    header = ("format", "zeros", "subnormals", "normals", "∞", "NaNs", "specials")
    found = []
    for row in rows:
        count = census(row.format)
        counts = (count.zeros, count.subnormals, count.normals, count.infinities, count.nans)
        found.append((_name(row), *(line(_count(n)) for n in counts), line(specials_words(row.format))))
    return Table(header, found, right=(1, 2, 3, 4, 5))


def formats_table(rows: list[CatalogRow]) -> Table:
    """Return all that the tables of `formats_page` say in one table, for a window that moves over it.

    >>> from floatlab.formats import CATALOG
    >>> formats_table(list(CATALOG)).header[6:11]
    ('normal', 'subnormal', 'zeros', 'subnormals', 'normals')
    """
    ranges, codes = _ranges(rows), _codes(rows)
    shift = len(ranges.header) - 1  # both have the name
    return Table(
        ranges.header + codes.header[1:],
        tuple((*left, *right[1:]) for left, right in zip(ranges.rows, codes.rows, strict=True)),
        ranges.right + tuple(shift + column for column in codes.right),
    )


def formats_page(rows: list[CatalogRow]) -> Page:
    """Return the tables of formats: ranges first, then what the codes are spent on."""
    others = (
        "Also p3109_k<K>p<P><s|u><e|f>, and any e<W>m<T>[fn|f|fnuz][_ieee]. Numbers in this table are rounded; "
        "floatlab formats NAME gives one format exactly, with its source."
    )
    ranges = "Ranges: digits, exponents, the largest number, the smallest normal and subnormal"
    blocks = (
        heading(ranges),
        _ranges(rows),
        Gap(),
        heading("Codes per class, both signs together"),
        _codes(rows),
        Gap(),
        hint(others),
    )
    return Page(blocks, "the formats that have names")


def _landmark(label: str, format: Format, magnitude: int) -> list[Block]:
    datum = Datum(format, format.compose(False, magnitude))
    value = exact_text(datum, 60)
    return [
        Row(label, line(Span(hexadecimal_code(datum), Role.CODE), " ", Span(hexadecimal(datum), Role.PLAIN))),
        Row("", Span(value, Role.VALUE)),
    ]


def _stands_for(format: Format, literal: str, context: Context | None = None) -> str:
    """Say what a literal becomes in the format, by asking."""
    from floatlab.errors import UnsupportedError

    try:
        result = encode(literal, format, context or Context())
    except UnsupportedError as error:
        return f"refused: {error}"
    return f"{hexadecimal_code(result)} {brief(result)}"


def answers(format: Format) -> list[tuple[str, str]]:
    """Return the format's answers where libraries disagree, each computed, not written down."""
    one_beyond = Datum(format, format.compose(False, format.largest_magnitude)).exact
    beyond = one_beyond + one_beyond
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
    """Return one format in full, with its code table where it has at most 256 codes."""
    f = row.format
    count = census(f)
    one = encode("1", f)
    blocks: list[Block] = [
        Note(line(Span(f.name, Role.HEADING), f"  {row.purpose}")),
        bits_strip(one, "", line(Span(hexadecimal_code(one), Role.CODE), f" = {shortest(one)}")),
        Row("also called", ", ".join(row.aliases) if row.aliases else "no other name"),
        Row("source", row.source),
        Row("precision", line(f"p = {_counted(f.precision, 'digit')}, the hidden one included")
            if not f.explicit_integer_bit else line(f"p = {f.precision} digits, all of them stored")),
        Row("exponent", f"{f.exponent_bits} bits, bias {f.bias}, emin {f.emin}, emax {f.emax}"),
        *_landmark("largest", f, f.largest_magnitude),
        *_landmark("normal", f, f.smallest_normal_magnitude),
    ]  # fmt: skip
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
    blocks += [Gap(), heading("Where libraries disagree, this is the answer here")]
    blocks += [Row(label, answer) for label, answer in answers(f)]
    if 1 << f.width <= _CODE_TABLE_LIMIT:
        blocks += [Gap(), heading("Every code"), Grid(tuple(_cells(f)))]
    return Page(tuple(blocks), f"the format {f.name}")


def _cells(format: Format) -> list[Line]:
    cells = []
    for code in range(1 << format.width):
        datum = Datum(format, code)
        value = decimal_within(datum.exact, _CELL) if datum.is_finite else special_text(datum)
        if value is None:
            x = datum.exact.normalized()
            value = f"{'-' * x.negative}2^{x.q}" if x.c == 1 else shortest(datum)
        cells.append(line(Span(hexadecimal_code(datum), Role.CODE), f" {value}"))
    return cells
