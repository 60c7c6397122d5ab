"""Windows above a screen: a list to choose from, which typing narrows, and a page to read."""

from __future__ import annotations

from collections.abc import Mapping

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from floatlab.errors import printable, printable_lines
from floatlab.page.model import Page
from floatlab.record import Record
from floatlab.tui.widgets.page_view import PageView

_CSS = """
{0} {{
    align: center middle;
    & > Vertical {{
        width: 64;
        max-width: 96%;
        height: auto;
        max-height: 94%;
        background: $surface;
        border: round $primary;
        padding: 0 1;
    }}
    Label {{ text-style: bold; width: 1fr; }}
    #nothing {{ text-style: none; color: $role-label; }}
    Input {{ margin: 0; }}
    OptionList {{ height: auto; max-height: 18; border: none; padding: 0; background: $surface; }}
    PageView {{ height: auto; max-height: 18; }}
}}
"""


class Choice(Record):
    """A row of a picker: its name, its text, and other names by which people look for it."""

    name: str
    text: str
    also: tuple[str, ...] = ()

    def rank(self, typed: str) -> int | None:
        """Return how well typed text matches: 0 a name, 1 how one begins, 2 words of the text, None not at all."""
        names = [name.lower() for name in (self.name, *self.also)]
        if typed in names:
            return 0
        if any(name.startswith(typed) for name in names):
            return 1
        everything = " ".join((*names, self.text.lower()))
        return 2 if all(part in everything for part in typed.split()) else None


def choices_of(texts: Mapping[str, str]) -> list[Choice]:
    """Return a choice for each name, its text in a column beside it."""
    width = max(map(len, texts), default=0)
    return [Choice(name, f"{name:<{width}}  {text}".rstrip()) for name, text in texts.items()]


class Picker(ModalScreen[str | None]):
    """A list to choose from, which typing narrows. Dismissed with the name chosen, or with None.

    With `free`, text that matches no choice is taken as a name: a format that follows a pattern, say.
    """

    DEFAULT_CSS = _CSS.format("Picker")
    BINDINGS = [
        Binding("escape", "dismiss(None)", "Cancel", id="picker.cancel"),
        Binding("down", "step(1)", "Next", show=False, id="picker.down"),
        Binding("up", "step(-1)", "Previous", show=False, id="picker.up"),
        Binding("pagedown", "step(8)", "Further", show=False, id="picker.further"),
        Binding("pageup", "step(-8)", "Back", show=False, id="picker.back"),
    ]

    def __init__(self, title: str, choices: list[Choice], current: tuple[str, ...] = (), *, free: bool = False) -> None:
        """Offer choices, with the current ones marked."""
        super().__init__()
        self._title, self._choices, self._current, self._free = title, choices, current, free

    def compose(self) -> ComposeResult:
        """Compose the box to type in, and the list."""
        with Vertical():
            yield Label(printable(self._title), id="title", markup=False)
            yield Input(placeholder="type to narrow", compact=True)
            # The box keeps the focus and its keys move the list, so that no tab is needed.
            options = OptionList(markup=False, compact=True)
            options.can_focus = False
            yield options
            yield Label("", id="nothing", markup=False)

    def on_mount(self) -> None:
        """Fill the list."""
        self._fill("")
        self.query_one(Input).focus()

    def offer(self, title: str, choices: list[Choice]) -> None:
        """Offer other choices."""
        self._choices = choices
        self.query_one("#title", Label).update(printable(title))
        self.query_one(Input).value = ""
        self._fill("")

    def say(self, words: str) -> None:
        """Say why a choice was not taken."""
        self.query_one("#nothing", Label).update(printable_lines(words))

    def take(self, name: str) -> None:
        """Take a choice."""
        self.dismiss(name)

    def take_free(self, text: str) -> None:
        """Take text that matches nothing."""
        self.dismiss(text)

    def _fill(self, typed: str) -> None:
        wanted = typed.strip().lower()
        ranked = [(choice.rank(wanted) if wanted else 0, choice) for choice in self._choices]
        matches = sorted(((rank, choice) for rank, choice in ranked if rank is not None), key=lambda match: match[0])
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            Option(printable(f"{'•' if choice.name in self._current else ' '} {choice.text}"), id=choice.name)
            for _, choice in matches
        )
        if matches:
            marked = (i for i, (_, choice) in enumerate(matches) if not wanted and choice.name in self._current)
            options.highlighted = next(marked, 0)
        nothing = "Enter takes this name as it is" if self._free else "nothing is called so"
        self.query_one("#nothing", Label).update("" if matches else nothing)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self._fill(event.value)

    @on(Input.Submitted)
    def _take(self, event: Input.Submitted) -> None:
        options = self.query_one(OptionList)
        if options.highlighted is not None and options.option_count:
            self.take(options.get_option_at_index(options.highlighted).id or "")
        elif self._free and event.value.strip():
            self.take_free(event.value.strip())

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.take(event.option.id or "")

    def action_step(self, rows: int) -> None:
        """Move over the list."""
        options = self.query_one(OptionList)
        if options.option_count:
            now = options.highlighted if options.highlighted is not None else 0
            options.highlighted = min(max(now + rows, 0), options.option_count - 1)


class HelpWindow(ModalScreen[None]):
    """A page to read."""

    DEFAULT_CSS = _CSS.format("HelpWindow")
    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss(None)", "Close", id="help.close")]

    def __init__(self, title: str, page: Page) -> None:
        """Show a page under a title."""
        super().__init__()
        self._title, self._page = title, page

    def compose(self) -> ComposeResult:
        """Compose the title and the page."""
        with Vertical():
            yield Label(self._title, markup=False)
            yield PageView(self._page)
            yield Label("Escape closes", id="close", markup=False)

    def on_mount(self) -> None:
        """Focus the page, so that the arrows scroll it."""
        self.query_one(PageView).focus()
