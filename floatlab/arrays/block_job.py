"""Quantizes arrays in blocks along one axis, by floatlab's exact rules: computes codes of scales and of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from floatlab.arith.blocks import element_context, read_tensor_scale
from floatlab.arrays.codec import BlockRounding, decode_array, float_for, rules_of
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.compiled import packed_reading
from floatlab.arrays.lanes.compiled_blocks import BlockKernel, can_round_blocks, largest_finite
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container
from floatlab.arrays.scales import WORDS, BlockLayout, Blocks, recipe_of, scales_for
from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError
from floatlab.formats.blocks import BlockFormat, Integers
from floatlab.formats.format import Format
from floatlab.formats.recipes import Recipe
from floatlab.formats.scaling import ScaleRule
from floatlab.numbers.rounding import AnyContext, Context

_SINGLES, _DOUBLES = WORDS
_KINDS: dict[Format, DType] = {SINGLE: _SINGLES, DOUBLE: _DOUBLES}
_EVERY: dict[DType, Array] = {  # masks of all bits except the sign
    _SINGLES: np.array((1 << 31) - 1, np.int32),
    _DOUBLES: np.array((1 << 63) - 1, np.int64),
}
_CODES = 256
saturating_context = lru_cache(maxsize=64)(element_context)


class RoundedBlocks(NamedTuple):
    """The codes of the scales; also the codes and the values of the elements, each None if not requested.

    `tensor` is the scale of the whole tensor, or None if the format has none.
    """

    scales: Array
    codes: Array | None
    values: Array | None
    tensor: np.float32 | None


def dtype_of_results(x: object, source: Source) -> DType:
    """Return the dtype in which an array's numbers are returned after rounding; `source` is the array's `Source`.

    Integers are read as float64, but their results are float32.
    """
    whole = source.dtype is None and not isinstance(getattr(x, "format", None), Format)
    return _SINGLES if whole else float_for(source.format)


class Job:
    """The checked arguments of a call: the format, the scale rule, the context, and the array as float32 or float64.

    `steps` is a `BlockScales` (of `arrays.scales`), which computes the scales.
    """

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
        """Read and check all arguments before anything is computed."""
        self.recipe = recipe_of(format, block, scale)
        self.fmt = self.recipe.format
        self.context = saturating_context(rules_of(context, rounding), self.fmt)
        self.lane = dispatch.parse_lane(lane)
        self.steps = scales_for(self.fmt, self.recipe.rule)
        # NumPy is faster on float32, but stochastic rounding needs bits that float32 does not have.
        drawn = self.context.rounding.is_stochastic
        self.narrows = self.steps.numbers.width <= 8 and not drawn and not dispatch.is_compiled(self.lane)
        source = source_of(x)
        if kind := _KINDS.get(source.format):
            self.array = np.ascontiguousarray(source.codes).astype(container(source.format), copy=False).view(kind)
        else:
            self.array = decode_array(source.codes, source.format, threads=1)
        self.array = self.array.reshape(source.codes.shape)
        self.dtype = dtype_of_results(x, source)
        self.cut = BlockLayout(self.array.shape, axis, self.fmt)
        self.given = given_scale(tensor_scale, self.fmt)

    def at_once(self, as_codes: bool, as_values: bool) -> RoundedBlocks | None:
        """Return the requested results, computed by the compiled lane, or None if this lane cannot compute them."""
        if self.cut.inner != 1 or self.array.dtype != _SINGLES or not dispatch.is_compiled(self.lane):
            return None
        kernel, tensor = kernel_for(self.fmt, self.recipe.rule, self.context, self.cut.size), self.given
        if kernel is None:
            return None
        if self.fmt.tensor is not None and tensor is None:
            tensor = self.steps.tensor_scale(largest_finite(self.array, self.cut.size))
        found = kernel(self.array, 1.0 if tensor is None else float(tensor), as_codes, as_values)
        if found is None:
            return None
        scales, codes, values = found
        shape = self.array.shape
        return RoundedBlocks(
            scales.reshape(self.cut.scales_shape),
            None if codes is None else codes.reshape(shape),
            None if values is None else values.reshape(shape),
            tensor,
        )

    def scales(self) -> tuple[Array, np.float32 | None]:
        """Return the codes of the scales, in the shape (rows, 1, inner) of `BlockLayout`, and the tensor scale."""
        amax = self.largest()
        top = float(amax.max(initial=0))
        self.finite = top < np.inf
        tensor = self.given
        if self.fmt.tensor is not None and tensor is None:
            largest = top if self.finite else float(np.max(amax, where=np.isfinite(amax), initial=0))
            tensor = self.steps.tensor_scale(largest)
        return self.steps.codes(amax, top, tensor), tensor

    def largest(self) -> Array:
        """Return the largest magnitude of each block: NaN if the block has a NaN, else ∞ if it has an infinity."""
        # As integers, codes without their signs have the order of the magnitudes, with NaNs last.
        every = _EVERY[self.array.dtype]
        bits = self.array.view(every.dtype)
        rows, size, inner = self.cut.rows, self.cut.size, self.cut.inner
        # Contiguous blocks are processed faster without the axis of length 1.
        blocks = bits.reshape((rows, size) if inner == 1 else (rows, size, inner))
        found = np.empty((rows, 1, inner), every.dtype)
        into = found.reshape((rows,) if inner == 1 else (rows, inner))
        for some in self.cut.slabs():
            np.maximum.reduce(blocks[some] & every, axis=1, initial=0, out=into[some])
        return found.view(self.array.dtype)

    def round(
        self, scales: Array, tensor: np.float32 | None, into: Array | None, target: Format | None = None
    ) -> Iterator[tuple[slice, Array, Array]]:
        """Round the elements, a few rows of blocks at a time.

        For each group of rows, yield the slice of the rows, the codes of the elements, and the products of scale and
        tensor scale. If `target` is given, yield values in this format instead of codes. If `into` is given, the codes
        or values are written to it.
        """
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


@lru_cache(maxsize=64)
def kernel_for(fmt: BlockFormat, rule: ScaleRule, context: Context, size: int) -> BlockKernel | None:
    """Return the compiled kernel for blocks of `size` elements, or None if the kernel does not support them."""
    steps, element = scales_for(fmt, rule), fmt.element
    if not can_round_blocks(steps.numbers, context, fmt.scale):
        return None
    if isinstance(element, Format):
        parameters = steps.parameters(None, packed_reading(element, SINGLE))
    else:
        count = 1 << element.width
        stored, values = np.zeros(_CODES, np.uint8), np.zeros(_CODES, np.float32)
        stored[:count] = from_magnitudes(element)
        values[:count] = reader(fmt, _SINGLES, True)(np.arange(count))
        parameters = steps.parameters(stored, values)
    return None if parameters is None else BlockKernel(parameters, context, steps.stored, size)


def given_scale(given: object, fmt: BlockFormat) -> np.float32 | None:
    """Return the tensor scale `given` as float32, or None if `given` is None.

    Raises UnsupportedError if the format has no tensor scale, or if `given` is not a positive finite number.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> given_scale("0.5", parse_block_format("nvfp4"))
    np.float32(0.5)
    """
    if given is None:
        return None
    if fmt.tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} has no scale for a whole tensor; nvfp4 has one")
    if type(given) is np.float32 and 0 < given < np.inf and fmt.tensor == SINGLE:
        return given
    return np.float32(float(read_tensor_scale(given, fmt.tensor)))


def silent() -> np.errstate:
    """Return an `errstate` that ignores all floating-point errors."""
    return np.errstate(all="ignore")


@lru_cache(maxsize=64)
def from_magnitudes(kind: Integers) -> Array:
    """Return an array that maps each sign-magnitude code to the code that is stored, usually in two's complement."""
    half = 1 << (kind.width - 1)
    return np.array([kind.code(code >= half, code % half) for code in range(2 * half)], np.uint8)


