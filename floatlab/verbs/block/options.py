"""The verb `block`, and its options."""

from __future__ import annotations

from floatlab.formats import parse_format
from floatlab.verbs.option import DIRECTION, OUTPUT, Option, UsageError, grouped
from floatlab.verbs.question import Question, Verb


def _settle(question: Question) -> Question:
    if question.option("to") is None:
        raise UsageError("block needs --to NAME: the block format, as in --to mxfp4")
    return question


VERB = Verb(
    name="block",
    summary="scale and round a block of values into MX or NVFP4, step by step",
    examples=("block 957 --to mxfp8_e4m3", "block 0.1 -2.5 3 7.3 --to mxfp4 --scale up", "block 0.3 -1.1 9 --to nvfp4"),
    explanation=(
        "Block formats: mxfp8_e4m3 mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 mxint8 nvfp4. Values are taken exactly, "
        "VALUE@FORMAT rounded to that format; values beyond a full block start the next block. --scale is the rule "
        "that derives the scale from the largest magnitude, amax: floor (OCP's rule: 2^(exponent of amax − emax)), "
        "even (amax rounded to the element's digits first), ceil, up (the smallest scale at which no element "
        "saturates) and nearest (amax / largest, rounded); nvfp4 accepts only nearest and up. - reads standard input: "
        "each line is a row of values."
    ),
    takes=("VALUE", "a number, VALUE@FORMAT, or - for standard input"),
    options=(
        Option("to", "NAME", "the block format: mxfp8_e4m3, mxfp4, nvfp4, …", names=parse_format, noun="format"),
        *grouped(
            "scales",
            Option("scale", "RULE", "floor|even|ceil|up|nearest (default: the format's own)"),
            Option("tensor_scale", "VALUE", "nvfp4: the scale of the whole tensor (default: from amax)"),
        ),
        *DIRECTION,
        *OUTPUT,
    ),
    formats_by="--to mxfp4 names the block format",
    settle=_settle,
    joins=True,
)
