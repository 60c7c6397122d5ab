"""A screen that asks: one question and its answers, at once or from work beside it, and what was asked before."""

from __future__ import annotations

from textual.screen import Screen
from textual.widgets import Input

from floatlab.errors import FloatlabError
from floatlab.tui.app.history import History
from floatlab.tui.app.registry import TASKS
from floatlab.tui.screens.background_answer import Errand
from floatlab.tui.widgets.boxes import judge
from floatlab.verbs.registry import answer_question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.tui.app.app import Explorer
    from floatlab.verbs.answer import Answer, Started
    from floatlab.verbs.question import Question

_OFTEN = 0.1  # seconds between looks at work that is not done yet


class Asking(Screen[None]):
    """A screen over one question.

    One that TASKS calls slow asks beside itself: it waits for GRACE, then shows how far the work is until the answers
    come; what was shown before stays, and a newer question takes the place of one that is not answered. So such a
    screen is drawn first without answers, `answers` being empty, where they take long.
    """

    NAME = ""
    GRACE = 0.15  # seconds in which an answer is not late
    app: Explorer

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__()
        self.history = History()
        self._start = question
        self._shown: Question | None = None
        self.answers: list[Answer] = []
        self.prepared: Any = None  # what `prepare` has made of the answers
        self.errand: Errand | None = None  # the work that is not done yet
        self._kind = ""  # of the edit that it answers
        self._excuse = ""  # why it opens elsewhere than it was asked to

    # What a subclass is.

    def normal(self, question: Question) -> Question:
        """Return the question as this screen asks it; options that change only the printed form go."""
        return question

    def ask(self, question: Question, started: Started) -> list[Answer]:
        """Answer a question, as it does by itself; beside a slow screen. `started` is told how much work there is."""
        return answer_question(question, started)

    def takes_over(self, question: Question) -> bool:
        """Say whether answers to this question that were begun elsewhere are as good as those of `ask`."""
        return True

    def prepare(self, question: Question, answers: list[Answer]) -> Any:
        """Return what drawing needs of the answers and is long work; it is done beside a slow screen."""

    def draw(self, before: Question) -> None:
        """Show the question and its answers; `before` is the question that was shown until now."""
        raise NotImplementedError

    def complain(self, words: str, hint: bool = False) -> None:
        """Say what is wrong, or a hint; nothing clears the line."""
        raise NotImplementedError

    def leave(self) -> None:
        """Leave a box."""

    def show_frame(self) -> None:
        """Show what else the screen says of the question."""

    # The question.

    @property
    def question(self) -> Question:
        """The question that is being answered."""
        return self.errand.question if self.errand else self.history.now or self._start

    @property
    def slow(self) -> bool:
        """Whether answers may take long."""
        return TASKS[self.NAME].slow

    def begin(self) -> None:
        """Ask the first question; one that has become impossible gives way to the screen's own start."""
        self._excuse = self._begin(self._start)
        if self._excuse:
            self._begin(self._own_start())

    def _own_start(self) -> Question:
        return self.app.read_question(list(TASKS[self.NAME].start))

    def _begin(self, question: Question) -> str:
        """Ask the first question, and return what is wrong with it."""
        given, self.errand = self.errand, None
        try:
            self._start = self.normal(question)
            errand = self._errand(self._start, given)
            if errand.ends(0):
                self.answers, self.prepared = errand.found()
            else:
                self.errand = errand
        except FloatlabError as error:
            return str(error)
        return ""

    def _errand(self, question: Question, given: Errand | None = None) -> Errand:
        """Begin to answer a question; what was begun elsewhere is taken over if it is the same."""
        if given is not None and not (given.question == question and self.takes_over(question)):
            given.stop()
            given = None
        errand = Errand(question, self.prepare, given, self.ask)
        if self.slow:
            errand.start()
            errand.late = not errand.ends(self.GRACE)
        else:
            errand.run()
        return errand

    def on_mount(self) -> None:
        """Show the first answer, or that there is none yet."""
        if self.errand is None:
            self._show(self._start, self.answers, self.prepared)
        else:
            self.draw(self._start)
            self._look()
        if self.slow:
            self.set_interval(_OFTEN, self._look)
        self.call_after_refresh(self.leave)

    def on_unmount(self) -> None:
        """Leave nothing behind that works for nobody."""
        self._drop()

    def _drop(self) -> bool:
        """Stop the work that is not done yet, and say whether there was any."""
        errand, self.errand = self.errand, None
        if errand is not None:
            errand.stop()
        return errand is not None

    def open(self, question: Question, kind: str = "") -> bool:
        """Answer a question and show it; what cannot be answered is said, and the picture stays.

        Edits of one kind in a row are one step to undo. Says whether nothing is wrong, as far as is known yet.
        """
        try:
            question = self.normal(question)
            self._drop()
            if self.slow and self.answers and question == self._shown:
                self._show(question, self.answers, self.prepared, kind)
                return True
            self.errand, self._kind = self._errand(question), kind
        except FloatlabError as error:
            if self._shown is not None:
                self._drop()
            self._refuse(str(error))
            return False
        return self._look()

    def _look(self) -> bool:
        """Show what was found meanwhile, or how far the work is."""
        errand = self.errand
        if errand is None:
            return True
        if not errand.ends(0):
            self.complain(errand.words, hint=True)
            return True
        self.errand = None
        try:
            self._show(errand.question, *errand.found(), self._kind)
        except FloatlabError as error:
            if self._shown is None and not self._excuse:  # the first question of all
                self._excuse = str(error)
                self.open(self._own_start())
                return False
            if errand.late and isinstance(self.focused, Input):
                judge(self.focused, False)  # who typed it has been told that nothing is wrong
            self._refuse(str(error))
            return False
        return True

    def _refuse(self, words: str, hint: bool = False) -> None:
        """Keep the picture, and say why."""
        if self._shown is not None:
            self.history.return_to(self._shown)
        self.complain(words, hint)

    def _show(self, question: Question, answers: list[Answer], prepared: Any, kind: str = "") -> None:
        before, self.answers, self.prepared = self._shown or question, answers, prepared
        self._shown = question
        self.history.add(question, kind)
        self.draw(before)
        hints = [hint for answer in answers for hint in answer.hints]
        self.complain(self._excuse or (hints[0] if hints else ""), hint=not self._excuse)
        self._excuse = ""
        self.show_frame()

    def action_undo(self) -> None:
        """Go one step back."""
        if question := self.history.undo():
            self.open(question)

    def action_redo(self) -> None:
        """Go forward again."""
        if question := self.history.redo():
            self.open(question)

    def action_escape(self) -> None:
        """Stop the work that is not done yet, else leave a box."""
        if not self._drop():
            self.leave()
        elif self._shown is None:
            self._excuse = "stopped: this is where the screen starts by itself"
            self.open(self._own_start())
        else:
            self._refuse("stopped: this is still the answer before", hint=True)
            self.draw(self._shown)
