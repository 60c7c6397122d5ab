"""The answers of `reveal`: the order in which a library's function adds."""

from __future__ import annotations

from math import prod

from floatlab.reduce.reveal.invariance import Invariance, invariance
from floatlab.reduce.reveal.order_map import order_map
from floatlab.reduce.reveal.order_map_record import OrderMap
from floatlab.reduce.reveal.revelation import Findings, examine
from floatlab.verbs.question import Answer, Question, Started, plain_answer, written
from floatlab.verbs.reveal.map_page import invariance_page, map_page
from floatlab.verbs.reveal.page import reveal_page
from floatlab.verbs.standard_output import printing_aside

TERMS, DTYPE = 64, "float32"  # defaults of the options
_BATCH = 64, 64, 64


def reveal_answer(
    target: str, terms: int = TERMS, dtype: str = DTYPE, kind: str | None = None, device: str = "cpu", seed: int = 1
) -> Answer:
    """Return the answer that shows how a target adds `terms` terms; raises FloatlabError.

    >>> reveal_answer("numpy.sum", 8, "float32").words()
    ['pairwise']
    """
    return answer_of(examine(target, terms, dtype, kind=kind, device=device, seed=seed))


def map_answer(found: OrderMap) -> Answer:
    """Return the answer that shows the orders of a product.

    The exit status is 1 if there is an element whose computation was not found.
    """
    words = [f"{each.elements} {each.text}" for each in found.classes]
    page, records = (lambda: map_page(found)), written(found)
    return Answer(page, records, lambda: words, lambda: words, found=found, status=int(found.share < 1))


def invariance_answer(found: Invariance) -> Answer:
    """Return the answer that says which circumstances, such as the batch size, change the bits of a row of a product.

    The exit status is 1 if any circumstance changes the bits.
    """
    words = [each.name for each in found.circumstances if each.changes]
    page, records = (lambda: invariance_page(found)), written(found)
    return Answer(page, records, lambda: words, lambda: words, found=found, status=int(not found.is_invariant))


def answer_of(found: Findings) -> Answer:
    """Return the answer for what `reveal` found. The exit status is 1 if `reveal` does not claim to know the order."""
    words = [found.schedule.text if found.schedule is not None else found.plan.text]
    status = 0 if found.claim is not None else 1
    return plain_answer(found, lambda: reveal_page(found), *words).replace(status=status)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question, one target after another."""
    with printing_aside():
        return [_answer(target, question, started) for target in question.values]


def _answer(target: str, question: Question, started: Started | None) -> Answer:
    options = dict(question.options)
    shape = options.pop("shape", None)
    numbers = tuple(map(int, shape.split("x"))) if shape else None
    if options.pop("invariance", False):
        return invariance_answer(invariance(target, numbers or _BATCH, **options))
    if numbers is None:
        return reveal_answer(target, **options)
    terms = numbers[2 if len(numbers) == 4 else 1]
    done = started(prod(numbers) // terms, "elements") if started else lambda count: None
    told = 0

    def progress(explained: int, size: int) -> None:
        nonlocal told
        done(explained - told)
        told = explained

    return map_answer(order_map(target, numbers, progress=progress, **options))
