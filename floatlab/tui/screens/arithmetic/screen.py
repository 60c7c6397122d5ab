"""Arithmetic: an operation on operands whose bits can be touched, and its derivation as a film to walk through."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.reactive import reactive
from textual.widgets import Static

from floatlab.formats.names import short_name
from floatlab.page.model import Note, Page
from floatlab.page.words import flags_blocks
from floatlab.tui.screens.arithmetic.operands import Operands
from floatlab.tui.screens.arithmetic.practice import Practice
from floatlab.tui.screens.arithmetic.step_player import Film
from floatlab.tui.screens.arithmetic.witness import WitnessSearch
from floatlab.tui.screens.task import Task
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import judge
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.drawing import Drawing, Still
from floatlab.tui.widgets.pickers import Choice, Picker
from floatlab.verbs.arithmetic.answer import ARITIES, DEFAULT_INTEGER, INTEGERS
from floatlab.verbs.edits import EDITS
from floatlab.verbs.registry import verb_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.widget import Widget

    from floatlab.formats import Format
    from floatlab.verbs.answer import Answer
    from floatlab.verbs.arithmetic.step_pages import Scene
    from floatlab.verbs.question import Question

_AUTOMATIC = "automatic"
_SHORTENING = ("steps", "brief", "why")


class Arithmetic(Task, inherit_bindings=False):
    """One operation, step by step, forward and back."""

    NAME = "arithmetic"
    PLACE = "In Arithmetic"
    HELP = (
        "Type operands (1.5, 0.1@fp16, bits:0x3c00) or flip their bits; n and p walk through the steps, or play them. "
        "Practice hides each step until you have answered a question about it."
    )
    BINDINGS = [
        Binding("n", "step(1)", "Next", id="step.next"),
        Binding("p", "step(-1)", "Previous", id="step.back"),
        Binding("space", "play", "Play", id="play"),
        Binding("o", "operation", "Operation", id="operation"),
        Binding("x", "practice", "Practice", id="practice"),
        Binding("w", "witness", "Witness", id="witness"),
        Binding("home", "jump(0)", "First step", id="step.first", show=False),
        Binding("end", "jump(-1)", "Last step", id="step.last", show=False),
        *(Binding(str(i), f"jump({i - 1})", f"Step {i}", id=f"step.{i}", show=False) for i in range(1, 10)),
        Binding("less_than_sign", "speed(-1)", "Slower", id="slower", show=False),
        Binding("greater_than_sign", "speed(1)", "Faster", id="faster", show=False),
        Binding("i", "integer", "Integer type", id="integer", show=False),
        Binding("N", "exercise", "New exercise", id="exercise", show=False),
        Binding("plus", "edit('up')", EDITS["up"].summary, id="operand.up", show=False),
        Binding("minus", "edit('down')", EDITS["down"].summary, id="operand.down", show=False),
        Binding("s", "edit('negate')", EDITS["negate"].summary, id="operand.negate", show=False),
        *Task.SHARED,
    ]
    DEFAULT_CSS = """
    Arithmetic {
        #body { height: 1fr; overflow-y: hidden; }
        #rows { height: auto; max-height: 10; scrollbar-size-vertical: 1; }
        #title, #why, #flags { height: auto; scrollbar-size: 0 0; }
        #why { max-height: 6; }
        #film { height: 1fr; }
        &.-short #verbs, &.-narrow #verbs { display: none; }
        &.-short #verb, &.-narrow #verb { display: block; }
        &.-short #body, &.-narrow #body { overflow-y: auto; scrollbar-size-vertical: 1; }
        &.-short #rows, &.-narrow #rows { max-height: 999; }
        &.-short #film, &.-narrow #film { height: auto; }
        &.-short #why, &.-narrow #why { max-height: 999; }
    }
    """

    scene: reactive[int] = reactive(0, init=False)

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self.film: tuple[Scene, ...] = ()

    def compose_task(self) -> ComposeResult:
        """Compose the operation, its operands, the film and the lamps."""
        yield Choices(tuple((verb, verb) for verb in ARITIES), id="verbs")
        operands = Operands(id="operands")
        yield operands
        yield Static(id="complaint", markup=False)
        with VerticalScroll(id="body", can_focus=False):
            yield Still(id="title")
            with VerticalScroll(id="rows", can_focus=False):
                yield from operands.rows
            yield Choices(id="steps")
            yield Film(id="film")
            yield Still(id="why")
            yield Still(id="flags")
        yield Practice(id="practice")
        yield Choices(id="controls")

    # The question.

    def normal(self, question: Question) -> Question:
        """Show every step: how many are printed is a matter of the command line."""
        return question.spelled_out().having(**dict.fromkeys(_SHORTENING))

    def draw(self, before: Question) -> None:
        """Show the operands and the film; the same step stays in sight where there is one."""
        question, answer = self.question, self.answers[0]
        assert answer.scenes is not None
        film = answer.scenes(False)
        again = [scene.name for scene in film] == [scene.name for scene in self.film]
        self.film = film
        self.query_one(Operands).show(question, answer)
        self.query_one("#title", Drawing).page = Page(answer.page().blocks[:1])
        self.query_one("#verbs", Choices).current = question.verb
        steps = tuple((str(i), f"{i + 1} {scene.name}") for i, scene in enumerate(film))
        self.query_one("#steps", Choices).options = steps
        practice = self.query_one(Practice)
        practice.prepare(answer)
        at = practice.first if practice.on else self.scene if again else len(film) - 1
        shown = self.query_one(Film)
        shown.stop()
        self.set_reactive(Arithmetic.scene, at)
        self._draw_scene()
        if not (again or self.small):  # a small screen would move what is being edited out of sight
            shown.show_newest()
        self._draw_controls()

    def _draw_controls(self) -> None:
        """Name what a click can do."""
        question, practice, film = self.question, self.query_one(Practice), self.query_one(Film)
        options = [
            ("back", "◂ p"),
            ("next", "n ▸"),
            ("play", f"{'pause' if film.playing else 'play'} {film.speed:g}/s"),
            ("format", _format_words(question, self.answers[0])),
        ]
        options += [("integer", f"to {question.option('integer', DEFAULT_INTEGER)}")] * (question.verb == "toint")
        options += [("witness", "find a witness")] * (question.verb == "fma")
        options += [("practice", practice.words), *([("exercise", "new exercise")] * practice.on)]
        self.query_one("#controls", Choices).options = tuple(options)

    def with_format(self, question: Question, format: Format) -> Question:
        """Round the result into this format."""
        return question.replace(formats=(format,))

    # The film.

    @property
    def small(self) -> bool:
        """Whether operands and film scroll as one, for want of room."""
        return self.has_class("-short") or self.has_class("-narrow")

    def _draw_scene(self) -> None:
        scene = self.film[self.scene]
        self.query_one(Film).page = scene.page
        self.query_one("#why", Drawing).page = Page((Note(scene.reason),))
        self.query_one("#flags", Drawing).page = Page(flags_blocks(scene.flags, scene.separate_flags))
        self.query_one("#steps", Choices).current = str(self.scene)

    def watch_scene(self, before: int, now: int) -> None:
        """Show a scene; the way to the next one is shown place by place where it is one."""
        film = self.query_one(Film)
        film.stop_sliding()
        if now == before + 1 and self.film[now].frames and self.app.settings.get("slide", True):
            self._draw_scene()
            film.slide(self.film[now].frames, self.film[now].page)
        else:
            self._draw_scene()
        film.show_newest()
        self.call_after_refresh(film.show_newest)  # the reason may have taken lines from the film, or given some

    def action_step(self, by: int) -> None:
        """Go a step on or back; after the last comes the first."""
        self.query_one(Film).stop()
        self._advance(by)
        self._draw_controls()

    def _advance(self, by: int) -> None:
        practice = self.query_one(Practice)
        wanted = self.scene + by
        if wanted >= len(self.film):
            wanted = practice.first if practice.on else 0
        elif wanted < 0:
            return
        if by > 0 and practice.asks(wanted):
            return
        practice.hide()
        self.scene = wanted

    def action_jump(self, step: int) -> None:
        """Go to a step."""
        self.query_one(Film).stop()
        if self.query_one(Practice).on:
            self._one_by_one()
        elif -1 <= step < len(self.film):
            self.scene = step % len(self.film)
            self.query_one(Film).show_newest()  # also where it is the same step

    def _one_by_one(self) -> None:
        self.complain("in practice the steps come one by one: n asks for the next", hint=True)

    def action_play(self) -> None:
        """Play the steps, or stop."""
        film = self.query_one(Film)
        if film.playing:
            film.stop()
        elif self.query_one(Practice).on:
            self._one_by_one()
        else:
            if self.scene == len(self.film) - 1:
                self.scene = 0
            film.play()
        self._draw_controls()

    def action_speed(self, by: int) -> None:
        """Play faster or slower."""
        self.query_one(Film).change_speed(by)
        self._draw_controls()

    @on(Film.Ticked)
    def _ticked(self) -> None:
        if self.scene + 1 < len(self.film):
            self.scene += 1
        if self.scene + 1 == len(self.film):
            self.query_one(Film).stop()
            self._draw_controls()

    @on(Choices.Chosen, "#steps")
    def _step_chosen(self, event: Choices.Chosen) -> None:
        self.action_jump(int(event.name))

    @on(Choices.Chosen, "#controls")
    async def _control_chosen(self, event: Choices.Chosen) -> None:
        await self.run_action({"back": "step(-1)", "next": "step(1)"}.get(event.name, event.name))

    # Operations and operands.

    @on(Choices.Chosen, "#verbs")
    def _verb_chosen(self, event: Choices.Chosen) -> None:
        self.take_verb(event.name)

    @on(Choices.Chosen, "#verb")
    def _verb_clicked(self) -> None:
        self.action_operation()

    def take_verb(self, verb: str | None) -> None:
        """Do another operation on the operands that there are."""
        if verb is not None:
            values = self.query_one(Operands).values(ARITIES[verb])
            self.open(self.question.replace(verb=verb, values=values, options=()))

    def action_operation(self) -> None:
        """Pick an operation."""
        rows = [Choice(verb, f"{verb:<6} {verb_named(verb).summary}") for verb in ARITIES]
        self.app.push_screen(Picker("Operation", rows, (self.question.verb,)), self.take_verb)

    def action_format(self) -> None:
        """Pick the result's format."""
        self.pick_format((Choice(_AUTOMATIC, f"{_AUTOMATIC:<12} the first usual one that holds all operands"),))

    def picked_format(self, name: str | None) -> None:
        """Take a format by name, or none."""
        if name == _AUTOMATIC:
            self.open(self.question.replace(formats=()))
        else:
            super().picked_format(name)

    def action_integer(self) -> None:
        """Pick the integer type that toint converts to."""
        rows = [Choice(name, name) for name in INTEGERS]
        current = self.question.option("integer", DEFAULT_INTEGER)
        self.app.push_screen(Picker("Integer type", rows, (current,)), self._take_integer)

    def _take_integer(self, name: str | None) -> None:
        if name is not None:
            self.open(self.question.having(integer=None if name == DEFAULT_INTEGER else name))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not belong to this operation."""
        if action == "witness":
            return self.question.verb == "fma"
        if action == "integer":
            return self.question.verb == "toint"
        return super().check_action(action, parameters)

    @on(Operands.Asked)
    def _asked(self, event: Operands.Asked) -> None:
        right = self.open(event.question, event.kind)
        if event.box is not None:
            judge(event.box, right)
            self.call_after_refresh(self.query_one(Film).show_newest)

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self.query_one(Operands).flip(event.row, event.bit, event.value)

    def on_descendant_focus(self) -> None:
        """Follow the focus."""
        self.query_one(Operands).follow(self.focused)

    @on(Operands.Refused)
    def _refused(self, event: Operands.Refused) -> None:
        self.complain(event.words)

    def action_edit(self, name: str) -> None:
        """Do an edit of EDITS to the chosen operand."""
        self.query_one(Operands).edit(name)

    def boxes(self) -> Iterator[Widget]:
        """Return the operands' boxes."""
        yield from self.query_one(Operands).boxes

    def home(self) -> Iterator[Widget]:
        """Go back to the film."""
        yield self.query_one(Film)

    # Practice and the witness.

    def action_practice(self) -> None:
        """Begin to practise, or end it."""
        practice = self.query_one(Practice)
        if not practice.on and practice.ended:
            self.complain("there is nothing to ask about this operation on these operands", hint=True)
            return
        practice.turn(not practice.on)
        self.query_one(Film).stop()
        if practice.on:
            self._ask_first()
        else:
            self.scene = len(self.film) - 1
            self.action_leave()
        self._draw_controls()

    def _ask_first(self) -> None:
        self.scene = self.query_one(Practice).first
        self._advance(1)

    @on(Practice.Answered)
    def _answered(self, event: Practice.Answered) -> None:
        self.scene = event.scene
        self.action_leave()
        self._draw_controls()

    def action_exercise(self) -> None:
        """Practise on other operands."""
        if format := self._one_format():
            self._take(self.query_one(Practice).operands(self.question, format))
            if self.query_one(Practice).on:
                self._ask_first()

    def _one_format(self) -> Format | None:
        """Return the format that other operands are to have, or say that there is none."""
        formats = set(self.question.formats) or {datum.format for datum in self.answers[0].operands}
        if len(formats) != 1:
            self.complain("that needs one format: f chooses it", hint=True)
            return None
        return formats.pop()

    def _take(self, values: tuple[str, ...] | None) -> None:
        """Take operands of a format, and the format too where none is named: in another they may be others."""
        if values is not None and (format := self._one_format()):
            self.open(self.question.replace(values=values, formats=(format,)))

    def action_witness(self) -> None:
        """Look for operands where fused and separate part."""
        if self.question.verb == "fma" and (format := self._one_format()):
            self.app.push_screen(WitnessSearch(self.question, format), self._found)

    def _found(self, found: tuple[str, ...] | str | None) -> None:
        if isinstance(found, str):
            self.complain(found, hint=True)
        elif found == self.question.values:
            self.complain("these operands are a witness already: change one of them to look further", hint=True)
        else:
            self._take(found)

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer the operations, the steps and what else there is."""
        for verb in ARITIES:
            yield f"Operation: {verb}", verb_named(verb).summary, partial(self.take_verb, verb)
        for step, scene in enumerate(self.film):
            yield f"Step {step + 1}: {scene.name}", "go there", partial(self.action_jump, step)
        yield "Play the steps", "one after the other", self.action_play
        yield "Practice", "answer before the next step is shown", self.action_practice
        yield "New exercise", "other operands", self.action_exercise
        if self.question.verb == "fma":
            yield "Find a witness", "operands where fused and separate differ", self.action_witness


def _format_words(question: Question, answer: Answer) -> str:
    """Name the format of the result, and say so where it was not asked for."""
    if question.formats:
        return f"in {short_name(question.formats[0])}"
    return f"in {short_name(answer.results[0].format)}, {_AUTOMATIC}" if answer.results else f"{_AUTOMATIC} format"
