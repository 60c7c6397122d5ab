"""Runs a training session on a background thread, with a pace, pauses, undo and changes of remedies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from threading import Event
from time import monotonic

from textual import getters

from floatlab.tui.base import run_each
from floatlab.tui.screens.train.controls import TrainControls
from floatlab.tui.screens.train.plot import Plot
from floatlab.tui.widgets import ChoiceBar, Pick
from floatlab.verbs.train.live import Laboratory, check_remedy
from floatlab.verbs.train.live_page import Look

PACES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000, None)  # steps per second; None: no limit
_FRAME = 0.1  # seconds between two frames on the screen


def usual_pace(steps: int) -> int | None:
    """Return the slowest of PACES (steps per second) at which a run takes at most ten seconds; None means no limit.

    >>> usual_pace(101), usual_pace(10**6), usual_pace(10**9)
    (20, 100000, None)
    """
    return next((pace for pace in PACES if pace is None or pace * 10 >= steps), None)


class PacedRun:
    """A run of a training session (`Laboratory`) up to a step.

    Iterating over `frames` does the work. Between a frame and the next one, the code that iterates may use the
    laboratory. The pace may change during the run. An exception ends the run and is stored in `error`.
    """

    def __init__(self, laboratory: Laboratory, to: int, pace: int | None, first: Callable[[], None] | None = None):
        """Store the arguments. `first` is called before the first step."""
        self.laboratory, self.to, self.pace = laboratory, to, pace
        self.error: Exception | None = None
        self._first = first
        self._halted = Event()
        self._size = 1  # how many steps the next part has if the pace is unlimited
        self.is_over = False

    def halt(self) -> None:
        """Request the end of the run. The run then yields one last frame."""
        self._halted.set()

    @property
    def is_halted(self) -> bool:
        """Whether the end of the run was requested."""
        return self._halted.is_set()

    def frames(self) -> Iterator[Look | None]:
        """Advance in parts of a few steps, and yield the state after each part. Yield None after an exception."""
        while not self.is_over:
            begun = monotonic()
            try:
                duration = self._advance()
                look = self.laboratory.look()
            except Exception as error:
                self.error, look, duration = error, None, 0.0
            done = self.laboratory.steps >= self.to or self.laboratory.has_ended
            self.is_over = self.is_halted or done or self.error is not None
            yield look
            self._halted.wait(max(begun + duration - monotonic(), 0.0))

    def _advance(self) -> float:
        """Do a few steps, and return the seconds that they should take at the chosen pace (0 if unlimited)."""
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
        """Round `count` up to whole recording intervals, but to at most `left`."""
        every = self.laboratory.every
        return min(-(-count // every) * every, left)

    def _advance_fast(self, left: int) -> None:
        """Do some steps. Choose the number of steps for the next call so that they take about as long as a frame."""
        begun = monotonic()
        self.laboratory.advance(self._rounded_up(self._size, left))
        took = monotonic() - begun
        if took < _FRAME / 2:
            self._size *= 4 if took < _FRAME / 8 else 2
        elif took > 2 * _FRAME:
            self._size = max(self._size // 2, 1)

    def run(self, until: float) -> None:
        """Advance on the current thread as fast as possible, at most until `monotonic()` reaches `until`."""
        while self.laboratory.steps < self.to and not self.laboratory.has_ended and monotonic() < until:
            self._advance_fast(self.to - self.laboratory.steps)


_MARGINS = 2  # columns that a ChoiceBar uses for padding


class TrainRunner(TrainControls, inherit_bindings=False):
    """A screen that may have a laboratory: a training session whose steps the screen runs and shows.

    During a run, the screen may use the laboratory only while it shows a frame. `when_free` delays a call until then.
    """

    plot, transport = getters.query_one(Plot), getters.query_one("#transport", ChoiceBar)
    CONTROLS = {"slower": "pace(-1)", "faster": "pace(1)", "pace": "pace(1)", "where": "finish"}
    look: Look | None = None  # the state of the laboratory that is shown
    running: PacedRun | None = None
    pace: int | None = None
    at: int | None = None  # the step at the cursor of the chart; None means the newest step
    _waiting: tuple[Callable[[], object], ...] = ()  # functions to call when the laboratory is free
    _in_frame = False  # whether the laboratory is free at this moment of a run

    def draw_all(self) -> None:
        """Show the controls, the state and the view."""
        raise NotImplementedError

    # Running.

    def run_to(self, step: int, pace: int | None, first: Callable[[], None] | None = None) -> None:
        """Run the training session to a step on a background thread, after halting the current run.

        `first` is called on that thread before the first step.
        """
        if self.laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            self._waiting += (partial(self.run_to, step, pace, first),)
            return
        running = self.running = PacedRun(self.laboratory, step, pace, first)
        self.draw_transport()
        run_each(self.app, running.frames(), partial(self._take_frame, running))

    def drop_run(self) -> None:
        """End the current run without showing its last frame."""
        if self.running is not None:
            self.running.halt()
        self.running, self._waiting = None, ()

    def on_unmount(self) -> None:
        """End the current run."""
        self.drop_run()
        super().on_unmount()

    def _take_frame(self, running: PacedRun, look: Look | None) -> bool:
        """Show the state after a part of a run; return whether the run continues."""
        if running is not self.running or not self.is_attached:
            return False
        if running.is_over:
            self.running = None
        if look is not None:
            self.look = look
        self._in_frame = True
        waiting, self._waiting = self._waiting, ()
        for do in waiting:
            do()
        self.draw_all()
        self._in_frame = False
        if running.error is not None:
            self.call_next(self._fail, running.error)
        return self.running is running

    def _fail(self, error: Exception) -> None:
        """Show the message of a user's error; raise any other exception, which ends the explorer."""
        with self.complaining():
            raise error

    def when_free(self, do: Callable[[], object]) -> None:
        """Call `do` as soon as no other thread uses the laboratory (the training session)."""
        if self.running is None or self._in_frame:
            do()
        else:
            self._waiting += (do,)

    def action_play(self) -> None:
        """Run or pause.

        If the training has reached its last step, it is extended by the number of steps in the question.
        """
        laboratory = self.laboratory
        if laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            self.draw_transport()
        elif laboratory.steps < laboratory.goal or self._extend(max(laboratory.wanted, 1)):
            self.run_to(laboratory.goal, self.pace)

    def action_advance(self) -> None:
        """Advance to the next recorded state, usually by one step. If running, pause instead."""
        laboratory = self.laboratory
        if laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            return
        left = laboratory.goal - laboratory.steps
        if left >= laboratory.every or self._extend(laboratory.every - left):
            self.run_to(laboratory.steps + laboratory.every, None)

    def _extend(self, steps: int) -> bool:
        assert self.laboratory is not None
        goal = self.laboratory.goal
        with self.complaining(hint=True):
            self.laboratory.extend(steps)
        return self.laboratory.goal > goal

    def action_begin(self) -> None:
        """Go back to the start, and discard changes of remedies."""
        if self.laboratory is not None:
            self.at = None
            self.run_to(0, None, self.laboratory.begin_again)

    def action_finish(self) -> None:
        """Run to the last step as fast as possible."""
        laboratory = self.laboratory
        if laboratory is not None and laboratory.steps < laboratory.goal:
            self.run_to(laboratory.goal, None)

    def action_pace(self, by: int) -> None:
        """Run slower or faster."""
        self.pace = PACES[min(max(PACES.index(self.pace) + by, 0), len(PACES) - 1)]
        if self.running is not None:
            self.running.pace = self.pace
        self.draw_transport()

    # Changes of remedies.

    def action_remedy(self) -> None:
        """Open the list of remedies; the chosen one replaces the remedy under the cursor for the following steps."""
        if self.laboratory is None:
            return
        noun, label = "configuration" if self.form == "network" else "remedy", self.labels[self.place]
        title = f"{label} continues as (any {noun}, such as bf16+kahan)"
        self.pick(Pick(title, self.remedy_choices(), partial(self.take_remedy, self.place), (label,), free=True))

    def take_remedy(self, place: int, remedy: str) -> None:
        """Change the remedy of a row for the following steps. At step 0, open a new question with this remedy."""
        if self.laboratory is None or remedy == self.labels[place]:
            return
        with self.complaining():
            check_remedy(self.question, remedy)
            if self.laboratory.steps == 0:
                self.change(**{self.remedy_option: (*self.labels[:place], remedy, *self.labels[place + 1 :])})
            else:
                self.when_free(partial(self._change_remedy, self.laboratory, place, remedy))

    def _change_remedy(self, laboratory: Laboratory, place: int, remedy: str) -> None:
        with self.complaining():
            laboratory.change(place, remedy)
            self.look = laboratory.look()
            self.complain("")
            self.draw_all()

    def action_undo(self, by: int = -1) -> None:
        """Undo the last change of a remedy or, if there is none, go one question back."""
        laboratory = self.laboratory
        if laboratory is not None and laboratory.changes:
            self.run_to(laboratory.steps, None, partial(laboratory.restart, laboratory.changes[:-1]))
        else:
            super().action_undo(by)

    # The line of buttons.

    def draw_transport(self) -> None:
        """Show the number of steps done, and the buttons to run and pause."""
        laboratory = self.laboratory
        self.transport.display = laboratory is not None
        if laboratory is None or self.look is None:
            return
        runs = self.running is not None and not self.running.is_halted
        steps_a_second = self.running.pace if self.running is not None else self.pace
        pace = "at once" if steps_a_second is None else f"{steps_a_second:,} a second"
        where, play = f"{self.look.steps:,} of {laboratory.goal:,}", "‖ pause" if runs else "▶ run"
        buttons = (  # name, full text, short text
            ("where", f"step {where}", where),
            ("play", play, play),
            ("advance", "+1 step", "+1"),
            ("begin", "|◀ start", "|◀"),
            ("finish", "▶| goal", ""),  # a click on the number of steps runs to the goal, too
            ("slower", "<", "<"),
            ("pace", pace, pace.replace(" a second", "/s")),
            ("faster", ">", ">"),
        )
        short = sum(len(text) + 2 for _, text, _ in buttons) > self.app.size.width - _MARGINS
        texts = ((name, brief if short else text) for name, text, brief in buttons)
        self.transport.options = tuple((name, text) for name, text in texts if text)

    # The cursor over the chart.

    def action_point(self, by: int) -> None:
        """Move the cursor by a number of columns."""
        if self.look is not None and self.plot.display:
            self.point(self.plot.moved(self.look.steps if self.at is None else self.at, by), by)

    def point(self, x: float, by: int = 0) -> None:
        """Move the cursor to the recorded step nearest to x.

        If the cursor is there already, move it by one recorded step in the direction of `by`.
        """
        if self.look is None or self.laboratory is None:
            return
        every = self.laboratory.every
        at = round(x / every) * every
        if by and at == (self.look.steps if self.at is None else self.at):  # steps can be further apart than columns
            at += every if by > 0 else -every
        self.at = max(at, 0) if at < self.look.steps else None
        self.draw_view()
