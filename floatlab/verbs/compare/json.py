"""The schemas of two arrays compared, and of what two products were judged to differ by."""

from __future__ import annotations

from typing import Any

from floatlab.arrays.compare.differences import (
    ComparedElement,
    Differences,
    Extent,
    Map,
    Operand,
    Structure,
    Tolerance,
    Ulps,
)
from floatlab.numbers import Datum
from floatlab.reduce.results.judgements import Effect, Judgement
from floatlab.wire.derivations import DATUM
from floatlab.wire.schema import (
    CODECS,
    FORMAT,
    INTEGER,
    NUMBER,
    TEXT,
    Codec,
    Member,
    Schema,
    Scope,
    field,
    heading,
    listed,
    optional,
    row,
    rows_of,
    schema_of,
    shown,
)

_OPERAND = Schema(Operand, {"name": TEXT, "shape": listed(INTEGER), "dtype": field(TEXT, "kind"), "format": FORMAT})
CODECS["Tolerance"] = schema_of(
    Tolerance,
    lambda failing, unlike, **fields: Tolerance(failing=failing or 0, unlike=unlike or "", **fields),
    failing=Member(optional(INTEGER), lambda tolerance: None if tolerance.unlike else tolerance.failing, "failing"),
    unlike=Member(optional(TEXT), lambda tolerance: tolerance.unlike or None, "unlike"),
)


def _read_percentiles(wire: Any, scope: Scope) -> tuple[tuple[float, int], ...]:
    return tuple((float(share), INTEGER.read(most, scope)) for share, most in wire.items())


CODECS["Ulps"] = schema_of(
    Ulps,
    percentiles=Member(
        Codec(
            lambda pairs, scope: {f"{share:g}": INTEGER.write(most, scope) for share, most in pairs}, _read_percentiles
        ),
        lambda ulps: ulps.percentiles,
        "percentiles",
    ),
)
CODECS["Structure"] = Schema(
    Structure,
    {
        **rows_of(Structure, "count", "size", "shape", "first", "last"),
        "axes": field(listed(schema_of(Extent)), "extents"),
        "map": schema_of(Map),
    },
)


def _element(
    index: Any, actual: Datum, expected: Datum, absolute: float, ulps: int | None, share: float
) -> ComparedElement:
    return ComparedElement(
        index=index,
        actual=float(actual),
        expected=float(expected),
        actual_code=actual.code,
        expected_code=expected.code,
        absolute=absolute,
        ulps=-1 if ulps is None else ulps,
        share=share,
    )


_ELEMENT = Schema(
    _element,
    {
        "index": Member(listed(INTEGER), lambda pair: pair[1].index, "index"),
        "actual": Member(DATUM, lambda pair: Datum(pair[0].actual.format, pair[1].actual_code), "actual"),
        "expected": Member(DATUM, lambda pair: Datum(pair[0].expected.format, pair[1].expected_code), "expected"),
        "absolute": Member(NUMBER, lambda pair: pair[1].absolute, "absolute"),
        "ulps": Member(optional(INTEGER), lambda pair: None if pair[1].ulps < 0 else pair[1].ulps, "ulps"),
        "share": Member(NUMBER, lambda pair: pair[1].share, "share"),
    },
)


def _differences(operands: tuple[Operand, Operand], **fields: Any) -> Differences:
    return Differences(actual=operands[0], expected=operands[1], **fields)


DIFFERENCES = Schema(
    _differences,
    {
        **heading("compare"),
        "operands": Member(
            row(_OPERAND, _OPERAND), lambda differences: (differences.actual, differences.expected), "operands"
        ),
        **rows_of(Differences, "shape", "size"),
        "within": shown("within"),
        **rows_of(Differences, "equal_bits", "equal", "specials", "absolute", "relative", "ulps"),
        **rows_of(Differences, "allclose", "assert_close", "differing", "failing"),
        "worst": Member(
            listed(_ELEMENT), lambda differences: [(differences, element) for element in differences.worst], "worst"
        ),
    },
)

EFFECTS = listed(schema_of(Effect))
_JUDGEMENT = {
    **rows_of(Judgement, "terms", "format"),
    "q": {**rows_of(Judgement, "rms", "largest"), "limit": shown("limit")},
    "trials": field(EFFECTS, "effects"),
    **rows_of(Judgement, "causes", "looked_at", "elements"),
    "beyond_rounding": field(INTEGER, "beyond"),
    "largest_at": field(optional(row(INTEGER, INTEGER)), "at"),
}
JUDGEMENT = Schema(Judgement, _JUDGEMENT)
JUDGEMENT_DOCUMENT = Schema(Judgement, heading("judge") | _JUDGEMENT)
