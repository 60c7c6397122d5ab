"""The verb `vectors`, and its options."""

from __future__ import annotations

from floatlab.errors import guess, quoted
from floatlab.verbs.option import OUTPUT, ROUNDING, Option, UsageError, grouped, whole
from floatlab.verbs.question import Question, Verb

CHECK, GENERATE = TASKS = ("check", "generate")
MAX_LINES = 10**9
SHOWN = 20  # without --all, at most this many mismatches are written


def _task(values: tuple[str, ...]) -> str:
    return values[0] if values[:1] and values[0] in TASKS else ""


def _validate(question: Question) -> Question:
    """Raise UsageError unless the values are a task, a function and, for `check`, files."""
    task, function, *rest = [*question.values, "", ""][: max(2, len(question.values))]
    if task not in TASKS:
        task_named = f", not {quoted(task)}" if task else ""
        raise UsageError(f"vectors takes check or generate{task_named}{guess(task, list(TASKS))}")
    if not function:
        raise UsageError(f"vectors {task} needs a function, such as f16_add or e4m3_mulAdd")
    if task == GENERATE and question.option("nan") == "any":
        raise UsageError(
            "--nan any is for vectors check; vectors generate needs one rule for NaNs: first x86 arm riscv"
        )
    if task == GENERATE and rest:
        raise UsageError(f"vectors generate takes one function, but {quoted(rest[0])} was given, too")
    if task == CHECK and not rest:
        raise UsageError(f"vectors check {quoted(function)} needs a file of vectors, or - for standard input")
    if rest.count("-") > 1:
        raise UsageError("- is standard input, which can be read only once")
    return question


_NAN = ROUNDING[-1].replace(
    part="options", choices=(*ROUNDING[-1].choices, ("any", "accept any NaN for any other NaN"))
)
_LINES = "generate: number of lines (10,000 at level 1, 200,000 at 2)"
_INEXACT = "rounding to an integer does not raise inexact (TestFloat's default)"
# Output options that only `check` has.
_FORMS = {"json": (CHECK,), "quiet": (CHECK,)}

VERB = Verb(
    name="vectors",
    summary="check or write conformance vectors in TestFloat's text format, for any format",
    examples=("vectors generate e4m3_mulAdd --lines 3", "vectors generate f16_to_e5m2 -r minMag --level 1 --lines 2"),
    explanation=(
        "vectors check FUNCTION FILE… compares each line with floatlab's bits and flags (- is standard input); vectors "
        "generate FUNCTION writes lines, with emphasis on hard cases of rounding. FUNCTION is FORMAT_OPERATION with "
        "one of the operations add sub mul div rem sqrt mulAdd roundToInt eq le lt eq_signaling le_quiet lt_quiet, or "
        "a conversion such as f32_to_f16, f32_to_i32, ui64_to_bf16. Each line has operands, result and flags, all "
        "in hexadecimal. The default of --nan is x86 here, as in TestFloat's own vectors; --nan any accepts any NaN "
        "for any other NaN."
    ),
    takes=("WORD", "check FUNCTION FILE…, or generate FUNCTION"),
    options=(
        *grouped(
            "vectors",
            Option(
                "level", "N", ("generate: 1 for a short test, 2 for a long test"), read=whole(1, 2), forms=(GENERATE,)
            ),
            Option("lines", "N", _LINES, read=whole(1, MAX_LINES), forms=(GENERATE,)),
            Option("all", "", f"check: write every mismatch, not only the first {SHOWN}", forms=(CHECK,)),
            Option("exact", "", _INEXACT, flags=("--notexact",), value=False),
        ),
        *ROUNDING[:-1],
        _NAN,
        *(option.replace(forms=_FORMS.get(option.name, ())) for option in OUTPUT),
    ),
    formats_by="the name of the function has the formats, as in f16_add",
    form=_task,
    validate=_validate,
    needs_values=False,
    seeds_more=True,
)
