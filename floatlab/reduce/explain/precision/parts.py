"""Recognise rectangles of a result that were computed in another precision, for example by another worker."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.reduce.explain.findings import SideExplanation
from floatlab.reduce.explain.problem import ProductProblem, Side
from floatlab.reduce.explain.residuals import find_places, mask_of, share_of
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Place

_MOST = 4  # at most this many rectangles are examined
_FILLED = 0.5  # wrong elements count as a rectangle if they are at least this share of the rectangle around them
_WHOLE = 0.9  # a rectangle with a larger share of the elements is not examined: a model explains almost all elements
_LEAST = 32  # a rectangle with fewer different numbers may fit a precision by chance
_PRECISIONS = {"inputs-rounded", "inputs-quantized", "inputs-split", "output-rounded", "accumulator", "partials"}

Explain = Callable[[ProductProblem, Side, Array], SideExplanation]
Causes = tuple[DiagnosedCause, ...]


def parts_in_another_precision(
    problem: ProductProblem, found: SideExplanation, explain: Explain, explained: dict[Place, Causes]
) -> SideExplanation:
    """Return an explanation that names the precision of wrong rectangles, if all of them have the same precision.

    Otherwise, `found` is returned. The function `explain` explains a rectangle as if the rectangle were a whole result.
    The arguments of `explain` are a problem with the rows and columns of the rectangle, the rectangle, and a mask of
    all its elements. The causes that were found for a rectangle are kept in `explained`; they are empty if no other
    precision explains the rectangle.
    """
    if len(found.causes) != 1 or found.status != "bug":
        return found
    (fault,) = found.causes
    if fault.share == 1 or dict(fault.evidence).keys() & {"all", "element", "there"}:
        return found
    boxes = fault.where if fault.name == "region" else _around(found.wrong) if fault.name == "elements" else ()
    if not 0 < len(boxes) <= _MOST:
        return found
    for place in boxes:
        if place not in explained:
            explained[place] = _part(problem, found.side, place, explain)
        if not explained[place] or explained[place] != explained[boxes[0]]:
            return found
    here = tuple(each.replace(share=fault.share, where=boxes) for each in explained[boxes[0]])
    return found.replace(status="rounding", causes=here)


def rectangles_without(wrong: Array, others: Array) -> tuple[Place, ...]:
    """Return rectangles that contain all elements of the mask `wrong` and no element of the mask `others`.

    If there are no such rectangles, or if one of the two masks has too few elements, return an empty tuple.
    """
    places = find_places(wrong) if min(wrong.sum(), others.sum()) >= _LEAST else None
    if places is None or places.name != "region" or ((wrong | mask_of(places.where, wrong.shape)) & others).any():
        return ()
    return places.where


def _around(wrong: Array | None) -> tuple[Place, ...]:
    """Return the rectangle around all wrong elements, in a tuple.

    The tuple is empty if fewer than half of the rectangle's elements are wrong, or if the rectangle covers almost the
    whole result.
    """
    if wrong is None or not wrong.any():
        return ()
    spans = [
        (int(lines[0]), int(lines[-1]) + 1) for lines in map(np.flatnonzero, (wrong.any(axis=1), wrong.any(axis=0)))
    ]
    rows, columns = (slice(*span) for span in spans)
    if wrong[rows, columns].size > _WHOLE * wrong.size or share_of(wrong[rows, columns]) < _FILLED:
        return ()
    return (tuple(spans),)


def _part(problem: ProductProblem, side: Side, place: Place, explain: Explain) -> Causes:
    """Return the causes of the errors in one rectangle.

    Return () if a cause is not a choice of precision (`_PRECISIONS`), or does not hold for the whole rectangle.
    """
    rows, columns = (slice(*span) for span in place if isinstance(span, tuple))
    codes = side.source.codes[rows, columns]
    if np.unique(side.values[rows, columns]).size < _LEAST:
        return ()
    x, y = problem.sources
    inputs = Source(x.codes[rows], x.format, x.dtype), Source(y.codes[:, columns], y.format, y.dtype)
    part = Side(side.name, Source(codes, side.format, side.source.dtype))
    smaller = ProductProblem(*inputs, (side.format,), problem.has_bias)
    found = explain(smaller, part, np.ones(codes.shape, bool))
    if found.status != "rounding" or any(each.name not in _PRECISIONS or each.where for each in found.causes):
        return ()
    return found.causes
