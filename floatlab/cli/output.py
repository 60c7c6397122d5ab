"""Writing answers: data to standard output, words to standard error."""

from __future__ import annotations

import os

from floatlab.cli.parser import WIDTHS, UsageError
from floatlab.cli.streams import output, put, say, shows_unicode
from floatlab.errors import FileFormatError, quoted
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import TextIO

    from floatlab.actions import Answer
    from floatlab.views.page import Page


class Manner(Record):
    """How answers are to be shown."""

    json: bool
    svg: str | None
    colour: bool
    width: int
    ascii: bool
    quiet: str | None
    csv: str | None = None


def manner_of(options: argparse.Namespace, out: TextIO) -> Manner:
    """Settle colour, width and characters from the options, the environment and the terminal."""
    if options.color not in ("auto", "always", "never"):
        raise UsageError(f"--color is one of auto always never, not {quoted(options.color)}")
    chosen = [name for name in ("json", "quiet") if getattr(options, name)] + ["svg -"] * (options.svg == "-")
    chosen += ["csv -"] * (getattr(options, "csv", None) == "-")
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} both want standard output: give one of them")
    if options.svg == "":
        raise UsageError("--svg '' names no file; - is standard output")
    if getattr(options, "csv", None) == "":
        raise UsageError("--csv '' names no file; - is standard output")
    return Manner(
        options.json,
        options.svg,
        _colour(options.color, out),
        _width(options.width, out),
        options.ascii or not shows_unicode(out),
        options.quiet,
        getattr(options, "csv", None),
    )


def _colour(word: str, out: TextIO) -> bool:
    if word != "auto":
        return word == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and out.isatty()


def _width(text: str | None, out: TextIO) -> int:
    if text is not None:
        if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) in WIDTHS):
            raise UsageError(f"--width takes a number of columns from {WIDTHS[0]} to {WIDTHS[-1]}, not {quoted(text)}")
        return int(text)
    if not out.isatty():
        return 80
    try:
        columns = os.get_terminal_size(out.fileno()).columns
    except (OSError, ValueError):
        return 80
    return min(max(columns, WIDTHS[0]), 120) if columns else 80


def write(answers: list[Answer], manner: Manner, first: bool = True) -> None:
    """Write answers; `first` is false where others came before on the same stream.

    Everything is drawn before anything is written: an answer that fails leaves standard output empty.
    """
    text = _drawn(answers, manner, first)
    for answer in answers:
        for hint in answer.hints:
            say(hint)
    put(text)


def _drawn(answers: list[Answer], manner: Manner, first: bool) -> str:
    """Return what standard output gets; a picture that has a file of its own is saved on the way."""
    if manner.svg is not None:
        picture = _picture(_page(answers), manner.width)
        if manner.svg == "-":
            return picture
        save("--svg", manner.svg, picture)
    if manner.csv is not None:
        table = "".join(answer.table() for answer in answers if answer.table is not None)
        if manner.csv == "-":
            return table
        save("--csv", manner.csv, table)
    if manner.json:
        from json import dumps

        return "".join(f"{dumps(record)}\n" for answer in answers for record in answer.records())
    if manner.quiet:
        found = [answer.codes() if manner.quiet == "code" else answer.words() for answer in answers]
        return "".join(f"{word}\n" for words in found for word in words)
    from floatlab.render.text import to_text

    return ("" if first else "\n") + to_text(_page(answers), manner.width, manner.colour, manner.ascii)


def _page(answers: list[Answer]) -> Page:
    from floatlab.views.page import joined

    return joined([answer.page() for answer in answers])


def _picture(page: Page, width: int) -> str:
    """Return SVG in the characters of standard output.

    XML without a declaration is UTF-8: where the stream is not, only references to characters are safe.
    """
    from floatlab.render.svg import to_svg

    picture = to_svg(page, width)
    if (getattr(output(), "encoding", None) or "utf-8").lower() in ("utf-8", "utf8"):
        return picture
    return picture.encode("ascii", "xmlcharrefreplace").decode("ascii")


def save(option: str, path: str, text: str) -> None:
    """Write what an option asked for into its file; raises FileFormatError that names both."""
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise FileFormatError(f"{option} {quoted(path)} cannot be written: {reason}") from None


__all__ = ["Manner", "manner_of", "save", "write"]
