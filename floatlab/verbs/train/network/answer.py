"""`train network`: networks in several configurations on the same data, over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from floatlab.fpmode import in_default_mode
from floatlab.page.model import Chart, Page
from floatlab.training.network.learner import Learning, LearningComparison, compare_learnings, learn
from floatlab.training.network.networks import Configuration, parse_configurations
from floatlab.training.validation import checked_number
from floatlab.verbs.question import Answer, Question, Started, written
from floatlab.verbs.train.network.page import losses_chart
from floatlab.verbs.train.records import Learnings

NETWORK_STEPS = 500  # unless told
NETWORKS = ("fp32", "fp16", "fp16+master+dynamic", "bf16", "bf16+stochastic", "fp8+master")


@in_default_mode
def learn_question(
    question: Question, started: Started | None = None
) -> tuple[list[list[Learning]], list[LearningComparison], str]:
    """Return what networks learned, how they compare, and beside which of them; raises FloatlabError."""
    chosen = parse_configurations(question.option("configs", NETWORKS))
    seeds, steps = question.option("seeds", 1), question.option("steps", NETWORK_STEPS)
    first = question.context.seed
    found = learn(
        question.option("problem", "network"),
        chosen,
        seeds=range(first, first + seeds),
        steps=steps,
        lr=question.option("lr"),
        optimizer=question.option("optimizer"),
        every=max(steps // 100, 1),
        tick=None if started is None else started(steps * seeds * len(chosen), "steps"),
        **shape_of(question),
    )
    reference = reference_of(chosen)
    return found, compare_learnings(found, reference), reference


def shape_of(question: Question) -> dict[str, Any]:
    """Return what a question says of a network and its data."""
    names = ("samples", "features", "hidden", "noise", "weight")
    shape = {name: question.option(name) for name in names if question.option(name) is not None}
    if "noise" in shape:
        shape["noise"] = checked_number(shape["noise"], "noise", at_least=0)
    return shape


def reference_of(configurations: Iterable[Configuration]) -> str:
    """Return which configuration the others stand beside: fp32, else the first."""
    labels = [each.label for each in configurations]
    return "fp32" if "fp32" in labels else labels[0]


def answer_question(question: Question, started: Started | None = None) -> Answer:
    """Return what networks learn in their configurations; raises FloatlabError."""
    return network_answer(*learn_question(question, started))


@in_default_mode
def network_answer(found: list[list[Learning]], compared: list[LearningComparison], reference: str) -> Answer:
    """Return the answer that shows what networks learned."""

    def page() -> Page:
        from floatlab.verbs.train.network.page import network_page

        return network_page(found, compared, reference)

    def table() -> str:
        from floatlab.verbs.train.csv import learnings_table

        return learnings_table(found)

    def chart() -> Chart:

        return losses_chart(found)

    def words() -> list[str]:
        return [",".join(f"{loss:.6g}" for loss in each.finals) for each in compared]

    return Answer(
        page, written(Learnings(found, compared, reference)), words, words, found=found, table=table, chart=chart
    )
