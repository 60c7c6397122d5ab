"""The last thing before the terminal: lines lose what it would obey, whichever widget drew them."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SPACE = "\N{NO-BREAK SPACE}"


class Harmless(LineFilter):
    """Takes control characters and the like out of lines that have been laid out.

    Labels and pages show them escaped, by `floatlab.errors.printable`; here, where every character has its column, what
    is left of them, such as in a box where somebody pasted one, takes as many columns as it had.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, those that are not printable replaced."""
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [Segment(_harmless(text), style, control) for text, style, control in segments]


def _harmless(text: str) -> str:
    return "".join(ch if ch.isprintable() or ch == _SPACE else " " * cell_len(ch) for ch in text)


HARMLESS = Harmless()
