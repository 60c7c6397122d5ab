"""The standard streams as they really are: closed, full, broken off, or in an encoding of few characters."""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager

from floatlab.errors import FileFormatError, FloatlabError, printable, printable_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

MAX_LINE = 10_000_000  # bytes of one line of standard input
MAX_INPUT = 1 << 26  # bytes of an array on standard input, as of a file of text
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_PLAIN = str.maketrans({"−": "-", "…": "...", "×": "x"})  # what error lines are written with


class OutputError(FloatlabError):
    """Standard output takes nothing."""


def shows_unicode(stream: TextIO) -> bool:
    """Return whether a stream's encoding has the characters that pages are drawn with."""
    try:
        "×−→∞…≈≤".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def output() -> TextIO:
    """Return standard output; raises OutputError where the program was started without one."""
    out: TextIO | None = sys.stdout
    if out is None:
        raise OutputError("standard output is closed: there is nowhere to write the answer")
    return out


def put(text: str, drawn: bool = False) -> None:
    """Write data, now. Raises OutputError where that cannot be done, BrokenPipeError where nobody reads.

    Nothing is written that a terminal would obey, but the colours of a page that was `drawn` by `to_text`.
    """
    out = output()
    if not drawn and not text.replace("\n", "").isprintable():
        text = printable_lines(text)
    try:
        try:
            out.write(text)
        except UnicodeEncodeError:
            from floatlab.page.layout import ascii_only

            out.write(ascii_only(text))
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror or error}") from None


def say(message: str, place: str = "") -> None:
    """Write one line of words to standard error: nothing that a terminal would obey, no error of its own.

    Under it stand the lines of `place`, as they are: a piece of what was typed, and a caret.
    Only a broken pipe is passed on, or an endless input with nothing but bad lines would be read for ever.
    """
    err: TextIO | None = sys.stderr
    if err is None:  # print would take standard output instead
        return
    lines = [" ".join(message.split()), *place.splitlines()]
    words = "\n".join(map(printable, lines))
    try:
        print(f"floatlab: {words if shows_unicode(err) else words.translate(_PLAIN)}", file=err, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        pass


def lines() -> Iterator[tuple[int, str | None]]:
    """Yield the lines of standard input that are not empty, with their numbers; None for one that is too long."""
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise FileFormatError("- reads standard input, and standard input is closed")
    stream = stdin.buffer
    number = 0
    try:
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                while raw and not raw.endswith(b"\n"):
                    raw = stream.readline(MAX_LINE)
                yield number, None
                continue
            if number == 1:
                raw = raw.removeprefix(_BYTE_ORDER_MARK)
            text = raw.decode("utf-8", "backslashreplace").strip()
            if text:
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
    from os.path import join
    from tempfile import TemporaryDirectory

    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise FileFormatError("- reads standard input, and standard input is closed")
    try:
        brought = stdin.buffer.read(MAX_INPUT + 1)
    except OSError as error:
        raise FileFormatError(f"standard input cannot be read: {error.strerror or error}") from None
    if len(brought) > MAX_INPUT:
        raise FileFormatError(f"standard input has over {MAX_INPUT:,} bytes: name a file instead of -")
    with ExitStack() as held:
        try:
            path = join(held.enter_context(TemporaryDirectory(prefix="floatlab-")), "standard-input")
            with open(path, "wb") as file:
                file.write(brought)
        except OSError as error:
            raise FileFormatError(f"standard input cannot be kept in a file: {error.strerror or error}") from None
        try:
            yield path
        except FileFormatError as error:
            raise FileFormatError(re.sub(r"'[^']*standard-input'", "standard input", str(error))) from None


def settle() -> None:
    """Flush the streams for the last time.

    Python flushes them once more on its way out, and would complain: one that fails gets somewhere to go.
    """
    import os

    streams: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
