"""A line of words to choose from: tabs, buttons and steps, all alike, for the mouse; keys do the same elsewhere."""

from __future__ import annotations

from rich.segment import Segment
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from floatlab.tui.app.themes import CURSOR, HOVER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.tui.app.app import Explorer


class Choices(Widget):
    """Words side by side, wrapped where they must be; a click chooses one. The current one is reversed."""

    DEFAULT_CSS = """
    Choices {
        height: auto;
        padding: 0 1;
        color: $role-label;
    }
    """

    app: Explorer
    current: reactive[str] = reactive("")
    hovered: reactive[str] = reactive("")
    options: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)  # name and word

    class Chosen(Message):
        """A word was clicked."""

        def __init__(self, choices: Choices, name: str) -> None:
            """Name the word."""
            super().__init__()
            self.choices, self.name = choices, name

        @property
        def control(self) -> Choices:
            """The line of words, for `on` selectors."""
            return self.choices

    def __init__(self, options: tuple[tuple[str, str], ...] = (), current: str = "", *, id: str | None = None) -> None:
        """Show the words of (name, word) pairs."""
        super().__init__(id=id)
        self.set_reactive(Choices.options, options)
        self.set_reactive(Choices.current, current)

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Return the column, the line and the padded word of each option."""
        found, x, y = {}, 0, 0
        for name, word in self.options:
            padded = f" {word} "
            if x and x + len(padded) > width:
                x, y = 0, y + 1
            found[name] = (x, y, padded)
            x += len(padded)
        return found

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Ask for one line's room."""
        return sum(len(word) + 2 for _, word in self.options)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Ask for the lines that the words need."""
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

    def _named(self, event: events.MouseEvent) -> str:
        offset = event.get_content_offset(self)
        if offset is None:
            return ""
        places = self.places(self.content_size.width).items()
        return next((n for n, (x, y, word) in places if y == offset.y and x <= offset.x < x + len(word)), "")

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show what a click would choose."""
        self.hovered = self._named(event)

    def on_leave(self) -> None:
        """Show nothing any more."""
        self.hovered = ""

    def on_click(self, event: events.Click) -> None:
        """Choose the word that was clicked."""
        if name := self._named(event):
            event.stop()
            self.post_message(self.Chosen(self, name))
