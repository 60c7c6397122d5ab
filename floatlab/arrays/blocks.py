"""Block formats on arrays: MX and NVFP4, with the bits of `arith.blocks`.

There every quotient, amax / (largest·t) and x / (s·t), is exact and rounded once; `quotients` says why the float64
between them is no second rounding. A division by a power of two is exact anyway.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from floatlab.arith.blocks import (
    BY_EXPONENT,
    ScaleRule,
    element_context,
    given_tensor_scale,
    parse_rule,
    tensor_scale_for,
)
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.modes import DefaultMode
from floatlab.arrays.quotients import DIGITS, TINY, divide_to_odd, narrow_to_odd, quotient
from floatlab.arrays.reading import WORDS, checked_codes, container
from floatlab.arrays.results import rules_of
from floatlab.arrays.sources import source_of
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats.blocks import BlockFormat, TwosComplement, parse_block_format
from floatlab.formats.format import Format
from floatlab.numbers import Context, Direction
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

SLAB = 1 << 17  # elements that are worked on at a time
_TO_NEAREST = (Direction.RNE, Direction.RNA, Direction.RTZ)  # what is tiny rounds as zero does


class Blocks(Record):
    """Encoded blocks: a code for each scale, one for each element, and nvfp4's scale of the tensor (else None).

    It unpacks as `scales, codes`, whatever the format: the tensor's scale is a number beside the two arrays, which
    half of the formats do not have. `decode_blocks` takes it as it is.
    """

    scales: Array
    codes: Array
    tensor_scale: np.float32 | None = None

    def __iter__(self) -> Iterator[Array]:
        """Give scales and codes."""
        return iter((self.scales, self.codes))

    def __eq__(self, other: object) -> bool:
        """Compare all codes."""
        if not isinstance(other, Blocks):
            return NotImplemented
        same = all(np.array_equal(mine, theirs) for mine, theirs in zip(self, other, strict=True))
        return same and self.tensor_scale == other.tensor_scale

    __hash__ = None  # type: ignore[assignment]  # arrays change


class Cut:
    """An array cut into blocks along an axis: `rows` blocks of `fmt.block` elements, with `inner` columns each."""

    def __init__(self, shape: tuple[int, ...], axis: Any, fmt: BlockFormat) -> None:
        """Check the axis; raises UnsupportedError."""
        if not hasattr(axis, "__index__") or not -len(shape) <= axis.__index__() < len(shape):
            dimensions = "none" if not shape else f"{-len(shape)} to {len(shape) - 1}"
            raise UnsupportedError(f"axis {quoted(str(axis))} is not one of x, whose shape is {shape}: {dimensions}")
        at, size = axis.__index__() % len(shape), fmt.block
        if shape[at] % size:
            raise UnsupportedError(
                f"axis {at} of x has {shape[at]} elements, which blocks of {size} ({fmt.name}) do not divide: "
                f"pad it, or choose another size with block="
            )
        self.shape = shape
        self.scales_shape = (*shape[:at], shape[at] // size, *shape[at + 1 :])
        self.inner = int(np.prod(shape[at + 1 :], dtype=np.int64))
        self.size = size
        self.rows = int(np.prod(self.scales_shape[: at + 1], dtype=np.int64))

    def blocks(self, array: Array) -> Array:
        """Return elements as (rows, elements of a block, columns)."""
        return array.reshape(self.rows, self.size, self.inner)

    def scales(self, array: Array) -> Array:
        """Return one number a block as (rows, 1, columns)."""
        return array.reshape(self.rows, 1, self.inner)

    def slabs(self) -> Iterator[slice]:
        """Give the rows that are worked on together."""
        step = max(SLAB // max(self.size * self.inner, 1), 1)
        for first in range(0, self.rows, step):
            yield slice(first, first + step)


class Job:
    """What a call asks for, checked: format, rule, context, and the array as float32 or float64."""

    def __init__(
        self, x: Any, format: Any, axis: Any, scale: Any, rounding: Any, context: Context | None, tensor_scale: Any,
        block: int | None, lane: str | None,
    ) -> None:  # fmt: skip
        """Read and check everything before anything is computed."""
        self.fmt = _block_format(format, block)
        self.rule = parse_rule(scale, self.fmt)
        self.context = element_context(rules_of(context, rounding))
        self.lane = lane
        source = source_of(x)
        if source.format in WORDS:
            words = np.ascontiguousarray(source.codes).astype(container(source.format), copy=False)
            self.array = words.view(f"f{words.itemsize}")
        else:
            self.array = decode(source.codes, source.format, threads=1)
        self.array = self.array.reshape(source.codes.shape)
        # Integers are read as float64, but blocks of them need no more than float32.
        whole = source.dtype is None and not isinstance(getattr(x, "format", None), Format)
        self.dtype = np.dtype(np.float32) if whole else self.array.dtype
        self.cut = Cut(self.array.shape, axis, self.fmt)
        self.given = _given_scale(tensor_scale, self.fmt)
        self.draws = self.context.rounding is Direction.SR

    def scales(self) -> tuple[Array, np.float32 | None]:
        """Return the codes of the scales, a row a block, and the tensor's scale."""
        tensor = self.given
        if self.fmt.tensor is not None and tensor is None:
            largest = max((self._largest(rows) for rows in self.cut.slabs()), default=0.0)
            tensor = np.float32(float(tensor_scale_for(Fraction(largest), self.fmt)))
        codes = np.empty((self.cut.rows, 1, self.cut.inner), container(self.fmt.scale))
        for rows in self.cut.slabs():
            codes[rows] = _scale_codes(self._amax(rows), self.fmt, self.rule, tensor)
        return codes, tensor

    def _amax(self, rows: slice) -> Array:
        """Return the largest magnitude of some blocks: NaN or ∞ where there is one."""
        word: Any = np.int32 if self.array.dtype == np.float32 else np.int64
        blocks = self.cut.blocks(self.array)[rows].view(word)
        # As integers, magnitudes have the order of the numbers, and NaNs come last.
        found: Array = np.max(blocks & np.iinfo(word).max, axis=1, keepdims=True, initial=0)
        return found.view(self.array.dtype)

    def _largest(self, rows: slice) -> float:
        """Return the largest magnitude of those blocks whose numbers are all finite."""
        amax = self._amax(rows)
        return float(np.max(amax, where=np.isfinite(amax), initial=0))

    def encoded(self, scales: Array, tensor: np.float32 | None) -> Iterator[tuple[slice, Array]]:
        """Give the codes of the elements, some blocks at a time."""
        if not self.draws:
            for rows in self.cut.slabs():
                yield rows, self._codes(self._scaled(rows, scales, tensor))
            return
        # Draws are numbered through the whole array, so its elements are rounded together.
        kind = self.array.dtype if self.fmt.scales_by_powers else np.float64
        whole = np.empty((self.cut.rows, self.cut.size, self.cut.inner), kind)
        for rows in self.cut.slabs():
            whole[rows] = self._scaled(rows, scales, tensor)
        codes = self._codes(whole)
        for rows in self.cut.slabs():
            yield rows, codes[rows]

    def _codes(self, scaled: Array) -> Array:
        """Return the codes of scaled elements."""
        element, numbers = self.fmt.element, self.fmt.magnitudes
        if scaled.dtype == np.float64 and numbers.width <= 8 and not self.draws:
            scaled = narrow_to_odd(scaled)
        codes: Array = encode(scaled, numbers, context=self.context, lane=self.lane, threads=1)
        return _from_magnitudes(element)[codes] if isinstance(element, TwosComplement) else codes

    def _scaled(self, rows: slice, scales: Array, tensor: np.float32 | None) -> Array:
        """Return x / (s·t) for some blocks: numbers that round into the elements as the exact quotients do."""
        x, over = self.cut.blocks(self.array)[rows], decode(scales[rows], self.fmt.scale, dtype=np.float64, threads=1)
        over = over if tensor is None else over * np.float64(tensor)
        scaled = self._quotients(x, over)
        if (lost := np.isnan(over)).any():
            scaled[np.broadcast_to(lost, scaled.shape)] = 0
        return scaled

    def _quotients(self, x: Array, divisor: Array) -> Array:
        fmt = self.fmt
        if fmt.scales_by_powers:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                scaled: Array = x * (1 / divisor).astype(x.dtype)
        elif self.draws:
            return divide_to_odd(x, divisor)
        else:
            tensor = 0 if fmt.tensor is None else fmt.tensor.precision
            scaled = quotient(x, divisor, fmt.scale.precision + tensor, fmt.magnitudes)
        if self.context.rounding not in _TO_NEAREST:
            # Underflow may have taken what such directions still see.
            tiny = (np.abs(scaled) < 2.0**-100) & (x != 0)
            scaled[tiny] = np.copysign(scaled.dtype.type(2.0**-100), x[tiny])
        return scaled


