"""A box for an array (a file, a list or a random array), with completion of paths, and a window to pick a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.suggester import Suggester
from textual.widgets import Input

from floatlab.errors import FloatlabError
from floatlab.page.measures import bytes_text, shape_text
from floatlab.sandbox import exists, is_folder, whole_path
from floatlab.tui.widgets.choice_bar import ButtonBar
from floatlab.tui.widgets.pickers import Choice, Picker

if TYPE_CHECKING:  # loading the readers of files takes too long for the first frame
    from floatlab.files.listing import FileEntry

_EXAMPLES = "a.npy  b.npz::name  1,2,3"
_PLACE = "In a box for an array"  # the heading in the list of keys
_UP, _HERE = "..", "."
_PATH = 48  # the largest number of characters of a path in the title
_NAME = 32  # the largest width of the column of names


class _PathSuggester(Suggester):
    """Completes a typed path."""

    async def get_suggestion(self, value: str) -> str | None:
        from floatlab.files.listing import completed

        return completed(value)


class _PathInput(Input):
    """An input for the name or the numbers of an array, with its own help text."""

    PLACE = _PLACE
    HELP = "An array: a file (right completes its name, down picks one), a list (1.5,-2;3,4), or random:normal:64x64."


class ArrayBox(Horizontal):
    """A label and an input for an array; a click on the label opens a list of files."""

    PLACE = _PLACE
    BINDINGS = [Binding("down", "pick", "Files", id="array.pick")]
    DEFAULT_CSS = """
    ArrayBox ChoiceBar { width: auto; padding: 0; }
    """

    input = getters.query_one(Input)

    def __init__(
        self, label: str, id: str, take: Callable[[ArrayBox, bool], None], width: int = 0, examples: str = _EXAMPLES,
        *, whole: bool = False,
    ) -> None:  # fmt: skip
        """Store the label (padded to `width` columns) and the function `take`, which is called when the array changes.

        `take` receives the box, and True if its array was picked from the list. If `whole`, the list offers files and
        folders, but not the arrays in a file.
        """
        super().__init__(id=id, classes="entry")
        self._examples, self._whole = examples, whole
        self.label, self._take, self._width = label, take, width

    def compose(self) -> ComposeResult:
        """Compose the label and the input."""
        yield ButtonBar(self.run_action, (("pick", f"{self.label:<{self._width}} ▾"),))
        suggester = _PathSuggester(use_cache=False, case_sensitive=True)
        yield _PathInput(compact=True, suggester=suggester, placeholder=self._examples)

    @property
    def word(self) -> str:
        """The text in the input."""
        return self.input.value.strip()

    def action_pick(self) -> None:
        """Open the list of files."""
        self.app.push_screen(FilePicker(self.label, self.word, whole=self._whole), self._picked)

    def _picked(self, word: str | None) -> None:
        if word is not None:
            with self.prevent(Input.Changed):
                self.input.value = word
            self.input.cursor_position = len(word)
            self._take(self, True)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._take(self, False)


class FilePicker(Picker):
    """A list of folders, files and arrays. The window returns the chosen array, the typed text, or None if cancelled.

    If `whole`, the user chooses a file or folder instead of an array.
    """

    def __init__(self, title: str, word: str = "", *, whole: bool = False) -> None:
        """Begin in the folder of the file `word` or, if `word` is FILE::ARRAY and the file exists, in this file.

        If the folder does not exist, begin in the working directory.
        """
        super().__init__(title, [], (word,), free=True)
        path, colons, _ = word.partition("::")
        folder = os.path.dirname(path)
        self._label, self._whole = title, whole
        self._place = path if colons and exists(path) else folder if is_folder(folder) else ""
        self._entries: dict[str, FileEntry] = {}
        self._error = ""  # why the last folder or file could not be listed

    def on_mount(self) -> None:
        """List the folder or the file in which to begin; if reading it fails, list the working directory."""
        super().on_mount()
        if not self._go(self._place):
            self.call_later(self._begin_here)  # after the empty list has been drawn

    def _begin_here(self) -> None:
        """List the working directory. The message about an unreadable folder or file stays below the list."""
        if self._go(""):
            self.say(self._error)

    def _go(self, place: str) -> bool:
        """List a folder, or the arrays of a file. If `place` cannot be read, show an error message and return False.

        If `place` is empty, list the working directory.
        """
        from floatlab.files.listing import entries

        try:
            listed = entries(place, self._whole)
        except FloatlabError as error:
            self._error = str(error)
            self.say(self._error)
            return False
        self._place = place
        self._entries = {entry.word: entry for entry in listed}
        above = [Choice(_UP, f"{_UP}{os.sep}")]
        if self._whole and place:
            above.append(Choice(place, f"{_HERE:<{_NAME}}  this whole folder", (_HERE,)))
        path = whole_path(place)
        shown = path if len(path) <= _PATH else f"…{path[1 - _PATH :]}"
        width = min(max((len(entry.name) for entry in listed), default=0), _NAME)
        self.offer(f"{self._label}: {shown}", [*above, *(_choice(entry, width) for entry in listed)])
        return True

    def take(self, name: str) -> None:
        """Open the folder or the file with this name, and list its content.

        A file is opened only if it may have several arrays, and not if `whole` is true. For any other name, and for a
        file that has only one array, close the window and return the name.
        """
        if name == _UP:
            above = whole_path(os.path.join(self._place, os.pardir))
            self._go("" if os.path.abspath(above) == os.getcwd() else above)
        elif name in self._entries and self._entries[name].is_container and (is_folder(name) or not self._whole):
            if self._go(name) and len(self._entries) == 1 and not is_folder(self._place):
                self.dismiss(self._place)  # the name of a file denotes its only array
        else:
            self.dismiss(name)

    def take_free(self, text: str) -> None:
        """Return a typed path. If the path exists in the listed folder, the name of this folder is put before the path.

        If the path is a folder, do not return it, but list this folder.
        """
        path = os.path.join(self._place, text)
        if is_folder(path):
            self._go(os.path.join(path, ""))
        else:
            self.dismiss(path if exists(path.partition("::")[0]) else text)

    @on(Input.Changed)
    def _walk(self, event: Input.Changed) -> None:
        """Open a folder when its whole name has been typed."""
        path = os.path.join(self._place, event.value)
        if event.value.endswith(os.sep) and is_folder(path):
            event.stop()
            self._go(path)


def _choice(entry: FileEntry, width: int) -> Choice:
    about = entry.kind if entry.size is None else bytes_text(entry.size)
    if entry.shape is not None:
        about = f"{about}  {shape_text(entry.shape)}"
    return Choice(entry.word, f"{entry.name:<{width}}  {about}".rstrip(), (entry.name,))
