"""The widget around a chart of `page/chart.py`, with a cursor at a value on the horizontal scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.segment import Segment
from textual import events

from floatlab.page.chart import Scale, chart_lines, scales_of
from floatlab.page.model import Chart, Line, Role, Span, cut_columns, line, text_of
from floatlab.tui.themes import CURSOR
from floatlab.tui.widgets import PageView

_FRAME = 3  # lines besides the rows of the plot: its name, the horizontal scale, and the numbers below it
_NAMED = 14  # with fewer rows than this, a legend of several lines is not shown
_LEAST = 2  # the smallest number of rows of the plot


class Plot(PageView, can_focus=False):
    """A chart that fills the widget; a click moves the cursor."""

    DEFAULT_CSS = """
    Plot { scrollbar-size: 0 0; }
    """

    def __init__(self, point: Callable[[float], None], *, id: str | None = None) -> None:
        """Start empty. `point` is called with the clicked value on the horizontal scale."""
        super().__init__(id=id)
        self._point = point
        self._chart: Chart | None = None
        self._marks: tuple[float, ...] = ()
        self._at: float | None = None
        self._head = 1  # the number of lines above the rows of the plot
        self._left = self._room = 0  # the first column of the plot area, and the number of its columns

    def show(self, chart: Chart, at: float | None = None, marks: Iterable[float] = ()) -> None:
        """Show a chart, with the cursor at `at` (None: no cursor), and a mark on the axis for each value of `marks`."""
        self._chart, self._at, self._marks = chart, at, tuple(marks)
        signs = ("◆ change of remedy" if self._marks else "", "▲ cursor" if at is not None else "")
        self.border_subtitle = "  ".join(filter(None, signs))  # drawn in the lower edge of the frame
        self.reset()
        self.refresh()

    def on_resize(self) -> None:
        """Draw the chart again for the new size."""
        self.reset()

    @property
    def _across(self) -> Scale | None:
        scales = scales_of(self._chart) if self._chart is not None else None
        return scales.across if scales is not None else None

    def column_of(self, x: float) -> int:
        """Return the column of the plot area for a value; -1 if the value is outside."""
        across = self._across
        return round(across.place(x) * (self._room - 1)) if across is not None and across.shows(x) else -1

    def _shows(self, x: float) -> bool:
        """Return whether the plot has a column for x. After a restart, the run may not have reached x yet."""
        return 0 <= self.column_of(x) < self._room

    def number_at(self, column: int) -> float | None:
        """Return the value at a column of the plot area; None if no plot is drawn.

        For a column outside the plot area, return the value at the nearest column inside.
        """
        across = self._across
        if across is None or self._room < 2:
            return None
        return across.at(min(max(column, 0), self._room - 1) / (self._room - 1))

    def moved(self, x: float, by: int) -> float:
        """Return the value `by` columns to the right of x, within the plot; x itself if no plot is drawn."""
        number = self.number_at(self.column_of(x) + by)
        return x if number is None else number

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the chart, with the marks and the cursor in them."""
        if self._chart is None:
            return []
        height = max(self.scrollable_content_region.height - _FRAME, _LEAST)
        chart = self._chart.replace(height=height, dots=self.app.draws_dots)
        chart = chart.replace(named=chart.dots and height >= _NAMED)
        lines = chart_lines(chart, width)
        if (over := len(lines) - height - _FRAME) > 0:  # the legend has further lines
            height -= over
            lines = chart_lines(chart.replace(height=height), width)
        self._head = max(len(lines) - height - _FRAME, 0) + 1
        if len(lines) < height + _FRAME:
            self._room = 0
            return lines
        self._left = len(lines[self._head][0].text)
        self._room = len(text_of(lines[-2])) - self._left
        for x in filter(self._shows, self._marks):
            lines[-2] = _put(lines[-2], self._left + self.column_of(x), Span("◆", Role.CHANGED))
        if self._at is not None and self._shows(self._at):
            column = self._left + self.column_of(self._at)
            for y in range(self._head, self._head + height):
                if text_of(cut_columns(lines[y], column, column + 1)).isspace():
                    lines[y] = _put(lines[y], column, Span("┊", Role.RULER))
            lines[-2] = _put(lines[-2], column, Span("▲", Role.CODE))
        return lines

    def segments(self, y: int) -> list[Segment]:
        """Return the segments of a line. If the cursor crosses a curve in this line, the curve is highlighted there."""
        if self._at is None or not self._room or not self._shows(self._at) or not self._head <= y < len(self.lines) - 2:
            return super().segments(y)
        column = self._left + self.column_of(self._at)
        before, here, after = (
            cut_columns(self.lines[y], *ends) for ends in ((0, column), (column, column + 1), (column + 1, 1 << 16))
        )
        under = self.pieces(here) if text_of(here) in "┊ " else self._marked(here)
        return [*self.pieces(before), *under, *self.pieces(after)]

    def _marked(self, here: Line) -> list[Segment]:
        """Return the character at which the cursor crosses a curve, highlighted."""
        chrome = self.app.chrome
        return [Segment(text_of(here), CURSOR)] if chrome.plain else self.pieces(here, chrome.row)

    def on_click(self, event: events.Click) -> None:
        """Call the function `point` with the clicked value on the horizontal scale."""
        offset = event.get_content_offset(self)
        number = self.number_at(offset.x - self._left) if offset is not None and offset.x >= self._left else None
        if number is not None:
            self._point(number)


def _put(runs: Line, column: int, run: Span) -> Line:
    """Return a line with one character changed."""
    return line(cut_columns(runs, 0, column), run, cut_columns(runs, column + 1, 1 << 16))
