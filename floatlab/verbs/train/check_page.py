"""The page of `train check`: errors of difference quotients by step size, and the verdict on a derivative."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from floatlab.page.chart import curve, legend
from floatlab.page.model import Block, Chart, Gap, Note, Page, Role, Row, Span, Table, heading, line
from floatlab.record import Record
from floatlab.training.gradient_check import Check, Point, StepSweep


class GradientCheck(Record):
    """Curves of one function at one point, and what a reported derivative was found to be, if one was."""

    function: str
    curves: tuple[StepSweep, ...]
    check: Check | None = None


def check_page(found: GradientCheck) -> Page:
    """Return the page of a gradient check: errors against step sizes, and the verdict on what was reported.

    >>> from floatlab.page.layout import to_text
    >>> from floatlab.training import sweep_steps
    >>> curves = tuple(sweep_steps(lambda x: x * x * x, 1.5, way=way) for way in ("forward", "central"))
    >>> page = check_page(GradientCheck("x^3", curves))
    >>> print(to_text(page).splitlines()[0])
      x^3 at 1.5 in binary32: its derivative is 6.75
    """
    curves, check = found.curves, found.check
    first = curves[0]
    title = f"{found.function} at {first.x:.9g} in {first.format.name}: its derivative is {first.derivative:.9g}"
    if check is not None:
        title += f"; {check.reported:.9g} {_SAID[check.verdict]}"
    blocks: list[Block] = [heading(title), Gap(), errors_chart(curves)]
    blocks += [Note(line(Span("letters  ", Role.LABEL), legend(errors_chart(curves)))), Gap(), _steps_table(curves)]
    if check is not None:
        blocks += [Gap(), *_check_rows(check)]
    return Page(tuple(blocks), title)


def errors_chart(curves: Sequence[StepSweep]) -> Chart:
    """Draw the error of difference quotients against step size, both on logarithmic scales."""
    drawn = []
    for i, each in enumerate(curves):
        points = [point for point in each.points if isfinite(point.error) and point.error]
        drawn.append(curve(i, each.way, [point.h for point in points], [_measure(point) for point in points]))
    up = "error" if curves[0].points[0].relative is None else "relative error"
    return Chart(tuple(drawn), "step h", up, log_across=True, log_up=True)


def _measure(point: Point) -> float:
    return point.error if point.relative is None else point.relative


def _steps_table(curves: Sequence[StepSweep]) -> Table:
    rows = []
    for each in curves:
        best, advised, least = each.best, each.at_advised, each.points[0]
        for what, point in (("best", best), ("by theory", advised), ("smallest", least)):
            numbers = f"{point.h:.2e}", f"{point.quotient:.7g}", f"{_measure(point):.2e}"
            rows.append((Span(f"{each.way}, {what}", Role.VALUE), *numbers, _blame(point)))
    header = ("difference", "h", "quotient", "error" if curves[0].points[0].relative is None else "relative", "mostly")
    return Table(header, rows, right=(1, 2, 3))


def _blame(point: Point) -> str:
    if not point.error:
        return "exact"
    return "rounding" if point.rounding > point.truncation else "the step itself"


def _check_rows(check: Check) -> list[Block]:
    role = {"agrees": Role.GOOD, "a bug": Role.BAD}.get(check.verdict, Role.FLAG)
    parts = f"rounding {check.rounding:.2g}, the step itself {check.truncation:.2g}"
    return [
        heading("The derivative that was reported"),
        Row("reported", f"{check.reported:.9g}", f"quotient {check.quotient:.9g}"),
        Row("mismatch", f"{check.mismatch:.3g}", f"h {check.h:.3g}"),
        Row("explained", f"up to {check.bound:.3g}: {parts}"),
        Row("verdict", Span(_VERDICTS[check.verdict], role)),
    ]


_SAID = {"agrees": "agrees", "a bug": "is a bug", "unclear": "remains unclear"}
_VERDICTS = {
    "agrees": "rounding and the finite step explain the mismatch",
    "a bug": "a bug: the mismatch is more than ten times what rounding and the finite step explain",
    "unclear": "unclear: this step cannot tell rounding from a bug; try the one that theory gives, or a wider format",
}
