"""Sound weights of many recipes: rules for scales, kinds of rounding and distributions, in several conventions.

Everything here is written from the definitions, in NumPy and ml_dtypes, without floatlab.
"""

import ml_dtypes
import numpy as np

from tests.auditing.quantizing import pairs, words

E4M3 = np.unique(np.nan_to_num(np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)))
E2M1 = np.unique(np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64))
SIGNED8, SIGNED4, UNSIGNED4 = np.arange(-127.0, 128), np.arange(-8.0, 8), np.arange(16.0)


def distribution(kind, shape, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape) * 0.02
    at = np.arange(x.size).reshape(shape)
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])
    return {
        "normal": lambda: x,
        "long tails": lambda: rng.standard_t(3, shape) * 0.02,
        "laplace": lambda: rng.laplace(size=shape) * 0.03,
        "uniform": lambda: rng.uniform(-0.1, 0.1, shape),
        "sparse": lambda: x * (rng.random(shape) < 0.3),
        "rows": lambda: x * np.exp(rng.normal(size=(shape[0], 1))),
        "columns": lambda: x * np.where(columns % 37 == 5, 20, 1),
        "tiny": lambda: x * 1e-4,
        "huge": lambda: x * 1e4,
        "zero rows": lambda: x * (rows % 5 != 0),
        "outlier": lambda: np.where(at == 777, 9.0, x),
        "positive": lambda: np.abs(x),
        "log-normal": lambda: np.exp(rng.normal(size=shape)) * np.sign(x) * 0.01,
        "ternary": lambda: np.sign(x) * (rng.random(shape) < 0.6) * 0.05,
        "all zero": lambda: x * 0,
        "constant": lambda: x * 0 + 0.037,
    }[kind]().astype(np.float32)


KINDS = (
    "normal", "long tails", "laplace", "uniform", "sparse", "rows", "columns", "tiny", "huge", "zero rows", "outlier",
    "positive", "log-normal", "ternary", "all zero", "constant",
)  # fmt: skip


