"""Copying the number, the page and the command of a screen as text, and saving them to files."""

from __future__ import annotations

from functools import partial

from floatlab.numbers.datum import Datum
from floatlab.page.html_report import report
from floatlab.page.model import Page, joined
from floatlab.page.png import to_png
from floatlab.page.svg import to_svg
from floatlab.page.text_layout import to_text
from floatlab.tui.screens.panes import PaneScreen
from floatlab.tui.themes import page_colours
from floatlab.tui.widgets.saving import Copies, SaveWindow
from floatlab.verbs.literals import literals_of
from floatlab.verbs.question import Question
from floatlab.verbs.registry import command_of
from floatlab.wire.codecs import json_line

_SHOWN = ("shortest", "bits")  # notations left out, since the value and the code are listed already


class CopyingScreen(PaneScreen, inherit_bindings=False):
    """A screen whose number, page and command can be copied and saved."""

    # Methods that a subclass may override.

    def page(self) -> Page:
        """Return the whole page, as the command line would print it."""
        return joined([answer.page() for answer in self.answers])

    def subject(self) -> Datum | None:
        """Return the number that can be pinned, or None if no number is shown."""
        results = [datum for answer in self.answers for datum in answer.results]
        return results[0] if results else None

    def printed(self) -> Question:
        """Return the question whose command prints the page that is shown."""
        return self.question

    def copies(self) -> Copies:
        """Return the texts that can be copied, by name."""
        datum = self.subject()
        literals = {} if datum is None else literals_of(datum)
        value = "the value" if datum is None else "the shortest decimal"
        return {
            "value": (value, lambda: "\n".join(word for answer in self.answers for word in answer.words())),
            "code": ("the code", lambda: "\n".join(code for answer in self.answers for code in answer.codes())),
            **{name: (words, partial(str, text)) for name, (words, text) in literals.items() if name not in _SHOWN},
            "command": ("the command that prints this", lambda: command_of(self.printed())),
            "text": ("the page as text", lambda: to_text(self.page())),
            "svg": ("the page as a picture (SVG)", lambda: to_svg(self.page())),
            "html": ("the page as HTML", lambda: report(self.page(), (), command_of(self.printed()))),
            "json": ("the answer as JSON", self._json),
        }

    def _json(self) -> str:
        return "".join(json_line(record) for answer in self.answers for record in answer.records())

    def action_copy(self, name: str) -> None:
        """Copy the text with this name in `copies`."""
        description, text = self.copies()[name]
        self.app.copy(text(), description)

    def action_save(self) -> None:
        """Ask for the name of a file. The ending of the name decides what is saved."""
        self.app.push_screen(SaveWindow(self.copies(), self.question.verb, self._picture))

    def _picture(self) -> bytes:
        """Return the page as PNG, in the colours of the theme."""
        return to_png(self.page(), colours=page_colours(self.app.theme_variables))
