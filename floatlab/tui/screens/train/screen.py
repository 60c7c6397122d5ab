"""The screen Train: a training session with several remedies, as a growing chart, a table, and single steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import monotonic

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.widget import Widget
from textual.widgets import Input, Label

from floatlab.errors import FloatlabError
from floatlab.numbers.datum import Datum
from floatlab.page.model import Chart, Note, Page
from floatlab.record import Record
from floatlab.training.trace import UpdateTrace
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.task import Command
from floatlab.tui.screens.train.controls import RemedyTable, RoundingTable
from floatlab.tui.screens.train.plot import Plot
from floatlab.tui.screens.train.runner import PacedRun, TrainRunner, usual_pace
from floatlab.tui.widgets import EMPTY, ButtonBar, Cells, ChoiceBar, PageView, StaticPage, note_page
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill
from floatlab.tui.widgets.saving import Copies
from floatlab.verbs.question import Answer, Question, Started
from floatlab.verbs.registry import answer_question, words_of
from floatlab.verbs.train.forms import PARTS, has, text_in, with_text
from floatlab.verbs.train.live import Laboratory, laboratory_for, stage_questions
from floatlab.verbs.train.live_page import Look, without_chart
from floatlab.verbs.train.options import form_of
from floatlab.verbs.train.step_page import stage_table, step_page

_PARTS = {part.name: part for part in PARTS}
# The views of the subcommands.
_VIEWS = {
    "run": ("chart", "step", "table"),
    "step": ("step",),
    "network": ("chart", "table"),
    "underflow": ("table",),
    "check": ("chart", "table"),
}


class PreparedTraining(Record):
    """What an answer shows: a training session (`Laboratory`) and its state, or a page and perhaps a chart."""

    laboratory: Laboratory | None = None
    look: Look | None = None
    chart: Chart | None = None
    page: Page = Page(())


class TrainScreen(TrainRunner, inherit_bindings=False):
    """The screen for training. Its questions are those of `train`."""

    WALKS = True
    VIEWS = (("chart", "Chart"), ("step", "Step"), ("table", "Table"))
    HELP = (
        "A letter is a remedy, · is exact arithmetic. Space runs and pauses, < and > change the pace, n does one step, "
        "home goes back to the start, end runs to the goal. Left and right move a cursor over the chart. e changes the "
        "remedy of the row under the cursor, even during a run; from then on, its letter is a capital. u undoes this."
    )
    BINDINGS = [
        Binding("space", "play", "Run", id="train.play", key_display="space", tooltip="Run, or pause"),
        Binding("p", "play", "Run, or pause", id="train.pause", show=False),
        Binding("e", "remedy", "Remedy", id="train.remedy", tooltip="Change the remedy of this row from here on"),
        Binding("n", "advance", "+1", id="train.advance", tooltip="Do one step"),
        Binding("home", "begin", "Start", id="train.begin", tooltip="Back to the start"),
        Binding("end", "finish", "On to the goal, as fast as possible", id="train.finish", show=False),
        Binding("less_than_sign", "pace(-1)", "Slower", id="train.slower", key_display="<", show=False),
        Binding("greater_than_sign", "pace(1)", "Faster", id="train.faster", key_display=">", show=False),
        Binding("left,h", "point(-1)", "Cursor over the chart to the left", id="train.left", show=False),
        Binding("right,l", "point(1)", "Cursor over the chart to the right", id="train.right", show=False),
        Binding("m", "remedies", "Remedies", id="train.remedies", tooltip="Mark the remedies that stand side by side"),
        Binding("w", "pick('form')", "What", id="train.form", tooltip="Many steps, one, networks, gradients"),
        Binding("g", "given", "Update or gradient", id="train.given", show=False),
        Binding("o", "pick('optimizer')", "Optimizer", id="train.optimizer", show=False),
        Binding("s", "pick('stages')", "Formats of stages", id="train.stages", show=False),
        Binding("d", "pick('seed')", "Seed", id="train.seed", show=False),
        Binding("x", "pick('subject')", "Problem or function", id="train.problem", show=False),
        *SHARED_KEYS,
    ]
    DEFAULT_CSS = """
    TrainScreen {
        &.-narrow #boxes { layout: vertical; }
        #numbers { width: auto; }
        #numbers Input { width: 9; }
        #plot { min-height: 5; padding: 0 1; }
        #remedies { height: auto; max-height: 6; }
        #roundings { height: auto; max-height: 9; }
        &.-wide #remedies { max-height: 12; }
        &.-framed #plot { padding: 0; }
        &.-framed #roundings { max-height: 14; }
        &.-short #remedies { max-height: 4; }
        &.-short #roundings { max-height: 5; }
        &.-two-topics { #body { layout: horizontal; } #first { width: 5fr; } #beside { width: 3fr; } }
    }
    """

    roundings = getters.query_one(RoundingTable)
    prepared: PreparedTraining | None
    _next = EMPTY  # the page of the next step, if it is shown beside the chart
    _until: int | None = None  # the step at which the next training session first stops; None: its last step
    _trace: UpdateTrace | None = None  # the roundings of the step that is shown

    def compose_task(self) -> ComposeResult:
        """Compose the boxes, the controls, and the views."""
        with HorizontalGroup(id="boxes"):
            with HorizontalGroup(id="arrays"):
                for part in PARTS:
                    if part.is_array:
                        yield ArrayBox(part.label or part.name, part.name, self._array_changed)
            with Horizontal(id="numbers", classes="entry"):
                for part in PARTS:
                    if not part.is_array:
                        yield Label(part.name, id=f"name-{part.name}")
                        yield Input(id=part.name, compact=True, placeholder=part.none)
        yield ButtonBar(self.control, id="controls")
        yield ButtonBar(self.control, id="transport")
        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
        with Vertical(id="body"):
            with Column(id="first"):
                yield pane(Plot(self.point, id="plot"), "Chart")
                yield StaticPage(id="reading")
                yield pane(RemedyTable(id="remedies"), "Remedies")
                yield pane(RoundingTable(id="roundings"), "Roundings of this step")
                yield pane(PageView(id="details"), "Table")
            yield pane(TopicPane(id="beside"))

    # The question, and the laboratory.

    def normal(self, question: Question) -> Question:
        """Return the question as the command line reads it, without --brief. Raises FloatlabError if it is wrong."""
        return self.app.read_question(words_of(question)).having(brief=None)

    def takes_over(self, question: Question) -> bool:
        """Return whether the screen can use an answer that was begun before the screen opened.

        It cannot if the question has a training session, because the screen runs the session itself.
        """
        return form_of(question) not in ("run", "network")

    def ask(self, question: Question, started: Started) -> list[Answer]:
        """Create the laboratory (the training session) for a question, and run it for a few hundredths of a second.

        A question that needs no laboratory is answered as usual.
        """
        laboratory = laboratory_for(question)
        if laboratory is None:
            return answer_question(question, started)
        PacedRun(laboratory, self._end_of(laboratory), None).run(monotonic() + self.GRACE / 2)
        return [laboratory.answer().replace(found=laboratory)]

    def _end_of(self, laboratory: Laboratory) -> int:
        """Return the first stop of a new training session (`Laboratory`): step `_until` or, if None, the last step."""
        return laboratory.goal if self._until is None else min(self._until, laboratory.goal)

    def prepare(self, question: Question, answers: list[Answer]) -> PreparedTraining:
        """Return the training session and its first state, or the page and the chart of the answer."""
        answer = answers[0]
        if isinstance(answer.found, Laboratory):
            return PreparedTraining(answer.found, answer.found.look())
        chart = answer.chart() if answer.chart is not None else None
        return PreparedTraining(chart=chart, page=without_chart(answer.page()))

    def open(self, question: Question, kind: str = "") -> bool:
        """Answer a question, and run its training session to the last step.

        If the current session is paused, the new one stops at the same step, unless the number of steps was edited.
        """
        laboratory = self.laboratory
        paused = laboratory is not None and self.running is None and laboratory.steps < laboratory.goal
        self._until = laboratory.steps if paused and laboratory is not None and kind != "steps" else None
        return super().open(question, kind)

    def draw(self, before: Question) -> None:
        """Show the boxes and the answer, and run a new training session to its first stop.

        The first stop is the step at which the previous session was paused, or else the last step.
        """
        self._fill()
        drawn = self.prepared
        if drawn is None:
            return
        self.last_in = {**self.last_in, self.form: self.question}
        if drawn.laboratory is not self.laboratory or drawn.laboratory is None:
            self.drop_run()
            last, self.laboratory = self.laboratory, drawn.laboratory
            self.look, self.at = drawn.look, None
            if self.laboratory is not None and (last is None or last.wanted != self.laboratory.wanted):
                self.pace = usual_pace(self.laboratory.wanted)
        self.draw_all()
        if self.laboratory is not None and self.running is None:
            end, self._until = self._end_of(self.laboratory), None
            if self.laboratory.steps < end and not self.laboratory.has_ended:
                self.run_to(end, None)

    def _fill(self) -> None:
        """Show the parts of the question in the boxes."""
        for name, part in _PARTS.items():
            used = has(self.question, part)
            if part.is_array:
                box = self.query_one(f"#{name}", ArrayBox)
                box.display, entry = used, box.input
            else:
                entry = self.query_one(f"#{name}", Input)
                entry.display = self.query_one(f"#name-{name}").display = used
            if used:
                fill(entry, text_in(self.question, part))
        self.query_one("#arrays").display = any(box.display for box in self.query(ArrayBox))

    def _array_changed(self, box: ArrayBox, picked: bool) -> None:
        self._put(box.id or "", box.word, box.input, picked)

    @on(Input.Changed, "#numbers Input")
    def _typed(self, event: Input.Changed) -> None:
        self._put(event.input.id or "", event.input.value, event.input)

    def _put(self, name: str, text: str, box: Input, picked: bool = False) -> None:
        self.mark_taken(box, self.open(with_text(self.question, _PARTS[name], text), name), picked)

    # Drawing.

    def draw_all(self) -> None:
        """Show controls, state and view."""
        self.controls.options = self.control_words()
        self.views.options = self.shown_views
        self.views.current, self.views.display = self.shown_view, len(self.shown_views) > 1
        self.draw_transport()
        self.draw_view()
        self.draw_beside()
        self.refresh_bindings()

    @property
    def has_topic_below(self) -> bool:
        """Whether there is room for a topic below the view; always False."""
        return False

    @on(Cells.Moved, "#remedies")
    def draw_beside(self) -> None:
        """Show the next step of the remedy under the cursor, if there is room for it."""
        super().draw_beside()

    def topics(self) -> list[Topic]:
        """Return the topic: the next step of the remedy under the cursor. During a run, the topic does not change."""
        laboratory = self.laboratory
        if laboratory is None or self.shown_view != "chart" or "step" not in _VIEWS[self.form]:
            return []
        if self.running is None:
            place = min(self.place, len(self.labels) - 1)
            try:
                self._next = step_page(laboratory.next_step(place), brief=not self.has_class("-two-topics"))
            except FloatlabError as error:
                self._next = note_page(str(error))
        return [("The next step", self._next)]

    @property
    def shown_views(self) -> tuple[tuple[str, str], ...]:
        """The views of the question's subcommand."""
        return tuple(view for view in self.VIEWS if view[0] in _VIEWS[self.form])

    def draw_view(self) -> None:
        """Show the chart with the remedies, a step, or the page."""
        if self.prepared is None:
            return
        has_chart, has_step = self.shown_view == "chart", self.shown_view == "step"
        has_rows = has_chart and self.look is not None
        has_reading = self.at is not None or self.has_class("-wide")
        rows = ("remedies", "reading" if has_reading else "") if has_rows else ("details",)
        self.show_only("plot" if has_chart else "", "roundings" if has_step else "", *rows)
        if has_chart:
            self._draw_chart(self.prepared)
        if has_step:
            self.when_free(self._draw_step)
        elif not has_rows:
            self.when_free(self._draw_page)

    def _draw_chart(self, drawn: PreparedTraining) -> None:
        look = self.look
        if look is not None and self.laboratory is not None:
            self.plot.show(look.chart, self.at, [change.step for change in self.laboratory.changes])
            self.table.show(look.table)
            self.show_page("reading", Page((Note(look.reading(look.steps if self.at is None else self.at)),)))
        elif drawn.chart is not None:
            self.plot.show(drawn.chart)

    def _draw_page(self) -> None:
        if self.prepared is not None and self.details.display:
            laboratory = self.laboratory
            self.details.page = self.prepared.page if laboratory is None else without_chart(self.answers[0].page())

    def _draw_step(self) -> None:
        """Show the next step of the row under the cursor or, without a training session, the step of the question."""
        if not self.roundings.display:
            return
        try:
            if self.laboratory is not None:
                trace = self.laboratory.next_step(min(self.place, len(self.labels) - 1))
            else:
                trace = self.answers[0].found
        except FloatlabError as error:
            self._trace, self.roundings.display = None, False
            self.details.page = note_page(str(error))
            return
        self._trace = trace
        self.roundings.show(stage_table(trace))
        self.details.page = step_page(trace)

    @on(Cells.Chosen, "#remedies")
    def _remedy_chosen(self) -> None:
        if "step" in _VIEWS[self.form]:
            self.app.leave_place()
            self.view = "step"
        elif self.laboratory is not None:
            with self.complaining(hint=True):
                self.laboratory.next_step(self.place)

    @on(Cells.Chosen, "#roundings")
    def _rounding_chosen(self) -> None:
        stages = stage_questions(self._trace) if self._trace is not None else []
        place = self.roundings.cursor
        if place < len(stages):
            self.app.ask(stages[place].question)

    def on_resize(self) -> None:
        """Draw the screen again for its new size."""
        if self.prepared is not None:
            self.call_after_refresh(self.draw_all)

    # Methods that the base classes call.

    def leave(self) -> None:
        """Leave the input box, or the view of a step."""
        if not isinstance(self.focused, Input) and self.shown_view == "step" and self.laboratory is not None:
            self.view = "chart"
        else:
            super().leave()

    def subject(self) -> Datum | None:
        """Return the weight before the step that is shown, or None if no step is shown.

        If no training session is open, return what other screens return: the result of the question.
        """
        if self.laboratory is None:
            return super().subject()
        return self._trace.before if self._trace is not None and self.shown_view == "step" else None

    def copies(self) -> Copies:
        """Return the texts to copy, among them the numbers as CSV and the command for the state that is shown."""
        copies, laboratory = super().copies(), self.laboratory
        table = self.answers[0].table if self.answers else None
        if table is not None:
            copies["csv"] = ("the numbers as CSV", table)
        if laboratory is not None:
            without = ", without the changes of remedies" if laboratory.changes else ""
            copies["command"] = (f"the command for this state{without}", lambda: laboratory.command)
        return copies

    def action_copy(self, name: str) -> None:
        """Copy the text with this name in `copies`, as soon as no other thread uses the training session."""
        self.when_free(partial(super().action_copy, name))

    def action_save(self) -> None:
        """Pause, and ask for the name of a file."""
        if self.running is not None:
            self.running.halt()
            self.draw_transport()
        self.when_free(super().action_save)

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Some actions need a training session."""
        laboratory, possible = self.laboratory, super().possible()
        runs = dict.fromkeys(("play", "advance", "begin", "finish", "pace", "remedy"), laboratory is not None)
        changed = laboratory is not None and bool(laboratory.changes)
        return possible | runs | {"undo": possible["undo"] or changed}

    def boxes(self) -> Iterator[Widget]:
        """Return the boxes of the subcommand, the box of the weight first."""
        for part in PARTS:
            if has(self.question, part):
                yield self.query_one(f"#{part.name} Input" if part.is_array else f"#{part.name}")

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette; those that control the run come first."""
        if self.laboratory is not None:
            yield "Run or pause", "space", self.action_play
            yield "One step", "n", self.action_advance
            yield "Back to the start", "home", self.action_begin
            yield "Change remedy", "of the row under the cursor, from here on", self.action_remedy
        yield from super().commands()
