"""A monkey test: random keys, clicks and sizes on all screens cause no exception and no hang."""

import asyncio
import random

import pytest
from textual.events import Paste
from textual.geometry import Offset
from textual.widgets import Input

from floatlab.tui.app.registry import SCREENS
from floatlab.verbs.registry import answer_question
from tests.tui.stage import opened, rest

KEYS = [
    *"abcdefghijklmnoprstuvwxyzUVYN0123456789",  # q would end the explorer
    *["space", "enter", "escape", "tab", "shift+tab", "left", "right", "up", "down", "home", "end", "pageup"],
    *["pagedown", "delete", "backspace", "plus", "minus", "slash", "less_than_sign", "greater_than_sign", "ctrl+p"],
    *["full_stop", "colon", "at", "question_mark", "left_square_bracket", "right_square_bracket", "ctrl+r", "ctrl+c"],
    *[f"f{number}" for number in range(2, 2 + len(SCREENS))],
]
SIZES = [(46, 20), (80, 24), (120, 34), (30, 10), (20, 8), (200, 60), (1, 1)]
STARTS = [
    "show 1.12156456132 --fp16 --e4m3",
    "show 0.3 -f takum_log8,posit16,nf4,e8m0",
    "add 0.1 0.2 --fp128",
    "fma 1.0009765625 1.0009765625 -1.001953125 --fp16",
    "formats takum_log8 e4m3",
    "block 0.1 -2.5 3 7.3 0.02 --to nvfp4",
    "dot --preset forum --fma",
    "compare 0.1,0.2,0.3 0.1,0.2,0.300001 --fp32",
    "train 1.125 --update 0.00041999 --steps 101",
]
PASTED = [
    "0.1", "nan(0x1)", "-inf", "bits:0x38@e4m3", "1e999999999", "1/3", "0x1p-1074", "0.1 + 0.2", "(((1 2) 3) 4)",
    "1,2,3", "takum_log16", "e5m2", "serial", "blocked(2, serial", "random:normal:1000", "two\nlines",
    "\x1b[31m\x00\x07\u202e", "[bold]x[/]", "9" * 5000, "\U0001f600", " ", "/nowhere/file.npy",
]  # fmt: skip
PATIENCE = 20.0  # seconds for one event; more than this is a hang, even on a slow machine


async def at_once(_app):
    """Let pending messages be handled, but do not wait for the last of them: monkeys are quick."""
    for _ in range(5):
        await asyncio.sleep(0)


async def paste(person, text):
    """Paste text as a terminal does."""
    person.app.post_message(Paste(text))
    await person.pilot.pause()


async def torment(seed, events):
    rng = random.Random(seed)
    done = []
    async with opened(rng.choice(STARTS), wait=at_once, drawn=True) as person:
        app, pilot = person.app, person.pilot
        app.copy = lambda text, words: None
        app.exit = lambda *_, **__: None  # the key bar offers it to the mouse
        for _ in range(events):
            kind = rng.choices(("key", "click", "size", "paste"), (78, 18, 2, 2))[0]
            if kind == "key":
                what = rng.choice(KEYS)
                act = pilot.press(what)
            elif kind == "click":
                size = app.screen.size
                what = Offset(rng.randrange(max(size.width, 1)), rng.randrange(max(size.height, 1)))
                act = pilot.click(offset=what)
            elif kind == "paste":
                what = rng.choice(PASTED)
                act = paste(person, what)
            else:
                what = rng.choice(SIZES)
                act = pilot.resize_terminal(*what)
            done.append((kind, what))
            try:
                await asyncio.wait_for(act, PATIENCE)
            except TimeoutError:
                pytest.fail(f"seed {seed}: it hangs after {done[-30:]}")
            except Exception as error:
                if app.failure is None and type(error).__name__ in ("OutOfBounds", "NoWidget"):
                    continue  # the window has changed meanwhile
                raise AssertionError(f"seed {seed}: {error!r} after {done[-30:]}") from error
            assert app.failure is None, f"seed {seed}: {app.failure!r} after {done[-30:]}"
            assert app.return_code is None, f"seed {seed}: it ended after {done[-30:]}"
        await rest(app)  # keys that are handled while the screens are being closed would find none
        assert app.failure is None, f"seed {seed}: {app.failure!r} after {done[-30:]}"
        for task in app.opened.values():
            if task.answers and not task.is_stopped and task.pending is None:  # else its files may not exist
                assert answer_question(task.question)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("seed", range(4))
def test_a_short_visit(seed):
    asyncio.run(torment(seed, 150))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 110))
def test_a_long_visit(seed):
    asyncio.run(torment(seed, 2000))


async def leave_after_bursts(seed, bursts):
    """Send bursts of random keys; then Escape leads back from any window and box, and q ends the explorer."""
    rng = random.Random(seed)
    async with opened(rng.choice(STARTS)) as person:
        app, done = person.app, []
        app.copy = lambda text, words: None
        for _ in range(bursts):
            keys = rng.choices([key for key in KEYS if key != "ctrl+c"], k=rng.randint(1, 8))
            done.append(keys)
            await asyncio.wait_for(person.burst(*keys), PATIENCE)
            if rng.random() < 0.2:
                done.append(["pasted", rng.choice(PASTED)])
                await asyncio.wait_for(paste(person, done[-1][1]), PATIENCE)
            if rng.random() < 0.1:
                await person.pilot.resize_terminal(*rng.choice(SIZES))
            assert app.failure is None, f"seed {seed}: {app.failure!r} after {done[-6:]}"
        for _ in range(8):  # each Escape closes a window, stops an answer, or leaves a box
            await person.press("escape")
        assert len(app.screen_stack) == 1, f"seed {seed}: a window stays after {done[-6:]}"
        assert not isinstance(app.focused, Input), f"seed {seed}: the focus stays in a box after {done[-6:]}"
        await person.burst("q")
        assert app._exit, f"seed {seed}: q does not end it after {done[-6:]}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 212))
def test_escape_leads_back_and_q_quits(seed):
    asyncio.run(leave_after_bursts(seed, 25))
