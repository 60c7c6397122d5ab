"""The screen Train: runs, pauses, changes of remedies; steps rounding by rounding; subcommands, boxes, pickers."""

import asyncio
import shlex

import pytest

from floatlab import train
from floatlab.cli.parser import read_question
from floatlab.page.model import text_of
from floatlab.training.setup import Setup
from floatlab.training.trainer import Trainer
from floatlab.tui.screens.train.controls import RemedyTable, RoundingTable
from floatlab.tui.screens.train.plot import Plot
from floatlab.tui.widgets.page_view import PageView
from floatlab.tui.widgets.pickers import MarkingPicker, Picker
from floatlab.verbs.registry import answer_question, words_of
from floatlab.verbs.train.live import laboratory_for, stage_questions
from tests.tui.stage import ANY_SIZE, driven, opened

MANY = "train 1.125 --update 0.00041999 --steps 101 --remedies plain,master,stochastic,kahan"


def shown(person):
    return person.app.shown


def plot(person):
    return shown(person).query_one(Plot).text


def rows(person):
    return [[text_of(cell) for cell in row] for row in shown(person).query_one(RemedyTable).table.rows]


def values(person):
    return [row[1] for row in rows(person)]


def said(person):
    return str(shown(person).query_one("#complaint").render())


def reading(person):
    return shown(person).query_one("#reading", PageView).text.strip()


async def rested(person):
    """Wait until nothing runs any more."""
    await person.rested()
    assert shown(person).running is None


async def press(person, *keys):
    for key in keys:
        await person.press(key)
        await rested(person)


async def put(person, selector, text):
    """Put text into a box, at once."""
    box = person.app.screen.query_one(selector)
    box.focus()
    await person.pilot.pause()
    box.value = text
    await person.pilot.pause()
    await rested(person)


async def pick(person, text):
    assert isinstance(person.app.screen, Picker)
    await person.press("ctrl+u")  # a name that was refused is still there
    await person.type(text)
    await person.press("enter")
    await rested(person)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_it_opens_where_the_command_ends(size):
    async with opened(MANY, size) as person:
        found = train("1.125", update="0.00041999", steps=101, remedies="plain master stochastic kahan")
        assert [each.final for each in found.lines] == [1.125, 1.1669921875, 1.169921875, 1.1669921875]
        assert values(person) == ["1.125", "1.167", "1.17", "1.167"]
        assert "101 of 101" in person.screen
        assert {"a", "b", "c", "d", "·"} <= set(plot(person))
        assert "Train" in person.screen


@driven
async def test_it_goes_back_to_the_start_and_one_step_at_a_time():
    async with opened(MANY) as person:
        await press(person, "home")
        assert values(person) == ["1.125"] * 4
        assert "step 0 of 101" in person.screen
        await press(person, "n", "n", "n")
        assert "step 3 of 101" in person.screen
        trainer = Trainer("1.125", "0.00041999", setup=Setup("fp16", master="fp32"))
        trainer.advance(3)
        assert float(values(person)[1]) == pytest.approx(trainer.run.final, rel=1e-3)
        await press(person, "end")
        assert values(person) == ["1.125", "1.167", "1.17", "1.167"]


@driven
async def test_the_chart_grows_while_it_runs_and_pauses_where_it_is():
    async with opened(MANY) as person:
        await press(person, "home")
        await person.press(*["greater_than_sign"] * 3)
        assert shown(person).pace == 200
        before = plot(person)
        await person.press("space")
        assert "‖ pause" in person.screen
        for _ in range(300):
            if shown(person).look.steps >= 20:
                break
            await asyncio.sleep(0.01)
        await person.press("p")
        await rested(person)
        steps = shown(person).look.steps
        assert 20 <= steps < 101
        assert "▶ run" in person.screen
        assert shown(person).laboratory.steps == steps
        assert plot(person) != before
        lines = plot(person).splitlines()
        axis = next(at for at, line in enumerate(lines) if "┼" in line)
        # The plain weight stands still in the lowest row, which the exact line leaves at once.
        drawn = [at for at, dots in enumerate(lines[axis - 1]) if "\u2801" <= dots <= "\u28ff"]
        assert len(drawn) > 3
        assert max(drawn) < len(lines[axis].rstrip()) * (steps + 15) / 101


