"""Every code of a small format: a cursor walks over them, and each can be opened."""

from __future__ import annotations

from itertools import pairwise

from textual import events
from textual.binding import Binding
from textual.message import Message

from floatlab.page.layout import set_page
from floatlab.page.model import Grid, Line, Page, Role, text_of
from floatlab.tui.widgets.cells import Cells
from floatlab.tui.widgets.drawing import EMPTY


class CodeTable(Cells):
    """The grid of a format's page; its cells are set by the layout of all pages, and found again by their codes."""

    PLACE = "On the table of codes"  # what the list of keys calls it
    HELP = (
        "Arrows move over the codes, digits jump to one, Enter or a click opens it in Inspect; a and b pin it. "
        "Columns run downwards, so neighbours stand below each other."
    )
    BINDINGS = [
        Binding("enter", "choose", "Inspect", id="code.open", key_display="enter"),
        Binding("up,k", "move(-1)", "Code before", show=False, id="code.before"),
        Binding("down,j", "move(1)", "Code after", show=False, id="code.after"),
        Binding("left,h", "across(-1)", "Column before", show=False, id="code.left"),
        Binding("right,l", "across(1)", "Column after", show=False, id="code.right"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="code.up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="code.down"),
        Binding("home", "jump(0)", "First code", show=False, id="code.first"),
        Binding("end", "jump(-1)", "Last code", show=False, id="code.last"),
        *(Binding(str(n), f"type('{n}')", "Jump to a code", show=False, id=f"code.{n}") for n in range(10)),
    ]

    class Typed(Message):
        """A digit was typed: the beginning of a code."""

        def __init__(self, digit: str) -> None:
            """Name the digit."""
            super().__init__()
            self.digit = digit

    @property
    def grid(self) -> Grid | None:
        """The codes, if any are shown."""
        return next((block for block in self.page.blocks if isinstance(block, Grid)), None)

    def show(self, grid: Grid | None) -> None:
        """Show a format's codes, or none."""
        self.page = EMPTY if grid is None else Page((grid,))
        self.cursor = self.validate_cursor(self.cursor)
        self.show_cursor()

    @property
    def count(self) -> int:
        """How many codes there are."""
        return len(self.grid.cells) if self.grid else 0

    def code(self, cell: int) -> str:
        """Return a cell's code."""
        assert self.grid is not None
        return next(run.text for run in self.grid.cells[cell] if run.role is Role.CODE)

    def set_lines(self, width: int) -> list[Line]:
        """Set the grid, and find where each code went."""
        lines = set_page(self.page, width)
        starts = []
        for y, runs in enumerate(lines):
            x = 0
            for run in runs:
                starts += [(x, y)] if run.role is Role.CODE else []
                x += len(run.text)
        # Columns run downwards. A cell is as wide as what it says, the spaces after it left out.
        columns = [*sorted({x for x, _ in starts}), width + 2]
        widths = {a: b - a - 2 for a, b in pairwise(columns)}
        full = max((len(text_of(cell)) for cell in self.grid.cells), default=0) if self.grid else 0
        self.places = [(y, x, min(widths[x], full)) for x, y in sorted(starts)]
        return lines

    def find(self, typed: str) -> int | None:
        """Return the first code that begins with these hexadecimal digits."""
        wanted = "0x" + typed.lower().removeprefix("0x")
        return next((cell for cell in range(self.count) if self.code(cell).startswith(wanted)), None)

    def on_click(self, event: events.Click) -> None:
        """Open the code that was clicked."""
        cell = self.cell_at(*self.place_of(event))
        if cell >= 0:
            event.stop()
            self.cursor = cell
            self.action_choose()

    def action_across(self, columns: int) -> None:
        """Move to the same line of another column."""
        target = self.cursor + columns * len(self.lines)
        if 0 <= target < self.count:
            self.cursor = target

    def action_page(self, pages: int) -> None:
        """Move as many codes as are in sight below each other."""
        self.cursor += pages * self.in_sight

    def action_type(self, digit: str) -> None:
        """Begin to type a code."""
        self.post_message(self.Typed(digit))
