"""Pages as SVG pictures, with the terminal's layout and text that can be selected; and as HTML around them."""

from __future__ import annotations

import re

from floatlab.errors import printable
from floatlab.page.layout import set_page
from floatlab.page.model import Line, Page, Role

# Okabe and Ito's palette, darkened to at least 4.5:1 on white: distinct to colour-blind eyes.
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


_STYLE = "body{margin:2rem;background:#f6f8fa;color:#1f2328;font-family:sans-serif}svg{max-width:100%;height:auto}"


def to_html(page: Page, width: int = 100, remark: str = "") -> str:
    """Return the page as an HTML document; `remark` stands below it, such as the command that made it.

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
