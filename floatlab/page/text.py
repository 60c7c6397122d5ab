"""Pages as terminal text, with or without colour, in Unicode or ASCII."""

from __future__ import annotations

from floatlab.errors import printable
from floatlab.page.layout import rewritten, set_page
from floatlab.page.model import Line, Page
from floatlab.page.theme import ANSI

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
        page = rewritten(page, lambda text: ascii_only(printable(text)))
    write = _coloured if colour else _plain
    return "".join(f"{write(each)}\n" for each in set_page(page, width))
