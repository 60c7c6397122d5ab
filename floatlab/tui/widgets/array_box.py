"""A box for an array: a file, whose path is completed or picked, a list, or a random one."""

from __future__ import annotations

from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from floatlab.files.listing import completed
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.file_picker import FilePicker

_EXAMPLES = "a.npy  b.npz::name  1,2,3"


class _PathSuggester(Suggester):
    """Completes the path that is being typed."""

    async def get_suggestion(self, value: str) -> str | None:
        """Return a path that begins with what was typed."""
        return completed(value)


class _PathInput(Input):
    """An input whose down key picks a file."""

    PLACE = "In a box for an array"  # its name in the list of keys
    HELP = "An array: a file (right completes its name, down picks one), a list (1.5,-2;3,4), or random:normal:64x64."
    BINDINGS = [Binding("down", "pick", "Files", id="array.pick")]

    class PickWanted(Message):
        """The user wants to pick a file."""

    def action_pick(self) -> None:
        """Ask for the list of files."""
        self.post_message(self.PickWanted())


class ArrayBox(Horizontal):
    """A label and an input for an array; a click on the label picks a file."""

    DEFAULT_CSS = """
    ArrayBox {
        height: 1;
        padding: 0 1;
        ChoiceBar { width: auto; padding: 0; }
        Input { width: 1fr; }
    }
    """

    @dataclass
    class Changed(Message):
        """Another array was typed or picked."""

        box: ArrayBox
        picked: bool

    def __init__(self, label: str, id: str, width: int = 0) -> None:
        """Pad the label to a width in columns."""
        super().__init__(id=id)
        self.label, self._width = label, width

    def compose(self) -> ComposeResult:
        """Compose the label and the input."""
        yield ChoiceBar((("pick", f"{self.label:<{self._width}} ▾"),))
        suggester = _PathSuggester(use_cache=False, case_sensitive=True)
        yield _PathInput(compact=True, suggester=suggester, placeholder=_EXAMPLES)

    @property
    def input(self) -> Input:
        """The input."""
        return self.query_one(Input)

    @property
    def word(self) -> str:
        """The text in the input."""
        return self.input.value.strip()

    @on(ChoiceBar.Chosen)
    @on(_PathInput.PickWanted)
    def _pick_wanted(self, event: Message) -> None:
        event.stop()
        self.pick()

    def pick(self) -> None:
        """Open the list of files."""
        self.app.push_screen(FilePicker(self.label, self.word), self._picked)

    def _picked(self, word: str | None) -> None:
        if word is not None:
            with self.prevent(Input.Changed):
                self.input.value = word
            self.input.cursor_position = len(word)
            self.post_message(self.Changed(self, picked=True))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Changed(self, picked=False))
