"""A page: blocks of text whose spans have semantic roles instead of colours. Renderers do the layout."""

from __future__ import annotations

from enum import Enum

from floatlab.presenter import presenter
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Role(Enum):
    """The meaning of a span of text. A theme gives each role a colour, but colour is never the only distinction."""

    PLAIN = "plain"
    LABEL = "label"
    HEADING = "heading"
    RULER = "ruler"
    SIGN = "sign"
    EXPONENT = "exponent"
    SIGNIFICAND = "significand"
    IMPLICIT = "implicit"
    LOST = "lost"
    CHANGED = "changed"
    CODE = "code"
    VALUE = "value"
    FLAG = "flag"
    GOOD = "good"
    BAD = "bad"
    HINT = "hint"


class Span(Record):
    """Some text with one role."""

    text: str
    role: Role = Role.PLAIN


Line = tuple[Span, ...]
Text = str | Span | Line  # the types accepted as the content of a row, a note or a cell
_LEANING = "×=≈≤<"  # operators that must not end a line, since their operand follows


def line(*parts: str | Span | Line) -> Line:
    """Join texts, spans and lines into one line; a text without a span gets the role PLAIN.

    >>> line("0x", Span("3c7c", Role.CODE))[0]
    Span(text='0x', role=<Role.PLAIN: 'plain'>)
    """
    runs: list[Span] = []
    for part in parts:
        if isinstance(part, str):
            runs += [Span(part)] if part else []
        elif isinstance(part, Span):
            runs.append(part)
        else:
            runs += part
    return tuple(runs)


def as_line(content: Text) -> Line:
    """Return a text, a span or a line as a line."""
    return content if isinstance(content, tuple) else line(content)


def text_of(runs: Line) -> str:
    """Return a line's text without its roles."""
    return "".join(run.text for run in runs)


def columns_of(content: Line) -> int:
    """Return the number of columns of a line."""
    return sum(len(run.text) for run in content)


def cut_columns(runs: Line, start: int, end: int) -> Line:
    """Return the columns from `start` up to `end` of a line."""
    kept, column = [], 0
    for run in runs:
        text = run.text[max(start - column, 0) : max(end - column, 0)]
        if text:
            kept.append(Span(text, run.role))
        column += len(run.text)
    return tuple(kept)


def wrap(runs: Line, width: int) -> list[Line]:
    """Break a line into lines of at most max(width, 8) columns, at spaces if possible.

    Lines are not broken at a space after an operator or inside an expression (see `_binds`). If there is no other
    space, a line ends when it is full.
    """
    width = max(width, 8)
    text = text_of(runs)
    lines, start = [], 0
    while len(text) - start > width:
        stop = text.rfind(" ", start, start + width + 1)
        while stop > start and (text[stop - 1] in _LEANING or _binds(text, stop)):
            stop = text.rfind(" ", start, stop)
        if stop <= start:
            stop = start + width
        lines.append(cut_columns(runs, start, stop))
        start = stop
        while start < len(text) and text[start] == " ":
            start += 1
    return [*lines, cut_columns(runs, start, len(text))]


def _binds(text: str, space: int) -> bool:
    """Return whether a line must not be broken at this space, as before `= ` or `%`, or in an index `(7, 15)`."""
    if text.startswith(" = ", space):
        return text[space - 1].isalpha()
    if text.startswith((" %", " priori", " posteriori"), space):
        return True
    inside = text[text.rfind("(", 0, space) + 1 : space]
    return inside.endswith(",") and not inside.strip("0123456789, ") and text[space + 1 : space + 2].isdigit()


def padded(runs: Line, width: int, right: bool = False) -> Line:
    """Fill a line with spaces up to a width. The spaces are on the right or, if `right` is true, on the left."""
    space = width - columns_of(runs)
    if space <= 0:
        return runs
    return line(" " * space, runs) if right else line(runs, " " * space)


