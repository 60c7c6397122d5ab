"""Panes: parts of a screen, which have frames if there is room.

One pane can be shown at full size. A wide screen has another pane, which shows a second topic beside the current view.
"""

from __future__ import annotations

from typing import TypeVar

from textual import on
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget

from floatlab.page.model import Page
from floatlab.tui.screens.way_back import ReturnScreen
from floatlab.tui.widgets import PageView

_FRAMED = (116, 30)  # panes have frames if the screen has at least this many columns and lines
_TWO_TOPICS = (156, 40)  # a second topic is shown if the screen has at least this many columns and lines

Shown = TypeVar("Shown", bound=Widget)


def pane(widget: Shown, title: str = "") -> Shown:
    """Make a widget a pane with a title, and return it."""
    widget.add_class("pane")
    widget.border_title = title
    return widget


class Beside(PageView):
    """The pane with the second topic of a wide screen."""

    DEFAULT_CSS = """
    Beside { width: 2fr; height: 1fr; display: none; }
    """


class PaneScreen(ReturnScreen, inherit_bindings=False):
    """A screen of panes."""

    ALLOW_IN_MAXIMIZED_VIEW = "#complaint, #key-bar"
    ESCAPE_TO_MINIMIZE = False  # the screen's own action does it
    DEFAULT_CSS = """
    PaneScreen {
        .pane { border-title-color: $role-label; border-title-style: bold; border-subtitle-color: $role-label; }
        &.-framed .pane { border: round $border-blurred !important; }
        &.-framed .pane:focus-within { border: round $primary !important; border-title-color: $primary; }
        .pane.-maximized { height: 1fr !important; width: 1fr !important; max-height: 100% !important; }
    }
    """

    # Methods that a subclass may override.

    def beside(self) -> tuple[str, Page] | None:
        """Return the title and the page of the second topic; None if there is none now."""
        return None

    # Sizes.

    def set_sizes(self, size: Size) -> None:
        """Set the classes that depend on the size of the terminal."""
        # Textual sets the classes of its breakpoints too late for the first frame.
        for name, (columns, lines) in (("-framed", _FRAMED), ("-two-topics", _TWO_TOPICS)):
            self.set_class(size.width >= columns and size.height >= lines, name)

    @on(Resize)
    def _resized(self, event: Resize) -> None:
        """Show or hide frames and the second topic."""
        self.set_sizes(event.size)
        self.draw_beside()

    def draw_beside(self) -> None:
        """Show the second topic, if there is room for it."""
        for view in self.query(Beside):
            shown = self.beside() if self.has_class("-two-topics") and self.answers else None
            view.display = shown is not None
            if shown is not None:
                view.border_title, view.page = shown

    # One pane at full size.

    def action_zoom(self) -> None:
        """Show the pane with the focus at full size, or all panes again."""
        if self.maximized is not None:
            self.minimize()
            return
        panes = [widget for widget in self.query(".pane") if widget.display and widget.region]
        focused = self.focused
        chain = [] if focused is None else [focused, *focused.ancestors]
        self.maximized = next((widget for widget in chain if widget in panes), panes[0] if panes else None)

    def unzoom(self) -> bool:
        """Show all panes again; return False if no pane is at full size."""
        if self.maximized is None:
            return False
        self.minimize()
        return True
