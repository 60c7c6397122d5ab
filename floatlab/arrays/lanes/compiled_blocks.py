"""The compiled lane for blocks, whose elements share a scale: rounds an array of binary32 in one pass.

The pass finds the largest magnitude of each block, encodes the scale, and rounds the elements. The pass supports
floatlab's exact rules, for elements of up to 8 bits that are rounded to nearest or toward zero. The other lanes support
every rule and every element format. The kernel, a C function, is in `_kernels/blocks.h`.
"""

from __future__ import annotations

import struct

import numpy as np

from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.compiled import NOWHERE, packed_reading, packed_stage
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, can_read, can_round, container, rounding_rule_for
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context, Direction
from floatlab.record import Individual

_DIRECTIONS = (Direction.RNE, Direction.RNA, Direction.RTZ)
_CODES = 256
_MOST_SCALE = 32  # bits


class ByField(Individual):
    """A table that gives the code of a block's scale.

    Let c be the binary32 code of the block's largest magnitude. The index for the block is the exponent field of the
    sum `carry` + c. The table is valid only if c is 0 or at least `normal`.
    """

    codes: Array
    carry: int
    normal: int


class BlockParameters(Individual):
    """The parameters of a block format and its scale rule for the kernel.

    Elements are rounded to codes of the format `numbers`. `stored` maps these codes to the stored codes; it is None if
    both are the same. `values` maps these codes to numbers. `divisor` is the largest number of the element format.
    `least` is the code of the smallest scale. `by_field` is given if the scale depends only on the exponent of the
    block's largest magnitude. `by_power` tells whether scales are powers of two. `in_double` tells whether elements and
    scales are multiplied in binary64.
    """

    numbers: Format
    scale: Format
    stored: Array | None
    values: Array
    divisor: float
    least: int
    by_field: ByField | None
    by_power: bool
    in_double: bool


def can_round_blocks(numbers: Format, context: Context, scale: Format) -> bool:
    """Return whether the kernel can round elements to `numbers`, and can encode and decode scales in `scale`.

    >>> from floatlab import parse_format
    >>> e2m1, e4m3 = parse_format("e2m1"), parse_format("e4m3")
    >>> can_round_blocks(e2m1, Context(), e4m3), can_round_blocks(e2m1, Context("RTP"), e4m3)
    (True, False)
    """
    if not compiled.is_built() or numbers.is_table or scale.is_table or numbers.width > 8 or scale.width > _MOST_SCALE:
        return False
    if context.rounding not in _DIRECTIONS or not scale.has_nan:
        return False
    if not (can_round(SINGLE, numbers) and can_read(numbers, SINGLE) and can_round(DOUBLE, scale)):
        return False
    return can_read(scale, DOUBLE) and rounding_rule_for(numbers, context, SINGLE).is_plain


class BlockKernel:
    """Rounds arrays to one block format, by one scale rule and in one context."""

    def __init__(self, of: BlockParameters, context: Context, stored: Context, size: int) -> None:
        """Pack the parameters; `stored` is the context in which scales are rounded, `size` the block size."""
        element, scale = rounding_rule_for(of.numbers, context, SINGLE), rounding_rule_for(of.scale, stored, DOUBLE)
        stages = b"".join(packed_stage("convert", rule, (NOWHERE,), NOWHERE) for rule in (element, scale))
        by_field = of.by_field
        carry, normal = (by_field.carry, by_field.normal) if by_field else (0, 0)
        self._packed = stages + struct.pack(
            "=10q", size, by_field is not None, carry, normal, of.by_power, of.in_double, of.stored is None, of.least,
            of.scale.nan_code, element.largest,
        )  # fmt: skip
        self._divisor, self._size, self._container = of.divisor, size, container(of.scale)
        # Tables: codes of scales by exponent field; values of scales; values of elements; stored codes of elements.
        table = None if by_field is None else by_field.codes
        self.tables = table, packed_reading(of.scale, DOUBLE), of.values, of.stored

    def packed_rule(self, tensor: float) -> bytes:
        """Return a BlockRule of `_kernels/blocks.h`; `tensor` is the scale of the tensor, or 1."""
        return self._packed + struct.pack("=2d", self._divisor * tensor, tensor)

    def __call__(
        self, x: Array, tensor: float, as_codes: bool, as_values: bool
    ) -> tuple[Array, Array | None, Array | None] | None:
        """Return three arrays: the codes of the scales, the codes of the elements, and the values of the elements.

        `as_codes` and `as_values` request the second and the third array; None replaces an array that is not requested.
        `x` is contiguous float32. Return None if the table `by_field` is not valid for some block (see `ByField`).
        """
        scales = np.empty(x.size // self._size, self._container)
        codes = np.empty(x.size, np.uint8) if as_codes else None
        values = np.empty(x.size, np.float32) if as_values else None
        kernels = compiled.extension()
        assert kernels is not None
        if kernels.round_blocks(self.packed_rule(tensor), x, *self.tables, scales, codes, values):
            return scales, codes, values
        return None


def largest_finite(x: Array, size: int) -> float:
    """Return the largest magnitude in those blocks that have no infinity and no NaN, or 0 if there is no such block.

    `x` is contiguous float32; `size` is the number of elements of a block.
    """
    kernels = compiled.extension()
    assert kernels is not None
    return float(np.uint32(kernels.largest_finite(x, size)).view(np.float32))


def scaled_elements(codes: Array, elements: Array, by: Array, in_double: bool) -> Array | None:
    """Return decoded elements times the factors of their blocks, rounded once to float32.

    `elements` (float32) maps each code to its number. `by` (float64) has one factor for each row of codes. Unless
    `in_double` is true, float32 must represent all factors. Return None if the extension was not built.
    """
    kernels = compiled.extension()
    if kernels is None:
        return None
    values = np.empty(codes.shape, np.float32)
    table = np.zeros(_CODES, np.float32)
    table[: len(elements)] = elements
    octets = np.ascontiguousarray(codes, np.uint8)
    kernels.scale_elements(octets, table, np.ascontiguousarray(by, np.float64), values, in_double)
    return values
