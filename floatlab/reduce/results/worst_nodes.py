"""Where the error of a long sum arose: its worst nodes, ranked on arrays and then evaluated exactly."""

from __future__ import annotations

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.pairs import two_product, two_sum
from floatlab.arrays.lanes.parameters import DOUBLE, container
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.numbers import Datum
from floatlab.reduce.plan.batches import Batches
from floatlab.reduce.simulate.adders import Adder, Node, Term
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.float_engine import FloatEngine, engine_for
from floatlab.reduce.simulate.simulation import evaluate

_CLOSE = 4  # how many times as many nodes as were asked for are told exactly, since the ranking is not


def worst_nodes(sides: Sides, batches: Batches, adder: Adder, count: int) -> list[Node]:
    """Return the nodes of one long sum whose roundings missed most, the worst first.

    Raises UnsupportedError for formats that binary64 does not hold, and nodes of more than two numbers.

    >>> from floatlab.arrays.sources import source_of
    >>> from floatlab.reduce.plan.schedules import SERIAL
    >>> x = source_of(np.float32([2**24, 1, 2**30, 1]))
    >>> [(node.id, float(node.error)) for node in worst_nodes((x,), SERIAL.batches(4), Adder(), 2)]
    [(4, -1.0), (6, -1.0)]
    """
    n, format = batches.terms, adder.accumulator
    if not all(holds(DOUBLE, each) for each in (format, *(side.format for side in sides))):
        raise UnsupportedError(f"nodes of {n:,} terms are ranked in binary64, which does not hold these formats")
    if any(chains.rest.shape[1] > 1 for chains in batches.each):
        raise UnsupportedError(f"nodes of more than two numbers are not ranked in sums of {n:,} terms")
    engine = engine_for(sides, adder)
    numbers = np.empty(n + batches.nodes, engine.blank(1).dtype)
    numbers[:n] = engine.leaf(np.arange(n))

    def keep(ids: Array, values: Array) -> None:
        numbers[ids] = values

    evaluate(batches, engine, keep)
    codes = numbers.view(container(format)) if isinstance(engine, FloatEngine) else numbers
    pairs = np.array(batches.plan().nodes, np.int64).reshape(-1, 2)
    missed = _missed(sides, adder, pairs, decode(codes, format, np.float64))
    found = np.argsort(-missed, kind="stable")[: _CLOSE * count]

    def argument(id: int) -> Term | Datum:
        if id >= n:
            return Datum(format, int(codes[id]))
        return Term(*(Datum(side.format, int(side.codes[id])) for side in sides))

    rows = [(n + i, tuple(pairs[i].tolist())) for i in found.tolist() if missed[i] > 0]
    nodes = [adder.node(id, ids, [argument(each) for each in ids]) for id, ids in rows]
    return sorted((node for node in nodes if node.error), key=lambda node: (-abs(node.error or 0), node.id))[:count]


def _missed(sides: Sides, adder: Adder, pairs: Array, numbers: Array) -> Array:
    """Return about how much each node missed, products that were rounded for it included; 0 beyond numbers."""
    n = len(sides[0].codes)
    values = [decode(side.codes, side.format, np.float64) for side in sides]
    with np.errstate(all="ignore"):
        exact, rest = (values[0], np.zeros(n)) if len(sides) == 1 else two_product(*values)
        lost = np.zeros(len(numbers))
        lost[:n] = (numbers[:n] - exact) - rest
        left, right = pairs.T
        a, b, below = numbers[left], numbers[right], np.zeros(len(pairs))
        error = lost[left] + lost[right]
        if adder.fma and len(sides) == 2:
            onto = np.where(right < n, right, np.where(left < n, left, -1))
            fused = (onto >= 0) & (adder.pairs | (left >= n) | (right >= n))
            error -= np.where(fused, lost[onto], 0)
            b = np.where(fused, exact[np.where(fused, onto, 0)], b)
            a = np.where(fused & (right >= n), numbers[right], a)
            below = np.where(fused, rest[np.where(fused, onto, 0)], 0)
        s, e = two_sum(a, b)
        error += ((numbers[n:] - s) - e) - below
    found: Array = np.where(np.isfinite(error), np.abs(error), 0)
    return found
