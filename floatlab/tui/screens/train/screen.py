"""Train: weights under remedies, step by step: the chart while it runs, each line's next step, remedies changed."""

from __future__ import annotations

from functools import partial
from time import monotonic

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label, Static

from floatlab.errors import FloatlabError
from floatlab.page.model import Note, Page, line
from floatlab.record import Record
from floatlab.training import UpdateTrace
from floatlab.tui.screens.task import Task
from floatlab.tui.screens.train.runner import Course
from floatlab.tui.screens.train.steps import Running, usual_pace
from floatlab.tui.screens.train.tables import Lines, Stages
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill, is_wrong, judge
from floatlab.tui.widgets.cells import Cells
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.drawing import Drawing, Still
from floatlab.tui.widgets.plot import Plot
from floatlab.verbs.registry import answer_question, words_of
from floatlab.verbs.train.forms import PARTS, form_of, has, text_in, with_text
from floatlab.verbs.train.laboratory import Laboratory, laboratory_for, stage_questions
from floatlab.verbs.train.laboratory_page import Look, without_chart
from floatlab.verbs.train.step_page import stage_table, step_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from textual.widget import Widget

    from floatlab.page.model import Chart
    from floatlab.verbs.answer import Answer, Started
    from floatlab.verbs.question import Question

_BOXES = {part.name: part for part in PARTS}
# Which views each form has.
_VIEWS = {
    "run": ("chart", "step", "table"),
    "step": ("step",),
    "network": ("chart", "table"),
    "underflow": ("table",),
    "check": ("chart", "table"),
}


class Sight(Record):
    """What is shown of an answer: a laboratory and how it stands; or what does not go on, its chart if it has one."""

    laboratory: Laboratory | None
    look: Look | None
    chart: Chart | None
    page: Page


