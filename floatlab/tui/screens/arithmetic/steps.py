"""The steps of a derivation, played as an animation; and practice, with a question before each step."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, ScrollableContainer, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, Label

from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format
from floatlab.page.model import Note, Page, heading
from floatlab.page.number_line import exact_literal, result_rows
from floatlab.tui.screens.panes import Topic
from floatlab.tui.widgets import ButtonBar, ChoiceBar, PageView
from floatlab.verbs.practice.exercises import Exercise, exercises, random_operands
from floatlab.verbs.question import Answer, Question, Scene
from floatlab.verbs.registry import answer_question

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)  # steps per second
_MOST_REPEATED = 30  # a message repeats up to this many characters of an unreadable answer
_SLIDE = 0.6  # longest duration of the animation before a step, in seconds
_FRAME = 0.06  # longest time in seconds between two animation frames


def result_topics(scenes: tuple[Scene, ...]) -> list[Topic]:
    """Return up to two topics: the number line around the result, and the exact result rounded in every direction.

    For fma, both are about the fused result. If the result has no number line, there are no topics.
    """
    derivation = next((scene.steps[0][0] for scene in reversed(scenes) if scene.steps), None)
    if derivation is None or not (rows := result_rows(derivation)):
        return []
    topics = [("Where the result lies", Page(tuple(rows)))]
    if exact := exact_literal(derivation):
        question = Question("show", (exact,), (derivation.result.format,), derivation.context)
        with suppress(FloatlabError):  # some rules apply only to operations, not to reading a number
            page = answer_question(question.having(directions=True))[0].page()
            topics.append(("The exact result, rounded in every direction", page.replace(blocks=page.blocks[1:])))
    return topics


def explanation(scenes: tuple[Scene, ...], scene: int, has_room: bool) -> Page:
    """Return the explanation of a step or, if there is room, of all steps so far."""
    if not has_room:
        return Page((Note(scenes[scene].reason),))
    pairs = [(heading(f"{i} {each.name}"), Note(each.reason)) for i, each in enumerate(scenes[: scene + 1], 1)]
    return Page(tuple(block for pair in pairs for block in pair))


class StepPlayer(PageView, can_focus=True):
    """The page of a step, and a timer that plays the steps. The screen decides which step is shown."""

    PLACE = "On the steps"  # the heading in the list of keys
    BINDINGS = [
        # The arrows scroll the page; home and end go to the first and to the last step.
        Binding("home", "screen.jump(0)", "First step", id="film.first", show=False),
        Binding("end", "screen.jump(-1)", "Last step", id="film.last", show=False),
        Binding("right,l", "screen.step(1)", "Next step", id="film.next", show=False),
        Binding("left,h", "screen.step(-1)", "Previous step", id="film.back", show=False),
    ]

    def __init__(self, tick: Callable[[], None], *, id: str | None = None) -> None:
        """Start without playing. While steps are played, `tick` is called whenever the next step is due."""
        super().__init__(id=id)
        self._tick = tick
        self.speed = 1.0
        self._clock: Timer | None = None
        self._slider: Timer | None = None
        self._frames: list[Page] = []

    @property
    def playing(self) -> bool:
        """Whether the steps are playing."""
        return self._clock is not None

    def play(self) -> None:
        """Play the steps."""
        self.stop()
        self._clock = self.set_interval(1 / self.speed, self._tick)

    def stop(self) -> None:
        """Stop playing, and end the animation."""
        if self._clock is not None:
            self._clock.stop()
            self._clock = None
        self.stop_sliding()

    def change_speed(self, by: int) -> None:
        """Play the steps faster or slower: change `speed`, in steps per second."""
        self.speed = SPEEDS[min(max(SPEEDS.index(self.speed) + by, 0), len(SPEEDS) - 1)]
        if self.playing:
            self.play()

    def slide(self, frames: tuple[Page, ...], last: Page) -> None:
        """Show pages one after the other as animation frames, ending with `last`."""
        self._frames = [*frames, last]
        every = min(_FRAME, _SLIDE / len(frames), 0.5 / self.speed / len(frames))
        self._turn()
        self._slider = self.set_interval(every, self._turn)

    def _turn(self) -> None:
        if self._frames:
            self.page = self._frames.pop(0)
        if not self._frames and self._slider is not None:
            self._slider.stop()
            self._slider = None

    def stop_sliding(self) -> None:
        """End the animation, and show its last page."""
        self._frames = self._frames[-1:]
        if self._frames or self._slider is not None:
            self._turn()

    def on_resize(self) -> None:
        """Keep the newest line visible."""
        super().on_resize()
        if not self.styles.auto_dimensions:
            self.show_newest()

    @property
    def newest(self) -> int:
        """The number of the first line on the page that is new in this step, counted from 0."""
        mark = self.app.drawn("▸")
        return next((y for y, runs in enumerate(self.lines) if any(run.text.strip() == mark for run in runs)), 0)

    def show_newest(self) -> None:
        """Scroll to the newest line of the page. If the player is as high as its page, a parent is scrolled instead."""
        if not self.styles.auto_dimensions:
            # Forced, since there is no scrollbar yet in the first frame.
            end = max(len(self.lines) - self.size.height, 0)
            self.scroll_to(y=min(self.newest, end), animate=False, force=True)
            return
        top = self.virtual_region.y + self.newest
        for widget in self.ancestors:
            if isinstance(widget, ScrollableContainer):
                # Scroll down to show the explanation and the flags, but keep the newest line visible.
                widget.scroll_to(y=min(top, widget.max_scroll_y), animate=False)
                break
            top += widget.virtual_region.y if isinstance(widget, Widget) else 0


class Practice(Vertical):
    """The question about the next step, shown while practice is on."""

    DEFAULT_CSS = """
    Practice {
        height: auto; display: none; background: $surface; padding: 0 1;
        &.-asking, &.-told { display: block; }
        &.-told Horizontal, &.-told ChoiceBar { display: none; }
        Horizontal { height: 1; }
        #prompt { text-style: bold; width: 1fr; padding: 0 1; }
        Horizontal Label { color: $role-label; padding: 0 1; }
        #guess { width: 1fr; }
    }
    """

    def __init__(self, show: Callable[[int], None], *, id: str | None = None) -> None:
        """Start with practice off. `show` is called with a step after the question about this step was answered."""
        super().__init__(id=id)
        self._show = show
        self.on = False
        self.right = self.asked = 0
        self._seed = 0
        self._answer: Answer | None = None
        self._made: tuple[Exercise | None, ...] | None = None
        self._answered: set[int] = set()
        self._asking: tuple[int, Exercise] | None = None  # the index of a step, and the question about the step

    def compose(self) -> ComposeResult:
        """Compose the prompt, the choices and the box."""
        yield Label("", id="prompt", markup=False)
        yield ButtonBar(self._take, id="guesses")
        with Horizontal():
            yield Label("answer", markup=False)
            yield Input(id="guess", compact=True, placeholder="an empty answer shows the step")

    @property
    def label(self) -> str:
        """The label of the control, which contains the score."""
        return f"end practice {self.right}/{self.asked}" if self.on else "practice"

    @property
    def exercises(self) -> tuple[Exercise | None, ...]:
        """The question about each step (None if there is no question), made at first use."""
        if self._made is None and self._answer is not None:
            self._made = exercises(self._answer.scenes(True))
        return self._made or ()

    @property
    def first(self) -> int:
        """The step at which practice begins, before the first question."""
        asked = [i for i, exercise in enumerate(self.exercises) if exercise is not None]
        return max(min(asked, default=1) - 1, 0)

    def turn(self, on: bool) -> None:
        """Begin or end practice; the score starts at zero."""
        self.on = on
        self.right = self.asked = 0
        self.prepare(self._answer)

    def prepare(self, answer: Answer | None) -> None:
        """Store the answer whose steps will be asked about, and hide the current question."""
        self._answer, self._made = answer, None
        self._answered.clear()
        self.hide()

    def operands(self, question: Question, format: Format) -> tuple[str, ...]:
        """Return operands for another exercise."""
        self._seed += 1
        return random_operands(question.verb, format, self._seed)

    def asks(self, scene: int) -> bool:
        """Ask the question about a step; return False if there is none, or if it has been answered."""
        exercise = self.exercises[scene] if self.on and scene < len(self.exercises) else None
        if exercise is None or scene in self._answered:
            return False
        self._asking = scene, exercise
        self.query_one("#prompt", Label).update(exercise.prompt)
        guesses = self.query_one("#guesses", ChoiceBar)
        guesses.options = tuple((choice, choice) for choice in exercise.choices)
        guesses.display = bool(exercise.choices)
        self.remove_class("-told")
        self.add_class("-asking")
        guess = self.query_one("#guess", Input)
        guess.value = ""
        guess.focus()
        return True

    @property
    def ended(self) -> bool:
        """Whether every question has been answered."""
        return all(exercise is None or scene in self._answered for scene, exercise in enumerate(self.exercises))

    def hide(self) -> None:
        """Hide the question, or the verdict on the user's answer."""
        self._asking = None
        self.remove_class("-asking", "-told")

    @on(Input.Submitted)
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        self._take(event.value)

    def _take(self, text: str) -> None:
        if self._asking is None:
            return
        scene, exercise = self._asking
        if text.strip() and not exercise.is_answer(text):
            again = f"{quoted(text, _MOST_REPEATED)} is not an answer: type {exercise.kind}. {exercise.prompt}"
            self.query_one("#prompt", Label).update(again)
            return
        right = exercise.is_right(text)
        self.asked += 1
        self.right += right
        self._answered.add(scene)
        self.hide()
        verdict = f"✓ right: {exercise.answers[0]}" if right else f"✗ the answer is {exercise.answers[0]}"
        verdict += "; that was the last question: N for other operands" if self.ended else "; n for the next question"
        self.query_one("#prompt", Label).update(verdict)
        self.add_class("-told")
        self._show(scene)
