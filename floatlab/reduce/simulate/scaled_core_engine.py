"""Fused sums of products with block scales, as in Blackwell's tensor cores (mxf8f6f4, mxf4, nvf4).

A node adds a block of products to the partial sum c. All products are exact. Units for 4-bit numbers first add each
group of `group` products exactly. Each product or group is multiplied by its two scales exactly. The exponent of a
product is the sum of the exponents of its factors and scales, without normalisation. The exponent of a group is the sum
of the exponents of its scales. All products or groups, and c, are aligned to the largest exponent E and truncated
toward zero to multiples of 2^(E − `fraction_bits`). The truncated numbers are added exactly, and the sum is truncated
toward zero to binary32, or becomes infinite from 2^128 on. Zero results are +0. The signs of scales are ignored.

P. Xie et al., *Bit-Accurate Modeling of GPU Matrix Multiply-Accumulate Units* (arXiv:2511.10909), ST-FDPA and GST-FDPA.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import SINGLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.numbers import Context, Datum, Exact, round_exact
from floatlab.record import Record
from floatlab.reduce.simulate.tensor_core_engine import exponents_of

_NEVER = -4000  # the exponent of zeros that must not affect the alignment
_NAN = 0x7FFFFFFF
_TILE = 1 << 20  # the largest number of products in memory at once


class ScaledTerm(Record):
    """One product or group of products in a node: its exact value, its exponent, and its truncated value."""

    first: int  # the index of its first product in the sum
    stop: int  # the index after its last product
    products: Exact | None  # the exact sum of its products; None if a factor is not finite
    scales: tuple[Datum, Datum]
    value: Exact | None  # `products` times the magnitudes of both scales; None if a factor or a scale is not finite
    exponent: int
    kept: int  # `value`, truncated, in units of 2^(E − fraction_bits); 0 if `value` is None


class ScaledNode(Record):
    """The addition of one block of products to the partial sum."""

    terms: tuple[ScaledTerm, ...]
    c: Datum
    kept_c: int
    top: int  # the largest exponent E, to which all terms are aligned
    unit: int  # the exponent of the last bit that the alignment keeps
    value: Datum

    @property
    def total(self) -> int | None:
        """The sum of the aligned terms, in units of 2^`unit`; None if a term is not finite."""
        return None if self.exact is None else self.kept_c + sum(each.kept for each in self.terms)

    @property
    def exact(self) -> Fraction | None:
        """The exact sum of the products and c, or None if one of them is not finite."""
        values = [each.value for each in self.terms]
        if not self.c.is_finite or any(value is None for value in values):
            return None
        return sum((value.as_fraction() for value in values if value is not None), self.c.exact.as_fraction())

    @property
    def error(self) -> Fraction | None:
        """The node's value minus the exact sum, or None if either is not finite."""
        exact = self.exact
        return None if exact is None or not self.value.is_finite else self.value.exact.as_fraction() - exact


