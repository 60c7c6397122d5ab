"""The operands of an operation, as boxes and rows of bits; a search for operands where fma and multiply-add differ."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widget import Widget
from textual.widgets import Input, Label, ProgressBar

from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.formats.catalog import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Strip
from floatlab.tui.widgets import BitRow, ButtonBar, ChoiceBar, Window
from floatlab.tui.widgets.boxes import fill
from floatlab.verbs.arithmetic.answer import no_witness, witness
from floatlab.verbs.edits import literal_of
from floatlab.verbs.question import Answer, Question

_NAMES = ("a", "b", "c")


class Operands(Horizontal):
    """Up to three operands, each with a box and a row of bits. The screen places the rows of bits.

    `pick_verb` is called when the user clicks the name of the operation. Only small screens show this name.
    """

    DEFAULT_CSS = """
    Operands #verb { display: none; width: auto; padding: 0; color: $text; text-style: bold; }
    """

    def __init__(self, question: Question, pick_verb: Callable[[str], object], *, id: str | None = None) -> None:
        """Start empty."""
        super().__init__(id=id, classes="entry")
        self.rows = tuple(BitRow(id=f"bits-{name}") for name in _NAMES)
        self._question = question
        self._operands: tuple[Datum, ...] = ()
        self._pick_verb = pick_verb
        # The last texts of the boxes, also of those that the current operation does not use.
        self._last: dict[str, str] = {}
        self._chosen = 0  # the number of the operand to which keys apply

    def compose(self) -> ComposeResult:
        """Compose the boxes."""
        yield ButtonBar(self._pick_verb, id="verb")
        for name in _NAMES:
            yield Label(name, id=f"name-{name}")
            yield Input(id=f"operand-{name}", compact=True)

    def show(self, question: Question, answer: Answer) -> None:
        """Show the operands of a question: the typed texts in the boxes, and the bits of the numbers read from them."""
        self._question, self._operands = question, answer.operands
        strips = [block for block in answer.page().blocks if isinstance(block, Strip)]
        self.query_one("#verb", ChoiceBar).options = (("operation", f"{question.verb} ▾"),)
        for place, (name, box, row) in enumerate(zip(_NAMES, self.query(Input), self.rows, strict=True)):
            row.is_active = place == self._chosen
            used = place < len(question.values)
            box.display = self.query_one(f"#name-{name}").display = row.display = used
            if used:
                self._last[name] = question.values[place]
                fill(box, question.values[place])
                row.show(strips[place])

    def values(self, count: int) -> tuple[str, ...]:
        """Return the values of the first `count` operands: the last text of each box, or 1 if a box never had text."""
        return tuple(self._last.get(name, "1") for name in _NAMES[:count])

    def follow(self, focused: Widget | None) -> None:
        """Make keys apply to the focused operand. If no operand has the focus, keys apply to the same one as before."""
        places = [*self.rows, *self.query(Input)]
        if focused in places:
            self._chosen = places.index(focused) % len(_NAMES)
        for place, row in enumerate(self.rows):
            row.is_active = place == self._chosen

    def typed(self, box: Input) -> Question:
        """Return the question with the text of `box` as the operand that belongs to this box."""
        return self._with(_NAMES.index((box.id or "")[-1]), box.value)

    def _with(self, place: int, value: str) -> Question:
        values = self._question.values
        return self._question.replace(values=(*values[:place], value, *values[place + 1 :]))

    def edited(self, change: Callable[[Datum], Datum]) -> Question:
        """Return the question after an edit of the operand that was focused last; raises FloatlabError.

        The operand keeps its format. If neither the question nor any operand names a format, the question gets the
        format of this operand.
        """
        question, operands = self._question, self._operands
        place = min(self._chosen, len(operands) - 1)
        value, format = literal_of(change(operands[place])), operands[place].format
        if len({operand.format for operand in operands} | set(question.formats)) > 1 and "@" not in value:
            value += f"@{short_name(format)}"
        changed = self._with(place, value)
        if not question.formats and not any("@" in other for other in question.values):
            changed = changed.replace(formats=(format,))
        return changed


class WitnessSearch(Window["tuple[str, ...] | str | None"]):
    """A search for operands for which fused and separate multiply-add differ, with a progress bar.

    The window returns the operands, a message if none were found, or None if the user cancelled.
    """

    DEFAULT_CSS = """
    WitnessSearch > Vertical { width: 60; }
    """
    BINDINGS = [Binding("escape", "give_up", "Give up", id="witness.cancel")]

    def __init__(self, question: Question, format: Format) -> None:
        """Store the question and the format. The search starts from the operands of the question."""
        super().__init__()
        self._question, self._format = question, format
        self._ended = Event()

    def compose(self) -> ComposeResult:
        """Compose the progress bar."""
        with Vertical():
            yield Label("Searching for an example where fused and separate differ", markup=False)
            yield ProgressBar(show_eta=False)
            yield Label("Escape cancels", markup=False)

    @work(thread=True)
    def on_mount(self) -> None:
        """Search on a worker thread."""
        try:
            result: tuple[str, ...] | str | None = witness(
                self._format, self._question.context, near=self._question.values, progress=self._tell
            )
        except FloatlabError as error:
            result = str(error)
        if not self._ended.is_set():
            self.app.call_from_thread(self.dismiss, result or no_witness(self._format))

    def _tell(self, done: int, total: int) -> bool:
        if not self._ended.is_set():
            self.app.call_from_thread(self.query_one(ProgressBar).update, total=total, progress=done)
        return not self._ended.is_set()

    def action_give_up(self) -> None:
        """End the search."""
        self._ended.set()
        self.dismiss(None)

    def on_unmount(self) -> None:
        """End the search when the window closes."""
        self._ended.set()
