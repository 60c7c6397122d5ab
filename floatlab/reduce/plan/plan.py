"""A plan is one order of additions, as a tree. Its leaves are the terms, and its root is the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from floatlab.errors import PlanError
from floatlab.presenter import Answering
from floatlab.record import Record

T = TypeVar("T")
Tree = int | tuple["Tree", ...]
_MANY = 1 << 20


class Plan(Answering, Record):
    """An order of evaluation: a tree of additions over numbered terms.

    Parameters
    ----------
    terms : int
        The number of terms n, at least 1. Their ids are 0 … n−1.
    nodes : tuple of tuple of int
        The arguments of each node, two or more ids of terms or earlier nodes. Node i has the id n + i.

    Raises
    ------
    PlanError
        If the nodes do not form a tree. In a tree, each node adds two or more terms or earlier nodes. The last id is
        the result, and every other id is added exactly once.

    Examples
    --------
    >>> plan = Plan(4, ((0, 1), (2, 3), (4, 5)))
    >>> plan.text, plan.depth, plan.root
    ('((0 1) (2 3))', 2, 6)
    """

    terms: int
    nodes: tuple[tuple[int, ...], ...]
    _ASKS = ".nodes"

    def __post_init__(self) -> None:
        """Check that the nodes form a tree."""
        try:
            self._check()
        except PlanError:
            raise
        except (TypeError, ValueError, LookupError, OverflowError):
            raise PlanError("a plan must be a number of terms and a tuple of nodes; a node is a tuple of ids") from None

    def _check(self) -> None:
        n, added = self.terms, sum(map(len, self.nodes))
        if n < 1:
            raise PlanError(f"a plan must have at least one term, not {n}")
        if n > added + _MANY:  # checked before n bytes are allocated
            raise PlanError(f"nodes that add {added} numbers cannot make a plan of more than {added + 1} terms")
        used = bytearray(n + len(self.nodes))
        for i, node in enumerate(self.nodes):
            if len(node) < 2:
                raise PlanError(f"node {n + i} adds {len(node)} number{'s' * (len(node) != 1)}; two or more make a sum")
            for id in node:
                if not 0 <= id < n + i:
                    where = "later" if n + i <= id < len(used) else "nowhere"
                    raise PlanError(f"node {n + i} adds {id}, which is {where}: ids run from 0 to {n + i - 1} there")
                if used[id]:
                    raise PlanError(f"{_kind(id, n)} is added twice, so this is not a tree")
                used[id] = 1
        spare = used.find(0)
        if spare != len(used) - 1:
            raise PlanError(f"{_kind(spare, n)} is never added, and it is not the result")

    @property
    def root(self) -> int:
        """The id of the result: the last node, or the only term."""
        return self.terms + len(self.nodes) - 1

    def accumulate(self, leaves: Iterable[T], combine: Callable[[Iterable[T]], T]) -> list[T]:
        """Return a list with one value for each id.

        The values of the terms are `leaves`. The value of a node is `combine` of the values of its arguments.

        >>> Plan.from_tree(((0, 1), 2)).accumulate([1, 1, 1], sum)
        [1, 1, 1, 2, 3]
        """
        values = list(leaves)
        for node in self.nodes:
            values.append(combine([values[id] for id in node]))
        return values

    @property
    def node_levels(self) -> list[int]:
        """The level of each node: one more than the highest level of its arguments. Terms have level 0."""
        return self.accumulate([0] * self.terms, lambda levels: 1 + max(levels))[self.terms :]

    @property
    def depth(self) -> int:
        """The number of nodes on the longest path from a term to the result."""
        return max(self.node_levels, default=0)

    @property
    def levels(self) -> list[list[int]]:
        """The ids of the nodes at each level; a node depends only on nodes of lower levels.

        >>> Plan.from_tree(((0, 1), (2, 3))).levels
        [[4, 5], [6]]
        """
        ids: list[list[int]] = [[] for _ in range(self.depth)]
        for id, level in enumerate(self.node_levels, self.terms):
            ids[level - 1].append(id)
        return ids

    @property
    def sizes(self) -> list[int]:
        """The number of terms below each id; this number is 1 for a term."""
        return self.accumulate([1] * self.terms, sum)

    @property
    def first_terms(self) -> list[int]:
        """The lowest term below each id; for a term, the term itself.

        >>> Plan.from_tree((2, (1, 0))).first_terms
        [0, 1, 2, 0, 0]
        """
        return self.accumulate(range(self.terms), min)

    @property
    def order(self) -> list[int]:
        """The terms from left to right, in the order in which the tree is written.

        >>> Plan.from_tree((2, (0, 1))).order
        [2, 0, 1]
        """
        return [id for id, _ in self._visits(self.nodes) if id < self.terms]

    def _visits(self, arguments: Sequence[Sequence[int]]) -> Iterator[tuple[int, bool]]:
        """Yield pairs (id, flag), depth first: each node before its arguments (False) and again after them (True).

        Each term comes once, with the flag False. `arguments` has the ids that each node adds.
        """
        waiting = [(self.root, False)]
        while waiting:
            id, is_done = waiting.pop()
            yield id, is_done
            if id >= self.terms and not is_done:
                waiting.append((id, True))
                waiting += [(child, False) for child in reversed(arguments[id - self.terms])]

    @classmethod
    def from_tree(cls, tree: object) -> Plan:
        """Return the plan of nested tuples or lists of term ids; raises PlanError unless `tree` is a tree of integers.

        >>> Plan.from_tree(((0, 1), 2)).nodes
        ((0, 1), (3, 2))
        """
        leaves = 0
        nodes: list[list[int]] = []
        waiting: list[tuple[object, bool]] = [(tree, False)]
        # Finished subtrees: a term id, or ~i for node i. The id of a node is not yet known: it is n + i for n terms.
        done: list[int] = []
        while waiting:
            branch, is_open = waiting.pop()
            if isinstance(branch, tuple | list):
                if is_open:
                    nodes.append(done[len(done) - len(branch) :])
                    done[len(done) - len(branch) :] = [~(len(nodes) - 1)]
                    continue
                count = len(branch)
                if count < 2:
                    raise PlanError(f"a node adds {count} number{'s' * (count != 1)}; two or more make a sum")
                if len(waiting) > 10**8:
                    raise PlanError("the tree contains itself")
                waiting.append((branch, True))
                waiting += [(child, False) for child in reversed(branch)]
            elif isinstance(branch, int) and not isinstance(branch, bool):
                if branch < 0:
                    raise PlanError(f"the terms of a tree are numbered from 0, but this one has {branch}")
                leaves += 1
                done.append(branch)
            else:
                raise PlanError(f"a tree must consist of term numbers and tuples of them, not {type(branch).__name__}")
        ids = tuple(tuple(leaves + ~id if id < 0 else _term(id, leaves) for id in node) for node in nodes)
        if not ids and done != [0]:
            raise PlanError(f"the only term must be number 0, not {done[0]}")
        return cls(leaves, ids)

    def to_tree(self) -> Tree:
        """Return the plan as nested tuples of term ids.

        >>> Plan(3, ((1, 2), (0, 3))).to_tree()
        (0, (1, 2))
        """
        trees: list[Tree] = self.accumulate(range(self.terms), tuple)
        return trees[-1]

    @property
    def text(self) -> str:
        """The tree in brackets, in the language of `parse_schedule`."""
        if not self.nodes:
            return "(0)"
        visits = self._visits(self.nodes)
        words = (f"{id} " if id < self.terms else ") " if is_done else "(" for id, is_done in visits)
        return "".join(words).replace(" )", ")").strip()

    def canonical(self) -> Plan:
        """Return the same tree with the operands of each node sorted, and the nodes numbered from left to right.

        Operands are sorted by the lowest term below them. Two plans have the same canonical form if they differ only in
        the order of operands within nodes and in the numbering of nodes; otherwise their forms differ.

        >>> Plan.from_tree((2, (1, 0))).canonical() == Plan.from_tree(((0, 1), 2)).canonical()
        True
        """
        first = self.first_terms
        return self._renumbered([sorted(node, key=first.__getitem__) for node in self.nodes])

    def left_to_right(self) -> Plan:
        """Return the same tree with its nodes numbered from left to right.

        >>> Plan(4, ((2, 3), (0, 1), (5, 4))).left_to_right().nodes
        ((0, 1), (2, 3), (4, 5))
        """
        return self._renumbered([list(node) for node in self.nodes])

    def _renumbered(self, arguments: list[list[int]]) -> Plan:
        n = self.terms
        ids = list(range(n + len(self.nodes)))
        nodes: list[tuple[int, ...]] = []
        for id, is_done in self._visits(arguments):
            if is_done:
                ids[id] = n + len(nodes)
                nodes.append(tuple(ids[child] for child in arguments[id - n]))
        return Plan(n, tuple(nodes))

    def __repr__(self) -> str:
        """Show the tree, or only the size of a large one."""
        if self.terms <= 32:
            return f"Plan({self.text})"
        return f"Plan({self.terms:,} terms, {len(self.nodes):,} nodes, depth {self.depth:,})"


def _kind(id: int, terms: int) -> str:
    return f"term {id}" if id < terms else f"node {id}"


def _term(id: int, terms: int) -> int:
    if not 0 <= id < terms:
        raise PlanError(f"the terms of a tree of {terms} are numbered from 0 to {terms - 1}, but this one has {id}")
    return id
