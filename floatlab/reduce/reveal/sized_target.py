"""Call a target with operands of one shape and memory layout, and read the numbers that it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import TypeVar

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, native_dtype
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats.catalog import format_called
from floatlab.fpmode import DefaultMode, rounds_to_nearest
from floatlab.reduce.reveal.targets import Target
from floatlab.reduce.timing.devices import Foreign

Found = TypeVar("Found")
MOST_TERMS = 1 << 16
MOST_ELEMENTS = 1 << 26
# Memory layouts of the operands of a matrix product: matrices in C order, or transposed views of them (.T). In the last
# two layouts, both operands are views of one matrix; many libraries have a separate routine for this case.
LAYOUTS = ("A@B", "A.T@B", "A@B.T", "A.T@B.T", "A@A.T", "A.T@A")


class SizedTarget:
    """A target, the type and number of its terms, and the shape and layout of its operands.

    `shape` is the shape of the results: () for sums and dot products, (rows,) or (rows, columns) for products. Operands
    are prepared in the NumPy dtype `carrier`: the dtype of their format, or float32 if NumPy has no dtype for it
    (float32 contains all such formats). If `mode` is given, the target runs in the caller's floating-point mode: the
    mode that was set before `mode`. In a batch, all products have the same right operand, and `shape` has the rows of
    all products together: rows = number of products × rows of each product.
    """

    def __init__(
        self,
        target: Target,
        terms: int,
        dtype: str,
        shape: tuple[int, ...] | None = None,
        layout: str = LAYOUTS[0],
        mode: DefaultMode | None = None,
        batch: int = 1,
    ) -> None:
        """Check and store the arguments; raises UnsupportedError. By default, `shape` is `target.shape`."""
        if not isinstance(terms, int) or isinstance(terms, bool) or not 1 <= terms <= MOST_TERMS:
            raise UnsupportedError(f"n must be a number of terms from 1 to {MOST_TERMS:,}, not {terms!r}")
        if not isinstance(dtype, str):
            raise UnsupportedError(f"dtype must be a name such as float32, not {type(dtype).__name__}")
        if layout not in LAYOUTS:
            near = guess(str(layout), [*LAYOUTS])
            raise UnsupportedError(f"layout must be one of {' '.join(LAYOUTS)}, not {quoted(str(layout))}{near}")
        if layout != LAYOUTS[0] and target.kind != "matmul":
            raise UnsupportedError(f"only products of two matrices have a layout; {target.name} has other operands")
        self._mode, self.batch, self.products = mode, batch, 0
        self.before_product: Callable[[], object] = lambda: None  # it may raise an exception to stop the search
        if batch > 1 and layout != LAYOUTS[0]:
            raise UnsupportedError(f"the layout of a batch of products must be {LAYOUTS[0]}, not {layout}")
        self.target, self.terms, self.layout = target, terms, layout
        self.dtype = target.dtype(dtype)
        format = format_called(str(self.dtype).rpartition(".")[2])
        assert format is not None
        self.format = format
        self.shape = target.shape if shape is None else shape
        self.carrier = self.dtype if isinstance(self.dtype, np.dtype) else native_dtype(format) or np.dtype(np.float32)
        self.is_gram = "B" not in layout
        if self.is_gram and len(set(self.shape)) > 1:
            raise UnsupportedError(
                f"{layout} must have equally many rows and columns, not {self.shape[0]} × {self.shape[1]}"
            )

    def resized(self, terms: int, shape: tuple[int, ...], layout: str) -> SizedTarget:
        """Return the same target for another number of terms, shape and layout, and for a single product."""
        other = SizedTarget(self.target, terms, self.format.name, shape, layout, self._mode)
        other.before_product = self.before_product
        return other

    @property
    def matrix_shape(self) -> tuple[int, int]:
        """The numbers of rows and columns of a result; a vector counts as one column."""
        rows, *columns = self.shape
        return rows, columns[0] if columns else 1

    @property
    def work(self) -> int:
        """The number of multiply-adds in one result."""
        return self.terms * int(np.prod(self.shape, dtype=np.int64))

    def multiply(self, x: Array, y: Array) -> Source:
        """Return the codes of the product of x (rows, terms) and y (terms, columns) or (terms,).

        Both operands have the dtype `carrier`. y is ignored if one matrix is both operands. Raises UnsupportedError if
        the target raises an exception or returns another shape.
        """
        array, dtype, target = self.target.device.array, self.dtype, self.target
        self.before_product()
        self.products += 1
        with target.device.scope(dtype), np.errstate(all="ignore"):  # huge terms overflow in some functions
            if self.batch > 1:
                whole = np.broadcast_to(y, (self.batch, *y.shape))
                return self.apply(array(x.reshape(self.batch, -1, self.terms), dtype), array(whole, dtype))
            if self.layout in ("A.T@B", "A.T@B.T", "A.T@A"):
                stored = array(x.T, dtype)
                left, right = stored.T, stored
            else:
                left = stored = array(x, dtype)
                right = stored.T if self.is_gram else stored
            if not self.is_gram:
                turned = self.layout.endswith("B.T")
                right = array(y.T if turned else y, dtype)
                right = right.T if turned else right
            return self.apply(left, right)

    def apply(self, left: Foreign, right: Foreign) -> Source:
        """Return the codes of the target's result for operands of its library; raises what `multiply` raises."""
        target = self.target
        made = target.fetch(self._in_callers_mode(lambda: target.call(left, right)))
        wanted = self.shape if self.batch == 1 else (self.batch, self.shape[0] // self.batch, *self.shape[1:])
        if made.codes.shape != wanted:
            raise UnsupportedError(f"{target.name} returns the shape {made.codes.shape}, not {wanted}")
        # The codes are copied, because the target may return the same memory each time.
        return Source(made.codes.reshape(self.shape).copy(), made.format)

    def sums(self, vectors: Iterable[Array], other: Array) -> Source:
        """Return the codes of the sum of each vector, or of its dot product with `other`. Each vector takes one call.

        Vectors have the dtype `carrier`. The vectors must be new arrays, because the target may write into them.
        """
        array, dtype, call = self.target.device.array, self.dtype, self.target.call

        def results() -> list[Foreign]:
            if self.target.device.library == "numpy":  # the target may write into its arguments
                if self.target.kind == "sum":
                    return [call(vector) for vector in vectors]
                if self.target.name.startswith("numpy."):  # but NumPy's own functions do not
                    return [call(vector, other) for vector in vectors]
                return [call(vector, other.copy()) for vector in vectors]
            if self.target.kind == "sum":
                return [call(array(vector, dtype)) for vector in vectors]
            return [call(array(vector, dtype), array(other, dtype)) for vector in vectors]

        with self.target.device.scope(dtype), np.errstate(all="ignore"):
            made = self._in_callers_mode(results)
            if isinstance(made[0], np.generic) and len(set(map(type, made))) == 1:
                return self.target.fetch(np.array(made))  # one array is converted faster than many numbers
            found = [self._scalar(each) for each in made]
        return Source(np.concatenate([each.codes.reshape(1) for each in found]), found[0].format)

    def _in_callers_mode(self, work: Callable[[], Found]) -> Found:
        """Call `work`, which calls the target, in the caller's floating-point mode, and return its result."""
        return self.target.attempt(work if self._mode is None else self._mode.outside(work))

    def _scalar(self, made: Foreign) -> Source:
        found = self.target.fetch(made)
        if found.codes.size != 1:
            raise UnsupportedError(f"{self.target.name} returns the shape {found.codes.shape}, not one number")
        return found


def check_mode(target: Target, mode: DefaultMode | None) -> DefaultMode | None:
    """Return `mode`; raises UnsupportedError if the mode that was set before `mode` does not round to nearest."""
    if mode is not None and not mode.outside(rounds_to_nearest)():
        raise UnsupportedError(
            f"{target.name} can be probed only if this thread rounds to nearest, which it does not: "
            "call fesetround(FE_TONEAREST)"
        )
    return mode


def checked_shape(shape: object, kind: str | None = None) -> tuple[int, ...]:
    """Return (batch, rows, terms, columns) of a product, or (1, rows, terms) of a matrix and a vector.

    Raises UnsupportedError if this is not a valid shape for the kind.
    """
    numbers = tuple(shape) if isinstance(shape, tuple | list) else ()
    if len(numbers) not in (2, 3, 4) or not all(type(each) is int and each > 0 for each in numbers):
        raise UnsupportedError(
            "a shape must be (rows, terms, columns), (products, rows, terms, columns) for several products, "
            f"or (rows, terms) for a matvec, not {shape!r}"
        )
    if kind not in (None, "matvec" if len(numbers) == 2 else "matmul"):
        raise UnsupportedError(
            f"a {quoted(str(kind))} cannot have a shape of {len(numbers)} numbers: matmul takes M, K, N; matvec M, K"
        )
    whole = numbers if len(numbers) == 4 else (1, *numbers)
    if prod(whole) // whole[2] > MOST_ELEMENTS:
        raise UnsupportedError(f"a product of {prod(whole) // whole[2]:,} elements is too large to be examined")
    return whole


def values_of(source: Source) -> Array:
    """Return the values of codes in NumPy's dtype for their format, or as float64 if NumPy has no dtype for it."""
    kind = native_dtype(source.format)
    if kind is None:
        return decode(source.codes, source.format, np.float64)
    floats: Array = source.codes.view(kind.newbyteorder(source.codes.dtype.byteorder))
    return floats
