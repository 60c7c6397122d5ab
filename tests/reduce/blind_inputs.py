"""Blind cases of inputs in two formats or in blocks with scales, and of causes that compose, made without floatlab."""

import ml_dtypes
import numpy as np

from tests.reduce import blind_ways as ways

ORDERS = {"order", "fma", "accumulator", "compensated"}
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
INPUTS = ({"inputs-rounded"}, {"inputs-quantized"})


def found(d, made, names=INPUTS, status="rounding", also=frozenset()):
    """Return a case: the library's product of the given inputs, and `made`, in binary32 or a narrower format."""
    d.keeps_dtypes = True
    good = ways.f64(d.x).astype(np.float32) @ ways.f64(d.y).astype(np.float32)
    made = np.asarray(made)
    if not np.isfinite(ways.f64(made)).all() or not np.isfinite(good).all() or not ways.f64(made).any():
        return None  # overflow, or all numbers became 0
    if made.dtype == np.float64 and np.array_equal(made, ways.f64(d.x) @ ways.f64(d.y)):
        names = ({"accumulator"},)  # the inputs have these formats already, and the sums are in binary64
    return good, made.astype(np.float32) if made.dtype == np.float64 else made, status, names, ORDERS | set(also)


def single(d):
    """Return both inputs as float64, or None: the kinds are for inputs in binary32 or 16 bits."""
    return None if d.name == "float64" else (ways.f64(d.x), ways.f64(d.y))


def scaled(v, dtype, most, axis=None):
    """Return numbers rounded to FP8 with one scale per tensor or row."""
    size = np.abs(v).max(axis=axis, keepdims=True)
    scale = np.where(size == 0, 1.0, size / most).astype(np.float32).astype(np.float64)
    scale = np.where(scale == 0, 1.0, scale)
    with np.errstate(all="ignore"):
        return np.clip(v / scale, -most, most).astype(dtype).astype(np.float64) * scale


def integers(v, most, axis=None, zero=False):
    """Return numbers rounded to integers times a scale, with a zero point or without."""
    if zero:
        low = np.minimum(v.min(axis=axis, keepdims=True), 0.0)
        high = np.maximum(v.max(axis=axis, keepdims=True), 0.0)
        scale = np.where(high > low, (high - low) / most, 1.0)
        shift = np.rint(-low / scale)
        return (np.clip(np.rint(v / scale) + shift, 0, most) - shift) * scale
    size = np.abs(v).max(axis=axis, keepdims=True)
    scale = np.where(size == 0, 1.0, size / most)
    return np.clip(np.rint(v / scale), -np.ceil(most), np.floor(most)) * scale


def grouped(v, size, make):
    """Apply a change to groups of terms; the terms lie along the rows."""
    return np.concatenate([make(v[:, low : low + size]) for low in range(0, v.shape[1], size)], axis=1)


def powers(size, dtype, largest_exponent):
    """Return a change of the OCP MX formats: elements of a dtype, and scales that are powers of two."""
    most = float(ml_dtypes.finfo(dtype).max)

    def change(block):
        top = np.abs(block).max(axis=1, keepdims=True)
        scale = np.exp2(np.floor(np.log2(np.where(top == 0, 1.0, top))) - largest_exponent)
        return np.clip(block / scale, -most, most).astype(dtype).astype(np.float64) * scale

    return lambda v: grouped(v, size, change)


def nvfp4(v):
    """NVFP4: blocks of 16 E2M1 with E4M3 scales, and a scale of the tensor."""
    tensor = float(np.float32(np.abs(v).max() / (6 * 448))) or 1.0

    def change(block):
        top = np.abs(block).max(axis=1, keepdims=True)
        scale = np.clip(top / 6 / tensor, 0, 448).astype(E4M3).astype(np.float64) * tensor
        usable = np.where(scale == 0, 1.0, scale)
        made = np.clip(block / usable, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64)
        return np.where(scale == 0, 0.0, made * scale)

    return grouped(v, 16, change)


MX = {
    "mxfp8": powers(32, E4M3, 8),
    "mxfp6": powers(32, ml_dtypes.float6_e3m2fn, 4),
    "mxfp4": powers(32, ml_dtypes.float4_e2m1fn, 2),
    "nvfp4": nvfp4,
}
PLAIN = {
    "bf16": lambda v: ways.narrow(v, "bf16"),
    "tf32": lambda v: ways.narrow(v, "tf32", "rna"),
    "fp16": lambda v: ways.narrow(v, "fp16"),
    "fp8": lambda v: np.clip(v, -448, 448).astype(E4M3).astype(np.float64),
    "scaled fp8": lambda v: scaled(v, E4M3, 448.0),
    "int8": lambda v: integers(v, 127, 1),
}


def two_formats(d):
    """X in one format, and Y in another one."""
    if (sides := single(d)) is None:
        return None
    first, second = d.rng.choice(list(PLAIN), 2, replace=False)
    with np.errstate(all="ignore"):  # fp16 may overflow
        return found(d, PLAIN[str(first)](sides[0]) @ PLAIN[str(second)](sides[1].T).T)


