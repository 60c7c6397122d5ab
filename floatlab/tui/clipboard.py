"""Copying: the system's own programs first, since terminals may drop what they are asked to copy."""

from __future__ import annotations

import os
import shutil
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from textual.app import App

_PROGRAMS = (
    ("pbcopy", "", ["pbcopy"]),
    ("wl-copy", "WAYLAND_DISPLAY", ["wl-copy"]),
    ("xclip", "DISPLAY", ["xclip", "-selection", "clipboard"]),
    ("xsel", "DISPLAY", ["xsel", "--clipboard", "--input"]),
    ("clip.exe", "", ["clip.exe"]),
)
_PATIENCE = 2.0  # seconds


def copy(app: App[None], text: str) -> str:
    """Copy text; return who took it: a program's name, or `terminal`."""
    app.copy_to_clipboard(text)  # also what Ctrl+V inside the explorer pastes
    if not app.is_headless:
        for name, needs, command in _PROGRAMS:
            if (not needs or os.environ.get(needs)) and shutil.which(name):
                try:
                    subprocess.run(
                        command,
                        input=text.encode(),
                        timeout=_PATIENCE,
                        check=True,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                    )
                except (OSError, subprocess.SubprocessError):
                    continue
                return name
    return "terminal"
