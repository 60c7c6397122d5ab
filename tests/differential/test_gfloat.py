"""gfloat's decoding of the formats it has: value and class of every code."""

import math
from fractions import Fraction

import pytest

from floatlab import decode, parse_format

gfloat = pytest.importorskip("gfloat")
formats = pytest.importorskip("gfloat.formats")

NAMES = {
    "binary16": "format_info_binary16", "bfloat16": "format_info_bfloat16", "e5m2": "format_info_ocp_e5m2",
    "e4m3fn": "format_info_ocp_e4m3", "e2m3fn": "format_info_ocp_e2m3", "e3m2fn": "format_info_ocp_e3m2",
    "e2m1fn": "format_info_ocp_e2m1", "e8m0fnu": "format_info_ocp_e8m0",
}  # fmt: skip
CLASSES = {"NORMAL": "Normal", "SUBNORMAL": "Subnormal", "ZERO": "Zero", "INFINITE": "Infinity", "NAN": "NaN"}


def check(info, fmt, codes) -> None:
    for code in codes:
        theirs, ours = gfloat.decode_float(info, code), decode(code, fmt)
        assert CLASSES[theirs.fclass.name] in ours.number_class.value, hex(code)
        if ours.is_finite:
            assert ours.exact.as_fraction() == Fraction(theirs.fval), hex(code)
            assert ours.sign_bit == (math.copysign(1, theirs.fval) < 0), hex(code)
        elif ours.is_infinite:
            assert ours.sign_bit == (theirs.fval < 0)


@pytest.mark.parametrize("name", NAMES)
def test_every_code_of_the_named_formats(name):
    fmt = parse_format(name)
    check(getattr(formats, NAMES[name]), fmt, range(0, 1 << fmt.width, 1 if fmt.width <= 8 else 5))


@pytest.mark.parametrize("name", ["binary32", "binary64"])
def test_random_codes_of_the_wide_formats(name, generator):
    fmt = parse_format(name)
    check(getattr(formats, f"format_info_{name}"), fmt, [generator.getrandbits(fmt.width) for _ in range(5000)])


P3109 = [
    (k, p, signed, extended)
    for k in (3, 4, 6, 8)
    for signed in (True, False)
    for p in range(1, k if signed else k + 1)
    for extended in (True, False)
]


@pytest.mark.parametrize(("k", "p", "signed", "extended"), P3109)
def test_every_code_of_the_p3109_formats(k, p, signed, extended):
    signedness = formats.Signedness.Signed if signed else formats.Signedness.Unsigned
    domain = formats.Domain.Extended if extended else formats.Domain.Finite
    fmt = parse_format(f"p3109_k{k}p{p}{'s' if signed else 'u'}{'e' if extended else 'f'}")
    check(formats.format_info_p3109(k, p, signedness, domain), fmt, range(1 << k))
