"""Arithmetic, driven as a person would drive it: operands, verbs, steps, the player, practice and the witness."""

import asyncio
from contextlib import redirect_stdout
from io import StringIO
from threading import Event

import pytest
from textual.widgets import Input, OptionList, ProgressBar

import floatlab
from floatlab import Direction, decode, parse_format, read
from floatlab.cli.main import main
from floatlab.cli.parser import read_question
from floatlab.page.model import Page, Strip
from floatlab.page.text_layout import to_text
from floatlab.tui.screens.arithmetic import steps
from floatlab.tui.screens.arithmetic.operands import WitnessSearch
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.verbs.arithmetic.answer import ARITIES
from floatlab.verbs.option import RULES
from floatlab.verbs.practice.exercises import exercises
from floatlab.verbs.question import Question
from floatlab.verbs.registry import command_of
from tests.tui.stage import ANY_SIZE, SIZES, driven, opened, retype

START = "add 1.125 0.12457275390625 --fp16"
FMA = "fma 0.1 10 -1 --fp16"
MARK = "▸"
TOWARD_ZERO = floatlab.Context(rounding="RTZ")
LABEL = 15  # columns before the content of a row


def part(person, name):
    return person.app.shown.query_one(name)


def printed(words, width=80):
    """Return what the command line prints; the explorer listens to the standard output itself."""
    with redirect_stdout(StringIO()) as out:
        assert main([*words.split(), "--width", str(width)]) == 0
    return out.getvalue()


def result(person):
    return person.app.shown.answers[0].results[0]


def words(choices):
    return dict(choices.options)


def picture(person):
    return [part(person, name).text for name in ("#title", "#bits-a", "#player", "#why", "#flags")]


def verdict(person):
    """Return the verdict on the last answer."""
    return str(part(person, "#prompt").content) if part(person, "#practice").has_class("-told") else ""


def complaint(person):
    line = part(person, "#complaint")
    return str(line.render()) if line.display else ""


async def until(person, holds):
    """Wait for the effect of a clock or a thread."""
    for _ in range(2000):
        if holds():
            await person.pilot.pause()
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never came")


async def put(person, selector, text):
    """Put text into a box at once, as pasting does."""
    box = part(person, selector)
    box.focus()
    box.value = text
    await person.pilot.pause()


async def ask(person, words):
    """Go to another question, as an example of the palette does."""
    person.app.ask(read_question(words.split()))
    await person.pilot.pause()


async def pick(person, text):
    """Narrow a picker's list and take the highlighted choice."""
    await person.press("ctrl+u")  # a name that was refused is still there
    await person.type(text)
    await person.press("enter")


async def command(person, name):
    """Take a command of the palette by its name."""
    await person.press("ctrl+p")
    person.app.screen.query_one(Input).value = name
    shown = person.app.screen.query_one(OptionList)
    await until(person, lambda: shown.option_count and name in str(shown.get_option_at_index(0).prompt))
    if shown.highlighted is None:
        await person.press("down")
    await person.press("enter")


# Operands.


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_operands_of_every_kind_are_typed(size):
    meant = {
        "1.5": "1.5", "0.1@fp16": read("0.1", "fp16"), "bits:0x3c01": decode(0x3C01, "fp16"), "inf": "inf",
        "nan": "nan", "1/3": "1/3", "0x1.8p3": "0x1.8p3", "-2^-24": "-2^-24",
    }  # fmt: skip
    async with opened("add 1 2 --fp16", size) as person:
        await person.press("slash")
        assert person.app.focused.id == "operand-a"
        for text, operand in meant.items():
            if size == SIZES[1]:
                await person.fill("#operand-a", text)
            else:
                await put(person, "#operand-a", text)
            assert result(person) == floatlab.add(operand, "2", "fp16").result
            assert not person.app.focused.has_class("-wrong")
            assert complaint(person) == ""
        await person.press("tab")
        assert person.app.focused.id == "operand-b"
        await person.press("end", "5", "enter")
        assert result(person) == floatlab.add("-2^-24", "25", "fp16").result
        assert person.app.focused.id == "player"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", SIZES)
