"""Undo and redo: the questions that a screen has shown."""

from __future__ import annotations

from floatlab.verbs.question import Question

_LIMIT = 500  # most questions in a history


class History:
    """The questions of a screen. Consecutive edits of one kind, such as typing in a box, are one step of undo."""

    def __init__(self) -> None:
        """Start with an empty history."""
        self._questions: list[Question] = []
        self._at = -1
        self._kind = ""

    @property
    def now(self) -> Question | None:
        """The current question."""
        return self._questions[self._at] if self._questions else None

    def add(self, question: Question, kind: str = "") -> bool:
        """Add a question after the current one, and drop all later ones.

        Adding the current question again does nothing. If the last edit had the same `kind` (not empty), the question
        replaces the current one, unless the current one is the first. If the edits have led back to the question with
        which they began, the current question is removed, and nothing is added. Returns whether the current question
        was replaced or removed.
        """
        if question == self.now:
            return False
        replaces = kind != "" and kind == self._kind and self._at > 0
        if replaces and question == self._questions[self._at - 1]:
            self._at -= 1
            del self._questions[self._at + 1 :]
            self.end_series()
            return True
        self._questions[self._at + (not replaces) :] = [question]
        del self._questions[:-_LIMIT]
        self._at = len(self._questions) - 1
        self._kind = kind
        return replaces

    def end_series(self) -> None:
        """End a series of edits of one kind, so that the next edit is a new step."""
        self._kind = ""

    def can_go(self, by: int) -> bool:
        """Return whether a step forward (1) or back (-1) is possible."""
        return 0 <= self._at + by < len(self._questions)

    def go(self, by: int) -> Question | None:
        """Go a step forward or back, and return the question there; None if there is no such step."""
        if not self.can_go(by):
            return None
        self._at += by
        self.end_series()
        return self.now

    def return_to(self, question: Question) -> None:
        """Go to this question: look for it forward, then back.

        A screen calls this if the current question has no answer. `question` is then the question whose answers the
        screen still shows.
        """
        for by in (1, -1):
            while self.now != question and self.go(by):
                pass
