"""The page of two arrays compared: its sentences, at every width, and the numbers that it shows."""

import math

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.compare.differences import Finder
from floatlab.page.measures import percent, upward
from floatlab.page.model import text_of
from floatlab.page.svg import to_html, to_svg
from floatlab.page.text_layout import to_text
from floatlab.verbs.compare.difference_map import map_page, where_words
from floatlab.verbs.compare.histogram_text import bin_page
from floatlab.verbs.compare.page import diagnosis_note, differences_page, elements_table, summary_page, verdict_words
from floatlab.verbs.from_json import document_of


def text(found, width=80, **more):
    return to_text(differences_page(found), width, **more)


def flat(found):
    return " ".join(text(found, 1000).split())


def where(meant):
    finder = Finder(meant.shape)
    finder.add(np.flatnonzero(meant.ravel()))
    return where_words(finder.result())


def mask(shape, *index):
    meant = np.zeros(shape, bool)
    for each in index:
        meant[each] = True
    return meant


@pytest.mark.parametrize(
    ("meant", "words"),
    [
        (mask((4, 5), ...), ["everywhere: every element"]),
        (mask((4, 5), (2, 3)), ["only at (2, 3)"]),
        (mask((40, 50), (7, slice(3, 20, 3))), ["all in row 7", "only in every 3rd column, from column 3 on"]),
        (mask((40, 50), (slice(None), 9)), ["all in column 9"]),
        (mask((40, 50), (slice(None), slice(1, None, 8))), ["only in every 8th column, from column 1 on"]),
        (mask((40, 50), (slice(8, 16), slice(10, 20))), ["exactly the block [8:16, 10:20]"]),
        (mask((40, 50), (slice(38, 40), slice(None))), ["exactly the last 100 elements", "only in 2 of 40 rows"]),
        (mask(1000, slice(993, None)), ["exactly the last 7 elements"]),
        (mask(1000, slice(0, 7)), ["exactly the first 7 elements"]),
        (mask(1000, slice(10, 17)), ["7 consecutive elements in memory"]),
        (mask(1000, 990, 995, 996), ["only among the last 10 elements (1 %)"]),
        (mask((3, 4, 5), (1, 2)), ["5 consecutive", "all in index 1 of axis 0", "all in index 2 of axis 1"]),
        (mask((3, 4, 50), (..., slice(0, 50, 5))), ["only in every 5th index of axis 2, from index 0 of axis 2 on"]),
    ],
)
def test_where_elements_lie(meant, words):
    found = where(meant)
    for expected in words:
        assert any(each.startswith(expected) for each in found), found


def test_spread_elements_are_said_to_be_spread():
    meant = np.random.default_rng(1).random((40, 50)) < 0.5
    assert where(meant)[0].startswith("spread: ")
    assert "40 of 40 rows and 50 of 50 columns" in where(meant)[0]


def test_a_block_with_holes_says_its_share():
    meant = mask((40, 50), (slice(8, 16), slice(10, 20)))
    meant[12, 15] = False
    assert where(meant) == ["inside the block [8:16, 10:20], in 98.8 % of it"]


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1.0, 2], [1.0, 2], "the same: all 2 elements have the same bits"),
        ([0.0, 1], [-0.0, 1], "close: all 2 elements are equal numbers"),
        ([1.0, 2], [1.0, 2.00000002], "close: the worst of 2 elements uses 0.1 % of the tolerance"),
        ([1.0, 2], [1.0, 3], "not close: 1 of 2 elements (50 %) lies beyond rtol 1e-05 and atol 1e-08; the worst is"),
        ([math.nan, 2], [1.0, 2], "no tolerance would suffice"),
        ([1.0, 2], [1.0, 2, 3], "not close: the shapes 2 and 3 cannot be broadcast"),
        ([], [], "close: there are no elements"),
    ],
)
def test_the_verdict_in_words(x, y, words):
    found = fl.compare(np.float64(x), np.float64(y))
    assert words in verdict_words(found)
    assert verdict_words(found) in flat(found)


