"""The screen Audit, driven as a person would: checkpoints and recipes typed and picked, the tensors, the plan."""

import asyncio
import json
import threading

import numpy as np
import pytest

from floatlab.tui.widgets.pickers import Picker
from floatlab.verbs.registry import command_of
from tests.auditing.making import write_examples
from tests.tui.stage import ANY_SIZE, complaint, driven, opened, printed, retype, text

RANDOM = "audit random:normal:64x256:seed=1@bf16 random:lognormal:64x256:sigma=3:seed=2@bf16 --to e4m3,mxfp4,nvfp4"
TRAINED = "audit trained.safetensors --to e4m3,nvfp4"


@pytest.fixture
def examples(tmp_path, monkeypatch):
    write_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_overview_is_the_page_of_the_command(examples, size):
    for command in (
        RANDOM,
        TRAINED,
        "audit model.safetensors --against original.safetensors",
        "audit model.safetensors",
    ):
        async with opened(command, size) as person:
            width = person.app.screen.details.scrollable_content_region.width
            assert text(person).splitlines() == printed(command, width)
            assert all(len(line) <= size[0] for line in person.screen.splitlines())


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_every_view_by_key_and_by_mouse(size):
    async with opened(RANDOM, size) as person:
        task = person.app.screen
        said = {"overview": "do all tensors survive?", "tensors": "sort most damaged first", "plan": "as it is"}
        for name, words in said.items():
            assert task.view == name
            assert words in (person.screen if name == "tensors" else text(person))
            await person.press("v")
        for name in said:
            await person.choose("#views", name)
            assert task.view == name


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_pane_has_the_figures_of_the_tensor_under_the_cursor(examples, size):
    async with opened(TRAINED, size) as person:
        task = person.app.screen
        await person.press("v")
        for place, tensor in enumerate(task.found.tensors):
            assert task.tensors.cursor == place
            assert text(person, "tensor").split()[0] == f"{tensor.tensor}:"
            said = " ".join(text(person, "tensor").split())
            if tensor.recipes:
                assert tensor.recipes[1].recipe in said
                assert "% of the numbers" in said
            else:
                assert "left out, integers" in said
            await person.press("down")


@driven
async def test_tensors_are_sorted_by_any_column_and_back(examples):
    async with opened(TRAINED, (120, 34)) as person:
        task = person.app.screen
        await person.press("v")
        listed = [each.tensor for each in task.found.tensors]
        measured = [each for each in task.found.tensors if each.recipes]
        for title, key in (("tensor", None), ("largest", lambda each: each.largest)):
            await person.press("s")
            assert isinstance(person.app.screen, Picker)
            await person.type(title)
            await person.press("enter")
            shown = [each.tensor for each in task._shown_tensors]
            wanted = sorted(listed) if key is None else [each.tensor for each in sorted(measured, key=key)]
            assert shown[: len(wanted)] == wanted
            assert f"sort {title} ↑" in person.screen
            await person.press("s", "enter")  # the marked row is the current one
            assert [each.tensor for each in task._shown_tensors][: len(wanted)] == wanted[::-1]
            assert f"sort {title} ↓" in person.screen
        await person.press("s", *"damaged", "enter")
        assert [each.tensor for each in task._shown_tensors] == listed


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_part_of_a_name_is_found(examples, size):
    async with opened(TRAINED, size) as person:
        task = person.app.screen
        question = task.question
        await person.press("v", "g")
        await person.type("MLP down")
        assert {each.tensor for each in task._shown_tensors} == {
            each.tensor for each in task.found.tensors if "mlp" in each.tensor and "down" in each.tensor
        }
        assert task._shown_tensors
        await person.type("x")
        assert task._shown_tensors == ()
        assert "No tensor has a name with these words." in person.screen
        await person.press(*["backspace"] * 9, "escape")
        assert len(task._shown_tensors) == len(task.found.tensors)
        assert task.question == question  # nothing was measured again
        assert person.app.focused is task.tensors


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_recipes_are_typed_and_a_mistake_is_marked(size):
    async with opened(RANDOM, size) as person:
        task = person.app.screen
        before = text(person)
        await person.press("w", "end", *",mxpf4")
        assert "mxpf4" in complaint(person)
        assert task.recipes_box.has_class("-wrong")
        assert task.recipes_box.value == "e4m3,mxfp4,nvfp4,mxpf4"
        assert text(person) == before
        await retype(person, "#recipes", "nvfp4, e4m3/tensor ")
        assert task.question.option("to") == ("nvfp4", "e4m3/tensor")
        assert task.recipes_box.value == "nvfp4, e4m3/tensor "  # typed text is not rewritten
        await person.press("escape", "u")
        assert task.recipes_box.value == "e4m3,mxfp4,nvfp4"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_recipes_are_marked_in_a_list(size):
    async with opened(RANDOM, size) as person:
        task = person.app.screen
        await person.press("f", *"e5m2", "enter", "enter")
        assert task.question.option("to")[:3] == ("e4m3", "mxfp4", "nvfp4")
        assert len(task.question.option("to")) == 4
        task.take_format("mxfp6_e3m2")
        await person.pilot.pause()
        assert task.question.option("to")[4:] == ("mxfp6_e3m2",)