class ScaledCore(Record):
    """The arithmetic of a unit for products with block scales, as the module's docstring describes it.

    Parameters
    ----------
    block : int
        The number of products in a node; a shorter block is filled with zeros.
    group : int
        The number of products that are added exactly before the alignment; 1 if each product is aligned.
    fraction_bits : int
        The number of bits kept below the largest exponent.
    zero_exponent : int, optional
        The exponent of zeros in the alignment; None if zeros do not affect the alignment.
    """

    block: int
    group: int
    fraction_bits: int
    zero_exponent: int | None

    @property
    def _zero(self) -> int:
        return _NEVER if self.zero_exponent is None else self.zero_exponent

    def node(
        self, first: int, factors: Sequence[tuple[Datum, Datum]], scales: Sequence[tuple[Datum, Datum]], c: Datum
    ) -> ScaledNode:
        """Return the node that adds c and the scaled products of `factors`; `first` is the index of the first product.

        `scales` has the two scales of each product, in order.

        >>> from floatlab import encode
        >>> core, one, half = ScaledCore(64, 16, 35, -139), encode(1, "e2m1"), encode(0.5, "e8m0")
        >>> node = core.node(0, [(one, one)] * 20, [(half, half)] * 20, encode(0, "fp32"))
        >>> float(node.value), [(each.stop, int(each.value.as_fraction()), each.exponent) for each in node.terms]
        (5.0, [(16, 4, -2), (20, 1, -2)])
        """
        terms = [
            self._term(first + at, factors[at : at + self.group], scales[at])
            for at in range(0, len(factors), self.group)
        ]
        exponents = [each.exponent for each in terms] + [self._zero] * (len(factors) < self.block)
        own = _exponent(c) if not c.is_finite or c.exact.c else self._zero
        top = max(*exponents, own)
        unit = top - self.fraction_bits
        terms = [each.replace(kept=_cut(each.value, unit)) for each in terms]
        kept = _cut(c.exact if c.is_finite else None, unit)
        made = ScaledNode(tuple(terms), c, kept, top, unit, c)
        return made.replace(value=Datum(SINGLE, self._settled(made, factors, scales)))

    def _term(self, first: int, factors: Sequence[tuple[Datum, Datum]], scales: tuple[Datum, Datum]) -> ScaledTerm:
        stop, exponent = first + len(factors), sum(map(_exponent, scales))
        if self.group == 1:
            exponent += sum(map(_exponent, factors[0]))
        made = ScaledTerm(first=first, stop=stop, products=None, scales=scales, value=None, exponent=exponent, kept=0)
        if not all(x.is_finite for pair in factors for x in pair):
            return made
        products = [x.exact * y.exact for x, y in factors]
        total = sum(products[1:], products[0])
        if not all(scale.is_finite for scale in scales):
            return made.replace(products=total)
        a, b = (scale.exact for scale in scales)
        # A group counts as zero if a scale or all its products are zero, and not if its products cancel.
        is_zero = not a.c or not b.c or not any(each.c for each in products)
        value = total * Exact(False, a.c, a.q) * Exact(False, b.c, b.q)
        return made.replace(products=total, value=value, exponent=self._zero if is_zero else exponent)

    def _settled(
        self, node: ScaledNode, factors: Sequence[tuple[Datum, Datum]], scales: Sequence[tuple[Datum, Datum]]
    ) -> int:
        """Return a node's value as a code."""
        total = node.total
        if total is None:
            return _special(factors, scales, node.c)
        sum_ = Exact(total < 0, abs(total), node.unit)
        if total and sum_.exponent > SINGLE.emax:
            return SINGLE.compose(total < 0, SINGLE.infinity_magnitude)
        code = round_exact(sum_, SINGLE, Context("RTZ")).code
        return code if SINGLE.magnitude(code) else 0

    def sums(self, x: Source, y: Source, scales: tuple[Source, Source], size: int, c: Array) -> Array:
        """Return the codes of c + Σ x·y, where each product x·y is multiplied by a scale of x and a scale of y.

        x has the shape (rows, n), and the scales of x have the shape (rows, blocks). y has the shape (n, columns), and
        the scales of y have the shape (blocks, columns). A scale belongs to `size` successive products; the last scale
        may belong to fewer products. `c` has binary32 codes, of shape (rows, columns).
        """
        rows, n = x.codes.shape
        columns = y.codes.shape[1]
        made = np.empty((rows, columns), np.uint32)
        tall = max(1, _TILE // max(1, columns * self.block))
        left = _Side(x, scales[0], size)
        right = _Side(y.replace(codes=y.codes.T), scales[1].replace(codes=scales[1].codes.T), size)
        for start in range(0, rows, tall):
            some = slice(start, start + tall)
            sums = np.asarray(c[some], np.uint32)
            for first in range(0, n, self.block):
                sums = self._nodes(left.part(some, first, self), right.part(slice(None), first, self), sums)
            made[some] = sums
        return made

    def _nodes(self, left: tuple[Array, ...], right: tuple[Array, ...], c: Array) -> Array:
        """Add one block of products to each element of c; return the codes of the sums."""
        (a, a_exponents, a_scales, a_scale_exponents), (b, b_exponents, b_scales, b_scale_exponents) = (
            [array[:, None] for array in left],
            [array[None] for array in right],
        )
        with np.errstate(all="ignore"):
            products = a * b
            nonzero = products != 0
            exponents = a_exponents + b_exponents
            if self.group > 1:
                nonzero = nonzero.reshape(*products.shape[:-1], -1, self.group).any(axis=-1)
                products = products.reshape(*products.shape[:-1], -1, self.group).sum(axis=-1)
                exponents = np.zeros(products.shape, np.int64)
            scale = a_scales * b_scales
            values = products * scale
            exponents = np.where(nonzero & (scale != 0), exponents + a_scale_exponents + b_scale_exponents, self._zero)
            own = decode(c, SINGLE, np.float64)
            own_exponents = np.where(own == 0, self._zero, exponents_of(own, SINGLE))
            top = np.maximum(exponents.max(axis=-1), own_exponents)
            total = np.trunc(np.ldexp(values, self.fraction_bits - top[..., None])).sum(axis=-1)
            total = total + np.trunc(np.ldexp(own, self.fraction_bits - top))
            found = np.ldexp(total, top - self.fraction_bits)
            terms = np.concatenate([values, own[..., None]], axis=-1)
            if not np.isfinite(terms).all():
                special = np.where(np.isfinite(terms), 0.0, terms).sum(axis=-1)
                found = np.where(np.isfinite(terms).all(axis=-1), found, special)
        codes = np.asarray(encode(found, SINGLE, "RTZ"), np.uint32)
        codes = np.where(np.abs(found) >= 2.0**128, np.where(found < 0, 0xFF800000, 0x7F800000), codes)
        return np.where(np.isnan(found), _NAN, np.where(codes == 1 << 31, 0, codes)).astype(np.uint32)


class _Side:
    """One factor and its scales, converted to binary64 values and exponents.

    Each row has the factors of one sum, so the caller passes y transposed.
    """

    def __init__(self, factor: Source, scales: Source, size: int) -> None:
        self.values, self.exponents = _numbers(factor)
        scale_values, self.scale_exponents = _numbers(scales)
        self.scale_values = np.abs(scale_values)
        self.size = size

    def part(self, rows: slice, first: int, core: ScaledCore) -> tuple[Array, ...]:
        """Return four arrays for one block in each of these rows; the block begins at term `first`.

        The first two arrays have the values and the exponents of the factor's numbers, padded with zeros. The other two
        arrays have the values and the exponents of the scales, with one scale for each group.
        """
        stop = min(first + core.block, self.values.shape[1])
        more = ((0, 0), (0, core.block - (stop - first)))
        starts = np.minimum(np.arange(first, first + core.block, core.group), stop - 1) // self.size
        return (
            np.pad(self.values[rows, first:stop], more),
            np.pad(self.exponents[rows, first:stop], more),
            self.scale_values[rows, starts],
            self.scale_exponents[rows, starts],
        )


def _numbers(side: Source) -> tuple[Array, Array]:
    values = decode(side.codes, side.format, np.float64)
    return values, exponents_of(values, side.format).astype(np.int64)


def _exponent(x: Datum) -> int:
    """Return the exponent of a number: the smallest normal exponent for subnormals, 0 for ∞ and NaN."""
    return x.quantum_exponent + x.format.trailing_bits if x.is_finite else 0


def _cut(x: Exact | None, unit: int) -> int:
    """Return x / 2^unit, truncated toward zero to an integer; 0 if x is None."""
    if x is None:
        return 0
    shift = x.q - unit
    kept = x.c << shift if shift >= 0 else x.c >> -shift
    return -kept if x.negative else kept


def _special(factors: Sequence[tuple[Datum, Datum]], scales: Sequence[tuple[Datum, Datum]], c: Datum) -> int:
    """Return the code of a sum that has non-finite terms: ∞ if all of these are infinities of one sign, else NaN."""
    signs = set()
    for pair, pair_scales in zip(factors, scales, strict=True):
        if not all(scale.is_finite for scale in pair_scales) or any(x.is_nan for x in pair):
            return _NAN
        if any(x.is_infinite for x in pair):
            others = [*(x.exact for x in pair if x.is_finite), *(scale.exact for scale in pair_scales)]
            if not all(each.c for each in others):
                return _NAN
            signs.add(sum(x.sign_bit for x in pair) % 2)
    if c.is_nan:
        return _NAN
    if c.is_infinite:
        signs.add(c.sign_bit)
    return SINGLE.compose(signs == {1}, SINGLE.infinity_magnitude) if len(signs) == 1 else _NAN
