"""The verb `convert`, and its options."""

from __future__ import annotations

from floatlab.errors import FormatError, quoted
from floatlab.verbs.option import DIALECT, DIALECT_RULE, FORMATS, OUTPUT, ROUNDING, Option, UsageError, formats_named
from floatlab.verbs.question import Question, Verb


def _validate(question: Question) -> Question:
    """Return the question with its formats. Without `--through`, its last values name the formats (`0.1 fp16`)."""
    values, named = _formats_last(question.values)
    if question.formats:
        if named:
            raise UsageError(f"--through names the formats: add {quoted(named[0])} there")
        return question
    if not named:
        raise UsageError(
            "convert needs --through F1,F2,…: the formats to round through, in order; or name the formats last, as in "
            "convert 0.1 fp16"
        )
    formats = tuple(format for names in named for format in formats_named(names, "convert"))
    return question.replace(values=values, formats=formats)


def _formats_last(values: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Separate values from trailing formats (`0.1 fp32 fp16` or `0.1 to fp16`). The first word is always a value."""
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


_THROUGH = FORMATS.replace(
    name="through", metavar="F1,F2,…", help="the formats, in order", flags=("--through", "--to"), read=formats_named,
    group="", also=("from",),
)  # fmt: skip
VERB = Verb(
    name="convert",
    summary="round a value along a path of formats, and show where double rounding changes the result",
    examples=("convert 1.00048828126 --through fp32,fp16", "convert 0.1 fp16"),
    explanation=(
        "1.00048828126 lies just above the middle of two binary16 numbers. Directly it rounds up, to 0x3c01; "
        "through binary32 it is first rounded to the middle itself, and then the tie is rounded to even, 0x3c00."
    ),
    takes=("VALUE", "a number, a code of the first format, or -"),
    options=(_THROUGH, Option("bits", "", "VALUE is a code of the first format"), DIALECT, *ROUNDING, *OUTPUT),
    rules=(DIALECT_RULE,),
    formats_by="name the formats with --through fp32,fp16",
    validate=_validate,
    also=("cast quantize → convert VALUE NAME",),
)
