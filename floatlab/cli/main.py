"""Entry point: arguments in, exit status out. Users never see a traceback."""

from __future__ import annotations

import sys
from contextlib import ExitStack, suppress
from importlib import import_module

from floatlab import __version__
from floatlab.cli.output import (
    OutputSettings,
    check_outputs,
    is_watched,
    output,
    put,
    say,
    settings_of,
    settle,
    write,
    write_files,
)
from floatlab.cli.parser import Parser, overview
from floatlab.errors import FloatlabError, LiteralError, MissingPartError, PlanError, RecipeError, guess, quoted
from floatlab.verbs.option import UsageError
from floatlab.verbs.registry import VERBS, answer_question, asks, verb_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from floatlab.verbs.question import Answer, Question, Started

DONE, CHECK_FAILED, BAD_USAGE, MISSING_PART, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 3, 70, 130


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
        return _end(MISSING_PART, str(error))
    except (PlanError, RecipeError) as error:
        said, _, place = str(error).partition("\n")
        return _end(BAD_USAGE, said, place)
    except FloatlabError as error:
        return _end(BAD_USAGE, str(error))
    except SystemExit as leaving:  # argparse's --help
        return leaving.code if isinstance(leaving.code, int) else DONE
    except BrokenPipeError:
        raise
    except MemoryError:
        return _end(BAD_USAGE, "there is not enough memory for this many numbers")
    except Exception as error:
        return _end(INTERNAL_ERROR, _report(error))


def run() -> None:
    """Run `main` as a program: Ctrl-C and a broken pipe end it without a traceback."""
    try:
        status = main()
    except KeyboardInterrupt as stop:
        status = _end(INTERRUPTED, str(stop)) if str(stop) else INTERRUPTED
    except BrokenPipeError:
        status = DONE
    settle()
    sys.exit(status)


def _end(status: int, message: str, place: str = "") -> int:
    with suppress(BrokenPipeError):  # if stderr is closed, the exit status still reports the failure
        say(message, place)
    return status


def _report(error: Exception) -> str:
    """Write the traceback of an internal error to a file; return a message that asks the user to report it.

    If no file can be written, the message says where in the code the error occurred.
    """
    import tempfile
    import traceback

    from floatlab.sandbox import confined

    told = f"an internal error ({type(error).__name__}); please report it with"
    try:
        if confined():
            raise OSError  # browser users could fill the disk
        with tempfile.NamedTemporaryFile(
            "w", prefix="floatlab-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            traceback.print_exception(error, file=file)
    except OSError:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{told} these words: {where.name}, line {where.lineno}: {str(error)[:200]}"
    return f"{told} the file {file.name}"


def _command(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        return _help(words[1:])
    if words[0] in ("-V", "--version"):
        put(f"floatlab {__version__} (compiled lane: {_compiled_lane()})\n")
        return DONE
    if words[0] in VERBS and not asks(words[0]):
        return _run(*words)
    named = words[0] in VERBS
    name = words.pop(0) if named else "show"
    verb = verb_named(name)
    options = Parser(verb).parse(words)
    settings = settings_of(options, output())
    question = verb.question(options.values, vars(options))
    check_outputs(settings, verb.words(question) if verb.reads_files else [], question.option("resume"))
    values = list(question.values)
    if not values and verb.needs_values:
        example = verb.examples[0]
        raise UsageError(f"{name} needs a value, as in floatlab {example}; see floatlab {name} --help")
    if "-" in values and verb.needs_values:
        if values != ["-"]:
            raise UsageError(
                "- reads the values from standard input, so no other value may be given (to subtract, use sub A B)"
            )
        if settings.svg is not None:
            raise UsageError("--svg draws one picture, but - may read many values: give the value itself instead of -")
        split = str.split if verb.joins else lambda text: [text]
        return _stream(lambda text: answer_question(question.replace(values=tuple(split(text)))), settings)
    with ExitStack() as held:
        if "-" in values and verb.reads_array:
            from floatlab.cli.standard_input import input_as_file

            path = held.enter_context(input_as_file())
            question = question.replace(values=tuple(path if value == "-" else value for value in values))
        started = None
        if settings.quiet is None and (verb.takes_long or is_watched()):
            from floatlab.cli.progress import Bar

            bar = Bar()
            held.callback(bar.clear)
            started = bar.begin
        answers = _answers(question, None if named else words[0], started)
    document = ""
    if (settings.html, settings.plot, settings.plan) != (None, None, None):
        document = write_files(question, answers[0], settings)
    write(answers, settings, document=document)
    missing = [answer.missing for answer in answers if answer.missing]
    if missing:
        raise MissingPartError(missing[0])
    return max((answer.status for answer in answers), default=DONE)


def _run(name: str, *words: str) -> int:
    """Run a verb that has no `Question` (`vectors`, `completion`, `tui`); return the exit status."""
    if name == "vectors":
        from floatlab.cli.vectors import run
    elif name == "completion":
        from floatlab.cli.completion import run
    else:
        from floatlab.cli.explorer import run
    return run(list(words))


def _compiled_lane() -> str:
    """Return `yes` or `no`: whether the compiled extension of floatlab.arrays can be imported."""
    try:
        import_module("floatlab._kernels")
    except ImportError:
        return "no"
    return "yes"


def _help(words: list[str]) -> int:
    """Write the overview for `floatlab help`, and the help of a verb for `floatlab help VERB`."""
    if not words or words[0].startswith("-"):
        put(overview())
        return DONE
    if words[0] not in VERBS:
        raise UsageError(f"{quoted(words[0])} is not a verb{guess(words[0], list(VERBS))}; floatlab help lists them")
    Parser(verb_named(words[0])).print_help()
    return DONE


def _answers(question: Question, first: str | None, started: Started | None) -> list[Answer]:
    """Answer a question; `first` is the first word of the command, or None if this word is a verb.

    If a value cannot be read, raises UsageError with a suggestion, or LiteralError if there is no suggestion.
    """
    try:
        return answer_question(question, started)
    except LiteralError:
        from floatlab.cli.hints import meant_by_value

        verb = verb_named(question.verb)
        hint = next(filter(None, (meant_by_value(verb, value, first) for value in question.values)), "")
        if hint:
            raise UsageError(hint) from None
        raise


def _stream(ask: Callable[[str], list[Answer]], settings: OutputSettings) -> int:
    """Answer standard input line by line; a bad line is reported, and the remaining lines are still answered."""
    from floatlab.cli.standard_input import MAX_LINE, lines

    status, first, missing = DONE, True, ""
    for number, text in lines():
        try:
            if text is None:
                raise LiteralError(f"longer than {MAX_LINE:,} bytes")
            answers = ask(text)
            write(answers, settings, first)
        except FloatlabError as error:
            say(f"line {number}: {error}")
            status = BAD_USAGE
            continue
        first = False
        missing = missing or next((answer.missing for answer in answers if answer.missing), "")
    if missing and status == DONE:
        raise MissingPartError(missing)
    return status
