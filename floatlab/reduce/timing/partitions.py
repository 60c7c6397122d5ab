"""A matrix product computed whole and in three partitions: the time of each, its error, and how far they differ.

The partitions: each element as a dot product; a column at a time; and blocks along the inner dimension, whose partial
products are added up. The work is NumPy's; splitting rows or columns keeps the bits of most libraries, splitting the
inner dimension changes the order of the additions.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import numpy as np

from floatlab.arrays.order import ulp_distance
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import parse_format
from floatlab.fpmode import in_default_mode
from floatlab.record import Record
from floatlab.reduce.results.inputs import check_factors, check_size
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
    """A product computed in one partition: its name, its time, and its errors against the exact product."""

    name: str
    product: Array
    timing: Timing
    largest_error: float
    largest_q: float  # the error in units of u·(|A|·|B|)


def _by_elements(a: Array, b: Array) -> Array:
    columns = np.ascontiguousarray(b.T)
    return np.array([[np.dot(row, column) for column in columns] for row in a], a.dtype).reshape(len(a), len(columns))


def _by_columns(a: Array, b: Array) -> Array:
    return np.stack([a @ column for column in np.ascontiguousarray(b.T)], axis=1)


def _in_blocks(a: Array, b: Array) -> Array:
    made = np.zeros((len(a), b.shape[1]), a.dtype)
    for k in range(0, len(b), BLOCK):
        made += a[:, k : k + BLOCK] @ b[k : k + BLOCK]
    return made


PARTITIONS: dict[str, Callable[[Array, Array], Array]] = {
    "by element": _by_elements,
    "by column": _by_columns,
    "whole": np.matmul,
    "in blocks": _in_blocks,
}


@in_default_mode
def time_partitions(a: object, b: object, runs: int = RUNS) -> tuple[TimedProduct, ...]:
    """Return a product of matrices a (rows, n) and b (n, columns) of one dtype, computed in each partition.

    Raises UnsupportedError for what is no pair of such matrices.

    >>> a, b = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    >>> [(each.name, each.largest_error) for each in time_partitions(a, b, 1)][:2]
    [('by element', 0.0), ('by column', 0.0)]
    """
    x, y = np.asarray(a), np.asarray(b)
    check_factors(x, y)
    if x.dtype != y.dtype or x.dtype.name not in ("float16", "float32", "float64"):
        names = f"{x.dtype.name} and {y.dtype.name}"
        raise UnsupportedError(f"both are of one of float16, float32 and float64, not {names}")
    check_size(len(x), y.shape[1])
    high, low, size = matrix_totals(x, y)
    found = []
    for name, multiply in PARTITIONS.items():
        times = []
        for _ in range(runs):
            began = perf_counter()
            made = multiply(x, y)
            times.append(perf_counter() - began)
        error = np.abs((made.astype(np.float64) - high) - low)
        largest_q = float(np.max(quotients(error, size, parse_format(x.dtype.name)), initial=0))
        found.append(TimedProduct(name, made, Timing(tuple(times)), float(np.max(error, initial=0)), largest_q))
    return tuple(found)


@in_default_mode
def ulps_apart(products: tuple[TimedProduct, ...]) -> list[list[int]]:
    """Return the largest distance in ulps between each two of the products.

    >>> ulps_apart(time_partitions(np.ones((2, 2)), np.ones((2, 2)), 1))[0]
    [0, 0, 0, 0]
    """
    made = [each.product for each in products]
    return [[int(np.max(ulp_distance(one, other), initial=0)) for other in made] for one in made]
