"""The JSON schema of an attribution: candidates for each observed result, and pairs of candidates for two results."""

from __future__ import annotations

from typing import Any

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code
from floatlab.reduce.explain.attribution import Attribution
from floatlab.reduce.replay.causes import Path
from floatlab.wire.codecs import FORMAT, INTEGER, integer, list_of, optional
from floatlab.wire.derivations import CONTEXT
from floatlab.wire.schema import Schema, attributes, common_members, derived

_MOST = 100  # limit for the candidates in the JSON, and for the pairs


def _code(codes: Array | None, format: Format) -> str | None:
    """Return the code of a single-element result; None for larger or unknown results."""
    if codes is None or codes.size != 1:
        return None
    return hexadecimal_code(Datum(format, int(codes.reshape(-1)[0])))


def _codes(path: Path) -> list[str | None]:
    return [_code(codes, path.format) for codes in path.codes]


_EXPLANATION = Schema(
    None,
    {
        "way": derived("text"),
        **attributes("matching", "total", "elements", "fits"),
        "code": derived(lambda explanation: _code(explanation.codes, explanation.format)),
    },
)
_PATCH = Schema(
    None,
    {
        "axis": derived(lambda patch: ("rows", "columns")[patch.axis]),
        "places": derived(lambda patch: [*patch.places]),
        "way": derived("explanation.text"),
        "others": derived("rest.text"),
    },
)
_REFUTATION = Schema(
    None,
    {
        "cause": derived("cause.value"),
        "tried": derived("tried"),
        "first": derived("first.text"),
        "second": derived("second.text"),
        "codes": derived(lambda refutation: _codes(refutation.path)),
        "ulps": derived(lambda refutation: refutation.path.steps[0][1], INTEGER),
    },
)


_PAIR = Schema(
    None,
    {
        "first": derived("first.text"),
        "second": derived("second.text"),
        "differ_by": derived(lambda pair: [cause.value for cause in pair.causes]),
        "paths": derived(
            lambda pair: [[[cause.value, integer(ulps)] for cause, ulps in path.steps] for path in pair.paths]
        ),
        "codes": derived(lambda pair: [_codes(path) for path in pair.paths]),
    },
)


# An observed result: its text, and the candidates that give it. If one candidate gives only some rows or columns, and
# another one the rest, `patch` has these rows or columns: the edge of a tile.
_OBSERVED = Schema(
    None,
    {
        "given": derived(lambda row: row[0]),
        "explanations": derived(lambda row: row[1][:_MOST], list_of(_EXPLANATION)),
        "patch": derived(lambda row: row[2], optional(_PATCH)),
    },
)


def _observed(attribution: Attribution) -> list[tuple[object, ...]]:
    return [*zip(attribution.observed, attribution.explanations, attribution.tile_edges, strict=True)]


_ATTRIBUTION: dict[str, Any] = {
    "format": FORMAT,
    "context": CONTEXT,
    "tried": derived("candidate_count"),
    "observed": derived(_observed, list_of(_OBSERVED)),
    "verdict": derived(lambda attribution: attribution.verdict and attribution.verdict.value),
    "verdicts": derived(lambda attribution: [verdict.value for verdict in attribution.verdicts]),
    "refuted": derived("refutations", list_of(_REFUTATION)),
    "pairs": derived(lambda attribution: attribution.pairs[:_MOST], list_of(_PAIR)),
}
PART = Schema(None, _ATTRIBUTION)
ATTRIBUTION = Schema(None, common_members("attribute") | _ATTRIBUTION)
