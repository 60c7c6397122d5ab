"""Reads standard input, which `-` names in a command. It may be closed, endless, or have lines of any length."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TextIO

from floatlab.errors import FileFormatError

MAX_LINE = 10_000_000  # limit of one line of values, in bytes
MAX_INPUT = 1 << 26  # limit of an array, in bytes; the same as for text files
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def standard_input() -> IO[bytes]:
    """Return standard input; raises FileFormatError if the program was started without one."""
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise FileFormatError("- reads standard input, but standard input is closed")
    return stdin.buffer


def bounded_lines(stream: IO[bytes], most: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield lines with their numbers; for a line of more than `most` bytes, yield None and do not keep the line."""
    number = 0
    while raw := stream.readline(most + 1):
        number += 1
        if len(raw) > most:
            yield number, None
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(most)
        else:
            yield number, raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw


def lines() -> Iterator[tuple[int, str | None]]:
    """Yield the nonempty lines of standard input with their numbers; None for a line that is too long."""
    try:
        for number, raw in bounded_lines(standard_input(), MAX_LINE):
            text = None if raw is None else raw.decode("utf-8", "backslashreplace").strip()
            if text != "":
                yield number, text
    except OSError as error:
        raise FileFormatError(f"standard input cannot be read: {error.strerror or error}") from None


@contextmanager
def input_as_file() -> Iterator[str]:
    """Provide the path of a temporary file with the contents of standard input.

    A command may read an array twice, which is possible only in a file. Error messages name standard input instead of
    this file. Raises FileFormatError if the input is too large or cannot be read.
    """
    import re
    from contextlib import ExitStack
    from os.path import join
    from tempfile import TemporaryDirectory

    try:
        content = standard_input().read(MAX_INPUT + 1)
    except OSError as error:
        raise FileFormatError(f"standard input cannot be read: {error.strerror or error}") from None
    if len(content) > MAX_INPUT:
        raise FileFormatError(f"standard input has over {MAX_INPUT:,} bytes: name a file instead of -")
    with ExitStack() as held:
        try:
            path = join(held.enter_context(TemporaryDirectory(prefix="floatlab-")), "standard-input")
            with open(path, "wb") as file:
                file.write(content)
        except OSError as error:
            raise FileFormatError(
                f"standard input cannot be copied to a temporary file: {error.strerror or error}"
            ) from None
        try:
            yield path
        except FileFormatError as error:
            raise FileFormatError(re.sub(r"'[^']*standard-input'", "standard input", str(error))) from None
