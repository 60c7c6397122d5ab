"""Numbers as text: shortest, complete and hexadecimal, and that every text reads back to the same code."""

import random
import struct
import sys
import time
from decimal import Context as DecimalContext
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from floatlab import Exact, decode, encode, parse_format
from floatlab.formats import CATALOG
from floatlab.numbers import parse_literal
from floatlab.numbers.datum import exact_text, hexadecimal, shortest, special_text
from floatlab.numbers.exact import Ratio
from floatlab.numbers.printing import (
    decimal_text,
    digits_of,
    exact_decimal,
    fraction_text,
    integer_from_digits,
    ratio_text,
    rounded_decimal,
    terminating_decimal,
)
from tests import oracle, strategies
from tests.numbers.small import SMALL

CATALOG_FORMATS = [row.format for row in CATALOG]
EIGHT_BITS_OR_LESS = [*SMALL, *(f for f in CATALOG_FORMATS if f.width <= 8)]


def significant(text: str) -> str:
    """Return a decimal's significant digits."""
    digits = text.lower().lstrip("-").split("e")[0].replace(".", "")
    return digits.strip("0") or "0"


def finite_codes(fmt, codes):
    return [code for code in codes if oracle.decode(fmt, code).kind == "finite"]


# --- the shortest decimal -----------------------------------------------------------------------------------


def distances(fmt, code: int, n: int) -> list[Fraction]:
    """Return the distances between a code's value and the relevant decimals of n digits that read back as this code.

    Relevant are the nearest decimals below and above, in the value's decade and in the adjacent decades.
    """
    meaning = oracle.decode(fmt, code)
    value = abs(meaning.value)
    decade = oracle.floor_power(value) * 30103 // 100_000
    while Fraction(10) ** decade > value:
        decade -= 1
    while Fraction(10) ** (decade + 1) <= value:
        decade += 1
    found = []
    for top in (decade - 1, decade, decade + 1):
        unit = Fraction(10) ** (top - n + 1)
        for c in {value // unit - 1, value // unit, value // unit + 1, 10 ** (n - 1)}:
            if 10 ** (n - 1) <= c < 10**n:
                again, flags = oracle.project(fmt, -c * unit if meaning.negative else c * unit)
                if again == code and "overflow" not in flags:
                    found.append(abs(c * unit - value))
    return found


def check_shortest(fmt, code: int) -> None:
    meaning = oracle.decode(fmt, code)
    text = shortest(decode(code, fmt))
    assert encode(text, fmt).code == oracle.project(fmt, meaning.value, negative=meaning.negative)[0]
    if not meaning.value:
        assert text == ("-0" if meaning.negative else "0")
    elif decode(code, fmt).is_canonical:
        n = len(significant(text))
        # A decimal of fewer digits, with zeros appended, is also a decimal of one digit less.
        assert n == 1 or not distances(fmt, code, n - 1), (hex(code), text)
        assert abs(Fraction(text) - meaning.value) == min(distances(fmt, code, n)), (hex(code), text)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fmt", EIGHT_BITS_OR_LESS, ids=lambda f: f.name)
def test_the_shortest_decimal_is_minimal_and_nearest_for_every_code(fmt):
    for code in finite_codes(fmt, range(1 << fmt.width)):
        check_shortest(fmt, code)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["binary16", "bfloat16", "tf32", "binary32", "x87", "binary64", "binary128"])
