"""The contrast of all texts with their backgrounds, over the recorded scenes and in each of the themes."""

import pytest
from textual.color import Color
from textual.screen import ModalScreen

from floatlab.tui.themes import CYCLE, SIXTEEN
from tests.tui.pictures import cells_of, is_braille
from tests.tui.stage import driven, opened, strips
from tests.tui.test_golden import SCENES

# WCAG 2.2, 1.4.3, for text; 3 for texts under the cursor, hints in empty boxes, and the dimmed answer of other text.
TEXT, LEAST = 4.5, 3.0
ROWS = {"row", "row-left"}  # the variables with the backgrounds of cursor rows
MARKS = "─│╭╮╰╯┌┐└┘├┤┬┴┼━┊█▐▌▀▔▁▂▃▄▅▆▇▏▎▍▋▊▉░▒▓·"  # frames, bars and shades, which are not text


def luminance(colour):
    parts = (part / 255 for part in Color.parse(colour).rgb)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(*colours):
    """Return the ratio of WCAG between two colours."""
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


def shown(app):
    """Yield the characters of text; behind a window, the screen is inactive."""
    screen = app.screen
    regions = [widget.region for widget in screen.children] if isinstance(screen, ModalScreen) else [screen.region]
    for y, strip in enumerate(strips(app)):
        for cell in cells_of(app, y, strip):
            is_text = cell.text.strip() and cell.text not in MARKS and not is_braille(cell.text)
            if is_text and any(region.contains(cell.column, y) for region in regions):
                yield cell


def test_black_on_white_has_the_largest_contrast():
    assert contrast("#000000", "#ffffff") == 21
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("scene", SCENES)
@driven
async def test_all_texts_are_readable(scene):
    command, keys = SCENES[scene]
    async with opened(command, (80, 24), theme=CYCLE[0]) as person:
        await person.rested()
        for key in keys:
            await person.press(key)
            await person.rested()
        app = person.app
        dims = app.screen.has_class("-unread") or app.screen.has_class("-stopped")
        for theme in CYCLE[: CYCLE.index(SIXTEEN) + 1]:
            app.theme = theme
            await person.pilot.pause()
            rows = {Color.parse(app.theme_variables[name]).hex6.lower() for name in ROWS & set(app.theme_variables)}
            for cell in shown(app):
                if cell.look.dim and theme == SIXTEEN:  # the terminal decides how dim it is
                    continue
                least = LEAST if dims or cell.look.ground in rows else TEXT
                assert contrast(cell.look.ink, cell.look.ground) >= least, (theme, cell)
