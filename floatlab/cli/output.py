"""Writing answers: data to standard output, words to standard error."""

from __future__ import annotations

import os
import sys

from floatlab.cli.parser import WIDTHS, UsageError
from floatlab.errors import FileFormatError, quoted
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import TextIO

    from floatlab.actions import Answer


class Manner(Record):
    """How answers are to be shown."""

    json: bool
    svg: str | None
    colour: bool
    width: int
    ascii: bool
    quiet: str | None


def manner_of(options: argparse.Namespace, out: TextIO) -> Manner:
    """Settle colour, width and characters from the options, the environment and the terminal."""
    if options.color not in ("auto", "always", "never"):
        raise UsageError(f"--color is one of auto always never, not {quoted(options.color)}")
    chosen = [name for name in ("json", "quiet") if getattr(options, name)] + ["svg -"] * (options.svg == "-")
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} both want standard output: give one of them")
    return Manner(
        options.json,
        options.svg,
        _colour(options.color, out),
        _width(options.width, out),
        options.ascii or not _shows_unicode(out),
        options.quiet,
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


def _shows_unicode(out: TextIO) -> bool:
    try:
        "×−→∞…≈≤".encode(out.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write(answers: list[Answer], manner: Manner, out: TextIO, first: bool = True) -> None:
    """Write answers; `first` is false where others came before on the same stream."""
    for answer in answers:
        for hint in answer.hints:
            print(f"floatlab: {hint}", file=sys.stderr)
    if manner.json:
        from json import dumps

        for answer in answers:
            for record in answer.records():
                out.write(dumps(record) + "\n")
        return
    if manner.quiet:
        for answer in answers:
            out.writelines(f"{word}\n" for word in (answer.codes() if manner.quiet == "code" else answer.words()))
        return
    from floatlab.render.text import to_text
    from floatlab.views.page import joined

    page = joined([answer.page() for answer in answers])
    if manner.svg is not None:
        from floatlab.render.svg import to_svg

        picture = to_svg(page, manner.width)
        if manner.svg == "-":
            out.write(picture)
            return
        try:
            with open(manner.svg, "w", encoding="utf-8") as file:
                file.write(picture)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise FileFormatError(f"--svg {quoted(manner.svg)}: {reason}") from None
    out.write(("" if first else "\n") + to_text(page, manner.width, manner.colour, manner.ascii))


__all__ = ["Manner", "manner_of", "write"]
