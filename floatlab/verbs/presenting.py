"""What the package's face gives the presenter hook: the page and the JSON of every kind of answer.

A row a kind of answer. What draws it is imported when the first is drawn, so that a derivation is drawn without
importing what adds arrays.
"""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import UnsupportedError
from floatlab.numbers.reading import parse_literal, read_literal
from floatlab.page.layout import to_text
from floatlab.page.model import Page
from floatlab.page.svg import to_svg
from floatlab.verbs.question import Answer, answer_for, code_of, plain_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.numbers import Datum, Derivation
    from floatlab.reduce.explain.attribution import Attribution
    from floatlab.reduce.results.judgements import Judgement
    from floatlab.training.gradient_check import StepSweep
    from floatlab.training.learner import Learning


def page_of(answer: object) -> Page:
    """Return an answer's page, as the command line shows it."""
    return answer if isinstance(answer, Page) else answer_of(answer).page()


def json_of(answer: object) -> str:
    """Return an answer's JSON, as the command line writes it with `--json`: one object a line."""
    from floatlab.wire.codecs import json_line

    return "".join(map(json_line, answer_of(answer).records())).rstrip("\n")


def text_of(page: Page, width: int) -> str:
    """Return a page as text without colour."""
    return to_text(page, width)


def svg_of(page: Page, width: int) -> str:
    """Return a page as an SVG document."""
    return to_svg(page, width)


def answer_of(answer: object) -> Answer:
    """Return what the command line would answer with; raises UnsupportedError for what is no answer.

    >>> from floatlab import add
    >>> answer_of(add("1", "2", "fp16")).codes()
    ['0x4200']
    """
    kind = type(answer)
    if kind.__name__ not in ROWS or not kind.__module__.startswith("floatlab."):
        raise UnsupportedError(f"{kind.__name__} has no page")
    return ROWS[kind.__name__](answer)


def _from(topic: str) -> Callable[[object], Answer]:
    """Return what gets the answer from a topic's `answer.py`."""

    def answered(answer: object) -> Answer:
        made: Answer = import_module(f"floatlab.verbs.{topic}.answer").answer_of(answer)
        return made

    return answered


def _page(module: str, name: str) -> Callable[[object], Answer]:
    """Return what makes an answer of the page that a function draws."""

    def answered(answer: object) -> Answer:
        draw = getattr(import_module(f"floatlab.verbs.{module}"), name)
        return plain_answer(answer, lambda: draw(answer), repr(answer))

    return answered


def _derivation(answer: Derivation) -> Answer:
    return answer_for([answer]) if answer.operation in ("read", "decode", "convert") else _from("arithmetic")(answer)


def _datum(answer: Datum) -> Answer:
    return answer_for([read_literal(parse_literal(code_of(answer).partition("@")[0]), answer.format)])


def _attribution(answer: Attribution) -> Answer:
    from floatlab.verbs.attribute.answer import answer_of as attribution_answer

    return attribution_answer(answer, answer.observed)


def _judgement(answer: Judgement) -> Answer:
    from floatlab.verbs.judge.page import judgement_blocks, judgement_words

    return plain_answer(answer, lambda: Page(tuple(judgement_blocks(answer)), judgement_words(answer)), repr(answer))


def _learning(answer: Learning) -> Answer:
    from floatlab.verbs.train.answer import network_answer

    return network_answer([[answer]])


def _sweep(answer: StepSweep) -> Answer:
    from floatlab.verbs.train.gradients_page import GradientCheck, check_page

    document = GradientCheck("function", (answer,))
    return plain_answer(document, lambda: check_page(document), repr(answer)).replace(found=answer)


# By the names of classes: no two answers have one name.
ROWS: dict[str, Callable[[Any], Answer]] = {
    "Attribution": _attribution,
    "BackendComparison": _from("timing"),
    "BlockDerivation": _from("block"),
    "Comparison": _from("arithmetic"),
    "Contrast": _from("arithmetic"),
    "Datum": _datum,
    "Derivation": _derivation,
    "Differences": _from("compare"),
    "Findings": _from("reveal"),
    "IntegerResult": _from("arithmetic"),
    "Judgement": _judgement,
    "Learning": _learning,
    "Plan": _page("reveal.page", "plan_page"),
    "Product": _from("reduce"),
    "Reduction": _from("reduce"),
    "StepSweep": _sweep,
    "Training": _page("train.run_page", "training_page"),
    "Underflow": _page("train.gradients_page", "underflow_page"),
    "UpdateTrace": _page("train.step_page", "step_page"),
}
