"""Express a contraction of two arrays as matrix products.

Axes that occur in both arrays and in the result form a batch, which has one matrix product for each index along these
axes. Other axes of the result join the batch if one product would be too large, or if the bias would not fit into one
product as the last term of each sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from floatlab.arith.operands import common_format
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.sources import MOST_AT_ONCE, Piece, Source, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.reduce.explain.operations.boxes import Box, unflatten_range

Labels = tuple[str, ...]  # one name for each axis


class Products:
    """The matrix products of which an operation on two arrays consists.

    Iteration yields the two factors of each matrix product, with the shapes (rows, terms) and (terms, columns). The
    factors are views if the memory layout permits. `shape` is the shape of the operation's result. `terms` is the
    number of terms x·y that are added in each element, without the bias. `rows` and `columns` are the sizes of each
    matrix product.

    >>> from floatlab.reduce.explain.operations import products_of
    >>> products = products_of("matmul", np.ones((2, 3, 4, 5)), np.ones((3, 5, 6)))
    >>> products.shape, len(products), products.rows, products.terms, products.columns
    ((2, 3, 4, 6), 3, 8, 5, 6)
    >>> products.index(1, 5, 2)
    (1, 1, 1, 2)
    """

    def __init__(
        self,
        operation: str,
        factors: tuple[tuple[Source, Labels], tuple[Source, Labels]],
        axes: Sequence[Labels],
        bias: Source | None = None,
    ) -> None:
        """Take both arrays with a label for each of their axes, and the labels of each axis of the result.

        Axes with the same label have the same size, or the size 1. An axis of the result may have several labels. The
        index of the last label then varies fastest. The bias is broadcast to the shape of the result.
        """
        self.operation, self.axes = operation, tuple(axes)
        self.sizes = _sizes(operation, factors)
        kept = tuple(label for labels in axes for label in labels)
        (x, x_labels), (y, y_labels) = (_squeezed(*factor, self.sizes) for factor in factors)
        self._summed = tuple(dict.fromkeys(each for each in (*x_labels, *y_labels) if each not in kept))
        self.shape = tuple(prod(self.sizes[label] for label in labels) for labels in axes)
        self.terms = prod(self.sizes[label] for label in self._summed)
        if not self.terms * prod(self.shape):
            what = "have nothing to add" if not self.terms else "give a result without elements"
            raise UnsupportedError(f"{operation}: shapes {x.codes.shape} and {y.codes.shape} {what}")
        self._kept, self._x, self._y = kept, x, y
        self._bias = None if bias is None else self._broadcast_bias(bias)
        self._classify(x_labels, y_labels)
        self._left = _arranged(x, x_labels, self._batch, self._row_labels, self._summed, self.sizes)
        self._right = _arranged(y, y_labels, self._batch, self._summed, self._column_labels, self.sizes)
        self._x_batch = tuple(each in x_labels for each in self._batch)
        self._y_batch = tuple(each in y_labels for each in self._batch)

    def _broadcast_bias(self, bias: Source) -> Source:
        try:
            whole = np.broadcast_to(bias.codes, self.shape)
        except ValueError:
            raise UnsupportedError(
                f"{self.operation}: a bias of shape {bias.codes.shape} cannot be broadcast to the result, {self.shape}"
            ) from None
        return Source(whole, bias.format)

    def _classify(self, x_labels: Labels, y_labels: Labels) -> None:
        """Divide the labels of the result into those of rows, those of columns, and those of the batch."""
        rows = [each for each in self._kept if each not in y_labels]
        columns = [each for each in self._kept if each not in x_labels]
        forced = set[str]()
        if self._bias is not None:
            varying = self._varying()
            both = [each for each in rows if each in varying], [each for each in columns if each in varying]
            if all(both):  # a bias that varies along both rows and columns is not one term x·y
                forced.update(min(both, key=lambda labels: prod(self.sizes[each] for each in labels)))
        most = max(MOST_AT_ONCE, _extent(self._x.codes), _extent(self._y.codes))
        for labels in (rows, columns):
            for each in labels:
                count = prod(self.sizes[label] for label in labels if label not in forced)
                if count * self.terms <= most:
                    break
                forced.add(each)
        self._row_labels = tuple(each for each in rows if each not in forced)
        self._column_labels = tuple(each for each in columns if each not in forced)
        others = {*self._row_labels, *self._column_labels}
        self._batch = tuple(each for each in self._kept if each not in others)
        self.rows, self.columns = (
            prod(self.sizes[each] for each in labels) for labels in (self._row_labels, self._column_labels)
        )
        self._batch_sizes = tuple(self.sizes[each] for each in self._batch)
        if self.terms > most:
            raise UnsupportedError(f"{self.operation}: one sum has {self.terms:,} terms, more than {MOST_AT_ONCE:,}")

    def _varying(self) -> set[str]:
        """Return the labels along which the bias varies."""
        assert self._bias is not None
        codes = self._bias.codes
        return {
            label
            for axis, labels in enumerate(self.axes)
            if codes.shape[axis] > 1 and codes.strides[axis]
            for label in labels
        }

    def __len__(self) -> int:
        """Return the number of products."""
        return prod(self._batch_sizes)

    def __iter__(self) -> Iterator[tuple[Piece, Piece]]:
        """Yield the factors of each product, without the bias."""
        for number in range(len(self)):
            x, y = self.factors(number)
            yield _piece(x), _piece(y)

    @property
    def is_plain(self) -> bool:
        """True if there is one product without a bias, whose rows and columns are those of the result."""
        order = self._row_labels + self._column_labels
        one_each = max(len(self._row_labels), len(self._column_labels)) == 1
        return self._bias is None and len(self) == 1 and one_each and self._kept == order and len(self.shape) == 2

    @property
    def is_transposed(self) -> bool:
        """True if there is only one product, and the result is its transpose."""
        turned = self._column_labels + self._row_labels
        return len(self.shape) == 2 and self._kept == turned != self._row_labels + self._column_labels

    @property
    def has_bias(self) -> bool:
        """True if a bias is added to the products."""
        return self._bias is not None

    def batch(self, number: int) -> int | tuple[int, ...]:
        """Return the position of a product in the batch, as one index if the batch has one axis, else as a tuple."""
        at = self._at(number)
        return at[0] if len(at) == 1 else at

    def axis_of(self, is_row: bool) -> tuple[int, ...]:
        """Return the axes of the result that belong to the row index of a product.

        If `is_row` is false, return the axes that belong to the column index.
        """
        labels = self._row_labels if is_row else self._column_labels
        return tuple(axis for axis, own in enumerate(self.axes) if any(each in own for each in labels))

    def factors(self, number: int) -> tuple[Source, Source]:
        """Return the factors of a product, without the bias."""
        at = self._at(number)
        left = self._left[tuple(i for i, has in zip(at, self._x_batch, strict=True) if has)]
        right = self._right[tuple(i for i, has in zip(at, self._y_batch, strict=True) if has)]
        x, y = left.reshape(self.rows, self.terms), right.reshape(self.terms, self.columns)
        return Source(x, self._x.format), Source(y, self._y.format)

    def factors_with_bias(self, number: int) -> tuple[Source, Source]:
        """Return the factors of a product; a bias is added as the last term of each sum."""
        x, y = self.factors(number)
        if self._bias is None:
            return x, y
        block = self._block(self._bias.codes, number)
        row, column = block[:1], block[:, :1]
        if np.array_equal(block, np.broadcast_to(row, block.shape)):
            return _ones(x, (self.rows, 1), 1), _beside(y, Source(row, self._bias.format), 0)
        assert np.array_equal(block, np.broadcast_to(column, block.shape))
        return _beside(x, Source(column, self._bias.format), 1), _ones(y, (1, self.columns), 0)

    def misplaced_biases(self, number: int) -> list[tuple[str, Array]]:
        """Return the arrays that are added to a product if two axes of equal length are exchanged in the bias.

        Each array comes with a description of how the bias was added.
        """
        return [
            (words, np.asarray(decode(self._block(codes, number), format), np.float64))
            for words, codes, format in self._exchanged
        ]

    @cached_property
    def _exchanged(self) -> list[tuple[str, Array, Format]]:
        """Copies of the bias with two axes exchanged, if the exchange changes the bias.

        If the bias varies along one of the two axes only, it is repeated or cut to the length of the other axis.
        Otherwise, both axes must have the same length. Each item has a description, the codes of the copy, and their
        format.
        """
        if self._bias is None:
            return []
        codes, varying, found = self._bias.codes, self._varying(), []
        for pair in combinations(range(len(self.shape)), 2):
            axes = [axis for axis in pair if varying.intersection(self.axes[axis])]
            old, new = pair if axes[:1] == [pair[0]] else pair[::-1]
            before, after = self.shape[old], self.shape[new]
            if not axes or after == 1 or (len(axes) == 2 and before != after):
                continue
            other = codes.swapaxes(old, new)
            if len(axes) == 1:
                other = np.broadcast_to(other.take([0], old).take(np.arange(after) % before, new), self.shape)
            if np.array_equal(other, codes):
                continue
            if len(axes) == 2:
                words = f"was added with axes {old} and {new} exchanged"
            elif len(self.shape) == 2:
                words = f"was added per {'row instead of per column' if axes == [1] else 'column instead of per row'}"
            else:
                words = f"was added along axis {new} instead of axis {old}"
            if before != after:
                words += f" ({f'cut to {after:,} numbers' if after < before else 'repeated'})"
            found.append((words, other, self._bias.format))
        return found

    def exact(self, number: int) -> tuple[Array, Array]:
        """Return a product with its bias, computed in binary64, and the sum Σ|x·y| of each element."""
        x, y = (np.asarray(decode(each.codes, each.format), np.float64) for each in self.factors_with_bias(number))
        with np.errstate(all="ignore"):
            return x @ y, np.abs(x) @ np.abs(y)

    def result(self, result: Source, number: int) -> Source:
        """Return the part of the operation's result that belongs to one product, as (rows, columns)."""
        return Source(self._block(result.codes, number), result.format)

    def checked(self, result: object, name: str) -> Source:
        """Return a result, reshaped to the shape that the operation gives.

        Axes with one element may be missing or additional. Raises UnsupportedError if the lengths of the other axes
        differ.
        """
        found = source_of(result, name)
        own = found.codes.shape
        if [n for n in own if n > 1] != [n for n in self.shape if n > 1]:
            shapes = self.shape or "one number"
            raise UnsupportedError(f"{name} has shape {own}, and {self.operation} of these inputs gives {shapes}")
        return Source(found.codes.reshape(self.shape), found.format)

    def index(self, number: int, row: int, column: int) -> tuple[int, ...]:
        """Return the index that an element of one product has in the operation's result."""
        at = dict(zip(self._batch, self._at(number), strict=True))
        for labels, place in ((self._row_labels, row), (self._column_labels, column)):
            at |= zip(labels, _unravel(place, [self.sizes[each] for each in labels]), strict=True)
        return tuple(self._joined(labels, [(at[each], at[each] + 1) for each in labels])[0] for labels in self.axes)

    def boxes(self, number: int, box: Box | None = None) -> list[Box]:
        """Return the boxes of the operation's result that correspond to `box`, a box of one product.

        Without `box`, the whole product is taken.
        """
        rows, columns = ((0, self.rows), (0, self.columns)) if box is None else box
        at = {label: (i, i + 1) for label, i in zip(self._batch, self._at(number), strict=True)}
        return [
            tuple(self._joined(labels, [spans[each] for each in labels]) for labels in self.axes)
            for row in self._spans(self._row_labels, rows)
            for column in self._spans(self._column_labels, columns)
            for spans in (at | row | column,)
        ]

    def place(self, index: int, is_row: bool) -> int | tuple[int, ...]:
        """Return the index of a product's row (or of a column if `is_row` is false) along the axes of the result."""
        labels = self._row_labels if is_row else self._column_labels
        found = _unravel(index, [self.sizes[each] for each in labels])
        return found[0] if len(found) == 1 else found

    def _at(self, number: int) -> tuple[int, ...]:
        return _unravel(number, self._batch_sizes)

    def _spans(self, labels: Labels, span: tuple[int, int]) -> list[dict[str, tuple[int, int]]]:
        boxes = unflatten_range(*span, [self.sizes[each] for each in labels])
        return [dict(zip(labels, box, strict=True)) for box in boxes]

    def _joined(self, labels: Labels, spans: list[tuple[int, int]]) -> tuple[int, int]:
        """Return a range of indices along an axis of the result. `spans` has the range of each label of this axis.

        Every range except the last one contains a single index.
        """
        first, stop = spans[-1]
        unit = self.sizes[labels[-1]]
        for label, (at, _) in zip(labels[-2::-1], spans[-2::-1], strict=True):
            first, stop = first + at * unit, stop + at * unit
            unit *= self.sizes[label]
        return first, stop

    def _block(self, codes: Array, number: int) -> Array:
        apart = codes.reshape([self.sizes[each] for each in self._kept])
        order = (*self._batch, *self._row_labels, *self._column_labels)
        arranged = apart.transpose([self._kept.index(each) for each in order])
        block: Array = arranged[self._at(number)].reshape(self.rows, self.columns)
        return block


