"""The bars of the histogram of ulps, and the table of the elements with the largest errors."""

from __future__ import annotations

from floatlab.page.model import Axis, Line, Page
from floatlab.page.text_layout import set_page
from floatlab.tui.widgets import Cells, ColumnTable, cursor_keys

_PAGE = 8  # number of bars by which a page key moves


class HistogramBars(Cells):
    """The bars of a histogram, one per line, as wide as the widget."""

    PLACE = "On the bars"  # the heading in the list of keys
    HELP = "Arrows move over the bars; the line above says how many elements the bar under the cursor counts."
    BINDINGS = [*cursor_keys("bars", "Bar")]

    @property
    def axis(self) -> Axis | None:
        """The bars, or None if there are none."""
        return next((block for block in self.page.blocks if isinstance(block, Axis)), None)

    @property
    def count(self) -> int:
        """The number of bars."""
        return len(self.axis.lanes) if self.axis else 0

    def show(self, axis: Axis | None) -> None:
        """Show the bars of `axis`. At first, the cursor is on the last bar, which counts the largest differences."""
        fresh = not self.count
        self.page = Page(() if axis is None else (axis,))
        self.set_cursor(self.count - 1 if fresh else self.cursor)

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the bars, one bar below the other; in a narrow widget, labels are above their bars."""
        lines: list[Line] = []
        places = []
        for lane in self.axis.lanes if self.axis else ():
            lines += set_page(Page((Axis((lane,)),)), width)
            places.append((len(lines) - 1, 0, width))
        self.places = places
        return lines

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Do nothing: a click only moves the cursor."""

    def action_page(self, pages: int) -> None:
        """Move the cursor by several bars."""
        self.cursor += pages * _PAGE


class ElementTable(ColumnTable):
    """The elements with the largest errors."""

    PLACE = "On the table of elements"  # the heading in the list of keys
    HELP = (
        "The elements with the largest errors relative to the tolerance. Enter or a double click opens the actual "
        "number in Inspect, e opens the expected number; both are pinned as A and B. Left and right show other columns."
    )
