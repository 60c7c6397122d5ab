"""Progress on standard error: on a terminal, a bar if the work takes a while; elsewhere, a line each minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from floatlab.cli.output import is_watched, say
from floatlab.progress import duration_text

_EVERY = 0.25  # seconds between updates
_PATIENCE = 0.5  # seconds of work before the first update
_MINUTE = 60.0  # seconds between lines, for instance in a log file
_WIDTH = 24


class Watched:
    """A status line on standard error, if this is a terminal. The line is redrawn in place, and erased at the end."""

    def __init__(self, wanted: bool = True) -> None:
        """Start the clock; nothing is drawn yet."""
        self.watched = wanted and is_watched()
        self.shown = False
        self.start = time.monotonic()

    def draw(self, text: str) -> None:
        """Draw over the current line."""
        self.shown = True
        self._write(f"\r{text}")

    def clear(self) -> None:
        """Erase the line."""
        if self.shown:
            self.shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except OSError:  # the terminal has gone, but the work continues
            self.watched = False


class Bar(Watched):
    """A progress bar, or a count if the total is 0; `begin` starts it again for the next piece of work.

    If standard error is not a terminal, a line is written each minute instead.
    """

    def begin(self, total: int, noun: str) -> Callable[[int], None]:
        """Start again with a new total; return the callback that counts finished work."""
        self.clear()
        self.total, self.noun, self.done = total, noun, 0
        earlier, self.start = self.start, time.monotonic()
        self.next = (self.start if total else earlier) + (_PATIENCE if self.watched else _MINUTE)
        return self.add

    def add(self, count: int) -> None:
        """Count finished work; redraw at intervals."""
        self.done += count
        if (now := time.monotonic()) < self.next:
            return
        text = self.text(now - self.start)
        self.next = now + (_EVERY if self.watched else _MINUTE)
        if self.watched:
            self.draw(f"{text}\x1b[K")
        else:
            say(text)

    def text(self, seconds: float) -> str:
        """Return the text of the bar, or of the count if the total is 0, `seconds` after the start.

        >>> bar = Bar()
        >>> bar.begin(4_000_000, "elements")(1_000_000)
        >>> bar.text(2.0)
        '[######..................]  25 %  500,000 elements a second, 6 s left'
        >>> bar.begin(4_000_000_000, "bytes of 12 tensors")(1_000_000_000)
        >>> bar.text(2.0)
        '[######..................]  25 %  1.0 of 4.0 GB of 12 tensors, 500 MB/s, 6 s left'
        """
        if not self.total:
            return f"{self.noun}: step {self.done:,}, {seconds:.0f} s; Ctrl-C stops it and shows what was found"
        share, rate = self.done / max(self.total, 1), self.done / max(seconds, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        bar = "#" * int(_WIDTH * share)
        amounts = f"{rate:,.0f} {self.noun} a second"
        if self.noun.startswith("bytes"):  # such as: bytes of 12 tensors
            unit, name = (1e9, "GB") if self.total >= 1e9 else (1e6, "MB")
            amounts = f"{self.done / unit:,.1f} of {self.total / unit:,.1f} {name}{self.noun.removeprefix('bytes')}"
            amounts += f", {rate / 1e6:,.0f} MB/s"
        return f"[{bar:.<{_WIDTH}}] {100 * share:3.0f} %  {amounts}, {duration_text(left)} left"