def _scale_codes(amax: Array, fmt: BlockFormat, rule: ScaleRule, tensor: np.float32 | None) -> Array:
    """Return the codes of the scales that a rule gives; NaN's for amax that is not finite."""
    kind, numbers = fmt.scale, fmt.magnitudes
    finite = np.isfinite(amax)
    known = np.where(finite, amax, 0).astype(np.float64)
    if rule in BY_EXPONENT:
        digits, e = np.frexp(known)  # digits from 1/2 up
        e -= 1
        if rule is ScaleRule.CEIL:
            e += digits > 0.5
        elif rule is ScaleRule.EVEN:
            e += digits >= 1 - 2.0 ** -(numbers.precision + 1)
        wanted = np.ldexp(1.0, np.clip(e - numbers.emax, TINY, -TINY))
        direction = Direction.RNE
    else:
        largest = numbers.largest * (1 if tensor is None else Fraction(float(tensor)))
        wanted = quotient(known, np.full(known.shape, float(largest)), largest.numerator.bit_length(), kind)
        direction = Direction.RTP if rule is ScaleRule.UP else Direction.RNE
    codes: Array = encode(wanted, kind, context=Context(direction, overflow="saturate"), threads=1)
    least = kind.smallest_magnitude
    codes = np.where(known == 0, codes.dtype.type(least), np.maximum(codes, codes.dtype.type(least)))
    return np.where(finite, codes, codes.dtype.type(kind.nan_code))


