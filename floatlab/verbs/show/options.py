"""The verb `show`, and its options."""

from __future__ import annotations

from floatlab.verbs.option import DIALECT, DIALECT_RULE, RESULT, Option, OptionRule, grouped, listed
from floatlab.verbs.question import Verb

_PICTURES = ("interval", "directions", "dialects", "like")

VERB = Verb(
    name="show",
    summary="read a value into one or more formats: fields, exact value, error, neighbours",
    examples=("show 1.12156456132 --fp16", "show bits:0x38 --dialects", "show 0.1 --fp32 --bf16 --interval"),
    explanation=(
        "Values: 1.5  -3e-5  1_000  1/3  0x1.8p3  2^-24  inf  nan  nan(0x1)  snan; codes: bits:0x3c7c  "
        "bits:0_01111_0001111100. VALUE@FORMAT is rounded to that format first, and the result is converted to the "
        "other formats. - reads values from standard input, one per line. Without a format: fp16 and fp32."
    ),
    takes=("VALUE", "a number, a code (bits:…), or - for standard input"),
    options=(
        *grouped(
            "what to show",
            Option("bits", "", "VALUE is a code: 0x3c7c or 0_01111_0001111100"),
            Option("little_endian", "", "the bytes of a code are in little-endian order", also=("endian",)),
            Option("interval", "", "the reals that round to this value"),
            Option("directions", "", "the rounding directions in one table, without SRA, SRB, SRC"),
            Option("dialects", "", "the meaning of a code in every format of its width"),
            Option("like", "LIBS", "results of installed libraries: numpy,torch,ml_dtypes", read=listed),
        ),
        DIALECT,
        *RESULT,
    ),
    rules=(OptionRule(_PICTURES, "each shows a different page", excludes=_PICTURES), DIALECT_RULE),
    also=("encode ulp inspect value → show VALUE -f NAME", "decode bits hex → show bits:0x3c7c -f NAME"),
)
