"""Splits arrays into blocks, computes the codes of their scales, and decodes these codes.

A `BlockScales` is made once for a block format and a scale rule, and holds what depends only on these, such as tables
that decode scales. For the rules in `BY_EXPONENT` (floor, even and ceil), it also holds a table of scales, indexed by
the exponent field of amax (the largest magnitude of a block).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from floatlab.arith.blocks import BY_EXPONENT, full_range_tensor_scale
from floatlab.arith.operands import holds
from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.compiled_blocks import BlockParameters, ByField
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container
from floatlab.arrays.quotients import DIGITS, TINY, divide_to_odd, is_quotient, narrow_to_odd, quotient
from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.format import Format
from floatlab.formats.recipes import Recipe, parse_recipe, parse_rule
from floatlab.formats.scaling import ScaleRule
from floatlab.numbers import Context, Direction
from floatlab.record import Record

SLAB = 1 << 17  # the number of elements that are computed at a time
_LIFTED = -100  # in directions that do not round tiny numbers to zero, 2^_LIFTED replaces smaller magnitudes
_TABLED = 8  # scales of up to this many bits are decoded by a table
SINGLES, DOUBLES = np.dtype(np.float32), np.dtype(np.float64)
WORDS: dict[DType, Format] = {SINGLES: SINGLE, DOUBLES: DOUBLE}
_TO_NEAREST = (Direction.RNE, Direction.RNA, Direction.RTZ)  # directions in which tiny numbers round to zero


class Blocks(Record):
    """Encoded blocks: a code for each scale, a code for each element, and the tensor's scale.

    `tensor_scale` is None if the format has no tensor scale. `tensor_scale` is an array if the format has one tensor
    scale for each row. In HiF4, a block is divided into groups of two sizes, and each group has an exponent, 0 or 1.
    `groups` has an array of exponents for each size, with one row per block. A Blocks unpacks as `scales, codes`,
    without the tensor's scale and the groups. `decode_blocks` accepts a Blocks.
    """

    scales: Array
    codes: Array
    tensor_scale: np.float32 | Array | None = None
    groups: tuple[Array, ...] = ()

    def __iter__(self) -> Iterator[Array]:
        """Yield scales and codes."""
        return iter((self.scales, self.codes))

    def __eq__(self, other: object) -> bool:
        """Compare all codes, the exponents of groups, and the tensor's scale."""
        if not isinstance(other, Blocks):
            return NotImplemented
        mine, theirs = (*self, *self.groups), (*other, *other.groups)
        same = len(mine) == len(theirs) and all(map(np.array_equal, mine, theirs))
        return same and bool(np.array_equal(self.tensor_scale, other.tensor_scale))  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]  # arrays are mutable


