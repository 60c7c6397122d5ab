"""Recipes on arrays: the bits of the scalar derivation for every rule, shapes of blocks, and decoding."""

import numpy as np
import pytest

from floatlab import Datum, FloatArray, arrays, parse_format
from floatlab.arith.blocks import quantize_blocks, tiles
from floatlab.arrays.blocks import decode_blocks, encode_blocks
from floatlab.arrays.scales import Blocks
from floatlab.arrays.sources import Source
from floatlab.errors import ContextError, FormatError, UnsupportedError
from floatlab.formats.recipes import parse_recipe, rules_for

SHAPES = [
    "nvfp4", "nvfp4/16x16", "nvfp4/4x4", "nvfp4/8/channel", "mxfp4", "mxfp8_e4m3/4x8", "mxfp6_e2m3/8", "e4m3/tensor",
    "e4m3/channel", "e5m2/1x8", "e4m3/4x8", "block(e2m1, ue5m3, 8)", "block(e4m3, ue8m0, 4x4)",
    "block(e2m1, ue4m3, 16, fp32)", "e4m3", "e2m1", "int8/channel", "int4/4x8", "int4/flat24", "q8_0", "q4_0",
    "nf4/flat16", "bnb_fp4/8", "int8", "hif4",
]  # fmt: skip
EVERY = [f"{shape}:{rule.name}" for shape in SHAPES for rule in rules_for(parse_recipe(shape).format)]


