"""Windows that ask one thing: a choice from a list that typing narrows, and the list of keys."""

from __future__ import annotations

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
from floatlab.tui.widgets.drawing import Drawing

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
    Drawing {{ height: auto; max-height: 18; }}
}}
"""


class Choice(Record):
    """A row of a picker: its name, its words, and other names by which people look for it."""

    name: str
    words: str
    also: tuple[str, ...] = ()

    def rank(self, typed: str) -> int | None:
        """Say how well typed text means this: 0 by name, 1 by how a name begins, 2 by its words; None not at all."""
        names = [name.lower() for name in (self.name, *self.also)]
        if typed in names:
            return 0
        if any(name.startswith(typed) for name in names):
            return 1
        everything = " ".join((*names, self.words.lower()))
        return 2 if all(part in everything for part in typed.split()) else None


class Picker(ModalScreen[str | None]):
    """A list to choose from; what is typed narrows it. Dismissed with the name chosen, or None.

    With `free`, text that matches nothing is taken as it is: a format that follows a pattern, say.
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
        """Offer choices; the current ones are marked."""
        super().__init__()
        self._title, self._choices, self._current, self._free = title, choices, current, free

    def compose(self) -> ComposeResult:
        """Put the box to type in above the list."""
        with Vertical():
            yield Label(printable(self._title), id="title", markup=False)
            yield Input(placeholder="type to narrow", compact=True)
            # The box keeps the focus: the list is moved from there, so that both work without a tab.
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
        """Say why nothing came of a choice."""
        self.query_one("#nothing", Label).update(printable_lines(words))

    def take(self, name: str) -> None:
        """Take the choice that was made."""
        self.dismiss(name)

    def take_free(self, text: str) -> None:
        """Take text that matches nothing."""
        self.dismiss(text)

    def _fill(self, typed: str) -> None:
        wanted = typed.strip().lower()
        ranked = [(choice.rank(wanted) if wanted else 0, choice) for choice in self._choices]
        found = sorted(((rank, choice) for rank, choice in ranked if rank is not None), key=lambda each: each[0])
        options = self.query_one(OptionList)
        options.clear_options()
        options.add_options(
            Option(printable(f"{'•' if choice.name in self._current else ' '} {choice.words}"), id=choice.name)
            for _, choice in found
        )
        if found:
            marked = (i for i, (_, choice) in enumerate(found) if not wanted and choice.name in self._current)
            options.highlighted = next(marked, 0)
        nothing = "Enter takes this name as it is" if self._free else "nothing is called so"
        self.query_one("#nothing", Label).update("" if found else nothing)

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


class Help(ModalScreen[None]):
    """A page to read, closed by any of the usual keys."""

    DEFAULT_CSS = _CSS.format("Help")
    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss(None)", "Close", id="help.close")]

    def __init__(self, title: str, page: Page) -> None:
        """Show a page under a title."""
        super().__init__()
        self._title, self._page = title, page

    def compose(self) -> ComposeResult:
        """Put the page in a window."""
        with Vertical():
            yield Label(self._title, markup=False)
            yield Drawing(self._page)
            yield Label("Escape closes", id="close", markup=False)

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self.query_one(Drawing).focus()
