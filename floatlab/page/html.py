"""A page as one HTML file that needs nothing else: the SVG picture inside, and the words that go with it."""

from __future__ import annotations

from floatlab.page.model import Page
from floatlab.page.svg import escaped, to_svg

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
