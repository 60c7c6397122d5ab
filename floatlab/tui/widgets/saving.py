"""The window that saves a page to a file. The ending of the file name, such as .svg, decides the kind of file."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import BytesIO
from typing import TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, Label

from floatlab.atomic_write import replacing
from floatlab.errors import FileFormatError, FloatlabError, printable, quoted
from floatlab.sandbox import exists
from floatlab.tui.base import bytes_of
from floatlab.tui.widgets.window import Window

Copies: TypeAlias = dict[str, tuple[str, Callable[[], str]]]  # by name: description, function that returns the text
Content: TypeAlias = Callable[[], bytes]  # returns the content of a file
# For each ending, the name in `Copies` of the text to save.
_KINDS = {".txt": "text", ".svg": "svg", ".html": "html", ".json": "json", ".csv": "csv", ".sh": "command"}


def _encoded(description: str, text: Callable[[], str]) -> tuple[str, Content]:
    return description, lambda: bytes_of(text())


class SaveWindow(Window[None]):
    """A box for the name of a file. A second Enter is required to replace an existing file."""

    BINDINGS = [Binding("escape", "dismiss(None)", "Cancel", id="save.cancel")]

    def __init__(self, copies: Copies, verb: str, picture: Content) -> None:
        """Store the texts and the picture that can be saved, and suggest a file name."""
        super().__init__()
        self._contents = {ending: _encoded(*copies[name]) for ending, name in _KINDS.items() if name in copies}
        self._contents[".png"] = ("the page as a picture (PNG), drawn by matplotlib", picture)
        self._suggestion = f"floatlab-{verb}.svg"
        self._warned = ""  # the existing file about which the user was warned

    def compose(self) -> ComposeResult:
        """Compose the title, the box and the line for messages."""
        with Vertical():
            yield Label("Save to a file", id="title", markup=False)
            yield Input(self._suggestion, compact=True)
            for ending, (description, _) in self._contents.items():
                yield Label(f"{ending:<6} {description}", markup=False)
            yield Label("", id="nothing", markup=False)

    def on_mount(self) -> None:
        """Select the name without its ending, so that typing replaces it."""
        box = self.query_one(Input)
        box.focus()
        box.selection = type(box.selection)(0, len(os.path.splitext(self._suggestion)[0]))

    @on(Input.Submitted)
    def _save(self, event: Input.Submitted) -> None:
        path = os.path.expanduser(self._named(event.value.strip()))
        try:
            self._write(path)
        except FileFormatError as error:
            self._say(f"{quoted(path)} {error}")
        except FloatlabError as error:
            self._say(str(error))
        except (OSError, ValueError) as error:
            self._say(f"{quoted(path)} cannot be written: {getattr(error, 'strerror', None) or error}")

    def _named(self, name: str) -> str:
        """Return a file name without a superfluous ending: a.png for a.png.svg.

        The suggested ending is dropped if the user typed another supported ending before it.
        """
        typed, suggested = os.path.splitext(name)
        ending = os.path.splitext(self._suggestion)[1]
        has_own = suggested == ending and os.path.splitext(typed)[1].lower() in self._contents
        return typed if has_own else name

    def _write(self, path: str) -> None:
        ending = os.path.splitext(path)[1].lower()
        if ending not in self._contents:
            named = f"{ending} is not supported" if ending else "the name needs an ending"
            self._say(f"{named}: use {', '.join(self._contents)}")
            return
        if self.app.is_web:  # the visitor's browser saves it
            download = BytesIO(self._contents[ending][1]())
            self.app.deliver_binary(
                download, save_filename=os.path.basename(path), mime_type="application/octet-stream"
            )
            self.dismiss(None)
            return
        if exists(path) and self._warned != path:
            self._warned = path
            self._say(f"{quoted(path)} exists: Enter replaces it")
            return
        description, content = self._contents[ending]
        made = content()  # before the file is opened, since matplotlib may be missing
        with replacing(path) as file:
            file.write(made)
        self.app.notify(f"Saved {description} to {path}")
        self.dismiss(None)

    def _say(self, words: str) -> None:
        self.query_one("#nothing", Label).update(printable(words))
