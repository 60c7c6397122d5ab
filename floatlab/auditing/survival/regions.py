"""Cuts tensors into regions that can be rounded one by one, with the same result as rounding the whole tensor.

A tensor is seen as a matrix: its last axis gives the columns, and all other axes together give the rows. The regions
depend only on the shape and the recipes, so results do not depend on who computes which region.
"""

from __future__ import annotations

from math import gcd, lcm, prod

from floatlab.arrays.round_trips.round_trip import is_unscaled, spans
from floatlab.errors import UnsupportedError
from floatlab.formats.recipes import Recipe
from floatlab.record import Record

USUAL = 1 << 20  # the usual number of elements in a region
_MOST_REGIONS = 1 << 20
_MOST = 1 << 22  # rows are divided if the smallest region of whole rows has more elements than this


class TensorRegion(Record):
    """A rectangle of a tensor. The tensor is seen as a matrix whose rows have `width` elements."""

    row: int
    rows: int
    column: int
    columns: int
    width: int

    @property
    def first(self) -> int:
        """The index of the first element in the tensor."""
        return self.row * self.width + self.column

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.rows * self.columns

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements follow each other in the tensor."""
        return self.rows == 1 or self.columns == self.width

    @property
    def has_whole_rows(self) -> bool:
        """Whether the region consists of whole rows."""
        return self.columns == self.width


def as_matrix(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the number of matrices in a tensor, and the numbers of rows and columns of each matrix.

    >>> as_matrix((2, 3, 4, 5)), as_matrix((7,)), as_matrix(())
    ((6, 4, 5), (1, 1, 7), (1, 1, 1))
    """
    return prod(shape[:-2]), shape[-2] if len(shape) > 1 else 1, shape[-1] if shape else 1


Cut = tuple[tuple[int, ...], list[TensorRegion]]


def cuts(
    shape: tuple[int, ...], recipes: tuple[Recipe, ...], usual: int = USUAL, whole_rows: bool = False
) -> list[Cut]:
    """Divide the recipes into groups, and return each group with the regions in which its recipes are measured.

    A group is a tuple of indices into `recipes`. Usually all recipes are one group, so that the tensor is read once. If
    rows are so long that they must be divided, each recipe forms its own group, since the places where a row can be
    divided depend on the recipe. `usual` is the number of elements that a region should have. A region may begin or end
    inside a row. If `whole_rows` is true, regions divide only rows that are too long for a region. Raises
    UnsupportedError for a tensor of too many regions.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> groups = cuts((300, 100), (parse_recipe("bf16"), parse_recipe("e4m3/128x128")), usual=20_000)
    >>> [(which, [(each.row, each.rows) for each in regions]) for which, regions in groups]
    [((0, 1), [(0, 128), (128, 128), (256, 44)])]
    """
    outer, high, wide = as_matrix(shape)
    if not outer * high * wide:
        return [(tuple(range(len(recipes))), [])]
    whole = _together(outer, high, wide, recipes, usual, whole_rows)
    if whole is not None:
        return [(tuple(range(len(recipes))), whole)]
    return [((i,), _alone(outer, high, wide, recipe, usual)) for i, recipe in enumerate(recipes)]


def _together(
    outer: int, high: int, wide: int, recipes: tuple[Recipe, ...], usual: int, whole_rows: bool
) -> list[TensorRegion] | None:
    """Return regions that divide no block of any recipe, or None if such regions would be too large."""
    granules = [_flat_granule(recipe, wide) for recipe in recipes]
    if all(granules) and not whole_rows:
        step = lcm(*granules, 1)
        return _flat(outer * high * wide, step, usual) if step <= _MOST else None
    down = lcm(*(recipe.format.rows or 1 for recipe in recipes if not is_unscaled(recipe)), 1)
    for recipe in recipes:
        if recipe.format.flat and not is_unscaled(recipe):
            size = recipe.format.superblock or recipe.format.block or 1
            down = lcm(down, size // gcd(size, wide))
    down = min(down, high) if down > 1 else 1
    if down * wide > _MOST:
        return None
    return _bands(outer, high, wide, down, usual)


def _flat_granule(recipe: Recipe, wide: int) -> int:
    """Return n such that the flattened tensor can be divided at every multiple of n elements; 0 if there is none."""
    fmt = recipe.format
    if is_unscaled(recipe) or (fmt.block is None and fmt.rows is None):
        return 1
    size = fmt.superblock or fmt.block
    if size is None or fmt.by_row or (fmt.rows or 1) > 1:
        return 0
    return size if fmt.flat or wide % size == 0 else 0


def _flat(size: int, step: int, usual: int) -> list[TensorRegion]:
    """Return regions of the flattened tensor; each but the last has a multiple of `step` elements."""
    length = max(usual // step, 1) * step
    _require_few(size // length)
    return [TensorRegion(0, 1, first, min(length, size - first), size) for first in range(0, size, length)]


def _bands(outer: int, high: int, wide: int, down: int, usual: int) -> list[TensorRegion]:
    """Return regions of whole rows. If blocks have several rows (`down`), a region consists of whole blocks."""
    rows = max(usual // (wide * down), 1) * down
    if down == 1:
        outer, high = 1, outer * high
    return _grid(outer, high, wide, rows, wide)


def _alone(outer: int, high: int, wide: int, recipe: Recipe, usual: int) -> list[TensorRegion]:
    """Return the regions for one recipe in a tensor whose rows are so long that they must be divided."""
    fmt = recipe.format
    if granule := _flat_granule(recipe, wide):
        return _flat(outer * high * wide, granule, usual)
    down, across = (fmt.rows or 1), (fmt.superblock or fmt.block or 1)
    if fmt.by_row and down > 1:
        return _bands(outer, high, wide, down, usual)  # the scale of a row of blocks depends on the whole row
    return _grid(outer, high, wide, down, max(usual // down // across, 1) * across)


def _grid(outer: int, high: int, wide: int, down: int, across: int) -> list[TensorRegion]:
    """Return regions of `down` rows and `across` columns in each of several matrices."""
    _require_few(outer * -(-high // down) * -(-wide // across))
    return [
        TensorRegion(matrix * high + row, min(down, high - row), column, min(across, wide - column), wide)
        for matrix in range(outer)
        for row in range(0, high, down)
        for column in range(0, wide, across)
    ]


def _require_few(count: int) -> None:
    """Raise UnsupportedError if no real tensor has so many regions; the header of a file may claim any shape."""
    if count > _MOST_REGIONS:
        raise UnsupportedError(f"has too many elements: it would be measured in over {_MOST_REGIONS:,} pieces")


def needs_peaks(recipe: Recipe, regions: list[TensorRegion]) -> bool:
    """Return whether the scales of a region depend on the largest numbers of other regions.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [(_, regions)] = cuts((4, 100), (parse_recipe("nvfp4"),), usual=200)
    >>> len(regions), needs_peaks(parse_recipe("nvfp4"), regions), needs_peaks(parse_recipe("nvfp4"), regions[:1])
    (2, True, False)
    """
    scope = spans(recipe)
    if not scope or len(regions) < 2:
        return False
    return scope == "tensor" or not all(each.has_whole_rows for each in regions)
