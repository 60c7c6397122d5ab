"""The fields of a datum in one line: code, sign, exponent, mantissa. Each opens a box to type over it."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input

from floatlab.numbers.datum import Datum
from floatlab.tui.widgets.boxes import fill
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.verbs.edits import fields


class FieldBox(Horizontal):
    """The fields, and a box for the one that is being edited."""

    DEFAULT_CSS = """
    FieldBox {
        height: auto;
        #names { width: auto; max-width: 100%; }
        #field { width: 24; display: none; }
        #field.-open { display: block; }
    }
    """

    @dataclass
    class Typed(Message):
        """Another text was typed for a field."""

        name: str
        box: Input

    def compose(self) -> ComposeResult:
        """Put the box after the fields."""
        yield ChoiceBar(id="names")
        yield Input(id="field", compact=True)

    @property
    def _names(self) -> ChoiceBar:
        return self.query_one(ChoiceBar)

    @property
    def _box(self) -> Input:
        return self.query_one(Input)

    def show(self, datum: Datum) -> None:
        """Show the fields of a datum. A box that has the focus keeps its text."""
        texts = fields(datum)
        self._names.options = tuple((name, f"{name} {text}") for name, text in texts.items())
        if self._names.current and self._names.current not in texts:
            self._close()
        elif self._names.current and not self._box.has_focus:
            fill(self._box, texts[self._names.current])

    def open(self, name: str) -> None:
        """Open the box for a field."""
        self._names.current = name
        fill(self._box, dict(self._names.options)[name].partition(" ")[2])
        self._box.add_class("-open")
        self._box.focus()
        self._box.select_all()

    def open_next(self) -> None:
        """Open the first field, or the one after the field that is open."""
        names = [name for name, _ in self._names.options]
        current = self._names.current
        self.open(names[(names.index(current) + 1) % len(names) if current else 0])

    def _close(self) -> None:
        self._names.current = ""
        self._box.remove_class("-open")

    @on(ChoiceBar.Chosen)
    def _chosen(self, event: ChoiceBar.Chosen) -> None:
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
