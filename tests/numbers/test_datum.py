"""Data: fields, classes, values, ordinals and neighbours, for every code of the small formats."""

import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Datum, Format, FormatError, NumberClass, UnsupportedError, convert, decode, parse_format
from floatlab.formats import CATALOG
from floatlab.numbers import hexadecimal_code
from tests import oracle, strategies
from tests.numbers.small import SMALL

EIGHT_BITS_OR_LESS = [*SMALL, *(row.format for row in CATALOG if row.format.width <= 8)]


def class_of(fmt, code) -> str:
    """Name the class of 5.7.2 from the oracle's decoding and the boundaries of the format."""
    kind, negative, value = oracle.decode(fmt, code)
    if kind == "unsupported":
        return kind
    if kind == "nan":
        t = oracle.trailing(fmt)
        ieee = fmt.infinities and t > 1 and fmt.nans == (1 << t) - 1
        return "signalingNaN" if ieee and not code >> (t - 1) & 1 else "quietNaN"
    if kind == "infinite":
        word = "Infinity"
    elif not value:
        word = "Zero"
    else:
        word = "Normal" if abs(value) >= Fraction(2) ** oracle.least_exponent(fmt) else "Subnormal"
    return ("negative" if negative else "positive") + word


def check(fmt, code):
    datum = decode(code, fmt)
    kind, negative, value = oracle.decode(fmt, code)
    assert datum.number_class.value == class_of(fmt, code), hex(code)
    assert (datum.is_nan, datum.is_infinite, datum.is_finite) == (kind == "nan", kind == "infinite", kind == "finite")
    assert datum.is_signaling == (class_of(fmt, code) == "signalingNaN")
    assert datum.sign_bit == int(negative)
    if kind != "finite":
        for read in (lambda: datum.exact, lambda: datum.ulp, datum.as_integer_ratio):
            with pytest.raises(UnsupportedError):
                read()
        return
    assert datum.exact.as_fraction() == value
    assert datum.exact.negative == negative
    assert Fraction(*datum.as_integer_ratio()) == value
    # c·2^q with c < 2^p, and ulp 2^q: the distance to the next magnitude of the same binade.
    assert datum.exact.c < 1 << fmt.precision
    assert datum.ulp.as_fraction() == Fraction(2) ** datum.quantum_exponent
    if value:
        e = max(oracle.floor_power(abs(value)), oracle.least_exponent(fmt))
        assert datum.quantum_exponent == e - fmt.precision + 1


@pytest.mark.parametrize("fmt", EIGHT_BITS_OR_LESS, ids=lambda f: f.name)
def test_every_code_of_the_small_formats(fmt):
    for code in range(1 << fmt.width):
        check(fmt, code)


@given(st.data())
@settings(max_examples=150)
def test_any_code_of_any_format(data):
    fmt = data.draw(strategies.formats)
    check(fmt, data.draw(strategies.codes(fmt)))


def canonical_comes_back(fmt, code: int) -> None:
    datum = decode(code, fmt)
    if not datum.is_canonical or datum.number_class is NumberClass.UNSUPPORTED:
        return
    back = convert(datum, fmt)
    if datum.is_signaling:  # a conversion quiets it and raises invalid
        assert back.result.code == code | fmt.quiet_bit
        assert back.flags.names == ["invalid"]
    else:
        assert back.result.code == code, hex(code)
        assert back.flags.names == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "fmt", [row.format for row in CATALOG if row.format.width <= 16 or row.format.name == "tf32"], ids=lambda f: f.name
)
def test_encoding_what_was_decoded_gives_every_canonical_code_back(fmt):
    # Every n-th of tf32's 2^19 codes; the test below takes all of them.
    for code in range(0, 1 << fmt.width, 1 if fmt.width <= 16 else 7):
        canonical_comes_back(fmt, code)


@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_encoding_gives_every_canonical_code_of_formats_made_by_hand_back(fmt):
    for code in range(1 << fmt.width):
        canonical_comes_back(fmt, code)


