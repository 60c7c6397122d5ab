"""A page with cells, over which a cursor walks. One widget, however many cells."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.geometry import Region, Spacing
from textual.reactive import reactive

from floatlab.page.model import Line, cut_columns, line, text_of
from floatlab.tui.base import WidgetMessage
from floatlab.tui.themes import CURSOR, HOVER, LEFT
from floatlab.tui.widgets.page_view import PageView


def cursor_keys(prefix: str, noun: str) -> list[Binding]:
    """Return the keys that move a cursor up and down, with ids that begin with a prefix."""
    rows = (
        ("before", "up,k", "move(-1)", f"{noun} before"),
        ("after", "down,j", "move(1)", f"{noun} after"),
        ("up", "pageup", "page(-1)", "Page up"),
        ("down", "pagedown", "page(1)", "Page down"),
        ("first", "home", "jump(0)", f"First {noun.lower()}"),
        ("last", "end", "jump(-1)", f"Last {noun.lower()}"),
    )
    return [Binding(keys, action, words, id=f"{prefix}.{name}", show=False) for name, keys, action, words in rows]


class Cells(PageView, can_focus=True):
    """A page with cells in it. A subclass sets the lines, and notes in `places` where the cells stand."""

    cursor: reactive[int] = reactive(0)
    hovered: reactive[int] = reactive(-1)

    class Moved(WidgetMessage):
        """The cursor moved to another cell."""

    class Chosen(WidgetMessage):
        """The cell under the cursor was chosen."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self.places: list[tuple[int, int, int]] = []  # the line, the column and the width of each cell

    @property
    def count(self) -> int:
        """How many cells there are, whether they are drawn yet or not."""
        return len(self.places)

    # Drawing.

    def segments(self, y: int) -> list[Segment]:
        """Return the segments of one line, with the cells under the cursor and under the mouse marked."""
        runs, pieces, x = self.lines[y], list[Segment](), 0
        marked = [(*self.places[cell], style) for cell, style in self.marks().items() if 0 <= cell < len(self.places)]
        for row, left, width, style in sorted(marked, key=lambda place: place[1]):
            if row != y:
                continue
            right = left + width
            pieces += self._pieces(cut_columns(runs, x, left))
            cell = cut_columns(runs, left, right)
            cell = line(cell, " " * (right - left - len(text_of(cell))))
            # A wide cursor is one bar: reversed, the colours of the roles would make it a patchwork.
            is_bar = style is CURSOR and width > 1
            pieces += [Segment(text_of(cell), style)] if is_bar else self._pieces(cell, style)
            x = right
        return pieces + self._pieces(cut_columns(runs, x, 1 << 16))

    def marks(self) -> dict[int, Style]:
        """Return the styles that are added to some cells."""
        return {self.hovered: HOVER, self.cursor: CURSOR if self.has_focus else LEFT}

    def _pieces(self, runs: Line, style: Style | None = None) -> list[Segment]:
        return [Segment(run.text, self.style_of(run.role) + style) for run in runs]

    def show_cursor(self) -> None:
        """Scroll to the cursor."""
        if 0 <= self.cursor < len(self.places):
            y, x, width = self.places[self.cursor]
            frozen = Spacing(self.FROZEN, 0, 0, 0)
            self.scroll_to_region(Region(x, y, width, 1), spacing=frozen, animate=False, x_axis=False)

    def set_cursor(self, cell: int) -> None:
        """Put the cursor on a cell without a message."""
        with self.prevent(self.Moved):
            self.cursor = cell

    def validate_cursor(self, cell: int) -> int:
        """Keep the cursor on a cell."""
        return min(max(cell, 0), max(self.count - 1, 0))

    def watch_cursor(self) -> None:
        """Scroll to the cursor, and report that it moved."""
        self.show_cursor()
        self.post_message(self.Moved(self))

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.call_after_refresh(self.show_cursor)

    # The mouse.

    def place_of(self, event: events.MouseEvent) -> tuple[int, int]:
        """Return the line and the column under the mouse; (-1, -1) outside."""
        offset = event.get_content_offset(self)
        if offset is None:
            return -1, -1
        return offset.y if offset.y < self.FROZEN else offset.y + self.scroll_offset.y, offset.x

    def cell_at(self, row: int, column: int) -> int:
        """Return the cell at a place; -1 where there is none."""
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
        """Move the cursor to the cell that was clicked."""
        row, column = self.place_of(event)
        cell = self.cell_at(row, column)
        if cell >= 0:
            self.cursor = cell
            self.clicked(cell, column, event.chain)

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Choose a cell that was clicked twice."""
        if times == 2:
            self.action_choose()

    # The keys.

    def action_move(self, cells: int) -> None:
        """Move the cursor by some cells."""
        self.cursor += cells

    def action_page(self, pages: int) -> None:
        """Move by as many cells as there are lines in sight."""
        self.cursor += pages * max(self.scrollable_content_region.height - self.FROZEN, 1)

    def action_jump(self, cell: int) -> None:
        """Move the cursor to a cell; -1 is the last."""
        self.cursor = cell % max(self.count, 1)

    def action_choose(self) -> None:
        """Choose the cell under the cursor."""
        if self.count:
            self.post_message(self.Chosen(self))
