"""The keys that work now, on the last line. One widget: Textual's own footer is built anew at every change."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.screen import Screen

from floatlab.tui.choices import Choices
from floatlab.views.page import Role


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
            if binding.show and active.enabled and binding.action not in found:
                found[binding.action] = (key, f"{self.app.get_key_display(binding)} {binding.description}")
        self.options = tuple(found.values())

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Keep to one line: what does not fit is not shown."""
        return {name: place for name, place in super().places(width).items() if place[1] == 0}

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Set the key apart from what it does."""
        key, _, what = word.strip().partition(" ")
        style = super().pieces(name, word)[0].style or Style()
        return [Segment(f" {key}", self.app.inks[Role.CODE] + Style(bold=True) + style), Segment(f" {what} ", style)]
