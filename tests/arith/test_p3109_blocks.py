"""Operations on P3109's blocks, compared with rationals; tests/differential/test_p3109.py uses results of others."""

from fractions import Fraction
from itertools import product
from math import prod

import pytest

from floatlab import Context, Flags, FormatError, decode, encode, from_json, parse_format
from floatlab.arith import p3109
from floatlab.arith.p3109 import ScaledBlock
from tests import oracle

SCALE, ELEMENT, RESULT = (parse_format(name) for name in ("Binary4p1ue", "Binary4p2se", "Binary6p3se"))
ELEMENTS = [decode(code, ELEMENT) for code in range(16)]


def value(datum) -> Fraction:
    return oracle.decode(datum.format, datum.code).value


@pytest.mark.parametrize("direction", ["RNE", "RTO"])
def test_products_sums_and_dot_products_of_finite_elements(direction):
    rules = oracle.Rules(direction, "none")
    context = Context(direction, overflow="none")
    finite = [x for x in ELEMENTS if x.is_finite]
    for scale in (decode(code, SCALE) for code in range(14)):
        for pair in product(finite, repeat=2):
            block = ScaledBlock(scale, pair)
            numbers = [value(scale) * value(x) for x in pair]
            for operation, exact in (
                (p3109.block_reduce_multiply, prod(numbers)),
                (p3109.block_reduce_add, sum(numbers)),
                (lambda block, *to: p3109.block_dot_product(block, block, *to), sum(x * x for x in numbers)),
            ):
                done = operation(block, RESULT, context)
                assert (done.result.code, frozenset(done.flags.names)) == oracle.project(RESULT, exact, rules)


def test_special_values():
    one, infinity, zero, nan = (encode(text, ELEMENT) for text in ("1", "inf", "0", "nan"))
    unit, endless = encode("1", SCALE), encode("inf", SCALE)
    empty = ScaledBlock(unit, ())
    assert p3109.block_reduce_multiply(empty, "fp16").result.exact == 1
    assert p3109.block_reduce_add(empty, "fp16").result.exact == 0
    for elements, scale, flags in (
        ((infinity, zero), unit, Flags.INVALID),
        ((zero,), endless, Flags.INVALID),
        ((nan, one), unit, Flags.NONE),
    ):
        done = p3109.block_reduce_multiply(ScaledBlock(scale, elements), "fp16")
        assert done.result.is_nan
        assert done.flags is flags
    negative = encode("-inf", ELEMENT)
    assert p3109.block_reduce_add(ScaledBlock(unit, (infinity, negative)), "fp16").result.is_nan
    assert p3109.block_reduce_add(ScaledBlock(unit, (infinity, one)), "fp16").result.is_infinite
    assert p3109.convert_to_block((negative, zero, one), endless, ELEMENT).elements == tuple(
        encode(text, ELEMENT) for text in ("-1", "0", "1")
    )


def test_what_does_not_fit_and_json():
    block = ScaledBlock(encode("1", SCALE), (encode("1", ELEMENT),))
    with pytest.raises(FormatError, match="one format"):
        ScaledBlock(block.scale, (encode("1", ELEMENT), encode("1", "fp16")))
    with pytest.raises(FormatError, match="equal lengths, not 1 and 0"):
        p3109.block_dot_product(block, ScaledBlock(block.scale, ()), "fp16")
    done = p3109.block_dot_product(block, block, "fp16")
    assert from_json(done.to_json()) == done
    assert "total" in str(done)
