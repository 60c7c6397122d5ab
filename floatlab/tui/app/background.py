"""Work beside the screen that nobody waits for at the end."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from textual.app import App

    Found = TypeVar("Found")


def beside_each(app: App[None], pieces: Iterator[Found], take: Callable[[Found], bool]) -> None:
    """Do work piece by piece, as `beside`, until there is no more of it or `take` says that nobody wants any."""

    def run() -> None:
        with suppress(RuntimeError):
            for found in pieces:
                if not app.is_running or not app.call_from_thread(take, found):
                    return

    Thread(target=run, daemon=True).start()


def beside(app: App[None], work: Callable[[], Found], take: Callable[[Found], object]) -> None:
    """Do work in a thread of its own and hand what it found to `take` on the screen's thread.

    Textual's workers are waited for when the app ends; importing a large library, or a clipboard program that
    hangs, must not keep anybody from leaving. `work` must not raise.
    """

    def run() -> None:
        found = work()
        with suppress(RuntimeError):  # the app has ended meanwhile
            app.call_from_thread(take, found)

    Thread(target=run, daemon=True).start()
