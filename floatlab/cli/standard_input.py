"""Standard input as it really is: closed, endless, in lines of any length; what `-` on a command line reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TextIO

from floatlab.errors import FileFormatError

MAX_LINE = 10_000_000  # bytes of one line of values
MAX_INPUT = 1 << 26  # bytes of an array, as of a file of text
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def standard_input() -> IO[bytes]:
    """Return standard input; raises FileFormatError where the program was started without one."""
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise FileFormatError("- reads standard input, and standard input is closed")
    return stdin.buffer


def bounded_lines(stream: IO[bytes], most: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield numbered lines; None for one of more than `most` bytes, of which no more is kept."""
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
    """Yield the lines of standard input that are not empty, with their numbers; None for one that is too long."""
    try:
        for number, raw in bounded_lines(standard_input(), MAX_LINE):
            text = None if raw is None else raw.decode("utf-8", "backslashreplace").strip()
            if text != "":
                yield number, text
    except OSError as error:
        raise FileFormatError(f"standard input cannot be read: {error.strerror or error}") from None


@contextmanager
def input_as_file() -> Iterator[str]:
    """Give the path of a file that holds what standard input brings, for as long as it is read.

    Arrays are read from files, which may be looked at twice; what is wrong with this one is said of standard input.
    Raises FileFormatError for too much, or none.
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
            raise FileFormatError(f"standard input cannot be kept in a file: {error.strerror or error}") from None
        try:
            yield path
        except FileFormatError as error:
            raise FileFormatError(re.sub(r"'[^']*standard-input'", "standard input", str(error))) from None
