"""The screen Inspect, driven by keys and clicks: edits and choices are shown in every row."""

import pytest

from floatlab import decode, encode, parse_format, read
from floatlab.cli.main import main
from floatlab.tui.screens.inspect.screen import EDIT_KEYS, InspectScreen
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.page_view import PageView
from floatlab.verbs.edits import EDITS
from tests.tui.stage import ANY_SIZE, complaint, driven, opened, retype, text

START = "show 1.12156456132 --fp16 --bf16 --e4m3 --fp32"


def codes(person):
    return {name: datum.code for name, datum in person.app.shown.data.items()}


def bits_of(row):
    return row.bits


def value_box(person):
    return person.app.screen.query_one("#value")


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_number_typed_is_rounded_into_every_row(size):
    async with opened(START, size) as person:
        await person.press("slash")
        await person.fill("#value", "0.1")
        assert codes(person) == {
            name: encode("0.1", name).code for name in ("binary16", "bfloat16", "e4m3fn", "binary32")
        }
        for name, row in person.app.shown.rows.items():
            assert int(bits_of(row), 2) == encode("0.1", name).code


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_a_bit_flipped_by_key_changes_the_lead_and_the_others_round(size):
    async with opened(START, size) as person:
        await person.press("h", "h", "left", "space")
        code = encode("1.12156456132", "fp16").code ^ 1 << 3
        expected = decode(code, "fp16")
        assert codes(person)["binary16"] == code
        for name in ("bfloat16", "e4m3fn", "binary32"):
            assert codes(person)[name] == read(expected, name).result.code
        assert value_box(person).value == str(float(expected))


@pytest.mark.parametrize("size", ANY_SIZE)
@pytest.mark.parametrize("bit", [0, 9, 10, 14, 15])
@driven
async def test_a_bit_flipped_by_mouse(size, bit):
    async with opened(START, size) as person:
        row = person.app.screen.query(BitRow).first()
        await person.click_bit(row, bit)
        assert codes(person)["binary16"] == encode("1.12156456132", "fp16").code ^ 1 << bit


@driven
async def test_zero_and_one_set_bits_and_go_on():
    async with opened("show 0 --fp16") as person:
        await person.press("home", *"0011110000000001")
        assert codes(person) == {"binary16": 0x3C01}


@driven
async def test_the_cursor_stays_on_the_bits():
    async with opened("show 0 --fp16") as person:
        row = person.app.screen.query(BitRow).first()
        await person.press("right", "right")
        assert row.cursor == 0
        await person.press("home", "left")
        assert row.cursor == 15
        await person.press("dollar_sign")
        assert row.cursor == 0


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name not in ("up", "negate") else []) for name in EDITS]
)
@driven
async def test_every_edit_by_key_and_by_mouse(name):
    for typed, format in (("1.12156456132", "fp16"), ("-3", "e4m3"), ("0.5", "fp64")):
        start = encode(typed, format)
        for by_mouse in (False, True):
            async with opened(f"show {typed} -f {format}") as person:
                if by_mouse:
                    await person.choose("#edits", name)
                else:
                    await person.press(EDIT_KEYS[name])
                lead = person.app.shown.subject()
                expected, complaint = outcome(name, start)
                assert lead == expected
                assert complaint in person.screen


def outcome(name, datum):
    """Return the result of an edit, or the message if it is impossible."""
    try:
        return EDITS[name].apply(datum), ""
    except ValueError as error:
        return datum, str(error)


@driven
async def test_up_and_down_move_over_the_rows_and_the_lead_follows():
    async with opened(START) as person:
        task = person.app.shown
        assert task.subject().format.name == "binary16"
        await person.press("down", "j")
        assert task.subject().format.name == "e4m3fn"
        await person.press("up", "plus")
        assert task.subject() == encode("1.12156456132", "bf16").next_up
        assert "▸ bfloat16" in person.screen


@driven
async def test_a_row_led_by_a_click():
    async with opened(START) as person:
        rows = list(person.app.screen.query(BitRow))
        await person.click_bit(rows[2], 0)
        assert person.app.shown.subject() == decode(encode("1.12156456132", "e4m3").code ^ 1, "e4m3")


