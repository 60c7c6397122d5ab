"""A line of clickable words: tabs, buttons, steps, and the keys that are active now."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.reactive import reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from floatlab.page.model import Role
from floatlab.tui.base import ExplorerBase
from floatlab.tui.themes import HOVER

_SHORTER = "Arithmetic", "Arith"  # the longest name of a tab, and its short form for narrow terminals
_LAST = 2  # how many of the last keys are always shown: the list of keys, and quitting


def _places(options: Iterable[tuple[str, str]], width: int) -> dict[str, tuple[int, int, str]]:
    """Return the column, the line and the padded word of each option."""
    places, x, y = {}, 0, 0
    for name, word in options:
        padded = f" {word} "
        if x and x + len(padded) > width:
            x, y = 0, y + 1
        places[name] = (x, y, padded)
        x += len(padded)
    return places


class ChoiceBar(Widget):
    """Words side by side, wrapped at the width; the current word is highlighted.

    A click on a word passes its name to `take`.
    """

    DEFAULT_CSS = """
    ChoiceBar { height: auto; padding: 0 1; color: $role-label; }
    """

    app: ExplorerBase
    current: reactive[str] = reactive("")
    hovered: reactive[str] = reactive("")
    options: reactive[tuple[tuple[str, str], ...]] = reactive((), layout=True)  # pairs of name and word

    def __init__(
        self,
        take: Callable[[str], object],
        options: tuple[tuple[str, str], ...] = (),
        current: str = "",
        *,
        id: str | None = None,
    ) -> None:
        """Show the word of each (name, word) pair in `options`. `take` is called with the name of a clicked word."""
        super().__init__(id=id)
        self._take = take
        self.set_reactive(ChoiceBar.options, self.validate_options(options))
        self.set_reactive(ChoiceBar.current, current)

    def validate_options(self, options: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        """Return the options, with the words in characters that this terminal can show."""
        return tuple((name, self.app.drawn(word)) for name, word in options)

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Return the column, the line and the padded word of each option."""
        return _places(self.options, width)

    def get_content_width(self, container: Size, viewport: Size) -> int:
        """Return the width that all words need on one line."""
        return sum(len(word) + 2 for _, word in self.options)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines that the words need."""
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
        tab = self.app.chrome.tab
        return [Segment(word, tab if name == self.current else HOVER if name == self.hovered else None)]

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
        """Choose the clicked word."""
        if name := self._name_at(event):
            event.stop()
            self.call_next(self._take, name)


class ButtonBar(ChoiceBar):
    """Buttons side by side: words with a background colour, or with brackets if the theme's `Chrome` is plain.

    `Chrome`, in `floatlab.tui.themes`, has the styles of buttons.
    """

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Draw one button. Its edges replace the spaces around the word."""
        chrome, inner = self.app.chrome, word[1:-1]
        over = HOVER if name == self.hovered else Style()
        if chrome.plain:
            return [Segment("["), Segment(inner, chrome.pressed if name == self.current else over), Segment("]")]
        style = chrome.pressed if name == self.current else chrome.button
        edge = Style(color=style.bgcolor)
        return [Segment("▐", edge), Segment(inner, style + over), Segment("▌", edge)]


class TabBar(ChoiceBar):
    """The tabs of the screens, each with the function key that opens it, beginning with F2."""

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Return the column, the line and the word of each tab.

        If the tabs are wider than `width`, only one space separates them. The longest name is shortened if all tabs
        then fit on one line.
        """
        keyed = [(name, f"F{number} {word}") for number, (name, word) in enumerate(self.options, 2)]
        if sum(len(word) + 2 for _, word in keyed) <= width:
            return _places(keyed, width)
        shorter = [(name, word.replace(*_SHORTER)) for name, word in keyed]
        if sum(len(word) + 1 for _, word in shorter) - 1 <= width:
            keyed = shorter
        places, x, y = {}, 0, 0
        for name, word in keyed:
            if x and x + len(word) > width:
                x, y = 0, y + 1
            places[name] = (x, y, word)
            x += len(word) + 1
        return places

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Draw the key and the name in different styles, with at least one space between tabs."""
        style = super().pieces(name, word)[0].style or Style()
        cut = word.index(" ", 1)
        key = style if name == self.current else self.app.inks[Role.CODE] + style
        return [Segment(word[:cut], key), Segment(word[cut:], style), *([] if word[0] == " " else [Segment(" ")])]


class KeyBar(ChoiceBar):
    """The active keys, as many as fit. The bar replaces Textual's footer, which is slower."""

    DEFAULT_CSS = """
    KeyBar { height: 1; padding: 0; background: $panel; color: $foreground; }
    """

    said: reactive[str] = reactive("")  # a message in place of the keys

    _end: Timer | None = None  # ends the message

    def say(self, words: str, seconds: float) -> None:
        """Show a message for some seconds in place of the keys."""
        if self._end is not None:
            self._end.stop()
        self.said = self.app.drawn(words)
        self._end = self.set_timer(seconds, self._say_nothing)

    def _say_nothing(self) -> None:
        self.said = ""

    def render_line(self, y: int) -> Strip:
        """Draw the message, or the keys."""
        if not self.said:
            return super().render_line(y)
        width = self.content_size.width
        words = self.said if cell_len(self.said) < width else f"{set_cell_size(self.said, width - 2)}…"
        strip = Strip([Segment(f" {words}", Style(bold=True))])
        return strip.adjust_cell_length(width).apply_style(self.rich_style)

    def on_mount(self) -> None:
        """Subscribe to changes of the key bindings."""
        self.screen.bindings_updated_signal.subscribe(self, self.show_keys)

    def show_keys(self, screen: Screen[object]) -> None:
        """List one key for each action that is shown in the bar.

        First come the keys that stop or restart a computation. The key that goes back comes next, if it has an effect.
        """
        keys: dict[str, tuple[str, str]] = {}
        is_working = getattr(screen, "is_working", False)
        for key, active in screen.active_bindings.items():
            binding, words = active.binding, active.binding.description
            if binding.action == "escape":
                if not is_working and not isinstance(screen.focused, Input):
                    continue  # there is no box to leave
                words = "Stop" if is_working else words
            if binding.show and active.enabled and binding.action not in keys:
                keys[binding.action] = (key, f"{self.app.get_key_display(binding)} {words}")
        back = keys.pop("app.go_back", None)
        urgent = ["escape"] if is_working else ["again"]
        first = [keys.pop(action) for action in urgent if action in keys]
        first += [back] if back is not None and self.app.has_drilled else []
        self.options = (*first, *keys.values())

    def places(self, width: int) -> dict[str, tuple[int, int, str]]:
        """Return the position and the word of each key that fits on one line; the last two keys are never left out."""
        options = list(self.options)
        while len(options) > _LAST and sum(len(word) + 2 for _, word in options) > width:
            del options[-1 - _LAST]
        return _places(options, 1 << 16)

    def pieces(self, name: str, word: str) -> list[Segment]:
        """Draw the key and its description in different styles."""
        key, _, description = word.strip().partition(" ")
        style = super().pieces(name, word)[0].style or Style()
        bold = self.app.inks[Role.CODE] + Style(bold=True) + style
        return [Segment(f" {key}", bold), Segment(f" {description} ", style)]
