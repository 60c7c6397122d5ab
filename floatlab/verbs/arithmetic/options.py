"""The verbs of the arithmetic operations, and their options."""

from __future__ import annotations

from floatlab.arith.integers import DEFAULT_INTEGER, parse_integer
from floatlab.errors import UnsupportedError, quoted
from floatlab.numbers.rounding import PRECISIONS
from floatlab.verbs.option import (
    DIALECT,
    DIALECT_RULE,
    FORMATS,
    OUTPUT,
    ROUNDING,
    SILENT_NAN,
    Option,
    OptionRule,
    UsageError,
    grouped,
    whole,
)
from floatlab.verbs.question import Question, Verb

_EXPLANATION = (
    "Operands are numbers; VALUE@FORMAT and codes (bits:…@FORMAT) keep their formats. With -f, the result is rounded "
    "once, directly into that format. Without -f, its format is the first of fp16, bf16, fp32, fp64 and fp128 that "
    "contains the formats of all operands (binary32 if they name none). Numbers without a format are rounded to "
    "nearest into the result's format (for cmp, into binary32)."
)
_MAX_STEPS = 1000


def _precision(text: str, flag: str) -> object:
    known = {str(bits): bits for bits in PRECISIONS}
    if text not in known:
        raise UsageError(f"{flag} takes 24, 53 or 64 bits, the precisions of the x87, not {quoted(text)}")
    return known[text]


_PRECISION = Option(
    "precision", "BITS", "significand bits of results in x87 (precision control)", read=_precision,
    choices=tuple((bits, f"{bits} bits") for bits in PRECISIONS), title="x87 precision", part="context",
    group="rounding", also=("precision-control", "pc"),
)  # fmt: skip
_BITS = Option("bits", "", "values are codes: 0x3c7c or 0_01111_0001111100")
_STEPS = (
    Option("steps", "N", "show only the first N steps", read=whole(1, _MAX_STEPS)),
    Option("brief", "", "one line"),
    Option("why", "", "add a sentence to each step that says why", also=("explain", "verbose")),
)
_INEXACT = Option("exact", "", "do not raise inexact", flags=("--notexact",), value=False)
_SIGNALING = Option("signaling", "", "every NaN operand raises invalid")
_INTEGER = Option(
    "integer",
    "TYPE",
    f"i8 … i128, u8 … u128 ({DEFAULT_INTEGER})",
    flags=("--int", "--to"),
    default=DEFAULT_INTEGER,
    names=parse_integer,
    noun="type",
)
_WITNESS = Option("witness", "", "find operands (near VALUEs) for which fma and multiply-then-add differ")


def _validate(question: Question) -> Question:
    """Reject an extra value that is the name of a format or a type; find the operands for --witness."""
    from floatlab.verbs.arithmetic.answer import ARITIES

    for value in question.values[ARITIES[question.verb] :]:
        for option in VERBS[question.verb].options:
            if option.may_be(value):
                flag = option.spellings[0]
                raise UsageError(f"{quoted(value)} is a {option.noun}, not a number: write {flag} {value}")
    return _with_witness(question) if question.option("witness") else question


def _with_witness(question: Question) -> Question:
    """Return the question with operands for which fma and multiply-then-add differ.

    Raises FloatlabError if no such operands are found, or if the question has no format or a wrong number of values.
    """
    from floatlab.verbs.arithmetic.answer import no_witness, witness

    if not question.formats:
        raise UsageError("--witness needs a format to search in, as in floatlab fma --witness --fp16")
    if len(question.values) not in (0, 3):
        raise UsageError(f"--witness takes three values to start from, or none, not {len(question.values)}")
    values = witness(question.formats[0], question.context, near=question.values)
    if values is None:
        raise UnsupportedError(no_witness(question.formats[0]))
    return question.replace(values=values).having(witness=None)


def _operation(
    name: str,
    summary: str,
    examples: tuple[str, ...],
    *also: str,
    own: tuple[Option, ...] = _STEPS,
    rules: tuple[Option, ...] = ROUNDING,
) -> Verb:
    return Verb(
        name=name,
        summary=summary,
        examples=examples,
        explanation=_EXPLANATION,
        takes=("VALUE", "a number, or VALUE@FORMAT"),
        options=(*grouped("what to show", _BITS, *own), FORMATS, DIALECT, *rules, *OUTPUT),
        rules=(OptionRule(("steps", "why"), "--brief shows one line without steps", excludes=("brief",)), DIALECT_RULE),
        one_format=f"{name} has one result, in one format, but -f names {{}}",
        validate=_validate,
        joins=True,
        also=also,
    )


_CONTROLLED = (*ROUNDING, _PRECISION)

