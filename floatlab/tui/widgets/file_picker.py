"""A window that walks through folders, and into files of several arrays, to the one that is meant."""

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
_NAME = 32  # columns of a name that are kept for what is said of it to line up


class FilePicker(Picker):
    """Folders and files to choose from. Dismissed with the word that names an array, or None."""

    def __init__(self, title: str, word: str = "") -> None:
        """Begin beside what a word names, else in the folder that the explorer runs in."""
        super().__init__(title, [], (word,), free=True)
        path, colons, _ = word.partition("::")
        folder = os.path.dirname(path)
        self._what = title
        self._place = path if colons and exists(path) else folder if is_folder(folder) else ""
        self._found: dict[str, FileEntry] = {}

    def on_mount(self) -> None:
        """List what is there."""
        super().on_mount()
        if not self._go(self._place):
            self.call_later(self._go, "")  # what is wrong is said when the list has been drawn

    def _go(self, place: str) -> bool:
        """List a place; what cannot be read is said."""
        try:
            listed = entries(place)
        except FloatlabError as error:
            self.say(str(error))
            return False
        self._place = place
        self._found = {each.word: each for each in listed}
        up = Choice(_UP, f"{_UP}{os.sep}")
        path = whole_path(place)
        shown = path if len(path) <= _PATH else f"…{path[1 - _PATH :]}"
        width = min(max((len(each.name) for each in listed), default=0), _NAME)
        self.offer(f"{self._what}: {shown}", [up, *(_choice(each, width) for each in listed)])
        return True

    def take(self, name: str) -> None:
        """Go where a name leads, or take the array that it names."""
        if name == _UP:
            above = whole_path(os.path.join(self._place, os.pardir))
            self._go("" if os.path.abspath(above) == os.getcwd() else above)
        elif name in self._found and self._found[name].leads_on:
            if self._go(name) and len(self._found) == 1 and not is_folder(self._place):
                self.dismiss(self._place)  # a file's only array goes by the file's name
        else:
            self.dismiss(name)

    def take_free(self, text: str) -> None:
        """Take what was typed: a folder is gone to, a file in the folder in sight is one there."""
        path = os.path.join(self._place, text)
        if is_folder(path):
            self._go(os.path.join(path, ""))
        else:
            self.dismiss(path if exists(path.partition("::")[0]) else text)

    @on(Input.Changed)
    def _walk(self, event: Input.Changed) -> None:
        """Go to a folder whose whole name was typed."""
        path = os.path.join(self._place, event.value)
        if event.value.endswith(os.sep) and is_folder(path):
            event.stop()
            self._go(path)


def _choice(entry: FileEntry, width: int) -> Choice:
    about = entry.kind if entry.size is None else bytes_text(entry.size)
    if entry.shape is not None:
        about = f"{about}  {shape_text(entry.shape)}"
    return Choice(entry.word, f"{entry.name:<{width}}  {about}".rstrip(), (entry.name,))
