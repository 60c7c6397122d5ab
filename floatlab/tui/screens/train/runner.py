"""Training under way: it runs and pauses at a pace, goes back, and changes the remedy of a row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from textual import on

from floatlab.errors import FloatlabError
from floatlab.tui.background import run_each
from floatlab.tui.screens.train.controls import TrainControls
from floatlab.tui.screens.train.paced_run import PACES, PacedRun
from floatlab.tui.screens.train.plot import Plot
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.verbs.question import Question
from floatlab.verbs.train.live import Laboratory, check_remedy
from floatlab.verbs.train.live_page import Look

_MARGINS = 2  # columns beside a line of choices


class TrainRunner(TrainControls, inherit_bindings=False):
    """A screen that may hold a laboratory: a training that advances while it is watched.

    While the laboratory runs, a background thread uses it. `when_free` does something with it between two frames.
    """

    CONTROLS = {"slower": "pace(-1)", "faster": "pace(1)", "pace": "pace(1)", "where": "finish"}

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self.look: Look | None = None  # the state of the laboratory that is shown
        self.running: PacedRun | None = None
        self.pace: int | None = None
        self.at: int | None = None  # the step under the cursor of the chart; None is the newest
        self._waiting: list[Callable[[], object]] = []  # calls for when the laboratory is free
        self._in_frame = False  # whether it is free although it runs

    def draw_all(self) -> None:
        """Show controls, state and view."""
        raise NotImplementedError

    # Running.

    def run_to(self, step: int, pace: int | None, first: Callable[[], None] | None = None) -> None:
        """Run the laboratory to a step on a background thread; `first` is called there before."""
        if self.laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            self._waiting.append(partial(self.run_to, step, pace, first))
            return
        running = self.running = PacedRun(self.laboratory, step, pace, first)
        self.draw_transport()
        run_each(self.app, running.frames(), partial(self._take_frame, running))

    def drop_run(self) -> None:
        """End the run under way without another frame."""
        if self.running is not None:
            self.running.drop()
        self.running = None
        self._waiting.clear()

    def on_unmount(self) -> None:
        """End the run under way."""
        self.drop_run()
        super().on_unmount()

    def _take_frame(self, running: PacedRun, look: Look | None) -> bool:
        """Show the state after a part of a run, and return whether the run goes on."""
        if running is not self.running or not self.is_attached:
            return False
        if running.is_over:
            self.running = None
        if look is not None:
            self.look = look
        self._in_frame = True
        waiting, self._waiting = self._waiting, []
        for do in waiting:
            do()
        self.draw_all()
        self._in_frame = False
        if running.error is not None:
            self.call_next(self._fail, running.error)
        return self.running is running

    def _fail(self, error: Exception) -> None:
        """Complain about an error of the user; raise any other, which ends the explorer."""
        if not isinstance(error, FloatlabError):
            raise error
        self.complain(str(error))

    def when_free(self, do: Callable[[], object]) -> None:
        """Call a function once no other thread uses the laboratory."""
        if self.running is None or self._in_frame:
            do()
        else:
            self._waiting.append(do)

    def action_play(self) -> None:
        """Run, or pause; at the goal, extend it by as many steps as were asked for."""
        laboratory = self.laboratory
        if laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            self.draw_transport()
        elif laboratory.steps < laboratory.goal or self._extend(max(laboratory.wanted, 1)):
            self.run_to(laboratory.goal, self.pace)

    def action_advance(self) -> None:
        """Do one step."""
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
        try:
            self.laboratory.extend(steps)
        except FloatlabError as error:
            self.complain(str(error), hint=True)
            return False
        return True

    def action_begin(self) -> None:
        """Go back to the start, without changes of remedies."""
        if self.laboratory is not None:
            self.at = None
            self.run_to(0, None, self.laboratory.begin_again)

    def action_finish(self) -> None:
        """Run to the goal as fast as possible."""
        laboratory = self.laboratory
        if laboratory is not None and laboratory.steps < laboratory.goal:
            self.run_to(laboratory.goal, None)

    def action_pace(self, by: int) -> None:
        """Run slower, or faster."""
        self.pace = PACES[min(max(PACES.index(self.pace) + by, 0), len(PACES) - 1)]
        if self.running is not None:
            self.running.pace = self.pace
        self.draw_transport()

    # Changes of remedies.

    def action_remedy(self) -> None:
        """Change the remedy under the cursor from here on."""
        if self.laboratory is None:
            return
        noun, label = "configuration" if self.form == "network" else "remedy", self.labels[self.place]
        title = f"{label} goes on as: (any {noun} such as bf16+kahan)"
        self.pick(title, self.remedy_choices(), partial(self.take_remedy, self.place), (label,), free=True)

    def take_remedy(self, place: int, remedy: str) -> None:
        """Change the remedy of a row; at the start, ask another question instead."""
        if self.laboratory is None or remedy == self.labels[place]:
            return
        try:
            check_remedy(self.question, remedy)
        except FloatlabError as error:
            self.complain(str(error))
            return
        if self.laboratory.steps == 0:
            self.change(**{self.remedy_option: (*self.labels[:place], remedy, *self.labels[place + 1 :])})
        else:
            self.when_free(partial(self._change_remedy, self.laboratory, place, remedy))

    def _change_remedy(self, laboratory: Laboratory, place: int, remedy: str) -> None:
        try:
            laboratory.change(place, remedy)
        except FloatlabError as error:
            self.complain(str(error))
            return
        self.look = laboratory.look()
        self.complain("")
        self.draw_all()

    def action_undo(self) -> None:
        """Take back the last change of a remedy; if there is none, go one question back."""
        laboratory = self.laboratory
        if laboratory is not None and laboratory.changes:
            self.run_to(laboratory.steps, None, partial(laboratory.restart, laboratory.changes[:-1]))
        else:
            super().action_undo()

    # The line of buttons.

    def draw_transport(self) -> None:
        """Show the step, and the buttons to run and pause."""
        laboratory, transport = self.laboratory, self.query_one("#transport", ChoiceBar)
        transport.display = laboratory is not None
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
            ("finish", "▶| goal", ""),  # a click on the step does the same
            ("slower", "<", "<"),
            ("pace", pace, pace.replace(" a second", "/s")),
            ("faster", ">", ">"),
        )
        short = sum(len(text) + 2 for _, text, _ in buttons) > self.app.size.width - _MARGINS
        texts = ((name, brief if short else text) for name, text, brief in buttons)
        transport.options = tuple((name, text) for name, text in texts if text)

    # The cursor over the chart.

    def action_point(self, by: int) -> None:
        """Move the cursor by some columns."""
        plot = self.query_one(Plot)
        if self.look is not None and plot.display:
            self._point(plot.moved(self.look.steps if self.at is None else self.at, by), by)

    @on(Plot.Pointed)
    def _pointed(self, event: Plot.Pointed) -> None:
        self._point(event.x, 0)

    def _point(self, x: float, by: int) -> None:
        if self.look is None or self.laboratory is None:
            return
        every = self.laboratory.every
        at = round(x / every) * every
        if by and at == (self.look.steps if self.at is None else self.at):  # a step is wider than a column
            at += every if by > 0 else -every
        self.at = max(at, 0) if at < self.look.steps else None
        self.draw_view()
