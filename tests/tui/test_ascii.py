"""`tui --ascii` draws only ASCII characters, on all screens and in all windows."""

import asyncio
from pathlib import Path

import pytest

import floatlab
from floatlab.page.text_layout import ascii_only
from floatlab.tui.app.registry import SCREENS
from floatlab.tui.glyphs import for_ascii
from tests.tui.stage import driven, opened

# Keys for each screen: its views, lists and windows, each of which is closed again.
WINDOWS = ["?", "f1", "H", "c", "ctrl+p", "S", "f", "r", "s", "o"]


def beyond(person):
    """Return the characters of the screen that are not ASCII; no-break spaces are shown as spaces."""
    return {c for c in person.screen if not (" " <= c <= "~" or c == "\n")}


async def look(number, size, windows):
    async with opened("", size, is_ascii=True) as person:
        await person.press(f"f{number}")
        assert beyond(person) == set()
        for _ in range(len(person.app.shown.shown_views)):
            await person.press("v")
            assert beyond(person) == set(), person.screen
            await person.press("down")
            assert beyond(person) == set(), person.screen
        for key in windows:
            await person.press("escape", *([key] if len(key) > 1 else []))
            if len(key) == 1:
                await person.type(key)
            assert beyond(person) == set(), f"{key}:\n{person.screen}"
            await person.press("escape")


@pytest.mark.parametrize("number", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_screen_is_ascii(number):
    asyncio.run(look(number, (80, 24), ["?", "f"]))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(46, 20), (80, 24), (160, 50)])
@pytest.mark.parametrize("number", range(2, 2 + len(SCREENS)))
def test_all_windows_of_a_screen_are_ascii(number, size):
    asyncio.run(look(number, size, WINDOWS))


@driven
async def test_text_of_the_user_is_ascii_too():
    async with opened("show 0.1 --fp16", is_ascii=True) as person:
        await person.burst("/", *"1é字")
        assert "1???" in person.screen
        assert person.app.screen.query_one("#value").value.endswith("é字")  # only drawn so
        assert beyond(person) == set()


def test_columns_stay_where_they_are():
    text = "╭▾×→≤∞字é█▐ …⋯ℓ⌊"
    assert for_ascii(text).isascii()
    assert len(for_ascii(text)) == len(text) + 1  # 字 has two columns


def test_every_character_in_the_source_code_has_an_equivalent():
    folder = Path(floatlab.__file__).parent
    files = [file for part in ("page", "tui") for file in (folder / part).rglob("*.py") if file.name != "glyphs.py"]
    found = {c for file in files for c in file.read_text("utf-8") if not c.isascii()}
    assert len(found) > 50
    assert {c for c in found if ascii_only(c) == "?"} == set()
