"""Conventions of MLX, ComfyUI, TensorRT-LLM, quanto and experts; parts that are missing; and what is not read."""

import json

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.auditing.quantized import load_quantized
from floatlab.auditing.stored_parts import stored_bits
from floatlab.errors import UnsupportedError
from tests.auditing.making import write_checkpoint
from tests.auditing.test_conventions import E2M1, draw, e4m3, read

FP8, FLOATS = "F8_E4M3", np.random.default_rng(8).random(64).astype(np.float32)


def refused(tmp_path, tensors, config=None):
    """Return the reason why the only unreadable weight of a checkpoint is not read."""
    with load_quantized(write_checkpoint(tmp_path / "model.safetensors", tensors, config)) as found:
        assert len(found.unreadable) == 1, found.unreadable
        return next(iter(found.unreadable.values()))


def mlx(tmp_path, tensors, **said):
    """Return the numbers of a weight of MLX and its `Weight`; `said` are the settings in config.json."""
    path = write_checkpoint(tmp_path / "model.safetensors", tensors)
    (tmp_path / "config.json").write_text(json.dumps({"quantization": said}))
    with load_quantized(path) as found:
        assert not found.unreadable
        assert not found.plain
        weight = found.weights["l.weight"]
        assert stored_bits(weight, found.checkpoint.tensors["l.weight"]) == said.get("l", said)["bits"]
        with weight.open() as source:
            whole = source.read(0, source.size)
            assert np.array_equal(np.concatenate(list(source.blocks(7))), whole)
        return whole.reshape(weight.shape), weight