class Train(Course, inherit_bindings=False):
    """Training under way. The question is what `train` asks."""

    NAME = "train"
    PLACE = "In Train"
    VIEWS = (("chart", "Chart"), ("step", "Step"), ("table", "Table"))
    HELP = (
        "Each letter is a remedy, · is exact arithmetic. Space runs and pauses, < and > change the pace, n does one "
        "step, home goes back to the start and end to the goal. Left and right put a cursor over the chart. Paused or "
        "not, e lets a line go on under another remedy: from there on its letter is a capital. u takes that back."
    )
    BINDINGS = [*Course.COURSE, *Course.OWN, *Task.SHARED]
    DEFAULT_CSS = """
    Train {
        #boxes { height: auto; layout: horizontal; }
        &.-narrow #boxes { layout: vertical; }
        #arrays { height: 1; width: 1fr; }
        #arrays ArrayBox { width: 1fr; }
        #numbers { width: auto; }
        #numbers Label { padding: 0 1; }
        #numbers Input { width: 9; }
        #body { height: 1fr; layout: vertical; }
        #plot { height: 1fr; min-height: 5; padding: 0 1; }
        #lines { height: auto; max-height: 6; }
        &.-wide #lines { max-height: 12; }
        #stages { height: auto; max-height: 9; }
        &.-short #lines { max-height: 4; }
        &.-short #stages { max-height: 5; }
        #details { height: 1fr; }
    }
    """

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self._until: int | None = None  # how far a question is to be answered; None is its goal
        self._left: dict[str, Question] = {}  # the last question in each form
        self._shown_step: UpdateTrace | None = None

    def compose_task(self) -> ComposeResult:
        """Compose the boxes, the choices, and a place for each view."""
        with Vertical(id="boxes"):
            with Horizontal(id="arrays"):
                for part in PARTS:
                    if part.is_array:
                        yield ArrayBox(part.label or part.name, id=part.name)
            with Horizontal(id="numbers", classes="entry"):
                for part in PARTS:
                    if not part.is_array:
                        yield Label(part.name, id=f"name-{part.name}")
                        yield Input(id=part.name, compact=True, select_on_focus=False, placeholder=part.none)
        yield Static(id="complaint", markup=False)
        yield Choices(id="controls")
        yield Choices(id="transport")
        yield Choices(self.VIEWS, self.view, id="views")
        with Vertical(id="body"):
            yield Plot(id="plot")
            yield Still(id="reading")
            yield Lines(id="lines")
            yield Stages(id="stages")
            yield Drawing(id="details")

    # The question, and what goes on.

    def normal(self, question: Question) -> Question:
        """Read the question as the command line does, which knows what is wrong with it."""
        read: Question = self.app.read_question(words_of(question))
        return read.having(brief=None)

    def takes_over(self, question: Question) -> bool:
        """Do what can go on anew: as a laboratory, which shows how it does."""
        return form_of(question) not in ("run", "network")

    def ask(self, question: Question, started: Started) -> list[Answer]:
        """Begin what can go on, and go as far as half the grace lasts; answer everything else."""
        laboratory = laboratory_for(question)
        if laboratory is None:
            return answer_question(question, started)
        Running(laboratory, self._end_of(laboratory), None).run(monotonic() + self.GRACE / 2)
        return [laboratory.answer().replace(found=laboratory)]

    def _end_of(self, laboratory: Laboratory) -> int:
        """Return how far a laboratory is to go by itself."""
        return laboratory.goal if self._until is None else min(self._until, laboratory.goal)

    def prepare(self, question: Question, answers: list[Answer]) -> Sight:
        """Look at what was found, for the first time."""
        found = answers[0].found
        if isinstance(found, Laboratory):
            return Sight(found, found.look(), None, Page(()))
        chart = answers[0].chart
        page = answers[0].page()
        return Sight(None, None, chart() if chart is not None else None, without_chart(page))

    @property
    def sight(self) -> Sight | None:
        """What is shown, once there is an answer."""
        found: Sight | None = self.prepared
        return found

    @property
    def place(self) -> int:
        """The line under the cursor."""
        return self.query_one(Lines).cursor

    def left_in(self, form: str) -> Question | None:
        """Return the last question in a form."""
        return self._left.get(form)

    def open(self, question: Question, kind: str = "") -> bool:
        """Answer a question: as far as its goal, or as far as what is paused on the way stands."""
        laboratory = self.laboratory
        paused = laboratory is not None and self.running is None and laboratory.steps < laboratory.goal
        self._until = laboratory.steps if paused and laboratory is not None and kind != "steps" else None
        return super().open(question, kind)

    def draw(self, before: Question) -> None:
        """Show the boxes, and what was found; what is not there yet goes on."""
        self._fill()
        sight = self.sight
        if sight is None:
            return
        self._left[self.form] = self.question
        if sight.laboratory is not self.laboratory or sight.laboratory is None:
            self.drop()
            last, self.laboratory = self.laboratory, sight.laboratory
            self.look, self.at = sight.look, None
            if self.laboratory is not None and (last is None or last.wanted != self.laboratory.wanted):
                self.pace = usual_pace(self.laboratory.wanted)
        self.draw_all()
        if self.laboratory is not None and self.running is None:
            end, self._until = self._end_of(self.laboratory), None
            if self.laboratory.steps < end and not self.laboratory.has_ended:
                self.go(end, None)

    def _fill(self) -> None:
        """Let the boxes hold the parts of the question."""
        for name, part in _BOXES.items():
            there = has(self.question, part)
            if part.is_array:
                box = self.query_one(f"#{name}", ArrayBox)
                box.display, entry = there, box.input
            else:
                entry = self.query_one(f"#{name}", Input)
                entry.display = self.query_one(f"#name-{name}").display = there
            if there and not (entry.has_focus and is_wrong(entry)):
                fill(entry, text_in(self.question, part))
        self.query_one("#arrays").display = any(box.display for box in self.query(ArrayBox))

    @on(ArrayBox.Given)
    def _given(self, event: ArrayBox.Given) -> None:
        self._put(event.box.id or "", event.box.word, event.box.input)

    @on(Input.Changed, "#numbers Input")
    def _typed(self, event: Input.Changed) -> None:
        self._put(event.input.id or "", event.value, event.input)

    def _put(self, name: str, text: str, box: Input) -> None:
        judge(box, self.open(with_text(self.question, _BOXES[name], text), name))

    # The pictures.

    def draw_all(self) -> None:
        """Show what can be changed, where it stands, and the view."""
        self.query_one("#controls", Choices).options = self.controls()
        views = self.query_one("#views", Choices)
        views.options = tuple(each for each in self.VIEWS if each[0] in self.views)
        views.current, views.display = self.seen, len(self.views) > 1
        self.draw_transport()
        self.draw_view()
        self.refresh_bindings()

    @on(Choices.Chosen, "#controls")
    async def _control_chosen(self, event: Choices.Chosen) -> None:
        await self.run_action(event.name)

    @property
    def views(self) -> tuple[str, ...]:
        """The views that the form has."""
        return _VIEWS[self.form]

    @property
    def seen(self) -> str:
        """The view that is shown: the one that was chosen, where the form has it."""
        return self.view if self.view in self.views else self.views[0]

    def action_view(self, by: int) -> None:
        """Go on to the next view that the form has."""
        self.view = self.views[(self.views.index(self.seen) + by) % len(self.views)]

    def draw_view(self) -> None:
        """Show the chart with its lines, a step, or the page."""
        sight, look, view = self.sight, self.look, self.seen
        if sight is None:
            return
        plot, lines, stages, details = (self.query_one(each) for each in (Plot, Lines, Stages, "#details"))
        has_chart, has_step = view == "chart", view == "step"
        plot.display = has_chart
        lines.display = has_chart and look is not None
        stages.display = has_step
        details.display = not lines.display
        reading = self.query_one("#reading")
        reading.display = lines.display and (self.at is not None or self.has_class("-wide"))
        if has_chart:
            self._draw_chart()
        if has_step:
            self.when_free(self._draw_step)
        elif details.display:
            self.when_free(self._draw_page)
        if self.focused is not None and not self.focused.display:
            self.action_leave()

    def _draw_chart(self) -> None:
        sight, look, plot = self.sight, self.look, self.query_one(Plot)
        if look is not None and self.laboratory is not None:
            plot.show(look.chart, self.at, [each.step for each in self.laboratory.changes])
            lines = self.query_one(Lines)
            lines.show(look.table)
            step = look.steps if self.at is None else self.at
            self.query_one("#reading", Still).page = Page((Note(look.reading(step)),))
        elif sight is not None and sight.chart is not None:
            plot.show(sight.chart)

    def _draw_page(self) -> None:
        if self.sight is not None and self.query_one("#details").display:
            page = self.sight.page if self.laboratory is None else without_chart(self.answers[0].page())
            self.query_one("#details", Drawing).page = page

    def _draw_step(self) -> None:
        """Show the next step of the line under the cursor, or the one that was asked for."""
        stages, details = self.query_one(Stages), self.query_one("#details", Drawing)
        if not stages.display:
            return
        try:
            if self.laboratory is not None:
                found = self.laboratory.next_step(min(self.place, len(self.labels) - 1))
            else:
                found = self.answers[0].found
        except FloatlabError as error:
            self._shown_step, stages.display = None, False
            details.page = Page((Note(line(str(error))),))
            return
        self._shown_step = found
        stages.show(stage_table(found))
        details.page = step_page(found)

    @on(Cells.Chosen, "#lines")
    def _line_chosen(self) -> None:
        if "step" in self.views:
            self.view = "step"
        elif self.laboratory is not None:
            try:
                self.laboratory.next_step(self.place)
            except FloatlabError as error:
                self.complain(str(error), hint=True)

    @on(Cells.Chosen, "#stages")
    def _stage_chosen(self) -> None:
        questions = stage_questions(self._shown_step) if self._shown_step is not None else []
        place = self.query_one(Stages).cursor
        if place < len(questions):
            self.app.ask(questions[place].question)

    def watch_view(self) -> None:
        """Draw another view; who asks for lines or stages wants to walk over them."""
        super().watch_view()
        if self.answers and not isinstance(self.focused, Input):
            self.query_one("#details", Drawing).scroll_home(animate=False)
            self.action_leave()

    def on_resize(self) -> None:
        """Use the room that there is."""
        if self.sight is not None:
            self.call_after_refresh(self.draw_all)

    # What the frame asks.

    def leave(self) -> None:
        """Leave a box, or the step of a line."""
        if not isinstance(self.focused, Input) and self.seen == "step" and self.laboratory is not None:
            self.view = "chart"
        else:
            super().leave()

    def subject(self) -> Any:
        """Return the weight that the step in sight begins with, or the one that it was asked for ends with."""
        if self.laboratory is None:
            return super().subject()
        return self._shown_step.before if self._shown_step is not None and self.seen == "step" else None

    def copies(self) -> dict[str, tuple[str, Callable[[], str]]]:
        """Copy where it stands, the command that comes there, and all numbers."""
        rows, laboratory, answers = super().copies(), self.laboratory, self.answers
        table = answers[0].table if answers else None
        if table is not None:
            rows["csv"] = ("the numbers as CSV", table)
        if laboratory is not None:
            but = ", but for what was changed on the way" if laboratory.changes else ""
            rows["command"] = (f"the command that comes here{but}", lambda: laboratory.command)
        return rows

    def action_copy(self, name: str) -> None:
        """Copy something of `copies`, once nobody else has the laboratory."""
        self.when_free(partial(super().action_copy, name))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what cannot be done now."""
        if action in ("play", "advance", "begin", "finish", "pace", "remedy"):
            return self.laboratory is not None
        if action == "view":
            return len(self.views) > 1
        if action == "undo" and self.laboratory is not None and self.laboratory.changes:
            return True
        return super().check_action(action, parameters)

    def boxes(self) -> Iterator[Widget]:
        """Return the boxes that are there, the weight first."""
        for part in PARTS:
            if has(self.question, part):
                yield self.query_one(f"#{part.name} Input" if part.is_array else f"#{part.name}")

    def home(self) -> Iterator[Widget]:
        """Go to what the view is made of."""
        yield from (self.query_one(Lines), self.query_one(Stages), self.query_one("#details"))

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer the views, running, and what is trained how."""
        for name, words in self.VIEWS:
            yield f"View: {words}", "of this training", partial(setattr, self, "view", name)
        if self.laboratory is not None:
            yield "Run or pause", "space", self.action_play
            yield "One step", "n", self.action_advance
            yield "Back to the start", "home", self.action_begin
            yield "Change remedy", "of the line under the cursor, and go on from here", self.action_remedy
        yield from super().commands()
