"""`floatlab vectors check` and `vectors generate`: conformance vectors in TestFloat's text format."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from math import inf
from typing import IO

from floatlab.cli.output import OutputSettings, output, put, settings_of
from floatlab.cli.parser import Parser
from floatlab.cli.progress import Watched
from floatlab.cli.standard_input import bounded_lines, standard_input
from floatlab.errors import FileFormatError, FloatlabError, printable, quoted
from floatlab.numbers import Context
from floatlab.page.words import counted
from floatlab.vectors import Function, Mismatch, check_lines, generate_lines, parse_function
from floatlab.vectors.functions import digits
from floatlab.verbs.option import UsageError
from floatlab.verbs.question import Question
from floatlab.verbs.vectors.options import CHECK, SHOWN, VERB
from floatlab.wire.codecs import json_line

MAX_LINE = 10_000
_EVERY = 0.5  # seconds between progress updates
_BATCH = 2_000


def run(words: list[str]) -> int:
    """Run `vectors check` or `vectors generate`; return the exit status, 1 if a line differs and 0 otherwise."""
    options = Parser(VERB).parse(words)
    settings = settings_of(options, output())
    if settings.svg is not None:
        flag = VERB.option("svg").flag
        raise UsageError(f"vectors has no picture: use {flag} FILE with the command that it prints for a mismatch")
    question = VERB.question(options.values, vars(options))
    rule = question.option("nan", "x86")
    context = question.context.replace(nan="x86" if rule == "any" else rule)
    function = parse_function(question.values[1], question.option("exact", True))
    if question.values[0] == CHECK:
        return _check(function, context, question, settings)
    return _generate(function, context, question)


def _generate(function: Function, context: Context, question: Question) -> int:
    written = generate_lines(function, context, question.option("level", 1), context.seed, question.option("lines"))
    progress = _Progress("written", not output().isatty())
    while batch := list(islice(written, _BATCH)):
        put("".join(f"{line}\n" for line in batch))
        progress.add(len(batch))
    progress.clear()
    return 0


class _Progress(Watched):
    """A line counter on standard error, shown only on a terminal and only if the work takes a while."""

    def __init__(self, done: str, wanted: bool = True) -> None:
        super().__init__(wanted)
        self.done, self.count, self.last = done, 0, self.start

    def add(self, count: int) -> None:
        """Count lines; redraw at intervals."""
        self.count += count
        now = time.monotonic()
        if self.watched and now - self.last > _EVERY:
            self.last = now
            self.draw(f"{self.count:,} lines {self.done}, {self.count / (now - self.start):,.0f} a second ")


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """Open a file or standard input; gzip data, recognized by its first two bytes, is decompressed."""
    with ExitStack() as held:
        stream = standard_input() if name == "-" else held.enter_context(open(name, "rb"))
        start = stream.peek(2)[:2] if hasattr(stream, "peek") else b"?"
        if start == b"\x1f\x8b":
            import gzip

            yield gzip.GzipFile(fileobj=stream)  # type: ignore[misc]
        elif name.endswith(".gz") and start:
            raise FileFormatError("is named .gz, but is not compressed with gzip")
        else:
            yield stream


def _lines(name: str) -> Iterator[str]:
    """Yield the lines of a file; raises FileFormatError if a line is too long or the file cannot be read."""
    from zlib import error as unpacking_error

    number = 0
    try:
        with _opened(name) as source:
            for number, raw in bounded_lines(source, MAX_LINE):
                if raw is None:
                    raise FileFormatError(f"line {number} has over {MAX_LINE:,} bytes: this is not a file of vectors")
                yield raw.decode("ascii", "backslashreplace")
    except FloatlabError:
        raise
    except (OSError, EOFError, ValueError, unpacking_error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileFormatError(f"cannot be read{f' past line {number:,}' * (number > 0)}: {reason}") from None


def _place(name: str) -> str:
    """Return a file's name for output, with control characters escaped; `-` becomes "standard input"."""
    return "standard input" if name == "-" else printable(name)


def _check(function: Function, context: Context, question: Question, settings: OutputSettings) -> int:
    total = wrong = 0
    failure = ""
    any_nan = question.option("nan") == "any"
    most = 0 if settings.quiet else inf if question.option("all") or settings.json else SHOWN
    for name in question.values[2:]:
        progress, lines, differ = _Progress("checked"), 0, 0
        shown = "standard input" if name == "-" else quoted(name, 80)
        try:
            for mismatch in check_lines(_lines(name), function, context, any_nan):
                lines += 1
                if lines % _BATCH == 0:
                    progress.add(_BATCH)
                differ += mismatch is not None
                if mismatch is not None and differ <= most:
                    progress.clear()
                    put(_record(mismatch, name, context) if settings.json else _written(mismatch, name, context))
            if not lines:
                failure = f"{shown} contains no vectors"
        except FloatlabError as error:
            before = f"; of {counted(lines, 'line')} before it, {_differ(differ)}" if lines else ""
            failure = f"{shown}: {error}{before}"
        finally:
            progress.clear()
        total, wrong = total + lines, wrong + differ
        if differ > most and not settings.quiet:
            more = counted(differ - SHOWN, "more line")
            put(f"{_place(name)}: {more} differ; {VERB.option('all').flag} writes them\n")
        if failure:
            break
    if total or not failure:
        put(_summary(function, context, total, wrong, any_nan, settings))
    if failure:
        raise FileFormatError(failure)
    return 1 if wrong else 0


def _differ(count: int) -> str:
    return f"{count:,} differ{'s' * (count == 1)}"


def _json(function: Function, **members: object) -> str:
    record: dict[str, object] = {"schema": 1, "operation": "vectors check", "function": function.name}
    return json_line(record | members)


def _summary(
    function: Function, context: Context, total: int, wrong: int, any_nan: bool, settings: OutputSettings
) -> str:
    """Return the last line of output: the rules, the number of lines checked, and the number of lines that differ."""
    if settings.json:
        return _json(function, lines=total, differ=wrong)
    if settings.quiet:
        return f"{wrong}\n"
    rule = "any NaN" if any_nan else f"NaNs as {context.nan.value}"
    rules = f"{function.name} {context.rounding.value}, tininess {context.tininess.value} rounding, {rule}"
    return f"{rules}: {counted(total, 'line')}, {_differ(wrong)}\n"


def _written(found: Mismatch, name: str, context: Context) -> str:
    """Describe a mismatch: its place, the line, the expected and computed results, and the command that explains it."""
    where = f"{_place(name)}:{found.number}" if name != "-" else f"line {found.number}"
    results = (("expected", found.expected, found.expected_flags), ("computed", found.computed, found.computed_flags))
    rows = [
        f"  {label}  {found.written(code, flags)}  ({', '.join(flags.names) or 'no flags'})\n"
        for label, code, flags in results
    ]
    return f"{where}: {found.line}\n{''.join(rows)}  see why   {found.command(context)}\n"


def _record(found: Mismatch, name: str, context: Context) -> str:
    wide = digits(found.function.result)
    return _json(
        found.function,
        file=name,
        line=found.number,
        text=found.line,
        expected={"code": f"0x{found.expected:0{wide}x}", "flags": found.expected_flags.names},
        computed={"code": f"0x{found.computed:0{wide}x}", "flags": found.computed_flags.names},
        command=found.command(context),
    )
