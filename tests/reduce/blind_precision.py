"""Blind cases of narrow formats: quantised inputs, sums that are stored narrow, outputs that are cut or printed."""

import ml_dtypes
import numpy as np

from tests.reduce import blind_ways as ways

EIGHT_BITS = ((ml_dtypes.float8_e4m3fn, 448.0), (ml_dtypes.float8_e5m2, 57344.0), (ml_dtypes.float8_e4m3fn, 300.0))
ORDERS = {"order", "fma", "accumulator", "compensated"}


def grouped(d):
    """Weights are int4 or int8; each group of terms has its scale."""
    size = int(d.rng.choice([32, 64, 128]))
    if d.name != "float32" or d.k <= size:
        return None
    most = int(d.rng.choice([7, 127]))
    y = ways.f64(d.y).copy()
    for low in range(0, d.k, size):
        group = y[low : low + size]
        scale = np.abs(group).max(axis=0) / most
        scale = np.where(scale == 0, 1, scale)
        y[low : low + size] = np.rint(group / scale) * scale
    return d.good(), ways.f64(d.x) @ y, "rounding", {"inputs-quantized"}, ORDERS


def eight_bits(d):
    """FP8 inputs, scaled so that the largest number becomes the largest of the format, or a whole number."""
    if d.name != "float32" or d.m * d.n < 64:
        return None
    dtype, most = [
        (ml_dtypes.float8_e4m3fn, 448.0),
        (ml_dtypes.float8_e5m2, 57344.0),
        (ml_dtypes.float8_e4m3fn, 300.0),
    ][int(d.rng.integers(3))]
    made = []
    for side in (d.x, d.y):
        scale = float(np.abs(ways.f64(side)).max()) / most or 1.0
        made.append((ways.f64(side) / scale).astype(dtype).astype(np.float64) * scale)
    return d.good(), made[0] @ made[1], "rounding", {"inputs-quantized"}, ORDERS | {"inputs-rounded"}


def promoted(d):
    """Blocks of terms in binary16, added in binary32."""
    size = int(d.rng.choice([4, 16, 32, 128]))
    if d.name != "fp16" or d.k <= size or d.m * d.n * d.k > 1e7:
        return None
    total = np.zeros((d.m, d.n), np.float32)
    for low in range(0, d.k, size):
        total += ways.stepwise(d.x[:, low : low + size], d.y[low : low + size], "fp16").astype(np.float32)
    d.keeps_dtypes = True
    plain = d.x.astype(np.float32) @ d.y.astype(np.float32)
    return plain, total, "rounding", {"accumulator"}, ORDERS | {"products", "partials", "output-rounded"}


def stored(d):
    """Sums in binary32 that are stored in 16 bits at each step."""
    if d.dtype.itemsize > 2 or d.m * d.n * d.k > 1e7:
        return None
    total = np.zeros((d.m, d.n), np.float32)
    x, y = d.x.astype(np.float32), d.y.astype(np.float32)
    for k in range(d.k):
        total = (total + x[:, k : k + 1] * y[k : k + 1]).astype(d.dtype).astype(np.float32)
    return d.good(), total, "rounding", {"accumulator"}, ORDERS | {"products", "partials"}


def cut(d):
    """Results whose last bits are zero."""
    if d.name != "float32":
        return None
    bits = int(d.rng.choice([4, 8, 13, 16]))
    made = (d.good().view(np.uint32) & np.uint32((0xFFFFFFFF << bits) & 0xFFFFFFFF)).view(np.float32)
    return d.good(), made, "rounding", {"output-rounded"}, ORDERS


def printed(d):
    """Results that were printed with some digits, and read again."""
    if d.name != "float32" or d.m * d.n < 64:
        return None
    count = int(d.rng.integers(3, 6))
    made = np.array([float(f"%.{count}g" % value) for value in d.good().ravel()]).reshape(d.m, d.n)
    return d.good(), made, "rounding", {"output-rounded"}, ORDERS


def filed(d):
    """Results that are saved in 16 bits."""
    if d.name != "float32":
        return None
    made = d.good().astype(ways.BFLOAT16)
    d.keeps_dtypes = True
    return d.good(), made, "rounding", {"output-rounded"}, ORDERS


def whole_numbers(d):
    """Sums of whole numbers, which are exact: one of them is off by one."""
    if d.name != "float32" or d.m * d.n < 64:
        return None
    d.x, d.y = (d.rng.integers(-8, 9, side.shape).astype(np.float32) for side in (d.x, d.y))
    made, wrong = d.good(), np.zeros((d.m, d.n), bool)
    wrong[int(d.rng.integers(d.m)), int(d.rng.integers(d.n))] = True
    made = made + wrong.astype(np.float32)
    return d.good(), made, "bug", {"elements"}, ORDERS, ("elements", wrong)


ALL = (grouped, eight_bits, promoted, stored, cut, printed, filed, whole_numbers)
