"""A screen as an SVG picture of a few kilobytes: frames are strokes, grounds are areas, and all else is text.

Textual's own pictures are ten times as large, and their frames have gaps in fonts other than its own.
"""

from collections import defaultdict
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.terminal_theme import TerminalTheme
from textual.color import Color

from tests.tui.stage import strips

WIDTH, HEIGHT, SIZE = 8, 18, 13.3  # of a character; the size of the font whose characters are as wide
BASE = 13.4  # the base line of a row
_FONTS = "'DejaVu Sans Mono',Menlo,Consolas,monospace"
# Strokes from the middle of a character: whether they reach the left, right, upper and lower edge; and whether heavy.
_STROKES = {
    "─": (1, 1, 0, 0, 0), "│": (0, 0, 1, 1, 0), "╭": (0, 1, 0, 1, 0), "╮": (1, 0, 0, 1, 0), "╰": (0, 1, 1, 0, 0),
    "╯": (1, 0, 1, 0, 0), "┌": (0, 1, 0, 1, 0), "┐": (1, 0, 0, 1, 0), "└": (0, 1, 1, 0, 0), "┘": (1, 0, 1, 0, 0),
    "├": (0, 1, 1, 1, 0), "┤": (1, 0, 1, 1, 0), "┬": (1, 1, 0, 1, 0), "┴": (1, 1, 1, 0, 0), "┼": (1, 1, 1, 1, 0),
    "━": (1, 1, 0, 0, 1),
}  # fmt: skip
# Blocks: left, top, width and height in eighths of a character.
_BLOCKS = {
    "█": (0, 0, 8, 8), "▐": (4, 0, 4, 8), "▌": (0, 0, 4, 8), "▀": (0, 0, 8, 4),
    **{character: (0, 8 - i, 8, i) for i, character in enumerate("▁▂▃▄▅▆▇", 1)},
    **{character: (0, 0, i, 8) for i, character in enumerate("▏▎▍", 1)},
    **{character: (0, 0, i, 8) for i, character in enumerate("▋▊▉", 5)},
}  # fmt: skip
# The dots of a Braille character, by their bits: column and row.
_DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
# The sixteen colours of a terminal, as Linux and many terminals have them.
_SIXTEEN = TerminalTheme(
    (0, 0, 0), (170, 170, 170),
    [(0, 0, 0), (170, 0, 0), (0, 170, 0), (170, 85, 0), (0, 0, 170), (170, 0, 170), (0, 170, 170), (170, 170, 170)],
    [(85, 85, 85), (255, 85, 85), (85, 255, 85), (255, 255, 85), (85, 85, 255), (255, 85, 255), (85, 255, 255),
     (255, 255, 255)],
)  # fmt: skip


class Look(NamedTuple):
    """How a character is drawn."""

    ink: str
    ground: str
    bold: bool
    underline: bool
    dim: bool = False


class Cell(NamedTuple):
    """A character at a place of the screen, and how many columns it takes."""

    row: int
    column: int
    text: str
    look: Look


def picture(app):
    """Return the screen of an app as SVG."""
    rows = strips(app)
    cells = [cell for y, strip in enumerate(rows) for cell in cells_of(app, y, strip)]
    width, height = app.size[0] * WIDTH, app.size[1] * HEIGHT
    ground = _plain_look(app).ground
    grounds, strokes, words = defaultdict(list), defaultdict(list), []
    for run in _runs(cells, lambda a, b: a.look.ground == b.look.ground):
        if run[0].look.ground != ground:
            columns = run[-1].column + cell_len(run[-1].text) - run[0].column
            grounds[run[0].look.ground].append((run[0].column * WIDTH, run[0].row * HEIGHT, columns * WIDTH, HEIGHT))
    for run in _runs(cells, _same_words):
        first = run[0]
        text = "".join(cell.text for cell in run).replace("\N{NO-BREAK SPACE}", " ")
        if first.text in _STROKES:
            strokes[first.look.ink, _STROKES[first.text][4]] += _strokes(first, len(run))
        elif first.text in _BLOCKS:
            grounds[first.look.ink] += [_block(cell) for cell in run]
        elif is_braille(first.text):
            grounds[first.look.ink] += [dot for cell in run for dot in _dots(cell)]
        elif text.strip() or first.look.underline:
            words.append((first, text))
    box = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    parts = [_area(ink, areas) for ink, areas in grounds.items()]
    parts += [_stroked(ink, heavy, paths) for (ink, heavy), paths in strokes.items()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {box}>',
            f'<rect width="100%" height="100%" fill="{ground}"/>',
            *parts,
            f'<g font-family="{_FONTS}" font-size="{SIZE}" style="white-space:pre;font-variant-ligatures:none">',
            *_words(words),
            "</g>",
            "</svg>\n",
        ]
    )


