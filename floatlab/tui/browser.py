"""The explorer in a browser: a small server that runs one explorer a visitor."""

from __future__ import annotations

import sys
from shlex import join

from floatlab.errors import FloatlabError, MissingPartError


def serve(host: str, port: int, words: list[str]) -> None:
    """Serve the explorer, opened at a command, until it is interrupted.

    Raises MissingPartError without textual-serve (extra `web`), FloatlabError where the address cannot be had.
    """
    try:
        from textual_serve.server import Server
    except ImportError:
        raise MissingPartError("tui --serve needs textual-serve: pip install 'floatlab[web]'") from None
    # Visitors share no session: each starts afresh.
    command = join([sys.executable, "-m", "floatlab", "tui", "--new", *words])
    try:
        Server(command, host, port, title="floatlab").serve()
    except OSError as error:
        raise FloatlabError(f"tui --serve cannot listen on {host}:{port}: {error.strerror or error}") from None
