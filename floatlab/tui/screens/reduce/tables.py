"""The tables of the screen Reduce: the tree, with rows that can be folded, and the results of all orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from textual.binding import Binding

from floatlab.page.model import text_of
from floatlab.reduce import Reduction
from floatlab.tui.base import ExplorerBase, run_each
from floatlab.tui.widgets import MARGIN, ColumnTable, cursor_keys, note_page
from floatlab.verbs.reduce.orders import OrderChoice, compare_orders, orders_table
from floatlab.verbs.reduce.tree import Tree, TreeRow

_MOST = 4000  # the largest number of unfolded rows


class TreeTable(ColumnTable, inherit_bindings=False):
    """A tree of additions as rows. Rows inside a folded part are hidden."""

    PLACE = "On the tree"  # the heading in the list of keys
    HELP = (
        "A row adds a number to the sum so far. Enter shows the digits of this addition in Arithmetic. Space, or left "
        "and right, folds and unfolds rows with a mark. n goes to the next of the largest errors. < and > show other "
        "columns."
    )
    BINDINGS = [
        Binding("enter", "choose", "Steps", id="tree.open", key_display="enter"),
        Binding("space", "fold", "Fold", id="tree.fold", key_display="space"),
        Binding("left,h", "close", "Fold, or go up", show=False, id="tree.close"),
        Binding("right,l", "open", "Unfold, or go down", show=False, id="tree.unfold"),
        Binding("asterisk", "all", "Unfold all, or fold all", show=False, id="tree.all"),
        Binding("less_than_sign", "turn(-1)", "Previous columns", show=False, id="tree.left"),
        Binding("greater_than_sign", "turn(1)", "More columns", show=False, id="tree.right"),
        Binding("n", "worst(1)", "Largest error", id="tree.worst", tooltip="Next of the largest errors"),
        Binding("N", "worst(-1)", "Previous of the largest errors", show=False, id="tree.better"),
        *cursor_keys("tree", "Row"),
    ]

    def __init__(self, refuse: Callable[[str], None], *, id: str | None = None) -> None:
        """Start empty. `refuse` is called with the reason if an action is not possible."""
        super().__init__(id=id)
        self._refuse = refuse
        self.tree_shown: Tree | None = None
        self.tree_rows: list[TreeRow] = []
        self._unfolded: frozenset[tuple[str | int, ...]] = frozenset()
        self._worst = -1

    def show_tree(self, tree: Tree) -> None:
        """Show a tree. If the order of additions is unchanged, the unfolded rows and the cursor are kept."""
        same = self.tree_shown is not None and self.tree_shown.plan == tree.plan
        self.tree_shown, self._worst = tree, -1
        if not same:
            self._unfolded = tree.unfolded
            self.set_cursor(0)
            self.turned = 0
        self._rows()
        if not same:
            self.scroll_home(animate=False)

    def _rows(self) -> None:
        """Draw the unfolded rows, and keep the cursor on the same row."""
        tree = self.tree_shown
        if tree is None:
            return
        before = self.current_row
        self.tree_rows = tree.rows(self._unfolded)
        self.show(tree.table(self.tree_rows))
        places = (i for i, row in enumerate(self.tree_rows) if before is not None and row.key == before.key)
        self.cursor = next(places, self.cursor)

    @property
    def position(self) -> object:
        """The unfolded rows and the row of the cursor, stored for the key that goes back."""
        return self._unfolded, self.cursor

    @position.setter
    def position(self, position: object) -> None:
        """Restore the unfolded rows and the row of the cursor."""
        if self.tree_shown is not None and isinstance(position, tuple):
            self._unfolded, cursor = position
            self._rows()
            self.cursor = cursor

    @property
    def current_row(self) -> TreeRow | None:
        """The row under the cursor."""
        return self.tree_rows[self.cursor] if self.cursor < len(self.tree_rows) else None

    def action_fold(self) -> None:
        """Fold or unfold the row under the cursor."""
        if self.current_row is not None and (key := Tree.folds(self.current_row)) is not None:
            self._unfolded ^= {key}
            self._rows()

    def action_open(self) -> None:
        """Unfold the row under the cursor. If there is nothing to unfold, go down."""
        if self.current_row is not None and self.current_row.is_open is False:
            self.action_fold()
        else:
            self.action_move(1)

    def action_close(self) -> None:
        """Fold the row under the cursor. If there is nothing to fold, go up to its parent."""
        row = self.current_row
        if row is not None and row.is_open:
            self.action_fold()
        elif row is not None:
            above = (i for i in range(self.cursor - 1, -1, -1) if self.tree_rows[i].depth < row.depth)
            self.cursor = next(above, self.cursor)

    def action_all(self) -> None:
        """Unfold the whole tree, or fold it again."""
        tree = self.tree_shown
        if tree is None:
            return
        if self._unfolded >= tree.everything:
            self._unfolded = frozenset({("part", tree.plan.root)})
        elif tree.plan.terms <= _MOST // 2:
            self._unfolded = tree.everything
        else:
            self._refuse(f"{tree.plan.terms:,} terms are too many to unfold all of them")
        self._rows()

    def action_worst(self, by: int) -> None:
        """Move the cursor by `by` in the list of the nodes with the largest rounding errors."""
        tree = self.tree_shown
        worst = tree.worst if tree is not None else []
        if tree is None or not worst:
            self._refuse("no addition has a rounding error")
            return
        self._worst = (self._worst + by) % len(worst) if self._worst >= 0 or by > 0 else len(worst) - 1
        id = worst[self._worst]
        self._unfolded |= tree.keys_to_show(id)
        self._rows()
        places = (i for i, row in enumerate(self.tree_rows) if row.id == id and row.key[0] in ("link", "many"))
        self.cursor = next(places, 0)

    def clicked(self, cell: int, column: int, times: int) -> None:
        """On a click on ▸ or ▾, fold or unfold the row. On a double click elsewhere, choose the row."""
        row = self.tree_rows[cell]
        mark = text_of(row.cells[0]).find("▾" if row.is_open else "▸") if row.is_open is not None else -1
        if mark >= 0 and mark <= column - MARGIN <= mark + 1:
            self.action_fold()
        else:
            super().clicked(cell, column, times)


class OrderTable(ColumnTable):
    """A table with a row for each order: the result, its error, and how many bits differ from the shown result."""

    PLACE = "On the table of orders"  # the heading in the list of keys
    HELP = "The results of the same terms in all orders. Enter or a double click selects the order of the row."
    BINDINGS = [Binding("enter", "choose", "Take", id="orders.take", key_display="enter")]
    SHORT = 1 << 12  # with more terms than this, the screen does not wait even for one order
    app: ExplorerBase
    ways: Sequence[OrderChoice] = ()
    _reduction: Reduction | None = None

    @property
    def chosen(self) -> OrderChoice | None:
        """The order in the row under the cursor."""
        return self.ways[self.cursor] if self.cursor < len(self.ways) else None

    def show_orders(self, reduction: Reduction, grace: float) -> None:
        """Show the results of all orders.

        Results that are missing after `grace` seconds are computed on a background thread. For a long sum, all results
        are computed there.
        """
        if self._reduction is reduction:
            return
        self._reduction, self.ways = reduction, ()
        self.page = note_page("adding in other orders …")

        def take(ways: Sequence[OrderChoice]) -> bool:
            if self._reduction is not reduction or not self.is_attached:  # the result is out of date
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
