"""A table: a cursor walks over its rows, and columns that do not fit are turned to."""

from __future__ import annotations

from textual import events
from textual.binding import Binding
from textual.reactive import reactive

from floatlab.page.layout import set_page
from floatlab.page.model import Line, Page, Role, Span, Table, line, text_of
from floatlab.tui.widgets.cells import Cells, cursor_keys

MARGIN = 2  # columns before the first


class ColumnTable(Cells):
    """Rows under a header that does not scroll: the first column, and as many of the others as fit."""

    FROZEN = 1
    BINDINGS = [
        Binding("enter", "choose", "Inspect", id="table.open", key_display="enter"),
        Binding("left,h", "turn(-1)", "Columns before", show=False, id="table.left"),
        Binding("right,l", "turn(1)", "More columns", show=False, id="table.right"),
        *cursor_keys("table", "Row"),
    ]

    turned: reactive[int] = reactive(0, init=False)  # columns after the first that are turned away

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self._shown: list[int] = []  # columns

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
        """How many rows there are."""
        return len(self.table.rows) if self.table else 0

    @property
    def names(self) -> list[str]:
        """The texts of the first column."""
        return [text_of(row[0]) for row in self.table.rows] if self.table else []

    def set_lines(self, width: int) -> list[Line]:
        """Set the first column, and as many of the others as fit."""
        table = self.table
        if table is None:
            return []
        shown = [0]
        lines = self._set_columns(table, shown)
        for column in range(1 + self.turned, len(table.header)):
            wider = self._set_columns(table, [*shown, column])
            if max(len(text_of(runs)) for runs in wider) > width:
                break
            shown.append(column)
            lines = wider
        self._shown = shown
        more = "▸" if shown[-1] < len(table.header) - 1 else " "
        lines[0] = line(Span("◂ " if self.turned else "  ", Role.LABEL), lines[0][1:], Span(f" {more}", Role.LABEL))
        self.places = [(y, 0, width) for y in range(1, len(lines))]
        return lines

    @staticmethod
    def _set_columns(table: Table, columns: list[int]) -> list[Line]:
        """Set some columns without a limit of the width, at which the layout would turn the table into a list."""
        right = tuple(place for place, column in enumerate(columns) if column in table.right)
        rows = tuple(tuple(row[column] for column in columns) for row in table.rows)
        return set_page(Page((Table(tuple(table.header[column] for column in columns), rows, right),)), 1 << 16)

    def watch_turned(self) -> None:
        """Set other columns."""
        self.reset()

    def on_click(self, event: events.Click) -> None:
        """Turn columns by a click on the header."""
        row, column = self.place_of(event)
        if row == 0:
            self.action_turn(-1 if column < MARGIN else 1)

    def action_turn(self, by: int) -> None:
        """Turn to the columns that did not fit, or back."""
        table = self.table
        if table is None:
            return
        if by < 0:
            self.turned = max(self.turned - max(len(self._shown) - 1, 1), 0)
        elif self._shown[-1] < len(table.header) - 1:
            self.turned = self._shown[-1]
