"""The screen Compare, driven as a person would: arrays typed and picked, tolerances, views, hostile files."""

import asyncio
import os
from re import search
from time import monotonic

import numpy as np
import pytest

import floatlab as fl
from floatlab.cli.parser import read_question
from floatlab.page.text_layout import to_text
from floatlab.tui.widgets.array_box import FilePicker
from floatlab.tui.widgets.pickers import Picker
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question, command_of
from tests.tui.stage import ANY_SIZE, SIZES, complaint, driven, opened, retype

START = "compare random:normal:64x64:seed=1@fp32 random:normal:64x64:seed=1@bf16 --fp32 --rtol 0.003"
LISTS = "compare 1,2,3,nan 1,2.5,3,nan --fp16"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Products and their inputs, in a folder that the explorer runs in."""
    rng = np.random.default_rng(1)
    x, y = rng.random((9, 40), np.float32), rng.random((40, 7), np.float32)
    half = (x.astype(np.float16).astype(np.float32) @ y).astype(np.float32)
    for name, array in {"x": x, "y": y, "cpu": x @ y, "gpu": half}.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.savez(tmp_path / "both.npz", cpu=x @ y, gpu=half)
    np.savez(tmp_path / "one.npz", only=half)
    (tmp_path / "deeper").mkdir()
    np.save(tmp_path / "deeper" / "cpu.npy", x @ y)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def details(person):
    return person.app.screen.query_one("#details").text


async def click_row(person, cells, cell, **how):
    y, x, _ = cells.places[cell]
    origin = cells.content_region.offset - cells.region.offset
    assert await person.pilot.click(cells, offset=(x + 3 + origin.x, y - cells.scroll_offset.y + origin.y), **how)
    await person.pilot.pause()


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_every_view_by_key_and_by_mouse(size):
    async with opened(START, size) as person:
        task = person.app.screen
        said = {
            "summary": ("verdict", "169 of 4,096"),
            "histogram": ("━", "from 2^14 ulps", "2,074 of 4,096"),
            "worst": ("28, 53", "-1.003884", "0xbf807f45", "bfloat16"),
            "where": ("169 elements beyond tolerance", "░"),
            "cause": ("X ", "Y ", "two products of the same"),
        }
        for name, words in said.items():
            assert task.view == name
            assert all(each in person.screen for each in words), name
            await person.press("v")
        assert task.view == "summary"
        for name, words in said.items():
            await person.choose("#views", name)
            assert all(each in person.screen for each in words), name
        assert all(len(line) <= size[0] for line in person.screen.splitlines())


@driven
async def test_the_summary_says_what_the_command_says():
    async with opened(START, (80, 60)) as person:
        page = to_text(answer_question(read_question(START.split()))[0].page())
        for line in details(person).split("Number of elements")[0].splitlines():
            assert line.strip() in page or line.startswith(("  actual", "  expected"))


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_cursor_tells_each_bar(size):
    async with opened(START, size) as person:
        task = person.app.screen
        await person.press("v")
        bars, ulps = task.bars, task.differences.ulps
        assert person.app.focused is bars
        assert bars.cursor == len(ulps.histogram) - 1
        await person.press("home")
        for _, _, count in ulps.histogram:
            assert f"{count:,} of 4,096" in " ".join(task.query_one("#bar").text.split())
            await person.press("down")
        await click_row(person, bars, bars.count - 2)
        assert bars.cursor == bars.count - 2
        assert "1,024 of 4,096" in " ".join(task.query_one("#bar").text.split())


@driven
async def test_bars_fit_the_width_and_need_no_colour():
    lengths = []
    for size in SIZES:
        async with opened(START, size) as person:
            await person.press("v")
            bars = [line.count("━") for line in person.app.screen.bars.text.splitlines()]
            assert bars == sorted(bars)  # the counts of this histogram rise
            lengths.append(bars[-1])
            numbers = [count for *_, count in person.app.screen.differences.ulps.histogram]
            assert all(f"{n:,}" in person.app.screen.bars.text for n in numbers)
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_an_element_opens_in_inspect_with_its_bits(size):
    async with opened(START, size) as person:
        task = person.app.screen
        await person.press("v", "v", "down")
        element = task.differences.worst[1]
        assert task.element == element
        assert "0xbd807e51" in task.query_one("#element").text
        await person.press("enter")
        assert person.app.current_mode == "inspect"
        assert person.app.screen.question.values == ("bits:0xbd807e51@fp32",)
        assert person.app.screen.subject().code == element.actual_code
        assert person.app.pins == {"A": "bits:0xbd807e51@fp32", "B": f"bits:{element.expected_code:#06x}@bf16"}
        person.app.go("compare")
        await person.pilot.pause()
        await person.press("e")
        assert person.app.screen.question.values == (person.app.pins["B"],)
        assert person.app.screen.subject().code == element.expected_code
        person.app.go("compare")
        await person.pilot.pause()
        await click_row(person, task.elements, 0, times=2)
        assert person.app.screen.question.values == ("bits:0xbf807f45@fp32",)


@driven
async def test_elements_show_all_that_is_known_and_can_be_pinned():
    async with opened(START) as person:
        task = person.app.screen
        await person.press("v", "v")
        seen = set()
        while True:
            before = task.elements.turned
            seen |= set(task.elements.text.splitlines()[0].split())
            await person.press("right")
            if task.elements.turned == before:
                break
        assert seen >= {"index", "actual", "expected", "bits", "ulps", "relative", "uses", "absolute"}
        await person.press("end")
        assert task.elements.cursor == len(task.differences.worst) - 1 == 99
        await person.press("home", "b")
        assert person.app.pins == {"B": "bits:0xbf80@bf16"}
        await person.press("a", "y")
        assert person.app.pins["A"] == "bits:0xbf807f45@fp32"
        assert person.app.clipboard.split() == [repr(task.differences.worst[0].actual), "-1.0"]


@driven
async def test_tolerances_are_typed_and_taken_back():
    async with opened(START) as person:
        task = person.app.screen
        box = task.query_one("#rtol")
        await person.fill("#rtol", "0.0040")
        assert task.question.option("rtol") == 0.004
        assert box.value == "0.0040"  # typed text is not rewritten
        assert "close: the worst of 4,096" in details(person)
        for wrong in ("0.x", "-1", "inf", "nan"):
            await retype(person, "#rtol", wrong)
            assert "--rtol takes a finite number" in complaint(person)
            assert box.has_class("-wrong")
            assert task.question.option("rtol") == 0.004
        await person.press("escape")
        assert box.value == "nan"  # it stays, to be corrected
        await person.press("u")
        assert box.value == "0.004"
        assert complaint(person) == ""
        await person.press("u")
        assert task.question.option("rtol") == 0.003
        assert box.value == "0.003"
        await retype(person, "#atol", "1")
        assert command_of(task.question).endswith("--atol 1.0 --rtol 0.003 --worst 100")
        assert "rtol 0.003, atol 1: passes" in details(person)
        await retype(person, "#atol", "")
        assert task.question.option("atol") is None


@driven
async def test_nans_are_equal_or_differ_by_key_and_by_mouse():
    async with opened(LISTS) as person:
        task = person.app.screen
        assert "1 NaN in both" in details(person)
        failing = task.differences.allclose.failing
        await person.press("n")
        assert task.question.option("equal_nan") is True
        assert task.differences.allclose.failing == failing - 1
        assert "NaNs equal" in person.screen
        await person.choose("#controls", "nan")
        assert task.question.option("equal_nan") is None
        assert task.differences.allclose.failing == failing


@driven
async def test_the_format_of_ulps_is_picked():
    async with opened("compare 0.1,0.2@fp32 0.1,0.25@bf16") as person:
        task = person.app.screen
        assert task.differences.ulps.format.name == "bfloat16"
        assert "ulps of bf16" in person.screen
        await person.press("f")
        await person.type("fp32")
        await person.press("enter")
        assert task.differences.ulps.format.name == "binary32"
        await person.choose("#controls", "format")
        assert isinstance(person.app.screen, Picker)
        await person.type("automatic")
        await person.press("enter")
        assert task.question.formats == ()
        await person.press("s")
        assert task.question.values == ("0.1,0.25@bf16", "0.1,0.2@fp32")


@driven
async def test_arrays_are_typed_and_their_paths_completed(files):
    async with opened(START) as person:
        task = person.app.screen
        await person.press("slash")
        box = task.query_one("#actual Input")
        assert person.app.focused is box
        await retype(person, "#actual Input", "bo")
        assert "'bo' is not a file" in complaint(person)
        assert box.has_class("-wrong")
        assert "169 of 4,096" in details(person)  # the picture stays
        await person.press("right")
        assert box.value == "both.npz"
        assert "has 2 arrays" in complaint(person)
        await person.type("::g")
        await person.press("right")
        assert box.value == "both.npz::gpu"
        assert "cannot be broadcast" in details(person)
        await retype(person, "#expected Input", "dee")
        await person.press("right")
        await person.type("c")
        await person.press("right")
        assert task.question.values == ("both.npz::gpu", "deeper/cpu.npy")
        assert "float32, 9 × 7" in details(person)
        await person.press("enter", "u")
        assert task.question.values[0] == "both.npz::gpu"
        assert task.question.values[1] != "deeper/cpu.npy"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_files_are_picked_through_folders_and_bundles(size, files):
    async with opened("compare gpu.npy cpu.npy", size) as person:
        task = person.app.screen
        await person.press("o")
        assert isinstance(person.app.screen, FilePicker)
        assert f"{os.sep}" in person.screen
        assert "• gpu.npy" in person.screen
        await person.type("both")
        await person.press("enter")
        assert "float32  9 × 7" in person.screen
        await person.type("cpu")
        await person.press("enter")
        assert task.question.values == ("both.npz::cpu", "cpu.npy")
        assert "the same: all 63 elements" in " ".join(details(person).split())
        await person.press("p")
        await person.type("deeper/")
        await person.press("down", "enter")
        assert task.question.values == ("both.npz::cpu", "deeper/cpu.npy")
        await person.press("o")
        assert "• cpu" in person.screen  # beside the array in the file
        await person.press("up", "enter")
        assert "both.npz" in person.screen
        await person.press("escape")
        # A file with one array is picked as this array. Two dots lead to the parent folder. A click on the name picks.
        await person.choose("#actual ChoiceBar", "pick")
        await person.press("home", "enter")
        await person.type("gpu")
        await person.press("escape")
        assert task.question.values == ("both.npz::cpu", "deeper/cpu.npy")
        await person.press("o", "up", "enter", *"one", "enter")
        assert task.question.values[0] == "one.npz"
        # In a box, down picks; what is typed in full is taken as it is.
        await person.press("slash", "down")
        await person.type("2,3")
        await person.press("enter")
        assert task.question.values[0] == "2,3"


@driven
async def test_two_dots_lead_up_and_text_that_names_a_folder_leads_there(files):
    async with opened("compare deeper/cpu.npy cpu.npy") as person:
        await person.press("o")
        assert f"{os.sep}deeper " in person.screen
        await person.press("up", "enter")
        assert "both.npz" in person.screen
        await person.type("no such thing")
        await person.press("enter")
        assert "'no such thing' is not a file" in complaint(person)
        assert person.app.screen.question.values == ("deeper/cpu.npy", "cpu.npy")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_cause_of_a_product(size, files):
    async with opened("compare cpu.npy gpu.npy", size) as person:
        task = person.app.screen
        await person.press("V")
        await retype(person, "#x Input", "x.npy")
        assert "X and Y" in complaint(person)
        await retype(person, "#y Input", "y.np")
        assert "'y.np' is not a file" in complaint(person)
        await person.press("right")
        assert task.question.option("inputs") == ("x.npy", "y.npy")
        await person.press("escape")
        assert "Size: q is" in details(person)
        assert " ".join(details(person).split()).startswith("No: this is rounding, by a choice of precision")
        asked = answer_question(task.question.replace(options=()).having(inputs=("x.npy", "y.npy")))[0]
        width = task.query_one("#details").scrollable_content_region.width
        first, found = asked.found.diagnosis.first, to_text(asked.parts()[1], width)
        assert details(person).split() == f"{first} {found}".split()
        copied = []
        person.app.copy = lambda text, words: copied.append(text)
        await person.press("Y")
        assert copied == ["floatlab compare cpu.npy gpu.npy --inputs x.npy y.npy"]
        await person.press("u")
        assert task.question.option("inputs") is None
        assert task.query_one("#x").word == task.query_one("#y").word == ""
        assert "two products of the same" in person.screen


@driven
async def test_the_options_of_the_example_end_with_its_arrays(files):
    async with opened(START) as person:
        task = person.app.screen
        await retype(person, "#actual Input", "cpu.npy")
        assert task.question.option("rtol") == 0.003  # the other array is still that of the example
        await retype(person, "#expected Input", "gpu.npy")
        assert (task.question.values, task.question.formats) == (("cpu.npy", "gpu.npy"), ())
        assert task.question.option("rtol") is None
        assert task.query_one("#rtol").value == ""
        await retype(person, "#rtol", "0.003")
        await retype(person, "#expected Input", "cpu.npy")
        assert task.question.option("rtol") == 0.003  # the user's own


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_operation_and_the_bias_are_typed(size, files):
    rng = np.random.default_rng(2)
    x, w, bias = (rng.random(shape, np.float32) for shape in ((2, 4, 30), (5, 30), (5,)))
    good = x @ w.T + bias
    wrong = good.copy()
    wrong[:, 1:3, 2:4] = 0
    for name, array in {"x": x, "w": w, "bias": bias, "good": good, "wrong": wrong}.items():
        np.save(files / f"{name}.npy", array)
    async with opened("compare good.npy wrong.npy", size) as person:
        task = person.app.screen
        await person.press("V")
        assert "op says what was done" in " ".join(details(person).split())
        await retype(person, "#op", "linear")
        assert "X and Y" in complaint(person)
        await retype(person, "#bias Input", "bias.npy")
        await retype(person, "#x Input", "x.npy")
        await retype(person, "#y Input", "w.npy")
        first = "Yes: [0:2, 1:3, 2:4] of B are zero; all others agree."
        assert " ".join(details(person).split()).startswith(first)
        await retype(person, "#op", "linea")
        assert "did you mean 'linear'?" in complaint(person)
        assert task.query_one("#op").has_class("-wrong")
        await retype(person, "#op", "linear")
        copied = []
        person.app.copy = lambda text, words: copied.append(text)
        await person.press("escape", "Y")
        assert copied == ["floatlab compare good.npy wrong.npy --bias bias.npy --inputs x.npy w.npy --op linear"]
        await person.choose("#views", "summary")
        assert " ".join(details(person).split()).startswith(first)


@driven
async def test_escape_keeps_what_a_diagnosis_has_found(files):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1000, 1000), np.float32)
    y = np.asarray(x @ x.T)
    np.save(files / "x.npy", x)
    np.save(files / "a.npy", y)
    np.save(files / "b.npy", np.asarray(x[:, :700] @ x.T[:700] + x[:, 700:] @ x.T[700:]))
    async with opened("compare a.npy b.npy", grace=0.1) as person:
        task = person.app.screen
        await person.press("V")
        await retype(person, "#op", "linear")
        await retype(person, "#x Input", "x.npy")
        person.app.screen.query_one("#y Input").value = "x.npy"
        end = monotonic() + 20
        while not (task.pending and search("…( part [0-9]+)? ·", task.pending.progress)) and monotonic() < end:
            await asyncio.sleep(0.02)
        await person.press("escape")
        while task.pending is not None and monotonic() < end:
            await asyncio.sleep(0.02)
        await person.pilot.pause(0.2)
        assert details(person).strip().startswith("Stopped")
        assert task.differences.diagnosis.stopped


@driven
async def test_a_cause_opens_at_its_view(files):
    async with opened("compare cpu.npy gpu.npy --inputs x.npy y.npy") as person:
        assert person.app.screen.view == "cause"
        assert "Size: q is" in person.screen


@driven
async def test_what_there_is_nothing_to_say_of_is_said():
    said = {
        "compare 1,2 1,2": ("same bits", "0 ulps", "No element differs", "No element differs"),
        "compare 1,2 1,2,3": (
            "cannot be broadcast",
            "has a distance",
            "no elements in common",
            "no elements in common",
        ),
        "compare nan nan": ("no tolerance", "has a distance", "nan", "1 element beyond tolerance"),
    }
    for command, words in said.items():
        async with opened(command) as person:
            for each in words:
                assert each in person.screen, (command, each)
                await person.press("v")
            assert person.app.failure is None


@driven
async def test_hostile_files_are_a_line_and_the_picture_stays(files):
    (files / "cut.npy").write_bytes((files / "cpu.npy").read_bytes()[:-5])
    (files / "none.safetensors").write_bytes(b"\xff" * 8 + b"{")
    (files / "broken.npz").write_bytes(b"PK\x03\x04" + b"\x00" * 40)
    np.save(files / "objects.npy", np.array([object()], object), allow_pickle=True)
    os.mkfifo(files / "pipe.npy")
    async with opened("compare cpu.npy gpu.npy", grace=5) as person:
        task = person.app.screen
        before = details(person)
        for name in ("cut.npy", "none.safetensors", "broken.npz", "objects.npy", "pipe.npy", "\x00"):
            await retype(person, "#actual Input", name)
            assert name.rstrip("\x00") in complaint(person)
            assert complaint(person).startswith("!")
            assert details(person) == before
            assert task.question.values[0] == "cpu.npy"
        await person.press("escape", "u")
        assert task.query_one("#actual").word == "cpu.npy"
        await person.press("o", *"broken", "enter")
        assert "broken.npz" in person.screen
        assert isinstance(person.app.screen, FilePicker)
        await person.press("escape")
    assert person.app.failure is None


@driven
async def test_large_files_are_compared_beside_the_screen_and_can_be_stopped(tmp_path):
    for name in ("a", "b"):
        with open(tmp_path / f"{name}.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 15, 1 << 15)}
            np.lib.format.write_array_header_1_0(file, header)
            file.truncate(file.tell() + (4 << 30))
    async with opened("compare 1,2 1,3", grace=0.02) as person:
        task, before = person.app.screen, details(person)
        question = Question("compare", (str(tmp_path / "a.npy"), str(tmp_path / "b.npy")))
        start = monotonic()
        task.open(question)
        assert monotonic() - start < 1
        while " 0 %" in complaint(person) or "%" not in complaint(person):
            await asyncio.sleep(0.05)
            assert monotonic() - start < 20
        assert "working" in complaint(person)
        assert details(person) == before
        await person.press("escape")
        assert "stopped" in complaint(person)
        assert details(person) == before
        assert task.question == task.normal(question)  # it can be asked again
        await person.press("u")
        assert task.question.values == ("1,2", "1,3")
        assert task.query_one("#actual").word == "1,2"


@driven
async def test_the_palette_and_the_keys_name_all_of_it():
    async with opened(START, (80, 60)) as person:
        task = person.app.screen
        names = [name for name, _, _ in task.commands()]
        assert {"View: Ulps", "Open: X", "Swap the arrays", "Ulps: automatic"} <= set(names)
        {name: do for name, _, do in task.commands()}["View: Top errors"]()
        await person.pilot.pause()
        assert task.view == "worst"
        await person.press("question_mark")
        for words in ("Inspect expected", "Swap", "NaNs", "More columns", "Pin A"):
            assert words in person.app.screen.query_one("PageView").text


@driven
async def test_what_is_copied_is_what_is_in_sight():
    async with opened(START) as person:
        copied = []
        person.app.copy = lambda text, words: copied.append(text)
        await person.press("y", "Y", "v", "v", "Y", "V")
        assert copied[0].startswith("not close: 169 of 4,096")
        # The options stand in the order of their names.
        assert read_question(copied[1].split()[1:]) == read_question(START.split())
        assert copied[2] == f"{copied[1]} --worst 100"
        person.app.screen.action_copy("text")
        assert "The worst 100 elements" in copied[3]


@driven
async def test_a_dtype_goes_with_the_files_that_it_was_for(tmp_path):
    np.arange(6, dtype=np.float32).tofile(tmp_path / "a.bin")
    async with opened(f"compare {tmp_path}/a.bin 0,1,2,3,4,5 --dtype f32") as person:
        assert person.app.screen.question.option("dtype") == "f32"
        assert person.app.screen.differences.within
        await retype(person, "#actual Input", "0,1,2,3,4,6")
        assert person.app.screen.question.option("dtype") is None
        assert not person.app.screen.differences.within


def test_an_element_is_read_back_as_it_is():
    from floatlab.verbs.compare.answer import element_codes

    found = fl.compare(np.float32([np.nan, 1, -0.0]), np.float64([1, 2, 3]))
    codes = {each.index: element_codes(found, each) for each in found.worst}
    assert codes == {
        (0,): ("bits:0x7fc00000@fp32", "bits:0x3ff0000000000000@fp64"),
        (1,): ("bits:0x3f800000@fp32", "bits:0x4000000000000000@fp64"),
        (2,): ("bits:0x80000000@fp32", "bits:0x4008000000000000@fp64"),
    }


@driven
async def test_x_goes_to_the_box_of_x():
    async with opened("compare 1,2 1,3") as person:
        await person.press("x")
        assert person.app.focused is person.app.screen.query_one("#x Input")
        await person.type("1,2")
        assert person.app.screen.query_one("#x Input").value == "1,2"


@driven
async def test_the_list_of_files_says_why_it_does_not_begin_in_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.npz").write_bytes(b"garbage")
    async with opened("sum 1,2,3") as person:
        person.app.push_screen(FilePicker("x", "bad.npz::a"))
        await person.pilot.pause()
        assert "'bad.npz' cannot be read" in person.screen
        assert "../" in person.screen  # the list of the working directory
