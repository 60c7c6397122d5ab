"""Sums and dot products as JSON: the order, every rounding of short ones, the result and all that is known of it."""

from __future__ import annotations

from floatlab.numbers.decimals import fraction_text, rounded_decimal, terminating_decimal
from floatlab.reduce.reduction import MAX_TRACED
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.verbs.reduce.error_breakdown import Contribution, error_contributions
from floatlab.verbs.reduce.page import worst_of
from floatlab.wire.encode import SCHEMA, context_to_wire, datum_to_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any

    from floatlab.arrays.sources import Source
    from floatlab.numbers import Datum
    from floatlab.reduce.reduction import Reduction

    Wire = dict[str, Any]

MOST = 1024  # terms: of more, neither operands nor nodes are written
_DIGITS = 17


def reduction_to_wire(found: Reduction) -> Wire:
    """Return all of a reduction; `operands` and `nodes` are null where there are too many, and `worst` is there."""
    adder, n = found.adder, len(found)
    short = n <= MOST
    sides = [[term.x, term.y] for term in found.terms] if short else []
    columns = [[row[i] for row in sides] for i in range(1 + (found.y is not None))]
    return {
        "schema": SCHEMA,
        "operation": found.operation,
        "format": found.result.format.name,
        "context": context_to_wire(adder.context) if isinstance(adder, Adder | Compensated) else None,
        "terms": n,
        "schedule": found.schedule.text,
        "fma": isinstance(adder, Adder) and adder.fma,
        "products": adder.products.name if found.y is not None and isinstance(adder, Adder | Compensated) else None,
        "accumulator": found.accumulated.format.name,
        "adder": adder.rule if isinstance(adder, Compensated) else "rounded" if isinstance(adder, Adder) else "fused",
        "machine": None if found.machine is None else {"name": found.machine.name, "words": found.machine.words},
        "operands": [[datum_to_wire(each) for each in column if each is not None] for column in columns]
        if short
        else None,
        "read": [origin_to_wire(side) for side in (found.x, found.y) if side is not None],
        "nodes": [_entry(each, found) for each in error_contributions(found)] if short else None,
        "worst": [_entry(each, found) for each in worst_of(found)],
        "result": datum_to_wire(found.result),
        "exact": None if found.exact is None else fraction_text(found.exact),
        "flags": found.flags.names if n <= MAX_TRACED else None,
        "error": error_of(found.error, found.result),
        "bound": _measure(found.bound),
        "running_bound": _measure(found.running_bound),
        "condition": _measure(found.condition),
    }


def origin_to_wire(source: Source) -> Wire | None:
    """Return what numbers were before they were read into their format; null where they were in it all along."""
    origin = source.origin
    if origin is None:
        return None
    return {"from": None if origin.format is None else origin.format.name, "inexact": origin.inexact}


def _entry(entry: Contribution, found: Reduction) -> Wire:
    wire: Wire = {"id": entry.id}
    if entry.term is not None:
        wire["kind"] = "term"
    elif entry.id is None:
        wire["kind"] = entry.name
    else:
        wire |= {"kind": "node", "arguments": [*entry.arguments]}
    value = entry.value
    return wire | {
        "value": None if value is None else datum_to_wire(value),
        "error": error_of(entry.error, value or found.result),
        "flags": entry.flags.names,
    }


def error_of(error: Fraction | None, value: Datum) -> Wire:
    """Return an error exactly and in ulps of a value; null where there is none."""
    if error is None or not value.is_finite:
        return {"exact": None, "ulps": None}
    ulps = error / value.ulp.as_fraction()
    return {"exact": fraction_text(error), "ulps": terminating_decimal(ulps) or fraction_text(ulps)}


def _measure(x: Fraction | None) -> str | None:
    return None if x is None else rounded_decimal(x, _DIGITS)
