"""Pages as SVG pictures: the same layout as the terminal's, as text that can be selected and read aloud."""

from __future__ import annotations

import re

from floatlab.errors import printable
from floatlab.page.layout import set_page
from floatlab.page.model import Line, Page, Role
from floatlab.page.theme import SVG, SVG_BACKGROUND, SVG_BOLD, SVG_TEXT

_CHARACTER = 8.4  # the width of a character at FONT_SIZE in the common monospaced fonts
_FONT_SIZE = 14
_LEADING = 19
_MARGIN = 14
_FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def escaped(text: str) -> str:
    """Escape text for XML; what is not printable, and so all that XML cannot hold, as it is on a terminal."""
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _spans(runs: Line) -> str:
    """Place every group of words by its column, so that no font's own widths can move it."""
    spans, column = [], 0
    for run in runs:
        style = f' fill="{SVG[run.role]}"' if run.role in SVG else ""
        style += ' font-weight="bold"' if run.role in SVG_BOLD else ""
        # Words stay together, to be copied as they read; a ruler's digits each belong to their column.
        for words in re.finditer(r"\S+" if run.role is Role.RULER else r"\S+(?: \S+)*", run.text):
            x = _MARGIN + (column + words.start()) * _CHARACTER
            length = len(words[0]) * _CHARACTER
            spans.append(f'<tspan x="{x:.1f}" textLength="{length:.1f}"{style}>{escaped(words[0])}</tspan>')
        column += len(run.text)
    return "".join(spans)


def to_svg(page: Page, width: int = 80) -> str:
    """Return the page as an SVG document, with its title and its text for screen readers."""
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
