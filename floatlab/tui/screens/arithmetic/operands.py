"""The operands of an operation: a box and a row of bits each, and the question that follows from touching them."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Label

from floatlab.errors import FloatlabError
from floatlab.formats.names import short_name
from floatlab.page.model import Strip
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import fill
from floatlab.tui.widgets.choices import Choices
from floatlab.verbs.edits import edited, literal_of, with_bit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from textual.widget import Widget

    from floatlab.verbs.answer import Answer
    from floatlab.verbs.question import Question

_NAMES = ("a", "b", "c")


class Operands(Horizontal):
    """Up to three operands: a line of boxes, and rows of bits that the screen puts where there is room for them."""

    DEFAULT_CSS = """
    Operands {
        #verb { display: none; width: auto; padding: 0; color: $text; text-style: bold; }
    }
    """

    class Asked(Message):
        """Another question follows from what was done to an operand, in a box or without one."""

        def __init__(self, question: Question, kind: str = "", box: Input | None = None) -> None:
            """Hold the question and the kind of the edit."""
            super().__init__()
            self.question, self.kind, self.box = question, kind, box

    class Refused(Message):
        """What was tried cannot be done to this operand."""

        def __init__(self, words: str) -> None:
            """Say why."""
            super().__init__()
            self.words = words

    def __init__(self, *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id, classes="entry")
        self.rows = tuple(BitRow(id=f"bits-{name}") for name in _NAMES)
        self._question: Question | None = None
        self._answer: Answer | None = None
        self._last: dict[str, str] = {}  # what each box held, for operations that take fewer
        self._chosen = 0  # the operand that keys edit

    def compose(self) -> ComposeResult:
        """Compose the boxes."""
        yield Choices(id="verb")
        for name in _NAMES:
            yield Label(name, id=f"name-{name}")
            yield Input(id=f"operand-{name}", compact=True)

    @property
    def boxes(self) -> Iterator[Input]:
        """The boxes."""
        yield from self.query(Input)

    def show(self, question: Question, answer: Answer) -> None:
        """Show a question's operands, as they were read."""
        self._question, self._answer = question, answer
        strips = [block for block in answer.page().blocks if isinstance(block, Strip)]
        self.query_one("#verb", Choices).options = (("operation", f"{question.verb} ▾"),)
        for place, name in enumerate(_NAMES):
            box, row = self.query_one(f"#operand-{name}", Input), self.rows[place]
            row.leads = place == self._chosen
            there = place < len(question.values)
            box.display = self.query_one(f"#name-{name}").display = row.display = there
            if there:
                self._last[name] = question.values[place]
                fill(box, question.values[place])
                row.show(strips[place])

    def values(self, count: int) -> tuple[str, ...]:
        """Return values for an operation that takes so many: those that are there, or were."""
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
            asked = self._with(_NAMES.index(name), event.value)
            self.post_message(self.Asked(asked, f"operand {name}", event.input))

    def flip(self, row: BitRow, bit: int, value: int | None) -> None:
        """Flip a bit of a row, or set it."""
        self.follow(row)
        self._change(self._chosen, lambda datum: with_bit(datum, bit, value))

    def follow(self, focused: Widget | None) -> None:
        """Follow the focus to the operand that keys edit."""
        places = [*self.rows, *self.boxes]
        if focused in places:
            self._chosen = places.index(focused) % len(_NAMES)
        for place, row in enumerate(self.rows):
            row.leads = place == self._chosen

    def _with(self, place: int, value: str) -> Question:
        assert self._question is not None
        values = list(self._question.values)
        values[place] = value
        return self._question.replace(values=tuple(values))

    def _change(self, place: int, change: Callable[[Any], Any]) -> None:
        """Ask about a changed operand; it keeps its format, and so does the question that names none."""
        question, answer = self._question, self._answer
        if question is None or answer is None or place >= len(answer.operands):
            return
        operands = answer.operands
        try:
            value = literal_of(change(operands[place]))
        except FloatlabError as error:
            self.post_message(self.Refused(str(error)))
            return
        own = operands[place].format
        if len({each.format for each in operands} | set(question.formats)) > 1 and "@" not in value:
            value += f"@{short_name(own)}"
        asked = self._with(place, value)
        if not question.formats and not any("@" in each for each in question.values):
            asked = asked.replace(formats=(own,))
        self.post_message(self.Asked(asked))
