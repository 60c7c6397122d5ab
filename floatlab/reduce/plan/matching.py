"""The simplest schedule that gives a plan: known forms, with sizes and strides taken from the plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from floatlab.errors import PlanError
from floatlab.reduce.plan.orders import Adjacent, Folded, Fused, Reversed, Schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import NUMPY, PAIRWISE, SERIAL, Blocked, Halving, Lanes, SplitK, Unrolled

_INNER = (SERIAL, PAIRWISE, NUMPY)
_OUTER = (SERIAL, PAIRWISE, Folded(), Adjacent(), Reversed())
_MOST_STRIDES, _MOST_SIZES, _MOST_SHARES = 8, 12, 17


def schedule_of(plan: Plan) -> Schedule | None:
    """Return the first schedule, from simple to composed, whose plan is the same up to sides; None if there is none.

    >>> schedule_of(Lanes(4).plan(64)).text, schedule_of(Plan.from_tree(((0, 3), (1, (2, 4)))))
    ('lanes(4)', None)
    """
    if plan.terms < 3:
        return SERIAL
    wanted, depth = plan.canonical(), plan.depth
    for schedule in _candidates(plan):
        try:
            batches = schedule.batches(plan.terms)
        except PlanError:
            continue
        if batches.nodes == len(plan.nodes) and batches.depth == depth and batches.plan().canonical() == wanted:
            return schedule
    return None


def _candidates(plan: Plan) -> Iterator[Schedule]:
    yield from (SERIAL, Reversed(), PAIRWISE, NUMPY, Adjacent(), Folded())
    widest = max(len(node) for node in plan.nodes)
    if widest > 2:
        yield from (Fused(widest), Fused(widest - 1), Blocked(widest, Fused(widest)))
    strides, sizes = _strides(plan), _sizes(plan)
    for count, outer in product(strides, _OUTER):
        yield Lanes(count, SERIAL, outer)
        yield Unrolled(count, Lanes(count, SERIAL, outer))
    for count, inner, outer in product(sizes, _INNER, _OUTER):
        yield Blocked(count, inner, outer)
    for count, outer in product(range(2, _MOST_SHARES), _OUTER):
        yield SplitK(count, SERIAL, outer)
    for count, inner in product(sizes, (SERIAL, NUMPY)):
        yield Halving(count, inner)
    for wide, narrow in product(strides, strides):
        if wide > narrow and wide % narrow == 0:
            for outer in _OUTER[:3]:
                yield Lanes(wide, SERIAL, Lanes(narrow, SERIAL, outer))
                yield Lanes(wide, SERIAL, Lanes(narrow, PAIRWISE, outer))
                yield Unrolled(wide, Lanes(narrow, SERIAL, outer))
                yield Unrolled(wide, Lanes(wide, SERIAL, Lanes(narrow, PAIRWISE, outer)))
                yield Blocked(wide, Lanes(narrow, SERIAL, outer))


def _along(plan: Plan) -> list[int]:
    """Return the ids of the nodes on the path from the first term to the result."""
    path = [0]
    for id, node in enumerate(plan.nodes, plan.terms):
        if path[-1] in node:
            path.append(id)
    return path[1:]


def _strides(plan: Plan) -> list[int]:
    """Return the distances that terms of a lane may have: the first ones that meet term 0, and powers of two."""
    n, first = plan.terms, plan.first_terms
    met = (min(first[each] for each in plan.nodes[id - n] if first[each]) for id in _along(plan)[:_MOST_STRIDES])
    found = dict.fromkeys(met) | dict.fromkeys(1 << k for k in range(1, _MOST_STRIDES))
    return [count for count in found if 2 <= count < n]


def _sizes(plan: Plan) -> list[int]:
    """Return the lengths that blocks may have: the sizes of the last subtrees with term 0, and powers of two."""
    n, sizes = plan.terms, plan.sizes
    counts = dict.fromkeys(sizes[id] for id in _along(plan)[-_MOST_SIZES:])
    counts |= dict.fromkeys(1 << k for k in range(1, n.bit_length()))
    return [count for count in counts if 2 <= count < n]