def test_specials_are_named():
    x = np.float32([math.nan, 1, math.nan, math.inf, 0.0])
    y = np.float32([1, math.nan, math.nan, 1, -0.0])
    page = flat(fl.compare(x, y))
    for words in (
        "1 NaN in actual, a number in expected",
        "1 NaN in expected, a number in actual",
        "1 NaN in both, which is not close (--equal-nan)",
        "1 infinite in one array only",
        "1 zeros of opposite signs",
        "no tolerance would pass",
    ):
        assert words in page


@pytest.mark.parametrize("x", [3.3301e-5, 1e-300, 0.999999, 1.0, 123456.7, 2.5e-7, 9.995e-3, 9.9999e9])
def test_a_tolerance_shown_is_none_too_small(x):
    assert x <= float(upward(x)) <= x * 1.011


def test_a_tolerance_shown_would_pass():
    rng = np.random.default_rng(5)
    for dtype in (np.float16, np.float32, np.float64):
        x = rng.standard_normal(100).astype(dtype)
        y = (x + 1e-3 * rng.standard_normal(100)).astype(dtype)
        found = fl.compare(x, y).allclose
        assert np.allclose(x, y, rtol=float(upward(found.least_rtol)))
        assert np.allclose(x, y, atol=float(upward(found.least_atol)))


def test_shares_are_never_rounded_to_none_or_all():
    assert percent(1, 10**12) == "< 0.01 %"
    assert percent(10**12 - 1, 10**12) == "> 99.9 %"


@pytest.mark.parametrize("shape", [(), (1,), (100,), (33, 17), (64, 64), (3, 4, 50), (5, 1000), (1000, 5)])
@pytest.mark.parametrize("by_columns", [False, True])
def test_the_map_counts_every_part(shape, by_columns):
    meant = np.asarray(np.random.default_rng(3).random(shape) < 0.5)
    meant[(0,) * len(shape)] = True
    laid = meant.T if by_columns else meant
    finder = Finder(laid.shape)
    finder.add(np.flatnonzero(laid.ravel()))
    found = finder.result(by_columns).map
    down, across = found.part
    matrix = (meant.reshape(len(meant), -1, order="F") if by_columns and shape else meant).reshape(found.sides)
    for y, counts in enumerate(found.counts):
        for x, count in enumerate(counts):
            assert count == matrix[y * down : (y + 1) * down, x * across : (x + 1) * across].sum()


def test_the_map_shows_a_block():
    x = np.zeros((64, 64), np.float32)
    y = x.copy()
    y[8:12, 2:4] = 1
    lines = [each.strip() for each in to_text(map_page(fl.compare(x, y))).splitlines()]
    assert f"8 ·█{'·' * 30}" in lines
    assert sum("█" in each for each in lines) == 2  # and the legend
    assert "No element differs" in to_text(map_page(fl.compare(x, x)))
    assert "no elements in common" in to_text(map_page(fl.compare(x, x[:3])))
    assert "sign" not in to_text(map_page(fl.compare(np.float32(1), np.float32(2))))


def sample(shape=(20, 30)):
    rng = np.random.default_rng(2)
    x = rng.standard_normal(shape).astype(np.float32)
    return fl.compare(x, x * (1 + rng.choice(np.float32([0, 1e-6, 1e-3, 1]), shape)))


@pytest.mark.parametrize("width", [20, 30, 46, 60, 80, 120, 200])
def test_every_width_shows_everything(width):
    page = text(sample(), width)
    assert "allclose" in page
    assert "assert_close" in page
    if width >= 46:
        assert max(map(len, page.splitlines())) <= width


def test_ascii_shows_the_same():
    page = text(sample(), ascii=True)
    assert page.isascii()
    assert "?" not in page.replace("Near enough?", "")


def test_the_histogram_counts_everything():
    found = sample()
    page = text(found)
    for _, _, count in found.ulps.histogram:
        assert f"{count:,}  " in page


