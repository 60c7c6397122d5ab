"""The way back through screens, the history of questions, and texts that were refused."""

import json

import pytest

from floatlab.cli.parser import read_question
from floatlab.tui.app.app import Explorer
from floatlab.tui.app.settings import session_file
from floatlab.tui.widgets.pickers import Picker
from floatlab.verbs.registry import command_of
from tests.tui.stage import ANY_SIZE, Person, complaint, driven, opened, retype, seen

FORUM = "dot --preset forum --fma"
AUDIT = "audit random:normal:64x256:seed=1@bf16 --to mxfp4"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_backspace_leads_back_through_any_depth(size):
    async with opened(FORUM, size) as person:
        app = person.app
        reduce = app.shown
        await person.press("down", "down", "down", "enter")
        assert app.current_mode == "arithmetic"
        await person.press("n", "n", "f4", "down", "enter")
        assert app.current_mode == "inspect"
        assert app.shown.formats[0].name == "binary32"
        await person.press("down", "f3", "f2", "backspace")
        assert app.current_mode == "arithmetic"
        await person.press("backspace", "backspace")
        assert app.current_mode == "formats"
        assert app.shown.current.name == "binary32"
        await person.press("backspace")
        assert (app.current_mode, app.shown.scene) == ("arithmetic", 2)
        await person.press("backspace")
        assert app.shown is reduce
        assert reduce.tree_table.cursor == 3
        assert app.focused is reduce.tree_table
        before = seen(app)
        await person.press("backspace", "backspace")  # there is no further way back
        assert seen(app) == before


@driven
async def test_the_way_back_restores_the_question_and_the_rows():
    async with opened("sum random:normal:64:seed=1 --schedule pairwise") as person:
        reduce = person.app.shown
        await person.press("n", "n")
        row, question = reduce.tree_table.current_row, reduce.question
        await person.press("enter")
        assert person.app.current_mode == "arithmetic"
        person.app.go("reduce")
        reduce.take_schedule("serial")
        await person.press("f3", "backspace", "backspace")  # to Reduce with another order, then to Arithmetic
        assert person.app.current_mode == "arithmetic"
        await person.press("backspace")
        assert reduce.question == question
        assert reduce.tree_table.current_row.key == row.key


@driven
async def test_the_way_back_leads_from_a_view_and_from_the_blocks_of_a_tensor():
    async with opened("train 1.125 --update 0.0004 --steps 3") as person:
        train = person.app.shown
        await person.rested()
        await person.press("enter")
        assert train.shown_view == "step"
        await person.press("enter")
        assert person.app.current_mode == "arithmetic"
        await person.press("backspace")
        assert train.shown_view == "step"
        await person.press("backspace")
        assert train.shown_view == "chart"
        assert person.app.focused is train.table


@driven
async def test_the_way_back_from_a_number_of_another_format():
    async with opened("show 1 --fp16") as person:
        person.app.go("compare", read_question(["compare", "1,2", "1,2.5", "--fp32"]))
        await person.press("v", "v", "enter")
        assert list(person.app.shown.data) == ["binary32"]
        assert person.app.focused is person.app.shown.rows["binary32"]
        await person.press("backspace")
        assert (person.app.current_mode, person.app.shown.view) == ("compare", "worst")


@driven
async def test_backspace_in_a_box_deletes():
    async with opened(FORUM) as person:
        await person.press("down", "down", "down", "enter", "slash", "end", "backspace")
        assert person.app.current_mode == "arithmetic"
        await person.press("escape", "backspace")
        assert person.app.current_mode == "reduce"


@driven
async def test_the_key_bar_shows_the_way_back_after_enter():
    async with opened(FORUM) as person:
        bar = "bksp Back"
        await person.press("f3", "f6")
        assert bar not in person.screen
        await person.press("down", "down", "down", "enter")
        assert bar in person.screen
        await person.press("backspace", "backspace", "backspace")
        assert bar not in person.screen


async def asked(person):
    """Return the rows of the history."""
    await person.press("H")
    assert isinstance(person.app.screen, Picker)
    return [" ".join(str(option.prompt).split()) for option in person.app.screen.rows.options]


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_history_lists_the_questions_of_all_screens(size):
    async with opened("show 1 --fp16", size) as person:
        await person.fill("#value", "0.25")
        await person.press("escape", "plus", "plus", "plus", "f3")
        await person.press("s", "f2", "u", "u", "u")
        rows = await asked(person)
        assert rows[0] == "arithmetic add -1.125 0.12457275390625 --fp16"
        # Typing, and a series of edits, are one question each.
        assert rows[2] == "inspect show 0.250732421875 --fp16"
        assert sorted(rows[3:]) == ["inspect show 1 --fp16", "• inspect show 0.25 --fp16"]
        await person.type("-1.125")
        await person.press("enter")
        assert person.app.current_mode == "arithmetic"
        assert command_of(person.app.shown.question) == "floatlab add -1.125 0.12457275390625 --fp16"
        await person.press("backspace")
        assert person.app.current_mode == "inspect"


