"""A picker in which several can be marked: space marks, Enter takes what is marked."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, OptionList

from floatlab.tui.widgets.pickers import Choice, Picker


class _NarrowingInput(Input):
    """An input that leaves space to what it is in: no name has one."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Take all that can be typed, but space."""
        return key != "space" and super().check_consume_key(key, character)


class Marking(Picker):
    """A list in which any number can be marked. Dismissed with their names and commas between, or None.

    Text that matches nothing is added, and marked, by Enter or space.
    """

    BINDINGS = [Binding("space", "mark", "Mark", id="picker.mark", key_display="space", priority=True)]

    def __init__(self, title: str, choices: list[Choice], marked: tuple[str, ...]) -> None:
        """Offer choices, some of which are marked already; marked ones that are no choice are added."""
        known = {each.name for each in choices}
        extra = [Choice(name, name) for name in dict.fromkeys(marked) if name not in known]
        super().__init__(title, [*choices, *extra], tuple(dict.fromkeys(marked)), free=True)

    def compose(self) -> ComposeResult:
        """Let the box leave space to the list."""
        for widget in super().compose():
            yield _NarrowingInput(placeholder=widget.placeholder, compact=True) if type(widget) is Input else widget

    @property
    def marked(self) -> tuple[str, ...]:
        """The names that are marked, in the order in which they were."""
        return self._current

    def action_mark(self) -> None:
        """Mark the choice under the cursor, or take its mark away; add what was typed where it matches nothing."""
        options = self.query_one(OptionList)
        if options.highlighted is None or not options.option_count:
            self.take_free(self.query_one(Input).value.strip())
            return
        self._turn(options.get_option_at_index(options.highlighted).id or "")

    def _turn(self, name: str) -> None:
        here = self._current
        self._current = tuple(each for each in here if each != name) if name in here else (*here, name)
        options = self.query_one(OptionList)
        place = options.highlighted
        self._fill(self.query_one(Input).value)
        options.highlighted = place

    def take(self, name: str) -> None:
        """Take what is marked; after typing, the choice that was found is marked first."""
        if self.query_one(Input).value.strip():
            if name not in self._current:
                self._turn(name)
            self.query_one(Input).value = ""
        elif self._current:
            self.dismiss(",".join(self._current))
        else:
            self.say("none is marked: space marks one")

    def take_free(self, text: str) -> None:
        """Add what was typed, marked."""
        if text:
            self._choices = [*self._choices, Choice(text, text)]
            self._current = (*self._current, text)
            self.query_one(Input).value = ""

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        event.prevent_default()
        self._turn(event.option.id or "")
