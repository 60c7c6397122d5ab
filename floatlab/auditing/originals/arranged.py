"""Gives tensors of an original the shape of a quantised weight: transposes or reshapes them, or joins their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, Piece
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.fpmode import in_default_mode
from floatlab.record import Individual

Shape = tuple[int, ...]


class Counterpart(Individual):
    """The original of a quantised weight; `open` returns it in the shape of the weight.

    `words` says of which tensors the original consists, how they were found, and how they are arranged. This text is
    empty for a tensor of the same name and shape. `names` are the names of these tensors. `by_content` is true if these
    tensors were found by their numbers, not by their names. `doubt` says why a weight that fits this original may
    nevertheless be wrong; the text is empty if there is no doubt. If the order in which the rows were found is
    doubtful, and the weight has the shape of one stored tensor, `straight` opens this tensor in its stored order. Some
    libraries permute the rows of q and k for rotary position embeddings (rope). `rope_heads` is the number of heads of
    this permutation, or 0 if the rows are not permuted. `rope_heads` is None for weights other than q and k, and if
    several orders fit.
    """

    words: str
    open: Callable[[], ArraySource]
    names: tuple[str, ...] = ()
    by_content: bool = False
    doubt: str = ""
    straight: Callable[[], ArraySource] | None = None
    rope_heads: int | None = None


def few_names(names: Iterable[str]) -> str:
    """Return the distinct names as text.

    If there are more than three names, the text has only the first name and the number of names.

    >>> few_names(["a", "b", "a"]), few_names(["a", "b", "c", "d"])
    ('a and b', 'a, … (4 tensors)')
    """
    each = list(dict.fromkeys(names))
    return " and ".join(each) if len(each) < 4 else f"{each[0]}, … ({len(each)} tensors)"


class GatheredRows(ArraySource):
    """Rows of several tensors as one tensor of float64; closing it closes these tensors.

    For each row of the result, `which` has the index of its tensor, and `rows` has the index of the row in that tensor.
    """

    def __init__(self, shape: Shape, sources: tuple[ArraySource, ...], which: Array, rows: Array) -> None:
        """Take tensors whose rows have the length `shape[-1]`."""
        super().__init__(sources[0].name, shape, np.dtype(np.float64))
        self.sources, self.which, self.rows = sources, which, rows

    @in_default_mode
    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers, beginning with index `first`."""
        length = self.shape[-1]
        start, end = first // length, -(-(first + count) // length)
        which, rows = self.which[start:end], self.rows[start:end]
        found = np.empty((end - start, length))
        cuts = np.flatnonzero((np.diff(which) != 0) | (np.diff(rows) != 1)) + 1
        for begin, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), end - start], strict=True):
            if begin < stop:
                piece = self.sources[int(which[begin])].read(int(rows[begin]) * length, (stop - begin) * length)
                found[begin:stop] = native(piece).reshape(-1, length)
        return found.reshape(-1)[first - start * length :][:count]

    def close(self) -> None:
        """Close the tensors."""
        for each in self.sources:
            each.close()


class TransposedMatrices(ArraySource):
    """A tensor of float64 with its last two axes exchanged. Matrices are read whole, and the last one read is kept."""

    def __init__(self, source: ArraySource) -> None:
        """Take a tensor of at least two axes; raises UnsupportedError if its matrices are too large."""
        *outer, rows, columns = source.shape
        if rows * columns > MOST_AT_ONCE:
            raise UnsupportedError(f"{source.name} has {rows:,}×{columns:,} numbers, which are too many to transpose")
        super().__init__(source.name, (*outer, columns, rows), np.dtype(np.float64))
        self.source = source
        self._at, self._matrix = -1, np.zeros(0)

    @in_default_mode
    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers, beginning with index `first`."""
        size = prod(self.shape[-2:])
        pieces = []
        while count > 0:
            at, place = divmod(first, size)
            if at != self._at:
                stored = native(self.source.read(at * size, size)).astype(np.float64)
                self._matrix = np.ascontiguousarray(stored.reshape(self.shape[-1], self.shape[-2]).T).reshape(-1)
                self._at = at
            pieces.append(self._matrix[place : place + count])
            first, count = first + len(pieces[-1]), count - len(pieces[-1])
        return np.concatenate(pieces or [np.zeros(0)])

    def close(self) -> None:
        """Close the tensor."""
        self.source.close()


class Reshaped(ArraySource):
    """A tensor that is read in another shape, with the same numbers in the same order."""

    def __init__(self, source: ArraySource, shape: Shape) -> None:
        """Take a tensor, and a shape with the same number of elements."""
        super().__init__(source.name, shape, source.format if source.dtype is None else source.dtype)
        self.source = source

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers, beginning with index `first`."""
        return self.source.read(first, count)

    def close(self) -> None:
        """Close the tensor."""
        self.source.close()


def rope_rows(rows: int, heads: int) -> Array:
    """Return the permutation of the rows of q or k for rope: row i in llama.cpp is row `result[i]` in transformers.

    Rows that are half a head apart in transformers are neighbours in llama.cpp.

    >>> rope_rows(8, 2).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """
    found: Array = np.arange(rows).reshape(heads, 2, rows // heads // 2).swapaxes(1, 2).reshape(-1)
    return found
