"""`show`, asked from Python: formats, codes, byte order, dialects, directions, and what each answer holds."""

import pytest

from floatlab import Context, Direction, parse_format
from floatlab.errors import FloatlabError, FormatError, LiteralError
from floatlab.page.text_layout import to_text
from floatlab.verbs.question import Answer
from floatlab.verbs.registry import VERBS, verb_named
from floatlab.verbs.show.answer import DEFAULT_FORMATS, show
from floatlab.verbs.show.page import with_spare_classes

FP16 = (parse_format("fp16"),)


def names(answer):
    return [record["format"] for record in answer.records()]


def test_without_a_format_a_number_is_shown_in_two():
    assert names(show("0.1")) == [parse_format(name).name for name in DEFAULT_FORMATS]


def test_a_values_own_format_comes_before_the_options():
    assert names(show("0.1@e4m3")) == ["e4m3fn"]
    assert names(show(" 0.1 @ fp8_e5m2 ")) == ["e5m2"]


@pytest.mark.parametrize(
    ("code", "format"),
    [
        ("bits:0x3c7c", "binary16"),
        ("bits:0_01111_0001111100", "binary16"),
        ("bits:0x3f800000", "binary32"),
        ("bits:0x3ff0000000000000", "binary64"),
        ("bits:0x3fff8000000000000000", "x87"),
        ("bits:0x3fff0000000000000000000000000000", "binary128"),
    ],
)
def test_a_bare_code_is_of_the_format_of_its_width_and_that_is_said(code, format):
    answer = show(code)
    assert names(answer) == [format]
    (hint,) = answer.hints
    assert format in hint
    assert "choose another format with -f" in hint


@pytest.mark.parametrize("code", ["bits:0x38", "bits:0b101", "bits:0x3c7c1", "bits:0x" + "0" * 24])
def test_a_bare_code_of_another_width_needs_a_format(code):
    with pytest.raises(FormatError, match="bits of which format"):
        show(code)


def test_bits_makes_every_value_a_code_but_words_stay_words():
    assert show("0x3c7c", FP16, bits=True).codes() == ["0x3c7c"]
    assert show("0_01111_0001111100", FP16, bits=True).codes() == ["0x3c7c"]
    assert show("inf", FP16, bits=True).codes() == ["0x7c00"]


def test_a_hexadecimal_number_may_have_been_meant_as_a_code():
    assert show("0x3c7c", FP16).hints == ("0x3c7c is the number 15484; for the code, type bits:0x3c7c",)
    assert show("0x3C_7C", FP16).hints
    for unlike in ("0x1.8", "0x1p4", "-0x10", "15484", "bits:0x3c7c"):
        assert show(unlike, FP16).hints == ()


@pytest.mark.parametrize(
    ("code", "flipped"),
    [("bits:0x7c3c", "0x3c7c"), ("bits:0x003c", "0x3c00"), ("bits:0b0111110000111100", "0x3c7c")],
)
def test_little_endian_reads_the_bytes_from_the_other_end(code, flipped):
    assert show(code, FP16, little_endian=True).codes() == [flipped]


def test_little_endian_keeps_leading_zero_bytes():
    assert show("bits:0x0000803f", (parse_format("fp32"),), little_endian=True).words() == ["1"]


@pytest.mark.parametrize("text", ["1.5", "inf", "bits:0b101", "bits:0x3c7"])
def test_little_endian_is_for_codes_of_whole_bytes(text):
    with pytest.raises(LiteralError, match="--little-endian"):
        show(text, FP16, little_endian=True)


def test_dialects_are_all_the_formats_of_that_width():
    answer = show("bits:0x38", dialects=True)
    values = {record["format"]: record["result"]["exact"] for record in answer.records()}
    # One byte, five values: the same bits are not the same number.
    expected = {"e4m3fn": "1", "e4m3fnuz": "0.5", "e4m3b11fnuz": "0.0625", "e5m2": "0.5", "e5m2fnuz": "0.25"}
    assert {name: values[name] for name in expected} == expected
    assert {"p3109_k8p3se", "p3109_k8p4se", "e8m0fnu"} <= set(values)
    assert set(answer.codes()) == {"0x38"}


def test_dialects_of_named_formats_and_of_widths_without_any():
    assert names(show("bits:0x38", (parse_format("e4m3"), parse_format("e5m2")), dialects=True)) == ["e4m3fn", "e5m2"]
    with pytest.raises(FormatError, match="no built-in format has 3 bits"):
        show("bits:0b101", dialects=True)
    with pytest.raises(LiteralError, match="--dialects takes a code"):
        show("1.5", dialects=True)


def test_directions_are_every_direction_in_order():
    answer = show("0.1", FP16, directions=True)
    assert [record["context"]["rounding"] for record in answer.records()] == [
        each.value for each in Direction if not each.has_few_bits
    ]
    assert set(answer.codes()) == {"0x2e66", "0x2e67"}
    assert len(answer.words()) == 8


def test_directions_keep_the_rest_of_the_context():
    answer = show("1e9", FP16, Context(overflow="saturate", seed=7), directions=True)
    assert {(r["context"]["overflow"], r["context"]["seed"]) for r in answer.records()} == {("saturate", 7)}
    assert set(answer.codes()) == {"0x7bff"}


def test_interval_is_in_the_record_and_in_the_page():
    with_it, without = show("0.1", FP16, interval=True), show("0.1", FP16)
    (record,) = with_it.records()
    assert set(record["interval"]) >= {"low", "low_closed", "high", "high_closed"}
    assert "interval" not in without.records()[0]
    assert with_it.page() != without.page()


def test_one_answer_in_four_ways():
    answer = show("1.12156456132", FP16)
    assert isinstance(answer, Answer)
    assert (answer.words(), answer.codes()) == (["1.121"], ["0x3c7c"])
    assert answer.records()[0]["result"]["code"] == "0x3c7c"
    assert answer.page().title
    assert answer.missing == ""


def test_nothing_is_drawn_before_it_is_asked_for(monkeypatch):
    from floatlab.page import datum as numbers

    def drawn(*_):
        raise AssertionError("drawn")

    monkeypatch.setattr(numbers, "show_page", drawn)
    answer = show("0.1", FP16)
    assert answer.words() == ["0.1"]
    with pytest.raises(AssertionError, match="drawn"):
        answer.page()


@pytest.mark.parametrize("text", ["", " ", "@fp16", "1.5@", "1.5@fp17", "1.5@fp16@fp32", "abc", "1 2"])
def test_what_cannot_be_read_is_an_error_of_floatlabs(text):
    with pytest.raises(FloatlabError):
        show(text)


def test_every_action_has_two_examples_of_its_own_verb():
    for name in VERBS:
        verb = verb_named(name)
        assert verb.name == name
        assert len(verb.examples) >= 2
        assert all(example.split()[0] == name for example in verb.examples)
        assert verb.summary[0].islower()
        assert not verb.summary.endswith(".")


def test_the_meanings_of_a_code_leave_out_the_class_in_a_narrow_pane():
    page = with_spare_classes(show("bits:0x38", dialects=True).page())
    assert "e4m3fn         0 0111 000   1           positiveNormal" in to_text(page, 80)
    assert "  e4m3fn         0 0111 000   1\n" in to_text(page, 44)
