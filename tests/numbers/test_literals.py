"""Literals: accepted forms, rejected forms, and text that would make a naive reader slow."""

import time
import tracemalloc
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import FloatlabError, Format, LiteralError, encode, parse_format, read
from floatlab.numbers import parse_literal
from floatlab.numbers.exact import Code, Infinity, NotANumber, Ratio
from floatlab.numbers.reading import MAX_DIGITS, parse_code
from tests import oracle


def value_of(text: str) -> Fraction:
    literal = parse_literal(text)
    assert isinstance(literal.value, Ratio)
    return literal.value.as_fraction()


NUMBERS = {
    "0": 0, "00.0": 0, "1": 1, "+1": 1, "-1": -1, "- 1": -1, "007": 7, "1.": 1, ".5": Fraction(1, 2),
    "1.5": Fraction(3, 2), " 1.5 ": Fraction(3, 2), "\t1.5\n": Fraction(3, 2), "−1.5": Fraction(-3, 2),
    "-3e-5": Fraction(-3, 10**5), "3E5": 300000, "3e+5": 300000, "1e00000000005": 10**5, "1.25e1": Fraction(25, 2),
    "1_000": 1000, "1_0.2_5": Fraction(1025, 100), "1/3": Fraction(1, 3), "-1/3": Fraction(-1, 3),
    "1/-3": Fraction(-1, 3), "-1/-3": Fraction(1, 3), "1 / 3": Fraction(1, 3), "0.1/0.3": Fraction(1, 3),
    "0x10/3": Fraction(16, 3), "1e2/1e-2": 10**4, "0x1.8p3": 12, "0X1.8P3": 12, "0x.8": Fraction(1, 2), "0x1.": 1,
    "0x1p-2": Fraction(1, 4), "0x1p+2": 4, "0xff": 255, "0xf_f": 255, "0xe": 14, "0x1e3": 0x1E3, "0b101": 5,
    "0b1.01p1": Fraction(5, 2), "-0b1": -1, "2^10": 1024, "2**10": 1024, "2^-24": Fraction(1, 1 << 24), "-2^3": -8,
    "3*2^-24": Fraction(3, 1 << 24), "3 * 2^-24": Fraction(3, 1 << 24), "3×2^4": 48, "0x1.8*2^4": 24,
    "1.5*10^3": 1500, "10^-2": Fraction(1, 100), "2^2/10^1": Fraction(2, 5), "3*2^2*10^2": 1200,
}  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS, ids=repr)
def test_the_forms_of_numbers(text):
    assert value_of(text) == NUMBERS[text]


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5", "-0x0p0", "-0/3", "0/-3", "−0", "-0*2^5", "-.0"])
def test_zeros_keep_their_minus(text):
    literal = parse_literal(text).value
    assert (literal.negative, literal.numerator) == (True, 0)
    assert encode(text, "fp16").code == 0x8000


@pytest.mark.parametrize(
    ("text", "negative"),
    [("inf", False), ("-inf", True), ("+inf", False), ("Infinity", False), ("-INFINITY", True), ("−inf", True)],
)
def test_infinities(text, negative):
    assert parse_literal(text).value == Infinity(negative)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("nan", NotANumber(False)), ("NaN", NotANumber(False)), ("-nan", NotANumber(True)), ("qnan", NotANumber(False)),
        ("nan(0x1)", NotANumber(False, False, 1)), ("nan(12)", NotANumber(False, False, 12)),
        ("nan()", NotANumber(False)), ("nan( 3 )", NotANumber(False, False, 3)), ("snan", NotANumber(False, True, 1)),
        ("-snan(0x7)", NotANumber(True, True, 7)), ("sNaN", NotANumber(False, True, 1)),
        ("nan(1e2)", NotANumber(False, False, 100)), ("nan(0b11)", NotANumber(False, False, 3)),
    ],
)  # fmt: skip
def test_nans(text, want):
    assert parse_literal(text).value == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("0x3c7c", Code(0x3C7C, 16, False)), ("0X3C7C", Code(0x3C7C, 16, False)), ("0x3c_7c", Code(0x3C7C, 16, False)),
        ("0x0001", Code(1, 16, False)), ("0_01111_0001111100", Code(0x3C7C, 16, True)),
        ("0b0011", Code(3, 4, True)), (" 0011 ", Code(3, 4, True)),
    ],
)  # fmt: skip
def test_codes(text, want):
    assert parse_code(text) == want
    assert parse_literal(f"bits:{text}").value == want
    assert parse_literal(f"BITS:{text}").value == want
    assert parse_literal(text, bits=True).value == want


def test_with_bits_the_words_for_special_values_still_work():
    assert parse_literal("-inf", bits=True).value == Infinity(True)
    assert parse_literal("nan", bits=True).value == NotANumber(False)


