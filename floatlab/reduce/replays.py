"""Replays: a plan simulated with one accumulator or another, fused or not, against what was really computed."""

from __future__ import annotations

from itertools import product

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.operations import operate
from floatlab.arrays.sources import Source
from floatlab.formats import Format, parse_format
from floatlab.record import Record
from floatlab.reduce.adders import Adder
from floatlab.reduce.outline import subtree
from floatlab.reduce.plan import Plan
from floatlab.reduce.schedules import ByHand
from floatlab.reduce.simulate import simulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

_WIDER = ("binary32", "binary64")


class Way(Record):
    """What sums are made in, what products are rounded to before they are added, and which are fused instead.

    `fma` fuses products onto what was added before; `pairs` fuses one of two products, too, as where accumulators
    start at zero. Without it two products that meet were each an accumulator of their own.
    """

    accumulator: Format
    products: Format
    fma: bool = False
    pairs: bool = False


class Replay(Record):
    """One way to compute along a plan, and how many of the results it gives bit for bit.

    Where there are two ways, they are those of the root's two subtrees, which it adds in the wider accumulator.
    """

    ways: tuple[Way, ...]
    matching: int
    trials: int


def replays(plan: Plan, x: Source, y: Source | None, real: Source) -> Iterator[Replay]:
    """Try accumulators, products and fused multiply-adds; x is (terms, trials), and real has the results.

    Stops at the first that gives all of them.
    """
    ways = _ways(x.format, y is not None)
    for way in ways:
        yield (found := _counted((way,), _rounded(_simulated(plan, x, y, way), way.accumulator, real.format), real))
        if found.matching == found.trials:
            return
    if not plan.nodes or len(plan.nodes[-1]) != 2:
        return
    # A remainder that is added up in another way, and joins the rest at the root.
    values = [
        {way: decode(_simulated(part, *sides, way), way.accumulator, np.float64) for way in ways}
        for part, sides in (_part(plan, child, x, y) for child in plan.nodes[-1])
    ]
    for pair in product(ways, ways):
        if pair[0] == pair[1]:
            continue
        total = values[0][pair[0]] + values[1][pair[1]]  # binary64 is the wider accumulator of the two
        yield (found := _counted(pair, np.asarray(encode(total, real.format)), real))
        if found.matching == found.trials:
            return


def _ways(own: Format, products: bool) -> list[Way]:
    accumulators = [own, *(each for each in map(parse_format, _WIDER) if each != own and holds(each, own))]
    if not products:
        return [Way(each, each) for each in accumulators]
    plain = [Way(each, kind) for each in accumulators for kind in dict.fromkeys((each, own))]
    return [*plain, *(Way(each, each, True, pairs) for each in accumulators for pairs in (True, False))]


def _counted(ways: tuple[Way, ...], codes: Array, real: Source) -> Replay:
    nans = np.isnan(decode(codes, real.format, np.float64)) & np.isnan(decode(real.codes, real.format, np.float64))
    return Replay(ways, int(((codes == real.codes) | nans).sum()), real.codes.size)


def _simulated(plan: Plan, x: Source, y: Source | None, way: Way) -> Array:
    if y is not None and way.fma and not way.pairs:
        x, y = _with_pairs_rounded(plan, x, y, way.products)
    return simulate(x, y, ByHand(plan), Adder(way.accumulator, way.products, way.fma))


def _rounded(codes: Array, format: Format, into: Format) -> Array:
    if format == into:
        return codes
    found: Array = encode(decode(codes, format, np.float64), into)
    return found


def _with_pairs_rounded(plan: Plan, x: Source, y: Source, products: Format) -> tuple[Source, Source]:
    """Return the factors with rounded products, times 1, where two products meet: to fuse those is merely to add."""
    n = plan.terms
    meeting = [each for node in plan.nodes if all(each < n for each in node) for each in node]
    if not meeting or products != x.format:
        return x, y
    made = operate("multiply", [Source(side.codes[meeting], side.format) for side in (x, y)], products, as_codes=True)
    left, right = (np.array(np.broadcast_to(side.codes, (n, *x.codes.shape[1:]))) for side in (x, y))
    left[meeting], right[meeting] = made, encode(1.0, products)
    return Source(left, products), Source(right, products)


def _part(plan: Plan, root: int, x: Source, y: Source | None) -> tuple[Plan, tuple[Source, Source | None]]:
    """Return the plan below an id, and its terms."""
    terms, part = subtree(plan, root)
    side = None if y is None else Source(y.codes[[*terms]], y.format)
    return part, (Source(x.codes[[*terms]], x.format), side)
