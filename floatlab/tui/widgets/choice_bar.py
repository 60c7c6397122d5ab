"""A line of words for the mouse: tabs, buttons and steps. Keys do the same elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from floatlab.tui.base import ExplorerBase, WidgetMessage
from floatlab.tui.themes import CURSOR, HOVER


class ChoiceBar(Widget):
    """Words side by side, wrapped at the width; a click chooses one, and the current one is shown reversed."""

    DEFAULT_CSS = """
    ChoiceBar {
        height: auto;
        padding: 0 1;
        color: $role-label;
    }
    """

    app: ExplorerBase
    current: reactive[str] = reactive("")
    hovered: reactive[str] = reactive("")
    options: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)  # name and word

    @dataclass
    class Chosen(WidgetMessage):
        """A word was clicked."""

        name: str

    def __init__(self, options: tuple[tuple[str, str], ...] = (), current: str = "", *, id: str | None = None) -> None:
        """Show the words of (name, word) pairs."""
        super().__init__(id=id)
        self.set_reactive(ChoiceBar.options, options)
        self.set_reactive(ChoiceBar.current, current)

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Return the column, the line and the padded word of each option."""
        places, x, y = {}, 0, 0
        for name, word in self.options:
            padded = f" {word} "
            if x and x + len(padded) > width:
                x, y = 0, y + 1
            places[name] = (x, y, padded)
            x += len(padded)
        return places

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the width of all words on one line."""
        return sum(len(word) + 2 for _, word in self.options)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return how many lines the words need."""
        return 1 + max((y for _, y, _ in self.places(width).values()), default=0)

    def render_line(self, y: int) -> Strip:
        """Draw one line."""
        pieces: list[Segment] = []
        for name, (_, row, word) in self.places(self.content_size.width).items():
            if row == y:
                pieces += self.pieces(name, word)
        return Strip(pieces).adjust_cell_length(self.content_size.width).apply_style(self.rich_style)

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Draw one word."""
        return [Segment(word, CURSOR if name == self.current else HOVER if name == self.hovered else None)]

    def _name_at(self, event: events.MouseEvent) -> str:
        offset = event.get_content_offset(self)
        if offset is None:
            return ""
        places = self.places(self.content_size.width).items()
        return next((n for n, (x, y, word) in places if y == offset.y and x <= offset.x < x + len(word)), "")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark the word under the mouse."""
        self.hovered = self._name_at(event)

    def on_leave(self) -> None:
        """Unmark the word when the mouse leaves."""
        self.hovered = ""

    def on_click(self, event: events.Click) -> None:
        """Choose the word that was clicked."""
        if name := self._name_at(event):
            event.stop()
            self.post_message(self.Chosen(self, name))
