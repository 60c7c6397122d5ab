"""What the package's face gives the presenter hook: the page and the JSON of every kind of answer.

A row a kind of answer, by the name of its class, so that a derivation is drawn without importing what adds arrays.
"""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.page.layout import to_text
from floatlab.page.model import Page
from floatlab.page.svg import to_svg
from floatlab.verbs.answer import Answer, answer_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Wire = dict[str, Any]


def page_of(found: Any) -> Page:
    """Return an answer's page, as the command line shows it."""
    return found if isinstance(found, Page) else answer_of(found).page()


def json_of(found: Any) -> str:
    """Return an answer's JSON, as the command line writes it with `--json`: one object a line."""
    from floatlab.wire.encode import json_line

    return "".join(map(json_line, answer_of(found).records())).rstrip("\n")


def text_of(page: Page, width: int) -> str:
    """Return a page as text without colour."""
    return to_text(page, width)


def svg_of(page: Page, width: int) -> str:
    """Return a page as an SVG document."""
    return to_svg(page, width)


def answer_of(found: Any) -> Answer:
    """Return what the command line would answer with; raises UnsupportedError for what is no answer.

    >>> from floatlab import add
    >>> answer_of(add("1", "2", "fp16")).codes()
    ['0x4200']
    """
    kind = type(found)
    if (make := ROWS.get(f"{kind.__module__}.{kind.__qualname__}")) is None:
        raise UnsupportedError(f"{kind.__name__} has no page")
    return make(found)


def _plain(found: Any, page: Callable[[], Page], record: Callable[[], Wire]) -> Answer:
    """Return an answer that is a page and one JSON object."""
    return Answer(page, lambda: [record()], lambda: [repr(found)], lambda: [repr(found)], found=found)


def _derivation(found: Any) -> Answer:
    if found.operation in ("read", "decode", "convert"):
        return answer_for([found])
    from floatlab.verbs.arithmetic.answer import derivation_answer

    return derivation_answer(found)


def _datum(found: Any) -> Answer:
    from floatlab.numbers.datum import hexadecimal_code
    from floatlab.numbers.literals import parse_literal
    from floatlab.numbers.reading import read_literal

    return answer_for([read_literal(parse_literal(f"bits:{hexadecimal_code(found)}"), found.format)])


def _contrast(found: Any) -> Answer:
    from floatlab.verbs.arithmetic.answer import contrast_answer

    return contrast_answer(found)


def _comparison(found: Any) -> Answer:
    from floatlab.verbs.arithmetic.answer import comparison_answer

    return comparison_answer(found)


def _integer(found: Any) -> Answer:
    from floatlab.verbs.arithmetic.answer import integer_answer

    return integer_answer(found)


def _block(found: Any) -> Answer:
    from floatlab.verbs.block.answer import answer_of as block_answer

    return block_answer((found,))


def _reduction(found: Any) -> Answer:
    from floatlab.verbs.reduce.answer import answer_of as reduction_answer

    return reduction_answer(found)


def _plan(found: Any) -> Answer:
    from floatlab.verbs.reveal.json import plan_to_wire
    from floatlab.verbs.reveal.page import plan_page

    return _plain(found, lambda: plan_page(found), lambda: plan_to_wire(found))


def _findings(found: Any) -> Answer:
    from floatlab.verbs.reveal.answer import answer_of as reveal_answer

    return reveal_answer(found)


def _attribution(found: Any) -> Answer:
    from floatlab.verbs.attribute.answer import answer_of as attribution_answer

    return attribution_answer(found, found.observed)


def _differences(found: Any) -> Answer:
    from floatlab.verbs.compare.answer import answer_of as compare_answer

    return compare_answer(found)


def _judgement(found: Any) -> Answer:
    from floatlab.verbs.compare.json import judgement_to_wire
    from floatlab.verbs.judge.page import judgement_blocks, judgement_words
    from floatlab.wire.encode import SCHEMA

    return _plain(
        found,
        lambda: Page(tuple(judgement_blocks(found)), judgement_words(found)),
        lambda: {"schema": SCHEMA, "operation": "judge", **judgement_to_wire(found)},
    )


def _standing(found: Any) -> Answer:
    from floatlab.verbs.backends.answer import answer_of as backends_answer

    return backends_answer(found)


def _training(found: Any) -> Answer:
    from floatlab.verbs.train.json import training_to_wire
    from floatlab.verbs.train.run.page import training_page

    return _plain(found, lambda: training_page(found), lambda: training_to_wire(found, found.seed))


def _step(found: Any) -> Answer:
    from floatlab.verbs.train.json import step_to_wire
    from floatlab.verbs.train.step.page import step_page

    return _plain(found, lambda: step_page(found), lambda: step_to_wire(found))


def _learning(found: Any) -> Answer:
    from floatlab.training import compare_learnings
    from floatlab.verbs.train.network.answer import network_answer

    label = found.configuration.label
    return network_answer([[found]], compare_learnings([[found]], label), label)


def _underflow(found: Any) -> Answer:
    from floatlab.verbs.train.json import underflow_to_wire
    from floatlab.verbs.train.underflow.page import underflow_page

    return _plain(found, lambda: underflow_page(found), lambda: underflow_to_wire(found))


def _curve(found: Any) -> Answer:
    from floatlab.verbs.train.check.page import check_page
    from floatlab.verbs.train.json import check_to_wire

    return _plain(
        found, lambda: check_page([found], None, "function"), lambda: check_to_wire("function", [found], None)
    )


ROWS: dict[str, Callable[[Any], Answer]] = {
    "floatlab.numbers.steps.Derivation": _derivation,
    "floatlab.numbers.datum.Datum": _datum,
    "floatlab.arith.contrast.Contrast": _contrast,
    "floatlab.arith.comparison.Comparison": _comparison,
    "floatlab.arith.integers.IntegerResult": _integer,
    "floatlab.arith.blocks.BlockDerivation": _block,
    "floatlab.reduce.reduction.Reduction": _reduction,
    "floatlab.reduce.products.Product": _reduction,
    "floatlab.reduce.plan.plan.Plan": _plan,
    "floatlab.reduce.reveal.revelation.Findings": _findings,
    "floatlab.reduce.explain.attribution.Attribution": _attribution,
    "floatlab.reduce.explain.judgements.Judgement": _judgement,
    "floatlab.reduce.timing.backends.Standing": _standing,
    "floatlab.arrays.compare.measure.Differences": _differences,
    "floatlab.training.run.laboratory.Training": _training,
    "floatlab.training.step.update.Step": _step,
    "floatlab.training.network.learner.Learning": _learning,
    "floatlab.training.scaling.Underflow": _underflow,
    "floatlab.training.gradient_check.Curve": _curve,
}
