"""`floatlab compare A B`: how two arrays differ, and whether that is within tolerance."""

from __future__ import annotations

from floatlab.actions import ACTIONS
from floatlab.cli.output import manner_of, save, write
from floatlab.cli.parser import Parser, UsageError, add_formats, add_output, whole_number
from floatlab.cli.progress import Progress
from floatlab.cli.streams import output
from floatlab.errors import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from floatlab.arrays.errors import Differences
    from floatlab.formats import Format

WITHIN, BEYOND = 0, 1
_HTML_WIDTH = 100


def compare_parser() -> Parser:
    """Return the parser of `compare`."""
    parser = Parser(ACTIONS["compare"])
    parser.add_argument("values", nargs="*", metavar="ARRAY", help="actual, then expected: a file, a list, random:…")
    group = parser.add_argument_group("tolerance")
    group.add_argument("--rtol", metavar="X", help="relative to expected (default 1e-5)")
    group.add_argument("--atol", metavar="X", help="absolute (default 1e-8); with both, assert_close takes them too")
    group.add_argument("--equal-nan", action="store_true", help="two NaNs are equal")
    group = parser.add_argument_group("arrays")
    group.add_argument("--dtype", metavar="NAME", help="of files of raw numbers: f32, bf16, e4m3, int8, >f4, …")
    group.add_argument("--shape", metavar="MxN", help="of files of raw numbers (default: one axis)")
    group = parser.add_argument_group("cause")
    group.add_argument(
        "--inputs", nargs=2, metavar=("X", "Y"), help="the arrays are products of these: why they differ"
    )
    group.add_argument("--op", metavar="NAME", help="which product: matmul (default) or dot")
    group = parser.add_argument_group("what to show")
    group.add_argument("--worst", metavar="N", help="so many of the worst elements (default 5)")
    group.add_argument("--plot", metavar="FILE", help="draw the histogram with matplotlib: .png, .pdf, .svg")
    group.add_argument("--html", metavar="FILE", help="write the page as one HTML file")
    add_formats(parser)
    add_output(parser)
    return parser


def _tolerance(text: str | None, option: str, default: float) -> float:
    """Return a tolerance that was given, or the default."""
    from math import isfinite

    if text is None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not (isfinite(found) and found >= 0):
        raise UsageError(f"{option} takes a finite number from 0 on, not {quoted(text)}")
    return found


def run_compare(words: Sequence[str]) -> int:
    """Run `compare`; return 1 where an element lies beyond the tolerance, or the shapes do not go together."""
    options = compare_parser().parse(words)
    manner = manner_of(options, output())
    formats = options.formats or []
    if len(formats) > 1:
        names = ", ".join(format.name for format in formats)
        raise UsageError(f"compare counts the ulps of one format, and -f names {names}")
    if len(options.values) != 2:
        example = ACTIONS["compare"].examples[0]
        raise UsageError(f"compare takes two arrays, not {len(options.values)}, as in floatlab {example}")
    if "-" in options.values:
        raise UsageError("compare reads no standard input: name a file instead of -")
    for option in ("plot", "html"):
        if getattr(options, option) == "":
            raise UsageError(f"--{option} '' names no file")
    if options.plot is not None:
        from floatlab.render.figures import require_matplotlib

        require_matplotlib()  # before the work, not after it
    if options.op not in (None, "matmul", "dot"):
        raise UsageError(f"--op is matmul or dot, not {quoted(options.op)}")
    if options.op is not None and options.inputs is None:
        raise UsageError("--op says what was done to --inputs X Y, and there are none")
    from floatlab.actions.compare import answer_of, judge_words

    found, judged = _compared(options, formats), None
    if options.inputs is not None:
        words = tuple(options.values)
        judged = judge_words(words, tuple(options.inputs), next(iter(formats), None), dtype=options.dtype)
    answer = answer_of(found, judged)
    if options.html is not None:
        from shlex import join

        from floatlab.render.html import to_html

        page = to_html(answer.page(), _HTML_WIDTH, join(["floatlab", "compare", *words]))
        save("--html", options.html, page)
    if options.plot is not None:
        from floatlab.render.figures import difference_figure

        difference_figure(found, options.plot)
    write([answer], manner)
    return WITHIN if found.within else BEYOND


def _compared(options: argparse.Namespace, formats: list[Format]) -> Differences:
    from floatlab.actions.compare import compare_words
    from floatlab.arrays.errors import MOST_WORST, WORST
    from floatlab.arrays.tolerances import NUMPY

    rtol = _tolerance(options.rtol, "--rtol", NUMPY[0])
    atol = _tolerance(options.atol, "--atol", NUMPY[1])
    both = options.rtol is not None and options.atol is not None
    bars: list[Progress] = []

    def started(size: int) -> Callable[[int], None]:
        bars.append(Progress(size, "elements"))
        return bars[0].add

    try:
        return compare_words(
            tuple(options.values),
            next(iter(formats), None),
            rtol=rtol,
            atol=atol,
            equal_nan=options.equal_nan,
            torch_tolerances=(rtol, atol) if both else None,
            worst=WORST if options.worst is None else whole_number(options.worst, "--worst", 0, MOST_WORST),
            dtype=options.dtype,
            shape=options.shape,
            started=None if options.quiet else started,
        )
    finally:
        for bar in bars:
            bar.clear()
