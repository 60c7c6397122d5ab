"""Rounds a matrix by a recipe, and returns the rounded numbers with the scale of each block.

If the matrix is only a part of an array, and its scales depend on the whole array (`e4m3/tensor`, `nvfp4`), the caller
also passes the number with the largest magnitude in the array.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.block_job import Job
from floatlab.arrays.blocks import decode_blocks, encode_blocks
from floatlab.arrays.codec import decode_array, native, round_array
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.recipes import formulas
from floatlab.arrays.recipes.minima import round_blocks, round_one_by_one
from floatlab.arrays.recipes.tiling import even_parts, in_tiles, joined
from floatlab.arrays.scales import Blocks, is_plain
from floatlab.arrays.sources import Piece, Source, source_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.formats.format import Format
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import Recipe
from floatlab.fpmode import in_default_mode
from floatlab.record import Individual

_SINGLE = np.dtype(np.float32)


class RoundTrip(Individual):
    """The numbers of a matrix, and the same numbers rounded by a recipe.

    `x` and `values` are matrices of one dtype, float32 or float64. They consist of tiles of the shape `tile`. In each
    tile, value = element × factor or, in formats with minima, element × factor + minimum; `factors` and `minima` have
    these numbers for all tiles. `scales` has the stored scales of the blocks as numbers. `unit` has the factors that
    would result if these scales were 1. `scales` and `unit` are None for recipes without scales.
    """

    x: Array
    values: Array
    tile: tuple[int, int]
    factors: Array
    scales: Array | None = None
    unit: Array | None = None
    minima: Array | None = None


def is_unscaled(recipe: Recipe) -> bool:
    """Return whether a recipe has no scales, so that elements are rounded unscaled, as in `e4m3`.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [is_unscaled(parse_recipe(name)) for name in ("e4m3", "e4m3/tensor", "mxfp4")]
    [True, False, False]
    """
    return recipe.rule.name == "none"


def spans(recipe: Recipe) -> str:
    """Return which values of an array determine its scales.

    The result is `tensor` if a scale depends on all values, and `row` if it depends on all values of a row. The result
    is an empty string if a scale depends only on the values of its block or superblock.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [spans(parse_recipe(name)) for name in ("e4m3/tensor", "nvfp4", "e4m3/channel", "nvfp4/16/channel", "mxfp4")]
    ['tensor', 'tensor', 'row', 'row', '']
    """
    fmt = recipe.format
    if is_unscaled(recipe):
        return ""
    if fmt.by_row or (fmt.block is None and fmt.rows is not None):
        return "row"
    return "tensor" if fmt.block is None or (fmt.tensor is not None and fmt.superblock is None) else ""


def numbers_of(piece: Piece) -> Array:
    """Return the values of floats or codes as float32, or as float64 if float32 does not contain their format.

    >>> numbers_of(np.float16([1, 2])).dtype
    dtype('float32')
    """
    found = native(piece)
    return found if found.dtype in (_SINGLE, np.float64) else found.astype(_SINGLE)


@in_default_mode
def round_trip(x: Piece, recipe: Recipe, peak: float | None = None, overflow: str = "native") -> RoundTrip:
    """Quantize a matrix by a recipe, and decode the result.

    Parameters
    ----------
    x
        A matrix of floats, or of codes of a format.
    recipe
        The recipe. If the recipe has scales, elements beyond the largest number of their format saturate, unless the
        rule lets them wrap around. Without scales, `overflow` applies.
    peak
        The first number with the largest magnitude in the whole array (or in the whole row, if each row has a scale).
        It is needed if `x` is only a part of an array whose scales depend on the other parts.
    overflow
        `native`, `saturate` or `propagate`, as in `encode`; only for recipes without scales.

    Returns
    -------
    RoundTrip
        If blocks are cut from the flattened matrix (`flat` formats), the matrices of the result have one row.

    Raises
    ------
    FloatlabError
        For recipes that arrays do not support.

    Examples
    --------
    >>> from floatlab.formats.recipes import parse_recipe
    >>> found = round_trip(np.float32([[1, 2, 3, 5]]), parse_recipe("e2m1/2"))
    >>> found.values.tolist(), found.factors.tolist(), found.tile
    ([[1.0, 2.0, 3.3333332538604736, 5.0]], [[0.3333333432674408, 0.8333333134651184]], (1, 2))
    """
    fmt = recipe.format
    if fmt.flat and not is_unscaled(recipe):
        x = _reshaped(x, (1, _shape(x)[0] * _shape(x)[1]))
    numbers = numbers_of(x)
    with np.errstate(all="ignore"):
        if is_unscaled(recipe):
            return _unscaled(x, numbers, recipe, overflow)
        return _shifted(numbers, recipe) if fmt.minimum else _scaled(x, numbers, recipe, peak)


def _unscaled(x: Piece, numbers: Array, recipe: Recipe, overflow: str) -> RoundTrip:
    element = recipe.format.element
    if isinstance(element, Format):
        values = numbers_of(round_array(x, element, overflow=overflow, threads=1))
    else:
        values = decode_blocks(encode_blocks(x, recipe), recipe, dtype=numbers.dtype)
    if values.dtype != numbers.dtype:
        values, numbers = values.astype(np.float64, copy=False), numbers.astype(np.float64, copy=False)
    rows, columns = numbers.shape
    return RoundTrip(numbers, values, (max(rows, 1), max(columns, 1)), np.ones((1, 1)))


def _shifted(numbers: Array, recipe: Recipe) -> RoundTrip:
    """Round blocks of a format that stores a minimum per block; shorter blocks at the ends of rows are not padded."""
    rows, columns = numbers.shape
    fmt = recipe.format
    if fmt.block is None:
        raise UnsupportedError(f"{fmt.name} needs blocks of a fixed size on arrays")
    down, across = fmt.rows or 1, fmt.block
    values = np.empty((rows, columns))
    shape = -(-rows // down), -(-columns // across)
    scales, factors, minima = (np.ones(shape) for _ in range(3))
    whole_groups = columns - columns % (fmt.superblock or 1)
    parts = even_parts((rows, whole_groups), (down, across))
    for top, left, height, width in [
        *parts,
        *([(0, whole_groups, rows, columns - whole_groups)] * (columns > whole_groups)),
    ]:
        tile = min(down, height), min(across, width)
        part = slice(top, top + height), slice(left, left + width)
        if left < whole_groups:
            found = round_blocks(in_tiles(numbers[part], tile).reshape(-1, tile[0] * tile[1]), recipe)
            values[part] = joined(found.values, (height, width), tile)
        else:
            found = round_one_by_one(numbers[part].reshape(-1), recipe)
            values[part] = found.values.reshape(height, width)
        where = slice(top // down, -(-(top + height) // down)), slice(left // across, -(-(left + width) // across))
        for whole, each in ((scales, found.scales), (factors, found.factors), (minima, found.minima)):
            whole[where] = each.reshape(whole[where].shape)
    unit = np.divide(factors, scales, out=np.ones(shape), where=scales != 0)
    return RoundTrip(numbers, values.astype(numbers.dtype), (down, across), factors, scales, unit, minima)


def _scaled(x: Piece, numbers: Array, recipe: Recipe, peak: float | None) -> RoundTrip:
    fmt = recipe.format
    rows, columns = numbers.shape
    across, given, before = fmt.block or max(columns, 1), None, 0
    is_row = peak is not None and (fmt.tensor is None or fmt.by_row)
    if is_row:
        x = _reshaped(x, (1, rows * columns))
    elif peak is not None:
        given = tensor_scale(recipe, peak, source_of(x).format)
        given = given if 0 < given < np.inf else None
    if peak is not None and given is None:
        before = fmt.block or 1
        x = _preceded(x, peak, before)
    wide = -(-_shape(x)[1] // across) * across if fmt.block else _shape(x)[1]
    x = _padded(x, wide)
    blocks, values = _encoded(x, recipe, given, numbers.dtype)
    scales = decode_array(blocks.scales + fmt.first_scale, fmt.scale, np.float64, threads=1)
    tensor = np.ones((1, 1)) if blocks.tensor_scale is None else np.asarray(blocks.tensor_scale, np.float64)
    scales = scales.reshape(-(-_shape(x)[0] // (fmt.rows or max(_shape(x)[0], 1))), -1)
    known = {"q": np.ones((1, 1)), "tensor": tensor.reshape(-1, 1), "scale": scales}
    tile = fmt.rows or max(rows, 1), across if fmt.block else max(columns, 1)
    if before:
        values = values[:, before:][:, : rows * columns if is_row else columns].reshape(rows, columns)
        known["scale"] = scales = scales[:, :1] if fmt.block is None else scales[:, 1:]
        tile = (max(rows, 1), tile[1]) if fmt.block is None else tile
    values = values[:, :columns]
    for size, doubled in zip(fmt.groups, blocks.groups, strict=True):
        known[f"micro{size}"] = np.exp2(doubled.reshape(rows, -1).astype(np.float64))
    unit, factors = _factors(recipe, known)
    if fmt.groups:
        tile = 1, min(fmt.groups)
    return RoundTrip(numbers, values, tile, factors, scales, unit)


def _encoded(x: Piece, recipe: Recipe, given: np.float32 | None, dtype: DType) -> tuple[Blocks, Array]:
    """Encode a matrix. Return the `Blocks` (which may lack the codes of the elements) and the decoded values."""
    if is_plain(recipe):
        found = Job(x, recipe, -1, tensor_scale=given).at_once(False, True)
        if found is not None and found.values is not None and found.values.dtype == dtype:
            return Blocks(found.scales, np.zeros(0, np.uint8), found.tensor), found.values
    blocks = encode_blocks(x, recipe, tensor_scale=given)
    return blocks, decode_blocks(blocks, recipe, dtype=dtype)


def _factors(recipe: Recipe, known: dict[str, Array]) -> tuple[Array, Array]:
    """Return two arrays of the factors by which the elements are multiplied when they are decoded.

    The first array has the factors as if all scales of blocks and groups were 1. The second array has the factors with
    the actual scales.
    """
    fmt, value = recipe.format, parse_formula(recipe.rule.value)
    shape = known["scale"].shape
    unit = formulas.evaluate(value, {**known, **{f"micro{each}": np.ones((1, 1)) for each in fmt.groups},
                                     "scale": np.ones((1, 1))}, DOUBLE)  # fmt: skip
    if fmt.groups:
        smallest = min(fmt.groups)
        for name, each in [("scale", fmt.block), *((f"micro{size}", size) for size in fmt.groups)]:
            known[name] = np.repeat(known[name], (each or smallest) // smallest, axis=1)
    factors = np.asarray(formulas.evaluate(value, known, DOUBLE), np.float64)
    full = shape if not fmt.groups else known["scale"].shape
    return np.broadcast_to(unit, shape), np.broadcast_to(factors, full)


@lru_cache(maxsize=256)
def tensor_scale(recipe: Recipe, peak: float, taken: Format) -> np.float32:
    """Return the scale of a tensor in which `peak` is the number with the largest magnitude.

    `taken` is the format of the tensor's numbers.

    >>> from floatlab.formats import parse_format
    >>> from floatlab.formats.recipes import parse_recipe
    >>> tensor_scale(parse_recipe("nvfp4"), 2688.0, parse_format("bf16"))
    np.float32(1.0)
    """
    block = np.zeros((recipe.format.rows or 1, recipe.format.block or 1))
    block[0, 0] = peak
    found = encode_blocks(Source(round_array(block, taken, as_codes=True), taken), recipe).tensor_scale
    assert found is not None
    return np.float32(np.asarray(found).reshape(-1)[0])


def _shape(x: Piece) -> tuple[int, ...]:
    return (x.codes if isinstance(x, Source) else x).shape


def _reshaped(x: Piece, shape: tuple[int, int]) -> Piece:
    return x.replace(codes=x.codes.reshape(shape)) if isinstance(x, Source) else x.reshape(shape)


def _padded(x: Piece, columns: int) -> Piece:
    """Return a matrix with columns of zeros added at the end; these zeros do not change the scales."""
    missing = columns - _shape(x)[1]
    if not missing:
        return x
    if isinstance(x, Source) and x.format.zero:
        return x.replace(codes=np.pad(x.codes, ((0, 0), (0, missing))))
    return np.pad(native(x), ((0, 0), (0, missing)))


def _preceded(x: Piece, peak: float, count: int) -> Piece:
    """Return a matrix with `count` columns added in front. The first new element is `peak`, and all others are 0."""
    first = np.zeros((_shape(x)[0], count))
    first[0, 0] = peak
    if isinstance(x, Source) and x.format.zero:
        codes = round_array(first, x.format, as_codes=True)
        return x.replace(codes=np.concatenate([codes.astype(x.codes.dtype), x.codes], axis=1))
    held = native(x)
    return np.concatenate([first.astype(held.dtype), held], axis=1)


def check_supported(recipe: Recipe) -> None:
    """Raise FloatlabError for a recipe that arrays do not support. This check needs no data.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> check_supported(parse_recipe("nvfp4"))
    """
    try:
        round_trip(np.ones((1, 1), np.float32), recipe)
    except FloatlabError as trouble:
        raise type(trouble)(f"{recipe.name}: {trouble}") from None
