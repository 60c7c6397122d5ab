"""A page whose parts can be chosen: a cursor walks over them, and the mouse points at one. One widget, however many."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Spacing
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from floatlab.page.model import Line, cut_columns, line, text_of
from floatlab.tui.app.themes import CURSOR, HOVER, LEFT
from floatlab.tui.widgets.drawing import Drawing


class Cells(Drawing, can_focus=True):
    """A drawing with places in it; a subclass sets the lines and finds the places while it does."""

    FROZEN = 0  # lines at the top that do not scroll

    cursor: reactive[int] = reactive(0)
    hovered: reactive[int] = reactive(-1)

    class Told(Message):
        """What all messages of cells have."""

        def __init__(self, cells: Cells) -> None:
            """Name the cells."""
            super().__init__()
            self.cells = cells

        @property
        def control(self) -> Cells:
            """The cells, for `on` selectors."""
            return self.cells

    class Moved(Told):
        """The cursor stands on another cell."""

    class Chosen(Told):
        """The cell under the cursor was chosen."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self.places: list[tuple[int, int, int]] = []  # the line, the column and the width of each cell

    @property
    def count(self) -> int:
        """How many cells there are, drawn already or not."""
        return len(self.places)

    @property
    def in_sight(self) -> int:
        """How many lines of cells are in sight."""
        return max(self.scrollable_content_region.height - self.FROZEN, 1)

    # Drawing.

    def render_line(self, y: int) -> Strip:
        """Draw one line of the window."""
        y = y if y < self.FROZEN else y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if not 0 <= y < len(self.lines):
            return Strip.blank(width, self.rich_style)
        return Strip(self.segments(y)).adjust_cell_length(width).apply_style(self.rich_style)

    def segments(self, y: int) -> list[Segment]:
        """Return one line's pieces, the cells under the cursor and under the mouse drawn as such."""
        runs, pieces, x = self.lines[y], list[Segment](), 0
        marks = {self.hovered: HOVER, self.cursor: CURSOR if self.has_focus else LEFT}
        found = ((self.places[cell], mark) for cell, mark in marks.items() if 0 <= cell < len(self.places))
        for (_, left, width), style in sorted((each for each in found if each[0][0] == y), key=lambda each: each[0]):
            right = left + width
            pieces += self._pieces(cut_columns(runs, x, left))
            cell = cut_columns(runs, left, right)
            cell = line(cell, " " * (right - left - len(text_of(cell))))
            # A cursor is one bar: reversed, the colours of the roles would make it a patchwork.
            pieces += [Segment(text_of(cell), style)] if style is CURSOR else self._pieces(cell, style)
            x = right
        return pieces + self._pieces(cut_columns(runs, x, 1 << 16))

    def _pieces(self, runs: Line, style: Style | None = None) -> list[Segment]:
        return [Segment(run.text, self.style_of(run.role) + style) for run in runs]

    def show_cursor(self) -> None:
        """Scroll to the cursor."""
        if 0 <= self.cursor < len(self.places):
            y, x, width = self.places[self.cursor]
            frozen = Spacing(self.FROZEN, 0, 0, 0)
            self.scroll_to_region(Region(x, y, width, 1), spacing=frozen, animate=False, x_axis=False)

    def set_cursor(self, cell: int) -> None:
        """Put the cursor on a cell without a word to anybody."""
        with self.prevent(self.Moved):
            self.cursor = cell

    def validate_cursor(self, cell: int) -> int:
        """Keep the cursor on a cell."""
        return min(max(cell, 0), max(self.count - 1, 0))

    def watch_cursor(self, before: int, cell: int) -> None:
        """Draw the cursor where it is now."""
        self.refresh()
        self.show_cursor()
        self.post_message(self.Moved(self))

    def watch_hovered(self) -> None:
        """Draw what the mouse points at."""
        self.refresh()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Draw the cursor with the focus, or without."""
        super().watch_has_focus(_has_focus)
        self.refresh()

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self.call_after_refresh(self.show_cursor)

    # The mouse.

    def place_of(self, event: events.MouseEvent) -> tuple[int, int]:
        """Return the line and the column under the mouse; (-1, -1) where there is none."""
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
        """Show what the mouse points at."""
        self.hovered = self.cell_at(*self.place_of(event))

    def on_leave(self) -> None:
        """Point at nothing any more."""
        self.hovered = -1

    # The keys.

    def action_move(self, cells: int) -> None:
        """Move the cursor by so many cells."""
        self.cursor += cells

    def action_jump(self, cell: int) -> None:
        """Move the cursor to a cell; -1 is the last."""
        self.cursor = cell % max(self.count, 1)

    def action_choose(self) -> None:
        """Choose the cell under the cursor."""
        if self.count:
            self.post_message(self.Chosen(self))
