"""Find the positions of the wrong elements in an operation's result, as indices or boxes along all axes."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.reduce.explain.operations.boxes import Box, join_boxes
from floatlab.reduce.explain.operations.products import Products
from floatlab.reduce.explain.residuals import indices_of, runs_of, share_of
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Place

_FILLED = 0.97  # a box is reported if more than this share of its elements is wrong
_BOXES = 16  # wrong elements are divided into at most this many boxes
_MEAN = 4  # boxes are reported only if they contain at least this many wrong elements on average


def mark_wrong(products: Products, result: Source, claims: list[tuple[int, DiagnosedCause]]) -> Array:
    """Return the mask of the wrong elements in the shape of the operation's result.

    `claims` holds pairs of a product's number and a cause found for this product. A cause without positions marks the
    whole product. If the cause says that a region holds zeros, only the zeros in this region are marked.
    """
    wrong = np.zeros(products.shape, bool)
    for number, cause in claims:
        claimed = np.zeros((products.rows, products.columns), bool)
        listed = []
        for place in cause.where or (((0, products.rows), (0, products.columns)),):
            if isinstance(place[0], tuple):
                claimed[tuple(slice(*span) for span in place if isinstance(span, tuple))] = True
            else:
                listed.append(place)
        if claimed.any() and ("holds", "zeros") in cause.evidence:
            claimed &= _zeros(products, result, number)
        for row, column in listed:
            claimed[row, column] = True
        for row, column in np.argwhere(claimed).tolist():
            wrong[products.index(number, row, column)] = True
    return wrong


def _zeros(products: Products, result: Source, number: int) -> Array:
    block = products.result(result, number)
    zero: Array = np.asarray(decode(block.codes, block.format), np.float64) == 0
    return zero


def find_boxes(wrong: Array) -> tuple[Box, ...] | None:
    """Return boxes that contain all wrong elements, or None if the wrong elements are scattered or too few.

    >>> wrong = np.zeros((4, 9, 9), bool)
    >>> wrong[:, 2:4, 3:6] = wrong[1, 7:, 3:6] = True
    >>> find_boxes(wrong)
    (((0, 4), (2, 4), (3, 6)), ((1, 2), (7, 9), (3, 6)))
    """
    count = int(wrong.sum())
    if count < _MEAN or not wrong.ndim:
        return None
    axes = range(wrong.ndim)
    spans = [runs_of(np.asarray(wrong.any(axis=tuple(other for other in axes if other != axis)))) for axis in axes]
    whole = tuple((each[0][0], each[-1][1]) for each in spans)
    if _is_filled(wrong, whole):
        return (whole,)
    if prod(map(len, spans)) > _BOXES:
        return None
    found = []
    for box in product(*spans):
        part = wrong[tuple(slice(*span) for span in box)]
        if not part.any():
            continue
        marked = np.argwhere(part)
        low, high = marked.min(axis=0).tolist(), marked.max(axis=0).tolist()
        tight = tuple((first + a, first + b + 1) for (first, _), a, b in zip(box, low, high, strict=True))
        if not _is_filled(wrong, tight):
            return None
        found.append(tight)
    return join_boxes(found) if count >= _MEAN * len(found) else None


def places_of(wrong: Array) -> tuple[str, tuple[Place, ...]]:
    """Return "region" and boxes that contain the wrong elements, or "elements" and at most 4,096 of their indices."""
    boxes = find_boxes(wrong)
    if boxes is not None:
        return "region", boxes
    return "elements", indices_of(wrong)


def _is_filled(wrong: Array, box: Box) -> bool:
    return bool(share_of(wrong[tuple(slice(*span) for span in box)]) > _FILLED)
