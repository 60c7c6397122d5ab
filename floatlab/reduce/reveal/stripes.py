"""Describe sets of rows or columns briefly: as runs of adjacent indices, and as equal runs at equal distances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from floatlab.arrays.types import Array
from floatlab.record import Record


class Stripes(Record):
    """`count` runs of `width` adjacent indices; the runs begin at `start`, `start + step`, and so on."""

    start: int
    width: int = 1
    step: int = 0
    count: int = 1

    @property
    def indices(self) -> list[int]:
        """All indices in ascending order.

        >>> Stripes(4, 2, 6, 3).indices
        [4, 5, 10, 11, 16, 17]
        """
        return [self.start + k * self.step + i for k in range(self.count) for i in range(self.width)]

    @property
    def text(self) -> str:
        """The indices in words.

        >>> Stripes(7).text, Stripes(0, 6).text, Stripes(4, 2, 6, 3).text
        ('7', '0–5', '4–5, 10–11, … 16–17')
        """
        runs = [self.start + k * self.step for k in range(self.count)]
        words = [str(first) if self.width == 1 else f"{first}–{first + self.width - 1}" for first in runs]
        return ", ".join(words) if len(words) < 3 else f"{words[0]}, {words[1]}, … {words[-1]}"


def stripes_of(indices: Array) -> tuple[Stripes, ...]:
    """Return ascending indices as a few stripes.

    >>> stripes_of(np.array([0, 1, 2, 3, 10]))
    (Stripes(start=0, width=4, step=0, count=1), Stripes(start=10, width=1, step=0, count=1))
    >>> stripes_of(np.array([4, 5, 10, 11, 16, 17]))
    (Stripes(start=4, width=2, step=6, count=3),)
    """
    if not len(indices):
        return ()
    bounds = [0, *(np.flatnonzero(np.diff(indices) != 1) + 1).tolist(), len(indices)]
    runs = [(int(indices[low]), high - low) for low, high in pairwise(bounds)]
    found: list[Stripes] = []
    for start, width in runs:
        last = found[-1] if found else None
        if last is not None and last.width == width and last.step in (0, start - _last_start(last)):
            found[-1] = Stripes(last.start, width, start - _last_start(last), last.count + 1)
        else:
            found.append(Stripes(start, width))
    return tuple(found)


def stripes_text(stripes: tuple[Stripes, ...], total: int, noun: str) -> str:
    """Return rows or columns in words; `total` is the number of all rows or columns, and `noun` is "rows" or "columns".

    >>> stripes_text((Stripes(0, 4),), 4, "rows"), stripes_text((Stripes(0, 2), Stripes(3)), 4, "rows")
    ('all rows', 'rows 0–1, 3')
    >>> stripes_text((Stripes(3),), 4, "rows")
    'row 3'
    """
    if stripes == (Stripes(0, total),):
        return f"all {noun}"
    if sum(each.width * each.count for each in stripes) == 1:
        noun = noun.removesuffix("s")
    return f"{noun} " + ", ".join(each.text for each in stripes[:4]) + ", …" * (len(stripes) > 4)


def rectangles_of(places: Array) -> list[tuple[Array, Array]]:
    """Return rectangles that cover the true elements of a mask; their rows and columns need not be adjacent.

    >>> places = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]]) > 0
    >>> [(rows.tolist(), columns.tolist()) for rows, columns in rectangles_of(places)]
    [([0, 2], [0, 2]), ([1], [1])]
    """
    alike: dict[bytes, list[int]] = {}
    for row, pattern in enumerate(np.packbits(places, axis=1)):
        alike.setdefault(pattern.tobytes(), []).append(row)
    found = [(np.array(rows), np.flatnonzero(places[rows[0]])) for rows in alike.values()]
    return [(rows, columns) for rows, columns in found if len(columns)]


def _last_start(stripes: Stripes) -> int:
    return stripes.start + (stripes.count - 1) * stripes.step