def hostile(rng, rows, columns):
    """Return float32 numbers: a wide range, ties of small formats, zeros, a NaN and infinities."""
    x = np.ldexp(rng.integers(1, 64, (rows, columns)), rng.integers(-12, 4, (rows, columns))).astype(np.float32)
    x *= rng.choice([-1, 1, 1, 0], (rows, columns))
    x[rows // 2] *= np.float32(2.0 ** rng.choice([-130, -20, 100, 118]))
    x[-1, :8] = 0
    return x


def derived(x, recipe, format):
    bits = x if x.dtype == np.uint16 else x.view(np.uint32)
    data = [[Datum(format, int(code)) for code in row] for row in bits]
    blocks = quantize_blocks(data, recipe)
    codes = np.zeros(x.size, np.uint32)
    values = np.zeros(x.size)
    for block, places in zip(blocks, tiles(recipe.format, *x.shape), strict=True):
        codes[places] = [element.code for element in block.elements]
        values[places] = [
            np.nan if element.decoded is None else float(element.decoded.as_fraction()) for element in block.elements
        ]
    tensors = [None if block.tensor is None else float(block.tensor.datum) for block in blocks]
    return [block.scale_code for block in blocks], codes.reshape(x.shape), values.reshape(x.shape), tensors


@pytest.mark.one_in(48)
@pytest.mark.parametrize("text", EVERY)
@pytest.mark.parametrize("special", [False, True])
def test_arrays_have_the_bits_of_the_scalar_derivation(text, special):
    recipe = parse_recipe(text)
    rng = np.random.default_rng(list(f"{text}{special}".encode()))
    # 20 columns: tiles of 8 and 16 columns end with a short one. MX and NVFP4 refuse short blocks along one axis.
    columns = 32 if recipe.format.rows == 1 and recipe.format.family != "fp32" else 20
    x = hostile(rng, 6, columns)
    if special:
        x[1, 3], x[2, 5] = np.inf, np.nan
    if recipe.rule.takes:
        x = arrays.quantize(x, recipe.rule.takes)
    scales, codes, values, tensors = derived(x, recipe, parse_format("fp32"))
    got = encode_blocks(x, recipe)
    assert got.scales.reshape(-1).tolist() == scales
    assert got.codes.tolist() == codes.tolist()
    if got.tensor_scale is not None:
        found = np.broadcast_to(np.asarray(got.tensor_scale), (6,)) if recipe.format.by_row else [got.tensor_scale]
        assert np.array_equal(np.unique(found), np.unique(np.float32(tensors)), equal_nan=True)
    decoded = decode_blocks(got, recipe)
    decoded[np.isinf(decoded)] = np.nan  # a tensor scale that is infinite; the derivation has no number there either
    assert np.array_equal(decoded, values, equal_nan=True)


@pytest.mark.parametrize(
    "text",
    [
        "block(e2m1, ue5m3, 16):4over6",
        "block(e2m1, e4m3, 16, bf16):4over6",
        "nvfp4:4over6",
        "block(e2m1, e4m3, 16, fp16):te",
        "block(e2m1, e4m3, 16, fp16):fouroversix_mse",
        "block(e2m1, nf4, 16)",
        "block(e2m1, e4m3, 16, nf4)",
    ],
)
@pytest.mark.parametrize("size", [1e30, 1.0, 1e-40, 0.0])
def test_tensor_scales_and_smallest_scales_are_stored_in_their_formats(text, size):
    x = (np.random.default_rng(5).standard_normal((1, 32)) * size).astype(np.float32)
    scales, codes, _, tensors = derived(x, parse_recipe(text), parse_format("fp32"))
    got = encode_blocks(x, text)
    assert got.scales.reshape(-1).tolist() == scales
    assert got.codes.tolist() == codes.tolist()
    assert [None if got.tensor_scale is None else float(got.tensor_scale)] * 2 == tensors


@pytest.mark.parametrize(
    "text", ["hif4", "nvfp4:fouroversix_mse", "nvfp4:4over6", "e4m3/128x128", "q4_0", "int8/channel"]
)
@pytest.mark.parametrize("shape", [(0,), (0, 64), (3, 0)])
def test_arrays_may_be_empty(text, shape):
    empty = np.zeros(shape, np.float32)
    assert encode_blocks(empty, text).codes.shape == shape
    assert arrays.quantize(empty, text).shape == shape


def test_four_over_six_needs_no_derivation_where_both_scales_give_the_same_values(monkeypatch):
    monkeypatch.delattr("floatlab.arrays.blocks.derive_blocks")
    x = np.zeros((4, 16), np.float32)
    assert encode_blocks(x, "nvfp4:4over6").scales.tolist() == [[1]] * 4
    assert encode_blocks(x + 3, "nvfp4:4over6").scales.tolist() == [[120]] * 4


@pytest.mark.parametrize("text", ["e4m3/channel:modelopt", "e4m3/tensor:ct", "nvfp4:ct", "mxfp4:ct", "e4m3/4x8:te"])
def test_rules_that_compute_in_the_input_format_do_so(text):
    recipe, half = parse_recipe(text), parse_format("bf16")
    rng = np.random.default_rng(list(text.encode()))
    bits = (hostile(rng, 4, 32).view(np.uint32) >> 16).astype(np.uint16)
    scales, codes, _, _ = derived(bits, recipe, half)
    got = encode_blocks(Source(bits, half), recipe)
    assert got.scales.reshape(-1).tolist() == scales
    assert got.codes.tolist() == codes.tolist()


@pytest.mark.parametrize(
    ("text", "shape", "scales"),
    [
        ("e4m3/tensor", (3, 4, 5), (1, 1)),
        ("e4m3/channel", (3, 5), (3, 1)),
        ("e4m3/1x4", (3, 6), (3, 2)),
        ("e4m3/2x4", (3, 6), (2, 2)),
        ("e4m3/2x4", (2, 3, 6), (2, 2, 2)),
        ("e4m3/4", (6,), (2,)),
        ("nvfp4/16x16", (16, 32), (1, 2)),
    ],
)
def test_scales_have_the_shape_of_the_grid_of_blocks(text, shape, scales):
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    got = arrays.encode(x, text)
    assert (got.scales.shape, got.codes.shape) == (scales, shape)
    values = arrays.quantize(x, text)
    assert values.shape == shape
    assert np.array_equal(values, arrays.decode(got, text, dtype="float32"))


def test_blocks_lie_along_any_axis():
    x = hostile(np.random.default_rng(1), 32, 6)
    for text in ("mxfp4:te", "e4m3/4", "e4m3/channel:ct"):
        turned, plain = encode_blocks(x, text, 0), encode_blocks(np.ascontiguousarray(x.T), text)
        assert np.array_equal(turned.codes.T, plain.codes)


def test_four_over_six_takes_the_scale_with_the_smaller_error():
    x = np.array([4, 4, 4, 4, *[0] * 12, 8, 1, 1, 1, *[0] * 12], np.float32)
    chosen, plain = arrays.quantize(x, "nvfp4:4over6"), arrays.quantize(x, "nvfp4")
    errors = [np.square(values - x).reshape(2, 16).sum(axis=1) for values in (chosen, plain)]
    assert np.all(errors[0] <= errors[1] + 1e-6)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda x: encode_blocks(x, "nvfp4:flor"), FormatError, "nvfp4:flor\n"),
        (
            lambda x: encode_blocks(x, "nvfp4", scale="flor"),
            ContextError,
            "scale must be one of nearest up 4over6 for nvfp4",
        ),
        (
            lambda x: encode_blocks(x, "nvfp4/16x16", rounding="SR"),
            UnsupportedError,
            "stochastic rounding is for blocks",
        ),
        (lambda x: encode_blocks(x, "e4m3/tensor", axis=5), UnsupportedError, "axis '5' is not an axis of x"),
        (lambda x: encode_blocks(x, "e4m3/tensor", tensor_scale=1), UnsupportedError, "no scale for a whole tensor"),
        (lambda x: decode_blocks(([1], x.astype(int)), "e4m3/tensor"), UnsupportedError, "scales must have shape"),
    ],
)
def test_bad_input_is_named(ask, error, words):
    with pytest.raises(error, match=words):
        ask(np.ones((2, 16), np.float32))


