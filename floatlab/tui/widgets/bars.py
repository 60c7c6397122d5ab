"""A histogram as bars: a cursor walks over them."""

from __future__ import annotations

from textual import events
from textual.binding import Binding

from floatlab.page.layout import set_page
from floatlab.page.model import Axis, Line, Page
from floatlab.tui.widgets.cells import Cells


class Bars(Cells):
    """One bar a lane of an axis, as wide as there is room for."""

    PLACE = "On the bars"  # what the list of keys calls it
    HELP = "Arrows move over the bars; above stands how many elements the one under the cursor has."
    BINDINGS = [
        Binding("up,k", "move(-1)", "Bar before", show=False, id="bars.before"),
        Binding("down,j", "move(1)", "Bar after", show=False, id="bars.after"),
        Binding("pageup", "move(-8)", "Bars before", show=False, id="bars.up"),
        Binding("pagedown", "move(8)", "Bars after", show=False, id="bars.down"),
        Binding("home", "jump(0)", "First bar", show=False, id="bars.first"),
        Binding("end", "jump(-1)", "Last bar", show=False, id="bars.last"),
    ]

    @property
    def axis(self) -> Axis | None:
        """The bars, if there are any."""
        return next((block for block in self.page.blocks if isinstance(block, Axis)), None)

    @property
    def count(self) -> int:
        """How many bars there are."""
        return len(self.axis.lanes) if self.axis else 0

    def show(self, axis: Axis | None) -> None:
        """Show other bars, the last one under the cursor where there were none: it has the largest differences."""
        fresh = not self.count
        self.page = Page(() if axis is None else (axis,))
        self.set_cursor(self.count - 1 if fresh else self.cursor)

    def set_lines(self, width: int) -> list[Line]:
        """Set one bar after the other; a narrow screen has the name of each above it."""
        lines: list[Line] = []
        self.places = []
        for lane in self.axis.lanes if self.axis else ():
            lines += set_page(Page((Axis((lane,)),)), width)
            self.places.append((len(lines) - 1, 0, width))
        return lines

    def on_click(self, event: events.Click) -> None:
        """Go to a bar."""
        cell = self.cell_at(*self.place_of(event))
        if cell >= 0:
            self.cursor = cell
