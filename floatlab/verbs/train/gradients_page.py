"""The pages of `train check` (errors of difference quotients) and `train underflow` (gradients that become 0)."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, isfinite, log2

from floatlab.page import model
from floatlab.page.chart import curve, legend
from floatlab.page.measures import percent
from floatlab.page.model import Block, Chart, Gap, Note, Page, Role, Row, Span, Table, heading, line
from floatlab.page.words import counted, plural
from floatlab.record import Record
from floatlab.training.gradient_check import Check, Point, StepSweep
from floatlab.training.underflow import Underflow


class GradientCheck(Record):
    """The errors of a function's difference quotients at a point, and the check of a reported derivative (or None).

    `curves` has a curve of errors for forward differences, for central differences, or for both.
    """

    function: str
    curves: tuple[StepSweep, ...]
    check: Check | None = None


def check_page(found: GradientCheck) -> Page:
    """Return the page of a gradient check: the errors by step size, and the verdict on the reported derivative.

    >>> from floatlab.page.text_layout import to_text
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
    """Return the chart of the errors by step size, on logarithmic scales."""
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
    return "rounding" if point.rounding > point.truncation else "truncation"


def _check_rows(check: Check) -> list[Block]:
    role = {"agrees": Role.GOOD, "a bug": Role.BAD}.get(check.verdict, Role.FLAG)
    parts = f"rounding {check.rounding:.2g}, truncation {check.truncation:.2g}"
    return [
        heading("The derivative that was reported"),
        Row("reported", f"{check.reported:.9g}", f"quotient {check.quotient:.9g}"),
        Row("mismatch", f"{check.mismatch:.3g}", f"h {check.h:.3g}"),
        Row("explained", f"up to {check.bound:.3g}: {parts}"),
        Row("verdict", Span(_VERDICTS[check.verdict], role)),
    ]


_SAID = {"agrees": "agrees", "a bug": "is wrong", "unclear": "remains unclear"}
_VERDICTS = {
    "agrees": "rounding and truncation explain the mismatch",
    "a bug": "a bug: the mismatch is more than ten times what rounding and truncation explain",
    "unclear": (
        "unclear: with this step, rounding and a bug cannot be distinguished; try the advised step, or a wider format"
    ),
}


_LANES = 24


_OUTCOME_ROLES = {
    "zero": Role.BAD, "zero or smallest": Role.LOST, "subnormal": Role.LOST, "": Role.CHANGED, "overflow": Role.BAD,
}  # fmt: skip


def underflow_page(found: Underflow, name: str = "") -> Page:
    """Return the page of gradients in a format: their exponents, how many are lost, and loss scales that avoid losses.

    >>> from floatlab.page.text_layout import to_text
    >>> from floatlab.training import measure_underflow
    >>> print(to_text(underflow_page(measure_underflow([1e-9, -3e-8, 1e-6, 0.25], "fp16"))).splitlines()[0])
      4 gradients in binary16: 1 lost, 25 % of the nonzero gradients
    """
    fmt, n = found.format, found.nonzero
    share = percent(found.flushed, n) if found.flushed else ""
    lost = f"{found.flushed:,} lost, {share} of the nonzero gradients" if share else "none lost"
    title = f"{counted(found.total, 'gradient')} in {fmt.name}: {lost}"
    blocks: list[Block] = [heading(title), *([Row("gradients", name)] if name else [])]
    blocks.append(Row("loss scale", "none" if found.scale == 1 else f"× {_power(found.scale)}"))
    blocks.append(Row("range", f"2^{fmt.qmin} to 2^{fmt.emax}, normal from 2^{fmt.emin}"))
    zeros = found.total - found.nonzero - found.not_finite
    if zeros:
        blocks.append(Row("", f"{zeros:,} {plural(zeros, 'is', 'are')} zero already"))
    if found.not_finite:
        words = f"{found.not_finite:,} {plural(found.not_finite, 'is', 'are')} infinite or NaN already"
        blocks.append(Row("", Span(words, Role.BAD)))
    if not n:
        return Page((*blocks, Note("nothing can underflow: every gradient is zero, infinite or NaN")), title)
    scaled = "" if found.scale == 1 else " after scaling"
    blocks += [Gap(), heading(f"Magnitudes{scaled}, in powers of two"), histogram(found), Gap()]
    for outcome, count in (("zero", found.flushed), ("subnormal", found.subnormal), ("overflow", found.overflowed)):
        words = f"{count:,} of {n:,}, {percent(count, n)}"
        blocks.append(Row(outcome, Span(words, _OUTCOME_ROLES[outcome] if count else Role.PLAIN)))
    return Page((*blocks, *_advice(found)), title)