class BlockLayout:
    """The split of an array into blocks of `size` elements along an axis.

    The array is viewed with the shape (`rows`, `size`, `inner`). `rows` is the number of blocks along the axis, times
    the lengths of all axes before it. `inner` is the product of the lengths of all axes after it. The elements of a
    block lie along the middle axis, so there are `rows`·`inner` blocks.
    """

    def __init__(self, shape: tuple[int, ...], axis: object, fmt: BlockFormat) -> None:
        """Compute the layout.

        Raises UnsupportedError for an invalid axis, and for an axis whose length is not a multiple of the block size.
        """
        if not hasattr(axis, "__index__") or not -len(shape) <= axis.__index__() < len(shape):
            dimensions = "none" if not shape else f"{-len(shape)} to {len(shape) - 1}"
            raise UnsupportedError(
                f"axis {quoted(str(axis))} is not an axis of x, whose shape is {shape}: {dimensions}"
            )
        at = axis.__index__() % len(shape)
        size = shape[at] if fmt.block is None else fmt.block
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
        """Return an array of elements, reshaped to (rows, size, inner)."""
        return array.reshape(self.rows, self.size, self.inner)

    def scales(self, array: Array) -> Array:
        """Return an array with one number per block, reshaped to (rows, 1, inner)."""
        return array.reshape(self.rows, 1, self.inner)

    def slabs(self) -> Iterator[slice]:
        """Split the rows into slices, and yield the slices; the rows of one slice are computed together."""
        step = max(SLAB // max(self.size * self.inner, 1), 1)
        for first in range(0, self.rows, step):
            yield slice(first, first + step)


class BlockScales:
    """Computes the scales of a block format by a rule, for any number of blocks."""

    def __init__(self, fmt: BlockFormat, rule: ScaleRule) -> None:
        """Compute everything that is the same for all blocks."""
        self.fmt, self.rule, self.kind, self.numbers = fmt, rule, container(fmt.scale), fmt.magnitudes
        self._least = self.kind.type(fmt.scale.compose(False, fmt.scale.smallest_magnitude))
        self._largest = self.numbers.largest
        # amax is divided by the product of the largest element and the tensor scale. This product has at most as many
        # bits as its two factors together.
        of_tensor = 0 if fmt.tensor is None else fmt.tensor.precision
        self._is_quotient = is_quotient(self._largest.numerator.bit_length() + of_tensor, fmt.scale)
        self.digits = fmt.scale.precision + of_tensor  # number of bits of the divisors of elements
        # Where only the sign of a tiny quotient matters, 2^_lifted replaces smaller magnitudes.
        self._lifted = min(_LIFTED, self.numbers.qmin - 64)
        most = Fraction(0) if fmt.tensor is None else self._largest * fmt.scale.largest
        # Whether a binary64 quotient by `most` rounds into the tensor's scale like the exact one (see `quotients`).
        self._is_short = is_quotient(most.numerator.bit_length(), SINGLE) and most <= DOUBLE.largest
        self._most = float(most) if self._is_short else 0.0
        self.stored = Context(rule.stored, overflow="saturate")
        self._round = dispatch.rounder(DOUBLE, fmt.scale, self.stored, None)
        self._values: dict[DType, Array] = {}
        self._inverses: dict[DType, Array] = {}
        if fmt.scale.width <= _TABLED:
            values = decode_array(np.arange(1 << fmt.scale.width), fmt.scale, np.float64)
            with np.errstate(all="ignore"):
                for kind in WORDS:
                    self._values[kind] = values.astype(kind)
                    self._inverses[kind] = (1 / values).astype(kind)
        self._fields = {kind: self._by_field(word) for kind, word in WORDS.items()} if rule.name in BY_EXPONENT else {}

    def _by_field(self, word: Format) -> tuple[Array, int, int, float, float]:
        """Return a table of scale codes, the position of the exponent field in amax, an addend, and two limits.

        The index into the table is the exponent field of the sum of the addend and the bits of amax. The table is valid
        from the first limit up to, but not including, the second.
        """
        fields = np.maximum(np.arange((1 << word.exponent_bits) - 1), 1)
        table = self._slowly(np.ldexp(1.0, fields - word.bias), None)
        t, digits = word.trailing_bits, self.numbers.precision
        carry = {"floor": 0, "even": 1 << (t - digits), "ceil": (1 << t) - 1}[self.rule.name]
        # All subnormal amax have the same exponent field. The table is valid for them if they all get the smallest
        # scale.
        least = 0.0 if table[1] == self._least else 2.0**word.emin
        return table, t, carry, least, 2.0**word.emax

    def parameters(self, stored: Array | None, values: Array) -> BlockParameters | None:
        """Return the parameters for the compiled lane, or None if that lane might give other results than this class.

        `stored` and `values` are fields of `BlockParameters`.
        """
        is_exact = self.fmt.scales_by_powers or is_quotient(self.digits, self.numbers)
        by_field = None
        if self._fields:
            table, _, carry, least, beyond = self._fields[SINGLES]
            last = self._slowly(np.array([2 * beyond]), None)  # the addend can carry amax into this binade
            by_field = ByField(np.append(table, last).astype(np.uint8), carry, int(np.float32(least).view(np.uint32)))
        if not is_exact or not (self._is_quotient or by_field):
            return None
        return BlockParameters(
            numbers=self.numbers,
            scale=self.fmt.scale,
            stored=stored,
            values=values,
            divisor=float(self._largest),
            least=int(self._least),
            by_field=by_field,
            by_power=self.fmt.scales_by_powers,
            in_double=product_dtype(self.fmt, SINGLES) == DOUBLES,
        )

    def tensor_scale(self, largest: float) -> np.float32:
        """Return the scale that `full_range_tensor_scale` gives for a tensor with the largest magnitude `largest`.

        A float64 quotient is used instead of exact arithmetic where both give the same scale.
        """
        tensor = self.fmt.tensor
        assert tensor is not None
        if tensor == SINGLE and self._is_short:
            wanted = largest / self._most
            if 2.0**-120 < wanted < 2.0**120:
                return np.float32(wanted)
        return np.float32(float(full_range_tensor_scale(Fraction(largest), self.fmt)))

    def codes(self, amax: Array, top: float, tensor: np.float32 | None) -> Array:
        """Return the codes of the scales for the largest magnitudes `amax` of blocks; `top` is their maximum."""
        if self._fields:
            table, digits, carry, least, beyond = self._fields[amax.dtype]
            if top < beyond and (not least or float(amax.min(initial=least)) >= least):
                fields = amax.view(f"i{amax.itemsize}") + carry >> digits
                return table.take(fields)
            return self._slowly(amax, tensor)
        if not top < np.inf or not self._is_quotient:
            return self._slowly(amax, tensor)
        wanted = np.divide(amax, float(self._largest) * float(tensor or 1), dtype=np.float64)
        codes = np.empty(amax.shape, self.kind)
        self._round(wanted.reshape(-1).view(np.uint64), 0, codes.reshape(-1), None)
        np.maximum(codes, self._least, out=codes)
        return codes

    def _slowly(self, amax: Array, tensor: np.float32 | None) -> Array:
        """Return the codes of the scales for the largest magnitudes `amax` of blocks, without the table.

        If the largest magnitude of a block is infinite or a NaN, the scale is NaN.
        """
        kind, numbers = self.fmt.scale, self.numbers
        finite = np.isfinite(amax)
        known = np.where(finite, amax, 0).astype(np.float64)
        if self.rule.name in BY_EXPONENT:
            digits, e = np.frexp(known)  # significands from 1/2 to below 1
            e -= 1
            if self.rule.name == "ceil":
                e += digits > 0.5
            elif self.rule.name == "even":
                e += digits >= 1 - 2.0 ** -(numbers.precision + 1)
            wanted = np.ldexp(1.0, np.clip(e - numbers.emax, TINY, -TINY))
        else:
            divisor = self._largest * Fraction(float(tensor or 1))
            wanted = quotient(known, np.full(known.shape, float(divisor)), divisor.numerator.bit_length(), kind)
        codes: Array = round_array(wanted, kind, context=self.stored, threads=1, as_codes=True)
        codes = np.where(known == 0, self._least, np.maximum(codes, self._least))
        if not finite.all():
            codes = np.where(finite, codes, self.kind.type(kind.nan_code))
        return codes

    def values(self, codes: Array, dtype: DType, tensor: np.float32 | None = None) -> Array:
        """Return the values of scales, times the tensor's scale if given, in `dtype`, which must represent them."""
        if dtype in self._values:
            values = self._values[dtype].take(codes)
        else:
            values = decode_array(codes, self.fmt.scale, np.float64, threads=1).astype(dtype, copy=False)
        return values if tensor is None else np.multiply(values, tensor, out=values)

    def inverses(self, codes: Array, dtype: DType) -> Array:
        """Return the reciprocals of scales that are powers of two, in `dtype`, which must represent them."""
        if dtype not in self._inverses:
            return (1 / self.values(codes, np.dtype(np.float64))).astype(dtype)
        return self._inverses[dtype].take(codes)

    def scaled(
        self, x: Array, codes: Array, tensor: np.float32 | None, context: Context, finite: bool, narrows: bool
    ) -> tuple[Array, Array]:
        """Return two arrays: numbers that round to the same elements as the exact x / (s·t), and the divisors s·t.

        s is the scale of a block, and t is the scale of the tensor. `finite` tells whether all elements of the array
        are finite. `narrows` tells whether float64 results are converted to float32.
        """
        fmt, drawn = self.fmt, context.rounding.is_stochastic
        if self._lifted < _LIFTED:  # the range of elements is at least that of bfloat16
            x, narrows = x.astype(np.float64), False
        by = self.values(codes, product_dtype(fmt, x.dtype), tensor)
        if fmt.scales_by_powers:
            scaled: Array = x * self.inverses(codes, x.dtype)
        elif drawn:
            scaled = divide_to_odd(x, by, min(TINY, self._lifted))
        else:
            scaled = quotient(x, by, self.digits, self.numbers)
        if context.rounding not in _TO_NEAREST and (fmt.scales_by_powers or not drawn):
            # In these directions, a nonzero number must not underflow to 0.
            least = scaled.dtype.type(2.0**self._lifted)
            tiny = (np.abs(scaled) < least) & (x != 0)
            scaled[tiny] = np.copysign(least, x[tiny])
        if not finite:
            scaled[np.broadcast_to(np.isnan(by), scaled.shape)] = 0
        if narrows and scaled.dtype == DOUBLES:
            scaled = narrow_to_odd(scaled)
        return scaled, by


def recipe_of(format: BlockFormat | Recipe | str, block: int | None, scale: object = None) -> Recipe:
    """Return a recipe, with block size `block` and scale rule `scale` if given.

    Raises FormatError for an unknown format, UnsupportedError for a recipe that arrays do not support, and ContextError
    for an unknown rule, or if `format` already names another rule than `scale`.
    """
    recipe = parse_recipe(format)
    fmt = _checked(recipe.format)
    if block is not None:
        recipe = recipe.replace(format=fmt.replace(block=block))
    # `str` turns arguments of other types, such as lists, into names of unknown rules.
    return recipe.with_rule(scale if scale is None else str(scale))


def is_plain(recipe: Recipe) -> bool:
    """Return whether `BlockScales` supports a recipe: its blocks lie along one axis, and its rule is one exact formula.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [is_plain(parse_recipe(text)) for text in ("mxfp4", "mxfp4:te", "nvfp4/16x16")]
    [True, False, False]
    """
    fmt, rule = recipe.format, recipe.rule
    lies = fmt.rows == 1 and fmt.block is not None and not fmt.by_row and not fmt.flat
    return lies and rule.is_exact and rule.choice is None and rule.name != "none"


@lru_cache(maxsize=64)
def _checked(fmt: BlockFormat) -> BlockFormat:
    if fmt.minimum:
        raise UnsupportedError(
            f"{fmt.name} has minima beside its scales, which arrays do not support; floatlab block does"
        )
    for name, kind in (("scales", fmt.scale), ("elements", fmt.magnitudes)):
        if kind.precision > DIGITS - 2:
            raise UnsupportedError(
                f"{fmt.name} has {name} of {kind.precision} digits; arrays take at most {DIGITS - 2}"
            )
    if fmt.tensor is not None and not holds(SINGLE, fmt.tensor):
        raise UnsupportedError(
            f"{fmt.name} has a tensor scale of {fmt.tensor.name}; arrays take formats whose numbers binary32 contains"
        )
    return fmt


@lru_cache(maxsize=64)
def scales_for(fmt: BlockFormat, rule: ScaleRule | str | None) -> BlockScales:
    """Return the BlockScales of a format and a rule, by default the format's own rule.

    Raises ContextError for an unknown rule.
    """
    return BlockScales(fmt, parse_rule(rule, fmt))


@lru_cache(maxsize=64)
def multiplies_in_single(fmt: BlockFormat) -> bool:
    """Return whether binary32 contains all elements and scales, and has enough digits for their exact products.

    The result is False for formats with a tensor scale.
    """
    parts = fmt.magnitudes, fmt.scale
    digits = sum(each.precision for each in parts)
    return fmt.tensor is None and digits <= SINGLE.precision and all(holds(SINGLE, each) for each in parts)


def product_dtype(fmt: BlockFormat, kind: DType) -> DType:
    """Return a dtype in which element × scale is exact, so that only the conversion to `kind` may round."""
    return kind if kind == SINGLES and multiplies_in_single(fmt) else DOUBLES


@lru_cache(maxsize=64)
def dtype_of(fmt: BlockFormat) -> DType:
    """Return float32 if it represents every number of a block format, else float64.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> dtype_of(parse_block_format("mxfp4"))  # its largest number, 6 · 2^127, is beyond float32
    dtype('float64')
    """
    # The lowest integer must fit, too. Its magnitude is at most twice that of the largest integer.
    most = fmt.magnitudes.largest * fmt.scale.largest * (1 if isinstance(fmt.element, Format) else 2)
    least = fmt.magnitudes.qmin + fmt.scale.qmin
    fits = multiplies_in_single(fmt) and most <= SINGLE.largest and least >= SINGLE.qmin
    return np.dtype(np.float32 if fits else np.float64)
