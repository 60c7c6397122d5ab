"""Windows in front of a screen: a list of choices that can be filtered by typing, and a page to read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from floatlab.errors import printable, printable_lines
from floatlab.page.model import Page
from floatlab.record import Record
from floatlab.tui.widgets.page_view import PageView
from floatlab.tui.widgets.window import Window

_SHARE = 94  # the height of a window, in percent of the screen
_ROWS = 18  # most lines of a list
_FRAME = 4  # lines of a window for its border, its box, and the line below the list


class Pick(Record):
    """A pick list, which a key or a click opens.

    `choices` are `Choice` objects, or a mapping from names to texts. `take` is called with the chosen name. `current`
    are the marked names. If `free`, the user can also type other names. If `choices` is a mapping and `group` is not
    empty, the names are also in the command palette: "Order: serial" for the group "Order".
    """

    title: str
    choices: Mapping[str, str] | Sequence[Choice]
    take: Callable[[str], object]
    current: tuple[str, ...] = ()
    free: bool = False
    group: str = ""

    @property
    def rows(self) -> list[Choice]:
        """The choices as a list of `Choice` objects."""
        return choices_of(self.choices) if isinstance(self.choices, Mapping) else list(self.choices)


class Choice(Record):
    """A row of a picker: its name, its text, and other names for searching.

    If `quantity`, the name is a number, which is found only by all of its digits: a typed 6 should not find 64.
    """

    name: str
    text: str
    also: tuple[str, ...] = ()
    quantity: bool = False

    def rank(self, typed: str) -> int | None:
        """Return how well typed text (in lower case) matches.

        0: a name equals the typed text. 1: a name begins with the typed text. 2: the names and the text of the choice
        contain all typed words. None: no match.
        """
        names = [name.lower() for name in (self.name, *self.also)]
        if typed in names:
            return 0
        if self.quantity and any(map(str.isdigit, typed)):
            return None
        if any(name.startswith(typed) for name in names):
            return 1
        everything = " ".join((*names, self.text.lower()))
        return 2 if all(part in everything for part in typed.split()) else None


def choices_of(texts: Mapping[str, str]) -> list[Choice]:
    """Return a choice for each name and its text; the texts are aligned in a column."""
    width = max(map(len, texts), default=0)
    return [Choice(name, f"{name:<{width}}  {text}".rstrip()) for name, text in texts.items()]


class Picker(Window[str | None]):
    """A list of choices that can be filtered by typing. The window returns the chosen name; None if it is cancelled.

    If `free`, text that matches no choice is returned, for instance the name of a format such as e3m4.
    """

    INPUT: ClassVar[type[Input]] = Input
    BINDINGS = [
        Binding("escape", "dismiss(None)", "Cancel", id="picker.cancel"),
        Binding("down", "step(1)", "Next", show=False, id="picker.down"),
        Binding("up", "step(-1)", "Previous", show=False, id="picker.up"),
        Binding("pagedown", "step(8)", "Further", show=False, id="picker.further"),
        Binding("pageup", "step(-8)", "Back", show=False, id="picker.back"),
    ]
    box, rows, nothing = getters.query_one(Input), getters.query_one(OptionList), getters.query_one("#nothing", Label)

    def __init__(
        self, title: str, choices: list[Choice], current: tuple[str, ...] = (), *, free: bool = False, typed: str = ""
    ) -> None:
        """Store the choices, the names of the choices to mark (`current`), and the text in the box (`typed`)."""
        super().__init__()
        self._typed = typed
        self._title, self._choices, self.marked, self._free = title, choices, current, free

    def compose(self) -> ComposeResult:
        """Compose the input box and the list."""
        with Vertical():
            yield Label(self.app.drawn(printable(self._title)), id="title", markup=False)
            yield self.INPUT(placeholder="type to narrow", compact=True)
            # The box keeps the focus and passes on the keys of the list, so that nobody needs the tab key.
            options = OptionList(markup=False, compact=True)
            options.can_focus = False
            yield options
            yield Label("", id="nothing", markup=False)

    def on_mount(self) -> None:
        """Fill the list."""
        self._fill(self._typed)
        self.box.value = self._typed
        self.set_focus(self.box)  # at once, so that no early key is lost

    def on_resize(self) -> None:
        """Limit the height of the list to the window, so that the cursor of the list stays visible."""
        title = self.query_one("#title", Label)
        others = title.get_content_height(self.size, self.size, title.size.width or self.size.width) + _FRAME
        self.rows.styles.max_height = max(min(self.size.height * _SHARE // 100 - others, _ROWS), 1)
        self.call_after_refresh(self.rows.scroll_to_highlight)  # rows of several lines now have their places

    def offer(self, title: str, choices: list[Choice]) -> None:
        """Replace the title and the choices, and empty the input box."""
        self._choices = choices
        self.query_one("#title", Label).update(self.app.drawn(printable(title)))
        self.box.value = ""
        self._fill("")

    def say(self, words: str) -> None:
        """Show a message, such as why a choice was not accepted."""
        self.nothing.update(self.app.drawn(printable_lines(words)))

    def take(self, name: str) -> None:
        """Close the window, and return this choice."""
        self.dismiss(name)

    def take_free(self, text: str) -> None:
        """Close the window, and return the typed text, which matches no choice."""
        self.dismiss(text)

    def _fill(self, typed: str) -> None:
        wanted = typed.strip().lower()
        ranked = [(choice.rank(wanted) if wanted else 0, choice) for choice in self._choices]
        matches = sorted(((rank, choice) for rank, choice in ranked if rank is not None), key=lambda match: match[0])
        self.rows.clear_options()
        self.rows.add_options(
            Option(
                self.app.drawn(printable(f"{'•' if choice.name in self.marked else ' '} {choice.text}")), id=choice.name
            )
            for _, choice in matches
        )
        if matches:
            marked = (i for i, (_, choice) in enumerate(matches) if not wanted and choice.name in self.marked)
            self.rows.highlighted = next(marked, 0)
        nothing = "Enter uses this name" if self._free else "no choice has this name"
        self.nothing.update("" if matches else nothing)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._fill(event.value)

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        if option := self.rows.highlighted_option:
            self.take(option.id or "")
        elif self._free and event.value.strip():
            self.take_free(event.value.strip())

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.take(event.option.id or "")

    def action_step(self, rows: int) -> None:
        """Move the cursor of the list."""
        if self.rows.option_count:
            self.rows.highlighted = min(max((self.rows.highlighted or 0) + rows, 0), self.rows.option_count - 1)


class _NarrowingInput(Input):
    """An input that leaves the space key to the picker, since no name contains a space."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Return whether the box uses a key: all printable keys except space."""
        return key != "space" and super().check_consume_key(key, character)


