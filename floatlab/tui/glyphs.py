"""Substitutes for characters that a terminal lacks.

A font of the Linux console has at most 512 characters. An ASCII terminal has only ASCII.
"""

from __future__ import annotations

import os

from rich.cells import cell_len

from floatlab.page.text_layout import ascii_only

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


# Substitutes of one ASCII character, for characters whose usual ASCII equivalent is longer.
_ONE = {
    "→": ">",
    "←": "<",
    "…": ".",
    "⋯": ".",
    "≤": "<",
    "≥": ">",
    "≠": "#",
    "√": "V",
    "±": "+",
    "²": "2",
    "³": "3",
    "↑": "^",
    "↓": "v",
    "🔎": "> ",
}


def for_ascii(text: str) -> str:
    """Replace each non-ASCII character by ASCII characters, one per column of its width, so that columns stay aligned.

    >>> for_ascii("╭─ 2 × 3 … ▾")
    '+- 2 x 3 . v'
    """
    return text if text.isascii() else "".join(c if c.isascii() else _one(c) for c in text)


def _one(character: str) -> str:
    plain = _ONE.get(character) or ascii_only(character)
    width = cell_len(character)
    return plain if len(plain) == width else "?" * width
