"""The screen of formats, driven as a person would: the table, marks and comparison, codes, and the box of names."""

import pytest
from textual.geometry import Offset

from floatlab.page.text_layout import to_text
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question, command_of
from tests.tui.stage import ANY_SIZE, driven, opened

TALL = (120, 200)


def page_lines(*names, width):
    return [
        each.rstrip() for each in to_text(answer_question(Question("formats", names))[0].page(), width).splitlines()
    ]


async def click_cell(person, cells, cell, column=3, **how):
    y, x, _ = cells.places[cell]
    origin = cells.content_region.offset - cells.region.offset
    y -= cells.scroll_offset.y
    assert await person.pilot.click(cells, offset=(x + column + origin.x, y + origin.y), **how)
    await person.pilot.pause()


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_table_is_walked_and_read(size):
    async with opened("formats", size) as person:
        task = person.app.screen
        assert "binary16" in person.screen
        assert "65504" in task.query_one("#details").text
        await person.press("down", "j")
        assert task.current.name == "binary64"
        assert "Python's float" in person.screen
        await person.press("end")
        assert task.current.name == "takum_log16"
        assert "takum_log16  " in person.screen  # scrolled into sight
        await person.press("home", "pagedown", "up", "k")
        assert task.current.name != "binary16"
        await click_cell(person, task.table, task.table.cursor + 1)
        assert task.current.name in task.query_one("#details").text
        assert "RNE" not in person.screen  # nothing is rounded here


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_all_columns_can_be_seen(size):
    async with opened("formats", size) as person:
        table = person.app.screen.table
        seen = []
        while True:
            seen += [name for name in table.table.header if name in table.text.splitlines()[0].split()]
            before = table.turned
            await person.press("right")
            if table.turned == before:
                break
        assert set(seen) == set(table.table.header)
        assert all(" binary16 " in f" {text} " for text in [table.text.splitlines()[1]])
        header = table.content_region.offset - table.region.offset  # inside the frame, if there is one
        await person.pilot.click(table, offset=header)
        await person.press(*["left"] * 9)
        assert table.turned == 0
        await person.pilot.click(table, offset=header + Offset(5, 0))
        assert table.turned > 0


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_two_are_marked_and_compared(size):
    async with opened("formats", size) as person:
        task = person.app.screen
        await person.press("space", "down", "down", "space")
        assert command_of(task.question) == "floatlab formats fp16 fp64"
        assert task.view == "compare"
        assert task.query_one("#names").value == "fp16 fp64"
        assert "• binary16" in person.screen
        assert "• binary64" in person.screen
        await person.press("u")
        assert command_of(task.question) == "floatlab formats fp16"
        await person.press("u")
        assert task.question.values == ()
        assert "•" not in person.screen
        await person.press("U", "U")
        assert command_of(task.question) == "floatlab formats fp16 fp64"
        # The same with the mouse: the margin marks.
        await click_cell(person, task.table, 2, column=0)
        await click_cell(person, task.table, 3, column=0)
        assert command_of(task.question) == "floatlab formats fp16 fp128"
        copied = []
        person.app.copy = lambda text, words: copied.append(text)
        await person.press("Y")
        assert copied == ["floatlab formats fp16 fp128"]


@driven
async def test_one_that_is_marked_is_compared_with_the_cursor():
    async with opened("formats bf16", TALL) as person:
        task = person.app.screen
        await person.choose("#views", "compare")
        assert "Move to another row" in task.query_one("#details").text
        await person.press("up")
        compared = task.query_one("#details").text
        assert "bfloat16" in compared
        assert "x87" in compared
        assert task.question.values == ("bf16",)


@driven
async def test_what_the_command_prints_is_on_the_screen():
    async with opened("formats e5m2", TALL) as person:
        details = person.app.screen.query_one("#details")
        assert details.text.splitlines() == page_lines("e5m2", width=details.scrollable_content_region.width)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_code_is_opened_in_inspect(size):
    async with opened("formats e4m3", size) as person:
        task = person.app.screen
        await person.press("v")
        assert person.app.focused is task.codes.table
        await person.press("3", "8", "enter", "down")
        assert "0x39 = 1.125" in person.screen
        await person.press("up", "a")
        assert person.app.pins["A"] == "bits:0x38@e4m3"
        await person.press("enter")
        assert person.app.current_mode == "inspect"
        assert "0 0111 000" in person.screen
        assert "0x38 = 1" in person.screen
        assert person.app.screen.subject().code == 0x38
        assert "binary16" in person.screen  # the previous text stays
        # Back, and the same with the mouse.
        await person.press("f4")
        await click_cell(person, task.codes.table, task.codes.table.cursor - 1)
        assert person.app.current_mode == "inspect"
        assert person.app.screen.subject().code == 0x37


