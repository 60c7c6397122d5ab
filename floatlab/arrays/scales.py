"""How an array is cut into blocks, and the scales of blocks: codes, from the largest magnitudes of blocks, and values.

What depends on the block format and the rule only is settled once, in `BlockScales`: tables by code, and for rules that
count exponents a table by the exponent field of the largest magnitude.

Quotients are float64, and yet rounded once. Let m be a number of the format that is rounded into, or a tie between two,
and m·d exact in float64 for the divisor d. Then the float64 nearest to x/d is m only where x = m·d. For another x
differs from m·d by at least an ulp of it, so x/d from m by more than half an ulp of m (that ulp is more than
2^−53·m·d, and half of m's at most 2^−53·m). As rounding is monotone, the quotient stays on its side of every m, and a
second rounding is as good as the first. Only a random draw looks closer than that, and where m·d has more than 53
digits nothing is said. There the quotient is rounded to odd, after which a second rounding is as good as the first, too
(see `lanes.pairs`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np

from floatlab.arith.blocks import BY_EXPONENT, ScaleRule, parse_rule, tensor_scale_for
from floatlab.arith.operands import holds
from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.lanes import dispatch, pairs
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container
from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats.blocks import BlockFormat, parse_block_format
from floatlab.formats.format import Format
from floatlab.numbers import Context, Direction
from floatlab.record import Record

SLAB = 1 << 17  # elements that are computed at a time
DIGITS = DOUBLE.precision
TINY = -200  # a binade that is tiny for every small format, and from which no draw tells smaller ones
_HUGE = 900
_LOST = (1 << 29) - 1  # the digits of float64 that float32 has not
_TABLED = 8  # bits of a scale whose numbers stand in a table
SINGLES, DOUBLES = np.dtype(np.float32), np.dtype(np.float64)
WORDS: dict[DType, Format] = {SINGLES: SINGLE, DOUBLES: DOUBLE}
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


def is_quotient(digits: int, format: Format) -> bool:
    """Say whether a quotient in float64, by a divisor of so many digits, rounds into a format as the exact one does."""
    return digits + format.precision + 1 <= DIGITS


def quotient(x: Array, divisor: Array, digits: int, format: Format) -> Array:
    """Return x / divisor, of so many digits, as float64 that rounds into a format as the exact quotient does.

    In every direction but stochastic. What underflows is lost; special values give what NumPy gives.
    """
    if not is_quotient(digits, format):
        return divide_to_odd(x, divisor)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return np.divide(x, divisor, dtype=np.float64)


def divide_to_odd(x: Array, divisor: Array) -> Array:
    """Return x / divisor (> 0) as float64 rounded to odd; far outside, a number in its place that rounds as it does.

    Special values give anything.

    >>> divide_to_odd(np.array([1.0, 1.0]), np.array([10.0, 4.0])).tolist()
    [0.09999999999999999, 0.25]
    """
    with np.errstate(all="ignore"):
        m, e = np.frexp(np.abs(x).astype(np.float64))
        d, f = np.frexp(divisor)
        magnitude = pairs.to_odd(pairs.quotient(m, d)).view(np.float64)
        return np.copysign(np.ldexp(magnitude, np.clip(e - f, TINY, _HUGE)), x)


def narrow_to_odd(x: Array) -> Array:
    """Return float64 as float32, rounded to odd: whichever small format comes next cannot tell, and is made faster.

    Takes the array apart in place; what float32's normal numbers do not reach is rounded to nearest.

    >>> narrow_to_odd(np.array([1.0, 1 + 2.0**-40, 1 - 2.0**-40])).tolist()
    [1.0, 1.0000001192092896, 0.9999999403953552]
    """
    bits = x.view(np.int64)
    bits |= ((bits & _LOST) + _LOST) & (_LOST + 1)
    bits &= ~_LOST
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return x.astype(np.float32)


class BlockScales:
    """The scales of a block format by a rule, for any number of blocks."""

    def __init__(self, fmt: BlockFormat, rule: ScaleRule) -> None:
        """Settle what is the same for all blocks."""
        self.fmt, self.rule, self.kind, self.numbers = fmt, rule, container(fmt.scale), fmt.magnitudes
        self._least = self.kind.type(fmt.scale.smallest_magnitude)
        self._largest = self.numbers.largest
        # What amax is divided by has the digits of the largest element's numerator, and those of a tensor's scale.
        of_tensor = 0 if fmt.tensor is None else fmt.tensor.precision
        self._is_quotient = is_quotient(self._largest.numerator.bit_length() + of_tensor, fmt.scale)
        self.digits = fmt.scale.precision + of_tensor  # of the scales of elements
        most = Fraction(0) if fmt.tensor is None else self._largest * fmt.scale.largest
        # Whether binary64's quotient by it rounds into a tensor's scale as the exact one does (see above).
        self._is_short = is_quotient(most.numerator.bit_length(), SINGLE) and most <= DOUBLE.largest
        self._most = float(most) if self._is_short else 0.0
        direction = Direction.RTP if rule is ScaleRule.UP else Direction.RNE
        self._context = Context(direction, overflow="saturate")
        self._round = dispatch.rounder(DOUBLE, fmt.scale, self._context, None)
        self._values: dict[DType, Array] = {}
        self._inverses: dict[DType, Array] = {}
        if fmt.scale.width <= _TABLED:
            values = decode_array(np.arange(1 << fmt.scale.width), fmt.scale, np.float64)
            with np.errstate(all="ignore"):
                for kind in WORDS:
                    self._values[kind] = values.astype(kind)
                    self._inverses[kind] = (1 / values).astype(kind)
        self._fields = {kind: self._by_field(word) for kind, word in WORDS.items()} if rule in BY_EXPONENT else {}

    def _by_field(self, word: Format) -> tuple[Array, int, int, float, float]:
        """Return a table of codes by the exponent field of amax, the digits below, and what is added to amax first.

        And for which magnitudes all this holds: from where on, and from where on no longer.
        """
        fields = np.maximum(np.arange((1 << word.exponent_bits) - 1), 1)
        table = self._slowly(np.ldexp(1.0, fields - word.bias), None)
        t, digits = word.trailing_bits, self.numbers.precision
        carry = {ScaleRule.FLOOR: 0, ScaleRule.EVEN: 1 << (t - digits), ScaleRule.CEIL: (1 << t) - 1}[self.rule]
        # The field does not tell the exponents of subnormal numbers; but mostly all of them have the least scale.
        least = 0.0 if table[1] == self._least else 2.0**word.emin
        return table, t, carry, least, 2.0**word.emax

    def tensor_for(self, largest: float) -> np.float32:
        """Return the scale of a tensor whose largest magnitude this is."""
        tensor = self.fmt.tensor
        assert tensor is not None
        if tensor == SINGLE and self._is_short:
            wanted = largest / self._most
            if 2.0**-120 < wanted < 2.0**120:
                return np.float32(wanted)
        return np.float32(float(tensor_scale_for(Fraction(largest), self.fmt)))

    def codes(self, amax: Array, top: float, tensor: np.float32 | None) -> Array:
        """Return the codes of the scales of blocks whose largest magnitudes are these; `top` is the largest of all."""
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
        """Return the codes for any magnitudes; NaN's where they are not finite."""
        kind, numbers = self.fmt.scale, self.numbers
        finite = np.isfinite(amax)
        known = np.where(finite, amax, 0).astype(np.float64)
        if self.rule in BY_EXPONENT:
            digits, e = np.frexp(known)  # digits from 1/2 up
            e -= 1
            if self.rule is ScaleRule.CEIL:
                e += digits > 0.5
            elif self.rule is ScaleRule.EVEN:
                e += digits >= 1 - 2.0 ** -(numbers.precision + 1)
            wanted = np.ldexp(1.0, np.clip(e - numbers.emax, TINY, -TINY))
        else:
            divisor = self._largest * Fraction(float(tensor or 1))
            wanted = quotient(known, np.full(known.shape, float(divisor)), divisor.numerator.bit_length(), kind)
        codes: Array = round_array(wanted, kind, context=self._context, threads=1, as_codes=True)
        codes = np.where(known == 0, self._least, np.maximum(codes, self._least))
        if not finite.all():
            codes = np.where(finite, codes, self.kind.type(kind.nan_code))
        return codes

    def values(self, codes: Array, dtype: DType, tensor: np.float32 | None = None) -> Array:
        """Return the numbers of scales in a dtype that has them, times the tensor's scale."""
        if dtype in self._values:
            values = self._values[dtype].take(codes)
        else:
            values = decode_array(codes, self.fmt.scale, np.float64, threads=1).astype(dtype, copy=False)
        return values if tensor is None else np.multiply(values, tensor, out=values)

    def inverses(self, codes: Array, dtype: DType) -> Array:
        """Return the reciprocals of scales that are powers of two, in a dtype that has them."""
        if dtype not in self._inverses:
            return (1 / self.values(codes, np.dtype(np.float64))).astype(dtype)
        return self._inverses[dtype].take(codes)

    def scaled(
        self, x: Array, codes: Array, tensor: np.float32 | None, context: Context, finite: bool, narrows: bool
    ) -> tuple[Array, Array]:
        """Return numbers that round into the elements as x / (s·t) does, and s·t.

        `finite` says whether all of the array is so, and `narrows` whether float32 is to be made of float64.
        """
        fmt, drawn = self.fmt, context.rounding is Direction.SR
        by = self.values(codes, product_dtype(fmt, x.dtype), tensor)
        if fmt.scales_by_powers:
            scaled: Array = x * self.inverses(codes, x.dtype)
        elif drawn:
            scaled = divide_to_odd(x, by)
        else:
            scaled = quotient(x, by, self.digits, self.numbers)
        if context.rounding not in _TO_NEAREST and (fmt.scales_by_powers or not drawn):
            # Underflow may have taken what such directions still see.
            tiny = (np.abs(scaled) < 2.0**-100) & (x != 0)
            scaled[tiny] = np.copysign(scaled.dtype.type(2.0**-100), x[tiny])
        if not finite:
            scaled[np.broadcast_to(np.isnan(by), scaled.shape)] = 0
        if narrows and scaled.dtype == DOUBLES:
            scaled = narrow_to_odd(scaled)
        return scaled, by


