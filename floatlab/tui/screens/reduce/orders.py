"""The same terms added in many orders, as a table to take one from."""

from __future__ import annotations

from time import monotonic

from textual.binding import Binding

from floatlab.reduce import Reduction
from floatlab.tui.background import run_each
from floatlab.tui.base import ExplorerBase
from floatlab.tui.widgets.column_table import ColumnTable
from floatlab.tui.widgets.page_view import note_page
from floatlab.verbs.orders.answer import OrderChoice, compare_orders
from floatlab.verbs.orders.page import orders_table


class OrderTable(ColumnTable):
    """One row for each order: its result, its error, and how many bits differ."""

    PLACE = "On the table of orders"  # its name in the list of keys
    HELP = "The same terms in one order after another. Enter, or a double click, takes the order of the row."
    BINDINGS = [Binding("enter", "choose", "Take", id="orders.take", key_display="enter")]
    SHORT = 1 << 12  # terms; with more, even one order may take too long to wait for
    app: ExplorerBase

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self.ways: list[OrderChoice] = []
        self._reduction: Reduction | None = None

    @property
    def way(self) -> OrderChoice | None:
        """The order under the cursor."""
        return self.ways[self.cursor] if self.cursor < len(self.ways) else None

    def show_orders(self, reduction: Reduction, grace: float) -> None:
        """Add the terms in all orders; after `grace` seconds, the rest is done on a background thread, row by row."""
        if self._reduction is reduction:
            return
        self._reduction, self.ways = reduction, []
        self.page = note_page("adding in other orders …")

        def take(ways: list[OrderChoice]) -> bool:
            if self._reduction is not reduction or not self.is_attached:  # it comes too late
                return False
            self.ways = ways
            cells = [(way.names[0], way.same, way.result, way.error) for way in ways]
            self.show(orders_table(cells, reduction.result))
            return True

        pieces, end = compare_orders(reduction), monotonic() + grace
        if len(reduction) <= self.SHORT:
            for ways in pieces:
                self.ways = ways
                if monotonic() > end:
                    break
            take(self.ways)
        run_each(self.app, pieces, take)
