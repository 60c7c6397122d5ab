"""The fields of a datum in one line: code, sign, exponent, mantissa; each opens a box to type over it."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from floatlab.tui.widgets.boxes import fill
from floatlab.tui.widgets.choices import Choices
from floatlab.verbs.edits import fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class FieldBox(Horizontal):
    """A datum's fields, and the box for the one that is being typed over."""

    DEFAULT_CSS = """
    FieldBox {
        height: auto;
        #names { width: auto; max-width: 100%; }
        #field { width: 24; display: none; }
        #field.-open { display: block; }
    }
    """

    class Typed(Message):
        """A field was typed anew."""

        def __init__(self, name: str, box: Input) -> None:
            """Name the field, and its box."""
            super().__init__()
            self.name, self.box = name, box

    def compose(self) -> ComposeResult:
        """Put the box after the fields."""
        yield Choices(id="names")
        yield Input(id="field", compact=True)

    @property
    def _names(self) -> Choices:
        return self.query_one(Choices)

    @property
    def _box(self) -> Input:
        return self.query_one(Input)

    def show(self, datum: Any) -> None:
        """Show a datum's fields; the box being edited is not rewritten under the cursor."""
        found = {field.name: field.text for field in fields(datum)}
        self._names.options = tuple((name, f"{name} {text}") for name, text in found.items())
        if self._names.current and self._names.current not in found:
            self._close()
        elif self._names.current and not self._box.has_focus:
            fill(self._box, found[self._names.current])

    def open(self, name: str) -> None:
        """Open the box for a field."""
        self._names.current = name
        fill(self._box, dict(self._names.options)[name].partition(" ")[2])
        self._box.add_class("-open")
        self._box.focus()
        self._box.select_all()

    def open_next(self) -> None:
        """Open the first field, or the one after that which is open."""
        known = [name for name, _ in self._names.options]
        current = self._names.current
        self.open(known[(known.index(current) + 1) % len(known) if current else 0])

    def _close(self) -> None:
        self._names.current = ""
        self._box.remove_class("-open")

    @on(Choices.Chosen)
    def _chosen(self, event: Choices.Chosen) -> None:
        event.stop()
        self.open(event.name)

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._names.current:
            self.post_message(self.Typed(self._names.current, event.input))

    @on(Input.Blurred)
    def _blurred(self) -> None:
        self._close()