@driven
async def test_fields_are_opened_typed_over_and_left():
    async with opened("show 1 --fp16 --fp32") as person:
        await person.press("e")
        await person.type("0x3c7c")
        assert codes(person)["binary16"] == 0x3C7C
        await person.press("escape")
        await person.choose("#names", "E")
        await person.type("16")
        assert person.app.shown.subject().biased_exponent == 16
        await person.press("ctrl+n")
        await person.type("0x3ff")
        assert person.app.shown.subject().code == 0x43FF
        await person.press("ctrl+n", "ctrl+n")
        await person.type("1")
        assert person.app.shown.subject().code == 0xC3FF
        await person.press("enter")
        assert isinstance(person.app.focused, BitRow)
        assert not person.app.screen.query_one("#field").has_class("-open")


@driven
async def test_a_wrong_field_is_marked_and_the_picture_stays():
    async with opened("show 1 --fp16") as person:
        await person.choose("#names", "E")
        await person.type("99")
        box = person.app.screen.query_one("#field")
        assert box.has_class("-wrong")
        assert "E must be a whole number from 0 to 31, not '99'" in person.screen
        assert codes(person) == {"binary16": encode("2.77555756156e-17", "fp16").code or 0x2400}
        await person.press("escape")
        await person.choose("#names", "E")
        assert box.value == "99"  # it is still there
        await person.press("escape", "u")
        assert "whole number" not in person.screen
        await person.choose("#names", "E")
        assert box.value == "9"  # the last text without an error


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", ANY_SIZE)
@pytest.mark.parametrize("wrong", ["abc", "", "1e", "0.1@fp17", "[red]x[/]", "bits:0xzz"])
@driven
async def test_bad_input_marks_the_box_says_why_and_keeps_the_picture(size, wrong):
    async with opened(START, size) as person:
        before = codes(person)
        await person.press("slash")
        await person.fill("#value", "7")
        good = codes(person)
        assert good != before
        value_box(person).value = wrong
        await person.pilot.pause()
        assert value_box(person).has_class("-wrong")
        assert "! " in person.screen
        assert codes(person) == good
        await person.press("escape")
        assert value_box(person).value == wrong  # it stays, to be corrected
        await person.press("u")
        assert value_box(person).value == "7"
        assert not value_box(person).has_class("-wrong")
        assert "! " not in person.screen


@driven
async def test_a_value_with_a_format_of_its_own_brings_a_row():
    async with opened("show 1 --fp16") as person:
        await person.press("slash")
        await person.fill("#value", "bits:0x38@e4m3b11fnuz")
        assert codes(person) == {"e4m3b11fnuz": 0x38, "binary16": encode("0.0625", "fp16").code}
        assert person.app.shown.subject().format.name == "e4m3b11fnuz"


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_formats_are_added_and_dropped(size):
    async with opened("show 0.1 --fp16", size) as person:
        await person.press("f", *"e5m2", "enter")
        assert list(codes(person)) == ["binary16", "e5m2"]
        await person.press("f", *"e6m9", "enter")
        assert list(codes(person)) == ["binary16", "e5m2", "e6m9"]
        await person.press("f", *"fp17x", "enter")
        assert "unknown format 'fp17x'" in person.screen
        await person.press("x")
        assert list(codes(person)) == ["binary16", "e5m2"]
        await person.press("u")
        assert list(codes(person)) == ["binary16", "e5m2", "e6m9"]


@driven
async def test_the_last_row_stays():
    async with opened("show 0.1 --fp16") as person:
        await person.press("x")
        assert list(codes(person)) == ["binary16"]
        assert "the last row cannot be removed" in person.screen


@driven
async def test_the_direction_is_picked_by_key_by_mouse_and_from_the_palette():
    async with opened("show 0.1 --fp16") as person:
        await person.press("r")
        await person.type("+∞".replace("+", "toward "))
        await person.press("enter")
        assert codes(person) == {"binary16": encode("0.1", "fp16", context("RTP")).code}
        assert "RTP" in person.screen
        await person.choose("#controls", "rules")
        await person.type("stochastic")
        await person.press("enter")
        assert "SR" in person.screen
        await person.press("ctrl+p")
        await person.type("toward zero")
        await person.pilot.pause(0.3)
        await person.press("down", "enter")
        await person.pilot.pause(0.3)
        assert codes(person) == {"binary16": encode("0.1", "fp16", context("RTZ")).code}


