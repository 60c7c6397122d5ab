"""Every code of a small format, as cells that a cursor walks over."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from textual.binding import Binding
from textual.message import Message

from floatlab.page.layout import set_page
from floatlab.page.model import Grid, Line, Page, Role, text_of
from floatlab.tui.widgets.cells import Cells, cursor_keys


class CodeTable(Cells):
    """The grid of a format's page, laid out as in every page; its cells are found again by their codes."""

    PLACE = "On the table of codes"  # its name in the list of keys
    HELP = (
        "Arrows move over the codes, digits jump to one, Enter or a click opens it in Inspect; a and b pin it. "
        "Codes follow each other down the columns."
    )
    BINDINGS = [
        Binding("enter", "choose", "Inspect", id="code.open", key_display="enter"),
        Binding("left,h", "across(-1)", "Column before", show=False, id="code.left"),
        Binding("right,l", "across(1)", "Column after", show=False, id="code.right"),
        *cursor_keys("code", "Code"),
        *(Binding(str(n), f"type('{n}')", "Jump to a code", show=False, id=f"code.{n}") for n in range(10)),
    ]

    @dataclass
    class Typed(Message):
        """A digit was typed, which begins a code."""

        digit: str

    @property
    def grid(self) -> Grid | None:
        """The codes, if any are shown."""
        return next((block for block in self.page.blocks if isinstance(block, Grid)), None)

    def show(self, grid: Grid) -> None:
        """Show the codes of a format."""
        self.page = Page((grid,))
        self.cursor = self.validate_cursor(self.cursor)
        self.show_cursor()

    @property
    def count(self) -> int:
        """How many codes there are."""
        return len(self.grid.cells) if self.grid else 0

    def code(self, cell: int) -> str:
        """Return the code of a cell."""
        assert self.grid is not None
        return next(run.text for run in self.grid.cells[cell] if run.role is Role.CODE)

    def set_lines(self, width: int) -> list[Line]:
        """Set the grid, and find where each code stands."""
        lines = set_page(self.page, width)
        starts = []
        for y, runs in enumerate(lines):
            x = 0
            for run in runs:
                starts += [(x, y)] if run.role is Role.CODE else []
                x += len(run.text)
        # Codes follow each other down the columns. A cell is as wide as its text, without the spaces after it.
        columns = [*sorted({x for x, _ in starts}), width + 2]
        widths = {a: b - a - 2 for a, b in pairwise(columns)}
        full = max((len(text_of(cell)) for cell in self.grid.cells), default=0) if self.grid else 0
        self.places = [(y, x, min(widths[x], full)) for x, y in sorted(starts)]
        return lines

    def find(self, typed: str) -> int | None:
        """Return the first code that begins with these hexadecimal digits."""
        wanted = "0x" + typed.lower().removeprefix("0x")
        return next((cell for cell in range(self.count) if self.code(cell).startswith(wanted)), None)

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Open the code that was clicked."""
        self.action_choose()

    def action_across(self, columns: int) -> None:
        """Move to the same line of another column."""
        target = self.cursor + columns * len(self.lines)
        if 0 <= target < self.count:
            self.cursor = target

    def action_type(self, digit: str) -> None:
        """Report a digit that was typed."""
        self.post_message(self.Typed(digit))
