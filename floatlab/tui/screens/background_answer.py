"""Computes the answers to a `Question`, usually on a background thread, with progress, pauses and stops.

The command line begins an answer before it imports the explorer. So this module does not import Textual.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Event, Thread
from time import monotonic

from floatlab.progress import duration_text, pausing, reporting
from floatlab.verbs.question import Answer, Question, Started
from floatlab.verbs.registry import answer_question

_SURE = 0.5  # seconds of work until the remaining time is estimated


class Stopped(KeyboardInterrupt):
    """Raised after `stop`, when the work next reports progress or calls `floatlab.progress.pause`.

    `Stopped` is a KeyboardInterrupt, so that functions return partial results, as they do after Ctrl-C.
    """


class BackgroundAnswer:
    """The computation of the answers to a question, and of the slow parts of drawing them.

    Parameters
    ----------
    question
        The question to answer.
    prepare
        Function that computes the slow parts of drawing, given the question and its answers.
    after
        An earlier `BackgroundAnswer` for the same question, whose answers are used.
    ask
        Function that answers the question. The default is `answer_question`.
    """

    def __init__(
        self,
        question: Question,
        prepare: Callable[[Question, list[Answer]], object] | None = None,
        after: BackgroundAnswer | None = None,
        ask: Callable[[Question, Started], list[Answer]] | None = None,
    ) -> None:
        """Store the arguments, without starting the work."""
        self.question = question
        self._ask = ask or (lambda question, started: answer_question(question, started))
        self._prepare, self._after = prepare, after
        self._future: Future[tuple[list[Answer], object]] = Future()
        self._stopped = Event()
        self._goes_on = Event()
        self._goes_on.set()
        self._total = self._done = self._part = 0  # `_part` counts the computations that reported progress
        self._began = self._counted_from = monotonic()
        self.late = False  # whether the answer came after the screen had stopped waiting

    def start(self) -> None:
        """Start the work on a daemon thread."""
        Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        """Do the work on the current thread; an exception is stored for `result`."""
        try:
            with pausing(self._pause):
                after = self._after
                answers = after.result()[0] if after is not None else self._ask(self.question, self._started)
                with reporting(self._started):
                    prepared = self._prepare(self.question, answers) if self._prepare is not None else None
        except BaseException as error:
            self._future.set_exception(error)
        else:
            self._future.set_result((answers, prepared))

    def ends(self, seconds: float) -> bool:
        """Wait for at most `seconds`, and return whether the work has ended."""
        return bool(wait([self._future], seconds).done)

    def result(self) -> tuple[list[Answer], object]:
        """Wait for the work to end. Return the answers and the result of `prepare`, or raise the work's exception."""
        return self._future.result()

    def hold(self) -> None:
        """When the work next reports progress or calls `progress.pause`, pause it until `release` is called."""
        self._goes_on.clear()
        if self._after is not None:
            self._after.hold()

    def release(self) -> None:
        """End a pause."""
        self._goes_on.set()
        if self._after is not None:
            self._after.release()

    def stop(self) -> None:
        """Stop the work when it next reports progress or calls `progress.pause`."""
        self._stopped.set()
        self._goes_on.set()
        if self._after is not None:
            self._after.stop()

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped.is_set()

    def _started(self, total: int, noun: str) -> Callable[[int], None]:
        self._total, self._done, self._counted_from = total, 0, monotonic()
        self._part += 1
        return self._add

    def _add(self, count: int) -> None:
        self._pause()
        self._done += count

    def _pause(self) -> None:
        """Wait while the work is paused by `hold`; raise Stopped if `stop` was called."""
        self._goes_on.wait()
        if self._stopped.is_set():
            raise Stopped

    @property
    def age(self) -> float:
        """The time in seconds since this object was made."""
        return monotonic() - self._began

    @property
    def progress(self) -> str:
        """The progress as text: the share of the work that is done, and an estimate of the remaining time."""
        if self._after is not None and not self._after.ends(0):
            return self._after.progress
        if self.is_stopped:
            return "stopping …"
        part = f" part {self._part}:" if self._part > 1 else ""
        if self._total:
            # Later work, such as computing the figures of a page, is not part of the reported amount.
            part += f" {100 * self._done // self._total} %" if self._done < self._total else " last steps"
        return f"working …{part.removesuffix(':')}{self._estimate()} · Esc stops"

    def _estimate(self) -> str:
        """Return the estimated remaining time as text; empty if too little work is done for an estimate."""
        spent = monotonic() - self._counted_from
        if spent < _SURE or not 0 < self._done < self._total:
            return ""
        left = spent * (self._total - self._done) / self._done
        return f", about {duration_text(left)} left"
