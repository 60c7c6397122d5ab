"""The base class of the app, as screens and widgets see it, and functions that work on daemon threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TypeVar

from rich.style import Style
from textual.app import App
from textual.geometry import Offset
from textual.message import Message
from textual.widget import Widget

from floatlab.page.model import Role
from floatlab.page.text_layout import ascii_only
from floatlab.tui.glyphs import is_console
from floatlab.tui.themes import Chrome, chrome, inks
from floatlab.verbs.question import Question

Piece = TypeVar("Piece")


class ExplorerBase(App[None]):
    """The members of the app that screens and widgets use. `floatlab.tui.app` implements them.

    `read_question` turns the arguments of a command into a question. `pins` has the codes that the user has pinned as A
    and B, to compare them. `titles` lists the names and titles of the screens.
    """

    read_question: Callable[[list[str]], Question]
    settings: dict[str, object]
    pins: dict[str, str]
    titles: tuple[tuple[str, str], ...]
    is_ascii = False  # whether only ASCII characters are drawn
    has_drilled = False  # whether the key bar shows the key that goes back, as after opening an element in Inspect
    _inks: tuple[str, dict[Role, Style]] = ("", {})
    _chrome: tuple[str, Chrome] = ("", Chrome(plain=True))

    @property
    def inks(self) -> dict[Role, Style]:
        """The style of each role of a page in the current theme."""
        if self._inks[0] != self.theme:
            self._inks = (self.theme, inks(self.theme_variables))
        return self._inks[1]

    @property
    def chrome(self) -> Chrome:
        """The styles of tabs, buttons and rows in the current theme."""
        if self._chrome[0] != self.theme:
            self._chrome = (self.theme, chrome(self.theme_variables, self.no_color or self.current_theme.ansi))
        return self._chrome[1]

    @property
    def draws_dots(self) -> bool:
        """Whether curves are drawn as Braille dots. Braille dots need colours and a font with Braille characters."""
        return not (self.no_color or self.is_ascii or is_console())

    def drawn(self, text: str) -> str:
        """Return a text unchanged or, if only ASCII characters are drawn, in ASCII."""
        return ascii_only(text) if self.is_ascii else text

    def default_question(self, name: str) -> Question:
        """Return the question at which a screen starts by default."""
        raise NotImplementedError

    def standing(self, name: str) -> Question:
        """Return the question that a screen shows, or would show when it is opened."""
        raise NotImplementedError

    def go(self, name: str, question: Question | None = None) -> None:
        """Show a screen, at a question if one is given."""
        raise NotImplementedError

    def ask(self, question: Question) -> None:
        """Show the screen that answers a question."""
        raise NotImplementedError

    def tell_address(self) -> None:
        """If the explorer runs in a browser, put the command of the current question into the URL of the page."""
        raise NotImplementedError

    def leave_place(self) -> None:
        """Remember what is shown, before another view or screen replaces it."""
        raise NotImplementedError

    def note_question(self, question: Question, replaces: bool) -> None:
        """Add an answered question to the history.

        If `replaces`, the question is a further edit of the screen's last question, and replaces that question.
        """
        raise NotImplementedError

    def copy(self, text: str, what: str) -> None:
        """Copy text, and tell the user what was copied."""
        raise NotImplementedError


@dataclass
class WidgetMessage(Message):
    """A message from a widget; `@on(…, selector)` handles it if the selector matches this widget."""

    widget: Widget

    @property
    def control(self) -> Widget:
        """The widget that sent the message."""
        return self.widget


def if_present(found: tuple[Widget | None, Offset | None]) -> tuple[Widget | None, Offset | None]:
    """Return `found` (a widget, and an offset in its content), or (None, None) if the widget has just been removed.

    Textual itself assumes that the widget under a click is still on the screen.
    """
    widget = found[0]
    return (None, None) if widget is not None and widget.parent is None else found


def bytes_of(text: str) -> bytes:
    r"""Encode text as UTF-8. Restore the original bytes of file names that are not UTF-8.

    >>> bytes_of("\xe9"), bytes_of("caf\udce9.npy"), bytes_of("\ud800")
    (b'\xc3\xa9', b'caf\xe9.npy', b'?')
    """
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def run_each(app: App[None], pieces: Iterator[Piece], take: Callable[[Piece], bool]) -> None:
    """Compute the items of `pieces` on a daemon thread, and pass each to `take` on the app's thread.

    Stops when `take` returns False or the app has ended. The computation of an item must not raise an exception.

    Textual's workers are not used, because an app that exits waits for its workers. An import of a large library, or a
    clipboard program that hangs, must not keep users from quitting.
    """

    def run() -> None:
        with suppress(RuntimeError):  # the app has ended
            for piece in pieces:
                if not app.is_running or not app.call_from_thread(take, piece):
                    return

    Thread(target=run, daemon=True).start()


def run_once(app: App[None], work: Callable[[], Piece], take: Callable[[Piece], object]) -> None:
    """Call `work` on a daemon thread, and pass its result to `take` on the app's thread."""
    run_each(app, (work() for _ in range(1)), lambda piece: bool(take(piece)))
