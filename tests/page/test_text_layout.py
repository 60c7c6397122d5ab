"""Pages in every width: no text is lost, and no line is too long."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, read
from floatlab.formats import parse_format
from floatlab.page.datum import show_page
from floatlab.page.model import Axis, Page, Role, Row, Span, Table, line, text_of, wrap
from floatlab.page.svg import to_svg
from floatlab.page.text_layout import ascii_only, set_page, to_text
from floatlab.verbs.convert.answer import convert_through
from floatlab.verbs.formats.answer import formats
from floatlab.verbs.show.answer import show

PAGES = {
    "show": lambda: show("1.12156456132", (parse_format("fp16"), parse_format("fp128"), parse_format("x87"))).page(),
    "interval": lambda: show("0.1", (parse_format("fp64"),), interval=True).page(),
    "long name": lambda: show("3", (parse_format("p3109_k16p11se"), parse_format("e19m236"))).page(),
    "directions": lambda: show("65520", (parse_format("fp16"),), directions=True).page(),
    "dialects": lambda: show("bits:0x38", dialects=True).page(),
    "convert": lambda: convert_through("1.1", tuple(map(parse_format, ("fp64", "fp32", "fp16")))).page(),
    "formats": lambda: formats().page(),
    "format": lambda: formats(("e4m3",)).page(),
}
WIDTHS = [20, 24, 39, 40, 46, 60, 80, 120, 200]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_no_line_is_wider_than_asked(name, width):
    for each in set_page(PAGES[name](), width):
        assert len(text_of(each).rstrip()) <= width


@pytest.mark.parametrize("name", PAGES)
def test_every_bit_and_digit_survives_any_width(name):
    """The page has the same characters at every width, without spaces and in any order.

    Exceptions are headers of tables and drawings to scale, of which a narrow page shows less.
    """
    page = Page(
        tuple(
            each.replace(header=("",) * len(each.header)) if isinstance(each, Table) else each
            for each in PAGES[name]().blocks
            if not isinstance(each, Axis)
        )
    )
    wide = sorted(re.sub(r"\s", "", to_text(page, 1000)))
    for width in WIDTHS:
        narrow = sorted(re.sub(r"\s", "", to_text(page, width)))
        missing = [ch for ch in set(wide) if wide.count(ch) > narrow.count(ch)]
        assert not missing


@pytest.mark.parametrize("name", PAGES)
def test_without_colour_the_text_is_the_same(name):
    page = PAGES[name]()
    coloured = to_text(page, 80, colour=True)
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [each.rstrip() for each in bare.splitlines()] == to_text(page, 80).splitlines()


@pytest.mark.parametrize("name", PAGES)
def test_ascii_is_ascii_and_knows_every_sign_used(name):
    text = to_text(PAGES[name](), 80, ascii=True)
    assert text.isascii()
    assert "?" not in text


@pytest.mark.parametrize("name", PAGES)
def test_pictures_are_well_formed_and_carry_the_text(name):
    page = PAGES[name]()
    root = ElementTree.fromstring(to_svg(page))
    assert root.find("{http://www.w3.org/2000/svg}title").text == page.title
    drawn = re.sub(r"\s", "", "".join(root.find("{http://www.w3.org/2000/svg}g").itertext()))
    assert drawn == re.sub(r"\s", "", to_text(page, 80))


def test_hostile_text_is_harmless_in_a_picture():
    page = Page((Row('<"&', line(Span("</svg><script>\x00\x1b\ud800", Role.CODE))),), "</title>")
    root = ElementTree.fromstring(to_svg(page))
    assert root.find("{http://www.w3.org/2000/svg}title").text == "</title>"
    assert not root.findall(".//{http://www.w3.org/2000/svg}script")


@given(st.text(alphabet="ab -", max_size=80), st.integers(8, 40))
def test_wrapping_keeps_every_word(text, width):
    lines = wrap(line(text), width)
    assert all(len(text_of(each)) <= width for each in lines)
    assert re.sub(" ", "", "".join(text_of(each) for each in lines)) == re.sub(" ", "", text)


@given(
    st.one_of(st.integers(), st.fractions(), st.floats(allow_nan=False)),
    st.sampled_from(["fp16", "e4m3", "e2m1", "e8m0", "fp64", "x87", "p3109_k8p1se", "e4m3fnuz", "e3m0"]),
    st.sampled_from(["RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ", "SR"]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_any_value_in_any_format_has_a_page(value, name, rounding, flush):
    page = show_page(read(value, name, Context(rounding=rounding, flush_results=flush)), interval=True)
    assert to_text(page, 40)


def test_ascii_replaces_what_it_does_not_know():
    assert ascii_only("2 ≤ ∞ ☃") == "2 <= inf ?"


def test_the_title_of_a_row_wraps_if_the_table_is_a_list():
    title = "another order of addition, or fused multiply-adds"
    lines = to_text(Page((Table(("cause", "rms q", "largest"), [(title, "0.962", "5.69")]),)), 44).splitlines()
    assert " ".join(" ".join(lines[:2]).split()) == title
    assert max(map(len, lines)) <= 44
