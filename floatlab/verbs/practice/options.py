"""The options of the verb `practice`, and its help."""

from __future__ import annotations

from floatlab.errors import guess, quoted
from floatlab.verbs.option import FORMATS, OUTPUT, ROUNDING, Option, OptionRule, UsageError, grouped, whole
from floatlab.verbs.question import Question, Verb

OPERATIONS = ("add", "sub", "mul", "div", "sqrt", "fma", "rem", "rint")
DEFAULT_OPERATIONS = ("add", "sub", "mul", "div", "fma")
DEFAULT_SEED, QUESTIONS, MOST_QUESTIONS = 1, 10, 200
_DRAWN = ("seed", "random_bits", "draw")  # options of stochastic rounding, on which there are no exercises


def _validate(question: Question) -> Question:
    """Raise UsageError for unknown operations and for stochastic rounding."""
    for word in question.values:
        if word not in OPERATIONS:
            known = " ".join(OPERATIONS)
            raise UsageError(f"practice takes operations ({known}), not {quoted(word)}{guess(word, list(OPERATIONS))}")
    if question.context.rounding.is_stochastic:
        raise UsageError(f"practice has no stochastic rounding: {question.context.rounding.value} draws random bits")
    return question


VERB = Verb(
    name="practice",
    summary="exercise sheets about rounding, their keys, and the marks of answers",
    examples=(
        "practice --seed 7 --questions 10 --format e4m3",
        "practice add fma --fp16 --seed 3 --questions 2 --key",
    ),
    explanation=(
        "Writes a sheet: questions about operations on chosen operands, step by step. The same seed and options give "
        "the same sheet. --key adds the answers and the reasons. --mark FILE marks the answers in a text file, with a "
        "line such as 1a: 4 for each; for the first wrong answer about an operation, it shows the steps up to there."
    ),
    takes=("OPERATION", f"{' '.join(OPERATIONS)} (default: {' '.join(DEFAULT_OPERATIONS)})"),
    options=(
        *grouped(
            "sheet",
            Option(
                "seed", "N", f"the number of the sheet (default {DEFAULT_SEED})", read=whole(0, 10**9),
                default=DEFAULT_SEED, also=("sheet",),
            ),
            Option(
                "questions", "N", f"number of operations, up to {MOST_QUESTIONS} (default {QUESTIONS})",
                read=whole(1, MOST_QUESTIONS), default=QUESTIONS, also=("count",),
            ),
            Option("key", "", "add the answers and the reasons", also=("answers", "solutions")),
            Option("mark", "FILE", "mark the answers in FILE", also=("check", "grade")),
        ),
        FORMATS.replace(help="a format of any width, such as e2m1 or e5m10; repeatable (default e4m3)"),
        *(option for option in ROUNDING if option.name not in _DRAWN),
        *OUTPUT,
        *grouped("output", Option("html", "FILE", "write the page as one HTML file"), part="output"),
    ),
    rules=(OptionRule(("mark",), "marks show the right answers", excludes=("key",)),),
    validate=_validate,
    needs_values=False,
    reads_files=True,
    also=("quiz exercise exercises teach → practice",),
)  # fmt: skip
