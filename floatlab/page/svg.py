"""SVG pictures of pages, with the terminal's layout and selectable text; HTML documents; SVG pictures of charts.

Charts are drawn without matplotlib; the name of a curve is beside its last point.
"""

from __future__ import annotations

import re

from floatlab.errors import UnsupportedError, printable
from floatlab.page.chart import ChartScales, scales_of, ticks
from floatlab.page.model import Chart, Curve, Line, Page, Role
from floatlab.page.text_layout import set_page

# Okabe and Ito's palette for colour-blind readers, darkened to a contrast of at least 4.5:1 on white.
SVG_BACKGROUND = "#ffffff"
SVG_TEXT = "#1f2328"
SVG: dict[Role, str] = {
    Role.LABEL: "#656d76",
    Role.RULER: "#656d76",
    Role.HINT: "#656d76",
    Role.SIGN: "#b34700",
    Role.EXPONENT: "#00755a",
    Role.SIGNIFICAND: "#0065a3",
    Role.IMPLICIT: "#0b6e8f",
    Role.LOST: "#a0457c",
    Role.FLAG: "#a0457c",
    Role.CODE: "#7d5a00",
    Role.GOOD: "#00755a",
    Role.BAD: "#b34700",
}
SVG_BOLD = frozenset({Role.HEADING, Role.CHANGED, Role.VALUE})

_CHARACTER = 8.4  # the width of a character at FONT_SIZE in the common monospaced fonts
_FONT_SIZE = 14
_LEADING = 19
_MARGIN = 14
# For charts: size, plot margins, and line styles that can be distinguished without colour.
_WIDTH, _HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 170, 44, 46
_LINE = 15  # least vertical distance between the names of two curves
_DASHES = ("", "7 3", "2 3", "9 3 2 3")
_FONT = "system-ui, sans-serif"
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def escaped(text: str) -> str:
    """Escape text for XML. Non-printable characters (including all that XML forbids) are escaped as on a terminal."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _spans(runs: Line) -> str:
    """Return a line as `tspan` elements, whose explicit positions make columns line up in every font."""
    spans, column = [], 0
    for run in runs:
        style = f' fill="{SVG[run.role]}"' if run.role in SVG else ""
        style += ' font-weight="bold"' if run.role in SVG_BOLD else ""
        # Words with single spaces between them share a position, so that copied text is readable. Each digit of a ruler
        # has its own position.
        for words in re.finditer(r"\S+" if run.role is Role.RULER else r"\S+(?: \S+)*", run.text):
            x = _MARGIN + (column + words.start()) * _CHARACTER
            length = len(words[0]) * _CHARACTER
            spans.append(f'<tspan x="{x:.1f}" textLength="{length:.1f}"{style}>{escaped(words[0])}</tspan>')
        column += len(run.text)
    return "".join(spans)


def to_svg(page: Page, width: int = 80) -> str:
    """Return the page as an SVG document, with its title for screen readers."""
    lines = set_page(page, width)
    columns = max((sum(len(run.text) for run in each) for each in lines), default=1)
    w, h = columns * _CHARACTER + 2 * _MARGIN, len(lines) * _LEADING + 2 * _MARGIN
    body = "\n".join(
        f'<text y="{_MARGIN + _FONT_SIZE + row * _LEADING}">{_spans(each)}</text>'
        for row, each in enumerate(lines)
        if _spans(each)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" '
        f'width="{w:.0f}" height="{h:.0f}" role="img">\n'
        f"<title>{escaped(page.title)}</title>\n"
        f'<rect width="100%" height="100%" rx="6" fill="{SVG_BACKGROUND}"/>\n'
        f'<g font-family="{_FONTS}" font-size="{_FONT_SIZE}" fill="{SVG_TEXT}" xml:space="preserve" '
        'style="font-variant-ligatures: none">\n'
        f"{body}\n</g>\n</svg>\n"
    )


_STYLE = "body{margin:2rem;background:#f6f8fa;color:#1f2328;font-family:sans-serif}svg{max-width:100%;height:auto}"


def to_html(page: Page, width: int = 100, remark: str = "") -> str:
    """Return the page as an HTML document; `remark` (such as the command) is shown below the page.

    >>> from floatlab.page.model import Note, line
    >>> text = to_html(Page((Note(line("1 < 2")),), "a title"), 40, "floatlab show 1")
    >>> text.count("<svg"), "http://" in text.replace("http://www.w3.org/2000/svg", ""), "1 &lt; 2" in text
    (1, False, True)
    """
    below = f"<p><code>{escaped(remark)}</code></p>\n" if remark else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escaped(page.title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n{to_svg(page, width)}{below}</body>\n</html>\n"
    )


def chart_to_svg(chart: Chart, title: str) -> str:
    """Return a chart as an SVG document, with its title and the names of its curves for screen readers.

    Raises UnsupportedError if there are no numbers to draw.

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
    """Return the axes with their ticks, tick labels and names, and thin lines at the ticks of the vertical scale."""
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
    """Return the names of the curves beside the curves' last points, moved apart if they would overlap."""
    ends = sorted(ends, key=lambda end: end[0][1])
    heights: list[float] = []
    for (_, y), _curve in ends:
        heights.append(max(y, heights[-1] + _LINE) if heights else y)
    over = heights[-1] - (_HEIGHT - _BOTTOM) if heights else 0.0
    for i in range(len(heights) - 1, -1, -1):  # if names were moved below the plot, move them up
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
