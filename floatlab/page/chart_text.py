"""Setting a chart in characters: each curve drawn with its letter, so that nothing depends on colour."""

from __future__ import annotations

from bisect import bisect_right
from textwrap import wrap

from floatlab.page.chart import ChartScales, Scale, scales_of, ticks
from floatlab.page.model import Chart, Curve, Line, Role, Span, line

_LEAST = 8  # columns of the plot itself
_ROWS_A_TICK = 3
_COLUMNS_A_TICK = 12


def chart_lines(chart: Chart, width: int) -> list[Line]:
    """Return a chart as lines of at most so many columns, or a word where there is nothing to draw.

    >>> from floatlab.page.model import text_of
    >>> curves = (Curve("a", "flat", ((0, 1), (9, 1))), Curve("b", "steep", ((0, 0), (9, 3))))
    >>> for each in chart_lines(Chart(curves, "step", "value", 7), 34):
    ...     print(text_of(each).rstrip())
    value
      │                          bbb b
      │                      bbbb
    2 ┤                 bbbbb
      │            bbbbb
      │aaaaaaabababaaaaaaaaaaaaaaaaa a
      │   bbbb
    0 ┤bbb
      └┼───────────────┼────────────
       0               5        step
    """
    scales = scales_of(chart)
    if scales is None:
        return [line(Span("no numbers to draw", Role.HINT))]
    marks = [(_row(scales.up, y, chart.height), text) for y, text in ticks(scales.up, -(-chart.height // _ROWS_A_TICK))]
    labels = {row: text for row, text in marks if row is not None}
    gutter = max((len(text) for text in labels.values()), default=0)
    ends = _ends(chart, scales)
    tail = min(max(len(each) for each in ends.values()) + 1, max(width - gutter - 2 - _LEAST, 0))
    room = max(width - gutter - 2 - tail, _LEAST)
    cells = _drawn(chart, scales, room)
    lines = [line(Span(part, Role.LABEL)) for part in wrap(chart.up, max(width, 1))]
    for row in range(chart.height):
        axis = f"{labels.get(row, ''):>{gutter}} {chart.ink[0] if row in labels else chart.ink[1]}"
        at_end = tuple(Span(chart.curves[i].mark, chart.curves[i].role) for i in ends.get(row, ())[: max(tail - 1, 0)])
        lines.append(line(Span(axis, Role.RULER), *_runs(chart, cells[row]), " " if at_end else "", *at_end))
    return [*lines, *(line(" " * (gutter + 1), each) for each in _scale_lines(chart, scales.across, room))]


def _row(scale: Scale, y: float, height: int) -> int | None:
    return _row_at(scale.place(y), height) if scale.shows(y) else None


def _row_at(place: float, height: int) -> int:
    return min(max(round((1 - place) * (height - 1)), 0), height - 1)


def _ends(chart: Chart, scales: ChartScales) -> dict[int, list[int]]:
    """Return for each row the curves that end there, by their places."""
    found: dict[int, list[int]] = {0: []}
    for i, curve in enumerate(chart.curves):
        if curve.points and (row := _row(scales.up, curve.points[-1][1], chart.height)) is not None:
            found.setdefault(row, []).append(i)
    return found


def _value(curve: Curve, xs: list[float], x: float, scales: ChartScales) -> float | None:
    """Return where a curve is at x, as a place on the scale upwards; None where it is not."""
    if not xs or not xs[0] <= x <= xs[-1]:
        return None
    i = min(bisect_right(xs, x), len(xs) - 1)
    (x0, y0), (x1, y1) = curve.points[max(i - 1, 0)], curve.points[i]
    if not (scales.up.shows(y0) and scales.up.shows(y1)):
        return None
    p0, p1 = scales.up.place(y0), scales.up.place(y1)
    if x1 == x0:
        return p1
    share = Scale(x0, x1, scales.across.is_log).place(x) if scales.across.shows(x0) else 1.0
    return p0 + (p1 - p0) * share


def _drawn(chart: Chart, scales: ChartScales, room: int) -> list[list[list[int]]]:
    """Return for each cell the curves that pass through it."""
    cells: list[list[list[int]]] = [[[] for _ in range(room)] for _ in range(chart.height)]
    for i, curve in enumerate(chart.curves):
        xs = [x for x, _ in curve.points]
        before: int | None = None
        for column in range(room):
            x = scales.across.at(column / (room - 1))
            x = min(max(x, scales.across.low), scales.across.high)  # the ends themselves, whatever rounding does
            place = _value(curve, xs, x, scales)
            if place is None:
                before = None
                continue
            row = _row_at(place, chart.height)
            rows = {row}
            if before is not None and abs(row - before) > 1:
                rows |= set(range(min(row, before) + 1, max(row, before)))
            for each in rows:
                cells[each][column].append(i)
            before = row
    return cells


def _runs(chart: Chart, cells: list[list[int]]) -> list[Span]:
    runs = []
    for column, curves in enumerate(cells):
        there = [i for i in curves if i or not chart.reference] or curves
        if not there:
            runs.append(Span(" "))
            continue
        curve = chart.curves[there[column % len(there)]]
        runs.append(Span(curve.mark, curve.role))
    return runs


def _scale_lines(chart: Chart, scale: Scale, room: int) -> list[Line]:
    """Return the scale across and what stands below it: the numbers, and what they are."""
    marks = [
        (min(max(round(scale.place(x) * (room - 1)), 0), room - 1), text)
        for x, text in ticks(scale, max(room // _COLUMNS_A_TICK, 2))
    ]
    corner, across, mark = (chart.ink[i] for i in (2, 3, 4))
    base, below = [across] * room, [" "] * room
    name = chart.across if len(chart.across) <= room else ""
    named = room - len(name)
    below[named:] = name
    for column, text in marks:
        base[column] = mark
        start = min(max(column - len(text) // 2, 0), room - len(text))
        if start >= 0 and "".join(below[max(start - 1, 0) : start + len(text) + 1]).isspace():
            below[start : start + len(text)] = text
    numbers, words = "".join(below[:named]), "".join(below[named:])
    return [
        line(Span(corner + "".join(base), Role.RULER)),
        line(" ", Span(numbers, Role.RULER), Span(words, Role.LABEL)),
    ]
