"""Layout of a page in a given width, for text, SVG pictures and widgets; and output of the page as terminal text."""

from __future__ import annotations

from operator import is_

from floatlab.errors import printable
from floatlab.page import model
from floatlab.page.model import (
    Block,
    Line,
    Page,
    Role,
    Span,
    aligned,
    columns_of,
    cut_columns,
    line,
    padded,
    text_of,
    wrap,
)
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

INDENT = 2
LABEL = 13
ASIDE = INDENT + LABEL + 27  # the column where asides line up
WIDE = 110  # from this width on, the two parts of a `Pair` are side by side
_BETWEEN = 3
LEAST = 20  # least width of a layout in columns; a narrower window shows only a part of it
NARROW = 40  # if the width is smaller than this, a label has its own line
_SPACES = Span("  ")


def set_page(page: Page, width: int) -> list[Line]:
    """Return the page as lines of at most max(width, LEAST) columns; a long word in a table may exceed this width.

    Names on a page may be untrusted, so control characters in the text are escaped.
    """
    return _set_blocks(rewritten(page.blocks, str.isprintable, printable), max(width, LEAST))


def rewritten(part: Any, stays: Callable[[str], bool], change: Callable[[str], str]) -> Any:
    """Return a part of a page, with `change` applied to every text for which `stays` is false.

    Call this function before the page is laid out, because `change` may change the lengths of texts.
    """
    if isinstance(part, str):
        return part if stays(part) else change(part)
    if isinstance(part, tuple):
        parts = tuple([rewritten(each, stays, change) for each in part])
        return part if all(map(is_, parts, part)) else parts
    if isinstance(part, Record):
        fields = ("mark", "label") if isinstance(part, model.Curve) else part._fields  # points contain no text
        old = {name: getattr(part, name) for name in fields}
        new = {name: text for name in fields if (text := rewritten(old[name], stays, change)) is not old[name]}
        return part.replace(**new) if new else part
    return part


def _set_blocks(blocks: tuple[Block, ...], width: int) -> list[Line]:
    lines: list[Line] = []
    for block in blocks:
        lines += _SETTERS[type(block)](block, width)
    return lines


def _labelled(label: str, content: list[Line], width: int) -> list[Line]:
    """Put a label before the first line, or above it if the label is long or the width is below NARROW."""
    if width < NARROW:
        head = [line(_SPACES, Span(label, Role.LABEL))] if label else []
        return head + [line(" " * (2 * INDENT), each) for each in content]
    if len(label) >= LABEL:
        return [line(_SPACES, Span(label, Role.LABEL)), *_labelled("", content, width)]
    margin = " " * INDENT
    first = line(margin, Span(f"{label:<{LABEL - 1}} ", Role.LABEL), content[0])
    return [first, *(line(" " * (INDENT + LABEL), each) for each in content[1:])]


def _room(width: int) -> int:
    return width - (INDENT + LABEL if width >= NARROW else 2 * INDENT)


def _row(row: model.Row, width: int) -> list[Line]:
    room = _room(width)
    if not row.aside:
        return _labelled(row.label, wrap(row.content, room), width)
    column = max(ASIDE - INDENT - LABEL, columns_of(row.content) + 2)
    if column + columns_of(row.aside) <= room:
        return _labelled(row.label, [line(padded(row.content, column), row.aside)], width)
    return _labelled(row.label, wrap(row.content, room) + wrap(row.aside, room), width)


def _strip(strip: model.Strip, width: int) -> list[Line]:
    room, length = _room(width), max(columns_of(each) for each in strip.lines)
    if length <= room and strip.label_first:
        return _labelled(strip.label, list(strip.lines), width)
    if length <= room:
        *above, last = strip.lines
        margin = " " * (width - room)
        upper = [line(margin, each) for each in above]
        # An aside that does not fit at the common column stands beside its strip.
        columns = (max(ASIDE - INDENT - LABEL, length + 2), length + 2)
        column = next((each for each in columns if each + columns_of(strip.aside) <= room), 0)
        if not strip.aside or column:
            return upper + _labelled(
                strip.label, [line(padded(last, column if strip.aside else 0), strip.aside)], width
            )
        return upper + _labelled(strip.label, [last, *wrap(strip.aside, room)], width)
    lines = _row(model.Row(strip.label, strip.aside), width)
    margin, room = " " * INDENT, width - INDENT
    for start, stop in _chunks(length, room, strip.breaks):
        parts = [cut_columns(each, start, stop) for each in strip.lines]
        lines += [line(margin, part) for part in parts if text_of(part).strip()]
    return lines


