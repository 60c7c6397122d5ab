"""Matrix products of factors with block scales, as models of matrix units compute them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Datum
from floatlab.presenter import Answering
from floatlab.record import Individual, Record
from floatlab.reduce.results.inputs import as_matrices, check_size, read_factor
from floatlab.reduce.simulate.scaled_core_engine import ScaledNode
from floatlab.reduce.simulate.scaled_matrix_units import ScaledUnit, parse_scaled_unit


class ScaledElement(Record):
    """One element of a product: its index, its nodes, and the exact sum (None if a number is not finite)."""

    index: tuple[int, ...]
    nodes: tuple[ScaledNode, ...]
    exact: Fraction | None

    @property
    def value(self) -> Datum:
        """The value of the element: the value of its last node."""
        return self.nodes[-1].value

    @property
    def error(self) -> Fraction | None:
        """The value of the element minus the exact sum, or None if either is not finite."""
        finite = self.exact is not None and self.value.is_finite
        return self.value.exact.as_fraction() - self.exact if finite and self.exact is not None else None


@methods_in_default_mode
class ScaledProduct(Answering, Individual):
    """A matrix product of factors with block scales: the factors, their scales, the unit and the result."""

    x: Source  # (rows, n)
    y: Source  # (n, columns)
    scales: tuple[Source, Source]  # (rows, blocks) and (blocks, columns)
    unit: ScaledUnit
    codes: Array  # of binary32, in the shape of the product
    _ASKS = ".codes"

    def __repr__(self) -> str:
        """Show the shapes and the unit."""
        (rows, n), columns = self.x.codes.shape, self.y.codes.shape[1]
        return f"ScaledProduct(({rows} × {n}) · ({n} × {columns}), {self.unit.name})"

    @property
    def format(self) -> Format:
        """The format of the elements."""
        return SINGLE

    @property
    def terms(self) -> int:
        """The number of products that are added for each element."""
        return int(self.x.codes.shape[1])

    def estimate(self) -> Array:
        """Multiply the scaled factors in binary64, without the signs of the scales, which the unit ignores.

        Return an array of the product's shape.
        """
        at = np.arange(self.terms) // self.unit.size
        x, y, a, b = (decode(side.codes, side.format, np.float64) for side in (self.x, self.y, *self.scales))
        with np.errstate(all="ignore"):
            product = (x * np.abs(a)[:, at]) @ (y * np.abs(b)[at])
        return np.asarray(product.reshape(self.codes.shape))

    def element(self, place: int) -> ScaledElement:
        """Return an element by its index in C order, with all its nodes and the exact sum.

        >>> found = scaled_product([[1.5, 2]], [[3], [2]], "rtxblackwell.mxf4.f32", ([[2]], [[0.5]]))
        >>> found.element(0).value, found.element(0).exact
        (Datum(binary32 0x41080000 = 8.5), Fraction(17, 2))
        """
        row, column = divmod(place, self.y.codes.shape[1])
        x, y = self.x.replace(codes=self.x.codes[row]), self.y.replace(codes=self.y.codes[:, column])
        a, b = self.scales
        scales = a.replace(codes=a.codes[row]), b.replace(codes=b.codes[:, column])
        nodes = tuple(self.unit.nodes(x, y, scales))
        values = [term.value for node in nodes for term in node.terms]
        finite = [value.as_fraction() for value in values if value is not None]
        exact = sum(finite, Fraction(0)) if len(finite) == len(values) else None
        index = tuple(map(int, np.unravel_index(place, self.codes.shape))) if self.codes.shape else ()
        return ScaledElement(index, nodes, exact)


@in_default_mode
def scaled_product(a: object, b: object, machine: str | ScaledUnit, scales: object) -> ScaledProduct:
    """Return the product of two factors with block scales, as the model of a matrix unit computes it.

    Parameters
    ----------
    a, b : array_like
        Factors of shapes (…, n) and (n, …), with one or two axes. A `FloatArray` in a format of the unit keeps its
        codes; other numbers are rounded to nearest into the first of the unit's formats.
    machine : str or ScaledUnit
        The unit, such as "blackwell.nvf4.f32".
    scales : pair of array_like
        The scales of the blocks along n, of shapes (…, n / size) and (n / size, …), where the quotient is rounded up. A
        uint8 array is read as codes, as in `Blocks.scales`. Other numbers must be numbers of the scales' format.

    Raises
    ------
    UnsupportedError
        If shapes do not match, or if the unit is unknown, or if a scale is not a number of the scales' format.
    """
    unit = parse_scaled_unit(machine)
    x, y, shape = as_matrices(*(read_factor(each, name, unit.elements) for each, name in ((a, "a"), (b, "b"))))
    check_size(len(x.codes), y.codes.shape[1])
    count = unit.blocks(x.codes.shape[1])
    if not isinstance(scales, tuple | list) or len(scales) != 2:
        raise UnsupportedError(f"{unit.name} needs a scale for every {unit.size} numbers of a and b: scales=(sa, sb)")
    wanted = (len(x.codes), count), (count, y.codes.shape[1])
    read = [
        _scales(each, name, unit, of) for each, name, of in zip(scales, ("scale_a", "scale_b"), wanted, strict=True)
    ]
    codes = unit.multiply_add(x, y, (read[0], read[1]))
    return ScaledProduct(x, y, (read[0], read[1]), unit, codes.reshape(shape))


def _scales(x: object, name: str, unit: ScaledUnit, shape: tuple[int, int]) -> Source:
    """Return scales as codes of this shape. Axes of length 1 may be missing, or there may be more of them.

    Raises UnsupportedError for any other shape, and for numbers that the format of the scales cannot represent.
    """
    format = unit.scale
    if isinstance(x, np.ndarray) and x.dtype == np.uint8 and format.width == 8:
        source = Source(x, format)
    else:
        source = read_factor(x, name, (DOUBLE, format))
    if source.format == DOUBLE:
        source = Source(_encoded(source.codes.view(np.float64), name, format), format)
    found = source.codes.shape
    if [size for size in found if size != 1] != [size for size in shape if size != 1]:
        rule = f"{unit.name} needs one scale for every {unit.size} numbers along the inner axis"
        raise UnsupportedError(f"{name} must have the shape {shape}, not {found}: {rule}")
    return source.replace(codes=source.codes.reshape(shape).astype(container(format)))


def _encoded(numbers: Array, name: str, format: Format) -> Array:
    """Return the codes of numbers; raises UnsupportedError if the format cannot represent them."""
    codes = np.asarray(encode(numbers, format))
    values = decode(codes, format, np.float64)
    wrong = (values != numbers) & ~np.isnan(numbers)
    if wrong.any():
        first = numbers[wrong].reshape(-1)[0].item()
        kind = f"numbers of {format.name}" + (", powers of two" if format.trailing_bits == 0 else "")
        raise UnsupportedError(f"{name} must have {kind}, not {first!r}")
    return codes
