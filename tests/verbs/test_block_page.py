"""The page of a block: its rows, and JSON, which has all their numbers."""

import json
from fractions import Fraction

import pytest

from floatlab import Context, from_json
from floatlab.arith.blocks import quantize_blocks
from floatlab.formats.blocks import BLOCK_CATALOG
from floatlab.numbers import Direction
from floatlab.page.text_layout import to_text
from floatlab.verbs.block.answer import block
from floatlab.verbs.block.page import short_text

NAMES = [row.format.name for row in BLOCK_CATALOG]
HOSTILE = ["957", "1/3", "-0", "0", "1e-300", "1e30", "-2^-140", "0.1@bf16", "bits:0x3f80@bf16"]


def words(*values: str, to="mxfp8_e4m3", width=80, **ways) -> str:
    return " ".join(to_text(block(values, to, **ways).page(), width).split())


@pytest.mark.parametrize(
    ("values", "ways", "said"),
    [
        (("957",), {}, "2^(9 − 8) = 2 0x80 = 2, e8m0fnu floor 9 is the exponent of amax, 8 that of e4m3fn's largest"),
        (("957",), {}, "/ 2 = 478.5 1.110|1111… × 2^8 tail above half → +1 saturates at 448"),
        (("-957",), {}, "saturates at -448 0xfe = -448, × 2 = -896 error +61 (+6.37 %), overflow, inexact"),
        (("957",), {"scale": "even"}, "9 is the exponent of amax rounded to 4 digits"),
        (("957",), {"scale": "ceil"}, "2^10 is the smallest power of two that is at least amax"),
        (("957",), {"scale": "up"}, "rounded upward into e8m0fnu, so that nothing saturates"),
        (("957",), {"scale": "nearest"}, "amax / 448 ≈ 2.13616 0x80 = 2, e8m0fnu nearest rounded to nearest"),
        (("4", "0.001"), {"to": "mxfp4"}, "becomes zero 0x0 = 0, × 1 = 0 error −0.001 (−100 %), underflow, inexact"),
        (("4", "0.3"), {"to": "mxfp4"}, "tail above half → +1 underflow 0x1 = 0.5"),
        (("4", "3"), {"to": "mxfp4"}, "no bits to discard exact 0x5 = 3, × 1 = 3 no flags"),
        (("0", "-0"), {}, "every value is zero: the smallest scale is used 0x00 = 2^-127, e8m0fnu"),
        (("1", "inf"), {}, "the scale is NaN, and so is every element values 1, inf"),
        (("1e300",), {}, "above the largest number of e8m0fnu: 2^127 is used instead"),
        (("1e-300",), {}, "below the smallest number of e8m0fnu: 2^-127 is used instead"),
        (("3",), {"to": "nvfp4"}, "t = 3 / (6 × 448)"),
        (("3",), {"to": "nvfp4", "tensor_scale": "1/2"}, "tensor given 0x3f000000 = 0.5, binary32 amax 3"),
        (("3",), {"to": "nvfp4", "tensor_scale": "0.1@bf16"}, "tensor given 0x3dcd0000 = 0.10009765625, binary32"),
        (("1e-400",), {"to": "nvfp4"}, "binary32 below the smallest number of binary32: 2^-149 is used instead"),
        (("1e400",), {"to": "nvfp4"}, "above the largest number of binary32: ≈ 3.4028235e38 is used instead"),
        (("0",), {"to": "nvfp4"}, "1, since all values are zero"),
        (("0.1", "nan"), {"to": "nvfp4"}, "1, since blocks with NaN or ∞ do not count"),
        (("nan",), {"to": "nvfp4:te"}, "tensor_amax NaN or ∞ tensor tensor_amax = nan"),
        (("1",), {"to": "nvfp4/16/channel"}, "a binary32 scale for each row"),
        (("3",), {"to": "hif4"}, "0xbb = 0.4375, e6m2 inverse 1 / scale = 2.28125 groups of 8"),
        (("1",), {}, "1 value of 32: zero padding would not change the scale"),
        (("1",), {"to": "q4_1"}, "1 value of 32: zero padding could change the scale and the minimum"),
        (("1",) * 33, {}, "33 values in mxfp8_e4m3"),
        (("1",) * 33, {}, "values 1 to 32 of 33 amax"),
        (("1",) * 33, {}, "value 33 of 33 amax"),
    ],
)
def test_pages_say_what_happened(values, ways, said):
    assert said in words(*values, **ways)


def test_a_full_block_lacks_nothing():
    assert "zero padding" not in words(*["1"] * 32)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("direction", list(Direction))
def test_every_block_can_be_drawn_and_written(name, direction):
    for values in (HOSTILE[:3], HOSTILE, [*HOSTILE, "nan"]):
        answer = block(tuple(values), name, Context(direction))
        for width in (20, 46, 80, 120):
            lines = to_text(answer.page(), width, ascii=width == 46).splitlines()
            assert lines
            assert width < 46 or max(map(len, lines)) <= width
        [record] = answer.records()
        assert json.loads(json.dumps(record)) == record
        assert len(record["steps"]) == len(record["operands"]) == len(values)
        assert answer.words() == [value or "nan" for value in record["result"]["values"]]
        shared = 1 + ("minimum" in record["result"])  # the codes that all elements share
        assert answer.codes()[0].split()[shared:] == record["result"]["codes"]


def test_json_is_the_derivation():
    [record] = block(("957", "1/3"), "mxfp8_e4m3").records()
    assert (record["operation"], record["format"], record["rule"], record["amax"]) == (
        "block", "mxfp8_e4m3", "floor", "957",
    )  # fmt: skip
    assert (record["exponent"], record["wanted_scale"], record["block"]) == (9, "2", 32)
    assert [operand["exact"] for operand in record["operands"]] == ["957", "1/3"]
    assert [operand["literal"] for operand in record["operands"]] == ["957", "1/3"]
    assert record["operands"][1]["value"]["denominator"] == 3
    assert record["result"]["scale"]["code"] == "0x80"
    assert record["result"]["tensor_scale"] is None
    assert record["result"]["values"] == ["896", "0.34375"]
    first, second = record["steps"]
    assert (first["scaled"], first["code"], first["error"]["exact"]) == ("478.5", "0x7e", "-61/1")
    assert (second["scaled"], second["error"]["exact"]) == ("1/6", "1/96")
    assert first["round"]["overflowed"]
    assert first["result"]["exact"] == "448"
    assert record["flags"] == ["overflow", "inexact"]
    [integers] = block(("1.5",), "mxint8").records()
    assert "result" not in integers["steps"][0]
    assert integers["steps"][0]["code"] == "0x60"
    for recipe in ("e4m3:none", "nvfp4", "hif4", "q4_k"):
        shown = block(("0.1", "-2.5", "1e-3"), recipe)
        [record] = shown.records()
        assert (from_json(json.dumps(record)),) == quantize_blocks(("0.1", "-2.5", "1e-3"), recipe)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(957, 2), "478.5"),
        (Fraction(1, 3), "≈ 0.333333"),
        (Fraction(1, 2**99), "2^-99"),
        (Fraction(2**127), "2^127"),
        (Fraction(3, 2**99), "≈ 4.73317e-30"),
        (Fraction(-7, 2), "-3.5"),
        (Fraction(10**30), "1e30"),
        (Fraction(1, 4), "0.25"),
    ],
)
def test_numbers_at_a_glance(number, text):
    assert short_text(number) == text