@driven
async def test_a_checkpoint_is_typed_or_picked(examples):
    np.save(examples / "one tensor.npy", np.float32([[1, 2], [3, 4]]))
    async with opened(RANDOM) as person:
        task = person.app.screen
        await retype(person, "#file Input", "no.safetensors")
        assert "no.safetensors" in complaint(person)
        assert task.file.word == "no.safetensors"
        assert task.file.input.has_class("-wrong")
        await retype(person, "#file Input", "")
        assert "audit needs a checkpoint" in complaint(person)
        await retype(person, "#file Input", "one tensor.npy")  # a name with a space is one file
        assert complaint(person) == ""
        assert task.question.values == ("one tensor.npy",)
        await person.press("escape", "o")
        await person.type("trained")
        await person.press("enter")
        assert task.question.values == ("trained.safetensors",)  # a file of several tensors, as a whole
        assert task.file.word == "trained.safetensors"
        assert "trained.safetensors: " in text(person)


@driven
async def test_without_recipes_weights_are_checked_against_the_original(examples):
    async with opened("audit model.safetensors --to nvfp4") as person:
        task = person.app.screen
        await person.press("e")
        await retype(person, "#against Input", "no.npz")
        assert "no.npz" in complaint(person)
        assert task.recipes_box.value == "nvfp4"
        await retype(person, "#against Input", "original.safetensors")
        assert command_of(task.question) == "floatlab audit model.safetensors --against original.safetensors"
        assert "SQNR" in text(person)
        assert task.recipes_box.value == ""
        await person.press("escape", "v")
        assert task.shown_view == "overview"  # the other views are about recipes
        await retype(person, "#recipes", "nvfp4")
        assert command_of(task.question) == "floatlab audit model.safetensors --to nvfp4"
        await person.press("escape", "u")
        assert task.question.option("against") == "original.safetensors"


@driven
async def test_a_wrong_original_has_no_effect_on_recipes_and_recipes_come_back(examples):
    async with opened("audit trained.safetensors --to e4m3,nvfp4") as person:
        task = person.app.screen
        await person.press("e")
        await retype(person, "#against Input", "no.npz")
        assert task.has_class("-unread")
        await person.press("enter", "escape")
        await retype(person, "#file Input", "model.safetensors")
        assert complaint(person) == ""
        assert not task.has_class("-unread")
        assert not task.against.display
        await person.press("escape", "e")
        assert task.against.word == "no.npz"  # what was typed is still there, with its error
        assert "no.npz" in complaint(person)
        await retype(person, "#against Input", "original.safetensors")
        assert task.recipes_box.value + task.recipes_box.placeholder == ""
        await retype(person, "#against Input", "")
        assert task.question.option("to") == ("e4m3", "nvfp4")
        assert task.recipes_box.value == "e4m3,nvfp4"


@driven
async def test_a_missing_file_is_no_search_without_a_result():
    async with opened("audit no.safetensors --to e4m3") as person:
        person.app.screen.choose_view("tensors")
        await person.pilot.pause()
        assert "no.safetensors" in complaint(person)
        assert text(person) == ""