def _advice(found: Underflow) -> list[Block]:
    least, safe = found.least_scale, found.safe_scale
    if least is None or safe is None:
        return []
    instead = "" if found.scale in (1, least) else f" instead of {_power(found.scale)}"
    ends = dict.fromkeys((_power(least), _power(safe)))
    verdict = f"{'any loss scale from' if len(ends) > 1 else 'a loss scale of'} {' to '.join(ends)} loses no gradient"
    if least > safe:
        left = found.flushed_by_safe_scale or 0
        verdict = f"every scale loses gradients: {_power(safe)} still loses {left:,}, {percent(left, found.nonzero)}"
    return [
        Row("scales", f"at {_power(least)}{instead}, no gradient becomes zero"),
        Row("", f"{_power(safe)} is the largest power of two without overflow"),
        Row("verdict", Span(verdict, Role.BAD if least > safe else Role.GOOD)),
    ]


def _power(x: float) -> str:
    """Return a number as text: a power of two as 2^k if it is large or below 1, other numbers in digits.

    >>> _power(65536.0), _power(2.0**40), _power(3.0)
    ('65,536', '2^40', '3')
    """
    if x > 0 and log2(x) == floor(log2(x)) and not 1 <= x <= 1 << 24:
        return f"2^{int(log2(x))}"
    return f"{x:,.0f}" if x == floor(x) and x <= 1 << 24 else f"{x:g}"


def histogram(found: Underflow) -> model.Axis:
    """Return a histogram of the scaled gradients by exponent; each bar says what the format does to these gradients."""
    fmt, shift = found.format, floor(log2(found.scale))
    counts = {e + shift: count for e, count in found.histogram}
    low, high = min(counts), max(counts)
    width = -(-(high - low + 1) // _LANES)
    # The outcome changes at half the smallest number, at the smallest number, at the smallest normal number, and above
    # the largest exponent. No bin extends across these.
    edges = sorted({fmt.qmin - 1, fmt.qmin, fmt.emin, fmt.emax + 1})
    bins: dict[tuple[int, int], int] = {}
    for e, count in counts.items():
        below = [edge for edge in edges if edge <= e]
        base = below[-1] if below else edges[0] - width * (1 << 20)
        start = base + (e - base) // width * width
        stop = min([start + width, *(edge for edge in edges if edge > start)])
        bins[start, stop] = bins.get((start, stop), 0) + count
    most = max(bins.values())
    lanes = []
    for (start, stop), count in sorted(bins.items()):
        outcome = outcome_of(start, found)
        label = line(
            f"{count:,}", Span(f"  {percent(count, found.nonzero)}", Role.HINT), f"  {outcome}" if outcome else ""
        )
        role = _OUTCOME_ROLES[outcome]
        bar = model.AxisInterval(
            0.0, 0.56 * count / most, label, line(f"{count:,} {outcome}"), role, heavy=not outcome, ends=False
        )
        name = f"2^{start}" if stop == start + 1 else f"2^{start} … {stop - 1}"
        lanes.append(model.Lane(name, (), (bar,)))
    return model.Axis(tuple(lanes))


def outcome_of(exponent: int, found: Underflow) -> str:
    """Say what rounding to nearest does to numbers with this exponent; empty if they keep the full precision."""
    fmt = found.format
    if exponent < fmt.qmin - 1:
        return "zero"
    if exponent == fmt.qmin - 1:
        return "zero or smallest"
    if exponent < fmt.emin:
        return "subnormal"
    return "overflow" if exponent > fmt.emax else ""
