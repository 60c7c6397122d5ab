"""Values into formats: every kind of Python and NumPy number, conversions between formats, NaNs and x87's oddities."""

import math
import struct
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import (
    Context,
    Exact,
    Flags,
    FloatlabError,
    FormatError,
    LiteralError,
    UnsupportedError,
    convert,
    decode,
    encode,
    parse_format,
    read,
)
from floatlab.formats import CATALOG
from floatlab.numbers import parse_literal
from tests import oracle, strategies

TARGETS = ["binary16", "bfloat16", "e4m3fn", "e5m2fnuz", "binary32", "binary128", "x87", "e8m0"]
targets = st.sampled_from([parse_format(name) for name in TARGETS])


def want(fmt, x, negative=False):
    return oracle.project(fmt, Fraction(x), negative=negative)


def got(value, fmt, context=None):
    derivation = read(value, fmt, context or Context())
    return derivation.result.code, frozenset(derivation.flags.names)


# --- Python's numbers -----------------------------------------------------------------------------------------


@given(st.integers(-(1 << 140), 1 << 140), targets)
def test_integers_are_rounded_once(n, fmt):
    assert got(n, fmt) == want(fmt, n)


@given(st.floats(allow_nan=False, allow_infinity=False), targets)
def test_floats_are_rounded_once_and_keep_the_sign_of_zero(x, fmt):
    assert got(x, fmt) == want(fmt, x, math.copysign(1, x) < 0)


@given(st.fractions(), targets)
def test_fractions_are_rounded_once(x, fmt):
    assert got(x, fmt) == want(fmt, x)


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**50), max_value=10**50), targets)
def test_decimals_are_rounded_once_and_keep_the_sign_of_zero(x, fmt):
    assert got(x, fmt) == want(fmt, Fraction(x), x.is_signed())


@given(st.data())
def test_exact_numbers_data_and_literals_are_read_too(data):
    fmt = data.draw(targets)
    x = data.draw(st.builds(Exact, st.booleans(), st.integers(0, 1 << 60), st.integers(-200, 200)))
    assert got(x, fmt) == want(fmt, x.as_fraction(), x.negative)
    source = data.draw(strategies.catalog_formats)
    datum = decode(data.draw(strategies.codes(source)), source)
    assert got(datum, fmt) == (convert(datum, fmt).result.code, frozenset(convert(datum, fmt).flags.names))
    assert got(parse_literal("1/3"), fmt) == got("1/3", fmt) == got(Fraction(1, 3), fmt)


def test_special_floats_and_decimals():
    for value in (math.inf, Decimal("inf"), np.inf, "inf"):
        assert got(value, "fp16") == (0x7C00, frozenset())
    for value in (-math.inf, Decimal("-Infinity"), "-inf"):
        assert got(value, "fp16") == (0xFC00, frozenset())
    for value in (math.nan, Decimal("nan"), np.nan, "nan"):
        assert got(value, "fp16") == (0x7E00, frozenset())
    assert encode(-0.0, "fp16").code == encode(Decimal("-0.00"), "fp16").code == 0x8000
    for truth in (True, np.True_):
        with pytest.raises(LiteralError, match="'True' is a truth value"):
            encode(truth, "fp16")


def test_a_signaling_decimal_is_refused_or_read_but_with_no_foreign_error():
    try:
        assert encode(Decimal("sNaN"), "fp16").is_nan
    except FloatlabError as error:
        assert "\n" not in str(error)  # noqa: PT017


def test_decimals_of_enormous_exponent_are_not_written_out():
    # 10^3000000 as an integer is over a megabyte; the next ones would fill the memory, so they come after.
    for exponent in (3_000_000, 10**15):
        for sign, power, code in ((0, 1, 0x7C00), (1, 1, 0xFC00), (0, -1, 0), (1, -1, 0x8000)):
            tracemalloc.start()
            try:
                assert encode(Decimal((sign, (1, 5), power * exponent)), "fp16").code == code
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            assert peak < 500_000


@pytest.mark.parametrize("thing", [None, 1j, b"1", [1], {}, object(), (1, 2), range(3), Fraction, {"a": 1}.items()])
def test_what_is_no_number_is_refused_by_name(thing):
    with pytest.raises(LiteralError, match="is not a number floatlab can read") as caught:
        encode(thing, "fp16")
    assert "\n" not in str(caught.value)


