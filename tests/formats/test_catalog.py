"""The catalog against numbers that the standards and the vendors print, and against closed formulas."""

import math
import sys
from fractions import Fraction

import pytest

from floatlab import parse_format
from floatlab.formats import CATALOG
from tests import oracle

TWO = Fraction(2)

# name: width, precision, bias, emin, emax, largest, smallest normal, smallest, code of the default NaN, of infinity.
# IEEE 754-2019 table 3.5 for the first four; Intel's SDM for x87; OFP8 1.0 table 1 and MX 1.0 tables 2 to 5 for the
# OCP formats; Noune et al. table 1 for fnuz; the others by their authors.
FACTS = {
    "binary16": (16, 11, 15, -14, 15, 65504, TWO**-14, TWO**-24, 0x7E00, 0x7C00),
    "binary32": (32, 24, 127, -126, 127, (2 - TWO**-23) * TWO**127, TWO**-126, TWO**-149, 0x7FC00000, 0x7F800000),
    "binary64": (64, 53, 1023, -1022, 1023, (2 - TWO**-52) * TWO**1023, TWO**-1022, TWO**-1074,
                 0x7FF8 << 48, 0x7FF0 << 48),
    "binary128": (128, 113, 16383, -16382, 16383, (2 - TWO**-112) * TWO**16383, TWO**-16382, TWO**-16494,
                  0x7FFF8 << 108, 0x7FFF << 112),
    "x87": (80, 64, 16383, -16382, 16383, (2 - TWO**-63) * TWO**16383, TWO**-16382, TWO**-16445,
            0x7FFFC << 60, 0x7FFF8 << 60),
    "bfloat16": (16, 8, 127, -126, 127, (2 - TWO**-7) * TWO**127, TWO**-126, TWO**-133, 0x7FC0, 0x7F80),
    "tf32": (19, 11, 127, -126, 127, (2 - TWO**-10) * TWO**127, TWO**-126, TWO**-136, 0x3FE00, 0x3FC00),
    "e4m3fn": (8, 4, 7, -6, 8, 448, TWO**-6, TWO**-9, 0x7F, None),
    "e5m2": (8, 3, 15, -14, 15, 57344, TWO**-14, TWO**-16, 0x7E, 0x7C),
    "e4m3fnuz": (8, 4, 8, -7, 7, 240, TWO**-7, TWO**-10, 0x80, None),
    "e5m2fnuz": (8, 3, 16, -15, 15, 57344, TWO**-15, TWO**-17, 0x80, None),
    "e4m3b11fnuz": (8, 4, 11, -10, 4, 30, TWO**-10, TWO**-13, 0x80, None),
    "e4m3_ieee": (8, 4, 7, -6, 7, 240, TWO**-6, TWO**-9, 0x7C, 0x78),
    "e3m4": (8, 5, 3, -2, 3, Fraction(31, 2), TWO**-2, TWO**-6, 0x78, 0x70),
    "e8m0fnu": (8, 1, 127, -127, 127, TWO**127, TWO**-127, TWO**-127, 0xFF, None),
    "ue5m3": (8, 4, 15, -14, 16, 114688, TWO**-14, TWO**-17, 0xFF, None),
    "ue4m3": (7, 4, 7, -6, 8, 448, TWO**-6, TWO**-9, 0x7F, None),
    "e2m3fn": (6, 4, 1, 0, 2, Fraction(15, 2), 1, TWO**-3, None, None),
    "e3m2fn": (6, 3, 3, -2, 4, 28, TWO**-2, TWO**-4, None, None),
    "e2m1fn": (4, 2, 1, 0, 2, 6, 1, TWO**-1, None, None),
}  # fmt: skip


def test_every_row_of_the_catalog_has_its_facts_here():
    assert [row.format.name for row in CATALOG] == list(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_the_catalog_says_what_the_standards_say(name):
    width, precision, bias, emin, emax, largest, smallest_normal, smallest, nan, infinity = FACTS[name]
    fmt = parse_format(name)
    assert (fmt.width, fmt.precision, fmt.bias, fmt.emin, fmt.emax) == (width, precision, bias, emin, emax)
    assert (fmt.largest, fmt.smallest_normal, fmt.smallest) == (largest, smallest_normal, smallest)
    assert all(isinstance(x, Fraction) for x in (fmt.largest, fmt.smallest_normal, fmt.smallest))
    assert fmt.has_nan == (nan is not None)
    if nan is not None:
        assert fmt.nan_code == nan
    assert fmt.infinities == (infinity is not None)
    if infinity is not None:
        assert fmt.compose(False, fmt.infinity_magnitude) == infinity


@pytest.mark.parametrize("name", ["binary16", "binary32", "binary64", "binary128"])
def test_the_interchange_formats_follow_the_formulas_of_table_3_5(name):
    fmt = parse_format(name)
    k = fmt.width
    w = {16: 5, 32: 8}.get(k, round(4 * math.log2(k)) - 13)
    assert fmt.exponent_bits == w
    assert fmt.precision == k - w
    assert fmt.emax == fmt.bias == 2 ** (k - fmt.precision - 1) - 1
    assert fmt.emin == 1 - fmt.emax
    assert (fmt.infinities, fmt.nans, fmt.subnormals, fmt.signed, fmt.zero, fmt.negative_zero) == (
        True, 2 ** (fmt.precision - 1) - 1, True, True, True, True,
    )  # fmt: skip


def test_the_decimals_that_everyone_knows():
    double, single = parse_format("binary64"), parse_format("binary32")
    assert double.largest == Fraction(sys.float_info.max)
    assert double.smallest_normal == Fraction(sys.float_info.min)
    assert double.smallest == Fraction(5e-324)
    assert double.emax == sys.float_info.max_exp - 1
    assert float(single.largest) == 3.4028234663852886e38
    assert float(single.smallest_normal) == 1.1754943508222875e-38
    assert float(single.smallest) == 1.401298464324817e-45
    assert float(parse_format("bfloat16").largest) == 3.3895313892515355e38


def test_one_code_means_different_numbers_in_the_fp8_dialects():
    values = {"e4m3fn": 1, "e4m3fnuz": 0.5, "e4m3b11fnuz": 0.0625, "e5m2": 0.5, "e5m2fnuz": 0.25}
    for name, value in values.items():
        assert oracle.decode(parse_format(name), 0x38).value == Fraction(value)


@pytest.mark.parametrize("name", ["e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz"])
def test_fnuz_has_one_zero_and_its_nan_in_the_place_of_the_other(name):
    fmt = parse_format(name)
    kinds = [oracle.decode(fmt, code).kind for code in range(256)]
    assert kinds.count("nan") == 1
    assert kinds[0x80] == "nan"
    assert fmt.nan_in_place_of_negative_zero
    assert not fmt.negative_zero


def test_only_x87_stores_its_integer_bit_and_only_e8m0_lacks_zero():
    assert [row.format.name for row in CATALOG if row.format.explicit_integer_bit] == ["x87"]
    assert [row.format.name for row in CATALOG if not row.format.signed] == ["e8m0fnu", "ue5m3", "ue4m3"]
    assert [row.format.name for row in CATALOG if not row.format.zero] == ["e8m0fnu"]
    assert all(row.format.subnormals for row in CATALOG if row.format.name != "e8m0fnu")
