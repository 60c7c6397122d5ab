"""`floatlab vectors check` and `vectors generate`: conformance vectors in TestFloat's text format."""

from __future__ import annotations

import sys
import time

from floatlab.actions import ACTIONS
from floatlab.cli.output import manner_of
from floatlab.cli.parser import Parser, UsageError, add_output, add_rounding, context_of, whole_number
from floatlab.cli.streams import lines as input_lines
from floatlab.cli.streams import output, put, say
from floatlab.errors import FileFormatError, FloatlabError, guess, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from typing import IO

    from floatlab.numbers import Context
    from floatlab.vectors import Function, Mismatch

MAX_LINES = 10**9
MAX_LINE = 10_000
SHOWN = 20  # mismatches written out unless --all
_EVERY = 0.5  # seconds between words of progress
_BATCH = 2_000


def vectors_parser() -> Parser:
    """Return the parser of `vectors`."""
    parser = Parser(ACTIONS["vectors"])
    parser.add_argument("values", nargs="*", metavar="WORD", help="check FUNCTION FILE…, or generate FUNCTION")
    group = parser.add_argument_group("vectors")
    group.add_argument("--level", metavar="N", default="1", help="generate: 1 a quick look, 2 a long one")
    group.add_argument("--lines", metavar="N", help="generate: how many lines (10,000 at level 1, 200,000 at 2)")
    group.add_argument("--all", action="store_true", help=f"check: write every mismatch, not only the first {SHOWN}")
    add_rounding(parser)
    parser.set_defaults(nan="x86")
    add_output(parser)
    return parser


def run_vectors(words: Sequence[str]) -> int:
    """Run `vectors check` or `vectors generate`; return 1 where a line does not agree."""
    options = vectors_parser().parse(words)
    task, *rest = options.values or [""]
    if task not in ("check", "generate"):
        raise UsageError(f"vectors takes check or generate, not {quoted(task)}{guess(task, ['check', 'generate'])}")
    if not rest:
        raise UsageError(f"vectors {task} needs a function, such as f16_add or e4m3_mulAdd")
    from floatlab.vectors import parse_function

    any_nan = options.nan == "any"
    if any_nan:
        options.nan = "x86"
    context, function = context_of(options), parse_function(rest[0])
    if task == "generate":
        return _generate(function, context, options, rest[1:])
    if len(rest) < 2:
        raise UsageError(f"vectors check {rest[0]} needs a file of vectors, or - for standard input")
    return _check(function, context, rest[1:], any_nan, options)


def _generate(function: Function, context: Context, options: argparse.Namespace, rest: list[str]) -> int:
    from itertools import islice

    from floatlab.vectors import generate_lines

    if rest:
        raise UsageError(f"vectors generate takes one function, and {quoted(rest[0])} is left over")
    level = whole_number(options.level, "--level", 1, 2)
    count = None if options.lines is None else whole_number(options.lines, "--lines", 1, MAX_LINES)
    written = generate_lines(function, context, level, context.seed, count)
    progress = _Progress("written")
    while batch := list(islice(written, _BATCH)):
        put("".join(f"{each}\n" for each in batch))
        progress.add(len(batch))
    progress.clear()
    return 0


class _Progress:
    """A count on standard error, only where somebody watches and the work takes a while."""

    def __init__(self, done: str) -> None:
        """Start counting."""
        self.done, self.count, self.shown = done, 0, False
        self.watched = sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()
        self.last = self.start = time.monotonic()

    def add(self, count: int = 1) -> None:
        """Count lines, and tell now and then."""
        self.count += count
        now = time.monotonic()
        if self.watched and now - self.last > _EVERY:
            self.last, self.shown = now, True
            sys.stderr.write(f"\r{self.count:,} lines {self.done}, {self.count / (now - self.start):,.0f} a second ")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the words of progress away."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _unpacked(name: str) -> IO[bytes]:
    if not name.endswith(".gz"):
        return open(name, "rb")
    import gzip

    packed: IO[bytes] = gzip.GzipFile(name, "rb")  # type: ignore[assignment]
    return packed


def _opened(name: str) -> Iterator[str]:
    """Yield the lines of a file, unpacked where its name ends in .gz, each bounded in length."""
    if name == "-":
        for number, text in input_lines():
            if text is None:
                raise FileFormatError(f"line {number}: too long for a line of vectors")
            yield text
        return
    try:
        with _unpacked(name) as stream:
            while raw := stream.readline(MAX_LINE + 1):
                if len(raw) > MAX_LINE:
                    raise FileFormatError(f"a line of over {MAX_LINE:,} bytes: this is no file of vectors")
                yield raw.decode("ascii", "backslashreplace")
    except (OSError, EOFError, ValueError) as error:
        if isinstance(error, FloatlabError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise FileFormatError(f"cannot be read: {reason}") from None


def _check(function: Function, context: Context, names: list[str], any_nan: bool, options: argparse.Namespace) -> int:
    from floatlab.vectors import check_lines

    manner = manner_of(options, output())
    total = wrong = 0
    failure = ""
    for name in names:
        progress, lines, differ = _Progress("checked"), 0, 0
        try:
            for found in check_lines(_opened(name), function, context, any_nan):
                lines += 1
                if lines % _BATCH == 0:
                    progress.add(_BATCH)
                if found is None:
                    continue
                differ += 1
                if manner.json:
                    put(_record(found, name, context))
                elif differ <= SHOWN or options.all:
                    progress.clear()
                    put(_written(found, name, context))
                elif differ == SHOWN + 1:
                    say(f"{quoted(name)}: more lines differ; --all writes them")
        except FloatlabError as error:
            failure = f"{quoted(name)}: {error} ({lines:,} lines before it were checked, {differ:,} differ)"
        finally:
            progress.clear()
        total, wrong = total + lines, wrong + differ
        if failure:
            break
    if not manner.json:
        rule = "any NaN" if any_nan else f"NaNs as {context.nan.value}"
        put(
            f"{function.name} {context.rounding.value}, tininess {context.tininess.value} rounding, {rule}: "
            f"{total:,} line{'s' * (total != 1)}, {wrong:,} differ{'s' * (wrong == 1)}\n"
        )
    if failure:
        raise FileFormatError(failure)
    return 1 if wrong else 0


def _written(found: Mismatch, name: str, context: Context) -> str:
    """Write a mismatch: where, the line, what was expected and computed, and the command that shows why."""
    where = f"{name}:{found.number}" if name != "-" else f"line {found.number}"
    command = found.command(context)
    return (
        f"{where}: {found.line}\n"
        f"  expected  {found.written(found.expected, found.expected_flags)}"
        f"  ({', '.join(found.expected_flags.names) or 'no flags'})\n"
        f"  computed  {found.written(found.computed, found.computed_flags)}"
        f"  ({', '.join(found.computed_flags.names) or 'no flags'})\n" + (f"  see why   {command}\n" if command else "")
    )


def _record(found: Mismatch, name: str, context: Context) -> str:
    from json import dumps

    record = {
        "schema": 1,
        "operation": "vectors check",
        "function": found.function.name,
        "file": name,
        "line": found.number,
        "text": found.line,
        "expected": {"code": f"{found.expected:#x}", "flags": found.expected_flags.names},
        "computed": {"code": f"{found.computed:#x}", "flags": found.computed_flags.names},
        "command": found.command(context),
    }
    return dumps(record) + "\n"
