"""Reports the progress of long work to the code that started it; this code may also pause or end the work.

The callback is stored in a context variable, so that the functions between the public function and the simulation need
not pass the callback on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Started = Callable[[int, str], Callable[[int], None]]


def _go_on() -> None:
    """Neither pause nor end the work."""


def _ignore(done: int) -> None:
    """Ignore the progress."""


_pause: ContextVar[Callable[[], None]] = ContextVar("pause", default=_go_on)
_started: ContextVar[Started | None] = ContextVar("started", default=None)
_add: ContextVar[Callable[[int], None]] = ContextVar("add", default=_ignore)


@contextmanager
def pausing(wait: Callable[[], None]) -> Iterator[None]:
    """Inside the `with`, call `wait` each time the work calls `count` or `pause`.

    To pause the work, `wait` blocks. To end it, `wait` raises an exception.
    """
    token = _pause.set(wait)
    try:
        yield
    finally:
        _pause.reset(token)


@contextmanager
def reporting(started: Started | None) -> Iterator[None]:
    """Report the progress of all simulations inside the `with`.

    `started` is called at the start of each simulation. Its arguments are the number of additions, and the noun to show
    with this number. `started` returns a function; each call of this function receives the number of additions done
    since the previous call. If `started` is None, nothing is reported.

    >>> from floatlab import sum
    >>> done = []
    >>> with reporting(lambda total, noun: print(total, noun) or done.append):
    ...     float(sum([1.0] * 100_000))
    99999 additions
    100000.0
    >>> len(done), max(done)
    (7, 16384)
    """
    token, quiet = _started.set(started), _add.set(_ignore)
    try:
        yield
    finally:
        _started.reset(token)
        _add.reset(quiet)


def duration_text(seconds: float) -> str:
    """Return a time in whole seconds, minutes or hours, rounded up.

    >>> duration_text(0.2), duration_text(59.5), duration_text(91), duration_text(7300)
    ('1 s', '60 s', '2 min', '3 h')
    """
    for unit, length, most in (("s", 1, 90), ("min", 60, 90 * 60)):
        if seconds <= most:
            return f"{-int(-seconds // length)} {unit}"
    return f"{-int(-seconds // 3600)} h"


def begin(additions: int) -> None:
    """Report that a simulation with this number of additions starts."""
    started = _started.get()
    if started is not None:
        _add.set(started(additions, "additions"))


def count(additions: int) -> None:
    """Report this number of additions as done; the work may pause or end here."""
    _pause.get()()
    _add.get()(additions)


def pause() -> None:
    """Pause or end here, if the code that started the work requests it."""
    _pause.get()()
