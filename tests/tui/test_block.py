"""The screen Block, driven as a person would: values and recipes typed and picked, elements, rules, hostile input."""

import threading

import numpy as np
import pytest

from floatlab.formats.recipes import parse_recipe
from floatlab.page.text_layout import to_text
from floatlab.tui.widgets.pickers import Picker
from floatlab.verbs.block.choices import recipe_choices
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question, command_of
from tests.differential.quantized import RECIPES
from tests.tui.stage import ANY_SIZE, complaint, driven, opened, printed, retype, text

START = "block 0.1 -2.5 3 7.3 0.02 --to nvfp4"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_steps_are_the_page_of_the_command(size):
    for command in (START, "block 957 0.1@bf16 --to mxfp8_e4m3 --scale up -r RTZ", "block 3 --to q4_1"):
        async with opened(command, size) as person:
            width = person.app.screen.details.scrollable_content_region.width
            assert text(person).splitlines() == printed(command, width)
            assert all(len(line) <= size[0] for line in person.screen.splitlines())


@driven
async def test_the_message_about_older_text_does_not_put_it_back():
    async with opened(START) as person:
        box = person.app.screen.values.input
        older = box.Changed(box, "0.1 0")
        with box.prevent(box.Changed):
            box.value = "0.1 0.25"
        box.post_message(older)
        await person.pilot.pause()
        assert box.value == "0.1 0.25"
        assert person.app.screen.question.values == ("0.1", "0.25")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_every_view_by_key_and_by_mouse(size):
    async with opened(START, size) as person:
        task = person.app.screen
        said = {
            "steps": ("5 values in nvfp4",),
            "elements": ("-2.5", "0.0|0010… × 2^0", "tail below half → keep"),
            "recipe": ("fp4 with finer scales", "elements     e2m1fn"),
        }
        for name, words in said.items():
            assert task.view == name
            assert all(each in person.screen for each in words), name
            await person.press("v")
        for name, words in said.items():
            await person.choose("#views", name)
            assert all(each in person.screen for each in words), name


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_cursor_tells_the_steps_of_each_element(size):
    async with opened("block 0.1 -2.5 3 7.3 0.02 --to block(e2m1,e8m0,2)", size) as person:
        task = person.app.screen
        await person.press("v")
        blocks = task.answers[0].found
        elements = [(block, place) for block in blocks for place in range(len(block.elements))]
        assert len(elements) == 5
        for block, place in elements:
            assert (task.element.block, task.element.place) == (block, place)
            steps = " ".join(text(person, "element").split())
            assert steps.startswith(block.literals[place])
            assert f"0x{block.elements[place].code:x} =" in steps
            assert f"{block.scale.code:#04x}" in steps
            await person.press("down")
        y, x, _ = task.elements.places[1]
        origin = task.elements.content_region.offset - task.elements.region.offset
        await person.pilot.click(task.elements, offset=(x + 3 + origin.x, y + origin.y))
        await person.pilot.pause()
        assert (task.element.block, task.element.place) == elements[1]


@driven
async def test_an_element_opens_in_inspect_where_it_rounds_to_the_same_code():
    async with opened("block 0.1 -2.5 3 7.3 0.02 --to mxfp4 -r RTP") as person:
        task = person.app.screen
        [block] = task.answers[0].found
        for place, element in enumerate(block.elements):
            await person.press("v", "home", *["down"] * place, "enter")
            assert person.app.current_mode == "inspect"
            assert person.app.screen.subject().code == element.code
            person.app.go("block")
            await person.pilot.pause()
            await person.press("V")
        await person.press("v", "end", "a")
        assert person.app.pins == {"A": "bits:0x1@e2m1"}


@driven
async def test_an_element_that_no_format_rounds_says_why():
    for command, why in (
        ("block 3 --to mxint8", "Inspect cannot round to int8 as the rule floor does"),
        ("block nan --to mxfp4", "is not a number"),
        ("block 3 --to mxfp4:ggml", "Inspect cannot round to e2m1fn as the rule ggml does"),
    ):
        async with opened(command) as person:
            await person.press("v", "enter")
            assert person.app.current_mode == "block"
            assert why in complaint(person)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_recipe_is_typed_and_a_caret_marks_a_mistake(size):
    async with opened(START, size) as person:
        task = person.app.screen
        await person.press("w")
        assert person.app.focused is task.recipe_box
        await person.fill("#recipe", "mxfp4:up")
        assert task.question.option("to") == "mxfp4:up"
        assert "in mxfp4:up" in text(person)
        for wrong, place in (("mxfp4:flor", 6), ("e4m3/12y", 5), ("block(e2m1 ue5m3)", 11), ("", None), ("(", 0)):
            await retype(person, "#recipe", wrong)
            assert task.recipe_box.has_class("-wrong")
            assert complaint(person).startswith("! ")
            if place is not None:
                assert complaint(person).splitlines()[1:] == [f"  {wrong}", f"  {' ' * place}^"]
            assert task.question.option("to") == "mxfp4:up"
            assert "in mxfp4:up" in text(person)  # the picture stays
        await person.press("escape")
        assert task.recipe_box.value == "("  # it stays, to be corrected
        await person.press("u")
        assert task.recipe_box.value == "mxfp4:up"
        assert complaint(person) == ""
        await retype(person, "#recipe", "block(e2m1, ue5m3, 16)")
        assert "in block(e2m1, ue5m3, 16)" in text(person)
        for before in ("mxfp4:up", "nvfp4"):  # typing is one step
            await person.press("escape", "u")
            assert task.question.option("to") == before


