"""Derivations: their steps, their errors exactly, and the numbers of the mixed-precision article."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, Flags, UnsupportedError, convert, decode, encode, read
from floatlab.numbers import Decode, Derivation, Encode, Read, Round, Special
from tests import oracle, strategies


@given(st.data())
@settings(max_examples=100)
def test_the_error_is_result_less_truth_exactly(data):
    fmt = data.draw(strategies.small_formats)
    x = data.draw(strategies.rationals(fmt))
    derivation = read(x, fmt)
    meaning = oracle.decode(fmt, derivation.result.code)
    if meaning.kind != "finite":
        assert derivation.error is None
        assert derivation.error_ulps is None
        return
    assert derivation.error == meaning.value - x
    assert derivation.steps[-1].error == meaning.value - x
    assert derivation.error_ulps == (meaning.value - x) / derivation.result.ulp.as_fraction()
    if not derivation.flags & (Flags.OVERFLOW | Flags.INVALID) and fmt.zero and fmt.subnormals:
        # To nearest: within half a unit of the truth's binade, at most a unit of the result's.
        assert abs(derivation.error_ulps) <= Fraction(1, 2) * (2 if meaning.value < x else 1)


def kinds(derivation):
    return [type(step) for step in derivation.steps]


def test_the_steps_of_each_kind_of_reading():
    assert kinds(read("1/3", "fp16")) == [Read, Round, Encode]
    assert kinds(read(0.1, "fp16")) == [Decode, Round, Encode]
    assert kinds(convert(decode(0x3C00, "fp16"), "fp32")) == [Decode, Round, Encode]
    assert kinds(read("inf", "fp16")) == [Special, Encode]
    assert kinds(convert(decode(0x7E00, "fp16"), "fp32")) == [Decode, Special, Encode]
    assert kinds(read("bits:0x3c7c", "fp16")) == [Decode, Encode]
    assert kinds(convert(decode(1, "fp16"), "fp32", Context(flush_inputs=True))) == [Decode, Special, Round, Encode]


def test_a_derivation_ends_in_its_result_and_knows_its_verdict():
    derivation = read("1.12156456132", "fp16")
    assert derivation.steps[-1].datum is derivation.result
    assert derivation.rounded is derivation.steps[1].rounded
    assert derivation.rounded.code == derivation.result.code
    assert derivation.rounded.flags == derivation.flags
    assert derivation.truth.as_fraction() == Fraction("1.12156456132")
    assert read("inf", "fp16").rounded is None
    assert read("inf", "fp16").truth is None


def test_flags_iterate_in_the_order_in_which_they_are_named():
    assert [flag.name for flag in read("1e9", "fp16").flags] == ["OVERFLOW", "INEXACT"]
    assert read("1e-9", "fp16").flags.names == ["underflow", "inexact"]
    every = Flags.INVALID | Flags.DIVIDE_BY_ZERO | Flags.OVERFLOW | Flags.UNDERFLOW | Flags.INEXACT
    assert every.names == ["invalid", "divide_by_zero", "overflow", "underflow", "inexact"]
    assert Flags.NONE.names == []


def test_an_error_too_long_to_write_out_is_refused():
    derivation = read("1e-999999999", "fp16")
    with pytest.raises(UnsupportedError, match="too long"):
        _ = derivation.error
    assert derivation.result.code == 0


def test_an_exact_reading_has_error_zero():
    for text in ("0.5", "-0", "bits:0x3c7c", "0x1p-24"):
        assert read(text, "fp16").error == 0
        assert read(text, "fp16").error_ulps == 0


def test_the_error_of_a_flushed_operand_counts_from_the_operand():
    derivation = convert(decode(3, "fp16"), "fp32", Context(flush_inputs=True))
    assert derivation.error == -Fraction(3, 1 << 24)


def test_a_derivation_without_a_result_says_so():
    whole = read("0.1", "fp16")
    part = Derivation(whole.operation, whole.operands, whole.context, whole.steps[:1], whole.result, whole.flags)
    with pytest.raises(UnsupportedError, match="no result yet"):
        _ = part.error


# --- the mixed-precision article's example, corrected ------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "code", "value", "ulps"),
    [
        ("1.12156456132", "fp32", 0x3F8F8F6D, "1.12156450748443603515625", None),
        ("1.12156456132", "fp16", 0x3C7C, "1.12109375", "-0.48211079168"),
        ("0.12457275390625", "fp16", 0x2FF9, "0.12457275390625", "0"),
        ("1.24957275390625", "fp16", 0x3D00, "1.25", "0.4375"),
        ("1.24957275390625", "fp32", None, "1.24957275390625", "0"),
        ("1.00048828125", "fp16", 0x3C00, "1", "-0.5"),
        ("0.00041999", "fp16", 0x0EE2, "0.000420093536376953125", None),
    ],
)
def test_the_articles_numbers(text, name, code, value, ulps):
    derivation = read(text, name)
    if code is not None:
        assert derivation.result.code == code
    assert derivation.result.exact == Fraction(value)
    if ulps is not None:
        assert derivation.error_ulps == Fraction(ulps)


def test_the_articles_errors_in_decimals():
    assert round(float(read("1.12156456132", "fp32").error_ulps), 4) == -0.4516
    update, weight = encode("0.00041999", "fp16"), encode("1.125", "fp16")
    assert round(float(update.exact.as_fraction() / weight.ulp.as_fraction()), 5) == 0.43018
    assert f"{float(update) / 1.125:.3e}" == "3.734e-04"


def test_binary16_to_binary32_adds_112_to_the_biased_exponent():
    datum = encode("0.12457275390625", "fp16")
    wide = convert(datum, "fp32").result
    assert (datum.biased_exponent, wide.biased_exponent) == (11, 123)


def test_a_hundred_and_one_updates_leave_binary16_where_it_was_and_move_binary32():
    update = encode("0.00041999", "fp16").exact
    half = single = encode("1.125", "fp32").exact
    seen = {}
    for step in range(1, 102):
        half = encode(half + update, "fp16").exact
        single = encode(single + update, "fp32").exact
        seen[step] = float(encode(single, "fp32"))
    assert half == Fraction("1.125")
    assert single == Fraction("1.167429447174072265625")
    wanted = {1: 1.125420093536377, 2: 1.125840187072754, 51: 1.1464247703552246, 100: 1.1670093536376953}
    assert {step: seen[step] for step in wanted} == wanted


def test_the_smallest_update_that_moves_1125_up_is_just_above_half_a_unit():
    half_unit, weight = Fraction(1, 1 << 11), Fraction("1.125")
    assert encode(weight + half_unit, "fp16").exact == weight  # a tie, and 1.125 is even
    assert encode(weight + half_unit * Fraction(1001, 1000), "fp16").exact == weight + 2 * half_unit
    # Below a power of two the step down is half of the step up.
    one = encode("1", "fp16")
    assert 2 * (one.exact - one.next_down.exact).as_fraction() == (one.next_up.exact - one.exact).as_fraction()


@pytest.mark.parametrize("digits", [10, 5_000, 50_000])
def test_a_long_literals_error_is_bounded_where_its_digits_were_cut(digits):
    """0x1.fff… is 2^-4·digits below 2; all digits that the rounding keeps are larger than this distance."""
    derivation = read(f"0x1.{'f' * digits}", "fp16")
    exact = derivation.error_ulps
    assert exact == Fraction(2) ** (-4 * digits) / derivation.result.ulp.as_fraction()
    nearby = derivation.approximate_error_ulps
    if nearby is None:
        assert exact < Fraction(2) ** derivation.error_binade_ulps
    else:
        assert nearby == exact