@pytest.mark.slow
def test_encoding_what_was_decoded_gives_every_code_of_tf32_back():
    fmt = parse_format("tf32")
    for code in range(1 << 19):
        canonical_comes_back(fmt, code)


WIDE = ["binary32", "binary64", "binary128", "x87"]


def random_codes_come_back(name, count, generator):
    fmt = parse_format(name)
    for _ in range(count):
        canonical_comes_back(fmt, generator.getrandbits(fmt.width))


@pytest.mark.parametrize("name", WIDE)
def test_random_codes_of_the_wide_formats_come_back(name, generator):
    random_codes_come_back(name, 20_000, generator)


@pytest.mark.slow
@pytest.mark.parametrize("name", WIDE)
def test_a_million_random_codes_of_the_wide_formats_come_back(name, generator):
    random_codes_come_back(name, 1_000_000, generator)


@pytest.mark.parametrize("fmt", EIGHT_BITS_OR_LESS, ids=lambda f: f.name)
def test_only_the_spare_codes_are_not_canonical(fmt):
    # Two codes for one number: the redundant one is the code that the oracle does not produce.
    for code in range(1 << fmt.width):
        kind, negative, value = oracle.decode(fmt, code)
        if kind == "finite":
            want, _ = oracle.project(fmt, value, negative=negative)
            assert decode(code, fmt).is_canonical == (want == code), hex(code)


@pytest.mark.parametrize("fmt", [f for f in EIGHT_BITS_OR_LESS if not f.explicit_integer_bit], ids=lambda f: f.name)
def test_ordinals_and_neighbours_walk_through_all_values_in_order(fmt):
    ranked = {}
    for code in range(1 << fmt.width):
        kind, _, value = oracle.decode(fmt, code)
        if kind == "finite":
            ranked.setdefault(value, []).append(decode(code, fmt))
    ordered = [ranked[value] for value in sorted(ranked)]
    if fmt.infinities:
        last = fmt.infinity_magnitude
        ordered.append([decode(fmt.compose(False, last), fmt)])
        if fmt.signed:
            ordered.insert(0, [decode(fmt.compose(True, last), fmt)])
    firsts = [group[0].ordinal for group in ordered]
    assert firsts == list(range(firsts[0], firsts[0] + len(firsts)))
    assert all(datum.ordinal == group[0].ordinal for group in ordered for datum in group)
    for here, above in zip(ordered, [*ordered[1:], None], strict=True):
        for datum in here:
            assert datum.next_up in (above or [datum])
            assert datum.next_up.is_canonical or datum.next_up == datum
            for other in above or []:
                assert other.next_down in here
    assert all(datum.next_down == datum for datum in ordered[0])
    zero = [d for d in ranked.get(0, []) if d.is_canonical]
    assert all(d.ordinal == 0 for d in zero)


def test_next_up_and_next_down_at_the_edges_are_those_of_5_3_1():
    half = parse_format("binary16")
    codes = {0x8001: 0x8000, 0x8000: 0x0001, 0x0000: 0x0001, 0x7BFF: 0x7C00, 0x7C00: 0x7C00, 0xFC00: 0xFBFF}
    assert {code: decode(code, half).next_up.code for code in codes} == codes
    codes = {0x0001: 0x0000, 0x8000: 0x8001, 0x0000: 0x8001, 0xFBFF: 0xFC00, 0xFC00: 0xFC00, 0x7C00: 0x7BFF}
    assert {code: decode(code, half).next_down.code for code in codes} == codes
    assert decode(0x7E01, half).next_up.code == 0x7E01
    assert decode(0x7E, "e4m3fn").next_up.code == 0x7E
    assert decode(0x81, "e4m3fnuz").next_up.code == 0x00
    assert decode(0x00, "e8m0").next_down.code == 0x00


def test_a_signed_format_without_zero_is_refused_or_keeps_its_two_smallest_numbers_apart():
    try:
        fmt = Format("signed_zeroless", 1, 4, infinities=False, nans=1, zero=False)
    except FormatError:
        return
    minus, plus = decode(1 << (fmt.width - 1), fmt), decode(0, fmt)
    assert minus.exact == -plus.exact
    assert plus.ordinal - minus.ordinal == 1
    assert (minus.next_up, plus.next_down) == (plus, minus)


