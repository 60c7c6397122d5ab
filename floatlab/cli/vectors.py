"""`floatlab vectors check` and `vectors generate`: conformance vectors in TestFloat's text format."""

from __future__ import annotations

import sys
import time

from floatlab.cli.output import Manner, manner_of
from floatlab.cli.parser import Parser
from floatlab.cli.progress import Watched
from floatlab.cli.streams import output, put
from floatlab.errors import FileFormatError, FloatlabError, printable, quoted
from floatlab.page.words import counted
from floatlab.verbs.option import UsageError
from floatlab.verbs.vectors.options import CHECK, SHOWN, VERB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO, TextIO

    from floatlab.numbers import Context
    from floatlab.vectors import Function, Mismatch

MAX_LINE = 10_000
_EVERY = 0.5  # seconds between words of progress
_BATCH = 2_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def run_vectors(words: Sequence[str]) -> int:
    """Run `vectors check` or `vectors generate`; return 1 where a line does not agree."""
    options = Parser(VERB).parse(words)
    manner = manner_of(options, output())
    if manner.svg is not None:
        raise UsageError("vectors draws nothing: --svg FILE is for the command that a mismatch names")
    question = VERB.question(options.values, vars(options))
    from floatlab.vectors import parse_function

    task, name, *files = question.values
    rule = question.option("nan", "x86")
    context = question.context.replace(nan="x86" if rule == "any" else rule)
    function = parse_function(name, question.option("exact", True))
    if task == CHECK:
        return _check(function, context, files, rule == "any", question.option("all", False), manner)
    return _generate(function, context, question.option("level", 1), question.option("lines"))


def _generate(function: Function, context: Context, level: int, count: int | None) -> int:
    from itertools import islice

    from floatlab.vectors import generate_lines

    written = generate_lines(function, context, level, context.seed, count)
    progress = _Progress("written", not output().isatty())
    while batch := list(islice(written, _BATCH)):
        put("".join(f"{line}\n" for line in batch))
        progress.add(len(batch))
    progress.clear()
    return 0


class _Progress(Watched):
    """A count on standard error, only where somebody watches and the work takes a while."""

    def __init__(self, done: str, wanted: bool = True) -> None:
        """Start counting."""
        super().__init__(wanted=wanted)
        self.done, self.count, self.last = done, 0, self.start

    def add(self, count: int = 1) -> None:
        """Count lines, and tell now and then."""
        self.count += count
        now = time.monotonic()
        if self.watched and now - self.last > _EVERY:
            self.last = now
            self.draw(f"{self.count:,} lines {self.done}, {self.count / (now - self.start):,.0f} a second ")


def _opened(name: str) -> IO[bytes]:
    if name != "-":
        return open(name, "rb")
    stdin: TextIO | None = sys.stdin
    if stdin is None:
        raise FileFormatError("- reads standard input, and standard input is closed")
    return stdin.buffer


def _unpacked(stream: IO[bytes], name: str) -> IO[bytes]:
    """Unpack a stream that gzip has packed: known by its first two bytes, whatever the name."""
    if _starts(stream, b"\x1f\x8b"):
        import gzip

        packed: IO[bytes] = gzip.GzipFile(fileobj=stream)  # type: ignore[assignment]
        return packed
    if name.endswith(".gz") and not _starts(stream, b""):
        raise FileFormatError("is named .gz, and is not packed with gzip")
    return stream


def _starts(stream: IO[bytes], start: bytes) -> bool:
    """Say whether a stream begins so (with nothing: whether it is empty), without reading on."""
    head: bytes = stream.peek(2)[:2] if hasattr(stream, "peek") else b"?"
    return head == start


