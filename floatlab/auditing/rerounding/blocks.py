"""Finds blocks and rows whose codes are far from the original, and distinguishes damage from error feedback.

Error feedback: quantisers such as GPTQ add the rounding error of one element to the elements that follow.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Individual

# A row holds other numbers than the original if at least the share _FAR_IN_ROW of its codes is far, and its cosine with
# the original is below _ALIKE.
_FAR_IN_ROW, _ALIKE = 0.4, 0.5
# Error feedback makes large errors in a few blocks. These blocks still resemble the original (the cosine is above
# _STILL_THERE), and are not a multiple of it (the factor is below _FACTOR).
_FACTOR, _STILL_THERE = 1.6, 0.6
# A block is a multiple of the original if its cosine is above _MULTIPLE, and its factor is above _FACTOR or below its
# reciprocal. The outermost codes are left out; more than the share _INNER of the codes must remain.
_MULTIPLE, _INNER = 0.85, 0.5
# Error feedback adds the error of a clipped number to the numbers on its right. In such a row, no code before the first
# clipped number is far, and the clipped numbers cause more than this share of the row's error.
_PUSHED = 0.15
# If all numbers of a block are below _SMALL steps, error feedback makes codes of at most _STEPS steps. A step is the
# smallest distance between two codes.
_SMALL, _STEPS = 2, 3
_HEAVY = 1.5  # steps; an error larger than this does not come from error feedback


class Piece(Individual):
    """A piece of a weight, `q`, and of its original, `x`.

    `within` is the original, clipped at the outermost codes. `part` is the original divided by the scales. There are
    three masks. `far` marks codes that are far from the original, `inner` marks codes that are not the outermost ones,
    and `clipped` marks numbers of the original beyond the outermost codes. A block has `size` elements, and a row has
    `length`.
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
        """Return, for each block, the sum of the squares of its numbers in `values`."""
        found: Array = np.square(values).reshape(-1, self.size).sum(axis=1)
        return found

    def multiples(self) -> Array:
        """Return which blocks are a multiple of the original; elements with the outermost codes are not compared.

        For example, a block is found if its scale is half as large as it should be. Most of the block's 4-bit codes are
        then wrong by only one step, but all in the same direction.
        """
        inner, far = (each.reshape(-1, self.size) for each in (self.inner, self.far & self.inner))
        found: Array = far.any(axis=1) & (inner.mean(axis=1) > _INNER)
        q, x = (np.where(self.inner, each, 0.0).reshape(-1, self.size)[found] for each in (self.q, self.x))
        factor, cosine = factors_of(q, x)
        found[found] = ((factor > _FACTOR) | (factor < 1 / _FACTOR)) & (cosine > _MULTIPLE)
        return found

    def is_still_there(self, chosen: Array) -> Array:
        """Return which of the chosen blocks still resemble the original, but are not a multiple of the original."""
        factor, cosine = factors_of(*(each.reshape(-1, self.size)[chosen] for each in (self.q, self.x)))
        found: Array = (factor < _FACTOR) & (factor > 1 / _FACTOR) & (cosine > _STILL_THERE)
        return found

    def small(self, step: float) -> Array:
        """Return which blocks have only tiny numbers.

        A tiny number, divided by its scale, is below 2·`step` in the original, and at most 3·`step` in the weight.
        """
        inverse = np.where(self.x != 0, self.part / np.where(self.x != 0, self.x, 1.0), 0.0)
        is_small = (np.abs(self.part) < _SMALL * step) & (np.abs(self.q * inverse) <= _STEPS * step)
        has_scale = (self.part != 0) | (self.x == 0)
        found: Array = (is_small & has_scale).reshape(-1, self.size).all(axis=1)
        return found

    def pushed(self) -> Array:
        """Return which blocks are in rows whose errors may come from clipping and the feedback of clipping errors."""
        wrong, clipped, far = (
            each.reshape(-1, self.length) for each in (np.square(self.q - self.x), self.clipped, self.far)
        )
        is_first = clipped.any(axis=1) & (clipped.argmax(axis=1) < np.where(far.any(axis=1), far.argmax(axis=1), -1))
        rows = is_first & (np.where(clipped, wrong, 0.0).sum(axis=1) > _PUSHED * wrong.sum(axis=1))
        found: Array = np.repeat(rows, self.length // self.size)
        return found

    def heavy(self, step: float) -> Array:
        """Return which blocks have an error above 1.5 · `step` · s, where s is the largest scale in the block's row.

        Error feedback passes on errors of at most half a step; several of them may add up.
        """
        scale = np.where(self.part != 0, np.abs(self.x) / np.where(self.part != 0, np.abs(self.part), 1.0), 0.0)
        largest = scale.reshape(-1, self.length).max(axis=1) * step
        error = np.abs(self.q - self.x).reshape(-1, self.size).max(axis=1)
        found: Array = error > _HEAVY * np.repeat(largest, self.length // self.size)
        return found

    def bad_rows(self, bad: Array) -> Array:
        """Return the indices of rows whose numbers do not resemble the original; `bad` tells which blocks are bad."""
        far = self.far.reshape(-1, self.length)
        chosen = np.flatnonzero((far.mean(axis=1) >= _FAR_IN_ROW) & bad.reshape(len(far), -1).any(axis=1))
        _, cosine = factors_of(*(each.reshape(-1, self.length)[chosen] for each in (self.q, self.within)))
        found: Array = chosen[~(cosine >= _ALIKE)]
        return found


def factors_of(q: Array, x: Array) -> tuple[Array, Array]:
    """Return, for each row, the factor by which q is larger than x, and the cosine of the angle between q and x."""
    both, signal = (q * x).sum(axis=1), np.square(x).sum(axis=1)
    return both / signal, both / np.sqrt(np.square(q).sum(axis=1) * signal)
