"""Redirect what users' functions print, so that the standard output has only the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout


class _Aside:
    """A stream that writes to the standard error, but that users' functions cannot close."""

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
    """Context manager: what is printed inside the `with` block goes to the standard error."""
    with redirect_stdout(_Aside()):
        yield
