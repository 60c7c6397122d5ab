"""If a class has too few elements to be probed, guess its tree from the tree of another class.

A class is a set of elements of a product that are computed in the same way. Libraries divide the terms of a product
into blocks, and call a routine that adds each block. If a class has too few elements for probing all terms, only one
block of each length is probed. The guess is that the blocks are combined as in another class. A replay has to confirm
this guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial

from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.probes import ProbeReader
from floatlab.reduce.reveal.probing import PROBES_A_TERM, NotASum, plan_of


def blocks_of(plan: Plan) -> list[tuple[int, int]]:
    """Return the blocks of a plan, the last block first: the id of each block's node, and the block's first term.

    The terms of a block are adjacent, and the plan adds the sums of the blocks from first to last.

    >>> from floatlab.reduce.plan.grouped_schedules import Blocked, Lanes
    >>> [first for id, first in blocks_of(Blocked(4, Lanes(2)).plan(10))]
    [8, 4, 0]
    """
    n, sizes, low = plan.terms, plan.sizes, plan.first_terms
    high = plan.accumulate(range(n), max)
    blocks: list[tuple[int, int]] = []
    id = plan.root
    while id >= n:
        head, *rest = sorted(plan.nodes[id - n], key=low.__getitem__)
        if not all(1 < sizes[child] == high[child] - low[child] + 1 for child in rest):
            break
        blocks += [(child, low[child]) for child in reversed(rest)]
        id = head
    return [*blocks, (id, low[id])]


def assemble(plan: Plan, inner: Callable[[int], Plan]) -> Plan:
    """Return a plan that combines blocks as `plan` does, but may add the terms of each block in another order.

    A block of n terms is added as in the plan `inner(n)`.

    >>> from floatlab.reduce.plan.schedules import PAIRWISE
    >>> from floatlab.reduce.plan.grouped_schedules import Blocked
    >>> assemble(Blocked(4).plan(8), PAIRWISE.plan).text
    '(((0 1) (2 3)) ((4 5) (6 7)))'
    """
    n, sizes = plan.terms, plan.sizes
    nodes: list[tuple[int, ...]] = []
    made: dict[int, int] = {}
    for id, first in reversed(blocks_of(plan)):
        block = inner(sizes[id])
        m, start = block.terms, n + len(nodes)
        nodes += (tuple(first + a if a < m else start + a - m for a in node) for node in block.nodes)
        made[id] = n + len(nodes) - 1 if m > 1 else first
    for id, node in enumerate(plan.nodes, n):
        if all(child in made for child in node):
            nodes.append(tuple(made[child] for child in node))
            made[id] = n + len(nodes) - 1
    return Plan(n, tuple(nodes))


def assemble_probed(reader: ProbeReader, plans: list[Plan], most: int) -> Iterator[Plan]:
    """For each plan, probe one block of each length, and yield a plan that combines such blocks in the same way.

    Every block gets the order of the probed block of its length. A plan is skipped in three cases: all of its blocks
    have different lengths, so probing saves nothing; the probed blocks have more than `most` terms in all; a probed
    block is not added in a fixed order.
    """
    for known in plans:
        blocks = blocks_of(known)
        starts = {known.sizes[id]: first for id, first in reversed(blocks)}

        if len(starts) < len(blocks) and sum(starts) <= most:
            with suppress(NotASum):
                yield assemble(known, cache(partial(_block, reader, starts)))


def _block(reader: ProbeReader, starts: dict[int, int], length: int) -> Plan:
    start, most = starts[length], PROBES_A_TERM * length + 1000
    return plan_of(lambda i, j: reader.meetings(i + start, j + start), length, most, batch=reader.batch)
