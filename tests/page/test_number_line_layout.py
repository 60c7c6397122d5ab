"""A number line in every width: to scale, never too wide, and no label over another."""

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab.page.model import Axis, AxisInterval, Lane, Mark, Page, Role, Span, line, text_of
from floatlab.page.number_line_layout import LITTLE_ROOM, lanes_of
from floatlab.page.svg import to_svg
from floatlab.page.text_layout import ascii_only, set_page, to_text

INK = "─━├┤┼│◀▶"


def words(text: str) -> set[str]:
    """Return the labels on a line: the text between double spaces, leaders and drawn lines."""
    return {each.strip() for each in re.split(rf"[{INK}▼●○]|  +", text) if each.strip()}


def lines_of(axis: Axis, width: int) -> list[str]:
    return [text_of(each) for _, above, rest in lanes_of(axis, width) for each in (*above, *rest)]


def labels_of(axis: Axis) -> set[str]:
    parts = [each for lane in axis.lanes for each in (*lane.marks, *lane.spans)]
    return {text_of(label).strip() for each in parts for label in (each.label, each.short) if label}


places = st.fractions(-1, 2).map(float)
labels = st.text("abc0.", min_size=0, max_size=30).map(line)


@st.composite
def marks(draw):
    pointer = draw(st.booleans())
    symbol = "▼" if pointer else "●"
    return Mark(draw(places), symbol, draw(labels), draw(labels), Role.VALUE, draw(st.integers(-2, 2)), pointer)


@st.composite
def spans(draw):
    start, end = sorted((draw(places), draw(places)))
    return AxisInterval(start, end, draw(labels), draw(labels), heavy=draw(st.booleans()), ends=draw(st.booleans()))


lanes = st.builds(
    Lane, st.sampled_from(["", "lane", "a long label for a lane"]), st.lists(marks(), max_size=7).map(tuple),
    st.lists(spans(), max_size=7).map(tuple), st.integers(1, 3),
)  # fmt: skip
axes = st.builds(Axis, st.lists(lanes, min_size=1, max_size=3).map(tuple), st.sampled_from([(0.0, 1.0), (0.25, 0.75)]))


@settings(max_examples=25)
@given(axes, st.integers(20, 140))
def test_no_line_is_too_wide_and_every_label_is_whole_or_absent(axis, width):
    for each in lines_of(axis, width):
        assert len(each) <= width
        assert words(each) <= labels_of(axis)
    for each in set_page(Page((axis,)), width):
        assert len(text_of(each).rstrip()) <= max(width, max(2 + len(lane.label) for lane in axis.lanes))
    assert to_svg(Page((axis,)), width)


@settings(max_examples=25)
@given(axes, st.integers(20, 140))
def test_in_ascii_the_columns_stay(axis, width):
    page = Page((axis,))
    narrow = to_text(page, width, ascii=True)
    assert narrow.isascii()
    assert narrow == ascii_only(to_text(page, width))


@given(st.lists(st.fractions(0, 1), min_size=1, max_size=6), st.integers(LITTLE_ROOM, 140))
def test_marks_stand_within_half_a_column_of_their_place(found, width):
    _, _, rest = lanes_of(Axis((Lane("", tuple(Mark(float(each), "●") for each in found)),)), width)[0]
    drawn = [column for column, ch in enumerate(text_of(rest[0])) if ch == "●"]
    for each in found:
        assert any(abs(column - each * (width - 1)) <= Fraction(1, 2) + Fraction(1, 10**9) for column in drawn)
    assert len(drawn) <= len(set(found))


def drawn(*lane_parts, width=21, middle=(0.0, 1.0), **choices) -> list[str]:
    marks = tuple(each for each in lane_parts if isinstance(each, Mark))
    spans = tuple(each for each in lane_parts if isinstance(each, AxisInterval))
    axis = Axis((Lane("", marks, spans, **choices),), middle)
    return [each.rstrip() for each in lines_of(axis, width)]


def test_labels_move_aside_then_step_down_then_take_their_short_form_then_go():
    near = [Mark(0.5, "●", line("middle"), priority=1), Mark(0.6, "●", line("right"))]
    assert drawn(*near) == ["──────────●─●────────", "     middle │", "          right"]
    assert drawn(*near, rows=1) == ["──────────●─●────────", "       middle"]
    long = [
        Mark(place, "●", line("123456789"), line(short), priority=-i)
        for i, (place, short) in enumerate(((0.5, ""), (0.3, "1…9"), (0.7, "")))
    ]
    assert drawn(*long, rows=2) == ["──────●───●───●──────", "     1…9  │", "      123456789"]


def test_bins_share_their_ends_and_go_on_past_the_axis():
    pair = [AxisInterval(-1.0, 0.5, line("a")), AxisInterval(0.5, 1.0, line("b"), heavy=True)]
    assert drawn(*pair) == ["─── a ────┼━━━ b ━━━┤"]


def test_bins_that_overlap_stand_on_lines_of_their_own():
    assert len(drawn(AxisInterval(0.0, 0.6), AxisInterval(0.4, 1.0), AxisInterval(0.6, 1.0))) == 2


@pytest.mark.parametrize(("place", "arrow", "column"), [(-1.0, "◀", 0), (2.0, "▶", 20)])
def test_a_pointer_past_an_end_shows_where_it_is(place, arrow, column):
    (above, _) = drawn(Mark(place, "▼", line("far"), pointer=True))
    assert above[column] == arrow
    assert "far" in above


def test_little_room_shows_the_middle():
    mark = Mark(0.5, "●"), Mark(0.1, "●")
    assert drawn(*mark, middle=(0.25, 0.75)) == ["──────────●──────────"]
    assert drawn(*mark, middle=(0.25, 0.75), width=60)[0].count("●") == 2


def test_the_more_important_mark_covers_the_other():
    assert "◆" in drawn(Mark(0.5, "◆", priority=1), Mark(0.5, "●", priority=0))[0]


def test_a_bar_has_its_label_beside_it():
    bar = AxisInterval(0.5, 0.7, line(Span("40")), ends=False, heavy=True)
    assert drawn(AxisInterval(0.3, 0.5, line("2"), ends=False), bar) == ["    2 ────━━━━━ 40"]


def test_a_bar_narrower_than_a_column_is_still_seen():
    assert drawn(AxisInterval(0.5, 0.5001, ends=False)) == ["          ─"]


def test_labels_of_two_bars_keep_two_columns_between_them():
    spans = (AxisInterval(0.0, 0.02, line("0000"), ends=False), AxisInterval(0.47, 1.0, line("0"), ends=False))
    (only,) = lines_of(Axis((Lane("", (), spans),)), 20)
    assert "0000 0" not in only
    assert "0000" in only
