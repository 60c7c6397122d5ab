"""A stage for tests of the explorer: it is opened at a command, driven as a person would, and read as text."""

import asyncio
import functools
from contextlib import asynccontextmanager

from floatlab.cli.verbs import read_question
from floatlab.tui.app import Explorer

SIZES = [(46, 20), (80, 24), (120, 34)]


def driven(test):
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


def seen(app):
    """Return what is on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


class Person:
    """Somebody at the keyboard."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    @property
    def screen(self):
        return seen(self.app)

    async def press(self, *keys):
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def type(self, text):
        await self.press(*(_KEYS.get(character, character) for character in text))

    async def fill(self, selector, text):
        """Put text into a box, in the place of what it holds."""
        box = self.app.screen.query_one(selector)
        box.focus()
        await self.pilot.pause()
        await self.press("end", *["backspace"] * len(box.value))
        await self.type(text)

    async def choose(self, selector, name):
        """Click a word of a line of choices."""
        choices = self.app.screen.query_one(selector)
        x, y, _ = choices.places(choices.content_size.width)[name]
        origin = choices.content_region.offset - choices.region.offset
        assert await self.pilot.click(choices, offset=(x + 1 + origin.x, y + origin.y))
        await self.pilot.pause()

    async def click_bit(self, row, bit):
        """Click a bit of a row."""
        y, x = row._places[-1 - bit]
        origin = row.content_region.offset - row.region.offset
        assert await self.pilot.click(row, offset=(x + origin.x, y + origin.y))
        await self.pilot.pause()


_KEYS = {
    ".": "full_stop", "-": "minus", "+": "plus", "@": "at", ":": "colon", "_": "underscore", "/": "slash",
    "(": "left_parenthesis", ")": "right_parenthesis", "^": "circumflex_accent", "*": "asterisk", " ": "space",
    "[": "left_square_bracket", "]": "right_square_bracket",
}  # fmt: skip


@asynccontextmanager
async def opened(command="", size=(80, 24), **settings):
    """Open the explorer at a command; nothing moves unless the settings say so."""
    start = read_question(command.split()) if command else None
    app = Explorer(read_question, start, settings={"slide": False, **settings}, keep=False)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        yield Person(app, pilot)