@pytest.mark.one_in(4)
@pytest.mark.parametrize("part", range(4))
@driven
async def test_every_recipe_is_shown_once(part):
    names = list(recipe_choices())
    typed = dict.fromkeys((*names, *RECIPES.values()))
    assert len(names) == len({parse_recipe(name).name for name in names})
    async with opened("block 0.1 -2.5 3 0 --to mxfp4", (80, 60)) as person:
        task = person.app.screen
        for name in [*typed][part::4]:
            task.take_format(name)
            await person.pilot.pause()
            recipe = parse_recipe(name)
            assert complaint(person) == "", name
            assert task.recipe == recipe
            assert f"in {recipe.name}" in " ".join(text(person).split())
            assert text(person).split() == " ".join(printed(f"block 0.1 -2.5 3 0 --to {name}", 79)).split()
            assert f"rule {recipe.rule.name} ▾" in dict(task.controls.options).values()


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_recipes_and_rules_are_picked(size):
    async with opened(START, size) as person:
        task = person.app.screen
        await person.press("f")
        assert "• nvfp4" in person.screen
        await person.type("torchao_rceil")
        await person.press("enter")
        assert task.question.option("to") == "mxfp8_e4m3:torchao_rceil"
        await person.choose("#controls", "scale")
        assert isinstance(person.app.screen, Picker)
        await person.type("even")
        await person.press("enter")
        assert task.question.option("to") == "mxfp8_e4m3:even"
        await person.press("s", *"floor", "enter")
        assert task.recipe_box.value == "mxfp8_e4m3"
        await person.press("f")
        await person.type("e4m3/1x3:te")
        await person.press("enter")
        assert task.question.option("to") == "e4m3/1x3:te"
        await person.press("f", *"e4m3/", "x", "enter")
        assert complaint(person).splitlines()[-1].strip() == "^"
        assert task.question.option("to") == "e4m3/1x3:te"


@driven
async def test_the_rule_of_an_option_becomes_a_part_of_the_recipe():
    async with opened("block 957 --to mxfp8_e4m3 --scale rceil") as person:
        assert person.app.screen.recipe_box.value == "mxfp8_e4m3:up"
        assert command_of(person.app.screen.question) == "floatlab block 957 --to mxfp8_e4m3:up"


@driven
async def test_the_scale_of_the_tensor_is_picked_where_there_is_one():
    async with opened(START) as person:
        task = person.app.screen
        await person.press("x")
        await person.type("1/3")
        await person.press("enter")
        assert task.question.option("tensor_scale") == "1/3"
        assert "tensor 1/3" in person.screen
        assert "given" in text(person)
        await person.press("x")
        await person.type("-1")
        await person.press("enter")
        assert "tensor_scale must be a positive number of binary32" in complaint(person)
        task.take_format("mxfp4")
        await person.pilot.pause()
        assert task.question.option("tensor_scale") is None
        assert "tensor_scale" not in dict(task.controls.options)
        await person.press("x")
        assert not isinstance(person.app.screen, Picker)
        await person.press("u")
        assert task.question.option("tensor_scale") == "1/3"


@driven
async def test_only_rules_that_block_takes_are_offered():
    async with opened(START) as person:
        await person.press("r")
        assert {each.name.partition("-")[0] for each in person.app.screen._choices} == {"rounding", "flush_results"}
        await person.type("RTZ")
        await person.press("enter")
        assert command_of(person.app.screen.question) == "floatlab block 0.1 -2.5 3 7.3 0.02 -r RTZ --to nvfp4"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_values_of_every_kind_are_typed(size):
    async with opened(START, size) as person:
        task = person.app.screen
        await person.press("slash")
        assert person.app.focused is task.values.input
        await person.fill("#values Input", "1, -2  0.1@bf16 nan -inf ")
        assert task.question.values == ("1", "-2", "0.1@bf16", "nan", "-inf")
        assert task.values.input.value == "1, -2  0.1@bf16 nan -inf "  # typed text is not rewritten
        assert "the scale is NaN" in " ".join(text(person).split())
        for wrong, why in (
            ("", "needs at least one value"),
            ("1 abc", "'abc' is not a number"),
            ("0x7@", "needs a format after the @"),
            ("bits:0x7", "a code needs a format"),
            ("1e99999999", "too long for the exact arithmetic"),
            ("\x1b[31m", "\\x1b[31m"),
        ):
            await retype(person, "#values Input", wrong)
            assert why in complaint(person), wrong
            assert task.values.input.has_class("-wrong")
            assert len(task.question.values) == 5
        await retype(person, "#values Input", "1e300 -1e-300 bits:0x3c7c@fp16")
        assert complaint(person) == ""
        await person.press("escape", "u")
        assert task.question.values == ("0.1", "-2.5", "3", "7.3", "0.02")


