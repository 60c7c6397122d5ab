"""Undo and redo: what was asked before, and what was taken back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.verbs.question import Question

_LIMIT = 500


class History:
    """The questions of one screen. Edits of the same kind in a row, as typing in a box, are one step."""

    def __init__(self) -> None:
        """Start without a past."""
        self._done: list[Question] = []
        self._undone: list[Question] = []
        self._kind = ""

    @property
    def now(self) -> Question | None:
        """The question that is being answered."""
        return self._done[-1] if self._done else None

    def add(self, question: Question, kind: str = "") -> None:
        """Remember a question; the same kind as the last one, unless empty, replaces it."""
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
        """End a row of edits of one kind."""
        self._kind = ""

    def undo(self) -> Question | None:
        """Go one step back; None where there is none."""
        if len(self._done) < 2:
            return None
        self._undone.append(self._done.pop())
        self.settle()
        return self.now

    def redo(self) -> Question | None:
        """Go forward again; None where nothing was taken back."""
        if not self._undone:
            return None
        self._done.append(self._undone.pop())
        self.settle()
        return self.now

    def return_to(self, question: Question) -> None:
        """Go to where a question stands: steps that lead nowhere are taken back."""
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
