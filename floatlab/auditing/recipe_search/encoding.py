"""Quantises a part of a tensor by a candidate recipe; gives the same codes as quantising the whole tensor."""

from __future__ import annotations

from math import prod

import numpy as np

from floatlab.arith.blocks import quantize_blocks
from floatlab.arrays.blocks import encode_blocks
from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.lanes.parameters import SINGLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.arrangements import Arrangement, Shape
from floatlab.formats import parse_format
from floatlab.formats.format import Format
from floatlab.formats.recipes import Recipe
from floatlab.numbers import Datum
from floatlab.record import Individual, Record


class RecipeCandidate(Record):
    """A recipe that may have made the codes, with the arrangement of its blocks.

    The original values are first converted to the format `takes`. `takes` is empty if the values keep their own format.
    `given` is the stored scale of the tensor if the candidate uses it instead of deriving one. `changes` describes how
    the rule differs from the rule of the recipe `base`. `on_cuda` is true if one of these changes is PyTorch's division
    on CUDA.
    """

    base: str
    recipe: Recipe
    arrangement: Arrangement
    takes: str = ""
    given: float | None = None
    changes: tuple[str, ...] = ()
    on_cuda: bool = False

    @property
    def distance(self) -> int:
        """The number of changes to the recipe `base`; a change to PyTorch's division on CUDA does not count."""
        return len(self.changes) - self.on_cuda

    @property
    def name(self) -> str:
        """The name of the recipe `base`, followed by the changes to its rule."""
        return ", ".join((self.base, *self.changes))


class Survey(Individual):
    """Facts about a whole tensor that are needed to quantise its parts.

    `amax` is the code of the largest magnitude, or of a NaN or infinity if the tensor has one. `columns` has the code
    of the largest magnitude in each column, that is along the first axis. `is_finite` says whether `amax` is finite.
    """

    format: Format
    shape: Shape
    amax: int
    columns: Array
    is_finite: bool


class Part(Individual):
    """A part of a tensor: `tensor[start:stop]`, as codes in the format of the tensor.

    `is_whole` says whether the part is the whole tensor.
    """

    start: int
    stop: int
    codes: Array
    is_whole: bool

    @property
    def first(self) -> int:
        """The index of the first element in the flattened tensor."""
        return int(self.start * prod(self.codes.shape[1:]))


class Encoded(Individual):
    """A quantised part of a tensor.

    `codes` are in the order of the tensor. `scales` are numbers in the order of `Arrangement.grid`. `tensor` is the
    scale of the tensor or the scales of its rows. `tensor` is None if the recipe has no such scale.
    """

    codes: Array
    scales: Array
    tensor: Array | None


def taken(codes: Array, own: Format, takes: str) -> Source:
    """Return what a candidate quantises: the values of `codes`, rounded to the format `takes` unless `takes` is ""."""
    if not takes or takes == own.name:
        return Source(codes, own)
    format = parse_format(takes)
    values = decode_array(codes, own, threads=1)
    return Source(round_array(values, format, threads=1, as_codes=True), format)


def encode_part(candidate: RecipeCandidate, survey: Survey, part: Part, tensor: float | None = None) -> Encoded:
    """Quantise a part of a tensor.

    `tensor` is the scale of the whole tensor. This argument is needed if the recipe derives such a scale and the part
    is not the whole tensor. A block that extends beyond the part gets the largest magnitude of the whole block as an
    additional element.
    """
    arrangement, recipe = candidate.arrangement, candidate.recipe
    x, shape = part.codes, part.codes.shape
    given = candidate.given if tensor is None else tensor
    rows, columns = arrangement.size
    if rows is None and recipe.rule.name != "none":
        line = x.reshape(-1) if part.is_whole else np.append(x.reshape(-1), x.dtype.type(survey.amax))
        found = _encoded(line[None, :], candidate, survey.format, given)
        return _in_order(found.codes[0, : x.size].reshape(shape), found, recipe)
    turned = np.moveaxis(x, arrangement.axis, -1)
    if columns is None and arrangement.axis == 0 and not part.is_whole and rows is not None:
        extra = survey.columns if x.ndim > 1 else np.asarray([survey.amax], x.dtype)
        turned = np.concatenate([turned, extra.reshape(*turned.shape[:-1], 1)], axis=-1)
    found = _encoded(np.ascontiguousarray(turned), candidate, survey.format, given)
    codes = np.moveaxis(found.codes[..., : shape[arrangement.axis]], -1, arrangement.axis)
    return _in_order(codes, found, recipe)


def _in_order(codes: Array, found: Encoded, recipe: Recipe) -> Encoded:
    """Return a copy of `found` with decoded scales and with the given codes, which are in the order of the tensor."""
    fmt = recipe.format
    scales = decode_array(found.scales.reshape(-1), fmt.scale, np.float64, threads=1)
    return Encoded(np.ascontiguousarray(codes), scales, found.tensor)


def encode_minima(candidate: RecipeCandidate, survey: Survey, part: Part) -> Encoded:
    """Quantise a part by a recipe with minima; the scales and minima are ordered as ggml stores them in a block."""
    source = taken(part.codes, survey.format, candidate.takes)
    recipe = candidate.recipe
    blocks = quantize_blocks([Datum(source.format, code) for code in source.codes.reshape(-1).tolist()], recipe)
    codes = np.array([element.code for block in blocks for element in block.elements], np.uint8)
    codes = codes.reshape(part.codes.shape)
    pairs = [(float(block.scale), float(block.minimum)) for block in blocks if block.minimum is not None]
    if recipe.format.superblock is None:
        return Encoded(codes, np.array(pairs).reshape(-1), None)
    size = recipe.format.superblock // (recipe.format.block or 1)
    scales = []
    for start in range(0, len(blocks), size):
        tensor = blocks[start].tensor
        assert tensor is not None
        assert tensor.minimum is not None
        both = np.array(pairs[start : start + size])
        scales.append([float(tensor.datum), float(tensor.minimum), *both[:, 0], *both[:, 1]])
    return Encoded(codes, np.array(scales).reshape(-1), None)


def _encoded(x: Array, candidate: RecipeCandidate, own: Format, given: float | None) -> Encoded:
    source = taken(x, own, candidate.takes)
    found = encode_blocks(source, candidate.recipe, -1, tensor_scale=given)
    tensor = None if found.tensor_scale is None else np.asarray(found.tensor_scale, np.float32)
    return Encoded(found.codes, found.scales, tensor)


def magnitudes(codes: Array, format: Format) -> Array:
    """Return codes without their signs. A larger result means a larger magnitude; NaNs give the largest results.

    The NaN in place of −0 keeps its sign, because its other bits are those of zero.
    """
    found: Array = codes & codes.dtype.type((1 << format.width - format.signed) - 1)
    return np.where(codes == format.nan_code, codes, found) if format.nan_in_place_of_negative_zero else found


def is_finite(code: int, format: Format) -> bool:
    """Return whether a code without its sign stands for a finite number."""
    return bool(code <= format.largest_magnitude)


def single(x: float) -> float:
    """Return a number rounded to binary32."""
    return float(round_array(np.array([x]), SINGLE)[0])
