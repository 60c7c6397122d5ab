"""The codes of a small format: a table, with a box and a row of bits for the code under the cursor."""

from __future__ import annotations

from itertools import pairwise

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label

from floatlab.formats import Format
from floatlab.formats.catalog import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Grid, Line, Page, Role, Strip, text_of
from floatlab.page.text_layout import set_page
from floatlab.tui.widgets import BitRow, Cells, cursor_keys
from floatlab.tui.widgets.boxes import fill, mark_valid
from floatlab.verbs.edits import with_bit
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.registry import answer_question


class CodeTable(Cells):
    """The table of all codes of a format; a cell has a code and its value."""

    PLACE = "On the table of codes"  # the heading in the list of keys
    HELP = (
        "Arrows move over the codes, digits jump to a code, Enter or a click opens the code in Inspect; a and b pin "
        "it. Consecutive codes are below each other."
    )
    BINDINGS = [
        Binding("enter", "choose", "Inspect", id="code.open", key_display="enter"),
        Binding("left,h", "across(-1)", "Previous column", show=False, id="code.left"),
        Binding("right,l", "across(1)", "Column after", show=False, id="code.right"),
        *cursor_keys("code", "Code"),
        *(Binding(str(n), f"type('{n}')", "Jump to a code", show=False, id=f"code.{n}") for n in range(10)),
    ]

    @property
    def grid(self) -> Grid | None:
        """The codes, if any are shown."""
        return next((block for block in self.page.blocks if isinstance(block, Grid)), None)

    def show(self, grid: Grid) -> None:
        """Show the codes of a format."""
        self.page = Page((grid,))
        self.set_cursor(0)

    @property
    def count(self) -> int:
        """The number of codes."""
        return len(self.grid.cells) if self.grid else 0

    def code(self, cell: int) -> str:
        """Return the code of a cell."""
        assert self.grid is not None
        return next(run.text for run in self.grid.cells[cell] if run.role is Role.CODE)

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the grid, and store the positions of all codes."""
        lines = set_page(self.page, width)
        starts = []
        for y, runs in enumerate(lines):
            x = 0
            for run in runs:
                starts += [(x, y)] if run.role is Role.CODE else []
                x += len(run.text)
        # Codes ascend down the columns. Every cell is as wide as the longest text, if there is room.
        columns = [*sorted({x for x, _ in starts}), width + 2]
        widths = {a: b - a - 2 for a, b in pairwise(columns)}
        full = max((len(text_of(cell)) for cell in self.grid.cells), default=0) if self.grid else 0
        self.places = [(y, x, min(widths[x], full)) for x, y in sorted(starts)]
        return lines

    def find(self, typed: str) -> int | None:
        """Return the cell of the first code that begins with these hexadecimal digits, or None if there is none."""
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
        """Put the typed digit into the box for the code, and move the focus to this box."""
        box = self.screen.query_one("#code", Input)
        box.focus()
        box.value = digit
        self.call_after_refresh(box.action_end)  # the focus selects the text, and the next digit would replace it


class CodePage(Vertical):
    """The codes of a format. The user moves the cursor with arrow keys, by typing a code, or by flipping bits."""

    DEFAULT_CSS = """
    CodePage #one { height: auto; }
    CodePage #code { width: 7; padding: 0; }
    """

    table, row, box = getters.query_one(CodeTable), getters.query_one(BitRow), getters.query_one(Input)

    _format: Format | None = None

    def compose(self) -> ComposeResult:
        """Compose the code under the cursor, and the table."""
        with Horizontal(id="one", classes="entry"):
            yield Label("code", id="name-code")
            yield Input(id="code", compact=True, placeholder="0x38", max_length=4)
            yield BitRow(id="bits", ruler=False)
        yield CodeTable(id="codes")

    def show(self, format: Format, grid: Grid) -> None:
        """Show the codes of a format; if the format changes, the cursor goes to the first code."""
        if format != self._format:
            self._format = format
            self.table.show(grid)
        self.draw()

    @property
    def literal(self) -> str:
        """The text of the code under the cursor, with its format."""
        assert self._format is not None
        return f"bits:{self.table.code(self.table.cursor)}@{short_name(self._format)}"

    @property
    def answer(self) -> Answer:
        """The answer of `show` for the code under the cursor."""
        return answer_question(Question("show", (self.literal,)))[0]

    @property
    def datum(self) -> Datum:
        """The datum of the code under the cursor."""
        return self.answer.results[0]

    def draw(self) -> None:
        """Show the code under the cursor."""
        strip = self.answer.parts()[0].blocks[0]
        self.row.show(strip.replace(label="") if isinstance(strip, Strip) else strip)
        if not self.box.has_focus:  # unless it is being edited
            fill(self.box, self.table.code(self.table.cursor))

    @on(Cells.Moved, "CodeTable")
    def _moved(self) -> None:
        if self.table.count:
            self.draw()

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        event.stop()
        self.table.cursor = with_bit(self.datum, event.bit, event.value).code

    def find(self) -> str:
        """Go to the first code that begins with the text of the box; return an error message if there is none."""
        table = self.table
        cell = table.find(self.box.value.strip())
        mark_valid(self.box, cell is not None)
        if cell is None:
            ends = f"{table.code(0)} to {table.code(table.count - 1)}"
            return f"no code begins with this: codes are {ends}, in hexadecimal"
        table.cursor = cell
        return ""

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.table.focus()