@driven
async def test_the_history_is_saved_with_the_session(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for words in (["show", "0.3", "--fp16"], ["sqrt", "2", "--fp16"]):
        app = Explorer(read_question, read_question(words))
        async with app.run_test() as pilot:
            await pilot.pause()
    assert json.loads(session_file().read_text())["history"] == [["show", "0.3", "--fp16"], ["sqrt", "2", "--fp16"]]
    session = json.loads(session_file().read_text())
    session["history"] += [["sqrt", "--fly"], "show", [1], ["dequantize", "a", "b"], ["show", "x" * 5000]]
    session_file().write_text(json.dumps(session))
    app = Explorer(read_question)
    async with app.run_test() as pilot:
        person = Person(app, pilot)
        await pilot.pause()
        rows = await asked(person)
        assert [row for row in rows if "xxx" not in row] == ["• arithmetic sqrt 2 --fp16", "inspect show 0.3 --fp16"]
        await person.type("0.3")
        await person.press("enter")
        assert person.app.shown.question.values == ("0.3",)
    kept = json.loads(session_file().read_text())["history"]
    assert kept[-1] == ["show", "0.3", "--fp16"]
    assert ["show", "x" * 5000] not in kept


@driven
async def test_a_name_that_was_refused_is_still_there():
    async with opened("sum 1,2,3") as person:
        await person.press("s")
        await person.type("blocked(64")
        await person.press("enter")
        assert complaint(person).startswith("! ")
        await person.press("s")
        assert person.app.screen.box.value == "blocked(64"
        await person.type(")")
        await person.press("enter")
        assert person.app.shown.question.option("schedule") == "blocked(64)"
        await person.press("s")
        assert person.app.screen.box.value == ""  # it was taken


@driven
async def test_the_page_does_not_move_while_one_types_and_is_dimmed():
    def rows(person):
        return {row: y for y, row in enumerate(person.screen.splitlines()) if row and "▼" not in row}

    async with opened("show 0.1 --fp16 --e4m3") as person:
        await person.press("slash")
        before = rows(person)
        details = person.app.shown.details
        style = details.render_line(0)._segments[0].style
        assert style is None or not style.dim
        await person.type("0.1x")
        assert complaint(person).startswith("! ")
        after = rows(person)
        message = person.app.shown.query_one("#complaint").region
        assert 0 < message.height < 4
        changed = {person.app.shown.focused.region.y, *range(message.y, message.bottom)}
        assert {y for row, y in before.items() if row not in after} == changed
        assert all(before[row] == y for row, y in after.items() if row in before)
        assert details.render_line(0)._segments[0].style.dim
        await person.press("escape", "u")
        style = details.render_line(0)._segments[0].style
        assert style is None or not style.dim


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_format_that_cannot_hold_a_value_says_so_in_its_row(size):
    async with opened("show nan --fp16 --e4m3 --fp32", size) as person:
        task = person.app.shown
        await retype(person, "#value", "nan(0x1)")
        assert complaint(person) == ""
        assert "plain nan works" in " ".join(person.screen.split())
        assert {name: datum.code for name, datum in task.data.items()} == {"binary16": 0x7E01, "binary32": 0x7FC00001}
        assert [format.name for format in task.formats] == ["binary16", "e4m3fn", "binary32"]
        await retype(person, "#value", "1.5")
        assert list(task.data) == ["binary16", "e4m3fn", "binary32"]
        await retype(person, "#value", "x")
        assert complaint(person).startswith("! ")


@driven
async def test_an_operation_in_the_box_for_a_value_leads_to_arithmetic():
    async with opened("show 1 --fp16") as person:
        for text, command in (
            ("0.1+0.2", "add 0.1 0.2 --fp64"), ("1e-5 - 2", "sub 1e-5 2 --fp64"), ("sqrt 2", "sqrt 2 --fp64"),
            ("fma(1.5, 2, -3)", "fma 1.5 2 -3 --fp64"), ("1.5@fp16*2", "mul 1.5@fp16 2"),
        ):  # fmt: skip
            await retype(person, "#value", text)
            assert command in complaint(person)
            await person.press("enter")
            assert command_of(person.app.shown.question) == f"floatlab {command}"
            await person.press("backspace")
            assert person.app.shown.query_one("#value").value == text  # nothing is lost
            assert complaint(person).startswith("/ and Enter show this operation")


@driven
async def test_a_code_is_read_in_a_row_of_its_length():
    async with opened("show 1 --fp16 --e4m3") as person:
        await retype(person, "#value", "bits:0x38")
        assert person.app.shown.subject().format.name == "e4m3fn"
        await retype(person, "#value", "0x38")
        assert "bits:0x38 is the code" in complaint(person)
