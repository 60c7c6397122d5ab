"""The explorer as a whole: screens, sessions, themes, the command palette, keys, copying, and exit."""

import asyncio
import json
import shlex
import subprocess
import sys
from contextlib import nullcontext

import pytest

from floatlab.cli.parser import read_question
from floatlab.page.model import Role
from floatlab.tui.app import terminal
from floatlab.tui.app.app import Explorer
from floatlab.tui.app.registry import SCREENS, screen_for
from floatlab.tui.app.settings import read_session, read_settings, session_file, settings_file, write_session
from floatlab.tui.themes import CYCLE
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.page_view import PageView
from floatlab.tui.widgets.pickers import HelpWindow
from floatlab.verbs.registry import VERBS, answer_question, asks, command_of, verb_named
from tests.auditing.making import example_folder, needs_examples
from tests.tui.stage import ANY_SIZE, Person, driven, opened, seen


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


# Verbs that answer on the command line only.
WITHOUT_A_SCREEN = {"dequantize", "practice"}


def test_every_verb_that_answers_has_a_screen():
    assert {verb for verb in filter(asks, VERBS) if screen_for(verb) is None} == WITHOUT_A_SCREEN


def test_every_screen_starts_with_a_question_of_its_own():
    for entry in SCREENS.values():
        question = read_question(list(entry.start))
        assert question.verb in entry.verbs
        assert answer_question(question)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_screens_are_reached_by_key_and_by_mouse(size):
    async with opened("", size) as person:
        for number, entry in enumerate(SCREENS.values(), 2):
            await person.press(f"f{number}")
            assert person.app.current_mode == entry.name
        for entry in SCREENS.values():
            await person.choose("#head", entry.name)
            assert person.app.current_mode == entry.name
        await person.press("left_square_bracket")
        assert person.app.current_mode == list(SCREENS)[-2]
        await person.press("right_square_bracket", "right_square_bracket")
        assert person.app.current_mode == next(iter(SCREENS))


@pytest.mark.one_in(12)
@pytest.mark.parametrize("verb", sorted({*filter(asks, VERBS)} - WITHOUT_A_SCREEN))
@driven
async def test_any_verb_opens_at_its_place(verb):
    for example in verb_named(verb).examples:
        with example_folder() if needs_examples(example) else nullcontext():
            async with opened(example) as person:
                assert person.app.current_mode == screen_for(verb).name
                shown = person.app.shown.question
                asked = read_question(shlex.split(example))
                assert shown.values == asked.values[: len(shown.values)]
                assert shown.context == asked.context


@driven
async def test_the_session_is_kept_and_found_again(home):
    app = Explorer(read_question, read_question(["show", "0.3", "--fp16", "-r", "RTZ"]))
    async with app.run_test() as pilot:
        person = Person(app, pilot)
        await pilot.pause()
        await person.press("plus", "f3", "s", "t")
    kept = json.loads(session_file().read_text())
    assert kept["screen"] == "arithmetic"
    again = Explorer(read_question)
    async with again.run_test() as pilot:
        await pilot.pause()
        assert again.current_mode == "arithmetic"
        assert again.theme == CYCLE[1]
        assert again.shown.question.values[0] == "-1.125"
        await pilot.press("f2")
        await pilot.pause()
        assert command_of(again.shown.question) == kept_command(kept, "inspect")
        assert "RTZ" in seen(again)


def kept_command(kept, name):
    return command_of(read_question(kept["questions"][name]))


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{", '{"screen": 3}', '{"questions": []}', '{"questions": {"inspect": "show"}}',
        '{"questions": {"inspect": ["show", "abc"]}}', '{"questions": {"inspect": ["fly"]}}',
        '{"questions": {"inspect": ["show"]}}', '{"questions": {"inspect": ["add", "1", "2"]}}',
        '{"theme": "none"}', '{"theme": 7}', '{"theme": [1]}', '{"questions": {"inspect": []}}',
        '{"questions": {"inspect": ["show", "--help"]}}', '{"a": "' + "x" * 300_000 + '"}',
        "\x00", "[" * 100_000, '{"questions": {"inspect": ["show", "-"]}}',
    ],
)  # fmt: skip
@driven
async def test_a_session_that_cannot_be_used_is_passed_over(home, text):
    session_file().parent.mkdir(parents=True)
    session_file().write_text(text)
    app = Explorer(read_question)
    async with app.run_test() as pilot:
        await pilot.pause()
        assert app.current_mode == "inspect"
        assert app.shown.answers
    assert app.failure is None


