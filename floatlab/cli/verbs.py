"""The verbs: what each takes on the command line, and the question that it asks."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from floatlab.cli.operations import operation_parser, operation_question
from floatlab.cli.parser import (
    Parser,
    UsageError,
    add_direction,
    add_formats,
    add_output,
    add_rounding,
    context_of,
    formats_named,
)
from floatlab.errors import quoted
from floatlab.record import Record
from floatlab.verbs.question import Question
from floatlab.verbs.registry import ACTIONS, ARITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from floatlab.verbs.answer import Answer


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


def _show(options: argparse.Namespace) -> Question:
    modes = {
        name: getattr(options, name)
        for name in ("interval", "directions", "dialects", "like")
        if getattr(options, name) not in (None, False)
    }
    if len(modes) > 1:
        first, second, *_ = modes
        raise UsageError(f"--{first} and --{second} are different pictures: give one of them")
    if "like" in modes:
        modes["like"] = tuple(name.strip() for name in options.like.split(","))
    question = Question("show", tuple(options.values), tuple(options.formats or ()), context_of(options))
    return question.having(bits=options.bits or None, little_endian=options.little_endian or None, **modes)


def _convert_parser() -> Parser:
    parser = Parser(ACTIONS["convert"])
    parser.add_argument("values", nargs="*", metavar="VALUE", help="a number, a code of the first format, or -")
    parser.add_argument("--through", "--to", metavar="F1,F2,…", help="the formats, in order")
    parser.add_argument("--bits", action="store_true", help="VALUE is a code of the first format")
    add_rounding(parser)
    add_output(parser)
    return parser


def _convert(options: argparse.Namespace) -> Question:
    values, named = _formats_last(options.values)
    if options.through is None:
        if not named:
            told = "convert needs --through F1,F2,…: the formats to round through, in order"
            raise UsageError(f"{told}; or name them last, as in convert 0.1 fp16")
        path = tuple(format for names in named for format in formats_named(names, "convert"))
    elif named:
        raise UsageError(f"--through names the formats, and {quoted(named[0])} is another: put it there")
    else:
        path = tuple(formats_named(options.through, "--through"))
    question = Question("convert", tuple(values), path, context_of(options))
    return question.having(bits=options.bits or None)


def _formats_last(values: list[str]) -> tuple[list[str], list[str]]:
    """Divide values from formats after them, as in 0.1 fp32 fp16, or 0.1 to fp16; what stands first is a value."""
    from floatlab.errors import FormatError

    count = len(values)
    while count > 1:
        try:
            formats_named(values[count - 1], "convert")
        except (FormatError, UsageError):
            break
        count -= 1
    named = values[count:]
    if named and count > 1 and values[count - 1] in ("to", "through"):
        count -= 1
    return values[:count], named


def _formats_parser() -> Parser:
    parser = Parser(ACTIONS["formats"])
    parser.add_argument("names", nargs="*", metavar="NAME", help="a format to show in full")
    add_output(parser)
    return parser


def _formats(options: argparse.Namespace) -> Question:
    return Question("formats", tuple(options.names))


def _block_parser() -> Parser:
    parser = Parser(ACTIONS["block"])
    parser.add_argument("values", nargs="*", metavar="VALUE", help="a number, VALUE@FORMAT, or - for standard input")
    parser.add_argument("--to", metavar="NAME", help="the block format: mxfp8_e4m3, mxfp4, nvfp4, …")
    group = parser.add_argument_group("scales")
    group.add_argument("--scale", metavar="RULE", help="floor|even|ceil|up|nearest (default: the format's own)")
    group.add_argument("--tensor-scale", metavar="VALUE", help="nvfp4's scale of the whole tensor (default: from amax)")
    add_direction(parser)
    add_output(parser)
    return parser


def _block(options: argparse.Namespace) -> Question:
    if options.to is None:
        raise UsageError("block needs --to NAME: the block format, as in --to mxfp4")
    question = Question("block", tuple(options.values), context=context_of(options))
    return question.having(to=options.to, scale=options.scale, tensor_scale=options.tensor_scale)


class Verb(Record):
    """A verb of the command line: its parser, and the question that its options ask.

    `joins` where the values of a line of standard input make one question, not one each; `reads_arrays` where all that
    standard input brings is one array among the values. `reads` where words may name files. `draw` writes what the
    options ask for besides the answer itself.
    """

    parser: Callable[[], Parser]
    question: Callable[[argparse.Namespace], Question]
    needs_values: bool = True
    joins: bool = False
    reads_arrays: bool = False
    reads: bool = False
    draw: Callable[[argparse.Namespace, Question, Answer], None] | None = None


def _operation(verb: str) -> Verb:
    return Verb(lambda: operation_parser(verb), lambda options: operation_question(verb, options), joins=True)


def _later(home: str, name: str, *words: Any) -> Any:
    """Call a function of a room of its own, which is imported only then: most verbs start faster than it does."""
    return getattr(import_module(f"floatlab.cli.{home}"), name)(*words)


def _reduction(verb: str) -> Verb:
    parser, question = (partial(_later, "reducing", f"reduce_{name}", verb) for name in ("parser", "question"))
    return Verb(parser, question, needs_values=False, reads_arrays=True, reads=True)


VERBS: dict[str, Verb] = {
    "show": Verb(_show_parser, _show),
    "convert": Verb(_convert_parser, _convert),
    "formats": Verb(_formats_parser, _formats, needs_values=False),
    **{verb: _operation(verb) for verb in ARITIES},
    "block": Verb(_block_parser, _block, joins=True),
    **{verb: _reduction(verb) for verb in ("sum", "dot", "matmul")},
    "reveal": Verb(
        partial(_later, "revealing", "reveal_parser"),
        partial(_later, "revealing", "reveal_question"),
        needs_values=False,
    ),
    "compare": Verb(
        partial(_later, "comparing", "compare_parser"),
        partial(_later, "comparing", "compare_question"),
        needs_values=False,
        reads=True,
        draw=partial(_later, "comparing", "draw_compared"),
    ),
    "train": Verb(
        partial(_later, "training", "train_parser"),
        partial(_later, "training", "train_question"),
        needs_values=False,
        reads=True,
        draw=partial(_later, "training", "draw_trained"),
    ),
}


def read_question(words: list[str]) -> Question:
    """Return the question that a command asks; without a verb it is `show`. Raises UsageError for what asks none.

    >>> read_question(["0.1", "--fp16"]).command
    'floatlab show 0.1 --fp16'
    """
    if {"-h", "--help"} & set(words):
        raise UsageError("--help is no question")
    name = words[0] if words and words[0] in VERBS else "show"
    verb = VERBS[name]
    question = verb.question(verb.parser().parse(words[1:] if words[:1] == [name] else words))
    if "-" in question.values:
        raise UsageError("- is standard input, and a question names its values: give them, or a file, instead")
    return question