@driven
async def test_a_wrong_operand_is_marked_and_the_last_good_picture_stays(size):
    async with opened(START, size) as person:
        box = part(person, "#operand-b")
        box.focus()
        await person.pilot.pause()
        before = picture(person)
        for text in ("", "abc", "1e", "0.1@fp17", "0.1@", "bits:0xzz", "bits:0x12345", "[red]x[/]", "1.5 2.5"):
            await put(person, "#operand-b", text)
            assert box.has_class("-wrong")
            assert complaint(person).startswith("! ")
            assert complaint(person)[2:22].split()[0] in person.screen
            assert picture(person) == before
            assert person.app.shown.question.values == ("1.125", "0.12457275390625")
            await person.press("escape")  # the text stays, to be corrected
            assert box.value == text
            assert "u goes back" in complaint(person)
            await person.press("u")
            assert box.value == "0.12457275390625"
            assert not box.has_class("-wrong")
            assert complaint(person) == ""
        # Typed letter by letter: the last valid text is the one before the mistake.
        await person.fill("#operand-a", "2.5x")
        assert part(person, "#operand-a").has_class("-wrong")
        await person.press("tab")
        assert part(person, "#operand-a").value == "2.5x"
        await put(person, "#operand-b", "4")  # with the last valid text of the other box, which is kept
        assert part(person, "#operand-a").value == "2.5x"
        assert result(person) == floatlab.add("2.5", "4", "fp16").result
        await person.press("escape", "u", "u")
        assert part(person, "#operand-a").value == "2.5"
        assert result(person) == floatlab.add("2.5", "0.12457275390625", "fp16").result


@driven
async def test_what_is_typed_is_in_sight_where_there_is_little_room():
    async with opened(START, (46, 20)) as person:
        await person.press("end", "slash")
        await person.fill("#operand-a", "3")
        assert "▸ result" in person.screen
        assert f"0x{result(person).code:04x}" in person.screen


# Bits.


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_bits_are_flipped_by_key_and_by_mouse(size):
    async with opened(START, size) as person:
        row, other = part(person, "#bits-a"), decode(0x2FF9, "fp16")
        code = 0x3C80
        await person.press("end")
        row.focus()
        await person.pilot.pause()
        for keys, bit in ((("end", "space"), 0), (("h", "h", "space"), 2), (("home", "space"), 15)):
            await person.press(*keys)
            code ^= 1 << bit
            assert row.bits == f"{code:016b}"
            assert float(read(part(person, "#operand-a").value, "fp16").result) == float(decode(code, "fp16"))
            assert result(person) == floatlab.add(decode(code, "fp16"), other, "fp16").result
            assert f"{result(person).code:016b}" in part(person, "#player").text.replace(" ", "")
        await person.press("1", "0")  # as typing does: set, and go on
        code = code & ~(1 << 14) | 1 << 15
        assert row.bits == f"{code:016b}"
        below = part(person, "#bits-b")
        await person.press("down")
        assert person.app.focused is below
        part(person, "#body").scroll_home(animate=False)
        await person.pilot.pause()
        for bit in (0, 9, 14, 15):
            await person.click_bit(below, bit)
            other = decode(other.code ^ 1 << bit, "fp16")
            assert below.bits == f"{other.code:016b}"
            assert result(person) == floatlab.add(decode(code, "fp16"), other, "fp16").result


@driven
async def test_edits_change_the_operand_that_leads():
    async with opened(START) as person:
        await person.press("plus", "plus", "minus")
        assert result(person) == floatlab.add(decode(0x3C81, "fp16"), decode(0x2FF9, "fp16"), "fp16").result
        await person.press("s")
        assert part(person, "#operand-a").value.startswith("-")
        assert f"{MARK} a" in part(person, "#bits-a").text
        # Edits apply to the box or the row that was left.
        part(person, "#operand-b").focus()
        await person.pilot.pause()
        await person.press("escape", "s")
        assert f"{MARK} b" in part(person, "#bits-b").text
        assert part(person, "#operand-b").value == "-0.12457275390625"
        await person.fill("#operand-b", "65504")
        await person.press("escape", "plus", "plus")
        assert "inf is the last number" in complaint(person)
        assert part(person, "#operand-b").value == "inf"


@driven
async def test_operands_of_mixed_formats_keep_their_own():
    async with opened("add 0.1@fp16 0.2@fp32") as person:
        rows = [part(person, f"#bits-{name}") for name in "ab"]
        assert [len(row.bits) for row in rows] == [16, 32]
        rows[0].focus()
        await person.pilot.pause()
        await person.press("end", "space", "plus")
        a = decode(read("0.1", "fp16").result.code ^ 1, "fp16").next_up
        assert part(person, "#operand-a").value.endswith("@fp16")
        await person.press("down", "home", "space")
        b = decode(read("0.2", "fp32").result.code ^ 1 << 31, "fp32")
        assert part(person, "#operand-b").value.endswith("@fp32")
        assert [len(row.bits) for row in rows] == [16, 32]
        assert [datum.code for datum in person.app.shown.answers[0].operands] == [a.code, b.code]
        assert result(person) == floatlab.add(a, b).result


