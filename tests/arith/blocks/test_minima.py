"""Blocks with minima, integers of libraries, and the search of q4_k."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab import Flags, UnsupportedError, encode
from floatlab.arith.blocks import quantize_blocks
from floatlab.arith.blocks.formulas import ratio, value_of
from floatlab.arith.blocks.searches import qkx2
from floatlab.arrays.blocks import encode_blocks

RNG_SEEDS = range(12)


def numbers(seed: int, count: int = 32) -> list[float]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count) * 2.0 ** rng.integers(-20, 10) + rng.choice([0, 0, 1, -1]) * 2.0 ** rng.integers(-20, 10)
    return x.astype(np.float32).tolist()


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_elements_above_a_minimum_are_the_nearest_of_sixteen(seed):
    x = numbers(seed)
    [block] = quantize_blocks(x, "q4_1")
    assert block.minimum == encode(min(x), "fp16")
    scale, low = block.scale.exact.as_fraction(), block.minimum.exact.as_fraction()
    assert block.scale.code == encode((Fraction(max(x)) - Fraction(min(x))) / 15, "fp16").code
    grid = [q * scale + low for q in range(16)]
    for value, element in zip(x, block.elements, strict=True):
        assert element.decoded.as_fraction() == grid[element.code]
        assert abs(grid[element.code] - Fraction(value)) == min(abs(each - Fraction(value)) for each in grid)
        assert Flags.UNDERFLOW not in element.flags


def weighted_error(x: np.ndarray, q: np.ndarray, scale: float, low: float) -> float:
    weights = np.sqrt(np.mean(x * x)) + np.abs(x)
    return float(np.sum(weights * (q * scale + low - x) ** 2))


@pytest.mark.parametrize("seed", RNG_SEEDS)
def test_the_search_of_q4_k_is_no_worse_than_equal_parts_and_fits_its_elements(seed):
    x = np.array(numbers(seed))
    found = qkx2([ratio(Fraction(each)) for each in x])
    scale, depth = (float(found.values[name].as_fraction()) for name in ("step", "depth"))
    q = np.array([float(each.as_fraction()) for each in found.elements])
    assert depth >= 0
    assert set(q) <= set(range(16))
    low = min(x.min(), 0)
    equal = (x.max() - low) / 15
    mine = weighted_error(x, q, scale, -depth)
    assert mine <= weighted_error(x, np.clip(np.rint((x - low) / equal), 0, 15), equal, low) * (1 + 1e-4)
    # The scale is the best for these elements and this minimum: no neighbour is better by more than binary32's error.
    for near in (scale * 0.99, scale * 1.01):
        assert mine <= weighted_error(x, q, near, -depth) * (1 + 1e-3)


@pytest.mark.parametrize(
    ("values", "step", "depth"),
    [(["0"] * 32, 0, 0), (["-2"] * 32, None, 2), (["3"] * 32, None, 0)],
)
def test_blocks_of_one_number_are_searched_without_a_range(values, step, depth):
    found = qkx2([ratio(Fraction(value)) for value in values])
    assert found.values["depth"].as_fraction() == depth
    assert step is None or found.values["step"].as_fraction() == step
    [block] = quantize_blocks(values, "q4_k")
    assert all(abs(element.error) <= Fraction(1, 100) for element in block.elements)


def test_superblocks_have_their_own_units_and_begin_in_the_flattened_tensor():
    rows = [[1.0] * 192, [100.0] * 192, [1.0] * 128 + [0.0] * 64]
    blocks = quantize_blocks(rows, "q4_k")
    assert len(blocks) == 18
    assert len({block.tensor.datum.code for block in blocks[:8]}) == 1
    assert [block.tensor.datum.code == blocks[0].tensor.datum.code for block in blocks[8:]] == [True] * 8 + [False] * 2
    with pytest.raises(UnsupportedError, match="q4_k has no scale for a whole tensor"):
        quantize_blocks(rows, "q4_k", tensor_scale=1)


def test_libraries_use_the_lowest_integer_and_our_own_rules_do_not():
    [ct] = quantize_blocks(["-127.5", "127.5"], "int8/channel:ct")
    assert [each.code for each in ct.elements] == [0x80, 0x7F]
    [ggml] = quantize_blocks(["-1", "0.5", "0.9"], "q4_0:ggml")
    assert value_of(ggml.scale).as_fraction() == Fraction(1, 8)
    assert ([each.code for each in ggml.elements], ggml.elements[0].flags) == ([0, 12, 15], Flags.NONE)
    for recipe in ("int8/channel", "q8_0", "int4/32", "q4_0"):
        [own] = quantize_blocks(["-1", "1"], recipe, context="RTN")
        assert own.elements[0].code != own.format.element.code(True, -own.format.element.lowest)


def test_arrays_refuse_minima():
    for recipe in ("q4_1", "q4_k"):
        with pytest.raises(UnsupportedError, match=f"{recipe} has minima"):
            encode_blocks(np.ones(256, np.float32), recipe)


def test_a_block_with_an_infinity_is_lost_with_its_minimum():
    [block] = quantize_blocks(["1", "inf"], "q4_1")
    assert block.scale.is_nan
    assert block.minimum.is_nan
    assert [(each.code, each.decoded) for each in block.elements] == [(0, None)] * 2
