"""`Schedule`, a rule for the order in which any number of terms are added, and the schedules without groups of terms.

Terms and partial sums are stored in numbered slots (see `batches`). `Schedule.add_batches` takes an array of slot
numbers, with a row for each term and a column for each independent sum. A schedule that splits its terms into blocks or
lanes can therefore call `add_batches` of its inner schedule once for all blocks or lanes of the same length.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import PlanError
from floatlab.record import Record
from floatlab.reduce.plan.batches import BatchBuilder, Batches
from floatlab.reduce.plan.plan import Plan

MAX_TERMS = 1 << 28
OTHER_KINDS = ("schedule", "order", "way", "tree")  # kinds of arguments that are not numbers (see `Schedule.signature`)


# Short names for schedules with particular arguments: "numpy" is halving(128, unrolled(8, lanes(8)), 8).
NAMED: dict[str, Schedule] = {}


class Schedule(Record):
    """An order of addition for any number of terms; `parse_schedule` makes one from text.

    Subclasses implement `add_batches`, which `batches` and `plan` call.

    Examples
    --------
    >>> Serial().batches(10_000_000).each[0].steps
    9999999
    >>> Adjacent().plan(5)
    Plan((((0 1) (2 3)) 4))
    """

    word: ClassVar[str]  # the name of the schedule in expressions; by default the class name in lower case
    # The kind and the default of each argument. The kind is in `OTHER_KINDS`, or says what a number means ("a block
    # length"). The default None means that the argument is required.
    signature: ClassVar[tuple[tuple[str, object], ...]] = ()

    def __init_subclass__(cls) -> None:
        """Set the name of the schedule in expressions."""
        cls.word = vars(cls).get("word", cls.__name__.lower())

    def __post_init__(self) -> None:
        """Check the arguments; raises PlanError unless each argument has the kind that `signature` requires."""
        for value, (kind, _) in zip(self._values(), self.signature, strict=True):
            if kind == "schedule" and not isinstance(value, Schedule):
                raise PlanError(f"{self.word} takes a schedule, which parse_schedule makes from text, not {value!r}")
            if kind not in OTHER_KINDS:
                check_number(self.word, kind, value)

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Append to `into` the batches that add up each column of `slots`; return the slots of the sums.

        `slots` has a row for each term and a column for each independent sum.
        """
        raise NotImplementedError

    def batches(self, terms: int) -> Batches:
        """Return the order of `terms` terms as batches.

        Raises PlanError if the schedule does not allow this number of terms.
        """
        check_number("a sum", "a number of terms", terms)
        return self.batches_of(np.arange(terms))

    def batches_of(self, places: Array) -> Batches:
        """Move term `places[i]` to position i for each i; return the batches that add the terms in this arrangement."""
        into = BatchBuilder(len(places))
        return into.finished(self.add_batches(places[:, None], into))

    def plan(self, terms: int) -> Plan:
        """Return the order of `terms` terms as a plan.

        Raises PlanError if the schedule does not allow this number of terms.
        """
        return self.batches(terms).plan()

    @property
    def text(self) -> str:
        """The expression that `parse_schedule` reads as this schedule.

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
    """Raise PlanError unless `value` is an integer from `least` to 2^28."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or not least <= value <= MAX_TERMS:
        raise PlanError(f"{word} takes {what} from {least} to 2^28, not {value!r}")


class Serial(Schedule):
    """Adds one term after the other, as in a loop: ((x0 + x1) + x2) + x3.

    >>> Serial().plan(4)
    Plan((((0 1) 2) 3))
    """

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add each column as one chain of additions."""
        return into.chains(slots[0], slots[1:, None])


class Reversed(Schedule):
    """Adds the terms in reverse order, with the schedule `inner`.

    >>> Reversed().plan(4)
    Plan((((3 2) 1) 0))
    """

    inner: Schedule = Serial()

    signature = (("schedule", Serial()),)

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the reversed terms."""
        return self.inner.add_batches(slots[::-1], into)


