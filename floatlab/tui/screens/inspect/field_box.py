"""The names of a number's fields (code, S, E, T), which can be clicked, and a box to edit one of them."""

from __future__ import annotations

from textual import getters
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.widgets import Input

from floatlab.numbers.datum import Datum
from floatlab.tui.widgets import ChoiceBar
from floatlab.tui.widgets.boxes import fill, mark_valid
from floatlab.verbs.edits import fields


class FieldBox(Horizontal):
    """The fields of a datum, and a box for the field that is being edited."""

    DEFAULT_CSS = """
    FieldBox {
        height: auto;
        #names { width: auto; max-width: 100%; }
        #field { width: 24; display: none; }
        #field.-open { display: block; }
    }
    """

    _last = ""  # the field for which the box was opened last
    names, box = getters.query_one(ChoiceBar), getters.query_one(Input)

    def compose(self) -> ComposeResult:
        """Compose the names of the fields and the box."""
        yield ChoiceBar(self.open, id="names")
        yield Input(id="field", compact=True)

    def show(self, datum: Datum) -> None:
        """Show the fields of a datum.

        If the format lacks the field for which the box is open, the box closes. While the box has the focus, its text
        does not change.
        """
        texts = fields(datum)
        self.names.options = tuple((name, f"{name} {text}") for name, text in texts.items())
        if self.names.current and self.names.current not in texts:
            self._close()
        elif self.names.current and not self.box.has_focus:
            fill(self.box, texts[self.names.current])

    def open(self, name: str) -> None:
        """Open the box for a field. If the last text typed for this field was wrong, this text is in the box again."""
        if name != self._last:
            mark_valid(self.box, True)
        self.names.current = self._last = name
        fill(self.box, dict(self.names.options)[name].partition(" ")[2])
        self.box.add_class("-open")
        self.box.focus()
        self.box.select_all()

    def open_next(self) -> None:
        """Open the first field, or the field after the open one."""
        names = [name for name, _ in self.names.options]
        current = self.names.current
        self.open(names[(names.index(current) + 1) % len(names) if current else 0])

    def _close(self) -> None:
        self.names.current = ""
        self.box.remove_class("-open")

    on_input_blurred = _close
