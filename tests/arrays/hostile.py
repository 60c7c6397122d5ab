"""Operands that are hard for operations: ties, cancellation, both ends of the range, special values."""

import numpy as np

from floatlab.arrays.conversion import decode
from tests.arrays.values import telling


def operands(operation, format, dtype, count, seed=0):
    """Return arrays of a dtype for an operation whose result is rounded into the format."""
    rng = np.random.default_rng(seed)
    values = telling(format, dtype, count, seed)
    x, y, z = (rng.permutation(values) for _ in range(3))
    with np.errstate(all="ignore"):
        some = rng.random(len(x)) < 0.4
        if operation in ("add", "subtract"):
            tie = x * dtype(2.0**-format.precision)
            near = np.where(rng.random(len(x)) < 0.5, tie, x)  # a tie, or cancellation
            near = near * rng.choice(np.array([1, 1 + 2.0**-20, 1 - 2.0**-22], dtype), len(x))
            y = np.where(some, near * rng.choice(np.array([-1, 1], dtype), len(x)), y)
        elif operation == "divide":
            y = np.where(some, x * rng.choice(np.array([0.75, 1, 2, 3], dtype), len(x)), y)
        elif operation == "sqrt":
            x = np.where(some, x * x, x)
        elif operation == "fma":
            leading = np.round(np.log2(np.abs(x * y).astype(np.float64)))
            tie = np.exp2(leading - format.precision).astype(dtype)
            z = np.where(some, -(x * y), z)
            z = np.where(rng.random(len(x)) < 0.3, tie, z)
    return (x, y, z)[: {"sqrt": 1, "fma": 3}.get(operation, 2)]


def products_and_a_bit(format, dtype, count, seed=0):
    """Return operands of an fma whose product is a tie of the format, and whose z is tiny or zero.

    In binary64, the sum of product and z is the tie itself for every z, so a second rounding ignores z.
    """
    rng = np.random.default_rng(seed)
    p = format.precision
    x = 1 + rng.integers(0, 1 << (p // 2), count) * 2.0 ** -(p // 2)
    y = 1 + (2 * rng.integers(0, 1 << (p - p // 2), count) + 1) * 2.0 ** -(p - p // 2)  # x·y has p + 1 or p + 2 digits
    z = rng.choice([-1, 1, 0], count) * np.exp2(-rng.integers(54, 90, count))
    return tuple(each.astype(dtype) for each in (x * rng.choice([-1, 1], count), y, z))


def every_pair(format):
    """Return all pairs of a small format's codes, as float32 values."""
    every = decode(np.arange(1 << format.width, dtype=np.uint8), format, dtype=np.float32)
    return np.repeat(every, len(every)), np.tile(every, len(every))
