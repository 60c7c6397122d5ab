"""The parts of quantised weights: finds stored tensors by name, and checks their types and shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
from math import prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import ArraySource
from floatlab.auditing.settings import QuantizationSettings, read_settings
from floatlab.auditing.weight_streams import Dequantized, Reader, numbers, one_number, spread
from floatlab.errors import FileFormatError, UnsupportedError, quoted
from floatlab.files.checkpoints import Checkpoint, StoredTensor
from floatlab.files.gguf import block_of
from floatlab.record import Individual

FLOATS = ("float32", "bfloat16", "float16", "float64")
FP8 = ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")
_SQUARES, _GROUPS = (16, 32, 64, 256), (16, 32, 64, 128, 256)
_LONG = 90
_SCALES = ("scale", "scale_inv", "scales", "scales_inv", "scale_weight", "scaling_factor", ".absmax", ".SCB")
_SCALE_WORDS = ("scale", "absmax", "scaling_factor")
_OF_ACTIVATIONS = ("input", "output", "activation")
_INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32")

Shape = tuple[int, ...]


class Weight(Individual):
    """A quantised weight: its name, the shape of its numbers, its convention, and its stored tensors.

    `formula` says how a code becomes a number. `evidence` says how the convention was recognised. `codes` is the name
    of the stored tensor that has the codes. `parts` has the names of all stored tensors that the weight consists of,
    including `codes`.
    """

    name: str
    shape: Shape
    convention: str
    formula: str
    evidence: str
    codes: str
    parts: tuple[str, ...]
    open: Callable[[], ArraySource]


def is_scale(name: str) -> bool:
    """Return whether a part of a weight holds scales of its elements; scales of activations do not count."""
    last = name.rpartition(".")[2]
    return any(word in last for word in _SCALE_WORDS) and not any(word in last for word in _OF_ACTIVATIONS)


def stored_bits(weight: Weight, codes: StoredTensor) -> float:
    """Return the bits per number in the tensor of the codes; in GGUF, this tensor includes the scales."""
    block = block_of(codes.dtype)
    if block is not None and not codes.kind:
        return 8 * block[1] / block[0]
    width = np.dtype(codes.kind).itemsize * 8 if codes.kind in _INTEGERS else 8
    return width * prod(codes.shape) / max(prod(weight.shape), 1)


def bits_used(weight: Weight, codes: StoredTensor) -> float:
    """Return 4 if the codes are stored as int8 but no magnitude is above 8. Otherwise, return `stored_bits`."""
    if codes.kind == "int8":
        with codes.open() as source:
            if all(np.abs(native(piece).astype(np.int16)).max(initial=0) <= 8 for piece in source.blocks()):
                return 4.0
    return stored_bits(weight, codes)


def group_of(weight: Weight, tensors: Mapping[str, StoredTensor]) -> int:
    """Return the largest number of neighbouring elements that may share a scale, or 0 if this number is not known.

    In GGUF, this is the number of elements in a block, even if the block has several scales.
    """
    codes, rows = tensors[weight.codes], weight.shape[:-1]
    if not codes.kind and (block := block_of(codes.dtype)) is not None:
        return block[0]
    if any(name.endswith("g_idx") for name in weight.parts):
        return weight.shape[-1]  # g_idx assigns columns to groups in any order
    scales = [tensors[name] for name in weight.parts if name.endswith(_SCALES)]
    if not scales or not weight.shape:
        return 0
    scale = max(scales, key=lambda each: prod(each.shape))
    by_rows = rows in (scale.shape, scale.shape[:-1]) or (len(rows) == 1 and scale.shape[1:] == rows)
    if len(rows) > 1 and tuple(n for n in scale.shape if n != 1) == rows[:1]:
        by_rows = True  # a convolution with one scale for each output channel
    # Blocks of bitsandbytes (absmax) divide the whole tensor, without regard to rows.
    count = prod(scale.shape) if by_rows or scale.name.endswith(".absmax") else 0
    total = prod(weight.shape)
    return total // count if count and total % count == 0 else 0


class StoredParts:
    """The stored tensors of a checkpoint, for the functions that recognise conventions."""

    def __init__(self, checkpoint: Checkpoint, takes_unscaled: bool = False) -> None:
        """Take an open checkpoint, and read the configuration files beside it.

        `takes_unscaled` tells whether matrices in fp8 are quantised weights although they have no scales.
        """
        self.checkpoint, self.tensors, self.takes_unscaled = checkpoint, checkpoint.tensors, takes_unscaled
        self.settings: QuantizationSettings = read_settings(checkpoint)

    def having(self, stored: StoredTensor) -> StoredParts:
        """Return the same tensors, except that `stored` replaces the tensor of the same name."""
        found = copy(self)
        found.tensors = self.tensors | {stored.name: stored}
        return found

    def get(self, name: str) -> StoredTensor | None:
        """Return the stored tensor with this name, or None if there is none."""
        return self.tensors.get(name)

    def need(self, name: str, owner: str, *kinds: str) -> StoredTensor:
        """Return a stored tensor. Raises FileFormatError if the tensor is missing, or if its type is not in `kinds`."""
        found = self.tensors.get(name)
        if found is None:
            raise FileFormatError(f"{quoted(owner, _LONG)} needs the tensor {quoted(name, _LONG)}, which is missing")
        if kinds and found.kind not in kinds:
            raise FileFormatError(f"{quoted(name, _LONG)} is {found.dtype}, but {' or '.join(kinds)} is expected")
        return found

    @cached_property
    def last_words(self) -> Counter[str]:
        """The last words of the tensors' names, such as `weight_scale`, each with the number of names that have it."""
        return Counter(name.rpartition(".")[2] for name in self.tensors)

    def present(self, *names: str) -> tuple[str, ...]:
        """Return those of `names` that the checkpoint has."""
        return tuple(name for name in names if name in self.tensors)