def context(rounding):
    from floatlab import Context

    return Context(rounding=rounding)


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_every_view_shows_what_the_command_prints(size):
    async with opened("show bits:0x39 --e4m3", size) as person:
        details = person.app.screen.query_one("#details", PageView)
        for name, _ in InspectScreen.VIEWS[1:4]:
            await person.press("v")
            assert person.app.screen.query_one("#views", ChoiceBar).current == name
            assert details.text.strip()
        await person.choose("#views", "dialects")
        assert all(name in details.text for name in ("e4m3fnuz", "e5m2fnuz", "e8m0fnu", "p3109_k8p4se"))
        await person.press("V")
        assert "RTN" in details.text


@driven
async def test_double_rounding_is_found_along_the_rows():
    async with opened("convert 1.00048828126 --through fp32,fp16", (120, 34)) as person:
        details = person.app.screen.query_one("#details", PageView).text
        assert "double rounding" in details
        assert "directly" in details


@driven
async def test_pins_are_compared():
    async with opened("show 1.5 --fp16 --bf16", (120, 34)) as person:
        await person.press("a", "plus", "plus", "plus", "b")
        details = person.app.screen.query_one("#details", PageView).text
        assert "0x3e00" in details
        assert "0x3e03" in details
        assert "3 numbers" in details.replace("steps", "numbers")


@driven
async def test_undo_takes_typing_as_one_step_and_redo_brings_it_back():
    async with opened("show 1 --fp16") as person:
        await person.press("slash")
        await person.fill("#value", "2.5")
        await person.press("escape", "plus", "u")
        assert codes(person) == {"binary16": encode("2.5", "fp16").code}
        await person.press("u")
        assert codes(person) == {"binary16": encode("1", "fp16").code}
        assert value_box(person).value == "1"
        await person.press("U", "U")
        assert codes(person) == {"binary16": encode("2.5", "fp16").next_up.code}


@driven
async def test_what_can_be_copied(capsys):
    async with opened("show 1.12156456132 --fp16") as person:
        copied = {}
        person.app.copy = lambda text, words: copied.__setitem__(words, text)
        await person.press("y", "Y")
        for name in ("code", "text", "svg"):
            await person.press("c")
            await person.type({"code": "code", "text": "as text", "svg": "svg"}[name])
            await person.press("enter")
    assert copied["the shortest decimal"] == "1.121"
    assert copied["the code"] == "0x3c7c"
    assert copied["the command that prints this"] == "floatlab show 1.12156456132 --fp16"
    main(["show", "1.12156456132", "--fp16"])
    assert copied["the page as text"] == capsys.readouterr().out
    assert copied["the page as a picture (SVG)"].startswith("<svg")


@driven
async def test_a_view_of_what_libraries_give_does_not_block():
    async with opened("show 0.1 --fp16", (120, 34)) as person:
        await person.choose("#views", "libraries")
        for _ in range(100):
            await person.pilot.pause(0.1)
            text = person.app.screen.query_one("#details", PageView).text
            if "numpy" in text:
                break
        assert "0x2e66" in text


@driven
async def test_formats_do_not_repeat_themselves():
    async with opened("show 0.1 --fp16") as person:
        await person.press("f", *"fp16", "enter")
        assert person.app.shown.question.formats == (parse_format("fp16"),)


@driven
async def test_a_format_added_to_a_code_says_how_to_read_the_code_in_it():
    async with opened("show bits:0x38@e4m3") as person:
        person.app.shown.take_format("e5m2")
        await person.pilot.pause()
        assert "bits:0x38@e5m2" in complaint(person)
        await retype(person, "#value", "bits:0x38@e5m2")
        assert float(person.app.shown.subject()) == 0.5
        assert complaint(person) == ""


@pytest.mark.parametrize("size", ANY_SIZE)
@driven
async def test_numbers_that_are_powers_of_e(size):
    async with opened("show 0.3 -f takum_log8,takum_log16,fp16", size) as person:
        assert "its ends are powers of √e" in text(person)
        for key in ("plus", "minus", "m", "M", "0", "1", "space", "a", "plus", "b"):
            await person.press(key, *["v"] * len(person.app.shown.shown_views))
        person.app.shown.choose_view("details")
        await retype(person, "#value", "1")  # a rational number among irrational ones
        assert "its ends are powers of √e" in text(person)
        await retype(person, "#value", "nan")
        assert "no real number rounds here" in text(person)
