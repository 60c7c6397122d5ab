"""A screen that answers a question, possibly on a background thread, with undo and redo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from textual import on
from textual.events import Click, DescendantFocus
from textual.screen import Screen
from textual.widgets import Input, Static

from floatlab.errors import FloatlabError, printable_lines
from floatlab.tui.base import ExplorerBase
from floatlab.tui.screens.background_answer import BackgroundAnswer, Stopped
from floatlab.tui.screens.history import History
from floatlab.tui.widgets.boxes import is_wrong, mark_answer, mark_valid, wrong_boxes
from floatlab.verbs.question import Answer, Question, Started
from floatlab.verbs.registry import answer_question

_POLL = 0.1  # seconds between checks whether a pending answer has arrived


class QuestionScreen(Screen[None]):
    """A screen that shows the answers to one question.

    A slow screen (see `floatlab.tui.app.registry`) computes answers on a background thread. If an answer takes
    longer than GRACE seconds, the screen accepts keys again, and still shows the previous answers. After QUIET seconds,
    it shows the progress. A newer question replaces the pending one. In the first frame of a slow screen, `answers` is
    empty if the answers have not arrived yet.
    """

    NAME = ""  # set by the app
    slow = False  # set by the app: whether answers may take long
    GRACE = 0.06  # seconds to wait for an answer before the screen accepts keys again
    QUIET = 0.3  # seconds until the progress is shown, which would flicker if it came earlier
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
        self._told: BackgroundAnswer | None = None  # the last pending answer whose progress was shown
        self._kind = ""  # the kind of edit that led to the pending question
        # The box whose text is in the pending question, and this text.
        self._asked_in: tuple[Input | None, str] = (None, "")
        # The box that got the focus last, and its text at that time; None after a click.
        self._entered: tuple[Input | None, str] = (None, "")
        self._excuse = ""  # why the first question has no answer
        self._error = ""  # the last error message, which is shown as long as a box has wrong text
        self._stopped: Question | None = None  # the question whose computation was stopped
        self.is_edit = self._was_edit = False  # whether this and the previous question are edits of a number

    # Methods that a subclass may override.

    def normal(self, question: Question) -> Question:
        """Return the question in the form that this screen uses, without options that affect only printed text."""
        return question

    def ask(self, question: Question, started: Started) -> list[Answer]:
        """Answer a question; a slow screen calls this on a background thread."""
        return answer_question(question, started)

    def takes_over(self, question: Question) -> bool:
        """Return whether the screen can use an answer that was begun before the screen opened."""
        return True

    def keeps_found(self, question: Question) -> bool:
        """Return whether a stopped computation keeps the results found so far."""
        return False

    def prepare(self, question: Question, answers: list[Answer]) -> object:
        """Compute the slow parts of drawing, on the same thread as `ask`; the result is stored in `prepared`."""

    def draw(self, before: Question) -> None:
        """Show the question and its answers; `before` is the previous question.

        If the first question has no answer (yet), a slow screen draws with empty `answers`.
        """
        raise NotImplementedError

    def leave(self) -> None:
        """Leave the input box."""

    def show_frame(self) -> None:
        """Update the parts of the screen around the answer."""

    # Error messages.

    def complain(self, text: str, hint: bool = False) -> None:
        """Show an error message or a hint; an empty text clears the line."""
        complaint = self.query_one("#complaint", Static)
        complaint.update(self.app.drawn(printable_lines(text if hint else f"! {text}")))
        complaint.set_class(bool(text), "-shown")
        complaint.set_class(hint, "-hint")
        # An error message covers the end of the page, so that the page does not move. A hint does so only while the
        # user types or waits, or after the computation was stopped; otherwise it moves the page.
        moves = hint and self.pending is None and not self.is_stopped and not isinstance(self.focused, Input)
        complaint.set_class(not moves, "-over")

    def on_click(self, event: Click) -> None:
        """Hide a clicked message, which may cover controls. If this click moved the focus to a box, select its text."""
        box = event.widget
        if box is not None and box.id == "complaint":
            self.complain("")
        elif isinstance(box, Input) and self._entered == (box, box.value) and box.selection.is_empty:
            box.select_all()  # so that typing replaces the text, as after `/`; another click puts the cursor into it
        self._entered = (None, "")

    @on(DescendantFocus)
    def _enter(self) -> None:
        """Remember the box that got the focus, and its text."""
        box = self.focused
        self._entered = (box, box.value) if isinstance(box, Input) else (None, "")

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
            self._error = str(error)
            self.complain(self._error)
            return False

    def say_wrong(self, box: Input) -> None:
        """Say why the text that stays in a box is wrong."""
        self.complain(f"{self._error}; u goes back to the last text without an error")

    def mark_taken(self, box: Input, valid: bool, picked: bool) -> None:
        """Mark a box as valid or invalid, after an attempt to open a question with the text of the box.

        If the text is wrong and was `picked` in a window of files, the box gets the focus.
        """
        mark_valid(box, valid)
        if picked and not valid:
            box.focus()  # so that the user can correct it
        elif picked and self.pending is not None:
            self._asked_in = (box, box.value)  # if the pending answer fails, this box will be marked

    # The question.

    @property
    def question(self) -> Question:
        """The question that is shown or pending, or whose computation was stopped."""
        return self.pending.question if self.pending else self._stopped or self.history.now or self._start

    def begin(self) -> None:
        """Ask the first question.

        If the question has no answer, a slow screen keeps the question, so that a typed path remains. Other screens ask
        their default question instead, because they cannot draw without an answer.
        """
        self._excuse = self._begin(self._start)
        if self._excuse and not self.slow:
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
        """Begin to answer a question. If `earlier` is for the same question, its answers are used."""
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
        if not self.is_attached:  # the app is leaving, so Textual has not mounted the widgets of this screen
            return
        if self.answers:
            self._show(self._start, self.answers, self.prepared)
        else:
            self.draw(self._start)
            self.show_frame()
            self.complain(self._excuse)
            self._excuse = ""
            self._look()
            if (pending := self.pending) is not None:
                self.call_after_refresh(pending.release)
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
        """Answer a question and show the answers. On an error, show a message and keep the current answers.

        Consecutive edits of one `kind` are undone together. Returns False if the question fails at once. After True, a
        computation on a background thread may still fail.
        """
        try:
            question = self.normal(question)
            self._drop()
            if self.slow and self.answers and question == self._shown:
                self._show(question, self.answers, self.prepared, kind)
                return True
            self.pending, self._kind, self._stopped = self._answer(question), kind, None
            self.remove_class("-stopped")
            box = self.focused
            self._asked_in = (box, box.value) if kind and isinstance(box, Input) else (None, "")
        except FloatlabError as error:
            if self._shown is not None:
                self._drop()
            self._refuse(str(error))
            return False
        return self._look()

    def _look(self) -> bool:
        """Show the answers or, if they have not arrived, the progress. Return False after an error."""
        pending = self.pending
        if pending is None:
            return True
        if not pending.ends(0):
            if pending.age >= self.QUIET or not self.answers:
                self.complain(pending.progress, hint=True)
                if self._told is not pending:  # the key bar now has the key that stops the computation
                    self._told = pending
                    self.refresh_bindings()
            return True
        box, text = self._asked_in
        if box is not None and box is self.focused and box.value != text:
            return True  # the user has typed on: showing this answer would restore the older text
        self.pending = None
        try:
            self._show(pending.question, *pending.result(), self._kind)
        except Stopped:
            self._stay(pending.question)
        except FloatlabError as error:
            if self._shown is None:  # this is the first question: keep it
                self._start = pending.question
            if box is None or box.value != text:
                box = self.focused if isinstance(self.focused, Input) else None
            if pending.late and box is not None:
                mark_valid(box, False)  # it was marked as valid when `open` returned True
            self._refuse(str(error))
            if pending.late and box is not None and box is not self.focused:
                self.say_wrong(box)
            return False
        return True

    def _refuse(self, text: str, hint: bool = False) -> None:
        """Show an error message or a hint, and keep the current answers."""
        if self._shown is not None:
            self.history.return_to(self._shown)
        if not hint:
            self._error = text
        self.complain(text, hint)

    def _show(self, question: Question, answers: list[Answer], prepared: object, kind: str = "") -> None:
        before, self.answers, self.prepared = self._shown or question, answers, prepared
        self._shown, self._stopped = question, None
        self.remove_class("-stopped")
        if question != self.history.now:  # equal after an undo or a redo
            replaces = self.history.add(question, kind)
            self.app.note_question(question, replaces or (self.is_edit and self._was_edit))
        self._was_edit = self.is_edit
        self.draw(before)
        hints = [hint for answer in answers for hint in answer.hints]
        # The text in the focused box has an answer, so the last error is not about it.
        mark_answer(self)
        wrong = any(box is not self.focused for box in wrong_boxes(self))
        error = self._excuse or (self._error if wrong else "")
        self.complain(error or (hints[0] if hints else ""), hint=not error)
        self._excuse = ""
        self.show_frame()

    def action_undo(self, by: int = -1) -> None:
        """Go one question back. If a box has wrong text or a question was stopped, only show the last answer again."""
        now = self.history.now
        if (self.forget_mistakes() or self._stopped is not None) and now is not None:
            self._stopped = None
            self.open(now)
        elif question := self.history.go(by):
            self.open(question)

    def action_redo(self) -> None:
        """Go one question forward."""
        QuestionScreen.action_undo(self, 1)

    def forget_mistakes(self) -> bool:
        """Clear the boxes whose text is wrong; return whether there were any."""
        boxes = [box for box in self.query(Input) if is_wrong(box)]
        for box in boxes:
            with box.prevent(Input.Changed):
                box.value = ""
            mark_valid(box, True)
        return bool(boxes)

    def action_again(self) -> None:
        """Restart the computation that was stopped."""
        if self._stopped is not None:
            self.open(self._stopped)

    @property
    def is_working(self) -> bool:
        """Whether the progress of a computation is shown."""
        return self.pending is not None and self.pending is self._told

    @property
    def is_stopped(self) -> bool:
        """Whether the computation of the question was stopped."""
        return self._stopped is not None

    def action_escape(self) -> None:
        """Stop the pending answer (see `keeps_found`). If none is pending, leave the input box."""
        pending = self.pending
        if pending is not None and self.keeps_found(pending.question) and not pending.is_stopped:
            pending.stop()
            self._look()
        elif self._drop() and pending is not None:
            self._stay(pending.question)
        else:
            self.leave()

    def _stay(self, question: Question) -> None:
        """Remember the question that was stopped, say that it was stopped, and keep the previous answer."""
        self._stopped = question
        self.add_class("-stopped")
        back = "" if self._shown is None else "; u goes back to the question of the answer below"
        self._refuse(f"stopped: the key . runs it again{back}", hint=True)
        self.show_frame()
