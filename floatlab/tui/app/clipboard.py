"""Copying by the clipboard programs of the system, since terminals may ignore requests to copy."""

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
