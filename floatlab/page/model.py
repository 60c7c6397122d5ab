"""A page: an answer as blocks of text whose runs carry roles, not colours. Renderers give it a shape."""

from __future__ import annotations

from enum import Enum

from floatlab.presenter import presenter
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Role(Enum):
    """What a run of text is, for a theme to colour; nothing depends on the colour alone."""

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
Text = str | Span | Line  # what a row, a note or a cell may be made of
_LEANING = "×=≈≤<"  # signs that do not end a line: what they belong to comes after them


def line(*parts: str | Span | Line) -> Line:
    """Join text, runs and lines into one line; bare text is plain.

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
    """Return text, a run or a line as a line."""
    return content if isinstance(content, tuple) else line(content)


def text_of(runs: Line) -> str:
    """Return a line's text without its roles."""
    return "".join(run.text for run in runs)


def columns_of(content: Line) -> int:
    """Return how many columns a line takes."""
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
    """Break a line at spaces, and inside a word only where it is wider than the whole width."""
    width = max(width, 8)
    text = text_of(runs)
    lines, start = [], 0
    while len(text) - start > width:
        stop = text.rfind(" ", start, start + width + 1)
        while stop > start and text[stop - 1] in _LEANING:
            stop = text.rfind(" ", start, stop)
        if stop <= start:
            stop = start + width
        lines.append(cut_columns(runs, start, stop))
        start = stop
        while start < len(text) and text[start] == " ":
            start += 1
    return [*lines, cut_columns(runs, start, len(text))]


class Block(Record):
    """A part of a page."""


class Row(Block):
    """A label, what it is, and something to be seen beside it where there is room."""

    label: str
    content: Line
    aside: Line

    def __init__(self, label: str, content: Text, aside: Text = ()) -> None:
        """Make a row of texts, runs or lines."""
        for name, value in (("label", label), ("content", as_line(content)), ("aside", as_line(aside))):
            object.__setattr__(self, name, value)


class Strip(Block):
    """Parallel lines whose columns belong together (ruler, field names, bits): they wrap together.

    `breaks` are the columns before which they may wrap; the label stands before the last line, the
    one to read, or before the first.
    """

    label: str
    lines: tuple[Line, ...]
    breaks: tuple[int, ...] = ()
    aside: Line = ()
    label_first: bool = False


class Table(Block):
    """Rows of cells under a header; a renderer too narrow for it shows each row as a list."""

    header: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]
    right: tuple[int, ...]  # columns that are flush right

    def __init__(self, header: tuple[str, ...], rows: Iterable[Iterable[Text]], right: tuple[int, ...] = ()) -> None:
        """Make a table of rows whose cells are texts, runs or lines."""
        cells = tuple(tuple(map(as_line, row)) for row in rows)
        for name, value in (("header", header), ("rows", cells), ("right", right)):
            object.__setattr__(self, name, value)


class Grid(Block):
    """Many small cells, set in as many columns as there is room for."""

    cells: tuple[Line, ...]


class Note(Block):
    """A sentence that wraps."""

    content: Line

    def __init__(self, content: Text) -> None:
        """Make a note of a text, a run or a line."""
        object.__setattr__(self, "content", as_line(content))


def heading(text: str) -> Note:
    """Return a title, of a page or of a part of it."""
    return Note(Span(text, Role.HEADING))


def hint(text: str) -> Note:
    """Return a remark that may be passed over."""
    return Note(Span(text, Role.HINT))


class Pair(Block):
    """Two pages side by side where there is room, else one below the other."""

    left: tuple[Block, ...]
    right: tuple[Block, ...]


class Fresh(Block):
    """What is new on a page that grows: drawn as it is, with a mark before its first line."""

    blocks: tuple[Block, ...]
    mark: str = "▸"


class Gap(Block):
    """An empty line."""


class Mark(Record):
    """A point of an axis: a symbol at a place from 0 (left) to 1 (right), with a label under it.

    A `pointer` stands above the line instead, and shows where it points even past an end. Where labels
    would overlap, those of lower `priority` move, take their `short` form, or go.
    """

    place: float
    symbol: str
    label: Line = ()
    short: Line = ()
    role: Role = Role.PLAIN
    priority: int = 0
    pointer: bool = False


class AxisInterval(Record):
    """A stretch of an axis from one place to another; what lies outside 0 to 1 is not drawn.

    With `ends` it is a bin between two bars, its label inside; without, a bar with its label after it, or
    `before` it, or where there is room.
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
    """One row of an axis: marks on a line with their labels on at most `rows` lines below it, then spans."""

    label: str
    marks: tuple[Mark, ...] = ()
    spans: tuple[AxisInterval, ...] = ()
    rows: int = 3


class Axis(Block):
    """Lanes on one horizontal scale, drawn to whatever width there is; `middle` is what little room shows."""

    lanes: tuple[Lane, ...]
    middle: tuple[float, float] = (0.0, 1.0)
    ink: str = "─━├┤┼│◀▶"  # thin, thick, the ends of a bin, where two meet, a leader, past the left and the right end


class Curve(Record):
    """A line of a chart: the letter that draws it, what it is called, and its points from left to right."""

    mark: str
    label: str
    points: tuple[tuple[float, float], ...]
    role: Role = Role.PLAIN


class Chart(Block):
    """Curves on two scales, drawn to whatever width there is; where curves coincide their letters take turns.

    `across` and `up` name what the scales measure, either of which may be logarithmic. The first curve gives way where
    it is a `reference`: the others are drawn over it.
    """

    curves: tuple[Curve, ...]
    across: str
    up: str
    height: int = 14
    log_across: bool = False
    log_up: bool = False
    reference: bool = False
    ink: str = "┤│└─┼"  # the scale upwards where it is marked, and where not, the corner, the scale across, marks on it


class Page(Record):
    """An answer to look at."""

    blocks: tuple[Block, ...]
    title: str = ""

    def text(self, width: int = 80) -> str:
        """Return the page as text, `width` columns wide."""
        return presenter().text_of(self, width)

    def svg(self, width: int = 80) -> str:
        """Return the page as an SVG document."""
        return presenter().svg_of(self, width)

    def __repr__(self) -> str:
        """Show what the page is about; `print` shows the page."""
        return f"Page({self.title!r}, blocks: {len(self.blocks)})"

    def __str__(self) -> str:
        """Return the page as text, 80 columns wide."""
        return self.text().rstrip("\n")

    def _repr_html_(self) -> str:
        """Return the picture for notebooks."""
        return self.svg()


def joined(pages: list[Page]) -> Page:
    """Stack pages with a gap between them."""
    blocks: list[Block] = []
    for page in pages:
        blocks += [Gap(), *page.blocks] if blocks else page.blocks
    return Page(tuple(blocks), "; ".join(page.title for page in pages if page.title))
