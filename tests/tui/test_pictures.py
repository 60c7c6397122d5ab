"""The pictures of all screens, at three sizes and in three themes, and the page of the documents that shows them.

`python -m tests.tui.test_pictures` makes them anew; look at them before committing them.
"""

import asyncio
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from floatlab.tui.themes import CYCLE, SIXTEEN
from tests.tui.pictures import picture
from tests.tui.stage import opened
from tests.tui.test_golden import SCENES

DOCS = Path(__file__).parents[2] / "docs"
FOLDER, PAGE = DOCS / "images" / "explorer", DOCS / "explorer-pictures.md"
SIZES = ((80, 24), (120, 40), (160, 50))
THEMES = {"dark": CYCLE[0], "light": CYCLE[1], "16-colours": SIXTEEN}
# The title of each picture, and its scene.
SHOWN = {
    "First steps": "first-steps",
    "Inspect": "inspect-flipped",
    "Arithmetic": "arithmetic-align",
    "Arithmetic: fused and separate": "arithmetic-fma",
    "Formats": "formats-compare",
    "Block": "block-elements",
    "Reduce": "reduce",
    "Reduce: the orders of a product": "reduce-map",
    "Compare": "compare",
    "Compare: the cause": "compare-cause",
    "Train": "train",
    "Audit": "audit-tensors",
}
CASES = [(scene, size) for scene in SHOWN.values() for size in SIZES]


def path_of(scene, size, theme):
    return FOLDER / f"{scene}-{size[0]}x{size[1]}-{theme}.svg"


async def pictures(scene, size):
    """Return the pictures of a scene in all themes."""
    found = {}
    # Textual does not draw the screen behind a window again if the theme changes, which no user can do there.
    openings = [[name] for name in THEMES] if scene == "first-steps" else [list(THEMES)]
    for names in openings:
        async with shown(scene, size, THEMES[names[0]]) as person:
            for name in names:
                person.app.theme = THEMES[name]
                await person.pilot.pause()
                found[name] = picture(person.app)
    return found


@asynccontextmanager
async def shown(scene, size, theme):
    """Open a scene, and press its keys."""
    command, keys = SCENES[scene]
    async with opened(command, size, theme=theme) as person:
        await person.rested()
        for key in () if scene == "train" else keys:  # a cursor would be where the time of the run puts it
            await person.press(key)
            await person.rested()
        yield person


def page():
    """Return the page with all pictures."""
    parts = [
        "# Pictures of the explorer\n\n"
        "This page shows every screen in three sizes of terminals and in three themes. "
        "Open a picture to see it at full size. The tests\n"
        "make these pictures from the screens: `python -m tests.tui.test_pictures`.\n"
    ]
    for title, scene in SHOWN.items():
        parts.append(f"\n## {title}\n\n```sh\nfloatlab tui {SCENES[scene][0]}\n```\n\n")
        parts.append(f"| | {' | '.join(name.replace('-', ' ') for name in THEMES)} |\n|---|{'---|' * len(THEMES)}\n")
        for size in SIZES:
            drawn = {theme: path_of(scene, size, theme).relative_to(DOCS) for theme in THEMES}
            called = f"{size[0]} × {size[1]}"
            cells = " | ".join(
                f"[![{title}, {called}, {theme.replace('-', ' ')}]({path})]({path})" for theme, path in drawn.items()
            )
            parts.append(f"| {called} | {cells} |\n")
    return "".join(parts)


@pytest.mark.slow
@pytest.mark.parametrize(("scene", "size"), CASES, ids=lambda each: each if isinstance(each, str) else f"{each[0]}")
def test_the_pictures_are_those_of_the_screens(scene, size):
    for theme, made in asyncio.run(pictures(scene, size)).items():
        recorded = path_of(scene, size, theme).read_text(encoding="utf-8")
        assert re.findall(r">([^<\n]+)<", recorded) == re.findall(r">([^<\n]+)<", made), theme
        assert recorded == made, theme


def test_the_page_shows_all_pictures_and_no_others():
    assert PAGE.read_text(encoding="utf-8") == page()
    named = {path_of(scene, size, theme).name for scene, size in CASES for theme in THEMES}
    assert {path.name for path in FOLDER.glob("*")} == named


def write(scenes):
    FOLDER.mkdir(exist_ok=True)
    for scene, size in CASES:
        if scene in scenes or not scenes:
            for theme, made in asyncio.run(pictures(scene, size)).items():
                path_of(scene, size, theme).write_text(made, encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1:])
