"""Sentences on pages: each is there if it is true, and only then."""

import pytest

from floatlab import Context, parse_format
from floatlab.formats import CATALOG
from floatlab.numbers import Exact, decode, encode
from floatlab.page.model import Table
from floatlab.page.text_layout import to_text
from floatlab.page.words import brief
from floatlab.verbs.arithmetic.answer import operate
from floatlab.verbs.arithmetic.page import framed
from floatlab.verbs.convert.answer import convert_through
from floatlab.verbs.formats.page import formats_page, formats_table
from floatlab.verbs.show.answer import show

FP16, E4M3, E8M0, E2M1 = (parse_format(name) for name in ("fp16", "e4m3", "e8m0", "e2m1"))


def page_of(verb: str, *values: str, format=FP16, **choices) -> str:
    """Return an operation's page as one line of words."""
    return " ".join(to_text(operate(verb, values, format, Context(**choices)).page()).split())


def shown(text: str, format=FP16, interval: bool = False, **choices) -> str:
    return " ".join(to_text(show(text, (format,), Context(**choices), interval=interval).page()).split())


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("0.1", "10", "-1"), "here they differ: separate rounds the product up"),
        (("1.0009765625", "1.0009765625", "-1.001953125"), "here they differ: separate rounds the product down"),
        (("-0.1", "10", "1"), "here they differ: separate rounds the product down"),
        (("-1.0009765625", "1.0009765625", "1.001953125"), "here they differ: separate rounds the product up"),
        (("1.0005", "1.0015", "1"), "here; the results are the same nevertheless"),
        (("2", "3", "0.5"), "the product is exact in this format: both are the same so far"),
    ],
)
def test_fma_says_where_the_ways_part_only_where_they_do(values, words):
    text = page_of("fma", *values)
    assert words in text
    assert ("here they differ" in text) == ("different bits" in text)


def test_operands_that_reading_changed_say_so():
    assert "read from 0.1 error −0.4 ulp, inexact" in page_of("add", "0.1", "1")
    assert ("read from 70000 overflow, inexact beyond the largest, 65504: the result is infinity") in page_of(
        "add", "70000", "1"
    )
    assert "read from" not in page_of("add", "0.5", "1")


def test_operands_are_read_by_the_overflow_rule_and_to_nearest():
    answer = operate("add", ("1e9", "0"), E4M3, Context(overflow="saturate", rounding="RTZ"))
    assert answer.codes() == ["0x7e"]
    assert operate("add", ("0.1", "0"), FP16, Context(rounding="RTP")).codes() == ["0x2e66"]


@pytest.mark.parametrize(
    ("verb", "values", "format", "choices", "words"),
    [
        ("div", ("1", "0"), E4M3, {}, "e4m3fn has no infinity: the result is nan"),
        ("mul", ("300", "300"), FP16, {}, "beyond the largest, 65504: the result is infinity"),
        (
            "mul",
            ("448", "2"),
            E4M3,
            {},
            ("e4m3fn has no infinity, so the result is NaN (--overflow saturate gives the largest)"),
        ),
        ("mul", ("6e-5", "0.3"), FP16, {"flush_results": True}, "tiny results become zero (--ftz)"),
        ("div", ("0", "0"), E2M1, {}, "e2m1fn has no NaN: the result is 6"),
        ("mul", ("1", "1"), FP16, {}, ""),
    ],
)
def test_a_result_that_stands_in_for_another_says_so(verb, values, format, choices, words):
    text = page_of(verb, *values, format=format, **choices)
    assert words in text
    assert ("the result is" in text or "beyond the largest" in text or "--ftz" in text) == bool(words)


def test_rounding_to_an_integer_shows_the_cut_and_the_tie():
    text = page_of("rint", "2.5")
    assert "10|1" in text
    assert "RNE: a tie, kept is even → keep" in text
    assert "error −0.5" in text
    assert "10|1" in page_of("toint", "2.5")


@pytest.mark.parametrize(
    ("value", "format", "rules", "words"),
    [
        ("7.5", "e2m3", {}, ["error −0.5 from the integer 8", "8 is beyond the largest, 7.5", "is not an integer"]),
        ("-7.5", "e2m3", {}, ["error +0.5 from the integer -8", "-8 is beyond the largest, -7.5", "is not an integer"]),
        ("3.5", "e1m3fn", {}, ["4 is beyond the largest, 3.5: e1m3fn has no infinity, so the result is NaN"]),
        ("0.25", "e8m0", {}, ["from the integer 0", "e8m0fnu has no zero"]),
        ("7.5", "e2m3", {"rounding": "RTZ"}, ["error −0.5 inexact"]),
    ],
)
def test_an_integer_that_the_format_does_not_hold_is_named(value, format, rules, words):
    text = page_of("rint", value, format=parse_format(format), **rules)
    for each in words:
        assert each in text
    assert " exact " not in text


