"""Panes: parts of a screen, with frames if there is room. The user can enlarge one to full size.

On a large screen, additional panes show further topics beside or below the current view. A topic is a title and a page.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import ClassVar, TypeAlias, TypeVar

from textual import on
from textual.containers import Vertical
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget

from floatlab.page.model import Page
from floatlab.tui.screens.way_back import ReturnScreen
from floatlab.tui.widgets import PageView

_FRAMED = (116, 30)  # panes have frames if the screen has at least this many columns and lines
# From these numbers of columns and lines on, a screen has topics beside the current view, or a topic below it.
_TOPICS_BESIDE, _TOPIC_BELOW = (156, 40), (116, 36)

Shown = TypeVar("Shown", bound=Widget)
Topic: TypeAlias = tuple[str, Page]  # the title of a pane, and its page


def pane(widget: Shown, title: str = "") -> Shown:
    """Turn a widget into a pane with a title, and return the widget."""
    widget.add_class("pane")
    widget.border_title = title
    return widget


class TopicPane(PageView):
    """A pane for a further topic, shown if the screen is large."""

    DEFAULT_CSS = """
    TopicPane { height: 1fr; display: none; }
    """


class Column(Vertical):
    """A part of a screen that is hidden if all panes in it are hidden."""


class PaneScreen(ReturnScreen, inherit_bindings=False):
    """A screen of panes."""

    ALLOW_IN_MAXIMIZED_VIEW = "#complaint, #key-bar"
    ESCAPE_TO_MINIMIZE = False  # Escape is handled by the screen's own action
    MAIN_PANE = ""  # CSS selector of the pane that `z` enlarges if the focused pane is already visible in full
    # The ids of the panes for topics, the most important first. The default is their order on the screen.
    TOPIC_PANES: ClassVar[tuple[str, ...]] = ()
    DEFAULT_CSS = """
    PaneScreen {
        .pane { border-title-color: $role-label; border-title-style: bold; border-subtitle-color: $role-label; }
        &.-framed .pane { border: round $border-blurred !important; }
        &.-framed .pane:focus-within { border: round $primary !important; border-title-color: $primary; }
        .pane.-maximized { height: 1fr !important; width: 1fr !important; max-height: 100% !important; }
        TopicPane.-alone { height: 1fr !important; max-height: 100% !important; }
    }
    """

    # Methods that a subclass may override.

    def topics(self) -> list[Topic]:
        """Return the topics for the panes beside or below the current view, the most important first."""
        return []

    @property
    def has_topic_below(self) -> bool:
        """Whether the current view leaves room for a topic below it. Used only if no topics are beside the view."""
        return True

    def zoomed(self) -> None:
        """Scroll the panes to what the user looked at; called after a pane was enlarged or reduced."""

    # Sizes.

    def set_sizes(self, size: Size) -> None:
        """Set the classes that depend on the size of the terminal."""
        # Textual's breakpoints would set these classes too late for the first frame.
        for name, (columns, lines) in (("-framed", _FRAMED), ("-two-topics", _TOPICS_BESIDE)):
            self.set_class(size.width >= columns and size.height >= lines, name)
        below = size.width >= _TOPIC_BELOW[0] and size.height >= _TOPIC_BELOW[1]
        self.set_class(below and not self.has_class("-two-topics"), "-topic-below")

    @on(Resize)
    def _resized(self, event: Resize) -> None:
        """Show or hide frames and further topics."""
        self.set_sizes(event.size)
        self.draw_beside()

    def draw_beside(self) -> None:
        """Show the further topics for which there is room."""
        has_one = self.has_class("-topic-below") and self.has_topic_below
        views = list(self.query(TopicPane))
        if self.TOPIC_PANES:
            views.sort(key=lambda view: self.TOPIC_PANES.index(view.id or ""))
        most = len(views) if self.has_class("-two-topics") else int(has_one)
        topics = self.topics()[:most] if most and self.answers else []
        for view, topic in zip_longest(views, topics):
            view.display = topic is not None
            if topic is not None:
                view.border_title, view.page = topic
        self.show_columns()

    def show_columns(self) -> None:
        """Hide empty columns. A topic that is alone in its column gets the whole column."""
        for column in self.query(Column):
            shown = [widget for widget in column.children if widget.display]
            column.display = bool(shown)
            for widget in column.query_children(TopicPane):
                widget.set_class(shown == [widget], "-alone")

    # One pane at full size.

    def action_zoom(self) -> None:
        """Show the pane with the focus at full size, or all panes again."""
        # The panes have their new sizes only after the second refresh.
        self.call_after_refresh(self.call_after_refresh, self.zoomed)
        if self.maximized is not None:
            self.minimize()
            return
        panes = [widget for widget in self.query(".pane") if widget.display and widget.region]
        focused = self.focused
        chain = [] if focused is None else [focused, *focused.ancestors]
        chosen = next((widget for widget in chain if widget in panes), panes[0] if panes else None)
        if self.MAIN_PANE and chosen is not None and self._is_whole(chosen):
            chosen = self.query_one(self.MAIN_PANE)
        self.maximized = chosen

    def _is_whole(self, pane: Widget) -> bool:
        """Return whether all of a pane can be seen."""
        inside = (pane, *pane.query(Widget))
        return self.find_widget(pane).visible_region == pane.region and not any(each.max_scroll_y for each in inside)

    def unzoom(self) -> bool:
        """Show all panes again; return False if no pane is at full size."""
        if self.maximized is None:
            return False
        self.action_zoom()
        return True
