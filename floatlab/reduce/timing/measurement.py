"""Measures the times of several calls in turns, computes statistics, and finds the call that is clearly fastest."""

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
# The number of runs was tested with 6,000 pairs of timings from the same distribution (normal or lognormal). With 4
# runs, one of the two was wrongly called the fastest in 2.5 % of the pairs. With 5 runs, this happened in 1.2 %, with 6
# to 10 runs in at most 1.1 %, and with more runs in fewer pairs. With fewer than 4 runs, the rank test never
# distinguishes two timings.
FEWEST = 4
# A standard normal variable exceeds this quantile with a probability of 1 %, and in magnitude with 2 %.
_TWO_PERCENT = 2.326
_GIGA = 1e9

Given = ParamSpec("Given")
Found = TypeVar("Found")


class Timing(Record):
    """The seconds of each run, in order."""

    runs: tuple[float, ...]

    @property
    def total(self) -> float:
        """The sum of the times of all runs."""
        return sum(self.runs)

    @property
    def average(self) -> float:
        """The mean time of a run."""
        return self.total / len(self.runs)

    @property
    def cumulative(self) -> tuple[float, ...]:
        """The elapsed time at the end of each run.

        >>> Timing((1.0, 2.0, 4.0)).cumulative
        (1.0, 3.0, 7.0)
        """
        return tuple(np.cumsum(self.runs).tolist())

    @property
    def minimum(self) -> float:
        """The time of the fastest run."""
        return min(self.runs)

    @property
    def median(self) -> float:
        """The median time of a run."""
        return float(np.median(self.runs))

    @property
    def spread(self) -> float | None:
        """The interquartile range, which a few disturbed runs hardly change; None if there is only one run.

        >>> Timing((1.0, 3.0, 2.0, 9.0, 4.0)).spread, Timing((1.0,)).spread
        (2.0, None)
        """
        if len(self.runs) < 2:
            return None
        low, high = np.quantile(self.runs, (0.25, 0.75))
        return float(high - low)

    def gigaflops(self, operations: int) -> float | None:
        """Return the rate at the median time, in 10⁹ operations per second; None if the clock did not advance.

        >>> Timing((1e-3, 2e-3, 4e-3)).gigaflops(2 * 100**3)
        1.0
        """
        return operations / self.median / _GIGA if self.median else None


class Ranking(Record):
    """Timings sorted by their medians, the shortest first, and the timings that may be the fastest.

    Two timings are distinguished if two conditions hold: their medians differ by more than the larger spread of the
    two, and a rank test over all pairs of runs (Mann and Whitney, at 2 %) finds the runs of one timing shorter.
    """

    names: tuple[str, ...]
    timings: tuple[Timing, ...]
    # The first timing and those not distinguished from it; all timings if there are too few runs.
    candidates: tuple[str, ...]

    @property
    def fastest(self) -> str | None:
        """The name of the fastest timing, or None if several timings may be the fastest."""
        return self.candidates[0] if len(self.candidates) == 1 else None

    @property
    def runs(self) -> int:
        """The number of runs of the timing with the fewest runs."""
        return min((len(timing.runs) for timing in self.timings), default=0)

    @property
    def difference(self) -> float:
        """The largest difference between the medians of two candidates for the fastest timing."""
        medians = [timing.median for timing in self._of_candidates]
        return max(medians) - min(medians)

    @property
    def spread(self) -> float:
        """The largest spread among the candidates for the fastest timing."""
        return max(timing.spread or 0.0 for timing in self._of_candidates)

    @property
    def _of_candidates(self) -> list[Timing]:
        return [timing for name, timing in zip(self.names, self.timings, strict=True) if name in self.candidates]


def rank(timings: Mapping[str, Timing]) -> Ranking:
    """Sort timings by their medians; `candidates` of the result names the timings that may be the fastest.

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
    """Return whether the times in `one` are shorter than those in `other`, by two criteria.

    The medians must differ by more than the larger spread of the two, and the rank test of the runs must be significant
    at 2 %.
    """
    if other.median - one.median <= max(one.spread or 0.0, other.spread or 0.0):
        return False
    share = float(np.less.outer(one.runs, other.runs).mean())
    n, m = len(one.runs), len(other.runs)
    return share >= min(0.5 + _TWO_PERCENT * sqrt((n + m + 1) / (12 * n * m)), 1.0)


def check_counts(**counts: object) -> None:
    """Raise UnsupportedError for a count that is not a positive integer; the message names the count."""
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise UnsupportedError(f"{name} must be a whole number of at least 1, not {count!r}")


def operations_of(shape: tuple[int, int, int]) -> int:
    """Return the number of multiplications and additions in a product of shape (rows, terms, columns).

    >>> operations_of((10, 100, 10))
    20000
    """
    rows, terms, columns = shape
    return 2 * rows * terms * columns


def timed(call: Callable[Given, Found], *given: Given.args, **options: Given.kwargs) -> tuple[Found, float]:
    """Return the result of a call, and the seconds that it took."""
    began = perf_counter()
    made = call(*given, **options)
    return made, perf_counter() - began


def take_turns(
    names: Sequence[str], measure: Callable[[str], Found], rounds: int, keep_interrupted: bool = False
) -> dict[str, list[Found]]:
    """Measure each name once per round, in a new random order each time; return the measurements of each name.

    Because of the random order, other load on the machine affects all names equally, and no name always follows the
    same other name. If `keep_interrupted` is true and at least one round is complete, Ctrl-C only ends the
    measurements, and those of the complete rounds are returned. Otherwise KeyboardInterrupt propagates.

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