def _block_format(format: Any, block: int | None) -> BlockFormat:
    fmt = parse_block_format(format)
    for name, kind in (("scales", fmt.scale), ("elements", fmt.magnitudes)):
        if kind.precision > DIGITS - 2:
            raise UnsupportedError(
                f"{fmt.name} has {name} of {kind.precision} digits; arrays take at most {DIGITS - 2}"
            )
    return fmt if block is None else fmt.replace(block=block)


def _given_scale(given: Any, fmt: BlockFormat) -> np.float32 | None:
    if given is None:
        return None
    if fmt.tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} has no scale for a whole tensor; nvfp4 has one")
    return np.float32(float(given_tensor_scale(given, fmt.tensor)))


def _from_magnitudes(kind: TwosComplement) -> Array:
    """Return the code of two's complement for every code of sign and magnitude."""
    half = 1 << (kind.width - 1)
    return np.array([kind.code(code >= half, code % half) for code in range(2 * half)], np.uint8)


@DefaultMode()
def encode_blocks(
    x: Any,
    format: BlockFormat | str,
    axis: int = -1,
    *,
    scale: str | None = None,
    rounding: str = "RNE",
    context: Context | None = None,
    tensor_scale: Any = None,
    block: int | None = None,
    lane: str | None = None,
) -> Blocks:
    """Return the codes of an array in a block format: those of the scales, those of the elements.

    `x` is what `encode` takes; blocks lie along `axis`, whose length the block's size (`block` where it is not
    the format's) must divide. `scale` is the rule of `arith.blocks.ScaleRule`, the format's own unless given:
    floor for MX, nearest for nvfp4. Elements round in `rounding`, or by `context`, and saturate. `scales` has x's
    shape with the axis divided by the block's size, `codes` has x's shape, one code a byte (two's complement
    for mxint8). A block with a NaN or an infinity has the scale NaN and zeros for elements. Raises
    UnsupportedError for other arrays, an axis that there is not or that does not divide, FormatError and
    ContextError for names.

    >>> scales, codes = encode_blocks(np.array([957.0, *[1.0] * 31], np.float32), "mxfp8_e4m3")
    >>> scales.tolist(), codes[:2].tolist()
    ([128], [126, 48])
    """
    job = Job(x, format, axis, scale, rounding, context, tensor_scale, block, lane)
    codes, tensor = job.scales()
    elements = np.empty(job.array.shape, container(job.fmt.magnitudes))
    into = job.cut.blocks(elements)
    for rows, made in job.encoded(codes, tensor):
        into[rows] = made
    return Blocks(codes.reshape(job.cut.scales_shape), elements, tensor)


