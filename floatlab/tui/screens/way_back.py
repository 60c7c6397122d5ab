"""What the explorer remembers: the places to go back to, and the questions that were asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from floatlab.record import Record
from floatlab.tui.screens.pick_lists import PickScreen
from floatlab.tui.widgets import Cells
from floatlab.verbs.question import Question

_LIMIT = 200  # limit for the remembered places, and for the remembered questions


class LeftPlace(Record):
    """What a screen showed: its question, its view, and the positions of its cursors."""

    screen: str
    question: Question
    position: dict[str, object]


class Trail:
    """The places to go back to, the latest at the end."""

    def __init__(self) -> None:
        """Start with no place to go back to."""
        self._places: list[LeftPlace] = []

    def __bool__(self) -> bool:
        """Return whether there is a way back."""
        return bool(self._places)

    def leave(self, place: LeftPlace) -> None:
        """Add a place, unless it equals the last one."""
        if not self._places or self._places[-1] != place:
            self._places.append(place)
            del self._places[:-_LIMIT]

    def back(self, now: LeftPlace | None) -> LeftPlace | None:
        """Remove and return the last place that differs from the current one; None if there is none."""
        while self._places:
            place = self._places.pop()
            if place != now:
                return place
        return None


class Questions:
    """The questions asked on all screens, the newest at the end. Each is listed once."""

    def __init__(self, earlier: Callable[[], Iterable[tuple[str, Question]]]) -> None:
        """Start without questions.

        `earlier` is a function that reads the questions of the last session. It is called when `newest_first` is first
        read.
        """
        self._earlier = earlier
        self._asked: list[tuple[str, Question]] = []  # the name of the screen, and the question

    def note(self, screen: str, question: Question, *, replaces: bool = False) -> None:
        """Add a question. With `replaces`, the last question is removed if it belongs to the same screen."""
        if replaces and self._asked and self._asked[-1][0] == screen:
            self._asked.pop()
        self._asked = [each for each in self._asked if each != (screen, question)]
        self._asked.append((screen, question))
        del self._asked[:-_LIMIT]

    @property
    def newest_first(self) -> list[tuple[str, Question]]:
        """The questions with the names of their screens, the newest first."""
        earlier, self._earlier = self._earlier, tuple
        self._asked = [*(each for each in earlier() if each not in self._asked), *self._asked]
        return self._asked[::-1]


class ReturnScreen(PickScreen, inherit_bindings=False):
    """A screen to which the user can go back: it shows again what it showed before."""

    _place: LeftPlace | None = None  # the place to restore when the answer arrives

    @property
    def shown_place(self) -> LeftPlace:
        """The question, the view and the cursors that are shown now, so that the user can come back to them."""
        return LeftPlace(self.NAME, self.question, self.position())

    def position(self) -> dict[str, object]:
        """Return the positions of the cursors."""
        return {cells.id: cells.position for cells in self.query(Cells) if cells.id}

    def set_position(self, position: dict[str, object]) -> None:
        """Move the cursors to the positions in `position`."""
        for cells in self.query(Cells):
            if cells.id in position:
                cells.position = position[cells.id]

    def come_back(self, place: LeftPlace) -> None:
        """Show the question of a place again, with the cursors where they were."""
        if place.question == self.question:
            self.set_position(place.position)
        else:
            self._place = place
            self.show_question(place.question)

    def show_frame(self) -> None:
        """When the answer arrives after the user went back, move the cursors to where they were."""
        super().show_frame()
        if self._place is not None and self._place.question == self.question and self.pending is None:
            place, self._place = self._place, None
            self.set_position(place.position)

    def show_question(self, question: Question) -> bool:
        """Show a question that was asked elsewhere. The question replaces everything typed on this screen."""
        self.forget_mistakes()
        return self.open(question)
