"""The table of formats: a cursor for the one to read about, marks for those to compare."""

from __future__ import annotations

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive

from floatlab.tui.widgets.column_table import MARGIN, ColumnTable

MARK = "•"


class FormatTable(ColumnTable):
    """Rows of formats; a click before a name marks it."""

    PLACE = "On the table of formats"  # what the list of keys calls it
    HELP = "Arrows move over the formats and turn to other columns; space marks one to compare. Enter opens its 1."

    marked: reactive[frozenset[int]] = reactive(frozenset)

    class Marked(Message):
        """A row is to be marked, or unmarked."""

        def __init__(self, row: int) -> None:
            """Name the row."""
            super().__init__()
            self.row = row

    def segments(self, y: int) -> list[Segment]:
        """Put the mark into the margin of a marked row."""
        pieces = super().segments(y)
        if y - self.FROZEN in self.marked:
            first = pieces[0]
            pieces[0] = Segment(MARK + first.text[1:], first.style)
        return pieces

    def watch_marked(self) -> None:
        """Draw the marks."""
        self.refresh()

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Mark the row where the margin was clicked, else open it by a double click."""
        if column < MARGIN:
            self.post_message(self.Marked(cell))
        else:
            super().clicked(cell, column, times)
