"""Output to the system: text to the clipboard by the system's programs, and lines without control characters."""

from __future__ import annotations

import os
import shutil
import subprocess
from time import monotonic

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_PROGRAMS = (
    ("pbcopy", "", ["pbcopy"]),
    ("wl-copy", "WAYLAND_DISPLAY", ["wl-copy"]),
    ("xclip", "DISPLAY", ["xclip", "-selection", "clipboard"]),
    ("xsel", "DISPLAY", ["xsel", "--clipboard", "--input"]),
    ("clip.exe", "", ["clip.exe"]),
)
_PATIENCE = 2.0  # the time limit in seconds for all programs together


def copy(text: str) -> str:
    """Copy text by the first program that succeeds; return its name, or an empty text.

    This may take two seconds if a program hangs, so do not call it on the app's thread.
    """
    end = monotonic() + _PATIENCE
    for name, needs, command in _PROGRAMS:
        if (not needs or os.environ.get(needs)) and shutil.which(name) and monotonic() < end:
            try:
                subprocess.run(
                    command,
                    input=text.encode(),
                    timeout=end - monotonic(),
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except (OSError, ValueError, subprocess.SubprocessError):
                continue
            return name
    return ""


_SPACE = "\N{NO-BREAK SPACE}"


class Harmless(LineFilter):
    """Replaces control characters in rendered lines by spaces of the same width.

    In labels and pages, `floatlab.errors.printable` escapes such characters. The filter handles all other text, such as
    characters pasted into a box.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line, with spaces in place of characters that are not printable."""
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [
            Segment("".join(c if c.isprintable() or c == _SPACE else " " * cell_len(c) for c in text), style, control)
            for text, style, control in segments
        ]


HARMLESS = Harmless()
