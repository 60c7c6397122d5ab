"""The door: words in, an exit status out. No traceback ever reaches a user."""

from __future__ import annotations

import sys

from floatlab import __version__
from floatlab.cli.output import Manner, manner_of, write
from floatlab.cli.parser import UsageError, overview
from floatlab.cli.verbs import VERBS
from floatlab.errors import FloatlabError, MissingPartError, guess, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from floatlab.actions import Answer

DONE, CHECK_FAILED, BAD_USAGE, MISSING_PART, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 3, 70, 130
MAX_LINE = 10_000_000  # characters of one line of standard input


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    >>> main(["show", "1.5", "--quiet=code", "--fp16"])
    0x3e00
    0
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _command(words)
    except MissingPartError as error:
        _say(str(error))
        return MISSING_PART
    except FloatlabError as error:
        _say(str(error))
        return BAD_USAGE
    except SystemExit as leaving:  # argparse's --help
        return leaving.code if isinstance(leaving.code, int) else DONE
    except BrokenPipeError:
        raise
    except Exception as error:
        return _report(error)


def run() -> None:
    """Run as a program: also end quietly at Ctrl-C and when nobody reads the output any more."""
    import os

    try:
        status = main()
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more on its way out; give it somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = DONE
    sys.exit(status)


def _say(message: str) -> None:
    print(f"floatlab: {' '.join(message.split())}", file=sys.stderr)


def _report(error: Exception) -> int:
    """Put the traceback in a file and ask for a report."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="floatlab-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exception(error, file=file)
    _say(f"an internal error ({type(error).__name__}); please report it with the file {file.name}")
    return INTERNAL_ERROR


def _command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return DONE
    if words[0] in ("-V", "--version"):
        print(f"floatlab {__version__}")
        return DONE
    verb = words.pop(0) if words[0] in VERBS else "show"
    make_parser, asking = VERBS[verb]
    options = make_parser().parse(words)
    manner = manner_of(options, sys.stdout)
    ask = asking(options)
    values = getattr(options, "values", [""])
    if not values:
        raise UsageError(f"{verb} needs a value, such as floatlab {verb} 1.5; floatlab {verb} --help tells more")
    if "-" in values:
        if values != ["-"]:
            raise UsageError("- reads the values from standard input and stands alone")
        return _stream(ask, manner)
    answers = [_ask(ask, value, verb) for value in values]
    write(answers, manner, sys.stdout)
    missing = [answer.missing for answer in answers if answer.missing]
    if missing:
        raise MissingPartError(missing[0])
    return DONE


def _ask(ask: Callable[[str], Answer], value: str, verb: str) -> Answer:
    try:
        return ask(value)
    except FloatlabError as error:
        hint = guess(value, list(VERBS)) if verb == "show" and value.isalpha() else ""
        if hint:
            raise UsageError(f"{quoted(value)} is neither a verb nor a number{hint}") from None
        raise error


def _lines() -> Iterator[tuple[int, str]]:
    """Yield the lines of standard input that are not empty, with their numbers, each bounded in length."""
    stream = sys.stdin.buffer
    number = 0
    while raw := stream.readline(MAX_LINE + 1):
        number += 1
        if len(raw) > MAX_LINE:
            _say(f"line {number}: longer than {MAX_LINE:,} characters")
            while raw and not raw.endswith(b"\n"):
                raw = stream.readline(MAX_LINE)
            yield number, ""
            continue
        text = raw.decode("utf-8", "backslashreplace").strip()
        if text:
            yield number, text


def _stream(ask: Callable[[str], Answer], manner: Manner) -> int:
    """Answer standard input line by line, as it comes; a bad line is reported and the rest goes on."""
    status, first = DONE, True
    for number, text in _lines():
        if not text:
            status = BAD_USAGE
            continue
        try:
            write([ask(text)], manner, sys.stdout, first)
        except FloatlabError as error:
            _say(f"line {number}: {error}")
            status = BAD_USAGE
            continue
        first = False
        sys.stdout.flush()
    return status
