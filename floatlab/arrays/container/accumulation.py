"""Sums, products and matrix products of FloatArrays; the caller chooses the order and the accumulator's format.

Three arguments determine the bits of a reduction:

* `accumulator`: every term, every product of two operands and every partial sum is rounded to this format. The default
  is fp32, or the operands' format if fp32 does not contain that format.
* `schedule`: `serial` is the order of a loop, ((x0 + x1) + x2) + …. `adjacent` adds pairs of neighbours, then pairs of
  neighbouring sums, and so on; a number without a partner waits for the next round. Terms are in C order.
* `format`: the format of the result. The last partial sum or product is rounded to this format. The default is the
  operands' format.

All roundings use the array's context. If this context rounds stochastically, step n of the reduction (counted from 1)
uses the seed plus n. Products are not fused with sums.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypedDict

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.container.coded import Axis, CodedArray, codes_in, finished, shared_context, shared_format, typed
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.dispatch import map_blocks
from floatlab.arrays.lanes.numpy_operations import OPERATIONS, calculator
from floatlab.arrays.lanes.parameters import SINGLE, rounds_as_processors
from floatlab.arrays.operations import operate
from floatlab.arrays.sources import array_format
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT

SCHEDULES = ("serial", "adjacent")
_TILE = 1 << 20  # the largest number of products in memory at once
_NATIVE = {"binary32": np.float32, "binary64": np.float64}


class Summation(TypedDict, total=False):
    """Arguments of a sum or a product: the accumulator's format, the order, and the format of the result."""

    accumulator: object
    schedule: str
    format: object


class Accumulator:
    """Adds, multiplies and divides in one format.

    If the processor's binary32 or binary64 arithmetic gives the right results, numbers are held as floats, else as
    codes.
    """

    def __init__(self, format: object, operands: Format, context: Context | None) -> None:
        """Choose the accumulator's format; `operands` is the format of the operands.

        If `format` is None, the accumulator's format is fp32 if fp32 contains `operands`, and otherwise `operands`.
        """
        if format is None:
            self.format = SINGLE if holds(SINGLE, operands) else operands
        else:
            self.format = array_format(format)
        self.context = context or DEFAULT
        self.native = _NATIVE.get(self.format.name) if rounds_as_processors(self.context) else None
        self.steps = 0
        self._works: dict[str, Callable[..., None]] = {}

    def taken(self, x: CodedArray) -> Array:
        """Return the numbers of an array, each rounded to the accumulator's format."""
        if self.native is not None and holds(self.format, x.format):
            return decode(x.codes, x.format, self.native)
        return self._floats(codes_in(x, self.format, self._next()))

    def _floats(self, codes: Array) -> Array:
        return codes if self.native is None else decode(codes, self.format, self.native)

    def products(self, x: CodedArray, y: CodedArray) -> Array:
        """Multiply two arrays whose shapes broadcast; each product is rounded once to the accumulator's format."""
        if self.native is not None and holds(self.format, x.format) and holds(self.format, y.format):
            return self("multiply", self.taken(x), self.taken(y))
        return self._floats(operate("multiply", (x, y), self.format, context=self._next(), as_codes=True))

    def _next(self) -> Context:
        """Return the context for the next operation of a reduction; stochastic rounding gets a new seed."""
        if not self.context.rounding.is_stochastic:
            return self.context
        self.steps += 1
        return self.context.replace(seed=(self.context.seed + self.steps) % (1 << 64))

    def __call__(self, operation: str, x: Array, y: Array) -> Array:
        """Return the result of one operation on numbers of the accumulator's format, rounded to this format."""
        if self.native is not None:
            with np.errstate(all="ignore"):
                found: Array = getattr(np, operation)(x, y)
            return found
        made = np.empty(np.broadcast_shapes(x.shape, y.shape), x.dtype)
        work = self._works.get(operation)
        if work is None or self.context.rounding.is_stochastic:
            formats = (self.format, self.format)
            work = calculator(OPERATIONS[operation], formats, self.format, self._next(), None, with_flags=False)
            self._works[operation] = work
        map_blocks(work, [x, y], made)
        return made

    def finished(self, found: Array, into: Format, context: Context | None) -> CodedArray:
        """Return accumulated numbers, rounded into the format `into`, as an array with the context `context`."""
        values = found if self.native is not None else decode(found, self.format)
        return finished(values, into, context, self.context)


@in_default_mode
def folded(terms: Array, accumulator: Accumulator, schedule: str, operation: str = "add") -> Array:
    """Add or multiply the terms along the first axis in the order of a schedule; there is at least one term.

    >>> terms = np.array([1.0, 2.0**-24, 2.0**-24, 2.0**-24], np.float32)
    >>> single = Accumulator("fp32", SINGLE, None)
    >>> [float(folded(terms, single, schedule) - 1) * 2**23 for schedule in SCHEDULES]
    [0.0, 1.0]
    """
    _check_schedule(schedule)
    if schedule == "serial":
        if accumulator.native is not None and terms.ndim == 1:
            with np.errstate(all="ignore"):  # NumPy's C loop adds in this order
                whole: Array = getattr(np, operation).accumulate(terms)
            return np.asarray(whole[-1])
        total = terms[0]
        for term in terms[1:]:
            total = accumulator(operation, total, term)
        return np.asarray(total)
    while len(terms) > 1:
        even = len(terms) & ~1
        sums = accumulator(operation, terms[0:even:2], terms[1:even:2])
        terms = np.concatenate([sums, terms[even:]]) if even < len(terms) else sums
    return np.asarray(terms[0])


