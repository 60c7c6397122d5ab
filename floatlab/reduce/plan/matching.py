"""Short descriptions of a plan: one schedule, or a tree of parts, most of which have a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from floatlab.errors import PlanError
from floatlab.record import Record
from floatlab.reduce.plan.grouped_schedules import NUMPY, SERIAL, Blocked, Lanes, SplitK, Unrolled
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import PAIRWISE, Adjacent, Folded, Fused, Halving, Reversed, Schedule

_INNER = (SERIAL, PAIRWISE, NUMPY)
_OUTER = (SERIAL, PAIRWISE, Folded(), Adjacent(), Reversed())
_MOST_STRIDES, _MOST_SIZES, _MOST_SHARES = 8, 12, 17


def schedule_of(plan: Plan) -> Schedule | None:
    """Return a schedule that generates this plan, up to the order of operands within nodes.

    A limited number of candidates is tried, the simplest first. If none fits, the result is None.

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
    for count, lanes, outer in product(sizes, strides[:3], _OUTER[:2]):
        if 2 * lanes <= count:
            yield Blocked(count, Lanes(lanes, SERIAL, outer))
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
    """Return the ids of the nodes on the path from term 0 to the result."""
    path = [0]
    for id, node in enumerate(plan.nodes, plan.terms):
        if path[-1] in node:
            path.append(id)
    return path[1:]


def _strides(plan: Plan) -> list[int]:
    """Return candidates for the stride of lanes.

    In lanes with stride s, term s is the first number that is added to term 0. Each of the first few nodes on the path
    from term 0 to the result gives one candidate: the lowest term in the operands that do not contain term 0. Powers of
    two follow.
    """
    n, first = plan.terms, plan.first_terms
    met = (min(first[each] for each in plan.nodes[id - n] if first[each]) for id in _along(plan)[:_MOST_STRIDES])
    found = dict.fromkeys(met) | dict.fromkeys(1 << k for k in range(1, _MOST_STRIDES))
    return [count for count in found if 2 <= count < n]


def _sizes(plan: Plan) -> list[int]:
    """Return candidates for the length of blocks.

    The first candidates are the numbers of terms of the largest subtrees that contain term 0. Powers of two follow.
    """
    n, sizes = plan.terms, plan.sizes
    counts = dict.fromkeys(sizes[id] for id in _along(plan)[-_MOST_SIZES:])
    counts |= dict.fromkeys(1 << k for k in range(1, n.bit_length()))
    return [count for count in counts if 2 <= count < n]


# Outlines: trees whose leaves are subtrees, most of which have a simple schedule.

MOST_PARTS = 9


class OutlinePart(Record):
    """A subtree: its terms in ascending order, and a schedule of their additions.

    The schedule is None for a single term, or if `schedule_of` finds none.
    """

    terms: tuple[int, ...]
    schedule: Schedule | None

    @property
    def stride(self) -> int | None:
        """The difference between consecutive term numbers, or None if it varies, or if there is only one term."""
        gaps = {b - a for a, b in zip(self.terms, self.terms[1:], strict=False)}
        return gaps.pop() if len(gaps) == 1 else None


class Outline(Record):
    """A tree of parts. `tree` has nested tuples of indices into `parts`; with only one part, `tree` is 0."""

    tree: object
    parts: tuple[OutlinePart, ...]


def subtree(plan: Plan, root: int) -> tuple[tuple[int, ...], Plan]:
    """Return the terms of the subtree below `root` in ascending order, and the plan of this subtree.

    In this plan, the terms are numbered from 0.

    >>> subtree(Plan.from_tree(((0, 3), (1, 2))), 5)
    ((1, 2), Plan((0 1)))
    """
    n, inside, waiting = plan.terms, [], [root]
    while waiting:
        inside.append(waiting.pop())
        if inside[-1] >= n:
            waiting += plan.nodes[inside[-1] - n]
    inside.sort()
    place = {id: i for i, id in enumerate(inside)}
    terms = tuple(id for id in inside if id < n)
    nodes = tuple(tuple(place[each] for each in plan.nodes[id - n]) for id in inside if id >= n)
    return terms, Plan(len(terms), nodes)


def outline(plan: Plan, most: int = MOST_PARTS) -> Outline:
    """Return an outline of a plan: a tree of parts.

    A part for which no schedule is found is split into the operands of its last node. Of several such parts, the one
    with the most terms is split first. Splitting ends before the outline would have more than `most` parts.

    >>> found = outline(Plan.from_tree((((0, 1), 2), (3, (4, 5)))))
    >>> found.tree, [(part.terms, part.schedule.text) for part in found.parts]
    ((0, 1), [((0, 1, 2), 'serial'), ((3, 4, 5), 'reversed')])
    """
    n, first = plan.terms, plan.first_terms

    def part_of(id: int) -> OutlinePart:
        terms, part = subtree(plan, id)
        return OutlinePart(terms, schedule_of(part) if len(terms) > 1 else None)

    parts = {plan.root: part_of(plan.root)}
    while unknown := [id for id, part in parts.items() if id >= n and part.schedule is None]:
        id = max(unknown, key=lambda each: len(parts[each].terms))
        if len(parts) + len(plan.nodes[id - n]) - 1 > most:
            break
        del parts[id]
        parts |= {child: part_of(child) for child in plan.nodes[id - n]}
    listed: list[OutlinePart] = []

    def tree(id: int) -> object:
        if id not in parts:
            return tuple(tree(child) for child in sorted(plan.nodes[id - n], key=first.__getitem__))
        listed.append(parts[id])
        return len(listed) - 1

    return Outline(tree(plan.root), tuple(listed))