@driven
async def test_a_remedy_changes_on_the_way_and_it_goes_on_from_there():
    async with opened(MANY) as person:
        await press(person, "home", *"nnnnn")
        await person.press("e")
        await pick(person, "master")
        assert rows(person)[0][0] == "A master from 5"
        await press(person, "end")
        trainer = Trainer("1.125", "0.00041999", setup=Setup("fp16"))
        trainer.advance(5)
        trainer.change(Setup("fp16", master="fp32"))
        trainer.advance(96)
        assert shown(person).laboratory.training.trainers[0].run.final == trainer.run.final == 1.1650390625
        assert "A" in plot(person)
        assert "◆" in plot(person)
        await press(person, "u")
        assert rows(person)[0][:2] == ["a plain", "1.125"]
        assert "step 101 of 101" in person.screen
        assert "◆" not in plot(person)


@driven
async def test_at_the_goal_it_goes_on_as_far_again_and_the_command_says_how_far():
    async with opened("train 1.125 --update 0.00041999 --steps 10 --remedies plain,kahan") as person:
        await press(person, "n")
        assert "step 11 of 11" in person.screen
        await person.press(*["greater_than_sign"] * 20)
        assert shown(person).pace is None
        await press(person, "space")
        assert "step 21 of 21" in person.screen
        await person.press("Y")
        assert person.app.clipboard == ("floatlab train 1.125 --remedies plain,kahan --steps 21 --update 0.00041999")
        other = answer_question(read_question(shlex.split(person.app.clipboard)[1:]))[0]
        await person.press("y")
        assert person.app.clipboard == "\n".join(other.words())


@driven
async def test_numbers_that_end_end_it():
    async with opened("train 1 --update 0.5,0.25,0.125 --remedies plain") as person:
        assert "step 3 of 3" in person.screen
        await press(person, "space")
        assert "the gradients or updates cover only 3 steps, and all are done" in said(person)
        assert values(person) == ["1.875"]
        await put(person, "#steps", "5")
        assert "has numbers for 3 steps, not for 5" in said(person)
        assert values(person) == ["1.875"]


@driven
async def test_the_cursor_over_the_chart_tells_the_step_and_the_values():
    async with opened(MANY) as person:
        await person.press("left")
        at = shown(person).at
        found = train("1.125", update="0.00041999", steps=at, remedies="plain master stochastic kahan")
        told = dict(word.split(" ", 1) for word in reading(person).split("  ")[1:])
        assert reading(person).startswith(f"step {at} ")
        assert [float(told[letter]) for letter in "abcd"] == pytest.approx(
            [line.final for line in found.lines], rel=1e-3
        )
        assert "┊" in plot(person)
        assert "▲" in plot(person)
        chart = shown(person).query_one(Plot)
        assert await person.pilot.click(chart, offset=(40, 3))
        assert 0 < shown(person).at < at
        shown(person).at = 100
        await person.press("right", "right")
        assert shown(person).at is None


@driven
async def test_a_cursor_beyond_the_end_of_a_run_is_not_drawn():
    async with opened(MANY) as person:
        chart = shown(person).query_one(Plot)
        chart.show(shown(person).look.chart, 50, [60])
        assert {"▲", "◆"} <= set(chart.text)
        chart.show(shown(person).look.chart, 500, [600])
        assert not {"▲", "◆"} & set(chart.text)