def _check_schedule(schedule: object) -> None:
    """Raise UnsupportedError for an unknown schedule."""
    if schedule not in SCHEDULES:
        known = " ".join(SCHEDULES)
        raise UnsupportedError(
            f"schedule must be one of {known}, not {quoted(str(schedule))}{guess(str(schedule), list(SCHEDULES))}"
        )


def _first(values: Array, axis: Axis) -> tuple[Array, tuple[int, ...]]:
    """Return the array with the axes `axis` flattened into the first axis, and a shape.

    The shape is the shape of the reduced array with `keepdims`: the axes `axis` are kept, with the length 1.
    """
    axes = tuple(range(values.ndim)) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, values.ndim)
    rest = [i for i in range(values.ndim) if i not in axes]
    kept = tuple(1 if i in axes else length for i, length in enumerate(values.shape))
    moved = values.transpose(*sorted(axes), *rest)
    return moved.reshape(prod(values.shape[i] for i in axes), *(values.shape[i] for i in rest)), kept


@in_default_mode
def reduced(
    x: CodedArray, operation: str, axis: Axis = None, keepdims: bool = False, *,
    mean: bool = False, accumulator: object = None, schedule: str = "serial", format: object = None,
) -> CodedArray:  # fmt: skip
    """Return the sum ("add") or the product ("multiply") along one, several or all axes.

    If there are no terms, the sum is 0 and the product is 1. If `mean` is true, the sum is divided by the count. The
    count and the quotient are rounded to the accumulator's format. Raises UnsupportedError for an unknown schedule or
    the mean of an empty array, and FormatError for an unknown format.

    >>> from floatlab.arrays import FloatArray
    >>> ones = FloatArray(np.ones(1000), "bf16")
    >>> [reduced(ones, "add", accumulator="bf16", schedule=schedule).item() for schedule in SCHEDULES]
    [256.0, 1000.0]
    >>> reduced(FloatArray([1.5, 3.0, 2.0], "e4m3"), "multiply")
    FloatArray(9.0, e4m3fn)
    """
    into = x.format if format is None else array_format(format)
    work = Accumulator(accumulator, x.format, x._context)
    terms, kept = _first(work.taken(x), axis)
    if not len(terms):
        if mean:
            raise UnsupportedError("the mean of an empty array is undefined")
        terms = work.taken(CodedArray(np.full((1, *terms.shape[1:]), float(operation == "multiply")), "fp64"))
    result = folded(terms, work, schedule, operation)
    if mean:
        result = work("divide", result, work.taken(CodedArray(float(len(terms)), "fp64")))
    return work.finished(result.reshape(kept) if keepdims else result, into, x._context)


@in_default_mode
def matmul(
    x: object, y: object, *, accumulator: object = None, schedule: str = "serial", format: object = None
) -> CodedArray:
    """Return the matrix product with `numpy.matmul`'s shapes; `schedule` is the order of the sums.

    Every product and every sum is rounded to the accumulator's format, and the result to `format`. Raises
    UnsupportedError for shapes that do not fit and for an unknown schedule.

    >>> from floatlab.arrays import FloatArray
    >>> x = FloatArray([[200.0, 300.0]], "e4m3")
    >>> matmul(x, x.T), matmul(x, x.T, format="fp32")
    (FloatArray([[nan]], e4m3fn), FloatArray([[119808.0]], binary32))
    """
    _check_schedule(schedule)
    own, context = shared_format((x, y)), shared_context((x, y))
    into = own if format is None else array_format(format)
    work = Accumulator(accumulator, own, context)
    a, b = (CodedArray(typed(each, own, work.context)) for each in (x, y))
    if not a.ndim or not b.ndim:
        raise UnsupportedError("a matrix product takes vectors and matrices; a number is multiplied with *")
    left, right = a[None, :] if a.ndim == 1 else a, b[:, None] if b.ndim == 1 else b
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        batch = None
    if batch is None or left.shape[-1] != right.shape[-2]:
        raise UnsupportedError(f"shapes {a.shape} and {b.shape} do not make a matrix product")
    left = left._same(np.broadcast_to(left.codes, (*batch, *left.shape[-2:])))
    right = right._same(np.broadcast_to(right.codes, (*batch, *right.shape[-2:])))
    zero = work.taken(CodedArray(0.0, "fp64"))
    found = np.full((*batch, left.shape[-2], right.shape[-1]), zero, zero.dtype)
    if left.shape[-1]:
        for index in np.ndindex(*batch):
            _tiled(left[index], right[index], found[index], work, schedule)
    if a.ndim == 1:
        found = found[..., 0, :]
    if b.ndim == 1:
        found = found[..., 0]
    return work.finished(found, into, context)


def _tiled(a: CodedArray, b: CodedArray, found: Array, work: Accumulator, schedule: str) -> None:
    """Multiply two matrices tile by tile, so that not all products are in memory at once; no sum is split."""
    columns = max(1, min(b.shape[1], _TILE // a.shape[1]))
    rows = max(1, _TILE // (a.shape[1] * columns))
    for i in range(0, a.shape[0], rows):
        for j in range(0, b.shape[1], columns):
            x, y = a[i : i + rows].T[:, :, None], b[:, j : j + columns][:, None, :]
            found[i : i + rows, j : j + columns] = folded(work.products(x, y), work, schedule)
