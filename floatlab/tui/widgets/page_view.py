"""A page on the screen: the lines from `floatlab.page.text_layout`, in the colours of the theme."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from floatlab.page.chart import with_dots
from floatlab.page.model import Chart, Line, Note, Page, Pair, line, text_of
from floatlab.page.text_layout import ascii_only, rewritten, set_page
from floatlab.page.words import UNBROKEN
from floatlab.tui.base import ExplorerBase

EMPTY = Page(())


def note_page(text: str) -> Page:
    """Return a page of one paragraph."""
    return Page((Note(line(text)),))


class PageView(ScrollView):
    """A page, with its lines wrapped to the width of the widget. A page that is too high can be scrolled."""

    PLACE = "On a page"  # the heading in the list of keys
    FROZEN = 0  # number of lines at the top that do not scroll
    DEFAULT_CSS = """
    PageView {
        background: transparent; scrollbar-size-vertical: 1; overflow-x: hidden; scrollbar-background: $panel;
        scrollbar-background-hover: $panel; scrollbar-background-active: $panel;
    }
    """
    app: ExplorerBase
    page = var(EMPTY, init=False)

    def __init__(self, page: Page = EMPTY, *, id: str | None = None) -> None:
        """Start with `page`, which is empty by default."""
        super().__init__(id=id)
        self.set_reactive(PageView.page, page if page is EMPTY else self.validate_page(page))
        self.lines: list[Line] = []  # the drawn lines
        self._width = 0

    def validate_page(self, page: Page) -> Page:
        """Return the page, in characters that this terminal can show."""
        return rewritten(page, str.isascii, ascii_only) if self.app.is_ascii else page

    def watch_page(self) -> None:
        """Draw the new page."""
        self.reset()

    @property
    def text(self) -> str:
        """The drawn lines as text."""
        return "\n".join(text_of(runs).replace(UNBROKEN, " ").rstrip() for runs in self.lines)

    def reset(self) -> None:
        """Wrap the page again, even if the width is unchanged."""
        self._width = 0
        self._set()

    def _set(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            self.lines = self.set_lines(width)
            self.virtual_size = Size(width, len(self.lines))
            # A new layout of the screen is slow, so it is requested only if the height changes.
            self.refresh(layout=self.styles.auto_dimensions and len(self.lines) != self.content_size.height)

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the page for this width."""
        page = self.page
        if self.app.draws_dots and any(isinstance(block, Chart | Pair) for block in page.blocks):
            page = page.replace(blocks=with_dots(page.blocks))
        return set_page(page, width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines of the page at this width."""
        return len(self.lines if width == self._width else self.set_lines(width)) if width else 0

    watch_show_vertical_scrollbar = _set  # a scrollbar changes the width without a resize event

    def on_resize(self) -> None:
        """Wrap the lines to the new width, and hide a scrollbar that is no longer needed."""
        self._set()
        if self.show_vertical_scrollbar and len(self.lines) <= self.content_size.height:
            self.show_vertical_scrollbar = False

    def pieces(self, runs: Line, style: Style | None = None) -> list[Segment]:
        """Return the segments of a line, in the colours of this theme combined with a style."""
        return [Segment(run.text, self.app.inks[run.role] + style) for run in runs]

    def segments(self, y: int) -> list[Segment]:
        """Return the segments of one line."""
        return self.pieces(self.lines[y])

    def render_line(self, y: int) -> Strip:
        """Draw a visible line."""
        y = y if y < self.FROZEN else y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if not 0 <= y < len(self.lines):
            return Strip.blank(width, self.rich_style)
        return Strip(self.segments(y)).adjust_cell_length(width).apply_style(self.rich_style)


class StaticPage(PageView, can_focus=False):
    """A page of a few lines that cannot be scrolled or take the focus."""

    DEFAULT_CSS = """
    StaticPage { height: auto; scrollbar-size: 0 0; }
    """
