"""Derives from the shape of stored scales how blocks may lie in a tensor, and how the scales may be ordered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd, prod

import numpy as np

from floatlab.arrays.types import Array
from floatlab.auditing.weight_streams import swizzled_places
from floatlab.record import Record

PLAIN, SWIZZLED, TRANSPOSED, REPEATED = "", "swizzled (128×4)", "transposed", "repeated in each row of a tile"
TURNED = "the axis of the blocks last"
_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
_SIDES = (16, 32, 64, 128, 256)
# The shapes of blocks that are tried if there are no scales from which the shape could be derived.
_USUAL = ("tensor", "channel", "16", "32", "64", "128", "16x16", "128x128", "flat32", "flat64")
_ALONG = ("16", "32", "128", "channel")  # shapes that are also tried along other axes than the last

Shape = tuple[int, ...]


class Arrangement(Record):
    """The blocks of a tensor: their shape (a text), the axis along which they lie, and the order of the scales.

    `same` are other block shapes (as texts) that divide this tensor into the same blocks.

    >>> Arrangement("16", 1).grid((4, 64))
    (4, 4)
    """

    shape: str
    axis: int
    order: str = PLAIN
    same: tuple[str, ...] = ()

    @property
    def shapes(self) -> tuple[str, ...]:
        """All block shapes (as texts) that divide this tensor into these blocks."""
        return (self.shape, *self.same)

    @property
    def is_flat(self) -> bool:
        """Whether blocks are cut from the flattened tensor."""
        return self.shape.startswith("flat")

    @property
    def size(self) -> tuple[int | None, int | None]:
        """The rows and columns of a block. None stands for all rows or columns."""
        if self.shape in ("tensor", ""):
            return None, None
        if self.shape == "channel":
            return 1, None
        rows, _, columns = self.shape.removeprefix("flat").rpartition("x")
        return int(rows or 1), int(columns)

    def turned(self, shape: Shape) -> Shape:
        """Return the shape of the tensor after the axis along which blocks lie has been moved to the end."""
        return (*shape[: self.axis], *shape[self.axis + 1 :], shape[self.axis])

    def grid(self, shape: Shape) -> Shape:
        """Return the shape of the grid, the array of all scales. Blocks lie along the last axis of this array."""
        rows, columns = self.size
        if rows is None:
            return (1,)
        if self.is_flat:
            assert columns is not None
            return (-(-prod(shape) // columns),)
        *outer, length = self.turned(shape)
        count = 1 if columns is None else -(-length // columns)
        if rows > 1 and outer:
            outer[-1] = -(-outer[-1] // rows)
        return (*outer, count)

    def unit(self, shape: Shape) -> int:
        """Return n such that cutting the tensor at every n-th index of the first axis divides no block.

        If blocks extend along the whole first axis, every cut divides them; the result is then 1.
        """
        rows, columns = self.size
        if rows is None or columns is None:
            return 1
        if self.is_flat:
            return columns // gcd(columns, prod(shape[1:]))
        if self.axis == 0:
            return columns
        return rows if len(shape) == 2 else 1

    def part(self, scales: Array, shape: Shape, start: int, stop: int) -> Array:
        """Return the scales of a part of a tensor, flattened; the part is `tensor[start:stop]`.

        `scales` has the shape of the grid, and `shape` is the shape of the whole tensor.
        """
        rows, columns = self.size
        if rows is None or (columns is None and self.axis == 0):
            return scales.reshape(-1)
        if self.is_flat:
            assert columns is not None
            inner = prod(shape[1:])
            flat: Array = scales[start * inner // columns : -(-stop * inner // columns)].reshape(-1)
            return flat
        if self.axis == 0:
            assert columns is not None
            return np.ascontiguousarray(scales[..., start // columns : -(-stop // columns)]).reshape(-1)
        step = rows if len(shape) == 2 else 1
        found: Array = scales[start // step : -(-stop // step)].reshape(-1)
        return found

    def place(self, at: int, shape: Shape) -> Shape:
        """Return the indices (one per axis) of a scale in the grid; `at` is its index in the flattened grid."""
        return tuple(int(n) for n in np.unravel_index(at, self.grid(shape)))

    def ordered(self, scales: Array, shape: Shape) -> Array:
        """Return stored scales in the shape and order of the grid."""
        grid = self.grid(shape)
        if self.is_flat:
            return scales.reshape(*grid, -1)  # a scale may have a minimum beside it
        if self.order == SWIZZLED:
            flat = (prod(grid[:-1]), grid[-1])
            unswizzled: Array = scales.reshape(-1)[swizzled_places(flat)].reshape(grid)
            return unswizzled
        if self.order == TRANSPOSED:
            return np.ascontiguousarray(scales.reshape(grid[::-1]).T)
        if self.order == REPEATED:
            rows = self.size[0]
            assert rows is not None
            return np.ascontiguousarray(scales.reshape(shape[-2], grid[-1])[::rows])
        if self.order == TURNED:
            return scales.reshape(grid)
        if len(grid) > 1 and self.axis != len(shape) - 1 and self.shape != "channel":
            back = (*grid[: self.axis], grid[-1], *grid[self.axis : -1])
            return np.ascontiguousarray(np.moveaxis(scales.reshape(back), self.axis, -1))
        return scales.reshape(grid)


def arrangements(shape: Shape, stored: Shape | None, powers: bool = False) -> list[Arrangement]:
    """Return the arrangements of blocks for which the array of all scales may have the shape `stored`.

    If `powers` is true, the scales are e8m0 or e4m3. Scales of these formats may be stored in the 128×4 layout
    (swizzled). If `stored` is None, there are no scales, and usual arrangements are returned.

    >>> [each.shape for each in arrangements((32, 64), (32, 4))]
    ['16', '16x16']
    """
    last = len(shape) - 1
    if stored is not None:
        return _distinct(_possible(shape, stored, powers), shape)
    usual = [Arrangement(each, last) for each in _USUAL if "x" not in each or last]
    return _distinct([*usual, *(Arrangement(each, axis) for axis in range(last) for each in _ALONG)], shape)


def _distinct(found: Iterable[Arrangement], shape: Shape) -> list[Arrangement]:
    """Merge arrangements that cut the tensor into the same blocks; each result lists all block shapes of its group."""
    groups: dict[object, list[Arrangement]] = {}
    for each in found:
        groups.setdefault(_cut(each, shape), []).append(each)
    return [
        first.replace(same=tuple(dict.fromkeys(each.shape for each in others if each.shape != first.shape)))
        for first, *others in groups.values()
    ]


def _cut(each: Arrangement, shape: Shape) -> object:
    """Return a key that is equal for arrangements that cut a tensor of this shape into the same blocks."""
    *outer, length = each.turned(shape)
    height = outer[-1] if outer else 1
    rows, columns = each.size
    if each.is_flat:
        assert columns is not None
        if columns >= prod(shape):
            return "whole", each.order
        return ("flat", columns) if length % columns else (each.axis, 1, columns, each.order)
    high, wide = prod(outer) if rows is None else min(rows, height), min(columns or length, length)
    if high * wide == prod(shape):
        return "whole", each.order
    return each.axis, high, wide, each.order


def _possible(shape: Shape, stored: Shape, powers: bool) -> Iterator[Arrangement]:
    count, last = prod(stored), len(shape) - 1
    for axis in (last, *range(last)):
        for size in _lengths(shape[axis], count, prod(shape) // max(shape[axis], 1)):
            each = Arrangement(size, axis)
            grid = each.grid(shape)
            if prod(grid) != count:
                continue
            if len(stored) < 2 or _as_stored(each, shape, stored):
                yield each
            elif _squeezed(stored) == _squeezed(grid):
                yield each.replace(order=TURNED)
            elif _squeezed(stored) == _squeezed(grid[::-1]):
                yield each.replace(order=TRANSPOSED)
    if count == 1:
        yield Arrangement("tensor", last)
    for down in _SIDES if last else ():
        for across in _SIDES:
            each = Arrangement(f"{down}x{across}", last)
            grid = each.grid(shape)
            if _is_grid(grid, stored) or (prod(grid) == count and down == across and len(stored) < 2):
                yield each
            if grid[::-1] == stored and grid != stored:
                yield each.replace(order=TRANSPOSED)
            if down == across and stored == (*shape[:-1], grid[-1]) and len(shape) == 2:
                yield each.replace(order=REPEATED)
    for length in _SIZES:
        if -(-prod(shape) // length) == count:
            yield Arrangement(f"flat{length}", last)
    if powers and last:
        yield from _swizzled(shape, stored)


def _as_stored(each: Arrangement, shape: Shape, stored: Shape) -> bool:
    """Return whether stored scales of the shape `stored` have their axes in the order of the tensor's axes."""
    grid = each.grid(shape)
    back = (*grid[: each.axis], grid[-1], *grid[each.axis : -1])
    return _squeezed(back) == _squeezed(stored)


def _is_grid(grid: Shape, stored: Shape) -> bool:
    """Return whether scales of this shape fit the grid. Axes of length 1 may be missing or additional."""
    return grid == stored if len(grid) == len(stored) else _squeezed(grid) == _squeezed(stored)


def _squeezed(shape: Shape) -> Shape:
    return tuple(n for n in shape if n != 1)


def _lengths(length: int, count: int, others: int) -> Iterator[str]:
    """Yield block lengths for which a tensor with blocks along one axis has exactly `count` scales.

    Block lengths are text, as in recipes. `length` is the length of the axis. `others` is the product of the lengths of
    all other axes.
    """
    if not others or count % others or not count:
        return
    each = count // others
    if each == 1:
        yield "channel"
    if length % each == 0 and length // each > 1:
        yield str(length // each)
    for size in _SIZES:
        if -(-length // size) == each and size * each != length:
            yield str(size)


def _swizzled(shape: Shape, stored: Shape) -> Iterator[Arrangement]:
    last = len(shape) - 1
    for size in ("16", "32"):
        each = Arrangement(size, last, SWIZZLED)
        *outer, columns = each.grid(shape)
        if -(-prod(outer) // 128) * 128 * (-(-columns // 4) * 4) == prod(stored):
            yield each