def blocks_of(x, grain):
    """Return the largest magnitude of each group, in a shape that broadcasts to the grouped x, and the grouped x."""
    rows, columns = x.shape
    size = {"tensor": x.size, "row": columns}.get(grain, grain)
    return x.reshape(1, 1, -1) if grain == "tensor" else x.reshape(rows, columns // size, size)


RULES = ("largest", "one", "fixed", "power of two", "quantile", "clipped", "least squares", "headroom")


def scales_by(rule, groups, top, values, rng):
    """Return a scale for each group; `top` is the largest number of a code."""
    largest = np.abs(groups).max(axis=-1, keepdims=True).astype(np.float64)
    whole = np.abs(groups).max()
    if rule == "one":
        return np.ones_like(largest)
    if rule == "fixed":
        return np.full_like(largest, (whole or 1) / top)
    scale = np.where(largest > 0, largest, 1e-3) / top
    if rule == "power of two":
        return np.exp2(np.ceil(np.log2(scale)))
    if rule == "quantile":
        cut = np.quantile(np.abs(groups), 0.99, axis=-1, keepdims=True) / top
        return np.where(cut > 0, cut, scale)
    if rule == "clipped":
        return scale * 0.8
    if rule == "headroom":
        return scale * 2.5
    if rule == "least squares":
        shares = np.linspace(0.4, 1, 13)
        errors = [np.square(rounded(groups / (scale * s), values) * scale * s - groups).sum(-1) for s in shares]
        return scale * shares[np.argmin(errors, axis=0)][..., None]
    return scale


ROUNDINGS = ("nearest", "toward zero", "up", "stochastic")


def rounded(u, values, rounding="nearest", rng=None):
    """Round numbers to some values, in ascending order; numbers beyond them become the outermost ones."""
    u = np.clip(u, values[0], values[-1])
    low = np.clip(np.searchsorted(values, u, side="right") - 1, 0, len(values) - 2)
    down, up = values[low], values[low + 1]
    share = (u - down) / (up - down)
    is_up = {
        "nearest": lambda: share > 0.5,
        "toward zero": lambda: (u < 0) & (share > 0) | (share == 1),
        "up": lambda: share > 0,
        "stochastic": lambda: rng.random(u.shape) < share,
    }[rounding]()
    return np.where(is_up, up, down)


def with_feedback(x, scale, values, rng, zero=0):
    """Round columns one after the other, and correct the columns to the right for the error, as GPTQ does."""
    count = x.shape[1]
    inputs = rng.normal(size=(2 * count, count // 4)) @ rng.normal(size=(count // 4, count))
    inputs += 0.5 * rng.normal(size=inputs.shape)
    hessian = inputs.T @ inputs
    hessian += np.eye(count) * np.trace(hessian) / count / 100
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T
    rest, found = x.astype(np.float64), np.empty(x.shape)
    for at in range(count):
        found[:, at] = rounded(rest[:, at] / scale[:, at] + zero, values)
        error = (rest[:, at] - (found[:, at] - zero) * scale[:, at]) / upper[at, at]
        rest[:, at:] -= np.outer(error, upper[at, at:])
    return found


def e4m3(v):
    return v.astype(np.float32).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def e2m1(v):
    return v.astype(np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15


def made(convention, grain, rule, rounding, x, seed=0):
    """Return the stored parts of the weight `w`, and the configuration beside the file."""
    rng = np.random.default_rng(seed)
    values = {"fp8": E4M3, "int8": SIGNED8, "ct int4": SIGNED4, "nvfp4": E2M1, "mxfp4": E2M1}[convention]
    groups = blocks_of(x, grain)
    scale = scales_by(rule, groups, {"ct int4": 7}.get(convention, values[-1]), values, rng)
    second = 1.0
    if convention == "nvfp4":
        second = float(np.float32(scale.max() / 448))
        stored = e4m3(np.clip(scale / second, 2**-9, 448))
        scale = stored.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * second
    elif convention == "mxfp4":
        power = np.clip(np.ceil(np.log2(scale)), -127, 127)
        stored, scale = (power + 127).astype(np.uint8), np.exp2(power)
    else:
        stored = scale.astype(np.float32 if convention != "ct int4" else ml_dtypes.bfloat16)
        scale = stored.astype(np.float64)
    each = np.broadcast_to(scale, groups.shape).reshape(x.shape)
    v = with_feedback(x, each, values, rng) if rounding == "feedback" else rounded(x / each, values, rounding, rng)
    stored = stored.reshape(()) if grain == "tensor" else stored.reshape(len(x), -1)
    if convention == "nvfp4":
        return {
            "w.weight": ("U8", pairs(e2m1(v))), "w.weight_scale": ("F8_E4M3", stored),
            "w.weight_scale_2": ("F32", np.float32(second)),
        }, {"quant_method": "modelopt", "quant_algo": "NVFP4"}  # fmt: skip
    if convention == "mxfp4":
        return {"w.weight": ("U8", pairs(e2m1(v))), "w.weight_scale": ("U8", stored)}, {"quant_method": "modelopt"}
    if convention == "ct int4":
        parts = {
            "w.weight_packed": ("I32", words((v + 8).astype(np.uint8))),
            "w.weight_scale": ("BF16", stored.view(np.uint16)), "w.weight_shape": ("I64", np.int64(x.shape)),
        }  # fmt: skip
        return parts, {"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4}}}}
    kind, codes = ("F8_E4M3", e4m3(v)) if convention == "fp8" else ("I8", v.astype(np.int8))
    return {"w.weight": (kind, codes), "w.weight_scale": ("F32", stored)}, {"quant_method": "compressed-tensors"}


GRAINS = {"fp8": ("tensor", "row"), "int8": ("tensor", "row"), "ct int4": (32,), "nvfp4": (16,), "mxfp4": (32,)}
