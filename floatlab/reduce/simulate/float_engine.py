"""Additions for many sums at once, in the processor's formats binary32 and binary64.

Most time is spent on adding terms serially to an array of sums. The C extension adds products in one loop. If the
extension is not built, or if terms are not products, there is one call of NumPy for each term. For a few sums of many
terms, one call of `np.add.accumulate` adds up to `ROWS` terms.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from ctypes import c_float
from functools import reduce

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.pairs import to_odd, two_sum
from floatlab.arrays.lanes.parameters import SINGLE, WORDS, container, rounds_as_processors
from floatlab.arrays.types import Array
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.code_engine import FEW, MANY, ROWS, Argument, CodeEngine, Sides
from floatlab.reduce.simulate.round_binary64 import FLOAT, WORD

_LOW = 0 if sys.byteorder == "little" else 1  # index of the half of a binary64 number that holds its low bits
_BELOW = np.uint32((1 << 29) - 1)  # the bits of a binary64 number that binary32 lacks
_HALF = np.uint32(1 << 28)  # half an ulp of a binary32 number, as low bits of a binary64 number
# From this magnitude on, binary64 numbers round to normal binary32 numbers.
_NORMAL = 2.0**-126
_LEAST_PLACE = -149
_ENDS, _TIE = int(_BELOW), int(_HALF)
_FEW = 4  # with more sums than this, arrays are faster than Python's floats


class FloatEngine(CodeEngine):
    """Additions by the processor in binary32 or binary64, rounded to nearest even; NaN payloads are unspecified."""

    def __init__(self, sides: Sides, adder: Adder, first: int = 0) -> None:
        """Store the terms as floats.

        If the accumulator's format does not contain the operands' formats, the terms of a sum are rounded to the
        accumulator's format. In this case, the factors of products are not decoded.
        """
        super().__init__(sides, adder, first)
        self.kind = np.dtype(np.float32 if self.format == SINGLE else np.float64)
        self.direct = all(holds(self.format, side.format) for side in sides)
        self.plain = self.direct and (len(sides) == 1 or adder.products == self.format)
        self.fuses = self.direct and self.fma and (self.kind == np.float32 or can_fuse_doubles(sides, self.batch))
        if self.direct:
            self.values = [
                side.codes.view(self.kind) if side.format == self.format else decode(side.codes, side.format, self.kind)
                for side in sides
            ]
        elif len(sides) == 1:
            self.values = [decode(super().leaf(np.arange(self.terms)), self.format, self.kind)]
            self.plain = True

    @staticmethod
    def can(adder: Adder) -> bool:
        """Return whether the processor's additions give the same results as an adder."""
        return adder.accumulator in WORDS and rounds_as_processors(adder.context)

    def blank(self, lanes: int) -> Array:
        """Return an uninitialised array of floats for the numbers of `lanes` lanes."""
        return np.empty((lanes, *self.batch), self.kind)

    def leaf(self, slots: Array) -> Array:
        """Return the terms in these slots, or their rounded products."""
        if not self.plain:
            return decode(super().leaf(slots), self.format, self.kind)
        with np.errstate(all="ignore"):
            terms = reduce(np.multiply, [side[slots] for side in self.values])
        shape = (len(slots), *self.batch)
        return terms if terms.shape == shape else np.broadcast_to(terms, shape)

    def add(self, a: Array, b: Array, ids: Array) -> Array:
        """Return the rounded sums a + b."""
        with np.errstate(all="ignore"):
            return np.add(a, b)

    def subtract(self, a: Array, b: Array, ids: Array) -> Array:
        """Return the rounded differences a − b."""
        with np.errstate(all="ignore"):
            return np.subtract(a, b)

    def fuse(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums plus the products in these slots; one fused multiply-add computes each result."""
        if self.fuses:
            return self.update(sums, slots[None], ids[None])
        return decode(super().fuse(self.codes(sums), slots, ids), self.format, self.kind)

    def add_exactly(self, arguments: Sequence[Argument], ids: Array) -> Array:
        """Return the sums of arguments, computed exactly and rounded once."""
        coded = [(is_term, array if is_term else self.codes(array)) for is_term, array in arguments]
        return decode(super().add_exactly(coded, ids), self.format, self.kind)

    def update(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums after adding the terms one after the other."""
        if not (self.fuses if self.fma else self.plain):
            return super().update(sums, slots, ids)
        if not self.fma and sums.size < FEW and len(slots) >= MANY:
            return self._along(sums, slots)
        # `leaf` and `add` return new arrays, which may be overwritten. A view of the terms must be copied.
        made = sums if sums.base is None and sums.flags.writeable else np.array(sums)
        rows = _rows(slots)
        update(made, self.values[0][rows], self.values[1][rows] if len(self.values) > 1 else None, self.fma)
        return made

    def partial_sums(self, sums: Array, slots: Array, ids: Array) -> Array:
        """Return the sums after each step."""
        if not self.fma and self.plain:
            return self._accumulated(sums, slots)
        if self.fuses and self.kind == np.float32 and sums.size < FEW:
            return fused_trail(sums, self.values[0][slots], self.values[1][slots])
        return super().partial_sums(sums, slots, ids)

    def _walk(self, sums: Array, slots: Array, trail: Array | None = None) -> tuple[Array, int]:
        """Return the sums unchanged, and 0 steps: the loops of the base class need codes, but these sums are floats."""
        return sums, 0

    def doubles(self, numbers: Array) -> Array:
        """Return the floats as binary64."""
        with np.errstate(invalid="ignore"):  # NumPy would warn about signaling NaNs
            return numbers.astype(np.float64)

    def from_doubles(self, numbers: Array) -> Array:
        """Return binary64 numbers as floats of the accumulator's format."""
        with np.errstate(invalid="ignore"):
            return numbers.astype(self.kind)

    def _along(self, sums: Array, slots: Array) -> Array:
        """Add many terms to few sums with NumPy's `accumulate`. Each call adds at most `ROWS` terms, in order."""
        for start in range(0, len(slots), ROWS):
            sums = self._accumulated(sums, slots[start : start + ROWS])[-1]
        return sums

    def _accumulated(self, sums: Array, slots: Array) -> Array:
        terms = self.leaf(slots.reshape(-1)).reshape(*slots.shape, *self.batch)
        with np.errstate(all="ignore"):
            return np.asarray(np.add.accumulate(np.concatenate([sums[None], terms]), axis=0)[1:])

    def codes(self, numbers: Array) -> Array:
        """Return the numbers as codes."""
        return numbers.view(container(self.format))


def engine_for(sides: Sides, adder: Adder, first: int = 0) -> CodeEngine:
    """Return the fastest engine that gives the results of an adder; payloads of NaNs are not specified."""
    return (FloatEngine if FloatEngine.can(adder) else CodeEngine)(sides, adder, first)


def _rows(slots: Array) -> Array | slice:
    """Return the slots as a slice if they are consecutive, so that indexing gives a view, not a copy.

    >>> _rows(np.array([3, 4, 5])), _rows(np.array([3, 5]))
    (slice(3, 6, None), array([3, 5]))
    """
    first, last = int(slots.flat[0]), int(slots.flat[-1])
    together = slots.ndim == 1 and last - first == len(slots) - 1 and bool((np.diff(slots) == 1).all())
    return slice(first, last + 1) if together else slots


def can_fuse_doubles(sides: Sides, batch: tuple[int, ...]) -> bool:
    """Return whether `update` can use FMA in binary64 for these factors and sums of shape `batch`.

    FMA in binary64 needs the C extension. The factors must have one axis more than the sums, and three axes at most.
    """
    return compiled.is_built() and len(batch) <= 2 and all(side.codes.ndim == 1 + len(batch) for side in sides)


def update(sums: Array, x: Array, y: Array | None, fma: bool) -> None:
    """Add x[k]·y[k] (or x[k] if y is None) to `sums` in place, for k in ascending order, rounding to nearest even.

    All arrays are float32, or all are float64; x[k] and y[k] broadcast to the shape of `sums`. Without `fma`, each
    product is rounded before it is added. With `fma`, each sum of a product and a partial sum is rounded once; for
    float64, `can_fuse_doubles` must be true. Payloads of NaNs are not specified.

    >>> sums = np.zeros(1, np.float32)
    >>> update(sums, np.float32([-1 - 2**-22, 1 + 2**-23])[:, None], np.float32([1, 1 + 2**-23])[:, None], True)
    >>> sums.item() == 2**-46
    True
    """
    if y is not None and sums.flags.c_contiguous and compiled.is_built():
        if sums.ndim <= 2:
            compiled.accumulate(sums, x, y, fma)
            return
        if sums.ndim == x.ndim - 1 == y.ndim - 1:
            for i in range(len(sums)):
                a, b = (side[:, i if side.shape[1] > 1 else 0] for side in (x, y))
                update(sums[i], a, b, fma)
            return
    with np.errstate(all="ignore"):
        if fma and y is not None:
            if sums.size <= _FEW:
                sums[...] = fused_trail(sums, x, y)[-1]
            else:
                _fused(sums, x, y)
        elif y is None:
            for each in x:
                np.add(sums, each, out=sums)
        else:
            product = np.empty_like(sums)
            for a, b in zip(x, y, strict=True):
                np.multiply(a, b, out=product)
                np.add(sums, product, out=sums)


def _fused(sums: Array, x: Array, y: Array) -> None:
    """Add the products x[k]·y[k] to `sums` in place, by FMA in binary32.

    Each product is exact in binary64. Each sum is rounded first to binary64 and then to binary32. If these two
    roundings might give another result than a single rounding, the first rounding is to odd.
    """
    wide = sums.astype(np.float64)
    a, b = x.astype(np.float64), y.astype(np.float64)
    total, tie = np.empty_like(wide), np.empty(sums.shape, np.bool_)
    low = np.empty(sums.shape, np.uint32)
    ends = total.view(np.uint32).reshape(*sums.shape, 2)[..., _LOW]
    may_be_tiny = _last_place(x) + _last_place(y) < _LEAST_PLACE
    for p, q in zip(a, b, strict=True):
        np.multiply(p, q, out=total)
        np.add(total, wide, out=total)
        # Rounding the sum to binary64 may have produced a tie between two binary32 numbers.
        np.bitwise_and(ends, _BELOW, out=low)
        np.equal(low, _HALF, out=tie)
        if may_be_tiny:
            tie |= np.abs(total) < _NORMAL
        if tie.any():
            where = np.nonzero(tie)
            p_there, q_there = np.broadcast_to(p, sums.shape)[where], np.broadcast_to(q, sums.shape)[where]
            pair = two_sum(p_there * q_there, wide[where])
            total[where] = np.where(np.isfinite(pair[0]) & (pair[0] != 0), to_odd(pair).view(np.float64), total[where])
        np.copyto(sums, total, casting="same_kind")
        np.copyto(wide, sums)


def fused_trail(sums: Array, x: Array, y: Array) -> Array:
    """Return the values of a few binary32 sums after each fused update, an array of shape (len(x), *sums.shape).

    >>> x = np.float32([[-1 - 2**-22], [1 + 2**-23]])
    >>> fused_trail(np.zeros(1, np.float32), x, np.float32([[1], [1 + 2**-23]])).tolist()
    [[-1.000000238418579], [1.4210854715202004e-14]]
    """
    shape = (len(x), *sums.shape)
    products = np.broadcast_to(x.astype(np.float64) * y.astype(np.float64), shape).reshape(len(x), -1)
    made = np.empty(products.shape, np.float32)
    for i, start in enumerate(sums.reshape(-1).tolist()):
        made[:, i] = _fused_one_by_one(start, products[:, i].tolist())
    return made.reshape(shape)


def _fused_one_by_one(total: float, products: list[float]) -> list[float]:
    """Add products to `total` by FMA, one at a time, in Python's floats; return the total after each addition."""
    put, read = FLOAT.pack, WORD.unpack
    found = []
    for product in products:
        near = product + total
        (word,) = read(put(near))
        if (word & _ENDS == _TIE or -_NORMAL < near < _NORMAL) and near != 0:
            near = to_odd(two_sum(np.array([product]), np.array([total]))).view(np.float64).item()
        total = c_float(near).value  # rounded to binary32
        found.append(total)
    return found


def _last_place(x: Array) -> int:
    """Return e such that all finite numbers of x, in binary32, are multiples of 2^e; 0 if all of them are zero."""
    magnitudes = np.abs(x)
    nonzero = magnitudes[(magnitudes > 0) & np.isfinite(magnitudes)]
    if not len(nonzero):
        return 0
    return max(int(np.frexp(nonzero.min())[1]) - 24, _LEAST_PLACE)
