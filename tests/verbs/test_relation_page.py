"""The page of a comparison: which bits differ, how far apart two data are, and why unlike codes are equal."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import Context, decode, parse_format
from floatlab.arith import compare
from floatlab.page.model import Row, Strip, text_of
from floatlab.page.text_layout import to_text
from floatlab.verbs.arithmetic.relations import comparison_page
from tests import strategies


def page_of(a: str, b: str, format: str | None = "fp16", **choices) -> str:
    return " ".join(to_text(comparison_page(compare(a, b, format, Context(**choices)))).split())


@given(st.data())
def test_the_marks_stand_over_the_bits_that_differ(data):
    fmt = data.draw(strategies.formats)
    a, b = (decode(data.draw(strategies.codes(fmt)), fmt) for _ in "ab")
    strips = [each for each in comparison_page(compare(a, b)).blocks if isinstance(each, Strip)]
    *above, bits = [text_of(each) for each in strips[1].lines]
    assert bits.replace(" ", "") == f"{b.code:0{fmt.width}b}"
    marked = 0
    for column, ch in enumerate(bits):
        if ch != " ":
            marked = marked << 1 | (above[0][column] == "^" if above else 0)
    assert marked == a.code ^ b.code


@given(st.data())
def test_steps_and_difference_are_those_of_the_numbers(data):
    fmt = data.draw(strategies.small_formats)
    a, b = (decode(data.draw(strategies.codes(fmt)), fmt) for _ in "ab")
    rows = {
        each.label: text_of(each.content) for each in comparison_page(compare(a, b)).blocks if isinstance(each, Row)
    }
    if not (a.is_finite and b.is_finite) or a.exact == b.exact:
        assert "a − b" not in rows
        return
    steps, at, up = 0, min(a, b, key=lambda each: each.exact), max(a, b, key=lambda each: each.exact)
    while at.exact != up.exact and steps < 40:
        at, steps = at.next_up, steps + 1
    if steps < 40:
        assert rows["apart"].split()[0] == str(steps)
    difference = rows["a − b"]
    if not set("^≈") & set(difference):
        assert Fraction(difference) == a.exact.as_fraction() - b.exact.as_fraction()


@pytest.mark.parametrize(
    ("values", "format", "choices", "words"),
    [
        (("1.5", "1.25"), "fp16", {}, "apart 256 steps between adjacent numbers a − b 0.25"),
        (("1", "1.0009765625"), "fp16", {}, "apart 1 step: they are neighbours a − b -0.0009765625"),
        (("inf", "65504"), "fp16", {}, "apart 1 step: they are neighbours"),
        (("1e300", "1e-300"), "fp64", {}, "a − b ≈ 1e300"),
        (("0", "-0"), "fp16", {}, "+0 and −0 compare equal"),
        (("2^-20", "0"), "fp16", {"flush_inputs": True}, "a subnormal operand is read as zero"),
    ],
)
def test_distances_in_words(values, format, choices, words):
    assert words in page_of(*values, format, **choices)


def test_two_codes_for_one_number_are_told():
    x87 = parse_format("x87")
    found = compare(decode(0x00008000000000000000, x87), decode(0x00018000000000000000, x87))
    assert "two codes of the same number" in to_text(comparison_page(found))


def test_data_of_two_formats_have_a_difference_and_no_steps():
    found = compare(decode(0x3C00, "fp16"), decode(0x3F800001, "fp32"))
    text = to_text(comparison_page(found))
    assert "a − b        -1.1920928955078125e-7" in text
    assert "apart" not in text
    assert "^" not in text


def test_what_is_unordered_or_the_same_is_no_distance_apart():
    for b in ("nan", "1"):
        assert "apart" not in page_of("1", b)
