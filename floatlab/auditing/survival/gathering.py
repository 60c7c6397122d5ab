"""Combines the results of jobs as they arrive, in any order, without keeping all of them.

Sums are combined in fixed groups, in the order of a tensor's regions. So the final results do not depend on the order
in which results arrive.
"""

from __future__ import annotations

from collections.abc import Iterable

from floatlab.arrays.round_trips.tally import merge
from floatlab.auditing.survival.jobs import Measured, Result
from floatlab.auditing.survival.outputs import merged_outputs
from floatlab.auditing.survival.scale_tally import merged_scales

_GROUP = 64  # the number of results that are combined at a time


def united(parts: Iterable[Measured]) -> Measured:
    """Combine the measured errors of several parts of a tensor, as if the parts were one part."""
    found = list(parts)
    if len(found) == 1:
        return found[0]
    return Measured(
        merge(each.tally for each in found),
        merged_scales(each.scales for each in found),
        merged_outputs(each.output for each in found),
    )


class Pile:
    """Combines records of measured errors in the order in which they are added.

    Every 64 records are combined into one. Every 64 combined records are combined again, and so on.
    """

    def __init__(self) -> None:
        """Start with nothing."""
        self._levels: list[list[Measured]] = []

    def add(self, found: Measured) -> None:
        """Add the measured errors of one part."""
        for level in self._levels:
            level.append(found)
            if len(level) < _GROUP:
                return
            found = united(level)
            level.clear()
        self._levels.append([found])

    def total(self) -> Measured:
        """Return the measured errors of all parts, combined as if they were one part."""
        return united(each for level in self._levels[::-1] for each in level)


class Gathering:
    """The results of a tensor's jobs for a group of recipes: added in any order, combined in the order of regions."""

    def __init__(self, jobs: int, recipes: int) -> None:
        """Expect the results of this number of jobs, each with this number of recipes."""
        self.left = jobs
        self.piles = [Pile() for _ in range(recipes)]
        self._next = 0
        self._early: dict[int, Result] = {}

    def add(self, order: int, result: Result) -> None:
        """Add the result of the job with the index `order`."""
        self.left -= 1
        self._early[order] = result
        while (ready := self._early.pop(self._next, None)) is not None:
            for pile, measured in zip(self.piles, ready.measured, strict=False):
                pile.add(measured)
            self._next += 1