@driven
async def test_a_code_is_found_by_digits_bits_and_arrows():
    async with opened("formats e4m3") as person:
        task = person.app.screen
        await person.choose("#views", "codes")
        table = task.codes.table
        await person.press("right", "down", "left", "pagedown", "end", "home", "right", "right", "right", "right")
        assert table.code(table.cursor) == "0xc0"
        await person.press("slash")
        await person.type("0x7f")
        assert "0x7f = nan" in person.screen
        await person.press("backspace", "g")
        assert "no code begins with this" in person.screen
        assert "0x70 = 128" in person.screen
        await person.press("escape")
        assert "no code begins with this" not in person.screen
        await person.click_bit(task.query_one("#bits"), 7)
        assert table.code(table.cursor) == "0xf0"
        copied = []
        person.app.copy = lambda text, words: copied.append(text)
        await person.press("y", "Y")
        assert copied == ["-130", "floatlab formats e4m3"]  # the shortest text that reads back to -128
        await person.press("escape", "escape", "home")
        assert task.current.name == "binary16"
        assert "too many codes" in person.screen


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_bad_name_is_said_and_nothing_is_lost(size):
    async with opened("formats fp16 bf16", size) as person:
        task = person.app.screen
        before = task.query_one("#details").text
        await person.press("slash")
        await person.type("fp16 bf16 e99m2")  # the old text is selected, as in all boxes
        assert "e<W>m<T> takes W" in person.screen.replace("\n ", "")
        assert task.question.values == ("fp16", "bf16")
        assert task.query_one("#details").text == before
        await person.press("escape")
        assert task.query_one("#names").value == "fp16 bf16 e99m2"  # it stays, to be corrected
        await person.press("u")
        assert task.query_one("#names").value == "fp16 bf16"
        assert "takes W" not in person.screen
        await person.press("f")
        await person.type("e5q")
        await person.press("enter")
        assert "e5q" in person.screen
        assert task.question.values == ("fp16", "bf16")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_any_format_can_be_a_row(size):
    async with opened("formats", size) as person:
        task = person.app.screen
        await person.press("f")
        await person.type("e6m9")
        await person.press("enter")
        assert task.current.name == "e6m9"
        assert "• e6m9" in person.screen
        await person.press("space")
        assert "  e6m9" in person.screen
        assert task.question.values == ()
        await person.press("x")
        assert "e6m9" not in task.formats
        await person.fill("#names", "fp16 e6m9")
        await person.press("escape")
        assert command_of(task.question) == "floatlab formats fp16 e6m9"
        await person.press("u")
        assert "e6m9" not in task.formats


@driven
async def test_enter_and_a_double_click_open_the_one():
    async with opened("formats", (80, 24)) as person:
        task = person.app.screen
        await person.press("down", "enter")
        assert person.app.current_mode == "inspect"
        assert command_of(person.app.screen.question) == "floatlab show 1 --fp32"
        person.app.go("formats")
        await person.pilot.pause()
        await click_cell(person, task.table, 3, times=2)
        assert command_of(person.app.screen.question) == "floatlab show 1 --fp128"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_code_in_the_box_is_shown_in_every_format_of_its_width(size):
    async with opened("formats fp16 bf16", size) as person:
        await person.press("slash")
        await person.type("0x38")
        assert "Enter shows this code in every format" in person.screen
        await person.press("enter")
        assert person.app.shown.NAME == "inspect"
        assert "e5m2fnuz     0 01110 00" in person.screen
        assert "= 0.25" in person.screen
        await person.press("backspace")
        names = person.app.screen.names
        assert (person.app.shown.NAME, names.value, names.has_class("-wrong")) == ("formats", "fp16 bf16", False)
        await person.press("slash")
        await person.type("0x12345")  # no format has 20 bits
        assert "unknown format '0x12345'" in person.screen.replace("\n", " ")
