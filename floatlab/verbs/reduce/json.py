"""The schema of sums and dot products: the order, every rounding of short ones, the result and its errors."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.sources import Origin, Source
from floatlab.errors import FileFormatError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum
from floatlab.numbers.decimals import rounded_decimal
from floatlab.record import Record
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.results.reduction import MAX_TRACED, Reduction
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.machines import Machine, parse_machine
from floatlab.verbs.reduce.error_breakdown import Contribution, error_contributions
from floatlab.verbs.reduce.page import worst_of
from floatlab.wire.derivations import CONTEXT, DATUM, error_in_ulps
from floatlab.wire.schema import (
    BOOLEAN,
    FLAGS,
    FORMAT,
    FRACTION,
    INTEGER,
    TEXT,
    VERSION,
    Codec,
    Member,
    Schema,
    constant,
    field,
    listed,
    optional,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction
    from typing import Any

    from floatlab.reduce.simulate.simulation import AnyAdder

MOST = 1024  # terms: of more, neither operands nor nodes are written
_DIGITS = 17


# What a node does, as sums and matrix products say it: `adder` is the rule of compensation, rounded or fused.


def _if_rounded(get: Callable[[Any], object]) -> Callable[[Any], object]:
    """Leave out what tensor cores have no choice of."""
    return lambda made: get(made) if isinstance(made.adder, Adder | Compensated) else None


def _rule(made: Any) -> str:
    adder = made.adder
    return adder.rule if isinstance(adder, Compensated) else "rounded" if isinstance(adder, Adder) else "fused"


def read_adder(
    context: Context | None,
    fma: bool,
    products: Format | None,
    accumulator: Format,
    adder: str,
    machine: Machine | None,
) -> AnyAdder:
    """Return the adder that a document describes; raises FileFormatError for tensor cores without their machine."""
    if machine is not None:
        return machine.adder
    if adder == "fused" or context is None:
        raise FileFormatError("a fused adder is that of a machine, which is missing")
    if adder == "rounded":
        return Adder(accumulator, products or accumulator, fma, context)
    return Compensated(adder, accumulator, products or accumulator, context)


CONTEXT_ROW = Member(optional(CONTEXT), _if_rounded(lambda made: made.adder.context), "context")
FMA_ROW = Member(BOOLEAN, lambda made: isinstance(made.adder, Adder) and made.adder.fma, "fma")
PRODUCTS_ROW = Member(optional(FORMAT), _if_rounded(lambda made: made.adder.products), "products")
RULE_ROW = Member(TEXT, _rule, "adder")
SCHEDULE = Codec(lambda schedule, _: schedule.text, lambda wire, scope: parse_schedule(TEXT.read(wire, scope)))
MACHINE = optional(
    Schema(lambda name: parse_machine(name), {"name": TEXT, "words": shown("words")}),
)


# The terms: their codes, and what they were before they were read into their format.

ORIGIN = optional(
    Schema(
        Origin,
        {"from": field(optional(FORMAT), "format"), "inexact": INTEGER},
    )
)


def source_of_data(data: Sequence[Datum], origin: Origin | None = None) -> Source:
    """Return data of one format as an array of codes."""
    formats = {datum.format for datum in data}
    if len(formats) != 1:
        raise FileFormatError(f"numbers of one format are expected, not of {len(formats)}")
    format = formats.pop()
    return Source(np.array([datum.code for datum in data], container(format)), format, None, origin)


def _sides(reduction: Reduction) -> list[Source]:
    return [side for side in (reduction.x, reduction.y) if side is not None]


def _columns(reduction: Reduction) -> list[list[Datum]] | None:
    if len(reduction) > MOST:
        return None
    return [[Datum(side.format, code) for code in side.codes.tolist()] for side in _sides(reduction)]


# The error_contributions: terms, nodes, and what comes after the last one.


class _Line(Record):
    entry: Contribution
    result: Datum  # of the whole reduction, in whose ulps an error is where the entry has no value

    @property
    def kind(self) -> str:
        entry = self.entry
        return "term" if entry.term is not None else entry.name if entry.id is None else "node"

    @property
    def arguments(self) -> list[int] | None:
        return [*self.entry.arguments] if self.kind == "node" else None


_LINES = listed(
    Schema(
        None,
        {
            "id": shown("entry.id"),
            "kind": shown("kind"),
            "arguments": shown("arguments").replace(is_optional=True),
            "value": shown("entry.value", optional(DATUM)),
            "error": shown(lambda line: error_in_ulps(line.entry.error, line.entry.value or line.result)),
            "flags": shown("entry.flags", FLAGS),
        },
    )
)


def _lines(entries: Callable[[Reduction], list[Contribution]]) -> Callable[[Reduction], list[_Line]]:
    return lambda reduction: [_Line(entry, reduction.result) for entry in entries(reduction)]


def _measure(name: str) -> Member:
    """Return a row for a bound: a decimal, rounded."""

    def text(reduction: Reduction) -> str | None:
        measure: Fraction | None = getattr(reduction, name)
        return None if measure is None else rounded_decimal(measure, _DIGITS)

    return shown(text)


def _reduction(
    operands: Any, read: Any, accumulator: Format, machine: Machine | None, context: Any, fma: bool, products: Any,
    adder: str, **fields: Any,
) -> Reduction:  # fmt: skip
    if operands is None:
        raise FileFormatError(f"the terms were left out: of more than {MOST:,}, none are written")
    if len(operands) != len(read) or len(operands) not in (1, 2):
        raise FileFormatError(f"{len(operands)} operands, and {len(read)} in read")
    x, *more = (source_of_data(*pair) for pair in zip(operands, read, strict=True))
    y = more[0] if more else None
    if y is not None and len(x.codes) != len(y.codes):
        raise FileFormatError(f"{len(x.codes)} and {len(y.codes)} factors")
    made = read_adder(context, fma, products, accumulator, adder, machine)
    return Reduction(sides=(x, *more), adder=made, machine=machine, **fields)


REDUCTION = Schema(
    _reduction,
    {
        "schema": constant(VERSION),
        "operation": TEXT,
        "format": shown("result.format", FORMAT),
        "context": CONTEXT_ROW,
        "terms": shown(len),
        "schedule": SCHEDULE,
        "fma": FMA_ROW,
        "products": PRODUCTS_ROW.replace(get=lambda made: made.y and PRODUCTS_ROW.get(made)),
        "accumulator": Member(FORMAT, lambda made: made.accumulated.format, "accumulator"),
        "adder": RULE_ROW,
        "machine": MACHINE,
        "operands": Member(optional(listed(listed(DATUM))), _columns, "operands"),
        "read": Member(listed(ORIGIN), lambda made: [side.origin for side in _sides(made)], "read"),
        "nodes": shown(lambda made: _lines(error_contributions)(made) if len(made) <= MOST else None, optional(_LINES)),
        "worst": shown(_lines(worst_of), _LINES),
        "accumulated": DATUM,
        "result": DATUM,
        "exact": shown("exact", optional(FRACTION)),
        "flags": shown(lambda made: made.flags if len(made) <= MAX_TRACED else None, optional(FLAGS)),
        "error": shown(lambda made: error_in_ulps(made.error, made.result)),
        "bound": _measure("bound"),
        "running_bound": _measure("running_bound"),
        "condition": _measure("condition"),
    },
)
