"""Scales of blocks: their codes from the largest magnitudes of blocks, and the numbers that they are.

What depends on the block format and the rule only is settled once, in `Scales`: tables by code, and for rules that
count exponents a table by the exponent field of the largest magnitude.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np

from floatlab.arith.blocks import BY_EXPONENT, ScaleRule, parse_rule, tensor_scale_for
from floatlab.arith.operands import holds
from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.quotients import TINY, is_quotient, quotient
from floatlab.arrays.lanes.reading import DOUBLE, SINGLE, container
from floatlab.arrays.types import Array, DType
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.format import Format
from floatlab.numbers import Context, Direction

_TABLED = 8  # bits of a scale whose numbers stand in a table


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
        # Whether binary64's quotient by it rounds into a tensor's scale as the exact one does (see `quotients`).
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
                for kind in (np.dtype(np.float32), np.dtype(np.float64)):
                    self._values[kind] = values.astype(kind)
                    self._inverses[kind] = (1 / values).astype(kind)
        self._fields = {kind: self._by_field(word) for kind, word in _WORDS.items()} if rule in BY_EXPONENT else {}

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
                found: Array = table.take(fields)
                return found
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


_WORDS = {np.dtype(np.float32): SINGLE, np.dtype(np.float64): DOUBLE}


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
