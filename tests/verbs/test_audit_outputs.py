"""The outputs of `audit --to`: CSV, the HTML report, and the chart."""

import csv
import io
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

import floatlab as fl
from floatlab.page.html_report import HeatCell, HeatMap, report
from floatlab.page.model import Page, Table, heading
from floatlab.page.svg import SVG_TEXT
from floatlab.page.text_layout import to_text
from floatlab.verbs.audit.recipes_answer import recipes_answer_of
from floatlab.verbs.audit.recipes_page import recipes_page
from floatlab.verbs.audit.recipes_report import layer_of, sqnr_chart

RECIPES = ("mxfp4", "e4m3", "int8/channel")


def tensors():
    rng = np.random.default_rng(1)
    found = {
        f"model.layers.{layer}.{part}.weight": rng.normal(size=(8, 64)).astype(np.float32)
        for layer in (0, 2, 10)
        for part in ("mlp.up_proj", "attn.q")
    }
    found["model.layers.2.mlp.up_proj.weight"][:, 3] *= 1e5
    return found | {"head <b>": np.float32([1, 2]), "ids": np.arange(3), "empty": np.float32([])}


@pytest.fixture(scope="module")
def found():
    return fl.audit(tensors(), to=RECIPES)


class Reader(HTMLParser):
    """Collects the tags and the texts of a document; each tag that is opened has to be closed in order."""

    EMPTY = ("meta", "input")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts, self.addresses = [], [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)


def test_csv_has_a_row_for_each_tensor_and_recipe(found):
    rows = list(csv.DictReader(io.StringIO(recipes_answer_of(found).table())))
    measured = [each for each in found.tensors if each.recipes]
    assert len(rows) == len(measured) * len(RECIPES) + len(found.tensors) - len(measured)
    by_name = {(row["tensor"], row["recipe"]): row for row in rows}
    for tensor in measured:
        for each in tensor.recipes:
            row = by_name[tensor.tensor, each.recipe]
            assert int(row["flushed"]) == each.flushed
            assert float(row["mse"]) == each.mse
            assert row["sqnr"] == ("" if each.sqnr is None else str(each.sqnr))
            assert row["scale_blocks"] == ("" if each.scales is None else str(each.scales.blocks))
    assert by_name["ids", ""]["left_out"]


def test_csv_has_no_formulas_of_spreadsheets():
    named = fl.audit({"=1+1": np.float32([1])}, to="e4m3")
    assert "'=1+1" in recipes_answer_of(named).table()


def test_the_report_is_one_file_with_every_tensor(found):
    text = recipes_answer_of(found).document("floatlab audit x --to <mxfp4>")
    seen = Reader(text)
    assert not seen.addresses
    assert "url(" not in text
    said = "".join(seen.texts)
    for tensor in found.tensors:
        assert tensor.tensor in said
    assert "floatlab audit x --to <mxfp4>" in said
    assert found.recommendation.words in said
    assert sum(tag == "svg" for tag, _ in seen.tags) == 4


def test_heat_maps_have_a_row_for_each_layer(found):
    text = recipes_answer_of(found).document("")
    assert text.count('class="map"') == len(RECIPES)
    for name in RECIPES:
        part = text.partition(f"{name}: SQNR of each layer")[2].partition("</table>")[0]
        assert [cell.partition("<")[0] for cell in part.split("<tr><th>")[2:]] == ["0", "2", "10"]
    worst = text.partition("e4m3: SQNR of each layer")[2].partition("</table>")[0]
    assert worst.count('<td style="background:#e08646">NaN') == 1  # numbers above 448


def test_a_report_without_layers_and_without_errors():
    text = recipes_answer_of(fl.audit({"w": np.float32([1, 2])}, to="bf16")).document("")
    assert 'class="map"' not in text
    Reader(text)


def test_the_chart_goes_up_from_the_worst_tensor(found):
    chart = sqnr_chart(found)
    assert [each.label for each in chart.curves] == list(RECIPES)
    for each, name in zip(chart.curves, RECIPES, strict=True):
        levels = [level for _, level in each.points]
        assert levels == sorted(levels)
        own = [figures.sqnr for tensor in found.tensors for figures in tensor.recipes if figures.recipe == name]
        assert set(levels) == {level for level in own if level is not None and np.isfinite(level)}


def test_layers_in_names():
    assert layer_of("transformer.h.3.attn.c_attn.weight") == (3, "attn.c_attn")
    assert layer_of("blk.7.ffn_up.weight") == (7, "ffn_up")
    assert layer_of("w.12") == (None, "w.12")
    assert layer_of("") == (None, "")


def test_tables_sort_and_long_ones_are_filtered():
    def page(count):
        return Page((heading("h"), Table(("name", "dB"), [(f"t{n}", str(n)) for n in range(count)], right=(1,))), "h")

    assert "<input data-filters" not in report(page(3), [])
    tags = Reader(report(page(30), [("m", HeatMap("c", ("a",), (("0", (HeatCell("x", 2.0),)),)))])).tags
    assert [attrs["data-filters"] for tag, attrs in tags if tag == "input"] == ["table1"]
    assert sum(tag == "button" for tag, _ in tags) == 2