def test_a_session_that_cannot_be_written_is_no_trouble(home, monkeypatch):
    session_file().parent.parent.write_text("a file where a folder should be")
    write_session({"screen": "inspect"})
    assert read_session() == {}


@pytest.mark.parametrize(
    ("text", "usable", "named"),
    [
        ("theme = ", {}, "is not used"),
        ("a = " + "[" * 5000, {}, "is not used"),
        ("# " + "x" * 30_000, {}, "longer than"),
        ("theme = [1]", {}, "theme takes a string"),
        ('slide = "no"', {}, "slide takes true or false"),
        ("keys = 3", {}, "keys takes a table"),
        ('[keys]\n"bits.flip" = 3', {"keys": {}}, "keys takes strings"),
        ("speed = 2", {}, "no setting 'speed'"),
        ('theme = "nord"\nslide = false', {"theme": "nord", "slide": False}, ""),
    ],
)
def test_settings_that_cannot_be_used_are_said(home, text, usable, named):
    assert read_settings() == ({}, "")
    settings_file().parent.mkdir(parents=True)
    settings_file().write_text(text)
    settings, complaint = read_settings()
    assert settings == usable
    assert named in complaint
    assert bool(complaint) == bool(named)


def test_what_is_no_file_is_not_read(home):
    import os

    settings_file().parent.mkdir(parents=True)
    os.mkfifo(settings_file())
    assert "not a file" in read_settings()[1]


def test_what_a_hostile_session_left_behind_is_no_trouble_at_the_end(home):
    write_session({"questions": {"a": 3, "b": None, "c": {"d": []}}})
    assert read_session() == {"questions": {"a": 3, "b": None, "c": {"d": []}}}


def test_an_enormous_question_does_not_cost_the_session(home):
    write_session({"screen": "formats", "questions": {"inspect": ["show", "1" * 300_000], "formats": ["formats"]}})
    assert read_session() == {"screen": "formats", "questions": {"formats": ["formats"]}}


@driven
async def test_settings_choose_theme_and_keys():
    async with opened("show 1 --fp16", theme="floatlab-light", keys={"bits.flip": "f9"}) as person:
        assert person.app.theme == "floatlab-light"
        await person.press("f9")
        assert person.app.shown.subject().code == 0x3C01


# The sixteen colours of xterm, and those of VGA and of the console of Linux.
_EIGHT = [(red, green, blue) for blue in (0, 1) for green in (0, 1) for red in (0, 1)]
SIXTEEN_COLOURS = (
    [*(tuple(205 * part for part in each) for each in _EIGHT[:4]), (0, 0, 238), (205, 0, 205), (0, 205, 205),
     (229, 229, 229), (127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255),
     (0, 255, 255), (255, 255, 255)],
    [tuple(85 * (2 * part - (each == (1, 1, 0)) * (i == 1)) for i, part in enumerate(each)) for each in _EIGHT]
    + [tuple(85 + 170 * part for part in each) for each in _EIGHT],
)  # fmt: skip


@pytest.mark.parametrize("theme", CYCLE)
@driven
async def test_every_role_can_be_read_in_every_theme(theme):
    async with opened("add 1.125 0.1 --fp16") as person:
        person.app.theme = theme
        await person.pilot.pause()
        inks = person.app.inks
        fields = {inks[role].color.name for role in (Role.SIGN, Role.EXPONENT, Role.SIGNIFICAND)}
        assert len(fields) == 3
        from textual.color import Color

        if person.app.current_theme.ansi:
            ground = Color.parse("white" if theme == "ansi-light" else "black")
            for colours in SIXTEEN_COLOURS:
                for role in Role:
                    if inks[role].color is not None and inks[role].color.number is not None:
                        assert ratio(Color(*colours[inks[role].color.number]), ground) >= 2.9, f"{role} in {theme}"
            return
        background = Color.parse(person.app.theme_variables["background"])
        for role in Role:
            if inks[role].color is not None:
                ink = Color.from_rich_color(inks[role].color)
                assert ratio(ink, background) >= 4.5, f"{role} in {theme}"


def ratio(a, b):
    """Return the contrast of two colours (WCAG 2.2, 1.4.3)."""

    def luminance(colour):
        parts = [c / 255 for c in colour.rgb]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@driven
