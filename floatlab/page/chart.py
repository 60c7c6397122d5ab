"""Charts: the letter of each curve and its role, which gives the colour; scales with round ticks; charts as text.

A curve is drawn with its letter, so that curves can be distinguished without colour. Curves can also be drawn in
Braille dots, which need colours.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from operator import or_
from textwrap import wrap

from floatlab.page.model import Block, Chart, Curve, Line, Pair, Role, Span, columns_of, line
from floatlab.page.model import wrap as wrap_line
from floatlab.record import Record

MARKS = "abcdefghijklmnopqrstuvwxyz0123456789"
REFERENCE = "·"
POINTS = 240  # at most this many points per curve
_ROLES = (Role.SIGN, Role.SIGNIFICAND, Role.EXPONENT, Role.LOST, Role.CODE, Role.IMPLICIT, Role.VALUE)


_ROUND = (1, 2, 5, 10)
_LEAST = 8  # least number of columns of the plot area
_ROWS_A_TICK = 3
_COLUMNS_A_TICK = 12
_APART = 2  # spaces between the name of the horizontal scale and a number beside it
# A scale has ticks only at its ends if it is shorter than _LEAST_SPAN, or than this share of its larger end.
_LEAST_SPAN, _LEAST_SHARE = 1e-290, 2.0**-30


def thinned(count: int, most: int = POINTS) -> list[int]:
    """Return at most `most` indices of `count` items, evenly spaced, including both ends.

    >>> thinned(5), thinned(101, 5)
    ([0, 1, 2, 3, 4], [0, 25, 50, 75, 100])
    """
    if count <= most:
        return [*range(count)]
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def mark_of(place: int) -> str:
    """Return the letter (or digit) of curve number `place`, counted from 0."""
    return MARKS[place % len(MARKS)]


def role_of(place: int) -> Role:
    """Return the role of curve number `place`."""
    return _ROLES[place % len(_ROLES)]


def curve(place: int | None, label: str, across: Sequence[float], up: Sequence[float], most: int = POINTS) -> Curve:
    """Return curve number `place` of a chart (None: the reference curve), reduced to at most `most` points.

    >>> curve(1, "master", [0, 1], [1.125, 1.25])
    Curve(mark='b', label='master', points=((0.0, 1.125), (1.0, 1.25)), role=<Role.SIGNIFICAND: 'significand'>)
    """
    points = tuple((float(across[i]), float(up[i])) for i in thinned(len(across), most))
    if place is None:
        return Curve(REFERENCE, label, points, Role.HINT)
    return Curve(mark_of(place), label, points, role_of(place))


def named(place: int, label: str) -> Line:
    """Return the letter of a curve followed by its name, for tables."""
    return line(Span(mark_of(place), role_of(place)), " ", Span(label, Role.VALUE))


def legend(chart: Chart) -> Line:
    """Return the letter and the name of each curve; for curves of Braille dots, also a piece of line in its colour."""
    runs: list[Span | str] = []
    for each in chart.curves:
        if not each.label:
            continue  # a later piece of a curve; the first piece has the name
        mark = f"━\N{NO-BREAK SPACE}{each.mark}" if chart.dots else each.mark
        runs += ["  " if runs else "", Span(mark, each.role), f" {each.label}".replace(" ", "\N{NO-BREAK SPACE}")]
    return line(*runs)


class Scale(Record):
    """A scale from `low` to `high`, which are finite; on a logarithmic scale, they are also positive."""

    low: float
    high: float
    is_log: bool = False

    def place(self, x: float) -> float:
        """Return the position of a number on the scale: 0 is `low`, 1 is `high`.

        >>> Scale(1, 100, True).place(10), Scale(0, 4).place(1)
        (0.5, 0.25)
        """
        if self.is_log:
            return (log10(x) - log10(self.low)) / (log10(self.high) - log10(self.low))
        if isfinite(span := self.high - self.low):
            return (x - self.low) / span
        # Both differences are computed from halved numbers, so that neither overflows binary64.
        return (x / 2 - self.low / 2) / (self.high / 2 - self.low / 2)

    def at(self, place: float) -> float:
        """Return the number at a position of the scale; the inverse of `place`."""
        if self.is_log:
            return float(10 ** (log10(self.low) + place * (log10(self.high) - log10(self.low))))
        return self.low + place * (self.high / 2 - self.low / 2) * 2

    def shows(self, x: float) -> bool:
        """Return whether a number can be placed on this scale."""
        return isfinite(x) and (x > 0 or not self.is_log)


def scale_of(numbers: list[float], is_log: bool = False) -> Scale | None:
    """Return a scale that covers the numbers, widened if all numbers are equal; None if no number can be shown.

    >>> scale_of([3, 1, float("nan")]), scale_of([0.0], True)
    (Scale(low=1, high=3, is_log=False), None)
    """
    there = [x for x in numbers if isfinite(x) and (x > 0 or not is_log)]
    if not there:
        return None
    low, high = min(there), max(there)
    if low == high or (is_log and log10(low) == log10(high)):
        low, high = (low / 2 or low, high * 2) if is_log else (low - (abs(low) / 2 or 1), high + (abs(high) / 2 or 1))
        low, high = max(low, -sys.float_info.max), min(high, sys.float_info.max)
    return Scale(low, high, is_log)


class ChartScales(Record):
    """The two scales of a chart: the horizontal and the vertical one; the same in characters and in SVG."""

    across: Scale
    up: Scale


def scales_of(chart: Chart) -> ChartScales | None:
    """Return scales that cover a chart's curves, or None if there is nothing to draw."""
    points = [point for curve in chart.curves for point in curve.points]
    across = scale_of([x for x, _ in points], chart.log_across)
    up = scale_of([y for _, y in points], chart.log_up)
    return None if across is None or up is None else ChartScales(across, up)


