"""The JSON schemas of the differences of two arrays, and of the judgement on two results of a product."""

from __future__ import annotations

from operator import attrgetter, itemgetter
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
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Diagnosis
from floatlab.reduce.results.judgements import Effect, Judgement
from floatlab.wire.codecs import CODECS, FORMAT, INTEGER, TEXT, Codec, list_of, optional, tuple_of
from floatlab.wire.derivations import DATUM
from floatlab.wire.schema import Member, Schema, common_members, derived, field, field_codecs, flattened, schema_of

_OPERAND = Schema(Operand, {"name": TEXT, "shape": list_of(INTEGER), "dtype": field(TEXT, "kind"), "format": FORMAT})
CODECS["Tolerance"] = schema_of(
    Tolerance,
    lambda failing, unlike, **fields: Tolerance(failing=failing or 0, unlike=unlike or "", **fields),
    failing=Member(optional(INTEGER), lambda tolerance: None if tolerance.unlike else tolerance.failing, "failing"),
    unlike=Member(optional(TEXT), lambda tolerance: tolerance.unlike or None, "unlike"),
)


_PERCENTILES = Codec(
    lambda pairs, scope: {f"{share:g}": INTEGER.write(most, scope) for share, most in pairs},
    lambda wire, scope: tuple((float(share), INTEGER.read(most, scope)) for share, most in wire.items()),
)
CODECS["Ulps"] = schema_of(Ulps, percentiles=field(_PERCENTILES, "percentiles"))
CODECS["Structure"] = Schema(
    Structure,
    {
        **field_codecs(Structure, "count", "size", "shape", "first", "last"),
        "axes": field(list_of(schema_of(Extent)), "extents"),
        "map": schema_of(Map),
    },
)


def _read_element(actual: Datum, expected: Datum, ulps: int | None, **measures: Any) -> ComparedElement:
    return ComparedElement(
        actual=float(actual),
        expected=float(expected),
        actual_code=actual.code,
        expected_code=expected.code,
        ulps=-1 if ulps is None else ulps,
        **measures,
    )


# An element is written from the pair (differences, element), because only the differences know the formats of its
# codes.
_MEASURES = flattened(itemgetter(1), field_codecs(ComparedElement, "index", "absolute", "share"))
_ELEMENT = Schema(
    _read_element,
    {
        "index": _MEASURES["index"],
        "actual": Member(DATUM, lambda pair: pair[0].data(pair[1])[0], "actual"),
        "expected": Member(DATUM, lambda pair: pair[0].data(pair[1])[1], "expected"),
        "absolute": _MEASURES["absolute"],
        "ulps": Member(optional(INTEGER), lambda pair: None if pair[1].ulps < 0 else pair[1].ulps, "ulps"),
        "share": _MEASURES["share"],
    },
)


_OPERANDS = Member(tuple_of(_OPERAND, _OPERAND), attrgetter("actual", "expected"), "operands")
_WORST = Member(list_of(_ELEMENT), lambda differences: [(differences, each) for each in differences.worst], "worst")


def _tuples(wire: object) -> object:
    return tuple(map(_tuples, wire)) if isinstance(wire, list) else wire


_PLACES = Codec(lambda where, _: where, lambda wire, _: _tuples(wire))
_EVIDENCE = Codec(lambda pairs, _: dict(pairs), lambda wire, _: tuple(wire.items()))
_CAUSE = schema_of(DiagnosedCause, where=field(_PLACES, "where"), evidence=field(_EVIDENCE, "evidence"))
DIAGNOSIS = schema_of(Diagnosis, causes=field(list_of(_CAUSE), "causes"))

DIFFERENCES = Schema(
    lambda operands, **fields: Differences(actual=operands[0], expected=operands[1], **fields),
    {
        **common_members("compare"),
        "operands": _OPERANDS,
        **field_codecs(Differences, "shape", "size"),
        "within": derived("within"),
        **field_codecs(Differences, "equal_bits", "equal", "specials", "absolute", "relative", "ulps"),
        **field_codecs(Differences, "allclose", "assert_close", "differing", "failing"),
        "worst": _WORST,
        "diagnosis": Member(optional(DIAGNOSIS), attrgetter("diagnosis"), "diagnosis", is_optional=True),
    },
)

EFFECTS = list_of(schema_of(Effect))
_JUDGEMENT = {
    **field_codecs(Judgement, "terms", "format"),
    "q": {**field_codecs(Judgement, "rms", "largest"), "limit": derived("limit")},
    "trials": field(EFFECTS, "effects"),
    **field_codecs(Judgement, "causes", "looked_at", "elements"),
    "beyond_rounding": field(INTEGER, "beyond"),
    "largest_at": field(optional(tuple_of(INTEGER, INTEGER)), "at"),
}
JUDGEMENT = Schema(Judgement, _JUDGEMENT)
JUDGEMENT_DOCUMENT = Schema(Judgement, common_members("judge") | _JUDGEMENT)
