"""Names with control characters: the explorer shows them escaped, or at least removes these characters."""

import os
import unicodedata
from base64 import b64decode

import numpy as np
import pytest
from rich.segment import Segment
from textual.color import Color
from textual.widgets import Input

from floatlab.tui.app.terminal import HARMLESS
from floatlab.tui.widgets.array_box import FilePicker
from floatlab.tui.widgets.pickers import Choice, Picker
from floatlab.verbs.question import Question
from tests.tui.stage import driven, opened, strips

NAME = "w\x1b]0;title\x07\x1b[31m\x9b2J\u202eb"
SHOWN = r"w\x1b]0;title\x07\x1b[31m\x9b2J\u202eb"


def check(person):
    """Check what goes to the terminal, box by box as it is drawn."""
    for strip in strips(person.app):
        for segment in strip:
            if segment.control is None:
                bad = [ch for ch in segment.text if unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
                assert not bad, segment


@driven
async def test_no_screen_lets_a_name_through(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(f"{NAME}.npy", np.ones(3))
    async with opened("compare 1,2,3 1,2,3", size=(120, 34)) as person:
        assert person.app.shown.open(Question("compare", (f"{NAME}.npy", "1,1,1")))
        await person.pilot.pause()
        check(person)  # the box holds the name
        box = person.app.screen.query_one("#actual Input", Input)
        box.value = f"{NAME}.nowhere"
        await person.pilot.pause()
        check(person)
        assert r"! 'w\x1b]0;title" in person.screen
        person.app.notify(NAME, title=NAME)
        person.app.push_screen(Picker(NAME, [Choice(NAME, f"{NAME} words")]))
        await person.pilot.pause()
        check(person)
        assert f"{SHOWN} words" in person.screen
        person.app.screen.dismiss(None)
        await person.pilot.pause()
        person.app.push_screen(FilePicker(NAME))
        await person.pilot.pause()
        check(person)


def test_lines_keep_their_columns():
    line = [Segment("a\x1b\u202e😀\u3000b"), Segment("plain"), Segment("\x1b[2J", control=[])]
    found = HARMLESS.apply(line, Color(0, 0, 0))
    assert "".join(each.text for each in found[:2]) == "a😀  bplain"
    assert sum(each.cell_length for each in found[:2]) == sum(each.cell_length for each in line[:2])


@driven
async def test_a_name_that_is_not_utf8_is_copied_and_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"caf\xe9.npy")
    try:
        np.save(name, np.ones(3))
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    sent = []
    async with opened("sum 1,2,3") as person:
        monkeypatch.setattr(person.app._driver, "write", sent.append)
        assert person.app.shown.open(Question("sum", (name,)))
        await person.press("Y")
        assert b"caf\xe9.npy" in b64decode(sent[-1].rpartition(";")[2].rstrip("\a"))
        await person.press("S")
        await person.fill("SaveWindow Input", "sum.sh")
        await person.press("enter")
        assert b"caf\xe9.npy" in (tmp_path / "sum.sh").read_bytes()
        check(person)
