"""The verbs: what each takes on the command line, and the action that it asks."""

from __future__ import annotations

from floatlab.actions import ACTIONS, Answer
from floatlab.cli.parser import Parser, UsageError, add_formats, add_output, add_rounding, context_of, formats_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    # From the options to a function that answers one value; a verb without values ignores it.
    Asking = Callable[[argparse.Namespace], Callable[[str], Answer]]


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


def _formats(options: argparse.Namespace) -> Callable[[str], Answer]:
    from floatlab.actions.formats import formats

    return lambda _: formats(tuple(options.names))


VERBS: dict[str, tuple[Callable[[], Parser], Asking]] = {
    "show": (_show_parser, _show),
    "convert": (_convert_parser, _convert),
    "formats": (_formats_parser, _formats),
}
