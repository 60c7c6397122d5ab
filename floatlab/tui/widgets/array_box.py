"""A box that names an array: a file, whose path is completed or picked, a list, or a random one."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input

from floatlab.files.listing import completed
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.file_picker import FilePicker

_EXAMPLES = "a.npy  b.npz::name  1,2,3"


class _Paths(Suggester):
    """Goes on with the path that is being typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return a path that begins so."""
        return completed(value)


class _PathInput(Input):
    """An input below which files can be picked."""

    PLACE = "In a box for an array"  # what the list of keys calls it
    HELP = "An array: a file (right completes its name, down picks one), a list (1.5,-2;3,4), or random:normal:64x64."
    BINDINGS = [Binding("down", "pick", "Files", id="array.pick")]

    class Wanted(Message):
        """A file is to be picked."""

    def action_pick(self) -> None:
        """Ask for it."""
        self.post_message(self.Wanted())


class ArrayBox(Horizontal):
    """The name of an array, and the box where it is typed; a click on the name picks a file."""

    DEFAULT_CSS = """
    ArrayBox {
        height: 1;
        padding: 0 1;
        Choices { width: auto; padding: 0; }
        Input { width: 1fr; }
    }
    """

    class Given(Message):
        """Another array was named."""

        def __init__(self, box: ArrayBox, picked: bool) -> None:
            """Hold the box, and whether the array was picked rather than typed."""
            super().__init__()
            self.box, self.picked = box, picked

    def __init__(self, name: str, id: str, width: int = 0) -> None:
        """Name the array; the name takes so many columns."""
        super().__init__(id=id)
        self.called, self._width = name, width

    def compose(self) -> ComposeResult:
        """Put the box after the name."""
        yield Choices((("pick", f"{self.called:<{self._width}} ▾"),))
        yield _PathInput(compact=True, suggester=_Paths(), placeholder=_EXAMPLES)

    @property
    def input(self) -> Input:
        """The box."""
        return self.query_one(Input)

    @property
    def word(self) -> str:
        """What stands in it."""
        return self.input.value.strip()

    @on(Choices.Chosen)
    @on(_PathInput.Wanted)
    def _wanted(self, event: Message) -> None:
        event.stop()
        self.pick()

    def pick(self) -> None:
        """Pick a file."""
        self.app.push_screen(FilePicker(self.called, self.word), self._picked)

    def _picked(self, word: str | None) -> None:
        if word is not None:
            with self.prevent(Input.Changed):
                self.input.value = word
            self.input.cursor_position = len(word)
            self.post_message(self.Given(self, True))

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Given(self, False))
