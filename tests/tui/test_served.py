"""The explorer for a visitor of `tui --serve`: typed text has no access to files, modules and the clipboard."""

import asyncio
import os

import numpy as np
import pytest
from textual.widgets import Input, Label, OptionList, Static

import floatlab.tui.app.terminal
from floatlab.cli.parser import read_question
from floatlab.tui.app.app import Explorer
from floatlab.tui.app.settings import session_file
from floatlab.tui.widgets.array_box import FilePicker
from tests.tui.stage import driven, opened


@pytest.fixture
def served(tmp_path):
    """Make a folder to serve, with a secret beside it."""
    folder = tmp_path / "served"
    (folder / "sub").mkdir(parents=True)
    np.save(folder / "a.npy", np.ones(3))
    np.save(folder / "sub" / "b.npy", np.ones(3))
    np.save(tmp_path / "secret.npy", np.full(3, 7.0625))
    (folder / "out.npy").symlink_to(tmp_path / "secret.npy")
    return folder


def complaint(person):
    return str(person.app.screen.query_one("#complaint", Static).render())


WAYS_OUT = ["../secret.npy", "out.npy", "/etc/hostname", "/proc/self/environ", "../secret.npy::x", "../none.npy"]


async def typed(selector, text, command):
    """Type into a box of a screen; return the complaint."""
    async with opened(command, size=(120, 34)) as person:
        await person.fill(selector, text)
        assert "7.0625" not in person.screen
        return complaint(person)


BOXES = [
    ("compare 1,2,3 1,2,3", "#actual Input"),
    ("compare 1,2,3 1,2,3", "#expected Input"),
    ("compare 1,2;3,4 1,2;3,4 --inputs 1,2;3,4 1,2;3,4", "#x Input"),
    ("sum 1,2,3", "#x Input"),
    ("dot 1,2,3 1,2,3", "#y Input"),
    ("train 1 --update 0.1 --steps 3", "#update Input"),
    ("train 1 --update 0.1 --steps 3", "#weight Input"),
    ("train underflow 1e-9,1", "#gradients Input"),
]


@pytest.mark.one_in(5)
@pytest.mark.parametrize("text", ["out.npy", "../secret.npy"])
@pytest.mark.parametrize(("command", "selector"), BOXES)
def test_no_box_leads_out_of_the_folder(served, confine, command, selector, text):
    confine(str(served))
    assert "lies outside the folder" in asyncio.run(typed(selector, text, command))


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("command", "selector"), BOXES)
def test_no_box_reads_a_file_without_a_folder(served, confine, monkeypatch, command, selector):
    monkeypatch.chdir(served)
    confine()
    assert "files cannot be read here" in asyncio.run(typed(selector, "a.npy", command))


def test_what_there_is_outside_is_not_told(served, confine):
    confine(str(served))

    @driven
    async def look():
        async with opened("sum 1,2,3", size=(120, 34)) as person:
            for text in WAYS_OUT:
                person.app.screen.query_one("#x Input", Input).value = text
                await person.pilot.pause()
                words = "lies outside the folder whose files may be read here (tui --serve --files DIR)"
                assert complaint(person) == f"! '{text.partition('::')[0]}' {words}"

    look()


@driven
async def _picked():
    async with opened("compare 1,2,3 1,2,3", size=(120, 34)) as person:
        await person.press("o")
        picker = person.app.screen
        assert isinstance(picker, FilePicker)
        yield_names = [str(each.prompt).split()[-4:] for each in picker.query_one(OptionList)._options]
        assert [name for names in yield_names for name in names if name.endswith((".npy", "/"))] == [
            "../", "sub/", "a.npy"
        ]  # fmt: skip
        assert str(picker.query_one("#title", Label).render()).endswith(": .")
        picker.take("..")
        await person.pilot.pause()
        assert "lies outside" in str(picker.query_one("#nothing", Label).render())
        picker.take("sub/")
        await person.pilot.pause()
        assert str(picker.query_one("#title", Label).render()).endswith(": sub")
        for text in ("../../", "/", "/etc/"):
            picker.query_one(Input).value = text  # opened at once if it is a folder
            await person.pilot.pause()
            assert str(picker.query_one("#title", Label).render()).endswith(": sub")
        picker.take("sub/b.npy")
        await person.pilot.pause()
        assert person.app.shown.question.values[0] == "sub/b.npy"


def test_the_picker_stays_in_the_folder(served, confine):
    confine(str(served))
    _picked()


def test_the_picker_shows_nothing_without_a_folder(served, confine, monkeypatch):
    monkeypatch.chdir(served)
    confine()

    @driven
    async def look():
        async with opened("compare 1,2,3 1,2,3", size=(120, 34)) as person:
            await person.press("o")
            picker = person.app.screen
            assert isinstance(picker, FilePicker)
            assert "files cannot be read here" in str(picker.query_one("#nothing", Label).render())
            assert picker.query_one(OptionList).option_count == 0
            assert str(served) not in person.screen

    look()


def test_no_library_is_asked_by_module(served, confine, monkeypatch):
    mark = served / "mark"
    (served / "evil_hook.py").write_text(f"open({str(mark)!r}, 'w').close()\ndef total(x): return 1.0\n")
    monkeypatch.syspath_prepend(str(served))
    confine(str(served))

    @driven
    async def ask():
        async with opened("sum 1,2,3", size=(120, 34)) as person:
            await person.press("w")
            assert "module:function" not in person.screen
            await person.type("evil_hook:total")
            await person.press("enter")
            assert "is refused here" in complaint(person)
        async with opened("train check x^3 1.5", size=(120, 34)) as person:
            person.app.shown.open(read_question(["train", "check", "evil_hook:total", "1.5"]))
            await person.pilot.pause()
            assert "is refused here" in complaint(person)

    ask()
    assert not mark.exists()


def test_the_clipboard_of_this_machine_is_left_alone(confine, monkeypatch):
    copied = []
    monkeypatch.setattr(floatlab.tui.app.terminal, "copy", lambda text: copied.append(text) or "")

    @driven
    async def copy():
        async with opened("show 0.1 --fp16") as person:
            with monkeypatch.context() as patch:
                patch.setattr(Explorer, "is_headless", False)
                person.app.copy("text", "it")
            await asyncio.sleep(0.2)  # the work beside the screen

    copy()
    assert copied == ["text"]  # as the explorer does for its owner
    confine()
    copy()
    assert copied == ["text"]


def test_no_session_is_kept_or_read(confine, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "floatlab").mkdir()
    (tmp_path / "floatlab" / "explorer.json").write_text('{"screen": "formats"}')
    assert Explorer(read_question).DEFAULT_MODE == "formats"
    confine()
    app = Explorer(read_question)
    assert app.DEFAULT_MODE == "inspect"
    assert app._keep is False
    assert session_file().read_text() == '{"screen": "formats"}'
    assert os.listdir(tmp_path / "floatlab") == ["explorer.json"]
