"""Work on daemon threads, which do not delay the end of the explorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
from typing import TypeVar

from textual.app import App

Piece = TypeVar("Piece")


def run_each(app: App[None], pieces: Iterator[Piece], take: Callable[[Piece], bool]) -> None:
    """Compute pieces on a daemon thread and pass each to `take` on the app's thread, until it returns False.

    Textual waits for its own workers when the app ends; importing a large library, or a clipboard program that hangs,
    must not keep anybody from leaving. Computing a piece must not raise.
    """

    def run() -> None:
        with suppress(RuntimeError):  # the app has ended meanwhile
            for piece in pieces:
                if not app.is_running or not app.call_from_thread(take, piece):
                    return

    Thread(target=run, daemon=True).start()


def run_once(app: App[None], work: Callable[[], Piece], take: Callable[[Piece], object]) -> None:
    """Do one piece of work as `run_each` does."""
    run_each(app, (work() for _ in range(1)), lambda piece: bool(take(piece)))
