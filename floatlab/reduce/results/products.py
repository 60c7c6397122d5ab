"""Matrix products in a stated order, and the errors of their elements."""

from __future__ import annotations

from fractions import Fraction
from typing import TypedDict, Unpack, cast

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.sources import Source, native_dtype
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Datum
from floatlab.numbers.rounding import AnyContext
from floatlab.presenter import Answering
from floatlab.record import Individual, Record
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.results.inputs import Settings, as_matrices, check_size, read_operands
from floatlab.reduce.results.product_error import ExactProduct, ProductErrors
from floatlab.reduce.results.reduction import Reduction, last_context
from floatlab.reduce.results.scaled import ScaledProduct, scaled_product
from floatlab.reduce.results.totals import reduce_terms
from floatlab.reduce.simulate.adders import Adder, stream_context
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.exact_sum import exact_totals
from floatlab.reduce.simulate.matrix_units import Machine
from floatlab.reduce.simulate.scaled_matrix_units import SCALED_UNITS, is_scaled_unit, parse_scaled_unit
from floatlab.reduce.simulate.simulation import simulate


class ProductOptions(TypedDict, total=False):
    """Keywords that matrix products share with `dot`, which documents them."""

    fma: bool
    terms: Format | str | None
    products: Format | str | None
    accumulator: Format | str | None
    adder: str
    context: AnyContext
    machine: str | Machine | None


class MatrixOptions(ProductOptions, total=False):
    """Keywords of matrix products, which include scales for blocks of the factors."""

    scales: object


class ProductElement(Record):
    """One element of a product: `exact` is its exact sum, and `error` is `value` − `exact`.

    `exact` is None if a factor is not finite. `error` is None if `exact` is None or `value` is not finite.
    """

    index: tuple[int, ...]
    value: Datum
    exact: Fraction | None
    error: Fraction | None