class Permuted(Schedule):
    """Permutes the terms and adds them with the schedule `inner`; term `places[i]` moves to position i.

    >>> Permuted((2, 0, 1)).plan(3)
    Plan(((2 0) 1))
    """

    places: tuple[int, ...]
    inner: Schedule = Serial()

    signature = (("order", None), ("schedule", Serial()))

    def __post_init__(self) -> None:
        """Check that `places` is a permutation."""
        super().__post_init__()
        ids = [id for id in self.places if isinstance(id, int)] if isinstance(self.places, tuple) else []
        if not ids or sorted(ids) != list(range(len(self.places))):
            raise PlanError("permuted takes every number from 0 to n − 1 once")

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the permuted terms."""
        _same_count(self.word, len(self.places), len(slots))
        return self.inner.add_batches(slots[list(self.places)], into)


class Sorted(Schedule):
    """Sorts the terms by magnitude, ascending (`up`) or descending (`down`), and adds them with the schedule `inner`.

    The order depends on the values of the terms (see `places`). Therefore this schedule has no plan and cannot be an
    argument of another schedule.
    """

    way: str = "up"
    inner: Schedule = Serial()

    signature = (("way", "up"), ("schedule", Serial()))

    def __post_init__(self) -> None:
        """Check that `way` is "up" or "down"."""
        super().__post_init__()
        if not isinstance(self.way, str) or self.way not in ("up", "down"):
            raise PlanError(f"the direction of sorted must be up or down, not {self.way!r}")

    def places(self, magnitudes: Array) -> Array:
        """Return the indices that sort the terms along the first axis; the sort is stable, and NaNs are last.

        >>> Sorted("down").places(np.array([1.0, 3.0, 2.0])).tolist()
        [1, 2, 0]
        """
        with np.errstate(invalid="ignore"):
            return np.argsort(-magnitudes if self.way == "down" else magnitudes, axis=0, kind="stable")

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Raise PlanError, because the order depends on the values."""
        raise PlanError("sorted depends on the numbers: without them it has no plan; it is allowed only outermost")


