"""`floatlab reveal TARGET`: in which order a real implementation accumulates."""

from __future__ import annotations

from floatlab.cli.parser import Parser, UsageError, add_output, whole_number
from floatlab.verbs.question import Question
from floatlab.verbs.registry import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

_MOST_TERMS = 1 << 16


def reveal_parser() -> Parser:
    """Return the parser of `reveal`."""
    parser = Parser(ACTIONS["reveal"])
    parser.add_argument(
        "values", nargs="*", metavar="TARGET", help="numpy.sum, torch.matmul, jax.numpy.dot, cupy.dot, module:function"
    )
    group = parser.add_argument_group("what is asked")
    group.add_argument("--terms", metavar="N", help="so many terms (default 64)")
    group.add_argument("--dtype", metavar="NAME", help="float32 (default), float64, float16, bfloat16")
    group.add_argument(
        "--kind", metavar="KIND", help="what a function takes: sum (x), dot (x, y), matvec (A, x), matmul (A, B)"
    )
    group.add_argument("--device", metavar="NAME", help="where torch or jax adds: cpu (default), cuda:1, …; cupy: cuda")
    group.add_argument("--seed", metavar="N", help="of the random data that are replayed (default 1)")
    add_output(parser)
    return parser


def reveal_question(options: argparse.Namespace) -> Question:
    """Return the question that the options of `reveal` ask."""
    if len(options.values) != 1:
        example = ACTIONS["reveal"].examples[0]
        raise UsageError(f"reveal takes one target, not {len(options.values)}, as in floatlab {example}")
    return Question("reveal", tuple(options.values)).having(
        terms=whole_number(options.terms, "--terms", 1, _MOST_TERMS),
        dtype=options.dtype,
        kind=options.kind,
        device=options.device,
        seed=whole_number(options.seed, "--seed", 0, (1 << 64) - 1),
    )
