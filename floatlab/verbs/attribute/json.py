"""An attribution as JSON: for each observed result the ways that were tried, and the pairs that give two."""

from __future__ import annotations

from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code
from floatlab.wire.encode import SCHEMA, context_to_wire, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from floatlab.formats import Format
    from floatlab.reduce.explain.attribution import Attribution, Explanation, TileEdge

    Array = np.ndarray[Any, np.dtype[Any]]

    Wire = dict[str, Any]

_MOST = 100  # explanations and pairs


def attribution_to_wire(found: Attribution, observed: tuple[str, ...]) -> Wire:
    """Return what was tried, and what it gave; `observed` has the results' own words."""
    return {"schema": SCHEMA, "operation": "attribute", **attribution_parts(found, observed)}


def attribution_parts(found: Attribution, observed: tuple[str, ...]) -> Wire:
    """Return the same as a part of another record."""
    return {
        "format": found.format.name,
        "context": context_to_wire(found.context),
        "tried": found.candidate_count,
        "observed": [
            {
                "given": word,
                "explanations": [_explanation(each) for each in explanations[:_MOST]],
                "patch": None if patch is None else _patch(patch),
            }
            for word, explanations, patch in zip(observed, found.explanations, found.tile_edges, strict=True)
        ],
        "verdict": None if found.verdict is None else found.verdict.value,
        "verdicts": [each.value for each in found.verdicts],
        "refuted": [
            {
                "cause": each.cause.value,
                "tried": each.tried,
                "first": each.first.text,
                "second": each.second.text,
                "codes": [_code(codes, found.format) for codes in each.path.codes],
                "ulps": integer(each.path.steps[0][1]),
            }
            for each in found.refutations
        ],
        "pairs": [
            {
                "first": pair.first.text,
                "second": pair.second.text,
                "differ_by": [cause.value for cause in pair.causes],
                "paths": [[[cause.value, integer(ulps)] for cause, ulps in path.steps] for path in pair.paths],
                "codes": [[_code(codes, found.format) for codes in path.codes] for path in pair.paths],
            }
            for pair in found.pairs[:_MOST]
        ],
    }


def _explanation(each: Explanation) -> Wire:
    return {
        "way": each.text,
        "matching": each.matching,
        "total": each.total,
        "elements": each.elements,
        "fits": each.fits,
        "code": None if each.codes is None else _code(each.codes, each.format),
    }


def _patch(patch: TileEdge) -> Wire:
    return {
        "axis": ("rows", "columns")[patch.axis],
        "places": [*patch.places],
        "way": patch.explanation.text,
        "others": patch.rest.text,
    }


def _code(codes: Array, format: Format) -> str | None:
    """Return the code of a single element."""
    return hexadecimal_code(Datum(format, int(codes.reshape(-1)[0]))) if codes.size == 1 else None
