"""Arithmetic on many sums at once: what a node of a plan does to whole arrays, in codes or in the processor's floats.

Numbers stand in arrays of (lanes, *batch): one row for each chain of a step, and behind it all the sums that are made
in the same order. Terms are (n, *batch), or broadcast to that, as the factors of a matrix product do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.dispatch import sweep
from floatlab.arrays.lanes.numpy_operations import OPERATIONS, calculator, rounds_as_processors
from floatlab.arrays.lanes.pairs import is_enough, two_sum
from floatlab.arrays.lanes.reading import DOUBLE, SINGLE, WORDS, container
from floatlab.arrays.recurrences import Recurrence, RecurrenceStage
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction
from floatlab.reduce.simulate.adders import Adder, Term, derive_exact_sum
from floatlab.reduce.simulate.round_binary64 import exact_adder, odd_sum
from floatlab.reduce.simulate.serial import (
    FEW,
    add_serially,
    can_add_serially,
    can_fuse_doubles,
    fused_trail,
    update,
)

_FEW = 64  # sums; below that NumPy's own loop along the terms is quicker than one call a term
MANY = 64  # terms; from that on such a loop is worth its beginning
SOME = 1 << 10  # sums; up to that a compiled walk along the terms is quicker
ROWS = 1 << 14  # terms that such a loop takes at once


class CodeEngine:
    """Codes of the accumulator's format, whatever it is: every operation is `floatlab.arrays`' own."""

    fuses_all = False  # whether a node that takes products adds all that it takes at once

    def __init__(self, x: Source, y: Source | None, adder: Adder, first: int = 0) -> None:
        """Take the terms; `first` is the number of the first sum among all that belong together."""
        self.x, self.y, self.adder, self.first = x, y, adder, first
        self.format = adder.accumulator
        self.drawn = adder.context.rounding is Direction.SR
        self.fma = adder.fma and y is not None
        self.terms = len(x.codes)
        self.batch = np.broadcast_shapes(x.codes.shape[1:], () if y is None else y.codes.shape[1:])
        self._works: dict[Any, Callable[..., None]] = {}

    def blank(self, lanes: int) -> Array:
        """Return room for numbers."""
        return np.empty((lanes, *self.batch), container(self.format))

    def leaf(self, slots: Array, ids: Array | None = None) -> Array:
        """Return terms, or rounded products, as numbers of the accumulator."""
        ids = slots
        x = Source(self.x.codes[slots], self.x.format)
        if self.y is None:
            found = x
        else:
            y = Source(self.y.codes[slots], self.y.format)
            codes = self._apply("multiply", (x, y), self.adder.products, ids)
            found = Source(codes, self.adder.products)
        if found.format != self.format:
            found = Source(self._converted(found, ids), self.format)
        return np.broadcast_to(found.codes, (len(slots), *self.batch))

    def add(self, a: Array, b: Array, ids: Array) -> Array:
        """Return rounded sums."""
        return self._apply("add", (Source(a, self.format), Source(b, self.format)), self.format, ids)

    def subtract(self, a: Array, b: Array, ids: Array) -> Array:
        """Return rounded differences."""
        return self._apply("subtract", (Source(a, self.format), Source(b, self.format)), self.format, ids)

    def fuse(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return fused multiply-adds of products onto sums."""
        assert self.y is not None
        factors = Source(self.x.codes[slots], self.x.format), Source(self.y.codes[slots], self.y.format)
        return self._apply("fma", (*factors, Source(sums, self.format)), self.format, ids)

    def many(self, arguments: Sequence[tuple[bool, Array]], ids: Array) -> Array:
        """Return exact sums rounded once, element by element; an argument is (whether terms, slots or numbers)."""
        found = np.empty((len(ids), *self.batch), container(self.format))
        numbers = self._in_doubles(arguments, found.shape)
        unsure = np.ones(found.shape, np.bool_) if numbers is None else self._sum_doubles(numbers, found)
        for lane in range(len(ids)):
            for place in (tuple(each) for each in np.argwhere(unsure[lane, ...]).tolist()):
                element = int(np.ravel_multi_index(place, self.batch)) if place else 0
                values = [self._argument(leafy, what, lane, place, element) for leafy, what in arguments]
                context = self.adder.stream_context(int(ids[lane]), self.first + element)
                found[(lane, *place)] = derive_exact_sum(values, self.format, context).result.code
        return found

    def many_along(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return sums to which terms (links, several, lanes) were added several at once, after each link."""
        made = np.empty((len(slots), *sums.shape), sums.dtype)
        add = exact_adder(self.format, self.adder.context) if sums.size < _FEW else None
        rows = max(1, ROWS // slots.shape[1])
        for start in range(0, len(slots), rows):
            part = slots[start : start + rows]
            numbers = None
            if add is not None:
                given = [(True, each.reshape(-1)) for each in part.transpose(1, 0, 2)]
                numbers = self._in_doubles(given, (part.shape[0] * part.shape[2], *self.batch))
            if add is None or numbers is None:
                for i, link in enumerate(part, start):
                    sums = made[i] = self.many([(False, sums), *((True, each) for each in link)], ids[i])
                continue
            # (several, links × lanes, *batch) as a row of operands for each sum of each link
            groups = np.stack(numbers).reshape(len(numbers), len(part), -1).transpose(1, 2, 0).tolist()
            totals, trail = self.doubles(sums).reshape(-1).tolist(), []
            for i, group in enumerate(groups, start):
                fresh = [add((total, *each)) for total, each in zip(totals, group, strict=True)]
                if None in fresh:  # a zero, an infinity or a NaN
                    before = self.from_doubles(np.array(totals)).reshape(sums.shape)
                    one = self.many([(False, before), *((True, each) for each in slots[i])], ids[i])
                    fresh = self.doubles(one).reshape(-1).tolist()
                totals = fresh
                trail.append(totals)
            made[start : start + len(part)] = self.from_doubles(np.array(trail)).reshape(len(part), *sums.shape)
            sums = made[start + len(part) - 1]
        return made

    def doubles(self, numbers: Array) -> Array:
        """Return numbers as binary64, which has them all."""
        wide: Array = decode(numbers, self.format, np.float64)
        return wide

    def from_doubles(self, numbers: Array) -> Array:
        """Return binary64 numbers that the format has, as those of this engine."""
        return np.asarray(encode(numbers, self.format))

    def _in_doubles(self, arguments: Sequence[tuple[bool, Array]], shape: tuple[int, ...]) -> list[Array] | None:
        """Return arguments as binary64; None where that does not have all of them, or sums are not for it."""
        sides = [side for side in (self.x, self.y) if side is not None]
        exactly = self.fma and any(leafy for leafy, _ in arguments)
        formats = [side.format for side in sides] if exactly else []
        known = not (self.drawn or self.adder.context.flush_inputs) and holds(DOUBLE, self.format)
        if not known or not all(holds(SINGLE, each) for each in formats):  # whose products binary64 has exactly
            return None
        found = []
        for leafy, what in arguments:
            if leafy and exactly:
                factors = (decode(side.codes[what], side.format, np.float64) for side in sides)
                with np.errstate(all="ignore"):
                    value = np.multiply(*factors)
            else:
                value = self.doubles(self.leaf(what)) if leafy else decode(what, self.format, np.float64)
            found.append(np.broadcast_to(value, shape))
        return found

    def _sum_doubles(self, numbers: list[Array], found: Array) -> Array:
        """Fill in sums rounded once, but for zeros, whose signs have a rule, and what is not finite; say where."""
        total, exact = np.zeros(found.shape), np.ones(found.shape, np.bool_)
        with np.errstate(all="ignore"):
            for value in numbers:
                total, missed = two_sum(total, value)
                exact &= missed == 0
        unsure: Array = ~exact | (total == 0)
        if unsure.any() and is_enough(DOUBLE, self.format):
            odd = [odd_sum(each) for each in np.stack([value[unsure] for value in numbers], axis=-1).tolist()]
            total[unsure] = [0.0 if each is None else each for each in odd]
            unsure[unsure] = [each is None for each in odd]
        found[...] = encode(total, self.format, context=self.adder.context)
        return unsure

    def term(self, slot: int, place: tuple[int, ...]) -> Term:
        """Return one term of one sum."""
        sides = []
        for side in (self.x, self.y):
            if side is not None:
                codes = np.broadcast_to(side.codes[slot], self.batch)
                sides.append(Datum(side.format, int(codes[place])))
        return Term(*sides)

    def _argument(self, leafy: bool, what: Array, lane: int, place: tuple[int, ...], element: int) -> Term | Datum:
        if not leafy:
            return Datum(self.format, int(what[(lane, *place)]))
        term = self.term(int(what[lane]), place)
        return term if self.fma else self.adder.leaf(term, int(what[lane]), self.first + element)[0]

    def update(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return sums to which terms (links, lanes) were added one after the other, products fused if so asked."""
        sums, done = self._walked(sums, slots)
        for link, made in zip(slots[done:], ids[done:], strict=True):
            sums = self.fuse(sums, link, made) if self.fma else self.add(sums, self.leaf(link), made)
        return sums

    def trail(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return, as `update`, but the sums after each link (links, lanes, *batch)."""
        made = np.empty((len(slots), *sums.shape), sums.dtype)
        sums, done = self._walked(sums, slots, made)
        for i in range(done, len(slots)):
            link, each = slots[i], ids[i]
            sums = made[i] = self.fuse(sums, link, each) if self.fma else self.add(sums, self.leaf(link), each)
        return made

    def _walked(self, sums: Array, slots: Array, trail: Array | None = None) -> tuple[Array, int]:
        """Return few sums to which many terms were added in binary64, each rounded, and how many terms that were.

        It goes to the first sums that are not finite. `trail` gets the sums on the way.
        """
        factors = [side for side in (self.x, self.y) if side is not None] if self.fma else []
        formats = [self.format, *(side.format for side in factors)]
        if self.drawn or len(slots) < MANY or not all(holds(DOUBLE, each) for each in formats):
            return sums, 0
        walk = self._walk(sums.size)
        if walk is None:
            return sums, 0
        for start in range(0, len(slots), ROWS):
            part = slots[start : start + ROWS]
            terms = [Source(side.codes[part.reshape(-1)], side.format) for side in factors]
            if not self.fma:
                terms = [Source(self.leaf(part.reshape(-1)), self.format)]
            numbers = [
                spread_over(decode(each.codes, each.format, np.float64), self.batch).reshape(len(part), -1)
                for each in terms
            ]
            before = self.doubles(sums).reshape(-1)
            if not all(np.isfinite(each).all() for each in (before, *numbers)):
                return sums, start
            found = walk(before, numbers)
            if len(found) < len(part) or not np.isfinite(found[-1]).all():
                return sums, start
            if trail is not None:
                trail[start : start + len(part)] = self.from_doubles(found).reshape(len(part), *sums.shape)
            sums = self.from_doubles(found[-1]).reshape(sums.shape)
        return sums, len(slots)

    def _walk(self, count: int) -> Callable[[Array, list[Array]], Array] | None:
        """Return what adds terms (links, count), or fuses products of factors; None where that would be slow."""
        context, format = self.adder.context, self.format
        if compiled.is_built():
            fed = ["a", "b"] if self.fma else ["a"]
            stage = RecurrenceStage("s", "fma" if self.fma else "add", (*fed, "s"), format, context)
            line = Recurrence(["s", *fed], [stage])

            def walked(sums: Array, terms: list[Array]) -> Array:
                made, rows = np.empty((len(terms[0]), count)), line.rows(count, {"s": sums})
                return made[: line.walk(rows, len(made), dict(zip(fed, terms, strict=True)), {"s": made}, 1, ["s"])]

            return walked if line.is_compiled and count <= SOME else None

        def one_by_one(sums: Array, terms: list[Array]) -> Array:
            columns = zip(sums.tolist(), terms[0].T.tolist(), strict=True)
            found = [add_serially(start, column, format) for start, column in columns]
            return np.array([each[: min(map(len, found))] for each in found]).T

        return one_by_one if not self.fma and count <= FEW and can_add_serially(format, context) else None

    def codes(self, numbers: Array) -> Array:
        """Return numbers as codes."""
        return numbers

    def _apply(self, operation: str, operands: tuple[Source, ...], format: Format, ids: Array) -> Array:
        shape = (len(ids), *np.broadcast_shapes(*(each.codes.shape[1:] for each in operands)))
        formats = tuple(each.format for each in operands)
        made = np.empty(shape, container(format))
        if not self.drawn:
            work = self._works.get((operation, format))
            if work is None:
                work = self._work(operation, formats, format, self.adder.context, made.size)
                self._works[operation, format] = work
            axes = max(each.codes.ndim for each in operands) - 1
            reads = [spread(each.codes, axes) for each in operands]
            sweep(lambda first, *blocks: work(*blocks[:-1], first, blocks[-1], None), reads, [made])
            return made
        made = np.empty((len(ids), *self.batch), made.dtype)
        for lane, id in enumerate(ids.tolist()):
            drawn = self._work(operation, formats, format, self.adder.stream_context(id), made[lane, ...].size)

            def put(first: int, *blocks: Array, work: Callable[..., None] = drawn) -> None:
                work(*blocks[:-1], self.first + first, blocks[-1], None)

            reads = [np.broadcast_to(each.codes[lane, ...], self.batch) for each in operands]
            sweep(put, reads, [made[lane, ...]], 1)
        return made

    @staticmethod
    def _work(
        operation: str, formats: tuple[Format, ...], format: Format, context: Context, count: int
    ) -> Callable[..., None]:
        return calculator(OPERATIONS[operation], formats, format, context, None, False)

    def _converted(self, found: Source, ids: Array) -> Array:
        if not self.drawn:
            return np.asarray(encode(found, self.format, context=self.adder.context))
        wide = np.broadcast_to(found.codes, (len(ids), *self.batch))
        made = self.blank(len(ids))
        for lane, id in enumerate(ids.tolist()):
            # The first of the batch draws as number `first` of the seed's stream.
            context = self.adder.context.replace(seed=self.adder.stream_context(id, self.first).seed)
            made[lane] = encode(Source(wide[lane, ...], found.format), self.format, context=context)
        return made


class FloatEngine(CodeEngine):
    """binary32 or binary64 to nearest even, as the processor adds; NaNs are NaNs, with any payload."""

    def __init__(self, x: Source, y: Source | None, adder: Adder, first: int = 0) -> None:
        """Take the terms as floats, where floats of the accumulator's kind hold them."""
        super().__init__(x, y, adder, first)
        self.kind = np.dtype(np.float32 if self.format == SINGLE else np.float64)
        sides = [x] if y is None else [x, y]
        self.direct = all(holds(self.format, each.format) for each in sides)
        self.plain = self.direct and (y is None or adder.products == self.format)
        self.fuses = self.direct and self.fma and (self.kind == np.float32 or can_fuse_doubles(sides, self.batch))
        if self.direct:
            self.values = [
                each.codes.view(self.kind) if each.format == self.format else decode(each.codes, each.format, self.kind)
                for each in sides
            ]
        elif y is None:
            self.values = [decode(super().leaf(np.arange(self.terms)), self.format, self.kind)]
            self.plain = True

    @staticmethod
    def can(adder: Adder) -> bool:
        """Say whether the processor adds as an adder does."""
        return adder.accumulator in WORDS and rounds_as_processors(adder.context)

    def blank(self, lanes: int) -> Array:
        """Return room for numbers."""
        return np.empty((lanes, *self.batch), self.kind)

    def leaf(self, slots: Array, ids: Array | None = None) -> Array:
        """Return terms, or rounded products."""
        if not self.plain:
            return decode(super().leaf(slots), self.format, self.kind)
        with np.errstate(all="ignore"):
            found = self.values[0][slots] if self.y is None else self.values[0][slots] * self.values[1][slots]
        shape = (len(slots), *self.batch)
        return found if found.shape == shape else np.broadcast_to(found, shape)

    def add(self, a: Array, b: Array, ids: Array) -> Array:
        """Return rounded sums."""
        with np.errstate(all="ignore"):
            found: Array = a + b
        return found

    def subtract(self, a: Array, b: Array, ids: Array) -> Array:
        """Return rounded differences."""
        with np.errstate(all="ignore"):
            found: Array = a - b
        return found

    def fuse(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return fused multiply-adds."""
        if self.fuses:
            return self.update(sums, slots[None], ids[None])
        made = super().fuse(self.codes(sums), slots, ids)
        return decode(made, self.format, self.kind)

    def many(self, arguments: Sequence[tuple[bool, Array]], ids: Array) -> Array:
        """Return exact sums, each rounded once."""
        given = [(leafy, what if leafy else self.codes(what)) for leafy, what in arguments]
        return decode(super().many(given, ids), self.format, self.kind)

    def update(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return sums to which terms were added one after the other."""
        if not (self.fuses if self.fma else self.plain):
            return super().update(sums, slots, ids)
        if not self.fma and sums.size < _FEW and len(slots) >= MANY:
            return self._along(sums, slots)
        # What leaf and add return is new, and only what is new is written into.
        found = sums if sums.base is None and sums.flags.writeable else np.array(sums)
        rows = _rows(slots)
        update(found, self.values[0][rows], None if self.y is None else self.values[1][rows], self.fma)
        return found

    def trail(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums after each link."""
        if not self.fma and self.plain:
            return self._accumulated(sums, slots)
        if self.fuses and self.kind == np.float32 and sums.size < _FEW:
            return fused_trail(sums, self.values[0][slots], self.values[1][slots])
        return super().trail(sums, slots, ids)

    def _walked(self, sums: Array, slots: Array, trail: Array | None = None) -> tuple[Array, int]:
        """Return sums as they are: floats, that no walk through codes takes."""
        return sums, 0

    def doubles(self, numbers: Array) -> Array:
        """Return floats as binary64."""
        with np.errstate(invalid="ignore"):  # of signaling NaNs
            return numbers.astype(np.float64)

    def from_doubles(self, numbers: Array) -> Array:
        """Return binary64 numbers as floats of this kind."""
        with np.errstate(invalid="ignore"):
            return numbers.astype(self.kind)

    def _along(self, sums: Array, slots: Array) -> Array:
        """Add many terms to few sums: accumulation, which NumPy does in order, in place of a call a term."""
        for start in range(0, len(slots), ROWS):
            sums = self._accumulated(sums, slots[start : start + ROWS])[-1]
        return sums

    def _accumulated(self, sums: Array, slots: Array) -> Array:
        terms = self.leaf(slots.reshape(-1)).reshape(*slots.shape, *self.batch)
        with np.errstate(all="ignore"):
            found: Array = np.add.accumulate(np.concatenate([sums[None], terms]), axis=0)[1:]
        return found

    def codes(self, numbers: Array) -> Array:
        """Return numbers as codes."""
        return numbers.view(container(self.format))


def spread(terms: Array, axes: int) -> Array:
    """Return terms with so many axes behind their first one, those that they lack being of length 1.

    >>> spread(np.zeros((5, 3)), 2).shape
    (5, 1, 3)
    """
    return terms.reshape(len(terms), *(1,) * (axes + 1 - terms.ndim), *terms.shape[1:])


def spread_over(terms: Array, batch: tuple[int, ...]) -> Array:
    """Return terms as (n, *batch), which they broadcast to."""
    return np.broadcast_to(spread(terms, len(batch)), (len(terms), *batch))


def _rows(slots: Array) -> Any:
    """Return the slots as a slice where they are neighbours in order: a view then takes the place of a copy.

    >>> _rows(np.array([3, 4, 5])), _rows(np.array([3, 5]))
    (slice(3, 6, None), array([3, 5]))
    """
    first, last = int(slots.flat[0]), int(slots.flat[-1])
    together = slots.ndim == 1 and last - first == len(slots) - 1 and bool((np.diff(slots) == 1).all())
    return slice(first, last + 1) if together else slots


def engine_for(x: Source, y: Source | None, adder: Adder, first: int = 0) -> CodeEngine:
    """Return the quickest engine that adds as an adder does; of NaNs it may give any."""
    return (FloatEngine if FloatEngine.can(adder) else CodeEngine)(x, y, adder, first)
