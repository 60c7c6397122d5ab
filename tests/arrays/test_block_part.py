"""One block of an array has the same bits as the whole array quantized, for every recipe and every element."""

import numpy as np
import pytest

from floatlab.arith.blocks import quantize_blocks, tiles
from floatlab.arrays import block_part as module
from floatlab.arrays.block_part import block_part
from floatlab.arrays.sources import source_of
from floatlab.errors import UnsupportedError
from floatlab.formats.recipes import NAMED_RECIPES, parse_recipe, rules_for
from floatlab.numbers.datum import Datum

RECIPES = [
    *(f"{name}:{rule.name}" for name in NAMED_RECIPES for rule in rules_for(parse_recipe(name).format)),
    "nvfp4/16/channel:te", "nf4/flat64:bnb", "int4/flat32:modelopt", "block(e2m1, ue5m3, 3x5)",
    "block(e3m2, e4m3, 7, fp32):up", "e4m3", "mxint8/3x7:nearest",
]  # fmt: skip


def array(seed, shape=(4, 25), specials=False):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(shape) * np.exp2(rng.integers(-12, 12, shape))).astype(np.float32)
    x[rng.random(shape) < 0.1] = 0
    if specials:
        x[1, 3], x[3, 20], x[3, 21] = np.nan, np.inf, -np.inf
    return x


def whole(x, recipe, **more):
    """Return the blocks of the whole array, by the position of each element: the block, and the place in it."""
    source = source_of(x)
    rows = [[Datum(source.format, int(code)) for code in row] for row in source.codes.reshape(-1, x.shape[-1])]
    blocks = quantize_blocks(rows, recipe, **more)
    fmt = parse_recipe(recipe).format
    found = {}
    for block, places in zip(blocks, tiles(fmt, len(rows), x.shape[-1]), strict=True):
        found |= {place: (block, i) for i, place in enumerate(places)}
    return found


def same(part, x, expected):
    """Assert that a part has the elements and the scales of the whole array."""
    first, start = expected[part.places[0]]
    assert start == part.start
    assert part.size == len(first.elements)
    for name in ("amax", "scale", "tensor", "minimum", "wanted", "exponent", "steps", "groups"):
        assert getattr(part.block, name) == getattr(first, name), name
    for place, element in zip(part.places, part.block.elements, strict=True):
        block, i = expected[place]
        assert block is first
        assert element == block.elements[i]


@pytest.mark.one_in(36)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("specials", [False, True])
def test_every_part_has_the_bits_of_the_whole(recipe, specials):
    x = array(1, specials=specials)
    expected, parsed = whole(x, recipe), parse_recipe(recipe)
    seen, at = [], 0
    while at is not None:
        part = block_part(source_of(x), parsed, at)
        same(part, x, expected)
        assert at == part.places[0]
        seen += part.places
        at = part.after
    assert sorted(seen) == list(range(x.size))  # the parts have each element exactly once
    backward = []
    at = seen[-1]
    while at is not None:
        part = block_part(source_of(x), parsed, at)
        backward = [*part.places, *backward]
        at = part.before
    assert backward == seen


@pytest.mark.parametrize("recipe", ["e4m3/tensor", "e4m3/tensor:te", "mxfp4/tensor", "nvfp4/100:modelopt", "q4_1/100"])
@pytest.mark.parametrize("special", [0, np.nan, np.inf, -np.inf])
def test_parts_of_large_blocks_know_the_whole_block(recipe, special, monkeypatch):
    monkeypatch.setattr(module, "MOST", 7)
    monkeypatch.setattr(module, "LARGEST", 20)
    x = array(2)
    x[3, 13] = special
    expected = whole(x, recipe)
    for at in (0, 6, 7, 50, 88, 99):
        part = block_part(source_of(x), parse_recipe(recipe), at)
        assert len(part.places) <= 7
        assert at in part.places
        same(part, x, expected)


def test_a_block_that_is_too_large_for_its_rule_is_refused(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 20)
    with pytest.raises(UnsupportedError, match="each of the 25 values of a block affects its scale"):
        block_part(source_of(array(2)), parse_recipe("nvfp4/64:te_4over6_mse256"), 3)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_arrays_of_other_types_and_axes(dtype):
    x = (array(3, (2, 3, 20)) % 100).astype(dtype)
    for recipe in ("nvfp4:te", "e4m3/tensor:ct", "mxfp4", "e4m3/1x8:torchao", "nvfp4/16/channel:te"):
        expected = whole(x, recipe)
        for at in (0, 59, 119):
            same(block_part(source_of(x), parse_recipe(recipe), at), x, expected)


def test_a_given_tensor_scale_and_direction_are_used():
    x = array(4)
    expected = whole(x, "nvfp4", tensor_scale="1/2", context="RTP")
    same(block_part(source_of(x), parse_recipe("nvfp4"), 57, "RTP", "1/2"), x, expected)


def test_stochastic_rounding_draws_by_the_position_in_the_array():
    x = array(5)
    expected = whole(x, "mxfp4", context="SR")
    for at in (0, 60, 99):
        same(block_part(source_of(x), parse_recipe("mxfp4"), at, "SR"), x, expected)


def test_a_number_and_an_empty_array():
    assert block_part(source_of(np.float32(3).reshape(())), parse_recipe("mxfp4"), 0).places == (0,)
    with pytest.raises(UnsupportedError, match="no elements"):
        block_part(source_of(np.zeros((0, 3), np.float32)), parse_recipe("mxfp4"), 0)
