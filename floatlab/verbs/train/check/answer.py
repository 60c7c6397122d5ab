"""`train check`: the errors of difference quotients, and the verdict on a reported derivative."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from floatlab.page.model import Chart, Page
from floatlab.training.gradient_check import WAYS, check_gradient, sweep_steps
from floatlab.verbs.question import Answer, Question, Started, written
from floatlab.verbs.train.check.functions import function_of
from floatlab.verbs.train.check.page import check_page, errors_chart
from floatlab.verbs.train.records import GradientCheck


def answer_question(question: Question, started: Started | None = None) -> Answer:
    """Return how well difference quotients find a derivative, and what a reported one is; raises FloatlabError."""
    _, name, x = question.values
    reported, derivative = question.option("reported"), question.option("derivative")
    with redirect_stdout(sys.stderr):  # what the function prints is no part of the answer
        target = function_of(name, x, next(iter(question.formats), None))
        call, fmt, own = target.call, target.format, target.own
        curves = [target.checked(sweep_steps(call, x, fmt, way, derivative=derivative, own=own)) for way in WAYS]
        check = None if reported is None else check_gradient(call, x, reported, fmt, h=question.option("h"), own=own)

    def page() -> Page:

        return check_page(curves, check, name)

    def table() -> str:
        from floatlab.verbs.train.csv import check_table

        return check_table(curves)

    def chart() -> Chart:

        return errors_chart(curves)

    words = [f"{curves[-1].best.h:.6g}" if check is None else check.verdict]
    status = 1 if check is not None and check.verdict == "a bug" else 0
    return Answer(
        page,
        written(GradientCheck(name, tuple(curves), check)),
        lambda: words,
        lambda: words,
        found=(curves, check),
        status=status,
        table=table,
        chart=chart,
    )
