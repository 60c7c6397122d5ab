"""The exact product of two matrices, and limits for the rounding errors of a computed product.

When n terms are added one after the other, each step errs by about a third of an ulp of the partial sum. Let P be the
result, and T the sum of the squared terms. Partial sum k is about P·k/n plus a random deviation, so the squares of all
partial sums add up to about n·(P²/3 + T/6). This gives the standard deviation of the error, called sigma. The limit is
a multiple of sigma. For binary32 and binary64, a simulation on the given inputs may increase this multiple. For
elements whose sums were simulated in several orders (see `faults.orders`), the limit is at least a multiple of the
largest simulated error. No limit exceeds 2·n·u·Σ|x·y|: to first order, no order of addition and no rounding direction
causes larger errors (Higham, *Accuracy and Stability of Numerical Algorithms*, section 3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2

import numpy as np

from floatlab.arrays.lanes.pairs import two_product, two_sum
from floatlab.arrays.types import Array, DType
from floatlab.formats import Format
from floatlab.record import Individual, Record
from floatlab.reduce.results.product_error import spread_indices

_STEP = 0.15  # the mean square error of one rounding, in units of (u·value)²
# The limit is at least this many sigmas: unusually large partial sums cause errors of 10 sigmas in 1 element of 10,000.
_LEAST_FACTOR = 16.0
_ROOM = 3.0  # the limit is at least this many times the largest simulated error
_ROWS, _COLUMNS = 16, 32  # the simulation uses at most this many rows and columns
_SLICES = 4  # each input is divided into this many slices of digits
# `tick` is called after each block of at least _ROWS_AT_ONCE rows and about _AT_ONCE multiply-adds.
_ROWS_AT_ONCE, _AT_ONCE = 128, 1 << 31
# If slices are too inexact for some elements, their terms are added one by one, about this many terms at once.
_EXACT_ELEMENTS = 1 << 22
_BITS, _LEAST = 53, -1074  # the precision of binary64, and the exponent of its smallest number
_ONE_TERM = 1.5  # an element has about one nonzero term if (Σ|x·y|)² is at most this many times Σ(x·y)²
_SUMS = 8  # a model adds at most this many products of parts of the inputs
_LARGER = 1.1  # rounding the inputs or the sums increases Σ|x·y| at most by this factor


class Totals(Individual):
    """The exact product of two matrices, and sums over the terms x·y of each element.

    The exact product is `product` + `missed`. If `missed` is None, the product that was computed in binary64
    (`product`) is used instead. `size` is Σ|x·y|, and `squares` is Σ(x·y)². Every partial sum of an element is a
    multiple of its `grain`, so sums with a large grain are exact. `grain` is None if it was not computed. `terms` is
    the number of terms of each element. `simulated` is the largest error of each element in simulated orders of
    addition, as a multiple of the unit roundoff. In elements that were not simulated, `simulated` is 0. If no element
    was simulated, `simulated` is None. If a model makes terms far smaller, `changed` holds the totals with the sizes of
    the changed terms (see `shrinking`).
    """

    product: Array
    missed: Array | None
    size: Array
    squares: Array
    grain: Array | None
    terms: int
    simulated: Array | None = None
    changed: Totals | None = None

    def terms_of(self, product: Array | None) -> Totals:
        """Return the totals with the sizes of the terms of a model's product, or of the exact product (None)."""
        return self if product is None or self.changed is None else self.changed

    def take(self, rows: Array, columns: Array) -> Totals:
        """Return the totals of the elements at the intersections of some rows and columns."""
        index = np.ix_(rows, columns)
        missed, grain, simulated = (
            None if part is None else part[index] for part in (self.missed, self.grain, self.simulated)
        )
        changed = None if self.changed is None else self.changed.take(rows, columns)
        size, squares = self.size[index], self.squares[index]
        return Totals(self.product[index], missed, size, squares, grain, self.terms, simulated, changed)

    @property
    def have_one_term(self) -> Array:
        """The mask of the elements whose sum has no terms, or consists almost entirely of one term."""
        one: Array = self.size**2 <= _ONE_TERM * self.squares
        return one

    def off_grid(self, values: Array) -> Array:
        """Return the mask of the finite values that are not multiples of the smallest grain.

        A grain is a number of which all terms x·y of an element are multiples. All sums of these terms are multiples of
        the grain, too, even after rounding. A value that is not a multiple shows that the inputs were changed, for
        example multiplied by a scale and rounded again.
        """
        grain = np.zeros(0) if self.grain is None else self.grain[(self.grain > 0) & np.isfinite(self.grain)]
        if not grain.size:
            return np.zeros(values.shape, np.bool_)
        with np.errstate(all="ignore"):
            off: Array = np.remainder(values, grain.min()) != 0
        return off & np.isfinite(values)

    def error(self, values: Array, product: Array | None = None) -> Array:
        """Return `values` − `product`.

        The default of `product` is the exact product: `self.product`, plus `self.missed` if this is not None.
        """
        with np.errstate(all="ignore"):
            if product is not None:
                return values - product
            error: Array = values - self.product
            return error if self.missed is None else error - self.missed


