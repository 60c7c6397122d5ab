"""A matrix product compared with the exact one: the errors of its elements, and the worst of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Datum
from floatlab.presenter import Answering
from floatlab.record import Individual, Record
from floatlab.reduce.plan.orders import Schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.results.inputs import Settings, as_matrices, read_operands
from floatlab.reduce.results.product_error import ExactProduct, ProductErrors
from floatlab.reduce.results.reduction import Reduction
from floatlab.reduce.results.totals import multiply_matrices, reduce_terms
from floatlab.reduce.simulate.adders import Adder, stream_context
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.exact_sum import exact_totals


class ProductElement(Record):
    """One element: its place, its value, the exact sum, and their difference."""

    index: tuple[int, ...]
    value: Datum
    exact: Fraction | None
    error: Fraction | None


@methods_in_default_mode
class Product(Answering, Individual):
    """What was multiplied, how, and what came out."""

    x: Source  # (rows, n)
    y: Source  # (n, columns)
    settings: Settings
    codes: Array  # in the result's format and the product's own shape
    _ASKS = ".codes"

    def __repr__(self) -> str:
        """Show the shapes, the order and the result's format."""
        (rows, n), columns = self.x.codes.shape, self.y.codes.shape[1]
        words = f"({rows} × {n}) · ({n} × {columns}), {self.settings.schedule.text[:80]}"
        return f"Product({words}, {self.settings.format.name})"

    @property
    def terms(self) -> int:
        """How many products are added for each element."""
        return int(self.x.codes.shape[1])

    def _factors(self, place: int) -> Sides:
        """Return the row and the column that make an element."""
        row, column = divmod(place, self.y.codes.shape[1])
        return Source(self.x.codes[row], self.x.format), Source(self.y.codes[:, column], self.y.format)

    def element(self, place: int) -> ProductElement:
        """Return an element by its place in C order, with its exact sum.

        >>> found = matrix_product([[1, 2]], [[3], [2**-40]], format="fp32")
        >>> found.element(0).value, float(found.element(0).error)
        (Datum(binary32 0x40400000 = 3), -1.8189894035458565e-12)
        """
        value = Datum(self.settings.format, int(self.codes.reshape(-1)[place]))
        totals = exact_totals(*self._factors(place))
        exact = None if totals is None else totals[0].as_fraction()
        error = value.exact.as_fraction() - exact if exact is not None and value.is_finite else None
        index = tuple(int(each) for each in np.unravel_index(place, self.codes.shape)) if self.codes.shape else ()
        return ProductElement(index, value, exact, error)

    def reduction(self, place: int) -> Reduction:
        """Return the dot product that an element is, by its place in C order.

        >>> found = matrix_product([[1, 2], [3, 4]], [[5], [6]], schedule="reversed", format="fp16")
        >>> found.reduction(1)
        Reduction(dot of 2 terms, reversed: Datum(binary16 0x50e0 = 39))
        """
        settings = self.settings
        if isinstance(settings.adder, Adder | Compensated):  # under SR an element draws from its own stream
            settings = settings.replace(
                adder=settings.adder.replace(context=stream_context(settings.adder.context, 0, place))
            )
        return reduce_terms("dot", self._factors(place), settings)

    def errors(self, worst: int = 5) -> ProductErrors:
        """Return how far the elements are from the exact ones; of many, those of rows spread over all.

        >>> rng = np.random.default_rng(0)
        >>> found = matrix_product(rng.random((8, 50), np.float32), rng.random((50, 8), np.float32)).errors()
        >>> found.nearest, round(found.largest, 2), round(found.q_largest, 2)
        (17, 3.95, 4.36)
        """
        return ExactProduct(self.x, self.y, self.settings.format).errors(self.codes, worst)


@in_default_mode
def matrix_product(
    a: object,
    b: object,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    **options: Any,
) -> Product:
    """Return the product that `matmul` makes, with its factors and settings; takes and raises what `matmul` does."""
    sources, settings = read_operands({"a": a, "b": b}, schedule, format, **options)
    x, y, shape = as_matrices(*sources)
    return Product(x, y, settings, multiply_matrices(x, y, settings).reshape(shape))
