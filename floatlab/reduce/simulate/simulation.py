"""Simulates reductions on arrays: many sums at once, in the order of any schedule and with any adder.

An engine does the arithmetic. `CodeEngine` works on codes in any format, rounding direction and rounding rule.
`FloatEngine` uses the processor's additions in binary32 or binary64. `TensorEngine` models tensor cores. `adders.fold`
evaluates a single sum with derivations. For the same terms, plan and adder, `fold` and `simulate` give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from math import prod

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.operations import operate
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import PlanError, UnsupportedError
from floatlab.fpmode import in_default_mode
from floatlab.progress import begin, count, pause
from floatlab.reduce.plan.batches import Batch, Batches
from floatlab.reduce.plan.matching import subtree
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import ExplicitTree, Schedule, Sorted
from floatlab.reduce.simulate.adders import Adder, Joined, PartlyFused
from floatlab.reduce.simulate.code_engine import ROWS, CodeEngine, Sides, spread, spread_over, take
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.float_engine import engine_for
from floatlab.reduce.simulate.tensor_core_engine import TensorCore, TensorEngine

AnyAdder = Adder | Compensated | TensorCore
Observer = Callable[[Array, Array], None]  # takes ids of nodes, and their values, of shape (*ids.shape, *batch)
_TILE = 1 << 15  # the largest number of sums that are computed at once, so that their values stay in the cache
_PIECE, _LEAST = 1 << 22, 64  # progress is reported after about _PIECE additions, but not before _LEAST steps
_MOST = 1 << 23  # the largest number of values that a tile holds in memory, unless the smallest tile needs more


def evaluate(batches: Batches, engine: CodeEngine, observe: Observer | None = None) -> Array:
    """Compute many sums in one order, that of `batches`; return an array of the sums, of the shape `engine.batch`.

    A batch is a group of chains of additions that can be computed in parallel. `observe` receives the ids and values of
    all nodes, each node once and after its arguments. Raises UnsupportedError if `engine` and `batches` have
    different numbers of terms.
    """
    if batches.terms != engine.terms:
        raise UnsupportedError(f"the order is for {batches.terms} terms, not {engine.terms}")
    return _Evaluation(batches, engine, observe).result()


class _Evaluation:
    """One evaluation of batches. It holds the engine, the results so far, and the observer."""

    def __init__(self, batches: Batches, engine: CodeEngine, observe: Observer | None) -> None:
        self.batches, self.engine, self.terms = batches, engine, batches.terms
        self.is_observed, self.observe = observe is not None, observe or (lambda ids, values: None)

    def result(self) -> Array:
        """Evaluate all batches, and return the results of the sums, an array of the shape `engine.batch`."""
        n, root = self.terms, self.batches.root
        if root < n:
            return np.asarray(self.engine.leaf(np.array([root]))[0])
        self.store = self.engine.blank(self.batches.slots)
        for batch, results, ids in self.batches.walk():
            for lanes in _alike(batch, n):
                if lanes is None:
                    ends = self._chains(batch, ids)
                    if len(self.batches.each) == 1:
                        return np.asarray(ends[root - n])  # the only batch: its result needs no place in the store
                    self.store[results.start - n : results.stop - n] = ends
                else:
                    part = Batch(batch.first[lanes], batch.rest[:, :, lanes])
                    self.store[results.start - n + lanes] = self._chains(part, ids[:, lanes])
        return np.asarray(self.store[root - n])

    def _argument(self, slots: Array) -> tuple[bool, Array]:
        """Return an argument for the engine: (True, slots) for terms, or (False, values) for earlier results."""
        is_term = bool(slots[0] < self.terms)
        return is_term, slots if is_term else self.store[slots - self.terms]

    def _chains(self, batch: Batch, ids: Array) -> Array:
        """Return the results of parallel chains of additions.

        In each step, either all chains add terms, or all add results of earlier batches (see `_alike`).
        """
        if batch.rest.shape[1] > 1 or self.engine.fuses_all:
            return self._wide_chains(batch, ids)
        engine, steps = self.engine, batch.rest[:, 0]
        sums, start = self._begin(batch.first, steps[0], ids[0])
        if start:
            self.observe(ids[0], sums)
        adds_terms = steps[:, 0] < self.terms
        for low, high in _stretches(adds_terms, start):
            slots, made = steps[low:high], ids[low:high]
            if not adds_terms[low]:
                sums = engine.add(sums, self.store[slots[0] - self.terms], made[0])
                self.observe(made[0], sums)
                count(sums.size)
                continue
            length = min(ROWS, max(_LEAST, _PIECE // max(sums.size, 1)))
            for first in range(0, high - low, length):
                part = slice(first, first + length)
                sums = self._add_terms(sums, slots[part], made[part])
                count(len(made[part]) * sums.size)
        return sums

    def _add_terms(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums after adding terms step by step, and let the observer see each step."""
        if not self.is_observed:
            return self.engine.update(sums, slots, ids)
        trail = self.engine.partial_sums(sums, slots, ids)
        self.observe(ids, trail)
        return np.asarray(trail[-1])

    def _begin(self, first: Array, second: Array, ids: Array) -> tuple[Array, int]:
        """Return the first sums of chains, and the number of steps that these sums already include: 0 or 1."""
        engine, n = self.engine, self.terms
        if first[0] >= n:
            return self.store[first - n], 0
        if engine.fma and second[0] >= n:
            # If only one operand of the first node is a product, this product is fused, even if it is the first
            # operand.
            return engine.fuse(self.store[second - n], first, ids), 1
        if engine.fma and not engine.adder.pairs:
            # If `pairs` is false, both products are rounded, as if each of them had started an accumulator.
            return engine.add(engine.leaf(first), engine.leaf(second), ids), 1
        return engine.leaf(first), 0

    def _wide_chains(self, batch: Batch, ids: Array) -> Array:
        """Return the results of chains in which every node adds all its arguments at once."""
        head = self._argument(batch.first)
        # From step `start` on, the chains add only terms, and no results of earlier batches.
        (sums,) = np.nonzero((batch.rest >= self.terms).any(axis=(1, 2)))
        start = len(ids) if self.engine.fuses_all else max(1, int(sums[-1]) + 1 if len(sums) else 0)
        for step, made in zip(batch.rest[:start], ids[:start], strict=True):
            head = False, self.engine.add_exactly([head, *map(self._argument, step)], made)
            self.observe(made, head[1])
            count(head[1].size)
        if start >= len(ids):
            return head[1]
        trail = self.engine.add_exactly_along(head[1], batch.rest[start:], ids[start:])
        self.observe(ids[start:], trail)
        count(trail.size)
        return np.asarray(trail[-1])


