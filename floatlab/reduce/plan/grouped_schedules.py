"""Schedules that divide the terms into groups: blocks, lanes, the shares of split-K, unrolled loops.

`blocked(64, lanes(8), pairwise)` has blocks of 64 terms. Each block is split into eight lanes. The terms of a lane are
added serially. The sums of the lanes are added pairwise (see `Halving`). The sums of the blocks are also added
pairwise.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import PlanError
from floatlab.reduce.plan.batches import BatchBuilder
from floatlab.reduce.plan.schedules import (
    NAMED,
    PAIRWISE,
    Adjacent,
    Folded,
    Fused,
    Halving,
    Permuted,
    Reversed,
    Schedule,
    Serial,
    Sorted,
)


class Blocked(Schedule):
    """Adds blocks of `count` successive terms by one schedule, and the sums of the blocks by another.

    The last block may be shorter.

    >>> Blocked(3).plan(7)
    Plan(((((0 1) 2) ((3 4) 5)) 6))
    """

    count: int
    inner: Schedule = Serial()
    outer: Schedule = Serial()

    signature = (("a block length", None), ("schedule", Serial()), ("schedule", Serial()))

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the terms of all full blocks, then the terms of a shorter last block, then the sums of the blocks."""
        return _in_blocks(slots, self.count, self.inner, self.outer, into)


class SplitK(Schedule):
    """Splits the terms into at most `count` blocks, adds each block, and adds the sums, as split-K on GPUs does.

    The blocks have the same length, but the last block may be shorter.

    >>> SplitK(2).plan(6)
    Plan((((0 1) 2) ((3 4) 5)))
    """

    count: int
    inner: Schedule = Serial()
    outer: Schedule = Serial()

    signature = (("a number of shares", None), ("schedule", Serial()), ("schedule", Serial()))

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the terms of each block, then the sums of the blocks."""
        return _in_blocks(slots, -(-len(slots) // self.count), self.inner, self.outer, into)


class Lanes(Schedule):
    """SIMD lanes: lane j adds the terms j, j + count, j + 2·count, …; the sums of the lanes are added at the end.

    >>> Lanes(2).plan(5)
    Plan((((0 2) 4) (1 3)))
    """

    count: int
    inner: Schedule = Serial()
    outer: Schedule = PAIRWISE

    signature = (("a number of lanes", None), ("schedule", Serial()), ("schedule", PAIRWISE))

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the lanes that have one more term than the others, then the other lanes, then the sums of the lanes."""
        n, lanes = slots.shape
        rows, longer = divmod(n, self.count)
        if not rows:
            return self.outer.add_batches(slots, into)
        whole = slots[: rows * self.count].reshape(rows, self.count, lanes)
        parts = []
        if longer:
            more = np.concatenate([whole[:, :longer], slots[rows * self.count :][None]])
            parts.append(self.inner.add_batches(more.reshape(rows + 1, -1), into))
        parts.append(self.inner.add_batches(whole[:, longer:].reshape(rows, -1), into))
        return self.outer.add_batches(np.concatenate(parts).reshape(self.count, lanes), into)


class Interleaved(Schedule):
    """Adds the terms in several passes. Each pass is one node, which adds a part of every group of terms to the sum.

    A group is `group` successive terms; each pass takes `group / passes` of these terms. Some tensor cores add the
    products of 8-bit numbers in this order: they widen the numbers to binary16 and use their binary16 unit twice.

    >>> Interleaved(4, 2).plan(8)
    Plan(((0 1 4 5) 2 3 6 7))
    """

    group: int
    passes: int

    signature = (("a group length", None), ("a number of passes", None))

    def __post_init__(self) -> None:
        """Check that `passes` divides `group`."""
        super().__post_init__()
        if self.group % self.passes:
            raise PlanError(f"interleaved divides a group among its passes: {self.passes} does not divide {self.group}")

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add one node for each pass that has terms."""
        part = np.arange(len(slots)) % self.group // (self.group // self.passes)
        found: Array = slots[0]
        for number in range(self.passes):
            terms = slots[part == number]
            terms = terms if number else terms[1:]
            found = into.chains(found, terms[None]) if len(terms) else found
        return found


class Unrolled(Schedule):
    """Unrolled loops: the last n mod `count` of the n terms are added one by one to the sum of the other terms.

    >>> Unrolled(2, Lanes(2)).plan(5)
    Plan((((0 2) (1 3)) 4))
    """

    count: int
    inner: Schedule

    signature = (("a number of terms", None), ("schedule", None))

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the first terms with the schedule `inner`, then the last n mod `count` terms one by one."""
        main = len(slots) - len(slots) % self.count
        if not main:
            return Serial().add_batches(slots, into)
        return into.chains(self.inner.add_batches(slots[:main], into), slots[main:, None])


def _in_blocks(slots: Array, length: int, inner: Schedule, outer: Schedule, into: BatchBuilder) -> Array:
    n, lanes = slots.shape
    blocks, rest = divmod(n, length)
    parts = []
    if blocks:
        whole = slots[: blocks * length].reshape(blocks, length, lanes).transpose(1, 0, 2)
        parts.append(inner.add_batches(whole.reshape(length, -1), into).reshape(blocks, lanes))
    if rest:
        parts.append(inner.add_batches(slots[blocks * length :], into)[None])
    return outer.add_batches(np.concatenate(parts), into)


SERIAL = Serial()
NUMPY = Halving(128, Unrolled(8, Lanes(8)), 8)
NAMED |= {"pairwise": PAIRWISE, "numpy": NUMPY}
KINDS: dict[str, type[Schedule]] = {
    kind.word: kind
    for kind in (
        Serial, Reversed, Permuted, Sorted, Blocked, SplitK, Lanes, Interleaved, Unrolled, Halving, Adjacent, Folded,
        Fused,
    )
}  # fmt: skip