def test_the_scales_of_hif4_are_bytes():
    x = np.geomspace(2.0**-60, 2.0**20, 64 * 40, dtype=np.float32)
    x[-1] = np.inf  # the code of its scale is 255, that of NaN
    blocks = encode_blocks(x, "hif4")
    assert blocks.scales.dtype == np.uint8
    derived = [block.scale_code for block in quantize_blocks([float(each) for each in x], "hif4")]
    assert blocks.scales.tolist() == derived
    assert len(set(derived)) > 30
    assert max(derived[:-1]) >= 252  # beyond these, codes plus the first code of a scale do not fit into a byte
    wide = Blocks(blocks.scales.astype(np.uint16), blocks.codes, None, blocks.groups)
    values = decode_blocks(blocks, "hif4")
    assert np.array_equal(values, decode_blocks(wide, "hif4"), equal_nan=True)
    assert np.array_equal(values, arrays.quantize(x, "hif4"), equal_nan=True)
    with pytest.raises(UnsupportedError, match="8 bits"):
        decode_blocks(Blocks(wide.scales + 256, blocks.codes, None, blocks.groups), "hif4")


@pytest.mark.parametrize("rule", ["te", "te_4over6_mse256", "fouroversix_6", "modelopt", "ct", "nearest"])
def test_a_tensor_scale_that_is_given_enters_all_formulas(rule):
    x = np.random.default_rng(5).standard_normal((1, 32)).astype(np.float32)
    data = [[Datum(parse_format("fp32"), int(code)) for code in x[0].view(np.uint32)]]
    blocks = quantize_blocks(data, f"nvfp4:{rule}", tensor_scale=7)
    got = encode_blocks(x, f"nvfp4:{rule}", tensor_scale=7)
    assert [block.scale_code for block in blocks] == got.scales.reshape(-1).tolist()
    assert [element.code for block in blocks for element in block.elements] == got.codes.reshape(-1).tolist()


@pytest.mark.parametrize("recipe", ["mxfp4", "nvfp4", "mxfp4:te", "nvfp4:te", "e4m3/tensor", "block(e4m3, fp32, 48)"])
def test_the_dtype_of_values_depends_on_the_input_alone(recipe):
    x = np.arange(64.0)
    for single in (
        x.astype(np.float16), x.astype(np.float32), x.astype(">f4"), x.astype(np.int8), x.astype(int).tolist(),
        FloatArray(x, "e5m2"), FloatArray(x, "fp16"), FloatArray(x, "fp32"),
    ):  # fmt: skip
        assert arrays.quantize(single, recipe).dtype == np.float32
    for double in (x, x.astype(">f8"), x.tolist(), FloatArray(x, "fp64"), FloatArray(x, "e11m30")):
        assert arrays.quantize(double, recipe).dtype == np.float64


def test_blocks_with_other_exponents_of_groups_are_different():
    x = np.ldexp(np.ones(64, np.float32), np.arange(64) % 7)
    blocks = encode_blocks(x, "hif4")
    assert blocks == encode_blocks(x, "hif4")
    eights, fours = blocks.groups
    for groups in ((1 - eights, fours), (eights, 1 - fours), (eights,), ()):
        assert blocks != blocks.replace(groups=groups)