def _alike(batch: Batch, n: int) -> Iterator[Array | None]:
    """Yield groups of lanes that agree on which operands are terms and which are results of earlier batches.

    A lane is one of the parallel chains of a batch. If all lanes agree, yield None.
    """
    is_term = np.concatenate([(batch.first < n)[None], (batch.rest < n).reshape(-1, batch.lanes)])
    mixed = is_term[(is_term != is_term[:, :1]).any(axis=1)]
    if not len(mixed):
        yield None
        return
    kinds = np.zeros(batch.lanes, np.int64)
    for bits in np.packbits(mixed, axis=0):  # np.unique of whole columns is slower, and stops all other threads
        _, kinds = np.unique(kinds << 8 | bits, return_inverse=True)
    for kind in range(int(kinds.max()) + 1):
        yield np.flatnonzero(kinds == kind)


def _stretches(adds_terms: Array, start: int) -> Iterator[tuple[int, int]]:
    """Split the steps from `start` on into ranges. A range is a run of steps that add terms, or one other step."""
    for place in (*np.flatnonzero(~adds_terms[start:]) + start, len(adds_terms)):
        if start < place:
            yield start, int(place)
        if place < len(adds_terms):
            yield int(place), int(place) + 1
        start = int(place) + 1


@in_default_mode
def simulate(sides: Sides, schedule: Schedule, adder: AnyAdder | PartlyFused | Joined) -> Array:
    """Return the codes of sums of numbers or of products, in the accumulator's format.

    Parameters
    ----------
    sides : tuple of Source
        The terms, of shape (n, *batch), or the two factors of each term, which broadcast to this shape.
    schedule : Schedule
        The order of the additions.
    adder : AnyAdder, PartlyFused or Joined
        The arithmetic of each node.

    Raises
    ------
    PlanError
        If the schedule has no order for n terms, or if the adder does not support this order.
    UnsupportedError
        If the adder cannot add such terms.

    Examples
    --------
    >>> terms = np.float32([1, 2**-24, 2**-24, 2**-24])[:, None].view(np.uint32)
    >>> from floatlab.formats import parse_format
    >>> from floatlab.reduce.simulate.adders import Adder
    >>> from floatlab.reduce.plan.schedules import PAIRWISE
    >>> from floatlab.reduce.plan.grouped_schedules import SERIAL
    >>> sides = (Source(terms, parse_format("fp32")),)
    >>> [hex(simulate(sides, order, Adder())[0]) for order in (SERIAL, PAIRWISE)]
    ['0x3f800000', '0x3f800001']
    """
    if isinstance(adder, Joined):
        return _simulate_joined(sides, schedule, adder)
    pause()
    n = len(sides[0].codes)
    order = schedule if isinstance(schedule, Sorted) else None
    inner = schedule if order is None else order.inner
    batches = inner.batches(n)
    batch = np.broadcast_shapes(*(side.codes.shape[1:] for side in sides))
    begin(batches.nodes * prod(batch))
    pause()
    made = np.empty(batch, container(adder.accumulator))
    more = 2 * n if isinstance(adder, PartlyFused) else 0 if order is None else n
    for place, first in _tiles(batch, batches, adder, more):
        part = tuple(Source(_part(side.codes, place, batch), side.format) for side in sides)
        if order is not None:
            part = sort_terms(part, order)
        if isinstance(adder, PartlyFused):
            # The ids of nodes in `adder.kept` refer to this tree.
            tree = inner.tree if isinstance(inner, ExplicitTree) else inner.plan(n)
            made[place] = _simulate_partly_fused(part, tree, adder)
        else:
            made[place] = _simulate_part(part, batches, adder, first)
    return made


