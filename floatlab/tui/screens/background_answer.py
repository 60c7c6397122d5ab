"""A question on its way: answered beside the screen, with what is known of how far the work is, and a way to stop."""

from __future__ import annotations

from threading import Event, Thread

from floatlab.verbs.registry import answer_question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.verbs.answer import Answer, Started
    from floatlab.verbs.question import Question


class Stopped(Exception):
    """Raised where the work reports progress that nobody waits for any more."""


class Errand:
    """The work of answering one question, and of preparing what a screen shows of the answers.

    It is done by `run`, or by `start` in a thread that nobody waits for at the end. What goes wrong is raised by
    `found`, on the thread that asks. With `after`, its answers are taken over: the question was asked already. `ask`
    answers in another way than the question does by itself.
    """

    def __init__(
        self,
        question: Question,
        prepare: Callable[[Question, list[Answer]], Any] | None = None,
        after: Errand | None = None,
        ask: Callable[[Question, Started], list[Answer]] | None = None,
    ) -> None:
        """Do nothing yet."""
        self.question = question
        self._ask = ask or (lambda question, started: answer_question(question, started))
        self._prepare, self._after = prepare, after
        self._answers: list[Answer] = []
        self._prepared: Any = None
        self._error: BaseException | None = None
        self._ended, self._stopped = Event(), Event()
        self._total = self._done = 0
        self.late = False  # whoever asked goes on without waiting

    def start(self) -> None:
        """Begin, in a thread of its own."""
        Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Do the work; nothing is raised here."""
        try:
            if self._after is None:
                self._answers = self._ask(self.question, self._started)
            else:
                self._answers = self._after.found()[0]
            if self._prepare is not None:
                self._prepared = self._prepare(self.question, self._answers)
        except BaseException as error:  # whoever asks for what was found is told
            self._error = error
        self._ended.set()

    def ends(self, seconds: float) -> bool:
        """Say whether the work ends within so many seconds."""
        return self._ended.wait(seconds)

    def found(self) -> tuple[list[Answer], Any]:
        """Return the answers and what was prepared of them, once there are any; raises what went wrong."""
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._answers, self._prepared

    def stop(self) -> None:
        """End the work where it next reports progress; what it finds is of no use to anybody."""
        self._stopped.set()
        if self._after is not None:
            self._after.stop()

    def _started(self, total: int, noun: str) -> Callable[[int], None]:
        self._total, self._done = total, 0
        return self._add

    def _add(self, count: int) -> None:
        if self._stopped.is_set():
            raise Stopped
        self._done += count

    @property
    def words(self) -> str:
        """Say how far the work is."""
        if self._after is not None and not self._after.ends(0):
            return self._after.words
        share = f" {min(100 * self._done // self._total, 100)} %" if self._total else ""
        return f"working …{share} · Esc stops"
