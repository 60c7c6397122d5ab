"""Matrix products of higher precision than binary64, and the errors of computed products, in ulps and as q.

`quotients` defines q.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.reduce.simulate.exact_sum import matrix_totals

MOST_EXACT = 1 << 28  # if a product has more multiplications than this, only some of its rows are computed exactly


def quotients(difference: Array, size: Array, format: Format) -> Array:
    """Return q = |difference| / (u·size) of each element; 0/0 gives 0. Here u is half an ulp of 1 in the format.

    >>> from floatlab.formats import parse_format
    >>> quotients(np.array([2.0**-24, 0]), np.array([1.0, 0]), parse_format("fp32")).tolist()
    [1.0, 0.0]
    """
    with np.errstate(all="ignore"):
        return np.where((difference == 0) & (size == 0), 0.0, np.abs(difference) / (2.0**-format.precision * size))


class ProductErrors(Record):
    """Sizes of the errors of a product's elements, in ulps of the element and as q = |error| / (u·Σ|a·b|)."""

    looked_at: int  # number of measured elements; those whose error or q is not finite are left out
    nearest: int  # number of elements whose error is at most half an ulp
    largest: float
    rms: float
    q_largest: float
    q_rms: float
    worst: tuple[int, ...]  # indices of elements in C order, those with the largest errors first


class ExactProduct:
    """The product of x (rows, n) and y (n, columns), to about twice the digits of binary64.

    If the product is large, only a sample of its rows is computed.
    """

    def __init__(self, x: Source, y: Source, format: Format) -> None:
        """Compute the product by `matrix_totals`. The methods read their arguments as codes of `format`."""
        (rows, n), columns = x.codes.shape, y.codes.shape[1]
        self.format, self.shape = format, (rows, columns)
        most = min(rows, max(1, MOST_EXACT // max(1, n * columns)))
        self.rows = spread_indices(rows, most)
        with np.errstate(all="ignore"):
            self._high, self._low, self._size = matrix_totals(
                decode(x.codes[self.rows], x.format), decode(y.codes, y.format)
            )

    def _values(self, codes: Array) -> Array:
        return np.asarray(decode(codes.reshape(self.shape)[self.rows], self.format, np.float64))

    def errors(self, codes: Array, worst: int = 5) -> ProductErrors:
        """Return the errors of a product (given as codes), and the indices of up to `worst` elements.

        These elements have the largest errors in ulps.
        """
        fmt, columns = self.format, self.shape[1]
        with np.errstate(all="ignore"):
            values = self._values(codes)
            error = (values - self._high) - self._low
            exponent = np.where(values == 0, fmt.emin, np.maximum(np.frexp(values)[1] - 1, fmt.emin))
            ulps = np.abs(np.ldexp(error, fmt.precision - 1 - exponent))
            q = np.where(error == 0, 0.0, quotients(error, self._size, fmt))
        fine = np.isfinite(ulps) & np.isfinite(q)
        if not fine.any():
            return ProductErrors(0, 0, 0.0, 0.0, 0.0, 0.0, ())
        sized = np.where(fine, ulps, -1.0).reshape(-1)
        first = np.argsort(-sized, kind="stable")[:worst]
        places = tuple(int(self.rows[i // columns] * columns + i % columns) for i in first.tolist() if sized[i] > 0)
        ulps, q = ulps[fine], q[fine]
        nearest, largest, q_largest = int((ulps <= 0.5).sum()), float(ulps.max()), float(q.max())
        return ProductErrors(
            ulps.size, nearest, largest, root_mean_square(ulps), q_largest, root_mean_square(q), worst=places
        )

    def apart(self, first: Array, second: Array) -> tuple[float, float]:
        """Compare two products, given as codes; return the root mean square and the largest value of q.

        Elements whose q is not finite are ignored.

        >>> from floatlab.arrays.sources import source_of
        >>> x, y, near = (source_of(np.float32([[each]])) for each in (3, 2, 6 + 2**-20))
        >>> ExactProduct(x, y, x.format).apart(source_of(np.float32([[6]])).codes, near.codes)
        (2.6666666666666665, 2.6666666666666665)
        """
        with np.errstate(all="ignore"):
            q = quotients(self._values(first) - self._values(second), self._size, self.format)
        q = q[np.isfinite(q)]
        return (root_mean_square(q), float(q.max())) if q.size else (0.0, 0.0)


def root_mean_square(x: Array) -> float:
    """Return √(mean x²) of nonnegative numbers; the result is correct even if squares overflow or underflow."""
    _, exponent = np.frexp(x.max())
    return float(np.ldexp(np.sqrt(np.mean(np.ldexp(x, -exponent) ** 2)), exponent))


def spread_indices(count: int, most: int) -> Array:
    """Return at most `most` indices below `count`, spread evenly from the first to the last.

    >>> spread_indices(10, 3).tolist()
    [0, 4, 9]
    """
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
