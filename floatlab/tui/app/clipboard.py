"""Copying: the system's own programs first, since terminals may drop what they are asked to copy."""

from __future__ import annotations

import os
import shutil
import subprocess
from time import monotonic

_PROGRAMS = (
    ("pbcopy", "", ["pbcopy"]),
    ("wl-copy", "WAYLAND_DISPLAY", ["wl-copy"]),
    ("xclip", "DISPLAY", ["xclip", "-selection", "clipboard"]),
    ("xsel", "DISPLAY", ["xsel", "--clipboard", "--input"]),
    ("clip.exe", "", ["clip.exe"]),
)
_PATIENCE = 2.0  # seconds, for all of them together


def copy(text: str) -> str:
    """Give text to the first of the system's programs that takes it; return its name, or nothing.

    May take as long as a program hangs: not for the thread that draws.
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
