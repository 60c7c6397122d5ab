"""HTML reports show every block of a page."""

from html import unescape
from re import sub

import pytest

import floatlab as fl
from floatlab.page.datum import show_page
from floatlab.page.html_report import report
from floatlab.page.model import (
    Axis,
    Chart,
    Curve,
    Fresh,
    Gap,
    Grid,
    Lane,
    Mark,
    Note,
    Page,
    Pair,
    Role,
    Row,
    Span,
    Strip,
    Table,
    line,
)
from floatlab.page.text_layout import to_text


def text_in(page):
    return unescape(sub(r"(?s)<style>.*?</style>|<script>.*?</script>|<[^>]*>", "", report(page, ())))


NOTE = Note(line("a < ", Span("word", Role.VALUE)))
BLOCKS = {
    "row": Row("label", "content", "word"),
    "strip": Strip("bits", (line("0 1"), line("s word"))),
    "table": Table(("title",), [["word"]]),
    "grid": Grid((line("word"), line("other"))),
    "note": NOTE,
    "pair": Pair((NOTE,), (Row("label", "other"),)),
    "fresh": Fresh((NOTE,)),
    "axis": Axis((Lane("lane", (Mark(0.5, "+", line("word")),)),)),
    "chart": Chart((Curve("a", "word", ((0, 1), (9, 3))),), "word", "value"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_drawn(name):
    assert "word" in text_in(Page((BLOCKS[name], Gap())))
    assert "<pre>" in report(Page((BLOCKS[name],)), ()) or name in ("row", "table", "note")


def test_the_bits_of_a_number_stay_aligned():
    page = show_page(fl.read("1.1", "fp16"))
    said = text_in(page)
    for block in page.blocks:
        if isinstance(block, Strip | Axis):
            assert to_text(Page((block,)), 100).rstrip("\n") in "\n".join(map(str.rstrip, said.splitlines()))
    assert any(isinstance(block, Strip) for block in page.blocks)