def aligned(rows: Sequence[Sequence[Line]], right: Sequence[int] = (), indent: int = 0) -> list[Line]:
    """Return rows of cells as lines with aligned columns; `right` are the columns that are aligned on the right."""
    widths = [max(map(columns_of, cells)) for cells in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [padded(cell, widths[i], i in right) for i, cell in enumerate(row)]
        lines.append(line(" " * indent, *(part for cell in cells[:-1] for part in (cell, "  ")), *cells[-1:]))
    return lines


class Block(Record):
    """A part of a page."""


class Row(Block):
    """A label, its content, and an optional aside (a remark, shown to the right of the content if there is room)."""

    label: str
    content: Line
    aside: Line

    def __init__(self, label: str, content: Text, aside: Text = ()) -> None:
        """Make a row of texts, spans or lines."""
        for name, value in (("label", label), ("content", as_line(content)), ("aside", as_line(aside))):
            object.__setattr__(self, name, value)


class Strip(Block):
    """Lines whose columns are aligned (ruler, field names, bits); if they are too long, all wrap at the same columns.

    `breaks` are the columns before which the lines may wrap. If the lines wrap, the label is above them. Otherwise the
    label is at the left of the last line (the bits), or of the first line if `label_first` is true.
    """

    label: str
    lines: tuple[Line, ...]
    breaks: tuple[int, ...] = ()
    aside: Line = ()
    label_first: bool = False


class Table(Block):
    """Rows of cells under a header. If the table is wider than the page, each row is shown as a list.

    A table of names sets `optional`, the columns that may be omitted, the least important first. If such a table is
    too wide, columns are omitted and the names in the first column are shortened (`page/name_tables.py`).
    """

    header: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    right: tuple[int, ...]  # right-aligned columns
    optional: tuple[int, ...] | None

    def __init__(
        self,
        header: tuple[str, ...],
        rows: Iterable[Iterable[Text]],
        right: tuple[int, ...] = (),
        optional: tuple[int, ...] | None = None,
    ) -> None:
        """Make a table of rows whose cells are texts, spans or lines."""
        cells = tuple(tuple(map(as_line, row)) for row in rows)
        for name, value in (("header", header), ("rows", cells), ("right", right), ("optional", optional)):
            object.__setattr__(self, name, value)


class Grid(Block):
    """Many small cells, in as many columns as fit; the number of columns is a power of two."""

    cells: tuple[Line, ...]


class Note(Block):
    """A sentence that wraps."""

    content: Line

    def __init__(self, content: Text) -> None:
        """Make a note from a text, a span or a line."""
        object.__setattr__(self, "content", as_line(content))


def heading(text: str) -> Note:
    """Return the title of a page or of a part of it."""
    return Note(Span(text, Role.HEADING))


def hint(text: str) -> Note:
    """Return a note that is drawn dimmed."""
    return Note(Span(text, Role.HINT))


class Pair(Block):
    """Two groups of blocks: side by side if the page is wide enough, and one below the other otherwise."""

    left: tuple[Block, ...]
    right: tuple[Block, ...]


class Fresh(Block):
    """Blocks that the previous page did not have: a mark stands before the first line of these blocks."""

    blocks: tuple[Block, ...]
    mark: str = "▸"


class Gap(Block):
    """An empty line."""


class Mark(Record):
    """A point of an axis: a symbol at a position from 0 (left) to 1 (right), with a label below it.

    If `pointer` is true, symbol and label are above the line, and beyond an end of the axis the symbol is an arrowhead.
    If labels would overlap, the labels of lower `priority` move, take their `short` form, or are omitted.
    """

    place: float
    symbol: str
    label: Line = ()
    short: Line = ()
    role: Role = Role.PLAIN
    priority: int = 0
    pointer: bool = False


class AxisInterval(Record):
    """An interval of an axis; parts outside 0 to 1 are not drawn.

    With `ends`, the interval has a bar at each end, and its label is inside. Without `ends`, the interval is a solid
    line. Its label is then on the right, or on the left if `before` is true. If there is no room on this side, the
    label is on the other side.
    """

    start: float
    end: float
    label: Line = ()
    short: Line = ()
    role: Role = Role.PLAIN
    heavy: bool = False
    ends: bool = True
    before: bool = False


class Lane(Record):
    """One row of an axis: marks on a line, their labels on at most `rows` lines below the line, then intervals."""

    label: str
    marks: tuple[Mark, ...] = ()
    spans: tuple[AxisInterval, ...] = ()
    rows: int = 3


class Axis(Block):
    """Lanes on one horizontal scale; a narrow page shows only the part `middle` of the scale."""

    lanes: tuple[Lane, ...]
    middle: tuple[float, float] = (0.0, 1.0)
    ink: str = "─━├┤┼│◀▶"  # thin, thick, left end, right end, two ends, leader, past left, past right


class Curve(Record):
    """A curve of a chart: the letter with which it is drawn, its name, and its points from left to right."""

    mark: str
    label: str
    points: tuple[tuple[float, float], ...]
    role: Role = Role.PLAIN


class Chart(Block):
    """Curves on two scales, drawn in any width. If curves coincide, their letters alternate.

    `across` and `up` name the quantities on the horizontal and on the vertical scale; either scale may be logarithmic.
    If `reference` is set, the first curve is the reference, and the others are drawn over it. With `dots`, the curves
    are lines of Braille dots, which only their colours distinguish. A legend stands above the chart if `named` is true,
    or if `dots` is true and the legend fits into one line.
    """

    curves: tuple[Curve, ...]
    across: str
    up: str
    height: int = 14
    log_across: bool = False
    log_up: bool = False
    reference: bool = False
    dots: bool = False
    named: bool = False
    ink: str = "┤│└─┼"  # vertical axis (at a tick, elsewhere), corner, horizontal axis (elsewhere, at a tick)


class Page(Record):
    """The displayed form of a result: a title and blocks of text."""

    blocks: tuple[Block, ...]
    title: str = ""

    def text(self, width: int = 80) -> str:
        """Return the page as text, `width` columns wide."""
        return presenter().text_of(self, width)

    def svg(self, width: int = 80) -> str:
        """Return the page as an SVG document."""
        return presenter().svg_of(self, width)

    def __repr__(self) -> str:
        """Return the title and the number of blocks; `print` shows the page."""
        return f"Page({self.title!r}, blocks: {len(self.blocks)})"

    def __str__(self) -> str:
        """Return the page as text, 80 columns wide."""
        return self.text().rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the page as an SVG picture, for notebooks."""
        return self.svg()


def joined(pages: list[Page]) -> Page:
    """Stack pages with a gap between them."""
    blocks: list[Block] = []
    for page in pages:
        blocks += [Gap(), *page.blocks] if blocks else page.blocks
    return Page(tuple(blocks), "; ".join(page.title for page in pages if page.title))
