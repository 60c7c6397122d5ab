"""Where wrong elements lie: as rectangles, as whole rows or columns, or as a few single elements."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record

_FILLED = 0.6  # of a rectangle, so that it is one
_FEW = 8  # single elements that are always named
_SHARE = 0.02  # of all elements, so that they are single ones
_BOXES = 16
_LEAST = 3  # elements of a rectangle


class Places(Record):
    """Wrong elements: `name` is "region" with half-open ranges of each axis, or "elements" with indices."""

    name: str
    where: tuple[tuple[tuple[int, int], ...] | tuple[int, ...], ...]
    count: int


def find_places(wrong: Array) -> Places | None:
    """Return where a mask of wrong elements has them; None where they are scattered over the result.

    >>> wrong = np.zeros((9, 9), bool)
    >>> wrong[2:4, 3:6] = True
    >>> find_places(wrong)
    Places(name='region', where=(((2, 4), (3, 6)),), count=6)
    """
    count = int(wrong.sum())
    if not count:
        return None
    if count > _LEAST:
        box = _bounds(wrong)
        if _is_filled(wrong, box, count):
            return Places("region", (box,), count)
        if (boxes := _boxes(wrong, count)) is not None:
            return Places("region", boxes, count)
    if count <= max(_FEW, _SHARE * wrong.size) or (count <= _LEAST and count * 2 <= wrong.size):
        indices = np.argwhere(wrong)[: 1 << 12].tolist()
        return Places("elements", tuple(tuple(map(int, index)) for index in indices), count)
    return None


def _bounds(wrong: Array) -> tuple[tuple[int, int], tuple[int, int]]:
    rows, columns = (np.flatnonzero(wrong.any(axis=axis)) for axis in (1, 0))
    return (int(rows[0]), int(rows[-1]) + 1), (int(columns[0]), int(columns[-1]) + 1)


def _is_filled(wrong: Array, box: tuple[tuple[int, int], ...], count: int) -> bool:
    (top, bottom), (left, right) = box
    return count > _FILLED * (bottom - top) * (right - left)


def _runs(marks: Array) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(np.int8)))
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]


def _boxes(wrong: Array, count: int) -> tuple[tuple[tuple[int, int], ...], ...] | None:
    """Return the products of runs of rows and runs of columns that hold wrong elements, if they are filled."""
    rows, columns = (_runs(np.asarray(wrong.any(axis=axis))) for axis in (1, 0))
    if len(rows) * len(columns) > _BOXES:
        return None
    found = []
    for top, bottom in rows:
        for left, right in columns:
            part = wrong[top:bottom, left:right]
            if part.any():
                (a, b), (c, d) = _bounds(part)
                box = (top + a, top + b), (left + c, left + d)
                if not _is_filled(wrong, box, int(part.sum())):
                    return None
                found.append(box)
    return tuple(found) if count >= 4 * len(found) else None
