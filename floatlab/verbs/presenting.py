"""What the package's face gives the presenter hook: the page and the JSON of every kind of answer.

A row a kind of answer: a function that imports what draws it, so that a derivation is drawn without importing what
adds arrays.
"""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import UnsupportedError
from floatlab.page.layout import to_text
from floatlab.page.model import Page
from floatlab.page.svg import to_svg
from floatlab.verbs.answer import Answer, answer_for, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from floatlab.numbers import Datum, Derivation
    from floatlab.reduce.results.judgements import Judgement
    from floatlab.training.gradient_check import StepSweep
    from floatlab.training.network.learner import Learning


def page_of(answer: object) -> Page:
    """Return an answer's page, as the command line shows it."""
    return answer if isinstance(answer, Page) else answer_of(answer).page()


def json_of(answer: object) -> str:
    """Return an answer's JSON, as the command line writes it with `--json`: one object a line."""
    from floatlab.wire.schema import json_line

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


def _answer(
    module: str, function: str, arguments: Callable[..., tuple[object, ...]] = lambda answer: (answer,)
) -> Callable[[object], Answer]:
    """Return a row: a function of a module makes the answer, of these arguments."""

    def present(answer: object) -> Answer:
        presented: Answer = getattr(import_module(module), function)(*arguments(answer))
        return presented

    return present


def _page(module: str, function: str) -> Callable[[object], Answer]:
    """Return a row: a function of a module draws the page, and the answer itself is the JSON object."""
    return lambda answer: _plain(answer, lambda: getattr(import_module(module), function)(answer))


def _plain(answer: object, page: Callable[[], Page], document: object = None) -> Answer:
    """Return an answer that is a page and one JSON object, of the document where that is not the answer itself."""
    words = [repr(answer)]
    return Answer(page, written(document or answer), lambda: words, lambda: words, found=answer)


def _derivation(answer: Derivation) -> Answer:
    if answer.operation in ("read", "decode", "convert"):
        return answer_for([answer])
    from floatlab.verbs.arithmetic.answer import derivation_answer

    return derivation_answer(answer)


def _datum(answer: Datum) -> Answer:
    from floatlab.numbers.datum import hexadecimal_code
    from floatlab.numbers.literals import parse_literal
    from floatlab.numbers.reading import read_literal

    return answer_for([read_literal(parse_literal(f"bits:{hexadecimal_code(answer)}"), answer.format)])


def _judgement(answer: Judgement) -> Answer:
    from floatlab.verbs.judge.page import judgement_blocks, judgement_words

    return _plain(answer, lambda: Page(tuple(judgement_blocks(answer)), judgement_words(answer)))


def _learning(answer: Learning) -> Answer:
    from floatlab.training.network.learner import compare_learnings
    from floatlab.verbs.train.network.answer import network_answer

    label = answer.configuration.label
    return network_answer([[answer]], compare_learnings([[answer]], label), label)


def _curve(answer: StepSweep) -> Answer:
    from floatlab.verbs.train.check.page import check_page
    from floatlab.verbs.train.records import GradientCheck

    return _plain(answer, lambda: check_page([answer], None, "function"), GradientCheck("function", (answer,)))


# No two kinds of answers have one name.
ROWS: dict[str, Callable[..., Answer]] = {
    "Attribution": _answer("floatlab.verbs.attribute.answer", "answer_of", lambda found: (found, found.observed)),
    "BackendComparison": _answer("floatlab.verbs.backends.answer", "answer_of"),
    "BlockDerivation": _answer("floatlab.verbs.block.answer", "answer_of", lambda block: ((block,),)),
    "Comparison": _answer("floatlab.verbs.arithmetic.answer", "comparison_answer"),
    "Contrast": _answer("floatlab.verbs.arithmetic.answer", "contrast_answer"),
    "Datum": _datum,
    "Derivation": _derivation,
    "Differences": _answer("floatlab.verbs.compare.answer", "answer_of"),
    "Findings": _answer("floatlab.verbs.reveal.answer", "answer_of"),
    "IntegerResult": _answer("floatlab.verbs.arithmetic.answer", "integer_answer"),
    "Judgement": _judgement,
    "Learning": _learning,
    "Plan": _page("floatlab.verbs.reveal.page", "plan_page"),
    "Product": _answer("floatlab.verbs.reduce.answer", "answer_of"),
    "Reduction": _answer("floatlab.verbs.reduce.answer", "answer_of"),
    "StepSweep": _curve,
    "Training": _page("floatlab.verbs.train.run.page", "training_page"),
    "Underflow": _page("floatlab.verbs.train.underflow.page", "underflow_page"),
    "UpdateTrace": _page("floatlab.verbs.train.step.page", "step_page"),
}
