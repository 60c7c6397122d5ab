"""A map of a library's product: a letter for each order of additions, and a cursor over blocks of equal letters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.binding import Binding
from textual.geometry import Region

from floatlab.page.model import Line
from floatlab.reduce.reveal.order_map_record import OrderMap
from floatlab.tui.widgets import Cells, cursor_keys
from floatlab.verbs.reveal.map_page import MapPicture, draw_map

_USUAL = 80, 24  # the size of the picture before the first layout


class MapView(Cells, inherit_bindings=False):
    """A map of the orders of addition in a product, drawn to scale if possible.

    A block is a rectangle of elements with one order.
    """

    PLACE = "On the map"  # the heading in the list of keys
    HELP = (
        "Each letter is an order; A is the most frequent one. Above the map is the order of the block under the "
        "cursor; Enter, or a double click, shows its tree."
    )
    BINDINGS = [
        Binding("enter", "choose", "Tree", id="map.open", key_display="enter"),
        Binding("left,h", "move(-1)", "Block to the left", show=False, id="map.left"),
        Binding("right,l", "move(1)", "Block to the right", show=False, id="map.right"),
        Binding("up,k", "rows(-1)", "Block above", show=False, id="map.above"),
        Binding("down,j", "rows(1)", "Block below", show=False, id="map.below"),
        *cursor_keys("map", "Block")[2:],
    ]

    picture: MapPicture | None = None
    _map: OrderMap | None = None
    _block_of: Sequence[int] = ()  # the block of each cell; a block has a cell in each of its lines

    def show_map(self, shown: OrderMap) -> None:
        """Show a map. On a new map, the cursor goes to the first block."""
        if shown is not self._map:
            self._map, self.picture = shown, draw_map(shown, *_USUAL)
            self.set_cursor(0)
            self.reset()
            self.scroll_home(animate=False)

    @property
    def label(self) -> int:
        """The index of the order under the cursor, in `OrderMap.classes`."""
        if self._map is None or self.picture is None or not self.picture.elements:
            return 0
        return int(self._map.labels[self.picture.elements[self.validate_cursor(self.cursor)]])

    @property
    def count(self) -> int:
        """The number of blocks."""
        return len(self.picture.elements) if self.picture is not None else 0

    def set_lines(self, width: int) -> list[Line]:
        """Draw the map for this width and the visible height."""
        if self._map is None:
            return []
        self.picture = picture = draw_map(self._map, width, max(self.scrollable_content_region.height, 1))
        blocks = [*enumerate(zip(picture.places, picture.heights, strict=True))]
        lines = [(block, (y + i, x, wide)) for block, ((y, x, wide), high) in blocks for i in range(high)]
        self._block_of, self.places = [block for block, _ in lines], [place for _, place in lines]
        return [*picture.lines]

    def cell_at(self, row: int, column: int) -> int:
        """Return the block at a position; -1 if there is none."""
        place = super().cell_at(row, column)
        return self._block_of[place] if place >= 0 else -1

    def marks(self) -> dict[int, Style]:
        """Return the style of each line that shows the block under the cursor or the block under the mouse."""
        styles = super().marks()
        return {place: styles[block] for place, block in enumerate(self._block_of) if block in styles}

    def show_cursor(self) -> None:
        """Scroll to the first line of the block under the cursor."""
        if self.picture is not None and self.count:
            y, x, wide = self.picture.places[self.cursor]
            self.scroll_to_region(Region(x, y, wide, 1), animate=False, x_axis=False)

    def on_resize(self) -> None:
        """Draw the map for the new size. Post `Moved`, because the cursor may now be on another block."""
        self.reset()
        self.cursor = self.validate_cursor(self.cursor)
        self.post_message(self.Moved(self))

    def action_rows(self, by: int) -> None:
        """Move the cursor to the block above or below."""
        if self.picture is not None and 0 <= self.cursor + by * self.picture.breadth < self.count:
            self.cursor += by * self.picture.breadth

    def action_page(self, pages: int) -> None:
        """Move the cursor several blocks up or down."""
        for _ in range(5):
            self.action_rows(pages)
