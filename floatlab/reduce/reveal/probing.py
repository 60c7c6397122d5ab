"""The order in which a sum is really computed, found from outside: masks that swamp, and what survives them.

Put a huge number at term i, its opposite at term j, and one unit everywhere else. Units that are added to either of the
two before these meet are lost in it; the others survive. So the result counts the terms outside the subtree where i and
j meet, and the sizes of those subtrees tell the whole tree: along the way from any one term to the result, the terms
that meet it in a subtree of the same size come in together.

P. Xie, Y. Gao and J. Xue, *FPRev: revealing floating-point accumulation orders* (USENIX ATC 2025; arXiv:2411.00442).
Probes go out in batches, which targets that compute many sums at once answer together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import PlanError
from floatlab.reduce.plan.plan import Plan

# One term, and others: the size of the subtree where it meets each of them.
Meetings = Callable[[int, Array], Array]


class NotASum(PlanError):
    """What was probed does not add its terms up along a tree."""


def plan_of(meetings: Meetings, terms: int, most_probes: int | None = None) -> Plan:
    """Return the plan of a sum, given the sizes of the subtrees in which its terms meet.

    Takes about one probe a term and level of branching: n − 1 for a serial sum, n·log n for a pairwise one. Raises
    NotASum where the sizes are those of no tree, or after `most_probes`.

    >>> halves = {frozenset((0, 1)): 2, frozenset((2, 3)): 2}
    >>> plan_of(lambda i, others: np.array([halves.get(frozenset((i, int(j))), 4) for j in others]), 4).text
    '((0 1) (2 3))'
    """
    return _Search(meetings, terms, most_probes).plan()


class _Search:
    """Groups of terms that are still to be ordered, and the nodes found so far."""

    def __init__(self, meetings: Meetings, terms: int, most_probes: int | None) -> None:
        self.meetings, self.terms, self.left = meetings, terms, most_probes
        self.nodes: list[list[int]] = []

    def plan(self) -> Plan:
        """Find the whole plan."""
        (root,) = self._forest(np.arange(self.terms), self.terms + 1)
        if root != self.terms + len(self.nodes) - 1:
            raise NotASum("the terms do not all come together")
        return Plan(self.terms, tuple(map(tuple, self.nodes)))

    def _forest(self, terms: Array, parent: int) -> list[int]:
        """Return the ids of the subtrees that terms form below a node with `parent` terms.

        A stack of its own, since a tree may be as deep as it has terms.
        """
        stack: list[_Frame] = [_Frame(terms, parent)]
        while True:
            frame = stack[-1]
            if frame.groups:
                size, group = frame.groups[-1]
                stack.append(_Frame(group, size))
            elif len(frame.rest):
                self._open(frame)
                if not frame.groups:
                    frame.close()
            else:
                stack.pop()
                if not stack:
                    return frame.roots
                self._join(stack[-1], frame.roots)

    def _open(self, frame: _Frame) -> None:
        """Follow one of the terms that are left on its way up to the frame's node."""
        rest = frame.rest
        if len(rest) == 1:
            frame.start(int(rest[0]), rest[:0], [])
            return
        i, others, sizes = self._pivot(rest)
        if (sizes < 2).any() or (sizes > frame.parent).any():
            raise NotASum(f"terms {i} and {int(others[(sizes < 2) | (sizes > frame.parent)][0])} do not meet in a sum")
        if len(rest) > 2 and (sizes == 2).all():
            raise NotASum("nothing is lost beside huge numbers: it adds exactly, or in more digits than they can hide")
        own = sizes < frame.parent
        groups = [(int(size), others[sizes == size]) for size in np.unique(sizes[own])]
        covered = 1
        for size, group in groups:
            covered += len(group)
            if covered != size:
                raise NotASum(f"{covered} terms meet term {i} where the result says {size}")
        frame.start(i, others[~own], groups[::-1])

    def _pivot(self, rest: Array) -> tuple[int, Array, Array]:
        """Return a term, the others, and where it meets them: the first, or the last if that lies deeper."""
        first, last = int(rest[0]), int(rest[-1])
        if len(rest) > 2:
            near, far = self._ask(first, rest[1:2])[0], self._ask(last, rest[-2:-1])[0]
            if far < near:
                return last, rest[:-1], self._ask(last, rest[:-1])
        return first, rest[1:], self._ask(first, rest[1:])

    def _ask(self, i: int, others: Array) -> Array:
        if self.left is not None:
            self.left -= len(others)
            if self.left < 0:
                raise NotASum("the order is too irregular to be found in so many probes")
        return self.meetings(i, others)

    def _join(self, frame: _Frame, subtrees: list[int]) -> None:
        """Add the subtrees of the frame's next group to what its term has been added to."""
        self.nodes.append([frame.current, *subtrees])
        frame.current = self.terms + len(self.nodes) - 1
        frame.groups.pop()
        if not frame.groups:
            frame.close()


class _Frame:
    """One group of terms on its way to becoming subtrees."""

    def __init__(self, rest: Array, parent: int) -> None:
        self.rest, self.parent = rest, parent
        self.roots: list[int] = []
        self.groups: list[tuple[int, Array]] = []  # the next one last
        self.current = -1

    def start(self, term: int, rest: Array, groups: list[tuple[int, Array]]) -> None:
        """Follow a term."""
        self.current, self.rest, self.groups = term, rest, groups

    def close(self) -> None:
        """Take what the term has become for a subtree."""
        self.roots.append(self.current)