def _simulate_part(sides: Sides, batches: Batches, adder: AnyAdder, first: int) -> Array:
    if isinstance(adder, TensorCore):
        return evaluate(batches, TensorEngine(sides, adder))
    run, own = (adder.evaluated, adder.adder) if isinstance(adder, Compensated) else (evaluate, adder)
    engine = engine_for(sides, own, first)
    numbers = run(batches, engine)
    codes = engine.codes(numbers)
    if type(engine) is CodeEngine:
        return codes
    invalid = np.isnan(numbers)
    if not invalid.any():
        return codes
    # Only `CodeEngine` computes the payloads of NaNs.
    chosen = tuple(Source(spread_over(side.codes, engine.batch)[:, invalid], side.format) for side in sides)
    codes = np.array(codes)
    codes[invalid] = run(batches, CodeEngine(chosen, own))
    return codes


def _simulate_joined(sides: Sides, schedule: Schedule, adder: Joined) -> Array:
    """Simulate both operands of the last node, each with its adder, and add the two results."""
    plan = schedule.plan(len(sides[0].codes))
    if not plan.nodes or len(plan.nodes[-1]) != 2:
        raise PlanError("two adders need a last node with two operands")
    sums = []
    for child, own in zip(plan.nodes[-1], (adder.first, adder.second), strict=True):
        terms, part = subtree(plan, child)
        own = own.within(terms) if isinstance(own, PartlyFused) else own
        sums.append(Source(simulate(take(sides, np.array(terms)), ExplicitTree(part), own), own.accumulator))
    return np.asarray(operate("add", sums, adder.accumulator, as_codes=True))


