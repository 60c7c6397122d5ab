"""Charts in characters and as lines: every curve is there, in any width, without colour, and on its scale."""

import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.training_figures import quick
from floatlab.errors import UnsupportedError
from floatlab.page.chart import MARKS, POINTS, chart_lines, curve, scale_of, thinned, ticks
from floatlab.page.model import Chart, Curve, Page, text_of
from floatlab.page.svg import chart_to_svg
from floatlab.page.text_layout import to_text

numbers = st.floats(allow_nan=True, allow_infinity=True)


def drawn(chart, width=72):
    return [text_of(each) for each in chart_lines(chart, width)]


@given(
    st.lists(st.lists(numbers, min_size=1, max_size=9), min_size=1, max_size=5),
    st.integers(20, 130), st.booleans(), st.booleans(),
)  # fmt: skip
def test_any_numbers_make_a_chart_of_their_width(curves, width, log_up, log_across):
    made = tuple(curve(i, f"c{i}", range(1, len(each) + 1), each) for i, each in enumerate(curves))
    chart = Chart(made, "step", "value", log_up=log_up, log_across=log_across)
    text = to_text(Page((chart,)), width, ascii=True)
    assert text.isascii()
    assert "?" not in text
    assert max(len(each) for each in text.splitlines()) <= max(width, 30)
    finite = [x for each in curves for x in each if math.isfinite(x) and (x > 0 or not log_up)]
    if finite:
        ET.fromstring(chart_to_svg(chart, "a <title>"))
    else:
        with pytest.raises(UnsupportedError):
            chart_to_svg(chart, "nothing")


def test_curves_that_coincide_take_turns():
    made = tuple(curve(i, name, [0, 1], [1, 2]) for i, name in enumerate(("one", "two", "three")))
    plot = "".join(line.partition("│")[2] or line.partition("┤")[2] for line in drawn(Chart(made, "x", "y"))[1:15])
    counts = [plot.count(mark) for mark in "abc"]
    assert min(counts) > 15
    assert max(counts) - min(counts) <= 14


def test_a_reference_gives_way():
    exact, same = curve(None, "exact", [0, 1], [1, 2]), curve(0, "fp32", [0, 1], [1, 2])
    assert not any("·" in line[:-4] for line in drawn(Chart((exact, same), "x", "y", reference=True)))


def test_each_curve_stands_at_its_height():
    made = tuple(curve(i, str(i), [0, 10], [y, y]) for i, y in enumerate((1.0, 10.0, 100.0)))
    lines = drawn(Chart(made, "x", "y", height=9, log_up=True))
    rows = [next(i for i, line in enumerate(lines) if mark * 20 in line) for mark in "abc"]
    assert rows == [9, 5, 1]
    assert [lines[row].split()[0] for row in rows] == ["1", "10", "100"]


def test_what_ends_early_ends_early():
    short, long = curve(0, "short", [0, 5], [1, 1]), curve(1, "long", [0, 10], [2, 2])
    line = next(each for each in drawn(Chart((short, long), "x", "y")) if "aaaa" in each)
    assert 25 < line.count("a") < 40


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.integers(2, 9), st.booleans())
@example(0.0, 5e-324, 3, False)
@example(1e-310, 1.00001e-310, 4, False)
@example(-5e-324, 5e-324, 9, False)
@example(1.0, 1 + 2.0**-52, 2, False)
@example(1.0, 1 + 2.0**-52, 2, True)
@example(3e-310, 3e-310 + 5e-324, 2, True)
@example(7.892462595700496e-104, 7.892462595700498e-104, 6, False)
@example(15740.65394223146, 15740.653942231473, 9, False)
@example(1.7e308, 1.7e308, 5, True)
@example(1.7e308, 1.7e308, 5, False)
@example(5e-324, 5e-324, 5, True)
@example(-1e300, 1.7e308, 5, False)
@example(-1.7e308, 1.7e308, 5, False)
def test_ticks_are_round_and_lie_within(low, high, most, is_log):
    scale = scale_of([abs(low), abs(high)] if is_log else [low, high], is_log)
    if scale is None:
        return
    found = ticks(scale, most)
    span = scale.high - scale.low
    assert len(found) <= most + 1
    assert len({text for _, text in found}) == len(found)
    for x, _ in found:
        assert scale.low - 1e-6 * span <= x <= scale.high + 1e-6 * span


def test_a_million_points_are_thinned():
    made = curve(3, "long", range(10**6), range(10**6))
    assert (made.mark, len(made.points)) == ("d", POINTS)
    assert made.points[-1] == (999_999.0, 999_999.0)
    assert thinned(3, 240) == [0, 1, 2]
    assert curve(len(MARKS), "again", [0], [0]).mark == "a"


IMAGES = Path(__file__).parents[2] / "docs" / "images"


@pytest.mark.parametrize("name", ["train-updates", "train-check"])
def test_figures_of_the_documents_are_what_the_script_draws(name):
    title, chart = quick()[name]
    made, kept = chart_to_svg(chart, title), (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    number = re.compile(r"-?\d+(?:\.\d+)?")
    assert number.sub("", made) == number.sub("", kept)
    # Steps are powers of ten by the machine's own pow, whose last digit may differ.
    for ours, theirs in zip(number.findall(made), number.findall(kept), strict=True):
        assert float(ours) == pytest.approx(float(theirs), abs=0.2)


def test_braille_dots_follow_the_letters():
    points = tuple((float(x), float((x * 7) % 11)) for x in range(12))
    chart = Chart((Curve("a", "zigzag", points),), "x", "y", 9)
    letters, dots = (chart_lines(chart.replace(dots=each), 60) for each in (False, True))
    assert "━ a zigzag" in text_of(dots[0])
    for row in range(1, 10):
        for column, character in enumerate(text_of(dots[row])):
            if "\u2800" < character <= "\u28ff":
                near = [text_of(letters[y])[column - 1 : column + 2] for y in range(max(row - 1, 1), min(row + 2, 10))]
                assert "a" in "".join(near)
    assert sum("\u2800" < c <= "\u28ff" for runs in dots for c in text_of(runs)) >= 50
