"""The verbs `sum`, `dot` and `matmul`, and their options."""

from __future__ import annotations

from floatlab.verbs.option import RESULT, ROUNDING, Option, OptionRule, UsageError, grouped, listed, one_format, whole
from floatlab.verbs.question import Question, Verb

_ARRAYS = (
    "An array is a list (1.5,-2,0x1p-3), a file (.npy, .npz::NAME, .safetensors::NAME, text), or "
    "random:normal:1000:seed=1 (uniform, normal, lognormal), or - for standard input. Text is rounded to nearest "
    "into the format after @ (ARRAY@FORMAT), or else that of -f, or else binary32. Schedules: serial, reversed, "
    "pairwise, numpy, blocked(128), splitk(4), lanes(8), unrolled(4), halving(128), adjacent, folded, fused(16), "
    "interleaved(4, 2), sorted(up), permuted((2 0 1)), trees such as ((0 1) (2 3)), and combinations such as "
    "blocked(448, serial, pairwise). With up to 16 terms, every rounding is shown."
)
_MOST_RUNS = 1000
_LARGEST_BLOCK = 10**9
_CONTEXT = tuple(option.name for option in ROUNDING)
# Options of the simulated sum.
_SIMULATED = ("schedule", "adder", "accumulator", "products", "fma", "machine")


def _validate(question: Question) -> Question:
    verb, values = question.verb, question.values
    if not values and question.option("preset") is None:
        raise UsageError(f"{verb} needs an array, as in floatlab {VERBS[verb].examples[0]}")
    if values.count("-") > 1:
        raise UsageError("- is standard input, which has only one array: name a file for the other")
    if question.option("difference") is not None and "," not in question.option("observed"):
        raise UsageError("--difference needs two results: --observed V,V")
    return question


_SCHEDULES = "serial (default), pairwise, blocked(128), ((0 1) (2 3)), …"
_ACCUMULATOR = "format of partial sums (default: the result's)"
_ORDER = (
    Option("schedule", "EXPR", _SCHEDULES, also=("order", "algorithm")),
    Option("adder", "NAME", "rounded|kahan|neumaier|klein|double", default="rounded"),
    Option("accumulator", "F", _ACCUMULATOR, read=one_format, also=("acc", "accumulate")),
)
_PRODUCTS = (
    Option("products", "F", "format of products (default: the accumulator's)", read=one_format),
    Option("fma", "", "use fused multiply-adds", default=False),
    Option("fma", "", "round products before adding (default)", flags=("--no-fma",), value=False, default=False),
    Option("machine", "NAME", "a model of a matrix unit, such as hopper.f16.f32"),
)
_SCALES = (
    Option("scale_a", "ARRAY", "block scales along the first matrix's rows, for a machine such as blackwell.nvf4.f32"),
    Option("scale_b", "ARRAY", "block scales along the second matrix's columns"),
)
_PRESET = Option("preset", "NAME", "the vectors of a known example: forum|paper")
_OBSERVED = (
    Option("observed", "V[,V]", "find candidate computations that give this result, or these two"),
    Option("targets", "LIST", "also try the orders of these functions: numpy.dot,torch.dot,…", read=listed),
)
_DIFFERENCE = Option("difference", "V", "the difference of the two observed results, as printed")
_LIBRARIES = "numpy,torch,torch:cuda,jax,jax:gpu,cupy (default: all that are installed): compare times and results"
_TIMED = (
    Option("ways", "", "multiply as a whole, and by elements, rows, columns and blocks: compare times and errors"),
    Option("backends", "LIST", _LIBRARIES, optional="all"),
    Option(
        "block_size",
        "N",
        "terms in a block of --ways (default 64)",
        read=whole(1, _LARGEST_BLOCK),
        also=("block", "blocksize", "tile"),
    ),
    Option("runs", "N", "number of timed runs (default 5)", read=whole(1, _MOST_RUNS)),
)
_OPTION_RULES = (
    OptionRule(("observed",), "--observed tries the usual candidates", (*_SIMULATED, "ways", "backends")),
    OptionRule(("targets",), "their orders are tried on an observed result", needs=("observed",)),
    OptionRule(("difference",), "it is the difference of two results, --observed V,V", needs=("observed",)),
    OptionRule(("ways",), "--ways times NumPy's own products", ("backends", *_SIMULATED, *_CONTEXT)),
    OptionRule(("backends",), "--backends times the libraries' own products", (*_SIMULATED, *_CONTEXT)),
    OptionRule(("block_size",), "it is the number of terms in a block", needs=("ways",)),
    OptionRule(("runs",), "it is the number of timed runs", needs=("ways", "backends")),
    OptionRule(("scale_a", "scale_b"), "scales belong to a machine's blocks", needs=("machine",)),
)


def _reduction(
    name: str, summary: str, examples: tuple[str, str], explanation: str, **groups: tuple[Option, ...]
) -> Verb:
    """Return the definition of `sum`, `dot` or `matmul`.

    `groups` holds the options that only some of these verbs have, under the keys `order`, `cause` and `timed`.
    """
    order, cause = (*_ORDER, *groups.get("order", ())), (*_OBSERVED, *groups.get("cause", ()))
    options = (*grouped("order", *order), *grouped("cause", *cause))
    return Verb(
        name=name,
        summary=summary,
        examples=examples,
        explanation=explanation,
        takes=("ARRAY", "a list (1.5,-2), a file, random:…, or - for standard input"),
        options=(*options, *grouped("on this machine", *groups.get("timed", ())), *RESULT),
        rules=_OPTION_RULES,
        one_format=f"{name} has one result, but -f names {{}}; --accumulator names the format of partial sums",
        validate=_validate,
        needs_values=False,
        reads_array=True,
        reads_files=True,
    )


VERBS = {
    verb.name: verb
    for verb in (
        _reduction(
            "sum",
            "add the numbers of an array in a given order, and show every rounding",
            ("sum 2048,1,3 --fp16", "sum random:normal:1000:seed=1 --fp32 --schedule numpy"),
            _ARRAYS,
            cause=(_DIFFERENCE,),
        ),
        _reduction(
            "dot",
            "compute the dot product of two arrays in a given order, with or without fused multiply-adds",
            ("dot --preset forum --fma", "dot 1,2,3 4,5,6 --fp16 --schedule pairwise --accumulator fp32"),
            f"{_ARRAYS} A machine is a published model of a matrix unit; it determines formats and roundings.",
            order=(*_PRODUCTS, _PRESET),
            cause=(_DIFFERENCE,),
        ),
        _reduction(
            "matmul",
            "compute the product of two matrices in a given order, and compare it with the exact product",
            ("matmul '1,2;3,4' '5,6;7,8' --fp16", "matmul random:normal:64x64 random:normal:64x64@fp32 --fma"),
            f"{_ARRAYS} Rows of a list are separated by ;. q is the error in units of u × the sum of |a·b|. Rounding "
            "errors usually give a q of a few units, and at most about the number of terms.",
            order=(*_PRODUCTS, *_SCALES),
            timed=_TIMED,
        ),
    )
}
