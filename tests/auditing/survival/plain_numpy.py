"""The figures of an audit, computed with NumPy and ml_dtypes in the plainest way; shares no code with floatlab."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

import ml_dtypes
import numpy as np

Array = np.ndarray
# A rounded array, the smallest normal number of each element, and the smallest magnitude that counts as clipped.
Rounded = tuple[Array, Array, Array]


def cast(x: Array, dtype: type, smallest: float) -> Rounded:
    """Round without scales; nothing is clipped, since overflows become NaN or infinite."""
    with np.errstate(all="ignore"):
        y = x.astype(dtype).astype(np.float32)
    return y, np.abs(y) < smallest, np.full(x.shape, np.inf)


def e4m3_tensor(x: Array) -> Rounded:
    """Scale the largest magnitude to 448, with one binary32 scale."""
    scale = np.float64(np.float32(np.float64(np.abs(x).max()) / 448))
    q = np.clip(x / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
    return (q * scale).astype(np.float32), np.abs(q) < 2.0**-6, np.full(x.shape, 465 * scale)


def mxfp4(x: Array) -> Rounded:
    """Scale blocks of 32 by powers of two, the last block of a row may be shorter (OCP MX 1.0, section 6.3)."""
    y, subnormal, beyond = np.empty(x.shape, np.float32), np.empty(x.shape, bool), np.empty(x.shape)
    for first in range(0, x.shape[-1], 32):
        block = x[..., first : first + 32].astype(np.float64)
        amax = np.abs(block).max(axis=-1, keepdims=True)
        exponent = np.where(amax > 0, np.frexp(amax)[1] - 1 - 2, -127)
        scale = np.ldexp(1.0, np.clip(exponent, -127, 127))
        q = np.clip(block / scale, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64)
        y[..., first : first + 32] = q * scale
        subnormal[..., first : first + 32] = np.abs(q) < 1
        beyond[..., first : first + 32] = 7 * scale
    return y, subnormal, beyond


def nvfp4(x: Array) -> Rounded:
    """Scale blocks of 16 by e4m3, and the tensor by binary32, so that the largest scale is 448."""
    tensor = np.float64(np.float32(np.float64(np.abs(x).max()) / (6 * 448)))
    y, subnormal, beyond = np.empty(x.shape, np.float32), np.empty(x.shape, bool), np.empty(x.shape)
    for first in range(0, x.shape[-1], 16):
        block = x[..., first : first + 16].astype(np.float64)
        amax = np.abs(block).max(axis=-1, keepdims=True)
        scale = np.minimum(amax / (6 * tensor), 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float64)
        scale = np.maximum(scale, 2.0**-9) * tensor
        q = np.clip(block / scale, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(np.float64)
        y[..., first : first + 16] = q * scale
        subnormal[..., first : first + 16] = np.abs(q) < 1
        beyond[..., first : first + 16] = 7 * scale
    return y, subnormal, beyond


RECIPES: dict[str, Callable[[Array], Rounded]] = {
    "e4m3": lambda x: cast(x, ml_dtypes.float8_e4m3fn, 2.0**-6),
    "e4m3/tensor": e4m3_tensor,
    "bf16": lambda x: cast(x, ml_dtypes.bfloat16, 2.0**-126),
    "mxfp4": mxfp4,
    "nvfp4": nvfp4,
}


def figures(x: Array, recipe: str) -> dict[str, float]:
    """Return the counts, sums and extremes of a float32 array that is rounded by a recipe."""
    matrix = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    y, subnormal, beyond = RECIPES[recipe](matrix)
    a, b = matrix.astype(np.float64), y.astype(np.float64)
    kept = np.isfinite(b)
    nonzero = kept & (a != 0)
    error = np.where(kept, b - a, 0)
    relative = np.abs(error[nonzero]) / np.abs(a[nonzero])
    a_kept, b_kept = a[kept], b[kept]
    return {
        "elements": a.size,
        "exact": int((a == b).sum()),
        "flushed": int((nonzero & (b == 0)).sum()),
        "subnormal": int((kept & (b != 0) & subnormal).sum()),
        "saturated": int((kept & (np.abs(a) >= beyond)).sum()),
        "lost": int((~kept).sum()),
        "squares": fsum((a_kept**2).ravel()),
        "error_squares": fsum((error**2).ravel()),
        "cosine": fsum((a_kept * b_kept).ravel()) / np.sqrt(fsum(a_kept**2)) / np.sqrt(fsum(b_kept**2)),
        "mean_relative": fsum(relative) / max(relative.size, 1),
        "largest_relative": float(relative.max(initial=0)),
        "largest_error": float(np.abs(error).max()),
        "relative_999": float(np.sort(relative)[int(np.ceil(0.999 * relative.size)) - 1]) if relative.size else 0.0,
    }
