"""`train check`: the errors of difference quotients, and the verdict on a reported derivative."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from floatlab.training import check_gradient, sweep_steps
from floatlab.training.gradient_check import WAYS
from floatlab.verbs.answer import Answer, Started
from floatlab.verbs.question import Question
from floatlab.verbs.train.check.functions import function_of
from floatlab.verbs.train.check.page import check_page, errors_chart
from floatlab.verbs.train.json import check_table, check_to_wire


def answer_question(question: Question, started: Started | None = None) -> Answer:
    """Return how well difference quotients find a derivative, and what a reported one is; raises FloatlabError."""
    _, name, x = question.values
    reported, derivative = question.option("reported"), question.option("derivative")
    with redirect_stdout(sys.stderr):  # what the function prints is no part of the answer
        target = function_of(name, x, next(iter(question.formats), None))
        call, fmt, own = target.call, target.format, target.own
        curves = [target.checked(sweep_steps(call, x, fmt, way, derivative=derivative, own=own)) for way in WAYS]
        check = None if reported is None else check_gradient(call, x, reported, fmt, h=question.option("h"), own=own)

    words = [f"{curves[-1].best.h:.6g}" if check is None else check.verdict]
    status = 1 if check is not None and check.verdict == "a bug" else 0
    return Answer(
        page=lambda: check_page(curves, check, name),
        records=lambda: [check_to_wire(name, curves, check)],
        words=lambda: words,
        codes=lambda: words,
        found=(curves, check),
        status=status,
        table=lambda: check_table(curves),
        chart=lambda: errors_chart(curves),
    )
