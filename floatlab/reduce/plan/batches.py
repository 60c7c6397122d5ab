"""How a plan is walked over arrays: steps of many nodes at once, in place of a tuple per node.

A step is `lanes` chains side by side. Chain l starts with the number in slot `first[l]`, and link k adds to what it
has the numbers in the slots `rest[k, :, l]`: one of them, or several in a single node. The terms are in the slots
0 … n−1, and each step puts the ends of its chains into the next free slots; the numbers in between have none. So a
serial sum of ten million terms is one step of one chain, and a pairwise one two dozen steps of one link.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record
from floatlab.reduce.plan.plan import Plan


class Batch(Record):
    """Chains side by side: `first` (lanes,) and `rest` (links, operands beside the chain's own, lanes) are slots."""

    first: Array
    rest: Array

    @property
    def lanes(self) -> int:
        """How many chains there are."""
        return len(self.first)

    @property
    def links(self) -> int:
        """How many nodes a chain has."""
        return len(self.rest)


class Batches(Record):
    """The steps of a sum of `terms` terms; `root` is the slot of the result."""

    terms: int
    each: tuple[Batch, ...]
    root: int

    @property
    def slots(self) -> int:
        """How many results of chains there are."""
        return sum(step.lanes for step in self.each)

    @property
    def nodes(self) -> int:
        """How many nodes there are: the roundings, products apart."""
        return sum(step.lanes * step.links for step in self.each)

    @property
    def depth(self) -> int:
        """How many nodes the longest way from a term to the result passes."""
        levels = np.zeros(self.terms + self.slots, np.int64)
        slot = self.terms
        for step in self.each:
            # A number that enters at link k is at the end of all links from there on.
            entered = levels[step.rest].max(axis=1) + np.arange(step.links, 0, -1)[:, None]
            levels[slot : slot + step.lanes] = np.maximum(levels[step.first] + step.links, entered.max(axis=0))
            slot += step.lanes
        return int(levels[self.root])

    def plan(self) -> Plan:
        """Return the plan, node by node: of a step link by link, and of a link lane by lane."""
        ids = np.arange(self.terms + self.slots)
        nodes: list[tuple[int, ...]] = []
        slot = self.terms
        for step in self.each:
            made = self.terms + len(nodes) + np.arange(step.links * step.lanes).reshape(step.links, step.lanes)
            chain = np.concatenate([ids[step.first][None], made[:-1]])
            arguments = np.concatenate([chain[:, None], ids[step.rest]], axis=1).transpose(0, 2, 1)
            nodes += map(tuple, arguments.reshape(-1, arguments.shape[-1]).tolist())
            ids[slot : slot + step.lanes] = made[-1]
            slot += step.lanes
        return Plan(self.terms, tuple(nodes))


class Builder:
    """Collects steps: what a schedule calls for each set of chains."""

    def __init__(self, terms: int) -> None:
        """Start with the terms in the first slots."""
        self.terms, self.slots = terms, terms
        self.each: list[Batch] = []

    def chains(self, first: Array, rest: Array) -> Array:
        """Add chains and return the slots of their results; chains without links are their own."""
        if not len(rest):
            return first
        self.each.append(Batch(first, rest))
        self.slots += len(first)
        return np.arange(self.slots - len(first), self.slots)

    def tree(self, plan: Plan, slots: Array) -> Array:
        """Add a plan on slots (terms, lanes), chains alike together, and return the slots of its results."""
        n, lanes = plan.terms, slots.shape[1]
        table = np.empty((n + len(plan.nodes), lanes), np.int64)
        table[:n] = slots
        for chains in _chains_by_level(plan):
            first = table[[chain[0][0] for chain in chains]].reshape(-1)
            rest = np.array([[link[1:] for link in chain] for chain in chains]).transpose(1, 2, 0)
            ends = self.chains(first, table[rest].reshape(*rest.shape[:2], -1))
            table[[chain[-1].id for chain in chains]] = ends.reshape(len(chains), lanes)
        root: Array = table[plan.root]
        return root

    def finished(self, root: Iterable[int]) -> Batches:
        """Return the steps, the result being in a slot."""
        (slot,) = root
        return Batches(self.terms, tuple(self.each), int(slot))


class _Link(tuple[int, ...]):
    """The arguments of a node, which knows its own id."""

    id: int


def _chains_by_level(plan: Plan) -> Iterable[list[list[_Link]]]:
    """Give the nodes of a plan as chains of links, each of which adds terms to the one before; alike ones together."""
    n = plan.terms
    chains: dict[int, list[_Link]] = {}  # by the id of the last link
    levels = [0] * (n + len(plan.nodes))
    for id, node in enumerate(plan.nodes, n):
        link = _Link(node)
        link.id = id
        chain = chains.get(node[0])
        if chain is not None and len(chain[0]) == len(node) and all(each < n for each in node[1:]):
            chains[id] = chains.pop(node[0])
            chains[id].append(link)
            levels[id] = levels[node[0]]
        else:
            chains[id] = [link]
            levels[id] = 1 + max(levels[each] for each in node)
    alike: dict[tuple[int, int, int], list[list[_Link]]] = {}
    for id, chain in chains.items():
        alike.setdefault((levels[id], len(chain), len(chain[0])), []).append(chain)
    return [alike[key] for key in sorted(alike)]
