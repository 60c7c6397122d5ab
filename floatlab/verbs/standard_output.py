"""Keep the standard output free of what the users' functions print."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


class _Aside:
    """The standard error stream, but a user's function cannot close it."""

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)

    def write(self, text: str) -> int:
        """Write text to the standard error."""
        return sys.stderr.write(text)

    def flush(self) -> None:
        """Flush the standard error."""
        sys.stderr.flush()

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def printing_aside() -> Iterator[None]:
    """Redirect the prints of users' functions to the standard error. The standard output has only the answer."""
    with redirect_stdout(_Aside()):
        yield
