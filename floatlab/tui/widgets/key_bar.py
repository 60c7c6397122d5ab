"""The keys that work now, on the last line. One widget: Textual's own footer is rebuilt at every change."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.screen import Screen
from textual.widgets import Input

from floatlab.page.model import Role
from floatlab.tui.widgets.choice_bar import ChoiceBar

_LAST = 2  # the app's own keys, which come last: the list of keys, and quitting


class KeyBar(ChoiceBar):
    """The keys of the active bindings, as many as fit; a click does what the key does."""

    DEFAULT_CSS = """
    KeyBar { height: 1; padding: 0; background: $panel; color: $foreground; }
    """

    def on_mount(self) -> None:
        """Subscribe to changes of the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self.show_keys)

    def show_keys(self, screen: Screen[object]) -> None:
        """List the keys, each action once."""
        keys: dict[str, tuple[str, str]] = {}
        for key, active in screen.active_bindings.items():
            binding = active.binding
            if binding.action == "escape" and not isinstance(screen.focused, Input):
                continue  # there is nothing to leave
            if binding.show and active.enabled and binding.action not in keys:
                keys[binding.action] = (key, f"{self.app.get_key_display(binding)} {binding.description}")
        self.options = tuple(keys.values())

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Drop keys that do not fit on one line, but never the last two."""
        options = list(self.options)
        while len(options) > _LAST and sum(len(word) + 2 for _, word in options) > width:
            del options[-1 - _LAST]
        places, x = {}, 0
        for name, word in options:
            places[name] = (x, 0, f" {word} ")
            x += len(word) + 2
        return places

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Draw the key in another style than its description."""
        key, _, description = word.strip().partition(" ")
        style = super().pieces(name, word)[0].style or Style()
        bold = self.app.inks[Role.CODE] + Style(bold=True) + style
        return [Segment(f" {key}", bold), Segment(f" {description} ", style)]
