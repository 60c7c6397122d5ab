"""Orders of addition: rules that say for any number of terms in which order they are added.

A schedule lays its order over slots (see `batches`): an array with one row a term and one column a lane, so that one
call lays all the blocks, or all the lanes, of the schedule around it.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import PlanError
from floatlab.record import Record
from floatlab.reduce.plan.batches import BatchBuilder, Batches
from floatlab.reduce.plan.plan import Plan

MAX_TERMS = 1 << 28
OTHER_KINDS = ("schedule", "order", "way", "tree")  # of arguments, all others being numbers


# Names of compositions.
NAMED: dict[str, Schedule] = {}


class Schedule(Record):
    """An order of addition for any number of terms: `parse_schedule` makes one of text.

    Subclasses lay their order for a number of terms; `batches` and `plan` ask for it.

    Examples
    --------
    >>> Serial().batches(10_000_000).each[0].links
    9999999
    >>> Adjacent().plan(5)
    Plan((((0 1) (2 3)) 4))
    """

    word: ClassVar[str]  # in expressions: the name of the class in small letters, unless it says otherwise
    # The arguments in brackets: for each its kind (schedule, order, way, tree, or what a number counts) and its
    # default, None where it has to be given.
    signature: ClassVar[tuple[tuple[str, object], ...]] = ()

    def __init_subclass__(cls) -> None:
        """Name the kind of order."""
        cls.word = vars(cls).get("word", cls.__name__.lower())

    def __post_init__(self) -> None:
        """Check the schedules and the numbers among the arguments; raises PlanError."""
        for value, (kind, _) in zip(self._values(), self.signature, strict=True):
            if kind == "schedule" and not isinstance(value, Schedule):
                raise PlanError(f"{self.word} takes a schedule, which parse_schedule makes of text, not {value!r}")
            if kind not in OTHER_KINDS:
                check_number(self.word, kind, value)

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the sums of slots (terms, lanes), column by column, to a builder; return the slots of the results."""
        raise NotImplementedError

    def batches(self, terms: int) -> Batches:
        """Return the order for a number of terms as batches of chains; raises PlanError if it has none."""
        check_number("a sum", "a number of terms", terms)
        into = BatchBuilder(terms)
        return into.finished(self.lay(np.arange(terms)[:, None], into))

    def plan(self, terms: int) -> Plan:
        """Return the order for a number of terms as a plan; raises PlanError if it has none."""
        return self.batches(terms).plan()

    @property
    def text(self) -> str:
        """The expression that parses back to this schedule.

        >>> Reversed(Fused(4)).text, Reversed(Serial()).text
        ('reversed(fused(4))', 'reversed')
        """
        for name, known in NAMED.items():
            if known == self:
                return name
        arguments = list(zip(self._values(), self.signature, strict=True))
        while arguments and arguments[-1][1][1] is not None and arguments[-1][0] == arguments[-1][1][1]:
            arguments.pop()
        inside = ", ".join(_argument_text(value) for value, _ in arguments)
        return f"{self.word}({inside})" if inside else self.word

    def __str__(self) -> str:
        """Show the expression."""
        return self.text

    def __repr__(self) -> str:
        """Show the expression."""
        text = self.text
        return f"Schedule({text if len(text) <= 200 else text[:190] + '…'})"


def _argument_text(value: object) -> str:
    if isinstance(value, Schedule):
        return value.text
    return f"({' '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


def check_number(word: str, what: str, value: object, least: int = 1) -> None:
    """Refuse anything but an integer from `least` to 2^28; raises PlanError."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= MAX_TERMS:
        raise PlanError(f"{word} takes {what} from {least} to 2^28, not {value!r}")


class Serial(Schedule):
    """One after the other, as a loop does: ((x0 + x1) + x2) + x3.

    >>> Serial().plan(4)
    Plan((((0 1) 2) 3))
    """

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay one chain a lane."""
        return into.chains(slots[0], slots[1:, None])


class Reversed(Schedule):
    """The terms from the last to the first.

    >>> Reversed().plan(4)
    Plan((((3 2) 1) 0))
    """

    inner: Schedule = Serial()

    signature = (("schedule", Serial()),)

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay the rows upside down."""
        return self.inner.lay(slots[::-1], into)


class Permuted(Schedule):
    """The terms in a stated order, which also says how many there are.

    >>> Permuted((2, 0, 1)).plan(3)
    Plan(((2 0) 1))
    """

    places: tuple[int, ...]
    inner: Schedule = Serial()

    signature = (("order", None), ("schedule", Serial()))

    def __post_init__(self) -> None:
        """Check that every term comes once."""
        super().__post_init__()
        ids = [id for id in self.places if isinstance(id, int)] if isinstance(self.places, tuple) else []
        if not ids or sorted(ids) != list(range(len(self.places))):
            raise PlanError("permuted takes every number from 0 to n − 1 once")

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay the rows in this order."""
        _same_count(self.word, len(self.places), len(slots))
        return self.inner.lay(slots[list(self.places)], into)


