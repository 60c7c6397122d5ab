"""A bar on standard error, only where somebody watches and the work takes a while: share, rate, time left."""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

_EVERY = 0.25  # seconds between pictures
_PATIENCE = 0.5  # seconds of work before the first
_WIDTH = 24


class Watched:
    """One line on standard error, drawn again and again where somebody watches, and taken away in the end."""

    def __init__(self, stream: TextIO | None = None, wanted: bool = True) -> None:
        """Start the clock; nothing is drawn yet."""
        self.stream = sys.stderr if stream is None else stream
        self.watched = wanted and self.stream is not None and self.stream.isatty()
        self.shown = False
        self.start = time.monotonic()

    def draw(self, text: str) -> None:
        """Draw over what is there."""
        self.shown = True
        self._write(f"\r{text}")

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            self.shown = False
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except OSError:  # the terminal has gone: the work goes on
            self.watched = False


class Progress(Watched):
    """So much of a known amount of work done."""

    def __init__(self, total: int, noun: str, stream: TextIO | None = None, wanted: bool = True) -> None:
        """Say how much there is to do."""
        super().__init__(stream, wanted)
        self.total, self.noun, self.done = total, noun, 0
        self.next = self.start + _PATIENCE

    def add(self, count: int) -> None:
        """Count what was done, and draw now and then."""
        self.done += count
        if self.watched and (now := time.monotonic()) >= self.next:
            self.next = now + _EVERY
            self.draw(f"{self.text(now - self.start)}\x1b[K")

    def text(self, seconds: float) -> str:
        """Return the bar after so many seconds.

        >>> bar = Progress(4_000_000, "elements")
        >>> bar.add(1_000_000)
        >>> bar.text(2.0)
        '[######..................]  25 %  500,000 elements a second, 6 s left'
        """
        share, rate = self.done / max(self.total, 1), self.done / max(seconds, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        when = f"{left:.0f} s" if left < 100 else f"{left / 60:.0f} min"
        bar = "#" * int(_WIDTH * share)
        return f"[{bar:.<{_WIDTH}}] {100 * share:3.0f} %  {rate:,.0f} {self.noun} a second, {when} left"


class Bars:
    """A bar for each piece of work that starts, one after another; the last is gone when the work ends, however."""

    def __init__(self, wanted: bool = True) -> None:
        """Start none yet."""
        self._wanted = wanted
        self._bar: Progress | None = None

    def __enter__(self) -> Bars:
        """Return what starts bars."""
        return self

    def __exit__(self, *_: object) -> None:
        """Take the last one away."""
        if self._bar is not None:
            self._bar.clear()

    def start(self, total: int, noun: str) -> Callable[[int], None]:
        """Start a bar; return what counts work done."""
        self.__exit__()
        self._bar = Progress(total, noun, wanted=self._wanted)
        return self._bar.add
