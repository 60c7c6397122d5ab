"""The codes and scales of other libraries' quantisers, bit for bit: every recipe on every input of the shared vectors.

Zero codes are compared by value, and NaNs as NaNs: their signs are those of the processor and the compiler.
"""

import numpy as np
import pytest

from floatlab import Datum, parse_format
from floatlab.arith.blocks import quantize_blocks, tiles
from floatlab.arrays.blocks import decode_blocks, encode_blocks
from floatlab.arrays.sources import Source
from floatlab.formats.blocks import Integers
from floatlab.formats.recipes import parse_recipe
from tests.differential.quantized import RECIPES, case, cases, index, packed, results
from tests.differential.shared import lines, needs_folder

pytestmark = needs_folder


def values_of(name: str):
    stored = case(name)["input"]
    return Source(stored, parse_format("bf16")) if stored.dtype == np.uint16 else stored


def nan_bits(fmt) -> int:
    """Return the bits that are all set in the codes of a NaN scale, and in no other."""
    kind = fmt.scale
    if kind.width == 16:
        return 0x7E00
    return 0x100 if fmt.superblock else 0x7F if kind.signed else 0xFF  # the packed bytes of a group have no NaN


def unlike(mine, theirs, nan_mask: int) -> np.ndarray:
    """Return where scales differ; `nan_mask` are the bits of a NaN's code."""
    if theirs.dtype == np.float32:
        mine = mine.view(np.float32)
        return (mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs))
    mine, theirs = mine.astype(np.int64), theirs.astype(np.int64)
    return (mine != theirs) & ~((mine & nan_mask == nan_mask) & (theirs & nan_mask == nan_mask))


def unlike_codes(mine, theirs, element) -> np.ndarray:
    if isinstance(element, Integers):
        return mine != theirs
    numbers = [Datum(element, code) for code in range(1 << element.width)]
    nan, zero = (
        np.array([each.is_nan for each in numbers]),
        np.array([each.is_finite and not each.exact.c for each in numbers]),
    )
    return (mine != theirs) & ~(zero[mine] & zero[theirs]) & ~(nan[mine] & nan[theirs])


def check(identity, recipe, got, codes, scales, tensor):
    fmt = recipe.format
    mine = np.repeat(got.scales, 16, axis=0) if fmt.rows == 16 else got.scales
    assert not unlike(mine.reshape(-1), scales.reshape(-1), nan_bits(fmt)).any(), identity
    assert not unlike_codes(got.codes, codes, fmt.element).any(), identity
    if tensor is not None and not np.isnan(tensor).all():
        assert np.array_equal(np.asarray(got.tensor_scale).reshape(-1), tensor.reshape(-1)), identity


@pytest.mark.parametrize("name", cases())
def test_arrays_have_the_codes_and_scales_of_the_libraries(name):
    x, compared = values_of(name), 0
    for identity, _, codes, scales, tensor in results(name):
        if not parse_recipe(RECIPES[identity]).format.minimum:
            recipe = parse_recipe(RECIPES[identity])
            check(identity, recipe, encode_blocks(x, recipe), codes, scales, tensor)
            compared += 1
    assert compared


def test_every_recipe_is_one_of_ours():
    assert set(RECIPES) == {each["id"] for each in index()["recipes"]}


@pytest.mark.one_in(160)
@pytest.mark.parametrize("identity", RECIPES)
@pytest.mark.parametrize("name", ["recip905_a_f32", "normal002_bf16"] if cases() != ["no folder"] else cases())
def test_the_scalar_derivation_has_them_too(identity, name):
    derive(identity, name)


@pytest.mark.one_in(32)
@pytest.mark.parametrize("identity", [each for each, text in RECIPES.items() if parse_recipe(text).format.minimum])
@pytest.mark.parametrize("name", cases())
def test_the_scalar_derivation_has_the_scales_and_minima_of_ggml(identity, name):
    derive(identity, name)


def derive(identity, name):
    stored = {found[0]: found for found in results(name)}
    if identity not in stored:
        pytest.skip("the library refused this input")
    _, _, codes, scales, _ = stored[identity]
    recipe = parse_recipe(RECIPES[identity])
    bits = case(name)["input"]
    fmt = parse_format("bf16" if bits.dtype == np.uint16 else "fp32")
    every = bits if bits.dtype == np.uint16 else bits.view(np.uint32)
    data = [[Datum(fmt, int(code)) for code in row] for row in every]
    blocks = quantize_blocks(data, recipe)
    mine = np.zeros(codes.size, np.uint8)
    for block, places in zip(blocks, tiles(recipe.format, *codes.shape), strict=True):
        mine[places] = [element.code for element in block.elements]
    assert not unlike_codes(mine.reshape(codes.shape), codes, recipe.format.element).any()
    found = packed(blocks)
    if recipe.format.rows == 16:
        found = np.repeat(found.reshape(len(codes) // 16, -1), 16, axis=0).reshape(-1)
    assert not unlike(found.reshape(-1), scales.reshape(-1), nan_bits(recipe.format)).any()


def test_hif4_has_the_codes_of_its_authors_program():
    half, count = parse_format("bf16"), 0
    for line in lines("formats2/hif4/bf16_blocks.txt.gz"):
        words, scale, eights, fours, elements, values = line.split()
        bits = np.array([int(words[at : at + 4], 16) for at in range(0, len(words), 4)], np.uint16)
        got = encode_blocks(Source(bits, half), "hif4")
        masks = [sum(int(bit) << at for at, bit in enumerate(group[0])) for group in got.groups]
        assert (got.scales[0], *masks) == (int(scale, 16), int(eights, 16), int(fours, 16))
        assert "".join(f"{code:x}" for code in got.codes) == elements
        assert decode_blocks(got, "hif4").tolist() == [float.fromhex(value) for value in values.split(",")]
        if count % 25 == 0:
            [block] = quantize_blocks([Datum(half, int(code)) for code in bits], "hif4")
            assert block.scale_code == got.scales[0]
            assert [element.code for element in block.elements] == got.codes.tolist()
            assert [list(group) for group in block.groups] == [group[0].tolist() for group in got.groups]
        count += 1
    assert count > 100


def test_nf4_has_the_codes_of_bitsandbytes():
    for count, line in enumerate(lines("formats2/bnb4/nf4_blocks64.txt.gz")):
        _, values, absmax, codes = line.split()
        bits = np.array([int(values[at : at + 8], 16) for at in range(0, len(values), 8)], np.uint32)
        got = encode_blocks(bits.view(np.float32), "nf4/flat64:bnb")
        assert got.scales.reshape(-1).tolist() == [int(absmax, 16)]
        assert "".join(f"{code:x}" for code in got.codes) == codes
        if count % 10 == 0:
            [block] = quantize_blocks([Datum(parse_format("fp32"), int(code)) for code in bits], "nf4/64:bnb")
            assert (f"{block.scale.code:08x}", "".join(f"{each.code:x}" for each in block.elements)) == (absmax, codes)
    assert count > 40
