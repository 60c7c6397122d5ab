"""`reveal`: the order in which a real implementation accumulates."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from floatlab.reduce.reveal.revelation import Findings, examine
from floatlab.verbs.question import Answer, Question, Started, plain_answer
from floatlab.verbs.reveal.page import reveal_page

TERMS, DTYPE = 64, "float32"  # what is asked unless told


def reveal_answer(
    target: str, terms: int = TERMS, dtype: str = DTYPE, kind: str | None = None, device: str = "cpu", seed: int = 1
) -> Answer:
    """Return the answer that shows how a target adds so many terms; raises FloatlabError.

    >>> reveal_answer("numpy.sum", 8, "float32").words()
    ['pairwise']
    """
    return answer_of(examine(target, terms, dtype, kind=kind, device=device, seed=seed))


def answer_of(found: Findings) -> Answer:
    """Return the answer that shows what was found."""
    words = [found.schedule.text if found.schedule is not None else found.plan.text]
    status = 0 if found.claim is not None else 1
    return plain_answer(found, lambda: reveal_page(found), *words).replace(status=status)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question, one target after another."""
    with redirect_stdout(sys.stderr):  # what targets print is no answer
        return [reveal_answer(target, **dict(question.options)) for target in question.values]
