"""Undo and redo: the questions that a screen has asked."""

from __future__ import annotations

from floatlab.verbs.question import Question

_LIMIT = 500


class History:
    """The questions of one screen. Consecutive edits of one kind, such as typing in a box, are one step."""

    def __init__(self) -> None:
        """Start without a past."""
        self._done: list[Question] = []
        self._undone: list[Question] = []
        self._kind = ""

    @property
    def now(self) -> Question | None:
        """The current question."""
        return self._done[-1] if self._done else None

    def add(self, question: Question, kind: str = "") -> None:
        """Add a question; it replaces the last one if both have the same kind, which is not empty."""
        if question == self.now:
            return
        if kind and kind == self._kind and len(self._done) > 1:
            self._done[-1] = question
        else:
            self._done.append(question)
            del self._done[:-_LIMIT]
        self._undone.clear()
        self._kind = kind

    def settle(self) -> None:
        """End a series of edits of one kind."""
        self._kind = ""

    def undo(self) -> Question | None:
        """Go one step back; None if there is none."""
        if not self.can_undo:
            return None
        self._undone.append(self._done.pop())
        self.settle()
        return self.now

    def redo(self) -> Question | None:
        """Go one step forward; None if nothing was undone."""
        if not self._undone:
            return None
        self._done.append(self._undone.pop())
        self.settle()
        return self.now

    def return_to(self, question: Question) -> None:
        """Go forward, else back, to a question: steps that led nowhere are undone."""
        while self.now != question and self.redo():
            pass
        while self.now != question and self.undo():
            pass

    @property
    def can_undo(self) -> bool:
        """Whether there is a step back."""
        return len(self._done) > 1

    @property
    def can_redo(self) -> bool:
        """Whether there is a step forward."""
        return bool(self._undone)
