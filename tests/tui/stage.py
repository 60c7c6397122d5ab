"""A stage for tests of the explorer: it is opened at a command, driven as a person would, and read as text."""

import asyncio
import functools
import shlex
from contextlib import asynccontextmanager, contextmanager
from time import monotonic
from unittest.mock import patch

import pytest
from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.css.stylesheet import Stylesheet
from textual.events import Key

from floatlab.cli.parser import read_question
from floatlab.page.text_layout import to_text
from floatlab.tui.app.app import Explorer
from floatlab.tui.screens.question_screen import QuestionScreen
from floatlab.verbs.registry import answer_question

SIZES = [(46, 20), (80, 24), (120, 34)]
# For tests that do not depend on the size: other sizes are slow tests.
ANY_SIZE = [pytest.param(size, marks=[pytest.mark.slow] if size != SIZES[1] else []) for size in SIZES]


def driven(test):
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return run


def strips(app):
    """Return the lines of the screen as a terminal shows them: around a window, the screen behind it."""
    behind = app._background_screens
    for window in (*behind, app.screen)[1:]:
        window._set_dirty()  # else it is drawn as it was first, maybe before the screen behind it had been drawn
    token = visible_screen_stack.set(behind)
    try:
        return app.screen._compositor.render_strips()
    finally:
        visible_screen_stack.reset(token)


def seen(app):
    """Return the text of the screen."""
    # A no-break space looks like a space.
    return "\n".join(strip.text.replace("\u00a0", " ").rstrip() for strip in strips(app))


class Person:
    """A simulated user: sends keys and clicks."""

    def __init__(self, app, pilot):
        self.app, self.pilot = app, pilot

    @property
    def screen(self):
        return seen(self.app)

    async def rested(self):
        """Wait until no training runs any more."""
        end = monotonic() + 60  # long, since the machine may be busy
        while getattr(self.app.shown, "running", None) is not None and monotonic() < end:
            await asyncio.sleep(0.005)
        await self.pilot.pause()
        assert getattr(self.app.shown, "running", None) is None, "the training does not end"
        assert self.app.is_running, "the explorer has ended, so the next keys would be lost"

    async def press(self, *keys):
        for key in keys:
            await self.pilot.press(key)

    async def type(self, text):
        await self.press(*(_KEYS.get(character, character) for character in text))

    async def burst(self, *keys):
        """Send keys at once, as a terminal on a slow connection does; a text of several characters may be a name."""
        for key in keys:
            name = _KEYS.get(key, key)
            self.app.post_message(Key(name, key if len(key) == 1 else None))
        await self.pilot.pause()

    async def fill(self, selector, text):
        """Replace the text of a box."""
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

    async def click_bit(self, row, bit):
        """Click a bit of a row."""
        y, x, _ = row.places[bit]
        origin = row.content_region.offset - row.region.offset
        assert await self.pilot.click(row, offset=(x + origin.x, y + origin.y))


_KEYS = {
    ".": "full_stop", "-": "minus", "+": "plus", "@": "at", ":": "colon", "_": "underscore", "/": "slash",
    "(": "left_parenthesis", ")": "right_parenthesis", "^": "circumflex_accent", "*": "asterisk", " ": "space",
    "[": "left_square_bracket", "]": "right_square_bracket",
}  # fmt: skip


def _busy(app):
    """Return whether a message is waiting or being handled, or a worker without a thread is running."""
    if app.input_queue.is_waiting:
        return True
    for pump in (app, *app._registry):  # called after every step of the loop, so the likeliest reasons come first
        if not pump._running or pump._closed:
            continue
        queue = pump._message_queue
        if queue.values or pump._next_callbacks:
            return True
        waiters = queue.ready_event._waiters
        if not waiters or (waiters[0].done() and all(each.done() for each in waiters)):
            return True
    if app.animator._animations or app.animator._scheduled:  # scrolling waits for the clock
        return True
    return any(not worker.is_finished and not worker._thread_worker for worker in app.workers)


def _stale(screen):
    """Return whether the screen will lay out, draw or call something at its next tick."""
    return screen._layout_required or screen._scroll_required or screen._dirty_widgets or screen._callbacks


async def rest(app, most=30.0):
    """Wait until no work is pending; Textual itself waits until the processor is idle, which takes far longer."""
    end, quiet = monotonic() + most, 0
    while quiet < 3 and monotonic() < end and app._exception is None:
        await asyncio.sleep(0)
        quiet = 0 if _busy(app) else quiet + 1
        if quiet == 3 and app._resize_event is not None:  # else it waits for the clock
            app._check_resize()
            quiet = 0
        elif quiet == 3 and _stale(app.screen):
            app.screen._on_timer_update()
            quiet = 0


@contextmanager
def prompt(app, wait=rest):
    """Make the pilot continue as soon as no work is pending."""

    async def wait_for_idle(min_sleep=0.0, max_sleep=1.0):
        await wait(app)

    with patch("textual.app.wait_for_idle", wait_for_idle), patch("textual.pilot.wait_for_idle", wait_for_idle):
        yield


_rules = {}  # of style sheets, by their text and the colours of the theme
_parse_rules = Stylesheet._parse_rules


def _remembered_rules(sheet, *source, **named):
    """Parse a style sheet once, not in every explorer that is opened and at every change of the theme."""
    key = (*sheet._variables.items(), *source, *named.items())
    if key not in _rules:
        _rules[key] = _parse_rules(sheet, *source, **named)
    return _rules[key]


def _nothing_drawn(compositor, full=False, screen_stack=None, simplify=False):
    """Take note of an update of the screen without drawing it: no terminal shows it, and `seen` draws what it reads."""
    visible_screen_stack.set(screen_stack or [])
    compositor._dirty_regions.clear()


@asynccontextmanager
async def opened(command="", size=(80, 24), wait=rest, grace=60.0, drawn=False, is_ascii=False, **settings):
    """Open the explorer at a command; animations are off unless the settings enable them.

    `wait` waits between the actions of a person; `grace` is how long screens wait for answers, so that none is late.
    The screen is drawn where a test reads it and at the end, or after each change if `drawn`.
    """
    start = read_question(shlex.split(command)) if command else None
    app = Explorer(read_question, start, settings={"slide": False, **settings}, keep=False, is_ascii=is_ascii)
    with (
        prompt(app, wait),
        patch.multiple(QuestionScreen, GRACE=grace, QUIET=0.0),
        patch.object(Stylesheet, "_parse_rules", _remembered_rules),
        patch.object(Compositor, "render_update", Compositor.render_update if drawn else _nothing_drawn),
    ):
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            yield Person(app, pilot)
            if app.is_running:
                seen(app)


def complaint(person):
    """Return the error or the hint that the screen shows."""
    widget = person.app.screen.query_one("#complaint")
    return str(widget.content) if widget.has_class("-shown") else ""


def text(person, name="details"):
    """Return the text of a page."""
    return person.app.screen.query_one(f"#{name}").text


def printed(command, width):
    """Return the lines of the page that the command line prints."""
    page = answer_question(read_question(shlex.split(command)))[0].page()
    return [each.rstrip() for each in to_text(page, width).splitlines()]


async def retype(person, selector, text):
    """Put text into a box at once, as pasting does."""
    box = person.app.screen.query_one(selector)
    box.focus()
    await person.pilot.pause()
    box.value = text
    await person.pilot.pause()
