"""Block formats on arrays: MX and NVFP4, with the same bits as `arith.blocks`.

`arith.blocks` computes the quotients amax / (largest·t) and x / (s·t) exactly and rounds them once. Here they are
computed in float64 and then rounded; `scales` explains why the bits are the same. Division by a power of two is exact
in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Unpack

import numpy as np

from floatlab.arith.blocks import element_context, read_tensor_scale
from floatlab.arith.operands import holds
from floatlab.arrays.codec import BlockRounding, decode_array, rules_of
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, checked_codes, container
from floatlab.arrays.scales import WORDS, BlockLayout, Blocks, dtype_of, product_dtype, recipe_of, scales_for
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError
from floatlab.formats.blocks import BlockFormat, Integers
from floatlab.formats.format import Format
from floatlab.formats.recipes import Recipe
from floatlab.fpmode import in_default_mode
from floatlab.numbers.rounding import AnyContext

_SINGLES, _DOUBLES = WORDS
_KINDS: dict[Format, DType] = {SINGLE: _SINGLES, DOUBLE: _DOUBLES}
_EVERY: dict[DType, Array] = {  # all bits but the sign
    _SINGLES: np.array((1 << 31) - 1, np.int32),
    _DOUBLES: np.array((1 << 63) - 1, np.int64),
}
_element_context = lru_cache(maxsize=64)(element_context)


class Job:
    """The checked arguments of a call: format, scale rule, context, and the array as float32 or float64."""

    def __init__(
        self,
        x: object,
        format: BlockFormat | Recipe | str,
        axis: int = -1,
        *,
        scale: str | None = None,
        rounding: AnyContext = "RNE",
        context: AnyContext = None,
        tensor_scale: object = None,
        block: int | None = None,
        lane: str | None = None,
    ) -> None:
        """Read and check everything before anything is computed."""
        recipe = recipe_of(format, block)
        self.fmt = recipe.format
        self.context = _element_context(rules_of(context, rounding), self.fmt)
        self.lane = dispatch.parse_lane(lane)
        # `str` turns arguments of other types, such as lists, into names of unknown rules.
        rule = recipe.rule if scale is None else str(scale)
        self.steps = scales_for(self.fmt, rule)
        # The NumPy lane is faster with float32, but stochastic draws need digits that float32 lacks.
        drawn = self.context.rounding.is_stochastic
        self.narrows = self.steps.numbers.width <= 8 and not drawn and not dispatch.is_compiled(self.lane)
        source = source_of(x)
        if kind := _KINDS.get(source.format):
            self.array = np.ascontiguousarray(source.codes).astype(container(source.format), copy=False).view(kind)
        else:
            self.array = decode_array(source.codes, source.format, threads=1)
        self.array = self.array.reshape(source.codes.shape)
        # Integers are read as float64, but the result for them is float32.
        whole = source.dtype is None and not isinstance(getattr(x, "format", None), Format)
        self.dtype = np.dtype(np.float32) if whole else self.array.dtype
        self.cut = BlockLayout(self.array.shape, axis, self.fmt)
        self.given = _given_scale(tensor_scale, self.fmt)

    def scales(self) -> tuple[Array, np.float32 | None]:
        """Return the codes of the scales, as (rows of blocks, 1, columns), and the tensor's scale."""
        amax = self._amax()
        top = float(amax.max(initial=0))
        self.finite = top < np.inf
        tensor = self.given
        if self.fmt.tensor is not None and tensor is None:
            largest = top if self.finite else float(np.max(amax, where=np.isfinite(amax), initial=0))
            tensor = self.steps.tensor_for(largest)
        return self.steps.codes(amax, top, tensor), tensor

    def _amax(self) -> Array:
        """Return the largest magnitude of each block; NaN or ∞ if the block has one."""
        # Codes without their signs, compared as integers, have the order of the magnitudes; NaNs come last.
        every = _EVERY[self.array.dtype]
        bits = self.array.view(every.dtype)
        rows, size, inner = self.cut.rows, self.cut.size, self.cut.inner
        # Contiguous blocks are faster without the axis of length 1.
        blocks = bits.reshape((rows, size) if inner == 1 else (rows, size, inner))
        found = np.empty((rows, 1, inner), every.dtype)
        into = found.reshape((rows,) if inner == 1 else (rows, inner))
        for some in self.cut.slabs():
            np.maximum.reduce(blocks[some] & every, axis=1, initial=0, out=into[some])
        return found.view(self.array.dtype)

    def round(
        self, scales: Array, tensor: np.float32 | None, into: Array | None, target: Format | None = None
    ) -> Iterator[tuple[slice, Array, Array]]:
        """Yield rows of blocks, their elements' codes (or values in `target`), and s·t; `into` receives all codes."""
        cut, numbers = self.cut, self.steps.numbers
        blocks, held = cut.blocks(self.array), container(target or numbers)
        for rows in cut.slabs():
            scaled, by = self.steps.scaled(blocks[rows], scales[rows], tensor, self.context, self.finite, self.narrows)
            word = WORDS[scaled.dtype]
            work = dispatch.rounder(word, numbers, self.context, self.lane, target)
            made = np.empty(scaled.shape, held) if into is None else into[rows]
            # The random draws are numbered in the order of the whole array.
            first = rows.start * cut.size * cut.inner
            work(scaled.reshape(-1).view(container(word)), first, made.reshape(-1).view(held), None)
            yield rows, made, by


