"""Frames, full-size panes, a second topic, colours, characters of the console, and the palette's words."""

import sys
from asyncio import sleep
from time import monotonic

import pytest
from textual.widgets import OptionList

from floatlab.tui.app.help_windows import EXAMPLES
from floatlab.tui.app.palette import Palette
from floatlab.tui.app.terminal import has_sixteen_colours, usual_theme
from floatlab.tui.glyphs import for_console
from floatlab.tui.themes import CYCLE, SIXTEEN
from tests.tui.stage import ANY_SIZE, driven, opened
from tests.tui.test_golden import HERE

VALUE = "show 1.12156456132 --fp16 --bf16"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_z_shows_one_pane_at_full_size(size):
    async with opened(VALUE, size) as person:
        screen, side = person.app.screen, person.app.screen.query_one("#side")
        screen.details.focus()
        await person.pilot.pause()
        small = side.region
        await person.press("z")
        assert side.region.size == (size[0], size[1] - 1)
        assert "significand" in person.screen
        assert "bfloat16" not in person.screen
        await person.press("z")
        assert side.region == small
        await person.press("z", "escape")
        assert side.region == small


@driven
async def test_large_screens_have_frames_and_further_topics():
    async with opened(VALUE, (160, 50)) as person:
        titles = next(line for line in person.screen.splitlines() if "─ binary16 ─" in line)
        assert "─ Path ─" in titles
        assert "─ Directions ─" in person.screen
        assert "E 15 − bias 15" in person.screen
        assert "RTZ  0x3c7c" in person.screen
        await person.press("v")
        assert "─ Details ─" in person.screen
        assert "─ Dialects ─" in person.screen
    async with opened(VALUE, (120, 40)) as person:
        assert "─ Bits ─" in person.screen
        details, directions = (person.app.screen.query_one(each).region for each in ("#side", "#beside"))
        assert details.bottom == directions.y
        assert "─ Dialects ─" not in person.screen
        screen, beside = person.app.screen, person.app.screen.query_one("#beside")
        for size, shown, framed in (((160, 50), True, True), ((120, 34), False, True), ((80, 24), False, False)):
            await person.pilot.resize_terminal(*size)
            end = monotonic() + 20  # the message of the new size comes later
            while (beside.display, screen.has_class("-framed")) != (shown, framed) and monotonic() < end:
                await sleep(0.01)
            assert (beside.display, screen.has_class("-framed")) == (shown, framed)


@driven
async def test_a_wide_screen_rounds_the_exact_sum_in_every_direction():
    async with opened("add 1.125 0.12457275390625 --fp16", (160, 50)) as person:
        assert "RTZ  0x3cff  1.2490234375  −0.5625 ulp  inexact" in person.screen
        await person.press("x")  # in practice, it would give the answer away
        assert "0x3cff" not in person.screen


@pytest.mark.parametrize(
    ("term", "colorterm", "few"),
    [
        ("linux", "", True), ("xterm", "", True), ("screen", "", True), ("vt220", "", True),
        ("xterm-256color", "", False), ("xterm", "truecolor", False), ("xterm-kitty", "", False), ("", "", False),
    ],
)  # fmt: skip
def test_the_theme_for_sixteen_colours_is_for_terminals_without_more(monkeypatch, term, colorterm, few):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colorterm)
    assert has_sixteen_colours() == few
    for ground, theme in (("15;0", SIXTEEN), ("0;15", "ansi-light"), ("0;default;7", "ansi-light"), ("", SIXTEEN)):
        monkeypatch.setenv("COLORFGBG", ground)
        assert usual_theme() == (theme if few else CYCLE[0])


def test_the_console_has_all_characters_of_the_screens():
    drawn = {c for path in HERE.glob("*.txt") for c in path.read_text(encoding="utf-8")}
    drawn = {c for c in drawn if not "\u2800" <= c <= "\u28ff"}  # the console has letters in place of Braille dots
    assert [c for c in sorted(drawn) if not for_console(c).isascii() and not _in_cp437(for_console(c))] == []
    assert all(len(for_console(c)) == 1 for c in drawn)


def _in_cp437(character):
    # Python's code page has the control characters in place of the symbols with these codes.
    return character in "☺☻♥♦♣♠•◘○◙♂♀♪♫☼►◄↕‼¶§▬↨↑↓→←∟↔▲▼" or character.encode("cp437", "ignore") != b""