def weight_only(d):
    """X in bfloat16 or as it is, Y as int8 or int4 with a scale per channel or group."""
    if (sides := single(d)) is None:
        return None
    most, size = float(d.rng.choice([7, 127])), int(d.rng.choice([32, 128, 1 << 20]))
    y = grouped(sides[1].T, size, lambda block: integers(block, most, 1)).T
    return found(d, (ways.narrow(sides[0], "bf16") if d.rng.random() < 0.6 else sides[0]) @ y)


def eight_bit_gradients(d):
    """X in E5M2 and Y in E4M3, as in the backward pass, with a scale per tensor or row."""
    if (sides := single(d)) is None:
        return None
    axis = 1 if d.rng.random() < 0.5 else None
    made = scaled(sides[0], E5M2, 57344.0, axis) @ scaled(sides[1].T, E4M3, 448.0, axis).T
    return found(d, made.astype(np.float32).astype(ways.BFLOAT16) if d.rng.random() < 0.3 else made, also=OUTPUT)


def small_blocks(d):
    """MXFP8, MXFP6, MXFP4 or NVFP4 inputs, in blocks of terms."""
    if (sides := single(d)) is None:
        return None
    change = MX[str(d.rng.choice(list(MX)))]
    return found(d, change(sides[0]) @ change(sides[1].T).T)


def tiles(d):
    """X in E4M3 with a scale per 128 terms, Y with a scale per 128 × 128 tile."""
    if (sides := single(d)) is None:
        return None
    x = grouped(sides[0], 128, lambda block: scaled(block, E4M3, 448.0, 1))
    y = np.zeros(sides[1].shape)
    for row in range(0, d.k, 128):
        for column in range(0, d.n, 128):
            index = np.s_[row : row + 128, column : column + 128]
            y[index] = scaled(sides[1][index], E4M3, 448.0)
    return found(d, x @ y)


def dynamic(d):
    """torch's quantize_dynamic: X with 7 bits and a zero point, Y with int8 per tensor or channel."""
    if (sides := single(d)) is None:
        return None
    axis = 1 if d.rng.random() < 0.4 else None
    return found(d, integers(sides[0], 127, zero=True) @ integers(sides[1].T, 127.5, axis).T)


def per_token(d):
    """W8A8: X as int8 with a scale per row, Y with a scale per column."""
    if (sides := single(d)) is None:
        return None
    return found(d, integers(sides[0], 127, 1) @ integers(sides[1].T, 127, 1).T)


OUTPUT = frozenset({"output-rounded"})


def stored_with_scale(d):
    """A result that is kept as int8 or E4M3 with a scale per tensor or row."""
    if d.name != "float32":
        return None
    good, axis = ways.f64(d.good()), 1 if d.rng.random() < 0.4 else None
    made = integers(good, 127, axis) if d.rng.random() < 0.5 else scaled(good, E4M3, 448.0, axis)
    # With one term, a scale of the result is a scale of an input.
    return found(d, made, ({"output-rounded"},) if d.k > 1 else ({"output-rounded"}, {"inputs-quantized"}))


def narrowed(v, rng):
    name = str(rng.choice(["tf32", "bf16", "fp16"]))
    return ways.narrow(v, name, "rna" if name == "tf32" else "rne").astype(np.float32)


def narrow_and_fault(d):
    """Rounded inputs together with one fault: the last terms missing, two rows swapped, a factor, one element."""
    if d.name != "float32" or d.k < 3 or d.m < 2:
        return None
    state = d.rng.bit_generator.state
    x = narrowed(d.x, d.rng)
    d.rng.bit_generator.state = state
    y = narrowed(d.y, d.rng)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    plain = x @ y
    made = plain.copy()
    fault = str(d.rng.choice(["terms-missing", "rows-moved", "scale", "elements"]))
    alternatives: tuple = ({fault}, {"inputs-rounded", fault})
    if fault == "rows-moved" and d.n < 4:  # fewer than eight moved numbers
        alternatives += ({"elements"}, {"elements", "inputs-rounded"})
    if fault == "terms-missing":
        cut = d.k - int(d.rng.integers(1, 3))
        made = x[:, :cut] @ y[:cut]
        if not (x[:, cut:] @ y[cut:]).any():  # these terms are zero
            return None
        if np.count_nonzero(x[:, cut:] @ y[cut:]) < 8:  # too few elements to show which terms are missing
            alternatives += ({"elements"}, {"elements", "inputs-rounded"})
    elif fault == "rows-moved":
        i, j = (int(i) for i in d.rng.choice(d.m, 2, replace=False))
        made[[i, j]] = made[[j, i]]
    elif fault == "scale":
        made = made * np.float32(2)
    else:
        at = int(d.rng.integers(d.m)), int(d.rng.integers(d.n))
        made[at] = made[at] * np.float32(1.5) + np.float32(np.abs(plain).max())
    if np.array_equal(plain, made) or np.array_equal(plain, d.good()):
        return None
    few = d.m * d.n < 12 or d.n == 1
    also = {"elements", "region", "not-the-product", "rows-moved", "columns-moved"} if few else set()
    return found(d, made, alternatives, "bug", also)


ALL = (two_formats, weight_only, eight_bit_gradients, small_blocks, tiles, dynamic, per_token)
ALL += (stored_with_scale, narrow_and_fault)
