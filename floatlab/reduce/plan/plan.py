"""A plan: one order of evaluation, as a tree whose leaves are the terms and whose last node is the result."""

from __future__ import annotations

from typing import Any

from floatlab.errors import PlanError
from floatlab.presenter import Answering
from floatlab.record import Record

Tree = int | tuple["Tree", ...]
_MANY = 1 << 20


class Plan(Answering, Record):
    """An order of evaluation: `terms` leaves with ids 0 … n−1, then nodes, node i having the id n + i.

    A node is the tuple of the ids that it adds, two or more, each of them a term or an earlier node. Every id is
    used once, but for the last, which is the result. Raises PlanError for anything else.

    >>> plan = Plan(4, ((0, 1), (2, 3), (4, 5)))
    >>> plan.text, plan.depth, plan.root
    ('((0 1) (2 3))', 2, 6)
    """

    terms: int
    nodes: tuple[tuple[int, ...], ...]
    _ASKS = ".nodes"

    def __post_init__(self) -> None:
        """Check that it is a tree."""
        try:
            self._check()
        except PlanError:
            raise
        except (TypeError, ValueError, LookupError, OverflowError):
            raise PlanError("a plan is a number of terms and a tuple of nodes, each a tuple of ids") from None

    def _check(self) -> None:
        n, added = self.terms, sum(map(len, self.nodes))
        if n < 1:
            raise PlanError(f"a plan has at least one term, not {n}")
        if n > added + _MANY:  # they are not even counted one by one
            raise PlanError(f"nodes that add {added} numbers make no plan of more than {added + 1} terms")
        used = bytearray(n + len(self.nodes))
        for i, node in enumerate(self.nodes):
            if len(node) < 2:
                raise PlanError(f"node {n + i} adds {len(node)} number{'s' * (len(node) != 1)}; two or more make a sum")
            for each in node:
                if not 0 <= each < n + i:
                    where = "later" if n + i <= each < len(used) else "nowhere"
                    raise PlanError(f"node {n + i} adds {each}, which is {where}: ids run from 0 to {n + i - 1} there")
                if used[each]:
                    raise PlanError(f"{_kind(each, n)} is added twice, so that this is no tree")
                used[each] = 1
        spare = used.find(0)
        if spare != len(used) - 1:
            raise PlanError(f"{_kind(spare, n)} is never added, and it is not the result")

    @property
    def root(self) -> int:
        """The id of the result: the last node, or the only term."""
        return self.terms + len(self.nodes) - 1

    @property
    def node_levels(self) -> list[int]:
        """The level of each node: one more than the highest of what it adds, terms being at level 0."""
        n, levels = self.terms, [0] * (self.terms + len(self.nodes))
        for i, node in enumerate(self.nodes, n):
            levels[i] = 1 + max(levels[each] for each in node)
        return levels[n:]

    @property
    def depth(self) -> int:
        """How many nodes the longest way from a term to the result passes."""
        return max(self.node_levels, default=0)

    @property
    def levels(self) -> list[list[int]]:
        """The ids of the nodes of each level, which depend on lower levels only.

        >>> Plan.from_tree(((0, 1), (2, 3))).levels
        [[4, 5], [6]]
        """
        found: list[list[int]] = [[] for _ in range(self.depth)]
        for i, level in enumerate(self.node_levels, self.terms):
            found[level - 1].append(i)
        return found

    @property
    def first_terms(self) -> list[int]:
        """The lowest term that is added below each id; of a term itself, that term.

        >>> Plan.from_tree((2, (1, 0))).first_terms
        [0, 1, 2, 0, 0]
        """
        found = list(range(self.terms))
        for node in self.nodes:
            found.append(min(found[each] for each in node))
        return found

    @property
    def order(self) -> list[int]:
        """The terms from left to right, as the tree is drawn.

        >>> Plan.from_tree((2, (0, 1))).order
        [2, 0, 1]
        """
        found, waiting = [], [self.root]
        while waiting:
            each = waiting.pop()
            if each < self.terms:
                found.append(each)
            else:
                waiting += reversed(self.nodes[each - self.terms])
        return found

    @classmethod
    def from_tree(cls, tree: Any) -> Plan:
        """Return the plan of nested tuples or lists of term ids; raises PlanError for what is no tree of integers.

        >>> Plan.from_tree(((0, 1), 2)).nodes
        ((0, 1), (3, 2))
        """
        leaves, nodes = 0, []  # first in the order in which they are complete, terms apart
        waiting: list[tuple[Any, bool]] = [(tree, False)]
        done: list[Any] = []
        while waiting:
            each, is_open = waiting.pop()
            if is_open:
                inside = done[len(done) - len(each) :]
                del done[len(done) - len(each) :]
                nodes.append(inside)
                done.append((len(nodes) - 1,))  # a node, whose id is not known before the terms are counted
            elif isinstance(each, tuple | list):
                if len(each) < 2:
                    raise PlanError(f"a node adds {len(each)} number{'s' * (len(each) != 1)}; two or more make a sum")
                if len(waiting) > 10**8:
                    raise PlanError("the tree has no end")
                waiting.append((each, True))
                waiting += [(child, False) for child in reversed(each)]
            elif isinstance(each, int) and not isinstance(each, bool):
                leaves += 1
                done.append(each)
            else:
                raise PlanError(f"a tree has term numbers and tuples of them, not {type(each).__name__}")
        ids = tuple(tuple(leaves + x[0] if isinstance(x, tuple) else _term(x, leaves) for x in each) for each in nodes)
        if not ids and done != [0]:
            raise PlanError(f"the only term is number 0, not {done[0]}")
        return cls(leaves, ids)

    def to_tree(self) -> Tree:
        """Return the plan as nested tuples of term ids.

        >>> Plan(3, ((1, 2), (0, 3))).to_tree()
        (0, (1, 2))
        """
        trees: list[Tree] = list(range(self.terms))
        for node in self.nodes:
            trees.append(tuple(trees[each] for each in node))
        return trees[-1]

    @property
    def text(self) -> str:
        """The tree in brackets, as schedules may be written."""
        if not self.nodes:
            return "(0)"
        found: list[str] = []
        waiting: list[int | str] = [self.root]
        while waiting:
            each = waiting.pop()
            if isinstance(each, str):
                found.append(each)
            elif each < self.terms:
                found.append(f"{each} ")
            else:
                found.append("(")
                waiting.append(") ")
                waiting += reversed(self.nodes[each - self.terms])
        return "".join(found).replace(" )", ")").strip()

    def canonical(self) -> Plan:
        """Return the same sums with the operands of a node by their first terms and the nodes from left to right.

        Two plans that add the same numbers to each other, whatever stands on which side, have the same one.

        >>> Plan.from_tree((2, (1, 0))).canonical() == Plan.from_tree(((0, 1), 2)).canonical()
        True
        """
        first = self.first_terms
        return self._renumbered([sorted(node, key=first.__getitem__) for node in self.nodes])

    def left_to_right(self) -> Plan:
        """Return the same tree with the nodes from left to right, as a tree that is read numbers them.

        >>> Plan(4, ((2, 3), (0, 1), (5, 4))).left_to_right().nodes
        ((0, 1), (2, 3), (4, 5))
        """
        return self._renumbered([list(node) for node in self.nodes])

    def _renumbered(self, arguments: list[list[int]]) -> Plan:
        n = self.terms
        ids = list(range(n + len(self.nodes)))
        nodes: list[tuple[int, ...]] = []
        waiting = [(self.root, False)]
        while waiting:
            each, is_open = waiting.pop()
            if each < n:
                continue
            inside = arguments[each - n]
            if is_open:
                ids[each] = n + len(nodes)
                nodes.append(tuple(ids[child] for child in inside))
            else:
                waiting.append((each, True))
                waiting += [(child, False) for child in reversed(inside)]
        return Plan(n, tuple(nodes))

    def __repr__(self) -> str:
        """Show a short tree, and of a long one how much it is."""
        if self.terms <= 32:
            return f"Plan({self.text})"
        return f"Plan({self.terms:,} terms, {len(self.nodes):,} nodes, depth {self.depth:,})"


def _kind(id: int, terms: int) -> str:
    return f"term {id}" if id < terms else f"node {id}"


def _term(id: int, terms: int) -> int:
    if not 0 <= id < terms:
        raise PlanError(f"a tree of {terms} terms numbers them from 0 to {terms - 1}, and this one has a {id}")
    return id
