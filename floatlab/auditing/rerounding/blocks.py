"""Blocks and rows of a quantised weight whose codes are far from its original: damage, or feedback of errors."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Individual

# In a row with other numbers than the original, most codes are far, and the cosine is small.
_FAR_IN_ROW, _ALIKE = 0.4, 0.5
# Feedback makes large errors in a few blocks, but these are no factor, and most of the block is still there.
_FACTOR, _STILL_THERE = 1.6, 0.6
# A block that is a multiple of the original has a larger cosine, and more than the second share of its codes is inner.
_MULTIPLE, _INNER = 0.85, 0.5
# Feedback adds the error of a clipped number to the numbers on its right. In such a row, no code is far before the
# clipped number, and clipped numbers have more than this share of the error.
_PUSHED = 0.15
# If all numbers of a block are smaller than the first number of finest steps, feedback makes codes up to the second.
_SMALL, _STEPS = 2, 3


class Piece(Individual):
    """A piece of a weight, `q`, and of its original, `x`, which is `within` if it is clipped at the outermost codes.

    `part` is the original divided by the scales. `far` tells which codes are far from the original, `inner` which are
    not the outermost codes, and `clipped` which numbers of the original are beyond the outermost codes. A block has
    `size` elements, and a row has `length`.
    """

    q: Array
    x: Array
    within: Array
    part: Array
    far: Array
    inner: Array
    clipped: Array
    size: int
    length: int

    def by_block(self, values: Array) -> Array:
        """Return the sum of the squares in each block."""
        found: Array = np.square(values).reshape(-1, self.size).sum(axis=1)
        return found

    def multiples(self) -> Array:
        """Return which blocks are the original times a factor; the outermost codes do not count.

        Half a scale moves most codes of 4 bits by only one step, but all in the same direction.
        """
        inner, far = (each.reshape(-1, self.size) for each in (self.inner, self.far & self.inner))
        found: Array = far.any(axis=1) & (inner.mean(axis=1) > _INNER)
        q, x = (np.where(self.inner, each, 0.0).reshape(-1, self.size)[found] for each in (self.q, self.x))
        factor, cosine = _factor(q, x)
        found[found] = ((factor > _FACTOR) | (factor < 1 / _FACTOR)) & (cosine > _MULTIPLE)
        return found

    def is_still_there(self, chosen: Array) -> Array:
        """Return in which of the chosen blocks most of the original is left, without a factor."""
        factor, cosine = _factor(*(each.reshape(-1, self.size)[chosen] for each in (self.q, self.x)))
        found: Array = (factor < _FACTOR) & (factor > 1 / _FACTOR) & (cosine > _STILL_THERE)
        return found

    def small(self, step: float) -> Array:
        """Return which blocks only have numbers of less than two finest steps, and codes of a few steps."""
        inverse = np.where(self.x != 0, self.part / np.where(self.x != 0, self.x, 1.0), 0.0)
        is_small = (np.abs(self.part) < _SMALL * step) & (np.abs(self.q * inverse) <= _STEPS * step)
        has_scale = (self.part != 0) | (self.x == 0)
        found: Array = (is_small & has_scale).reshape(-1, self.size).all(axis=1)
        return found

    def pushed(self) -> Array:
        """Return which blocks are in rows where feedback of the errors of clipped numbers may make codes far."""
        wrong, clipped, far = (
            each.reshape(-1, self.length) for each in (np.square(self.q - self.x), self.clipped, self.far)
        )
        is_first = clipped.any(axis=1) & (clipped.argmax(axis=1) < np.where(far.any(axis=1), far.argmax(axis=1), -1))
        rows = is_first & (np.where(clipped, wrong, 0.0).sum(axis=1) > _PUSHED * wrong.sum(axis=1))
        found: Array = np.repeat(rows, self.length // self.size)
        return found

    def bad_rows(self, bad: Array) -> Array:
        """Return the indices of rows with other numbers than the original, which have some of these blocks."""
        far = self.far.reshape(-1, self.length)
        chosen = np.flatnonzero((far.mean(axis=1) >= _FAR_IN_ROW) & bad.reshape(len(far), -1).any(axis=1))
        _, cosine = _factor(*(each.reshape(-1, self.length)[chosen] for each in (self.q, self.within)))
        found: Array = chosen[~(cosine >= _ALIKE)]
        return found


def _factor(q: Array, x: Array) -> tuple[Array, Array]:
    """Return for each row the factor by which q is larger than x, and the cosine of their angle."""
    both, signal = (q * x).sum(axis=1), np.square(x).sum(axis=1)
    return both / signal, both / np.sqrt(np.square(q).sum(axis=1) * signal)
