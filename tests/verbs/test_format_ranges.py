"""Formats side by side: positions, differences and exactness, each against the numbers themselves."""

import itertools
from math import log2

import pytest

from floatlab import decode, parse_format
from floatlab.arith import holds, lacks
from floatlab.formats import CATALOG, Format
from floatlab.numbers import convert
from floatlab.page.model import text_of
from floatlab.page.text_layout import set_page, to_text
from floatlab.verbs.formats.answer import formats
from floatlab.verbs.formats.ranges_page import ranges_axis, ranges_page
from tests.page.test_number_line_layout import labels_of, lines_of, words

NAMES = ("p3109_k8p3ue", "p3109_k6p3sf", "p3109_k8p1ue", "e3m0", "e9m70")
FORMATS = [*(row.format for row in CATALOG), *map(parse_format, NAMES)]
SMALL = [each for each in FORMATS if each.width <= 8]
PAIRS = [*itertools.pairwise(FORMATS), tuple(FORMATS)]
FLUSHING = Format("flushing", 3, 4, subnormals=False)


def survives(datum, wide) -> bool:
    """Return whether a number has the same value in another format, by converting it."""
    there = convert(datum, wide).result
    return there.is_finite and there.exact == datum.exact


@pytest.mark.parametrize("narrow", [*SMALL, FLUSHING], ids=lambda fmt: fmt.name)
def test_a_conversion_is_always_exact_where_it_is_for_every_code(narrow):
    numbers = [datum for datum in (decode(code, narrow) for code in range(1 << narrow.width)) if datum.is_finite]
    for wide in [*FORMATS, FLUSHING]:
        assert (not lacks(wide, narrow)) == all(survives(datum, wide) for datum in numbers), wide.name


@pytest.mark.parametrize("narrow", [each for each in FORMATS if each.width > 8], ids=lambda fmt: fmt.name)
def test_in_wide_formats_the_telling_codes_decide(narrow):
    t, last = narrow.trailing_bits, narrow.largest_magnitude
    magnitudes = (1, 3, (1 << t) - 1, (1 << t) + 1, (narrow.bias << t) + 1, last - 1, last)
    numbers = [decode(narrow.compose(sign, each), narrow) for each in magnitudes for sign in (False, True)]
    for wide in FORMATS:
        assert (not lacks(wide, narrow)) == all(survives(datum, wide) for datum in numbers), wide.name


@pytest.mark.one_in(3)
@pytest.mark.parametrize("narrow", FORMATS, ids=lambda fmt: fmt.name)
def test_a_page_of_two_says_what_is_kept(narrow):
    for wide in FORMATS:
        if wide == narrow:
            continue
        rows = " ".join(to_text(ranges_page([narrow, wide]), 1000).partition("always exact?")[2].split())
        assert rows.startswith(f"{narrow.name} always into {wide.name}") == (not lacks(wide, narrow))
        whole = not lacks(wide, narrow) and not rows.startswith(f"{narrow.name} always into {wide.name}, except for")
        assert whole == holds(wide, narrow)


def test_bars_stand_where_the_logarithms_of_their_ends_are():
    found = [parse_format(each) for each in ("fp16", "bf16", "e8m0")]
    axis = ranges_axis(found)
    low, high = -133, log2(found[1].largest)
    for fmt, lane in zip(found, axis.lanes, strict=False):
        assert abs(lane.spans[-1].end - (log2(fmt.largest) - low) / (high - low)) < 1e-12
        assert abs(lane.spans[-1].start - (log2(fmt.smallest_normal) - low) / (high - low)) < 1e-12
        assert abs(lane.spans[0].start - (log2(fmt.smallest) - low) / (high - low)) < 1e-12
    one = next(mark for mark in axis.lanes[-1].marks if text_of(mark.label) == "1")
    assert one.place == (0 - low) / (high - low)


@pytest.mark.parametrize("found", PAIRS, ids=lambda pair: "-".join(fmt.name for fmt in pair))
def test_every_pair_fits_every_width(found):
    axis, page = ranges_axis(found), ranges_page(found)
    for width in (20, 46, 63, 80, 140):
        for each in lines_of(axis, width):
            assert len(each) <= width
            assert words(each) <= labels_of(axis)
        for each in set_page(page, width):
            assert len(text_of(each).rstrip()) <= width
    text = to_text(page, 80, ascii=True)
    assert text.isascii()
    assert "?" not in text.replace("always exact?", "")


@pytest.mark.parametrize(
    ("name", "digits"),
    [("fp16", "3 / 5"), ("bf16", "2 / 4"), ("fp32", "6 / 9"), ("fp64", "15 / 17"), ("fp128", "33 / 36"),
     ("x87", "18 / 21")],
)  # fmt: skip
def test_decimal_digits_are_those_of_c(name, digits):
    assert f" {digits} " in to_text(ranges_page([parse_format(name), parse_format("e4m3")]), 120)


def test_the_step_at_1_is_that_of_the_numbers():
    text = to_text(ranges_page([parse_format("e8m0"), parse_format("e2m1"), Format("far", 4, 4, bias=60)]), 120)
    (e8m0, e2m1, far) = (each.split() for each in text.splitlines() if " NaN no 0" in each or each.endswith(" ±0"))
    assert (e8m0[9], e2m1[6]) == ("1", "2^-1")
    assert "no 1" in " ".join(far)


def test_special_values_that_are_lost_are_named():
    text = " ".join(to_text(ranges_page([parse_format("e2m1"), parse_format("e4m3fnuz")]), 120).split())
    assert "e2m1fn always into e4m3fnuz, except for −0" in text


def test_two_names_are_compared_and_one_is_not():
    two = to_text(formats(("fp16", "bf16")).page())
    assert "Side by side" in two
    assert "Side by side" not in to_text(formats(("fp16",)).page())
    assert "Side by side" not in to_text(formats(("fp16", "half")).page())
    assert len(formats(("fp16", "bf16")).records()) == 2