@driven
async def test_enter_shows_the_next_step_and_its_roundings_open_in_arithmetic():
    async with opened(MANY) as person:
        await person.press("enter")
        page = shown(person).query_one("#details", PageView).text
        assert "nothing changes" in page
        assert "less than half the distance" in " ".join(page.split())
        assert "moves up" in page
        await person.press("escape")
        assert shown(person).query_one(Plot).display
        await person.press("down", "enter")
        assert text_of(shown(person).query_one(RoundingTable).table.rows[0][0]) == "master ← master + u"
        await person.press("enter")
        assert person.app.current_mode == "arithmetic"
        step = person.app.opened["train"].laboratory.next_step(1)
        assert shown(person).question == stage_questions(step)[0].question
        assert shown(person).answers[0].results[0] == step.stages[0].derivation.result


@pytest.mark.parametrize("remedies", ["stochastic", "kahan", "master", "wide"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_stages_as_questions_give_the_same_bits(remedies, optimizer):
    asked = f"train 1.125 --grad 0.37 --lr 0.01 --optimizer {optimizer} --remedies {remedies} --seed 3"
    laboratory = laboratory_for(read_question(asked.split()))
    laboratory.advance(7)
    step = laboratory.next_step(0)
    found = stage_questions(step)
    assert len(found) == len(step.stages)
    for happening, stage in zip(found, step.stages, strict=True):
        read = read_question(words_of(happening.question))
        assert answer_question(happening.question)[-1].results[-1] == stage.derivation.result
        drawn = stage.derivation.context.rounding.value == "SR"
        assert drawn or answer_question(read)[-1].results[-1] == stage.derivation.result


@driven
async def test_remedies_are_marked_by_space_and_any_other_is_typed():
    async with opened(MANY) as person:
        await person.press("m")
        assert isinstance(person.app.screen, MarkingPicker)
        assert person.app.screen.marked == ("plain", "master", "stochastic", "kahan")
        await person.press("down", "space", "space", "space")
        assert person.app.screen.marked == ("plain", "stochastic", "kahan")
        await person.type("bf16+stochastic")
        await person.press("enter", "enter")
        await rested(person)
        assert shown(person).question.option("remedies") == ("plain", "stochastic", "kahan", "bf16+stochastic")
        assert rows(person)[-1][0] == "d bf16+stochastic"
        await press(person, "u")
        assert len(rows(person)) == 4


@driven
async def test_a_remedy_that_there_is_not_is_said_and_the_picture_stays():
    async with opened(MANY) as person:
        kept = values(person)
        await person.press("e")
        await pick(person, "mastr+kahan")
        assert "there is no remedy 'mastr'; did you mean" in said(person)
        assert values(person) == kept
        await person.press("m")
        await person.type("static:0")
        await person.press("enter", "enter")
        await rested(person)
        assert "the scale of static" in said(person)
        assert shown(person).question == read_question(MANY.split())


@pytest.mark.parametrize(
    ("command", "box", "text", "complaint"),
    [
        pytest.param(MANY, "#weight Input", "nan", "start must be a finite number", marks=pytest.mark.slow),
        (MANY, "#weight Input", "7e4", "beyond binary16"),
        pytest.param(MANY, "#update Input", "", "'' is no", marks=pytest.mark.slow),
        pytest.param(MANY, "#steps", "x", "--steps", marks=pytest.mark.slow),
        ("train 1 --grad 0.5 --lr 0.1 --remedies plain", "#lr", "", "a gradient needs a learning rate"),
        pytest.param("train step 1 0.1", "#update Input", "0.1x", "0.1x", marks=pytest.mark.slow),
        ("train network --steps 3 --configs fp32 --hidden 2", "#seeds", "0", "--seeds"),
        pytest.param("train underflow 1e-8,1 --fp16", "#scale", "0", "scale", marks=pytest.mark.slow),
        pytest.param("train check x^3 1.5", "#x", "inf", "x", marks=pytest.mark.slow),
    ],
)
@driven
async def test_what_cannot_be_asked_is_said_and_the_picture_stays(command, box, text, complaint):
    async with opened(command) as person:
        question = shown(person).question
        body = person.screen.partition("▾")[2].splitlines()[-12:-2]
        await put(person, box, text)
        assert complaint in said(person)
        assert shown(person).query_one(box).has_class("-wrong")
        await person.press("escape", "u")
        await rested(person)
        assert shown(person).question == question
        assert person.screen.partition("▾")[2].splitlines()[-12:-2] == body


@driven
async def test_boxes_choices_and_pickers_ask_what_the_command_line_asks():
    async with opened("train 1.125 --update 0.00041999 --steps 9 --remedies plain,kahan") as person:
        await put(person, "#update Input", "-0.25")
        await put(person, "#steps", "4")
        assert values(person) == ["0.125", "0.125"]
        await person.press("escape")
        for key, text, command in (
            ("f", "bf16", "train 1.125 --update -0.25 --steps 4 --remedies plain,kahan --bf16"),
            ("d", "7", "train 1.125 --update -0.25 --steps 4 --remedies plain,kahan --bf16 --seed 7"),
            (
                "r",
                "rounding: rtz",
                "train 1.125 --update -0.25 --steps 4 --remedies plain,kahan --bf16 --seed 7 -r RTZ",
            ),
        ):
            await person.press(key)
            await pick(person, text)
            assert shown(person).question == read_question(command.split())
        await press(person, "g")
        assert shown(person).question.option("grad") == "-0.25"
        await person.press("o")
        await pick(person, "adam")
        await person.press("s")
        await person.type("state")
        await person.press("enter")
        await pick(person, "fp32")
        command = "train 1.125 --grad -0.25 --lr 0.1 --optimizer adam --state binary32 --steps 4 --remedies plain,kahan"
        assert shown(person).question == read_question([*command.split(), "--bf16", "--seed", "7", "-r", "RTZ"])
        await press(person, "u", "u", "u", "u")
        assert shown(person).question.option("update") == "-0.25"


@pytest.mark.slow
@driven
async def test_it_runs_and_pauses_by_mouse():
    async with opened(MANY) as person:
        await person.choose("#transport", "begin")
        await rested(person)
        await person.choose("#transport", "advance")
        await rested(person)
        assert "step 1 of 101" in person.screen
        await person.choose("#transport", "finish")
        await rested(person)
        assert "step 101 of 101" in person.screen
        await person.choose("#views", "table")
        assert "Outcome of each remedy" in shown(person).query_one("#details", PageView).text
        await person.choose("#controls", "form")
        await pick(person, "one update")
        assert shown(person).question == read_question(["train", "step", "1.125", "--update", "0.00041999"])


@driven
async def test_networks_learn_on_and_change_on_the_way():
    async with opened("train network --configs bf16,fp32 --steps 6 --hidden 4 --features 2 --samples 8") as person:
        laboratory = shown(person).laboratory
        assert [row[0] for row in rows(person)] == ["a bf16", "b fp32"]
        await press(person, "n")
        assert "step 7 of 7" in person.screen
        await person.press("e")
        await pick(person, "fp32")  # two remedies of the same name are shown
        assert rows(person)[0][0] == "A fp32' from 7"
        await press(person, "n", "n")
        assert laboratory.learners[0][0].learning.steps == 9
        await person.press("enter")
        assert "thousands of roundings" in said(person)
        await press(person, "home")
        assert "step 0 of 6" in person.screen
        assert rows(person)[0][0] == "a bf16"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train step 1.125 0.00041999 --fp16", "nothing changes"),
        ("train underflow 1e-9,1e-8,1 --fp16", "binary16"),
        pytest.param("train check x^3 1.5 --reported 6.8", "a bug", marks=pytest.mark.slow),
        pytest.param(
            "train 1,2,3 --update 1e-4 --steps 5 --remedies plain,mxfp4", "largest error", marks=pytest.mark.slow
        ),
        pytest.param("train 1e4 --update 1e4 --steps 9 --remedies plain", "w became inf", marks=pytest.mark.slow),
    ],
)
@driven
async def test_other_forms_open_with_what_the_command_line_draws(command, words):
    async with opened(command) as person:
        await person.press(*(["v"] if "check" in command else []))
        assert words in person.screen