@methods_in_default_mode
class Product(Answering, Individual):
    """A matrix product: its factors, its settings and its result."""

    x: Source  # (rows, n)
    y: Source  # (n, columns)
    settings: Settings
    codes: Array  # in the result's format and in the shape of the product
    _ASKS = ".codes"

    def __repr__(self) -> str:
        """Show the shapes, the order and the result's format."""
        (rows, n), columns = self.x.codes.shape, self.y.codes.shape[1]
        words = f"({rows} × {n}) · ({n} × {columns}), {self.settings.schedule.text[:80]}"
        return f"Product({words}, {self.settings.format.name})"

    @property
    def format(self) -> Format:
        """The format of the elements."""
        return self.settings.format

    @property
    def terms(self) -> int:
        """The number of products that are added for each element."""
        return int(self.x.codes.shape[1])

    @property
    def sides(self) -> Sides:
        """Both factors."""
        return self.x, self.y

    def _factors(self, place: int) -> Sides:
        """Return the row and the column whose product is the element at `place`."""
        row, column = divmod(place, self.y.codes.shape[1])
        return Source(self.x.codes[row], self.x.format), Source(self.y.codes[:, column], self.y.format)

    def element(self, place: int) -> ProductElement:
        """Return an element by its index in C order, with its exact sum.

        >>> found = matrix_product([[1, 2]], [[3], [2**-40]], format="fp32")
        >>> found.element(0).value, float(found.element(0).error)
        (Datum(binary32 0x40400000 = 3), -1.8189894035458565e-12)
        """
        value = Datum(self.settings.format, int(self.codes.reshape(-1)[place]))
        totals = exact_totals(*self._factors(place))
        exact = None if totals is None else totals[0].as_fraction()
        error = value.exact.as_fraction() - exact if exact is not None and value.is_finite else None
        index = tuple(map(int, np.unravel_index(place, self.codes.shape))) if self.codes.shape else ()
        return ProductElement(index, value, exact, error)

    def reduction(self, place: int) -> Reduction:
        """Return an element, given by its index in C order, as the result of a dot product.

        >>> found = matrix_product([[1, 2], [3, 4]], [[5], [6]], schedule="reversed", format="fp16")
        >>> found.reduction(1)
        Reduction(dot of 2 terms, reversed: Datum(binary16 0x50e0 = 39))
        """
        settings, adder = self.settings, self.settings.adder
        if isinstance(adder, Adder | Compensated):  # under stochastic rounding, every element has its own random draws
            settings = settings.replace(adder=adder.replace(context=stream_context(adder.context, 0, place)))
        return reduce_terms("dot", self._factors(place), settings)

    def errors(self, worst: int = 5) -> ProductErrors:
        """Return the errors of the elements; of a large product, only the elements in a sample of rows are examined.

        The result has the indices of up to `worst` elements with the largest errors.

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
    **options: Unpack[MatrixOptions],
) -> Product | ScaledProduct:
    """Return an object with the product that `matmul` computes, its factors and its settings; see `matmul`."""
    if unknown := options.keys() - MatrixOptions.__annotations__.keys() - ProductOptions.__annotations__.keys():
        raise TypeError(f"matmul() got an unexpected keyword argument {min(unknown)!r}")
    scales, rest = options.pop("scales", None), cast(ProductOptions, options)
    machine = options.get("machine")
    if isinstance(machine, str) and is_scaled_unit(machine):
        return _scaled(a, b, schedule, format, scales, rest)
    if scales is not None:
        raise UnsupportedError(f"scales are for machines with block scales, such as {next(iter(SCALED_UNITS))}")
    sources, settings = read_operands({"a": a, "b": b}, schedule, format, **rest)
    x, y, shape = as_matrices(*sources)
    check_size(len(x.codes), y.codes.shape[1])
    sides = Source(x.codes.T[:, :, None], x.format), Source(y.codes[:, None, :], y.format)
    order, adder = settings.schedule, settings.adder
    codes = simulate(sides, order, adder)
    if adder.accumulator != settings.format:
        last = last_context(order, adder, len(y.codes))
        codes = np.asarray(encode(Source(codes, adder.accumulator), settings.format, context=last))
    return Product(x, y, settings, codes.reshape(shape))


def _scaled(
    a: object, b: object, schedule: object, format: object, scales: object, options: ProductOptions
) -> ScaledProduct:
    unit = parse_scaled_unit(cast(str, options["machine"]))
    given = {"schedule": schedule, "format": format, **options, "machine": None}
    for name, value in given.items():
        if value is not None and value is not False and value != "rounded":
            raise UnsupportedError(f"{name} is fixed by the machine {unit.name}: leave out one of them")
    return scaled_product(a, b, unit, scales)


def matmul(
    a: object,
    b: object,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    **options: Unpack[MatrixOptions],
) -> Array:
    """Return the matrix product of vectors or matrices, computed as `dot` computes it for each element.

    Parameters
    ----------
    a, b : array_like
        Factors with one or two axes and shapes (…, n) and (n, …).
    schedule : str, Schedule or Plan, optional
        The order of the additions of each element; serial by default.
    format : Format or str, optional
        The result's format. The default is the smallest format that contains the formats of both factors, or binary32
        if neither factor has a format. With a machine, the default is the accumulator's format.
    **options
        fma, terms, products, accumulator, adder, context and machine: as for `dot`. A machine with block scales, such
        as "blackwell.nvf4.f32", also takes scales: a pair of arrays of shapes (…, n / size) and (n / size, …). Here,
        size is the number of elements of a block, and n / size is rounded up. A uint8 array of scales holds codes; any
        other array holds numbers. Such a machine multiplies numbers of certain formats. A `FloatArray` in one of these
        formats keeps its codes. Any other factor is rounded to nearest into the first of these formats.

    Returns
    -------
    numpy.ndarray
        The product. Its dtype is NumPy's dtype for the result's format if NumPy has one. Otherwise, the dtype is
        float32 if float32 contains the format, or else float64.

    Raises
    ------
    PlanError, UnsupportedError, FormatError, LiteralError
        As `dot`, and if the shapes do not match.

    Notes
    -----
    Under stochastic rounding, each element has its own stream of random draws, determined by its index in C order.
    Element 0 uses the same draws as `dot`.

    Examples
    --------
    >>> from floatlab import dot
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.random((50, 60), np.float32), rng.random((60, 40), np.float32)
    >>> bool((matmul(a, b, fma=True) == matmul(a, b)).all())
    False
    >>> matmul(a, b)[3, 4] == np.float32(dot(a[3], b[:, 4]))
    np.True_
    """
    product = matrix_product(a, b, schedule, format, **options)
    into = product.format
    kind = native_dtype(into)
    return decode(product.codes, into) if kind is None else product.codes.view(kind)