def test_the_shortest_decimal_is_minimal_and_nearest_for_codes_at_the_edges(name):
    fmt = parse_format(name)
    t, last = oracle.trailing(fmt), oracle.largest_magnitude(fmt)
    edges = {m + d for m in (1, 8, 1 << t, 2 << t, 5 << t, last // 2, last - 2) for d in range(3)}
    edges |= {(f << t) + d for f in range(1, 60, 7) for d in (-1, 0, 1)}
    for magnitude in edges:
        check_shortest(fmt, fmt.compose(False, magnitude))


@given(st.data())
@settings(max_examples=150)
def test_the_shortest_decimal_is_minimal_and_nearest_in_any_format(data):
    fmt = data.draw(strategies.small_formats)
    code = data.draw(strategies.codes(fmt))
    if oracle.decode(fmt, code).kind == "finite":
        check_shortest(fmt, code)


def same_digits(ours: str, theirs: str) -> bool:
    return significant(ours) == significant(theirs) and Fraction(ours) == Fraction(theirs)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=500)
def test_binary64s_shortest_is_pythons_repr(x):
    text = shortest(encode(x, "fp64"))
    assert same_digits(text, repr(x))
    assert float(text) == x


def test_binary64s_shortest_is_pythons_repr_for_random_codes(generator):
    for _ in range(20_000):
        code = generator.getrandbits(64)
        x = struct.unpack(">d", code.to_bytes(8, "big"))[0]
        if x - x == 0:
            assert same_digits(shortest(decode(code, "fp64")), repr(x)), hex(code)


@pytest.mark.parametrize(
    ("name", "kind", "unsigned"), [("fp32", np.float32, np.uint32), ("fp16", np.float16, np.uint16)]
)
def test_the_shortest_of_binary32_and_binary16_is_numpys(name, kind, unsigned, generator):
    width = parse_format(name).width
    codes = range(1 << 16) if width == 16 else [generator.getrandbits(32) for _ in range(20_000)]
    values = np.array(codes, dtype=unsigned).view(kind)
    for code, x in zip(codes, values, strict=True):
        if np.isfinite(x):
            theirs = np.format_float_scientific(x, unique=True, trim="-")
            assert same_digits(shortest(decode(code, name)), theirs), hex(code)


def test_how_a_decimal_is_laid_out():
    assert decimal_text(False, "1", 20) == "1" + "0" * 20
    assert decimal_text(False, "1", 21) == "1e21"
    assert decimal_text(False, "12", -4) == "0.00012"
    assert decimal_text(False, "12", -5) == "1.2e-5"
    assert decimal_text(False, "12", -5, positional=range(-5, 3)) == "0.000012"
    assert decimal_text(True, "1200", 3) == "-1200"
    assert decimal_text(True, "000", 3) == "-0"
    assert shortest(encode("65504", "fp16")) == "65500"
    assert shortest(encode("5e-324", "fp64")) == "5e-324"
    assert shortest(encode("0.1", "fp16")) == "0.1"


# --- the complete decimal -----------------------------------------------------------------------------------

EXACTLY = DecimalContext(prec=20_000, Emax=10**9, Emin=-(10**9))


@given(st.booleans(), st.integers(0, 1 << 130), st.integers(-1200, 1200))
@settings(max_examples=150)
def test_the_complete_decimal_is_decimal_decimals(negative, c, q):
    text = exact_decimal(Exact(negative, c, q))
    two = EXACTLY.power(Decimal(2), abs(q))
    want = EXACTLY.multiply(Decimal(c), two) if q >= 0 else EXACTLY.divide(Decimal(c), two)
    assert Decimal(text) == want.copy_sign(-1 if negative else 1)
    assert text.startswith("-") == negative
    assert len(significant(text)) == len(want.normalize(EXACTLY).as_tuple().digits)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=150)
def test_the_complete_decimal_of_a_float_is_decimals(x):
    assert Decimal(exact_text(encode(x, "fp64"))) == Decimal(x)


def test_past_the_limit_of_digits_the_complete_decimal_is_symbolic_and_reads_back():
    assert exact_decimal(Exact(True, 3, -99999)) == "-3 * 2^-99999"
    assert exact_decimal(Exact(False, 3, 10**12)) == f"3 * 2^{10**12}"
    assert exact_decimal(Exact(False, 1, -100), limit=50) == "1 * 2^-100"
    text = exact_decimal(Exact(False, (1 << 200_000) - 1, 7))
    assert text.startswith("0x")
    assert text.endswith(" * 2^7")
    assert exact_decimal(Exact(True, 0, 10**12)) == "-0"


