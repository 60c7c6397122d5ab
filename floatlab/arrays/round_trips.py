"""Rounds a matrix by a recipe and back to numbers, with the scale of each block: what a recipe makes of an array.

The matrix may be a part of an array whose scales depend on all of it (`e4m3/tensor`, `nvfp4`). The number with the
largest magnitude of the whole then stands for the rest.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.blocks import decode_blocks, encode_blocks
from floatlab.arrays.codec import decode_array, native, round_array
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.recipes import formulas
from floatlab.arrays.sources import Piece, Source, source_of
from floatlab.arrays.tally import Tally, merge, tally
from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError
from floatlab.formats.blocks import Integers
from floatlab.formats.format import Format
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import Recipe
from floatlab.fpmode import in_default_mode
from floatlab.record import Individual

_SINGLE = np.dtype(np.float32)


class RoundTrip(Individual):
    """The numbers of a matrix, and what a recipe makes of them.

    `x` and `values` are matrices of one dtype, float32 or float64. `factors` has, for each tile of `tile` rows and
    columns, the number by which a decoded element is multiplied. `scales` has the stored scales of the blocks as
    numbers, and `unit` the number by which a scale of 1 multiplies its elements; both are None without scales.
    """

    x: Array
    values: Array
    tile: tuple[int, int]
    factors: Array
    scales: Array | None = None
    unit: Array | None = None


def is_unscaled(recipe: Recipe) -> bool:
    """Return whether a recipe has no scales, such as `e4m3`: elements are rounded as they are.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [is_unscaled(parse_recipe(name)) for name in ("e4m3", "e4m3/tensor", "mxfp4")]
    [True, False, False]
    """
    return recipe.rule.name == "none"


def spans(recipe: Recipe) -> str:
    """Return what has to be known to scale a part of an array: its `tensor`, its `row`, or only its blocks (empty).

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
    """Return a piece as float32, or as float64 if float32 does not contain its format.

    >>> numbers_of(np.float16([1, 2])).dtype
    dtype('float32')
    """
    found = native(piece)
    return found if found.dtype in (_SINGLE, np.float64) else found.astype(_SINGLE)


@in_default_mode
def round_trip(x: Piece, recipe: Recipe, peak: float | None = None, overflow: str = "native") -> RoundTrip:
    """Round a matrix by a recipe and back.

    Parameters
    ----------
    x
        A matrix of floats, or of codes of a format.
    recipe
        The recipe. Without scales, numbers beyond the largest follow `overflow`, as in `encode`; else they saturate.
    peak
        If `x` is a part of an array whose scales depend on all of it: the first number with the largest magnitude, in
        the array (or in the row of which `x` is a part, if each row has a scale).
    overflow
        `native`, `saturate` or `propagate`, for recipes without scales.

    Returns
    -------
    RoundTrip

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
        return _scaled(x, numbers, recipe, peak)


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
    blocks = encode_blocks(x, recipe, tensor_scale=given)
    values = decode_blocks(blocks, recipe, dtype=numbers.dtype)
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


def _factors(recipe: Recipe, known: dict[str, Array]) -> tuple[Array, Array]:
    """Return the factors of a scale of 1 and of the scales, by the formula that decodes an element."""
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
    """Return the scale of a tensor in which `peak` has the largest magnitude; `taken` is the format of its numbers.

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
    """Return a matrix with zeros in additional columns, which change no scale."""
    missing = columns - _shape(x)[1]
    if not missing:
        return x
    if isinstance(x, Source) and x.format.zero:
        return x.replace(codes=np.pad(x.codes, ((0, 0), (0, missing))))
    return np.pad(native(x), ((0, 0), (0, missing)))


def _preceded(x: Piece, peak: float, count: int) -> Piece:
    """Return a matrix with `count` columns more, before the others: zeros, of which the first one becomes `peak`."""
    first = np.zeros((_shape(x)[0], count))
    first[0, 0] = peak
    if isinstance(x, Source) and x.format.zero:
        codes = round_array(first, x.format, as_codes=True)
        return x.replace(codes=np.concatenate([codes.astype(x.codes.dtype), x.codes], axis=1))
    held = native(x)
    return np.concatenate([first.astype(held.dtype), held], axis=1)


class Limits(Individual):
    """The smallest normal number of an element format, and the smallest magnitude that rounds beyond its largest."""

    smallest: float
    beyond: float
    is_beyond: bool  # whether `beyond` itself rounds beyond the largest number; else only larger magnitudes do


