"""Block formats on arrays: MX and NVFP4, with the bits of `arith.blocks`.

There every quotient, amax / (largest·t) and x / (s·t), is exact and rounded once; `quotients` says why the float64
between them is no second rounding. A division by a power of two is exact anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, Unpack

import numpy as np

from floatlab.arith.blocks import element_context, given_tensor_scale
from floatlab.arith.operands import holds
from floatlab.arrays.block_layout import BlockLayout, Blocks
from floatlab.arrays.codec import decode_array
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.quotients import DIGITS, divide_to_odd, narrow_to_odd, quotient
from floatlab.arrays.lanes.reading import DOUBLE, SINGLE, checked_codes, container
from floatlab.arrays.results import rules_of
from floatlab.arrays.scales import BlockScales, dtype_of, multiplies_in_single, scales_for
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array, BlockRounding, DType
from floatlab.errors import UnsupportedError
from floatlab.formats.blocks import BlockFormat, TwosComplement, parse_block_format
from floatlab.formats.format import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Direction
from floatlab.numbers.rounding import AnyContext

_SINGLES, _DOUBLES = np.dtype(np.float32), np.dtype(np.float64)
_KINDS: dict[Format, DType] = {SINGLE: _SINGLES, DOUBLE: _DOUBLES}
_WORDS = {_SINGLES: SINGLE, _DOUBLES: DOUBLE}
_EVERY = {word: word(np.iinfo(word).max) for word in (np.int32, np.int64)}  # bits but the sign
_TO_NEAREST = (Direction.RNE, Direction.RNA, Direction.RTZ)  # what is tiny rounds as zero does


class Job:
    """What a call asks for, checked: format, rule, context, and the array as float32 or float64."""

    def __init__(
        self,
        x: object,
        format: BlockFormat | str,
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
        self.fmt = _block_format(format, block)
        self.context = _element_context(rules_of(context, rounding), self.fmt)
        self.lane = dispatch.parse_lane(lane)
        self.steps = _scales(self.fmt, scale)
        # The NumPy lane is quicker with float32; draws look at digits that it has not.
        drawn = self.context.rounding is Direction.SR
        self.narrows = self.steps.numbers.width <= 8 and not drawn and not dispatch.is_compiled(self.lane)
        source = source_of(x)
        if kind := _KINDS.get(source.format):
            self.array = np.ascontiguousarray(source.codes).astype(container(source.format), copy=False).view(kind)
        else:
            self.array = decode_array(source.codes, source.format, threads=1)
        self.array = self.array.reshape(source.codes.shape)
        # Integers are read as float64, but blocks of them need no more than float32.
        whole = source.dtype is None and not isinstance(getattr(x, "format", None), Format)
        self.dtype = np.dtype(np.float32) if whole else self.array.dtype
        self.cut = BlockLayout(self.array.shape, axis, self.fmt)
        self.given = _given_scale(tensor_scale, self.fmt)

    def scales(self) -> tuple[Array, np.float32 | None]:
        """Return the codes of the scales, a row a block, and the tensor's scale."""
        amax = self._amax()
        top = float(amax.max(initial=0))
        self.finite = top < np.inf
        tensor = self.given
        if self.fmt.tensor is not None and tensor is None:
            largest = top if self.finite else float(np.max(amax, where=np.isfinite(amax), initial=0))
            tensor = self.steps.tensor_for(largest)
        return self.steps.codes(amax, top, tensor), tensor

    def _amax(self) -> Array:
        """Return the largest magnitude of each block: NaN or ∞ where there is one."""
        word: Any = np.int32 if self.array.dtype == _SINGLES else np.int64
        # As integers, magnitudes have the order of the numbers, and NaNs come last.
        every, bits = _EVERY[word], self.array.view(word)
        rows, size, inner = self.cut.rows, self.cut.size, self.cut.inner
        # Blocks that lie in a row are faster without an axis of one column.
        blocks = bits.reshape((rows, size) if inner == 1 else (rows, size, inner))
        found = np.empty((rows, 1, inner), word)
        into = found.reshape((rows,) if inner == 1 else (rows, inner))
        for some in self.cut.slabs():
            np.maximum.reduce(blocks[some] & every, axis=1, initial=0, out=into[some])
        return found.view(self.array.dtype)

    def round(
        self, scales: Array, tensor: np.float32 | None, into: Array | None, target: Format | None = None
    ) -> Iterator[tuple[slice, Array, Array]]:
        """Give rows, the codes of their elements, or their values in `target`, and s·t; written to `into` if given."""
        cut, numbers = self.cut, self.steps.numbers
        blocks, held = cut.blocks(self.array), container(target or numbers)
        for rows in cut.slabs():
            scaled, by = self._scaled(blocks[rows], scales[rows], tensor)
            word = _WORDS[scaled.dtype]
            work = dispatch.rounder(word, numbers, self.context, self.lane, target)
            made = np.empty(scaled.shape, held) if into is None else into[rows]
            # Draws are numbered through the whole array.
            first = rows.start * cut.size * cut.inner
            work(scaled.reshape(-1).view(container(word)), first, made.reshape(-1).view(held), None)
            yield rows, made, by

    def _scaled(self, x: Array, codes: Array, tensor: np.float32 | None) -> tuple[Array, Array]:
        """Return numbers that round into the elements as x / (s·t) does, and s·t."""
        fmt, steps, numbers = self.fmt, self.steps, self.steps.numbers
        by, drawn = steps.values(codes, _product_kind(fmt, x.dtype), tensor), self.context.rounding is Direction.SR
        if fmt.scales_by_powers:
            scaled: Array = x * steps.inverses(codes, x.dtype)
        elif drawn:
            scaled = divide_to_odd(x, by)
        else:
            scaled = quotient(x, by, steps.digits, numbers)
        if self.context.rounding not in _TO_NEAREST and (fmt.scales_by_powers or not drawn):
            # Underflow may have taken what such directions still see.
            tiny = (np.abs(scaled) < 2.0**-100) & (x != 0)
            scaled[tiny] = np.copysign(scaled.dtype.type(2.0**-100), x[tiny])
        if not self.finite:
            scaled[np.broadcast_to(np.isnan(by), scaled.shape)] = 0
        if scaled.dtype == _DOUBLES and self.narrows:
            scaled = narrow_to_odd(scaled)
        return scaled, by


