"""What all screens share: the frame around an answer, boxes, formats and rules, views, copying and pins."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.reactive import reactive
from textual.screen import Screen
from textual.widgets import Input, Static

from floatlab.errors import FloatlabError, printable_lines
from floatlab.formats import CATALOG, parse_format
from floatlab.formats.names import short_name
from floatlab.page.model import Page, joined
from floatlab.page.svg import to_svg
from floatlab.page.text import to_text
from floatlab.tui.app.registry import TASKS
from floatlab.tui.screens.asking import Asking
from floatlab.tui.widgets.boxes import is_wrong
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.key_bar import Foot
from floatlab.tui.widgets.pickers import Choice, Picker
from floatlab.verbs.edits import code_of
from floatlab.verbs.question import Question
from floatlab.verbs.registry import command_of
from floatlab.verbs.rules import RULES, context_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, ClassVar

    from textual.widget import Widget

    from floatlab.formats import Format

# How people speak of directions besides.
_SPOKEN = {
    "rounding-RNE": ("nearest even default",),
    "rounding-RTZ": ("truncate chop",),
    "rounding-RTP": ("up ceiling",),
    "rounding-RTN": ("down floor",),
    "rounding-SR": ("random",),
}


class Task(Asking, inherit_bindings=False):
    """A screen over one question. A subclass composes its body, draws answers, and names its verbs in TASKS."""

    PLACE = ""  # what the list of keys calls it
    VIEWS: ClassVar[tuple[tuple[str, str], ...]] = ()  # pages to choose from, by name and title
    ROUNDS = True  # whether a rule of rounding changes anything here
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (116, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (22, "-high")]
    # A subclass puts its own keys before these, since a narrow footer shows the first ones only.
    SHARED = [
        Binding("slash", "value", "Value", id="value", key_display="/", tooltip="Type over the value, or the array"),
        Binding("v", "view(1)", "View", id="view", tooltip="Next view"),
        Binding("V", "view(-1)", "View before", id="view.last", show=False),
        Binding("f", "format", "Format", id="format"),
        Binding("r", "rules", "Rounding", id="rules"),
        Binding("u", "undo", "Undo", id="undo"),
        Binding("U,ctrl+r", "redo", "Redo", id="redo", show=False),
        Binding("y", "copy('value')", "Copy", id="copy.value", tooltip="Copy the value"),
        Binding("Y", "copy('command')", "Copy the command that prints this", id="copy.command", show=False),
        Binding("c", "copies", "Copy …: choose what", id="copies", show=False),
        Binding("a", "pin('A')", "Pin A", id="pin.a", show=False),
        Binding("b", "pin('B')", "Pin B", id="pin.b", show=False),
        Binding("escape", "escape", "Leave the box", id="leave"),
        *Screen.BINDINGS,
    ]
    DEFAULT_CSS = """
    Task {
        layout: vertical;
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

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        if self.VIEWS:
            self.set_reactive(Task.view, self.VIEWS[0][0])

    # What a subclass is.

    def compose_task(self) -> ComposeResult:
        """Compose what stands between the head line and the foot."""
        yield from ()

    def draw_view(self) -> None:
        """Show the view that was chosen."""

    def page(self) -> Page:
        """Return the whole page: what the command line would print."""
        return joined([answer.page() for answer in self.answers])

    def subject(self) -> Any:
        """Return the datum that copying and pinning mean, or None."""
        results = [datum for answer in self.answers for datum in answer.results]
        return results[0] if results else None

    def with_format(self, question: Question, format: Format) -> Question:
        """Return the question with a format that was picked."""
        return question.replace(formats=(format,))

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Return what the palette offers here besides: name, help, and what to do."""
        yield from ()

    # What all of them do.

    @property
    def small(self) -> bool:
        """Whether there is little room."""
        # The classes of the screen come too late for its first picture.
        width, height = self.app.size
        return width < self.HORIZONTAL_BREAKPOINTS[1][0] or height < self.VERTICAL_BREAKPOINTS[1][0]

    def compose(self) -> ComposeResult:
        """Put the body between head and foot.

        The first question is answered before, so that the first frame has its rows, unless that takes long; one that
        has become impossible gives way to the screen's own start.
        """
        self.begin()
        yield Choices(self._head(), self.NAME, id="head")
        yield from self.compose_task()
        yield Foot(id="foot")

    def _head(self) -> tuple[tuple[str, str], ...]:
        rules = (("rules", context_words(self.question.context)),) if self.ROUNDS else ()
        return (*((entry.name, entry.title) for entry in TASKS.values()), *rules)

    def show_frame(self) -> None:
        """Show the rule of rounding, and the keys that work now."""
        self.query_one("#head", Choices).options = self._head()
        self.refresh_bindings()

    def complain(self, words: str, hint: bool = False) -> None:
        """Say what is wrong, or a hint; nothing clears the line."""
        complaint = self.query_one("#complaint", Static)
        complaint.update(printable_lines(words if hint else f"! {words}"))
        complaint.set_class(bool(words), "-shown")
        complaint.set_class(hint, "-hint")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what cannot be done now."""
        if action == "undo":
            return self.history.can_undo
        if action == "redo":
            return self.history.can_redo
        if action == "rules":
            return self.ROUNDS
        if action == "view":
            return bool(self.VIEWS)
        return True

    def boxes(self) -> Iterator[Widget]:
        """Return the boxes to type in, the one that `/` goes to first."""
        yield from self.query("Input")

    def home(self) -> Iterator[Widget]:
        """Return the widgets that take the focus when a box gives it up, the best first."""
        yield from self.query("BitRow, Drawing")

    def action_value(self) -> None:
        """Go to the box that takes a value."""
        for box in self.boxes():
            box.focus()
            return

    def action_escape(self) -> None:
        """Stop the work that is not done yet, else take a complaint as read and leave a box."""
        if self.errand is None:
            self.complain("")
        super().action_escape()

    def leave(self) -> None:
        """Leave a box."""
        self.action_leave()

    def action_leave(self) -> None:
        """Leave a box."""
        for widget in self.home():
            if widget.can_focus and widget.display:
                widget.focus(scroll_visible=False)  # who leaves a box stays where it was
                return

    def action_format(self) -> None:
        """Pick a format."""
        self.pick_format()

    def pick_format(self, before: tuple[Choice, ...] = ()) -> None:
        """Offer the formats that have names, and take any other name."""
        self.app.push_screen(self.format_picker(before), self.picked_format)

    def format_picker(self, before: tuple[Choice, ...] = ()) -> Picker:
        """Return a list of the formats that have names, which takes any other name."""
        rows = [
            Choice(row.format.name, f"{row.format.name:<12} {row.purpose}", (short_name(row.format), *row.aliases))
            for row in CATALOG
        ]
        current = tuple(format.name for format in self.question.formats)
        return Picker("Format, or any e<W>m<T> name", [*before, *rows], current, free=True)

    def picked_format(self, name: str | None) -> None:
        """Take a format by its name."""
        if name is None:
            return
        try:
            format = parse_format(name)
        except FloatlabError as error:
            self.complain(str(error))
        else:
            self.open(self.with_format(self.question, format))

    def action_rules(self) -> None:
        """Pick a direction of rounding, or another rule."""
        rows = [Choice(rule.name, f"{rule.group}: {rule.words}", _SPOKEN.get(rule.name, ())) for rule in RULES]
        current = tuple(rule.name for rule in RULES if rule.holds(self.question.context))
        self.app.push_screen(Picker("Rounding and what happens at the edges", rows, current), self.set_rule)

    def set_rule(self, name: str | None) -> None:
        """Take a rule of RULES by its name."""
        for rule in RULES:
            if rule.name == name:
                self.open(self.question.replace(context=rule.apply(self.question.context)))

    # Views, and boxes to type in.

    def watch_view(self) -> None:
        """Draw another view."""
        self.query_one("#views", Choices).current = self.view
        if self.history.now is not None:
            self.draw_view()

    @on(Choices.Chosen, "#views")
    def _view_chosen(self, event: Choices.Chosen) -> None:
        self.view = event.name

    def action_view(self, by: int) -> None:
        """Go on to the next view."""
        names = [name for name, _ in self.VIEWS]
        self.view = names[(names.index(self.view) + by) % len(names)]

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        """Leave a box whose text is right; one that is wrong keeps the words that say why."""
        if not is_wrong(event.input):
            self.action_leave()

    @on(Input.Blurred)
    def _blurred(self, event: Input.Blurred) -> None:
        """Give a box that was left with a mistake the last good value back."""
        self.history.settle()
        if is_wrong(event.input):
            self.open(self.question)

    @on(Choices.Chosen, "#head")
    def _head_chosen(self, event: Choices.Chosen) -> None:
        if event.name == "rules":
            self.action_rules()
        else:
            self.app.go(event.name)

    @on(Choices.Chosen, "#foot")
    async def _key_chosen(self, event: Choices.Chosen) -> None:
        if (active := self.active_bindings.get(event.name)) is not None:
            await self.app.run_action(active.binding.action, active.node)

    # Copying and pinning.

    def copies(self) -> dict[str, tuple[str, Callable[[], str]]]:
        """Return what can be copied: by name, the words for it and the text."""
        return {
            "value": ("the value", lambda: "\n".join(word for answer in self.answers for word in answer.words())),
            "code": ("the code", lambda: "\n".join(code for answer in self.answers for code in answer.codes())),
            "command": ("the command that prints this", lambda: command_of(self.question)),
            "text": ("the page as text", lambda: to_text(self.page())),
            "svg": ("the page as a picture (SVG)", lambda: to_svg(self.page())),
        }

    def action_copy(self, name: str) -> None:
        """Copy something of `copies`."""
        words, text = self.copies()[name]
        self.app.copy(text(), words)

    def action_copies(self) -> None:
        """Choose what to copy."""
        rows = [Choice(name, words) for name, (words, _) in self.copies().items()]
        self.app.push_screen(Picker("Copy", rows), lambda name: self.action_copy(name) if name else None)

    def action_pin(self, name: str) -> None:
        """Keep the number in sight as A or B."""
        datum = self.subject()
        if datum is None:
            self.notify("There is no number here to pin", severity="warning")
            return
        self.app.pins[name] = code_of(datum)
        self.notify(f"{name} is {code_of(datum)}" + self._both(), timeout=3)
        self.pinned()

    def _both(self) -> str:
        return "; Inspect compares A and B" if len(self.app.pins) == 2 and self.NAME != "inspect" else ""

    def pinned(self) -> None:
        """Show what has been pinned."""
