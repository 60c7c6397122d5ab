"""Compares the numbers of quantised weights and of other tensors by the cosine of the angle between them.

If all numbers of a weight are wrong by the same factor, the cosine does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import ArraySource, HeldSource
from floatlab.arrays.types import Array
from floatlab.auditing.line_orders import unit_rows
from floatlab.auditing.originals.arranged import Counterpart, Shape, few_names
from floatlab.auditing.originals.names import stated_heads
from floatlab.auditing.originals.orders import Place, RowOrder, order_of
from floatlab.auditing.quantized import QuantizedCheckpoint
from floatlab.auditing.stored_parts import Weight
from floatlab.errors import FloatlabError

# A sample has _PIECE numbers from each of _PIECES places. No place is at a third of the tensor, since the rows permuted
# for n heads and for 2n heads are the same there.
_PIECE, _PIECES = 1 << 10, 6
_SAME, _OTHER = 0.8, 0.5  # tensors with a cosine above _SAME are the same; with one below _OTHER, they are different
_CLEARLY, _LESS = 0.05, 0.15
# A weight is searched row by row only if it has at most _MOST_ROWS rows and _MOST_NUMBERS numbers, and if the originals
# have at most _MOST_CANDIDATES rows and columns of this length, with _MOST_READ numbers in all.
_MOST_ROWS, _MOST_NUMBERS, _MOST_CANDIDATES, _MOST_READ = 1 << 13, 1 << 22, 1 << 14, 1 << 25
_MOST_PRODUCTS = 1 << 34  # multiplications in such a search
# Shorter rows may be similar by chance. Of longer rows, only the beginning is compared.
_SHORTEST, _LONGEST = 24, 1 << 10
_ALMOST_ALL = 0.95
_TRANSPOSED = ", transposed"


def sampled(source: ArraySource) -> Array:
    """Return several pieces of an array; the choice depends only on the array's size. NaNs and infinities become 0."""
    count = min(_PIECE, source.size)
    starts = np.linspace(0, source.size - count, _PIECES if source.size > _PIECE * _PIECES else 1).astype(int)
    if len(starts) == 1:
        count = min(source.size, _PIECE * _PIECES)
    found = np.concatenate([native(source.read(int(start), count)).astype(np.float64) for start in starts])
    return np.where(np.isfinite(found), found, 0.0)


def cosine(x: Array, y: Array) -> float:
    """Return the cosine of the angle between two arrays, or 0 if one of them has only zeros.

    >>> cosine(np.array([1.0, 2.0]), np.array([2.0, 4.0])), cosine(np.zeros(2), np.ones(2))
    (1.0, 0.0)
    """
    with np.errstate(all="ignore"):
        unit = x / (np.abs(x).max(initial=0) or 1)
        norms = float(np.linalg.norm(unit) * np.linalg.norm(y))
        found = float((unit * y).sum()) / norms if norms else 0.0
    return round(found, 9) if np.isfinite(found) else 0.0


def best_of(weight: Weight, options: list[Counterpart]) -> Counterpart | None:
    """Return the option most similar to the weight, or the first option if the others are not clearly more similar.

    Return None if there are no options.

    If options with different `rope_heads` are about equally similar, the result has None for `rope_heads`.
    """
    if len(options) < 2:
        return options[0] if options else None
    with weight.open() as source:
        own = sampled(source)
    found = []
    for option in options:
        with option.open() as source:
            found.append(abs(cosine(own, sampled(source))))
    best = max(range(len(options)), key=lambda at: found[at])
    at = best if found[best] > found[0] + _CLEARLY else 0
    chosen = options[at]
    near = {option.rope_heads for option, one in zip(options, found, strict=True) if one > found[at] - _CLEARLY}
    return chosen.replace(rope_heads=None) if len(near) > 1 else chosen


