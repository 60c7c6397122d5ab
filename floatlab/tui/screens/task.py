"""The base class of all screens, with what they share: tabs, key bar, formats, rounding rules, views, copying, pins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import takewhile
from typing import ClassVar, TypeAlias

from textual import getters, on
from textual.app import ComposeResult
from textual.geometry import Offset
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Static

from floatlab.formats import Format, parse_format
from floatlab.numbers.datum import Datum
from floatlab.page.model import Page
from floatlab.tui.base import if_present
from floatlab.tui.screens.copying import CopyingScreen
from floatlab.tui.screens.panes import Column, TopicPane
from floatlab.tui.screens.pick_lists import AUTOMATIC
from floatlab.tui.widgets import BitRow, Choice, ChoiceBar, KeyBar, PageView, Pick, TabBar
from floatlab.tui.widgets.boxes import is_wrong
from floatlab.verbs.edits import edited, with_bit
from floatlab.verbs.option import RULES, ContextChoice, context_words
from floatlab.verbs.question import Question, code_of
from floatlab.verbs.registry import verb_named

Command: TypeAlias = tuple[str, str, Callable[[], object]]  # a row of the palette: name, help, action

# Other names of rounding directions, for searching in the picker.
SPOKEN = {
    "rounding-RNE": ("nearest even default",),
    "rounding-RTZ": ("truncate chop",),
    "rounding-RTP": ("up ceiling",),
    "rounding-RTN": ("down floor",),
    "rounding-SR": ("random",),
}


class TaskScreen(CopyingScreen, inherit_bindings=False):
    """A screen for one question. A subclass composes its body, draws answers, and lists its keys in BINDINGS."""

    VIEWS: ClassVar[tuple[tuple[str, str], ...]] = ()  # names and titles of the views
    ROUNDS = True  # whether rounding rules have an effect on this screen
    AUTOMATIC_FORMAT = ""  # the description of the choice "no format"; if empty, there is no such choice
    CONTROLS: ClassVar[dict[str, str]] = {}  # name of a control → its action, if that has another name
    PARTS = "#body > *, #body > Column > *"  # CSS selector of the widgets that views show or hide
    WALKS = False  # whether a new view gets the focus
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (116, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (22, "-high")]
    DEFAULT_CSS = """
    TaskScreen {
        layers: default messages;
        .entry { height: 1; padding: 0 1; }
        .entry Label { width: auto; color: $role-label; padding: 0 1; }
        .entry Input { width: 1fr; }
        #complaint {
            width: 100%; height: auto; max-height: 5; display: none; padding: 0 2;
            background: $background; color: $role-bad; text-style: bold;
        }
        /* In front of the end of the body, above the controls and the keys. */
        #complaint.-over { layer: messages; dock: bottom; }
        #complaint.-hint { color: $role-label; text-style: none; }
        #complaint.-shown { display: block; }
        Input { background: $panel; &>.input--placeholder, &>.input--suggestion { color: $role-label; } }
        Input:ansi { text-style: underline; }  /* These themes have no background colour for a box. */
        Input.-wrong { color: $role-bad; text-style: underline not dim; }
        /* The answer does not belong to the text in the boxes. */
        &.-unread, &.-stopped { #body, #top, #bar { text-style: dim; } }
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

    def base_question(self) -> Question:
        """Return the question that is changed when the user picks a format, rule or option."""
        return self.question

    def with_format(self, question: Question, format: Format) -> Question:
        """Return the question with the format that the user picked."""
        return question.replace(formats=(format,))

    def commands(self) -> Iterator[Command]:
        """Yield the rows of this screen in the command palette: its views, and the choices of its pick lists."""
        for name, title in self.VIEWS:
            yield f"View: {title}", "on this screen", partial(self.choose_view, name)
        for pick in self.picks().values():
            for name, text in pick.choices.items() if pick.group and isinstance(pick.choices, Mapping) else ():
                yield f"{pick.group}: {name}", text, partial(pick.take, name)

    @property
    def rules(self) -> list[ContextChoice]:
        """The rounding rules that apply to the verb of the question."""
        if not self.ROUNDS:
            return []
        taken = {option.name for option in verb_named(self.base_question().verb).options if option.part == "context"}
        return [rule for rule in RULES if rule.field in taken]

    def boxes(self) -> Iterator[Widget]:
        """Return the input boxes; the key `/` goes to the first one."""
        yield from self.query("Input")

    def home(self) -> Iterator[Widget]:
        """Yield widgets. When a box is left, the first of them that can take the focus gets the focus."""
        yield from self.query("#body PageView")

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists by name."""
        rules = [Choice(rule.name, f"{rule.group}: {rule.words}", SPOKEN.get(rule.name, ())) for rule in self.rules]
        holding = tuple(rule.name for rule in self.rules if rule.holds(self.question.context))
        copies = {name: description for name, (description, _) in self.copies().items()}
        return {
            "format": self.format_pick(self.take_format, self.AUTOMATIC_FORMAT),
            "rules": Pick("Rounding, overflow, NaN and subnormals", rules, self.take_rule, holding),
            "copies": Pick("Copy", [Choice(*copy) for copy in copies.items()], self.action_copy),
        }

    def possible(self) -> dict[str, bool]:
        """Return whether each action or pick list is available now. Those without an entry are always available."""
        return {
            "undo": self.history.can_go(-1) or self.is_stopped or self.has_class("-unread"),
            "redo": self.history.can_go(1),
            "again": self.is_stopped,
            "rules": self.ROUNDS,
            **dict.fromkeys(("copy", "copies", "save"), bool(self.answers)),
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
        self.set_sizes(self.app.size)
        self.begin()
        yield TabBar(self.app.go, self.app.titles, self.NAME, id="head")
        yield from self.compose_task()
        yield Static(id="complaint", markup=False)
        yield KeyBar(self._press, id="key-bar")

    @property
    def rules_word(self) -> tuple[str, str]:
        """The name and the label of the control that sets the rounding rules. The label shows the current rules."""
        return "rules", f"{context_words(self.question.context)} ▾"

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a place, and the offset in its content; None if the widget has just been removed."""
        return if_present(super().get_widget_and_offset_at(x, y))

    def complain(self, text: str, hint: bool = False) -> None:
        """Show an error message or a hint. The message may cover the end of the body, but nothing below the body."""
        super().complain(text, hint)
        complaint = self.query_one("#complaint")
        others = reversed([widget for widget in self.children if widget is not complaint and widget.display])
        below = takewhile(lambda widget: widget.id != "body", others)
        rows = max(sum(widget.region.height for widget in below), 1)
        complaint.styles.margin = (0, 0, rows if complaint.has_class("-over") else 0, 0)

    def show_frame(self) -> None:
        """Update the topic panes beside and below the current view, the key bar, and the address in a browser."""
        super().show_frame()
        self.draw_beside()
        self.refresh_bindings()
        self.app.tell_address()

    def position(self) -> dict[str, object]:
        """Return the view, and the positions of the cursors."""
        return super().position() | {"view": self.view}

    def set_position(self, position: dict[str, object]) -> None:
        """Restore the view and the cursors from `position`."""
        if position["view"] in dict(self.shown_views):
            self.view = str(position["view"])
        super().set_position(position)
        if not isinstance(self.focused, Input):
            self.action_leave()

    def show_page(self, name: str, page: Page) -> None:
        """Show a page in the view with this id."""
        self.query_one(f"#{name}", PageView).page = page

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide actions that are not available now."""
        return self.possible().get(str(parameters[0]) if action == "pick" else action, True)

    def choose_view(self, name: str) -> None:
        """Show a view."""
        self.view = name

    async def control(self, name: str) -> None:
        """Run the action of a control, or open its pick list."""
        await self.run_action(f"pick('{name}')" if name in self.picks() else self.CONTROLS.get(name, name))

    async def _press(self, key: str) -> None:
        if (active := self.active_bindings.get(key)) is not None:
            await self.app.run_action(active.binding.action, active.node)

    # Boxes and the focus.

    def action_value(self) -> None:
        """Move the focus to the first input box."""
        for box in self.boxes():
            box.focus()
            return

    def action_escape(self) -> None:
        """Stop the pending answer. If none is pending, clear the message, and leave the box or show all panes again.

        Two messages are not cleared: the message about wrong text, which stays in its box, and the message about a
        stopped computation.
        """
        if self.pending is None and not (self.has_class("-unread") or self.is_stopped):
            self.complain("")
            if not isinstance(self.focused, Input) and self.unzoom():
                return
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
            if not isinstance(widget, TopicPane | Column):
                widget.display = widget.id in names
        self.show_columns()
        if self.maximized is not None and not self.maximized.display:
            self.minimize()
        focused = self.focused
        if focused is not None and not (focused.display and all(widget.display for widget in focused.ancestors)):
            self.action_leave()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Restart a stopped computation. Leave the box if its text is valid; otherwise keep the error message."""
        self.action_again()
        if not is_wrong(event.input):
            self.action_leave()

    @on(Input.Blurred)
    def _blurred(self, event: Input.Blurred) -> None:
        """End a series of edits in a box. If the text of the box is wrong, a message says how to discard the text."""
        self.history.end_series()
        if is_wrong(event.input):
            self.say_wrong(event.input)

    # Edits, options, formats and rules.

    def follow(self, focused: Widget | None) -> None:
        """Make edits apply to the number in the focused widget."""

    def on_descendant_focus(self) -> None:
        """Call `follow` with the widget that got the focus."""
        self.follow(self.focused)

    def edited(self, change: Callable[[Datum], Datum]) -> Question:
        """Return the question after `change` has edited a number; raises FloatlabError if that fails."""
        raise NotImplementedError

    def action_edit(self, name: str) -> None:
        """Apply the edit with this name from EDITS."""
        self._edit(lambda datum: edited(datum, name))

    def _edit(self, change: Callable[[Datum], Datum]) -> None:
        self.forget_mistakes()
        self.is_edit = True
        self.attempt(lambda: self.edited(change))
        self.is_edit = False

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self.follow(event.widget)
        self._edit(lambda datum: with_bit(datum, event.bit, event.value))

    def change(self, **options: object) -> bool:
        """Open the question with changed options."""
        return self.open(self.base_question().having(**options))

    def take_format(self, name: str) -> None:
        """Open the question with this format or, for the name AUTOMATIC, without a format."""
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
        """The current view, or the first one if the chosen view is not available."""
        return self.view if self.view in dict(self.shown_views) else self.shown_views[0][0]

    def watch_view(self) -> None:
        """Draw the new view."""
        self.views.current = self.view
        if self.history.now is None:
            return
        self.draw_view()
        self.draw_beside()
        if self.WALKS:
            self.details.scroll_home(animate=False)
            if not isinstance(self.focused, Input):
                self.action_leave()
            self.refresh_bindings()

    def action_view(self, by: int) -> None:
        """Go to the next view (1) or the previous one (-1)."""
        names = list(dict(self.shown_views))
        self.view = names[(names.index(self.shown_view) + by) % len(names)]

    # Copying, pins, and other screens.

    def code_to_pin(self, name: str) -> str:
        """Return the code (with its format) to pin as A or B; empty if there is none."""
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
        """Show the pinned numbers; called after a number was pinned."""

    def inspect(self, value: str, formats: tuple[Format, ...]) -> None:
        """Open a value in Inspect."""
        self.app.go("inspect", Question("show", (value,), formats))
