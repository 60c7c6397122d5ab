"""NumPy's casts between its own formats, and the machine's long double where it is x87's."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from floatlab import convert, decode, encode, parse_format

KINDS = {"binary16": (np.float16, np.uint16), "binary32": (np.float32, np.uint32), "binary64": (np.float64, np.uint64)}


def patterns(name: str, generator, count: int) -> list[int]:
    """Return random codes, half of them near numbers that matter for the narrower formats."""
    fmt = parse_format(name)
    codes = [generator.getrandbits(fmt.width) for _ in range(count // 2)]
    for _ in range(count // 2):
        exponent = generator.choice([*range(-30, 20), *range(-152, -120), *range(122, 130)])
        field = min(max(exponent + fmt.bias, 0), (1 << fmt.exponent_bits) - 1)
        # A few leading digits, and further down a tie, or almost a tie.
        t = fmt.trailing_bits
        cut = generator.randrange(t)
        trailing = generator.getrandbits(t) >> cut << cut | (1 << cut >> 1)
        trailing += generator.choice([-1, 0, 0, 1])
        codes.append(fmt.compose(generator.random() < 0.5, (field << t) + trailing % (1 << t)))
    return codes


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("source", "target"), [("binary64", "binary32"), ("binary64", "binary16"),
                                                ("binary32", "binary16"), ("binary16", "binary64"),
                                                ("binary16", "binary32"), ("binary32", "binary64")])  # fmt: skip
def test_casts_between_numpys_formats(source, target, generator):
    codes = range(1 << 16) if source == "binary16" else patterns(source, generator, 20_000)
    (kind, unsigned), (to, to_unsigned) = KINDS[source], KINDS[target]
    with np.errstate(all="ignore"):
        theirs = np.array(codes, dtype=unsigned).view(kind).astype(to).view(to_unsigned).tolist()
    fmt, target_format = parse_format(source), parse_format(target)
    for code, their_code in zip(codes, theirs, strict=True):
        datum = decode(code, fmt)
        ours = convert(datum, target_format).result
        if datum.is_nan:
            # NumPy keeps payloads as we do, but leaves some signaling NaNs signaling.
            theirs_datum = decode(their_code, target_format)
            assert theirs_datum.is_nan
            assert their_code | target_format.quiet_bit == ours.code or theirs_datum.payload != ours.payload
        else:
            assert ours.code == their_code, hex(code)


def test_flags_of_narrowing_are_the_processors(generator):
    source, target = parse_format("binary64"), parse_format("binary32")
    seen = []
    for code in patterns("binary64", generator, 4000):
        datum = decode(code, source)
        if not datum.is_finite:
            continue
        seen.clear()
        x = np.array([code], dtype=np.uint64).view(np.float64)
        with np.errstate(over="call", under="call", call=lambda kind, _: seen.append(kind)):
            x.astype(np.float32)
        flags = convert(datum, target).flags.names
        assert ("overflow" in flags) == ("overflow" in seen), hex(code)
        assert ("underflow" in flags) == ("underflow" in seen), hex(code)


x87_here = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant != 63, reason="this machine's long double is not x87's extended format"
)


def longdouble_of(code: int):
    raw = code.to_bytes(10, "little") + bytes(np.dtype(np.longdouble).itemsize - 10)
    return np.frombuffer(raw, dtype=np.longdouble)[0]


def code_of(x) -> int:
    return int.from_bytes(np.array([x], dtype=np.longdouble).tobytes()[:10], "little")


def x87_codes(generator, count: int):
    fmt = parse_format("x87")
    for _ in range(count):
        field = generator.choice([0, 1, 2, 16383, 16383 - 1074, 16383 - 1022, 16383 + 1023, 32766,
                                  generator.randrange(32767)])  # fmt: skip
        trailing = generator.getrandbits(63) & -1 << generator.choice([0, 0, 9, 10, 11, 12, 40, 62])
        yield fmt.compose(generator.random() < 0.5, (field << 63) + trailing)


@x87_here
def test_x87_codes_are_long_doubles(generator):
    for code in x87_codes(generator, 3000):
        x, datum = longdouble_of(code), decode(code, "x87")
        assert datum.exact.as_fraction() == Fraction(*x.as_integer_ratio())
        assert encode(x, "x87").code == code


@x87_here
@pytest.mark.parametrize("target", ["binary64", "binary32"])
def test_long_doubles_are_narrowed_as_the_processor_does(target, generator):
    kind, unsigned = KINDS[target]
    for code in x87_codes(generator, 3000):
        with np.errstate(all="ignore"):
            theirs = np.array([longdouble_of(code)]).astype(kind).view(unsigned)[0]
        assert convert(decode(code, "x87"), target).result.code == int(theirs), hex(code)
        assert encode(longdouble_of(code), target).code == int(theirs), hex(code)


@x87_here
@pytest.mark.parametrize(
    "text", ["0.1", "1e-4940", "3.6e-4951", "1.18973149535723176502e4932", "1e5000", "-1e-5000", "-0", "1.5", "1e4931"]
)
def test_decimal_text_is_read_into_x87_as_the_c_library_does(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        theirs = code_of(np.longdouble(text))
    assert encode(text, "x87").code == theirs


@x87_here
def test_x87_infinities_nans_and_pseudo_denormals():
    assert encode(np.longdouble("inf"), "x87").code == code_of(np.longdouble("inf"))
    assert encode(np.longdouble("-inf"), "fp32").code == 0xFF800000
    assert encode(np.longdouble("nan"), "fp32").is_nan
    pseudo = 1 << 63
    assert longdouble_of(pseudo) == longdouble_of((1 << 64) + (1 << 63))
    assert decode(pseudo, "x87").exact == decode((1 << 64) + (1 << 63), "x87").exact
