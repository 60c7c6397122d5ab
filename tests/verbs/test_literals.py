"""Literals for programs: Python and NumPy read the same number back."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab import decode, encode
from floatlab.verbs.literals import literals_of

CASES = [
    ("fp16", 0x3C66), ("fp16", 1), ("fp16", 0x8000), ("fp16", 0x7C00), ("fp16", 0x7E01), ("bf16", 0x3F8C),
    ("e4m3", 0xFE), ("fp32", 0x7F7FFFFF), ("fp64", 1), ("fp64", 0x3FB999999999999A), ("fp128", 1),
    ("x87", 0x3FFF8000000000000001),
]  # fmt: skip


@pytest.mark.parametrize(("name", "code"), CASES)
def test_programs_read_the_same_number(name, code):
    datum = decode(code, name)
    texts = {kind: text for kind, (_, text) in literals_of(datum).items()}
    assert int(texts["bits"], 16) == code
    python = eval(texts["python"], {"Fraction": Fraction})
    if datum.is_finite:
        assert Fraction(python) == datum.exact.as_fraction()
        assert encode(texts["exact"], name).exact == datum.exact
        assert encode(texts["shortest"], name).code == code
        digits, _, power = texts["hex"].partition("p")
        whole, _, fraction = digits.removeprefix("-").removeprefix("0x").partition(".")
        value = Fraction(int(whole + fraction, 16), 16 ** len(fraction)) * Fraction(2) ** int(power)
        assert (-value if digits.startswith("-") else value) == datum.exact.as_fraction()
    else:
        assert (python != python) == datum.is_nan
    if name in ("fp16", "fp32", "fp64"):
        found = eval(texts["numpy"], {"np": np})
        assert int(found.view(f"u{found.itemsize}")) == code
    if name == "bf16":
        ml_dtypes = pytest.importorskip("ml_dtypes")
        assert int(eval(texts["numpy"], {"np": np, "ml_dtypes": ml_dtypes}).view(np.uint16)) == code


def test_c_has_suffixes_and_macros():
    kinds = {
        name: literals_of(encode("1.5", name))["c"][1] for name in ("fp16", "bf16", "fp32", "fp64", "fp128", "e4m3")
    }
    assert kinds == {
        "fp16": "0x1.8p+0f16", "bf16": "0x1.8p+0bf16", "fp32": "0x1.8p+0f", "fp64": "0x1.8p+0", "fp128": "0x1.8p+0f128",
        "e4m3": "0x1.8p+0",
    }  # fmt: skip
    assert literals_of(encode("-inf", "fp32"))["c"][1] == "-INFINITY"
