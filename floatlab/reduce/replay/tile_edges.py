"""Finds rows or columns of a product, usually edges of tiles, that were computed differently from the rest."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.record import Individual
from floatlab.reduce.replay.candidates import Candidate
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.explanations import Explanation, agreement, replay

_SHARE = 0.5  # a tile edge is reported only if it has at most this fraction of the rows or columns
_LEAST = 16  # a tile edge is reported only if it has at least this number of elements; fewer may agree by chance
_NOUNS = ("row", "column")


class TileEdge(Individual):
    """Rows (axis 0) or columns (axis 1) that `explanation` reproduces, while `rest` reproduces all other elements."""

    rest: Explanation
    axis: int
    places: tuple[int, ...]
    explanation: Explanation

    @property
    def where(self) -> str:
        """The rows or columns as text, for example "rows 8–11"."""
        low, high, count = self.places[0], self.places[-1], len(self.places)
        noun = _NOUNS[self.axis] + "s" * (count > 1)
        if count == 1:
            return f"{noun} {low}"
        return f"{noun} {low}–{high}" if high - low == count - 1 else f"{count:,} {noun} from {low} to {high}"

    @property
    def text(self) -> str:
        """Both candidates in words, with the rows or columns that the second candidate reproduces."""
        return f"all {self.rest.elements:,} elements equal {self.rest.text}, but {self.where} {self.explanation.text}"

    def __repr__(self) -> str:
        """Show both candidates."""
        return f"TileEdge({self.text})"


def find_tile_edge(
    evaluator: Evaluator, best: Explanation, goal: Source, tried: Iterable[Candidate]
) -> TileEdge | None:
    """Find a candidate that reproduces the few rows or columns in which the best candidate fails.

    Columns are tried before rows. Columns are tried only if at most half of all columns have failures, and if the
    columns with failures have at least 16 elements in total. The same applies to rows. The result is None if no
    candidate reproduces the rows (or columns) with failures, if `best` has no failures, or if only a sample was
    compared with `best`.

    >>> import floatlab as fl
    >>> a, b = (np.random.default_rng(1).random((40, 40), np.float32) for _ in "ab")
    >>> made = fl.matmul(a, b, fma=True)
    >>> made[:, 36:] = fl.matmul(a, b[:, 36:])
    >>> fl.attribute(a, b, made, targets=[]).text
    'all 1,600 elements equal serial with FMA, but columns 36–39 serial'
    """
    if best.codes is None or best.total < best.elements or best.fits:
        return None
    missed = ~agreement(best.codes, goal, evaluator.into).reshape(evaluator.shape)
    ways = list(tried)
    for axis in (1, 0):
        places = np.flatnonzero(missed.any(axis=1 - axis))
        length = evaluator.shape[axis]
        if not len(places) <= _SHARE * length or len(places) * evaluator.shape[1 - axis] < _LEAST:
            continue
        part, own = (
            _part(evaluator, axis, places),
            Source(np.take(goal.codes.reshape(evaluator.shape), places, axis).reshape(-1), goal.format),
        )
        for candidate in ways:
            found = replay(part, candidate, own)
            if found.fits:
                return TileEdge(best, axis, tuple(places.tolist()), found)
    return None


def _part(evaluator: Evaluator, axis: int, places: Array) -> Evaluator:
    sides = evaluator.part(places) if axis == 0 else evaluator.part(np.arange(evaluator.shape[0]), places)
    return Evaluator(sides, evaluator.into, evaluator.context)
