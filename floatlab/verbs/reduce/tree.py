"""The tree of a sum as rows that can be folded.

A *chain* is a series of additions to one running sum, such as a loop. A chain is shown as a flat list of rows in
chronological order: each row is one addition, and shows the operand that is added and the sum after it. So a loop over
a thousand terms is not nested, and no tree is more than a few dozen levels deep. In a long chain, most additions are
elided at first; the user can unfold the elided additions, some at a time.

A node belongs to the same chain as its largest operand if this operand has at least twice as many terms as every other
operand. The *head* of a chain is its last addition.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import gcd

from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.model import Line, Role, Span, Table, line
from floatlab.page.sums import decimal, signed
from floatlab.page.words import counted
from floatlab.record import Record
from floatlab.reduce import Plan, Reduction
from floatlab.verbs.reduce.error_breakdown import Contribution, error_contributions
from floatlab.verbs.reduce.page import error_cells

Key = tuple[str | int, ...]

MOST = 1 << 12  # up to this many terms, every node is shown
_WHOLE = 16  # up to this many terms, the tree is unfolded at first
_RUN = 24  # a chain of up to this many additions is shown in full
_ENDS = 4  # additions shown at both ends of a longer chain
_PARTS = 16  # an elided run unfolds into this many parts


class TreeRow(Record):
    """A row: a key that identifies it, its depth, its cells, and the id of its term or node, if any.

    `is_open` is None if the row cannot be unfolded.
    """

    key: Key
    depth: int
    id: int | None
    is_open: bool | None
    cells: tuple[Line, ...]


class Tree:
    """A plan (an order of additions) as rows. If a reduction `found` is given, the rows show its numbers.

    >>> from floatlab import sum
    >>> tree = tree_of(sum([2048, 1, 3], format="fp16"))
    >>> [("".join(run.text for run in row.cells[0]), row.id) for row in tree.rows(tree.unfolded)]
    [('▾ 3 terms', 4), ('    x0', 0), ('  + x1', 3), ('  + x2', 4)]
    """

    def __init__(self, plan: Plan, found: Reduction | None = None) -> None:
        """Compute the terms below each node, the contributions to the error of `found`, and the columns."""
        self.plan, self.found = plan, found
        self.entries: list[Contribution] = [] if found is None else error_contributions(found)
        n = plan.terms
        self._size, self._low = plan.sizes, plan.first_terms
        self._high = plan.accumulate(range(n), max)
        # For each node, the greatest common divisor of the distances between the indices of its terms.
        self._step = [0] * n
        self._parent = [-1] * (n + len(plan.nodes))
        for id, node in enumerate(plan.nodes, n):
            steps = (gcd(self._step[each], self._low[each] - self._low[id]) for each in node)
            self._step.append(gcd(*steps))
            for each in node:
                self._parent[each] = id
        self._chains: dict[int, list[int]] = {}
        products = found is not None and found.y is not None
        self._terms_are_rounded = any(
            each.error for each in self.entries[:n]
        )  # whether any term was rounded before it was added
        alone = ["product ulps" if products else "term ulps"] * self._terms_are_rounded
        columns = ("adds", "sum so far", "ulps", "in result", *alone, "code", "id", *["term"] * products)
        self.header: tuple[str, ...] = ("tree", *(("id", "terms") if found is None else columns))

    @property
    def right(self) -> tuple[int, ...]:
        """The indices of the columns with numbers, which are right-aligned."""
        return tuple(i for i, name in enumerate(self.header) if name not in ("tree", "term", "code"))

    @property
    def unfolded(self) -> frozenset[Key]:
        """The keys of the rows unfolded at first: all rows of a small tree, or the last chain of a large tree."""
        if self.plan.terms <= _WHOLE:
            return self.everything
        return frozenset({("part", self.plan.root)})

    @property
    def everything(self) -> frozenset[Key]:
        """The keys of all rows that can be unfolded, except rows that stand for elided additions."""
        ids = range(self.plan.terms, self.plan.root + 1)
        return frozenset([*(("part", id) for id in ids), *(("many", id) for id in ids), ("part", self.plan.root)])

    def table(self, rows: list[TreeRow]) -> Table:
        """Return the rows as a table."""
        return Table(self.header, tuple(each.cells for each in rows), self.right)

    # Chains.

    def _onward(self, id: int) -> int | None:
        """Return the operand that is in the same chain as the node, or None if the chain begins with the node."""
        node = self.plan.nodes[id - self.plan.terms]
        largest = max(node, key=self._size.__getitem__)
        others = max(self._size[each] for each in node if each != largest)
        return largest if largest >= self.plan.terms and self._size[largest] >= 2 * others else None

    def _chain(self, head: int) -> list[int]:
        """Return the nodes of the chain that ends with `head`, in chronological order."""
        if head not in self._chains:
            chain = [head]
            while (before := self._onward(chain[-1])) is not None:
                chain.append(before)
            self._chains[head] = chain[::-1]
        return self._chains[head]

    def rows(self, unfolded: frozenset[Key]) -> list[TreeRow]:
        """Return the rows that are visible if the rows with the keys `unfolded` are unfolded."""
        root = self.plan.root
        label, is_open = counted(self.plan.terms, "term"), ("part", root) in unfolded
        found = [TreeRow(("all", root), 0, root, is_open, self._cells(0, is_open, "", label, node=root))]
        found += self._inside(root, 1, unfolded) if is_open else ()
        last = [each for each in self.entries if each.id is None]
        return found + [TreeRow(("after", i), 0, None, None, self._after(entry)) for i, entry in enumerate(last)]

    def _inside(self, head: int, depth: int, unfolded: frozenset[Key]) -> Iterator[TreeRow]:
        if head < self.plan.terms:
            yield from self._operand(head, depth, unfolded)
            return
        chain = self._chain(head)
        first = self._node(chain[0])
        if len(first) == 2:
            yield from self._operand(first[0], depth, unfolded)
        yield from self._links(head, 0, len(chain), depth, unfolded, top=True)

    def _links(
        self, head: int, low: int, high: int, depth: int, unfolded: frozenset[Key], top: bool = False
    ) -> Iterator[TreeRow]:
        """Yield the rows of a chain. In a long chain, one row stands for each run of elided additions."""
        for start, end in self._pieces(low, high, top):
            if end == start + 1:
                yield from self._link(head, start, depth, unfolded)
                continue
            key: Key = ("run", head, start, end)
            yield self._run(key, depth, key in unfolded)
            if key in unfolded:
                yield from self._links(head, start, end, depth + 1, unfolded)

    @staticmethod
    def _pieces(low: int, high: int, top: bool) -> list[tuple[int, int]]:
        """Divide the additions of a chain into single additions and runs of additions that are elided."""
        if high - low <= _RUN:
            return [(i, i + 1) for i in range(low, high)]
        if top:
            ends = [(i, i + 1) for i in (*range(low, low + _ENDS), *range(high - _ENDS, high))]
            return [*ends[:_ENDS], (low + _ENDS, high - _ENDS), *ends[_ENDS:]]
        size = max(-(-(high - low) // _PARTS), _RUN)
        return [(i, min(i + size, high)) for i in range(low, high, size)]

    def _node(self, id: int) -> tuple[int, ...]:
        return self.plan.nodes[id - self.plan.terms]

    def _adds(self, head: int, place: int) -> tuple[int, ...]:
        """Return the operands that an addition of a chain adds to the running sum."""
        chain = self._chain(head)
        node = self._node(chain[place])
        if place:
            return tuple(each for each in node if each != chain[place - 1])
        return node[1:] if len(node) == 2 else node

    def _link(self, head: int, place: int, depth: int, unfolded: frozenset[Key]) -> Iterator[TreeRow]:
        id, adds = self._chain(head)[place], self._adds(head, place)
        if len(adds) > 1:
            many = ("many", id) in unfolded
            label = f"{len(adds)} at once"
            yield TreeRow(("many", id), depth, id, many, self._cells(depth, many, "+ ", label, node=id))
            if many:
                for each in adds:
                    yield from self._operand(each, depth + 1, unfolded)
            return
        yield from self._operand(adds[0], depth, unfolded, id)

    def _operand(self, id: int, depth: int, unfolded: frozenset[Key], node: int | None = None) -> Iterator[TreeRow]:
        """Yield the row of an operand and, if it is unfolded, the rows below it.

        `node` is the node that adds the operand to the running sum. It is None for the first operand of a chain, and if
        one node adds several operands in a single addition.
        """
        is_open = ("part", id) in unfolded if id >= self.plan.terms else None
        key: Key = ("part", id) if node is None else ("link", node, id)
        cells = self._cells(depth, is_open, "  " if node is None else "+ ", self._name(id), id, node)
        yield TreeRow(key, depth, id if node is None else node, is_open, cells)
        if is_open:
            yield from self._inside(id, depth + 1, unfolded)

    @staticmethod
    def folds(row: TreeRow) -> Key | None:
        """Return the key by which a row is unfolded, or None if the row cannot be unfolded."""
        if row.is_open is None:
            return None
        return ("part", row.key[-1]) if row.key[0] in ("all", "link") else row.key

    def keys_to_show(self, id: int) -> frozenset[Key]:
        """Return the keys of the rows to unfold so that a node or term becomes visible."""
        found: set[Key] = set()
        while True:
            head = id
            while self._parent[head] >= 0 and id >= self.plan.terms and self._onward(self._parent[head]) == head:
                head = self._parent[head]
            if head >= self.plan.terms:
                found |= {("part", head), *self._runs_to(head, self._chain(head).index(id))}
            id = self._parent[head]
            if id < 0:
                return frozenset(found)
            if len(self._node(id)) > 2:
                found.add(("many", id))

    def _runs_to(self, head: int, place: int) -> Iterator[Key]:
        low, high, top = 0, len(self._chain(head)), True
        while True:
            low, high = next(piece for piece in self._pieces(low, high, top) if piece[0] <= place < piece[1])
            if high == low + 1:
                return
            yield ("run", head, low, high)
            top = False

    @property
    def worst(self) -> list[int]:
        """At most 100 nodes with the largest rounding errors, the worst first."""
        missed = [(-abs(each.error), each.id) for each in self.entries if each.error and each.id is not None]
        return [id for _, id in sorted(missed) if id >= self.plan.terms or self.plan.root == 0][:100]

    # Cells.

    def _name(self, id: int) -> str:
        """Return the name of a term, or of all terms of a subtree."""
        if id < self.plan.terms:
            return f"x{id}"
        low, high, size, step = self._low[id], self._high[id], self._size[id], self._step[id]
        if (size - 1) * step != high - low:
            return f"x{low} … ({size})"
        if size == 2:
            return f"x{low}, x{high}"
        return f"x{low} … x{high}" if step == 1 else f"x{low}, x{low + step} … x{high}"

    def _cells(
        self, depth: int, is_open: bool | None, sign: str, label: str, adds: int | None = None, node: int | None = None
    ) -> tuple[Line, ...]:
        mark = "  " if is_open is None else "▾ " if is_open else "▸ "
        signs = (Span(sign, Role.LABEL), mark * (is_open is not None)) if sign == "+ " else (mark,)
        name = line("  " * depth, *signs, label)
        shown = node if node is not None else adds
        if self.found is None:
            below = node if adds is None else adds
            return (name, line(Span(str(shown), Role.HINT)), line("" if below is None else str(self._size[below])))
        entry = None if node is None else self.entries[node]
        return (name, *self._numbers(adds, entry), *self._places(adds, shown))

    def _numbers(self, adds: int | None, after: Contribution | None) -> tuple[Line, ...]:
        """Return the cells for an operand, and the cells for the sum after this operand was added."""
        assert self.found is not None
        added = None if adds is None else self.entries[adds]
        first: Line = () if added is None else _value(added)
        is_term = added is not None and added.term is not None and added.value is not None
        alone = [error_cells(added, self.found)[0] if added is not None and is_term else ()] * self._terms_are_rounded
        if after is None or after.value is None:
            return (first, (), (), (), *alone, ())
        own, in_result = error_cells(after, self.found)
        code = line(Span(hexadecimal_code(after.value), Role.CODE))
        return (first, line(Span(shortest(after.value), Role.VALUE)), own, in_result, *alone, code)

    def _places(self, adds: int | None, id: int | None) -> tuple[Line, ...]:
        cells = [line(Span("" if id is None else str(id), Role.HINT))]
        if self.found is not None and self.found.y is not None:
            term = self.entries[adds].term if adds is not None else None
            cells.append(line(" × ".join(map(shortest, term.factors))) if term is not None else ())
        return tuple(cells)

    def _run(self, key: Key, depth: int, is_open: bool) -> TreeRow:
        """Return the row that stands for a run of elided additions."""
        _, head, low, high = key
        chain = self._chain(int(head))[int(low) : int(high)]
        name = line("  " * depth, "▾ " if is_open else "▸ ", Span("⋯ ", Role.LABEL), f"{len(chain):,} additions")
        blank: tuple[Line, ...] = ((),) * (len(self.header) - 1)
        if self.found is None:
            return TreeRow(key, depth, None, is_open, (name, *blank))
        last = self.entries[chain[-1]].value
        worst = max((_in_ulps(self.entries[id]) for id in chain), key=abs)
        ulps = Span(f"to {signed(worst)}", Role.LOST) if worst else Span("exact", Role.HINT)
        total = () if last is None else line(Span(shortest(last), Role.VALUE))
        return TreeRow(key, depth, None, is_open, (name, (), total, line(ulps), *blank[3:]))

    def _after(self, entry: Contribution) -> tuple[Line, ...]:
        """Return the cells of a rounding after the last node."""
        cells = self._numbers(None, entry)
        return (line("  = ", entry.name), *cells, *((),) * (len(self.header) - 1 - len(cells)))


def _value(entry: Contribution) -> Line:
    if entry.value is not None:
        return line(Span(shortest(entry.value), Role.VALUE))
    if entry.term is None or not entry.term.is_finite:
        return line(Span("as it is", Role.HINT))
    return line(Span(decimal(entry.term.exact.as_fraction(), 9), Role.HINT))


def _in_ulps(entry: Contribution) -> Fraction:
    if not entry.error or entry.value is None:
        return Fraction(0)
    return entry.error / entry.value.ulp.as_fraction()


def tree_of(found: Reduction) -> Tree | None:
    """Return the tree of a reduction, or None if it has too many terms."""
    return Tree(found.plan, found) if len(found) <= MOST else None