@driven
async def test_without_colours_curves_are_letters_and_buttons_have_brackets(monkeypatch):
    command = "train 1.125 --update 0.00041999 --steps 9 --remedies plain,kahan"
    async with opened(command) as person:
        await person.rested()
        assert any("\u2800" <= c <= "\u28ff" for c in person.screen)
        assert "━ a plain" in person.screen
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(command) as person:
        await person.rested()
        assert not any("\u2800" <= c <= "\u28ff" for c in person.screen)
        assert "aaa" in person.screen
        assert "[▶ run]" in person.screen


@driven
async def test_without_colours_the_highlighted_row_of_a_list_is_underlined(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(VALUE) as person:
        await person.rested()
        for opens in ("f1", "f", "ctrl+p"):
            await person.press(opens)
            await person.rested()
            await person.press("down")
            await person.rested()
            choices = person.app.screen.query_one(OptionList)
            rows = [choices.render_line(y) for y in range(6)]
            marked = [any(part.style and part.style.underline for part in row if part.text.strip()) for row in rows]
            assert 0 < sum(marked) < len(rows), opens
            await person.press("escape")
            await person.rested()


@driven
async def test_sixteen_colours_have_a_theme_that_draws_rows_in_reverse():
    async with opened("formats", theme=SIXTEEN) as person:
        assert person.app.chrome.plain
        assert person.app.native_ansi_color


@driven
async def test_the_palette_finds_what_people_call_things():
    async with opened(VALUE) as person:
        palette = Palette(person.app.screen)
        entries = palette._entries()

        def found(typed):
            scores = {entry.name: (entry.score(typed), entry.words) for entry in entries}
            return [name for name in sorted(scores, key=lambda name: -scores[name][0]) if scores[name][0]]

        assert found("half")[0] == found("float16")[0] == "Format: binary16"
        assert found("double")[0] == "Format: binary64"
        assert {"Format: e4m3fn", "Format: e5m2"} <= set(found("fp8")[:9])
        assert found("fma")[0].startswith("Example: fma ")
        assert "Function: fma" in found("fma")
        assert found("why is 0.1")[0] == EXAMPLES[0].title
        assert found("machine epsilon")[0] == "Machine epsilon of binary16"
        assert found("largest half")[0] == "Largest number of binary16"
        assert {"Edit: the next number above", "Edit: the next number below"} <= set(found("ulp")[:2])
        assert found("")[0] == EXAMPLES[0].title
        words = {entry.name: entry.words for entry in entries}
        assert words["Edit: the next number above"].endswith("key +")
        assert words["Next view"] == "key v"
        next(entry.do for entry in entries if entry.name == "Largest number of binary16")()
        await person.pilot.pause()
        assert person.app.shown.question.values == ("65504",)


@driven
async def test_a_page_is_saved_to_a_named_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with opened(VALUE) as person:
        for name, part in (("a.svg", "<svg"), ("a.txt", "binary16"), ("a.json", '"0x3c7c"'), ("a.html", "<html")):
            await person.press("S")
            person.app.screen.query_one("Input").value = ""
            await person.type(name)
            await person.press("enter")
            assert part in (tmp_path / name).read_text(encoding="utf-8")
            assert f"to {name}" in person.screen.splitlines()[-1]
        await person.press("S")
        await person.type("typed.html")  # before the suggested ending, which stays in the box
        await person.press("enter")
        assert "<html" in (tmp_path / "typed.html").read_text(encoding="utf-8")
        assert "to typed.html" in person.screen.splitlines()[-1]
        await person.press("S")
        person.app.screen.query_one("Input").value = "a.gif"
        await person.press("enter")
        assert ".gif is not supported: use .txt, .svg" in person.screen
        (tmp_path / "a.txt").write_text("mine")
        person.app.screen.query_one("Input").value = "a.txt"
        await person.press("enter")
        assert "exists: Enter replaces it" in person.screen
        assert (tmp_path / "a.txt").read_text() == "mine"
        await person.press("enter")
        assert "binary16" in (tmp_path / "a.txt").read_text(encoding="utf-8")


@driven
async def test_a_page_is_saved_as_a_picture_in_the_colours_of_the_theme(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.image import imread

    monkeypatch.chdir(tmp_path)
    grounds = {"floatlab-dark": "#14171c", "floatlab-light": "#ffffff", SIXTEEN: "#ffffff"}
    async with opened(VALUE) as person:
        for theme, ground in grounds.items():
            person.app.theme = theme
            await person.press("S")
            person.app.screen.query_one("Input").value = f"{theme}.png"
            await person.press("enter")
            pixels = imread(tmp_path / f"{theme}.png")
            assert "#" + "".join(f"{round(255 * part):02x}" for part in pixels[2, 2, :3]) == ground


@driven
async def test_a_picture_needs_matplotlib(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.image", None)
    async with opened(VALUE) as person:
        await person.press("S")
        person.app.screen.query_one("Input").value = "a.png"
        await person.press("enter")
        assert ".png needs matplotlib: pip install 'floatlab[plot]'" in person.screen
        assert not list(tmp_path.iterdir())


@driven
async def test_the_number_is_copied_as_a_literal():
    async with opened("show 1.1 --fp16") as person:
        texts = {name: text() for name, (_, text) in person.app.screen.copies().items()}
        assert texts["exact"] == texts["python"] == "1.099609375"
        assert texts["c"] == "0x1.198p+0f16"
        assert texts["numpy"] == "np.uint16(0x3c66).view(np.float16)"
        assert texts["json"].startswith("{")
        assert "<html" in texts["html"]


@driven
async def test_the_palette_opens_what_is_typed():
    async with opened(VALUE) as person:
        palette = Palette(person.app.screen)
        for typed, verb in (("nan", "show"), ("0.1+0.2", "add")):
            hits = [hit async for hit in palette.search(typed)]
            best = max(hits, key=lambda hit: hit.score)
            best.command()
            await person.pilot.pause()
            assert person.app.shown.question.verb == verb


@driven
async def test_z_keeps_the_step_in_view():
    async with opened("add 0.1 0.2 --fp64", (46, 20)) as person:
        await person.press("end")
        for _ in range(3):
            assert "≈ 0.30000000000000004" in person.screen
            await person.press("z")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_z_shows_the_view_if_all_bits_can_be_seen_already(size):
    async with opened(VALUE, size) as person:
        assert "BitRow" in type(person.app.screen.focused).__name__
        await person.press("z")
        assert person.app.screen.maximized.id == "side"


@driven
async def test_a_topic_alone_in_its_column_has_the_whole_column():
    async with opened("show 0.1 --fp16", (160, 50)) as person:
        topic = person.app.screen.query_one("#third")
        assert topic.border_title == "Dialects"
        assert topic.region.bottom == person.app.screen.query_one("#body").region.bottom


@driven
async def test_boxes_of_sixteen_colours_are_underlined():
    async with opened(VALUE, (80, 24), theme=SIXTEEN) as person:
        assert person.app.screen.value.styles.text_style.underline


@driven
async def test_the_first_click_into_a_box_selects_its_text():
    async with opened("add 1.125 2 --fp16", (80, 24)) as person:
        box = next(iter(person.app.screen.boxes()))
        await person.pilot.click(box, offset=(2, 0))
        await person.type("7")
        assert box.value == "7"
        await person.type(".5")
        await person.pilot.click(box, offset=(1, 0))
        await person.type("1")
        assert box.value == "71.5"


@pytest.mark.parametrize(
    ("size", "lines"),
    [
        ((46, 20), ["F2 Inspect F3 Arithmetic F4 Formats F5 Block", "F6 Reduce F7 Compare F8 Train F9 Audit"]),
        ((80, 24), ["F2 Inspect F3 Arith F4 Formats F5 Block F6 Reduce F7 Compare F8 Train F9 Audit"]),
    ],
)
@driven
async def test_every_tab_has_its_key(size, lines):
    async with opened(VALUE, size) as person:
        assert [each.strip() for each in person.screen.splitlines()[: len(lines)]] == lines


@driven
async def test_short_tables_leave_the_room_to_what_is_below_them():
    async with opened("audit random:normal:8x32:seed=1@bf16 --to e4m3", (80, 24)) as person:
        await person.press("v")
        assert person.app.screen.query_one("#tensors").region.height < 5
    async with opened("block 0.1 -2.5 3 --to nvfp4", (80, 24)) as person:
        await person.press("v")
        assert person.app.screen.query_one("#elements").region.height < 6
        assert "RNE ▾" in next(line for line in person.screen.splitlines() if "rule nearest" in line)


@driven
async def test_a_short_explanation_has_no_scrollbar():
    async with opened("fma 1.0009765625 1.0009765625 -1.001953125 --fp16", (120, 40)) as person:
        await person.press("end")
        why = person.app.screen.query_one("#why")
        assert (len(why.lines), why.show_vertical_scrollbar) == (2, False)


@driven
async def test_nothing_is_saved_or_copied_before_there_is_an_answer():
    async with opened(VALUE, (80, 24)) as person:
        screen, copied = person.app.screen, []
        person.app.copy = lambda text, words: copied.append(words)
        screen.answers = []
        await person.press("S", "c", "y", "Y")
        assert (person.app.screen, copied) == (screen, [])
