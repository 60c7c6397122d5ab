"""Layout of tables whose first column has names, such as those of tensors, on pages that are too narrow for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from floatlab.errors import shortened
from floatlab.page.model import Line, Role, Span, Table, aligned, columns_of, line, text_of

# The smallest width of the column of names, if 0, 1 or more of the optional columns are shown; short names need less.
_LEAST_WIDTHS = (16, 30, 39)
# The share of a shortened name that is taken from its beginning. If different names become equal, the next share is
# tried.
_HEADS = (1 / 2, 1 / 3, 2 / 3)


def set_names(table: Table, width: int, indent: int) -> list[Line] | None:
    """Return a table of names as lines of at most `width` columns, or None if this is not possible.

    To make room for the names, titles are broken after slashes, optional columns are omitted, and names are shortened
    in the middle. If there is still too little room, or different names would become equal, each name has its own line
    above the cells of its row. Return None if the cells are too wide even then, without the optional columns.
    """
    names = [text_of(row[0]) for row in table.rows]
    longest = max(map(len, (table.header[0], *names)))
    for columns, titles in _choices(table):
        room = width - indent - 2 - columns_of(_lines(table, columns, titles)[0])
        left = len(columns) - len(table.header) + 1 + len(table.optional or ())
        if room >= min(longest, _LEAST_WIDTHS[min(left, 2)]) and (fitting := _fitting(names, room)) is not None:
            above = [*[""] * (len(titles) - 1), shortened(table.header[0], room)]
            first = [*(line(Span(title, Role.LABEL)) for title in above), *map(line, fitting)]
            rest = _lines(table, columns, titles)
            return aligned(list(zip(first, rest, strict=True)), (), indent)
    for columns, titles in _choices(table):
        lines = _lines(table, columns, titles, 2 * indent)
        if columns_of(lines[0]) <= width:
            return _under_names(table.header[0], names, lines, width, indent)
    return None


Titles = list[list[str]]  # the lines of titles, each with a text for each column


def _choices(table: Table) -> Iterator[tuple[list[int], Titles]]:
    """Yield choices of columns to show beside the names, and their titles.

    The first choice has all columns. Each further choice has one optional column less.
    """
    optional = table.optional or ()
    for count in range(len(optional) + 1):
        columns = [column for column in range(1, len(table.header)) if column not in optional[:count]]
        broken = [table.header[column].replace("/", "/\n").split("\n") for column in columns]
        height = max(map(len, broken), default=1)
        filled = [[""] * (height - len(title)) + title for title in broken]
        yield columns, [[title[row] for title in filled] for row in range(height)]


def _lines(table: Table, columns: Sequence[int], titles: Titles, indent: int = 0) -> list[Line]:
    """Return the titles and the cells of these columns as lines."""
    above = [[line(Span(title, Role.LABEL)) for title in row] for row in titles]
    cells = [[row[column] for column in columns] for row in table.rows]
    right = [place for place, column in enumerate(columns) if column in table.right]
    return aligned([*above, *cells], right, indent)


def _fitting(names: list[str], room: int) -> list[str] | None:
    """Return the names, shortened to this width; None if different names would become equal."""
    different = len(set(names))
    for head in _HEADS:
        found = [shortened(name, room, head) for name in names]
        if len(set(found)) == different:
            return found
    return None


def _under_names(title: str, names: list[str], lines: list[Line], width: int, indent: int) -> list[Line]:
    margin, titles = " " * indent, len(lines) - len(names)
    found = [line(margin, Span(title, Role.LABEL)), *lines[:titles]]
    for name, row in zip(names, lines[titles:], strict=True):
        found += [line(margin, Span(shortened(name, width - indent), Role.HEADING)), row]
    return found
