"""The JSON schemas of sums and products: the order, the errors, and all roundings of short ones."""

from __future__ import annotations

from math import prod

import numpy as np

from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.sources import Origin, Source
from floatlab.errors import FileFormatError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum
from floatlab.numbers.printing import rounded_decimal
from floatlab.record import Record
from floatlab.reduce import Adder, Compensated, Machine, Reduction, Schedule, parse_machine, parse_schedule
from floatlab.reduce.results.inputs import Settings
from floatlab.reduce.results.product_error import ProductErrors
from floatlab.reduce.results.products import Product, ProductElement
from floatlab.reduce.results.reduction import MAX_TRACED
from floatlab.verbs.reduce.error_breakdown import Contribution, error_contributions
from floatlab.verbs.reduce.page import worst_of
from floatlab.wire.codecs import AS_IT_IS, BOOLEAN, FLAGS, FORMAT, FRACTION, INTEGER, TEXT, Codec, list_of, optional
from floatlab.wire.derivations import CONTEXT, DATUM, error_in_ulps
from floatlab.wire.schema import Member, Schema, attributes, common_members, derived, field, flattened, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from floatlab.reduce.simulate.simulation import AnyAdder

    Operands = tuple[tuple[Datum, ...], ...] | None

MOST = 1024  # with more terms or elements than this, operands and nodes are omitted
_DIGITS = 17


# How nodes add. `adder` is the rule of compensation (such as "kahan"), "rounded", or "fused".


def _context(made: Reduction | Settings) -> Context | None:
    return made.adder.context if isinstance(made.adder, Adder | Compensated) else None


def _products(made: Reduction | Settings) -> Format | None:
    """Return the format to which products are rounded; None for sums and tensor cores."""
    is_sum = isinstance(made, Reduction) and made.y is None
    return made.adder.products if isinstance(made.adder, Adder | Compensated) and not is_sum else None


def _rule(made: Reduction | Settings) -> str:
    adder = made.adder
    return adder.rule if isinstance(adder, Compensated) else "rounded" if isinstance(adder, Adder) else "fused"


def _read_adder(
    context: Context | None,
    fma: bool,
    products: Format | None,
    accumulator: Format,
    adder: str,
    machine: Machine | None,
) -> AnyAdder:
    if machine is not None:
        return machine.adder
    if adder == "fused" or context is None:
        raise FileFormatError("a fused adder needs a machine, which is missing")
    if adder == "rounded":
        return Adder(accumulator, products or accumulator, fma, context)
    return Compensated(adder, accumulator, products or accumulator, context)


_CONTEXT = Member(optional(CONTEXT), _context, "context")
_SETTINGS = {
    "schedule": Codec(lambda schedule, _: schedule.text, lambda wire, scope: parse_schedule(TEXT.read(wire, scope))),
    "fma": Member(BOOLEAN, lambda made: isinstance(made.adder, Adder) and made.adder.fma, "fma"),
    "products": Member(optional(FORMAT), _products, "products"),
    "accumulator": Member(FORMAT, lambda made: made.adder.accumulator, "accumulator"),
    "adder": Member(TEXT, _rule, "adder"),
    "machine": optional(schema(lambda name: parse_machine(name), name=TEXT, words=derived("words"))),
}


# The terms or factors: their codes and, if they were converted, the operands before the conversion.


def source_of_data(data: Sequence[Datum], origin: Origin | None = None) -> Source:
    """Return numbers of one format as a source; raises FileFormatError if there are no numbers, or several formats."""
    formats = {datum.format for datum in data}
    if len(formats) != 1:
        raise FileFormatError(f"expected numbers of one format, not of {len(formats)}")
    format = formats.pop()
    return Source(np.array([datum.code for datum in data], container(format)), format, None, origin)


def _data(made: Reduction | Product) -> list[list[Datum]] | None:
    if max(side.codes.size for side in made.sides) > MOST:
        return None
    return [[Datum(side.format, code) for code in side.codes.reshape(-1).tolist()] for side in made.sides]


_ORIGIN = optional(Schema(Origin, {"from": field(optional(FORMAT), "format"), "inexact": INTEGER}))
_SIDES = {
    "operands": Member(optional(list_of(list_of(DATUM))), _data, "operands"),
    "read": Member(list_of(_ORIGIN), lambda made: [side.origin for side in made.sides], "read"),
}


# Sums and dot products: terms, nodes, and the roundings after the last node.

# The members take a pair (contribution, result): if a contribution has no value, its error is in ulps of the result.
_LINE = schema(
    id=derived(lambda line: line[0].id),
    kind=derived(lambda line: line[0].kind),
    arguments=Member(AS_IT_IS, lambda line: [*line[0].arguments] or None, is_optional=True),
    value=derived(lambda line: line[0].value, optional(DATUM)),
    error=derived(lambda line: error_in_ulps(line[0].error, line[1] if line[0].value is None else line[0].value)),
    flags=derived(lambda line: line[0].flags, FLAGS),
)