def test_pictures_are_one_document():
    import xml.etree.ElementTree as Tree

    page = differences_page(sample())
    Tree.fromstring(to_svg(page))
    html = to_html(page, remark="floatlab compare '<a>' b")
    assert "&lt;a&gt;" in html
    assert "<a>" not in html
    assert "<script" not in html
    assert html.count("http") == 1  # the only address is SVG's namespace, which is not fetched


def test_json_is_the_model():
    from json import dumps, loads

    found = fl.compare(np.float32([1, math.nan, 3, math.inf]), np.float32([1, 2, 3.5, -math.inf]))
    wire = loads(dumps(document_of(found), allow_nan=False))
    assert wire["operation"] == "compare"
    assert (wire["size"], wire["equal_bits"], wire["within"]) == (4, 1, False)
    assert wire["specials"] == {"nan_in_actual": 1, "nan_in_expected": 0, "nan_in_both": 0, "infinity": 1,
                                "sign_of_zero": 0}  # fmt: skip
    assert wire["absolute"]["largest"] == {"value": 0.5, "index": [2]}
    assert wire["worst"][0]["actual"]["class"] == "quietNaN"
    assert wire["worst"][0]["share"] == "inf"
    assert wire["assert_close"]["failing"] == 3
    assert sum(count for *_, count in wire["ulps"]["histogram"]) == wire["ulps"]["count"] == 3


def test_a_bin_says_what_lies_on_either_side():
    ulps = sample().ulps
    said = [" ".join(to_text(bin_page(ulps, place)).split()) for place in range(len(ulps.histogram))]
    assert "none is nearer" in said[0]
    assert "none is further apart" in said[-1]
    for (_, _, count), words in zip(ulps.histogram, said, strict=True):
        assert f"{count:,} of {ulps.count:,} elements" in words


def test_a_summary_has_verdict_amounts_and_tolerances():
    page = to_text(summary_page(sample()))
    assert all(
        words in page for words in ("verdict", "equal bits", "ulps", "allclose", ("smallest tolerance that passes"))
    )
    assert "cannot be broadcast" in to_text(summary_page(fl.compare(np.zeros(2), np.zeros(3))))


def test_elements_are_listed_with_bits_and_errors():
    x = np.float32([math.nan, 1, 4, math.inf, 3])
    y = np.float32([1, 0, 2, 1, 3])
    table = elements_table(fl.compare(x, y))
    rows = {text_of(row[0]): [text_of(cell) for cell in row[1:]] for row in table.rows}
    assert set(rows) == {"0", "1", "2", "3"}
    assert rows["0"] == ["nan", "1", "·", "·", "none allowed", "0x7fc00000", "0x3f800000", "·"]
    assert rows["1"][4:] == ["1e+08 times", "0x3f800000", "0x00000000", "1"]
    assert rows["2"][2:4] == ["8,388,608", "1"] or rows["2"][2:4] == ["8.39e+06", "1"]
    assert rows["3"][3] == "·"


def test_a_comparison_with_inputs_keeps_its_diagnosis_when_it_is_printed_and_read_back():
    x, y = np.random.default_rng(3).standard_normal((2, 8, 8), np.float32)
    wrong = x @ y
    wrong[2, 3] += 1
    found = fl.compare(wrong, x @ y, inputs=(x, y))
    assert found.diagnosis.status == "bug"
    assert " ".join(str(found).split()).startswith(found.diagnosis.first)
    assert "--inputs" not in str(found)
    assert fl.from_json(found.to_json()).diagnosis == found.diagnosis


def test_a_first_line_that_names_a_and_b_says_what_they_are():
    said = text_of(diagnosis_note("Yes: element (1, 2) of A is wrong; all others agree.").content)
    assert said.endswith("all others agree.  (A actual, B expected)")
    assert text_of(diagnosis_note("No: this is rounding (order).").content) == "No: this is rounding (order)."