def encode_plain(x: object, recipe: Recipe, axis: int, options: BlockRounding) -> Blocks:
    """Encode an array by a plain recipe (`scales.is_plain`): in blocks along one axis, by an exact rule.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> encode_plain(np.full(32, 6.0), parse_recipe("mxfp4"), -1, {}).scales.tolist()
    [127]
    """
    kept: BlockRounding = {**options, "block": None, "scale": None}
    job = Job(x, recipe, axis, **kept)
    with silent():
        if found := job.at_once(True, False):
            assert found.codes is not None
            return Blocks(found.scales, found.codes, found.tensor)
        elements = np.empty(job.array.shape, container(job.steps.numbers))
        codes, tensor = job.scales()
        for _ in job.round(codes, tensor, job.cut.blocks(elements)):
            pass
    if isinstance(job.fmt.element, Integers):
        elements = from_magnitudes(job.fmt.element).take(elements)
    return Blocks(codes.reshape(job.cut.scales_shape), elements, tensor)


@lru_cache(maxsize=64)
def reader(fmt: BlockFormat, kind: DType, as_magnitudes: bool = False) -> Callable[[Array], Array]:
    """Return a function that decodes elements to a dtype.

    With `as_magnitudes`, the codes of integers are in sign-magnitude form instead of the form that is stored.
    """
    element = fmt.element
    if isinstance(element, Format):
        return partial(decode_array, format=element, dtype=kind, threads=1)
    every = np.array([element.integer(code) for code in range(1 << element.width)], kind)
    every *= kind.type(2.0**element.quantum)
    return every[from_magnitudes(element)].take if as_magnitudes else every.take