def test_fields_of_the_standard_example():
    datum = decode(0x3C7C, "fp16")
    assert (datum.sign_bit, datum.biased_exponent, datum.trailing_significand, datum.integer_bit) == (0, 15, 124, None)
    assert (datum.magnitude, datum.quantum_exponent, hexadecimal_code(datum)) == (0x3C7C, -10, "0x3c7c")


def test_x87_codes_whose_integer_bit_contradicts_the_exponent():
    x87 = parse_format("x87")
    one, unnormal = decode(0x3FFF_8000000000000000, x87), decode(0x3FFF_4000000000000000, x87)
    pseudo_infinity, pseudo_nan = decode(0x7FFF << 64, x87), decode((0x7FFF << 64) + 5, x87)
    pseudo_denormal, denormal = decode(0x8000000000000000, x87), decode(0x4000000000000000, x87)
    assert (float(one), one.integer_bit, one.is_canonical) == (1.0, 1, True)
    for datum in (unnormal, pseudo_infinity, pseudo_nan):
        assert datum.number_class is NumberClass.UNSUPPORTED
        assert (datum.is_finite, datum.is_nan, datum.is_infinite) == (False, False, False)
        with pytest.raises(UnsupportedError):
            _ = datum.exact
        with pytest.raises(UnsupportedError):
            _ = datum.ordinal
    # A pseudo-denormal has the value of the code with exponent field 1.
    assert pseudo_denormal.exact == decode((1 << 64) + (1 << 63), x87).exact == Fraction(1, 1 << 16382)
    assert not pseudo_denormal.is_canonical
    assert denormal.exact == Fraction(1, 1 << 16383)
    assert denormal.number_class is NumberClass.POSITIVE_SUBNORMAL


def test_payloads():
    assert decode(0x7E03, "fp16").payload == 3
    assert decode(0x7D55, "fp16").payload == 0x155
    assert decode(0x7F, "e4m3").payload == 0
    with pytest.raises(UnsupportedError, match="is not a NaN"):
        _ = decode(0x3C00, "fp16").payload


@pytest.mark.parametrize("code", [-1, 1 << 16, 1 << 100_000, 1.0, "0x3c00", None], ids=range(6))
def test_what_is_no_code_is_refused(code):
    with pytest.raises(FormatError) as caught:
        decode(code, "fp16")
    assert len(str(caught.value)) < 200


def test_data_are_values():
    assert decode(0x7E00, "fp16") == decode(0x7E00, "fp16")
    assert decode(0, "fp16") != decode(0x8000, "fp16")
    assert decode(0x3C00, "fp16") != decode(0x3C00, "bf16")
    assert hash(decode(1, "fp16")) == hash(Datum(parse_format("half"), 1))
    assert repr(decode(0x3C7C, "fp16")) == "Datum(binary16 0x3c7c = 1.121)"


@pytest.mark.parametrize("name", ["fp16", "e4m3fnuz", "e2m1", "ue4m3", "posit8", "takum_log8"])
def test_zeros_alone_are_false(name):
    data = [decode(code, name) for code in range(1 << parse_format(name).width)]
    zeros = [datum for datum in data if not datum]
    assert zeros == [datum for datum in data if float(datum) == 0]
    assert zeros
    assert all(decode(code, "e8m0") for code in range(256))


@given(st.integers(0, (1 << 64) - 1))
def test_binary64_data_become_pythons_floats(code):
    import struct

    want = struct.unpack(">d", code.to_bytes(8, "big"))[0]
    got = float(decode(code, "fp64"))
    assert got == want or (got != got and want != want)


def test_wider_data_become_the_nearest_float():
    assert float(decode((0x3FFF << 112) + (1 << 59), "fp128")) == 1.0
    assert float(decode((0x3FFF << 112) + (3 << 59), "fp128")) == 1.0 + sys.float_info.epsilon * 2
    assert float(decode((0x7FFE << 112), "fp128")) == float("inf")
