"""Every line of the shared oracle folder formats2/ that is about formats given by a table."""

from fractions import Fraction
from struct import unpack

import pytest

from floatlab import decode, encode, parse_format
from floatlab.numbers.table_values import symbol
from tests.differential import shared

pytestmark = pytest.mark.skipif(
    not (shared.FOLDER / "formats2").is_dir(), reason="no folder formats2 among the oracles"
)

VALUES = {
    "hif8": "hif8/values",
    "posit8": "posit/posit8_values",
    "posit16": "posit/posit16_values",
    "takum_linear8": "takum/takum_linear8_values",
    "takum_linear16": "takum/takum_linear16_values",
}
ROUNDINGS = {
    "hif8/f32_to_hif8.half_away": "hif8",
    "hif8/bf16_to_hif8.half_away": "hif8",
    "posit/f64_to_posit8": "posit8",
    "posit/f64_to_posit16": "posit16",
    "posit/f64_to_posit32": "posit32",
    "takum/f64_to_takum_linear8": "takum_linear8",
    "takum/f64_to_takum_linear16": "takum_linear16",
    "takum/f64_to_takum_log8": "takum_log8",
    "takum/f64_to_takum_log16": "takum_log16",
}
BITSANDBYTES = {"nf4": "nf4", "fp4": "bnb_fp4", "af4": "af4"}
FLOATS = {4: "bf16", 8: "fp32", 16: "fp64"}  # by the number of digits


def lines(name):
    found = [line.split() for line in shared.lines(f"formats2/{name}.txt.gz")]
    assert found
    return found


def number(text):
    """Read `[-]0xNp±E`."""
    digits, power = text.lstrip("-").removeprefix("0x").split("p")
    value = int(digits, 16) * Fraction(2) ** int(power)
    return -value if text.startswith("-") else value


def test_the_folder_has_the_files():
    for name in [*VALUES.values(), *ROUNDINGS, "bnb4/values", "takum/takum_log16_values"]:
        assert (shared.FOLDER / "formats2" / f"{name}.txt.gz").exists()


@pytest.mark.parametrize(("name", "file"), VALUES.items(), ids=VALUES)
def test_codes_have_the_published_values(name, file):
    for code, value in lines(file):
        datum = decode(int(code, 16), name)
        if value in ("nan", "nar"):
            assert datum.is_nan
        elif value in ("inf", "-inf"):
            assert datum.is_infinite
            assert datum.sign_bit == (value == "-inf")
        else:
            assert datum.exact == number(value)
            assert encode(datum.exact, name) == datum


@pytest.mark.parametrize(("file", "name"), ROUNDINGS.items(), ids=ROUNDINGS)
def test_floats_round_to_the_published_codes(file, name):
    for bits, code in lines(file):
        found = encode(decode(int(bits, 16), FLOATS[len(bits)]), name)
        assert found.code == int(code, 16), (bits, code, found)


def test_the_double_roundings_of_libtakum_are_single_here():
    for width, bits, correct, _ in lines("takum/linear_double_rounding"):
        assert encode(decode(int(bits, 16), "fp64"), f"takum_linear{width}").code == int(correct, 16)


@pytest.mark.parametrize("width", [8, 16])
def test_logarithmic_takums_have_the_published_powers_and_nearest_doubles(width):
    fmt = parse_format(f"takum_log{width}")
    for code, kind, *rest in lines(f"takum/takum_log{width}_values"):
        datum = decode(int(code, 16), fmt)
        if kind == "zero":
            assert datum.exact == 0
        elif kind == "nar":
            assert datum.is_nan
        else:
            power, double = rest
            minus = "-" * (kind == "-")
            assert symbol(fmt, datum.code) == (f"{minus}sqrt(e)^({Fraction(power)})" if Fraction(power) else "")
            assert float(datum) == unpack(">d", bytes.fromhex(double))[0]


def test_the_tables_of_bitsandbytes():
    for kind, code, bits in lines("bnb4/values"):
        assert encode(decode(int(code, 16), BITSANDBYTES[kind]), "fp32").code == int(bits, 16)


def test_scaled_numbers_get_the_codes_of_bitsandbytes():
    for kind, bits, code in lines("bnb4/scaled_to_code"):
        found = encode(decode(int(bits, 16), "fp32"), BITSANDBYTES[kind])
        # z means either zero, since implementations differ.
        assert found.code in ((0, 8) if code == "z" else (int(code, 16),)), (kind, bits, code)