def ticks(scale: Scale, most: int) -> list[tuple[float, str]]:
    """Return about `most` tick values of a scale, with their labels.

    >>> ticks(Scale(1.12, 1.17), 4)
    [(1.12, '1.12'), (1.14, '1.14'), (1.16, '1.16')]
    >>> ticks(Scale(0.003, 40, True), 5)
    [(0.01, '0.01'), (0.1, '0.1'), (1.0, '1'), (10.0, '10')]
    """
    if scale.is_log:
        first, last = ceil(log10(scale.low) - 1e-9), floor(log10(scale.high) + 1e-9)
        if last - first >= 1:
            every = ceil((last - first + 1) / most)
            return [(10.0**k, _power(k)) for k in range(first, last + 1) if k % every == 0 or every == 1]
    span = scale.high - scale.low
    least = max(_LEAST_SPAN, _LEAST_SHARE * max(abs(scale.low), abs(scale.high)))
    if not least <= span <= sys.float_info.max:  # no representable round step, or the difference overflows
        return _ends(scale)
    power = floor(log10(span / most))
    steps = [each * 10.0**k for k in (power, power + 1) for each in _ROUND]
    for step in sorted(steps):
        if step > 0 and floor(scale.high / step + 1e-9) - ceil(scale.low / step - 1e-9) < most:
            return _marked(scale, step)
    return []


def _ends(scale: Scale) -> list[tuple[float, str]]:
    """Return only the two end ticks, with enough digits to distinguish them."""
    for digits in range(1, 17):
        low, high = (f"{x:.{digits}e}" for x in (scale.low, scale.high))
        if low != high:
            break
    return [(scale.low, low), (scale.high, high)]


def _marked(scale: Scale, step: float) -> list[tuple[float, str]]:
    first, last = ceil(scale.low / step - 1e-9), floor(scale.high / step + 1e-9)
    places = max(-floor(log10(step) + 1e-9), 0)
    greatest = max(abs(first), abs(last)) * step
    found = []
    for k in range(first, last + 1):
        x = k * step
        if not x:
            found.append((0.0, "0"))
        elif places > 7 or greatest >= 1e9:
            digits = max(floor(log10(abs(x)) + 1e-9) - floor(log10(step) + 1e-9), 0)
            found.append((x, f"{x:.{digits}e}"))
        else:
            found.append((round(x, places), f"{x:,.{places}f}"))
    return found


def _power(k: int) -> str:
    return f"{10.0**k:,.0f}" if 0 <= k <= 6 else f"{10.0**k:.{-k}f}" if -3 <= k < 0 else f"1e{k}"


