"""Keys, clicks and pasted text that arrive at once have the same effect as those that arrive one by one."""

import pytest
from textual.events import Key, MouseDown, MouseUp, Paste
from textual.widgets import Input, OptionList

from floatlab.tui.app import input_queue
from floatlab.tui.app.input_queue import InputQueue
from tests.tui.stage import driven, opened, seen

VALUE = "show 0.1 --fp16 --bf16"
SUM = "add 1.125 0.12457275390625 --fp16"
# Commands and keys.
QUICK = [(VALUE, [*"/15", "enter", "down", "space"])]
SLOW = [
    (VALUE, [*"fe5m2", "enter", *"++"]),
    (SUM, [*"/3", "tab", *"4", "enter", *"nn"]),
    (VALUE, ["?", "escape", *"/7", "enter"]),
    (VALUE, ["f6", "f7", "f8", "f9"]),
    (VALUE, ["f4", "down", "down", "down", "enter", "backspace", "down", "enter"]),
    (VALUE, ["f1", "f6", "v"]),
    (VALUE, ["H", "down", "enter", *"/0.1+0.2", "enter", *"nnn"]),
    (VALUE, ["ctrl+p", *"double", "enter"]),
    (VALUE, ["ctrl+p", *"bfloat", "escape", *"v/2", "enter", *"++u"]),
    (VALUE, [*"/0.1x", "escape", *"u/2", "enter", "f3", *"omul", "enter", *"nn"]),
    ("dot --preset forum", ["down", "down", "down", "enter", "backspace", "down", "enter"]),
    ("dot --preset forum", [*"skahan", "enter", "v"]),
    ("fma 1.0009765625 1.0009765625 -1.001953125 --fp16", [*"/", "tab", "tab", *"5", "enter", *"]]["]),
    ("formats fp16 bf16", [*"ffp64", "enter", "down", "f5", "down"]),
    ("block 0.1 -2.5 3 7.3 0.02 --to nvfp4", [*"/1,2,3", "enter", "v", "down", "f2"]),
]


@pytest.mark.parametrize(("command", "keys"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)])
@driven
async def test_a_burst_of_keys_does_what_the_keys_do_one_by_one(command, keys):
    async with opened(command) as person:
        for key in keys:
            await person.burst(key)
        one_by_one, focus = person.screen, type(person.app.focused)
    async with opened(command) as person:
        before = person.screen
        await person.burst(*keys)
        assert person.screen == one_by_one != before
        assert type(person.app.focused) is focus


@driven
async def test_pasted_text_waits_for_the_keys_before_it():
    async with opened(VALUE) as person:
        person.app.post_message(Key("slash", "/"))
        person.app.post_message(Paste("2.5"))
        person.app.post_message(Key("0", "0"))
        await person.pilot.pause()
        assert person.app.screen.query_one("#value", Input).value == "2.50"


def click(app, x, y):
    """Send a click as a terminal does."""
    for kind in (MouseDown, MouseUp):
        app.post_message(kind(None, x, y, 0, 0, 1, False, False, False, x, y))


@driven
async def test_two_quick_clicks_on_tabs_are_two_clicks():
    async with opened(VALUE) as person:
        row = person.screen.splitlines()[0]
        click(person.app, row.index("Formats"), 0)
        click(person.app, row.index("Arith"), 0)
        await person.pilot.pause()
        assert set(person.app.opened) == {"inspect", "formats", "arithmetic"}
        assert person.app.current_mode == "arithmetic"
        assert "Nothing is computed yet" in seen(person.app)


@driven
async def test_keys_do_not_wait_if_the_screen_never_comes_to_rest(monkeypatch):
    monkeypatch.setattr(input_queue, "_LIMIT", 0.0)
    monkeypatch.setattr(InputQueue, "_is_busy", lambda self: True)
    async with opened(VALUE) as person:
        await person.burst("f1")
        assert person.app.screen.query(OptionList)
        await person.burst("escape")
        assert not person.app.screen.query(OptionList)


@driven
async def test_the_key_that_quits_everywhere_does_not_wait():
    async with opened(VALUE) as person:
        for key in ["slash", *"123456789", "escape", "f9", "f8", "ctrl+q"]:
            person.app.post_message(Key(key, key if len(key) == 1 else None))
        await person.pilot.pause()
        assert person.app._exit
    assert list(person.app.opened) == ["inspect"]