def multiply_exactly(x: Array, y: Array, precise: bool, tick: Callable[[], None] | None = None) -> Totals:
    """Return the totals of the product of float64 matrices.

    The product is computed in binary64, or with many more digits if `precise` is true. Large products are computed in
    blocks of rows, and `tick` is called after each block.
    """
    with np.errstate(all="ignore"):
        size = _by_rows(np.abs(x), np.abs(y), tick)
        squares = _by_rows(x * x, y * y, tick)
        high, low = _in_slices(x, y, size, tick) if precise else (_by_rows(x, y, tick), None)
    return Totals(high, low, size, squares, _grain(x, y, tick), x.shape[1])


def _by_rows(x: Array, y: Array, tick: Callable[[], None] | None) -> Array:
    step = max(_ROWS_AT_ONCE, _AT_ONCE // max(1, y.size))
    if tick is None or len(x) <= step:
        return np.asarray(x @ y)
    made = np.empty((x.shape[0], y.shape[1]))
    for low in range(0, len(x), step):
        np.matmul(x[low : low + step], y, out=made[low : low + step])
        tick()
    return made


def _grain(x: Array, y: Array, tick: Callable[[], None] | None) -> Array:
    """Return the grain of each element: a number of which all products x·y of the element are multiples."""
    with np.errstate(all="ignore"):
        return _by_rows(_last_place(x, 1), _last_place(y, 0), tick)


def _last_place(x: Array, axis: int) -> Array:
    """Return the weight of the last nonzero bit in each row (axis 1) or column (axis 0), or 0 if all numbers are 0."""
    fraction, exponent = np.frexp(x)
    digits = np.ldexp(fraction, _BITS).astype(np.int64)
    weight = np.ldexp((digits & -digits).astype(np.float64), exponent - _BITS)
    least: Array = np.where(weight == 0, np.inf, weight).min(axis=axis, keepdims=True)
    return np.where(np.isfinite(least), least, 0.0)


def _in_slices(x: Array, y: Array, size: Array, tick: Callable[[], None] | None) -> tuple[Array, Array]:
    """Return the product as an unevaluated sum high + low.

    The inputs are divided into slices with few digits, so that binary64 adds the products of two slices exactly.

    K. Ozaki, T. Ogita, S. Oishi, S. M. Rump, *Error-free transformations of matrix multiplication by using fast
    routines of matrix multiplication and its applications* (Numerical Algorithms 59, 2012).
    """
    n = x.shape[1]
    digits = (_BITS - ceil(log2(max(n, 2)))) // 2
    scales = [_scale(side, axis) for side, axis in ((x, 1), (y, 0))]
    parts = [_sliced(side / scale, digits) for side, scale in zip((x, y), scales, strict=True)]
    high, low = np.zeros(size.shape), np.zeros(size.shape)
    for i, a in reversed(list(enumerate(parts[0]))):
        for j, b in enumerate(parts[1]):
            if i + j < _SLICES:
                high, rest = two_sum(high, _by_rows(a, b, tick))
                low += rest
    outer = scales[0] * scales[1]
    with np.errstate(all="ignore"):
        high, low = two_sum(high, low)
        high, low = high * outer, low * outer
        unsure = 4 * n * outer * 2.0 ** (-digits * _SLICES) > 2.0**-60 * size
    places = np.argwhere(unsure & (size > 0))
    for start in range(0, len(places), max(1, _EXACT_ELEMENTS // n)):
        r, c = places[start : start + max(1, _EXACT_ELEMENTS // n)].T
        high[r, c], low[r, c] = _added(x[r].T, y[:, c])
    return high, low


def _scale(x: Array, axis: int) -> Array:
    most = np.abs(x).max(axis=axis, keepdims=True)
    return np.ldexp(1.0, np.frexp(np.where(most == 0, 1.0, most))[1])


def _sliced(x: Array, digits: int) -> list[Array]:
    """Divide numbers of magnitude below 1 into slices: each slice holds the next `digits` bits of the fraction."""
    slices, rest = [], x
    for i in range(1, _SLICES + 1):
        big = 1.5 * 2.0 ** (_BITS - 1 - digits * i)
        part = (rest + big) - big
        slices.append(part)
        rest = rest - part
    return slices


def _added(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the sum of x·y in each column, as an unevaluated sum high + low."""
    high, low = np.zeros(x.shape[1]), np.zeros(x.shape[1])
    with np.errstate(all="ignore"):
        for a, b in zip(x, y, strict=True):
            product, missed = two_product(a, b)
            high, rest = two_sum(high, product)
            low = low + (rest + missed)
        return two_sum(high, low)


class Noise(Record):
    """The size of the rounding errors of sums in an accumulator format.

    `u` is the unit roundoff of the format, and `quantum` is its smallest positive number. `factor` is the limit of an
    error, in sigmas (expected root mean square errors).
    """

    u: float
    quantum: float
    factor: float = _LEAST_FACTOR

    def sigma(self, totals: Totals, product: Array | None = None) -> Array:
        """Return the expected root mean square error of each element."""
        p, totals = totals.product if product is None else product, totals.terms_of(product)
        n = totals.terms
        with np.errstate(all="ignore"):
            mean = _STEP * (n * (p * p / 3 + totals.squares / 6) + totals.squares + p * p)
            sigma: Array = self.u * np.sqrt(mean) + self.quantum * np.sqrt(n) / 2
        return sigma

    def limit(self, totals: Totals, product: Array | None = None, factor: float | None = None) -> Array:
        """Return the error limit of each element: errors up to this limit are attributed to rounding.

        The limit is 0 if the sum of an element is exact in every order of addition.
        """
        factor = self.factor if factor is None else factor
        with np.errstate(all="ignore"):
            limit = factor * self.sigma(totals, product)
            made = totals.terms_of(product)
            if made.simulated is not None:
                limit = np.maximum(limit, _ROOM * self.u * made.simulated)
            limit = np.minimum(limit, self.most(made, _SUMS if product is not None else 0))
            least: Array = np.where(self.is_exact(totals, product), 0.0, limit)
        return least

    def most(self, totals: Totals, more: int = 0) -> Array:
        """Return the largest possible error of each element, to first order, if its sum has `more` additional terms."""
        n = totals.terms + more
        with np.errstate(all="ignore"):
            # The bound is twice n·u·Σ|x·y|, because sums may be rounded in one direction.
            bound: Array = 2 * n * self.u * totals.size * (1 + n * self.u) + n * self.quantum
        return bound

    def is_exact(self, totals: Totals, product: Array | None = None) -> Array:
        """Return the mask of elements whose partial sums are certainly exact in every order of addition."""
        if totals.grain is None:
            return np.zeros(totals.size.shape, np.bool_)
        with np.errstate(all="ignore"):
            exact: Array = (totals.size * self.u <= totals.grain) & (totals.grain >= self.quantum)
            exact |= totals.size == 0  # sums of zeros are exact
            if product is not None:  # a model rounds the inputs or the sums of blocks, so its terms may be larger
                exact &= totals.size * self.u * _LARGER <= totals.grain
                exact &= product != 0  # 0 is a multiple of every grain, so it is no evidence
                # Sums of scaled numbers are multiples of the grain only by chance, so all elements must be multiples.
                exact &= (np.remainder(product, totals.grain) == 0)[exact].all()
        return exact


def noise_of(format: Format) -> Noise:
    """Return the `Noise` of sums in a format, before any simulation."""
    return Noise(2.0**-format.precision, 2.0**format.qmin)


def calibrated(noise: Noise, x: Array, y: Array, totals: Totals, kind: DType) -> Noise:
    """Return `noise`, with a larger factor if serial sums of these inputs have unusually large errors.

    The sums are simulated in the dtype `kind`, with rounded products, for a sample of rows and columns.
    """
    rows, columns = (spread_indices(n, most) for n, most in ((x.shape[0], _ROWS), (y.shape[1], _COLUMNS)))
    part = totals.take(rows, columns)
    a, b = x[rows].astype(kind), y[:, columns].astype(kind)
    total = np.zeros(part.size.shape, kind)
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]):
            total = total + a[:, k : k + 1] * b[k : k + 1]
        z = np.abs(part.error(total.astype(np.float64))) / noise.sigma(part)
    z = z[np.isfinite(z)]
    return noise.replace(factor=max(noise.factor, _ROOM * float(z.max()))) if z.size else noise


def half_ulp(values: Array, format: Format) -> Array:
    """Return half an ulp of each value, the largest error of rounding to nearest; 0 for NaN and infinity."""
    with np.errstate(all="ignore"):
        least = format.emin + 1
        exponent = np.where(values == 0, least, np.maximum(np.frexp(values)[1], least)) - format.precision - 1
        exponent = np.maximum(exponent, _LEAST)  # half of binary64's smallest number is not a number of binary64
    half: Array = np.where(np.isfinite(values), np.ldexp(1.0, exponent), 0.0)
    return half
