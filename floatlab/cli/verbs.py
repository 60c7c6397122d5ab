"""The verbs: what each takes on the command line, and the action that it asks."""

from __future__ import annotations

from floatlab.actions import ACTIONS, Answer
from floatlab.cli.operations import VERBS as OPERATIONS
from floatlab.cli.operations import ask_operation, operation_parser
from floatlab.cli.parser import Parser, UsageError, add_formats, add_output, add_rounding, context_of, formats_named
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    # From the options to a function that answers values; a verb without values ignores them.
    Asking = Callable[[argparse.Namespace], Callable[[list[str]], list[Answer]]]


def _show_parser() -> Parser:
    parser = Parser(ACTIONS["show"])
    parser.add_argument("values", nargs="*", metavar="VALUE", help="a number, a code (bits:…), or - for standard input")
    group = parser.add_argument_group("what to show")
    group.add_argument("--bits", action="store_true", help="VALUE is a code: 0x3c7c or 0_01111_0001111100")
    group.add_argument("--little-endian", action="store_true", help="a code's bytes come last one first")
    group.add_argument("--interval", action="store_true", help="the reals that round to this value")
    group.add_argument("--directions", action="store_true", help="every rounding direction in one table")
    group.add_argument("--dialects", action="store_true", help="one code in every format of its width")
    group.add_argument("--like", metavar="LIBS", help="what installed libraries give: numpy,torch,ml_dtypes")
    add_formats(parser)
    add_rounding(parser)
    add_output(parser)
    return parser


def _show(options: argparse.Namespace) -> Callable[[str], Answer]:
    from floatlab.actions.show import show

    modes = [
        name for name in ("interval", "directions", "dialects", "like") if getattr(options, name) not in (None, False)
    ]
    if len(modes) > 1:
        raise UsageError(f"--{modes[0]} and --{modes[1]} are different pictures: give one of them")
    context = context_of(options)
    libraries = tuple(name.strip() for name in options.like.split(",")) if options.like is not None else ()
    return lambda text: show(
        text,
        tuple(options.formats or ()),
        context,
        bits=options.bits,
        little_endian=options.little_endian,
        interval=options.interval,
        directions=options.directions,
        dialects=options.dialects,
        like=libraries,
    )


def _convert_parser() -> Parser:
    parser = Parser(ACTIONS["convert"])
    parser.add_argument("values", nargs="*", metavar="VALUE", help="a number, a code of the first format, or -")
    parser.add_argument("--through", metavar="F1,F2,…", help="the formats, in order")
    parser.add_argument("--bits", action="store_true", help="VALUE is a code of the first format")
    add_rounding(parser)
    add_output(parser)
    return parser


def _convert(options: argparse.Namespace) -> Callable[[str], Answer]:
    from floatlab.actions.convert import convert_through

    if options.through is None:
        raise UsageError("convert needs --through F1,F2,…: the formats to round through, in order")
    path = tuple(formats_named(options.through, "--through"))
    context = context_of(options)
    return lambda text: convert_through(text, path, context, bits=options.bits)


def _formats_parser() -> Parser:
    parser = Parser(ACTIONS["formats"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a format to show in full")
    add_output(parser)
    return parser


def _formats(options: argparse.Namespace) -> Callable[[list[str]], list[Answer]]:
    from floatlab.actions.formats import formats

    return lambda _: [formats(tuple(options.names))]


def _one_by_one(asking: Callable[[argparse.Namespace], Callable[[str], Answer]]) -> Asking:
    """Answer each value by itself."""

    def ask(options: argparse.Namespace) -> Callable[[list[str]], list[Answer]]:
        answer = asking(options)
        return lambda values: [answer(value) for value in values]

    return ask


def _together(verb: str) -> Asking:
    """Answer the values of one operation at once."""

    def ask(options: argparse.Namespace) -> Callable[[list[str]], list[Answer]]:
        answer = ask_operation(verb, options)
        return lambda values: [answer(values)]

    return ask


class Verb(Record):
    """A verb of the command line: its parser, and what answers its values.

    `operands` says that the values of one line of standard input belong together.
    """

    parser: Callable[[], Parser]
    asking: Asking
    operands: bool = False
    needs_values: bool = True


def _operation(verb: str) -> Verb:
    return Verb(lambda: operation_parser(verb), _together(verb), operands=True)


VERBS: dict[str, Verb] = {
    "show": Verb(_show_parser, _one_by_one(_show)),
    "convert": Verb(_convert_parser, _one_by_one(_convert)),
    "formats": Verb(_formats_parser, _formats, needs_values=False),
    **{verb: _operation(verb) for verb in OPERATIONS},
}