VERBS = {
    verb.name: verb
    for verb in (
        _operation(
            "add",
            "add two numbers, step by step: align, add, round",
            ("add 1.125 0.12457275390625 --fp16", "add 1.125@fp32 0.1246@fp16"),
            "plus + → add A B",
            rules=_CONTROLLED,
        ),
        _operation(
            "sub",
            "subtract, step by step: align, cancel, round",
            ("sub 1.001 1 --fp16", "sub 1e8 1 --fp32 -r RTZ"),
            "subtract minus → sub A B",
            rules=_CONTROLLED,
        ),
        _operation(
            "mul",
            "multiply, step by step",
            ("mul 0.1 3 --fp16", "mul 6e-5 0.3 --fp16 --ftz"),
            "multiply times product * × → mul A B",
            rules=_CONTROLLED,
        ),
        _operation(
            "div",
            "divide, step by step",
            ("div 1 3 --fp32", "div 1 0 --e4m3"),
            "divide quotient / ÷ → div A B",
            rules=_CONTROLLED,
        ),
        _operation(
            "rem",
            "the IEEE remainder, a − n·b with n nearest to a/b",
            ("rem 5 3 --fp16", "rem 1e30 7 --fp64"),
            "mod fmod remainder % → rem A B",
        ),
        _operation("sqrt", "the square root, step by step", ("sqrt 2 --fp16", "sqrt -1 --bf16"), rules=_CONTROLLED),
        _operation(
            "fma",
            "a × b + c rounded once, compared with multiply-then-add, step by step",
            ("fma 1.0009765625 1.0009765625 -1.001953125 --fp16", "fma 0.1 10 -1 --fp32 --brief"),
            own=(_WITNESS, *_STEPS),
            rules=(*ROUNDING, SILENT_NAN),
        ),
        _operation(
            "cmp",
            "compare two numbers of any formats: less, equal, greater or unordered",
            ("cmp 0.1@fp16 0.1@fp32", "cmp nan 1 --fp16 --signaling"),
            "eq less equal == = < > → cmp A B",
            own=(_SIGNALING,),
        ),
        _operation(
            "toint",
            "convert to an integer",
            ("toint 2.5 --fp16", "toint 3e9 --fp32 --to ui32"),
            "int integer toi → toint VALUE --to i32",
            own=(_INTEGER, _INEXACT),
        ),
        _operation(
            "rint",
            "round to an integral number of the same format",
            ("rint 2.5 --fp16", "rint -0.5 --fp32 -r RTN"),
            "round roundtoint → rint VALUE (to an integer) or floatlab show VALUE -f NAME (to a format)",
            "floor → rint VALUE -r down",
            "ceil ceiling → rint VALUE -r up",
            "trunc → rint VALUE -r zero",
            own=(_INEXACT, *_STEPS),
        ),
        _operation(
            "min",
            "the smaller of two numbers; a NaN wins (9.6, minimum)",
            ("min 0 -0 --fp16", "min nan 1 --fp32"),
            "minimum fmin smaller → min A B, or minnum A B (a number wins over a NaN)",
        ),
        _operation(
            "max",
            "the larger of two numbers; a NaN wins (9.6, maximum)",
            ("max -1 0.5 --fp16", "max -inf nan --e4m3"),
            "maximum fmax larger → max A B, or maxnum A B (a number wins over a NaN)",
        ),
        _operation(
            "minnum",
            "the smaller of two numbers; a number wins over a NaN (9.6, minimumNumber)",
            ("minnum nan 1 --fp16", "minnum snan 1 --fp16"),
            "minimumnumber → minnum A B",
        ),
        _operation(
            "maxnum",
            "the larger of two numbers; a number wins over a NaN (9.6, maximumNumber)",
            ("maxnum nan 1 --fp16", "maxnum 2 3 --bf16"),
            "maximumnumber → maxnum A B",
        ),
        _operation(
            "minmag",
            "the number of smaller magnitude; a NaN wins (9.6, minimumMagnitude)",
            ("minmag -1 2 --fp16", "minmag -1 1 --fp16"),
            "minimummagnitude → minmag A B",
        ),
        _operation(
            "maxmag",
            "the number of larger magnitude; a NaN wins (9.6, maximumMagnitude)",
            ("maxmag -3 2 --fp16", "maxmag -1 1 --fp16"),
            "maximummagnitude → maxmag A B",
        ),
        _operation(
            "minmagnum",
            "the number of smaller magnitude; a number wins over a NaN (9.6, minimumMagnitudeNumber)",
            ("minmagnum nan -1 --fp16", "minmagnum -1 2 --fp16"),
            "minimummagnitudenumber → minmagnum A B",
        ),
        _operation(
            "maxmagnum",
            "the number of larger magnitude; a number wins over a NaN (9.6, maximumMagnitudeNumber)",
            ("maxmagnum nan -1 --fp16", "maxmagnum -3 2 --fp16"),
            "maximummagnitudenumber → maxmagnum A B",
        ),
        _operation(
            "negate",
            "change the sign bit (5.5.1)",
            ("negate 0 --fp16", "negate nan --fp32"),
            "neg minus → negate VALUE",
        ),
        _operation("abs", "clear the sign bit (5.5.1)", ("abs -2.5 --fp16", "abs -nan --fp32"), "fabs → abs VALUE"),
        _operation(
            "copysign",
            "the first number with the sign of the second (5.5.1)",
            ("copysign 3 -0 --fp16", "copysign nan -1 --bf16"),
        ),
        _operation(
            "scaleb",
            "multiply by a power of two, A × 2^N, step by step (5.3.3)",
            ("scaleb 1.5 4 --fp16", "scaleb 1.999 -24 --fp16"),
            "scalb ldexp scalbn → scaleb A N",
        ),
        _operation(
            "logb",
            "the exponent of the leading digit (5.3.3)",
            ("logb 0.1 --fp16", "logb 0 --fp32"),
            "ilogb exponent → logb VALUE",
        ),
        _operation(
            "nextup",
            "the next larger number of the format (5.3.1)",
            ("nextup 1 --fp16", "nextup -0 --e4m3"),
            "nextafter → nextup VALUE or nextdown VALUE",
        ),
        _operation(
            "nextdown", "the next smaller number of the format (5.3.1)", ("nextdown 1 --fp16", "nextdown inf --fp32")
        ),
    )
}
