"""Matrix products as JSON: what was done, the elements of small ones, and how far they are from the exact product."""

from __future__ import annotations

from math import prod

from floatlab.numbers.decimals import fraction_text
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.verbs.reduce.json import error_of, origin_to_wire
from floatlab.wire.encode import SCHEMA, context_to_wire, datum_to_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.reduce.results.products import Product, ProductElement

    Wire = dict[str, Any]

MOST = 1024  # elements: of more only the worst are written


def product_to_wire(found: Product) -> Wire:
    """Return all of a matrix product; `elements` is null where there are too many, and `worst` is there."""
    settings, errors, shape = found.settings, found.errors(), found.codes.shape
    adder, machine = settings.adder, settings.machine
    every = range(prod(shape)) if prod(shape) <= MOST else None
    return {
        "schema": SCHEMA,
        "operation": "matmul",
        "format": settings.format.name,
        "context": context_to_wire(adder.context) if isinstance(adder, Adder | Compensated) else None,
        "shape": [*shape],
        "terms": found.terms,
        "schedule": settings.schedule.text,
        "fma": isinstance(adder, Adder) and adder.fma,
        "products": adder.products.name if isinstance(adder, Adder | Compensated) else None,
        "accumulator": adder.accumulator.name,
        "machine": None if machine is None else {"name": machine.name, "words": machine.words},
        "read": [origin_to_wire(side) for side in (found.x, found.y)],
        "elements": None if every is None else [_element(found.element(each)) for each in every],
        "worst": [_element(found.element(each)) for each in errors.worst],
        "looked_at": errors.looked_at,
        "nearest": errors.nearest,
        "error": {"ulps_largest": errors.largest, "ulps_rms": errors.rms},
        "q": {"largest": errors.q_largest, "rms": errors.q_rms},
    }


def _element(each: ProductElement) -> Wire:
    return {
        "index": [*each.index],
        "value": datum_to_wire(each.value),
        "exact": None if each.exact is None else fraction_text(each.exact),
        "error": error_of(each.error, each.value),
    }
