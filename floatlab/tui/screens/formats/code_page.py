"""The codes of a small format to walk over: the table, and of the code under the cursor its digits and its bits."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, Label

from floatlab.formats.names import short_name
from floatlab.page.model import Strip
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import fill, judge
from floatlab.tui.widgets.cells import Cells
from floatlab.tui.widgets.code_table import CodeTable
from floatlab.verbs.edits import with_bit
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.formats import Format
    from floatlab.page.model import Grid
    from floatlab.verbs.answer import Answer


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

    class Chosen(Message):
        """A code was chosen."""

        def __init__(self, literal: str) -> None:
            """Name it, with its format."""
            super().__init__()
            self.literal = literal

    class Missed(Message):
        """What was typed begins no code; empty words say that it does again."""

        def __init__(self, words: str) -> None:
            """Say why."""
            super().__init__()
            self.words = words

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id)
        self._format: Format | None = None

    def compose(self) -> ComposeResult:
        """Put the code under the cursor above the table."""
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
        """Show a format's codes, from the first on where it is another format."""
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
        """What `show` says of the code under the cursor."""
        return answer_question(Question("show", (self.literal,)))[0]

    @property
    def datum(self) -> Any:
        """The code under the cursor as a datum."""
        return self.answer.results[0]

    def _draw(self) -> None:
        parts = self.answer.parts
        assert parts is not None
        strip = parts()[0].blocks[0]
        self.query_one(BitRow).show(strip.replace(label="") if isinstance(strip, Strip) else strip)
        box = self.query_one(Input)
        if not box.has_focus:  # the box being edited is not rewritten under the cursor
            fill(box, self.table.code(self.table.cursor))

    @on(Cells.Moved)
    def _moved(self) -> None:
        if self.table.count:
            self._draw()

    @on(Cells.Chosen)
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
        self.call_after_refresh(box.action_end)  # the focus would select it all

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
        judge(event.input, cell is not None)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.table.focus()

    @on(Input.Blurred)
    def _blurred(self, event: Input.Blurred) -> None:
        event.stop()
        self.post_message(self.Missed(""))
        self._draw()
