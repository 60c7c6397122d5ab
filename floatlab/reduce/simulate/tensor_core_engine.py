"""Fused sums of tensor cores: products are aligned to the largest exponent, truncated, added, and rounded.

A node adds a block of exact products and the partial sum. The node aligns the products and the partial sum to the
largest of their exponents, or to −126 if that is larger. The exponent of a product is the sum of the exponents of its
factors, without normalisation. Zeros do not affect the largest exponent. The node truncates each argument toward zero
at `fraction_bits` bits below the largest exponent, adds all of them exactly, and rounds the sum into the accumulator.
`TensorCore` describes variants. Nodes without products, such as those that add the partial sums of several blocks,
round their sum to nearest even.

M. Fasi, N. J. Higham, M. Mikaitis, S. Pranesh, *Numerical behavior of NVIDIA tensor cores* (PeerJ Computer Science 7,
2021); F. A. Khattak, M. Mikaitis, *Accurate models of NVIDIA tensor cores* (arXiv:2512.07004); P. Xie et al., *MMA-Sim:
Bit-Accurate Reference Model of Tensor Cores and Matrix Cores* (arXiv:2511.10909).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Exact, round_exact
from floatlab.numbers.rounding import DEFAULT
from floatlab.reduce.simulate.adders import Adder, Node, NodeRule, Term
from floatlab.reduce.simulate.code_engine import Argument, CodeEngine, Sides

_OF_ZERO = -4000  # the exponent of zeros, so low that a product with a zero factor never has the largest exponent
LEAST_EXPONENT = -126  # emin of binary32: the smallest exponent to which the partial sum is aligned


class TensorCore(NodeRule):
    """The arithmetic of a tensor core: the bits kept in the alignment, and the rounding into the accumulator.

    `direction` is the direction of the rounding into the accumulator. If `result_bits` is given, the result is
    truncated to this number of fraction bits, although the accumulator's format has more fraction bits.

    If `sum_bits` is given, the node works in two stages, and `groups` (0, 1 or 2) selects a variant of these stages.
    (Without `sum_bits`, `groups` is always 0.) In the first stage, the node aligns the products to their largest
    exponent and adds the products. If `groups` is 0, zeros have the exponent −126 in this alignment. In the second
    stage, the node adds the partial sum. The alignment exponent of this stage is the largest exponent among the
    products and the partial sum, or −126 if that is larger. The sum of the products is truncated toward −∞ at
    `sum_bits` bits below this exponent, and the partial sum at `fraction_bits` bits below this exponent. A product of
    magnitude 2^128 or more counts as infinite.

    If `groups` is 1 or 2, the second stage keeps one bit more of the sum of the products. The total of the second stage
    is then normalised and truncated toward −∞ to `sum_bits` fraction bits.

    If `groups` is 2, both stages change further. The first stage adds the products at even positions and the products
    at odd positions separately, each aligned to the largest exponent of its own products. Each of these two sums is
    truncated toward −∞ at `fraction_bits` bits below the largest exponent of all products. Then the two sums are added.
    The second stage leaves out a partial sum whose exponent is more than `fraction_bits` + 1 below the largest exponent
    of the products.
    """

    accumulator: Format
    fraction_bits: int
    direction: str = "RTZ"
    result_bits: int | None = None
    sum_bits: int | None = None
    groups: int = 0

    context: ClassVar[Context] = DEFAULT  # for nodes without products
    fma: ClassVar[bool] = True

    @property
    def products(self) -> Format:
        """The format to which a product is rounded if it is the only term of a sum."""
        return self.accumulator

    @property
    def nan_code(self) -> int:
        """The code of the NaN that every invalid sum gives: all bits except the sign are set."""
        return (1 << (self.accumulator.width - 1)) - 1

    def settled(self, total: Exact) -> int:
        """Return the code of an exact sum, rounded to the accumulator's format and truncated to `result_bits`.

        A sum of magnitude 2^(emax + 1) or more becomes infinite in every rounding direction.

        >>> from floatlab import parse_format
        >>> core = TensorCore(parse_format("fp32"), 13, result_bits=13)
        >>> hex(core.settled(Exact(True, 0xFFFFFF, -20)))
        '0xc17ffc00'
        """
        fmt = self.accumulator
        if total.c and total.exponent > fmt.emax:
            return fmt.compose(total.negative, fmt.infinity_magnitude)
        code = round_exact(total, fmt, Context(self.direction)).code
        if self.result_bits is None or fmt.magnitude(code) > fmt.largest_magnitude:
            return code
        return code & ~((1 << (fmt.trailing_bits - self.result_bits)) - 1)

    def aligned(self, terms: Sequence[Term | Datum]) -> tuple[int, list[int]]:
        """Return the alignment exponent E, and the truncated terms as integers in units of 2^(E − `fraction_bits`).

        `terms` are the products and numbers that a node adds. The method is for cores without `sum_bits`.

        >>> from floatlab import encode, parse_format
        >>> core = TensorCore(parse_format("fp32"), 24)
        >>> core.aligned([Term(encode(3, "fp16"), encode(1, "fp16")), encode(2.0**-24, "fp32")])
        (1, [25165824, 0])
        """
        top = max(LEAST_EXPONENT, *(_exponent(each) for each in terms if each.exact.c), LEAST_EXPONENT)
        return top, [_cut(each.exact, top - self.fraction_bits) for each in terms]

    def _total(self, terms: Sequence[Term | Datum]) -> Exact:
        """Return the sum of the truncated terms; all terms must be finite."""
        if self.sum_bits is None:
            top, left = self.aligned(terms)
            total, unit = sum(left), top - self.fraction_bits
            return Exact(total < 0, abs(total), unit)
        products = [each for each in terms if isinstance(each, Term)]
        if self.groups:
            return self._total_of_groups(products, [each for each in terms if isinstance(each, Datum)], self.sum_bits)
        first = max(_exponent(each) if each.exact.c else LEAST_EXPONENT for each in products)
        whole = sum(_cut(each.exact, first - self.fraction_bits) for each in products)
        sums = [each for each in terms if isinstance(each, Datum)]
        top = max(first, LEAST_EXPONENT, *(_exponent(each) for each in sums if each.exact.c), LEAST_EXPONENT)
        unit = top - self.sum_bits
        total = _shifted(whole, first - self.fraction_bits - unit)
        for each in sums:
            x = each.exact
            kept = _shifted(-x.c if x.negative else x.c, x.q - top + self.fraction_bits)
            total += kept << (self.sum_bits - self.fraction_bits)
        return Exact(total < 0, abs(total), unit)

    def _total_of_groups(self, products: Sequence[Term], sums: Sequence[Datum], bits: int) -> Exact:
        parts = []
        for group in (products[start :: self.groups] for start in range(self.groups)):
            top = max((_exponent(each) for each in group if each.exact.c), default=_OF_ZERO)
            parts.append((top, sum(_cut(each.exact, top - self.fraction_bits) for each in group)))
        first = max(top for top, _ in parts)
        whole = sum(_shifted(part, top - first) for top, part in parts)
        c = sums[0] if sums else Datum(self.accumulator, 0)
        own = max(_exponent(c), LEAST_EXPONENT)
        top = max(first, own)
        unit = top - bits - 1
        total = _shifted(whole, first - self.fraction_bits - unit)
        if self.groups == 1 or own >= top - self.fraction_bits - 1:
            x, last = c.exact, top - self.fraction_bits
            total += _shifted(-x.c if x.negative else x.c, x.q - last) << (last - unit)
        if total:
            more = max(Exact(False, abs(total), unit).exponent, LEAST_EXPONENT) - bits - unit
            total, unit = (total >> more, unit + more) if more > 0 else (total, unit)
        return Exact(total < 0, abs(total), unit)

    def sum(self, terms: Sequence[Term | Datum]) -> Datum:
        """Return the result of a node that adds products and numbers."""
        fmt = self.accumulator
        signs = {_special(each, self.sum_bits is not None) for each in terms} - {None}
        if not signs:
            return Datum(fmt, self.settled(self._total(terms)))
        if len(signs) > 1 or "nan" in signs:
            return Datum(fmt, self.nan_code)
        return Datum(fmt, fmt.compose(signs == {"-"}, fmt.infinity_magnitude))

    def node(self, id: int, ids: tuple[int, ...], arguments: Sequence[Term | Datum], element: int = 0) -> Node:
        """Return the evaluated node. If an argument is a product, the node has no derivations."""
        if any(isinstance(each, Term) for each in arguments):
            return Node(id, ids, self.sum(arguments), (), _given(arguments))
        return Adder(self.accumulator).node(id, ids, arguments)


def _given(arguments: Sequence[Term | Datum]) -> Exact | None:
    """Return the exact sum of numbers and products, or None if one of them is not finite."""
    finite = all(each.is_finite for each in arguments)
    return sum((each.exact for each in arguments), Exact(False, 0, 0)) if finite else None


def _exponent(each: Term | Datum) -> int:
    if isinstance(each, Datum):
        return each.quantum_exponent + each.format.trailing_bits
    return _exponent(each.x) + (0 if each.y is None else _exponent(each.y))


def _cut(x: Exact, unit: int) -> int:
    """Return x / 2^unit, truncated toward zero to an integer."""
    kept = _shifted(x.c, x.q - unit)
    return -kept if x.negative else kept


def _shifted(n: int, shift: int) -> int:
    """Return n·2^shift, rounded toward −∞."""
    return n << shift if shift >= 0 else n >> -shift


def _special(each: Term | Datum, overflows: bool) -> str | None:
    """Return the sign of an infinity ("+" or "-"), "nan" for a NaN, and None for a finite number or product.

    If `overflows` is true, products of magnitude 2^128 or more count as infinite.
    """
    if each.is_finite:
        exact = each.exact
        beyond = overflows and isinstance(each, Term) and exact.c and exact.exponent > 127
        return ("-" if exact.negative else "+") if beyond else None
    factors = (each,) if isinstance(each, Datum) else each.factors
    zero = any(x.is_finite and not x.exact.c for x in factors)
    if zero or not all(x.is_finite or x.is_infinite for x in factors):
        return "nan"
    return "-" if sum(x.sign_bit for x in factors) % 2 else "+"


class TensorEngine(CodeEngine):
    """The arithmetic of `TensorCore` on arrays of codes. Binary64 represents the sums of blocks exactly."""

    fuses_all = True

    def __init__(self, sides: Sides, core: TensorCore) -> None:
        """Decode the factors and compute their exponents."""
        super().__init__(sides, Adder(core.accumulator))
        self.core = core
        wide = [(decode(side.codes, side.format, np.float64), side.format) for side in sides]
        self.factors = [(values, exponents_of(values, format)) for values, format in wide]

    def leaf(self, slots: Array) -> Array:
        """Return the results of nodes that add a single product."""
        return self.block(slots[None], [])

    def add_exactly(self, arguments: Sequence[Argument], ids: Array) -> Array:
        """Return the sums; products are added by `block`, and sums without products are rounded to nearest even."""
        slots = [array for is_term, array in arguments if is_term]
        sums = [array for is_term, array in arguments if not is_term]
        if not slots:
            return self.add(sums[0], sums[1], ids) if len(sums) == 2 else super().add_exactly(arguments, ids)
        return self.block(np.stack(slots), sums)

    def block(self, slots: Array, sums: Sequence[Array]) -> Array:
        """Add the products and the partial sums of each lane in one operation; return the codes of the results.

        `slots`, of shape (products, lanes), has the index of each product's factors in `self.factors`. Each array of
        `sums` has the shape (lanes, *batch).
        """
        core, fmt = self.core, self.core.accumulator
        given = [decode(each, fmt, np.float64) for each in sums]
        with np.errstate(all="ignore"):
            products, exponents = (side[slots] for side in self.factors[0])
            for values, own in self.factors[1:]:
                products, exponents = products * values[slots], exponents + own[slots]
            if core.sum_bits is not None:
                products = np.where(np.abs(products) >= 2.0**128, np.copysign(np.inf, products), products)
            total, unit = self._total(products, exponents, given)
            found = np.ldexp(total, unit)
            if not np.isfinite(total).all():
                # Finite terms do not affect a sum that is infinite or NaN, so they are set to zero.
                specials = [np.where(np.isfinite(each), 0.0, each) for each in (*products, *given)]
                special = np.add.reduce(np.broadcast_arrays(*specials), axis=0)
                found = np.where(np.isfinite(special), found, special)
        found = np.broadcast_to(found, (slots.shape[1], *self.batch))
        codes = np.asarray(encode(found, fmt, core.direction))
        beyond = np.abs(found) >= 2.0 ** (fmt.emax + 1)
        if beyond.any():
            infinite = np.where(found < 0, fmt.compose(True, fmt.infinity_magnitude), fmt.infinity_magnitude)
            codes = np.where(beyond, infinite.astype(codes.dtype), codes)
        if core.result_bits is not None:
            mask = codes.dtype.type(~((1 << (fmt.trailing_bits - core.result_bits)) - 1) & ((1 << fmt.width) - 1))
            codes = np.where(np.isfinite(found), codes & mask, codes)
        codes = np.where(np.isnan(found), codes.dtype.type(core.nan_code), codes)
        return np.asarray(codes, container(fmt))

    def _total(self, products: Array, exponents: Array, sums: list[Array]) -> tuple[Array, Array]:
        """Return, for each sum of truncated terms, an integer (in binary64) and the exponent of the integer's unit."""
        core, fmt = self.core, self.core.accumulator
        if core.groups:
            return self._total_of_groups(products, exponents, sums)
        top: Array = np.maximum(LEAST_EXPONENT, exponents.max(axis=0))
        for each in sums:
            top = np.maximum(top, exponents_of(each, fmt))
        if core.sum_bits is None:
            scale = np.ldexp(1.0, core.fraction_bits - top)
            total = np.trunc(products * scale).sum(axis=0)
            for each in sums:
                total = total + np.trunc(each * scale)
            return total, top - core.fraction_bits
        first = np.maximum(exponents.max(axis=0), np.where((products == 0).any(axis=0), LEAST_EXPONENT, _OF_ZERO))
        whole = np.trunc(products * np.ldexp(1.0, core.fraction_bits - first)).sum(axis=0)
        total = np.floor(np.ldexp(whole, first - core.fraction_bits - top + core.sum_bits))
        for each in sums:
            left = np.floor(np.ldexp(each, core.fraction_bits - top))
            total = total + left * 2.0 ** (core.sum_bits - core.fraction_bits)
        return total, top - core.sum_bits

    def _total_of_groups(self, products: Array, exponents: Array, sums: list[Array]) -> tuple[Array, Array]:
        core, fmt = self.core, self.core.accumulator
        exponents = np.where(products == 0, _OF_ZERO, exponents)
        tops, parts = [], []
        for group in (slice(start, None, core.groups) for start in range(core.groups)):
            top = exponents[group].max(axis=0, initial=_OF_ZERO)
            tops.append(top)
            parts.append(np.trunc(np.ldexp(products[group], core.fraction_bits - top)).sum(axis=0))
        first = np.max(tops, axis=0)
        whole = sum(np.floor(np.ldexp(part, top - first)) for top, part in zip(tops, parts, strict=True))
        c = sums[0] if sums else np.zeros(first.shape)
        own = np.maximum(exponents_of(c, fmt), LEAST_EXPONENT)
        top, bits = np.maximum(first, own), (core.sum_bits or 0) + 1
        kept = np.floor(np.ldexp(c, core.fraction_bits - top))
        if core.groups > 1:
            kept = np.where(own < top - core.fraction_bits - 1, 0.0, kept)
        total = np.floor(np.ldexp(whole, first - top + bits - core.fraction_bits))
        total = total + np.ldexp(kept, bits - core.fraction_bits)
        digits = np.maximum(np.frexp(total)[1] - 1 - bits + top, LEAST_EXPONENT) - bits + 1
        return np.floor(np.ldexp(total, top - bits - digits)), digits


def exponents_of(values: Array, format: Format) -> Array:
    """Return the exponents of numbers; for subnormal numbers, return the exponent of the smallest normal number.

    Zeros have an exponent so low that they do not affect the alignment.
    """
    # NaNs are replaced before frexp is called: some implementations raise invalid for signaling NaNs.
    found = np.maximum(np.frexp(np.where(np.isfinite(values), values, 0.0))[1] - 1, format.emin)
    return np.where(values == 0, _OF_ZERO, found).astype(np.int32)
