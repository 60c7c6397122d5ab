"""Products of random matrices, computed by a target and kept for replays."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.conversion import encode
from floatlab.arrays.sources import Source
from floatlab.reduce.reveal.probing import NotASum
from floatlab.reduce.reveal.sized_target import SizedTarget

_LEAST, _MOST = 2, 64  # the smallest and the largest number of random products
_WORK = 1 << 32  # no more random products are made after about this many multiply-adds
_MEMORY = 1 << 25  # the random products, which stay in memory, contain at most about this many numbers
_REPEATED = 16  # at most this many random products are computed again


class RandomProduct:
    """Two random matrices, and the product that a target computes from them."""

    def __init__(self, sized: SizedTarget, rng: np.random.Generator) -> None:
        rows, columns = sized.matrix_shape
        x = rng.standard_normal((rows, sized.terms)).astype(sized.carrier)
        y = x.T if sized.is_gram else rng.standard_normal((sized.terms, columns)).astype(sized.carrier)
        self.given = x, (y if len(sized.shape) > 1 else y[:, 0])
        self.sides = tuple(Source(np.asarray(encode(side, sized.format)), sized.format) for side in (x, y))
        made = sized.multiply(*self.given)
        self.result = Source(made.codes.reshape(rows, columns), made.format)


class RandomProducts:
    """The random products of a target: one at first, and more when they are needed."""

    def __init__(self, sized: SizedTarget, rng: np.random.Generator) -> None:
        self._sized, self._rng = sized, rng
        self.kept = [self.new()]

    def new(self) -> RandomProduct:
        """Return a new random product without keeping it."""
        return RandomProduct(self._sized, self._rng)

    def make(self, wanted: int) -> list[RandomProduct]:
        """Make and keep products until `wanted` products (but at least 2) are kept; return the new products.

        At most 64 products are kept, and fewer if they take too much work or memory.
        """
        sized = self._sized
        rows, columns = sized.matrix_shape
        numbers = rows * columns + sized.terms * (rows + columns)
        most = min(_MOST, _MEMORY // numbers, _WORK // sized.work)
        made = [self.new() for _ in range(max(_LEAST, min(wanted, most)) - len(self.kept))]
        self.kept += made
        return made

    def check_repeats(self, in_a_row: int = 1) -> None:
        """Compute some products again; raises NotASum if a product has other bits than before.

        The first product is computed `in_a_row` times, since its bits may alternate between two or three results.
        """
        for each in (*self.kept[:1] * in_a_row, *self.kept[1:_REPEATED]):
            again = self._sized.multiply(*each.given).codes
            if not np.array_equal(again.reshape(-1), each.result.codes.reshape(-1)):
                raise NotASum(f"{self._sized.target.name} gives two results for the same terms")
