"""The screen Arithmetic: an operation on operands whose bits can be flipped, and its derivation step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from re import fullmatch

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input

from floatlab.formats import Format
from floatlab.formats.catalog import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Page, Pair
from floatlab.page.words import flags_blocks
from floatlab.tui.screens.arithmetic.operands import Operands, WitnessSearch
from floatlab.tui.screens.arithmetic.steps import Practice, StepPlayer, explanation, result_topics
from floatlab.tui.screens.keys import SHARED_KEYS, VALUE_KEY
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.pick_lists import AUTOMATIC
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import ButtonBar, ChoiceBar, PageView, Pick, StaticPage
from floatlab.tui.widgets.boxes import mark_valid
from floatlab.verbs.arithmetic.answer import ARITIES, DEFAULT_INTEGER, INTEGERS
from floatlab.verbs.edits import EDITS
from floatlab.verbs.question import Question, Scene
from floatlab.verbs.registry import verb_named

_IN_BAR = tuple(ARITIES)[:10]  # the operations in the bar; the list has the others, too
_PRINTED = ("steps", "brief", "why")  # options that affect only what the command line prints


class ArithmeticScreen(TaskScreen, inherit_bindings=False):
    """The screen for one operation, whose steps can be shown forward and backward."""

    TOPIC_PANES = ("beside", "directions")
    AUTOMATIC_FORMAT = "the first common format that contains all operands"
    CONTROLS = {"back": "step(-1)", "next": "step(1)"}
    HELP = (
        "Type operands (1.5, 0.1@fp16, bits:0x3c00) or flip their bits; n and p go to the next and the previous step, "
        "space plays all steps. Practice hides a step until you have answered a question about it."
    )
    BINDINGS = [
        Binding("n", "step(1)", "Next", id="step.next"),
        VALUE_KEY,
        Binding("p", "step(-1)", "Previous", id="step.back", show=False),
        Binding("space", "play", "Play", id="play"),
        Binding("o", "pick('operation')", "Operation", id="operation"),
        Binding("x", "practice", "Practice", id="practice"),
        Binding("w", "witness", "Differ", id="witness", tooltip="Find an example where fused and separate differ"),
        Binding("home", "jump(0)", "First step", id="step.first", show=False),
        Binding("end", "jump(-1)", "Last step", id="step.last", show=False),
        *(Binding(str(i), f"jump({i - 1})", f"Step {i}", id=f"step.{i}", show=False) for i in range(1, 10)),
        Binding("less_than_sign", "speed(-1)", "Slower", id="slower", show=False),
        Binding("greater_than_sign", "speed(1)", "Faster", id="faster", show=False),
        Binding("i", "pick('integer')", "Integer type", id="integer", show=False),
        Binding("N", "exercise", "New exercise", id="exercise", show=False),
        Binding("plus", "edit('up')", EDITS["up"].summary, id="operand.up", show=False),
        Binding("minus", "edit('down')", EDITS["down"].summary, id="operand.down", show=False),
        Binding("s", "edit('negate')", EDITS["negate"].summary, id="operand.negate", show=False),
        *(key for key in SHARED_KEYS if key is not VALUE_KEY),
    ]
    DEFAULT_CSS = """
    ArithmeticScreen {
        #body { overflow-y: hidden; }
        #rows { height: auto; max-height: 7; scrollbar-size-vertical: 1; }
        #why { height: auto; max-height: 6; }
        #explanation { height: auto; }
        &.-short, &.-narrow {
            #verbs { display: none; }
            #verb { display: block; }
            #body { overflow-y: auto; scrollbar-size-vertical: 1; }
            #rows, #why { max-height: 999; }
            #player, #film, #first, #derivation { height: auto; }
            #film.-maximized #player { height: 1fr; }
        }
        &.-framed #rows { max-height: 14; }
        #beside, #directions { height: auto; max-height: 50%; }
        &.-beside {
            #derivation { layout: horizontal; }
            #explanation { width: 46; height: 1fr; }
            #why { height: 1fr; max-height: 100%; }
        }
    }
    """

    scene: reactive[int] = reactive(0, init=False)  # index of the step that is shown
    verbs, steps = getters.query_one("#verbs", ChoiceBar), getters.query_one("#steps", ChoiceBar)
    operands, player = getters.query_one(Operands), getters.query_one(StepPlayer)
    practice = getters.query_one(Practice)
    scenes: tuple[Scene, ...] = ()
    _steps = 0  # number of steps of the previous derivation

    def compose_task(self) -> ComposeResult:
        """Compose the operation, its operands, the steps and the flags."""
        yield ChoiceBar(self.take_verb, id="verbs")
        yield (operands := Operands(self.question, self.action_pick, id="operands"))
        with VerticalScroll(id="body", can_focus=False):
            yield StaticPage(id="title")
            with pane(VerticalScroll(id="rows", can_focus=False), "Operands"):
                yield from operands.rows
            with Vertical(id="derivation"):
                with Column(id="first"):
                    with pane(Vertical(id="film"), "Steps"):
                        yield ChoiceBar(lambda step: self.action_jump(int(step)), id="steps")
                        yield StepPlayer(self._tick, id="player")
                    yield from (pane(TopicPane(id=name)) for name in ("directions", "beside"))
                with pane(Vertical(id="explanation"), "Explanation"):
                    yield PageView(id="why")
                    yield StaticPage(id="flags")
        yield Practice(self._practised, id="practice")
        yield ButtonBar(self.control, id="controls")

    # The question.

    def normal(self, question: Question) -> Question:
        """Return the question without options that affect only what the command line prints."""
        return question.spelled_out().having(**dict.fromkeys(_PRINTED))

    def draw(self, before: Question) -> None:
        """Show the operands and one step."""
        question, answer = self.question, self.answers[0]
        scenes = answer.scenes(False)
        same = [scene.name for scene in scenes] == [scene.name for scene in self.scenes]
        self._steps, self.scenes = len(self.scenes), scenes
        self.operands.show(question, answer)
        self.show_page("title", Page(answer.page().blocks[:1]))
        self.verbs.options = tuple((verb, verb) for verb in dict.fromkeys((*_IN_BAR, question.verb)))
        self.verbs.current = question.verb
        self.steps.options = tuple((str(i), f"{i + 1} {scene.name}") for i, scene in enumerate(scenes))
        self.practice.prepare(answer)
        at = self.practice.first if self.practice.on else self._next_scene(same, before)
        self.player.stop()
        self.set_reactive(ArithmeticScreen.scene, at)
        self._draw_scene()
        # On a small screen, scrolling would move the edited operand out of view.
        if not same and (not self.small or self.focused is self.player):
            self.call_after_refresh(self.player.show_newest)
        self._draw_controls()

    def _next_scene(self, same: bool, before: Question) -> int:
        """Return the index of the step to show. `same` tells whether the steps have the same names as before."""
        if same:
            return self.scene
        was_last = 0 < self.scene == self._steps - 1
        if before.verb != self.question.verb or not was_last:
            return 0
        return len(self.scenes) - 1

    def _draw_controls(self) -> None:
        question, practice, player = self.question, self.practice, self.player
        options = [
            ("back", "◂ p"),
            ("next", "n ▸"),
            ("play", f"{'pause' if player.playing else 'play'} {player.speed:g}/s"),
            ("format", self._format_text()),
            self.rules_word,
        ]
        options += [("integer", f"to {question.option('integer', DEFAULT_INTEGER)}")] * (question.verb == "toint")
        options += [("witness", "an example where they differ")] * (question.verb == "fma" and not practice.on)
        options += [("practice", practice.label), *([("exercise", "new exercise")] * practice.on)]
        self.controls.options = tuple(options)
        self.draw_beside()

    def _format_text(self) -> str:
        """Return text with the name of the result's format, and with "automatic" if it was chosen automatically."""
        results = self.answers[0].results
        if self.question.formats:
            return f"in {short_name(self.question.formats[0])}"
        return f"in {short_name(results[0].format)}, {AUTOMATIC}" if results else f"{AUTOMATIC} format"

    # The steps.

    @property
    def has_topic_below(self) -> bool:
        """Whether the explanation is beside the steps, so that there is room below the steps."""
        return self.has_class("-beside")

    def topics(self) -> list[Topic]:
        """Return the topics of the result; none during practice, because they would reveal the answer."""
        return [] if self.practice.on else result_topics(self.scenes)[: 1 + self.has_class("-beside")]

    def _draw_scene(self) -> None:
        scene = self.scenes[self.scene]
        self.player.page = scene.page
        self.set_class(self.has_class("-framed") and not any(isinstance(b, Pair) for b in scene.page.blocks), "-beside")
        self.show_page("why", explanation(self.scenes, self.scene, self.has_class("-beside")))
        self.query_one("#why").scroll_end(animate=False)
        self.show_page("flags", Page(flags_blocks(scene.flags, scene.separate_flags)))
        self.steps.current = str(self.scene)
        self.draw_beside()

    def watch_scene(self, before: int, now: int) -> None:
        """Show a step. If it comes next after the previous one, first play its animation (unless turned off)."""
        player, scene = self.player, self.scenes[now]
        player.stop_sliding()
        self._draw_scene()
        if now == before + 1 and scene.frames and self.app.settings.get("slide", True):
            player.slide(scene.frames, scene.page)
        player.show_newest()
        self.call_after_refresh(player.show_newest)  # the player's height depends on that of the explanation

    def action_step(self, by: int) -> None:
        """Go a step forward (after the last one, to the first) or back. In practice mode, ask before a step forward."""
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
        """Go to a step (-1 is the last); in practice mode, show a hint instead."""
        self.player.stop()
        if self.practice.on:
            self._refuse_jump()
        elif -1 <= step < len(self.scenes):
            self.scene = step % len(self.scenes)
            self.player.show_newest()  # scroll even if the step is the same

    def _refuse_jump(self) -> None:
        self.complain("in practice, steps are shown one by one: n asks about the next step", hint=True)

    def action_play(self) -> None:
        """Start or stop playing the steps."""
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
        """Play the steps faster or slower."""
        self.player.change_speed(by)
        self._draw_controls()

    def _tick(self) -> None:
        """Play the next step."""
        if self.scene + 1 < len(self.scenes):
            self.scene += 1
        if self.scene + 1 == len(self.scenes):
            self.player.stop()
            self._draw_controls()

    # Operations and operands.

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists of operations, and of integer types for toint."""
        verbs = {verb: verb_named(verb).summary for verb in ARITIES}
        integer = self.question.option("integer", DEFAULT_INTEGER)
        return super().picks() | {
            "operation": Pick("Operation", verbs, self.take_verb, (self.question.verb,), group="Operation"),
            "integer": Pick("Integer type", dict.fromkeys(INTEGERS, ""), self._take_integer, (integer,)),
        }

    def take_verb(self, verb: str) -> None:
        """Change the operation, with the same operands."""
        values = self.operands.values(ARITIES[verb])
        if verb == "scaleb" and not fullmatch("[+-]?[0-9]+", values[1].strip()):
            values = (values[0], "1")  # the second operand of scaleB is an integer
        self.open(self.question.replace(verb=verb, values=values, options=()))

    def _take_integer(self, name: str) -> None:
        self.change(integer=None if name == DEFAULT_INTEGER else name)

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Some actions exist only for some operations."""
        verb = self.question.verb
        return super().possible() | {"witness": verb == "fma", "integer": verb == "toint"}

    @on(Input.Changed, "#operands Input")
    def _typed(self, event: Input.Changed) -> None:
        mark_valid(event.input, self.open(self.operands.typed(event.input), event.input.id or ""))
        self.call_after_refresh(self.player.show_newest)

    def follow(self, focused: Widget | None) -> None:
        """Let keys edit the focused operand."""
        self.operands.follow(focused)

    def edited(self, change: Callable[[Datum], Datum]) -> Question:
        """Return the question after an edit of the operand to which keys apply."""
        return self.operands.edited(change)

    def boxes(self) -> Iterator[Widget]:
        """Return the operands' boxes."""
        yield from self.operands.query(Input)

    def home(self) -> Iterator[Widget]:
        """Yield the widget to focus when a box is left: the page of the step."""
        yield self.player

    def zoomed(self) -> None:
        """Scroll to the newest line of the step after a pane was enlarged or reduced."""
        self.player.show_newest()

    def position(self) -> dict[str, object]:
        """Return the step, and the positions of the cursors."""
        return super().position() | {"step": self.scene}

    def set_position(self, position: dict[str, object]) -> None:
        """Restore the step and the cursors from `position`."""
        super().set_position(position)
        step = position.get("step")
        if isinstance(step, int) and step < len(self.scenes) and not self.practice.on:
            self.scene = step

    # Practice, and examples where fused and separate differ.

    def action_practice(self) -> None:
        """Begin or end practice."""
        practice = self.practice
        if not practice.on and practice.ended:
            self.complain("there are no questions about this operation on these operands", hint=True)
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

    def _practised(self, scene: int) -> None:
        """Show a step after its question has been answered."""
        self.scene = scene
        self.action_leave()
        self._draw_controls()

    def action_exercise(self) -> None:
        """Take random operands; in practice mode, ask the first question about them."""
        if format := self._one_format():
            self._take(self.practice.operands(self.question, format))
            if self.practice.on:
                self._ask_first()

    def _one_format(self) -> Format | None:
        """Return the format for new operands; show a hint and return None if there are several formats."""
        formats = set(self.question.formats) or {datum.format for datum in self.answers[0].operands}
        if len(formats) != 1:
            self.complain("this needs a single format: choose it with f", hint=True)
            return None
        return formats.pop()

    def _take(self, values: tuple[str, ...]) -> None:
        """Open the operation with these operands, in the only format of the question or of its operands."""
        if format := self._one_format():
            self.open(self.question.replace(values=values, formats=(format,)))

    def action_witness(self) -> None:
        """Search for operands for which fused and separate multiply-add differ."""
        if self.question.verb == "fma" and (format := self._one_format()):
            self.app.push_screen(WitnessSearch(self.question, format), self._take_witness)

    def _take_witness(self, result: tuple[str, ...] | str | None) -> None:
        if isinstance(result, str):
            self.complain(result, hint=True)
        elif result == self.question.values:
            self.complain(
                "the results for these operands differ already: change one operand to search again", hint=True
            )
        elif result is not None:
            self._take(result)

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for operations, steps and the other actions."""
        yield from super().commands()
        for step, scene in enumerate(self.scenes):
            yield f"Step {step + 1}: {scene.name}", "go there", partial(self.action_jump, step)
        yield "Play the steps", "one after the other", self.action_play
        yield "Practice", "answer before the next step is shown", self.action_practice
        yield "New exercise", "other operands", self.action_exercise
        if self.question.verb == "fma":
            what = "operands for which fused and separate differ"
            yield "Find an example where they differ", what, self.action_witness