@driven
async def test_a_bit_flipped_does_not_change_the_format_that_was_found():
    async with opened("add 1 2") as person:
        format = result(person).format
        row = part(person, "#bits-a")
        await person.click_bit(row, 0)
        assert result(person).format == format
        assert len(row.bits) == format.width


# Verbs.


@pytest.mark.parametrize(
    "verbs",
    [
        pytest.param(("add", "sqrt", "fma", "cmp", "toint", "minnum", "nextdown"), id="some"),
        pytest.param(tuple(ARITIES), id="all", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_every_verb_by_key_and_by_click_keeps_the_operands(size, verbs):
    async with opened(FMA, size) as person:
        values = ("0.1", "10", "-1")
        for verb in (*verbs, "add") if size == SIZES[1] else ("sqrt", "fma"):
            await person.press("o")
            await pick(person, f"{verb} ")
            assert person.app.shown.question.verb == verb
            assert person.app.shown.question.values == values[: ARITIES[verb]]
            boxes = [part(person, f"#operand-{name}").display for name in "abc"]
            assert boxes == [place < ARITIES[verb] for place in range(3)]
        for verb in verbs:
            if part(person, "#verbs").display and verb in dict(part(person, "#verbs").options):
                await person.choose("#verbs", verb)
            elif part(person, "#verbs").display:
                await person.press("o")
                await pick(person, f"{verb} ")
            else:
                await person.choose("#verb", "operation")
                await person.type(f"{verb} ")
                assert await person.pilot.click(OptionList, offset=(4, 0))
            assert person.app.shown.question.verb == verb
            assert person.app.shown.question.values == values[: ARITIES[verb]]
            assert verb in person.screen
        for verb in ("sqrt", "fma") if size == SIZES[1] else ():
            await command(person, f"Operation: {verb}")
            assert person.app.shown.question.verb == verb
        assert person.app.shown.question.formats == (parse_format("fp16"),)


@driven
async def test_an_operand_that_is_new_is_one():
    async with opened("sqrt 2 --fp16") as person:
        await person.choose("#verbs", "fma")
        assert person.app.shown.question.values == ("2", "1", "1")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_toint_to_every_type(size):
    async with opened("rint -3.5 --fp16", size) as person:
        await person.press("i")  # no type to choose here
        assert not isinstance(person.app.focused, Input)
        assert "integer" not in words(part(person, "#controls"))
        await person.press("o")
        await pick(person, "toint")
        assert words(part(person, "#controls"))["integer"] == "to i32"
        await person.press("i")
        await pick(person, "i8")
        found = floatlab.to_integer("-3.5", 8, True, format="fp16")
        assert person.app.shown.answers[0].words() == [str(found.value)]
        assert "i8" in person.screen
        await person.choose("#controls", "integer")
        await pick(person, "ui16")
        assert words(part(person, "#controls"))["integer"] == "to ui16"
        assert command_of(person.app.shown.question) == "floatlab toint -3.5 --fp16 --int ui16"
        assert "● invalid" in part(person, "#flags").text
        await person.press("i")
        await pick(person, "i32")
        assert command_of(person.app.shown.question) == "floatlab toint -3.5 --fp16"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_cmp_says_how_they_stand(size):
    async with opened("cmp 0.1 0.2 --fp16", size) as person:
        assert "0.1 < 0.2 in binary16" in person.screen
        for value, word in (("0.1", "equal"), ("0.05", "greater"), ("nan", "unordered")):
            await person.fill("#operand-b", value)
            assert f"a is         {word}" in part(person, "#player").text
            assert person.app.shown.answers[0].words() == [word]
        await person.press("escape", "y", "a")  # a relation is not a number: there is nothing to pin
        assert person.app.pins == {}


# Steps.


def at(person):
    return person.app.shown.scene


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", SIZES)
@driven
async def test_steps_by_key_and_by_click(size):
    async with opened(START, size) as person:
        task, names = person.app.shown, ["operands", "align", "sum", "round", "result"]
        assert [scene.name for scene in task.scenes] == names
        assert at(person) == 0
        for key, step in (
            *(
                ("end", 4),
                ("n", 0),
                ("n", 1),
                ("p", 0),
                ("p", 0),
                ("end", 4),
                ("p", 3),
                ("home", 0),
                ("3", 2),
                ("9", 2),
                ("5", 4),
            ),
            *(("left", 3), ("right", 4), ("h", 3), ("h", 2), ("l", 3)),
        ):
            await person.press(key)
            assert at(person) == step, key
            assert part(person, "#steps").current == str(step)
        await person.press("home")
        for step in (1, 0):
            part(person, "#body").scroll_home(animate=False)
            await person.pilot.pause()
            await person.choose("#steps", str(step))
            assert at(person) == step
        await person.choose("#controls", "next")
        assert at(person) == 1
        await person.choose("#controls", "back")
        assert at(person) == 0
        await command(person, "Step 3: sum")
        assert at(person) == 2


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", SIZES)
@driven
async def test_what_is_new_is_in_sight(size):
    async with opened(START, size) as person:
        task, player = person.app.shown, part(person, "#player")
        for words in (FMA, "fma 0.1 10 -1 --fp128", "div 1 3 --fp64"):
            await ask(person, words)
            await person.press("home")
            for step in range(1, len(task.scenes)):
                await person.press("n")
                assert at(person) == step
                assert any(MARK in run.text for run in player.lines[player.newest])
                newest = player.text.splitlines()[player.newest].strip()
                assert any(newest in each for each in person.screen.splitlines()), (words, step)


@driven
async def test_a_small_screen_scrolls_with_the_arrows():
    async with opened(FMA, (46, 20)) as person:
        body = part(person, "#body")
        await person.press("end")
        assert person.app.focused.id == "player"
        low = body.scroll_offset.y
        assert low > 0
        await person.press("up", "up", "pageup")
        assert body.scroll_offset.y < low - 2
        await person.press("pagedown", "down")
        assert body.scroll_offset.y > 0


def plain(lines):
    return [each.replace(MARK, " ").rstrip() for each in lines]


WORDS = (
    START, FMA, "add 1.125@fp32 0.1246@fp16", "sub 1 1 --fp16", "mul 255 257 --bf16", "div 1 3 --fp32", "sqrt 2 --fp64",
    "rem 5 3 --fp16", "rint 2.5 --fp16", "toint -3.7 --fp16 --int i8", "cmp 0.1 0.2 --fp16", "fma 0.1 10 -1 --fp128",
)  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", SIZES)
@driven
async def test_the_last_step_holds_all_that_the_command_prints(size):
    async with opened(START, size) as person:
        for words in WORDS:
            await ask(person, words)
            await person.press("end")
            strips = [block for block in person.app.shown.page().blocks if isinstance(block, Strip)]
            title, player = part(person, "#title"), part(person, "#player")
            rows = [part(person, f"#bits-{name}") for name in "abc"[: ARITIES[words.split()[0]]]]
            for widget in (title, *rows):
                lines = plain(printed(words, widget.scrollable_content_region.width).splitlines())
                assert all(each in lines for each in plain(widget.text.splitlines()))
            width = player.scrollable_content_region.width
            operands = plain(to_text(Page(strips[: len(rows)]), width).splitlines())
            lines = plain(printed(words, width).splitlines())[len(title.lines) :]
            shown = plain(player.text.splitlines())
            # An operand's bits are drawn above; here its other rows have its name.
            for each in (each for each in lines if each not in operands):
                assert each in shown or any(each[LABEL:] == line[LABEL:] != "" for line in shown), (words, each)
            # Below the operands all of it, in the same order.
            after = lines[1 + max(i for i, each in enumerate(lines) if each in operands) :]
            for each, line in zip(after, shown[-len(after) :], strict=True):
                assert each == line or (not each[:LABEL].strip() and each[LABEL:] == line[LABEL:]), words


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_lamps_light_up_at_the_step_that_raises_them(size):
    raised = {
        "add 1.125 0.12457275390625 --fp16": {"inexact": "round"},
        "div 1 0 --fp16": {"divide by zero": "rule"},
        "mul 65504 2 --fp16": {"overflow": "round", "inexact": "round"},
        "mul 2^-20 0.3 --fp16": {"underflow": "round", "inexact": "round"},
        "sqrt -1 --fp16": {"invalid": "rule"},
        "mul 3 4 --fp16": {},
    }
    async with opened(START, size) as person:
        lamps = part(person, "#flags")
        for words, at_step in raised.items():
            await ask(person, words)
            await person.press("home")
            names = [scene.name for scene in person.app.shown.scenes]
            for step in range(len(names)):
                text = " ".join(lamps.text.split())
                for name in ("invalid", "divide by zero", "overflow", "underflow", "inexact"):
                    lit = name in at_step and step >= names.index(at_step[name])
                    assert f"{'●' if lit else '○'} {name}" in text, (words, names[step], name)
                await person.press("n")


# The player moves.


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_smaller_term_slides_to_its_place(size, monkeypatch):
    async with opened(START, size, slide=True) as person:
        task, player = person.app.shown, part(person, "#player")
        pages = [*task.scenes[1].frames, task.scenes[1].page]
        turned = []
        turn = player._turn

        def watched():
            turn()
            turned.append(player.page)

        monkeypatch.setattr(player, "_turn", watched)
        await person.press("home")
        await person.press("n")
        assert at(person) == 1
        await until(person, lambda: player.page == pages[-1] and player._slider is None)
        assert turned == pages
        # A key ends it: the step that it goes to is drawn whole.
        monkeypatch.setattr(steps, "_FRAME", 30.0)
        monkeypatch.setattr(steps, "_SLIDE", 600.0)
        player.speed = 0.001
        await person.press("p", "n")
        assert player.page == pages[0]
        await person.press("n")
        assert at(person) == 2
        assert player.page == task.scenes[2].page
        await person.press("p")
        assert player.page == pages[-1]  # back without an animation


@driven
async def test_nothing_slides_where_the_settings_say_so():
    async with opened(START) as person:
        await person.press("home", "n")
        assert part(person, "#player").page == person.app.shown.scenes[1].page


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_it_plays_pauses_and_changes_its_speed(size):
    async with opened(START, size) as person:
        task, player, controls = person.app.shown, part(person, "#player"), part(person, "#controls")
        seen = []
        task.watch(task, "scene", lambda scene: seen.append(scene), init=False)
        player.speed = 50.0
        await person.press("end", "space")
        seen.remove(4)
        await until(person, lambda: not player.playing)
        assert seen == [0, 1, 2, 3, 4]
        player.speed = 0.25
        await person.press("space")
        assert player.playing
        assert words(controls)["play"] == "pause 0.25/s"
        await person.press("space")
        assert not player.playing
        assert words(controls)["play"] == "play 0.25/s"
        await person.press("greater_than_sign")
        assert words(controls)["play"] == "play 0.5/s"
        await person.press(*["greater_than_sign"] * 9)
        assert player.speed == steps.SPEEDS[-1]
        await person.press(*["less_than_sign"] * 9)
        assert player.speed == steps.SPEEDS[0]
        await person.choose("#controls", "play")
        assert player.playing
        await person.press("less_than_sign")
        assert player.playing
        await person.press("p")  # a step by hand stops it
        assert not player.playing
        assert words(controls)["play"].startswith("play")
        await person.press("space")
        await person.press("slash")
        await person.fill("#operand-a", "2")  # another player, another beginning
        assert not player.playing


# Rounding and formats.


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_direction_is_picked(size):
    async with opened(START, size) as person:
        await person.press("r")
        await pick(person, "toward zero")
        await person.press("end")
        assert result(person) == floatlab.add("1.125", "0.12457275390625", "fp16", TOWARD_ZERO).result
        assert "RTZ" in person.screen
        assert "round RTZ" in part(person, "#player").text
        up = next(rule for rule in RULES if rule.apply(floatlab.Context()).rounding is Direction.RTP)
        await command(person, f"{up.group}: {up.words}")
        assert person.app.shown.question.context.rounding is Direction.RTP
        await person.choose("#controls", "rules")
        await pick(person, "stochastic")
        assert "SR" in person.screen
        await person.press("u", "u", "u")
        assert person.app.shown.question.context == floatlab.Context()


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_the_format_of_the_result_is_picked(size):
    async with opened(START, size) as person:
        controls = part(person, "#controls")
        for typed, name in (("e5m6", "e5m6"), ("bfloat", "bf16"), ("fp128", "fp128"), ("e4m3fn", "e4m3")):
            await person.press("f")
            await pick(person, typed)
            assert result(person) == floatlab.add("1.125", "0.12457275390625", name).result
            assert words(controls)["format"] == f"in {name}"
            assert f"in {name}" in person.screen
        before = person.app.shown.question
        await person.press("f")
        await pick(person, "e5q")
        assert "e5q" in complaint(person)
        assert person.app.shown.question == before
        await person.choose("#controls", "format")
        await pick(person, "automatic")
        assert person.app.shown.question.formats == ()
        assert words(controls)["format"] == "in fp32, automatic"
        assert result(person) == floatlab.add("1.125", "0.12457275390625").result
        await command(person, "Format: binary64")
        assert words(controls)["format"] == "in fp64"


# Fused beside separate.


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_fused_beside_separate_and_where_they_part(size):
    async with opened(FMA, size) as person:
        player = part(person, "#player")
        await person.press("end")
        if not person.app.shown.small:
            assert "different bits" in person.screen
        await person.press("p", "n")
        assert "different bits" in person.screen
        await person.press("3")
        assert f"{MARK} round RNE" in player.text
        assert "here they differ" in " ".join(player.text.split())
        assert " ".join(part(person, "#why").text.split()).startswith("Separate: binary16 keeps 11 digits")
        heads = ["fused: the product keeps all its digits", "separate: the product is rounded first"]
        together = [each for each in player.text.splitlines() if all(head in each for head in heads)]
        assert bool(together) == (size[0] >= 116)
        assert all(head in player.text for head in heads)


async def found(person):
    await until(person, lambda: not isinstance(person.app.screen, WitnessSearch))


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_witness_is_found(size):
    async with opened("fma 1 2 3", size) as person:
        await person.press("end")
        assert "the same bits" in " ".join(part(person, "#player").text.split())
        format = result(person).format
        for way in ("key", "click", "palette"):
            if way == "key":
                await person.press("w")
            elif way == "click":
                await person.choose("#controls", "witness")
            else:
                await command(person, "Find an example where they differ")
            await found(person)
            assert result(person).format == format  # the operands differ in the format that was searched
            await person.press("end")
            a, b, c = person.app.shown.answers[0].operands
            fused, separate = floatlab.fma(a, b, c, format), floatlab.multiply_then_add(a, b, c, format)
            assert fused.result != separate.result
            assert "different bits" in part(person, "#player").text
            await person.press("u")
            assert person.app.shown.question.values == ("1", "2", "3")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_long_search_shows_how_far_it_is_and_is_given_up(size, monkeypatch):
    told, ended = Event(), Event()

    def search(format, context, near, progress):
        done = 0
        while progress(min(done, 40), 100):
            done += 10
            if done > 40:
                told.set()
                ended.wait(0.005)
        ended.set()

    monkeypatch.setattr("floatlab.tui.screens.arithmetic.operands.witness", search)
    async with opened(FMA, size) as person:
        before = person.app.shown.question
        await person.press("end", "w")
        await until(person, told.is_set)
        bar = person.app.screen.query_one(ProgressBar)
        await until(person, lambda: bar.percentage == 0.4)
        assert "40%" in person.screen
        assert "Escape cancels" in person.screen
        await person.press("escape")
        assert not isinstance(person.app.screen, WitnessSearch)
        await until(person, ended.is_set)
        assert person.app.shown.question == before
        assert "different bits" in part(person, "#player").text


@driven
async def test_a_format_without_a_witness_says_so(monkeypatch):
    async with opened("fma 0.1@fp16 2@fp32 1") as person:
        await person.press("w")
        await found(person)
        assert complaint(person) == "this needs a single format: choose it with f"
        await person.press("N")
        assert complaint(person) == "this needs a single format: choose it with f"
        monkeypatch.setattr("floatlab.tui.screens.arithmetic.operands.witness", lambda *_, **__: None)
        await person.press("f")
        await pick(person, "e5m2")
        await person.press("w")
        await found(person)
        assert complaint(person).startswith("e5m2: no numbers were found")
        await person.choose("#verbs", "add")
        await person.press("w")  # nothing is searched if there is only one computation
        assert not isinstance(person.app.screen, WitnessSearch)


# Practice.


def asked(person):
    practice = part(person, "#practice")
    return str(part(person, "#prompt").render()) if practice.has_class("-asking") else ""


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_practice_hides_each_step_until_it_is_answered(size):
    async with opened(START, size) as person:
        task, player = person.app.shown, part(person, "#player")
        posed = exercises(task.answers[0].scenes(True))
        await person.press("x")
        assert at(person) == 0
        assert asked(person) == posed[1].prompt
        assert posed[1].prompt.split("?")[0][:30] in person.screen
        assert "align" not in player.text
        await person.type("4")
        await person.press("enter")
        assert at(person) == 1
        assert verdict(person) == "✓ right: 4; n for the next question"
        assert words(part(person, "#controls"))["practice"] == "end practice 1/1"
        await person.press("n")
        assert verdict(person) == ""
        assert asked(person) == posed[2].prompt
        assert "sum" not in player.text
        assert at(person) == 1
        await person.type("1.5")  # wrong
        await person.press("enter")
        assert at(person) == 2
        assert verdict(person) == "✗ the answer is 1.24957275390625; n for the next question"
        await person.press("n")
        assert asked(person) == posed[3].prompt
        assert "round RNE" not in player.text
        await person.choose("#guesses", "+1")
        assert at(person) == 3
        assert verdict(person).startswith("✓ right: +1")
        await person.press("n")
        await person.press("enter")  # nothing is typed: show it
        assert at(person) == 4
        assert "the answer is 1.25" in verdict(person)
        assert "N for other operands" in verdict(person)
        assert words(part(person, "#controls"))["practice"] == "end practice 2/4"
        await person.press("n", "n")  # back at the beginning, with no question left
        assert at(person) == 1
        assert asked(person) == ""


@driven
async def test_practice_asks_again_after_what_is_no_answer():
    async with opened(START) as person:
        task = person.app.shown
        first = exercises(task.answers[0].scenes(True))[1]
        await person.press("x")
        for text in ("four", "4 places", "1.2.3"):
            await retype(person, "#guess", text)
            await person.press("enter")
            assert asked(person) == f"'{text}' is not an answer: type {first.kind}. {first.prompt}"
            assert at(person) == 0
            assert words(part(person, "#controls"))["practice"] == "end practice 0/0"
        await retype(person, "#guess", "4")
        await person.press("enter")
        assert words(part(person, "#controls"))["practice"] == "end practice 1/1"


@driven
async def test_practice_refuses_to_jump_and_ends():
    async with opened(START) as person:
        await person.press("x", "escape")
        for key in ("3", "home", "end", "space"):
            await person.press(key)
            assert at(person) == 0
            assert complaint(person) == "in practice, steps are shown one by one: n asks about the next step"
        await person.choose("#steps", "4")
        assert at(person) == 0
        await command(person, "Step 5: result")
        assert at(person) == 0
        await person.press("n")
        assert asked(person)
        await person.press("escape", "p", "x")
        assert asked(person) == ""
        assert at(person) == 4
        assert words(part(person, "#controls"))["practice"] == "practice"
        assert "exercise" not in words(part(person, "#controls"))
        await person.press("home", "end", "2")
        assert at(person) == 1
        await person.choose("#controls", "practice")
        assert asked(person)
        await person.choose("#controls", "practice")  # from the box too
        assert asked(person) == ""
        assert not isinstance(person.app.focused, Input)


@driven
async def test_going_back_takes_the_question_back():
    async with opened(START) as person:
        await person.press("x", "4", "enter", "n", "escape")
        assert asked(person)
        await person.press("p")
        assert at(person) == 0
        assert asked(person) == ""
        await person.press("n")  # answered before
        assert at(person) == 1
        await person.press("n")
        assert "exact sum" in asked(person)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_other_exercises(size):
    async with opened("mul 3 5", size) as person:
        format = result(person).format
        await person.press("x", "escape")
        for way in ("N", "click"):
            before = person.app.shown.question.values
            await (person.press("N") if way == "N" else person.choose("#controls", "exercise"))
            assert person.app.shown.question.values != before
            assert result(person).format == format
            assert asked(person)
            assert at(person) == part(person, "#practice").first
            await person.press("escape")
        # Other operands give other questions, so answered steps are hidden again.
        await person.fill("#operand-a", "1.1")
        await person.press("escape", "n")
        assert asked(person)
        await person.press("enter")
        shown = at(person)
        assert shown > part(person, "#practice").first
        await person.press("plus")
        assert at(person) == part(person, "#practice").first
        await person.press("u")
        assert at(person) == part(person, "#practice").first


@driven
async def test_where_there_is_nothing_to_ask():
    async with opened("cmp 1 2 --fp16") as person:
        await person.press("x")
        assert complaint(person) == "there are no questions about this operation on these operands"
        assert words(part(person, "#controls"))["practice"] == "practice"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "words", [FMA, "div 1 3 --fp16", "div 1 0 --fp16", "sqrt 2 --fp32", "rem 5 3 --fp16", "rint 2.5"]
)
@driven
async def test_every_question_can_be_answered(words):
    async with opened(words) as person:
        posed = exercises(person.app.shown.answers[0].scenes(True))
        await person.press("x")
        while asked(person):
            exercise = next(each for each in posed if each is not None and each.prompt == asked(person))
            posed = posed[posed.index(exercise) + 1 :]
            if exercise.choices:
                await person.choose("#guesses", exercise.answers[0])
            else:
                part(person, "#guess").value = exercise.answers[-1]
                await person.press("enter")
            assert verdict(person).startswith("✓ right: "), exercise
            if not any(posed):
                break
            while not asked(person):
                await person.press("n")
        practice = part(person, "#practice")
        assert practice.right == practice.asked == sum(each is not None for each in practice.exercises)


# What lasts.


@driven
async def test_undo_and_redo():
    async with opened(START) as person:
        stood = [person.app.shown.question]

        async def did():
            assert person.app.shown.question != stood[-1]
            stood.append(person.app.shown.question)

        await person.click_bit(part(person, "#bits-a"), 3)
        await did()
        await person.press("s")
        await did()
        await person.fill("#operand-b", "12.5")  # one step for any number of letters
        await person.press("escape")
        await did()
        await person.choose("#verbs", "fma")
        await did()
        await person.press("f")
        await pick(person, "fp32")
        await did()
        await person.press("r")
        await pick(person, "toward zero")
        await did()
        await person.press("N")
        await did()
        for question in reversed(stood[:-1]):
            await person.press("u")
            assert person.app.shown.question == question
            assert part(person, "#operand-a").value == question.values[0]
            assert part(person, "#verbs").current == question.verb
        await person.press("u")
        assert person.app.shown.question == stood[0]
        for question in stood[1:]:
            await person.press("U")
            assert person.app.shown.question == question
        await person.press("ctrl+r")
        assert person.app.shown.question == stood[-1]


@driven
async def test_copies_and_pins():
    async with opened(START) as person:
        copied = []
        person.app.copy = lambda text, what: copied.append(text)
        await person.press("y", "Y")
        assert copied == ["1.25", f"floatlab {START}"]
        await person.press("c")
        await pick(person, "the code")
        assert copied[-1] == "0x3d00"
        await person.press("c")
        await pick(person, "as text")
        assert copied[-1] == printed(START)
        await command(person, "Copy the page as a picture (SVG)")
        assert copied[-1].startswith("<svg")
        await person.press("a", "plus", "b")
        assert person.app.pins["A"] == "bits:0x3d00@fp16"
        assert person.app.pins["B"] == f"bits:0x{result(person).code:04x}@fp16"


@driven
async def test_the_session_opens_at_the_same_question():
    async with opened(FMA) as person:
        await person.press("plus", "r")
        await pick(person, "toward zero")
        kept = person.app.session()
        question = person.app.shown.question
        assert kept["screen"] == "arithmetic"
    again = read_question(kept["questions"]["arithmetic"])
    assert again == question
    async with opened(" ".join(kept["questions"]["arithmetic"])) as person:
        assert person.app.shown.question == question


@driven
async def test_options_of_the_printed_form_are_passed_over():
    async with opened("add 0x3c00 0x3c00 --bits --fp16 --steps 2 --why") as person:
        assert person.app.shown.question == Question("add", ("bits:0x3c00", "bits:0x3c00"), (parse_format("fp16"),))
        assert len(person.app.shown.scenes) == 5


@driven
async def test_words_of_choices_do_not_break_in_two():
    async with opened(FMA, (46, 20)) as person:
        await person.press("end")
        for choices in person.app.shown.query(ChoiceBar):
            assert all(x + len(word) <= 46 for x, _, word in choices.places(choices.content_size.width).values())
        lines = part(person, "#flags").text.splitlines()
        assert [each.strip() for each in lines] == [
            "fused     ○ invalid  ○ divide by zero",
            "○ overflow  ○ underflow  ○ inexact",
            "separate  ○ invalid  ○ divide by zero",
            "○ overflow  ○ underflow  ● inexact",
        ]