@pytest.mark.parametrize("size", [(46, 20), (80, 24)])
@driven
async def test_recipes_are_the_first_columns_of_a_narrow_table(examples, size):
    async with opened(TRAINED, size) as person:
        task = person.app.screen
        await person.press("v")
        titles = task.tensors.text.splitlines()[0].split()
        assert titles[1:5] == ["e4m3", "dB", "nvfp4", "dB"]
        await person.press(*["right"] * 3)
        assert "largest" in task.tensors.text.splitlines()[0]
        await person.press(*["left"] * 3)
        assert task.tensors.text.splitlines()[0].split() == titles


@driven
async def test_the_file_of_the_plan_is_not_written_again(examples):
    async with opened("audit trained.safetensors --to nvfp4 --plan plan.json") as person:
        assert person.app.screen.question.option("plan") is None
        copied = {}
        person.app.copy = lambda copy, words: copied.update({words: copy})
        for name in ("value", "plan", "csv", "command"):
            person.app.screen.action_copy(name)
        found = person.app.screen.found
        assert copied["the recommendation"] == found.recommendation.words
        assert json.loads(copied["the plan as JSON"])["tensors"] == {
            name: recipe or None for name, recipe in found.recommendation.plan
        }
        assert copied["all figures as CSV"].splitlines()[1].startswith("trained.safetensors,")
        assert copied["the command that prints this"] == "floatlab audit trained.safetensors --to nvfp4"
    assert not (examples / "plan.json").exists()


@driven
async def test_a_tensor_opens_in_block_at_its_largest_relative_error():
    async with opened(RANDOM.replace("e4m3,", "")) as person:
        await person.press("v", "enter")
        assert person.app.current_mode == "block"
        question = person.app.shown.question
        assert question.values == ("random:lognormal:64x256:sigma=3:seed=2@bf16",)
        assert question.option("to") == "mxfp4"  # the first recipe that damages it
        assert complaint(person) == ""


@driven
async def test_a_number_in_a_format_without_scales_opens_in_inspect():
    """Block would saturate, but the audit does not."""
    for asked, overflow, value in (
        (RANDOM, "native", "99328"),
        (f"{RANDOM} --saturate", "saturate", "0.000690460205078125"),
    ):
        async with opened(asked) as person:
            await person.press("v", "enter")
            assert person.app.current_mode == "inspect"
            found = person.app.shown.question
            assert (found.values, found.formats[0].name) == ((value,), "e4m3fn")
            assert found.context.overflow.value == overflow


@driven
async def test_a_long_audit_is_stopped_by_escape(monkeypatch):
    from floatlab.auditing.survival import survey

    begun, go_on = threading.Event(), threading.Event()
    real = survey.work

    def slow(job):
        begun.set()
        go_on.wait(30)
        return real(job)

    async with opened(RANDOM) as person:
        task = person.app.screen
        monkeypatch.setattr(survey, "work", slow)
        task.GRACE = 0.0
        before = text(person)
        task.take_format("bf16")
        while not begun.is_set():
            await asyncio.sleep(0.01)
        task._look()
        assert "working …" in complaint(person)
        assert text(person) == before
        await person.press("escape")
        assert complaint(person).startswith("stopped")
        assert text(person) == before
        go_on.set()
        monkeypatch.undo()
        await person.press("full_stop")  # the next audit waits until the stopped one has ended
        while task.pending is not None:
            await asyncio.sleep(0.01)
            task._look()
        assert "bf16" in text(person)


@driven
async def test_hostile_text_is_refused_in_one_line(examples):
    async with opened(RANDOM) as person:
        for box, wrong in (
            ("#file Input", "\x1b[31m"), ("#file Input", "random:normal:0x"), ("#file Input", "random:"),
            ("#file Input", "[bold]"), ("#recipes", "e4m3,,"), ("#recipes", "\x00"), ("#recipes", "block("),
        ):  # fmt: skip
            await retype(person, box, wrong)
            assert complaint(person).startswith("! "), wrong
            assert "\x1b" not in person.screen
            await person.press("escape")


@driven
async def test_types_are_a_column_only_if_measured_tensors_differ(examples):
    async with opened(TRAINED, (120, 34)) as person:
        await person.press("v")
        header = person.app.screen.tensors.table.header  # the integers of the file are left out
        assert header == ("tensor", "shape", "largest", "e4m3 dB", "nvfp4 dB", "recommended")
