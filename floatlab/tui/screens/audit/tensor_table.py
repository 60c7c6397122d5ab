"""The table of the tensors of an audit."""

from __future__ import annotations

from textual.binding import Binding

from floatlab.page.model import Line, Table, as_line, text_of
from floatlab.tui.widgets import ColumnTable

_NARROW = 60  # in a narrower table, names take at most a third of the width instead of half


class TensorTable(ColumnTable):
    """The table of tensors. Long names lose their beginnings, because the ends distinguish the tensors of a model."""

    PLACE = "On the table of tensors"  # the heading in the list of keys
    HELP = (
        "The tensors, the most damaged first; the page below has the figures of the tensor under the cursor. "
        "Enter or a double click opens its element with the largest relative error in Block, or in Inspect if the "
        "recipe has no scales. Left and right show other columns."
    )
    BINDINGS = [
        Binding("enter", "choose", "Block", id="tensors.open", key_display="enter"),
        *(key for key in ColumnTable.BINDINGS if getattr(key, "id", "") != "table.open"),
    ]

    _room = 1 << 16  # the most columns for names

    @property
    def table(self) -> Table | None:
        """The table, with names that are shortened to fit."""
        table = super().table
        if table is None:
            return None
        rows = tuple((self._fitting(text_of(first)), *others) for first, *others in table.rows)
        return Table(table.header, rows, table.right, table.optional)

    @property
    def count(self) -> int:
        """The number of rows."""
        table = super().table
        return len(table.rows) if table else 0

    def _fitting(self, name: str) -> Line:
        return as_line(name if len(name) <= self._room else f"…{name[1 - self._room :]}")

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the table, with names shortened to fit."""
        self._room = max(width // (3 if width < _NARROW else 2), 1)
        return super().set_lines(width)