def _given_scale(given: object, fmt: BlockFormat) -> np.float32 | None:
    if given is None:
        return None
    if fmt.tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} has no scale for a whole tensor; nvfp4 has one")
    if type(given) is np.float32 and 0 < given < np.inf and fmt.tensor == SINGLE:
        return given
    return np.float32(float(read_tensor_scale(given, fmt.tensor)))


def _silent() -> np.errstate:
    """Return an `errstate` without warnings for overflow, underflow and NaNs."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


@lru_cache(maxsize=64)
def _from_magnitudes(kind: Integers) -> Array:
    """Return the two's complement code for every sign-magnitude code."""
    half = 1 << (kind.width - 1)
    return np.array([kind.code(code >= half, code % half) for code in range(2 * half)], np.uint8)


@in_default_mode
def encode_blocks(
    x: object, format: BlockFormat | Recipe | str, axis: int = -1, **options: Unpack[BlockRounding]
) -> Blocks:
    """Encode an array in a block format: one code for the scale of each block, one for each element.

    Parameters
    ----------
    x
        Array, as in `encode`.
    format
        Block format or its name: `mxfp8_e4m3`, `mxfp4`, `mxint8`, `nvfp4` …
    axis
        Axis along which blocks are formed. The block size divides its length.
    scale
        Rule for scales (`formats.scale_rules`); by default the format's own: floor for MX, nearest for nvfp4.
    rounding, context
        The rounding of elements. They saturate.
    tensor_scale
        Scale of the whole tensor for nvfp4; by default derived from the largest magnitude.
    block
        Block size; by default the format's own.
    lane
        As in `encode`.

    Returns
    -------
    Blocks
        `scales` in the shape of `x` with the axis divided by the block size; `codes` in the shape of `x`, one code per
        byte (two's complement for mxint8). A block with a NaN or an infinity has the scale NaN and elements 0.

    Raises
    ------
    UnsupportedError
        For arrays that are not numeric, and for an axis that does not exist or whose length is not a multiple of the
        block size.
    FormatError, ContextError
        For unknown names.

    Examples
    --------
    >>> scales, codes = encode_blocks(np.array([957.0, *[1.0] * 31], np.float32), "mxfp8_e4m3")
    >>> scales.tolist(), codes[:2].tolist()
    ([128], [126, 48])
    """
    job = Job(x, format, axis, **options)
    elements = np.empty(job.array.shape, container(job.steps.numbers))
    with _silent():
        codes, tensor = job.scales()
        for _ in job.round(codes, tensor, job.cut.blocks(elements)):
            pass
    if isinstance(job.fmt.element, Integers):
        elements = _from_magnitudes(job.fmt.element).take(elements)
    return Blocks(codes.reshape(job.cut.scales_shape), elements, tensor)