async def test_the_theme_key_goes_round():
    async with opened() as person:
        seen_themes = []
        for _ in CYCLE:
            seen_themes.append(person.app.theme)
            await person.press("t")
        assert tuple(seen_themes) == CYCLE
        assert person.app.theme == CYCLE[0]


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_keys_are_listed_and_the_list_is_closed(size):
    async with opened("show 1 --fp16", size) as person:
        await person.press("question_mark")
        assert isinstance(person.app.screen, HelpWindow)
        text = person.app.screen.query_one(PageView).text
        for words in ("Flip", "the next number above", "Quit", "Theme"):
            assert words in text
        await person.press("escape")
        assert isinstance(person.app.focused, BitRow)


@driven
async def test_every_key_has_a_name_and_no_two_keys_of_a_screen_collide():
    async with opened() as person:
        for entry in SCREENS.values():
            person.app.go(entry.name)
            await person.pilot.pause()
            keys = {}
            for each in (*person.app.BINDINGS, *person.app.shown.BINDINGS):
                if getattr(each, "id", None):
                    for key in each.key.split(","):
                        assert keys.setdefault(key, each.id) == each.id, f"{key} of {entry.name}"
                        assert not key.startswith(("alt", "cmd", "super"))


@driven
async def test_the_foot_does_what_its_keys_do():
    async with opened("show 1 --fp16") as person:
        foot = person.app.screen.query_one("#key-bar", ChoiceBar)
        flip = next(name for name, word in foot.options if "Flip" in word)
        await person.choose("#key-bar", flip)
        assert person.app.shown.subject().code == 0x3C01


@driven
async def test_the_palette_finds_examples():
    async with opened() as person:
        await person.press("ctrl+p")
        await person.type("example sqrt 2")
        await person.pilot.pause(0.4)
        await person.press("down", "enter")
        await person.pilot.pause(0.4)
        assert person.app.current_mode == "arithmetic"
        assert command_of(person.app.shown.question) == "floatlab sqrt 2 --fp16"


@driven
async def test_q_quits_outside_a_box_and_types_inside_one():
    async with opened() as person:
        await person.press("slash", "q")
        assert person.app.return_code is None
        await person.press("escape", "q")
        assert person.app.return_code == 0


def test_copying_asks_the_systems_programs_first(monkeypatch, tmp_path):
    taken = tmp_path / "taken"
    program = tmp_path / "xclip"
    program.write_text(f"#!/bin/sh\ncat > {taken}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert terminal.copy("0x3c7c") == "xclip"
    assert taken.read_text() == "0x3c7c"
    program.write_text("#!/bin/sh\nexit 1\n")
    assert terminal.copy("0x3c7c") == ""
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(terminal, "_PATIENCE", 0.2)
    assert terminal.copy("0x3c7c") == ""


@driven
async def test_what_was_copied_is_said():
    async with opened("show 1.5 --fp16 --e4m3") as person:
        await person.press("y")
        assert "Copied the shortest decimal" in person.screen.splitlines()[-1]
        assert person.app.clipboard == "1.5"
        await person.press("down", "c", *"the code", "enter")
        assert person.app.clipboard == "0x3c"


@driven
async def test_a_failure_ends_it_without_a_traceback_on_the_screen(monkeypatch):
    from floatlab.tui.screens.inspect.screen import InspectScreen

    def fail(self, by):
        raise ZeroDivisionError("on purpose")

    monkeypatch.setattr(InspectScreen, "action_view", fail)
    app = Explorer(read_question, keep=False)

    async def provoke():
        async with app.run_test() as pilot:
            await pilot.press("v")
            await pilot.pause()

    with pytest.raises(ZeroDivisionError):
        await provoke()
    assert isinstance(app.failure, ZeroDivisionError)
    assert app._exit_renderables == []


@driven
async def test_the_tab_of_a_new_screen_is_drawn_before_the_screen_is_there(monkeypatch):
    drawn = []
    async with opened("show 0.1 --fp16") as person:
        before, row = person.app.shown, SCREENS["arithmetic"]
        display = person.app._display
        monkeypatch.setattr(
            person.app, "_display", lambda screen, update: drawn.append(before.head.current) or display(screen, update)
        )

        def load():
            assert drawn[-1] == "arithmetic"
            assert seen(person.app).splitlines()[-1].split() == ["…"]
            return row.load()

        monkeypatch.setitem(person.app._modes, "arithmetic", lambda: person.app._open(row.replace(load=load)))
        await person.press("f3")
        assert person.app.shown.head.current == "arithmetic"
        await person.press("f2")
        assert before.head.current == "inspect"
        assert "Quit" in person.screen


@pytest.mark.parametrize("name", ["reduce", pytest.param("train", marks=pytest.mark.slow)])
@driven
async def test_leaving_while_a_screen_opens_is_no_failure(name):
    async with opened("show 0.1 --fp16") as person:
        person.app.go(name)
        person.app.exit(return_code=terminal.HUNG_UP)
        for _ in range(100):
            await asyncio.sleep(0)
    assert person.app.failure is None
    assert person.app.return_code == terminal.HUNG_UP


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("words", "named"),
    [
        ([], "needs a terminal"),
        (["show", "abc"], "'abc' is not a number"),
        (["show"], "show needs a value"),
        (["fly", "1"], "'fly'"),
        (["vectors", "check"], "no screen for vectors"),
        (["tui"], "no screen for tui"),
        (["show", "-"], "- (standard input) cannot be used here"),
        (["--port", "0"], "--port"),
        (["--port", "x", "--serve"], "--port"),
        (["--nonsense"], "tui --help lists them"),
        (["--version"], "tui --help lists them"),
        (["--host", "x"], "--host needs --serve"),
        (["--serve", "--host", ""], "needs a host"),
        (["show", "1", "--nonsense"], "show --help lists the options"),
        (["--theme"], "--theme needs NAME"),
        (["add", "1"], "add takes two values"),
        (["compare", "nowhere.npy", "1,2"], "'nowhere.npy' is not a file"),
        (["-3"], "needs a terminal"),
        (["reveal"], "reveal takes one target"),
        (["sum", "1", "--fly"], "sum --help lists the options"),
    ],
)
def test_what_cannot_be_opened_is_one_line(words, named):
    done = subprocess.run(
        [sys.executable, "-m", "floatlab", "tui", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert named in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["help"], ["show", "--help"], ["--theme", "nord", "-h"]])
