"""Two arrays compared as JSON: numbers and indices, the worst elements with INTERFACE's DATUM."""

from __future__ import annotations

from floatlab.numbers import Datum
from floatlab.wire.encode import SCHEMA, datum_to_wire, integer, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.arrays.compare.measure import Differences, ErrorSummary, Operand
    from floatlab.arrays.compare.structure import Structure
    from floatlab.arrays.compare.tolerances import Extreme, Tolerance
    from floatlab.reduce.results.judgements import Judgement

    Wire = dict[str, Any]


def differences_to_wire(found: Differences) -> Wire:
    """Return all that `compare` found; what JSON has no number for is "inf" or "nan"."""
    ulps, specials = found.ulps, found.specials
    return {
        "schema": SCHEMA,
        "operation": "compare",
        "operands": [_operand(found.actual), _operand(found.expected)],
        "shape": None if found.shape is None else [integer(n) for n in found.shape],
        "size": integer(found.size),
        "within": found.within,
        "equal_bits": None if found.equal_bits is None else integer(found.equal_bits),
        "equal": integer(found.equal),
        "specials": {name: integer(getattr(specials, name)) for name in specials._fields},
        "absolute": _errors(found.absolute),
        "relative": _errors(found.relative),
        "ulps": None if ulps is None else {
            "format": ulps.format.name,
            "count": integer(ulps.count),
            "largest": _extreme(ulps.largest),
            "percentiles": {f"{share:g}": integer(most) for share, most in ulps.percentiles},
            "histogram": [[integer(n) for n in each] for each in ulps.histogram],
        },
        "allclose": _tolerance(found.allclose),
        "assert_close": _tolerance(found.assert_close),
        "differing": _structure(found.differing),
        "failing": _structure(found.failing),
        "worst": [
            {
                "index": list(each.index),
                "actual": datum_to_wire(Datum(found.actual.format, each.actual_code)),
                "expected": datum_to_wire(Datum(found.expected.format, each.expected_code)),
                "absolute": number(each.absolute),
                "ulps": None if each.ulps < 0 else integer(each.ulps),
                "share": number(each.share),
            }
            for each in found.worst
        ],
    }  # fmt: skip


def _extreme(found: Extreme | None) -> Wire | None:
    return None if found is None else {"value": number(found.value), "index": list(found.index)}


def _operand(operand: Operand) -> Wire:
    shape = [integer(n) for n in operand.shape]
    return {"name": operand.name, "shape": shape, "dtype": operand.kind, "format": operand.format.name}


def _errors(errors: ErrorSummary) -> Wire:
    return {"largest": _extreme(errors.largest), "mean": number(errors.mean), "count": integer(errors.count)}


def _tolerance(near: Tolerance) -> Wire:
    return {
        "name": near.name,
        "rtol": near.rtol,
        "atol": near.atol,
        "equal_nan": near.equal_nan,
        "passes": near.passes,
        "failing": None if near.unlike else integer(near.failing),
        "share": _extreme(near.share),
        "least_rtol": near.least_rtol,
        "least_atol": near.least_atol,
        "greatest_absolute": _extreme(near.greatest_absolute),
        "greatest_relative": _extreme(near.greatest_relative),
        "unlike": near.unlike or None,
    }


def _structure(found: Structure | None) -> Wire | None:
    if found is None:
        return None
    extents = [{name: getattr(each, name) for name in each._fields} for each in found.extents]
    return {
        "count": integer(found.count),
        "first": integer(found.first),
        "last": integer(found.last),
        "axes": extents,
        "map": {"part": list(found.map.part), "counts": [list(each) for each in found.map.counts]},
    }


def judgement_to_wire(found: Judgement) -> Wire:
    """Return what the difference of two products was judged to be."""
    return {
        "terms": found.terms,
        "format": found.format.name,
        "q": {"rms": number(found.rms), "largest": number(found.largest), "limit": found.limit},
        "trials": [
            {"cause": each.cause.value, "rms": number(each.rms), "largest": number(each.largest)}
            for each in found.effects
        ],
        "causes": [each.value for each in found.causes],
        "looked_at": integer(found.looked_at),
        "elements": integer(found.elements),
        "beyond_rounding": integer(found.beyond),
        "largest_at": None if found.at is None else [*found.at],
    }
