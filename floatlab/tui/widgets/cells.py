"""A widget that draws a page with cells and a cursor, and a table whose rows are the cells."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region, Spacing
from textual.reactive import reactive

from floatlab.page.model import Line, Page, Role, Span, Table, cut_columns, line, text_of
from floatlab.page.text_layout import set_page
from floatlab.tui.base import WidgetMessage
from floatlab.tui.themes import CURSOR, HOVER, LEFT
from floatlab.tui.widgets.page_view import PageView

MARGIN = 2  # number of columns to the left of a table


def cursor_keys(prefix: str, noun: str) -> list[Binding]:
    """Return the key bindings that move a cursor up and down; their ids begin with `prefix`."""
    rows = (
        ("before", "up,k", "move(-1)", f"Previous {noun.lower()}"),
        ("after", "down,j", "move(1)", f"Next {noun.lower()}"),
        ("up", "pageup", "page(-1)", "Page up"),
        ("down", "pagedown", "page(1)", "Page down"),
        ("first", "home", "jump(0)", f"First {noun.lower()}"),
        ("last", "end", "jump(-1)", f"Last {noun.lower()}"),
    )
    return [Binding(keys, action, words, id=f"{prefix}.{name}", show=False) for name, keys, action, words in rows]


class Cells(PageView, can_focus=True):
    """A page with cells. A subclass makes the lines, and stores the positions of the cells in `places`."""

    cursor: reactive[int] = reactive(0)
    hovered: reactive[int] = reactive(-1)

    class Moved(WidgetMessage):
        """The cursor moved to another cell."""

    class Chosen(WidgetMessage):
        """The cell under the cursor was chosen."""

    places: Sequence[tuple[int, int, int]] = ()  # of each cell: line, column and width

    @property
    def count(self) -> int:
        """The number of cells, drawn or not."""
        return len(self.places)

    # Drawing.

    def segments(self, y: int) -> list[Segment]:
        """Return the segments of a line, with the cells under the cursor and under the mouse marked."""
        runs, pieces, x = self.lines[y], list[Segment](), 0
        marked = [(*self.places[cell], style) for cell, style in self.marks().items() if 0 <= cell < len(self.places)]
        for row, left, width, style in sorted(marked, key=lambda place: place[1]):
            if row != y:
                continue
            right = left + width
            pieces += self.pieces(cut_columns(runs, x, left))
            cell = cut_columns(runs, left, right)
            cell = line(cell, " " * (right - left - len(text_of(cell))))
            if width > 1 and style in (CURSOR, LEFT):
                pieces += self._bar(cell, style is CURSOR)
            else:
                pieces += self.pieces(cell, style)
            x = right
        return pieces + self.pieces(cut_columns(runs, x, 1 << 16))

    def _bar(self, cell: Line, is_focused: bool) -> list[Segment]:
        """Return the segments of a wide cell under the cursor."""
        chrome = self.app.chrome
        style = chrome.row if is_focused else chrome.row_left
        # If the colours of several roles were reversed, the bar would look uneven.
        return [Segment(text_of(cell), style)] if chrome.plain and is_focused else self.pieces(cell, style)

    def marks(self) -> dict[int, Style]:
        """Return the additional styles of cells, by the number of the cell."""
        return {self.hovered: HOVER, self.cursor: CURSOR if self.has_focus else LEFT}

    def show_cursor(self) -> None:
        """Scroll to the cursor."""
        if 0 <= self.cursor < len(self.places):
            y, x, width = self.places[self.cursor]
            frozen = Spacing(self.FROZEN, 0, 0, 0)
            self.scroll_to_region(Region(x, y, width, 1), spacing=frozen, animate=False, x_axis=False)

    def set_cursor(self, cell: int) -> None:
        """Move the cursor to a cell without posting `Moved`."""
        with self.prevent(self.Moved):
            self.cursor = cell

    @property
    def position(self) -> object:
        """The number of the cell under the cursor. The key that goes back restores this cursor."""
        return self.cursor

    @position.setter
    def position(self, position: object) -> None:
        """Move the cursor to the cell with a stored number."""
        self.cursor = position if isinstance(position, int) else 0

    def validate_cursor(self, cell: int) -> int:
        """Limit the cursor to the existing cells."""
        return min(max(cell, 0), max(self.count - 1, 0))

    def watch_cursor(self) -> None:
        """Scroll to the cursor, and post `Moved`."""
        self.show_cursor()
        self.post_message(self.Moved(self))

    def on_resize(self) -> None:
        """Keep the cursor visible."""
        self.call_after_refresh(self.show_cursor)

    # The mouse.

    def place_of(self, event: events.MouseEvent) -> tuple[int, int]:
        """Return the line and the column under the mouse; (-1, -1) if the mouse is outside."""
        offset = event.get_content_offset(self)
        if offset is None:
            return -1, -1
        return offset.y if offset.y < self.FROZEN else offset.y + self.scroll_offset.y, offset.x

    def cell_at(self, row: int, column: int) -> int:
        """Return the cell at a position; -1 if there is none."""
        return next(
            (cell for cell, (y, x, width) in enumerate(self.places) if y == row and x <= column < x + width), -1
        )

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark the cell under the mouse."""
        self.hovered = self.cell_at(*self.place_of(event))

    def on_leave(self) -> None:
        """Unmark the cell when the mouse leaves."""
        self.hovered = -1

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked cell."""
        row, column = self.place_of(event)
        cell = self.cell_at(row, column)
        if cell >= 0:
            self.cursor = cell
            self.clicked(cell, column, event.chain)

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Choose a cell on a double click."""
        if times == 2:
            self.action_choose()

    # The keys.

    def action_move(self, cells: int) -> None:
        """Move the cursor by a number of cells."""
        self.cursor += cells

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages, each as high as the widget."""
        self.cursor += pages * max(self.scrollable_content_region.height - self.FROZEN, 1)

    def action_jump(self, cell: int) -> None:
        """Move the cursor to a cell; -1 is the last."""
        self.cursor = cell % max(self.count, 1)

    def action_choose(self) -> None:
        """Choose the cell under the cursor."""
        if self.count:
            self.post_message(self.Chosen(self))


class ColumnTable(Cells):
    """A table whose header does not scroll. It shows the first column, and as many of the other columns as fit.

    If not all columns fit, the columns in `Table.optional` move to the end. The less important such a column is, the
    further to the right it is shown.
    """

    FROZEN = 1
    BINDINGS = [
        Binding("enter", "choose", "Inspect", id="table.open", key_display="enter"),
        Binding("left,h", "turn(-1)", "Previous columns", show=False, id="table.left"),
        Binding("right,l", "turn(1)", "More columns", show=False, id="table.right"),
        *cursor_keys("table", "Row"),
    ]

    turned: reactive[int] = reactive(0, init=False)  # how many columns after the first are scrolled out at the left

    _shown = 0  # number of visible columns after the first
    _is_last = True  # whether the last column is visible

    @property
    def table(self) -> Table | None:
        """The whole table."""
        return next((block for block in self.page.blocks if isinstance(block, Table)), None)

    def show(self, table: Table) -> None:
        """Show another table."""
        self.page = Page((table,))
        self.cursor = self.validate_cursor(self.cursor)

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.table.rows) if self.table else 0

    @property
    def names(self) -> list[str]:
        """The texts of the first column."""
        return [text_of(row[0]) for row in self.table.rows] if self.table else []

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the table: the first column, and as many of the other columns as fit."""
        table = self.table
        if table is None:
            return []
        columns = [*range(1, len(table.header))]
        if self.turned or (table.optional and self._columns_of(table, [0, *columns]) > width):
            optional = tuple(table.optional or ())
            columns = [*(column for column in columns if column not in optional), *reversed(optional)]
        shown = [0]
        for column in columns[self.turned :]:
            if self._columns_of(table, [*shown, column]) > width:
                break
            shown.append(column)
        lines = self._set_columns(table, shown)
        self._shown = len(shown) - 1
        self._is_last = self.turned + self._shown >= len(columns)
        more = " " if self._is_last else "▸"
        lines[0] = line(Span("◂ " if self.turned else "  ", Role.LABEL), lines[0][1:], Span(f" {more}", Role.LABEL))
        self.places = [(y, 0, width) for y in range(1, len(lines))]
        return lines

    @classmethod
    def _columns_of(cls, table: Table, columns: list[int]) -> int:
        """Return the width of a table of these columns, in characters."""
        return max(len(text_of(runs)) for runs in cls._set_columns(table, columns))

    @staticmethod
    def _set_columns(table: Table, columns: list[int]) -> list[Line]:
        """Return the lines of a table of some columns, laid out at unlimited width.

        At limited width, the layout would turn a wide table into a list.
        """
        right = tuple(place for place, column in enumerate(columns) if column in table.right)
        rows = tuple(tuple(row[column] for column in columns) for row in table.rows)
        return set_page(Page((Table(tuple(table.header[column] for column in columns), rows, right),)), 1 << 16)

    def watch_turned(self) -> None:
        """Draw the table again, because other columns become visible."""
        self.reset()

    def on_click(self, event: events.Click) -> None:
        """On a click on the header, show the next columns; in the left margin of the header, show the previous ones."""
        row, column = self.place_of(event)
        if row == 0:
            self.action_turn(-1 if column < MARGIN else 1)

    def action_turn(self, by: int) -> None:
        """Show the next columns or, if `by` is negative, the previous ones."""
        table = self.table
        if table is None:
            return
        if by < 0:
            self.turned = max(self.turned - max(self._shown, 1), 0)
        elif not self._is_last:
            self.turned += max(self._shown, 1)
