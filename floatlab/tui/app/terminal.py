"""The terminal: colours, missing and control characters, the clipboard, and what happens when the terminal closes."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from time import monotonic, sleep

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from floatlab.tui.base import bytes_of
from floatlab.tui.glyphs import for_ascii, for_console
from floatlab.tui.themes import CYCLE, SIXTEEN

_PROGRAMS = (
    ("pbcopy", "", ["pbcopy"]),
    ("wl-copy", "WAYLAND_DISPLAY", ["wl-copy"]),
    ("xclip", "DISPLAY", ["xclip", "-selection", "clipboard"]),
    ("xsel", "DISPLAY", ["xsel", "--clipboard", "--input"]),
    ("clip.exe", "", ["clip.exe"]),
)
_PATIENCE = 2.0  # seconds allowed for all clipboard programs together


def copy(text: str) -> str:
    """Copy text to the clipboard with the first program that succeeds; return the program's name, empty if all fail.

    This may take two seconds if a program hangs, so do not call it on the app's thread.
    """
    end = monotonic() + _PATIENCE
    for name, needs, command in _PROGRAMS:
        if (not needs or os.environ.get(needs)) and shutil.which(name) and monotonic() < end:
            try:
                subprocess.run(
                    command,
                    input=bytes_of(text),
                    timeout=end - monotonic(),
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except (OSError, ValueError, subprocess.SubprocessError):
                continue
            return name
    return ""


HUNG_UP = 129  # the exit status of a program whose terminal was closed
_LEAVING = 2.0  # seconds allowed for an orderly exit


def on_hangup(fileno: int, leave: Callable[[], object]) -> None:
    """Watch a terminal or pipe: when its other side closes, call `leave` on another thread, then end the process.

    If the terminal is not the controlling terminal, the process gets no signal, and Textual would read from the closed
    terminal forever. `leave` should make the app exit; after two seconds, the process ends in any case. On systems
    without `poll`, such as Windows, nothing is watched.
    """
    if not hasattr(select, "poll"):
        return

    def watch() -> None:
        poll = select.poll()
        poll.register(fileno, 0)  # errors and hang-ups are always reported
        if poll.poll():
            with suppress(RuntimeError):  # the event loop has ended already
                leave()
            sleep(_LEAVING)
            os._exit(HUNG_UP)

    Thread(target=watch, daemon=True).start()


_SPACE = "\N{NO-BREAK SPACE}"


class Harmless(LineFilter):
    """Filter that replaces each unprintable character in drawn lines by spaces of the same width.

    Labels and pages have no such characters, because `floatlab.errors.printable` escapes them. Text pasted into a box
    may have them.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments of a line without unprintable characters; no-break spaces stay."""
        if all(text.isprintable() for text, _, _ in segments):
            return segments
        return [
            Segment("".join(c if c.isprintable() or c == _SPACE else " " * cell_len(c) for c in text), style, control)
            for text, style, control in segments
        ]


HARMLESS = Harmless()


class _Substitutes(LineFilter):
    """Filter that replaces characters that the terminal cannot show."""

    def __init__(self, substitute: Callable[[str], str]) -> None:
        super().__init__()
        self._substitute = substitute

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(self._substitute(text), style, control) for text, style, control in segments]


CONSOLE, ASCII = _Substitutes(for_console), _Substitutes(for_ascii)
# Parts of the names of terminals with more than sixteen colours.
_COLOURFUL = ("256color", "direct", "truecolor", "kitty", "alacritty", "ghostty", "foot", "wezterm", "contour")


def usual_theme() -> str:
    """Return the default theme for this terminal.

    If the terminal has at most sixteen colours, the variable COLORFGBG decides between a light and a dark theme.
    """
    if not has_sixteen_colours():
        return CYCLE[0]
    return "ansi-light" if os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else SIXTEEN


def has_sixteen_colours() -> bool:
    """Return whether the terminal has at most sixteen colours, according to the variables COLORTERM and TERM."""
    term = os.environ.get("TERM", "")
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit") or os.name == "nt":
        return False
    return bool(term) and not any(name in term for name in _COLOURFUL)
