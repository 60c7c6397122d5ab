"""ml_dtypes' casts from binary32 (from binary64 it rounds twice) and its decoding of every code."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from floatlab import Context, convert, decode, encode, parse_format, round_to_integral

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = {
    "bfloat16": "bfloat16", "e3m4": "float8_e3m4", "e4m3_ieee": "float8_e4m3", "e4m3fn": "float8_e4m3fn",
    "e4m3fnuz": "float8_e4m3fnuz", "e4m3b11fnuz": "float8_e4m3b11fnuz", "e5m2": "float8_e5m2",
    "e5m2fnuz": "float8_e5m2fnuz", "e8m0fnu": "float8_e8m0fnu", "e2m3fn": "float6_e2m3fn", "e3m2fn": "float6_e3m2fn",
    "e2m1fn": "float4_e2m1fn",
}  # fmt: skip
# The upper half of a number determines its neighbours in each of these formats; the lower half says on which side of a
# tie it is.
LOWER = np.array([0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF], dtype=np.uint32)
BINARY32 = parse_format("binary32")


def codes_of(array) -> np.ndarray:
    return array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)


def is_known_difference(name: str, pattern: int) -> bool:
    """Return whether a result of ml_dtypes is known to differ; the comments say why floatlab's result is right."""
    if name in ("e2m3fn", "e3m2fn", "e2m1fn"):
        return pattern & 0x7FFFFFFF > 0x7F800000  # a NaN becomes −0; in floatlab the largest number, with invalid
    if name == "e8m0fnu":
        # Zero becomes NaN (here the smallest); the leading bit of a subnormal is taken for a guard bit, so that
        # numbers from just above 2^−127 to 1.5 · 2^−127 go to 2^−126 although 2^−127 is nearer.
        return pattern & 0x7FFFFFFF == 0 or 0x00400000 < pattern < 0x00600000
    return False


def check_casts(name: str, patterns: np.ndarray) -> None:
    fmt = parse_format(name)
    kind = np.dtype(getattr(ml_dtypes, TYPES[name]))
    with np.errstate(all="ignore"):
        theirs = codes_of(patterns.view(np.float32).astype(kind))
    compared = 0
    for pattern, code in zip(patterns.tolist(), theirs.tolist(), strict=True):
        if is_known_difference(name, pattern):
            continue
        ours = convert(decode(pattern, BINARY32), fmt).result
        compared += 1
        # Payloads and signs of NaNs may differ between libraries.
        if not (ours.code == code or (ours.is_nan and decode(code, fmt).is_nan)):
            raise AssertionError((name, hex(pattern), hex(code), ours))
    assert compared > 0.9 * len(patterns)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", TYPES)
def test_casts_of_a_sample_of_all_binary32_patterns(name):
    # Every seventh upper half, each with two of the six lower halves in turn.
    upper = np.arange(0, 1 << 16, 7, dtype=np.uint32)
    index = np.arange(upper.size)
    check_casts(name, np.concatenate([(upper << 16) + LOWER[(index + shift) % 6] for shift in (0, 3)]))


@pytest.mark.parametrize("name", [n for n in TYPES if n != "bfloat16"])
def test_casts_around_every_number_and_midpoint(name):
    fmt = parse_format(name)
    values = sorted({decode(c, fmt).exact.as_fraction() for c in range(1 << fmt.width) if decode(c, fmt).is_finite})
    points = [*values, *((a + b) / 2 for a, b in pairwise(values)), values[-1] * 17 / 16]
    exact = np.array([float(x) for x in points], dtype=np.float32)
    assert all(Fraction(float(x)) == point for x, point in zip(exact, points, strict=True))
    patterns = exact.view(np.uint32).astype(np.int64)
    near = np.concatenate([patterns + step for step in (-1, 0, 1)])
    check_casts(name, near[(near >= 0) & (near < 1 << 32)].astype(np.uint32))


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_casts_of_all_upper_halves_of_binary32(name):
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    check_casts(name, np.concatenate([upper + lower for lower in LOWER]))


@pytest.mark.parametrize("name", TYPES)
def test_every_code_decodes_to_the_same_number(name):
    fmt = parse_format(name)
    kind = np.dtype(getattr(ml_dtypes, TYPES[name]))
    unsigned = np.uint16 if fmt.width == 16 else np.uint8
    with np.errstate(all="ignore"):
        theirs = np.arange(1 << fmt.width, dtype=unsigned).view(kind).astype(np.float64)
    for code, value in enumerate(theirs):
        datum = decode(code, fmt)
        if np.isnan(value):
            assert datum.is_nan, hex(code)
        elif np.isinf(value):
            assert datum.is_infinite, hex(code)
            assert datum.sign_bit == (value < 0)
        else:
            assert datum.exact == float(value), hex(code)
            assert datum.sign_bit == np.signbit(value)


@pytest.mark.parametrize("name", TYPES)
def test_scalars_are_read_exactly(name):
    fmt = parse_format(name)
    kind = getattr(ml_dtypes, TYPES[name])
    for code in range(0, 1 << fmt.width, 97 if fmt.width == 16 else 1):
        datum = decode(code, fmt)
        scalar = np.array([code], dtype=np.uint16 if fmt.width == 16 else np.uint8).view(kind)[0]
        if not datum.is_signaling:
            got = encode(scalar, fmt)
            assert got.code == code or (got.is_nan and datum.is_nan), hex(code)


INTEGRAL = {"RNE": np.rint, "RTZ": np.trunc, "RTP": np.ceil, "RTN": np.floor}


@pytest.mark.parametrize("direction", INTEGRAL)
@pytest.mark.parametrize("name", ["e2m3fn", "e3m2fn", "e2m1fn", "e4m3fn", "e4m3b11fnuz", "e5m2"])
def test_every_code_is_rounded_to_the_same_integer_or_the_largest(name, direction):
    fmt = parse_format(name)
    codes = np.arange(1 << fmt.width, dtype=np.uint8)
    with np.errstate(all="ignore"):
        theirs = codes_of(INTEGRAL[direction](codes.view(getattr(ml_dtypes, TYPES[name])))).tolist()
    for code, want in zip(codes.tolist(), theirs, strict=True):
        done = round_to_integral(decode(code, fmt), context=Context(rounding=direction))
        # ml_dtypes rounds the integer to nearest. 7.5 in e2m3fn, rounded up, is 8, which both convert to 7.5 again.
        assert done.result.code == want or (done.result.is_nan and decode(want, fmt).is_nan), (code, done, want)
