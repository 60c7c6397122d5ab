"""Repeated timings: runs that take turns, their statistics, and which is fastest as far as the runs can tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from random import Random
from time import perf_counter
from typing import ParamSpec, TypeVar

import numpy as np

from floatlab.errors import UnsupportedError
from floatlab.record import Record

RUNS = 5
# Of 6,000 pairs of timings from one distribution (normal or lognormal), 2.5 % get a "fastest" with 4 runs of each,
# 1.2 % with 5, at most 1.1 % with 6 to 10, and less with more. Fewer than 4 runs cannot pass such a test.
FEWEST = 4
_TWO_PERCENT = 2.326  # standard deviations
_GIGA = 1e9

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Timing(Record):
    """The seconds of each run, in order."""

    runs: tuple[float, ...]

    @property
    def total(self) -> float:
        """All runs together."""
        return sum(self.runs)

    @property
    def average(self) -> float:
        """One run, on average."""
        return self.total / len(self.runs)

    @property
    def cumulative(self) -> tuple[float, ...]:
        """The time that had passed at the end of each run.

        >>> Timing((1.0, 2.0, 4.0)).cumulative
        (1.0, 3.0, 7.0)
        """
        return tuple(np.cumsum(self.runs).tolist())

    @property
    def minimum(self) -> float:
        """The fastest run."""
        return min(self.runs)

    @property
    def median(self) -> float:
        """The run in the middle."""
        return float(np.median(self.runs))

    @property
    def spread(self) -> float | None:
        """The interquartile range, which a few disturbed runs do not change. None for a single run.

        >>> Timing((1.0, 3.0, 2.0, 9.0, 4.0)).spread, Timing((1.0,)).spread
        (2.0, None)
        """
        if len(self.runs) < 2:
            return None
        low, high = np.quantile(self.runs, (0.25, 0.75))
        return float(high - low)

    def gigaflops(self, operations: int) -> float | None:
        """Return operations in the median time, in 10⁹ a second; None where the clock did not move.

        >>> Timing((1e-3, 2e-3, 4e-3)).gigaflops(2 * 100**3)
        1.0
        """
        return operations / self.median / _GIGA if self.median else None


class Ranking(Record):
    """Timings by their medians, the shortest first, and those that may be the shortest.

    Two timings are told apart where their medians differ by more than the larger of their spreads, and one is the
    shorter in so many pairs of runs that a rank test (Mann and Whitney, at 2 %) tells them apart.
    """

    names: tuple[str, ...]
    timings: tuple[Timing, ...]
    candidates: tuple[str, ...]  # the first, and each that cannot be told from it; all of them where runs are too few

    @property
    def fastest(self) -> str | None:
        """The only candidate; None where there are several."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def runs(self) -> int:
        """How often each was timed."""
        return min((len(timing.runs) for timing in self.timings), default=0)

    @property
    def difference(self) -> float:
        """The largest difference between the medians of two candidates."""
        medians = [timing.median for timing in self._of_candidates]
        return max(medians) - min(medians)

    @property
    def spread(self) -> float:
        """The largest spread of a candidate."""
        return max(timing.spread or 0.0 for timing in self._of_candidates)

    @property
    def _of_candidates(self) -> list[Timing]:
        return [timing for name, timing in zip(self.names, self.timings, strict=True) if name in self.candidates]


def rank(timings: Mapping[str, Timing]) -> Ranking:
    """Return named timings in order, with those that may be the shortest.

    >>> a, b, c = Timing((1.0, 1.2, 1.1, 1.0)), Timing((1.1, 1.3, 1.1, 1.2)), Timing((5.0, 5.1, 5.0, 5.0))
    >>> rank({"c": c, "b": b, "a": a}).candidates, rank({"c": c, "b": b}).fastest
    (('a', 'b'), 'b')
    """
    names = tuple(sorted(timings, key=lambda name: timings[name].median))
    ranked = tuple(timings[name] for name in names)
    candidates = names
    if ranked and all(len(timing.runs) >= FEWEST for timing in ranked):
        candidates = tuple(name for name, timing in zip(names, ranked, strict=True) if not _shorter(ranked[0], timing))
    return Ranking(names, ranked, candidates)


def _shorter(one: Timing, other: Timing) -> bool:
    """Return whether one timing is told from another, and is the shorter."""
    if other.median - one.median <= max(one.spread or 0.0, other.spread or 0.0):
        return False
    share = float(np.less.outer(one.runs, other.runs).mean())
    n, m = len(one.runs), len(other.runs)
    return share >= min(0.5 + _TWO_PERCENT * sqrt((n + m + 1) / (12 * n * m)), 1.0)


def check_counts(**counts: object) -> None:
    """Raise UnsupportedError for a count that is not a whole number from 1 on, by its name."""
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise UnsupportedError(f"{name} is a whole number from 1 on, not {count!r}")


def operations_of(shape: tuple[int, int, int]) -> int:
    """Return the multiplications and additions in a product of (rows, terms, columns).

    >>> operations_of((10, 100, 10))
    20000
    """
    rows, terms, columns = shape
    return 2 * rows * terms * columns


def timed(call: Callable[Given, Found], *given: Given.args, **options: Given.kwargs) -> tuple[Found, float]:
    """Return what a call returns, and the seconds it took."""
    began = perf_counter()
    made = call(*given, **options)
    return made, perf_counter() - began


def take_turns(
    names: Sequence[str], measure: Callable[[str], Found], rounds: int, keep_interrupted: bool = False
) -> dict[str, list[Found]]:
    """Return the measurements of each name, one in each round; each round goes through them in another order.

    Other load on the machine then meets all of them, and none always runs after the same one. Ctrl-C goes through, or
    ends the measurements where `keep_interrupted` is set and a round is complete.

    >>> take_turns(("a", "b"), str.upper, 2)
    {'a': ['A', 'A'], 'b': ['B', 'B']}
    """
    measured: dict[str, list[Found]] = {name: [] for name in names}
    shuffle = Random(0).shuffle
    complete = 0
    try:
        for _ in range(rounds):
            order = list(names)
            shuffle(order)
            made = {name: measure(name) for name in order}
            for name in names:
                measured[name].append(made[name])
            complete += 1
    except KeyboardInterrupt:
        if not (keep_interrupted and complete):
            raise
    return {name: each[:complete] for name, each in measured.items()}
