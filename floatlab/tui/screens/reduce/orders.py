"""The same terms in one order after another, as a table to take one from."""

from __future__ import annotations

from time import monotonic

from textual.binding import Binding

from floatlab.page.model import Note, Page, line
from floatlab.tui.app.background import beside_each
from floatlab.tui.widgets.column_table import ColumnTable
from floatlab.verbs.orders.answer import OrderChoice, growing
from floatlab.verbs.orders.page import orders_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce import Reduction
    from floatlab.tui.app.app import Explorer


class Orders(ColumnTable):
    """A row an order, with its result, its error, and how many of its bits are others."""

    PLACE = "On the table of orders"  # what the list of keys calls it
    HELP = "The same terms in one order after another. Enter, or a double click, takes the order of the row."
    BINDINGS = [Binding("enter", "choose", "Take", id="orders.take", key_display="enter")]
    SHORT = 1 << 12  # terms: one order of more may take longer than anybody waits
    app: Explorer

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self.ways: list[OrderChoice] = []
        self._found: Reduction | None = None

    @property
    def way(self) -> OrderChoice | None:
        """The order under the cursor."""
        return self.ways[self.cursor] if self.cursor < len(self.ways) else None

    def show_orders(self, found: Reduction, grace: float) -> None:
        """Add the terms in all orders; what takes longer than so many seconds comes row by row, beside the screen."""
        if self._found is found:
            return
        self._found, self.ways = found, []
        self.page = Page((Note(line("adding in other orders …")),))

        def take(rows: list[OrderChoice]) -> bool:
            if self._found is not found or not self.is_attached:  # it comes too late
                return False
            self.ways = rows
            cells = [(each.names[0], each.same, each.result, each.error) for each in rows]
            self.show(orders_table(cells, found.result))
            return True

        pieces, end = growing(found), monotonic() + grace
        if len(found) <= self.SHORT:
            for rows in pieces:
                self.ways = rows
                if monotonic() > end:
                    break
            take(self.ways)
        beside_each(self.app, pieces, take)