def _simulate_partly_fused(sides: Sides, plan: Plan, adder: PartlyFused) -> Array:
    """Simulate level by level: each node either adds one product by FMA or adds two rounded operands."""
    if len(sides) == 1 or any(len(node) != 2 for node in plan.nodes) or any(id >= plan.terms for id in adder.fused):
        raise PlanError("fusing only some of the products needs products, and nodes of two operands")
    n, format = plan.terms, adder.accumulator
    products = operate("multiply", [*sides], format, as_codes=True)
    sums = np.concatenate([products, np.empty((len(plan.nodes), *products.shape[1:]), products.dtype)])
    factors = tuple(Source(spread(side.codes, products.ndim - 1), side.format) for side in sides)
    fuses = np.zeros(len(sums), np.bool_)
    fuses[list(adder.fused)] = True
    for level in plan.levels:
        ids = np.array(level)
        first, second = np.array([plan.nodes[id - n] for id in level]).T
        swapped = fuses[first] & ~fuses[second]
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        is_fused = fuses[second]
        for operation, part in (("fma", is_fused), ("add", ~is_fused)):
            if part.any():
                left, right = Source(sums[first[part]], format), second[part]
                operands = [*take(factors, right), left] if operation == "fma" else [left, Source(sums[right], format)]
                sums[ids[part]] = operate(operation, operands, format, as_codes=True)
        kept = ids[np.isin(ids, adder.kept)]
        if adder.partials is not None and len(kept):
            stored = Source(np.asarray(encode(Source(sums[kept], format), adder.partials)), adder.partials)
            sums[kept] = encode(stored, format)
    return np.asarray(sums[plan.root])


def _part(codes: Array, place: tuple[slice, ...], batch: tuple[int, ...]) -> Array:
    whole = spread(codes, len(batch))
    return whole[(slice(None), *(slice(None) if m == 1 else s for s, m in zip(place, whole.shape[1:], strict=True)))]


def _tiles(
    batch: tuple[int, ...], batches: Batches, adder: AnyAdder | PartlyFused, more: int
) -> Iterator[tuple[tuple[slice, ...], int]]:
    """Split the array of sums, of shape `batch`, into tiles that are simulated one at a time.

    Yield the slices of each tile, and the index of its first sum, which only random draws need. Without random draws, a
    tile may contain only parts of rows; its index is then given as 0. `more` is the number of further values per sum
    that the caller holds in memory.
    """
    most = max((chains.lanes * (1 + chains.rest.shape[1]) for chains in batches.each), default=1)
    wide = max((chains.rest.shape[1] for chains in batches.each), default=1)
    room = max(1, min(_TILE // wide, _MOST // max(batches.slots + most + more, 1)))
    if prod(batch) <= room or not batch:
        yield tuple(slice(None) for _ in batch), 0
        return
    # Random draws are numbered in C order. Under stochastic rounding, a tile must thus consist of whole rows.
    drawn = adder.context.rounding.is_stochastic
    inner = prod(batch[1:])
    columns = batch[-1] if drawn or len(batch) == 1 or batch[-1] <= room else room
    rows = max(1, room // (inner if len(batch) < 2 or columns == batch[-1] else inner // batch[-1] * columns))
    for low in range(0, batch[0], rows):
        if len(batch) == 1 or columns == batch[-1]:
            yield (slice(low, low + rows), *(slice(None) for _ in batch[1:])), low * inner
            continue
        for left in range(0, batch[-1], columns):
            yield (slice(low, low + rows), *(slice(None) for _ in batch[1:-1]), slice(left, left + columns)), 0


def sort_terms(sides: Sides, schedule: Sorted) -> Sides:
    """Return the terms of each sum, or the factors of its products, sorted as a `sorted` schedule requires."""
    places = places_of(sides, schedule)
    wide = (spread_over(side.codes, places.shape[1:]) for side in sides)
    return tuple(Source(np.take_along_axis(w, places, 0), s.format) for w, s in zip(wide, sides, strict=True))


def places_of(sides: Sides, schedule: Sorted) -> Array:
    """Return an array (n, *batch) of the indices that sort the terms or products as a `sorted` schedule requires."""
    batch = np.broadcast_shapes(*(side.codes.shape[1:] for side in sides))
    numbers = [decode(spread_over(side.codes, batch), side.format, np.float64) for side in sides]
    with np.errstate(all="ignore"):
        return schedule.places(np.abs(reduce(np.multiply, numbers)))
