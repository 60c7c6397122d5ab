"""Pages on the screen: the lines that `render.layout` sets, coloured by the theme's inks."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from floatlab.page.layout import set_page
from floatlab.page.model import Line, Page, Role, text_of
from floatlab.page.words import UNBROKEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.tui.app.app import Explorer

EMPTY = Page(())


class Drawing(ScrollView):
    """A page drawn to the width that there is, line by line, and scrolled where it is longer than the screen."""

    PLACE = "On a page"  # what the list of keys calls it
    DEFAULT_CSS = """
    Drawing {
        background: transparent;
        scrollbar-size-vertical: 1;
        overflow-x: hidden;
    }
    """
    app: Explorer

    def __init__(self, page: Page = EMPTY, *, id: str | None = None, classes: str | None = None) -> None:
        """Show a page, or nothing yet."""
        super().__init__(id=id, classes=classes)
        self._page = page
        self._lines: list[Line] = []
        self._width = 0

    @property
    def page(self) -> Page:
        """The page that is shown."""
        return self._page

    @page.setter
    def page(self, page: Page) -> None:
        """Draw another page."""
        if page != self._page:
            self._page = page
            self.reset()

    @property
    def lines(self) -> list[Line]:
        """The lines as they stand on the screen."""
        return self._lines

    @property
    def text(self) -> str:
        """What is drawn, as text."""
        return "\n".join(text_of(each).replace(UNBROKEN, " ").rstrip() for each in self._lines)

    def reset(self) -> None:
        """Set the lines anew."""
        self._width = 0
        self._set()

    def _set(self) -> None:
        width = self.scrollable_content_region.width
        if width and width != self._width:
            self._width = width
            self._lines = self.set_lines(width)
            self.virtual_size = Size(width, len(self._lines))
            # Laying the screen out again costs more than drawing: only where the height is another.
            self.refresh(layout=self.styles.auto_dimensions and len(self._lines) != self.content_size.height)

    def set_lines(self, width: int) -> list[Line]:
        """Set the page's lines."""
        return set_page(self._page, width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Ask for as many lines as the page has at this width."""
        return len(self._lines if width == self._width else self.set_lines(width)) if width else 0

    def on_resize(self) -> None:
        """Set the lines anew."""
        self._set()

    def watch_show_vertical_scrollbar(self) -> None:
        """Set the lines anew: a scrollbar has taken a column, or given it back, without a resize."""
        self._set()

    def style_of(self, role: Role) -> Style:
        """Return the role's style in this theme."""
        return self.app.inks[role]

    def segments(self, y: int) -> list[Segment]:
        """Return one line's pieces."""
        return [Segment(run.text, self.style_of(run.role)) for run in self._lines[y]]

    def render_line(self, y: int) -> Strip:
        """Draw one line of the window."""
        y += self.scroll_offset.y
        width = self.scrollable_content_region.width
        if not 0 <= y < len(self._lines):
            return Strip.blank(width, self.rich_style)
        return Strip(self.segments(y)).adjust_cell_length(width).apply_style(self.rich_style)


class Still(Drawing, can_focus=False):
    """A page of a few lines that is only looked at."""

    DEFAULT_CSS = """
    Still { height: auto; scrollbar-size: 0 0; }
    """
