"""What the terminal gets: text for the clipboard, by programs of the system; lines without control characters."""

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
_PATIENCE = 2.0  # seconds, for all of them together


def copy(text: str) -> str:
    """Copy text by the first program that takes it; return the name of the program, or nothing.

    This may take two seconds if a program hangs, so it is not for the thread that draws.
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
    """Replaces control characters in lines that are laid out by as many spaces as they have columns.

    Labels and pages show such characters escaped, by `floatlab.errors.printable`. The filter meets the others, such as
    one that was pasted into a box.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line without characters that are not printable."""
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [
            Segment("".join(c if c.isprintable() or c == _SPACE else " " * cell_len(c) for c in text), style, control)
            for text, style, control in segments
        ]


HARMLESS = Harmless()