def words(codes, bits):
    """Return the codes of each row as 32-bit words: one long integer, whose lowest bits are the first code."""
    rows = []
    for row in codes:
        number = sum(int(code) << bits * n for n, code in enumerate(row))
        rows.append(np.frombuffer(number.to_bytes(len(row) * bits // 8, "little"), "<u4"))
    return np.stack(rows)


@pytest.mark.parametrize("bits", [2, 3, 4, 5, 6, 8])
def test_mlx(tmp_path, bits):
    codes, scales, biases = draw((3, 64), 1 << bits), FLOATS[:6].reshape(3, 2), -FLOATS[6:12].reshape(3, 2)
    parts = {"l.weight": ("U32", words(codes, bits)), "l.scales": ("F32", scales), "l.biases": ("F32", biases)}
    said = {"group_size": 64, "bits": 4, "l": {"group_size": 32, "bits": bits}}
    values, weight = mlx(tmp_path, parts, **said)
    assert (weight.convention, weight.evidence) == (f"MLX INT{bits}", "names, shapes and config.json (mlx)")
    for (row, column), value in np.ndenumerate(values):
        place = row, column // 32
        assert value == int(codes[row, column]) * float(scales[place]) + float(biases[place])


@pytest.mark.parametrize(("mode", "bits", "size"), [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)])
def test_the_modes_of_mlx_without_biases(tmp_path, mode, bits, size):
    codes, scales = draw((3, 64), min(1 << bits, 0x7F)), draw((3, 64 // size), 0x70, 2)
    parts = {"l.weight": ("U32", words(codes, bits)), "l.scales": ("U8", scales)}
    values, weight = mlx(tmp_path, parts, group_size=size, bits=bits, mode=mode)
    assert weight.convention == f"MLX {mode.upper()}"
    for (row, column), value in np.ndenumerate(values):
        code, stored = codes[row, column], scales[row, column // size]
        scale = e4m3(stored) if mode == "nvfp4" else 2.0 ** (int(stored) - 127)
        assert value == (e4m3(code) if bits == 8 else E2M1[code]) * scale


def test_mlx_without_its_settings_or_parts(tmp_path):
    parts = {"l.weight": ("U32", words(draw((3, 64), 16), 4)), "l.scales": ("F32", FLOATS[:6].reshape(3, 2))}
    assert "the config.json beside the file is needed" in refused(tmp_path, parts)
    (tmp_path / "config.json").write_text(json.dumps({"quantization": {"group_size": 32, "bits": 4}}))
    assert "needs the tensor 'l.biases', which is missing" in refused(tmp_path, parts)
    (tmp_path / "config.json").write_text(json.dumps({"quantization": {"group_size": 64, "bits": 4}}))
    assert "'l.scales' has the shape 3×2, but 'l.weight' needs 3×1" in refused(tmp_path, parts)


OTHERS = [
    ("scale_weight", (), "ComfyUI FP8", "e4m3 × scale_weight"),
    ("weights_scaling_factor", (), "TensorRT-LLM FP8", "e4m3 × weights_scaling_factor"),
    ("scale", (1, 1), "DeepSeek inference FP8", "e4m3 × scale"),
    ("scale", (4, 1), "DeepSeek inference FP8", "e4m3 × scale"),
]


@pytest.mark.parametrize(("name", "shape", "convention", "formula"), OTHERS)
def test_scales_with_other_names(tmp_path, name, shape, convention, formula):
    codes, scale = draw((4, 6), 0x7F), FLOATS[: int(np.prod(shape))].reshape(shape)
    values, weight = read(tmp_path, {"l.weight": (FP8, codes), f"l.{name}": ("F32", scale)})
    assert (weight.convention, weight.formula) == (convention, formula)
    for (row, column), value in np.ndenumerate(values):
        assert value == e4m3(codes[row, column]) * float(np.broadcast_to(scale, (4, 6))[row, column])


@pytest.mark.parametrize(
    ("name", "of_inputs"), [("scale_weight", "scale_input"), ("weights_scaling_factor", "activation_scaling_factor")]
)
def test_the_recipe_of_scales_with_other_names(tmp_path, name, of_inputs):
    x = np.random.default_rng(2).standard_normal((16, 32)).astype(np.float32)
    scale = np.abs(x).max() / np.float32(448)
    codes = (x / scale).astype(ml_dtypes.float8_e4m3fn)
    parts = {"l.weight": (FP8, codes), f"l.{name}": ("F32", scale), f"l.{of_inputs}": ("F32", np.float32(3))}
    write_checkpoint(tmp_path / "o.safetensors", {"l.weight": ("F32", x)})
    path = write_checkpoint(tmp_path / "model.safetensors", parts)
    found = fl.find_recipe(f"{path}::l.weight", str(tmp_path / "o.safetensors"))
    assert found.recipe == "e4m3/tensor:torchao"
    assert found.recipes[0].scales_tried == 1
    with load_quantized(path) as read_again:
        assert not read_again.plain


def test_mlx_has_biases_that_no_recipe_has(tmp_path):
    floats = FLOATS[:6].reshape(3, 2)
    parts = {"l.weight": ("U32", words(draw((3, 64), 16), 4)), "l.scales": ("F32", floats), "l.biases": ("F32", floats)}
    mlx(tmp_path, parts, group_size=32, bits=4)
    with pytest.raises(UnsupportedError, match=r"has biases \(MLX INT4\), which no recipe has"):
        fl.find_recipe(f"{tmp_path}/model.safetensors::l.weight", np.ones((3, 64), np.float32))


@pytest.mark.parametrize("kind", ["I8", FP8])
def test_quanto(tmp_path, kind):
    codes, scale = draw((4, 6), 0x7F), FLOATS[:4].reshape(4, 1)
    values, weight = read(tmp_path, {"l.weight._data": (kind, codes), "l.weight._scale": ("F32", scale)})
    assert weight.convention == ("quanto INT8" if kind == "I8" else "quanto FP8")
    for (row, column), value in np.ndenumerate(values):
        assert value == (int(codes[row, column]) if kind == "I8" else e4m3(codes[row, column])) * float(scale[row, 0])


@pytest.mark.parametrize(
    ("end", "shape"), [("_scale_inv", (2, 2, 1)), ("_scales_inv", (2, 2, 1)), ("_scale", (2, 1, 6))]
)
def test_experts_in_one_tensor(tmp_path, end, shape):
    name, codes, scale = "e.gate_up_proj", draw((2, 4, 6), 0x7F), FLOATS[: int(np.prod(shape))].reshape(shape)
    config = {"quant_method": "fp8", "weight_block_size": [2, 6]}
    values, _ = read(tmp_path, {name: (FP8, codes), f"{name}{end}": ("F32", scale)}, config, name=name)
    for (expert, row, column), value in np.ndenumerate(values):
        place = (expert, row // 2, 0) if end != "_scale" else (expert, 0, column)
        assert value == e4m3(codes[expert, row, column]) * float(scale[place])
    assert f"needs the tensor '{name}_scale_inv', which is missing" in refused(tmp_path, {name: (FP8, codes)}, config)


def test_int8_with_zero_points(tmp_path):
    codes, zeros, scale = draw((4, 6)).view(np.int8), np.int8([[3], [-128], [0], [127]]), FLOATS[:4].reshape(4, 1)
    parts = {"l.weight": ("I8", codes), "l.weight_scale": ("F32", scale), "l.weight_zero_point": ("I8", zeros)}
    values, weight = read(tmp_path, parts)
    assert weight.formula == "(int8 − weight_zero_point) × weight_scale"
    for (row, column), value in np.ndenumerate(values):
        assert value == (int(codes[row, column]) - int(zeros[row, 0])) * float(scale[row, 0])


def compressed(*groups):
    keys = ("num_bits", "group_size", "symmetric")
    weights = [dict(zip(keys, group, strict=True)) for group in groups]
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {f"g{n}": {"weights": w} for n, w in enumerate(weights)},
    }


@pytest.mark.parametrize(
    ("groups", "is_missing"),
    [
        ([(4, 32, False)], True), ([(4, 32, True)], False), ([(4, 32, False), (8, None, True)], True),
        ([(4, 32, True), (8, None, False)], False), ([(4, 32, True), (4, 32, False)], False),
    ],
)  # fmt: skip
def test_missing_zero_points(tmp_path, groups, is_missing):
    parts = {
        "l.weight_packed": ("I32", words(draw((4, 64), 16), 4).view(np.int32)),
        "l.weight_scale": ("F32", FLOATS[:8].reshape(4, 2)), "l.weight_shape": ("I64", np.int64([4, 64])),
    }  # fmt: skip
    if not is_missing:
        assert read(tmp_path, parts, compressed(*groups))[1].formula == "(u4 − 8) × weight_scale"
        return
    said = refused(tmp_path, parts, compressed(*groups))
    assert said.endswith("'l.weight_zero_point', which is missing (config.json has symmetric = false)")


def test_missing_zero_points_of_int8(tmp_path):
    parts = {"l.weight": ("I8", draw((4, 6)).view(np.int8)), "l.weight_scale": ("F32", FLOATS[:4].reshape(4, 1))}
    assert "'l.weight_zero_point', which is missing" in refused(tmp_path, parts, compressed((8, None, False)))


SCALES = [
    (FP8, {"quant_method": "fp8", "weight_block_size": [2, 2]}, {}, "l.weight_scale_inv"),
    (FP8, {"quant_method": "fp8"}, {}, "l.weight_scale"),
    (FP8, {"quant_method": "fp8"}, {"k.weight": (FP8, draw((4, 6), 0x7F)), "k.weight_scale_inv": ("F32", FLOATS[:1])},
        "l.weight_scale_inv"),
    ("I8", {"quant_method": "bitsandbytes"}, {}, "l.SCB"),
    ("U8", {"quant_method": "bitsandbytes"}, {}, "l.weight.absmax"),
    ("U8", {"quant_method": "modelopt"}, {}, "l.weight_scale"),
    ("I8", {"quant_method": "compressed-tensors"}, {}, "l.weight_scale"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "config", "others", "missing"), SCALES)
def test_a_missing_scale_has_the_name_of_its_convention(tmp_path, kind, config, others, missing):
    said = refused(tmp_path, {"l.weight": (kind, draw((4, 6), 0x7F)), **others}, config)
    assert said == f"'l.weight' needs the tensor {missing!r}, which is missing"


COMFY = np.frombuffer(b'{"format": "nvfp4"}', np.uint8)
UNREAD = [
    ({"l.codes": "I8", "l.codebooks": "F16", "l.scales": "F16"}, "AQLM"),
    ({"l.indices": "I32", "l.centroids.weight": "F16", "l.centroids": "F16"}, "VPTQ"),
    ({"l.Qidxs": "I64", "l.SU": "F16", "l.SV": "F16"}, "QuIP#"),
    ({"l.trellis": "I16", "l.suh": "F16", "l.svh": "F16"}, "EXL3"),
    ({"l.q_weight": "I32", "l.q_scale": "I32", "l.q_perm": "I16"}, "EXL2"),
    ({"l.W_q": "U8", "l.scale": "F16", "l.zero": "F16"}, "HQQ"),
    ({"l.qweight": "I8", "l.wscales": "BF16"}, "SVDQuant"),
    ({"l.B": "I32", "l.s": "F16"}, "Marlin"),
    ({"l.weight": "I8", "l.weight_scales": "F16"}, "EETQ"),
    ({"l.weight._data": "U8", "l.weight._scale": "F16", "l.weight._shift": "F16"}, "quanto"),
    ({"l.compressed": "F16", "l.bitmask": "U8"}, "sparse"),
]


@pytest.mark.parametrize(("kinds", "whose"), UNREAD)
def test_what_is_not_read_is_named(tmp_path, kinds, whose):
    sizes = {"I8": np.int8, "U8": np.uint8, "I16": np.int16, "I32": np.int32, "I64": np.int64}
    parts = {name: (kind, np.ones((4, 4), sizes.get(kind, np.uint16))) for name, kind in kinds.items()}
    said = refused(tmp_path, parts)
    assert f"is {whose}" in said or f"of a {whose}" in said
    assert said.endswith("which is not read")


def test_nvfp4_of_comfyui_and_bitnet_are_not_read_as_another_format(tmp_path):
    parts = {
        "l.weight": ("U8", draw((4, 16))), "l.weight_scale": (FP8, draw((4, 2), 0x70)),
        "l.weight_scale_2": ("F32", np.float32(1)), "l.comfy_quant": ("U8", COMFY),
    }  # fmt: skip
    assert refused(tmp_path, parts) == "'l.weight' is ComfyUI's 'nvfp4', which is not read"
    parts = {"l.weight": ("U8", draw((4, 16))), "l.weight_scale": ("F32", FLOATS[:1])}
    assert "BitNet's (codes of 2 bits)" in refused(tmp_path, parts, {"quant_method": "bitnet"})


NARROW = [
    "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz", "float8_e4m3",
    "float8_e3m4", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn", "bfloat16", "int4", "uint4", "int2",
]  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_arrays_of_ml_dtypes_in_mappings(name):
    x = np.arange(4).reshape(2, 2).clip(0, 1).astype(getattr(ml_dtypes, name))
    with load_quantized({"a": x, "b.weight": x, "b.weight_scale": np.float32([2, 4])}) as found:
        assert found["a"].tolist() == [[0, 1], [1, 1]]
        if name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "int4"):
            assert found["b.weight"].tolist() == [[0, 2], [4, 4]]


CODES = ["float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float6_e3m2fn", "float4_e2m1fn", "float8_e3m4"]


@pytest.mark.parametrize("name", CODES)
def test_codes_of_ml_dtypes_are_searched(name):
    dtype = getattr(ml_dtypes, name)
    x = np.random.default_rng(1).standard_normal((16, 32)).astype(np.float32)
    scale = np.abs(x).max(axis=1, keepdims=True) / np.float32(ml_dtypes.finfo(dtype).max)
    found = fl.find_recipe((x / scale).astype(dtype), x, scale)
    assert any(each.name.endswith("/channel:nearest") for each in found.recipes), found


def test_the_integers_of_torchao(tmp_path):
    codes, scales = draw((3, 64)), FLOATS[:3].reshape(3, 1)
    said = {"l.weight": json.dumps({"_type": "Int8Tensor", "_data": {"block_size": [1, 64]}})}
    parts = {"l._weight_qdata": ("I8", codes), "l._weight_scale": ("F32", scales)}
    values, weight = read(tmp_path, parts, metadata=said)
    assert (weight.convention, weight.formula) == ("torchao Int8Tensor", "int8 × scale")
    assert np.array_equal(values, codes.view(np.int8) * scales.astype(np.float64))
    said = {"l.weight": json.dumps({"_type": "Int4Tensor", "_data": {"block_size": [1, 32], "shape": [3, 64]}})}
    codes, scales, zeros = draw((3, 32)), FLOATS[:6].reshape(2, 3), FLOATS[6:12].reshape(2, 3)
    parts = {
        "l._weight_qdata": ("U8", codes),
        "l._weight_scale": ("F32", scales),
        "l._weight_zero_point": ("F32", zeros),
    }
    values, weight = read(tmp_path, parts, metadata=said)
    assert (weight.convention, weight.formula) == ("torchao Int4Tensor", "int4 × scale + zero_point")
    for (row, column), value in np.ndenumerate(values):
        code = int(codes[row, column // 2]) >> 4 * (column % 2) & 15
        place = column // 32, row
        assert value == (code - 16 * (code > 7)) * float(scales[place]) + float(zeros[place])


def test_groups_of_columns_in_any_order(tmp_path):
    """compressed-tensors names the group of each column in `weight_g_idx`; −1 says that the groups are in order."""
    codes, order = draw((8, 64), 16), np.random.default_rng(2).permutation(64) // 32
    scales, zeros = FLOATS[:16].reshape(8, 2), draw((8, 2), 16, 3)
    parts = {"l.weight_packed": ("I32", words(codes, 4)), "l.weight_scale": ("F32", scales)}
    parts["l.weight_shape"] = ("I64", np.int64([8, 64]))
    for has_zeros in (False, True):
        if has_zeros:
            parts["l.weight_zero_point"] = ("I32", np.ascontiguousarray(words(zeros.T, 4).T))
        for groups in (order, np.full(64, -1)):
            values, weight = read(tmp_path, parts | {"l.weight_g_idx": ("I32", groups.astype(np.int32))})
            assert weight.convention == "compressed-tensors INT4"
            for (row, column), value in np.ndenumerate(values):
                group = order[column] if groups is order else column // 32
                zero = int(zeros[row, group]) if has_zeros else 8
                assert value == (int(codes[row, column]) - zero) * float(scales[row, group])


def test_experts_of_vllm(tmp_path):
    codes, scales = draw((2, 4, 32), 0x7F), FLOATS[:4].reshape(2, 2)
    for scale in (scales[:, 0], scales):
        parts = {
            "a.w13_weight": (FP8, codes),
            "a.w13_weight_scale": ("F32", scale),
            "a.w13_input_scale": ("F32", FLOATS[:2]),
        }
        values, weight = read(tmp_path, parts, name="a.w13_weight")
        assert weight.parts == ("a.w13_weight", "a.w13_weight_scale", "a.w13_input_scale")
        for (expert, row, column), value in np.ndenumerate(values):
            factor = scale[expert] if scale.ndim == 1 else scale[expert, row // 2]
            assert value == e4m3(codes[expert, row, column]) * float(factor)
    nibbles, blocks = draw((2, 4, 16)), draw((2, 4, 2), 0x7F, 2)
    parts = {
        "a.w13_weight": ("U8", nibbles),
        "a.w13_weight_scale": (FP8, blocks),
        "a.w13_weight_scale_2": ("F32", scales),
    }
    values, weight = read(tmp_path, parts, name="a.w13_weight")
    assert weight.convention == "ModelOpt NVFP4"
    for (expert, row, column), value in np.ndenumerate(values):
        code = int(nibbles[expert, row, column // 2]) >> 4 * (column % 2) & 15
        factor = e4m3(blocks[expert, row, column // 16]) * float(scales[expert, row // 2])
        assert value == E2M1[code] * factor
    assert "needs the tensor 'a.w13_weight_scale', which is missing" in refused(
        tmp_path, without_scale(parts, "a.w13_weight_scale")
    )


def without_scale(parts, name):
    return {each: part for each, part in parts.items() if each != name}


def test_fp8_without_scales_is_checked_with_an_original(tmp_path):
    x = np.random.default_rng(3).normal(size=(64, 128)).astype(np.float32)
    y = x[::-1] * np.float32(0.02)
    codes = {
        name: ("F8_E4M3", each.astype(ml_dtypes.float8_e4m3fn))
        for name, each in (("x.weight", x), ("y.weight", y * 5e3))
    }
    path = write_checkpoint(tmp_path / "m.safetensors", codes)
    found = {each.name: each for each in fl.audit(path, {"x.weight": x, "y.weight": y}).tensors}
    assert found["x.weight"].convention == "FP8 without scales"
    assert {name: each.verdict for name, each in found.items()} == {"x.weight": "sound", "y.weight": "broken"}
    assert "no scale is stored beside it" in found["y.weight"].reasons[0]
    assert "times too large" in found["y.weight"].reasons[1]
    with load_quantized(path) as read:
        assert not read.weights