def with_dots(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks of a page with all charts drawn in Braille dots."""
    found: list[Block] = []
    for block in blocks:
        match block:
            case Chart():
                found.append(block.replace(dots=True, named=True))
            case Pair(left, right):
                found.append(block.replace(left=with_dots(left), right=with_dots(right)))
            case _:
                found.append(block)
    return tuple(found)


def chart_lines(chart: Chart, width: int) -> list[Line]:
    """Return a chart as lines of at most `width` columns, or a short message if it has no points that can be drawn.

    The plot has at least 8 columns, even if they exceed `width`.

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
    ends = _curve_ends(chart, scales)
    tail = min(max(len(each) for each in ends.values()) + 1, max(width - gutter - 2 - _LEAST, 0))
    room = max(width - gutter - 2 - tail, _LEAST)
    rows = (
        _dotted(chart, scales, room) if chart.dots else [_runs(chart, cells) for cells in _drawn(chart, scales, room)]
    )
    lines = _head(chart, width)
    for row in range(chart.height):
        axis = f"{labels.get(row, ''):>{gutter}} {chart.ink[0] if row in labels else chart.ink[1]}"
        at_end = tuple(Span(chart.curves[i].mark, chart.curves[i].role) for i in ends.get(row, ())[: max(tail - 1, 0)])
        lines.append(line(Span(axis, Role.RULER), *rows[row], " " if at_end else "", *at_end))
    return [*lines, *(line(" " * (gutter + 1), each) for each in _scale_lines(chart, scales.across, room))]


def _head(chart: Chart, width: int) -> list[Line]:
    """Return the name of the vertical scale and the legend, which may be on the same line."""
    lines = [line(Span(part, Role.LABEL)) for part in wrap(chart.up, max(width, 1))]
    names = line("  ", _line_legend(chart))
    if chart.dots and len(lines) == 1 and columns_of(lines[0]) + columns_of(names) <= width:
        return [line(lines[0], names)]
    has_more = chart.named and len(chart.curves) > 1
    return [*(wrap_line(legend(chart), width) if has_more else ()), *lines]


def _row(scale: Scale, y: float, height: int) -> int | None:
    return _row_at(scale.place(y), height) if scale.shows(y) else None


def _row_at(place: float, height: int) -> int:
    return min(max(round((1 - place) * (height - 1)), 0), height - 1)


def _curve_ends(chart: Chart, scales: ChartScales) -> dict[int, list[int]]:
    """For each row of the plot, return the indices of the curves that end in that row."""
    found: dict[int, list[int]] = {0: []}
    for i, curve in enumerate(chart.curves):
        if curve.points and (row := _row(scales.up, curve.points[-1][1], chart.height)) is not None:
            found.setdefault(row, []).append(i)
    return found


def _value(curve: Curve, xs: list[float], x: float, scales: ChartScales) -> float | None:
    """Return the position of a curve at x on the vertical scale, or None if the curve is not defined there."""
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
    """Return, for each row and column of the plot, the indices of the curves that pass through that cell."""
    cells: list[list[list[int]]] = [[[] for _ in range(room)] for _ in range(chart.height)]
    for i, curve in enumerate(chart.curves):
        xs = [x for x, _ in curve.points]
        before: int | None = None
        for column in range(room):
            x = scales.across.at(column / (room - 1))
            x = min(max(x, scales.across.low), scales.across.high)  # rounding must not give a position outside the plot
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


# The bit of each dot of a Braille character: the rows of its left column, then those of its right column.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BRAILLE = 0x2800


def _dotted(chart: Chart, scales: ChartScales, room: int) -> list[list[Span]]:
    """Return the rows of the plot in Braille dots, with two columns and four rows of dots per character.

    A character has one colour: where several curves pass, their colours alternate from column to column.
    """
    fine = _drawn(chart.replace(height=4 * chart.height), scales, 2 * room)
    rows = []
    for y in range(chart.height):
        runs = []
        for x in range(room):
            dots: dict[int, int] = {}
            for column, bits in enumerate(_DOTS):
                for row, bit in enumerate(bits):
                    for i in fine[4 * y + row][2 * x + column]:
                        dots[i] = dots.get(i, 0) | bit
            there = [i for i in dots if i or not chart.reference] or list(dots)
            if there:
                joined = reduce(or_, (dots[i] for i in there))
                runs.append(Span(chr(_BRAILLE + joined), chart.curves[sorted(there)[x % len(there)]].role))
            else:
                runs.append(Span(" "))
        rows.append(runs)
    return rows


def _line_legend(chart: Chart) -> Line:
    """Return, for each curve with a name, a piece of its line, its letter and its name."""
    runs: list[Span | str] = []
    for each in chart.curves:
        if not each.label:
            continue
        runs += ["  ", Span(f"━ {each.mark}", each.role), f" {each.label}"]
    return line(*runs)


def _scale_lines(chart: Chart, scale: Scale, room: int) -> list[Line]:
    """Return two lines: the horizontal axis, and below it the tick labels and the title of the axis."""
    marks = [
        (min(max(round(scale.place(x) * (room - 1)), 0), room - 1), text)
        for x, text in ticks(scale, max(room // _COLUMNS_A_TICK, 2))
    ]
    corner, across, mark = (chart.ink[i] for i in (2, 3, 4))
    base, below, name = [across] * room, [" "] * room, chart.across if len(chart.across) <= room else ""
    for column, text in marks:
        base[column] = mark
        start = min(max(column - len(text) // 2, 0), room - len(text))
        if start >= 0 and "".join(below[max(start - 1, 0) : start + len(text) + 1]).isspace():
            below[start : start + len(text)] = text
    # The title goes into the last gap with room for it. If there is none, it covers the labels at the right end.
    gap = ("".join(below) + " " * _APART).rfind(" " * (len(name) + 2 * _APART))
    named = gap + _APART if gap >= 0 else room - len(name)
    below[named : named + len(name)] = name
    numbers, words, after = ("".join(below[i:j]) for i, j in pairwise((0, named, named + len(name), room)))
    return [
        line(Span(corner + "".join(base), Role.RULER)),
        line(" ", Span(numbers, Role.RULER), Span(words, Role.LABEL), Span(after, Role.RULER)),
    ]
