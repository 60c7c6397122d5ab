"""Arithmetic: an operation on operands whose bits can be flipped, and its derivation step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from floatlab.arith.integers import DEFAULT_INTEGER, INTEGERS
from floatlab.formats import Format
from floatlab.formats.names import short_name
from floatlab.page.model import Note, Page
from floatlab.page.words import flags_blocks
from floatlab.tui.screens.arithmetic.operands import Operands
from floatlab.tui.screens.arithmetic.practice import Practice
from floatlab.tui.screens.arithmetic.step_player import StepPlayer
from floatlab.tui.screens.arithmetic.witness import WitnessSearch
from floatlab.tui.screens.task import AUTOMATIC, SHARED_KEYS, Command, TaskScreen
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import mark_valid
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.page_view import StaticPage
from floatlab.tui.widgets.pickers import Choice, choices_of
from floatlab.verbs.answer import Scene
from floatlab.verbs.arithmetic.operands import ARITIES
from floatlab.verbs.edits import EDITS
from floatlab.verbs.question import Question
from floatlab.verbs.registry import verb_named

_PRINTED = ("steps", "brief", "why")  # options that say how much is printed


class ArithmeticScreen(TaskScreen, inherit_bindings=False):
    """One operation, step by step, forward and back."""

    NAME = "arithmetic"
    PLACE = "In Arithmetic"
    AUTOMATIC_FORMAT = "the first usual one that holds all operands"
    CONTROLS = {"back": "step(-1)", "next": "step(1)"}
    HELP = (
        "Type operands (1.5, 0.1@fp16, bits:0x3c00) or flip their bits; n and p walk through the steps, space plays "
        "them. Practice hides each step until you have answered a question about it."
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
        *SHARED_KEYS,
    ]
    DEFAULT_CSS = """
    ArithmeticScreen {
        #body { height: 1fr; overflow-y: hidden; }
        #rows { height: auto; max-height: 10; scrollbar-size-vertical: 1; }
        #title, #why, #flags { height: auto; scrollbar-size: 0 0; }
        #why { max-height: 6; }
        #player { height: 1fr; }
        &.-short #verbs, &.-narrow #verbs { display: none; }
        &.-short #verb, &.-narrow #verb { display: block; }
        &.-short #body, &.-narrow #body { overflow-y: auto; scrollbar-size-vertical: 1; }
        &.-short #rows, &.-narrow #rows { max-height: 999; }
        &.-short #player, &.-narrow #player { height: auto; }
        &.-short #why, &.-narrow #why { max-height: 999; }
    }
    """

    scene: reactive[int] = reactive(0, init=False)  # the step that is shown

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self.scenes: tuple[Scene, ...] = ()

    def compose_task(self) -> ComposeResult:
        """Compose the operation, its operands, the steps and the flags."""
        yield ChoiceBar(tuple((verb, verb) for verb in ARITIES), id="verbs")
        operands = Operands(id="operands")
        yield operands
        yield Static(id="complaint", markup=False)
        with VerticalScroll(id="body", can_focus=False):
            yield StaticPage(id="title")
            with VerticalScroll(id="rows", can_focus=False):
                yield from operands.rows
            yield ChoiceBar(id="steps")
            yield StepPlayer(id="player")
            yield StaticPage(id="why")
            yield StaticPage(id="flags")
        yield Practice(id="practice")
        yield ChoiceBar(id="controls")

    @property
    def player(self) -> StepPlayer:
        """The page of the step."""
        return self.query_one(StepPlayer)

    @property
    def practice(self) -> Practice:
        """The questions about steps."""
        return self.query_one(Practice)

    @property
    def operands(self) -> Operands:
        """The operands."""
        return self.query_one(Operands)

    # The question.

    def normal(self, question: Question) -> Question:
        """Ask for every step."""
        return question.spelled_out().having(**dict.fromkeys(_PRINTED))

    def draw(self, before: Question) -> None:
        """Show the operands and a step: the same one as before if the steps are the same, else the last."""
        question, answer = self.question, self.answers[0]
        assert answer.scenes is not None
        scenes = answer.scenes(False)
        same = [scene.name for scene in scenes] == [scene.name for scene in self.scenes]
        self.scenes = scenes
        self.operands.show(question, answer)
        self.show_page("title", Page(answer.page().blocks[:1]))
        self.query_one("#verbs", ChoiceBar).current = question.verb
        steps = tuple((str(i), f"{i + 1} {scene.name}") for i, scene in enumerate(scenes))
        self.query_one("#steps", ChoiceBar).options = steps
        self.practice.prepare(answer)
        at = self.practice.first if self.practice.on else self.scene if same else len(scenes) - 1
        self.player.stop()
        self.set_reactive(ArithmeticScreen.scene, at)
        self._draw_scene()
        if not (same or self.small):  # a small screen would scroll away from what is being edited
            self.player.show_newest()
        self._draw_controls()

    def _draw_controls(self) -> None:
        question, practice, player = self.question, self.practice, self.player
        options = [
            ("back", "◂ p"),
            ("next", "n ▸"),
            ("play", f"{'pause' if player.playing else 'play'} {player.speed:g}/s"),
            ("format", self._format_text()),
        ]
        options += [("integer", f"to {question.option('integer', DEFAULT_INTEGER)}")] * (question.verb == "toint")
        options += [("witness", "find where they differ")] * (question.verb == "fma")
        options += [("practice", practice.label), *([("exercise", "new exercise")] * practice.on)]
        self.query_one("#controls", ChoiceBar).options = tuple(options)

    def _format_text(self) -> str:
        """Return the format of the result, and whether it is automatic."""
        results = self.answers[0].results
        if self.question.formats:
            return f"in {short_name(self.question.formats[0])}"
        return f"in {short_name(results[0].format)}, {AUTOMATIC}" if results else f"{AUTOMATIC} format"

    # The steps.

    @property
    def small(self) -> bool:
        """Whether operands and steps scroll as one, for want of room."""
        return self.has_class("-short") or self.has_class("-narrow")

    def _draw_scene(self) -> None:
        scene = self.scenes[self.scene]
        self.player.page = scene.page
        self.show_page("why", Page((Note(scene.reason),)))
        self.show_page("flags", Page(flags_blocks(scene.flags, scene.separate_flags)))
        self.query_one("#steps", ChoiceBar).current = str(self.scene)

    def watch_scene(self, before: int, now: int) -> None:
        """Show a step; if its digits move one place at a time, slide to it from the step before."""
        player, scene = self.player, self.scenes[now]
        player.stop_sliding()
        self._draw_scene()
        if now == before + 1 and scene.frames and self.app.settings.get("slide", True):
            player.slide(scene.frames, scene.page)
        player.show_newest()
        self.call_after_refresh(player.show_newest)  # the height of the reason changes that of the player

    def action_step(self, by: int) -> None:
        """Go a step forward or back; after the last comes the first."""
        self.player.stop()
        self._advance(by)
        self._draw_controls()

    def _advance(self, by: int) -> None:
        practice = self.practice
        wanted = self.scene + by
        if wanted >= len(self.scenes):
            wanted = practice.first if practice.on else 0
        elif wanted < 0:
            return
        if by > 0 and practice.asks(wanted):
            return
        practice.hide()
        self.scene = wanted

    def action_jump(self, step: int) -> None:
        """Go to a step; -1 is the last."""
        self.player.stop()
        if self.practice.on:
            self._refuse_jump()
        elif -1 <= step < len(self.scenes):
            self.scene = step % len(self.scenes)
            self.player.show_newest()  # also where it is the same step

    def _refuse_jump(self) -> None:
        self.complain("in practice the steps come one by one: n asks for the next", hint=True)

    def action_play(self) -> None:
        """Play the steps, or stop."""
        if self.player.playing:
            self.player.stop()
        elif self.practice.on:
            self._refuse_jump()
        else:
            if self.scene == len(self.scenes) - 1:
                self.scene = 0
            self.player.play()
        self._draw_controls()

    def action_speed(self, by: int) -> None:
        """Play faster or slower."""
        self.player.change_speed(by)
        self._draw_controls()

    @on(StepPlayer.Ticked)
    def _ticked(self) -> None:
        if self.scene + 1 < len(self.scenes):
            self.scene += 1
        if self.scene + 1 == len(self.scenes):
            self.player.stop()
            self._draw_controls()

    @on(ChoiceBar.Chosen, "#steps")
    def _step_chosen(self, event: ChoiceBar.Chosen) -> None:
        self.action_jump(int(event.name))

    # Operations and operands.

    @on(ChoiceBar.Chosen, "#verbs")
    def _verb_chosen(self, event: ChoiceBar.Chosen) -> None:
        self.take_verb(event.name)

    @on(ChoiceBar.Chosen, "#verb")
    def action_operation(self) -> None:
        """Pick an operation."""
        rows = choices_of({verb: verb_named(verb).summary for verb in ARITIES})
        self.pick("Operation", rows, self.take_verb, (self.question.verb,))

    def take_verb(self, verb: str) -> None:
        """Do another operation on the same operands."""
        self.open(self.question.replace(verb=verb, values=self.operands.values(ARITIES[verb]), options=()))

    def action_integer(self) -> None:
        """Pick the integer type that toint converts to."""
        rows = [Choice(name, name) for name in INTEGERS]
        self.pick("Integer type", rows, self._take_integer, (self.question.option("integer", DEFAULT_INTEGER),))

    def _take_integer(self, name: str) -> None:
        self.change(integer=None if name == DEFAULT_INTEGER else name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not belong to this operation."""
        verb = {"witness": "fma", "integer": "toint"}.get(action)
        return super().check_action(action, parameters) if verb is None else self.question.verb == verb

    @on(Operands.Asked)
    def _asked(self, event: Operands.Asked) -> None:
        valid = self.open(event.question, event.kind)
        if event.box is not None:
            mark_valid(event.box, valid)
            self.call_after_refresh(self.player.show_newest)

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self.operands.flip(event)

    def on_descendant_focus(self) -> None:
        """Let keys edit the operand that has the focus."""
        self.operands.follow(self.focused)

    @on(Operands.Refused)
    def _refused(self, event: Operands.Refused) -> None:
        self.complain(event.reason)

    def action_edit(self, name: str) -> None:
        """Do an edit of EDITS to the chosen operand."""
        self.operands.edit(name)

    def boxes(self) -> Iterator[Widget]:
        """Return the operands' boxes."""
        yield from self.operands.query(Input)

    def home(self) -> Iterator[Widget]:
        """Return the page of the step."""
        yield self.player

    # Practice and the witness.

    def action_practice(self) -> None:
        """Begin practice, or end it."""
        practice = self.practice
        if not practice.on and practice.ended:
            self.complain("there is nothing to ask about this operation on these operands", hint=True)
            return
        practice.turn(not practice.on)
        self.player.stop()
        if practice.on:
            self._ask_first()
        else:
            self.scene = len(self.scenes) - 1
            self.action_leave()
        self._draw_controls()

    def _ask_first(self) -> None:
        self.scene = self.practice.first
        self._advance(1)

    @on(Practice.Answered)
    def _answered(self, event: Practice.Answered) -> None:
        self.scene = event.scene
        self.action_leave()
        self._draw_controls()

    def action_exercise(self) -> None:
        """Practise on other operands."""
        if format := self._one_format():
            self._take(self.practice.operands(self.question, format))
            if self.practice.on:
                self._ask_first()

    def _one_format(self) -> Format | None:
        """Return the format that other operands are to have, or complain if there are several."""
        formats = set(self.question.formats) or {datum.format for datum in self.answers[0].operands}
        if len(formats) != 1:
            self.complain("that needs one format: f chooses it", hint=True)
            return None
        return formats.pop()

    def _take(self, values: tuple[str, ...]) -> None:
        """Ask about operands, and name their format, since in another they could be other numbers."""
        if format := self._one_format():
            self.open(self.question.replace(values=values, formats=(format,)))

    def action_witness(self) -> None:
        """Search for operands for which fused and separate roundings differ."""
        if self.question.verb == "fma" and (format := self._one_format()):
            self.app.push_screen(WitnessSearch(self.question, format), self._take_witness)

    def _take_witness(self, result: tuple[str, ...] | str | None) -> None:
        if isinstance(result, str):
            self.complain(result, hint=True)
        elif result == self.question.values:
            self.complain("these operands differ already: change one of them to look further", hint=True)
        elif result is not None:
            self._take(result)

    def commands(self) -> Iterator[Command]:
        """Return the operations, the steps and the rest."""
        for verb in ARITIES:
            yield f"Operation: {verb}", verb_named(verb).summary, partial(self.take_verb, verb)
        for step, scene in enumerate(self.scenes):
            yield f"Step {step + 1}: {scene.name}", "go there", partial(self.action_jump, step)
        yield "Play the steps", "one after the other", self.action_play
        yield "Practice", "answer before the next step is shown", self.action_practice
        yield "New exercise", "other operands", self.action_exercise
        if self.question.verb == "fma":
            yield "Find an example where they differ", "operands where fused and separate differ", self.action_witness
