"""Quantises by recipes with minima (q4_1, q4_k), by the scalar derivation: only a part of a large tensor."""

from __future__ import annotations

import numpy as np

from floatlab.arith.blocks import quantize_blocks
from floatlab.auditing.recipe_search.encoding import Candidate, Encoded, Part, Survey, taken
from floatlab.numbers import Datum


def encode_minima(candidate: Candidate, survey: Survey, part: Part) -> Encoded:
    """Quantise a part by a recipe with minima; its scales are in the order in which ggml stores them in a block."""
    source = taken(part.codes, survey.format, candidate.takes)
    recipe = candidate.recipe
    blocks = quantize_blocks([Datum(source.format, code) for code in source.codes.reshape(-1).tolist()], recipe)
    codes = np.array([element.code for block in blocks for element in block.elements], np.uint8)
    pairs = [
        (float(block.scale), float(block.minimum)) for block in blocks if block.minimum is not None
    ]
    if recipe.format.superblock is None:
        return Encoded(codes, np.array(pairs).reshape(-1), None)
    size = recipe.format.superblock // (recipe.format.block or 1)
    scales = []
    for start in range(0, len(blocks), size):
        tensor = blocks[start].tensor
        assert tensor is not None and tensor.minimum is not None
        both = np.array(pairs[start : start + size])
        scales.append([float(tensor.datum), float(tensor.minimum), *both[:, 0], *both[:, 1]])
    return Encoded(codes, np.array(scales).reshape(-1), None)
