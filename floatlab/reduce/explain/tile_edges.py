"""Products of which some rows or columns were computed in another way: the edges of a library's tiles, as a rule."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.record import Individual
from floatlab.reduce.explain.evaluator import Bench
from floatlab.reduce.explain.explanations import Explanation, agreement, explain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from floatlab.reduce.explain.candidates import Trial

    Array = np.ndarray[Any, np.dtype[Any]]

_SHARE = 0.5  # of the rows or columns: no more are a patch
_LEAST = 16  # elements; fewer are what some way or other gives by chance
_NOUNS = ("row", "column")


class Patch(Individual):
    """Rows (axis 0) or columns (axis 1) of a product that another way gives wholly, while `rest` gives all others."""

    rest: Explanation
    axis: int
    places: tuple[int, ...]
    explanation: Explanation

    @property
    def where(self) -> str:
        """The rows or columns in words."""
        low, high, count = self.places[0], self.places[-1], len(self.places)
        noun = _NOUNS[self.axis] + "s" * (count > 1)
        if count == 1:
            return f"{noun} {low}"
        return f"{noun} {low}–{high}" if high - low == count - 1 else f"{count:,} {noun} from {low} to {high}"

    @property
    def text(self) -> str:
        """Both ways, and where the second one was taken."""
        return f"all {self.rest.elements:,} elements equal {self.rest.text}, but {self.where} {self.explanation.text}"

    def __repr__(self) -> str:
        """Show both ways."""
        return f"Patch({self.text})"


def patch_of(bench: Bench, best: Explanation, goal: Source, tried: Iterable[Trial]) -> Patch | None:
    """Return in what other way the few rows or columns were made that the best one misses; None where none gives them.

    >>> import floatlab as fl
    >>> a, b = (np.random.default_rng(1).random((40, 40), np.float32) for _ in "ab")
    >>> made = fl.matmul(a, b, fma=True)
    >>> made[:, 36:] = fl.matmul(a, b[:, 36:])
    >>> fl.attribute(a, b, made, targets=[]).text
    'all 1,600 elements equal serial with FMA, but columns 36–39 serial'
    """
    if best.codes is None or best.total < best.elements or best.fits:
        return None
    missed = ~agreement(best.codes, goal, bench.into).reshape(bench.shape)
    ways = list(tried)
    for axis in (1, 0):
        places = np.flatnonzero(missed.any(axis=1 - axis))
        length = bench.shape[axis]
        if not len(places) <= _SHARE * length or len(places) * bench.shape[1 - axis] < _LEAST:
            continue
        part, own = (
            _part(bench, axis, places),
            Source(np.take(goal.codes.reshape(bench.shape), places, axis).reshape(-1), goal.format),
        )
        for trial in ways:
            found = explain(part, trial, own)
            if found.fits:
                return Patch(best, axis, tuple(places.tolist()), found)
    return None


def _part(bench: Bench, axis: int, places: Array) -> Bench:
    left, right = bench.left, bench.right
    if axis == 0 or right is None:
        left = Source(left.codes[places], left.format)
    else:
        right = Source(np.ascontiguousarray(right.codes[:, places]), right.format)
    return Bench(left, right, bench.into, bench.context)