def shape_error(tensor: StoredTensor, expected: str, owner: str) -> FileFormatError:
    """Return the error for a part, such as the scales, whose shape does not fit the weight `owner`."""
    shape = "×".join(map(str, tensor.shape)) or "one number"
    return FileFormatError(
        f"{quoted(tensor.name, _LONG)} has the shape {shape}, but {quoted(owner, _LONG)} needs {expected}"
    )


def check_shape(tensor: StoredTensor, shape: Shape, owner: str) -> None:
    """Raise FileFormatError if a part of the weight `owner`, such as its scales, does not have this shape."""
    if tensor.shape != shape:
        raise shape_error(tensor, "×".join(map(str, shape)), owner)


def zero_points(parts: StoredParts, stem: str, owner: str, sizes: tuple[int, int, int]) -> StoredTensor | None:
    """Return the tensor of the zero points of a weight, or None if there is none.

    `sizes` has three numbers: the bits of a code, the elements of a group, and the elements of a row. Raises
    FileFormatError if the zero points are missing although the configuration says that the codes are not
    symmetric.
    """
    name = f"{stem}.weight_zero_point"
    found = parts.get(name)
    if found is None and parts.settings.needs_zero_points(*sizes):
        said = f"({parts.settings.source} has symmetric = false)"
        raise FileFormatError(f"{quoted(owner, _LONG)} needs the tensor {quoted(name, _LONG)}, which is missing {said}")
    return found


