"""Four ways to compute a matrix product on this machine: the time of each, its error, and how far they differ.

Each element as a dot product; a column at a time; the whole at once; and in blocks along the inner dimension, whose
partial products are added up. The work is NumPy's; splitting rows or columns keeps the bits of most libraries,
splitting the inner dimension changes the order of the additions.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from floatlab.arrays.order import ulp_distance
from floatlab.arrays.sources import format_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.fpmode import in_default_mode
from floatlab.record import Record
from floatlab.reduce.results.inputs import check_size
from floatlab.reduce.results.product_error import quotients
from floatlab.reduce.simulate.exact_sum import matrix_totals

BLOCK = 64
RUNS = 5


class Timing(Record):
    """The seconds of each run, in order."""

    runs: tuple[float, ...]

    @property
    def total(self) -> float:
        """All runs together."""
        return sum(self.runs)

    @property
    def average(self) -> float:
        """One run, on average."""
        return self.total / len(self.runs)

    @property
    def cumulative(self) -> tuple[float, ...]:
        """The time that had passed at the end of each run.

        >>> Timing((1.0, 2.0, 4.0)).cumulative
        (1.0, 3.0, 7.0)
        """
        return tuple(np.cumsum(self.runs).tolist())


class TimedProduct(Record):
    """One way: its name, its product, its time, and its errors against the exact product."""

    name: str
    product: Array
    timing: Timing
    largest_error: float
    largest_q: float  # the error in units of u·(|A|·|B|)


def _by_elements(a: Array, b: Array) -> Array:
    made = np.empty((len(a), b.shape[1]), a.dtype)
    columns = np.ascontiguousarray(b.T)
    for i, row in enumerate(a):
        for j, column in enumerate(columns):
            made[i, j] = np.dot(row, column)
    return made


def _by_columns(a: Array, b: Array) -> Array:
    return np.stack([a @ column for column in np.ascontiguousarray(b.T)], axis=1)


def _in_blocks(a: Array, b: Array) -> Array:
    made = np.zeros((len(a), b.shape[1]), a.dtype)
    for k in range(0, len(b), BLOCK):
        made += a[:, k : k + BLOCK] @ b[k : k + BLOCK]
    return made


WAYS: dict[str, Callable[[Array, Array], Array]] = {
    "by element": _by_elements,
    "by column": _by_columns,
    "whole": np.matmul,
    "in blocks": _in_blocks,
}


@in_default_mode
def four_ways(
    a: object, b: object, runs: int = RUNS, started: Callable[[str], None] | None = None
) -> tuple[TimedProduct, ...]:
    """Return a product of matrices a (rows, n) and b (n, columns) of one dtype, computed in four ways.

    `started` is told the name of each way as it begins. Raises UnsupportedError for what is no pair of such matrices.

    >>> a, b = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    >>> [(way.name, way.largest_error) for way in four_ways(a, b, 1)][:2]
    [('by element', 0.0), ('by column', 0.0)]
    """
    x, y = np.asarray(a), np.asarray(b)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        raise UnsupportedError(f"shapes do not go together: {x.shape} times {y.shape}")
    if x.dtype != y.dtype or x.dtype.name not in ("float16", "float32", "float64"):
        raise UnsupportedError(
            f"both are of one of float16, float32 and float64, not {x.dtype.name} and {y.dtype.name}"
        )
    check_size(len(x), y.shape[1])
    format = format_of(x.dtype)
    assert format is not None
    high, low, size = matrix_totals(x, y)
    found = []
    for name, way in WAYS.items():
        if started is not None:
            started(name)
        times = []
        for _ in range(runs):
            began = perf_counter()
            made = way(x, y)
            times.append(perf_counter() - began)
        error = np.abs((made.astype(np.float64) - high) - low)
        q = quotients(error, size, format)
        most, most_q = (float(each.max()) if each.size else 0.0 for each in (error, q))
        found.append(TimedProduct(name, made, Timing(tuple(times)), most, most_q))
    return tuple(found)


@in_default_mode
def apart(ways: tuple[TimedProduct, ...]) -> list[list[int]]:
    """Return the largest distance in ulps between each two of the products.

    >>> apart(four_ways(np.ones((2, 2)), np.ones((2, 2)), 1))[0]
    [0, 0, 0, 0]
    """

    def largest(x: Array, y: Array) -> int:
        return int(np.max(ulp_distance(x, y), initial=0))

    return [[largest(one.product, other.product) for other in ways] for one in ways]
