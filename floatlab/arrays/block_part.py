"""Quantizes one block of an array exactly, and records every step of the computation.

Other blocks are read only to find the tensor scale.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floatlab.arith.blocks import BlockDerivation, quantize_block, quantize_blocks, tiles
from floatlab.arrays.codec import native
from floatlab.arrays.recipes.tiling import Tiling
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.recipes import Recipe
from floatlab.fpmode import in_default_mode
from floatlab.numbers.datum import Datum
from floatlab.numbers.rounding import DEFAULT, AnyContext
from floatlab.record import Record

MOST = 256  # the largest number of elements shown at once; larger blocks are shown in parts
LARGEST = 1 << 14  # the largest block for rules that depend on every value, such as those with a search


class BlockPart(Record):
    """A part of a block of an array: its elements, and where they are.

    `places` are the positions of the elements in the array, in C order. The first of these elements is element `start`
    of the block, which has `size` elements. `before` is the array position of the last element of the previous part,
    which may belong to another block. `after` is the array position of the first element of the next part. `before` or
    `after` is None if there is no such part.
    """

    block: BlockDerivation
    shape: tuple[int, ...]
    places: tuple[int, ...]
    start: int
    size: int
    before: int | None
    after: int | None

    def index(self, place: int) -> tuple[int, ...]:
        """Return the index of a position in the array."""
        return tuple(map(int, np.unravel_index(place, self.shape)))


@in_default_mode
def block_part(
    x: Source, recipe: Recipe, at: int, context: AnyContext = DEFAULT, tensor_scale: object = None
) -> BlockPart:
    """Quantize the block of an array that contains the element at position `at` (in C order).

    Blocks are split into parts of up to MOST elements; return the part that contains this element. The results have the
    same bits as those of `quantize_blocks` for the whole array, but this function is fast even for arrays of millions
    of elements. Raises UnsupportedError for an empty array, and for a very large block whose rule needs every value.

    >>> from floatlab.arrays.sources import source_of
    >>> from floatlab.formats.recipes import parse_recipe
    >>> x = source_of(np.arange(64, dtype=np.float32).reshape(2, 32))
    >>> part = block_part(x, parse_recipe("nvfp4"), 40)
    >>> part.index(part.places[0]), len(part.places), part.block.amax.as_fraction(), part.after
    ((1, 0), 16, Fraction(47, 1), 48)
    """
    fmt, shape = recipe.format, x.codes.shape or (1,)
    if not x.codes.size:
        raise UnsupportedError("the array has no elements")
    places = Tiling(shape, fmt).cut(np.arange(1, x.codes.size + 1).reshape(shape)) - 1  # −1 for padding
    number = int(np.argmax((places == at).any(axis=1)))
    own = _without_padding(places[number])
    codes = x.codes.reshape(-1)
    numbers = native(x).reshape(-1)
    magnitudes = np.abs(numbers)
    first = int(np.flatnonzero(own == at)[0]) // MOST * MOST
    shown, derived = own[first : first + MOST], own
    if len(own) > LARGEST:
        if recipe.rule.choice is not None or recipe.rule.search or fmt.groups:
            raise UnsupportedError(
                f"{recipe.name}: each of the {len(own):,} values of a block affects its scale; "
                f"at most {LARGEST:,} are shown step by step"
            )
        derived = np.union1d(shown, own[_extremes(numbers[own], magnitudes[own])])

    def data(chosen: Array) -> list[Datum]:
        return [Datum(x.format, int(codes[place])) for place in chosen]

    others = [] if tensor_scale is not None else _others(places, number, magnitudes, fmt, shape)
    block = quantize_block(data(derived), derived.tolist(), recipe, context, tensor_scale, [*map(data, others)])
    ends = _end(places, number - 1, -1), _end(places, number + 1, 0)
    return _part(block, shape, own.tolist(), derived.tolist(), first, ends)


def values_part(
    rows: Sequence[Sequence[object]],
    recipe: Recipe,
    at: int,
    context: AnyContext = DEFAULT,
    tensor_scale: object = None,
) -> BlockPart:
    """Quantize a block as `block_part` does, for rows of exact values of any kind, such as text.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> part = values_part([["1", "1/3", "0.1"]], parse_recipe("e2m1/2"), 1)
    >>> part.places, part.after
    ((0, 1), 2)
    """
    fmt, flat, shape = recipe.format, [value for row in rows for value in row], (len(rows), len(rows[0]))
    blocks = tiles(fmt, *shape)
    number = next(i for i, places in enumerate(blocks) if at in places)
    own = blocks[number]
    if fmt.superblock is not None or fmt.by_row:
        block = quantize_blocks(rows, recipe, None, context, tensor_scale)[number]
    else:
        others = [[flat[i] for i in other] for other in (*blocks[:number], *blocks[number + 1 :])]
        block = quantize_block([flat[i] for i in own], own, recipe, context, tensor_scale, others)
    ends = blocks[number - 1][-1] if number else None, blocks[number + 1][0] if number + 1 < len(blocks) else None
    return _part(block, shape if len(rows) > 1 else shape[1:], own, own, own.index(at) // MOST * MOST, ends)


def _part(
    block: BlockDerivation,
    shape: tuple[int, ...],
    own: list[int],
    derived: list[int],
    first: int,
    ends: tuple[int | None, int | None],
) -> BlockPart:
    """Return the part that begins at position `first` of a block.

    `own` has the array positions of all elements of the block. If the block is very long, the derivation `block` omits
    some of its elements; `derived` has the positions of the elements in the derivation. `ends` is a pair of array
    positions: the field `before` of the block's first part, and the field `after` of its last part.
    """
    places = own[first : first + MOST]
    kept = [i for i, place in enumerate(derived) if places[0] <= place <= places[-1]]
    last = first + len(places)
    return BlockPart(
        block=block.replace(
            elements=tuple(block.elements[i] for i in kept), literals=tuple(block.literals[i] for i in kept)
        ),
        shape=shape,
        places=tuple(places),
        start=first,
        size=len(own),
        before=own[first - 1] if first else ends[0],
        after=own[last] if last < len(own) else ends[1],
    )


def _without_padding(places: Array) -> Array:
    return places[places >= 0]


def _end(places: Array, number: int, which: int) -> int | None:
    """Return the array position of the first (`which` 0) or the last (`which` −1) element of block `number`.

    Return None if there is no such block.
    """
    return int(_without_padding(places[number])[which]) if 0 <= number < len(places) else None


def _extremes(values: Array, magnitudes: Array) -> list[int]:
    """Return the positions of the largest magnitude, the largest and the smallest value, and the first NaN.

    The formulas of a scale rule depend on no other values of a block.
    """
    nans = np.isnan(magnitudes)
    found = [int(np.argmax(nans))] if nans.any() else []
    if not nans.all():
        found += [int(np.nanargmax(magnitudes)), int(np.nanargmax(values)), int(np.nanargmin(values))]
    return found


def _others(places: Array, number: int, magnitudes: Array, fmt: BlockFormat, shape: tuple[int, ...]) -> list[Array]:
    """Return the array positions of those values in other blocks that affect the tensor scale.

    The result has one array for each block that has such values.

    If the blocks of a superblock share the tensor scale (q4_k), the result has the positions of all values in the other
    blocks of the superblock. Otherwise, the positions of at most three values are enough: the largest magnitude in
    blocks without NaNs and infinities, a NaN, and an infinity. (Exact rules ignore the NaN and the infinity.)
    """
    if fmt.tensor is None:
        return []
    size = fmt.superblock or (shape[-1] if fmt.by_row else magnitudes.size)
    groups = places[:, 0] // size
    rows = np.flatnonzero(groups == groups[number])
    rows = rows[rows != number]
    if fmt.superblock is not None:
        return [_without_padding(places[i]) for i in rows]
    sizes = np.where(places[rows] >= 0, magnitudes[places[rows]], 0)
    largest = sizes.max(axis=1)  # NaN if a value is NaN
    found = []
    for among in (np.isfinite(largest), np.isnan(largest), np.isinf(largest)):
        if among.any():
            row = int(np.flatnonzero(among)[np.argmax(largest[among])])
            found.append(places[rows[row]][[int(np.argmax(sizes[row]))]])
    return found
