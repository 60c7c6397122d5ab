"""PNG pictures of pages, drawn by matplotlib (the optional dependency `plot`) on an exact grid of characters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from io import BytesIO

from floatlab.errors import MissingPartError
from floatlab.page.model import Page, Role
from floatlab.page.svg import SVG, SVG_BACKGROUND, SVG_BOLD, SVG_TEXT
from floatlab.page.text_layout import set_page
from floatlab.record import Record

CELL = (16, 36)  # width and height of a character in pixels
MARGIN = 32  # pixels around the page
_BASE = 26  # pixels from the top of a character to its base line
_ADVANCE = 1233 / 2048  # width of the characters of DejaVu Sans Mono, relative to the size of the font
_DPI = 72  # at this resolution, a point is a pixel


class PageColours(Record):
    """The colours of a picture as #rrggbb: of roles, of other text, and of the background."""

    roles: Mapping[Role, str]
    text: str
    ground: str


ON_WHITE = PageColours(SVG, SVG_TEXT, SVG_BACKGROUND)


def to_png(page: Page, width: int = 80, colours: PageColours = ON_WHITE) -> bytes:
    """Return the page as a PNG picture, in the font DejaVu Sans Mono, which matplotlib contains.

    Raises MissingPartError without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import RendererAgg
        from matplotlib.colors import to_rgb
        from matplotlib.font_manager import FontProperties
        from matplotlib.image import imsave
    except ImportError:
        raise MissingPartError(".png needs matplotlib: pip install 'floatlab[plot]'") from None
    import numpy as np

    lines = set_page(page, width)
    columns = max((sum(len(run.text) for run in runs) for runs in lines), default=1)
    canvas = RendererAgg(columns * CELL[0] + 2 * MARGIN, len(lines) * CELL[1] + 2 * MARGIN, _DPI)
    pixels = np.asarray(canvas.buffer_rgba())
    pixels[:] = [round(255 * part) for part in (*to_rgb(colours.ground), 1)]
    fonts = {
        is_bold: FontProperties(
            family="DejaVu Sans Mono", weight="bold" if is_bold else "normal", size=CELL[0] / _ADVANCE
        )
        for is_bold in (False, True)
    }
    pen = canvas.new_gc()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a character that the font lacks is drawn as a box
        for y, runs in enumerate(lines):
            column, base = 0, MARGIN + y * CELL[1] + _BASE
            for run in runs:
                pen.set_foreground(colours.roles.get(run.role, colours.text))
                # Each character is drawn alone, since the font's character widths need not be whole pixels.
                for x, character in enumerate(run.text, column):
                    if not character.isspace():
                        canvas.draw_text(pen, MARGIN + x * CELL[0], base, character, fonts[run.role in SVG_BOLD], 0)
                column += len(run.text)
    file = BytesIO()
    imsave(file, pixels, format="png", metadata={"Title": page.title})
    return file.getvalue()
