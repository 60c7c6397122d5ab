"""`train underflow`: what a format makes of gradients, and which loss scale keeps them."""

from __future__ import annotations

from floatlab.files import open_array
from floatlab.page.model import Page
from floatlab.training.scaling import measure_underflow
from floatlab.verbs.question import Answer, Question, Started, written
from floatlab.verbs.train.inputs import numbers_named
from floatlab.verbs.train.underflow.page import underflow_page


def answer_question(question: Question, started: Started | None = None) -> Answer:
    """Return what a format makes of gradients; raises FloatlabError."""
    word = question.values[1]
    gradients = numbers_named(word)
    if isinstance(gradients, str | list):
        with open_array(word, "binary64") as source:
            gradients = source.whole()
    format = question.option("grads") or next(iter(question.formats), "binary16")
    found = measure_underflow(gradients, format, question.option("scale", 1), rounding=question.context.rounding.value)

    def page() -> Page:

        return underflow_page(found, word)

    def table() -> str:
        from floatlab.verbs.train.csv import underflow_table

        return underflow_table(found)

    said = ["none" if found.safe_scale is None else f"{found.safe_scale:.17g}"]
    return Answer(page, written(found), lambda: said, lambda: said, found=found, table=table)
