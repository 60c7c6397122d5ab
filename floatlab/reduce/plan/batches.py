"""Orders of addition as batches, for computing with arrays: one batch describes many nodes of a plan.

Terms and results are stored in numbered slots; slots 0 … n−1 hold the n terms. A batch has `lanes` independent chains
of additions. Chain l starts with the number in slot `first[l]`. Step k of this chain is one node of the plan. This node
adds the numbers in the slots `rest[k, :, l]`, one or more, to the chain's sum so far. Each batch stores the results of
its chains in the next free slots; partial sums within a chain have no slot. A serial sum of ten million terms is thus a
single batch with one chain. A pairwise sum of as many terms is about two dozen batches of one step each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record
from floatlab.reduce.plan.plan import Plan


class Batch(Record):
    """Parallel chains of additions.

    `first` and `rest` hold slot numbers (see the module's docstring). `first`, of shape (lanes,), has the slot of each
    chain's first number. `rest`, of shape (steps, operands, lanes), has the slots of the numbers that each step adds.
    """

    first: Array
    rest: Array

    @property
    def lanes(self) -> int:
        """The number of chains."""
        return len(self.first)

    @property
    def steps(self) -> int:
        """The number of nodes in each chain."""
        return len(self.rest)


class Batches(Record):
    """The batches that compute a sum of `terms` terms; `root` is the slot of the result."""

    terms: int
    each: tuple[Batch, ...]
    root: int

    @property
    def slots(self) -> int:
        """The number of slots for results: one for each chain."""
        return sum(batch.lanes for batch in self.each)

    @property
    def nodes(self) -> int:
        """The number of nodes in all batches."""
        return sum(batch.lanes * batch.steps for batch in self.each)

    def walk(self) -> Iterator[tuple[Batch, slice, Array]]:
        """Yield each batch, the slots of its results, and an array (steps, lanes) of its nodes' ids in the plan."""
        id = self.terms
        for batch, results in self._with_results():
            end = id + batch.steps * batch.lanes
            yield batch, results, np.arange(id, end).reshape(batch.steps, batch.lanes)
            id = end

    def _with_results(self) -> Iterator[tuple[Batch, slice]]:
        """Yield each batch, and the slots of its results."""
        slot = self.terms
        for batch in self.each:
            yield batch, slice(slot, slot + batch.lanes)
            slot += batch.lanes

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path from a term to the result."""
        levels = np.zeros(self.terms + self.slots, np.int64)
        for batch, results in self._with_results():
            # The path from an operand of step k to the chain's result passes through step k and all later steps.
            entered = levels[batch.rest].max(axis=1) + np.arange(batch.steps, 0, -1)[:, None]
            levels[results] = np.maximum(levels[batch.first] + batch.steps, entered.max(axis=0))
        return int(levels[self.root])

    def arguments(self) -> Iterator[Array]:
        """Yield, for each batch, the ids of the terms and nodes that its nodes add, in an array (nodes, operands)."""
        of_slot = np.arange(self.terms + self.slots)
        for batch, results, ids in self.walk():
            chain = np.concatenate([of_slot[batch.first][None], ids[:-1]])
            arguments = np.concatenate([chain[:, None], of_slot[batch.rest]], axis=1).transpose(0, 2, 1)
            yield arguments.reshape(-1, arguments.shape[-1])
            of_slot[results] = ids[-1]

    def plan(self) -> Plan:
        """Return the plan, with the nodes numbered batch by batch, step by step and lane by lane."""
        nodes: list[tuple[int, ...]] = []
        for arguments in self.arguments():
            nodes += map(tuple, arguments.tolist())
        return Plan(self.terms, tuple(nodes))


class BatchBuilder:
    """Collects the batches of a schedule."""

    def __init__(self, terms: int) -> None:
        """Start with no batches; slots 0 … `terms` − 1 hold the terms."""
        self.terms, self.slots = terms, terms
        self.each: list[Batch] = []

    def chains(self, first: Array, rest: Array) -> Array:
        """Append a batch, and return the slots of its results; if `rest` has no steps, only return `first`."""
        if not len(rest):
            return first
        self.each.append(Batch(first, rest))
        self.slots += len(first)
        return np.arange(self.slots - len(first), self.slots)

    def tree(self, plan: Plan, slots: Array) -> Array:
        """Append batches that add up each column of `slots` in the order of a plan; return the slots of the sums."""
        n, lanes = plan.terms, slots.shape[1]
        table = np.empty((n + len(plan.nodes), lanes), np.int64)
        table[:n] = slots
        for chains in _chains_by_level(plan):
            nodes = [[plan.nodes[id - n] for id in chain] for chain in chains]
            first = table[[chain[0][0] for chain in nodes]].reshape(-1)
            rest = np.array([[node[1:] for node in chain] for chain in nodes]).transpose(1, 2, 0)
            ends = self.chains(first, table[rest].reshape(*rest.shape[:2], -1))
            table[[chain[-1] for chain in chains]] = ends.reshape(len(chains), lanes)
        return np.asarray(table[plan.root])

    def finished(self, root: Iterable[int]) -> Batches:
        """Return the collected batches. The only element of `root` is the slot of the result."""
        (slot,) = root
        return Batches(self.terms, tuple(self.each), int(slot))


def _chains_by_level(plan: Plan) -> list[list[list[int]]]:
    """Split the nodes of a plan into chains, and return groups of chains; each group becomes one batch.

    In a chain, every node after the first one adds only terms to the result of the previous node, which is its first
    operand. All nodes of a chain have the same number of operands. The level of a chain is one more than the highest
    level of the operands of its first node; terms have level 0. The chains of a group have the same level, the same
    length and the same number of operands per node.
    """
    n, nodes = plan.terms, plan.nodes
    chains: dict[int, list[int]] = {}  # maps the id of a chain's last node to the chain
    levels = [0] * (n + len(nodes))
    for id, node in enumerate(nodes, n):
        chain = chains.get(node[0])
        if chain is not None and len(nodes[chain[0] - n]) == len(node) and all(child < n for child in node[1:]):
            chains[id] = chains.pop(node[0])
            chains[id].append(id)
            levels[id] = levels[node[0]]
        else:
            chains[id] = [id]
            levels[id] = 1 + max(levels[child] for child in node)
    alike: dict[tuple[int, int, int], list[list[int]]] = {}
    for id, chain in chains.items():
        alike.setdefault((levels[id], len(chain), len(nodes[chain[0] - n])), []).append(chain)
    return [alike[shape] for shape in sorted(alike)]
