"""`train step`: one update, with every rounding on the way."""

from __future__ import annotations

from typing import Any

from floatlab.errors import UnsupportedError
from floatlab.fpmode import in_default_mode
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.model import Page
from floatlab.training.run.laboratory import parse_optimizer
from floatlab.training.setup import parse_remedy
from floatlab.training.update.trace import UpdateTrace, step
from floatlab.verbs.question import Answer, Question, Started, written
from floatlab.verbs.train.inputs import numbers_named, setup_of
from floatlab.verbs.train.step.page import step_page


@in_default_mode
def trace_step(question: Question) -> UpdateTrace:
    """Return the update that a question asks for; raises FloatlabError.

    >>> from floatlab.verbs.question import Question
    >>> trace_step(Question("train", ("step", "1.125", "0.00041999"))).why.value
    'below half'
    """
    _, weight, *rest = question.values
    grad, update = question.option("grad"), question.option("update", rest[0] if rest else None)
    setup = setup_of(question)
    for word in question.option("remedies", ()):
        setup = parse_remedy(word)(setup)
    optimizer = None if grad is None else parse_optimizer(question.option("optimizer"), question.option("lr"), False)
    return step(_single(weight), _single(update), grad=_single(grad), optimizer=optimizer, setup=setup)


def _single(word: str | None) -> Any:
    found = None if word is None else numbers_named(word)
    if found is not None and not isinstance(found, str) and hasattr(found, "__len__"):
        raise UnsupportedError(f"a step is of one number, and {word} names {len(found)}")
    return found


def answer_question(question: Question, started: Started | None = None) -> Answer:
    """Return one update, rounding by rounding; raises FloatlabError."""
    found = trace_step(question)

    def page() -> Page:

        return step_page(found, bool(question.option("brief", False)))

    words, codes = (lambda: [shortest(found.after)]), (lambda: [hexadecimal_code(found.after)])
    return Answer(page, written(found), words, codes, results=(found.after,), found=found)