def cells_of(app, y, strip):
    x = 0
    plain = _plain_look(app)
    for text, style, _ in Segment.filter_control(strip):
        look = _look(app, style, plain)
        for character in text:
            yield Cell(y, x, character, look)
            x += cell_len(character)


def _plain_look(app):
    variables = app.theme_variables
    if app.current_theme.ansi:
        return Look(_SIXTEEN.foreground_color.hex, _SIXTEEN.background_color.hex, False, False)
    return Look(Color.parse(variables["foreground"]).hex6, Color.parse(variables["background"]).hex6, False, False)


def _look(app, style, plain):
    if style is None:
        return plain
    ink, ground = (
        fallback if colour is None or colour.is_default else colour.get_truecolor(_SIXTEEN, front).hex
        for colour, fallback, front in ((style.color, plain.ink, True), (style.bgcolor, plain.ground, False))
    )
    if style.reverse:
        ink, ground = ground, ink
    if style.dim:
        ink = Color.parse(ink).blend(Color.parse(ground), 0.4).hex6
    return Look(ink.lower(), ground.lower(), bool(style.bold), bool(style.underline), bool(style.dim))


def _runs(cells, belongs):
    """Split the cells of each row into runs of neighbours that belong together."""
    run = []
    for cell in cells:
        if run and (cell.row != run[-1].row or not belongs(run[-1], cell)):
            yield run
            run = []
        run.append(cell)
    yield run


def is_braille(character):
    return "\u2800" <= character <= "\u28ff"


def _same_words(a, b):
    if is_braille(a.text) or is_braille(b.text):
        return is_braille(a.text) and is_braille(b.text) and a.look.ink == b.look.ink
    if a.text in _STROKES or b.text in _STROKES or a.text in _BLOCKS or b.text in _BLOCKS:
        return a.text == b.text and a.look.ink == b.look.ink
    spaced = a.text == b.text == " " and not a.look.underline  # two spaces part words
    return (a.look.ink, *a.look[2:4]) == (b.look.ink, *b.look[2:4]) and not spaced and a.text != "\N{NO-BREAK SPACE}"


def _strokes(cell, count):
    left, right, up, down, _ = _STROKES[cell.text]
    x, y = cell.column * WIDTH, cell.row * HEIGHT
    if left and right and not (up or down):
        return [f"M{x} {y + HEIGHT // 2}h{WIDTH * count}"]
    paths = []
    for i in range(count):
        middle, level = x + i * WIDTH + WIDTH // 2, y + HEIGHT // 2
        if left or right:
            paths.append(f"M{middle - left * WIDTH // 2} {level}h{(left + right) * WIDTH // 2}")
        if up or down:
            paths.append(f"M{middle} {level - up * HEIGHT // 2}v{(up + down) * HEIGHT // 2}")
    return paths


def _block(cell):
    left, top, width, height = _BLOCKS[cell.text]
    x, y = cell.column * WIDTH, cell.row * HEIGHT
    return x + left * WIDTH / 8, y + top * HEIGHT / 8, width * WIDTH / 8, height * HEIGHT / 8


def _dots(cell):
    """Return squares in place of the dots of a Braille character, which many fonts lack."""
    side, bits = WIDTH / 4, ord(cell.text) - 0x2800
    return [
        (cell.column * WIDTH + (2 * x + 1) * side - side / 2, cell.row * HEIGHT + (2 * y + 1) * HEIGHT / 8 - side / 2,
         side, side)
        for bit, (x, y) in enumerate(_DOTS) if bits >> bit & 1
    ]  # fmt: skip


def _area(ink, areas):
    path = "".join(f"M{x:g} {y:g}h{width:g}v{height:g}h{-width:g}z" for x, y, width, height in areas)
    return f'<path fill="{ink}" shape-rendering="crispEdges" d="{path}"/>'


def _stroked(ink, heavy, paths):
    return f'<path stroke="{ink}"{" stroke-width=" + chr(34) + "3" + chr(34) if heavy else ""} d="{"".join(paths)}"/>'


def _words(words):
    """Yield the texts, grouped by their look."""
    groups = defaultdict(list)
    for first, text in words:
        start = 0 if first.look.underline else len(text) - len(text.lstrip())
        shown = text if first.look.underline else text.strip()
        x, y = (first.column + start) * WIDTH, first.row * HEIGHT + BASE
        length = cell_len(shown) * WIDTH
        escaped = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        groups[first.look.ink, *first.look[2:4]].append(
            f'<text x="{x}" y="{y:g}" textLength="{length}">{escaped}</text>'
        )
    for (ink, bold, underline), texts in groups.items():
        style = ' font-weight="bold"' * bold + ' text-decoration="underline"' * underline
        yield f'<g fill="{ink}"{style}>'
        yield from texts
        yield "</g>"
