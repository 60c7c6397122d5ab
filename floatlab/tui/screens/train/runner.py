"""Training under way on a screen: it runs and pauses at a pace, goes back, and lets lines go on otherwise."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.binding import Binding

from floatlab.errors import FloatlabError
from floatlab.tui.app.background import beside_each
from floatlab.tui.screens.train.controls import Setups
from floatlab.tui.screens.train.steps import PACES, Running
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.pickers import Picker
from floatlab.tui.widgets.plot import Plot
from floatlab.verbs.train.live.laboratory import Laboratory, check_remedy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from floatlab.verbs.question import Question
    from floatlab.verbs.train.live.page import Look

_MARGINS = 2  # columns beside a line of choices


class Course(Setups, inherit_bindings=False):
    """A screen whose question may be about something that goes on."""

    COURSE = [
        Binding("space", "play", "Run", id="train.play", key_display="space", tooltip="Run, or pause"),
        Binding("p", "play", "Run, or pause", id="train.pause", show=False),
        Binding("e", "remedy", "Remedy", id="train.remedy", tooltip="Let this line go on under another remedy"),
        Binding("n", "advance", "+1", id="train.advance", tooltip="Do one step"),
        Binding("home", "begin", "Start", id="train.begin", tooltip="Back to the start"),
        Binding("end", "finish", "On to the goal, as fast as it goes", id="train.finish", show=False),
        Binding("less_than_sign", "pace(-1)", "Slower", id="train.slower", key_display="<", show=False),
        Binding("greater_than_sign", "pace(1)", "Faster", id="train.faster", key_display=">", show=False),
        Binding("left,h", "point(-1)", "Cursor over the chart to the left", id="train.left", show=False),
        Binding("right,l", "point(1)", "Cursor over the chart to the right", id="train.right", show=False),
    ]

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self.laboratory: Laboratory | None = None  # what goes on, where something does
        self.look: Look | None = None  # how it stands
        self.running: Running | None = None
        self.pace: int | None = None
        self.at: int | None = None  # the step that the cursor stands at; None is the newest
        self._soon: list[Callable[[], object]] = []  # what waits until nobody else has the laboratory
        self._has_it = False  # whether that is so although it runs

    def draw_all(self) -> None:
        """Show how everything stands."""
        raise NotImplementedError

    @property
    def place(self) -> int:
        """The line under the cursor."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """The remedies, or configurations, of all lines."""
        return tuple(self.laboratory.labels) if self.laboratory is not None else ()

    @property
    def remedy(self) -> str:
        """The remedy of the line under the cursor."""
        return self.labels[self.place] if self.place < len(self.labels) else "plain"

    # Running.

    def go(self, to: int, pace: int | None, first: Callable[[], None] | None = None) -> None:
        """Let the laboratory go to a step, beside the screen."""
        if self.laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            self._soon.append(partial(self.go, to, pace, first))
            return
        running = self.running = Running(self.laboratory, to, pace, first)
        self.draw_transport()
        beside_each(self.app, running.frames(), partial(self._take, running))

    def drop(self) -> None:
        """Let nothing go on; nobody waits for what is under way."""
        if self.running is not None:
            self.running.drop()
        self.running = None
        self._soon.clear()

    def on_unmount(self) -> None:
        """Leave nothing behind that works for nobody."""
        self.drop()
        super().on_unmount()

    def _take(self, running: Running, look: Look | None) -> bool:
        """Show how everything stands; say whether it goes on. Until then the laboratory is this thread's."""
        if running is not self.running or not self.is_attached:
            return False
        if running.is_over:
            self.running = None
        if look is not None:
            self.look = look
        self._has_it = True
        waiting, self._soon = self._soon, []
        for do in waiting:
            do()
        self.draw_all()
        self._has_it = False
        if running.error is not None:
            self.call_next(self._fail, running.error)
        return self.running is running

    def _fail(self, error: Exception) -> None:
        """Say what went wrong; what is a mistake of ours ends the explorer."""
        if not isinstance(error, FloatlabError):
            raise error
        self.complain(str(error))

    def when_free(self, do: Callable[[], object]) -> None:
        """Do something with the laboratory once nobody else has it."""
        if self.running is None or self._has_it:
            do()
        else:
            self._soon.append(do)

    def action_play(self) -> None:
        """Run, or pause; at the goal, run as far again."""
        laboratory = self.laboratory
        if laboratory is None:
            return
        if self.running is not None:
            self.running.halt()
            self.draw_transport()
            return
        if laboratory.steps >= laboratory.goal and not self._extend(max(laboratory.wanted, 1)):
            return
        self.go(laboratory.goal, self.pace)

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
            self.go(laboratory.steps + laboratory.every, None)

    def _extend(self, steps: int) -> bool:
        assert self.laboratory is not None
        try:
            self.laboratory.extend(steps)
        except FloatlabError as error:
            self.complain(str(error), hint=True)
            return False
        return True

    def action_begin(self) -> None:
        """Go back to the start, without what was changed on the way."""
        if self.laboratory is not None:
            self.at = None
            self.go(0, None, self.laboratory.begin_again)

    def action_finish(self) -> None:
        """Go to the goal as fast as it goes."""
        laboratory = self.laboratory
        if laboratory is not None and laboratory.steps < laboratory.goal:
            self.go(laboratory.goal, None)

    def action_pace(self, by: int) -> None:
        """Run slower, or faster."""
        self.pace = PACES[min(max(PACES.index(self.pace) + by, 0), len(PACES) - 1)]
        if self.running is not None:
            self.running.pace = self.pace
        self.draw_transport()

    def action_remedy(self) -> None:
        """Let the line under the cursor go on under another remedy."""
        if self.laboratory is None:
            return
        place = self.place
        what = "configuration" if self.form == "network" else "remedy"
        title = f"{self.labels[place]} goes on as: (any {what} such as bf16+kahan)"
        picker = Picker(title, self.remedy_choices(), (self.labels[place],), free=True)
        self.app.push_screen(picker, partial(self.take_remedy, place))

    def take_remedy(self, place: int, word: str | None) -> None:
        """Change a line: from where it stands on, or, at the start, from the start on."""
        if word is None or self.laboratory is None or word == self.labels[place]:
            return
        try:
            check_remedy(self.question, word)
        except FloatlabError as error:
            self.complain(str(error))
            return
        if self.laboratory.steps == 0:
            name = "configs" if self.form == "network" else "remedies"
            self.change(**{name: tuple(word if i == place else each for i, each in enumerate(self.labels))})
        else:
            self.when_free(partial(self._change, self.laboratory, place, word))

    def _change(self, laboratory: Laboratory, place: int, word: str) -> None:
        try:
            laboratory.change(place, word)
        except FloatlabError as error:
            self.complain(str(error))
            return
        self.look = laboratory.look()
        self.complain("")
        self.draw_all()

    def action_undo(self) -> None:
        """Take back what was changed on the way, the last first; else go one question back."""
        laboratory = self.laboratory
        if laboratory is not None and laboratory.changes:
            self.go(laboratory.steps, None, partial(laboratory.restart, laboratory.changes[:-1]))
        else:
            super().action_undo()

    # What a click can do.

    def draw_transport(self) -> None:
        """Show where it stands, and how it goes on."""
        laboratory, transport = self.laboratory, self.query_one("#transport", Choices)
        transport.display = laboratory is not None
        if laboratory is None or self.look is None:
            return
        runs = self.running is not None and not self.running.is_halted
        paced = self.running.pace if self.running is not None else self.pace
        pace = "at once" if paced is None else f"{paced:,} a second"
        where = f"{self.look.steps:,} of {laboratory.goal:,}"
        words = (
            ("where", f"step {where}", where),
            ("play", "‖ pause" if runs else "▶ run", "‖ pause" if runs else "▶ run"),
            ("advance", "+1 step", "+1"),
            ("begin", "|◀ start", "|◀"),
            ("finish", "▶| goal", ""),  # as a click on where it stands does
            ("slower", "<", "<"),
            ("pace", pace, pace.replace(" a second", "/s")),
            ("faster", ">", ">"),
        )
        room = self.app.size.width - _MARGINS
        short = sum(len(word) + 2 for _, word, _ in words) > room
        transport.options = tuple((name, brief if short else word) for name, word, brief in words if brief or not short)

    @on(Choices.Chosen, "#transport")
    async def _transport_chosen(self, event: Choices.Chosen) -> None:
        actions = {"slower": "pace(-1)", "faster": "pace(1)", "pace": "pace(1)", "where": "finish"}
        await self.run_action(actions.get(event.name, event.name))

    # The cursor over the chart.

    def action_point(self, by: int) -> None:
        """Move the cursor over the chart."""
        if self.look is None or not self.query_one(Plot).display:
            return
        now = self.look.steps if self.at is None else self.at
        self._point(self.query_one(Plot).moved(now, by), by)

    @on(Plot.Pointed)
    def _pointed(self, event: Plot.Pointed) -> None:
        self._point(event.x, 0)

    def _point(self, x: float, by: int) -> None:
        if self.look is None or self.laboratory is None:
            return
        now = self.look.steps if self.at is None else self.at
        at = round(x / self.laboratory.every) * self.laboratory.every
        if by and at == now:  # a step is wider than a column
            at = now + (1 if by > 0 else -1) * self.laboratory.every
        self.at = max(at, 0) if at < self.look.steps else None
        self.draw_view()
