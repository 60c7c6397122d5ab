"""Edits by the user: every edit in every format gives the announced bits, and its text reads back as these bits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import Context, decode, parse_format
from floatlab.errors import FloatlabError, LiteralError, UnsupportedError
from floatlab.formats import CATALOG
from floatlab.verbs.edits import EDITS, edited, fields, literal_of, with_bit, with_field
from floatlab.verbs.question import code_of
from floatlab.verbs.show.answer import show

FORMATS = [row.format for row in CATALOG]
formats = st.sampled_from(FORMATS)
contexts = st.builds(
    Context,
    rounding=st.sampled_from(["RNE", "RTZ", "RTP", "RTN", "RTO", "RAZ", "SR"]),
    overflow=st.sampled_from(["native", "saturate"]),
    absent=st.sampled_from(["largest", "zero", "error"]),
    flush_inputs=st.booleans(),
    flush_results=st.booleans(),
)


@st.composite
def data(draw):
    format = draw(formats)
    return decode(draw(st.integers(0, (1 << format.width) - 1)), format)


@given(data(), contexts)
def test_the_text_of_a_datum_reads_back_to_it(datum, context):
    for text in (literal_of(datum, context), code_of(datum)):
        assert show(text, (datum.format,), context).results[0] == datum


@pytest.mark.parametrize("format", [f for f in FORMATS if f.width <= 8], ids=lambda f: f.name)
def test_every_code_reads_back(format):
    for code in range(1 << format.width):
        datum = decode(code, format)
        assert show(literal_of(datum), (format,)).results[0] == datum


@given(data())
def test_a_bit_flipped_twice_is_back(datum):
    for bit in range(datum.format.width):
        flipped = with_bit(datum, bit)
        assert flipped.code ^ datum.code == 1 << bit
        assert with_bit(flipped, bit) == datum
        assert with_bit(datum, bit, 1).code == datum.code | 1 << bit
        assert with_bit(datum, bit, 0).code == datum.code & ~(1 << bit)


@given(data())
def test_fields_typed_as_they_are_change_nothing(datum):
    for name, text in fields(datum).items():
        assert with_field(datum, name, text) == datum


@given(data(), st.sampled_from(sorted(EDITS)))
def test_edits_stay_in_the_format_or_say_why_not(datum, name):
    try:
        after = edited(datum, name)
    except UnsupportedError:
        return
    assert after.format == datum.format
    if name == "up" and datum.is_finite and after.is_finite:
        assert after.exact.as_fraction() > datum.exact.as_fraction()
    if name == "down" and datum.is_finite and after.is_finite:
        assert after.exact.as_fraction() < datum.exact.as_fraction()
    if name == "nan":
        assert after.is_nan
    if name == "infinity":
        assert after.is_infinite
    if name in ("largest", "normal", "subnormal"):
        wanted = {"largest": "largest", "normal": "smallest_normal", "subnormal": "smallest"}[name]
        assert abs(after.exact.as_fraction()) == getattr(datum.format, wanted)
    if name == "double" and datum.is_finite and after.is_finite and datum.is_canonical:
        doubled = 2 * datum.exact.as_fraction()
        assert after.exact.as_fraction() == doubled or abs(doubled) > datum.format.largest


def test_worked_examples():
    one = decode(0x3C00, "fp16")
    assert edited(one, "up").code == 0x3C01
    assert edited(one, "down").code == 0x3BFF
    assert edited(one, "negate").code == 0xBC00
    assert edited(decode(0xBC00, "fp16"), "largest").code == 0xFBFF
    assert edited(decode(0x0001, "fp16"), "halve").code == 0
    assert edited(decode(0, "e4m3fnuz"), "negate").code == 0
    assert literal_of(decode(0x7D01, "fp16")) == "bits:0x7d01@fp16"
    assert literal_of(decode(0x0001, "fp16"), Context(flush_results=True)) == "bits:0x0001@fp16"


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("E", "32", "0 to 31"),
        ("E", "-1", "0 to 31"),
        ("E", "", "0 to 31"),
        ("E", "9" * 5000, "0 to 31"),
        ("T", "0x400", "0 to 1023"),
        ("S", "2", "0 to 1"),
        ("S", "٣x", "0 to 1"),
        ("code", "3c7c", "hexadecimal"),
        ("code", "0x13c7c", "16 bits"),
        ("code", "0101", "16 bits"),
        ("J", "1", "0 to 0"),
    ],
)
def test_wrong_fields_are_named_with_their_limits(name, text, named):
    with pytest.raises(FloatlabError, match=named):
        with_field(decode(0x3C7C, "fp16"), name, text)


def test_fields_take_the_notations_people_type():
    datum = decode(0x3C7C, "fp16")
    assert with_field(datum, "E", "016").biased_exponent == 16
    assert with_field(datum, "E", "0b101").biased_exponent == 5
    assert with_field(datum, "T", "0X3FF").trailing_significand == 0x3FF
    assert with_field(datum, "code", "0_01111_0001111101").code == 0x3C7D


def test_what_a_format_lacks_is_said():
    for format, name in (("e8m0", "negate"), ("e8m0", "zero"), ("e2m1", "infinity"), ("e2m1", "nan")):
        with pytest.raises(UnsupportedError, match="has no"):
            edited(decode(0, format), name)
    with pytest.raises(UnsupportedError, match="no neighbours"):
        edited(decode(0x7E00, "fp16"), "up")
    with pytest.raises(UnsupportedError, match="last number"):
        edited(decode(0x7C00, "fp16"), "up")
    with pytest.raises(FloatlabError, match="bits 0 to 15"):
        with_bit(decode(0, "fp16"), 16)
    with pytest.raises(LiteralError):
        with_field(decode(0, parse_format("fp16")), "code", "")
