"""Characters for the console of Linux (TERM=linux), whose fonts have at most 512 characters."""

from __future__ import annotations

import os

# Characters that the fonts of the console lack, and their substitutes from code page 437.
_CONSOLE = str.maketrans({
    "−": "-", "×": "x", "…": "»", "▸": "►", "◂": "◄", "▾": "▼", "▴": "▲", "▶": "►", "◀": "◄", "●": "•",
    "╭": "┌", "╮": "┐", "╰": "└", "╯": "┘", "━": "═", "┃": "║", "┊": ":", "┄": "-", "◆": "♦", "≠": "#", "✓": "√",
    "✗": "x", "⁻": "-", "–": "-", "—": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "▔": "▀", "▁": "_", "▂": "_",
    "▃": "▄", "▅": "▄", "▆": "█", "▇": "█", "▏": "│", "▕": "│", "▎": "│", "▍": "▌", "▋": "▌", "⋯": "»", "›": ">",
    "‹": "<", "⏎": "◄", "ℓ": "l", "₀": "0", "₁": "1", "₂": "2", "³": "3", "⌊": "[", "⌋": "]", "⌈": "[", "⌉": "]",
})  # fmt: skip


def is_console() -> bool:
    """Return whether the terminal is the console of Linux."""
    return os.environ.get("TERM", "") == "linux"


def for_console(text: str) -> str:
    """Replace characters that the console of Linux lacks, each by a single character, so that columns stay aligned.

    >>> for_console("╭─ 2 × 3 … ▸")
    '┌─ 2 x 3 » ►'
    """
    return text.translate(_CONSOLE)
