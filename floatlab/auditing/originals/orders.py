"""The order in which the rows of a weight are found in its original, and whether a convention explains this order."""

from __future__ import annotations

import re
from itertools import groupby, pairwise

import numpy as np

from floatlab.auditing.originals.arranged import rope_rows
from floatlab.record import Record

Place = tuple[str, bool, int]  # a row or column of the original: its tensor's name, whether it is a column, its index

_HEAD_SIZES = (32, 48, 64, 80, 96, 112, 128, 160, 192, 256)
_QUERY_OR_KEY = re.compile(r"(^|[._])(w?[qk]|wqk|qk|qkv|query|key)([._]|$)|[._](q|k|qk|qkv)_proj\b|attn_[qk]\b")


class RowOrder(Record):
    """The order of rows, described in words; `is_explained` tells whether a known convention stores rows in this order.

    `of_columns` tells whether the rows were found among the columns of the original.
    """

    words: str
    is_explained: bool
    of_columns: bool = False


def order_of(places: list[Place], heads: tuple[int, ...] | None = ()) -> RowOrder:
    """Return the order of the rows of a weight; `places` says for each row where it was found.

    Known conventions explain these orders: a contiguous part of one tensor; every n-th row of one tensor; several
    tensors one after the other; alternating rows (or heads) of several tensors; rows of q and k permuted for rope. The
    permutation for rope depends on the number of attention heads. `heads` has the numbers of heads that the
    configuration states. If none of these numbers fits the number of rows, usual numbers are tried. `heads` is None if
    `places` describes the columns of a weight, because no convention changes the order of columns.

    >>> order_of([("gate", False, 0), ("up", False, 0), ("gate", False, 1), ("up", False, 1)])
    RowOrder(words='their rows, alternating', is_explained=True, of_columns=False)
    >>> order_of([("w", False, 2), ("w", False, 1), ("w", False, 0)])
    RowOrder(words='its rows in reverse order', is_explained=False, of_columns=False)
    """
    tensors = list(dict.fromkeys(place[:2] for place in places))
    turns = {turned for _, turned in tensors}
    noun = "columns" if turns == {True} else "rows"
    found = _of_one(places, noun, heads) if len(tensors) == 1 else _of_several(places, tensors, noun, heads is None)
    words, is_explained = found
    return RowOrder(words, is_explained and len(turns) == 1, turns == {True})


def _of_one(places: list[Place], noun: str, heads: tuple[int, ...] | None) -> tuple[str, bool]:
    """Return in words the order of rows that all come from one tensor, and whether a convention explains this order."""
    rows = np.array([at for _, _, at in places])
    steps = {b - a for a, b in pairwise(rows.tolist())}
    if steps <= {1}:
        # A part of a fused tensor begins at a multiple of its own size. For example, k follows q, and q has a
        # multiple of the rows of k.
        return f"its {noun}" + (f" from {rows[0]:,} on" if rows[0] else ""), bool(rows[0] % len(rows) == 0)
    if steps == {-1}:
        return f"its {noun} in reverse order", False
    if heads is None:
        return f"its {noun} in another order", False
    if len(steps) == 1 and (step := steps.pop()) > 1 and rows[0] < step:
        return f"its {noun}, every {_ordinal(step)} one", True
    if _QUERY_OR_KEY.search(places[0][0]) and sorted(rows.tolist()) == list(range(len(rows))):
        count = len(rows)
        stated = [each for each in heads if count % (2 * each) == 0]
        usual = [count // size for size in _HEAD_SIZES if count % size == 0 and count > size]
        for number in stated or usual:
            order = rope_rows(count, number)
            if np.array_equal(rows, order) or np.array_equal(rows, np.argsort(order)):
                return f"its {noun} permuted for rope with {number} heads", True
    return f"its {noun} in another order", False


def _of_several(places: list[Place], tensors: list[tuple[str, bool]], noun: str, are_columns: bool) -> tuple[str, bool]:
    """Return in words the order of rows from several tensors, and whether a convention explains this order."""
    for tensor in tensors:
        rows = [place[2] for place in places if place[:2] == tensor]
        if any(b - a != 1 for a, b in pairwise(rows)):
            return f"their {noun} in another order", False
    runs = [(tensor, len(list(run))) for tensor, run in groupby(place[:2] for place in places)]
    cycle = runs[: len(tensors)]
    if any(run != cycle[at % len(cycle)] for at, run in enumerate(runs)) or len(runs) % len(cycle):
        return f"their {noun} in another order", False
    if runs == cycle:
        return f"their {noun}, one tensor after the other", True
    lengths = {length for _, length in cycle}
    return f"their {noun}, alternating" + (" in groups" if lengths != {1} else ""), not are_columns


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third"}.get(number, f"{number}th")
