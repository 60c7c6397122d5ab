"""The keys that work now, on the last line. One widget: Textual's own footer is built anew at every change."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.screen import Screen
from textual.widgets import Input

from floatlab.page.model import Role
from floatlab.tui.widgets.choices import Choices

_LAST = 2  # the app's own keys, which come last: the list of keys, and the way out


class Foot(Choices):
    """The keys of the active bindings, as many as fit; a click does what the key does."""

    DEFAULT_CSS = """
    Foot { height: 1; padding: 0; background: $panel; color: $foreground; }
    """

    def on_mount(self) -> None:
        """Follow the bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self.show_keys)

    def show_keys(self, screen: Screen[object]) -> None:
        """Name the keys, each action once."""
        found: dict[str, tuple[str, str]] = {}
        for key, active in screen.active_bindings.items():
            binding = active.binding
            if binding.action == "escape" and not isinstance(screen.focused, Input):
                continue  # there is nothing to leave
            if binding.show and active.enabled and binding.action not in found:
                found[binding.action] = (key, f"{self.app.get_key_display(binding)} {binding.description}")
        self.options = tuple(found.values())

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Keep to one line: what does not fit is not shown, but how to learn the keys and how to leave is."""
        options = list(self.options)
        while len(options) > _LAST and sum(len(word) + 2 for _, word in options) > width:
            del options[-1 - _LAST]
        found, x = {}, 0
        for name, word in options:
            found[name] = (x, 0, f" {word} ")
            x += len(word) + 2
        return found

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Set the key apart from what it does."""
        key, _, what = word.strip().partition(" ")
        style = super().pieces(name, word)[0].style or Style()
        return [Segment(f" {key}", self.app.inks[Role.CODE] + Style(bold=True) + style), Segment(f" {what} ", style)]