def _block_format(format: BlockFormat | str, block: int | None) -> BlockFormat:
    fmt = _checked(parse_block_format(format))
    return fmt if block is None else fmt.replace(block=block)


@lru_cache(maxsize=64)
def _checked(fmt: BlockFormat) -> BlockFormat:
    for name, kind in (("scales", fmt.scale), ("elements", fmt.magnitudes)):
        if kind.precision > DIGITS - 2:
            raise UnsupportedError(
                f"{fmt.name} has {name} of {kind.precision} digits; arrays take at most {DIGITS - 2}"
            )
    return fmt


def _scales(fmt: BlockFormat, rule: str | None) -> BlockScales:
    try:
        return scales_for(fmt, rule)
    except TypeError:  # no word at all, such as a list
        return scales_for(fmt, str(rule))


@lru_cache(maxsize=64)
def _element_context(context: Context, fmt: BlockFormat) -> Context:
    return element_context(context, fmt)


def _given_scale(given: object, fmt: BlockFormat) -> np.float32 | None:
    if given is None:
        return None
    if fmt.tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} has no scale for a whole tensor; nvfp4 has one")
    if type(given) is np.float32 and 0 < given < np.inf and fmt.tensor == SINGLE:
        return given
    return np.float32(float(given_tensor_scale(given, fmt.tensor)))


@lru_cache(maxsize=64)
def _from_magnitudes(kind: TwosComplement) -> Array:
    """Return the code of two's complement for every code of sign and magnitude."""
    half = 1 << (kind.width - 1)
    return np.array([kind.code(code >= half, code % half) for code in range(2 * half)], np.uint8)


