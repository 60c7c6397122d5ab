"""Formats with minima on arrays: the values of `arith.blocks`, bit for bit."""

import numpy as np
import pytest

from floatlab.arith.blocks import quantize_blocks
from floatlab.arrays.recipes.minima import round_blocks
from floatlab.formats.recipes import parse_recipe

RNG = np.random.default_rng(8)


def rows(size):
    """Return blocks of many kinds, eight of them a group of q4_k."""
    x = RNG.standard_normal((32, size))
    x[1] = 0
    x[2] = 3
    x[3] = -3
    x[4] = np.abs(x[4])
    x[5] = -np.abs(x[5])
    x[6] *= 1e-7
    x[7] *= 1e-42
    x[8:16] *= np.exp(8 * RNG.standard_normal((8, size)))
    x[16] *= 1e30
    x[17] = np.linspace(0, 15, size)
    x[18] = np.linspace(-1, 1, size)
    x[19, :-1] = 0
    x[20] = 1000 + RNG.standard_normal(size)
    x[21] = np.where(RNG.random(size) < 0.5, 1, -1)
    return x.astype(np.float32)


def expected(blocks, recipe):
    made = quantize_blocks(blocks.reshape(-1).tolist(), recipe)
    values = [
        [np.nan if each.decoded is None else float(each.decoded.as_fraction()) for each in block.elements]
        for block in made
    ]
    return np.array(values), np.array([[float(block.scale)] for block in made])


@pytest.mark.parametrize("name", ["q4_1", "q4_1:ggml", "q4_k", "q4_1/7"])
@pytest.mark.parametrize("special", [None, np.nan, np.inf])
def test_values_are_those_of_scalars(name, special):
    recipe = parse_recipe(name)
    blocks = rows(recipe.format.block)
    if special is not None:
        blocks = blocks[16:]
        blocks[3, 2] = special
    found = round_blocks(blocks, recipe)
    values, scales = expected(blocks, recipe)
    # Where a result is not finite, the scalars have no number.
    np.testing.assert_array_equal(np.where(np.isfinite(found.values), found.values, np.nan), values)
    np.testing.assert_array_equal(found.scales, scales)
    known = np.isfinite(found.values).all(axis=1) & (found.factors[:, 0] != 0)
    steps = (found.values[known] - found.minima[known]) / found.factors[known]
    assert (np.abs(steps - np.rint(steps)) < 1e-9).all()