@in_default_mode
def quantize_blocks(
    x: object, format: BlockFormat | Recipe | str, axis: int = -1, **options: Unpack[BlockRounding]
) -> Array:
    """Return the numbers of `x` rounded into a block format: element × scale × tensor scale.

    Parameters and errors are those of `encode_blocks`.

    Returns
    -------
    values
        float64 if `x` is float64, else float32: no narrower float has the range of the scales.

    Notes
    -----
    In MX the values are exact, except that the largest numbers of float32 can round up to 2^128, which is ∞ in float32.
    The product of nvfp4 has up to 30 bits and is rounded once, to nearest, into float32.

    Examples
    --------
    >>> quantize_blocks(np.array([957.0, *[1.1] * 31], np.float32), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.125]
    """
    job = Job(x, format, axis, **options)
    values = np.empty(job.array.shape, job.dtype)
    into, kind, numbers = job.cut.blocks(values), product_dtype(job.fmt, job.dtype), job.steps.numbers
    direct: Format | None = WORDS[job.dtype]
    if isinstance(job.fmt.element, Integers) or not holds(WORDS[job.dtype], numbers):
        direct = None
    with _silent():
        codes, tensor = job.scales()
        for rows, made, by in job.round(codes, tensor, into if direct else None, direct):
            elements = made if direct else _reader(job.fmt, kind, True)(made)
            np.multiply(elements, by, out=into[rows], dtype=kind, casting="same_kind")
    return values


@in_default_mode
def decode_blocks(
    blocks: object,
    format: BlockFormat | Recipe | str,
    axis: int = -1,
    *,
    tensor_scale: object = None,
    block: int | None = None,
    dtype: object = None,
) -> Array:
    """Return the values of encoded blocks, exactly.

    Parameters
    ----------
    blocks
        The result of `encode_blocks`, or a pair of scales and codes.
    format, axis, block
        As in `encode_blocks`.
    tensor_scale
        Scale of the tensor for nvfp4, if `blocks` is a pair.
    dtype
        By default float32 if it represents every number of the format, else float64 (as for MX and nvfp4). With
        float32, values are rounded once, to nearest, and those that are too large become infinite.

    Raises
    ------
    UnsupportedError
        For codes that are too wide, and for shapes that do not match.

    Examples
    --------
    >>> decode_blocks((np.array([128]), np.array([126, 48] * 16)), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.0]
    """
    fmt = recipe_of(format, block).format
    pair: Any = blocks
    try:
        scales, codes = pair
    except (TypeError, ValueError):
        raise UnsupportedError("blocks is a pair of scales and codes, as encode_blocks returns it") from None
    scales, codes = checked_codes(scales, fmt.scale, "scales"), checked_codes(codes, fmt.element.width)
    if tensor_scale is None and isinstance(blocks, Blocks):
        tensor_scale = blocks.tensor_scale
    tensor = _given_scale(tensor_scale, fmt)
    if fmt.tensor is not None and tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} needs the scale of the tensor, which a pair does not contain")
    cut = BlockLayout(codes.shape, axis, fmt)
    if scales.shape != cut.scales_shape:
        raise UnsupportedError(f"scales has shape {scales.shape}; codes of shape {codes.shape} need {cut.scales_shape}")
    kind = dtype_of(fmt) if dtype is None else np.dtype(dtype)  # type: ignore[call-overload]
    if kind not in WORDS:
        raise UnsupportedError(f"dtype {kind.name} does not hold the range of {fmt.name}; float32 and float64 do")
    values = np.empty(codes.shape, kind)
    into, elements, rowed = cut.blocks(values), cut.blocks(codes), cut.scales(scales)
    within = product_dtype(fmt, kind)
    read, steps = _reader(fmt, within), scales_for(fmt, None)
    with _silent():
        for rows in cut.slabs():
            by = steps.values(rowed[rows], within, tensor)
            np.multiply(read(elements[rows]), by, out=into[rows], dtype=within, casting="same_kind")
    return values


@lru_cache(maxsize=64)
def _reader(fmt: BlockFormat, kind: DType, as_magnitudes: bool = False) -> Callable[[Array], Array]:
    """Return a function that decodes the codes of elements, or sign-magnitude codes, into a dtype."""
    element = fmt.element
    if isinstance(element, Format):
        return partial(decode_array, format=element, dtype=kind, threads=1)
    every = np.array([element.integer(code) for code in range(1 << element.width)], kind)
    every *= kind.type(2.0**element.quantum)
    return every[_from_magnitudes(element)].take if as_magnitudes else every.take