@DefaultMode()
def quantize_blocks(
    x: Any,
    format: BlockFormat | str,
    axis: int = -1,
    *,
    scale: str | None = None,
    rounding: str = "RNE",
    context: Context | None = None,
    tensor_scale: Any = None,
    block: int | None = None,
    lane: str | None = None,
) -> Array:
    """Return the numbers of `x` as a block format has them: element × scale × tensor scale.

    Arguments and errors are `encode_blocks`'s. The result is float64 where x is, else float32: no narrower float
    has the range of the scales. In MX it is exact, but for 2^128 (∞ in float32), which float32's largest number can
    round up to; nvfp4's product of up to 30 digits is rounded once, to nearest, into float32.

    >>> quantize_blocks(np.array([957.0, *[1.1] * 31], np.float32), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.125]
    """
    job = Job(x, format, axis, scale, rounding, context, tensor_scale, block, lane)
    codes, tensor = job.scales()
    values = np.empty(job.array.shape, job.dtype)
    into = job.cut.blocks(values)
    for rows, made in job.encoded(codes, tensor):
        _decoded(made, codes[rows], tensor, job.fmt, into[rows])
    return values


@DefaultMode()
def decode_blocks(
    blocks: Blocks | tuple[Any, Any],
    format: BlockFormat | str,
    axis: int = -1,
    *,
    tensor_scale: Any = None,
    block: int | None = None,
    dtype: Any = None,
) -> Array:
    """Return the values of encoded blocks as float32, or as float64 where `dtype` says so.

    `blocks` is what `encode_blocks` returned, or a pair of scales and codes; for nvfp4 the pair does not hold the
    tensor's scale, and `tensor_scale` gives it. float64 has every value exactly, float32 as `quantize_blocks` says.
    Raises UnsupportedError for codes that are too wide or shapes that do not belong together.

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
    cut = Cut(codes.shape, axis, fmt)
    if scales.shape != cut.scales_shape:
        raise UnsupportedError(f"scales has shape {scales.shape}; codes of shape {codes.shape} have {cut.scales_shape}")
    kind = np.dtype(np.float32 if dtype is None else dtype)
    if kind not in (np.float32, np.float64):
        raise UnsupportedError(f"dtype {kind.name} does not hold the range of {fmt.name}; float32 and float64 do")
    values = np.empty(codes.shape, kind)
    into, elements, rowed = cut.blocks(values), cut.blocks(codes), cut.scales(scales)
    for rows in cut.slabs():
        _decoded(elements[rows], rowed[rows], tensor, fmt, into[rows])
    return values


def _pair(blocks: Any) -> tuple[Any, Any]:
    try:
        scales, codes = blocks
    except (TypeError, ValueError):
        raise UnsupportedError("blocks is a pair of scales and codes, as encode_blocks returns it") from None
    return scales, codes


def _decoded(codes: Array, scales: Array, tensor: np.float32 | None, fmt: BlockFormat, into: Array) -> None:
    """Write element × scale × tensor scale: exactly where the dtype has room, else rounded once to nearest."""
    kind = into.dtype
    digits = fmt.magnitudes.precision + fmt.scale.precision
    exact = np.dtype(np.float32 if kind == np.float32 and digits <= 24 else np.float64)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        values: Any = _elements(codes, fmt).astype(exact, copy=False)
        by: Any = decode(scales, fmt.scale, threads=1).astype(exact, copy=False)
        if tensor is not None:
            values *= by
            by = exact.type(tensor)
        np.multiply(values, by, out=into, casting="same_kind")


def _elements(codes: Array, fmt: BlockFormat) -> Array:
    if isinstance(fmt.element, Format):
        return decode(codes, fmt.element, threads=1)
    table = np.array([fmt.element.integer(code) for code in range(1 << fmt.element.width)], np.float32)
    return table[codes] * np.float32(2.0**fmt.element.quantum)