class Sorted(Schedule):
    """The terms by magnitude, from the smallest (`up`) or from the largest (`down`): it depends on the numbers.

    It stands outermost, and whoever evaluates it puts the terms in order first; see `places`.
    """

    way: str = "up"
    inner: Schedule = Serial()

    signature = (("way", "up"), ("schedule", Serial()))

    def __post_init__(self) -> None:
        """Check the way."""
        super().__post_init__()
        if not isinstance(self.way, str) or self.way not in ("up", "down"):
            raise PlanError(f"sorted goes up or down, not {self.way!r}")

    def places(self, magnitudes: Array) -> Array:
        """Return the order of the terms along the first axis; equal ones as they stand, NaNs last.

        >>> Sorted("down").places(np.array([1.0, 3.0, 2.0])).tolist()
        [1, 2, 0]
        """
        with np.errstate(invalid="ignore"):
            return np.argsort(-magnitudes if self.way == "down" else magnitudes, axis=0, kind="stable")

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Refuse: only the numbers say the order."""
        raise PlanError("sorted depends on the numbers: it has a plan only with them, and stands outermost")


class Adjacent(Schedule):
    """Neighbours, then neighbours among the sums, and so on; an odd one out goes to the next round as it is.

    >>> Adjacent().plan(5)
    Plan((((0 1) (2 3)) 4))
    """

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay round by round."""
        lanes = slots.shape[1]
        while len(slots) > 1:
            even = len(slots) & ~1
            left, right = slots[0:even:2].reshape(-1), slots[1:even:2].reshape(-1)
            slots = np.concatenate([into.chains(left, right[None, None]).reshape(-1, lanes), slots[even:]])
        return np.asarray(slots[0])


class Folded(Schedule):
    """The second half onto the first, term i + h onto i, and so on: how threads of a GPU reduce; h is rounded up.

    >>> Folded().plan(4), Folded().plan(5)
    (Plan(((0 2) (1 3))), Plan((((0 3) 2) (1 4))))
    """

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay round by round."""
        lanes = slots.shape[1]
        while len(slots) > 1:
            half = -(-len(slots) // 2)
            over = len(slots) - half
            sums = into.chains(slots[:over].reshape(-1), slots[half:].reshape(1, 1, -1)).reshape(-1, lanes)
            slots = np.concatenate([sums, slots[over:half]])
        return np.asarray(slots[0])


class Fused(Schedule):
    """A chain of nodes of many operands, as tensor cores have it: `count` terms, then the sum and `count` more, ….

    >>> Fused(4).plan(8)
    Plan(((0 1 2 3) 4 5 6 7))
    """

    count: int

    signature = (("a number of terms", None),)

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay the first node, all whole ones after it, and the rest."""
        n, lanes = slots.shape
        w = min(self.count, n)
        found = slots[0] if w == 1 else into.chains(slots[0], slots[None, 1:w])
        whole = (n - w) // w
        found = into.chains(found, slots[w : w + whole * w].reshape(whole, w, lanes))
        rest = slots[w + whole * w :]
        return into.chains(found, rest[None]) if len(rest) else found


class ByHand(Schedule):
    """A tree written out, for as many terms as it has.

    >>> ByHand(Plan.from_tree(((0, 1), (2, 3)))).text
    '((0 1) (2 3))'
    """

    tree: Plan

    word = "tree"
    signature = (("tree", None),)

    def __post_init__(self) -> None:
        """Put the nodes into the order in which they are read, so that trees which are written alike are equal."""
        object.__setattr__(self, "tree", self.tree.left_to_right())

    @property
    def text(self) -> str:
        """The tree in brackets."""
        return self.tree.text

    def lay(self, slots: Array, into: BatchBuilder) -> Array:
        """Lay the tree, level by level."""
        _same_count("the tree", self.tree.terms, len(slots))
        return into.tree(self.tree, slots)


def _same_count(who: str, wanted: int, given: int) -> None:
    if wanted != given:
        raise PlanError(f"{who} is for {wanted} term{'s' * (wanted != 1)}, and there are {given}")