def test_a_bare_hexadecimal_integer_is_a_number_and_known_as_such():
    assert value_of("0x3c7c") == 15484
    assert parse_literal("0x3c7c").is_bare_hexadecimal
    assert not parse_literal("0x3c7cp0").is_bare_hexadecimal
    assert not parse_literal("bits:0x3c7c").is_bare_hexadecimal


REFUSED = [
    "", " ", ".", "-", "+", "e5", "1e", "1e+", "1.2.3", "1,5", "abc", "--1", "+-1", "1 2", "0x", "0x.", "0xg", "0xp3",
    "0b", "0b2", "0b102", "_1", "1_", "1__0", "1_.5", "1._5", "1e1_0", "0x_f", "0xf_", "1/", "/3", "1/2/3", "1//2",
    "1/0", "0/0", "1/0.0", "1/0x0", "1/-0", "1/inf", "inf/1", "nan/2", "infin", "in", "infinityy", "na", "nan(", "nan)",
    "nan(1", "nan(-1)", "nan(1.5)", "nan(x)", "nan(1)(2)", "nan((1))", "snan(-1)", "xnan", "2^", "^2", "2^1.5", "3^2",
    "2^2^2", "*2^3", "3*4", "1e5e5", "1f", "1.0f", "0x1.8p", "0x1p1.5", "1e0x5", "bits:", "bits:0x", "bits:2",
    "bits:-0x1", "bits:1_", "bits:0x1.8", "١٢٣", "１２", "½", "∞", "1\x002", "1\n2", "\u202e1", "True", "None", "1+2j",
    "()", "(1)", "1)", "((((", "0o17", "1%", "$5", "1e--5", "1e+-5",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED, ids=repr)
def test_what_is_no_value_is_refused_in_one_short_line(text):
    with pytest.raises(LiteralError) as caught:
        parse_literal(text)
    line = str(caught.value)
    assert "\n" not in line
    assert line.isprintable()
    assert len(line) < 300


@pytest.mark.parametrize("text", ["1/0", "-1/0.000", "0x1/0x0p5"])
def test_a_denominator_of_zero_is_told_apart(text):
    with pytest.raises(LiteralError, match="denominator 0"):
        parse_literal(text)


HUGE, SMALL = {"binary16": 0x7C00, "binary128": 0x7FFF << 112}, {"binary16": 0, "binary128": 0}
NINES = "9" * 1_000_000
HOSTILE = {
    "1e999999999": HUGE, "1e-999999999": SMALL, f"1e{'9' * 900}": HUGE, f"1e-{'9' * 900}": SMALL,
    "0x1p99999999999": HUGE, "0x1p-99999999999": SMALL, "2^99999999999": HUGE, "2^-99999999999": SMALL,
    "10^-99999999999": SMALL, "1e999999999/1e-999999999": HUGE, "1/1e999999999": SMALL,
    "1*2^-999999999*10^-999999999": SMALL, NINES: HUGE, f"0.{NINES}": {"binary16": 0x3C00, "binary128": 0x3FFF << 112},
    f"1.{NINES}e-999999999": SMALL, f"0.{'0' * 1_000_000}1": SMALL, f"1{'0' * 1_000_000}": HUGE,
    f"1.{'0' * 1_000_000}1": {"binary16": 0x3C00, "binary128": 0x3FFF << 112}, f"0x{'f' * 1_000_000}": HUGE,
    f"0x0.{'0' * 1_000_000}1": SMALL, f"0b{'1' * 1_000_000}": HUGE, f"{NINES}e-1000000": {"binary16": 0x3C00},
    "0e999999999": SMALL, f"1e{'0' * 1_000_000}1": {"binary16": 0x4900},
    f"{'1' * 190_000}/{'1' * 190_000}": {"binary16": 0x3C00},
    f"{'_'.join('1' * 500_000)}": HUGE,
}  # fmt: skip
# A generous limit: more than linear time would take minutes, linear time takes well under a second.
SECONDS, MEGABYTES = 20, 100


def bounded(work) -> object:
    tracemalloc.start()
    start = time.perf_counter()
    try:
        return work()
    finally:
        seconds, peak = time.perf_counter() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < SECONDS
        assert peak < MEGABYTES << 20


@pytest.mark.one_in(4)
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_text_made_to_stall_is_rounded_rightly_in_bounded_time_and_memory(number):
    text, answers = list(HOSTILE.items())[number]
    for name, code in answers.items():
        assert bounded(lambda name=name: read(text, name).result.code) == code


