"""Read an order map from its JSON document: check the members, and compute what the document omits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.types import Array
from floatlab.errors import FileFormatError, counted, quoted
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import ExplicitTree
from floatlab.reduce.replay.candidates import Candidate, NodeAdder
from floatlab.reduce.reveal.node_arithmetic import compensated_candidates
from floatlab.reduce.reveal.order_map_record import OrderClass, OrderMap, Region
from floatlab.reduce.reveal.sized_target import LAYOUTS, MOST_TERMS, checked_shape
from floatlab.reduce.reveal.stripes import Stripes, stripes_of
from floatlab.reduce.simulate.adders import Joined, PartlyFused
from floatlab.reduce.simulate.compensated import Compensated

_MOST_PROBES = 1 << 53


class ReadClass(Record):
    """The members of a JSON document that describe one class: elements that are computed in the same way."""

    nodes: tuple[tuple[int, ...], ...] | None
    adders: tuple[NodeAdder, ...]
    reason: str
    regions: tuple[Region, ...]


def order_map_of(
    target: str,
    shape: tuple[int, ...],
    batch: int,
    layout: str,
    terms_format: Format,
    format: Format,
    classes: tuple[ReadClass, ...],
    probes: int,
    products: int,
) -> OrderMap:
    """Return the order map that a document describes; raises FileFormatError if the document contradicts itself.

    The field `seconds` of the map is 0, because the document does not say how long the search took.
    """
    if len(shape) != 3 or not 1 <= batch <= shape[0] or shape[0] % batch:
        raise FileFormatError(f"{[*shape]} is not a shape of {batch} products: rows of all products, terms, columns")
    rows, terms, columns = shape
    checked_shape((batch, rows // batch, terms, columns))
    is_gram = "B" not in layout
    if layout not in LAYOUTS or (is_gram and rows != columns) or (batch > 1 and layout != LAYOUTS[0]):
        these = f"{counted(batch, 'product')} of {rows // batch} × {terms} × {columns}"
        raise FileFormatError(f"the layout {quoted(layout)} does not fit {these}")
    if terms > MOST_TERMS:
        raise FileFormatError(f"a map must have at most {MOST_TERMS:,} terms, not {terms:,}")
    if not 0 <= probes < _MOST_PROBES or not 0 <= products < _MOST_PROBES:
        raise FileFormatError("the number of probes or products is impossible")
    for each in (terms_format, format):
        container(each)
    size = rows * columns
    if sum(_size(region, rows, columns) for each in classes for region in each.regions) != size:
        raise FileFormatError(f"the regions do not cover each of the {size:,} elements exactly once")
    labels = np.full((rows, columns), -1, np.int64)
    made = tuple(_class(each, number, labels, terms, format) for number, each in enumerate(classes))
    return OrderMap(
        shape=(rows, terms, columns),
        classes=made,
        labels=labels,
        share=sum(each.elements for each in made if each.candidate is not None) / size,
        target=target,
        layout=layout,
        terms_format=terms_format,
        format=format,
        probes=probes,
        products=products,
        seconds=0.0,
        batch=batch,
    )


def _class(read: ReadClass, number: int, labels: Array, terms: int, format: Format) -> OrderClass:
    """Return the class with the index `number`, and write `number` into `labels` at the elements of this class."""
    lines: tuple[set[int], set[int]] = set(), set()
    elements = 0
    for region in read.regions:
        sides = [[i for each in stripes for i in each.indices] for stripes in (region.rows, region.columns)]
        places = np.ix_(*sides)
        if (labels[places] != -1).any():
            raise FileFormatError(f"an element of class {number} is in more than one region")
        labels[places] = number
        elements += len(sides[0]) * len(sides[1])
        for all_lines, own in zip(lines, sides, strict=True):
            all_lines.update(own)
    if not elements:
        raise FileFormatError(f"class {number} has no element")
    plan = None if read.nodes is None else Plan(terms, read.nodes)
    candidate = _candidate(plan, read.adders)
    return OrderClass(
        plan=plan,
        candidate=candidate,
        format=format,
        regions=read.regions,
        rows=stripes_of(np.array(sorted(lines[0]))),
        columns=stripes_of(np.array(sorted(lines[1]))),
        elements=elements,
        share=elements / labels.size,
        agreement=float(candidate is not None),
        reason=read.reason,
    )


def _candidate(plan: Plan | None, adders: tuple[NodeAdder, ...]) -> Candidate | None:
    if not adders:
        return None
    if plan is None or len(adders) > 2:
        raise FileFormatError(
            "a class without a tree cannot have adders"
            if plan is None
            else f"a class must have at most two adders, not {len(adders)}"
        )
    rounded = [each for each in adders if not isinstance(each, Compensated)]
    if len(rounded) < len(adders):
        way = Candidate(ExplicitTree(plan), adders[0])
        if len(adders) > 1 or way not in compensated_candidates(adders[0].accumulator, plan):
            raise FileFormatError("a compensated sum adds one term after the other, by Kahan's rule")
        return way
    for each in rounded:
        if not isinstance(each, PartlyFused):
            continue
        if not all(one < other for one, other in pairwise((-1, *each.fused, plan.terms))):
            raise FileFormatError(f"the fused terms are not ascending numbers from 0 to {plan.terms - 1}")
        if not all(one < other for one, other in pairwise((plan.terms - 1, *each.kept, plan.root + 1))):
            raise FileFormatError(f"the kept nodes are not ascending numbers from {plan.terms} to {plan.root}")
        if each.kept and (each.partials is None or len(adders) > 1 or ExplicitTree(plan).tree != plan):
            raise FileFormatError("kept sums need a format, and nodes that are numbered from left to right")
    if len(adders) == 2 and (not plan.nodes or len(plan.nodes[-1]) != 2):
        raise FileFormatError("two adders need a last node that adds two sums")
    return Candidate(ExplicitTree(plan), rounded[0] if len(rounded) == 1 else Joined(*rounded))


def _size(region: Region, rows: int, columns: int) -> int:
    """Return the number of elements of a region.

    Raises FileFormatError if the region goes beyond the product, which has `rows` rows and `columns` columns.
    """
    return _length(region.rows, rows) * _length(region.columns, columns)


def _length(stripes: tuple[Stripes, ...], most: int) -> int:
    """Return how many rows or columns these stripes cover.

    Raises FileFormatError if stripes overlap, or if one of them ends beyond the last of `most` rows or columns.
    """
    end = 0
    for each in stripes:
        if each.start < end or each.width < 1 or each.count < 1 or (each.count > 1 and each.step < each.width):
            raise FileFormatError("the runs of a region are not ascending")
        end = each.start + (each.count - 1) * each.step + each.width
    if end > most:
        raise FileFormatError(f"a region ends at row or column {end:,}, but the product has only {most:,}")
    return sum(each.width * each.count for each in stripes)
