"""Propose the arithmetic of the nodes of a revealed tree.

Products may be fused, sums may be compensated, and partial sums may have a narrower format. A replay decides whether a
proposal is right: in `revelation` for one sum, in `order_map` for a whole product.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

from floatlab.arith.operands import holds
from floatlab.formats import CATALOG, Format, parse_format
from floatlab.numbers.rounding import DEFAULT
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import ExplicitTree
from floatlab.reduce.replay.candidates import WIDER, Candidate, adders_along
from floatlab.reduce.reveal.probes import ProbeReader
from floatlab.reduce.simulate.adders import Adder, PartlyFused
from floatlab.reduce.simulate.compensated import Compensated


def usual_candidates(format: Format, into: Format, plan: Plan, reader: ProbeReader | None) -> Iterator[Candidate]:
    """Yield one candidate for each usual arithmetic of a plan's nodes.

    If every node adds two numbers and the results have the format of the terms, `reader` (if given) probes which
    products are fused. In this case, the first candidate fuses exactly the products that the probes find.
    """
    schedule = ExplicitTree(plan)
    fused = None if reader is None else cache(lambda: reader.fused(plan))
    binary = all(len(node) == 2 for node in plan.nodes)
    if fused is not None and binary and into == format and plan.nodes:
        yield Candidate(schedule, _adder_of(schedule.tree, frozenset(fused()), format))
    for adder in adders_along(schedule, plan.terms, (format, format), into, fused=fused):
        yield Candidate(schedule, adder)


def compensated_candidates(into: Format, plan: Plan) -> Iterator[Candidate]:
    """Yield candidates that add one term after the other in the order of a plan, with Kahan's compensation.

    If the plan does not add one term after the other, nothing is yielded.

    Other compensated sums do not lose the units of a probe (see `probes`), so probes find no plan for them.

    >>> from floatlab.formats import parse_format
    >>> ways = compensated_candidates(parse_format("fp32"), Plan(3, ((2, 1), (3, 0))))
    >>> [each.schedule.tree.nodes for each in ways][:2]
    [((2, 1), (3, 0)), ((1, 2), (3, 0))]
    """
    order: list[int] = []
    ids = range(plan.terms, plan.root + 1)
    for id, node in zip(ids, plan.nodes, strict=True):
        leaves = [child for child in node if child < plan.terms]
        if len(node) != 2 or (order and (len(leaves) != 1 or id - 1 not in node)):
            return
        order += leaves
    if len(order) < 2:
        return
    formats = [into, *(each for each in map(parse_format, WIDER) if each != into and holds(each, into))]
    for format in formats:
        for first in (order[:2], order[1::-1]):
            nodes = (tuple(first), *((id, leaf) for id, leaf in zip(ids, order[2:], strict=False)))
            yield Candidate(ExplicitTree(Plan(plan.terms, nodes)), Compensated("kahan", format, format, DEFAULT))


def narrowed_candidates(format: Format, into: Format, plan: Plan, reader: ProbeReader | None) -> Iterator[Candidate]:
    """Yield candidates that round some partial sums to a narrower format. Probes find these sums."""
    if reader is None or any(len(node) > 2 for node in plan.nodes):
        return
    schedule = ExplicitTree(plan)
    kept, digits = reader.kept(schedule.tree, into)
    if kept:
        fused = reader.fused(plan)
        wider = [each for each in map(parse_format, WIDER) if each != format and holds(each, format)]
        narrow = (row.format for row in CATALOG if row.format.precision == digits and row.format.infinities)
        for partials, accumulator in product(narrow, (format, *wider)):
            yield Candidate(schedule, PartlyFused(accumulator, fused, partials, kept))


def _adder_of(plan: Plan, fused: frozenset[int], format: Format) -> Adder | PartlyFused:
    """Return the simplest adder that fuses the products of the terms `fused` and rounds the other products.

    >>> from floatlab.formats import parse_format
    >>> serial, single = Plan(3, ((0, 1), (3, 2))), parse_format("fp32")
    >>> [_adder_of(serial, frozenset(fused), single).fma for fused in ((), (1, 2))]
    [False, True]
    >>> _adder_of(serial, frozenset((0, 2)), single).fused
    (0, 2)
    """
    n = plan.terms
    lone = {min(node) for node in plan.nodes if min(node) < n <= max(node)}
    last = {node[1] for node in plan.nodes if node[0] < n > node[1]}
    if not fused:
        return Adder(format)
    if fused == lone | last:
        return Adder(format, fma=True)
    if fused == lone and last:
        return Adder(format, fma=True, pairs=False)
    return PartlyFused(format, tuple(sorted(fused)))
