"""The operands of an operation: a box and a row of bits for each, and the questions that editing them asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Label

from floatlab.errors import FloatlabError
from floatlab.formats.catalog import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Strip
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import fill
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.verbs.edits import edited, literal_of, with_bit
from floatlab.verbs.question import Answer, Question

_NAMES = ("a", "b", "c")


class Operands(Horizontal):
    """Up to three operands: a line of boxes, and rows of bits that the screen composes elsewhere."""

    DEFAULT_CSS = """
    Operands {
        #verb { display: none; width: auto; padding: 0; color: $text; text-style: bold; }
    }
    """

    @dataclass
    class Asked(Message):
        """An edit asks another question, in a box if one is given."""

        question: Question
        kind: str = ""
        box: Input | None = None

    @dataclass
    class Refused(Message):
        """An edit cannot be done, for this reason."""

        reason: str

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id, classes="entry")
        self.rows = tuple(BitRow(id=f"bits-{name}") for name in _NAMES)
        self._question: Question | None = None
        self._answer: Answer | None = None
        self._last: dict[str, str] = {}  # the text of each box, which survives operations with fewer operands
        self._chosen = 0  # the operand that keys edit

    def compose(self) -> ComposeResult:
        """Compose the boxes."""
        yield ChoiceBar(id="verb")
        for name in _NAMES:
            yield Label(name, id=f"name-{name}")
            yield Input(id=f"operand-{name}", compact=True)

    def show(self, question: Question, answer: Answer) -> None:
        """Show a question's operands, as they were read."""
        self._question, self._answer = question, answer
        strips = [block for block in answer.page().blocks if isinstance(block, Strip)]
        self.query_one("#verb", ChoiceBar).options = (("operation", f"{question.verb} ▾"),)
        for place, name in enumerate(_NAMES):
            box, row = self.query_one(f"#operand-{name}", Input), self.rows[place]
            row.leads = place == self._chosen
            used = place < len(question.values)
            box.display = self.query_one(f"#name-{name}").display = row.display = used
            if used:
                self._last[name] = question.values[place]
                fill(box, question.values[place])
                row.show(strips[place])

    def values(self, count: int) -> tuple[str, ...]:
        """Return values for an operation of this many operands: those that stand in the boxes, or did."""
        return tuple(self._last.get(name, "1") for name in _NAMES[:count])

    def edit(self, name: str) -> None:
        """Do an edit of EDITS to the operand that has, or had, the focus."""
        if self._question is not None:
            self._change(min(self._chosen, len(self._question.values) - 1), lambda datum: edited(datum, name))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        name = (event.input.id or "")[-1]
        if self._question is not None:
            question = self._with(self._question, _NAMES.index(name), event.value)
            self.post_message(self.Asked(question, f"operand {name}", event.input))

    def flip(self, event: BitRow.Flipped) -> None:
        """Flip a bit of a row, or set it."""
        self.follow(event.widget)
        self._change(self._chosen, lambda datum: with_bit(datum, event.bit, event.value))

    def follow(self, focused: Widget | None) -> None:
        """Let keys edit the operand that has the focus."""
        places = [*self.rows, *self.query(Input)]
        if focused in places:
            self._chosen = places.index(focused) % len(_NAMES)
        for place, row in enumerate(self.rows):
            row.leads = place == self._chosen

    @staticmethod
    def _with(question: Question, place: int, value: str) -> Question:
        values = question.values
        return question.replace(values=(*values[:place], value, *values[place + 1 :]))

    def _change(self, place: int, change: Callable[[Datum], Datum]) -> None:
        """Ask about a changed operand. It keeps its format, which the question names if it named none."""
        question, answer = self._question, self._answer
        if question is None or answer is None or place >= len(answer.operands):
            return
        operands = answer.operands
        try:
            value = literal_of(change(operands[place]))
        except FloatlabError as error:
            self.post_message(self.Refused(str(error)))
            return
        format = operands[place].format
        if len({operand.format for operand in operands} | set(question.formats)) > 1 and "@" not in value:
            value += f"@{short_name(format)}"
        changed = self._with(question, place, value)
        if not question.formats and not any("@" in other for other in question.values):
            changed = changed.replace(formats=(format,))
        self.post_message(self.Asked(changed))