@given(st.booleans(), st.integers(1, 1 << 80), st.sampled_from([-(10**6), -70_000, -300, 0, 300, 70_000, 10**6]))
def test_every_complete_decimal_reads_back_as_the_same_number(negative, c, q):
    x = Exact(negative, c, q)
    value = parse_literal(exact_decimal(x)).value
    read = Exact(value.negative, value.numerator * 5**value.tens, value.twos + value.tens) if value.tens >= 0 else None
    if read is None:
        assert x * Exact(False, 5**-value.tens, -value.tens) == Exact(value.negative, value.numerator, value.twos)
    else:
        assert read == x


@pytest.mark.parametrize("fmt", CATALOG_FORMATS, ids=lambda f: f.name)
def test_the_limit_is_past_the_longest_complete_decimal_of_every_named_format(fmt):
    longest = decode(fmt.compose(False, (2 << fmt.trailing_bits) - 1), fmt)
    assert "*" not in exact_text(longest)
    assert "*" not in exact_text(decode(fmt.compose(False, fmt.largest_magnitude), fmt))


def test_the_longest_decimal_of_binary128_has_11563_digits():
    fmt = parse_format("fp128")
    longest = decode((2 << 112) - 1, fmt)
    assert len(significant(exact_text(longest))) == 11563


# --- hexadecimal ---------------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=250)
def test_hexadecimal_reads_as_pythons_and_is_written_as_it_for_normal_numbers(x):
    text = hexadecimal(encode(x, "fp64"))
    assert float.fromhex(text) == x
    if abs(x) >= sys.float_info.min:
        mantissa, power = x.hex().split("p")
        trimmed = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        assert text == f"{trimmed}p{power}"


def test_hexadecimal_of_zero_subnormal_and_special_data():
    texts = {0: "0x0p+0", 0x8000: "-0x0p+0", 1: "0x1p-24", 0x83FF: "-0x1.ff8p-15", 0x3C00: "0x1p+0", 0xFC00: "-inf",
             0x7E00: "nan"}  # fmt: skip
    assert {code: hexadecimal(decode(code, "fp16")) for code in texts} == texts


# --- special data --------------------------------------------------------------------------------------------


def test_text_of_special_data():
    texts = {0x7C00: "inf", 0xFC00: "-inf", 0x7E00: "nan", 0xFE00: "-nan", 0x7E03: "nan(0x3)", 0x7D55: "snan(0x155)",
             0xFC01: "-snan(0x1)"}  # fmt: skip
    assert {code: special_text(decode(code, "fp16")) for code in texts} == texts
    assert special_text(decode(0x80, "e4m3fnuz")) == "nan"
    assert special_text(decode(0xFF, "e4m3")) == "-nan"
    assert special_text(decode(1 << 64, "x87")) == "unsupported"


# --- everything reads back ------------------------------------------------------------------------------------


def reads_back(fmt, code: int) -> None:
    datum = decode(code, fmt)
    if not datum.is_canonical or datum.number_class.value == "unsupported":
        return
    for write in (shortest, exact_text, hexadecimal):
        text = write(datum)
        assert encode(text, fmt).code == code, (hex(code), text)


@pytest.mark.parametrize("fmt", [f for f in CATALOG_FORMATS if f.width <= 8], ids=lambda f: f.name)
def test_every_text_of_every_small_code_reads_back(fmt):
    for code in range(1 << fmt.width):
        reads_back(fmt, code)


@pytest.mark.parametrize("fmt", [f for f in CATALOG_FORMATS if 8 < f.width <= 19], ids=lambda f: f.name)
def test_texts_of_a_sample_of_codes_read_back(fmt):
    for code in range(0, 1 << fmt.width, 13 if fmt.width == 16 else 101):
        reads_back(fmt, code)


