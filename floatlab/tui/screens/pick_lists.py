"""A screen with pick lists of formats and other choices. A rejected name can be corrected when the list opens again."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.formats import CATALOG
from floatlab.formats.catalog import short_name
from floatlab.formats.table_catalog import TABLES
from floatlab.tui.screens.question_screen import QuestionScreen
from floatlab.tui.widgets import Choice, Pick, Picker
from floatlab.verbs.question import Question

AUTOMATIC = "automatic"  # the choice that leaves the format to floatlab


class PickScreen(QuestionScreen, inherit_bindings=False):
    """A screen with pick lists, which keys and clicks open."""

    _picking = ""  # the title of the list from which a name is being taken
    _asked_from = ""  # the title of the list in which a name of the pending question was chosen

    def __init__(self, question: Question) -> None:
        """Store the first question."""
        super().__init__(question)
        self._refused: dict[str, str] = {}  # by title of the list: the typed name, until its question is answered

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists by name."""
        return {}

    def pick(self, pick: Pick) -> None:
        """Open a pick list. If the last typed name was rejected, it is in the box again."""

        def taken(name: str | None) -> None:
            if name is None:
                return
            self._refused.pop(pick.title, None)
            if pick.free and all(name != row.name for row in pick.rows):
                self._refused[pick.title] = name
            self._picking = pick.title
            pick.take(name)
            self._picking = ""

        typed = self._refused.get(pick.title, "")
        self.app.push_screen(Picker(pick.title, pick.rows, pick.current, free=pick.free, typed=typed), taken)

    def action_pick(self, name: str) -> None:
        """Open the pick list with this name."""
        self.pick(self.picks()[name])

    def open(self, question: Question, kind: str = "") -> bool:
        """Open a question, and remember the pick list from which it came."""
        self._asked_from = self._picking
        return super().open(question, kind)

    def show_frame(self) -> None:
        """When a question has been answered, forget the name that was typed for it."""
        if self.pending is None and not self.is_stopped:
            self._refused.pop(self._asked_from, None)

    def format_pick(self, take: Callable[[str], object], automatic: str = "") -> Pick:
        """Return the pick list of formats, in which other names can be typed, too.

        If `automatic` is not empty, the list also has the choice "automatic", with this text as its description.
        """
        rows = [Choice(AUTOMATIC, f"{AUTOMATIC:<12} {automatic}")] if automatic else []
        rows += [
            Choice(row.format.name, f"{row.format.name:<12} {row.purpose}", (short_name(row.format), *row.aliases))
            for row in (*CATALOG, *TABLES)
        ]
        current = tuple(format.name for format in self.question.formats)
        return Pick("Format, or any e<W>m<T> name", rows, take, current, free=True)
