"""`train`: weights under several remedies, step after step."""

from __future__ import annotations

from typing import Any

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum, encode
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.model import Chart, Page
from floatlab.training.gradients import Gradients
from floatlab.training.run.laboratory import Training, train
from floatlab.training.run.trainer import MAX_VALUES
from floatlab.training.validation import exactly
from floatlab.verbs.question import Answer, Question, Started, written
from floatlab.verbs.train.inputs import formats_of, numbers_named
from floatlab.verbs.train.run.page import training_page, values_chart

STEPS = 100  # unless told
_RECORDED = 1 << 20  # numbers that a run keeps of its weights


@in_default_mode
def train_question(question: Question, started: Started | None = None) -> Training:
    """Return the steps that a question asks for, done; raises FloatlabError.

    >>> from floatlab.verbs.question import Question
    >>> asked = Question("train", ("1.125",)).having(update="0.00041999", steps=101, remedies=("plain", "fp32"))
    >>> [line.final for line in train_question(asked).lines]
    [1.125, 1.1674174070358276]
    """
    grad, update = question.option("grad"), question.option("update")
    start, given = numbers_named(question.values[0]), numbers_named(str(update if grad is None else grad))
    _check_size(start, "start")
    _check_size(given, "update" if grad is None else "gradient")
    count = len(start) if not isinstance(start, str) and hasattr(start, "__len__") else 0
    steps = question.option("steps")
    if steps is None:
        steps = Gradients(given, max(count, 1), not count, "update" if grad is None else "gradient").length or STEPS
    every = question.option("every") or max(1, -(-steps * max(count, 1) // _RECORDED))
    if (kept := (steps // every + 1) * max(count, 1)) > max(MAX_VALUES, 2 * count):
        raise UnsupportedError(f"recording every {every:,} steps keeps {kept:,} numbers; at most {MAX_VALUES:,} are")
    found = train(
        start,
        given if grad is not None else None,
        update=given if grad is None else None,
        steps=0,
        lr=question.option("lr"),
        optimizer=question.option("optimizer"),
        remedies=question.option("remedies"),
        context=question.context,
        every=every,
        **formats_of(question),
    )
    more = 0 if found.reference.is_exact else 1
    found.advance(steps, None if started is None else started(steps * (len(found.trainers) + more), "steps"))
    return found


def _check_size(numbers: Any, name: str) -> None:
    """Refuse numbers beyond binary64, which holds all those of a run; raises UnsupportedError."""
    one = isinstance(numbers, str | Datum)
    for each in (numbers,) if one else numbers if isinstance(numbers, list) else ():
        try:
            float(exactly(each, name))
        except OverflowError:
            raise UnsupportedError(f"{name}, {each}, is beyond binary64, which holds the numbers of a run") from None


@in_default_mode
def training_answer(question: Question, found: Training) -> Answer:
    """Return the answer to a question about many steps, as far as they are done; what it shows is as of then."""
    given = question.option("update") or question.option("grad")

    def page() -> Page:

        return training_page(found, str(given), question.values[0])

    def table() -> str:
        from floatlab.verbs.train.csv import training_table

        return training_table(found)

    def chart() -> Chart:

        return values_chart(found)

    def final(word: Any) -> list[str]:
        lines = []
        for run in found.runs:
            fmt, values = run.setup.weights, run.values[-1].reshape(-1).tolist()
            lines.append(",".join(word(encode(x, fmt)) if isinstance(fmt, Format) else f"{x!r}" for x in values))
        return lines

    return Answer(
        page,
        written(found),
        lambda: final(shortest),
        lambda: final(hexadecimal_code),
        found=found,
        table=table,
        chart=chart,
    )


def answer_question(question: Question, started: Started | None = None) -> Answer:
    """Return the answer to a question about many updates, all of them done."""
    return training_answer(question, train_question(question, started))