class ContentIndex:
    """Finds tensors of an original checkpoint by their content."""

    def __init__(self, checkpoint: QuantizedCheckpoint, shapes: dict[str, Shape]) -> None:
        """Take the checkpoint, and the shapes of the tensors that may be found."""
        self.checkpoint, self.shapes = checkpoint, shapes
        self._samples: dict[str, Array] = {}
        self._rows: dict[int, tuple[Array, list[Place]] | None] = {}

    def same(self, weight: Weight) -> str | None:
        """Return the name of the tensor that is similar to the weight when both are flattened; the shapes may differ.

        Return None if no tensor is similar, or if several tensors with different numbers are about equally similar.
        """
        names = [name for name, shape in self.shapes.items() if prod(shape) == prod(weight.shape)]
        if not names:
            return None
        with weight.open() as source:
            own = sampled(source)
        found = sorted(((abs(cosine(own, self._sample(name))), name) for name in names), reverse=True)
        (best, name), *others = found
        if best < _SAME:
            return None
        for near, other in others:
            if near > max(_OTHER, best - _LESS) and not np.array_equal(self._sample(other), self._sample(name)):
                return None
        return name

    def _sample(self, name: str) -> Array:
        if name not in self._samples:
            with self.checkpoint.open(name) as source:
                self._samples[name] = sampled(source).astype(np.float32)
        return self._samples[name]

    def gathered(self, weight: Weight, heads: Mapping[str, tuple[int, ...]]) -> Counterpart | None:
        """Find the rows (or else the columns) of a weight among the rows and columns of all tensors.

        Return the rows found as one tensor; None if rows are not found, or if the weight is too large. `heads` has the
        stated numbers of attention heads of q and of k, for rows that are permuted for rope.
        """
        *outer, rows, columns = weight.shape
        if prod(weight.shape) > _MOST_NUMBERS or prod(outer) * max(rows, columns) > _MOST_ROWS:
            return None
        with weight.open() as source:
            own = native(source.whole()).reshape(-1, rows, columns)
        found, names, orders = np.empty_like(own), [], []
        for at, matrix in enumerate(own):
            for turned in (False, True):
                matched = self._matched(matrix.T if turned else matrix)
                if matched is not None:
                    break
            else:
                return None
            values, places = matched
            found[at] = values.T if turned else values
            names += [name for name, _, _ in places]
            orders.append(_found_in(places, turned, heads))
        names = list(dict.fromkeys(names))
        words = _orders_in_words([order.words for order in orders])
        few = few_names(names)
        doubt = next(_doubts(orders, found), "")
        if not outer and rows == columns and orders[0].words.endswith(_TRANSPOSED):
            doubt = doubt or "it fits only transposed, although it is square: is it stored transposed by mistake?"
        same = len(names) == 1 and self.shapes[names[0]] == weight.shape
        return Counterpart(
            words=f"{few}, found by content: {words}",
            open=partial(HeldSource, found.reshape(weight.shape), few),
            names=tuple(names),
            by_content=True,
            doubt=doubt,
            straight=partial(self.checkpoint.open, names[0]) if doubt and same else None,
        )

    def _matched(self, matrix: Array) -> tuple[Array, list[Place]] | None:
        """Return, for each row of a matrix, the most similar row of the originals, and where this row is.

        Return None if too few rows are similar, or if the rows cannot be compared.
        """
        length = matrix.shape[1]
        rows = self._rows_of(length) if length >= _SHORTEST else None
        if rows is None:
            return None
        units, places = rows
        own, found_at, nearness = _units(matrix), [], []
        if own.size * len(units) > _MOST_PRODUCTS:
            return None
        step = max(1, _MOST_NUMBERS // len(units))
        for first in range(0, len(own), step):
            similar = np.abs(own[first : first + step] @ units.T)
            found_at.append(similar.argmax(axis=1))
            nearness.append(similar.max(axis=1))
        best, near = np.concatenate(found_at), np.concatenate(nearness)
        if near.min() < _OTHER or (near >= _SAME).mean() < _ALMOST_ALL:
            return None
        chosen = [places[at] for at in best.tolist()]
        found = np.empty(matrix.shape)
        for name, turned in dict.fromkeys((name, turned) for name, turned, _ in chosen):
            here = [at for at, each in enumerate(chosen) if each[:2] == (name, turned)]
            found[here] = self._matrix(name, turned, length)[[chosen[at][2] for at in here]]
        return found, chosen

    def _rows_of(self, length: int) -> tuple[Array, list[Place]] | None:
        """Return the rows and columns of this length as unit vectors, and their places; None if none or too many.

        A place is a tuple: the name of the tensor, whether the vector is a column of the tensor, and its index.
        """
        if length not in self._rows:
            views = [
                (name, turned, prod(shape) // length)
                for name, shape in self.shapes.items()
                for turned in (False, True)
                if (shape[-1] if not turned else shape[-2] if len(shape) == 2 else 0) == length
            ]
            total = sum(count for _, _, count in views)
            if not views or total > _MOST_CANDIDATES or total * length > _MOST_READ:
                self._rows[length] = None
            else:
                units = np.concatenate([_units(self._matrix(name, turned, length)) for name, turned, _ in views])
                self._rows[length] = units, [(name, turned, at) for name, turned, n in views for at in range(n)]
        return self._rows[length]

    def _matrix(self, name: str, turned: bool, length: int) -> Array:
        with self.checkpoint.open(name) as source:
            found = native(source.whole())
        return found.T if turned else found.reshape(-1, length)


def _units(rows: Array) -> Array:
    """Return rows as unit vectors; long rows are cut to their first 1024 numbers."""
    found = rows[:, :_LONGEST].astype(np.float64)
    return unit_rows(np.where(np.isfinite(found), found, 0.0))


def _orders_in_words(orders: list[str]) -> str:
    """Describe the orders of rows in the matrices of a stack. If they differ, name the matrices with each order.

    >>> _orders_in_words(["its rows", "its rows in reverse order"])
    'its rows (matrix 0), its rows in reverse order (matrix 1)'
    """
    each = list(dict.fromkeys(orders))
    if len(each) == 1:
        return each[0]
    places = [[str(at) for at, order in enumerate(orders) if order == one] for one in each]
    return ", ".join(
        f"{one} (matrix {few[0]})" if len(few) == 1 else f"{one} ({len(few):,} matrices, first {few[0]})"
        for one, few in zip(each, places, strict=True)
    )


def _found_in(places: list[Place], turned: bool, heads: Mapping[str, tuple[int, ...]]) -> RowOrder:
    """Return the order of a matrix's rows (or of its columns if `turned`).

    `places` says where in the originals each row or column was found.
    """
    found = order_of(places, None if turned else stated_heads(heads, places[0][0]))
    is_transposed = found.of_columns is not turned
    return found.replace(words=found.words + _TRANSPOSED * is_transposed)


def _doubts(orders: list[RowOrder], found: Array) -> Iterator[str]:
    """Yield a doubt for each matrix of a weight if no convention explains the order of its rows.

    `found` has the matrices that were found in the originals. There is no doubt if the matrix is a copy, with reversed
    rows or columns, of a matrix whose order is explained: models for tests contain such copies.
    """
    for at, order in enumerate(orders):
        if not order.is_explained:
            others = [found[i] for i, other in enumerate(orders) if other.is_explained]
            if not any(_is_reversed(found[at], other) for other in others):
                yield f"it fits only {order.words}: no known convention explains this order"


def _is_reversed(x: Array, y: Array) -> bool:
    return np.array_equal(x, y[::-1]) or np.array_equal(x, y[:, ::-1])


def is_numeric(checkpoint: QuantizedCheckpoint, name: str) -> bool:
    """Return whether a tensor of an original has floats and can be read."""
    try:
        with checkpoint.open(name) as source:
            return source.dtype is None or source.dtype.kind == "f"
    except FloatlabError:
        return False
