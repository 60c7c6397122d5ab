"""The bits of a datum: a cursor walks over them, and a click or the space bar flips one."""

from __future__ import annotations

from dataclasses import dataclass

from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.reactive import reactive

from floatlab.page.layout import cut_columns, set_page
from floatlab.page.model import Block, Line, Page, Role, Span, Strip, line
from floatlab.tui.base import WidgetMessage
from floatlab.tui.themes import CHANGED, CURSOR, HOVER
from floatlab.tui.widgets.page_view import PageView

_FIELDS = frozenset({Role.SIGN, Role.EXPONENT, Role.IMPLICIT, Role.SIGNIFICAND})


def _is_bits(run: Span) -> bool:
    """Return whether a span holds bits: the name of a field has the same role."""
    return run.role in _FIELDS and bool(run.text) and not run.text.strip("01")


class BitRow(PageView, can_focus=True):
    """One row of bits, drawn as in a page. One widget, however many bits."""

    PLACE = "On a row of bits"  # its name in the list of keys
    DEFAULT_CSS = """
    BitRow {
        height: auto;
        overflow-y: hidden;
        scrollbar-size: 0 0;
        &:focus { background: $panel; }
    }
    """
    HELP = "Arrows move over the bits; space flips the one under the cursor, 0 and 1 set it; a click flips too."
    BINDINGS = [
        Binding("space", "flip", "Flip", id="bits.flip", key_display="space"),
        Binding("left,h", "move(1)", "Left", show=False, id="bits.left"),
        Binding("right,l", "move(-1)", "Right", show=False, id="bits.right"),
        Binding("home,circumflex_accent", "jump(True)", "First bit", show=False, id="bits.first"),
        Binding("end,dollar_sign", "jump(False)", "Last bit", show=False, id="bits.last"),
        Binding("up,k", "leave(-1)", "Row above", show=False, id="bits.above"),
        Binding("down,j", "leave(1)", "Row below", show=False, id="bits.below"),
        Binding("0", "put(0)", "Set to 0", show=False, id="bits.zero"),
        Binding("1", "put(1)", "Set to 1", show=False, id="bits.one"),
    ]

    cursor: reactive[int] = reactive(0)  # the number of the bit, 0 at the right
    hovered: reactive[int] = reactive(-1)
    leads: reactive[bool] = reactive(False)

    @dataclass
    class Flipped(WidgetMessage):
        """The user wants to flip a bit, or to set it to `value`."""

        bit: int
        value: int | None = None

    def __init__(self, *, id: str | None = None, ruler: bool = True) -> None:
        """Start empty; `ruler` shows the numbers of the bits while the row has the focus."""
        super().__init__(id=id)
        self._strip: Block | None = None
        self.bits = ""
        self._before = ""
        self._ruler = ruler
        self.places: list[tuple[int, int]] = []  # row and column of each bit, from the left

    def show(self, strip: Block) -> None:
        """Draw a strip, and underline bits that differ from those drawn before."""
        before = self.bits
        self._strip = strip
        self._draw()
        self._before = before if len(before) == len(self.bits) else ""
        self.cursor = min(self.cursor, max(len(self.bits) - 1, 0))
        self.refresh()

    def _draw(self) -> None:
        strip = self._strip
        if isinstance(strip, Strip) and not (self._ruler and self.has_focus):
            # Without the ruler; marks under the bits stay.
            bits = next(i for i, runs in enumerate(strip.lines) if any(map(_is_bits, runs)))
            strip = strip.replace(lines=strip.lines[bits:])
        if strip is not None:
            self.page = Page((strip,))

    def set_lines(self, width: int) -> list[Line]:
        """Set the strip, and find where each bit stands."""
        lines = [self._labelled(runs, width) for runs in set_page(self.page, width)]
        self.places, self.bits = [], ""
        for y, runs in enumerate(lines):
            x = 0
            for run in runs:
                if _is_bits(run):
                    self.places += [(y, x + i) for i in range(len(run.text))]
                    self.bits += run.text
                x += len(run.text)
        return lines

    def _labelled(self, runs: Line, width: int) -> Line:
        """Mark the label of the row that leads."""
        if not self.leads or not any(run.role is Role.LABEL and run.text.strip() for run in runs):
            return runs
        return line(Span("▸", Role.CHANGED), cut_columns(runs, 1, width))

    def segments(self, y: int) -> list[Segment]:
        """Return the segments of one line, with the bits under the cursor, under the mouse and changed ones marked."""
        marks = {}
        if len(self._before) == len(self.bits):
            marks = {
                place: CHANGED
                for place, old, new in zip(self.places, self._before, self.bits, strict=True)
                if old != new
            }
        for bit, mark in ((self.hovered, HOVER), (self.cursor if self.has_focus else -1, CURSOR)):
            if 0 <= bit < len(self.places):
                marks[self.places[-1 - bit]] = mark
        pieces, x = [], 0
        for run in self.lines[y]:
            style, start = self.style_of(run.role), 0
            for column in sorted(column for row, column in marks if row == y and x <= column < x + len(run.text)):
                at = column - x
                pieces += [Segment(run.text[start:at], style), Segment(run.text[at], style + marks[y, column])]
                start = at + 1
            pieces.append(Segment(run.text[start:], style))
            x += len(run.text)
        return pieces

    def _bit_at(self, event: events.MouseEvent) -> int:
        offset = event.get_content_offset(self)
        if offset is None or (offset.y, offset.x) not in self.places:
            return -1
        return len(self.places) - 1 - self.places.index((offset.y, offset.x))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Flip the bit under the mouse; a click would come after the ruler has moved the row."""
        bit = self._bit_at(event)
        if bit >= 0:
            event.stop()
            self.cursor = bit
            self.post_message(self.Flipped(self, bit))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark the bit that a click would flip."""
        self.hovered = self._bit_at(event)

    def on_leave(self) -> None:
        """Unmark the bit when the mouse leaves."""
        self.hovered = -1

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Show the ruler while the row has the focus."""
        super().watch_has_focus(_has_focus)
        # Not at once: a click that gave the focus means the bits where they stood before.
        self.call_after_refresh(self._draw)

    def watch_leads(self) -> None:
        """Mark the row that edits change."""
        self.reset()

    def action_move(self, bits: int) -> None:
        """Move the cursor by some bits to the left."""
        self.cursor = min(max(self.cursor + bits, 0), max(len(self.bits) - 1, 0))

    def action_jump(self, first: bool) -> None:
        """Move the cursor to the first bit or to the last."""
        self.cursor = max(len(self.bits) - 1, 0) if first else 0

    def action_leave(self, rows: int) -> None:
        """Go to the row of bits above or below."""
        if rows < 0:
            self.screen.focus_previous(BitRow)
        else:
            self.screen.focus_next(BitRow)

    def action_flip(self) -> None:
        """Flip the bit under the cursor."""
        self.post_message(self.Flipped(self, self.cursor))

    def action_put(self, value: int) -> None:
        """Set the bit under the cursor and go on to the next, as typing does."""
        self.post_message(self.Flipped(self, self.cursor, value))
        self.cursor = max(self.cursor - 1, 0)
