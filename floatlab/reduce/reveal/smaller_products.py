"""Guess the order of a class with too few elements for probing, from the orders in smaller products of the target.

A library computes the last rows and columns of a large product by the routines that it uses for a small product. If
only one element has a certain order, every probe of this element takes a whole product. A product with few rows and
columns is much cheaper. A replay then decides whether the element of the large product is computed in the order found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import ExplicitTree
from floatlab.reduce.replay.candidates import Candidate
from floatlab.reduce.reveal.assembly import assemble, blocks_of
from floatlab.reduce.reveal.sized_target import SizedTarget

# The candidates of the classes of a product, and the class number of each element; None if the target fails.
Explained = tuple[Sequence[Candidate | None], Array] | None
_PERIODS = (8, 48)  # a smaller product has as many rows and columns as the large one, modulo one of these
_WORK = 1 << 34  # at most about this many multiply-adds are spent on probing one element of a smaller product
# For each layout with one matrix as both operands, the layout of two matrices that are stored in the same way.
_APART = {"A@A.T": "A@B.T", "A.T@A": "A.T@B"}


class SmallerProducts:
    """Smaller products of a target, and the orders of their elements.

    `explain` finds the orders of one product. It divides the elements into classes with one order each, and returns the
    order (a candidate) of each class, and the class of each element. `explain` is called once for each product, when
    the orders of this product are needed.
    """

    def __init__(self, sized: SizedTarget, explain: Callable[[SizedTarget], Explained]) -> None:
        self.sized, self._explain = sized, explain
        self._made: dict[tuple[tuple[int, ...], int, str], Explained] = {}

    def guesses(self, places: Array, known: Sequence[Plan]) -> Iterator[Plan | Candidate]:
        """Yield orders that the elements in the mask `places` may have; none for batches.

        Known plans divide the terms into blocks. Each plan gives one guess: the blocks are combined as in the plan, and
        a block of m terms is added as in a smaller product with m terms. Then come the orders of a smaller product with
        all terms. Both kinds of guesses are repeated for each shape and layout of smaller products.
        """
        if self.sized.batch > 1:
            return
        yielded: set[Plan | Candidate] = set()
        for each in self._orders(places, known):
            if each not in yielded:
                yielded.add(each)
                yield each

    def _orders(self, places: Array, known: Sequence[Plan]) -> Iterator[Plan | Candidate]:
        rows, columns = np.nonzero(places)
        last, ends = (int(rows[-1]), int(columns[-1])), (int(rows.max()) + 1, int(columns.max()) + 1)
        for layout in dict.fromkeys((self.sized.layout, _APART.get(self.sized.layout, self.sized.layout))):
            for period in _PERIODS:
                shape = tuple(_side(end, period) for end in ends)
                row, column = (_place(*each, period) for each in zip(last, ends, strict=True))
                for plan in known:
                    yield from self._assembled(plan, shape, (row, column), layout)
                yield from self._of_all_terms(shape, (row, column), layout)

    def _assembled(self, plan: Plan, shape: tuple[int, ...], place: tuple[int, int], layout: str) -> Iterator[Plan]:
        """Yield one tree that combines its blocks as in `plan`, and adds each block as in a smaller product.

        Yield nothing if the plan has only one block, or if the order in a smaller product is not found.
        """

        def inner(length: int) -> Plan:
            explained = self._product(shape, length, layout)
            found = None if explained is None else explained[0][explained[1][place]]
            if found is None or not isinstance(found.schedule, ExplicitTree):
                raise LookupError
            return found.schedule.tree

        if len(blocks_of(plan)) > 1:
            with suppress(LookupError):
                yield assemble(plan, inner)

    def _of_all_terms(self, shape: tuple[int, ...], place: tuple[int, int], layout: str) -> Iterator[Candidate]:
        """Yield the orders of a product with fewer rows and columns, but with all terms.

        The first order is the order of the element at `place` in this smaller product.
        """
        terms = self.sized.terms
        is_same = shape == self.sized.matrix_shape and layout == self.sized.layout
        if is_same or 2 * terms * terms * shape[0] * shape[1] > _WORK:
            return
        explained = self._product(shape, terms, layout)
        if explained is not None:
            classes, labels = explained
            first = classes[labels[place]]
            yield from (each for each in dict.fromkeys((first, *classes)) if each is not None)

    def _product(self, shape: tuple[int, ...], terms: int, layout: str) -> Explained:
        key = shape, terms, layout
        if key not in self._made:
            self._made[key] = None
            with suppress(FloatlabError):  # the target may accept operands of one size only
                results = shape if len(self.sized.shape) > 1 else shape[:1]
                self._made[key] = self._explain(self.sized.resized(terms, results, layout))
        return self._made[key]


def _side(length: int, period: int) -> int:
    """Return a length below two periods that has the same remainder modulo `period` as `length`.

    Lengths below two periods are returned unchanged; other results are at least `period`.

    >>> _side(115, 8), _side(13, 8), _side(5, 8)
    (11, 13, 5)
    """
    return length if length < 2 * period else period + length % period


def _place(index: int, length: int, period: int) -> int:
    """Return the index along an axis of a smaller product that corresponds to `index` along the whole axis.

    `length` is the length of the whole axis; `_side` gives the length of the smaller axis. An index keeps its distance
    from the end if the smaller axis is long enough. Otherwise, the index keeps its remainder modulo `period`.

    >>> [_place(index, 115, 8) for index in (114, 104, 103, 2)], _place(4, 13, 8)
    ([10, 0, 7, 2], 4)
    """
    cut = length - _side(length, period)
    return index - cut if index >= cut else index % period
