"""A plan in few words: the tree down to subtrees with a known schedule, and the terms and schedule of each of these."""

from __future__ import annotations

from floatlab.record import Record
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.orders import Schedule
from floatlab.reduce.plan.plan import Plan

MOST_PARTS = 9


class OutlinePart(Record):
    """A subtree: its terms, ascending, and the schedule that orders them; None where no simple one does."""

    terms: tuple[int, ...]
    schedule: Schedule | None

    @property
    def stride(self) -> int | None:
        """How far apart its terms are; None where that differs."""
        gaps = {b - a for a, b in zip(self.terms, self.terms[1:], strict=False)}
        return gaps.pop() if len(gaps) == 1 else None


class Outline(Record):
    """A tree of part numbers, as nested tuples, and the parts."""

    tree: object
    parts: tuple[OutlinePart, ...]


def subtree(plan: Plan, root: int) -> tuple[tuple[int, ...], Plan]:
    """Return the terms below an id, and their own plan.

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
    """Return a plan's outline of at most so many parts: what has no schedule of its own is taken apart, largest first.

    >>> found = outline(Plan.from_tree((((0, 1), 2), (3, (4, 5)))))
    >>> found.tree, [(part.terms, part.schedule.text) for part in found.parts]
    ((0, 1), [((0, 1, 2), 'serial'), ((3, 4, 5), 'reversed')])
    """
    n = plan.terms
    found: dict[int, OutlinePart] = {}
    opened: set[int] = set()

    def look(id: int) -> None:
        terms, part = subtree(plan, id)
        found[id] = OutlinePart(terms, schedule_of(part) if len(terms) > 1 else None)

    look(plan.root)
    while len(found) < most:
        # The largest part that is in no known order, and whose operands still find room.
        unknown = [id for id, part in found.items() if id >= n and part.schedule is None]
        if not unknown:
            break
        id = max(unknown, key=lambda each: len(found[each].terms))
        if len(found) + len(plan.nodes[id - n]) - 1 > most:
            break
        opened.add(id)
        del found[id]
        for child in plan.nodes[id - n]:
            look(child)
    names: list[OutlinePart] = []
    first = plan.first_terms

    def tree(id: int) -> object:
        if id in opened:
            return tuple(tree(child) for child in sorted(plan.nodes[id - n], key=first.__getitem__))
        names.append(found[id])
        return len(names) - 1

    return Outline(tree(plan.root), tuple(names))