@driven
async def test_copies_are_the_values_the_codes_and_the_command():
    async with opened("block 957 1 --to mxfp4") as person:
        copied = {}
        person.app.copy = lambda copy, words: copied.update({words: copy})
        await person.press("Y", "v", "v", "Y")
        for name in ("value", "code"):
            person.app.screen.action_copy(name)
        assert copied == {
            "the command that prints this": "floatlab formats mxfp4",
            "the decoded values": "768\n0",
            "the codes of scales and elements": "0x86 0x7 0x0",
        }
        person.app.screen.action_copy("text")
        assert copied["the page as text"] == to_text(answer_question(Question("formats", ("mxfp4",)))[0].page())


@driven
async def test_an_array_is_shown_block_by_block():
    async with opened("block random:normal:64x64:seed=1 --to nvfp4 --at 3,17") as person:
        task = person.app.screen
        assert "elements 3,16 to 3,31" in text(person)
        assert "at 3,16 ▾" in person.screen
        await person.press("n")
        assert command_of(task.question).endswith("--at 3,32 --to nvfp4")
        width = task.details.scrollable_content_region.width
        assert text(person).splitlines() == printed(command_of(task.question).removeprefix("floatlab "), width)
        await person.press("p", "p", "p")
        assert "elements 2,48 to 2,63" in text(person)
        await person.press("g", *"63", "comma", *"63", "enter")
        assert "elements 63,48 to 63,63" in text(person)
        await person.press("n")  # there is no block after the last one
        assert task.question.option("at") == "63,63"
        await person.press("v", "end")
        assert task.elements.names[-1] == "63,63"
        await person.press("enter")
        assert person.app.current_mode == "inspect"
        person.app.go("block")
        await person.pilot.pause()
        await person.press("g", *"64", "comma", *"0", "enter")
        assert "there is no such element in an array of 64 × 64" in complaint(person)
        await retype(person, "#values Input", "1 2; 3 4")
        assert task.question.values == ("1,2;3,4",)
        assert task.question.option("at") is None
        await retype(person, "#values Input", "nothing.npy")
        assert "'nothing.npy' is not a file" in complaint(person)


@driven
async def test_many_typed_values_are_shown_in_parts():
    values = " ".join(str(n % 251 - 125) for n in range(4096))
    async with opened(START) as person:
        task = person.app.screen
        await retype(person, "#values Input", values)
        assert task.question.option("at") == "0"
        assert "4,096 values in nvfp4" in text(person)
        assert "elements 0 to 15" in text(person)
        await retype(person, "#recipe", "e4m3/tensor")
        assert "elements 0 to 255: 256 of the 4,096 in a block" in text(person)
        await person.press("escape", "n", "v", "end")
        assert task.elements.names[-1] == "511"
        await retype(person, "#values Input", "1 2")
        assert task.question.option("at") is None
        assert "1, 2 in e4m3/tensor" in " ".join(printed(command_of(task.question).removeprefix("floatlab "), 80))


@driven
async def test_other_keys_answer_while_a_large_file_is_read(tmp_path, monkeypatch):
    np.save(tmp_path / "big.npy", np.linspace(-1, 1, 1 << 20, dtype=np.float32).reshape(1024, 1024))
    monkeypatch.chdir(tmp_path)
    blocked, real = threading.Event(), answer_question
    monkeypatch.setattr(
        "floatlab.tui.screens.question_screen.answer_question",
        lambda question, started: (blocked.wait(30), real(question, started))[1],
    )
    blocked.set()
    async with opened(START, grace=0.0) as person:
        task = person.app.screen
        while task.pending is not None:
            await person.pilot.pause(0.05)
        blocked.clear()
        await retype(person, "#values Input", "big.npy")
        assert "working" in complaint(person)
        await person.press("escape", "escape", "v")  # the first stops the answer, the second leaves the box
        assert task.view == "elements"
        assert "-2.5" in person.screen  # the old answer stays
        assert task.values.word == "big.npy"  # nothing is lost
        await person.press("slash", "enter")
        blocked.set()
        while task.pending is not None:
            await person.pilot.pause(0.05)
        await person.press("escape", "V")
        assert "1,024 × 1,024 float32, in nvfp4" in " ".join(text(person).split())
