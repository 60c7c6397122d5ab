"""The codes of a small format: the table of all of them, and the digits and bits of the one under the cursor."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Label

from floatlab.formats import Format
from floatlab.formats.catalog import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Grid, Strip
from floatlab.tui.screens.formats.code_table import CodeTable
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import fill, mark_valid
from floatlab.tui.widgets.cells import Cells
from floatlab.verbs.edits import with_bit
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.registry import answer_question


class CodePage(Vertical):
    """One cursor over all codes, moved in the table, by typing a code, or by flipping its bits."""

    DEFAULT_CSS = """
    CodePage {
        #one { height: auto; layout: horizontal; padding: 0 1; }
        #one Label { width: auto; color: $role-label; padding: 0 1; }
        #code { width: 7; padding: 0; }
        #bits { width: 1fr; }
        CodeTable { height: 1fr; }
    }
    """

    @dataclass
    class Chosen(Message):
        """A code was chosen."""

        literal: str

    @dataclass
    class Missed(Message):
        """What was typed begins no code, for this reason; an empty reason takes the complaint back."""

        reason: str

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self._format: Format | None = None

    def compose(self) -> ComposeResult:
        """Compose the code under the cursor, and the table."""
        with Vertical(id="one"):
            yield Label("code", id="name-code")
            yield Input(id="code", compact=True, placeholder="0x38", max_length=4)
            yield BitRow(id="bits", ruler=False)
        yield CodeTable(id="codes")

    @property
    def table(self) -> CodeTable:
        """The table."""
        return self.query_one(CodeTable)

    def show(self, format: Format, grid: Grid) -> None:
        """Show the codes of a format, from the first one if it is another format."""
        if format != self._format:
            self._format = format
            self.table.show(grid)
            self.table.set_cursor(0)
        self._draw()

    @property
    def literal(self) -> str:
        """The code under the cursor, with its format."""
        assert self._format is not None
        return f"bits:{self.table.code(self.table.cursor)}@{short_name(self._format)}"

    @property
    def answer(self) -> Answer:
        """What `show` answers about the code under the cursor."""
        return answer_question(Question("show", (self.literal,)))[0]

    @property
    def datum(self) -> Datum:
        """The code under the cursor."""
        return self.answer.results[0]

    def _draw(self) -> None:
        parts = self.answer.parts
        assert parts is not None
        strip = parts()[0].blocks[0]
        self.query_one(BitRow).show(strip.replace(label="") if isinstance(strip, Strip) else strip)
        box = self.query_one(Input)
        if not box.has_focus:  # else it is being edited
            fill(box, self.table.code(self.table.cursor))

    @on(Cells.Moved, "CodeTable")
    def _moved(self) -> None:
        if self.table.count:
            self._draw()

    @on(Cells.Chosen, "CodeTable")
    def _chosen(self, event: Cells.Chosen) -> None:
        event.stop()
        self.post_message(self.Chosen(self.literal))

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self.table.cursor = with_bit(self.datum, event.bit, event.value).code

    @on(CodeTable.Typed)
    def _digit_typed(self, event: CodeTable.Typed) -> None:
        box = self.query_one(Input)
        box.focus()
        box.value = event.digit
        self.call_after_refresh(box.action_end)  # the focus selects the text, which the next digit would replace

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        table = self.table
        cell = table.find(event.value.strip())
        if cell is not None:
            table.cursor = cell
            self.post_message(self.Missed(""))
        else:
            ends = f"{table.code(0)} to {table.code(table.count - 1)}"
            self.post_message(self.Missed(f"no code begins so: they go from {ends}, in hexadecimal"))
        mark_valid(event.input, cell is not None)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.table.focus()

    @on(Input.Blurred)
    def _blurred(self, event: Input.Blurred) -> None:
        event.stop()
        self.post_message(self.Missed(""))
        self._draw()
