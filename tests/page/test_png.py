"""Pictures of pages: each character is in its cell, in the colour of its role."""

from io import BytesIO

import numpy as np
import pytest

from floatlab.page.model import Note, Page, Role, Span, line
from floatlab.page.png import CELL, MARGIN, ON_WHITE, PageColours, to_png
from floatlab.page.svg import SVG
from floatlab.page.text_layout import INDENT

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def pixels_of(page, **settings):
    from matplotlib.image import imread

    return np.rint(255 * imread(BytesIO(to_png(page, **settings)), format="png")[..., :3]).astype(int)


def cell(pixels, row, column):
    top, left = MARGIN + row * CELL[1], MARGIN + (INDENT + column) * CELL[0]  # notes are indented
    return pixels[top : top + CELL[1], left : left + CELL[0]]


def rgb(colour):
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def inks(part):
    return {tuple(pixel) for pixel in part.reshape(-1, 3).tolist()}


def test_each_character_is_in_its_cell():
    # Full blocks cover their cells; in a row of 90 columns, an error of the advance would add up.
    text = "█ " * 45
    pixels = pixels_of(Page((Note(text.rstrip()), Note("$x^2$"))), width=100)
    assert pixels.shape == (2 * CELL[1] + 2 * MARGIN, (INDENT + 89) * CELL[0] + 2 * MARGIN, 3)
    for column in range(89):
        middle = cell(pixels, 0, column)[10:26, 3:-3]
        assert (middle == rgb(ON_WHITE.ground if column % 2 else ON_WHITE.text)).all(), column
    drawn = [column for column in range(8) if len(inks(cell(pixels, 1, column)[:, 1:-1])) > 1]
    assert drawn == [*range(5)]  # not a formula
    # matplotlib has no other text: the margins are empty.
    assert (pixels[: MARGIN - 4] == 255).all()
    assert (pixels[:, : MARGIN - 4] == 255).all()


def test_roles_have_their_colours():
    page = Page((Note(line(Span("█", Role.SIGN), Span("█", Role.EXPONENT), "█")),))
    pixels = pixels_of(page)
    for column, colour in enumerate((SVG[Role.SIGN], SVG[Role.EXPONENT], ON_WHITE.text)):
        assert cell(pixels, 0, column)[18, 8].tolist() == rgb(colour)
    colours = PageColours({Role.SIGN: "#010203"}, "#fafbfc", "#101112")
    pixels = pixels_of(page, colours=colours)
    assert cell(pixels, 0, 0)[18, 8].tolist() == [1, 2, 3]
    assert cell(pixels, 0, 1)[18, 8].tolist() == rgb(colours.text)
    assert pixels[0, 0].tolist() == rgb(colours.ground)
