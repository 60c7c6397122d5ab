"""Weights quantised by each convention, and damage to their stored tensors."""

import json

import ml_dtypes
import numpy as np

from tests.auditing.making import nvfp4

LARGEST = {"F8_E4M3": 448.0}
NF4 = np.float32(
    [-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803, 0.1609302, 0.2461123,
     0.33791524, 0.44070983, 0.562617, 0.72295684, 1]
)  # fmt: skip


def pairs(codes, high_first=False):
    """Return codes of 4 bits as bytes with two of them."""
    first, second = codes[..., ::2], codes[..., 1::2]
    return (first << 4 | second if high_first else first | second << 4).astype(np.uint8)


def words(codes):
    """Return codes of 4 bits as 32-bit words along the last axis, from the low bits on."""
    return np.ascontiguousarray(pairs(codes)).view("<i4")


def fp4(x):
    return x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15


def fp8(x):
    return np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def modelopt_nvfp4(name, x):
    codes, scales, whole = nvfp4(x)
    return {f"{name}.weight": codes, f"{name}.weight_scale": scales, f"{name}.weight_scale_2": whole}


def ct_nvfp4(name, x):
    codes, scales, (kind, whole) = nvfp4(x)
    parts = {f"{name}.weight_packed": codes, f"{name}.weight_scale": scales}
    return parts | {f"{name}.weight_global_scale": (kind, np.float32(1 / whole).reshape(1))}


def exponents(x, largest):
    """Return x in blocks of 32, divided by powers of two, and the codes of these in e8m0."""
    blocks = x.reshape(*x.shape[:-1], -1, 32)
    power = np.floor(np.log2(np.maximum(np.abs(blocks).max(axis=-1), 1e-38))) - largest
    return blocks / np.exp2(power)[..., None], (power + 127).astype(np.uint8)


def modelopt_mxfp4(name, x):
    blocks, scales = exponents(x, 2)
    codes = fp4(np.clip(blocks, -6, 6)).reshape(x.shape)
    return {f"{name}.weight": ("U8", pairs(codes)), f"{name}.weight_scale": ("U8", scales)}


def gptoss_mxfp4(name, x):
    blocks, scales = exponents(x, 2)
    return {f"{name}_blocks": ("U8", pairs(fp4(np.clip(blocks, -6, 6)))), f"{name}_scales": ("U8", scales)}


def modelopt_mxfp8(name, x):
    blocks, scales = exponents(x, 8)
    return {f"{name}.weight": ("F8_E4M3", fp8(blocks).reshape(x.shape)), f"{name}.weight_scale": ("U8", scales)}


def fp8_tensor(name, x):
    scale = np.float32(np.abs(x).max() / 448)
    return {f"{name}.weight": ("F8_E4M3", fp8(x / scale)), f"{name}.weight_scale": ("F32", scale)}


def fp8_rows(name, x):
    scale = (np.abs(x).max(axis=1, keepdims=True) / 448).astype(np.float32)
    return {f"{name}.weight": ("F8_E4M3", fp8(x / scale)), f"{name}.weight_scale": ("F32", scale)}


