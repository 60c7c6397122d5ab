"""Page and JSON of every kind of answer. This module is the renderer behind `floatlab.presenter`.

Each page module is imported at its first use, so NumPy is not imported to show a derivation.
"""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.page.model import Page
from floatlab.page.svg import to_svg
from floatlab.page.text_layout import to_text
from floatlab.verbs.question import Answer, answer_for, plain_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from floatlab.arith import Comparison, Contrast, IntegerResult
    from floatlab.arith.blocks.records import BlockDerivation
    from floatlab.arrays.compare.differences import Differences
    from floatlab.auditing.audit import Audit
    from floatlab.auditing.comparison import CheckpointDifferences
    from floatlab.auditing.dequantization import Dequantization
    from floatlab.auditing.recipe_search.records import RecipeSearch
    from floatlab.auditing.survival.figures import RecipeAudit
    from floatlab.formats.recipes import Recipe
    from floatlab.numbers import Datum, Derivation
    from floatlab.reduce.explain.attribution import Attribution
    from floatlab.reduce.plan.plan import Plan
    from floatlab.reduce.results.judgements import Judgement
    from floatlab.reduce.results.products import Product
    from floatlab.reduce.results.reduction import Reduction
    from floatlab.reduce.results.scaled import ScaledProduct
    from floatlab.reduce.reveal.invariance import Invariance
    from floatlab.reduce.reveal.order_map_record import OrderMap
    from floatlab.reduce.reveal.revelation import Findings
    from floatlab.reduce.timing.backends import BackendComparison
    from floatlab.training.gradient_check import StepSweep
    from floatlab.training.learner import Learning
    from floatlab.training.trace import UpdateTrace
    from floatlab.training.trajectories import Training
    from floatlab.training.underflow import Underflow

    Kind = TypeVar("Kind")


def page_of(answer: object) -> Page:
    """Return an answer's page, as the command line shows it."""
    return answer if isinstance(answer, Page) else answer_of(answer).page()


def json_of(answer: object) -> str:
    """Return an answer's JSON, as the command line writes it with `--json`: one object per line."""
    from floatlab.wire.codecs import json_line

    return "".join(map(json_line, answer_of(answer).records())).rstrip("\n")


def text_of(page: Page, width: int) -> str:
    """Return a page as text without colour."""
    return to_text(page, width)


def svg_of(page: Page, width: int) -> str:
    """Return a page as an SVG document."""
    return to_svg(page, width)


def answer_of(answer: object) -> Answer:
    """Return the command line's `Answer` for a result; raises UnsupportedError for other objects.

    >>> from floatlab import add
    >>> answer_of(add("1", "2", "fp16")).codes()
    ['0x4200']
    """
    kind = type(answer)
    if kind.__name__ not in ROWS or not kind.__module__.startswith("floatlab."):
        raise UnsupportedError(f"{kind.__name__} has no page")
    return ROWS[kind.__name__](answer)


# Functions by the name of the class that they handle. The name is read from the annotation of their parameter `answer`.
ROWS: dict[str, Callable[[Any], Answer]] = {}


def _row(present: Callable[[Kind], Answer]) -> Callable[[Kind], Answer]:
    for kind in str(present.__annotations__["answer"]).split(" | "):
        ROWS[kind] = present
    return present


@_row
def _derivation(answer: Derivation) -> Answer:
    if answer.operation in ("read", "decode", "convert"):
        return answer_for([answer])
    from floatlab.verbs.arithmetic.answer import answer_of as operation_answer

    return operation_answer(answer)


@_row
def _datum(answer: Datum) -> Answer:
    from floatlab.numbers.datum import hexadecimal_code
    from floatlab.numbers.reading import parse_literal, read_literal

    return answer_for([read_literal(parse_literal(f"bits:{hexadecimal_code(answer)}"), answer.format)])


@_row
def _operation(answer: Contrast | Comparison | IntegerResult) -> Answer:
    from floatlab.verbs.arithmetic.answer import answer_of as operation_answer

    return operation_answer(answer)


