"""A screen that shows the answers to a question, which may come from a background thread; with undo and redo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from textual.screen import Screen
from textual.widgets import Input, Static

from floatlab.errors import FloatlabError, printable_lines
from floatlab.tui.base import ExplorerBase
from floatlab.tui.screens.background_answer import BackgroundAnswer, Stopped
from floatlab.tui.screens.history import History
from floatlab.tui.widgets.boxes import mark_valid
from floatlab.verbs.question import Answer, Question, Started
from floatlab.verbs.registry import answer_question

_POLL = 0.1  # seconds between checks whether a pending answer has arrived


class QuestionScreen(Screen[None]):
    """A screen that shows the answers to one question.

    A slow screen (see `floatlab.tui.app.registry`) computes answers on a background thread. It waits for GRACE seconds.
    Then it shows the progress until the answers arrive, and the previous answers remain visible. A newer question
    replaces a pending question. The first frame of a slow screen may be drawn without answers: `answers` is then empty.
    """

    NAME = ""  # set by the app: whether answers may take long
    slow = False
    GRACE = 0.06  # seconds to wait for an answer before the screen takes keys again
    QUIET = 0.3  # seconds until the progress is shown, which would flicker before
    app: ExplorerBase

    def __init__(self, question: Question) -> None:
        """Store the first question."""
        super().__init__()
        self.history = History()
        self._start = question
        self._shown: Question | None = None
        self.answers: list[Answer] = []
        self.prepared: object = None  # the result of `prepare`
        self.pending: BackgroundAnswer | None = None  # the pending answer
        self._kind = ""  # the kind of edit that led to its question
        self._asked_in: tuple[Input | None, str] = (
            None,
            "",
        )  # the box in which its question was typed, and the box's text
        self._excuse = ""  # why the screen opened with another question than requested

    # Methods that a subclass may override.

    def normal(self, question: Question) -> Question:
        """Return the question in this screen's normal form, without options that only affect printed text."""
        return question

    def ask(self, question: Question, started: Started) -> list[Answer]:
        """Answer a question; a slow screen calls this on a background thread."""
        return answer_question(question, started)

    def takes_over(self, question: Question) -> bool:
        """Return whether an answer that was begun before the screen opened can be used instead of `ask`."""
        return True

    def keeps_found(self, question: Question) -> bool:
        """Return whether the answer to a question, if it is stopped, contains what was found until then."""
        return False

    def prepare(self, question: Question, answers: list[Answer]) -> object:
        """Compute the slow parts of drawing, on the same thread as `ask`; the result is stored in `prepared`."""

    def draw(self, before: Question) -> None:
        """Show the question and its answers; `before` is the previous question."""
        raise NotImplementedError

    def leave(self) -> None:
        """Leave the input box."""

    def show_frame(self) -> None:
        """Update the parts of the screen around the answer."""

    # Error messages.

    def complain(self, text: str, hint: bool = False) -> None:
        """Show an error message or a hint; an empty text clears the line."""
        complaint = self.query_one("#complaint", Static)
        complaint.update(printable_lines(text if hint else f"! {text}"))
        complaint.set_class(bool(text), "-shown")
        complaint.set_class(hint, "-hint")

    @contextmanager
    def complaining(self, hint: bool = False) -> Iterator[None]:
        """Context manager that shows errors of the user as messages."""
        try:
            yield
        except FloatlabError as error:
            self.complain(str(error), hint)

    def attempt(self, make: Callable[[], Question], kind: str = "") -> bool:
        """Make a question and open it; if this fails, show the error message and return False."""
        try:
            return self.open(make(), kind)
        except FloatlabError as error:
            self.complain(str(error))
            return False

    # The question.

    @property
    def question(self) -> Question:
        """The question that is shown or pending."""
        return self.pending.question if self.pending else self.history.now or self._start

    def begin(self) -> None:
        """Ask the first question; if it has no answer, ask the screen's default question."""
        self._excuse = self._begin(self._start)
        if self._excuse:
            self._begin(self.app.default_question(self.NAME))

    def _begin(self, question: Question) -> str:
        """Ask the first question, and return the error message; empty if there is no error."""
        earlier, self.pending = self.pending, None
        try:
            self._start = self.normal(question)
            pending = self._answer(self._start, earlier)
            if pending.ends(0):
                self.answers, self.prepared = pending.result()
            else:
                self.pending = pending
        except FloatlabError as error:
            return str(error)
        return ""

    def _answer(self, question: Question, earlier: BackgroundAnswer | None = None) -> BackgroundAnswer:
        """Begin to answer a question; the answer `earlier` is used if its question is the same."""
        if earlier is not None and not (earlier.question == question and self.takes_over(question)):
            earlier.stop()
            earlier = None
        pending = BackgroundAnswer(question, self.prepare, earlier, self.ask)
        if self.slow:
            pending.start()
            pending.late = not pending.ends(self.GRACE)
        else:
            pending.run()
        return pending

    def on_mount(self) -> None:
        """Show the first answers, or the progress of their computation."""
        if self.pending is None:
            self._show(self._start, self.answers, self.prepared)
        else:
            self.draw(self._start)
            self._look()
            self.call_after_refresh(self.pending.release)
        if self.slow:
            self.set_interval(_POLL, self._look)
        self.call_after_refresh(self.leave)

    def on_unmount(self) -> None:
        """Stop the pending answer."""
        self._drop()

    def _drop(self) -> bool:
        """Stop the pending answer; return False if there was none."""
        pending, self.pending = self.pending, None
        if pending is not None:
            pending.stop()
        return pending is not None

    def open(self, question: Question, kind: str = "") -> bool:
        """Answer a question and show the answers; if that fails, show the error and keep the current answers.

        Consecutive edits of one kind are one step of undo. Returns False if an error is known immediately.
        """
        try:
            question = self.normal(question)
            self._drop()
            if self.slow and self.answers and question == self._shown:
                self._show(question, self.answers, self.prepared, kind)
                return True
            self.pending, self._kind = self._answer(question), kind
            box = self.focused
            self._asked_in = (box, box.value) if kind and isinstance(box, Input) else (None, "")
        except FloatlabError as error:
            if self._shown is not None:
                self._drop()
            self._refuse(str(error))
            return False
        return self._look()

    def _look(self) -> bool:
        """Show the answers if they have arrived, else the progress of their computation."""
        pending = self.pending
        if pending is None:
            return True
        if not pending.ends(0):
            if pending.age >= self.QUIET or not self.answers:
                self.complain(pending.progress, hint=True)
            return True
        box, text = self._asked_in
        if box is not None and box is self.focused and box.value != text:
            return True  # the message about newer text is on its way; to show this answer would put back the older text
        self.pending = None
        try:
            self._show(pending.question, *pending.result(), self._kind)
        except Stopped:
            self._stay()
        except FloatlabError as error:
            if self._shown is None and not self._excuse:  # the very first question
                self._excuse = str(error)
                self.open(self.app.default_question(self.NAME))
                return False
            if pending.late and isinstance(self.focused, Input):
                mark_valid(self.focused, False)  # since `open` returned True for this text
            self._refuse(str(error))
            return False
        return True

    def _refuse(self, text: str, hint: bool = False) -> None:
        """Show an error message or a hint, and keep the current answers."""
        if self._shown is not None:
            self.history.return_to(self._shown)
        self.complain(text, hint)

    def _show(self, question: Question, answers: list[Answer], prepared: object, kind: str = "") -> None:
        before, self.answers, self.prepared = self._shown or question, answers, prepared
        self._shown = question
        self.history.add(question, kind)
        self.draw(before)
        hints = [hint for answer in answers for hint in answer.hints]
        self.complain(self._excuse or (hints[0] if hints else ""), hint=not self._excuse)
        self._excuse = ""
        self.show_frame()

    def action_undo(self, by: int = -1) -> None:
        """Go one question back."""
        if question := self.history.go(by):
            self.open(question)

    def action_redo(self) -> None:
        """Go one question forward."""
        QuestionScreen.action_undo(self, 1)

    def action_escape(self) -> None:
        """Stop the pending answer, and show what was found if it is kept; if no answer is pending, leave the box."""
        pending = self.pending
        if pending is not None and self.keeps_found(pending.question) and not pending.is_stopped:
            pending.stop()
            self._look()
        elif self._drop():
            self._stay()
        else:
            self.leave()

    def _stay(self) -> None:
        """After an answer was stopped, show the previous answer."""
        if self._shown is None:
            self._excuse = "stopped: this is the default of the screen"
            self.open(self.app.default_question(self.NAME))
        else:
            self._refuse("stopped: this is the previous answer", hint=True)
            self.draw(self._shown)