def deepseek(name, x):
    rows, columns = (-(-n // 128) for n in x.shape)
    scale = np.zeros((rows, columns), np.float32)
    for r, c in np.ndindex(rows, columns):
        scale[r, c] = np.abs(x[r * 128 : r * 128 + 128, c * 128 : c * 128 + 128]).max() / 448
    each = np.repeat(np.repeat(scale, 128, 0), 128, 1)[: x.shape[0], : x.shape[1]]
    return {f"{name}.weight": ("F8_E4M3", fp8(x / each)), f"{name}.weight_scale_inv": ("F32", scale)}


def int8_rows(name, x):
    scale = (np.abs(x).max(axis=1, keepdims=True) / 127).astype(np.float32)
    return {f"{name}.weight": ("I8", np.rint(x / scale).astype(np.int8)), f"{name}.weight_scale": ("F32", scale)}


def with_zeros(x, size=32):
    """Return codes of 4 bits, scales and zero points of groups along the last axis."""
    blocks = x.reshape(len(x), -1, size)
    low, high = np.minimum(blocks.min(axis=2), 0), np.maximum(blocks.max(axis=2), 0)
    scale = ((high - low) / 15).astype(np.float16)
    zero = np.clip(np.rint(-low / scale), 0, 15)
    codes = np.clip(np.rint(blocks / scale[..., None]) + zero[..., None], 0, 15)
    return codes.reshape(x.shape).astype(np.uint8), scale, zero.astype(np.uint8)


def ct_int4(name, x):
    codes, scale, zero = with_zeros(x)
    return {
        f"{name}.weight_packed": ("I32", words(codes)), f"{name}.weight_scale": ("F16", scale),
        f"{name}.weight_zero_point": ("I32", words(zero.T).T), f"{name}.weight_shape": ("I64", np.int64(x.shape)),
    }  # fmt: skip


def gptq(name, x):
    codes, scale, zero = with_zeros(x)
    return {
        f"{name}.qweight": ("I32", words(codes).T), f"{name}.qzeros": ("I32", words((zero.T - 1) & 15)),
        f"{name}.scales": ("F16", scale.T), f"{name}.g_idx": ("I32", (np.arange(x.shape[1]) // 32).astype(np.int32)),
    }  # fmt: skip


def awq(name, x):
    codes, scale, zero = with_zeros(x)
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def packed(rows):
        return words(rows.reshape(*rows.shape[:-1], -1, 8)[..., order].reshape(rows.shape))

    return {
        f"{name}.qweight": ("I32", packed(codes.T)), f"{name}.qzeros": ("I32", packed(zero.T)),
        f"{name}.scales": ("F16", scale.T),
    }  # fmt: skip


def bitsandbytes(name, x):
    blocks = x.reshape(-1, 64)
    absmax = np.abs(blocks).max(axis=1)
    codes = np.abs(blocks[..., None] / absmax[:, None, None] - NF4).argmin(axis=2).astype(np.uint8)
    state = {"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": list(x.shape)}
    octets = np.frombuffer(json.dumps(state).encode(), np.uint8)
    packed = pairs(codes.reshape(-1), True).reshape(-1, 1)
    return {
        f"{name}.weight": ("U8", packed), f"{name}.weight.absmax": ("F32", absmax),
        f"{name}.weight.quant_map": ("F32", NF4), f"{name}.weight.quant_state.bitsandbytes__nf4": ("U8", octets),
    }  # fmt: skip


# For each convention: what quantises a weight, and the configuration beside the file.
CONVENTIONS = {
    "modelopt nvfp4": (modelopt_nvfp4, {"quant_method": "modelopt", "quant_algo": "NVFP4"}),
    "ct nvfp4": (ct_nvfp4, {"quant_method": "compressed-tensors"}),
    "modelopt mxfp4": (modelopt_mxfp4, {"quant_method": "modelopt"}),
    "gpt-oss": (gptoss_mxfp4, {"quant_method": "mxfp4"}),
    "modelopt mxfp8": (modelopt_mxfp8, {"quant_method": "modelopt"}),
    "fp8 tensor": (fp8_tensor, {"quant_method": "fp8"}),
    "fp8 rows": (fp8_rows, {"quant_method": "compressed-tensors"}),
    "deepseek": (deepseek, {"quant_method": "fp8", "weight_block_size": [128, 128]}),
    "int8 rows": (int8_rows, {"quant_method": "compressed-tensors"}),
    "ct int4": (ct_int4, {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4}}}}),
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq"}),
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}),
    "bitsandbytes": (bitsandbytes, {"quant_method": "bitsandbytes"}),
}


def scale_names(parts, name="x"):
    """Return the names of the scales of a weight, those of blocks first."""
    found = [each for each in parts if each.startswith(name) and ("scale" in each or "absmax" in each)]
    return sorted(found, key=lambda each: -np.size(parts[each][1]))


def codes_name(parts, name="x"):
    ends = ("weight", "weight_packed", "qweight", "_blocks")
    return next(each for each in parts if each.startswith(name) and each.endswith(ends))


def changed(parts, name, change):
    """Return the stored tensors with one of them changed."""
    kind, values = parts[name]
    return parts | {name: (kind, np.ascontiguousarray(change(values)))}


def doubled(parts, name="x"):
    """Return a weight of bitsandbytes with double quantisation of its scales."""
    key = f"{name}.weight"
    absmax = parts[f"{key}.absmax"][1]
    offset = np.float32(absmax.mean())
    table = np.float32(np.sort(np.concatenate([-np.geomspace(1e-4, 1, 127), [0], np.geomspace(1e-4, 1, 128)])))
    blocks = np.pad(absmax - offset, (0, -len(absmax) % 256)).reshape(-1, 256)
    largest = np.abs(blocks).max(axis=1)
    codes = np.abs(blocks[..., None] / largest[:, None, None] - table).argmin(axis=2).reshape(-1)[: len(absmax)]
    state = json.loads(parts[f"{key}.quant_state.bitsandbytes__nf4"][1].tobytes())
    state |= {"nested_blocksize": 256, "nested_offset": float(offset), "nested_dtype": "float32"}
    return parts | {
        f"{key}.absmax": ("U8", codes.astype(np.uint8)), f"{key}.nested_absmax": ("F32", largest),
        f"{key}.nested_quant_map": ("F32", table),
        f"{key}.quant_state.bitsandbytes__nf4": ("U8", np.frombuffer(json.dumps(state).encode(), np.uint8)),
    }  # fmt: skip
