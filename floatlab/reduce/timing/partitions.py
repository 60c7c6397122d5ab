"""Computes a matrix product whole and in four partitions; measures the times, errors and differences of the products.

There are four partitions: each element as a dot product; one row at a time; one column at a time; and blocks along the
inner dimension, whose products are added. NumPy multiplies. Splitting by rows or columns leaves the terms of each sum
together, but NumPy may add these terms in another order, because its library may use other routines for other shapes.
Splitting the inner dimension changes the order of the additions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from floatlab.arrays.types import Array
from floatlab.arrays.ulps import ulp_distance
from floatlab.errors import UnsupportedError
from floatlab.formats import parse_format
from floatlab.fpmode import in_default_mode
from floatlab.record import Record
from floatlab.reduce.results.inputs import check_factors, check_size
from floatlab.reduce.results.product_error import quotients
from floatlab.reduce.simulate.exact_sum import matrix_totals
from floatlab.reduce.timing.measurement import (
    RUNS,
    Ranking,
    Timing,
    check_counts,
    operations_of,
    rank,
    take_turns,
    timed,
)

BLOCK = 64


class TimedProduct(Record):
    """A product computed whole or with one partition: its name, its times, and its largest errors."""

    name: str
    product: Array
    first: float  # seconds of the first run, which allocates memory and starts threads; `timing` does not include it
    timing: Timing
    gigaflops: float | None  # 2 · rows · terms · columns operations, divided by the median time, in 10⁹ per second
    largest_error: float
    largest_q: float  # the largest |error| / (u·(|A|·|B|)) of an element


class PartitionComparison(Record):
    """One product, computed whole and with each partition."""

    shape: tuple[int, int, int]  # rows, terms, columns
    block: int  # number of terms in a block
    asked: int  # number of runs that were requested
    products: tuple[TimedProduct, ...]

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the timing before the requested number of runs."""
        return self.ranking.runs < self.asked

    @property
    def ranking(self) -> Ranking:
        """The ranking of the whole product and the partitions by their times, as far as the runs distinguish them."""
        return rank({each.name: each.timing for each in self.products})

    @property
    def nearest(self) -> tuple[str, ...]:
        """The names of all products that have the smallest `largest_q`: "whole", or names of partitions."""
        least = min(each.largest_q for each in self.products)
        return tuple(each.name for each in self.products if each.largest_q == least)


def _by_elements(a: Array, b: Array) -> Array:
    columns = np.ascontiguousarray(b.T)
    return np.array([[np.dot(row, column) for column in columns] for row in a], a.dtype).reshape(len(a), len(columns))


def _by_rows(a: Array, b: Array) -> Array:
    return np.stack([row @ b for row in a])


def _by_columns(a: Array, b: Array) -> Array:
    return np.stack([a @ column for column in np.ascontiguousarray(b.T)], axis=1)


def _in_blocks(a: Array, b: Array, block: int = BLOCK) -> Array:
    made = np.zeros((len(a), b.shape[1]), a.dtype)
    for k in range(0, len(b), block):
        made += a[:, k : k + block] @ b[k : k + block]
    return made


PARTITIONS: dict[str, Callable[[Array, Array], Array]] = {
    "by element": _by_elements,
    "by row": _by_rows,
    "by column": _by_columns,
    "whole": np.matmul,
    "in blocks": _in_blocks,
}


@in_default_mode
def time_partitions(
    a: object,
    b: object,
    runs: int = RUNS,
    block: int = BLOCK,
    started: Callable[[int, str], Callable[[int], None]] | None = None,
    keep_interrupted: bool = False,
) -> PartitionComparison:
    """Multiply matrices a (rows, n) and b (n, columns) of one dtype, whole and in each partition; return the timings.

    Parameters
    ----------
    a, b
        Matrices of float16, float32 or float64.
    runs
        The number of timed runs of each partition, which come after a first run. The partitions take turns.
    block
        The number of terms per block. With 1, each partial product is a column times a row.
    started
        A function that is called with the number of products and the word "products". It returns a function that counts
        finished products.
    keep_interrupted
        Whether Ctrl-C only ends the timing, so that the complete rounds are returned. Before the first round is
        complete, Ctrl-C always raises KeyboardInterrupt.

    Raises
    ------
    UnsupportedError
        If a and b are not matrices, if their shapes do not match or their product is empty or too large, if their
        dtypes differ or are not among these three, or if `runs` or `block` is below 1.

    Examples
    --------
    >>> a, b = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    >>> [(each.name, each.largest_error) for each in time_partitions(a, b, 1).products][:2]
    [('by element', 0.0), ('by row', 0.0)]
    """
    x, y = np.asarray(a), np.asarray(b)
    check_factors(x, y)
    check_counts(runs=runs, block=block)
    if x.dtype != y.dtype or x.dtype.name not in ("float16", "float32", "float64"):
        names = f"{x.dtype.name} and {y.dtype.name}"
        raise UnsupportedError(f"both must be float16, float32 or float64, and equal, not {names}")
    if not x.size or not y.size:
        raise UnsupportedError(f"a product of shapes {x.shape} and {y.shape} has nothing to multiply")
    check_size(len(x), y.shape[1])
    ways = PARTITIONS | {"in blocks": partial(_in_blocks, block=block)}
    add = (lambda _: None) if started is None else started(len(ways) * (1 + runs), "products")

    def measure(name: str) -> tuple[Array, float]:
        made = timed(ways[name], x, y)
        add(1)
        return made

    first = {name: measure(name) for name in ways}
    times = take_turns([*ways], lambda name: measure(name)[1], runs, keep_interrupted)
    high, low, size = matrix_totals(x, y)
    shape = (*x.shape, y.shape[1])
    found = []
    for name, (made, seconds) in first.items():
        error = np.abs((made.astype(np.float64) - high) - low)
        largest_q = float(np.max(quotients(error, size, parse_format(x.dtype.name)), initial=0))
        timing = Timing(tuple(times[name]))
        rate = timing.gigaflops(operations_of(shape))
        found.append(TimedProduct(name, made, seconds, timing, rate, float(np.max(error, initial=0)), largest_q))
    return PartitionComparison(shape, block, runs, tuple(found))


@in_default_mode
def ulps_apart(products: tuple[TimedProduct, ...]) -> list[list[int]]:
    """Return the largest difference in ulps between every two products, as a table: entry [i][j] is for i and j.

    >>> ulps_apart(time_partitions(np.ones((2, 2)), np.ones((2, 2)), 1).products)[0]
    [0, 0, 0, 0, 0]
    """
    made = [each.product for each in products]
    return [[int(np.max(ulp_distance(one, other), initial=0)) for other in made] for one in made]
