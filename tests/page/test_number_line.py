"""The number line: numbers to scale, and the reals that round to each, compared with the rounding."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, Direction, decode, encode, read
from floatlab.formats import CATALOG, parse_format
from floatlab.numbers import Exact
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.datum import show_page
from floatlab.page.model import Axis, Page, text_of
from floatlab.page.number_line import number_line, scale_rows
from floatlab.page.text_layout import to_text
from tests import strategies
from tests.page.test_number_line_layout import labels_of, lines_of, words

FORMATS = [*(row.format for row in CATALOG), *map(parse_format, ("p3109_k8p1ue", "p3109_k6p3sf", "e3m0", "e9m70"))]
WIDTHS = (20, 31, 46, 63, 64, 80, 120, 140)


def telling_codes(fmt) -> list[int]:
    """Return codes at the ends of the strip, around zero and at a binade's edge, of both signs."""
    t, last = fmt.trailing_bits, fmt.largest_magnitude
    edge = (fmt.bias << t) if 0 < fmt.bias << t < last else last >> 1
    magnitudes = {each for each in (0, 1, 2, 1 << t, edge - 1, edge, edge + 1, last - 1, last) if 0 <= each <= last}
    codes = [fmt.compose(sign, each) for each in sorted(magnitudes) for sign in (False, True)[: 1 + fmt.signed]]
    return [code for code in codes if decode(code, fmt).is_finite]


@pytest.mark.one_in(10)
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_every_line_fits_and_every_label_is_whole(fmt):
    for code in telling_codes(fmt):
        for direction in Direction:
            axis = number_line(decode(code, fmt), Context(rounding=direction), Exact(False, 1, 0), "what was typed")
            for width in WIDTHS:
                for each in lines_of(axis, width):
                    assert len(each) <= width
                    assert words(each) <= labels_of(axis)


def neighbours(datum) -> list:
    """Return the finite data within two steps, in ascending order; zero counts once."""
    found = [datum]
    for _ in range(2):
        found = [found[0].next_down, *found, found[-1].next_up]
    return list({each.exact.as_fraction(): each for each in found if each.is_finite}.items())


@settings(max_examples=120)
@given(st.data())
def test_numbers_stand_to_scale_and_reals_land_where_the_bins_say(data):
    fmt = data.draw(strategies.small_formats)
    datum = decode(data.draw(strategies.codes(fmt)), fmt)
    context = Context(
        rounding=data.draw(st.sampled_from([each for each in Direction if not each.is_stochastic])),
        overflow=data.draw(st.sampled_from(["native", "saturate"])),
        flush_results=data.draw(st.booleans()),
        tininess=data.draw(st.sampled_from(["after", "before"])),
    )
    axis = number_line(datum, context)
    assert (axis is not None) == datum.is_finite
    if axis is None or (not fmt.subnormals and fmt.zero and not datum.is_canonical):
        return
    values = [value for value, _ in neighbours(datum)]
    places = sorted(Fraction(mark.place) for mark in axis.lanes[0].marks if mark.symbol in "●○")
    assert len(places) == len(values)
    if len(values) == 1:
        return
    unit = (values[-1] - values[0]) / (places[-1] - places[0])
    for value, place in zip(values, places, strict=True):
        assert abs(values[0] + (place - places[0]) * unit - value) <= unit / 10**12
    for span in axis.lanes[1].spans:
        start, end = max(Fraction(span.start), 0), min(Fraction(span.end), 1)
        for share in (Fraction(1, 1000), Fraction(1, 2), Fraction(999, 1000)) if end - start > 1e-9 else ():
            x = values[0] + (start + (end - start) * share - places[0]) * unit
            landed = read(x, fmt, context).result
            assert text_of(span.label) == (hexadecimal_code(landed) if landed.is_finite else shortest(landed))


@pytest.mark.parametrize("name", ["fp16", "e4m3", "e5m2fnuz", "p3109_k8p3se", "x87"])
def test_under_stochastic_rounding_a_bin_reaches_to_both_neighbours(name):
    axis = number_line(encode("1", name), Context(rounding="SR"))
    (mine,) = (each for each in axis.lanes[1].spans if each.heavy)
    marks = sorted(each.place for each in axis.lanes[0].marks)
    assert (mine.start, mine.end) == (marks[1], marks[3])


def shown(text: str, format: str, width: int = 80, **choices) -> str:
    return to_text(Page(tuple(scale_rows(read(text, format, Context(**choices))))), width)