def _chunks(length: int, room: int, breaks: tuple[int, ...]) -> list[tuple[int, int]]:
    """Divide `length` columns into parts of at most `room` columns.

    The remaining columns are shared equally among as few parts as possible. A part ends at the first of `breaks` at
    which it has at least its share. If there is no such break, the part ends at the last break that fits. Without any
    break, the part ends when it is full.
    """
    chunks, start = [], 0
    while start < length:
        parts = -(-(length - start) // room)
        fair = start + -(-(length - start) // parts)
        stops = [stop for stop in breaks if start < stop <= start + room]
        enough = [stop for stop in stops if stop >= fair]
        stop = length if parts == 1 else min(enough) if enough else max(stops, default=start + room)
        chunks.append((start, stop))
        start = stop
    return chunks


def _table(table: model.Table, width: int) -> list[Line]:
    lines = aligned([[line(Span(name, Role.LABEL)) for name in table.header], *table.rows], table.right, INDENT)
    if columns_of(lines[0]) <= width:
        return lines
    if table.optional is None:
        return _stacked(table, width)
    from floatlab.page.name_tables import set_names  # imported here, since few pages have such a table

    return set_names(table, width, INDENT) or _stacked(table, width)


def _stacked(table: model.Table, width: int) -> list[Line]:
    """Show each row as a list: its first cell, and below it the other cells, each after the title of the column."""
    lines: list[Line] = []
    margin = " " * (2 * INDENT)
    for row in table.rows:
        title = line(*(Span(run.text, Role.HEADING) for run in row[0]))
        lines += [line(_SPACES, each) for each in wrap(title, width - INDENT)]
        current: Line = ()
        for name, cell in zip(table.header[1:], row[1:], strict=True):
            if not text_of(cell).strip():
                continue
            pair = line(Span(f"{name} " if name else "", Role.LABEL), cell)
            if current and columns_of(current) + 2 + columns_of(pair) > width - 2 * INDENT:
                lines += [line(margin, each) for each in wrap(current, width - 2 * INDENT)]
                current = ()
            current = line(current, "  " if current else "", pair)
        lines += [line(margin, each) for each in wrap(current, width - 2 * INDENT) if current]
    return lines


def _grid(grid: model.Grid, width: int) -> list[Line]:
    """Fill the grid column by column, so that each cell is below the preceding one."""
    widest = max(columns_of(cell) for cell in grid.cells) + 2
    columns = max(1, (width - INDENT + 2) // widest)
    while columns & (columns - 1):  # a power of two: in a table of 256 codes, each column begins at a round code
        columns -= 1
    height = -(-len(grid.cells) // columns)
    return [line(_SPACES, *(padded(cell, widest) for cell in grid.cells[top::height])) for top in range(height)]


def _note(note: model.Note, width: int) -> list[Line]:
    return [line(_SPACES, each) for each in wrap(note.content, width - INDENT)]


def _pair(pair: model.Pair, width: int) -> list[Line]:
    """Show two groups of blocks side by side. Stack them on a narrow page, or if a strip of digits would break."""
    half = (width - _BETWEEN) // 2
    is_wide = width >= WIDE and not any(_is_longer(side, _room(half)) for side in (pair.left, pair.right))
    sides = [_set_blocks(side, half if is_wide else width) for side in (pair.left, pair.right)]
    if not is_wide:
        return [*sides[0], *sides[1]]
    height = max(len(side) for side in sides)
    left, right = ([*side, *[()] * (height - len(side))] for side in sides)
    return [line(padded(a, half + _BETWEEN), b) for a, b in zip(left, right, strict=True)]


def _is_longer(blocks: tuple[Block, ...], room: int) -> bool:
    """Return whether a strip of digits is longer than the room."""
    strips = (strip for block in blocks for strip in (block.blocks if isinstance(block, model.Fresh) else (block,)))
    return any(isinstance(each, model.Strip) and max(map(columns_of, each.lines)) > room for each in strips)


def _fresh(fresh: model.Fresh, width: int) -> list[Line]:
    """Put the mark for new blocks into the margin of the first line that is not blank."""
    lines = _set_blocks(fresh.blocks, width)
    first = next((index for index, each in enumerate(lines) if text_of(each).strip()), None)
    if first is not None:
        lines[first] = line(Span(fresh.mark, Role.CHANGED), cut_columns(lines[first], 1, columns_of(lines[first])))
    return lines


def _axis(axis: model.Axis, width: int) -> list[Line]:
    """Draw the lanes of an axis, all in the same columns, with each lane's label before its axis line."""
    from floatlab.page.number_line_layout import lanes_of  # imported here, since few pages have an axis

    lines: list[Line] = []
    margin = " " * (width - _room(width))
    for label, above, rest in lanes_of(axis, _room(width)):
        labelled = _labelled(label, rest, width)
        head = labelled[: len(labelled) - len(rest)]  # a label on its own line
        lines += [*head, *(line(margin, each) for each in above), *labelled[len(head) :]]
    return lines


def _chart(chart: model.Chart, width: int) -> list[Line]:
    from floatlab.page.chart import chart_lines

    return [line(_SPACES, each) for each in chart_lines(chart, width - INDENT)]


def _gap(_: model.Gap, __: int) -> list[Line]:
    return [()]


_SETTERS: dict[type[Block], Callable[[Any, int], list[Line]]] = {
    model.Row: _row,
    model.Strip: _strip,
    model.Table: _table,
    model.Grid: _grid,
    model.Note: _note,
    model.Pair: _pair,
    model.Fresh: _fresh,
    model.Axis: _axis,
    model.Chart: _chart,
    model.Gap: _gap,
}

# Select Graphic Rendition codes. They use the terminal's palette, so that text is readable on every background.
ANSI: dict[Role, str] = {
    Role.LABEL: "2",
    Role.HEADING: "1",
    Role.RULER: "2",
    Role.SIGN: "31",
    Role.EXPONENT: "32",
    Role.SIGNIFICAND: "34",
    Role.IMPLICIT: "36",
    Role.LOST: "35",
    Role.CHANGED: "1",
    Role.CODE: "33",
    Role.VALUE: "1",
    Role.FLAG: "35",
    Role.GOOD: "32",
    Role.BAD: "31",
    Role.HINT: "2",
}
_ASCII = str.maketrans({
    "×": "x", "−": "-", "→": "->", "…": "...", "∞": "inf", "·": "*", "≤": "<=", "≥": ">=", "≈": "~",
    "≠": "!=", "√": "sqrt", "⁻": "-", "²": "^2", "±": "+-", "—": "-", "’": "'", "▸": ">",
    "─": "-", "━": "=", "├": "|", "┤": "|", "┼": "+", "│": "|", "◀": "<", "▶": ">", "▼": "v", "●": "*", "○": "o",
    "└": "+", "←": "<-", "÷": "/", "\N{NO-BREAK SPACE}": " ",
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "┌": "+", "┐": "+", "┘": "+", "┊": ":", "┃": "|", "┄": "-", "⋯": "...",
    "▾": "v", "▴": "^", "◂": "<", "▲": "^", "↑": "up", "↓": "down", "⏎": "enter", "◆": "#", "•": "*", "✓": "+",
    "✗": "x", "▐": "[", "▌": "]", "▔": "-", "▁": "_", "▂": "_", "▃": "_", "▄": "=", "▅": "=", "▆": "#", "▇": "#",
    "█": "#", "▏": "|", "▎": "|", "▍": "|", "▋": "|", "▊": "#", "▉": "#", "▕": "|", "░": ".", "▒": ":", "▓": "+",
    "–": "-", "‘": "'", "“": '"', "”": '"', "›": ">", "‹": "<", "‖": "|", "µ": "u", "ℓ": "l", "³": "^3",
    "₀": "0", "₁": "1", "₂": "2", "⌊": "floor(", "⌋": ")", "⌈": "ceil(", "⌉": ")",
})  # fmt: skip


def ascii_only(text: str) -> str:
    """Replace non-ASCII characters by ASCII equivalents.

    >>> ascii_only("2 × 3 → −∞")
    '2 x 3 -> -inf'
    """
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def _coloured(runs: Line) -> str:
    return "".join(
        f"\x1b[{ANSI[run.role]}m{run.text}\x1b[0m" if run.role in ANSI and run.text.strip() else run.text
        for run in runs
    )


def _plain(runs: Line) -> str:
    return "".join(run.text for run in runs).rstrip()


def to_text(page: Page, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """Return the page as lines of text, each with a newline at its end."""
    if ascii:
        page = rewritten(page, str.isascii, lambda text: ascii_only(printable(text)))
    write = _coloured if colour else _plain
    return "".join(f"{write(each)}\n" for each in set_page(page, width))