def grouped_shape(shape: Shape, size: int) -> Shape:
    """Return the shape of the scales for groups of `size` elements along the last axis."""
    return (*shape[:-1], -(-shape[-1] // size))


def groups_of(parts: StoredParts, scale: StoredTensor, shape: Shape, owner: str) -> int:
    """Return how many neighbouring elements along the last axis of a weight of this shape share a scale.

    Raises FileFormatError if the configuration names only other group sizes, or if the shapes do not fit.
    """
    length = shape[-1]
    count = scale.shape[-1] if len(scale.shape) == len(shape) else 0
    if not count or scale.shape[:-1] != shape[:-1] or length % count:
        raise shape_error(scale, f"{'×'.join(map(str, shape[:-1]))} rows of scales, of groups of equal size", owner)
    size = length // count
    if count > 1 and parts.settings.groups and size not in parts.settings.groups:
        said = " or ".join(map(str, sorted(parts.settings.groups)))
        raise shape_error(scale, f"groups of {said} elements ({parts.settings.source}), not {size}", owner)
    return size


def block_of_scales(parts: StoredParts, scale: StoredTensor, shape: Shape, owner: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of a block with one scale. Raises FileFormatError if no shape fits."""
    rows, columns = shape[-2] if len(shape) > 1 else 1, shape[-1] if shape else 1
    if prod(scale.shape) == 1 and (len(scale.shape) < 2 or not parts.settings.blocks):
        return max(rows, 1), max(columns, 1)
    if len(shape) == 1 and scale.shape == shape:
        return 1, 1
    squeezed = tuple(n for n in scale.shape if n != 1)
    if len(shape) > 1 and scale.shape in (shape[:-1], (*shape[:-1], 1)):
        return 1, columns
    if len(shape) > 2 and squeezed == shape[:-2]:
        return rows, columns
    if len(shape) > 2 and scale.shape == (*shape[:-2], 2) and rows % 2 == 0:
        return rows // 2, columns  # one scale for each half: an expert's gate and up projections in one matrix
    if len(shape) > 2 and squeezed == shape[:1]:
        return prod(shape[1:-1]), columns  # a convolution with one scale for each output channel
    blocks = parts.settings.blocks or {(128, 128)}
    fitting = [
        each for each in sorted(blocks) if (*shape[:-2], -(-rows // each[0]), -(-columns // each[1])) == scale.shape
    ]
    if not fitting and not parts.settings.blocks:
        fitting = _possible_blocks(scale.shape, shape)
    if len(fitting) == 1:
        return fitting[0]
    said = " or ".join(f"{down}×{across}" for down, across in sorted(blocks))
    raise shape_error(scale, f"a scale for each row, or for each block of {said}", owner)


def _possible_blocks(scales: Shape, shape: Shape) -> list[tuple[int, int]]:
    """Return the usual block shapes that fit scales of this shape, for weights whose configuration names none."""
    if len(shape) < 2 or len(scales) != len(shape) or scales[:-2] != shape[:-2] or 0 in scales:
        return []
    squares = [(size, size) for size in _SQUARES if tuple(-(-n // size) for n in shape[-2:]) == scales[-2:]]
    is_grouped = scales[-2] == shape[-2] and shape[-1] % scales[-1] == 0 and shape[-1] // scales[-1] in _GROUPS
    return squares + [(1, shape[-1] // scales[-1])] * is_grouped


def scale_reader(source: ArraySource, shape: Shape, block: tuple[int, int]) -> Reader:
    """Return a function (first, count) that reads the scales of elements. A single scale is read only once."""
    if source.size == 1:
        value = one_number(source)
        return lambda first, count: value  # type: ignore[return-value]  # broadcasts
    if source.size * prod(block) == prod(shape):  # no partial blocks: stack all matrices, so that a block can span them
        shape = prod(shape[:-1]), shape[-1]
    return spread(numbers(source), shape, block)


def opened(name: str, shape: Shape, stored: tuple[StoredTensor, ...], make: Callable[..., Reader]) -> ArraySource:
    """Open stored tensors and return the weight as numbers; `make` takes the opened arrays and returns the reader."""
    sources: list[ArraySource] = []
    try:
        for each in stored:
            sources.append(each.open())
            if sources[-1].by_columns:
                raise UnsupportedError(f"{quoted(each.name, _LONG)} is stored in column-major order, which is not read")
        return Dequantized(name, shape, make(*sources), tuple(sources))
    except BaseException:
        for source in sources:
            source.close()
        raise
