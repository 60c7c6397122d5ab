"""The table of formats: the one under the cursor is shown in full, marked ones are compared."""

from __future__ import annotations

from rich.segment import Segment
from textual.message import Message
from textual.reactive import reactive

from floatlab.tui.widgets.column_table import MARGIN, ColumnTable

MARK = "•"


class FormatTable(ColumnTable):
    """Rows of formats; a click before a name marks it."""

    PLACE = "On the table of formats"  # its name in the list of keys
    HELP = "Arrows move over the formats and turn to other columns; space marks one to compare. Enter opens its 1."

    marked: reactive[frozenset[int]] = reactive(frozenset)

    class MarkWanted(Message):
        """The user wants to mark the row under the cursor, or to unmark it."""

    def segments(self, y: int) -> list[Segment]:
        """Draw the mark into the margin of a marked row."""
        pieces = super().segments(y)
        if y - self.FROZEN in self.marked:
            first = pieces[0]
            pieces[0] = Segment(MARK + first.text[1:], first.style)
        return pieces

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Mark a row by a click in the margin; a double click elsewhere opens it."""
        if column < MARGIN:
            self.post_message(self.MarkWanted())
        else:
            super().clicked(cell, column, times)