@in_default_mode
def encode_blocks(x: object, format: BlockFormat | str, axis: int = -1, **options: Unpack[BlockRounding]) -> Blocks:
    """Return the codes of an array in a block format: one for the scale of each block, one for each element.

    Parameters
    ----------
    x
        Array, as in `encode`.
    format
        Block format or its name: `mxfp8_e4m3`, `mxfp4`, `mxint8`, `nvfp4` …
    axis
        Axis along which blocks lie. The size of a block divides its length.
    scale
        Rule for scales (`arith.blocks.ScaleRule`); by default the format's own: floor for MX, nearest for nvfp4.
    rounding, context
        How elements round. They saturate.
    tensor_scale
        Scale of the whole tensor for nvfp4; by default it follows from the largest magnitude.
    block
        Size of a block; by default the format's own.
    lane
        As in `encode`.

    Returns
    -------
    Blocks
        `scales` in the shape of `x` with the axis divided by the size of a block; `codes` in the shape of `x`, one
        code a byte (two's complement for mxint8). A block with a NaN or an infinity has the scale NaN and elements 0.

    Raises
    ------
    UnsupportedError
        For arrays of other things than numbers, and for an axis that does not exist or is not a multiple of the block.
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
    if isinstance(job.fmt.element, TwosComplement):
        elements = _from_magnitudes(job.fmt.element).take(elements)
    return Blocks(codes.reshape(job.cut.scales_shape), elements, tensor)


@in_default_mode
def quantize_blocks(x: object, format: BlockFormat | str, axis: int = -1, **options: Unpack[BlockRounding]) -> Array:
    """Return the numbers of `x` rounded into a block format: element × scale × tensor scale.

    Parameters and errors are those of `encode_blocks`.

    Returns
    -------
    values
        float64 where `x` is, else float32: no narrower float has the range of the scales.

    Notes
    -----
    In MX the values are exact, except that the largest numbers of float32 can round up to 2^128, which is ∞ in float32.
    The product of nvfp4 has up to 30 digits and is rounded once, to nearest, into float32.

    Examples
    --------
    >>> quantize_blocks(np.array([957.0, *[1.1] * 31], np.float32), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.125]
    """
    job = Job(x, format, axis, **options)
    values = np.empty(job.array.shape, job.dtype)
    into, kind, numbers = job.cut.blocks(values), _product_kind(job.fmt, job.dtype), job.steps.numbers
    direct: Format | None = _WORDS[job.dtype]
    if isinstance(job.fmt.element, TwosComplement) or not holds(_WORDS[job.dtype], numbers):
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
    format: BlockFormat | str,
    axis: int = -1,
    *,
    tensor_scale: object = None,
    block: int | None = None,
    dtype: Any = None,
) -> Array:
    """Return the values of encoded blocks, exactly.

    Parameters
    ----------
    blocks
        What `encode_blocks` returned, or a pair of scales and codes.
    format, axis, block
        As in `encode_blocks`.
    tensor_scale
        Scale of the tensor for nvfp4, where `blocks` is a pair.
    dtype
        By default float32 where it has every number of the format, else float64, as for MX and nvfp4. With float32
        values are rounded once, to nearest, and those that are too large become infinite.

    Raises
    ------
    UnsupportedError
        For codes that are too wide, and for shapes that do not belong together.

    Examples
    --------
    >>> decode_blocks((np.array([128]), np.array([126, 48] * 16)), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.0]
    """
    fmt = _block_format(format, block)
    scales, codes = _pair(blocks)
    scales, codes = checked_codes(scales, fmt.scale, "scales"), checked_codes(codes, fmt.element.width)
    if tensor_scale is None and isinstance(blocks, Blocks):
        tensor_scale = blocks.tensor_scale
    tensor = _given_scale(tensor_scale, fmt)
    if fmt.tensor is not None and tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} needs the scale of the tensor, which a pair does not hold")
    cut = BlockLayout(codes.shape, axis, fmt)
    if scales.shape != cut.scales_shape:
        raise UnsupportedError(f"scales has shape {scales.shape}; codes of shape {codes.shape} have {cut.scales_shape}")
    kind = dtype_of(fmt) if dtype is None else np.dtype(dtype)
    if kind not in _WORDS:
        raise UnsupportedError(f"dtype {kind.name} does not hold the range of {fmt.name}; float32 and float64 do")
    values = np.empty(codes.shape, kind)
    into, elements, rowed = cut.blocks(values), cut.blocks(codes), cut.scales(scales)
    within = _product_kind(fmt, kind)
    read, steps = _reader(fmt, within), scales_for(fmt, None)
    with _silent():
        for rows in cut.slabs():
            by = steps.values(rowed[rows], within, tensor)
            np.multiply(read(elements[rows]), by, out=into[rows], dtype=within, casting="same_kind")
    return values


def _pair(blocks: Any) -> tuple[Any, Any]:
    try:
        scales, codes = blocks
    except (TypeError, ValueError):
        raise UnsupportedError("blocks is a pair of scales and codes, as encode_blocks returns it") from None
    return scales, codes


def _silent() -> np.errstate:
    """Return the context in which what overflows, underflows or is a NaN is no cause for a warning."""
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


def _product_kind(fmt: BlockFormat, kind: DType) -> DType:
    """Return the dtype in which elements and scales are multiplied: exactly, or with the last rounding only."""
    return kind if kind == _SINGLES and multiplies_in_single(fmt) else _DOUBLES


@lru_cache(maxsize=64)
def _reader(fmt: BlockFormat, kind: DType, as_magnitudes: bool = False) -> Callable[[Array], Array]:
    """Return what makes numbers of a dtype from the codes of elements, or from those of sign and magnitude."""
    element = fmt.element
    if isinstance(element, Format):
        return partial(decode_array, format=element, dtype=kind, threads=1)
    every = np.array([element.integer(code) for code in range(1 << element.width)], kind)
    every *= kind.type(2.0**element.quantum)
    return _taken(every[_from_magnitudes(element)] if as_magnitudes else every)


def _taken(table: Array) -> Callable[[Array], Array]:
    return lambda places: table.take(places)
