"""Matrix products whose partial sums are rounded to a narrow format."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.types import Array
from floatlab.formats import Format


def promoted(x: Array, y: Array, format: Format, size: int, fma: bool) -> Array:
    """Return the matrix product x·y, summed in blocks of `size` terms.

    Within a block, every sum is rounded to `format`. Without `fma`, every product of two elements is rounded to
    `format`, too. The sums of the blocks are added in binary32.
    """
    n = x.shape[1]
    whole, total = n // size * size, np.zeros((x.shape[0], y.shape[1]), np.float32)
    edges = (*range(0, whole + 1, size), *((n,) if n > whole else ()))
    for low, high in pairwise(edges):
        part = np.zeros(total.shape)
        with np.errstate(all="ignore"):
            for k in range(low, high):
                product = x[:, k : k + 1] * y[k : k + 1]
                part = rounded(part + (product if fma else rounded(product, format)), format)
            total += part.astype(np.float32)
    return total.astype(np.float64)


def stored(x: Array, y: Array, format: Format) -> Array:
    """Return the matrix product x·y, with terms added one by one.

    Each product of two elements is rounded to binary32. Each sum is computed in binary32 and then rounded to `format`,
    as if it were stored in this format.
    """
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    single = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]):
            total = rounded(total + single[0][:, k : k + 1] * single[1][k : k + 1], format).astype(np.float32)
    return total.astype(np.float64)


def added_blocks(
    x: Array,
    y: Array,
    format: Format,
    edges: tuple[int, ...],
    *,
    blocks: bool = True,
    sums: bool = True,
    error: Array | float = 0.0,
) -> Array:
    """Return the matrix product x·y, summed in blocks.

    Block i has the terms from `edges[i]` to `edges[i + 1]` − 1. The sum of a block is computed in binary64, and `error`
    is added to this sum. With `blocks`, the sum of the block is then rounded to `format`. With `sums`, the running sum
    is rounded to `format` after each block. The result is always rounded to `format`. If `error` grows, no element of
    the result decreases.
    """
    total = np.zeros((x.shape[0], y.shape[1]))
    with np.errstate(all="ignore"):
        for low, high in pairwise(edges):
            block = x[:, low:high] @ y[low:high] + error
            block = rounded(block, format) if blocks else block
            total = rounded(total + block, format) if sums else total + block
    return total if sums else rounded(total, format)


def rounded(values: Array, format: Format) -> Array:
    """Return the numbers rounded to a format; for binary16, NumPy's conversion does this."""
    if format.name == "binary16":
        with np.errstate(all="ignore"):
            return values.astype(np.float16).astype(np.float64)
    return np.asarray(quantize(values, format), np.float64)
