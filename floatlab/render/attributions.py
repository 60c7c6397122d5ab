"""An attribution as JSON: for each observed result the ways that were tried, and the pairs that give two."""

from __future__ import annotations

from floatlab.render.wire import SCHEMA, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.reduce.attribution import Attribution, Explanation

    Wire = dict[str, Any]

_MOST = 100  # explanations and pairs


def attribution_to_wire(found: Attribution, observed: tuple[str, ...]) -> Wire:
    """Return what was tried, and what it gave; `observed` has the results' own words."""
    return {
        "schema": SCHEMA,
        "operation": "attribute",
        "format": found.format.name,
        "tried": found.trial_count,
        "observed": [
            {"given": word, "explanations": [_explanation(each) for each in explanations[:_MOST]]}
            for word, explanations in zip(observed, found.explanations, strict=True)
        ],
        "verdict": None if found.verdict is None else found.verdict.value,
        "pairs": [
            {
                "first": pair.first.text,
                "second": pair.second.text,
                "differ_by": [cause.value for cause in pair.causes],
                "paths": [[[cause.value, integer(ulps)] for cause, ulps in path.steps] for path in pair.paths],
            }
            for pair in found.pairs[:_MOST]
        ],
    }


def _explanation(each: Explanation) -> Wire:
    code = None if each.codes is None or each.codes.size != 1 else f"0x{int(each.codes.reshape(-1)[0]):08x}"
    return {"way": each.text, "matching": each.matching, "total": each.total, "fits": each.fits, "code": code}
