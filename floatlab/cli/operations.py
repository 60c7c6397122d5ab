"""The verbs of arithmetic: one parser for all, since they take the same things."""

from __future__ import annotations

from floatlab.cli.parser import (
    Parser,
    UsageError,
    add_formats,
    add_output,
    add_rounding,
    context_of,
    one_format,
    whole_number,
)
from floatlab.errors import UnsupportedError
from floatlab.verbs.question import Question
from floatlab.verbs.registry import ACTIONS, ARITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from floatlab.formats import Format
    from floatlab.numbers import Context

MAX_STEPS = 1000


def operation_parser(verb: str) -> Parser:
    """Return the parser of one verb of arithmetic."""
    from floatlab.arith.integers import DEFAULT_INTEGER

    parser = Parser(ACTIONS[verb])
    parser.add_argument("values", nargs="*", metavar="VALUE", help="a number, or VALUE@FORMAT")
    group = parser.add_argument_group("what to show")
    group.add_argument("--bits", action="store_true", help="values are codes: 0x3c7c or 0_01111_0001111100")
    if verb == "cmp":
        group.add_argument("--signaling", action="store_true", help="any NaN raises invalid")
    elif verb == "toint":
        words = f"i8 … i128, u8 … u128 ({DEFAULT_INTEGER})"
        group.add_argument("--int", "--to", dest="integer", metavar="TYPE", default=DEFAULT_INTEGER, help=words)
    if verb == "fma":
        group.add_argument(
            "--witness", action="store_true", help="find operands (near VALUEs) where fused and separate differ"
        )
        group.add_argument("--silent-nan", action="store_true", help="∞ × 0 + quiet NaN raises no invalid (7.2)")
    if verb in ("toint", "rint"):
        group.add_argument("--notexact", action="store_true", help="a changed value raises no inexact")
    if verb not in ("cmp", "toint"):
        group.add_argument("--steps", metavar="N", help="only the first N steps")
        group.add_argument("--brief", action="store_true", help="one line")
        group.add_argument("--why", action="store_true", help="each step with a sentence that says why")
    add_formats(parser)
    add_rounding(parser)
    add_output(parser)
    return parser


def operation_question(verb: str, options: argparse.Namespace) -> Question:
    """Return the question that one verb's options ask."""
    from floatlab.arith.integers import DEFAULT_INTEGER

    formats = one_format(options, f"{verb} gives one result, in one format")
    steps = getattr(options, "steps", None)
    if getattr(options, "brief", False):
        for name, given in (("--steps", steps is not None), ("--why", getattr(options, "why", False))):
            if given:
                raise UsageError(f"{name} and --brief are at odds: --brief is one line without steps")
    integer = getattr(options, "integer", DEFAULT_INTEGER)
    context = context_of(options).replace(fma_invalid=not getattr(options, "silent_nan", False))
    values = tuple(options.values)
    if len(values) > ARITIES[verb]:
        from floatlab.cli.hints import meant_by_extra

        if hint := meant_by_extra(verb, values):
            raise UsageError(hint)
    if getattr(options, "witness", False):
        values = _witness(values, formats, context)
    return Question(verb, values, formats, context).having(
        bits=options.bits or None,
        steps=whole_number(steps, "--steps", 1, MAX_STEPS),
        brief=getattr(options, "brief", False) or None,
        why=getattr(options, "why", False) or None,
        integer=None if integer == DEFAULT_INTEGER else integer,
        signaling=getattr(options, "signaling", False) or None,
        exact=False if getattr(options, "notexact", False) else None,
    )


def _witness(values: tuple[str, ...], formats: tuple[Format, ...], context: Context) -> tuple[str, ...]:
    """Return operands for which fma and multiply-then-add differ; raises UnsupportedError where there are none."""
    from floatlab.verbs.arithmetic.fma.witness import no_witness, witness

    if not formats:
        raise UsageError("--witness needs a format to look in, as in floatlab fma --witness --fp16")
    if len(values) not in (0, 3):
        raise UsageError(f"--witness starts from three values, or from none; {len(values)} were given")
    found = witness(formats[0], context, near=values)
    if found is None:
        raise UnsupportedError(no_witness(formats[0]))
    return found