def block_format(format: BlockFormat | str, block: int | None) -> BlockFormat:
    """Return a block format, with another size of block if there is one; raises UnsupportedError, FormatError."""
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


@lru_cache(maxsize=64)
def scales_for(fmt: BlockFormat, rule: ScaleRule | str | None) -> BlockScales:
    """Return the scales of a block format by a rule, its own unless there is one; raises ContextError for no rule."""
    return BlockScales(fmt, parse_rule(rule, fmt))


@lru_cache(maxsize=64)
def multiplies_in_single(fmt: BlockFormat) -> bool:
    """Say whether binary32 has elements and scales, and the digits of their products, if not their range."""
    parts = fmt.magnitudes, fmt.scale
    digits = sum(each.precision for each in parts)
    return fmt.tensor is None and digits <= SINGLE.precision and all(holds(SINGLE, each) for each in parts)


def product_dtype(fmt: BlockFormat, kind: DType) -> DType:
    """Return the dtype in which elements and scales are multiplied: exactly, or with the last rounding only."""
    return kind if kind == SINGLES and multiplies_in_single(fmt) else DOUBLES


@lru_cache(maxsize=64)
def dtype_of(fmt: BlockFormat) -> DType:
    """Return float32 if it has every number of a block format, else float64.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> dtype_of(parse_block_format("mxfp4"))  # its largest number, 6 · 2^127, is beyond float32
    dtype('float64')
    """
    # Two's complement has one number more, on the negative side: twice the largest is beyond it.
    most = fmt.magnitudes.largest * fmt.scale.largest * (1 if isinstance(fmt.element, Format) else 2)
    least = fmt.magnitudes.qmin + fmt.scale.qmin
    fits = multiplies_in_single(fmt) and most <= SINGLE.largest and least >= SINGLE.qmin
    return np.dtype(np.float32 if fits else np.float64)