@_row
def _block(answer: BlockDerivation) -> Answer:
    from floatlab.verbs.block.answer import answer_of as block_answer

    return block_answer(answer)


@_row
def _recipe(answer: Recipe) -> Answer:
    from floatlab.verbs.formats.answer import answer_of as recipe_answer

    return recipe_answer(answer)


@_row
def _reduction(answer: Reduction | Product | ScaledProduct) -> Answer:
    from floatlab.verbs.reduce.answer import answer_of as reduction_answer

    return reduction_answer(answer)


@_row
def _plan(answer: Plan) -> Answer:
    from floatlab.verbs.reveal.page import plan_page

    return plain_answer(answer, lambda: plan_page(answer), repr(answer))


@_row
def _findings(answer: Findings) -> Answer:
    from floatlab.verbs.reveal.answer import answer_of as reveal_answer

    return reveal_answer(answer)


@_row
def _order_map(answer: OrderMap) -> Answer:
    from floatlab.verbs.reveal.answer import map_answer

    return map_answer(answer)


@_row
def _invariance(answer: Invariance) -> Answer:
    from floatlab.verbs.reveal.answer import invariance_answer

    return invariance_answer(answer)


@_row
def _attribution(answer: Attribution) -> Answer:
    from floatlab.verbs.attribute.answer import answer_of as attribution_answer

    return attribution_answer(answer, answer.observed)


@_row
def _differences(answer: Differences) -> Answer:
    from floatlab.verbs.compare.answer import answer_of as compare_answer

    return compare_answer(answer)


@_row
def _checkpoints(answer: CheckpointDifferences) -> Answer:
    from floatlab.verbs.compare.checkpoints import answer_of as checkpoints_answer

    return checkpoints_answer(answer)


@_row
def _audit(answer: Audit) -> Answer:
    from floatlab.verbs.audit.answer import answer_of as audit_answer

    return audit_answer(answer)


@_row
def _recipe_search(answer: RecipeSearch) -> Answer:
    from floatlab.verbs.audit.codes_answer import codes_answer

    return codes_answer(answer)


@_row
def _recipes(answer: RecipeAudit) -> Answer:
    from floatlab.verbs.audit.recipes_answer import recipes_answer_of

    return recipes_answer_of(answer)


@_row
def _dequantization(answer: Dequantization) -> Answer:
    from floatlab.verbs.dequantize.answer import answer_of as dequantize_answer

    return dequantize_answer(answer)


@_row
def _judgement(answer: Judgement) -> Answer:
    from floatlab.verbs.judge.page import judgement_blocks, judgement_words

    return plain_answer(answer, lambda: Page(tuple(judgement_blocks(answer)), judgement_words(answer)), repr(answer))


@_row
def _standing(answer: BackendComparison) -> Answer:
    from floatlab.verbs.timing.answer import answer_of as backends_answer

    return backends_answer(answer)


@_row
def _training(answer: Training) -> Answer:
    from floatlab.verbs.train.run_page import training_page

    return plain_answer(answer, lambda: training_page(answer), repr(answer))


@_row
def _update(answer: UpdateTrace) -> Answer:
    from floatlab.verbs.train.step_page import step_page

    return plain_answer(answer, lambda: step_page(answer), repr(answer))


@_row
def _learning(answer: Learning) -> Answer:
    from floatlab.verbs.train.answer import network_answer

    return network_answer([[answer]])


@_row
def _underflow(answer: Underflow) -> Answer:
    from floatlab.verbs.train.gradients_page import underflow_page

    return plain_answer(answer, lambda: underflow_page(answer), repr(answer))


@_row
def _curve(answer: StepSweep) -> Answer:
    from floatlab.verbs.train.gradients_page import GradientCheck, check_page

    document = GradientCheck("function", (answer,))
    return plain_answer(document, lambda: check_page(document), repr(answer)).replace(found=answer)