# --- NumPy's scalars -------------------------------------------------------------------------------------------

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.__name__)
def test_numpy_rounding(kind):
    information = np.iinfo(kind)
    for n in (information.min, information.max, 0, 1, 100):
        assert got(kind(n), "fp64") == want(parse_format("fp64"), n)


@pytest.mark.parametrize(("kind", "name"), [(np.float16, "fp16"), (np.float32, "fp32"), (np.float64, "fp64")])
def test_numpy_floats(kind, name):
    fmt = parse_format(name)
    information = np.finfo(kind)
    for x in (information.max, information.min, information.tiny, information.smallest_subnormal, kind(0.1), kind(0)):
        assert encode(x, fmt).exact == Fraction(float(x))
        assert got(x, "e4m3fn") == want(parse_format("e4m3fn"), float(x))
    assert encode(kind("-0.0"), fmt).code == 1 << (fmt.width - 1)
    assert encode(kind("inf"), fmt).is_infinite
    assert encode(-kind("inf"), fmt).sign_bit == 1
    assert encode(kind("nan"), fmt).is_nan


def test_numpy_longdoubles_are_not_read_through_binary64():
    x = np.longdouble(1) + np.finfo(np.longdouble).eps
    assert encode(x, "fp128").exact.as_fraction() == Fraction(*x.as_integer_ratio()) > 1
    assert encode(np.longdouble("-0.0"), "fp16").code == 0x8000
    assert encode(np.longdouble("-inf"), "fp16").code == 0xFC00
    assert encode(np.longdouble("nan"), "fp16").is_nan


@pytest.mark.parametrize(
    "kind", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4"]
)
def test_ml_dtypes_scalars(kind):
    for x in (1, 2, 4):
        assert encode(getattr(ml_dtypes, kind)(x), "fp16").exact == x


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_special_ml_dtypes_scalars(kind):
    make = getattr(ml_dtypes, kind)
    assert encode(make(float("nan")), "fp16").is_nan
    assert encode(make(-0.0), "fp16").code == 0x8000
    if kind != "float8_e4m3fn":
        assert encode(make(float("-inf")), "fp16").code == 0xFC00


@pytest.mark.parametrize(
    "array",
    [np.array([1.5]), np.array([1, 2]), np.zeros((2, 2)), np.array([]), np.array(["1"]), np.array([1 + 2j]),
     np.array([1.5], dtype=ml_dtypes.bfloat16)],
    ids=str,
)  # fmt: skip
def test_arrays_are_refused(array):
    with pytest.raises(LiteralError, match="is not a number floatlab can read"):
        encode(array, "fp16")


@pytest.mark.parametrize(
    "scalar",
    [np.complex64(1 + 2j), np.complex128(1 + 2j), np.datetime64(5, "s"), np.timedelta64(5, "s"), np.void(b"abc"),
     np.bytes_(b"12")],
    ids=repr,
)  # fmt: skip
def test_numpy_scalars_that_are_no_real_numbers_are_refused(scalar):
    with pytest.raises(LiteralError, match="is not a number floatlab can read"):
        encode(scalar, "fp16")


# --- conversions -----------------------------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=150)
def test_conversion_of_any_code_between_any_formats(data):
    source, target = data.draw(strategies.small_formats), data.draw(strategies.small_formats)
    datum = decode(data.draw(strategies.codes(source)), source)
    rules = oracle.Rules(
        data.draw(st.sampled_from(oracle.DIRECTIONS)), data.draw(st.sampled_from(oracle.OVERFLOWS)),
        tininess=data.draw(st.sampled_from(["after", "before"])), flush_results=data.draw(st.booleans()),
    )  # fmt: skip
    context = Context(rules.direction, overflow=rules.overflow, tininess=rules.tininess,
                      flush_results=rules.flush_results)  # fmt: skip
    derivation = convert(datum, target, context)
    kind, negative, value = oracle.decode(source, datum.code)
    names = frozenset(derivation.flags.names)
    if kind == "finite":
        assert (derivation.result.code, names) == oracle.project(target, value, rules, negative)
    elif kind == "infinite":
        assert (derivation.result.code, names) == oracle.project_infinity(target, negative, rules)
    elif oracle.nan_code(target) is not None:
        assert derivation.result.is_nan
        assert not derivation.result.is_signaling
        assert names == ({"invalid"} if datum.is_signaling or kind == "unsupported" else frozenset())