@pytest.mark.parametrize("verb", ["rint", "toint"])
@pytest.mark.parametrize(
    ("value", "direction", "words"),
    [
        ("1.5", "RNE", "a tie, kept is odd → +1"),
        ("-1.5", "RNE", "a tie, kept is odd → +1"),
        ("0.5", "RNE", "a tie, kept is even → keep"),
        ("3.5", "RNE", "a tie, kept is odd → +1"),
        ("1.5", "RNA", "a tie, away from zero → +1"),
        ("0.5", "RNA", "a tie, away from zero → +1"),
        ("1.25", "RNE", "tail below half → keep"),
    ],
)
def test_a_tie_of_integers_is_decided_by_the_integer(verb, value, direction, words):
    assert f"{direction}: {words}" in page_of(verb, value, rounding=direction)


@pytest.mark.parametrize(
    ("text", "format", "words"),
    [
        ("1.5", "e3m0", "a tie between powers of two → +1"),
        ("0.125", "e3m0", "a tie at half the smallest number → +1"),
        ("2^-128", "e8m0", "a tie at half the smallest number → +1"),
        ("1.5", "p3109_k8p1se", "a tie between powers of two → keep"),
    ],
)
def test_a_tie_of_numbers_with_one_digit_is_decided_by_no_digit(text, format, words):
    assert words in shown(text, parse_format(format))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bits:0x8001", "the negative number nearest to zero"),
        ("bits:0x0001", "the smallest positive number"),
        ("bits:0xfbff", "the finite number furthest below zero"),
        ("bits:0x7bff", "the largest finite number"),
        ("bits:0x8400", "the negative normal number nearest to zero"),
        ("4097", "beyond 2^11 = 2048 not every integer exists: the distance to the next number is 4"),
        ("bits:0x0003", "2 of 11 are left"),
        ("-0", "negative zero"),
        ("bits:0x7d01", "not a number, signaling: using it raises invalid; payload 0x101"),
    ],
)
def test_unusual_values_are_told_in_words(text, words):
    assert words in shown(text)


@pytest.mark.parametrize(
    ("text", "format", "choices", "words"),
    [
        ("1", FP16, {}, "both ties come here"),
        ("1.0009765625", FP16, {}, "both ties go to the neighbours"),
        ("0", E8M0, {}, "the tie goes to the neighbour"),
        ("0.75", E8M0, {}, "the lower tie comes here, the other goes to the neighbour"),
        ("65504", FP16, {}, "both ties go to the neighbours"),
    ],
)
def test_ties_of_an_interval_are_told_truly(text, format, choices, words):
    assert words in shown(text, format, interval=True, **choices)


def test_a_limit_of_flushing_is_no_tie():
    assert "tie" not in shown("1e-9", interval=True, flush_results=True).replace("ties", "").partition("interval")[2]


def test_tininess_that_depends_on_when_one_looks_is_told():
    assert "tiny before rounding, not after" in shown("6.1034e-5")


def test_flushed_operands_show_on_the_way_of_a_conversion():
    answer = convert_through("bits:0x0001", (FP16, parse_format("fp32")), Context(flush_inputs=True))
    assert "a subnormal operand is read as zero (--daz)" in " ".join(to_text(answer.page()).split())


def test_a_value_in_passing_is_exact_or_marked():
    assert brief(encode("1.12109375", "fp16")) == "1.12109375"
    assert brief(decode(1, "fp16")) == "2^-24"
    assert brief(encode("0.1", "fp64")) == "≈ 0.1"
    assert brief(decode(0x0003, "fp16")) == "≈ 1.7881e-7"


def test_digits_in_a_frame_keep_their_columns():
    assert framed(Exact(False, 0b1111111001, -13), 0, 10) == ("0.0001111111", "001")
    assert framed(Exact(False, 0b11, 0), 0, 2) == ("11.00", "")
    assert framed(Exact(False, 1, -40), 0, 4)[0] == "0.0000"


def test_one_table_of_formats_says_what_two_say():
    rows = list(CATALOG)
    ranges, codes = (block for block in formats_page(rows).blocks if isinstance(block, Table))
    both = formats_table(rows)
    assert both.header == ranges.header + codes.header[1:]
    assert [row[: len(ranges.header)] for row in both.rows] == list(ranges.rows)
    assert [row[len(ranges.header) :] for row in both.rows] == [row[1:] for row in codes.rows]
    flush = {both.header[column] for column in both.right}
    assert flush == {"bits", "p", "emin", "emax", "zeros", "subnormals", "normals", "∞", "NaNs"}
