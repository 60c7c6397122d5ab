"""The schema of matrix products: the factors and elements of small ones, and their errors."""

from __future__ import annotations

from math import prod

from floatlab.errors import FileFormatError
from floatlab.numbers import Datum
from floatlab.record import Record
from floatlab.reduce.results.inputs import Settings
from floatlab.reduce.results.product_error import ProductErrors
from floatlab.reduce.results.products import Product, ProductElement
from floatlab.verbs.reduce.json import (
    CONTEXT_ROW,
    FMA_ROW,
    MACHINE,
    ORIGIN,
    PRODUCTS_ROW,
    RULE_ROW,
    SCHEDULE,
    read_adder,
    source_of_data,
)
from floatlab.wire.derivations import DATUM, error_in_ulps
from floatlab.wire.schema import (
    FORMAT,
    FRACTION,
    INTEGER,
    Codec,
    Member,
    Schema,
    attributes,
    heading,
    listed,
    optional,
    shown,
    within,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 1024  # elements: of more only the worst are written, and of larger factors none


_ELEMENT = Schema(
    lambda value: value,
    {
        "index": shown(lambda element: [*element.index]),
        "value": DATUM,
        "exact": shown("exact", optional(FRACTION)),
        "error": shown(lambda element: error_in_ulps(element.error, element.value)),
    },
)


class _Measured(Record):
    product: Product
    errors: ProductErrors

    @property
    def worst(self) -> list[ProductElement]:
        return [self.product.element(place) for place in self.errors.worst]


def _factors(product: Product) -> list[list[Datum]] | None:
    sides = (product.x, product.y)
    if max(side.codes.size for side in sides) > MOST:
        return None
    return [[Datum(side.format, code) for code in side.codes.reshape(-1).tolist()] for side in sides]


def _elements(product: Product) -> list[ProductElement] | None:
    count = prod(product.codes.shape)
    return [product.element(place) for place in range(count)] if count <= MOST else None


def _read_product(
    shape: tuple[int, ...], terms: int, operands: Any, read: Any, elements: Any, format: Any, schedule: Any,
    machine: Any, **adder: Any,
) -> Product:  # fmt: skip
    if operands is None or elements is None:
        raise FileFormatError(f"the factors or elements were left out: of more than {MOST:,}, none are written")
    if len(operands) != 2 or len(read) != 2:
        raise FileFormatError("a product has two factors")
    x, y = (source_of_data(*pair) for pair in zip(operands, read, strict=True))
    codes = source_of_data(elements).codes.reshape(shape)
    rows, columns = x.codes.size // terms, y.codes.size // terms
    if rows * columns != codes.size:
        raise FileFormatError(f"factors of {rows} rows and {columns} columns do not make {codes.size} elements")
    x, y = x.replace(codes=x.codes.reshape(rows, terms)), y.replace(codes=y.codes.reshape(terms, columns))
    settings = Settings(format, read_adder(machine=machine, **adder), schedule, machine)
    return Product(x, y, settings, codes)


_SETTINGS = {
    "schedule": SCHEDULE,
    "fma": FMA_ROW,
    "products": PRODUCTS_ROW,
    "accumulator": Member(FORMAT, lambda settings: settings.adder.accumulator, "accumulator"),
    "adder": RULE_ROW,
    "machine": MACHINE,
}
_PRODUCT = {
    **heading("matmul"),
    **within("settings", {"format": FORMAT, "context": CONTEXT_ROW}),
    "shape": Member(listed(INTEGER), lambda product: product.codes.shape, "shape"),
    "terms": INTEGER,
    **within("settings", _SETTINGS),
    "operands": Member(optional(listed(listed(DATUM))), _factors, "operands"),
    "read": Member(listed(ORIGIN), lambda product: [product.x.origin, product.y.origin], "read"),
    "elements": Member(optional(listed(_ELEMENT)), _elements, "elements"),
}
_ERRORS = {
    **attributes("looked_at", "nearest"),
    "error": {"ulps_largest": shown("largest"), "ulps_rms": shown("rms")},
    "q": {"largest": shown("q_largest"), "rms": shown("q_rms")},
}
_MEASURED = Schema(
    _read_product,
    {**within("product", _PRODUCT), "worst": shown("worst", listed(_ELEMENT)), **within("errors", _ERRORS)},
)
PRODUCT = Codec(lambda product, scope: _MEASURED.write(_Measured(product, product.errors()), scope), _MEASURED.read)
