"""Writing answers: data to standard output, messages to standard error.

The streams may be closed, full, broken, or in an encoding with few characters.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress

from floatlab.errors import FileFormatError, FloatlabError, printable, printable_lines, quoted
from floatlab.fpmode import in_default_mode
from floatlab.record import Record
from floatlab.verbs.option import WIDTHS, UsageError
from floatlab.verbs.registry import command_of, verb_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import TextIO

    from floatlab.page.model import Page
    from floatlab.verbs.question import Answer, Question

_HTML_WIDTH = 100
_TO_OUTPUT = ("svg", "csv", "html", "plan")  # options that name a file to write, or - for standard output
# Outputs must not overwrite the files of a checkpoint: those with these endings, among the first 2^16 entries of its
# folder.
_PARTS, _MOST_PARTS = (".safetensors", ".gguf", ".npz", ".npy", "config.json", ".index.json"), 1 << 16
_WRITING = (*_TO_OUTPUT, "plot")
_KINDS = {"svg": "SVG", "html": "HTML", "csv": "CSV"}  # options that write one kind of file, whatever its name
_OTHER_ENDINGS = (".svg", ".html", ".csv", ".png", ".pdf", ".jpg", ".jpeg", ".gif")
_PLAIN = str.maketrans({"−": "-", "…": "...", "×": "x"})  # replaced in error messages if the encoding lacks them


class OutputError(FloatlabError):
    """Standard output cannot be written."""


def shows_unicode(stream: TextIO) -> bool:
    """Return whether a stream's encoding can represent the characters of pages."""
    try:
        "×−→∞…≈≤".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def output() -> TextIO:
    """Return standard output; raises OutputError if the program was started without one."""
    out: TextIO | None = sys.stdout
    if out is None:
        raise OutputError("standard output is closed: there is nowhere to write the answer")
    return out


def put(text: str, drawn: bool = False) -> None:
    """Write data immediately; raises OutputError on failure, BrokenPipeError if the program that reads it has ended.

    Control sequences are escaped. If `drawn` is true, the control sequences are kept: the text is a page of `to_text`,
    with colours.
    """
    out = output()
    if not drawn and not text.replace("\n", "").isprintable():
        text = printable_lines(text)
    try:
        try:
            out.write(text)
        except UnicodeEncodeError:
            from floatlab.page.text_layout import ascii_only

            out.write(ascii_only(text))
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror or error}") from None


