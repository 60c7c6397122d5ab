"""Format: derived parameters, invalid parameters, and the correspondence of codes and magnitudes."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Format, FormatError, parse_format
from tests import oracle, strategies
from tests.numbers.small import SMALL


def finite_values(fmt):
    meanings = [oracle.decode(fmt, code) for code in range(1 << fmt.width)]
    return [m.value for m in meanings if m.kind == "finite"]


@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_the_derived_numbers_are_the_extremes_of_the_enumerated_values(fmt):
    positive = sorted(value for value in finite_values(fmt) if value > 0)
    assert fmt.largest == positive[-1]
    assert fmt.smallest == positive[0]
    assert fmt.smallest_normal == Fraction(2) ** fmt.emin
    assert fmt.smallest_normal in positive
    assert Fraction(2) ** fmt.emax <= fmt.largest < Fraction(2) ** (fmt.emax + 1)
    assert fmt.qmin == fmt.emin - fmt.precision + 1
    assert fmt.trailing_bits == fmt.precision - 1
    if fmt.subnormals:
        assert fmt.smallest == Fraction(2) ** fmt.qmin


@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_the_kinds_of_codes_are_as_many_as_the_parameters_say(fmt):
    kinds = [oracle.decode(fmt, code).kind for code in range(1 << fmt.width)]
    signs = 2 if fmt.signed else 1
    if fmt.explicit_integer_bit:
        assert kinds.count("unsupported") == signs * ((1 << fmt.exponent_bits) - 1) << fmt.trailing_bits
        return
    assert kinds.count("infinite") == signs * fmt.infinities
    assert kinds.count("nan") == signs * fmt.nans + fmt.nan_in_place_of_negative_zero
    assert fmt.has_nan == ("nan" in kinds)


@given(st.data())
@settings(max_examples=300)
def test_magnitude_and_compose_take_apart_and_put_together_what_the_oracle_does(data):
    fmt = data.draw(strategies.formats)
    code = data.draw(strategies.codes(fmt))
    meaning = oracle.decode(fmt, code)
    if meaning.kind == "unsupported":
        return
    magnitude = fmt.magnitude(code)
    # x87's pseudo-denormals are the only codes that do not come back.
    again = fmt.compose(meaning.negative, magnitude)
    assert again == oracle.code_of(fmt, meaning.negative, magnitude)
    assert oracle.decode(fmt, again) == meaning
    if not fmt.explicit_integer_bit:
        assert again == code


@given(strategies.formats)
@settings(max_examples=200)
def test_the_default_nan_is_a_nan_positive_and_quiet_where_that_means_anything(fmt):
    want = oracle.nan_code(fmt)
    assert fmt.has_nan == (want is not None)
    if want is None:
        with pytest.raises(FormatError, match="has no NaN"):
            _ = fmt.nan_code
        return
    assert fmt.nan_code == want
    assert oracle.decode(fmt, want).kind == "nan"


def test_a_bias_and_nans_that_are_not_given_are_ieee_754s():
    fmt = Format("mine", 11, 5)
    assert (fmt.bias, fmt.nans, fmt.infinities, fmt.subnormals, fmt.negative_zero) == (15, 1023, True, True, True)
    assert (fmt.width, fmt.emin, fmt.emax, fmt.qmin) == (16, -14, 15, -24)
    assert fmt.ieee_nans
    assert fmt.quiet_bit == 0x200
    assert fmt.nan_code == 0x7E00


def test_what_cannot_be_is_settled_quietly():
    # With precision 1 there are no subnormals; without a sign or a zero there is no negative zero.
    assert not Format("one_digit", 1, 4, nans=0).subnormals
    assert not Format("unsigned", 3, 3, signed=False).negative_zero
    assert not Format("zeroless", 1, 4, nans=0, zero=False, signed=False).negative_zero


def test_the_quiet_bit_exists_only_where_every_code_above_infinity_is_a_nan():
    assert parse_format("binary32").quiet_bit == 1 << 22
    assert parse_format("e5m2").quiet_bit == 2
    for name in ("e4m3fn", "e4m3fnuz", "e8m0", "e2m1", "e5m1", "p3109_k8p4se"):
        assert parse_format(name).quiet_bit == 0


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"precision": 0, "exponent_bits": 5}, "precision must be an integer from 1 to 237, not 0"),
        ({"precision": 238, "exponent_bits": 5}, "precision must be an integer from 1 to 237, not 238"),
        ({"precision": 11.0, "exponent_bits": 5}, "precision must be an integer"),
        ({"precision": "11", "exponent_bits": 5}, "precision must be an integer"),
        ({"precision": 11, "exponent_bits": 0}, "exponent bits must be an integer from 1 to 19"),
        ({"precision": 11, "exponent_bits": 20}, "exponent bits must be an integer from 1 to 19"),
        ({"precision": 11, "exponent_bits": 5, "bias": 1.5}, "bias must be an integer"),
        ({"precision": 11, "exponent_bits": 5, "bias": 1 << 41}, "bias must be an integer"),
        ({"precision": 11, "exponent_bits": 5, "nans": -1}, "NaN codes per sign must be an integer"),
        ({"precision": 11, "exponent_bits": 5, "zero": False}, "a format without zero must have precision 1, not 11"),
        ({"precision": 2, "exponent_bits": 1}, "no normal number is left"),
        ({"precision": 1, "exponent_bits": 1}, "no normal number is left"),
        ({"precision": 3, "exponent_bits": 3, "nans": 28}, "no normal number is left"),
    ],
)
def test_impossible_formats_are_refused_in_one_line_that_names_the_culprit(parameters, words):
    with pytest.raises(FormatError) as caught:
        Format("mine", **parameters)
    text = str(caught.value)
    assert text.startswith("mine: ")
    assert words in text
    assert "\n" not in text


def test_formats_are_values():
    assert Format("mine", 11, 5) == Format("mine", 11, 5, bias=15, nans=1023)
    assert hash(Format("mine", 11, 5)) == hash(Format("mine", 11, 5, bias=15))
    assert Format("mine", 11, 5) != Format("yours", 11, 5)
    assert Format("mine", 11, 5).replace(precision=8, nans=None) == Format("mine", 8, 5)
    with pytest.raises(AttributeError, match="frozen"):
        Format("mine", 11, 5).precision = 3