@pytest.mark.slow
@pytest.mark.parametrize("fmt", [f for f in CATALOG_FORMATS if 8 < f.width <= 19], ids=lambda f: f.name)
def test_every_text_of_every_code_reads_back(fmt):
    for code in range(1 << fmt.width):
        reads_back(fmt, code)


@given(st.data())
@settings(max_examples=100)
def test_texts_of_any_catalog_code_read_back(data):
    fmt = data.draw(strategies.catalog_formats)
    reads_back(fmt, data.draw(strategies.codes(fmt)))


# --- rational numbers -----------------------------------------------------------------------------------------

fractions = st.builds(Fraction, st.integers(-(10**30), 10**30), st.integers(1, 10**30))


@given(fractions, st.integers(1, 25))
@example(Fraction(1, 10001), 4)
@example(Fraction(25), 1)
@example(Fraction(35), 1)
@example(Fraction(-995), 2)
def test_rounded_decimals_are_decimals_to_nearest_ties_to_even(x, digits):
    context = DecimalContext(prec=digits, rounding="ROUND_HALF_EVEN")
    want = context.divide(Decimal(x.numerator), Decimal(x.denominator))
    assert Decimal(rounded_decimal(x, digits)) == want


@given(st.integers(-(10**30), 10**30), st.integers(0, 60), st.integers(0, 60))
def test_terminating_decimals_are_complete(n, twos, fives):
    x = Fraction(n, 2**twos * 5**fives)
    assert Fraction(terminating_decimal(x)) == x
    assert terminating_decimal(x + Fraction(1, 3)) is None


def test_terminating_decimals_keep_to_the_limit():
    assert terminating_decimal(Fraction(1, 1 << 100), limit=100) is not None
    assert terminating_decimal(Fraction(1, 1 << 101), limit=100) is None


@given(fractions)
def test_fractions_as_text(x):
    assert Fraction(fraction_text(x)) == x


@pytest.mark.parametrize(
    "text",
    [
        "0.1",
        "-1/3",
        "1e-999999999",
        "3*2^-24",
        "0x1.8p100000",
        "-0",
        "1e5/7",
        "3*2^9/7",
        "7/3e5",
        "12345678901234567.5",
    ],
)
def test_ratios_as_text_read_back(text):
    value = parse_literal(text).value
    again = parse_literal(ratio_text(value)).value
    assert again == value or again.as_fraction() == value.as_fraction()


def test_a_ratio_that_was_cut_says_so():
    assert ratio_text(Ratio(False, 1, truncated=True)).endswith("…")


# --- long integers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [1, 1999, 2000, 2001, 4300, 4301, 5000, 100_000])
def test_long_integers_to_digits_and_back(digits):
    generator = random.Random(digits)
    n = generator.randrange(10 ** (digits - 1), 10**digits)
    text = digits_of(n)
    assert len(text) == digits
    assert integer_from_digits(text) == n
    assert integer_from_digits("000" + text) == n
    assert int(text[-15:]) == n % 10**15
    assert int(text[:15]) == n // 10 ** max(digits - 15, 0)


def test_powers_of_ten_have_their_zeros():
    for k in (0, 1, 1999, 2000, 2001, 4000, 8000, 20_000):
        assert digits_of(10**k) == "1" + "0" * k
        assert digits_of(10**k - 1) == ("9" * k or "0")
    assert integer_from_digits("") == 0


def quickest(compute) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        compute()
        times.append(time.perf_counter() - start)
    return min(times)


@pytest.mark.parametrize("code", [0x7FFFE << 236 | 0x123, 0x00010 << 236 | 0x123], ids=["far up", "far down"])
def test_a_short_text_of_a_long_number_costs_a_few_powers_of_ten(code):
    datum = decode(code, "e19m236")
    value = datum.exact.as_fraction()
    power = quickest(lambda: 10**78_000)
    assert quickest(lambda: shortest(datum)) < 25 * power
    assert quickest(lambda: rounded_decimal(value, 72)) < 25 * power
