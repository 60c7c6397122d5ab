"""A histogram as bars, over which a cursor walks."""

from __future__ import annotations

from floatlab.page.layout import set_page
from floatlab.page.model import Axis, Line, Page
from floatlab.tui.widgets.cells import Cells, cursor_keys

_PAGE = 8  # bars that a page key moves by


class HistogramBars(Cells):
    """One bar for each lane of an axis, as wide as the widget."""

    PLACE = "On the bars"  # its name in the list of keys
    HELP = "Arrows move over the bars; the line above says how many elements the bar under the cursor counts."
    BINDINGS = [*cursor_keys("bars", "Bar")]

    @property
    def axis(self) -> Axis | None:
        """The bars, if there are any."""
        return next((block for block in self.page.blocks if isinstance(block, Axis)), None)

    @property
    def count(self) -> int:
        """How many bars there are."""
        return len(self.axis.lanes) if self.axis else 0

    def show(self, axis: Axis | None) -> None:
        """Show other bars. The cursor starts on the last one, which holds the largest differences."""
        fresh = not self.count
        self.page = Page(() if axis is None else (axis,))
        self.set_cursor(self.count - 1 if fresh else self.cursor)

    def set_lines(self, width: int) -> list[Line]:
        """Set one bar after the other; in a narrow widget the label of each stands above it."""
        lines: list[Line] = []
        self.places = []
        for lane in self.axis.lanes if self.axis else ():
            lines += set_page(Page((Axis((lane,)),)), width)
            self.places.append((len(lines) - 1, 0, width))
        return lines

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Do nothing more than move there."""

    def action_page(self, pages: int) -> None:
        """Move by some bars."""
        self.cursor += pages * _PAGE
