"""Names: the names of formats that a user may type, and the errors for other names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import Format, FormatError, parse_format
from floatlab.formats import CATALOG, catalog_row

# The names in the documentation; the first one of each line is printed.
PROMISED = """
binary16 fp16 float16 half f16
binary32 fp32 float32 single f32
binary64 fp64 float64 double f64
binary128 fp128 quad f128
x87 fp80
bfloat16 bf16
tf32
e4m3fn e4m3 fp8_e4m3
e5m2 fp8_e5m2
e4m3fnuz
e5m2fnuz
e4m3b11fnuz
e4m3_ieee
e3m4
e8m0fnu e8m0
e2m3fn fp6_e2m3
e3m2fn fp6_e3m2
e2m1fn e2m1 fp4
"""


@pytest.mark.parametrize("line", PROMISED.split("\n")[1:-1], ids=lambda line: line.split()[0])
def test_every_promised_name_and_alias_is_known_in_any_case_and_with_hyphens(line):
    name, *aliases = line.split()
    fmt = parse_format(name)
    assert fmt.name == name
    for word in (name, *aliases):
        for spelling in (word, word.upper(), word.title(), word.replace("_", "-"), f"  {word} "):
            assert parse_format(spelling) is fmt


def test_no_word_names_two_formats():
    words = [word for row in CATALOG for word in (row.format.name, *row.aliases)]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("row", CATALOG, ids=lambda row: row.format.name)
def test_every_name_and_alias_of_the_catalog_leads_to_its_row(row):
    for word in (row.format.name, *row.aliases):
        assert parse_format(word) == row.format
    assert catalog_row(row.format) is row
    assert row.source
    assert row.purpose


def test_a_format_is_returned_as_it_is():
    mine = Format("mine", 5, 4)
    assert parse_format(mine) is mine


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("e6m9", {"precision": 10, "exponent_bits": 6}),
        ("e5m10", {"precision": 11, "exponent_bits": 5}),
        ("e19m236", {"precision": 237, "exponent_bits": 19}),
        ("e4m0", {"precision": 1, "exponent_bits": 4}),
        ("e5m3fn", {"precision": 4, "exponent_bits": 5, "infinities": False, "nans": 1}),
        ("e5m3f", {"precision": 4, "exponent_bits": 5, "infinities": False, "nans": 0}),
        ("e5m3fnuz", {"precision": 4, "exponent_bits": 5, "infinities": False, "nans": 0, "bias": 16,
                      "negative_zero": False}),
        ("e4m3_ieee", {"precision": 4, "exponent_bits": 4}),
        ("e4m3fn_ieee", {"precision": 4, "exponent_bits": 4}),
        ("e2m1_ieee", {"precision": 2, "exponent_bits": 2}),
        ("fp8_e4m3fnuz_ieee", {"precision": 4, "exponent_bits": 4}),
    ],
)  # fmt: skip
def test_patterns_mean_what_they_say(name, parameters):
    assert parse_format(name) == Format(name, **parameters)


def test_a_named_row_wins_over_the_pattern():
    assert parse_format("e4m3").name == "e4m3fn"
    assert parse_format("e2m1").name == "e2m1fn"
    assert parse_format("e8m0").zero is False
    # e5m2 and e3m4 have IEEE specials by their own rows.
    assert parse_format("e5m2") == Format("e5m2", 3, 5)


@given(st.integers(1, 19), st.integers(0, 236), st.sampled_from(["", "fn", "f", "fnuz"]))
def test_the_pattern_gives_its_widths_or_says_why_not(w, t, suffix):
    name = f"e{w}m{t}{suffix}"
    if (w == 1 and suffix == "") or (w, t, suffix) == (1, 0, "fn"):
        # One exponent bit leaves one normal binade, and the special codes take it.
        with pytest.raises(FormatError, match="no normal number is left"):
            parse_format(name)
        return
    fmt = parse_format(name)
    assert (fmt.exponent_bits, fmt.trailing_bits) == (w, t)
    if fmt.signed:
        assert fmt.width == 1 + w + t


@pytest.mark.parametrize(
    ("name", "width", "precision", "bias", "nan", "infinity"),
    [
        # IEEE P3109: bias 2^(w−1) with w = K − P (signed) or K − P + 1 (unsigned); NaN in the place of −0, or last.
        ("p3109_k8p4se", 8, 4, 8, 0x80, 0x7F),
        ("p3109_k8p3sf", 8, 3, 16, 0x80, None),
        ("p3109_k8p4ue", 8, 4, 16, 0xFF, 0xFE),
        ("p3109_k6p3uf", 6, 3, 8, 0x3F, None),
        ("p3109_k8p1se", 8, 1, 64, 0x80, 0x7F),
    ],
)
def test_p3109_names(name, width, precision, bias, nan, infinity):
    fmt = parse_format(name)
    assert (fmt.name, fmt.width, fmt.precision, fmt.bias, fmt.nan_code) == (name, width, precision, bias, nan)
    assert fmt.infinity_magnitude == (-1 if infinity is None else infinity)
    assert fmt.ties_to_even_code
    assert catalog_row(fmt).purpose == "P3109"
    assert "version 4.0" in catalog_row(fmt).source
    (report_name,) = catalog_row(fmt).aliases
    assert parse_format(report_name) == fmt
    assert report_name.startswith("Binary")


def test_unsigned_patterns():
    assert parse_format("ue8m0") == parse_format("e8m0fnu")
    assert parse_format("ue5m3").largest == 114688
    scale = parse_format("ue6m0")
    assert (scale.zero, scale.bias, scale.nan_code, scale.width) == (False, 31, 63, 6)
    assert (parse_format("ue4m3").largest, parse_format("ue3m2").nan_code) == (448, 31)
    assert catalog_row(parse_format("ue3m2")).source.startswith("the pattern ue<W>m<T>")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("flaot16", "did you mean 'float16'?"),
        ("binary61", "did you mean 'binary64'?"),
        ("e20m3", "W from 1 to 19"),
        ("e5m237", "T from 0 to 236"),
        ("e0m3", "W from 1 to 19"),
        ("e1m1", "no normal number is left"),
        ("p3109_k1p1se", "P3109 names are"),
        ("p3109_k8p8se", "P3109 names are"),
        ("p3109_k65p9se", "P3109 names are"),
        ("e8m0_ieee", "unsigned or no interchange format"),
        ("x87_ieee", "unsigned or no interchange format"),
        ("nonsense_ieee", "unknown format"),
        ("e4m3fnu", "unknown format"),
        ("ue4m3fn", "has no suffix"),
        ("e-4m3", "unknown format"),
        ("e٤m٣", "unknown format"),  # \d matches more digits than those of ASCII
        ("", "unknown format ''"),
        ("fp16\nfp32", "unknown format"),
        ("x" * 10_000, "10,000 characters"),
    ],
)
def test_what_is_no_format_is_named_in_one_line(name, words):
    with pytest.raises(FormatError) as caught:
        parse_format(name)
    text = str(caught.value)
    assert words in text
    assert "\n" not in text
    assert len(text) < 400


@pytest.mark.parametrize("thing", [None, 16, b"fp16", 1.5, ["fp16"]])
def test_what_is_no_name_is_refused(thing):
    with pytest.raises(FormatError, match="a format must be a name or a Format"):
        parse_format(thing)