def _sizes(operation: str, factors: Sequence[tuple[Source, Labels]]) -> dict[str, int]:
    """Return the size of each label; raises UnsupportedError if a label has different sizes."""
    found: dict[str, int] = {}
    for source, labels in factors:
        for label, size in zip(labels, source.codes.shape, strict=True):
            known = found.setdefault(label, size)
            if known == 1:
                found[label] = size
            elif size not in (1, known):
                (x, _), (y, _) = factors
                raise UnsupportedError(
                    f"{operation}: x has shape {x.codes.shape} and y {y.codes.shape}: axes that are paired have "
                    f"{known:,} and {size:,} elements; they need the same length, or the length 1"
                )
    return found


def _squeezed(source: Source, labels: Labels, sizes: Mapping[str, int]) -> tuple[Source, Labels]:
    """Return an array and its labels without the axes that have length 1 and must be broadcast to another length."""
    off = tuple(i for i, each in enumerate(labels) if source.codes.shape[i] != sizes[each])
    kept = tuple(each for i, each in enumerate(labels) if i not in off)
    return Source(np.squeeze(source.codes, off), source.format), kept


def _arranged(
    source: Source, labels: Labels, batch: Labels, first: Labels, second: Labels, sizes: Mapping[str, int]
) -> Array:
    """Return the codes with their axes in this order: the axes of the batch, those of `first`, those of `second`.

    Missing axes are added by broadcasting.
    """
    wanted = (*(each for each in batch if each in labels), *first, *second)
    codes = source.codes.transpose([labels.index(each) for each in wanted if each in labels])
    missing = tuple(i for i, each in enumerate(wanted) if each not in labels)
    return np.broadcast_to(np.expand_dims(codes, missing), [sizes[each] for each in wanted])


