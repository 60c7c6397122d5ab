"""A filter of all lines before the terminal: it removes control characters, whichever widget drew them."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_SPACE = "\N{NO-BREAK SPACE}"


class Harmless(LineFilter):
    """Replaces control characters in lines that are laid out by as many spaces as they have columns.

    Labels and pages show such characters escaped, by `floatlab.errors.printable`. The filter meets the others, such as
    one that was pasted into a box.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line without characters that are not printable."""
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [Segment(_harmless(text), style, control) for text, style, control in segments]


def _harmless(text: str) -> str:
    return "".join(ch if ch.isprintable() or ch == _SPACE else " " * cell_len(ch) for ch in text)


HARMLESS = Harmless()
