"""Pages as terminal text, with or without colour, in Unicode or ASCII."""

from __future__ import annotations

from floatlab.record import Record
from floatlab.render.layout import set_page
from floatlab.render.theme import ANSI
from floatlab.views.page import Line, Page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ASCII = str.maketrans({
    "×": "x", "−": "-", "→": "->", "…": "...", "∞": "inf", "·": "*", "≤": "<=", "≥": ">=", "≈": "~",
    "≠": "!=", "√": "sqrt", "⁻": "-", "²": "^2", "±": "+-", "—": "-", "’": "'", "▸": ">",
    "─": "-", "━": "=", "├": "|", "┤": "|", "┼": "+", "│": "|", "◀": "<", "▶": ">", "▼": "v", "●": "*", "○": "o",
    "└": "+", "←": "<-", "÷": "/", "\N{NO-BREAK SPACE}": " ",
})  # fmt: skip


def ascii_only(text: str) -> str:
    """Replace what ASCII cannot show by what it can.

    >>> ascii_only("2 × 3 → −∞")
    '2 x 3 -> -inf'
    """
    return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def _in_ascii(part: Any) -> Any:
    """Rewrite every text of a page, before it is set, so that columns still line up."""
    if isinstance(part, str):
        return ascii_only(part)
    if isinstance(part, tuple):
        return tuple(_in_ascii(each) for each in part)
    if isinstance(part, Record):
        return part.replace(**{name: _in_ascii(getattr(part, name)) for name in part._fields})
    return part


def _coloured(runs: Line) -> str:
    return "".join(
        f"\x1b[{ANSI[run.role]}m{run.text}\x1b[0m" if run.role in ANSI and run.text.strip() else run.text
        for run in runs
    )


def _plain(runs: Line) -> str:
    return "".join(run.text for run in runs).rstrip()


def to_text(page: Page, width: int = 80, colour: bool = False, ascii: bool = False) -> str:
    """Return the page as lines of text, each ended by a newline."""
    if ascii:
        page = _in_ascii(page)
    write = _coloured if colour else _plain
    return "".join(f"{write(each)}\n" for each in set_page(page, width))