REFUSED_HOSTILE = [
    f"1e{'9' * 100_000}", f"0x1p-{'9' * 100_000}", f"2^{'9' * 5000}", "(" * 1_000_000, "nan(" * 250_000,
    "-" * 1_000_000, "1/" * 500_000, "2^" * 500_000, "1*" * 500_000 + "2^3", "_" * 1_000_000, "1_" * 500_000,
    "0x" * 500_000, "1" * 1_000_000 + "x", f"nan({'9' * 1_000_000})", f"nan(0x{'f' * 1_000_000})", "nan(1e999999999)",
    "nan(2^999999999)", f"bits:0x{'f' * 1_000_000}", f"bits:{'01' * 500_000}", " " * 1_000_000, "e" * 1_000_000,
    f"{NINES}/{NINES}", "١" * 1_000_000, f"1e-{'_' * 1000}", "1." * 500_000, "2^3*" * 200_000 + "2^3",
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize("number", range(len(REFUSED_HOSTILE)))
def test_text_made_to_stall_is_refused_in_one_short_line(number):
    text = REFUSED_HOSTILE[number]

    def refuse():
        with pytest.raises(FloatlabError) as caught:
            read(text, "binary16")
        return str(caught.value)

    line = bounded(refuse)
    assert "\n" not in line
    assert len(line) < 400


def test_a_factor_before_many_powers_is_read_or_refused_but_never_a_traceback():
    for count in (2, 100, 5000):
        text = "1" + "*2^1" * count
        try:
            read(text, "binary16")
        except FloatlabError as error:
            assert len(str(error)) < 400  # noqa: PT017


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("nan(0x200)", "binary16", "payload from 0 to 0x1ff"),
        ("snan(0)", "binary16", "payload from 1 to 0x1ff"),
        ("nan(1)", "e4m3", "no payload"),
        ("snan", "e4m3fnuz", "none is signaling"),
        ("nan(1)", "e2m1", "has no NaN"),
        ("bits:0x10000", "binary16", "codes have 16 bits"),
        ("bits:0011", "binary16", "codes have 16 bits, and this one has 4"),
    ],
)
def test_what_the_format_cannot_hold_is_refused_with_the_text(text, name, words):
    with pytest.raises(FloatlabError, match=words) as caught:
        read(text, name)
    assert text in str(caught.value)


def test_digits_past_the_limit_still_decide_a_tie():
    # 1 + 2^-11 is halfway between two binary16 numbers; a 1 after 250,000 zeros makes it larger than the tie.
    tie = "1.00048828125"
    assert encode(tie, "fp16").code == 0x3C00
    assert encode(tie + "0" * 250_000, "fp16").code == 0x3C00
    assert encode(tie + "0" * 250_000 + "1", "fp16").code == 0x3C01
    assert parse_literal(tie + "0" * 250_000 + "1").value.truncated
    assert MAX_DIGITS < 250_000


def test_digits_that_do_not_decide_are_refused():
    # 2^-1,048,812 and its multiples have up to 733,000 digits. Only a custom bias gives a format such numbers.
    fmt = Format("small", precision=237, exponent_bits=19, bias=1 << 20)
    near = f"1.{'7' * 250_000}e-315000"
    with pytest.raises(LiteralError, match="small has too many digits near this number"):
        encode(near, fmt)
    assert encode("1.7e-315000", fmt).code == encode(f"1.7{'0' * 250_000}e-315000", fmt).code


def test_the_longest_midpoint_of_any_named_shape_has_fewer_digits_than_are_kept():
    # (2·c + 1)·2^(qmin − 1) of e19m236 in decimal, digit for digit, and one digit more or less.
    fmt = parse_format("e19m236")
    c = (1 << 237) - 1
    places = 1 - fmt.qmin
    from floatlab.numbers.printing import digits_of

    digits = digits_of(c * 5**places)
    assert len(digits) < MAX_DIGITS
    for extra, code in (("", c // 2 + 1), ("1", c // 2 + 1)):
        assert encode(f"{digits}{extra}e{-places - len(extra)}", fmt).code == code
    below = digits[:-1] + chr(ord(digits[-1]) - 1)
    assert encode(f"{below}e{-places}", fmt).code == c // 2


@given(st.text(max_size=40))
@settings(max_examples=250)
def test_any_text_is_read_or_refused_with_floatlabs_own_error(text):
    try:
        read(text, "binary32")
    except FloatlabError as error:
        assert "\n" not in str(error)  # noqa: PT017


@given(st.text(alphabet="0123456789.+-eEpPxXbB_/*^ nasif()", max_size=30))
@settings(max_examples=1000)
def test_text_from_the_alphabet_of_numbers_is_read_or_refused_with_floatlabs_own_error(text):
    try:
        read(text, "binary32")
    except FloatlabError as error:
        assert "\n" not in str(error)  # noqa: PT017


@given(
    st.from_regex(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["binary16", "binary32", "binary64", "binary128", "e4m3fn", "x87"]),
)
@settings(max_examples=250)
def test_decimal_text_is_the_fraction_that_python_reads(text, name):
    if not text.isascii():
        return
    assert value_of(text) == Fraction(text)
    fmt = parse_format(name)
    assert encode(text, fmt).code == oracle.project(fmt, Fraction(text), negative=text.startswith("-"))[0]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_hexadecimal_text_is_the_float_that_python_reads(x):
    assert value_of(x.hex()) == Fraction(x)
