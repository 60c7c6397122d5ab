"""Boxes of indices: a box has one range of indices for each axis.

A range of a flattened axis is converted into boxes of the original axes, and adjacent boxes are joined.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from math import prod

Box = tuple[tuple[int, int], ...]  # a half-open range of each axis


def unflatten_range(first: int, stop: int, sizes: Sequence[int]) -> list[Box]:
    """Return the boxes that a range of indices of a flattened axis covers. `sizes` has the sizes of the original axes.

    >>> unflatten_range(3, 12, (4, 5))
    [((0, 1), (3, 5)), ((1, 2), (0, 5)), ((2, 3), (0, 2))]
    """
    if not sizes:
        return [()]
    if len(sizes) == 1:
        return [((first, stop),)]
    rest = sizes[1:]
    inner = prod(rest)
    (top, before), (bottom, after) = divmod(first, inner), divmod(stop, inner)
    if top == bottom:
        return [((top, top + 1), *box) for box in unflatten_range(before, after, rest)]
    found: list[Box] = []
    if before:
        found += [((top, top + 1), *box) for box in unflatten_range(before, inner, rest)]
        top += 1
    if top < bottom:
        found.append(((top, bottom), *((0, size) for size in rest)))
    if after:
        found += [((bottom, bottom + 1), *box) for box in unflatten_range(0, after, rest)]
    return found


def join_boxes(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """Join boxes that touch along one axis and agree along all other axes, and return them sorted.

    >>> join_boxes([((0, 1), (3, 5)), ((1, 2), (3, 5)), ((4, 5), (3, 5))])
    (((0, 2), (3, 5)), ((4, 5), (3, 5)))
    """
    found = sorted(set(boxes))
    count = 0
    while len(found) != count and found:
        count = len(found)
        for axis in range(len(found[0])):
            found = _join_along(axis, found)
    return tuple(sorted(found))


def _join_along(axis: int, boxes: list[Box]) -> list[Box]:
    by_others: dict[Box, list[tuple[int, int]]] = {}
    for box in boxes:
        by_others.setdefault((*box[:axis], *box[axis + 1 :]), []).append(box[axis])
    return [
        (*others[:axis], span, *others[axis:])
        for others, spans in by_others.items()
        for span in _join_spans(sorted(spans))
    ]


def _join_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found = spans[:1]
    for first, stop in spans[1:]:
        if first <= found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((first, stop))
    return found


def box_text(box: Box, shape: Sequence[int]) -> str:
    """Return a box as text in Python's index notation.

    >>> box_text(((2, 3), (0, 4), (1, 3)), (5, 4, 6))
    '[2, :, 1:3]'
    """
    words = [
        str(first) if stop == first + 1 and size > 1 else ":" if stop - first == size else f"{first}:{stop}"
        for (first, stop), size in zip(box, shape, strict=True)
    ]
    return f"[{', '.join(words)}]"


def all_boxes(groups: Iterable[Iterable[Box]]) -> tuple[Box, ...]:
    """Return the boxes of several groups, joined."""
    return join_boxes(chain.from_iterable(groups))
