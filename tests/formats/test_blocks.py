"""Block formats: OCP MX 1.0's table and NVIDIA's, and names."""

from fractions import Fraction

import pytest

from floatlab import Datum, FormatError, parse_format
from floatlab.formats.blocks import (
    BLOCK_CATALOG,
    INTEGERS,
    BlockFormat,
    Integers,
    block_row,
    is_block_format,
    parse_block_format,
)

# name: element width, largest element, smallest positive element, block, scale width, bits a value (OCP MX 1.0,
# tables 1 to 6; NVFP4 as NVIDIA describes it; ggml's structures in ggml-common.h)
TRANSCRIBED = {
    "mxfp8_e4m3": (8, 448, Fraction(1, 512), 32, 8, 8.25),
    "mxfp8_e5m2": (8, 57344, Fraction(1, 65536), 32, 8, 8.25),
    "mxfp6_e2m3": (6, Fraction(15, 2), Fraction(1, 8), 32, 8, 6.25),
    "mxfp6_e3m2": (6, 28, Fraction(1, 16), 32, 8, 6.25),
    "mxfp4": (4, 6, Fraction(1, 2), 32, 8, 4.25),
    "mxint8": (8, Fraction(127, 64), Fraction(1, 64), 32, 8, 8.25),
    "nvfp4": (4, 6, Fraction(1, 2), 16, 8, 4.5),
    "q8_0": (8, 127, 1, 32, 16, 8.5),
    "q4_0": (4, 7, 1, 32, 16, 4.5),
    "q4_1": (4, 15, 1, 32, 16, 5),
    "q4_k": (4, 15, 1, 32, 6, 4.5),
}


def test_every_named_block_format_is_as_its_source_says():
    assert {*TRANSCRIBED, "hif4"} == {row.format.name for row in BLOCK_CATALOG}
    for row in (row for row in BLOCK_CATALOG if not row.format.groups):
        fmt = row.format
        found = (fmt.element.width, fmt.element.largest, fmt.magnitudes.smallest, fmt.block, fmt.scale.width, fmt.bits)
        assert found == TRANSCRIBED[fmt.name]
        assert (fmt.tensor is None) == (fmt.name not in ("nvfp4", "q4_k"))
        assert fmt.scales_by_powers == fmt.name.startswith("mx")
        assert fmt.flat == fmt.name.startswith("q")
        assert fmt.minimum == (fmt.name in ("q4_1", "q4_k"))
        assert fmt.superblock == (256 if fmt.name == "q4_k" else None)
        assert row.source
        assert row.purpose
        assert block_row(fmt) is row


def test_hif4_is_as_its_source_says():
    fmt = parse_block_format("HiFloat4")
    numbers = [fmt.element._value(magnitude) for magnitude in range(8)]
    assert numbers == [Fraction(k, 4) for k in range(8)]
    assert (fmt.element.width, fmt.block, fmt.groups, fmt.bits, fmt.family) == (4, 64, (8, 4), 4.5, "hif4")
    # Code c of a scale is (1 + (c mod 4)/4) · 2^(c div 4 − 48); the last code is NaN.
    for code in range(255):
        value = fmt.scale._value(code + fmt.first_scale)
        assert value == Fraction(4 + code % 4, 4) * Fraction(2) ** (code // 4 - 48)
    assert (fmt.scale_bits, fmt.scale.largest_magnitude) == (8, 254 + fmt.first_scale)


def test_integers_are_twos_complement_with_an_implied_scale():
    int8 = Integers("int8", 8, quantum=-6)
    codes = [int8.code(n < 0, abs(n)) for n in range(-128, 128)]
    assert codes == [n % 256 for n in range(-128, 128)]
    assert [int8.integer(code) for code in codes] == list(range(-128, 128))
    # As sign and magnitude they are the numbers of a format: all multiples of 2^-6 up to 127/64.
    numbers = int8.magnitudes
    assert [numbers._value(magnitude) for magnitude in range(numbers.largest_magnitude + 1)] == [
        Fraction(n, 64) for n in range(128)
    ]
    assert (numbers.emax, numbers.precision, numbers.has_nan, numbers.infinities) == (0, 7, False, False)


def test_integers_have_a_zero_point_or_are_unsigned():
    int4, q4_1 = INTEGERS["int4"], parse_block_format("q4_1")
    codes = [int4.code(n < 0, abs(n)) for n in range(-8, 8)]
    assert codes == list(range(16))
    assert [int4.integer(code) for code in codes] == list(range(-8, 8))
    assert (int4.lowest, INTEGERS["int8"].lowest, parse_block_format("mxint8").element.lowest) == (-8, -128, -128)
    for numbers in (q4_1.element, parse_block_format("q4_k").scale):
        values = [Datum(numbers, code).exact.as_fraction() for code in range(1 << numbers.width)]
        assert values == list(range(len(values)))


@pytest.mark.parametrize("name", ["MXFP4", "mxfp4-e2m1", " mxfp4 ", "mxfp4_e2m1fn"])
def test_names_are_read_as_all_names_are(name):
    assert parse_block_format(name) is parse_block_format("mxfp4")
    assert is_block_format(name)


def test_no_name_is_a_formats_too():
    for row in BLOCK_CATALOG:
        for name in (row.format.name, *row.aliases):
            assert parse_block_format(name) is row.format
            with pytest.raises(FormatError, match="is a block format: floatlab block"):
                parse_format(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mxfp5", "unknown block format 'mxfp5'; did you mean 'mxfp4'"),
        ("nvfp8", "did you mean 'nvfp4'"),
        ("", "unknown block format ''"),
        ("x" * 500, "unknown block format"),
        ("mxfp8", "a family of block formats: name one of mxfp8_e4m3 mxfp8_e5m2"),
        ("bf16", "bfloat16 is a format of single numbers; the block formats are mxfp8_e4m3"),
        (7, "a block format must be a name or a BlockFormat, not int"),
    ],
)
def test_other_names_are_refused_with_a_guess(name, words):
    with pytest.raises(FormatError, match=words):
        parse_block_format(name)


@pytest.mark.parametrize("size", [0, -1, 1.5, "32", True, 1 << 30])
def test_a_block_has_a_number_of_elements(size):
    with pytest.raises(FormatError, match="block must be a number of elements from 1 to"):
        parse_block_format("mxfp4").replace(block=size)


def test_formats_of_ones_own_have_rows_that_say_so():
    smaller = parse_block_format("mxfp4").replace(block=16)
    assert block_row(smaller).source.endswith("but blocks of 16")
    own = BlockFormat("fp8_128", parse_format("e4m3"), parse_format("fp32"), 128)
    assert block_row(own).source == "custom"
    assert parse_block_format(own) is own
    assert own.bits == 8.25