def _lines(name: str) -> Iterator[str]:
    """Yield the lines of a file, each bounded in length; raises FileFormatError at what cannot be read."""
    from zlib import error as unpacking_error

    number = 1
    try:
        stream = _opened(name)
        try:
            source = _unpacked(stream, name)
            while raw := source.readline(MAX_LINE + 1):
                if len(raw) > MAX_LINE:
                    raise FileFormatError(f"line {number} has over {MAX_LINE:,} bytes: this is no file of vectors")
                if number == 1:
                    raw = raw.removeprefix(BYTE_ORDER_MARK)
                yield raw.decode("ascii", "backslashreplace")
                number += 1
        finally:
            if name != "-":
                stream.close()
    except FloatlabError:
        raise
    except (OSError, EOFError, ValueError, unpacking_error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileFormatError(f"cannot be read{f' past line {number - 1:,}' * (number > 1)}: {reason}") from None


def _place(name: str) -> str:
    """Return a file's name as data has it: bare, but nothing in it that a terminal would obey."""
    return "standard input" if name == "-" else printable(name)


def _check(
    function: Function, context: Context, names: list[str], any_nan: bool, everything: bool, manner: Manner
) -> int:
    from floatlab.vectors import check_lines

    total = wrong = 0
    failure = ""
    for name in names:
        progress, lines, differ = _Progress("checked"), 0, 0
        shown = "standard input" if name == "-" else quoted(name, 80)
        try:
            for found in check_lines(_lines(name), function, context, any_nan):
                lines += 1
                if lines % _BATCH == 0:
                    progress.add(_BATCH)
                if found is None:
                    continue
                differ += 1
                if manner.quiet or not (everything or manner.json or differ <= SHOWN):
                    continue
                progress.clear()
                put(_record(found, name, context) if manner.json else _written(found, name, context))
            if not lines:
                failure = f"{shown} holds no line of vectors"
        except FloatlabError as error:
            before = f"; {counted(lines, 'line')} before it, {_differ(differ)}" if lines else ""
            failure = f"{shown}: {error}{before}"
        finally:
            progress.clear()
        total, wrong = total + lines, wrong + differ
        if differ > SHOWN and not (everything or manner.json or manner.quiet):
            put(f"{_place(name)}: {counted(differ - SHOWN, 'more line')} differ; --all writes them\n")
        if failure:
            break
    put(_summary(function, context, total, wrong, any_nan, manner))
    if failure:
        raise FileFormatError(failure)
    return 1 if wrong else 0


def _differ(count: int) -> str:
    return f"{count:,} differ{'s' * (count == 1)}"


def _summary(function: Function, context: Context, total: int, wrong: int, any_nan: bool, manner: Manner) -> str:
    """Return the last line: how many lines were checked, by which rules, and how many differ."""
    if manner.json:
        from floatlab.wire.schema import json_line

        record = {
            "schema": 1,
            "operation": "vectors check",
            "function": function.name,
            "lines": total,
            "differ": wrong,
        }
        return json_line(record)
    if manner.quiet:
        return f"{wrong}\n"
    rule = "any NaN" if any_nan else f"NaNs as {context.nan.value}"
    return (
        f"{function.name} {context.rounding.value}, tininess {context.tininess.value} rounding, {rule}: "
        f"{counted(total, 'line')}, {_differ(wrong)}\n"
    )


def _written(found: Mismatch, name: str, context: Context) -> str:
    """Write a mismatch: where, the line, what was expected and computed, and the command that shows why."""
    where = f"{_place(name)}:{found.number}" if name != "-" else f"line {found.number}"
    return (
        f"{where}: {found.line}\n"
        f"  expected  {found.written(found.expected, found.expected_flags)}"
        f"  ({', '.join(found.expected_flags.names) or 'no flags'})\n"
        f"  computed  {found.written(found.computed, found.computed_flags)}"
        f"  ({', '.join(found.computed_flags.names) or 'no flags'})\n"
        f"  see why   {found.command(context)}\n"
    )


def _record(found: Mismatch, name: str, context: Context) -> str:
    from floatlab.vectors.functions import digits
    from floatlab.wire.schema import json_line

    wide = digits(found.function.result)
    record = {
        "schema": 1,
        "operation": "vectors check",
        "function": found.function.name,
        "file": name,
        "line": found.number,
        "text": found.line,
        "expected": {"code": f"0x{found.expected:0{wide}x}", "flags": found.expected_flags.names},
        "computed": {"code": f"0x{found.computed:0{wide}x}", "flags": found.computed_flags.names},
        "command": found.command(context),
    }
    return json_line(record)