def say(message: str, place: str = "") -> None:
    """Write one message line to standard error. Control sequences are escaped; most I/O errors are ignored.

    The lines of `place` follow: an excerpt of the typed text, and a caret below it. BrokenPipeError is not ignored:
    otherwise, a command that reads endless bad lines would never stop, although nobody can read its messages any more.
    """
    err: TextIO | None = sys.stderr
    if err is None:  # for file=None, print would write to standard output
        return
    lines = [" ".join(message.split()), *place.splitlines()]
    words = "\n".join(map(printable, lines))
    try:
        print(f"floatlab: {words if shows_unicode(err) else words.translate(_PLAIN)}", file=err, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        pass


def is_watched() -> bool:
    """Return whether standard error is a terminal."""
    isatty = getattr(sys.stderr, "isatty", None)
    return isatty is not None and bool(isatty())


def settle() -> None:
    """Flush the streams for the last time.

    Python flushes the streams again at exit and would report failures. Therefore a broken stream is redirected to
    devnull.
    """
    streams: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class OutputSettings(Record):
    """What a command writes, where and how: the settings from its options, the environment and the terminal."""

    json: bool
    colour: bool
    width: int
    ascii: bool
    quiet: str | None
    svg: str | None
    csv: str | None
    html: str | None
    plot: str | None
    plan: str | None

    @property
    def draws(self) -> bool:
        """Whether a page, not data, goes to standard output."""
        return not (self.json or self.quiet or "-" in (self.svg, self.csv, self.html, self.plan))


def settings_of(options: argparse.Namespace, out: TextIO) -> OutputSettings:
    """Return the settings that the options, the environment and the terminal determine; raises UsageError."""
    color = "auto" if options.color is None else options.color
    if color not in ("auto", "always", "never"):
        raise UsageError(f"--color must be one of auto always never, not {quoted(color)}")
    files = {name: getattr(options, name, None) for name in _WRITING}
    data = [name for name in ("json", "quiet") if getattr(options, name)]
    data += [f"{name} -" for name in _TO_OUTPUT if files[name] == "-"]
    if len(data) > 1:
        raise UsageError(f"--{data[0]} and --{data[1]} both write to standard output: give one of them")
    for name, path in files.items():
        if path == "":
            raise UsageError(f"--{name} '' names no file{'; - means standard output' * (name in _TO_OUTPUT)}")
        if path and name in _KINDS and path.lower().endswith(_OTHER_ENDINGS) and not path.lower().endswith(f".{name}"):
            raise UsageError(f"--{name} writes {_KINDS[name]}: name a file that ends in .{name}, not {quoted(path)}")
    if files["plot"] == "-":
        raise UsageError("--plot takes the name of a file, such as plot.png: a figure does not go to standard output")
    return OutputSettings(
        json=bool(options.json),
        colour=_colour(color, out),
        width=_width(options.width, out),
        ascii=bool(options.ascii) or not shows_unicode(out),
        quiet=options.quiet,
        **files,
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


def write(answers: list[Answer], settings: OutputSettings, first: bool = True, document: str = "") -> None:
    """Write answers; `first` is false if other answers have already been written to the same stream.

    A `document` goes to standard output in place of the answers. Everything is drawn before anything is written, so
    standard output stays empty if an answer fails.
    """
    text = _drawn(answers, settings, first, document)
    for hint in dict.fromkeys(hint for answer in answers for hint in answer.hints):
        say(hint)
    put(text, drawn=settings.draws)


@in_default_mode
def _drawn(answers: list[Answer], settings: OutputSettings, first: bool, document: str) -> str:
    """Return the text for standard output; a picture or table that goes to a file is saved here."""
    if settings.svg is not None:
        picture = _picture(_page(answers), settings.width)
        if settings.svg == "-":
            return picture
        save("--svg", settings.svg, picture)
    if settings.csv is not None:
        table = "".join(answer.table() for answer in answers if answer.table is not None)
        if settings.csv == "-":
            return table
        save("--csv", settings.csv, table)
    if document:
        return document
    if settings.json:
        from floatlab.wire.codecs import json_line

        return "".join(json_line(record) for answer in answers for record in answer.records())
    if settings.quiet:
        found = [answer.codes() if settings.quiet == "code" else answer.words() for answer in answers]
        return "".join(f"{word}\n" for words in found for word in words)
    from floatlab.page.text_layout import to_text

    return ("" if first else "\n") + to_text(_page(answers), settings.width, settings.colour, settings.ascii)


def _page(answers: list[Answer]) -> Page:
    from floatlab.page.model import joined

    return joined([answer.page() for answer in answers])


def _picture(page: Page, width: int) -> str:
    """Return a page as SVG, in characters that standard output can represent."""
    from floatlab.page.svg import to_svg

    return _with_references(to_svg(page, width))


def _with_references(markup: str) -> str:
    """Return XML or HTML. If standard output is not UTF-8, replace non-ASCII characters by character references."""
    if (getattr(output(), "encoding", None) or "utf-8").lower() in ("utf-8", "utf8"):
        return markup
    return markup.encode("ascii", "xmlcharrefreplace").decode("ascii")


@in_default_mode
def write_files(question: Question, answer: Answer, settings: OutputSettings) -> str:
    """Write the page, the plan and the figure to the files given by --html, --plan and --plot.

    Return the text that an option sends to standard output instead of a file; "" if no option does this.
    """
    document = ""
    if settings.html is not None:
        from floatlab.page.svg import to_html

        command = command_of(question)
        text = answer.document(command) if answer.document else to_html(answer.page(), _HTML_WIDTH, command)
        if settings.html == "-":
            document = _with_references(text)
        else:
            save("--html", settings.html, text)
    if settings.plan is not None and answer.plan is not None:
        if settings.plan == "-":
            document = answer.plan()
        else:
            save("--plan", settings.plan, answer.plan())
    plot = verb_named(question.verb).plot
    if settings.plot is not None and plot is not None:
        plot(answer, settings.plot)
    return document


def save(option: str, path: str, text: str) -> None:
    """Write the output of an option to its file; raises FileFormatError, which names the option and the file."""
    from floatlab.atomic_write import replacing

    with refusing(option, path), replacing(path) as file:
        file.write(text.encode())


@contextmanager
def refusing(option: str, path: str) -> Iterator[None]:
    """If the file of an option cannot be written, raise FileFormatError with the names of the option and the file."""
    try:
        yield
    except FileFormatError as error:
        reason = f"it {error}"
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error)
    else:
        return
    raise FileFormatError(f"{option} {quoted(path)} cannot be written: {reason}")


def check_outputs(settings: OutputSettings, read: list[str], resumed: str | None = None) -> None:
    """Refuse unsuitable output files before the work starts.

    An output file is refused if it cannot be written, if the command also reads it, or if two outputs would share it.

    `read` are words that may name files or arrays in files, such as `FILE::NAME`; other words are ignored. `resumed` is
    the file of `--resume`.
    """
    if settings.plot is not None:
        from floatlab.page.figures import require_matplotlib

        require_matplotlib(settings.plot)  # before the work, not after it
    files = {f"--{name}": path for name in _WRITING if (path := getattr(settings, name)) not in (None, "-")}
    if not files:
        return
    from floatlab.atomic_write import state_of

    kept = [(state, "is read by this command") for word in read for state in _states(word)]
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            kept.append((os.fstat(stream.fileno()), "is already the output of this command (- means standard output)"))
    new = {} if resumed is None else {os.path.realpath(resumed): "is the file of --resume"}
    for option, path in files.items():
        with refusing(option, path):
            state, place = state_of(path), os.path.realpath(path)
            words = next((words for other, words in kept if state and os.path.samestat(state, other)), "")
            words = new.get(place, words)
            if words:
                raise FileFormatError(f"{words}; name another file")
            new[place] = f"is also the output of {option}"
            if state is not None:
                kept.append((state, new[place]))


def _states(word: str) -> Iterator[os.stat_result]:
    """Yield `os.stat` of the files that a word may name.

    These names are tried: the whole word, the part before each `::`, and each part between commas.
    """
    parts = word.split("::")
    for name in {*("::".join(parts[:n]) for n in range(1, len(parts) + 1)), *word.split(",")}:
        with suppress(OSError, ValueError):
            yield os.stat(name)
            yield from _parts(name)


def _parts(name: str) -> Iterator[os.stat_result]:
    """Yield `os.stat` of the files of a checkpoint, if `name` is a folder or an index."""
    folder = name if os.path.isdir(name) else os.path.dirname(name) or "." if name.endswith(".index.json") else None
    if folder is not None:
        from itertools import islice

        with os.scandir(folder) as entries:
            yield from (each.stat() for each in islice(entries, _MOST_PARTS) if each.name.lower().endswith(_PARTS))