def test_colours_can_be_read():
    """The contrast of the numbers in a heat map is at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""

    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    cells = tuple(HeatCell(str(n), n / 20) for n in range(-20, 21))
    text = report(Page((), "t"), [("m", HeatMap("", tuple("x" * len(cells)), (("0", cells),)))])
    styles = [attrs["style"] for tag, attrs in Reader(text).tags if tag == "td"]
    for style in styles:
        low, high = luminance(SVG_TEXT), luminance(style.partition(":")[2])
        assert (high + 0.05) / (low + 0.05) >= 4.5, style


def test_pictures_of_the_report_are_well_formed(found):
    text = recipes_answer_of(found).document("")
    for part in text.split("<svg")[1:]:
        ElementTree.fromstring("<svg" + part.partition("</svg>")[0] + "</svg>")


def checkpoint(count=43):
    rng = np.random.default_rng(3)
    return {
        f"model.layers.{place}.self_attn.q_proj.weight": rng.normal(size=(8, 64)).astype(np.float32)
        for place in range(count)
    }


def test_a_page_of_80_columns_has_one_line_for_each_tensor():
    found = fl.audit(checkpoint(), to="e4m3,e4m3/tensor,bf16,mxfp4,nvfp4")
    shown = to_text(recipes_page(found, 43)).splitlines()
    assert max(map(len, shown)) <= 80
    rows = [each for each in shown if each.startswith("  model.layers.")]
    assert len(rows) == 43
    assert {len(each.split()) for each in rows} == {7}  # with the recommendation
    rest = to_text(recipes_page(found, 40))
    assert "3 more tensors survive all recipes; --worst all lists them" in rest


def test_a_page_says_which_tensors_have_nans_when_they_are_stored():
    tensors = checkpoint(8)
    for place, value in enumerate((np.nan, np.inf, -np.inf, np.nan, np.nan)):
        tensors[f"model.layers.{place}.self_attn.q_proj.weight"][0, : place + 1] = value
    said = " ".join(to_text(recipes_page(fl.audit(tensors, to="e4m3")), 120).split())
    assert "stored 5 tensors have NaNs or infinities:" in said
    assert "model.layers.4.self_attn.q_proj.weight (5 of 512)" in said
    assert "and 1 more" in said


def test_a_page_names_what_is_odd():
    tensors = {"": np.float32([[1, 2]]), "n" * 3000: np.float32([[1, 500]]), "bias": np.float32([1]), "e": np.zeros(0)}
    found = fl.audit(tensors, to="e4m3,int8")
    said = " ".join(to_text(recipes_page(found), 100).split())
    assert "n" * 100 not in said
    assert "One of these tensors has fewer than two axes" in said
    assert "int8 has no scales here; int8/channel and int8/32 have scales." in said
    assert "e: left out, it has no numbers" in said
    assert "3 tensors" in said
    assert " '' " in said


def test_tensors_that_any_recipe_damages_come_first():
    tensors = checkpoint(3) | {"outlier": np.float32([[1e30] + [1] * 63] * 8), "big": np.full((8, 64), 1e6, np.float32)}
    for recipes in ("bf16,int8/tensor,e4m3", "e4m3,bf16,int8/tensor"):
        found = fl.audit(tensors, to=recipes)
        assert {each.tensor for each in found.tensors[:2]} == {"outlier", "big"}
    assert "2 more" not in to_text(recipes_page(found, 2))
    assert "4 more tensors, 1 of them damaged; --worst all lists them" in to_text(recipes_page(found, 1))


def test_a_report_shortens_long_names_and_has_them_under_the_pointer():
    name = "".join(f"{place}." for place in range(1000))
    document = Reader(recipes_answer_of(fl.audit({name: np.float32([[1, 2]])}, to="e4m3")).document("floatlab"))
    assert [attrs["title"] for tag, attrs in document.tags if "title" in attrs and tag == "td"] == [name]
    assert all(len(text) < 400 for text in document.texts)
    assert any(text.startswith("0.1.2.") and "…" in text and text.endswith("999.") for text in document.texts)


def test_rows_that_blocks_do_not_divide_are_said_to_take_more_bits():
    ragged = fl.audit({"w": np.ones((8, 3), np.float32), "v": np.ones((4, 64), np.float32)}, to="e4m3,mxfp4,nvfp4")
    text = " ".join(to_text(recipes_page(ragged), 400).split())
    assert f"mxfp4 takes {ragged.totals[1].bits:.3g} bits a number instead of 4.25 and nvfp4 takes" in text
    assert "bits a number instead of" not in to_text(recipes_page(fl.audit({"w": np.ones((8, 64))}, to="mxfp4")), 400)
