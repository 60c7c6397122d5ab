"""Find the order in which a sum is computed, by probes with two huge numbers that absorb other terms.

A probe has a huge number at term i, its negative at term j, and 1 at every other term. A 1 that is added to one of the
two huge numbers before the huge numbers meet is lost, and every other 1 remains. The result is therefore the number of
terms outside the subtree in which terms i and j meet. The sizes of these subtrees, for all pairs of terms, determine
the whole tree. Take the path from term i to the result. Terms j and k join it at the same node if the subtree in which
i meets j is as large as the subtree in which i meets k.

P. Xie, Y. Gao and J. Xue, *FPRev: revealing floating-point accumulation orders* (USENIX ATC 2025; arXiv:2411.00442).
Unlike the paper, this module first tests whether a group of terms forms the same tree as a known group of the same
size. This takes one probe per node. For a node with two subtrees, a term of one subtree is probed with a term of the
other. The two terms must meet in a subtree with as many terms as both subtrees together.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import PlanError
from floatlab.reduce.plan.plan import Plan

# Takes two lists of terms of equal length, and returns the size of the subtree in which each pair meets.
Meetings = Callable[[Array, Array], Array]
PROBES_A_TERM = 64  # an order is too irregular if it needs more probes per term than this, on average
_SERIAL = -1  # stands for the root of a tree that adds its terms one by one in ascending order
_LONG = 32  # if testing a supposed tree takes more probes than this, _FIRST of them are made first
_FIRST = 4


class NotASum(PlanError):
    """The function does not add its terms along a tree."""


def plan_of(
    meetings: Meetings,
    terms: int,
    most_probes: int | None = None,
    supposed: Plan | None = None,
    from_last: bool | None = None,
    batch: int = 1,
) -> Plan:
    """Return the plan of a sum, given the sizes of the subtrees in which its terms meet.

    If all nodes add two numbers, a serial sum of n terms takes about n probes, and so does a sum with the plan
    `supposed`. A sum with many equal parts, such as a pairwise sum, takes about 2·n probes. `from_last` says whether
    the last terms are deeper in the tree than the first terms. `from_last` is None if this is not known. `meetings`
    answers `batch` probes at the cost of one. Raises NotASum if no tree has these sizes, or after `most_probes` probes.

    >>> halves = {(0, 1): 2, (2, 3): 2}
    >>> plan_of(lambda i, j: np.array([halves.get(pair, 4) for pair in zip(i.tolist(), j.tolist())]), 4).text
    '((0 1) (2 3))'
    """
    return _Search(meetings, terms, most_probes, batch).plan(supposed, from_last)


class _Shape(NamedTuple):
    """The form of a known tree over terms 0 … m−1.

    A tree has this form if, for each k, the terms first[k] and second[k] meet in a subtree of sizes[k] terms.
    """

    nodes: list[tuple[int, ...]]
    first: Array
    second: Array
    sizes: Array


# A search for subtrees: it yields other searches, is sent the root ids that they return, and returns its own root ids.
_Forest = Generator["_Forest", list[int], list[int]]


class _Search:
    """The search for a plan: the nodes found so far and, for each number of terms, a tree that is already known."""

    def __init__(self, meetings: Meetings, terms: int, most_probes: int | None, batch: int) -> None:
        self.meetings, self.terms, self.left = meetings, terms, most_probes
        self.nodes: list[tuple[int, ...]] = []
        self.long = max(_LONG, 4 * batch)
        # Maps a number of terms to a known tree of this size. The tree is stored as its root until its form is needed.
        self.known: dict[int, int | _Shape] = {}

    def plan(self, supposed: Plan | None, from_last: bool | None) -> Plan:
        """Return the whole plan; an explicit stack is used because a tree may be as deep as its number of terms."""
        n = self.terms
        if supposed is not None and n > 2:
            self.known[n] = _shape_of(supposed)
            if self._matched_roots(np.arange(n)[None], n + 1) != [None]:
                return supposed
            del self.known[n]
        if from_last is None and n > 2:
            near, far = self._ask(np.array([0, n - 1]), np.array([1, n - 2]))
            from_last = bool(far < near)
        stack: list[_Forest] = [self._forest(np.arange(n), n + 1, bool(from_last))]
        answer: list[int] | None = None
        while stack:
            try:
                deeper = stack[-1].send(answer)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as done:
                stack.pop()
                answer = done.value
            else:
                stack.append(deeper)
                answer = None
        assert answer is not None
        if answer != [n + len(self.nodes) - 1]:
            raise NotASum("some terms are never added to the others")
        return Plan(n, tuple(self.nodes))

    def _forest(self, terms: Array, parent: int, from_last: bool) -> _Forest:
        """Return the ids of the roots of the subtrees that `terms` form; these subtrees are operands of one node.

        `parent` is the number of terms below this node. The whole sum has no node above it, and its `parent` is n + 1.
        The search follows the path from the first term to the root, or from the last term if `from_last` is true.
        """
        roots: list[int] = []
        while len(terms):
            if len(terms) == 1:
                return [*roots, int(terms[0])]
            (supposed,) = self._matched_roots(terms[None], parent)
            if supposed is not None:
                return [*roots, supposed]
            pivot, others = (int(terms[-1]), terms[:-1]) if from_last else (int(terms[0]), terms[1:])
            sizes = self._ask(np.full(len(others), pivot), others)
            self._check(pivot, others, sizes, parent)
            order = sizes.argsort(kind="stable")
            ordered, others = sizes[order], others[order]
            below = int(ordered.searchsorted(parent))
            root = yield self._path(pivot, others[:below], ordered[:below], from_last)
            roots += root
            terms = others[below:]
        return roots

    def _check(self, pivot: int, others: Array, sizes: Array, parent: int) -> None:
        low, high = sizes.min(), sizes.max()
        if low < 2 or high > parent:
            wrong = (sizes < 2) | (sizes > parent)
            raise NotASum(f"terms {pivot} and {int(others[wrong][0])} do not meet in a sum")
        if len(others) > 1 and high == 2:
            raise NotASum("a huge number absorbs no terms: the function adds exactly, or in too wide an accumulator")

    def _path(self, pivot: int, others: Array, sizes: Array, from_last: bool) -> _Forest:
        """Create the nodes on the path from a term, the pivot, to the root of a subtree; return this root.

        The terms `others` join the path in ascending order of `sizes`.
        """
        if not len(others):
            return [pivot]
        ends = np.append(sizes[1:] != sizes[:-1], True).nonzero()[0] + 1
        covered = ends + 1
        if (sizes[ends - 1] != covered).any():
            bad = int(np.flatnonzero(sizes[ends - 1] != covered)[0])
            raise NotASum(f"{covered[bad]} terms meet term {pivot} where the result counts {sizes[ends[bad] - 1]}")
        single = ends == np.arange(1, len(ends) + 1)  # terms that are added one by one form a chain
        start = int(np.count_nonzero(single))
        current = self._chain(pivot, others[:start].tolist()) if start else pivot
        if start == len(others):
            return [current]
        # If most terms join the path at its last node, the pivot is near the root, so start at the other end next time.
        turned = from_last ^ (4 * int(ends[-1] - ends[-2] if len(ends) > 1 else ends[-1]) > 3 * len(others) > 6)
        covered = covered[start:]
        roots: list[list[int]] = [[]] * len(covered)
        places: dict[int, list[int]] = {}
        groups: list[Array] = []
        for place, (low, high) in enumerate(pairwise([start, *ends[start:].tolist()])):
            groups.append(others[low:high])
            places.setdefault(high - low, []).append(place)
        joined = 0
        for size in sorted(places):
            first, *rest = places[size]
            if size == 1:
                for place in places[size]:
                    roots[place] = groups[place].tolist()
            else:
                roots[first] = yield self._forest(groups[first], int(covered[first]), turned)
                alike = self._group_roots([groups[place] for place in rest], covered[rest], len(roots[first]) == size)
                for place, found in zip(rest, alike, strict=True):
                    roots[place] = found or (yield self._forest(groups[place], int(covered[place]), turned))
            while joined < len(roots) and roots[joined]:
                self.nodes.append((current, *roots[joined]))
                current = self.known[int(covered[joined])] = self.terms + len(self.nodes) - 1
                joined += 1
        return [current]

    def _chain(self, pivot: int, others: list[int]) -> int:
        """Create the nodes that add `others` to a pivot one by one; return the id of the last node."""
        first = self.terms + len(self.nodes)
        self.nodes.append((pivot, others[0]))
        self.nodes += zip(range(first, first + len(others) - 1), others[1:], strict=True)
        is_serial = pivot < others[0] and others == sorted(others)
        for size in range(2, len(others) + 2):
            self.known[size] = _SERIAL if is_serial else first + size - 2
        return first + len(others) - 1

    def _group_roots(self, groups: list[Array], parents: Array, is_flat: bool) -> list[list[int]]:
        """Return a list of roots for each group of terms.

        If the terms of a group form the known tree with this number of terms, the group's list has one root.

        If `is_flat` is true, the test is instead whether all terms of group k are children of one node, which has
        `parents[k]` terms below it. The list of a group that passes this test has all terms of the group as roots. The
        list of a group that fails is empty.
        """
        if not groups:
            return []
        stacked = np.stack(groups)
        if not is_flat:
            return [[] if root is None else [root] for root in self._matched_roots(stacked, int(parents[0]))]
        first, second = np.triu_indices(stacked.shape[1], 1)
        met = self._ask(stacked[:, first].reshape(-1), stacked[:, second].reshape(-1)).reshape(len(stacked), -1)
        fits = (met == parents[:, None]).all(axis=1).tolist()
        return [group.tolist() if flat else [] for group, flat in zip(groups, fits, strict=True)]

    def _matched_roots(self, groups: Array, parent: int) -> list[int | None]:
        """Return, for each row of `groups`, the root if the row's terms form the known tree of this size, else None.

        The size is the number of terms in a row. The terms of each row are below a node that also has other terms below
        it. `parent` is the smallest number of terms below these nodes. Rows are tested only if `parent` exceeds the
        size.
        """
        count, m = groups.shape
        shape = self._shape(m) if m < parent and m > 2 else None
        if m == 2 < parent and count > 1:
            shape = _Shape([(0, 1)], np.array([0]), np.array([1]), np.array([2]))
        if shape is None:
            return [None] * count
        last = len(shape.sizes)
        if last <= self.long:
            fits = self._has_form(groups, shape)
        else:
            fits = self._has_form(groups, shape, slice(last - _FIRST, last))
            if fits.any():
                fits[fits] = self._has_form(groups[fits], shape, slice(0, last - _FIRST))
        found: list[int | None] = []
        for group, is_such in zip(groups.tolist(), fits.tolist(), strict=True):
            if is_such:
                next_id = self.terms + len(self.nodes)
                ids = [*group, *range(next_id, next_id + len(shape.nodes))].__getitem__
                self.nodes += [tuple(map(ids, node)) for node in shape.nodes]
            found.append(self.terms + len(self.nodes) - 1 if is_such else None)
        return found

    def _has_form(self, groups: Array, shape: _Shape, part: slice = slice(None)) -> Array:
        """Return, for each row of `groups`, whether its terms are added along a tree of the form `shape`.

        `part` selects the pairs of terms that are probed.
        """
        first, second = groups[:, shape.first[part]], groups[:, shape.second[part]]
        met = self._ask(first.reshape(-1), second.reshape(-1)).reshape(first.shape)
        fits: Array = (met == shape.sizes[part]).all(axis=1)
        return fits

    def _shape(self, m: int) -> _Shape | None:
        """Return the form of the known tree of m terms, or None if no such tree is known."""
        known = self.known.get(m)
        if not isinstance(known, int):
            return known
        if known == _SERIAL:
            rest = np.arange(1, m)
            serial: list[tuple[int, ...]] = [(0, 1), *zip(range(m, 2 * m - 2), range(2, m), strict=True)]
            self.known[m] = shape = _Shape(serial, np.zeros_like(rest), rest, rest + 1)
            return shape
        ids, terms, known_nodes = [known], self.terms, self.nodes
        for id in ids:  # the list grows here
            if id >= terms:
                ids += known_nodes[id - terms]
        ids.sort()
        local = dict(zip(ids, range(len(ids)), strict=True)).__getitem__  # sorted ids begin with those of terms
        nodes: list[tuple[int, ...]] = [tuple(map(local, known_nodes[id - terms])) for id in ids[m:]]
        self.known[m] = shape = _shape_over(m, nodes)
        return shape

    def _ask(self, first: Array, second: Array) -> Array:
        if self.left is not None:
            self.left -= len(first)
            if self.left < 0:
                raise NotASum("the order is too irregular: finding it takes too many probes")
        return self.meetings(first, second)


@lru_cache(maxsize=64)
def _shape_of(plan: Plan) -> _Shape:
    return _shape_over(plan.terms, [*plan.nodes])


def _shape_over(m: int, nodes: list[tuple[int, ...]]) -> _Shape:
    """Return the form of a tree with these nodes over terms 0 … m−1."""
    lowest, sizes = list(range(m)), [1] * m
    pairs: list[tuple[int, int, int]] = []
    for node in nodes:
        if len(node) == 2:
            one, other = node
            first, size = lowest[one], sizes[one] + sizes[other]
            pairs.append((first, lowest[other], size))
        else:
            first, size = lowest[node[0]], sum(map(sizes.__getitem__, node))
            pairs += ((lowest[one], lowest[other], size) for one, other in combinations(node, 2))
        sizes.append(size)
        lowest.append(first)  # any term of the subtree is suitable
    return _Shape(nodes, *np.array(pairs).T)