def test_nan_payloads_move_with_their_leading_digits():
    single = parse_format("fp32")
    # binary32 → binary16 drops thirteen digits, → binary64 appends twenty-nine.
    datum = decode(0x7FC2A000, single)
    assert convert(datum, "fp16").result.code == 0x7E15
    assert convert(datum, "fp64").result.code == 0x7FF8540000000000
    assert convert(decode(0xFFC00001, single), "fp16").result.code == 0xFE00
    assert convert(decode(0x7E15, "fp16"), single).result.code == 0x7FC2A000
    # As C does it.
    for code in (0x7FC12345, 0xFFD00000, 0x7FFFFFFF):
        x = struct.unpack(">f", code.to_bytes(4, "big"))[0]
        as_double = int.from_bytes(struct.pack(">d", x), "big")
        assert convert(decode(code, single), "fp64").result.code == as_double


def test_signaling_nans_are_quieted_with_invalid():
    derivation = convert(decode(0x7D55, "fp16"), "fp32")
    assert derivation.result.code == 0x7FEAA000
    assert derivation.flags == Flags.INVALID
    assert convert(decode(0x7E55, "fp16"), "fp32").flags == Flags.NONE
    assert read("snan(0x155)", "fp16").result.code == 0x7D55  # text is used unchanged


def test_the_riscv_rule_gives_the_default_nan():
    context = Context(nan="riscv")
    assert convert(decode(0xFE55, "fp16"), "fp32", context).result.code == 0x7FC00000
    derivation = convert(decode(0x7D55, "fp16"), "fp32", context)
    assert (derivation.result.code, derivation.flags) == (0x7FC00000, Flags.INVALID)


@pytest.mark.parametrize(
    ("name", "positive", "negative"),
    [("e4m3fn", 0x7F, 0xFF), ("e4m3fnuz", 0x80, 0x80), ("e8m0", 0xFF, 0xFF), ("e2m1", 0x7, 0xF), ("e5m2", 0x7E, 0xFE)],
)
def test_nans_into_small_formats(name, positive, negative):
    assert encode("nan", name).code == positive
    assert encode("-nan", name).code == negative
    flags = read("nan", name).flags
    assert flags == (Flags.INVALID if name == "e2m1" else Flags.NONE)


def test_x87_pseudo_denormals_and_unsupported_codes_are_converted():
    pseudo_denormal = decode(0x8000000000000001, "x87")
    again = convert(pseudo_denormal, "x87")
    assert (again.result.code, again.flags) == ((1 << 64) + 0x8000000000000001, Flags.NONE)
    for code in (0x3FFF_4000000000000000, 0x7FFF_0000000000000000, 0x7FFF_0000000000000005, 0xFFFF << 64):
        derivation = convert(decode(code, "x87"), "fp32")
        assert (derivation.result.code, derivation.flags) == (0x7FC00000, Flags.INVALID)


def test_subnormal_operands_are_flushed_on_request():
    context = Context(flush_inputs=True)
    for code, result in ((0x0001, 0), (0x83FF, 0x80000000), (0x0400, 0x38800000)):
        derivation = convert(decode(code, "fp16"), "fp32", context)
        assert (derivation.result.code, derivation.flags) == (result, Flags.NONE)


@pytest.mark.parametrize("row", CATALOG, ids=lambda row: row.format.name)
def test_codes_are_read_as_they_are_in_every_format(row):
    fmt = row.format
    for code in {0, 1, (1 << fmt.width) - 1, (1 << fmt.width) // 3}:
        assert read(f"bits:{code:#x}", fmt).result.code == code
        assert read(f"bits:{code:0{fmt.width}b}", fmt).result.code == code
    with pytest.raises(FormatError):
        read(f"bits:{1 << fmt.width:#x}", fmt)


def test_what_a_format_lacks_is_refused_under_the_rule_error():
    context = Context(absent="error")
    for text, name in (("nan", "e2m1"), ("inf", "e4m3"), ("0", "e8m0"), ("-1", "e8m0"), ("-inf", "e2m1")):
        with pytest.raises(UnsupportedError, match="refuses to replace it") as caught:
            read(text, name, context)
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("package", "make"),
    [
        ("ml_dtypes", lambda library: library.complex32(3 + 2j)),
        ("torch", lambda library: library.tensor(1 + 2j)),
    ],
)
def test_complex_numbers_of_other_libraries_are_no_numbers(package, make):
    library = pytest.importorskip(package)
    if package == "ml_dtypes" and not hasattr(library, "complex32"):
        pytest.skip("this ml_dtypes has no complex numbers")
    with pytest.raises(LiteralError, match="is not a number floatlab can read"):
        read(make(library), "fp16")
