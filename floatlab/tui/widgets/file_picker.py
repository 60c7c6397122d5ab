"""A window to pick an array: it walks through folders, and into files that hold several arrays."""

from __future__ import annotations

import os

from textual import on
from textual.widgets import Input

from floatlab.confinement import exists, is_folder, whole_path
from floatlab.errors import FloatlabError
from floatlab.files.listing import FileEntry, entries
from floatlab.page.measures import bytes_text, shape_text
from floatlab.tui.widgets.pickers import Choice, Picker

_UP = ".."
_PATH = 48  # characters of a path in the title
_NAME = 32  # columns for the name, so that what follows it lines up


class FilePicker(Picker):
    """A list of folders and files. Dismissed with the word that names an array, or with None."""

    def __init__(self, title: str, word: str = "") -> None:
        """Begin in the folder of the file that a word names, else in the folder that the explorer runs in."""
        super().__init__(title, [], (word,), free=True)
        path, colons, _ = word.partition("::")
        folder = os.path.dirname(path)
        self._label = title
        self._place = path if colons and exists(path) else folder if is_folder(folder) else ""
        self._entries: dict[str, FileEntry] = {}

    def on_mount(self) -> None:
        """List the first folder."""
        super().on_mount()
        if not self._go(self._place):
            self.call_later(self._go, "")  # complain once the list has been drawn

    def _go(self, place: str) -> bool:
        """List a folder or a file; complain and return False if it cannot be read."""
        try:
            listed = entries(place)
        except FloatlabError as error:
            self.say(str(error))
            return False
        self._place = place
        self._entries = {entry.word: entry for entry in listed}
        up = Choice(_UP, f"{_UP}{os.sep}")
        path = whole_path(place)
        shown = path if len(path) <= _PATH else f"…{path[1 - _PATH :]}"
        width = min(max((len(entry.name) for entry in listed), default=0), _NAME)
        self.offer(f"{self._label}: {shown}", [up, *(_choice(entry, width) for entry in listed)])
        return True

    def take(self, name: str) -> None:
        """Open the folder or file of this name, or take the array."""
        if name == _UP:
            above = whole_path(os.path.join(self._place, os.pardir))
            self._go("" if os.path.abspath(above) == os.getcwd() else above)
        elif name in self._entries and self._entries[name].leads_on:
            if self._go(name) and len(self._entries) == 1 and not is_folder(self._place):
                self.dismiss(self._place)  # the name of a file means its only array
        else:
            self.dismiss(name)

    def take_free(self, text: str) -> None:
        """Take what was typed, relative to the folder in sight if it exists there; open a folder."""
        path = os.path.join(self._place, text)
        if is_folder(path):
            self._go(os.path.join(path, ""))
        else:
            self.dismiss(path if exists(path.partition("::")[0]) else text)

    @on(Input.Changed)
    def _walk(self, event: Input.Changed) -> None:
        """Open a folder once its whole name is typed."""
        path = os.path.join(self._place, event.value)
        if event.value.endswith(os.sep) and is_folder(path):
            event.stop()
            self._go(path)


def _choice(entry: FileEntry, width: int) -> Choice:
    about = entry.kind if entry.size is None else bytes_text(entry.size)
    if entry.shape is not None:
        about = f"{about}  {shape_text(entry.shape)}"
    return Choice(entry.word, f"{entry.name:<{width}}  {about}".rstrip(), (entry.name,))
