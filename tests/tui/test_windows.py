"""Windows that close: choices that come late, and results that come while another window is in front."""

import asyncio

import pytest
from textual.widgets import Input, OptionList

from floatlab.tui.app.palette import Commands
from floatlab.tui.widgets import Choice, HelpWindow, MarkingPicker, Picker
from tests.tui.stage import driven, opened

CHOICES = [Choice(name, name) for name in ("one", "two")]


async def shown(person, window):
    taken = []
    person.app.push_screen(window, taken.append)
    await person.pilot.pause()
    return taken


@driven
async def test_a_choice_that_comes_after_its_window_was_closed_is_not_taken():
    async with opened("show 0.1 --fp16") as person:
        picker = Picker("Names", CHOICES)
        taken = await shown(person, picker)
        picker.query_one(OptionList).action_select()  # a message is on its way
        picker.dismiss(None)
        picker.query_one(Input).post_message(Input.Submitted(picker.query_one(Input), ""))
        await person.pilot.pause()
        assert taken == [None]
        assert person.app.screen is person.app.shown
        picker.dismiss("one")
        await person.pilot.pause()
        assert taken == [None]
        assert person.app.screen is person.app.shown


@driven
async def test_two_choices_at_once_are_one():
    async with opened("show 0.1 --fp16") as person:
        picker = Picker("Names", CHOICES)
        taken = await shown(person, picker)
        picker.take("one")
        picker.take("two")
        await person.pilot.pause()
        assert taken == ["one"]
        assert person.app.screen is person.app.shown


@pytest.mark.parametrize("front", [Commands, lambda: MarkingPicker("More", CHOICES, ("one",))])
@driven
async def test_a_result_waits_until_its_window_is_in_front(front):
    async with opened("show 0.1 --fp16") as person:
        picker = Picker("Names", CHOICES)
        taken, window = await shown(person, picker), front()
        await shown(person, window)
        picker.dismiss("one")
        picker.dismiss("two")
        await person.pilot.pause()
        assert person.app.screen is window
        assert taken == []
        await person.press("escape")
        assert taken == ["one"]
        assert person.app.screen is person.app.shown


@driven
async def test_a_result_waits_for_the_screen_of_its_window():
    async with opened("show 0.1 --fp16") as person:
        picker = Picker("Names", CHOICES)
        taken = await shown(person, picker)
        person.app.go("formats")
        await person.pilot.pause()
        picker.dismiss("one")
        await person.pilot.pause()
        assert (taken, person.app.current_mode) == ([], "formats")
        person.app.go("inspect")
        await person.pilot.pause()
        assert taken == ["one"]
        assert person.app.screen is person.app.shown


@driven
async def test_a_window_that_is_closed_twice_closes_no_other():
    async with opened("show 0.1 --fp16") as person:
        await person.press("question_mark")
        keys = person.app.screen
        assert isinstance(keys, HelpWindow)
        await person.press("ctrl+p")
        palette = person.app.screen
        assert isinstance(palette, Commands)
        palette.dismiss()
        palette.dismiss()
        await person.pilot.pause()
        assert person.app.screen is keys


@pytest.mark.parametrize("turns", [0, 3, 12])
@pytest.mark.parametrize("act", ["go", "dismiss"])
@driven
async def test_the_palette_closes_if_its_screen_is_left_before_it_is_drawn(act, turns):
    async with opened("show 0.1 --fp16", drawn=True) as person:
        app = person.app
        app.action_command_palette()
        for _ in range(turns):
            await asyncio.sleep(0)
        if act == "go":
            app.go("formats")
        else:
            app.screen.dismiss()
        await person.pilot.pause()
        assert app.screen is app.shown
        app.go("inspect")
        await person.pilot.pause()
        assert app.screen is app.shown or isinstance(app.screen, Commands)  # that was drawn in time
        await person.press("escape")
        assert app.screen is app.shown
        await person.press("ctrl+p")
        assert isinstance(app.screen, Commands)


@pytest.mark.parametrize("act", ["go", "dismiss"])
@driven
async def test_the_palette_opens_while_another_one_is_behind_or_being_removed(act):
    async with opened("show 0.1 --fp16", drawn=True) as person:
        app = person.app
        app.action_command_palette()
        await person.pilot.pause()
        first = app.screen
        if act == "go":
            app.go("formats")
            await person.pilot.pause()
            assert app.screen is not first
        else:
            first.dismiss()
        app.action_command_palette()
        await person.pilot.pause()
        assert isinstance(app.screen, Commands)
        assert app.screen is not first
