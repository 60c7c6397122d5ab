"""`floatlab reveal TARGET`: in which order a real implementation accumulates."""

from __future__ import annotations

from floatlab.actions import ACTIONS
from floatlab.cli.output import manner_of, write
from floatlab.cli.parser import Parser, UsageError, add_output, whole_number
from floatlab.cli.streams import output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CLAIMED, UNCLAIMED = 0, 1


def reveal_parser() -> Parser:
    """Return the parser of `reveal`."""
    parser = Parser(ACTIONS["reveal"])
    parser.add_argument(
        "values", nargs="*", metavar="TARGET", help="numpy.sum, torch.matmul, jax.numpy.dot, module:function"
    )
    group = parser.add_argument_group("what is asked")
    group.add_argument("--terms", metavar="N", help="so many terms (default 64)")
    group.add_argument(
        "--dtype", metavar="NAME", default="float32", help="float32 (default), float64, float16, bfloat16"
    )
    group.add_argument(
        "--kind", metavar="KIND", help="what a function takes: sum (x), dot (x, y), matvec (A, x), matmul (A, B)"
    )
    group.add_argument("--device", metavar="NAME", default="cpu", help="of torch and jax: cpu (default), cuda, …")
    group.add_argument("--seed", metavar="N", help="of the random data that are replayed (default 1)")
    add_output(parser)
    return parser


def run_reveal(words: Sequence[str]) -> int:
    """Run `reveal`; return 1 where the replay does not match wholly, so that nothing is claimed."""
    options = reveal_parser().parse(words)
    manner = manner_of(options, output())
    if len(options.values) != 1:
        example = ACTIONS["reveal"].examples[0]
        raise UsageError(f"reveal takes one target, not {len(options.values)}, as in floatlab {example}")
    from floatlab.actions.reveal import answer_of
    from floatlab.reduce.revelation import MOST_TERMS, examine

    terms = 64 if options.terms is None else whole_number(options.terms, "--terms", 1, MOST_TERMS)
    seed = 1 if options.seed is None else whole_number(options.seed, "--seed", 0, (1 << 64) - 1)
    found = examine(options.values[0], terms, options.dtype, kind=options.kind, device=options.device, seed=seed)
    write([answer_of(found)], manner)
    return CLAIMED if found.claim is not None else UNCLAIMED
