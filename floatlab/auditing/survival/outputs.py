"""Errors of a layer's output, x·Wᵀ, for samples of its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record

MOST_SAMPLES = 256  # the largest number of rows of inputs that are used


class OutputErrors(Record):
    """The errors of a layer's outputs: the number of `outputs`, four sums over them, and the largest error.

    Let y be an output, and z the same output computed with the rounded weight. `error_squares` is the sum of (z − y)²,
    `squares` is the sum of y², `rounded_squares` is the sum of z², and `products` is the sum of y·z.
    """

    outputs: int
    error_squares: float
    squares: float
    rounded_squares: float
    products: float
    largest_error: float


def output_errors(inputs: Array, weight: Array, rounded: Array) -> OutputErrors:
    """Return the errors of the outputs that belong to some rows of a layer's weight, computed in float64.

    `inputs` has the shape samples × columns. Each sample is multiplied by each row of `weight`, and by the same row of
    `rounded`.

    >>> found = output_errors(np.float64([[1, 2]]), np.float32([[1, 1]]), np.float32([[1, 1.5]]))
    >>> found.squares, found.error_squares, found.largest_error
    (9.0, 1.0, 1.0)
    """
    x = inputs[:MOST_SAMPLES]
    # Not BLAS, whose sums depend on the number of threads.
    y = np.einsum("nk,mk->nm", x, weight.astype(np.float64))
    z = np.einsum("nk,mk->nm", x, rounded.astype(np.float64))
    error = z - y
    noise, signal, own, both = (float(each.sum()) for each in (error * error, y * y, z * z, y * z))
    return OutputErrors(y.size, noise, signal, own, both, float(np.abs(error).max(initial=0)))


def merged_outputs(parts: Iterable[OutputErrors | None]) -> OutputErrors | None:
    """Add the errors of several parts of a layer. Return None if one of the parts is None, or if there are no parts."""
    found = list(parts)
    if not found or any(each is None for each in found):
        return None
    known = [each for each in found if each is not None]
    return OutputErrors(
        outputs=sum(each.outputs for each in known),
        error_squares=fsum(each.error_squares for each in known),
        squares=fsum(each.squares for each in known),
        rounded_squares=fsum(each.rounded_squares for each in known),
        products=fsum(each.products for each in known),
        largest_error=max(each.largest_error for each in known),
    )
