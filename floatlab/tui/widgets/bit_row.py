"""A row with the bits of a datum and a cursor; a click or the space bar flips a bit."""

from __future__ import annotations

from dataclasses import dataclass

from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.reactive import reactive

from floatlab.page.model import Block, Line, Page, Role, Span, Strip, cut_columns, line
from floatlab.page.text_layout import set_page
from floatlab.tui.base import WidgetMessage
from floatlab.tui.themes import CHANGED, CURSOR, HOVER
from floatlab.tui.widgets.cells import Cells

_FIELDS = frozenset({Role.SIGN, Role.EXPONENT, Role.IMPLICIT, Role.SIGNIFICAND})


def _is_bits(run: Span) -> bool:
    """Return whether a span contains bits. Names of fields have the same `role` as bits, so the text is examined."""
    return run.role in _FIELDS and bool(run.text) and not run.text.strip("01")


class BitRow(Cells):
    """A row of bits. Each bit is a cell; the number of the cell is the number of the bit (0 for the rightmost bit)."""

    PLACE = "On a row of bits"  # the heading in the list of keys
    DEFAULT_CSS = """
    BitRow { height: auto; overflow-y: hidden; scrollbar-size: 0 0; }
    BitRow:focus { background: $panel; }
    """
    HELP = "Arrows move over the bits; space flips the one under the cursor, 0 and 1 set it; a click flips too."
    BINDINGS = [
        Binding("space", "flip", "Flip", id="bits.flip", key_display="space"),
        Binding("left,h", "move(1)", "Left", show=False, id="bits.left"),
        Binding("right,l", "move(-1)", "Right", show=False, id="bits.right"),
        Binding("home,circumflex_accent", "jump(-1)", "First bit", show=False, id="bits.first"),
        Binding("end,dollar_sign", "jump(0)", "Last bit", show=False, id="bits.last"),
        Binding("up,k", "leave(-1)", "Row above", show=False, id="bits.above"),
        Binding("down,j", "leave(1)", "Row below", show=False, id="bits.below"),
        Binding("0", "put(0)", "Set to 0", show=False, id="bits.zero"),
        Binding("1", "put(1)", "Set to 1", show=False, id="bits.one"),
    ]

    is_active: reactive[bool] = reactive(False)

    @dataclass
    class Flipped(WidgetMessage):
        """The user wants to flip a bit, or to set it to `value`."""

        bit: int
        value: int | None = None

    def __init__(self, *, id: str | None = None, ruler: bool = True, steady: bool = False) -> None:
        """Start empty.

        If `ruler` is true, a ruler above the bits shows the numbers of the bits while the row has the focus. If
        `steady` is also true, the ruler is shown as long as edits apply to this row (`is_active`), even if the row does
        not have the focus. So no widget moves when the focus goes from the row to an input box.
        """
        super().__init__(id=id)
        self._strip: Block | None = None
        self.bits = ""
        self._before = ""  # the bits before the last change
        self._ruler, self._steady = ruler, steady

    def show(self, strip: Block) -> None:
        """Draw the bits in `strip`, a block of a page, and underline the bits that have changed."""
        before = self.bits
        self._strip = strip
        self._draw()
        self._before = before if len(before) == len(self.bits) else ""
        self.cursor = self.validate_cursor(self.cursor)
        self.refresh()

    def _draw(self) -> None:
        strip = self._strip
        has_ruler = self._ruler and (self.has_focus or (self._steady and self.is_active))
        if isinstance(strip, Strip) and not has_ruler:
            # Omit the ruler, but keep marks under the bits.
            bits = next(i for i, runs in enumerate(strip.lines) if any(map(_is_bits, runs)))
            strip = strip.replace(lines=strip.lines[bits:])
        if strip is not None:
            self.page = Page((strip,))

    def set_lines(self, width: int) -> list[Line]:
        """Return the lines of the row, and store the positions of all bits."""
        lines = [self._labelled(runs, width) for runs in set_page(self.page, width)]
        places, self.bits = [], ""
        for y, runs in enumerate(lines):
            x = 0
            for run in runs:
                if _is_bits(run):
                    places += [(y, x + i, 1) for i in range(len(run.text))]
                    self.bits += run.text
                x += len(run.text)
        self.places = places[::-1]
        return lines

    def _labelled(self, runs: Line, width: int) -> Line:
        """Return a line, with a mark before its label if edits apply to this row."""
        if not self.is_active or not any(run.role is Role.LABEL and run.text.strip() for run in runs):
            return runs
        return line(Span("▸", Role.CHANGED), cut_columns(runs, 1, width))

    def marks(self) -> dict[int, Style]:
        """Return the styles of bits that changed, and of those under the mouse and under the cursor."""
        bits = zip(reversed(self._before), reversed(self.bits), strict=False)
        marks = {bit: CHANGED for bit, (old, new) in enumerate(bits) if old != new}
        marks[self.hovered] = HOVER
        return marks | ({self.cursor: CURSOR} if self.has_focus else {})

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Flip the bit under the mouse.

        The click event comes too late: by then, the ruler has moved the row of bits.
        """
        bit = self.cell_at(*self.place_of(event))
        if bit >= 0:
            event.stop()
            self.cursor = bit
            self.post_message(self.Flipped(self, bit))

    def on_click(self, event: events.Click) -> None:
        """Keep the cursor where the mouse button was pressed."""
        event.prevent_default()

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Show the ruler (the numbers of the bits) while the row has the focus."""
        super().watch_has_focus(_has_focus)
        # Deferred: the ruler shifts the row, and the click that gave the focus refers to the old positions.
        self.call_after_refresh(self._draw)

    def watch_is_active(self) -> None:
        """Draw the label again when the row becomes active or inactive."""
        if self._steady:
            self.call_after_refresh(self._draw)
        self.reset()

    def action_leave(self, rows: int) -> None:
        """Go to the row of bits above or below."""
        focus = self.screen.focus_previous if rows < 0 else self.screen.focus_next
        focus(BitRow)

    def action_flip(self) -> None:
        """Flip the bit under the cursor."""
        self.post_message(self.Flipped(self, self.cursor))

    def action_put(self, value: int) -> None:
        """Set the bit under the cursor, and move to the next bit, as in typing."""
        self.post_message(self.Flipped(self, self.cursor, value))
        self.cursor -= 1
