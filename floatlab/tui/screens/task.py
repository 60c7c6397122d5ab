"""The base class of all screens: head line and key bar, formats and rounding rules, views, copying and pins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import ClassVar, TypeAlias

from textual import getters, on
from textual.app import ComposeResult
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input

from floatlab.formats import CATALOG, Format, parse_format
from floatlab.formats.catalog import short_name
from floatlab.formats.table_catalog import TABLES
from floatlab.numbers.datum import Datum
from floatlab.page.model import Page, joined
from floatlab.page.svg import to_svg
from floatlab.page.text_layout import to_text
from floatlab.tui.screens.question_screen import QuestionScreen
from floatlab.tui.widgets import BitRow, Choice, ChoiceBar, KeyBar, PageView, Pick, Picker
from floatlab.tui.widgets.boxes import is_wrong
from floatlab.verbs.edits import edited, with_bit
from floatlab.verbs.option import RULES, ContextChoice, context_words
from floatlab.verbs.question import Question, code_of
from floatlab.verbs.registry import command_of, verb_named

Command: TypeAlias = tuple[str, str, Callable[[], object]]  # a row of the palette: name, help, action
Copies: TypeAlias = dict[str, tuple[str, Callable[[], str]]]  # by name: description, function that returns the text

AUTOMATIC = "automatic"  # the choice that leaves the format open
# Other names of rounding directions, for searching in the picker.
_SPOKEN = {
    "rounding-RNE": ("nearest even default",),
    "rounding-RTZ": ("truncate chop",),
    "rounding-RTP": ("up ceiling",),
    "rounding-RTN": ("down floor",),
    "rounding-SR": ("random",),
}


class TaskScreen(QuestionScreen, inherit_bindings=False):
    """A screen for one question. A subclass composes its body and draws answers; BINDINGS has its keys."""

    VIEWS: ClassVar[tuple[tuple[str, str], ...]] = ()  # names and titles of the views
    ROUNDS = True  # whether rounding rules have an effect on this screen
    AUTOMATIC_FORMAT = ""  # description of the choice of no format; if empty, a format is required
    CONTROLS: ClassVar[dict[str, str]] = {}  # further actions of the words in #controls
    PARTS = "#body > *"  # the widgets among which a view selects
    WALKS = False  # whether the rows of a new view get the focus, so that the cursor can move over them
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (116, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (22, "-high")]
    DEFAULT_CSS = """
    TaskScreen {
        .entry { height: 1; padding: 0 1; }
        .entry Label { width: auto; color: $role-label; padding: 0 1; }
        .entry Input { width: 1fr; }
        #complaint { height: auto; max-height: 5; display: none; padding: 0 2; color: $role-bad; text-style: bold; }
        #complaint.-hint { color: $role-label; text-style: none; }
        #complaint.-shown { display: block; }
        Input { background: $surface; }
        Input:focus { background: $panel; }
        Input.-wrong { color: $role-bad; text-style: underline; }
    }
    """
    view: reactive[str] = reactive("", init=False)
    head = getters.query_one("#head", ChoiceBar)
    controls = getters.query_one("#controls", ChoiceBar)
    views = getters.query_one("#views", ChoiceBar)
    details = getters.query_one("#details", PageView)

    def __init__(self, question: Question) -> None:
        """Store the first question."""
        super().__init__(question)
        self.set_reactive(TaskScreen.view, self.first_view(question))

    # Methods that a subclass may override.

    def compose_task(self) -> ComposeResult:
        """Compose the widgets between the head line and the key bar."""
        yield from ()

    def first_view(self, question: Question) -> str:
        """Return the first view for a question."""
        return self.VIEWS[0][0] if self.VIEWS else ""

    def draw_view(self) -> None:
        """Show the current view."""

    def page(self) -> Page:
        """Return the whole page, as the command line would print it."""
        return joined([answer.page() for answer in self.answers])

    def subject(self) -> Datum | None:
        """Return the number that can be pinned; None if no number is shown."""
        results = [datum for answer in self.answers for datum in answer.results]
        return results[0] if results else None

    def base_question(self) -> Question:
        """Return the question to which changes of formats, rules and options apply."""
        return self.question

    def with_format(self, question: Question, format: Format) -> Question:
        """Return the question with a picked format."""
        return question.replace(formats=(format,))

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette."""
        for name, title in self.VIEWS:
            yield f"View: {title}", "on this screen", partial(self.choose_view, name)
        for pick in self.picks().values():
            for name, text in pick.choices.items() if pick.group and isinstance(pick.choices, Mapping) else ():
                yield f"{pick.group}: {name}", text, partial(pick.take, name)

    @property
    def rules(self) -> list[ContextChoice]:
        """The rounding rules that the verb of the question takes."""
        if not self.ROUNDS:
            return []
        taken = {option.name for option in verb_named(self.base_question().verb).options if option.part == "context"}
        return [rule for rule in RULES if rule.field in taken]

    def boxes(self) -> Iterator[Widget]:
        """Return the input boxes, beginning with the one for the key `/`."""
        yield from self.query("Input")

    def home(self) -> Iterator[Widget]:
        """Return the widgets that may get the focus when a box is left, the best one first."""
        yield from self.query("#body PageView")

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists by name."""
        rules = [Choice(rule.name, f"{rule.group}: {rule.words}", _SPOKEN.get(rule.name, ())) for rule in self.rules]
        holding = tuple(rule.name for rule in self.rules if rule.holds(self.question.context))
        copies = {name: description for name, (description, _) in self.copies().items()}
        return {
            "format": self.format_pick(self.take_format, self.AUTOMATIC_FORMAT),
            "rules": Pick("Rounding, overflow, NaN and subnormals", rules, self.take_rule, holding),
            "copies": Pick("Copy", [Choice(*copy) for copy in copies.items()], self.action_copy),
        }

    def possible(self) -> dict[str, bool]:
        """Return whether actions and lists are available now; those not in the result are always available."""
        return {
            "undo": self.history.can_go(-1),
            "redo": self.history.can_go(1),
            "rules": self.ROUNDS,
            "view": len(self.shown_views) > 1,
        }

    # Head line and key bar.

    @property
    def small(self) -> bool:
        """Whether the terminal is narrow or short."""
        # Textual sets the classes of the screen too late for its first frame.
        width, height = self.app.size
        return width < self.HORIZONTAL_BREAKPOINTS[1][0] or height < self.VERTICAL_BREAKPOINTS[1][0]

    def compose(self) -> ComposeResult:
        """Compose head line, body and key bar.

        The first question is asked here, so that the first frame shows its answers (unless they take long).
        """
        self.begin()
        yield ChoiceBar(self._choose_head, self._head(), self.NAME, id="head")
        yield from self.compose_task()
        yield KeyBar(self._press, id="key-bar")

    def _head(self) -> tuple[tuple[str, str], ...]:
        rules = (("rules", context_words(self.question.context)),) if self.ROUNDS else ()
        return (*self.app.titles, *rules)

    def show_frame(self) -> None:
        """Show the rounding rules, and the keys that are active now."""
        self.head.options = self._head()
        self.refresh_bindings()
        self.app.tell_address()

    def show_page(self, name: str, page: Page) -> None:
        """Show a page in the view with this id."""
        self.query_one(f"#{name}", PageView).page = page

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide actions that are not available now."""
        return self.possible().get(str(parameters[0]) if action == "pick" else action, True)

    def _choose_head(self, name: str) -> None:
        if name == "rules":
            self.action_pick(name)
        else:
            self.app.go(name)

    def choose_view(self, name: str) -> None:
        """Show a view."""
        self.view = name

    async def control(self, name: str) -> None:
        """Run the action of a word in the line of controls, or open its list."""
        await self.run_action(f"pick('{name}')" if name in self.picks() else self.CONTROLS.get(name, name))

    async def _press(self, key: str) -> None:
        if (active := self.active_bindings.get(key)) is not None:
            await self.app.run_action(active.binding.action, active.node)

    # Boxes and the focus.

    def action_value(self) -> None:
        """Go to the first box."""
        for box in self.boxes():
            box.focus()
            return

    def action_escape(self) -> None:
        """Stop the pending answer; if there is none, clear the error message and leave the box."""
        if self.pending is None:
            self.complain("")
        super().action_escape()

    def leave(self) -> None:
        """Leave the input box."""
        self.action_leave()

    def action_leave(self) -> None:
        """Move the focus out of the input box."""
        for widget in self.home():
            if widget.can_focus and widget.display:
                widget.focus(scroll_visible=False)
                return

    def show_only(self, *names: str) -> None:
        """Show these parts, hide all others, and move the focus away from hidden parts."""
        for widget in self.query(self.PARTS):
            widget.display = widget.id in names
        focused = self.focused
        if focused is not None and not (focused.display and all(widget.display for widget in focused.ancestors)):
            self.action_leave()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Leave a box if its text is valid; else keep the error message."""
        if not is_wrong(event.input):
            self.action_leave()

    @on(Input.Blurred)
    def _blurred(self, event: Input.Blurred) -> None:
        """When a box with an error is left, restore its last valid value."""
        self.history.settle()
        if is_wrong(event.input):
            self.open(self.question)

    # Edits, options, formats and rules.

    def follow(self, focused: Widget | None) -> None:
        """Make edits apply to the number of the focused widget."""

    def on_descendant_focus(self) -> None:
        """Follow the focus."""
        self.follow(self.focused)

    def edited(self, change: Callable[[Datum], Datum]) -> Question:
        """Return the question after an edit of a number; raises FloatlabError."""
        raise NotImplementedError

    def action_edit(self, name: str) -> None:
        """Apply the edit with this name from EDITS."""
        self.attempt(lambda: self.edited(lambda datum: edited(datum, name)))

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self.follow(event.widget)
        self.attempt(lambda: self.edited(lambda datum: with_bit(datum, event.bit, event.value)))

    def change(self, **options: object) -> bool:
        """Open the question with changed options."""
        return self.open(self.base_question().having(**options))

    def pick(self, pick: Pick) -> None:
        """Open a pick list."""

        def taken(name: str | None) -> None:
            if name is not None:
                pick.take(name)

        self.app.push_screen(Picker(pick.title, pick.rows, pick.current, free=pick.free), taken)

    def action_pick(self, name: str) -> None:
        """Open the pick list with this name."""
        self.pick(self.picks()[name])

    def format_pick(self, take: Callable[[str], object], automatic: str = "") -> Pick:
        """Return the pick list of formats, which also accepts other names; `automatic` describes that choice."""
        rows = [Choice(AUTOMATIC, f"{AUTOMATIC:<12} {automatic}")] if automatic else []
        rows += [
            Choice(row.format.name, f"{row.format.name:<12} {row.purpose}", (short_name(row.format), *row.aliases))
            for row in (*CATALOG, *TABLES)
        ]
        current = tuple(format.name for format in self.question.formats)
        return Pick("Format, or any e<W>m<T> name", rows, take, current, free=True)

    def take_format(self, name: str) -> None:
        """Open the question with this format, or without a format."""
        base = self.base_question()
        none = base.replace(formats=())
        self.attempt(lambda: none if name == AUTOMATIC else self.with_format(base, parse_format(name)))

    def take_rule(self, name: str) -> None:
        """Open the question with the rounding rule that has this name in RULES."""
        question = self.base_question()
        rule = next(rule for rule in RULES if rule.name == name)
        self.open(question.replace(context=rule.apply(question.context)))

    # Views.

    @property
    def shown_views(self) -> tuple[tuple[str, str], ...]:
        """The views that are available now."""
        return self.VIEWS

    @property
    def shown_view(self) -> str:
        """The current view; the first one if the chosen view is not available."""
        return self.view if self.view in dict(self.shown_views) else self.shown_views[0][0]

    def watch_view(self) -> None:
        """Draw the new view."""
        self.views.current = self.view
        if self.history.now is None:
            return
        self.draw_view()
        if self.WALKS:
            self.details.scroll_home(animate=False)
            if not isinstance(self.focused, Input):
                self.action_leave()
            self.refresh_bindings()

    def action_view(self, by: int) -> None:
        """Go to the next view."""
        names = list(dict(self.shown_views))
        self.view = names[(names.index(self.shown_view) + by) % len(names)]

    # Copying, pins, and other screens.

    def printed(self) -> Question:
        """Return the question whose page is shown."""
        return self.question

    def copies(self) -> Copies:
        """Return the texts that can be copied, by name."""
        return {
            "value": ("the value", lambda: "\n".join(word for answer in self.answers for word in answer.words())),
            "code": ("the code", lambda: "\n".join(code for answer in self.answers for code in answer.codes())),
            "command": ("the command that prints this", lambda: command_of(self.printed())),
            "text": ("the page as text", lambda: to_text(self.page())),
            "svg": ("the page as a picture (SVG)", lambda: to_svg(self.page())),
        }

    def action_copy(self, name: str) -> None:
        """Copy the text with this name in `copies`."""
        description, text = self.copies()[name]
        self.app.copy(text(), description)

    def code_to_pin(self, name: str) -> str:
        """Return the code (with its format) to pin as A or B; an empty text if there is none."""
        datum = self.subject()
        return code_of(datum) if datum is not None else ""

    def action_pin(self, name: str) -> None:
        """Pin the shown number as A or B."""
        code = self.code_to_pin(name)
        if not code:
            self.notify("There is no number here to pin", severity="warning")
            return
        self.app.pins[name] = code
        both = "; Inspect compares A and B" if len(self.app.pins) == 2 and self.NAME != "inspect" else ""
        self.notify(f"{name} is {code}{both}", timeout=3)
        self.pinned()

    def pinned(self) -> None:
        """Show the pinned numbers."""

    def inspect(self, value: str, formats: tuple[Format, ...]) -> None:
        """Open a value in Inspect."""
        self.app.go("inspect", Question("show", (value,), formats))
