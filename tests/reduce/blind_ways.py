"""Computations of products for blind cases, in NumPy only: floatlab does not take part."""

from itertools import pairwise

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64), "fp16": np.dtype(np.float16)}
DTYPES["bf16"] = BFLOAT16
# precision, exponent of the smallest subnormal, largest
FORMATS = {
    "bf16": (8, -133, float(ml_dtypes.finfo(BFLOAT16).max)),
    "fp16": (11, -24, 65504.0),
    "tf32": (11, -136, 2.0**128 * (1 - 2.0**-11)),
    "fp32": (24, -149, float(np.finfo(np.float32).max)),
    "fp64": (53, -1074, float(np.finfo(np.float64).max)),
}
NAMES = {"float32": "fp32", "float64": "fp64", "fp16": "fp16", "bf16": "bf16"}


def f64(x):
    return np.asarray(x).astype(np.float64)


def narrow(x, name, how="rne"):
    """Round numbers to a format, as float64."""
    precision, least, most = FORMATS[name]
    x = f64(x)
    with np.errstate(all="ignore"):
        q = np.maximum(np.frexp(x)[1] - precision, least)
        scaled = np.ldexp(np.abs(x), -q)
        whole = {"rne": np.rint, "rna": lambda v: np.floor(v + 0.5), "rz": np.floor}[how](scaled)
        made = np.copysign(np.ldexp(whole, q), x)
        made = np.where(np.abs(made) > most, np.copysign(most if how == "rz" else np.inf, x), made)
    return np.where(np.isfinite(x), made, x)


def library(x, y, rng=None):
    """Return the product as a real library makes it: BLAS, or NumPy's loop for 16 bits, rounded to the dtype."""
    with np.errstate(all="ignore"):
        if x.dtype.itemsize > 2:
            return x @ y
        if rng is None or rng.random() < 0.7 or x.size * y.shape[1] > 2e6:
            return (x.astype(np.float32) @ y.astype(np.float32)).astype(x.dtype)
        return (x @ y).astype(x.dtype)


RUNS = ("rows", "columns", "padded", "padded terms", "turned", "column-major", "einsum", "row by row", "dot by dot")


def cuts(count, rng):
    marks = sorted({0, count, *rng.integers(0, count + 1, int(rng.integers(1, 4))).tolist()})
    return list(pairwise(marks))


def run(x, y, rng, how=None):
    """Return the product by the same library with another call."""
    (m, k), n = x.shape, y.shape[1]
    how = str(rng.choice(RUNS)) if how is None else how
    pad = int(rng.choice([4, 8, 16, 32]))
    if how == "rows":
        return np.concatenate([x[low:high] @ y for low, high in cuts(m, rng)])
    if how == "columns":
        return np.concatenate([x @ y[:, low:high] for low, high in cuts(n, rng)], axis=1)
    if how == "padded":
        return (np.pad(x, ((0, -m % pad), (0, 0))) @ np.pad(y, ((0, 0), (0, -n % pad))))[:m, :n]
    if how == "padded terms":
        return np.pad(x, ((0, 0), (0, -k % pad))) @ np.pad(y, ((0, -k % pad), (0, 0)))
    if how == "turned":
        return np.ascontiguousarray((y.T @ x.T).T)
    if how == "column-major":
        return np.asfortranarray(x) @ np.asfortranarray(y)
    if how == "einsum":
        return np.einsum("ij,jk->ik", x, y)
    if how == "row by row" or m * n > 20_000:
        return np.array([row @ y for row in x])
    columns = np.ascontiguousarray(y.T)
    return np.array([[np.dot(row, column) for column in columns] for row in x], x.dtype)


def serial(x, y, dtype, fma=False, terms=None):
    """Return sums term by term in a native dtype; fused by way of binary64, for binary32."""
    wide = np.float32 if np.dtype(dtype).itemsize == 2 else dtype
    x, y = x.astype(wide), y.astype(wide)
    total = np.zeros((x.shape[0], y.shape[1]), wide)
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]) if terms is None else terms:
            if fma:
                total = (f64(total) + f64(x[:, k : k + 1]) * f64(y[k : k + 1])).astype(wide)
            else:
                total = total + x[:, k : k + 1] * y[k : k + 1]
    return total


def lanes(x, y, dtype, count, fma=False):
    parts = [serial(x, y, dtype, fma, range(i, x.shape[1], count)) for i in range(min(count, x.shape[1]))]
    total = parts[0]
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total = total + part
    return total


def split(x, y, blocks, narrowed=None):
    """Return the sum of products of blocks of terms, each by the library, rounded to a narrower format or not."""
    edges = np.linspace(0, x.shape[1], blocks + 1).astype(int)
    wide = np.float32 if x.dtype.itemsize == 2 else x.dtype
    total = None
    with np.errstate(all="ignore"):
        for low, high in pairwise(edges):
            if low == high:
                continue
            part = x[:, low:high].astype(wide) @ y[low:high].astype(wide)
            part = part if narrowed is None else narrow(part, narrowed).astype(wide)
            total = part if total is None else total + part
    return total


def stepwise(x, y, name, terms=None):
    """Return sums whose every step, product and sum, is rounded to a narrower format."""
    x, y = f64(x), f64(y)
    total = np.zeros((x.shape[0], y.shape[1]))
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]) if terms is None else terms:
            total = narrow(total + narrow(x[:, k : k + 1] * y[k : k + 1], name), name)
    return total


def rounded_products(x, y, name, dtype):
    total = np.zeros((x.shape[0], y.shape[1]), dtype)
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]):
            total = total + narrow(f64(x[:, k : k + 1]) * f64(y[k : k + 1]), name).astype(dtype)
    return total


def kahan(x, y, dtype):
    x, y = x.astype(dtype), y.astype(dtype)
    total, rest = np.zeros((x.shape[0], y.shape[1]), dtype), np.zeros((x.shape[0], y.shape[1]), dtype)
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]):
            term = x[:, k : k + 1] * y[k : k + 1] - rest
            new = total + term
            rest = (new - total) - term
            total = new
    return total


def quantized(v, axis=None):
    """Return numbers as int8 with one scale, or one scale a row (axis 1) or column (axis 0)."""
    v = f64(v)
    scale = np.abs(v).max(axis=axis, keepdims=axis is not None) / 127
    return np.rint(v / np.where(scale == 0, 1, scale)) * scale


def flushed(v, least):
    return np.where(np.abs(f64(v)) < least, 0.0, f64(v))


def in_parts(v, count, name="bf16"):
    """Split numbers into parts: each part is the rounded remainder after the previous parts."""
    rest, parts = f64(v), []
    for _ in range(count):
        parts.append(narrow(rest, name))
        rest = rest - parts[-1]
    return parts


def split_product(x, y, count, most, dtype=np.float32):
    """Return the sum of products of parts i and j with i + j < most, each product by the library."""
    xs, ys = in_parts(x, count), in_parts(y, count)
    total = np.zeros((x.shape[0], y.shape[1]), dtype)
    for i, a in reversed(list(enumerate(xs))):
        for j, b in reversed(list(enumerate(ys))):
            if i + j < most:
                total = total + a.astype(dtype) @ b.astype(dtype)
    return total
