"""The first start, the list of keys, and the controls that a newcomer meets."""

import pytest

from floatlab.cli.parser import read_question
from floatlab.tui.app.app import Explorer
from floatlab.tui.app.help_windows import EXAMPLES, KeysWindow, Welcome
from floatlab.tui.app.registry import SCREENS
from floatlab.tui.widgets.page_view import PageView
from floatlab.verbs.registry import answer_question, command_of
from tests.tui.stage import ANY_SIZE, SIZES, driven, opened, seen


@driven
async def test_the_first_steps_are_shown_at_the_first_start_only(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for start, is_shown in ((["show", "1"], False), (None, True), (None, False)):
        if is_shown:
            (tmp_path / "floatlab" / "explorer.json").unlink()
        app = Explorer(read_question, read_question(start) if start else None)
        async with app.run_test() as pilot:
            await pilot.pause()
            await pilot.pause()
            assert isinstance(app.screen, Welcome) == is_shown


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_first_steps_name_every_screen_with_its_key(size):
    async with opened("", size) as person:
        await person.press("f1")
        if size != SIZES[0]:
            for number, row in enumerate(SCREENS.values(), 2):
                assert f"F{number} {row.name.capitalize()}" in person.screen
                assert row.purpose in person.screen
        assert EXAMPLES[0].title in person.screen
        await person.press("f6")
        assert person.app.current_mode == "reduce"
        await person.press("f1", "up", "enter")  # the last row
        assert person.app.current_mode == list(SCREENS)[-1]


@pytest.mark.parametrize("place", range(len(EXAMPLES)))
@driven
async def test_every_example_opens_with_an_answer(place):
    async with opened("") as person:
        await person.press("f1", *["down"] * place, "enter")
        await person.rested()
        example = EXAMPLES[place]
        shown = person.app.shown
        assert shown.question.values == read_question(list(example.words)).values
        assert shown.view == (example.view or shown.view)
        assert shown.answers
        await person.press("backspace")
        assert person.app.current_mode == next(iter(SCREENS))


def test_the_examples_show_what_their_titles_say():
    answers = [answer_question(read_question(list(example.words)))[0] for example in EXAMPLES]
    texts = [answer.page().text(120) for answer in answers]
    assert "0.30000000000000004" in texts[0]
    assert "= 896" in texts[1]
    assert "different bits" in texts[2]
    assert answers[3].words()[0] == "1.125"  # the weight after the update


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_list_of_keys_has_the_whole_height_and_a_filter(size):
    async with opened("show 1 --fp16", size) as person:
        await person.press("question_mark")
        window = person.app.screen
        assert isinstance(window, KeysWindow)
        assert window.query_one("Vertical").region.height == size[1]
        page = window.query_one(PageView)
        everything = page.text
        await person.press("slash")
        await person.type("next number")
        assert page.text.split() == [
            "In",
            "Inspect",
            "-",
            "the",
            "next",
            "number",
            "below",
            "+",
            "the",
            "next",
            "number",
            "above",
        ]
        await person.type(" zzz")
        assert "no key does this" in page.text
        await person.press(*["backspace"] * 20)
        assert page.text == everything
        await person.press("escape")
        assert person.app.screen is person.app.shown


@pytest.mark.parametrize("size", [(46, 20), (80, 24), (160, 50)])
@driven
async def test_the_tabs_have_their_keys(size):
    async with opened("show 1", size) as person:
        head = " ".join(person.screen.split()[:20]).replace(" ", "")
        for number, row in enumerate(SCREENS.values(), 2):
            assert f"F{number}{row.name.capitalize()[:5]}" in head  # a narrow terminal shortens Arithmetic
        assert "RNE" not in person.screen.splitlines()[0]  # a control, not a tab
        await person.choose("#controls", "rules")
        await person.type("toward zero")
        await person.press("enter")
        assert command_of(person.app.shown.question) == "floatlab show 1 -r RTZ"


@driven
async def test_arithmetic_opens_at_its_first_step_and_stays_at_the_step_of_an_edit():
    async with opened("add 1.125 0.12457275390625 --fp16") as person:
        task = person.app.shown
        assert task.scene == 0
        await person.press("end", "s")
        assert task.scenes[task.scene].name == "result"
        await person.press("n", "n", "s")
        assert task.scene == 1
        task.take_verb("mul")
        await person.pilot.pause()
        assert task.scene == 0


@driven
async def test_the_screens_use_plain_words():
    async with opened("fma 1 2 3 --fp16") as person:
        await person.press("question_mark")
        text = person.app.screen.query_one(PageView).text
        assert "Find an example where fused and separate differ" in text
        await person.press("escape", "f6", "question_mark")
        text += person.app.screen.query_one(PageView).text
        assert "largest errors" in text
        assert "itness" not in text
        assert "orst" not in text
        assert "orst" not in seen(person.app)
