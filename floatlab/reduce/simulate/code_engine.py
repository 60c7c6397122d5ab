"""The arithmetic of a plan's nodes on whole arrays of codes, for many sums at once.

Partial sums are arrays of shape (lanes, *batch). The first axis has one row for each chain of additions in a `Batch` of
the plan (see `plan.batches`); such a chain is called a lane. The other axes (`batch`) belong to independent sums, which
are all added in the same order. Terms broadcast to the shape (n, *batch); a slot is the index of a term along the first
axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.dispatch import map_blocks
from floatlab.arrays.lanes.numpy_operations import OPERATIONS, calculator
from floatlab.arrays.lanes.pairs import two_sum
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container, is_enough
from floatlab.arrays.recurrences import Recurrence, RecurrenceStage
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context, Datum
from floatlab.numbers.rounding import Direction
from floatlab.reduce.simulate.adders import Adder, Term, derive_exact_sum
from floatlab.reduce.simulate.round_binary64 import add_serially, can_add_serially, exact_adder, odd_sum

FEW = 64  # with fewer sums than this, a loop over the terms in Python is faster than one NumPy call for each term
MANY = 64  # with fewer terms than this, preparing a loop over the terms costs more than it saves
MOST_WALKED = 1 << 10  # with more sums than this, NumPy is faster than a compiled loop over the terms
ROWS = 1 << 14  # the largest number of terms that one call of a loop adds
_FEW_FLOATS = 4  # with more sums than this, arrays are faster than Python's floats

Sides = tuple[Source, ...]  # the terms of sums, or the two factors of products
Argument = tuple[bool, Array]  # an argument of a node: (True, slots of terms) or (False, numbers)
Walk = Callable[[Array, list[Array]], Array]  # (sums, terms or factors) → sums after each step


class CodeEngine:
    """Additions on arrays of codes, in any format; the operations of `floatlab.arrays` compute them.

    In the methods, `slots` has indices of terms, and `ids` has the ids of the nodes that are computed. Random draws
    depend on `ids`.
    """

    fuses_all = False  # whether every node that adds products adds all its arguments exactly and rounds once

    def __init__(self, sides: Sides, adder: Adder, first: int = 0) -> None:
        """Take the terms; `first`, the index of the first sum, determines the random draws."""
        self.sides, self.adder, self.first = sides, adder, first
        self.format = adder.accumulator
        self.drawn = adder.context.rounding.is_stochastic
        self.fma = adder.fma and len(sides) > 1
        self.terms = len(sides[0].codes)
        self.batch = np.broadcast_shapes(*(side.codes.shape[1:] for side in sides))
        self._works: dict[tuple[str, Format], Callable[..., None]] = {}

    def blank(self, lanes: int) -> Array:
        """Return an uninitialised array for the numbers of `lanes` lanes."""
        return np.empty((lanes, *self.batch), container(self.format))

    def leaf(self, slots: Array) -> Array:
        """Return the terms in these slots, as numbers or rounded products in the accumulator's format."""
        terms = take(self.sides, slots)
        value = terms[0]
        if len(terms) > 1:
            value = Source(self._apply("multiply", terms, self.adder.products, slots), self.adder.products)
        codes = value.codes if value.format == self.format else self._convert(value, slots)
        return np.broadcast_to(codes, (len(slots), *self.batch))

    def add(self, a: Array, b: Array, ids: Array) -> Array:
        """Return the rounded sums a + b."""
        return self._apply("add", (Source(a, self.format), Source(b, self.format)), self.format, ids)

    def subtract(self, a: Array, b: Array, ids: Array) -> Array:
        """Return the rounded differences a − b."""
        return self._apply("subtract", (Source(a, self.format), Source(b, self.format)), self.format, ids)

    def fuse(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums plus the products in these slots; one fused multiply-add computes each result."""
        return self._apply("fma", (*take(self.sides, slots), Source(sums, self.format)), self.format, ids)

    def add_exactly(self, arguments: Sequence[Argument], ids: Array) -> Array:
        """Return the sums of all arguments, each computed exactly and rounded once."""
        sums = np.empty((len(ids), *self.batch), container(self.format))
        numbers = self._in_doubles(arguments, sums.shape)
        unsure = np.ones(sums.shape, np.bool_) if numbers is None else self._sum_doubles(numbers, sums)
        for lane in range(len(ids)):
            for place in map(tuple, np.argwhere(unsure[lane, ...]).tolist()):
                element = int(np.ravel_multi_index(place, self.batch)) if place else 0
                values = [self._value(is_term, array, lane, place, element) for is_term, array in arguments]
                context = self.adder.stream_context(int(ids[lane]), self.first + element)
                sums[(lane, *place)] = derive_exact_sum(values, self.format, context).result.code
        return sums

    def add_exactly_along(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the partial sums of chains after each step. Each step adds several terms, and rounds once.

        The shape of `slots` is (steps, terms per step, chains).
        """
        made = np.empty((len(slots), *sums.shape), sums.dtype)
        add = exact_adder(self.format, self.adder.context) if sums.size < FEW else None
        rows = max(1, ROWS // slots.shape[1])
        for start in range(0, len(slots), rows):
            part = slots[start : start + rows]
            numbers = None
            if add is not None:
                terms = [(True, operand.reshape(-1)) for operand in part.transpose(1, 0, 2)]
                numbers = self._in_doubles(terms, (part.shape[0] * part.shape[2], *self.batch))
            if add is None or numbers is None:
                for i, step in enumerate(part, start):
                    sums = made[i] = self.add_exactly([(False, sums), *((True, operand) for operand in step)], ids[i])
                continue
            # Nested lists of shape (steps, sums, terms per step), with a sum for each lane and each index of `batch`.
            groups = np.stack(numbers).reshape(len(numbers), len(part), -1).transpose(1, 2, 0).tolist()
            totals, trail = self.doubles(sums).reshape(-1).tolist(), []
            for i, group in enumerate(groups, start):
                fresh = [add((total, *operands)) for total, operands in zip(totals, group, strict=True)]
                if None in fresh:  # `exact_adder` does not compute sums that are zero or not finite
                    before = self.from_doubles(np.array(totals)).reshape(sums.shape)
                    link_sums = self.add_exactly([(False, before), *((True, operand) for operand in slots[i])], ids[i])
                    fresh = self.doubles(link_sums).reshape(-1).tolist()
                totals = fresh
                trail.append(totals)
            made[start : start + len(part)] = self.from_doubles(np.array(trail)).reshape(len(part), *sums.shape)
            sums = made[start + len(part) - 1]
        return made

    def doubles(self, numbers: Array) -> Array:
        """Return numbers of the accumulator's format as binary64 numbers; binary64 must contain the format."""
        return decode(numbers, self.format, np.float64)

    def from_doubles(self, numbers: Array) -> Array:
        """Return binary64 numbers as numbers of the accumulator's format; the format must contain the numbers."""
        return np.asarray(encode(numbers, self.format))

    def codes(self, numbers: Array) -> Array:
        """Return the numbers as codes."""
        return numbers

    def update(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums after adding the terms in `slots` (steps, lanes), one step after the other."""
        sums, done = self._walk(sums, slots)
        for step, made in zip(slots[done:], ids[done:], strict=True):
            sums = self._take_term(sums, step, made)
        return sums

    def partial_sums(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Add terms as `update` does, but return the sums after each step, of shape (steps, lanes, *batch)."""
        made = np.empty((len(slots), *sums.shape), sums.dtype)
        sums, done = self._walk(sums, slots, made)
        for i in range(done, len(slots)):
            sums = made[i] = self._take_term(sums, slots[i], ids[i])
        return made

    def _take_term(self, sums: Array, slots: Array, ids: Array) -> Array:
        return self.fuse(sums, slots, ids) if self.fma else self.add(sums, self.leaf(slots), ids)

    def _value(self, is_term: bool, array: Array, lane: int, place: tuple[int, ...], element: int) -> Term | Datum:
        """Return one argument of one sum: a number or, if the argument is a fused product, a term."""
        if not is_term:
            return Datum(self.format, int(array[(lane, *place)]))
        slot = int(array[lane])
        codes = (np.broadcast_to(side.codes[slot], self.batch)[place] for side in self.sides)
        term = Term(*(Datum(side.format, int(code)) for side, code in zip(self.sides, codes, strict=True)))
        return term if self.fma else self.adder.leaf(term, slot, self.first + element)[0]

    def _in_doubles(self, arguments: Sequence[Argument], shape: tuple[int, ...]) -> list[Array] | None:
        """Return the arguments as binary64 numbers of the same value, or None if this is not possible.

        The conversion is not possible if the context draws random bits or flushes inputs, if binary64 does not contain
        the accumulator's format, or if products are fused and binary32 does not contain the formats of their factors.
        """
        keeps_products = self.fma and any(is_term for is_term, _ in arguments)
        formats = [side.format for side in self.sides] if keeps_products else []
        if self.drawn or self.adder.context.flush_inputs or not holds(DOUBLE, self.format):
            return None
        if not all(holds(SINGLE, format) for format in formats):  # binary64 represents all products of binary32 numbers
            return None
        numbers = []
        for is_term, array in arguments:
            if is_term and keeps_products:
                x, y = (decode(side.codes, side.format, np.float64) for side in take(self.sides, array))
                with np.errstate(all="ignore"):
                    value = x * y
            else:
                value = self.doubles(self.leaf(array)) if is_term else decode(array, self.format, np.float64)
            numbers.append(np.broadcast_to(value, shape))
        return numbers

    def _sum_doubles(self, numbers: list[Array], sums: Array) -> Array:
        """Add binary64 numbers exactly, round once, and write the sums to `sums`; return a mask of doubtful sums.

        Doubtful sums may be wrong. They are of two kinds: sums that are not finite (or overflow on the way), and zero
        sums with an inexact partial sum. If the format is so wide that rounding to odd in binary64 first could change a
        result, all sums with an inexact partial sum are doubtful.
        """
        total, exact = np.zeros(sums.shape), np.ones(sums.shape, np.bool_)
        with np.errstate(all="ignore"):
            for value in numbers:
                total, missed = two_sum(total, value)
                exact &= missed == 0
        unsure: Array = ~exact
        zero = exact & (total == 0)
        if zero.any():
            total[zero] = _zeros([value[zero] for value in numbers], self.adder.context)
        if unsure.any() and is_enough(DOUBLE, self.format):
            odd = [odd_sum(row) for row in np.stack([value[unsure] for value in numbers], axis=-1).tolist()]
            total[unsure] = [0.0 if number is None else number for number in odd]
            unsure[unsure] = [number is None for number in odd]
        sums[...] = encode(total, self.format, context=self.adder.context)
        return unsure

    def _walk(self, sums: Array, slots: Array, trail: Array | None = None) -> tuple[Array, int]:
        """Add many terms to few sums, in a loop that works on binary64 numbers and rounds each sum to the format.

        Return the sums and the number of steps done, which is 0 if there is no such loop or if it would save no time.
        Steps are done in parts of `ROWS` steps. The loop stops before the first part that has a number or a sum that is
        not finite. The sums after each step are written to `trail` if it is given.
        """
        factors = self.sides if self.fma else ()
        formats = [self.format, *(side.format for side in factors)]
        if self.drawn or len(slots) < MANY or not all(holds(DOUBLE, format) for format in formats):
            return sums, 0
        walk = self._compiled_walk(sums.size) if compiled.is_built() else self._scalar_walk(sums.size)
        if walk is None:
            return sums, 0
        for start in range(0, len(slots), ROWS):
            part = slots[start : start + ROWS]
            flat = part.reshape(-1)
            terms = take(factors, flat) if self.fma else (Source(self.leaf(flat), self.format),)
            numbers = [
                spread_over(decode(side.codes, side.format, np.float64), self.batch).reshape(len(part), -1)
                for side in terms
            ]
            before = self.doubles(sums).reshape(-1)
            if not all(np.isfinite(array).all() for array in (before, *numbers)):
                return sums, start
            made = walk(before, numbers)
            if len(made) < len(part) or not np.isfinite(made[-1]).all():
                return sums, start
            if trail is not None:
                trail[start : start + len(part)] = self.from_doubles(made).reshape(len(part), *sums.shape)
            sums = self.from_doubles(made[-1]).reshape(sums.shape)
        return sums, len(slots)

    def _compiled_walk(self, count: int) -> Walk | None:
        """Return a compiled loop that adds terms, or products by FMA; None if NumPy is faster or no loop was built."""
        fed = ["a", "b"] if self.fma else ["a"]
        stage = RecurrenceStage("s", "fma" if self.fma else "add", (*fed, "s"), self.format, self.adder.context)
        line = Recurrence(["s", *fed], [stage])

        def walk(sums: Array, terms: list[Array]) -> Array:
            made, rows = np.empty((len(terms[0]), count)), line.rows(count, {"s": sums})
            return made[: line.walk(rows, len(made), dict(zip(fed, terms, strict=True)), {"s": made}, 1, ["s"])]

        return walk if line.is_compiled and count <= MOST_WALKED else None

    def _scalar_walk(self, count: int) -> Walk | None:
        """Return a loop that adds terms as Python's floats; None if this loop would be slow or round differently."""

        def walk(sums: Array, terms: list[Array]) -> Array:
            columns = zip(sums.tolist(), terms[0].T.tolist(), strict=True)
            made = [add_serially(start, column, self.format) for start, column in columns]
            return np.array([column[: min(map(len, made))] for column in made]).T

        is_fast = not self.fma and count <= _FEW_FLOATS and can_add_serially(self.format, self.adder.context)
        return walk if is_fast else None

    def _apply(self, operation: str, operands: Sides, format: Format, ids: Array) -> Array:
        formats = tuple(side.format for side in operands)
        if not self.drawn:
            made = np.empty((len(ids), *np.broadcast_shapes(*(s.codes.shape[1:] for s in operands))), container(format))
            work = self._works.get((operation, format))
            if work is None:
                work = calculator(OPERATIONS[operation], formats, format, self.adder.context, None, False)
                self._works[operation, format] = work
            axes = max(side.codes.ndim for side in operands) - 1
            reads = [spread(side.codes, axes) for side in operands]
            map_blocks(work, reads, made)
            return made
        made = np.empty((len(ids), *self.batch), container(format))
        for lane, id in enumerate(ids.tolist()):
            context = self.adder.stream_context(id)
            drawn = calculator(OPERATIONS[operation], formats, format, context, None, False)

            reads = [np.broadcast_to(side.codes[lane, ...], self.batch) for side in operands]
            map_blocks(drawn, reads, made[lane, ...], threads=1, start=self.first)
        return made

    def _convert(self, value: Source, ids: Array) -> Array:
        """Return numbers of another format as codes of the accumulator's format."""
        if not self.drawn:
            return np.asarray(encode(value, self.format, context=self.adder.context))
        wide = np.broadcast_to(value.codes, (len(ids), *self.batch))
        made = np.empty(wide.shape, container(self.format))
        for lane, id in enumerate(ids.tolist()):
            # `first` is the index of the first sum here among all sums of the caller.
            context = self.adder.context.replace(seed=self.adder.stream_context(id, self.first).seed)
            made[lane] = encode(Source(wide[lane, ...], value.format), self.format, context=context)
        return made


def take(sides: Sides, index: Array | slice | int) -> Sides:
    """Return the terms with these indices; for products, both factors."""
    return tuple(Source(side.codes[index], side.format) for side in sides)


def spread(terms: Array, axes: int) -> Array:
    """Insert axes of length 1 after the first axis, until `axes` axes follow the first axis.

    >>> spread(np.zeros((5, 3)), 2).shape
    (5, 1, 3)
    """
    return terms.reshape(len(terms), *(1,) * (axes + 1 - terms.ndim), *terms.shape[1:])


def spread_over(terms: Array, batch: tuple[int, ...]) -> Array:
    """Return the terms, broadcast to the shape (n, *batch)."""
    return np.broadcast_to(spread(terms, len(batch)), (len(terms), *batch))


def _zeros(numbers: list[Array], context: Context) -> Array:
    """Return the signed zeros that are the exact sums of these numbers (IEEE 754-2019, 6.3)."""
    negative = np.stack([np.signbit(value) for value in numbers])
    are_alike = (np.stack(numbers) == 0).all(axis=0) & (negative == negative[0]).all(axis=0)
    return np.where(np.where(are_alike, negative[0], context.rounding is Direction.RTN), -0.0, 0.0)
