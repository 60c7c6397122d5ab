"""Terms for reductions: of every size, with ties, cancellation and specials."""

import numpy as np

from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.sources import Source
from floatlab.numbers import Datum
from floatlab.reduce import Term


def codes(rng, format, shape, specials=0.02):
    """Return codes of a format: numbers within some binades of each other, and a few codes of any kind."""
    t = format.trailing_bits
    middle = (format.largest_magnitude >> t) // 2
    spread = max(1, min(middle // 2, 2 + format.precision))
    field = rng.integers(max(middle - spread, 0), middle + spread + 1, shape)
    trailing = rng.integers(0, 1 << min(t, 62), shape) if t else np.zeros(shape, np.int64)
    trailing = np.where(rng.random(shape) < 0.3, trailing & -(1 << max(t - 2, 0)), trailing)
    sign = rng.integers(0, 2, shape) if format.signed else np.zeros(shape, np.int64)
    found = (sign.astype(np.uint64) << np.uint64(format.width - 1)) | ((field << t) | trailing).astype(np.uint64)
    strange = rng.random(shape) < specials
    found = np.where(strange, rng.integers(0, 1 << min(format.width, 63), shape).astype(np.uint64), found)
    near = rng.random(shape) < specials / 2
    small = (sign.astype(np.uint64) << np.uint64(format.width - 1)) | np.uint64(1) * rng.integers(0, 4, shape).astype(
        np.uint64
    )
    return np.where(near, small, found).astype(container(format))


def source(rng, format, shape, specials=0.02):
    return Source(codes(rng, format, shape, specials), format)


def sides(x, y=None):
    """Return what `simulate` takes: the terms, or two factors."""
    return (x,) if y is None else (x, y)


def terms(x, y=None, place=()):
    """Return the terms of one sum as data."""
    return [
        Term(*(Datum(side.format, int(side.codes[(i, *place)])) for side in sides(x, y))) for i in range(len(x.codes))
    ]
