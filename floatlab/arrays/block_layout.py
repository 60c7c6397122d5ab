"""Encoded blocks, and how an array is cut into blocks along an axis."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats.blocks import BlockFormat
from floatlab.record import Record

SLAB = 1 << 17  # elements that are computed at a time


class Blocks(Record):
    """Encoded blocks: a code for each scale, one for each element, and nvfp4's scale of the tensor (else None).

    It unpacks as `scales, codes`, whatever the format: the tensor's scale is a number beside the two arrays, which
    half of the formats do not have. `decode_blocks` takes it as it is.
    """

    scales: Array
    codes: Array
    tensor_scale: np.float32 | None = None

    def __iter__(self) -> Iterator[Array]:
        """Yield scales and codes."""
        return iter((self.scales, self.codes))

    def __eq__(self, other: object) -> bool:
        """Compare all codes."""
        if not isinstance(other, Blocks):
            return NotImplemented
        same = all(np.array_equal(mine, theirs) for mine, theirs in zip(self, other, strict=True))
        return same and self.tensor_scale == other.tensor_scale

    __hash__ = None  # type: ignore[assignment]  # arrays change


class BlockLayout:
    """How an array is cut into blocks along an axis: `rows` blocks of `size` elements, with `inner` columns each."""

    def __init__(self, shape: tuple[int, ...], axis: object, fmt: BlockFormat) -> None:
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
        self.inner = math.prod(shape[at + 1 :])
        self.size = size
        self.rows = math.prod(self.scales_shape[: at + 1])

    def blocks(self, array: Array) -> Array:
        """Return elements as (rows, elements of a block, columns)."""
        return array.reshape(self.rows, self.size, self.inner)

    def scales(self, array: Array) -> Array:
        """Return one number a block as (rows, 1, columns)."""
        return array.reshape(self.rows, 1, self.inner)

    def slabs(self) -> Iterator[slice]:
        """Yield the rows of blocks that are computed together."""
        step = max(SLAB // max(self.size * self.inner, 1), 1)
        for first in range(0, self.rows, step):
            yield slice(first, first + step)
