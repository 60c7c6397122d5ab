"""Charts as SVG pictures of lines, each named where it ends: for documents, without matplotlib."""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.page.chart import ChartScales, scales_of, ticks
from floatlab.page.model import Chart, Curve, Role
from floatlab.page.svg import SVG, SVG_BACKGROUND, SVG_TEXT, escaped

_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 170, 44, 46
_LINE = 15  # between two names
_DASHES = ("", "7 3", "2 3", "9 3 2 3")  # told apart without colour, too
_FONT = "system-ui, sans-serif"


def chart_to_svg(chart: Chart, title: str) -> str:
    """Return a chart as an SVG document, with its title and the names of its curves for screen readers.

    Raises UnsupportedError where there are no numbers to draw.

    >>> curves = (Curve("a", "flat", ((0, 1), (9, 1))), Curve("b", "steep", ((0, 0), (9, 3))))
    >>> chart_to_svg(Chart(curves, "step", "value"), "Two lines").count("<polyline")
    2
    """
    scales = scales_of(chart)
    if scales is None:
        raise UnsupportedError("there are no numbers to draw")
    names = ", ".join(each.label for each in chart.curves)
    parts = [*_axes(chart, scales), *_curves(chart, scales)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img">\n'
        f"<title>{escaped(title)}</title>\n<desc>{escaped(f'{chart.up} against {chart.across}: {names}')}</desc>\n"
        f'<rect width="100%" height="100%" rx="6" fill="{SVG_BACKGROUND}"/>\n'
        f'<g font-family="{_FONT}" font-size="12" fill="{SVG_TEXT}">\n'
        f'<text x="{_LEFT}" y="20" font-size="14" font-weight="bold">{escaped(title)}</text>\n'
        + "\n".join(parts)
        + "\n</g>\n</svg>\n"
    )


def _x(scales: ChartScales, x: float) -> float:
    return _LEFT + scales.across.place(x) * (_WIDTH - _LEFT - _RIGHT)


def _y(scales: ChartScales, y: float) -> float:
    return _TOP + (1 - scales.up.place(y)) * (_HEIGHT - _TOP - _BOTTOM)


def _axes(chart: Chart, scales: ChartScales) -> list[str]:
    """Return thin lines at round numbers, the numbers, and what the scales measure."""
    grey, right, bottom = SVG[Role.HINT], _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for value, text in ticks(scales.up, 8):
        y = _y(scales, value)
        parts.append(f'<path d="M{_LEFT} {y:.1f}H{right}" stroke="#d8dee4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="{grey}">{text}</text>')
    for value, text in ticks(scales.across, 8):
        x = _x(scales, value)
        parts.append(f'<path d="M{x:.1f} {bottom}v5" stroke="{grey}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 19}" text-anchor="middle" fill="{grey}">{text}</text>')
    parts.append(f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="{grey}"/>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">{escaped(chart.across)}</text>')
    return [*parts, f'<text x="{_LEFT}" y="{_TOP - 8}" fill="{grey}">{escaped(chart.up)}</text>']


def _curves(chart: Chart, scales: ChartScales) -> list[str]:
    parts, ends = [], []
    for i, each in enumerate(chart.curves):
        points = [
            (_x(scales, x), _y(scales, y)) for x, y in each.points if scales.across.shows(x) and scales.up.shows(y)
        ]
        if not points:
            continue
        dash = f' stroke-dasharray="{_DASHES[i % len(_DASHES)]}"' if i % len(_DASHES) else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        colour = SVG.get(each.role, SVG_TEXT)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
        ends.append((points[-1], each))
    return [*parts, *_names(ends)]


def _names(ends: list[tuple[tuple[float, float], Curve]]) -> list[str]:
    """Return the names of the curves beside their ends, moved apart where they would overlap."""
    ends = sorted(ends, key=lambda end: end[0][1])
    heights: list[float] = []
    for (_, y), _curve in ends:
        heights.append(max(y, heights[-1] + _LINE) if heights else y)
    over = heights[-1] - (_HEIGHT - _BOTTOM) if heights else 0.0
    for i in range(len(heights) - 1, -1, -1):  # what was pushed out below moves back up
        limit = heights[i + 1] - _LINE if i + 1 < len(heights) else heights[i] - max(over, 0.0)
        heights[i] = min(heights[i], limit)
    parts = []
    for height, ((x, y), curve) in zip(heights, ends, strict=True):
        start, colour = _WIDTH - _RIGHT + 16, SVG.get(curve.role, SVG_TEXT)
        parts.append(
            f'<path d="M{x + 2:.1f} {y:.1f}L{start - 4} {height:.1f}" stroke="{colour}" stroke-width="0.7"/>'
            f'<text x="{start}" y="{height + 4:.1f}" fill="{colour}">{escaped(curve.label)}</text>'
        )
    return parts