class Adjacent(Schedule):
    """Adds neighbours in pairs, then neighbouring sums in pairs, and so on.

    If the count is odd, the last number is kept for the next round.

    >>> Adjacent().plan(5)
    Plan((((0 1) (2 3)) 4))
    """

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the terms round by round."""
        lanes = slots.shape[1]
        while len(slots) > 1:
            even = len(slots) & ~1
            left, right = slots[0:even:2].reshape(-1), slots[1:even:2].reshape(-1)
            slots = np.concatenate([into.chains(left, right[None, None]).reshape(-1, lanes), slots[even:]])
        return np.asarray(slots[0])


class Folded(Schedule):
    """Adds the second half of the terms to the first half, element by element, and repeats this with the sums.

    If the number of terms is odd, the first half has one term more, and its last term stays as it is.

    >>> Folded().plan(4), Folded().plan(5)
    (Plan(((0 2) (1 3))), Plan((((0 3) 2) (1 4))))
    """

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the terms round by round."""
        lanes = slots.shape[1]
        while len(slots) > 1:
            half = -(-len(slots) // 2)
            over = len(slots) - half
            sums = into.chains(slots[:over].reshape(-1), slots[half:].reshape(1, 1, -1)).reshape(-1, lanes)
            slots = np.concatenate([sums, slots[over:half]])
        return np.asarray(slots[0])


class Fused(Schedule):
    """Adds `count` terms in the first node, and `count` more terms to the sum in each further node, as tensor cores do.

    The last node may add fewer terms.

    >>> Fused(4).plan(8)
    Plan(((0 1 2 3) 4 5 6 7))
    """

    count: int

    signature = (("a number of terms", None),)

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the first node, then all full nodes, then the remainder."""
        n, lanes = slots.shape
        w = min(self.count, n)
        found = slots[0] if w == 1 else into.chains(slots[0], slots[None, 1:w])
        whole = (n - w) // w
        found = into.chains(found, slots[w : w + whole * w].reshape(whole, w, lanes))
        rest = slots[w + whole * w :]
        return into.chains(found, rest[None]) if len(rest) else found


class Halving(Schedule):
    """Halves the terms repeatedly, down to blocks of at most `limit` terms, and adds each block with `inner`.

    The sums of two halves are then added. The length of the left half is a multiple of `multiple`. If the halves differ
    in length, the left one is shorter.

    >>> PAIRWISE.plan(5)
    Plan(((0 1) (2 (3 4))))
    """

    limit: int
    inner: Schedule = Serial()
    multiple: int = 1

    signature = (("a limit", None), ("schedule", Serial()), ("a multiple", 1))

    def __post_init__(self) -> None:
        """Check that `limit` is large enough that no half is empty."""
        super().__post_init__()
        if self.multiple > 1 and self.limit < 2 * self.multiple - 1:
            raise PlanError(f"halving into multiples of {self.multiple} needs a limit from {2 * self.multiple - 1} on")

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Halve recursively. At each level of the recursion, one batch adds the left and right sums of all parts."""
        return np.asarray(self._sums({len(slots): np.zeros(1, np.int64)}, slots, into)[len(slots)][0])

    def _sums(self, parts: dict[int, Array], slots: Array, into: BatchBuilder) -> dict[int, Array]:
        """Add the terms of each part; return a dictionary from the length of parts to the slots of their sums.

        A part is a range of terms. `parts` maps each length to the first terms of all parts with this length. Each
        array of the result has a row for each of these parts, and a column for each column of `slots`.
        """
        wanted: dict[int, list[Array]] = {}
        halves = {}
        for length, starts in parts.items():
            if length > self.limit:
                left = length // 2 - length // 2 % self.multiple
                halves[length] = left
                wanted.setdefault(left, []).append(starts)
                wanted.setdefault(length - left, []).append(starts + left)
        below = {}
        if halves:
            below = self._sums({length: np.concatenate(starts) for length, starts in wanted.items()}, slots, into)
        taken = dict.fromkeys(wanted, 0)
        found: dict[int, Array] = {}
        lanes = slots.shape[1]
        pairs = []
        for length, starts in parts.items():
            if length not in halves:
                rows = slots[starts + np.arange(length)[:, None]]
                found[length] = self.inner.add_batches(rows.reshape(length, -1), into).reshape(-1, lanes)
                continue
            sides = []
            for side in (halves[length], length - halves[length]):
                sides.append(below[side][taken[side] : taken[side] + len(starts)])
                taken[side] += len(starts)
            pairs.append((length, sides))
        if pairs:
            lefts, rights = (np.concatenate([sides[i] for _, sides in pairs]).reshape(-1) for i in (0, 1))
            sums = into.chains(lefts, rights[None, None]).reshape(-1, lanes)
            for length, sides in pairs:
                found[length], sums = sums[: len(sides[0])], sums[len(sides[0]) :]
        return found


PAIRWISE = Halving(1)


class ExplicitTree(Schedule):
    """A tree that is written out, such as ((0 1) (2 3)); its number of terms is fixed.

    >>> ExplicitTree(Plan.from_tree(((0, 1), (2, 3)))).text
    '((0 1) (2 3))'
    """

    tree: Plan

    word = "tree"
    signature = (("tree", None),)

    def __post_init__(self) -> None:
        """Renumber the nodes from left to right, so that trees with the same text are equal.

        Raises PlanError if `tree` is not a Plan.
        """
        super().__post_init__()
        if not isinstance(self.tree, Plan):
            raise PlanError(f"{self.word} takes a Plan, which Plan.from_tree makes, not {self.tree!r}")
        object.__setattr__(self, "tree", self.tree.left_to_right())

    @property
    def text(self) -> str:
        """The tree in brackets."""
        return self.tree.text

    def batches(self, terms: int) -> Batches:
        """Return the batches of the tree. A cache holds the batches of the last 16 trees."""
        _same_count("the tree", self.tree.terms, terms)
        return _batches_of(self.tree)

    def add_batches(self, slots: Array, into: BatchBuilder) -> Array:
        """Add the tree, level by level."""
        _same_count("the tree", self.tree.terms, len(slots))
        return into.tree(self.tree, slots)


@lru_cache(maxsize=16)
def _batches_of(tree: Plan) -> Batches:
    into = BatchBuilder(tree.terms)
    return into.finished(into.tree(tree, np.arange(tree.terms)[:, None]))


def _same_count(who: str, wanted: int, given: int) -> None:
    if wanted != given:
        raise PlanError(f"{who} is for {wanted} term{'s' * (wanted != 1)}, not {given}")
