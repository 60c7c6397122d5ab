"""A laboratory that advances on a background thread, at a pace, until it reaches a step or is halted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from time import monotonic

from floatlab.verbs.train.live import Laboratory
from floatlab.verbs.train.live_page import Look

PACES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000, None)  # steps a second; None: as fast as possible
_FRAME = 0.1  # seconds between two pictures


def usual_pace(steps: int) -> int | None:
    """Return the pace at which this many steps take at most ten seconds.

    >>> usual_pace(101), usual_pace(10**6), usual_pace(10**9)
    (20, 100000, None)
    """
    return next((pace for pace in PACES if pace is None or pace * 10 >= steps), None)


class PacedRun:
    """A laboratory on its way to a step.

    Iterating over `frames` does the work. Only one thread at a time may use the laboratory: whoever takes a frame has
    it until the next one is asked for. The pace may change on the way. An exception is kept as `error`, and ends the
    run.
    """

    def __init__(self, laboratory: Laboratory, to: int, pace: int | None, first: Callable[[], None] | None = None):
        """Do nothing yet; `first` is called before any step."""
        self.laboratory, self.to, self.pace = laboratory, to, pace
        self.error: Exception | None = None
        self._first = first
        self._halted, self._dropped = Event(), Event()
        self._size = 1  # steps of the next part, at no pace
        self.is_over = False

    def halt(self) -> None:
        """End soon, with a last frame."""
        self._halted.set()

    def drop(self) -> None:
        """End soon, without another frame."""
        self._dropped.set()
        self._halted.set()

    @property
    def is_halted(self) -> bool:
        """Whether the run is about to end."""
        return self._halted.is_set()

    def frames(self) -> Iterator[Look | None]:
        """Advance part by part, and return the state after each; None after an exception."""
        while not self.is_over:
            begun = monotonic()
            try:
                duration = self._advance()
                look = self.laboratory.look()
            except Exception as error:
                self.error, look, duration = error, None, 0.0
            done = self.laboratory.steps >= self.to or self.laboratory.has_ended
            if self._dropped.is_set():
                return
            self.is_over = self.is_halted or done or self.error is not None
            yield look
            self._halted.wait(max(begun + duration - monotonic(), 0.0))

    def _advance(self) -> float:
        """Do some steps, and return how many seconds they should take."""
        laboratory = self.laboratory
        first, self._first = self._first, None
        if first is not None:
            first()
        left = self.to - laboratory.steps
        if self.is_halted or left <= 0 or laboratory.has_ended:
            return 0.0
        pace = self.pace
        if pace is None:
            self._advance_fast(left)
            return 0.0
        count = self._rounded_up(max(round(pace * _FRAME), 1), left)
        laboratory.advance(count)
        return count / pace

    def _rounded_up(self, count: int, left: int) -> int:
        """Return a count of steps that ends where the laboratory records its state."""
        every = self.laboratory.every
        return min(-(-count // every) * every, left)

    def _advance_fast(self, left: int) -> None:
        """Do about as many steps as fit between two pictures, by the time that the last ones took."""
        begun = monotonic()
        self.laboratory.advance(self._rounded_up(self._size, left))
        took = monotonic() - begun
        if took < _FRAME / 2:
            self._size *= 4 if took < _FRAME / 8 else 2
        elif took > 2 * _FRAME:
            self._size = max(self._size // 2, 1)

    def run(self, until: float) -> None:
        """Advance on this thread as fast as possible, until `monotonic()` returns `until` at the latest."""
        while self.laboratory.steps < self.to and not self.laboratory.has_ended and monotonic() < until:
            self._advance_fast(self.to - self.laboratory.steps)
