"""`formats`, asked from Python: the table, one format in full, and names of every kind."""

import pytest

from floatlab.errors import FormatError
from floatlab.formats import CATALOG, parse_format
from floatlab.formats.table_catalog import TABLES
from floatlab.verbs.formats.answer import formats


def test_without_a_name_the_whole_catalog():
    answer = formats()
    assert answer.words() == answer.codes() == [row.format.name for row in (*CATALOG, *TABLES)]
    records = answer.records()
    assert [record["format"] for record in records] == answer.words()
    assert not any("table" in record for record in records)


@pytest.mark.parametrize("row", [*CATALOG, *TABLES], ids=lambda row: row.format.name)
def test_every_format_has_its_page_and_its_record(row):
    answer = formats((row.format.name,))
    (record,) = answer.records()
    assert (record["schema"], record["operation"], record["format"]) == (1, "formats", row.format.name)
    assert record["source"]
    assert answer.page().blocks
    for alias in record["aliases"]:
        assert formats((alias,)).words() == [row.format.name]


@pytest.mark.parametrize(
    "name", ["e2m1", "e4m3", "e5m2fnuz", "e8m0", "e2m3fn", "p3109_k8p4se", "e3m2f", "hif8", "nf4", "posit8"]
)
def test_a_small_format_comes_with_its_codes(name):
    (record,) = formats((name,)).records()
    format = parse_format(name)
    assert [int(datum["code"], 16) for datum in record["table"]] == list(range(1 << format.width))
    # Every code is of one kind, and all kinds together are all codes.
    assert sum(int(count) for count in record["codes"].values()) == 1 << format.width


def test_a_large_format_comes_without():
    (record,) = formats(("fp16",)).records()
    assert "table" not in record


@pytest.mark.parametrize("name", ["fp8-e4m3", "FP8_E4M3", " e4m3 ", "E4M3FN", "float8_e4m3fn"])
def test_names_are_forgiving(name):
    assert formats((name,)).words() == ["e4m3fn"]


@pytest.mark.parametrize(
    "name", ["e6m9", "e2m0", "e19m236", "p3109_k8p1ue", "p3109_k64p50sf", "e4m3_ieee", "fp16_ieee"]
)
def test_formats_by_pattern_are_shown_in_full_too(name):
    answer = formats((name,))
    assert answer.words() == [parse_format(name).name]
    assert answer.page().blocks
    assert answer.records()[0]["width"] == parse_format(name).width


def test_several_names_in_the_order_typed():
    answer = formats(("e5m2", "fp16", "e5m2"))
    assert answer.words() == ["e5m2", "binary16", "e5m2"]
    assert len(answer.records()) == 3


@pytest.mark.parametrize(
    "name", ["", "nothing", "fp17", "e0m3", "e20m1", "e1m0", "e4m3fnuzfn", "\x1b[2J", "x" * 10_000]
)
def test_names_that_mean_nothing(name):
    with pytest.raises(FormatError):
        formats((name,))


def test_one_wrong_name_spoils_the_answer():
    with pytest.raises(FormatError, match="'fp17'; did you mean"):
        formats(("fp16", "fp17"))
