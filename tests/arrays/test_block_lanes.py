"""The compiled lane of blocks: the bits of the NumPy lane, for all formats, rules and directions, on random words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import Context, arrays
from floatlab.arrays.block_job import Job
from floatlab.arrays.blocks import decode_blocks, encode_blocks, quantize_blocks
from floatlab.arrays.lanes import compiled
from floatlab.formats.recipes import parse_recipe

if not compiled.is_built():
    pytest.skip("the extension was not built", allow_module_level=True)

FORMATS = [
    "mxfp4", "mxfp4:even", "mxfp4:ceil", "mxfp6_e2m3", "mxfp6_e3m2:ceil", "mxfp8_e4m3", "mxfp8_e5m2:even", "mxint8",
    "mxint8:ceil", "mxfp4:nearest", "mxfp8_e4m3:up", "nvfp4", "nvfp4:up", "e4m3/1x128", "e5m2/16", "int8/32", "int4/8",
    "block(e2m1, ue5m3, 8)", "block(e4m3, fp16, 24)", "block(e3m2, bf16, 1)", "block(e2m1, e4m3, 2048, fp32)",
]  # fmt: skip


def words(draw, count):
    """Random words: near each other or of any exponent, zeros, subnormal numbers, ties, infinities, NaNs."""
    near = draw.integers(0, 1 << 24, count) + (draw.integers(90, 140) << 23)
    tie = draw.integers(0, 64, count) << 18 | draw.integers(100, 150, count) << 23
    anything = draw.integers(0, 1 << 31, count)
    tiny = draw.integers(0, 1 << 24, count)
    kinds = np.stack([near, near, tie, anything, tiny, np.zeros(count, np.int64)])
    chosen = (
        kinds[draw.integers(0, 6), :] if draw.random() < 0.5 else kinds[draw.integers(0, 6, count), np.arange(count)]
    )
    signs = draw.integers(0, 2, count) << 31
    x = (chosen | signs).astype(np.uint32).view(np.float32)
    if draw.random() < 0.7:
        x[~np.isfinite(x)] = 1
    return x


def bits(blocks):
    tensor = blocks.tensor_scale
    return blocks.scales.tolist(), blocks.codes.tolist(), None if tensor is None else np.float32(tensor).tobytes()


@given(
    st.sampled_from(FORMATS), st.integers(0, 2**32), st.integers(0, 70), st.sampled_from(["RNE", "RNA", "RTZ"]),
    st.booleans(),
)  # fmt: skip
def test_the_lanes_give_the_same_bits(name, seed, rows, direction, drops):
    context = Context(direction, flush_results=drops)
    draw = np.random.default_rng(seed)
    size = parse_recipe(name).format.block
    x = words(draw, size * (rows % 4 if size > 100 else rows)).reshape(-1, size)
    fast, slow = (encode_blocks(x, name, context=context, lane=lane) for lane in ("compiled", "numpy"))
    assert bits(fast) == bits(slow)
    with np.errstate(all="ignore"):
        fast, slow = (quantize_blocks(x, name, context=context, lane=lane) for lane in ("compiled", "numpy"))
    assert np.array_equal(fast.view(np.uint32), slow.view(np.uint32))


@pytest.mark.parametrize("name", [*FORMATS, "nvfp4/16x16", "e4m3/tensor", "int8/channel", "e4m3/4x8", "nf4/16:none"])
def test_decoding_into_float32_rounds_once(name):
    recipe = parse_recipe(name)
    draw = np.random.default_rng(list(name.encode()))
    x = draw.standard_normal((48, 8 * (recipe.format.block or 8))) * 2.0 ** draw.integers(-140, 100, (48, 1))
    blocks = encode_blocks(x.astype(np.float32), recipe)
    with np.errstate(all="ignore"):
        wide = decode_blocks(blocks, recipe, dtype=np.float64).astype(np.float32)
    assert np.array_equal(decode_blocks(blocks, recipe, dtype=np.float32).view(np.uint32), wide.view(np.uint32))


@pytest.mark.parametrize("name", FORMATS)
def test_the_kernel_is_used(name):
    x = np.random.default_rng(0).standard_normal((3, parse_recipe(name).format.block))
    found = Job(x.astype(np.float32), name).at_once(True, True)
    assert found is not None
    expected = encode_blocks(x.astype(np.float32), name, lane="numpy")
    assert np.array_equal(found.scales, expected.scales)
    assert np.array_equal(found.codes, expected.codes)
    assert np.array_equal(found.values, quantize_blocks(x.astype(np.float32), name, lane="numpy"))


@pytest.mark.parametrize("changes", [{"rounding": "RTP"}, {"context": Context("SR", seed=1)}, {"lane": "numpy"}])
def test_what_the_kernel_leaves_to_other_lanes(changes):
    assert Job(np.ones((2, 32), np.float32), "mxfp4", **changes).at_once(True, True) is None
    assert Job(np.ones((2, 32)), "mxfp4").at_once(True, True) is None
    assert Job(np.ones((32, 2), np.float32), "mxfp4", 0).at_once(True, True) is None


def test_amax_of_subnormal_numbers_that_the_table_lacks():
    x = np.zeros((2, 32), np.float32)
    x[0, 3] = 2.0**-140
    assert Job(x, "mxint8").at_once(True, True) is None
    assert bits(encode_blocks(x, "mxint8")) == bits(encode_blocks(x, "mxint8", lane="numpy"))
    x[0, 3] = 0
    assert Job(x, "mxint8").at_once(True, True) is not None


@pytest.mark.parametrize("name", ["e4m3/tensor", "e4m3/1025x1024"])
def test_a_block_of_more_than_a_million_elements(name):
    x = np.random.default_rng(0).standard_normal((1025, 1024)).astype(np.float32)
    x[7, 7] = 448  # the scale is 1
    blocks = encode_blocks(x, name)
    assert blocks.scales.tolist() in ([[0x3F800000]], [0x3F800000])
    assert np.array_equal(blocks.codes, arrays.encode(x, "e4m3"))
    assert np.array_equal(decode_blocks(blocks, name, dtype=np.float32), arrays.quantize(x, "e4m3"))