@pytest.mark.parametrize(
    ("text", "format", "choices", "words"),
    [
        ("1", "fp16", {}, "−0.00048828125, 1/2 ulp"),
        ("1", "fp16", {}, "+0.0009765625, 1 ulp"),
        ("1", "fp64", {}, "+2^-52, 1 ulp"),
        ("0.1", "fp16", {"rounding": "RTP"}, "0x2e66 −2.44140625e-5"),
        ("65504", "fp16", {}, "inf from 65520 on"),
        ("-65504", "fp16", {}, "-inf from -65520 down"),
        ("65504", "fp16", {"rounding": "RTZ"}, "all numbers above land here"),
        ("448", "e4m3", {}, "nan past 464"),
        ("-240", "e4m3fnuz", {}, "nan from -248 down"),
        ("448", "e4m3", {"overflow": "saturate"}, "all numbers above land here"),
        ("0", "p3109_k8p3ue", {}, "none below"),
        ("2^-127", "e8m0", {}, "none below"),
        ("2^-127", "e8m0", {"absent": "error"}, "none below"),
        ("6", "e2m1", {"absent": "error"}, "all numbers above land here"),
        ("1e9", "fp16", {"rounding": "RTZ"}, "the typed number is beyond the right end of this line"),
        ("-1e9", "e4m3", {"overflow": "saturate"}, "the typed number is beyond the left end of this line"),
        ("1e-6", "fp16", {"flush_results": True}, "beyond the right end"),
    ],
)
def test_distances_and_ends_in_words(text, format, choices, words):
    assert words in shown(text, format, **choices)


def test_the_numbers_around_what_was_typed_are_told_exactly():
    rows = " ".join(shown("1.12156456132", "fp16").split())
    assert "from typed 0x3c7c −0.00047081132 0x3c7d +0.00050575118" in rows
    assert "from typed" not in shown("1.5", "fp16")
    assert "from typed" not in shown("bits:0x3c7c", "fp16")


def test_what_was_typed_stands_where_it_lies():
    derivation = read("1.12156456132", "fp16")
    (axis,) = (each for each in scale_rows(derivation) if isinstance(each, Axis))
    marks = {each.symbol + text_of(each.label): each.place for each in axis.lanes[0].marks}
    low, high = marks["●1.12109375"], marks["○1.1220703125"]
    share = (Fraction("1.12156456132") - Fraction("1.12109375")) * 1024
    assert abs((marks["▼1.12156456132"] - low) / (high - low) - share) < 1e-12


@pytest.mark.parametrize("text", ["inf", "nan", "70000"])
def test_what_is_no_number_has_no_line(text):
    assert scale_rows(read(text, "fp16")) == []


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "1/3", "0x1p-99999999999", "inf", "9" * 5000])
@pytest.mark.parametrize("format", ["fp16", "e8m0", "e4m3", "e19m236"])
def test_numbers_far_away_are_no_trouble(text, format):
    for direction in ("RNE", "RTZ", "SR"):
        assert shown(text, format, 46, rounding=direction, overflow="saturate")


def test_a_binade_s_edge_shows():
    axis = number_line(encode("1", "fp16"))
    left, here, right = sorted(each.place for each in axis.lanes[0].marks)[1:4]
    assert abs((right - here) / (here - left) - 2) < 1e-12


def test_both_zeros_have_their_half():
    names = [text_of(each.label) for each in number_line(encode("0", "fp16")).lanes[1].spans]
    assert names.index("0x8000") + 1 == names.index("0x0000")
    assert "0x80" not in [text_of(each.label) for each in number_line(encode("0", "e4m3fnuz")).lanes[1].spans]


def test_where_tiny_results_are_flushed_no_real_lands_on_a_subnormal():
    axis = number_line(encode("0", "fp16"), Context(flush_results=True))
    assert {text_of(each.label): (each.start, each.end) for each in axis.lanes[1].spans} == {
        "0x8000": (-1.0, 0.5),
        "0x0000": (0.5, 2.0),
    }


def test_a_pseudo_denormal_is_drawn_as_the_number_that_it_is():
    odd, canonical = decode(0x00008000000000000000, "x87"), decode(0x00018000000000000000, "x87")
    assert odd.exact == canonical.exact
    assert number_line(odd) == number_line(canonical)


@pytest.mark.parametrize("code", [0x00, 0x01, 0x33, 0x40, 0x7F, 0x80, 0x8B])
@pytest.mark.parametrize("name", ["fp16", "e4m3", "fp64", "nf4", "posit16", "takum_log8", "takum_log16"])
def test_powers_of_e_have_pages_with_intervals(code, name):
    found = show_page(read(decode(code, "takum_log8"), name), interval=True)
    shown = to_text(found, 80)
    if code in (0x33, 0x40):
        assert ("  number line  ──" in shown) == ("log" not in name)
    if code == 0x33 and name == "fp16":
        assert "▼ takum_log8 ≈ 0.32465" in shown
    if name.startswith("takum_log"):
        assert ("its ends are powers of √e" in shown) == (code != 0x80)
