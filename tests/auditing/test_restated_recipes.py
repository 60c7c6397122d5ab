"""Which recipe made these codes, on quantisers of libraries restated in NumPy, with the roundings that torch makes."""

import re

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.sources import HeldSource
from floatlab.errors import FileFormatError
from tests.auditing.making import write_checkpoint

BF16 = ml_dtypes.bfloat16
SINGLE = np.float32
EPS = {np.float32: 2.0**-23, BF16: 2.0**-7, np.float16: 2.0**-10}
KINDS = {np.float32: "F32", BF16: "BF16", np.float16: "F16"}
SHAPE = (32, 128)


def kept(x, dtype):
    """Return the result of one operation of torch: computed in float32, and rounded to the dtype of the values."""
    return np.asarray(x, SINGLE).astype(dtype).astype(SINGLE)


def fp8(x):
    return np.clip(np.asarray(x, SINGLE), -448, 448).astype(ml_dtypes.float8_e4m3fn)


def spread(scales, rows, columns):
    return np.kron(scales, np.ones((rows, columns), SINGLE)).astype(SINGLE)


def largest(x, rows, columns):
    blocks = x.reshape(x.shape[0] // rows, rows, x.shape[1] // columns, columns)
    return np.abs(blocks).max(axis=(1, 3))


def weights(kind, dtype, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(SHAPE) * 0.02
    x = {
        "normal": x, "zero rows": x * (np.arange(SHAPE[0]) % 5 != 0)[:, None], "outliers": np.where(x > 0.05, 7.0, x),
        "tiny": x * 1e-4, "student": rng.standard_t(3, SHAPE) * 0.02,
    }[kind]  # fmt: skip
    return x.astype(SINGLE).astype(dtype)


def transformers(x, dtype):
    amax = largest(x, 32, 32)
    inverse = np.where(amax > 0, (1 / np.where(amax > 0, amax, SINGLE(1))) * SINGLE(448), SINGLE(1))
    return fp8(x * spread(inverse, 32, 32)), SINGLE(1) / inverse, "e4m3/32x32:transformers"


def transformers_4(x, dtype):
    inverse = kept(kept(1 / largest(x, 32, 32), dtype) * 448, dtype)
    return fp8(kept(x * spread(inverse, 32, 32), dtype)), kept(1 / inverse, dtype).astype(dtype), (
        "e4m3/32x32:transformers_4"
    )  # fmt: skip


def ct_integers(bits, size):
    def made(x, dtype):
        scale = kept(largest(x, 1, size) / SINGLE((2**bits - 1) / 2), dtype)
        scale = np.where(scale == 0, SINGLE(EPS[dtype]), scale)
        half = 1 << bits - 1
        codes = np.clip(np.rint(kept(x / spread(scale, 1, size), dtype)), -half, half - 1)
        return codes.astype(np.int8), scale.astype(dtype), f"int{bits}/{'channel' if size == SHAPE[1] else size}:ct"

    return made


def ct_packed(bits):
    def made(x, dtype):
        codes, scale, recipe = ct_integers(bits, 32)(x, dtype)
        octets = (codes.astype(np.int16) + (1 << bits - 1)).astype(np.uint8)
        octets = octets[:, ::2] | octets[:, 1::2] << 4 if bits == 4 else octets
        return np.ascontiguousarray(octets).view("<i4"), scale, recipe

    return made


def bitsandbytes(divides):
    def made(x, dtype):
        amax = np.abs(x).max(axis=1)
        factor = SINGLE(127) / amax if divides else SINGLE(1) / amax * SINGLE(127)
        scaled = (x * factor[:, None]).astype(SINGLE)
        codes = np.rint(np.where(np.isfinite(scaled), scaled, 0)).astype(np.int8)
        return codes, amax.astype(SINGLE), "int8/channel:bnb_cuda" if divides else "int8/channel:bnb"

    return made


MADE = {
    "transformers": transformers, "transformers 4": transformers_4, "ct int4": ct_integers(4, 32),
    "ct int4 rows": ct_integers(4, 128), "ct int8": ct_integers(8, 128), "ct int4 packed": ct_packed(4),
    "ct int8 packed": ct_packed(8), "bitsandbytes": bitsandbytes(False), "bitsandbytes on CUDA": bitsandbytes(True),
}  # fmt: skip
CASES = [
    (name, kind, dtype) for name in MADE for kind in ("normal", "zero rows", "outliers", "tiny", "student")
    for dtype in (SINGLE, BF16, np.float16)
]  # fmt: skip


@pytest.mark.one_in(12)
@np.errstate(all="ignore")
@pytest.mark.parametrize(("name", "kind", "dtype"), CASES)
def test_the_recipe_of_a_library_is_among_those_found(name, kind, dtype):
    x = weights(kind, dtype, list(f"{name} {kind}".encode()))
    codes, scales, recipe = MADE[name](x.astype(SINGLE), dtype)
    found = fl.find_recipe(codes, x, scales)
    assert recipe in [each.name for each in found.recipes], found


def test_a_scale_that_was_rounded_before_the_division():
    x = weights("normal", SINGLE, 5)
    scale = (np.abs(x).max(axis=1, keepdims=True) / SINGLE(7.5)).astype(np.float16)
    codes = np.clip(np.rint(x / scale.astype(SINGLE)), -8, 7).astype(np.int8)
    found = fl.find_recipe(codes, x, scale)
    assert found.recipe == "int4/channel:ct, divided by scales that were rounded to float16"


def int8(x):
    return np.clip(np.rint(x), -128, 127).astype(np.int8)


ON_CUDA = {
    "torchao": ("e4m3/channel:torchao", SINGLE(448), lambda x, dtype: fp8(x)),
    "ct": ("e4m3/channel:ct", SINGLE(448), lambda x, dtype: fp8(kept(x, dtype))),
    "ct int8": ("int8/channel:ct", SINGLE(127.5), lambda x, dtype: int8(kept(x, dtype))),
    "modelopt int8": ("int8/channel:modelopt", SINGLE(127), lambda x, dtype: int8(kept(x, dtype))),
}


@pytest.mark.parametrize("dtype", [SINGLE, BF16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", ON_CUDA)
def test_on_cuda_torch_multiplies_by_the_reciprocal_of_a_constant(name, dtype):
    x = weights("student", dtype, 8).astype(SINGLE)
    recipe, constant, elements = ON_CUDA[name]
    amax = np.abs(x).max(axis=1, keepdims=True)
    scale = kept(amax * (SINGLE(1) / constant), dtype)
    is_other = bool((scale != kept(amax / constant, dtype)).any())
    found = fl.find_recipe(elements(x / scale, dtype), x.astype(dtype), scale)
    divisor = "largest" if constant == 448 else f"{constant:g}"
    assert f"{recipe}{f', amax * (1 / {divisor}) on CUDA' * is_other}" in [each.name for each in found.recipes], found
    assert all("CUDA" in each.name for each in found.recipes) == is_other
    assert is_other or dtype is BF16


def test_a_library_on_cuda_is_named_beside_an_exact_rule_that_agrees():
    x = np.full((2, 64), 0.5, SINGLE)
    x[0, 0] = next(a for a in np.linspace(1, 2, 99, dtype=SINGLE) if a * (SINGLE(1) / SINGLE(448)) > a / SINGLE(448))
    scale = x[:1, :1] * (SINGLE(1) / SINGLE(448))
    names = [each.name for each in fl.find_recipe(fp8(x / scale), x, scale[0]).recipes]
    assert names[0].endswith("amax * (1 / largest) on CUDA")
    assert names[-1] == "e4m3/tensor:up"


@pytest.mark.parametrize("is_on_cuda", [False, True])
def test_deepgemm_multiplies_by_the_reciprocal_of_the_scale(is_on_cuda):
    x = weights("normal", BF16, 9).astype(SINGLE)
    amax = np.maximum(largest(x, 1, 64), SINGLE(1e-4))
    scale = amax * (SINGLE(1) / SINGLE(448)) if is_on_cuda else amax / SINGLE(448)
    found = fl.find_recipe(fp8(x * spread(SINGLE(1) / scale, 1, 64)), x.astype(BF16), scale)
    recipe = "e4m3/64:deepgemm" + ", max(amax, 1e-4) * (1 / largest) on CUDA" * is_on_cuda
    assert recipe in [each.name for each in found.recipes]


def test_the_first_deepgemm_multiplied_by_another_quotient():
    x = np.random.default_rng(9).standard_normal((128, 512)).astype(BF16).astype(SINGLE)
    amax = np.abs(x).max(axis=1, keepdims=True)
    inverse = SINGLE(1) / amax * SINGLE(448)
    found = fl.find_recipe(fp8(x * inverse), x.astype(BF16), amax / SINGLE(448))
    assert [each.name for each in found.recipes] == ["e4m3/channel:deepgemm_1"]


def test_tiles_of_another_shape_whose_scales_would_be_transposed_come_last():
    x = np.where(np.arange(128 * 256).reshape(128, 256) % 3, SINGLE(0.3), SINGLE(0.9))
    scale = np.full((1, 2), 2.0**-8, SINGLE)
    found = fl.find_recipe(fp8(x / scale[0, 0]), x, scale)
    assert found.recipe.startswith("e4m3/128x128:")
    assert found.recipes[0].layout[1] == "scales: float32"


def ranges(x, dtype, size, bits, on_cuda=False):
    """Return unsigned codes, zero points and scales as compressed-tensors computes them."""
    blocks = x.reshape(len(x), -1, size)
    low, high = np.minimum(blocks.min(axis=2), 0), np.maximum(blocks.max(axis=2), 0)
    least = -(1 << bits - 1)
    span, most = kept(high - low, dtype), SINGLE((1 << bits) - 1)
    scale = kept(span * (SINGLE(1) / most) if on_cuda else span / most, dtype)
    zero = np.rint(np.clip(kept(least - kept(low / scale, dtype), dtype), least, -least - 1))
    zero, scale = np.where(scale == 0, 0, zero), np.where(scale == 0, SINGLE(EPS[dtype]), scale)
    codes = np.clip(np.rint(kept(kept(blocks / scale[..., None], dtype) + zero[..., None], dtype)), least, -least - 1)
    return (codes.reshape(x.shape) - least).astype(np.uint8), (zero - least).astype(np.uint8), scale.astype(dtype)


def words(codes, bits):
    octets = codes[..., ::2] | codes[..., 1::2] << 4 if bits == 4 else codes
    return np.ascontiguousarray(octets).view("<i4")


def ct_with_zero_points(x, dtype, on_cuda=False):
    codes, zero, scale = ranges(x, dtype, 32, 4, on_cuda)
    return {
        "x.weight_packed": ("I32", words(codes, 4)), "x.weight_scale": (KINDS[dtype], scale),
        "x.weight_zero_point": ("I32", words(zero.T, 4).T), "x.weight_shape": ("I64", np.int64(x.shape)),
    }, {"quant_method": "compressed-tensors"}  # fmt: skip


def ct_int8_with_zero_points(x, dtype):
    codes, zero, scale = ranges(x, dtype, SHAPE[1], 8)
    return {
        "x.weight": ("I8", codes ^ 128), "x.weight_scale": (KINDS[dtype], scale),
        "x.weight_zero_point": ("I8", zero ^ 128),
    }, {"quant_method": "compressed-tensors"}  # fmt: skip


def transposed(codes, zero, scale):
    return {
        "x.qweight": ("I32", words(codes.T.copy().T, 4).T), "x.qzeros": ("I32", words((zero.T - 1) & 15, 4)),
        "x.scales": ("F16", scale.T.astype(np.float16)),
    }  # fmt: skip


def gptq(x, dtype):
    """GPTQ computes in float32, and rounds the scales to float16 only to store them."""
    blocks = x.reshape(len(x), -1, 32)
    low, high = np.minimum(blocks.min(axis=2), 0), np.maximum(blocks.max(axis=2), 0)
    is_empty = (low == 0) & (high == 0)
    low, high = np.where(is_empty, SINGLE(-1), low), np.where(is_empty, SINGLE(1), high)
    scale = ((high - low) / SINGLE(15)).astype(SINGLE)
    zero = np.rint(-low / scale)
    codes = np.clip(np.rint(blocks / scale[..., None]) + zero[..., None], 0, 15).reshape(x.shape).astype(np.uint8)
    config = {"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq"}
    return transposed(codes, zero.astype(np.uint8), scale), config


WITH_ZERO_POINTS = {"ct int4": ct_with_zero_points, "ct int8": ct_int8_with_zero_points, "gptq": gptq}


@np.errstate(all="ignore")
@pytest.mark.parametrize("dtype", [SINGLE, BF16, np.float16], ids=["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", WITH_ZERO_POINTS)
def test_zero_points_in_the_precision_of_each_library(tmp_path, name, dtype):
    x = weights("zero rows", dtype, 3)
    parts, config = WITH_ZERO_POINTS[name](x.astype(SINGLE), dtype)
    write_checkpoint(tmp_path / "o.safetensors", {"x.weight": (KINDS[dtype], x)})
    path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
    found = fl.find_recipe(f"{path}::x.weight", str(tmp_path / "o.safetensors"))
    assert re.search(r"scale \(max\(high, 0\) − min\(low, 0\)\) / (15|255)$", found.recipe), found
    working = dict(found.recipes[0].properties)["arithmetic"]
    assert working == "binary32" or name != "gptq"
    assert {"bfloat16": "bfloat16", "float16": "binary16"}.get(found.format, working) == working or name == "gptq"


@np.errstate(all="ignore")
def test_zero_points_on_cuda(tmp_path):
    x = weights("normal", SINGLE, 3)
    parts, config = ct_with_zero_points(x, SINGLE, on_cuda=True)
    write_checkpoint(tmp_path / "o.safetensors", {"x.weight": ("F32", x)})
    path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
    found = fl.find_recipe(f"{path}::x.weight", str(tmp_path / "o.safetensors"))
    assert found.recipe.endswith("scale (max(high, 0) − min(low, 0)) / 15 on CUDA")


def test_codes_that_do_not_fit_are_refused_before_the_original_is_read():
    class Unread(HeldSource):
        def read(self, first, count):
            raise AssertionError("read")

    original = Unread(np.zeros((64, 64), np.float32), "original")
    with pytest.raises(FileFormatError, match="no codes for 64×64 numbers"):
        fl.find_recipe(np.zeros((4, 32), np.uint8), original)
