"""The options of the verb `block`, and its help."""

from __future__ import annotations

from floatlab.formats import parse_format
from floatlab.verbs.option import DIRECTION, FLUSH, OUTPUT, Option, UsageError, grouped
from floatlab.verbs.question import Question, Verb


def _validate(question: Question) -> Question:
    if question.option("to") is None:
        raise UsageError("block needs --to RECIPE, which names the block format, as in --to mxfp4")
    return question


def _recipes() -> tuple[str, ...]:
    """Return the names of recipes, which a shell offers to complete."""
    from floatlab.formats.recipes import NAMED_RECIPES

    return NAMED_RECIPES


VERB = Verb(
    name="block",
    summary="scale and round a block of values by a recipe (MX, NVFP4, scaled fp8), step by step",
    examples=(
        "block 957 --to mxfp8_e4m3",
        "block 0.1 -2.5 3 7.3 --to mxfp4 --scale up",
        "block 0.3 -1.1 9 --to nvfp4:torchao",
        "block random:normal:64x64:seed=1 --to nvfp4 --at 3,17",
    ),
    explanation=(
        "A recipe is a block format (mxfp8_e4m3 mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 mxint8 nvfp4 hif4 q8_0 q4_0 "
        "q4_1 q4_k), or a format and the shape of its blocks (e4m3/tensor, e4m3/channel, e4m3/1x128, e4m3/128x128, "
        "int8/channel, int4/32, nf4/64, nf4/flat64), or block(e2m1, ue5m3, 16). :RULE after it names the rule of a "
        "library (nvfp4:te, mxfp4:torchao_rceil). Values are taken exactly, and "
        "VALUE@FORMAT is rounded to that format; values beyond a full block start the next block. --scale is the rule "
        "that derives the scale from the largest magnitude, amax: floor (OCP's rule: 2^(exponent of amax − emax)), "
        "even (amax rounded to the element's digits first), ceil, up (the smallest scale at which no element "
        "saturates) and nearest (amax / largest, rounded); of these, nvfp4 accepts only nearest and up. Instead of "
        "values, one array may be named: a file (a.npy, b.safetensors::name), 1,2,3 or random:normal:64x64. It is "
        "shown block by block, and --at chooses the block. - reads standard input: each line is a row of values."
    ),
    takes=("VALUE", "a number, VALUE@FORMAT, an array, or - for standard input"),
    options=(
        Option(
            "to",
            "RECIPE",
            "the block format or recipe: mxfp4, nvfp4, e4m3/128x128, nvfp4:te, …",
            names=parse_format,
            noun="format",
            suggests=_recipes,
        ),
        *grouped(
            "scales",
            Option("scale", "RULE", "floor|even|ceil|up|nearest, or a library's (default: the format's own)"),
            Option("tensor_scale", "VALUE", "nvfp4: the scale of the whole tensor (default: from amax)"),
        ),
        Option("at", "INDEX", "for an array: show the block of this element, such as 3,17 (default: the first)"),
        *DIRECTION,
        *FLUSH,
        *OUTPUT,
    ),
    formats_by="--to mxfp4 names the block format",
    validate=_validate,
    joins=True,
    reads_files=True,
)