def test_help_is_printed(words, capsys):
    from floatlab.cli.main import main

    assert main(["tui", *words]) == 0
    assert "floatlab tui show 0.1 --fp16" in capsys.readouterr().out


def test_without_its_extra_the_browser_is_named(monkeypatch):
    import floatlab.tui.app.browser
    from floatlab.errors import MissingPartError

    monkeypatch.setitem(sys.modules, "textual_serve.server", None)
    with pytest.raises(MissingPartError, match=r"pip install 'floatlab\[web\]'"):
        floatlab.tui.app.browser.serve(floatlab.tui.app.browser.Address("localhost", 8000), [], 1, print)


@driven
async def test_two_tabs_are_clicked_before_the_first_is_drawn():
    async with opened("show 0.1 --fp16") as person:
        person.app.go("arithmetic")
        person.app.go("formats")
        await person.pilot.pause()
        assert person.app.screen is person.app.opened["formats"]
        assert "Differences" in person.screen
        await person.press("f3")
        assert person.app.screen is person.app.opened["arithmetic"]


async def leave(turns, act):
    """Open the explorer and exit some turns of the event loop after `act`, or after the start if there is none.

    Return the names of the errors that the explorer ignored.
    """
    app, ignored = Explorer(read_question, read_question(["show", "0.1", "--fp16"]), keep=False), set()
    handle = app._handle_exception

    def note(error):
        ignored.add(type(error).__name__)
        handle(error)

    app._handle_exception = note

    async def end():
        while act is not None and not (app.is_running and app.screen_stack and app.focused):
            await asyncio.sleep(0)
        if act is not None:
            app.call_later(act, app)
        for _ in range(turns):
            await asyncio.sleep(0)
        app.exit(return_code=129)

    ending = asyncio.create_task(end())
    await app.run_async(headless=True)
    await ending
    assert app.failure is None
    assert app.return_code == 129
    return ignored


def test_a_hangup_while_the_first_screen_opens_is_no_error():
    assert asyncio.run(leave(2, None)) == {"MountError"}


def test_a_hangup_while_the_palette_opens_is_no_error():
    assert asyncio.run(leave(2, Explorer.action_command_palette)) == {"WorkerFailed"}


@pytest.mark.slow
@pytest.mark.parametrize("turns", range(0, 30, 3))
@pytest.mark.parametrize(
    "act",
    [
        None, Explorer.action_welcome, Explorer.action_command_palette, Explorer.action_keys,
        lambda app: app.go("formats"), lambda app: app.go("audit"),
        lambda app: app.shown.run_action("pick('format')"),
    ],
)  # fmt: skip
def test_a_hangup_at_any_moment_is_no_error(turns, act):
    asyncio.run(leave(turns, act))
