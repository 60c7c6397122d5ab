"""A picker of several choices: space marks one, Enter takes those that are marked."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Input, OptionList

from floatlab.tui.widgets.pickers import Choice, Picker


class _NarrowingInput(Input):
    """An input that leaves the space key to the picker; no name contains a space."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Consume every printable key but space."""
        return key != "space" and super().check_consume_key(key, character)


class MarkingPicker(Picker):
    """A list in which any number of choices can be marked. Dismissed with their names, joined by commas, or with None.

    Enter or space adds text that matches nothing as a marked choice.
    """

    BINDINGS = [Binding("space", "mark", "Mark", id="picker.mark", key_display="space", priority=True)]

    def __init__(self, title: str, choices: list[Choice], marked: tuple[str, ...]) -> None:
        """Offer choices, with some of them marked; marked names that are not among the choices are added."""
        known = {choice.name for choice in choices}
        extra = [Choice(name, name) for name in dict.fromkeys(marked) if name not in known]
        super().__init__(title, [*choices, *extra], tuple(dict.fromkeys(marked)), free=True)

    def compose(self) -> ComposeResult:
        """Compose the picker with an input that leaves the space key alone."""
        for widget in super().compose():
            yield _NarrowingInput(placeholder=widget.placeholder, compact=True) if type(widget) is Input else widget

    @property
    def marked(self) -> tuple[str, ...]:
        """The marked names, in the order in which they were marked."""
        return self._current

    def action_mark(self) -> None:
        """Mark or unmark the choice under the cursor; add typed text that matches nothing."""
        options = self.query_one(OptionList)
        if options.highlighted is None or not options.option_count:
            self.take_free(self.query_one(Input).value.strip())
            return
        self._turn(options.get_option_at_index(options.highlighted).id or "")

    def _turn(self, name: str) -> None:
        marked = self._current
        self._current = tuple(other for other in marked if other != name) if name in marked else (*marked, name)
        options = self.query_one(OptionList)
        place = options.highlighted
        self._fill(self.query_one(Input).value)
        options.highlighted = place

    def take(self, name: str) -> None:
        """Take the marked choices; after typing, mark the choice that was found instead."""
        if self.query_one(Input).value.strip():
            if name not in self._current:
                self._turn(name)
            self.query_one(Input).value = ""
        elif self._current:
            self.dismiss(",".join(self._current))
        else:
            self.say("none is marked: space marks one")

    def take_free(self, text: str) -> None:
        """Add typed text as a marked choice."""
        if text:
            self._choices = [*self._choices, Choice(text, text)]
            self._current = (*self._current, text)
            self.query_one(Input).value = ""

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        event.prevent_default()
        self._turn(event.option.id or "")
