"""`floatlab sum`, `floatlab dot` and `floatlab matmul`: arrays added in a stated order."""

from __future__ import annotations

from floatlab.cli.parser import (
    Parser,
    UsageError,
    add_formats,
    add_output,
    add_rounding,
    context_of,
    formats_named,
    one_format,
    whole_number,
)
from floatlab.numbers.context import DEFAULT
from floatlab.verbs.question import Question
from floatlab.verbs.registry import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from floatlab.formats import Format


_MOST_RUNS = 1000
# What says how a sum is simulated, by name, and what stands where nothing is said.
_SIMULATED = {
    "schedule": None,
    "adder": "rounded",
    "accumulator": None,
    "products": None,
    "fma": False,
    "machine": None,
}


def reduce_parser(verb: str) -> Parser:
    """Return the parser of `sum`, `dot` or `matmul`."""
    parser = Parser(ACTIONS[verb])
    parser.add_argument(
        "values", nargs="*", metavar="ARRAY", help="a list (1.5,-2), a file, random:…, or - for standard input"
    )
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
    parser.set_defaults(difference=None)
    group = parser.add_argument_group("cause")
    group.add_argument("--observed", metavar="V[,V]", help="which ways give this result, or these two; files of arrays")
    group.add_argument("--targets", metavar="LIST", help="try the orders of these, too: numpy.dot,torch.dot,…")
    if verb != "matmul":
        group.add_argument("--difference", metavar="V", help="of the two observed results, as it was printed")
    parser.set_defaults(ways=False, backends=None, runs=None)
    if verb == "matmul":
        group = parser.add_argument_group("on this machine")
        group.add_argument("--ways", action="store_true", help="by element, column, whole, in blocks: time and errors")
        group.add_argument(
            "--backends", nargs="?", const="all", metavar="LIST",
            help="numpy,torch,torch:cuda,jax,jax:gpu,cupy (default all), those that are there: time and distances",
        )  # fmt: skip
        group.add_argument("--runs", metavar="N", help="time each way so many times (default 5)")
    add_formats(parser)
    add_rounding(parser)
    add_output(parser)
    return parser


def reduce_question(verb: str, options: argparse.Namespace) -> Question:
    """Return the question that the options of `sum`, `dot` or `matmul` ask."""
    formats = one_format(options, f"{verb} has one result", "; --accumulator names that of partial sums")
    if not options.values and options.preset is None:
        raise UsageError(f"{verb} needs an array, as in floatlab {ACTIONS[verb].examples[0]}")
    if options.values.count("-") > 1:
        raise UsageError("- is standard input, which brings one array: name a file for the other")
    if options.difference is not None and (options.observed is None or "," not in options.observed):
        raise UsageError("--difference is that of two results: --observed V,V")
    question = Question(verb, tuple(options.values), formats, context_of(options)).having(preset=options.preset)
    simulated = {name: getattr(options, name) for name in _SIMULATED if getattr(options, name) != _SIMULATED[name]}
    if options.observed is not None:
        for name in simulated:
            raise UsageError(f"--observed tries the usual ways one by one, and --{name} names one: leave it out")
        targets = None if options.targets is None else tuple(each.strip() for each in options.targets.split(","))
        return question.having(observed=options.observed, difference=options.difference, targets=targets)
    if options.targets is not None:
        raise UsageError("--targets are tried on --observed V, and there is none")
    if options.ways or options.backends is not None:
        asked = "--ways times NumPy's own" if options.ways else "--backends times the libraries' own"
        if options.ways and options.backends is not None:
            raise UsageError("--ways is of NumPy alone, and --backends of one way: give one of them")
        for name in simulated:
            raise UsageError(f"{asked} products; --{name} is of simulated ones")
        if question.context != DEFAULT:
            raise UsageError(f"{asked} products; -r, --ftz and the like are for simulated ones")
        runs = whole_number(options.runs, "--runs", 1, _MOST_RUNS)
        return question.having(ways=options.ways or None, backends=options.backends, runs=runs)
    if options.runs is not None:
        raise UsageError("--runs says how often to time --ways or --backends, and neither was given")
    for name in ("accumulator", "products"):
        if name in simulated:
            simulated[name] = _format(simulated[name], f"--{name}")
    return question.having(**simulated)


def _format(text: str, option: str) -> Format:
    found = formats_named(text, option)
    if len(found) > 1:
        raise UsageError(f"{option} takes one format, and {text} names {len(found)}")
    return found[0]