class MarkingPicker(Picker):
    """A list to mark choices. The window returns the marked names, joined by commas, or None if it is cancelled.

    If typed text matches no choice, Enter or space adds it as a marked choice.
    """

    INPUT = _NarrowingInput
    BINDINGS = [Binding("space", "mark", "Mark", id="picker.mark", key_display="space", priority=True)]

    def __init__(self, title: str, choices: list[Choice], marked: tuple[str, ...]) -> None:
        """Store the choices and the marked names, which are added to the choices if they are missing."""
        known = {choice.name for choice in choices}
        extra = [Choice(name, name) for name in dict.fromkeys(marked) if name not in known]
        super().__init__(title, [*choices, *extra], tuple(dict.fromkeys(marked)), free=True)

    def action_mark(self) -> None:
        """Mark or unmark the choice under the cursor. Typed text that matches no choice is added."""
        if option := self.rows.highlighted_option:
            self._turn(option.id or "")
        else:
            self.take_free(self.box.value.strip())

    def _turn(self, name: str) -> None:
        others = tuple(other for other in self.marked if other != name)
        self.marked = others if name in self.marked else (*others, name)
        place = self.rows.highlighted
        self._fill(self.box.value)
        self.rows.highlighted = place

    def take(self, name: str) -> None:
        """If text was typed, mark the choice under the cursor. Otherwise, close the window with the marked choices.

        If no choice is marked, the window stays open and says so.
        """
        if self.box.value.strip():
            if name not in self.marked:
                self._turn(name)
            self.box.value = ""
        elif self.marked:
            self.dismiss(",".join(self.marked))
        else:
            self.say("nothing is marked: space marks a choice")

    def take_free(self, text: str) -> None:
        """Add typed text as a marked choice."""
        if text:
            self._choices = [*self._choices, Choice(text, text)]
            self.marked = (*self.marked, text)
            self.box.value = ""

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        event.prevent_default()
        self._turn(event.option.id or "")


class HelpWindow(Window[None]):
    """A window with a page to read."""

    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss(None)", "Close", id="help.close")]

    def __init__(self, title: str, page: Page) -> None:
        """Show a page under a title."""
        super().__init__()
        self._title, self._page = title, page

    def compose(self) -> ComposeResult:
        """Compose the title and the page."""
        with Vertical():
            yield Label(self._title, id="title", markup=False)
            yield PageView(self._page)
            yield Label("Escape closes", id="close", markup=False)

    def on_mount(self) -> None:
        """Focus the page, so that the arrows scroll it."""
        self.query_one(PageView).focus()
