"""What screens and widgets use of the explorer, which `floatlab.tui.app` completes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.style import Style
from textual.app import App
from textual.message import Message
from textual.widget import Widget

from floatlab.page.model import Role
from floatlab.tui.themes import inks
from floatlab.verbs.question import Question


class ExplorerBase(App[None]):
    """The app as screens and widgets know it.

    `read_question` turns the words of a command into a question, `settings` are the user's, `pins` holds the codes that
    were pinned as A and B, and `titles` lists the screens by name and title.
    """

    read_question: Callable[[list[str]], Question]
    settings: dict[str, object]
    pins: dict[str, str]
    titles: tuple[tuple[str, str], ...]
    _inks: tuple[str, dict[Role, Style]] = ("", {})

    @property
    def inks(self) -> dict[Role, Style]:
        """The style of each role of a page in the current theme."""
        if self._inks[0] != self.theme:
            self._inks = (self.theme, inks(self.theme_variables))
        return self._inks[1]

    def is_slow(self, name: str) -> bool:
        """Return whether a screen's questions may take long."""
        raise NotImplementedError

    def default_question(self, name: str) -> Question:
        """Return the question at which a screen starts when nothing else was asked."""
        raise NotImplementedError

    def standing(self, name: str) -> Question:
        """Return the question that a screen shows, or would open at."""
        raise NotImplementedError

    def go(self, name: str, question: Question | None = None) -> None:
        """Show a screen, at a question if one is given."""
        raise NotImplementedError

    def ask(self, question: Question) -> None:
        """Show the screen that answers a question."""
        raise NotImplementedError

    def copy(self, text: str, what: str) -> None:
        """Copy text, and notify the user what was copied."""
        raise NotImplementedError


@dataclass
class WidgetMessage(Message):
    """A message that `@on(…, selector)` matches by the widget that it is about."""

    widget: Widget

    @property
    def control(self) -> Widget:
        """The widget."""
        return self.widget