def _extent(codes: Array) -> int:
    """Return how many numbers an array spans in memory; overlapping windows count once."""
    steps = ((n - 1) * abs(stride) for n, stride in zip(codes.shape, codes.strides, strict=True))
    return 1 + int(sum(steps)) // codes.itemsize


def _unravel(place: int, sizes: Sequence[int]) -> tuple[int, ...]:
    found = []
    for size in reversed(sizes):
        place, at = divmod(place, size)
        found.append(at)
    return tuple(reversed(found))


def _piece(source: Source) -> Piece:
    kind = native_dtype(source.format)
    return source if kind is None else source.codes.view(kind)


def _ones(source: Source, shape: tuple[int, int], axis: int) -> Source:
    one = np.broadcast_to(np.asarray(encode(1.0, source.format)), shape)
    return Source(np.concatenate([source.codes, one], axis=axis), source.format)


def _beside(source: Source, bias: Source, axis: int) -> Source:
    """Return a factor with a bias as its last row or column.

    The format of the factor is kept if this format can represent all numbers of the bias. Otherwise, the common format
    of both is used.
    """
    format = source.format
    if bias.format != format and not _holds_all(bias, format):
        format = common_format([format, bias.format])
    parts = [_in_format(each, format) for each in (source, bias)]
    return Source(np.concatenate(parts, axis=axis), format)


def _in_format(source: Source, format: Format) -> Array:
    return source.codes if source.format == format else np.asarray(encode(source, format))


def _holds_all(source: Source, format: Format) -> bool:
    values = decode(source.codes, source.format)
    return np.array_equal(decode(np.asarray(encode(source, format)), format), values, equal_nan=True)
