"""`floatlab sum`, `floatlab dot` and `floatlab matmul`: arrays added in a stated order."""

from __future__ import annotations

from floatlab.actions import ACTIONS
from floatlab.cli.output import manner_of, write
from floatlab.cli.parser import (
    Parser,
    UsageError,
    add_formats,
    add_output,
    add_rounding,
    context_of,
    formats_named,
    whole_number,
)
from floatlab.cli.streams import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from floatlab.cli.output import Manner
    from floatlab.formats import Format


RUNS, _MOST_RUNS = 5, 1000


def reduce_parser(verb: str) -> Parser:
    """Return the parser of `sum`, `dot` or `matmul`."""
    parser = Parser(ACTIONS[verb])
    parser.add_argument("values", nargs="*", metavar="ARRAY", help="a list (1.5,-2), a file, random:…")
    group = parser.add_argument_group("order")
    group.add_argument("--schedule", metavar="EXPR", help="serial (default), pairwise, blocked(128), ((0 1) (2 3)), …")
    group.add_argument("--adder", metavar="NAME", default="rounded", help="rounded|kahan|neumaier|klein|double")
    group.add_argument("--accumulator", metavar="F", help="the format of partial sums (default: the result's)")
    parser.set_defaults(fma=False, products=None, machine=None, preset=None)
    if verb != "sum":
        group.add_argument("--products", metavar="F", help="the format of products (default: the accumulator's)")
        group.add_argument("--fma", action="store_true", help="fuse products onto partial sums")
        group.add_argument("--no-fma", action="store_false", dest="fma", help="round products first (default)")
        group.add_argument("--machine", metavar="NAME", help="a model of a matrix unit, such as hopper.f16.f32")
    if verb == "dot":
        group.add_argument("--preset", metavar="NAME", help="the vectors of a known example: forum|paper")
    parser.set_defaults(observed=None, difference=None)
    if verb != "sum":
        group = parser.add_argument_group("cause")
        group.add_argument("--observed", metavar="V[,V]", help="which ways give this result, or these two; a file")
    if verb == "dot":
        group.add_argument("--difference", metavar="V", help="of the two observed results, as it was printed")
    parser.set_defaults(ways=False, runs=None)
    if verb == "matmul":
        group = parser.add_argument_group("on this machine")
        group.add_argument("--ways", action="store_true", help="by element, column, whole, in blocks: time and errors")
        group.add_argument("--runs", metavar="N", help="time each way so many times (default 5)")
    add_formats(parser)
    add_rounding(parser)
    add_output(parser)
    return parser


def _format(text: str | None, option: str) -> Format | None:
    if text is None:
        return None
    found = formats_named(text, option)
    if len(found) > 1:
        raise UsageError(f"{option} takes one format, and {text} names {len(found)}")
    return found[0]


def run_reduce(verb: str, words: Sequence[str]) -> int:
    """Run `sum`, `dot` or `matmul`."""
    options = reduce_parser(verb).parse(words)
    manner = manner_of(options, output())
    formats = options.formats or []
    if len(formats) > 1:
        names = ", ".join(format.name for format in formats)
        raise UsageError(f"{verb} has one result, and -f names {names}; --accumulator names that of partial sums")
    if not options.values and options.preset is None:
        raise UsageError(f"{verb} needs an array, as in floatlab {ACTIONS[verb].examples[0]}")
    if "-" in options.values:
        raise UsageError(f"{verb} reads no standard input: name a file instead of -")
    if options.difference is not None and (options.observed is None or "," not in options.observed):
        raise UsageError("--difference is that of two results: --observed V,V")
    if options.observed is not None:
        from floatlab.actions.reduce import attribute_words

        words, format = tuple(options.values), next(iter(formats), None)
        asked = attribute_words(verb, words, options.observed, options.difference, format, options.preset)
        write([asked], manner)
        return 0
    if options.ways:
        return _run_ways(options, next(iter(formats), None), manner)
    if options.runs is not None:
        raise UsageError("--runs says how often to time --ways, which was not given")
    context = context_of(options)
    accumulator = _format(options.accumulator, "--accumulator")
    products = _format(options.products, "--products")
    from floatlab.actions.reduce import answer_of, reduce_words
    from floatlab.numbers import Context

    found = reduce_words(
        verb,
        tuple(options.values),
        next(iter(formats), None),
        preset=options.preset,
        schedule=options.schedule,
        fma=options.fma,
        products=products,
        accumulator=accumulator,
        adder=options.adder,
        machine=options.machine,
        context=None if context == Context() else context,
    )
    write([answer_of(found, options.preset)], manner)
    return 0


def _run_ways(options: argparse.Namespace, format: Format | None, manner: Manner) -> int:
    """Run `matmul --ways`."""
    simulated = {
        "schedule": None,
        "adder": "rounded",
        "accumulator": None,
        "products": None,
        "fma": False,
        "machine": None,
    }
    for name, default in simulated.items():
        if getattr(options, name) != default:
            raise UsageError(f"--ways times NumPy's own products; --{name} is of simulated ones")
    runs = RUNS if options.runs is None else whole_number(options.runs, "--runs", 1, _MOST_RUNS)
    from floatlab.actions.ways import ways_answer
    from floatlab.formats import parse_format

    write([ways_answer(tuple(options.values), format or parse_format("binary32"), runs)], manner)
    return 0
