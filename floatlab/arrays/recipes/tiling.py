"""Cuts arrays into the blocks of a recipe, and reassembles arrays from blocks."""

from __future__ import annotations

import math

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats.blocks import BlockFormat


class Tiling:
    """The blocks of an array, each as one row of a matrix; shorter blocks at the ends are padded with zeros.

    The axis of the blocks is first moved to the end; blocks of several rows extend over the last two axes. If the
    format is `flat`, the axis has no effect: the flattened array is cut. `scales_shape` is the shape of an array with
    one number per block.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> tiling = Tiling((2, 3), parse_recipe("e4m3/2x2").format)
    >>> tiling.cut(np.arange(6).reshape(2, 3)).tolist(), tiling.scales_shape
    ([[0, 1, 3, 4], [2, 0, 5, 0]], (1, 2))
    """

    def __init__(self, shape: tuple[int, ...], fmt: BlockFormat, axis: object = -1) -> None:
        """Prepare to cut arrays of this shape; raises UnsupportedError for an axis that the shape does not have."""
        if not hasattr(axis, "__index__") or not -len(shape) <= axis.__index__() < len(shape):
            raise UnsupportedError(f"axis {quoted(str(axis))} is not an axis of x, whose shape is {shape}")
        self.axis, self.shape = axis.__index__() % len(shape), shape
        turned = (*shape[: self.axis], *shape[self.axis + 1 :], shape[self.axis])
        if fmt.flat:
            turned = (1, math.prod(shape))
        elif fmt.rows is None:  # the whole tensor, or each range of its columns, is a block
            turned = (math.prod(turned[:-1]), turned[-1])
        *outer, high, wide = turned if len(turned) > 1 else (1, *turned)
        self.outer = math.prod(outer)
        self.rows, self.columns = fmt.rows or max(high, 1), fmt.block or max(wide, 1)
        self.extent = high, wide
        self.counts = -(-high // self.rows), -(-wide // self.columns)
        self.scales_shape = (*outer, *self.counts) if len(turned) > 1 else (self.counts[1],)
        self._flat = fmt.flat

    def cut(self, array: Array) -> Array:
        """Return the blocks as rows of a matrix (blocks, rows · columns)."""
        turned = array if self._flat else np.moveaxis(array, self.axis, -1)
        whole = turned.reshape(self.outer, *self.extent)
        high, wide = (count * size for count, size in zip(self.counts, (self.rows, self.columns), strict=True))
        if (high, wide) != self.extent:
            padded = np.zeros((self.outer, high, wide), array.dtype)
            padded[:, : self.extent[0], : self.extent[1]] = whole
            whole = padded
        apart = whole.reshape(self.outer, self.counts[0], self.rows, self.counts[1], self.columns)
        return np.ascontiguousarray(apart.swapaxes(2, 3)).reshape(-1, self.rows * self.columns)

    def join(self, blocks: Array) -> Array:
        """Return the array whose blocks are the rows of the matrix `blocks`; padding is removed."""
        apart = blocks.reshape(self.outer, self.counts[0], self.counts[1], self.rows, self.columns).swapaxes(2, 3)
        whole = apart.reshape(self.outer, self.counts[0] * self.rows, self.counts[1] * self.columns)
        kept = whole[:, : self.extent[0], : self.extent[1]]
        if self._flat:
            return np.ascontiguousarray(kept).reshape(self.shape)
        turned = (*self.shape[: self.axis], *self.shape[self.axis + 1 :], self.shape[self.axis])
        return np.ascontiguousarray(np.moveaxis(kept.reshape(turned), -1, self.axis))

    def row_of_block(self) -> Array:
        """Return, for each block, the index of its row of blocks.

        Blocks that lie side by side along the last axis form a row of blocks. These rows are numbered consecutively
        over all other axes.
        """
        outer, rows, columns = np.indices((self.outer, *self.counts))
        return (outer * self.counts[0] + rows).reshape(-1) if columns.size else np.zeros(0, np.intp)


def even_parts(shape: tuple[int, int], tile: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Split a matrix into at most four parts, such that all tiles of a part have the same size.

    Return the top row, the left column, the height and the width of each part.

    >>> even_parts((4, 5), (2, 3))
    [(0, 0, 4, 3), (0, 3, 4, 2)]
    """
    (rows, columns), (down, across) = shape, tile
    full = rows - rows % down, columns - columns % across
    return [
        (top, left, height, width)
        for top, height in ((0, full[0]), (full[0], rows - full[0]))
        for left, width in ((0, full[1]), (full[1], columns - full[1]))
        if height and width
    ]


def joined(blocks: Array, shape: tuple[int, int], tile: tuple[int, int]) -> Array:
    """Return the matrix whose tiles are the rows of `blocks`."""
    (rows, columns), (down, across) = shape, tile
    apart = blocks.reshape(rows // down, columns // across, down, across)
    return np.ascontiguousarray(apart.swapaxes(1, 2)).reshape(shape)


def in_tiles(matrix: Array, tile: tuple[int, int]) -> Array:
    """Return all elements of a matrix as a one-dimensional array, tile after tile."""
    rows, columns = matrix.shape
    if tile[0] == 1 or tile[1] == columns:
        return np.ascontiguousarray(matrix).reshape(-1)
    apart = matrix.reshape(rows // tile[0], tile[0], columns // tile[1], tile[1])
    return np.ascontiguousarray(apart.swapaxes(1, 2)).reshape(-1)