@lru_cache(maxsize=256)
def limits_of(element: Format | Integers) -> Limits:
    """Return the limits of an element format; fixed-point numbers and tables have no subnormal numbers.

    >>> from floatlab.formats import parse_format
    >>> found = limits_of(parse_format("e4m3"))
    >>> found.smallest, found.beyond, found.is_beyond  # 464 is a tie, which goes to 448
    (0.015625, 464.0, False)
    """
    numbers = element if isinstance(element, Format) else element.magnitudes
    if numbers.is_table:
        return Limits(0.0, float(numbers.largest), False)
    half = 2.0 ** (numbers.emax - numbers.precision) if numbers.emax < 1023 else 0.0  # half a unit of the last place
    odd = numbers.precision == 1 or bool(numbers.largest_magnitude & 1)  # else the tie goes to the largest number
    is_fixed = isinstance(element, Integers) or numbers.exponent_bits < 2  # fixed point: all steps are equal
    least = 0.0 if is_fixed or not numbers.subnormals else float(numbers.smallest_normal)
    return Limits(least, float(numbers.largest) + half, odd)


def tally_of(trip: RoundTrip, recipe: Recipe, first: int = 0, row_length: int | None = None) -> Tally:
    """Count and measure a round trip; the matrix begins at index `first` of an array whose rows have `row_length`.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> recipe = parse_recipe("mxfp4")
    >>> found = tally_of(round_trip(np.float32([[7.5, 1, 0.2, 0]]), recipe), recipe)
    >>> found.saturated, found.flushed, found.exact, found.largest_relative_at
    (1, 1, 2, 2)
    """
    with np.errstate(all="ignore"):
        return _tally(trip, recipe, first, row_length)


def _tally(trip: RoundTrip, recipe: Recipe, first: int, row_length: int | None) -> Tally:
    rows, columns = trip.x.shape
    stride = columns if row_length is None or rows == 1 else row_length
    down, across = min(trip.tile[0], max(rows, 1)), min(trip.tile[1], max(columns, 1))
    full = rows - rows % down, columns - columns % across
    parts = [
        (top, left, height, width)
        for top, height in ((0, full[0]), (full[0], rows - full[0]))
        for left, width in ((0, full[1]), (full[1], columns - full[1]))
        if height and width
    ]
    limits = limits_of(recipe.format.element)
    found = []
    for top, left, height, width in parts:
        tile = min(down, height), min(across, width)
        factors = trip.factors[top // down :, left // across :][: -(-height // tile[0]), : -(-width // tile[1])]
        sizes = np.abs(np.ascontiguousarray(factors).reshape(-1))
        beyond = limits.beyond * sizes
        if not limits.is_beyond:
            beyond = np.nextafter(beyond, np.inf)
        x, y = (_in_tiles(each[top : top + height, left : left + width], tile) for each in (trip.x, trip.values))
        run = tile[0] * tile[1]
        each = tally(x, y, run, limits.smallest * sizes, beyond)
        if isinstance(recipe.format.element, Integers) and not recipe.rule.is_exact:
            each = each.replace(saturated=_clipped(x, factors, run, recipe.format.element))
        found.append(each.replace(largest_relative_at=_index(each.largest_relative_at, tile, width, top, left, stride)))
    whole = merge(found) if len(found) != 1 else found[0]
    at = whole.largest_relative_at
    return whole.replace(largest_relative_at=at + first if at >= 0 else -1)


def _in_tiles(matrix: Array, tile: tuple[int, int]) -> Array:
    """Return the elements of a matrix tile by tile."""
    rows, columns = matrix.shape
    if tile[0] == 1 or tile[1] == columns:
        return np.ascontiguousarray(matrix).reshape(-1)
    apart = matrix.reshape(rows // tile[0], tile[0], columns // tile[1], tile[1])
    return np.ascontiguousarray(apart.swapaxes(1, 2)).reshape(-1)


def _index(at: int, tile: tuple[int, int], width: int, top: int, left: int, stride: int) -> int:
    """Return the index in the array of the element that is at place `at` in the order of tiles."""
    if at < 0:
        return at
    number, inside = divmod(at, tile[0] * tile[1])
    down, across = divmod(number, width // tile[1])
    row, column = divmod(inside, tile[1])
    return (top + down * tile[0] + row) * stride + left + across * tile[1] + column


def _clipped(x: Array, factors: Array, run: int, kind: Integers) -> int:
    """Count the numbers beyond the integers, of which there is one more below zero than above it."""
    wanted = x.astype(np.float64) / np.repeat(factors.reshape(-1), run)[: len(x)] / 2.0**kind.quantum
    beyond = (wanted >= -kind.lowest - 0.5) | (wanted < kind.lowest - 0.5)
    return int(np.count_nonzero(beyond & np.isfinite(x)))


def check_supported(recipe: Recipe) -> None:
    """Raise FloatlabError for a recipe that arrays do not support, before any data is read.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> check_supported(parse_recipe("nvfp4"))
    """
    try:
        round_trip(np.ones((1, 1), np.float32), recipe)
    except FloatlabError as trouble:
        raise type(trouble)(f"{recipe.name}: {trouble}") from None
