"""Steps on their way: a laboratory driven beside the screen, at a pace, until it is there or somebody halts it."""

from __future__ import annotations

from threading import Event
from time import monotonic

from floatlab.verbs.train.live.laboratory import Laboratory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from floatlab.verbs.train.live.page import Look

PACES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000, None)  # steps a second; None: as many as can be
_FRAME = 0.1  # seconds between two pictures


def usual_pace(steps: int) -> int | None:
    """Return a pace at which so many steps take some seconds.

    >>> usual_pace(101), usual_pace(10**6), usual_pace(10**9)
    (20, 100000, None)
    """
    return next((pace for pace in PACES if pace is None or pace * 10 >= steps), None)


class Running:
    """A laboratory on its way to a step; only one thread at a time may touch it, and while it runs, this one does.

    `frames` does the work. Whoever takes a frame has the laboratory until the next one is asked for. The pace may
    change on the way. What goes wrong is kept as `error`, and ends it.
    """

    def __init__(self, laboratory: Laboratory, to: int, pace: int | None, first: Callable[[], None] | None = None):
        """Do nothing yet; `first` is to be done before any step."""
        self.laboratory, self.to, self.pace = laboratory, to, pace
        self.error: Exception | None = None
        self._first = first
        self._halted, self._dropped = Event(), Event()
        self._size = 1
        self.is_over = False

    def halt(self) -> None:
        """End it soon, with a last frame."""
        self._halted.set()

    def drop(self) -> None:
        """End it soon, without another frame: nobody waits for one."""
        self._dropped.set()
        self._halted.set()

    @property
    def is_halted(self) -> bool:
        """Whether it is about to end."""
        return self._halted.is_set()

    def frames(self) -> Iterator[Look | None]:
        """Go on and on, and return how everything stands after each part; None where something went wrong."""
        while not self.is_over:
            begun = monotonic()
            try:
                rest = self._part()
                look = self.laboratory.look()
            except Exception as error:
                self.error, look, rest = error, None, 0.0
            done = self.laboratory.steps >= self.to or self.laboratory.has_ended
            if self._dropped.is_set():
                return
            self.is_over = self.is_halted or done or self.error is not None
            yield look
            self._halted.wait(max(begun + rest - monotonic(), 0.0))

    def _part(self) -> float:
        """Do some steps; return the seconds that they are to take."""
        laboratory = self.laboratory
        first, self._first = self._first, None
        if first is not None:
            first()
        left = self.to - laboratory.steps
        if self.is_halted or left <= 0 or laboratory.has_ended:
            return 0.0
        every, pace = laboratory.every, self.pace
        if pace is None:
            self._rush(left)
            return 0.0
        count = max(round(pace * _FRAME), 1)
        count = min(-(-count // every) * every, left)
        laboratory.advance(count)
        return count / pace

    def _rush(self, left: int) -> None:
        """Do as many steps as a picture's time has room for, as far as that is known by now."""
        every = self.laboratory.every
        begun = monotonic()
        self.laboratory.advance(min(-(-self._size // every) * every, left))
        took = monotonic() - begun
        if took < _FRAME / 2:
            self._size *= 4 if took < _FRAME / 8 else 2
        elif took > 2 * _FRAME:
            self._size = max(self._size // 2, 1)

    def run(self, until: float) -> None:
        """Go on here as fast as it goes, until a time of the clock at most."""
        while self.laboratory.steps < self.to and not self.laboratory.has_ended and monotonic() < until:
            self._rush(self.to - self.laboratory.steps)
