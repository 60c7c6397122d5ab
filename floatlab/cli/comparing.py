"""`floatlab compare A B`: how two arrays differ, and whether that is within tolerance."""

from __future__ import annotations

from floatlab.cli.output import save
from floatlab.cli.parser import Parser, UsageError, add_formats, add_output, one_format, whole_number
from floatlab.errors import quoted
from floatlab.fpmode import in_default_mode
from floatlab.verbs.question import Question
from floatlab.verbs.registry import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from floatlab.verbs.answer import Answer

_HTML_WIDTH, _MOST_WORST = 100, 1000


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


def _tolerance(text: str | None, option: str) -> float | None:
    """Return a tolerance that was given."""
    from math import isfinite

    if text is None:
        return None
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not (isfinite(found) and found >= 0):
        raise UsageError(f"{option} takes a finite number from 0 on, not {quoted(text)}")
    return found


@in_default_mode
def compare_question(options: argparse.Namespace) -> Question:
    """Return the question that the options of `compare` ask."""
    formats = one_format(options, "compare counts the ulps of one format")
    if len(options.values) != 2:
        example = ACTIONS["compare"].examples[0]
        raise UsageError(f"compare takes two arrays, not {len(options.values)}, as in floatlab {example}")
    if "-" in options.values:
        raise UsageError("compare reads no standard input: name a file instead of -")
    for option in ("plot", "html"):
        if getattr(options, option) == "":
            raise UsageError(f"--{option} '' names no file")
    if options.plot is not None:
        from floatlab.page.figures import require_matplotlib

        require_matplotlib()  # before the work, not after it
    if options.op not in (None, "matmul", "dot"):
        raise UsageError(f"--op is matmul or dot, not {quoted(options.op)}")
    if options.op is not None and options.inputs is None:
        raise UsageError("--op says what was done to --inputs X Y, and there are none")
    return Question("compare", tuple(options.values), formats).having(
        rtol=_tolerance(options.rtol, "--rtol"),
        atol=_tolerance(options.atol, "--atol"),
        equal_nan=options.equal_nan or None,
        dtype=options.dtype,
        shape=options.shape,
        inputs=None if options.inputs is None else tuple(options.inputs),
        op=options.op,
        worst=whole_number(options.worst, "--worst", 0, _MOST_WORST),
    )


@in_default_mode
def draw_compared(options: argparse.Namespace, question: Question, answer: Answer) -> None:
    """Write the page and the figure that the options ask for besides."""
    if options.html is not None:
        from floatlab.page.svg import to_html

        save("--html", options.html, to_html(answer.page(), _HTML_WIDTH, question.command))
    if options.plot is not None:
        from floatlab.verbs.compare.figure import difference_figure

        difference_figure(answer.found, options.plot)