def _lines(entries: Callable[[Reduction], list[Contribution]]) -> Callable[[Reduction], list[object]]:
    return lambda reduction: [(entry, reduction.result) for entry in entries(reduction)]


def _measure(name: str) -> Member:
    """Return the JSON member for a bound: the attribute `name` of a reduction, as a rounded decimal."""

    def text(reduction: Reduction) -> str | None:
        measure = getattr(reduction, name)
        return None if measure is None else rounded_decimal(measure, _DIGITS)

    return derived(text)


def _reduction(operands: Operands, read: tuple[Origin | None, ...], **fields: Any) -> Reduction:
    if operands is None:
        raise FileFormatError(f"the terms are missing: JSON has terms only if there are at most {MOST:,}")
    if len(operands) != len(read) or len(operands) not in (1, 2):
        raise FileFormatError(f"{len(operands)} operands, but {len(read)} entries in read")
    sides = tuple(map(source_of_data, operands, read))
    if len(sides[0].codes) != len(sides[-1].codes):
        raise FileFormatError(f"the sides have {len(sides[0].codes)} and {len(sides[1].codes)} factors")
    adder = {name: fields.pop(name) for name in ("context", "fma", "products", "accumulator", "adder")}
    return Reduction(sides=sides, adder=_read_adder(machine=fields["machine"], **adder), **fields)


REDUCTION = schema(
    _reduction,
    **common_members(),
    format=derived("result.format", FORMAT),
    context=_CONTEXT,
    terms=derived(len),
    **_SETTINGS,
    **_SIDES,
    nodes=derived(
        lambda made: _lines(error_contributions)(made) if len(made) <= MOST else None, optional(list_of(_LINE))
    ),
    worst=derived(_lines(worst_of), list_of(_LINE)),
    accumulated=DATUM,
    result=DATUM,
    exact=derived("exact", optional(FRACTION)),
    flags=derived(lambda made: made.flags if len(made) <= MAX_TRACED else None, optional(FLAGS)),
    error=derived(lambda made: error_in_ulps(made.error, made.result)),
    **{name: _measure(name) for name in ("bound", "running_bound", "condition")},
)


# Matrix products: all elements of small products, and the worst elements of all products.

_ELEMENT = schema(
    lambda value: value,
    index=derived(lambda element: [*element.index]),
    value=DATUM,
    exact=derived("exact", optional(FRACTION)),
    error=derived(lambda element: error_in_ulps(element.error, element.value)),
)


class _Measured(Record):
    product: Product
    errors: ProductErrors


def _elements(product: Product) -> list[ProductElement] | None:
    count = prod(product.codes.shape)
    return [product.element(place) for place in range(count)] if count <= MOST else None


def _product(
    shape: tuple[int, ...], terms: int, operands: Operands, read: tuple[Origin | None, ...],
    elements: tuple[Datum, ...] | None, format: Format, schedule: Schedule, **adder: Any,
) -> Product:  # fmt: skip
    if operands is None or elements is None:
        raise FileFormatError(f"the factors or elements are missing: JSON has them only if there are at most {MOST:,}")
    if len(operands) != 2 or len(read) != 2:
        raise FileFormatError("a product has two factors")
    x, y = map(source_of_data, operands, read)
    codes = source_of_data(elements).codes.reshape(shape)
    rows, columns = x.codes.size // terms, y.codes.size // terms
    if rows * columns != codes.size:
        raise FileFormatError(
            f"the product of factors with {rows} rows and {columns} columns does not have {codes.size} elements"
        )
    x, y = x.replace(codes=x.codes.reshape(rows, terms)), y.replace(codes=y.codes.reshape(terms, columns))
    return Product(x, y, Settings(format, _read_adder(**adder), schedule, adder["machine"]), codes)


SIZES_OF_ERRORS = {
    "error": {"ulps_largest": derived("largest"), "ulps_rms": derived("rms")},
    "q": {"largest": derived("q_largest"), "rms": derived("q_rms")},
}
_PRODUCT = {
    **common_members("matmul"),
    **flattened("settings", {"format": FORMAT, "context": _CONTEXT}),
    "shape": Member(list_of(INTEGER), lambda product: product.codes.shape, "shape"),
    "terms": INTEGER,
    **flattened("settings", _SETTINGS),
    **_SIDES,
    "elements": Member(optional(list_of(_ELEMENT)), _elements, "elements"),
}
_MEASURED = schema(
    _product,
    **flattened("product", _PRODUCT),
    worst=derived(lambda made: [made.product.element(place) for place in made.errors.worst], list_of(_ELEMENT)),
    **flattened("errors", {**attributes("looked_at", "nearest"), **SIZES_OF_ERRORS}),
)
PRODUCT = Codec(lambda product, scope: _MEASURED.write(_Measured(product, product.errors()), scope), _MEASURED.read)
