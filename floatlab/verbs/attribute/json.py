"""The schema of an attribution: candidates for each observed result, and pairs of candidates for two results."""

from __future__ import annotations

from typing import Any

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code
from floatlab.reduce.explain.attribution import Attribution
from floatlab.reduce.replay.causes import Path
from floatlab.wire.codecs import FORMAT, INTEGER, integer, listed, optional
from floatlab.wire.derivations import CONTEXT
from floatlab.wire.schema import Schema, attributes, heading, shown

_MOST = 100  # at most this many explanations and pairs are written


def _code(codes: Array | None, format: Format) -> str | None:
    """Return the code of a single element."""
    if codes is None or codes.size != 1:
        return None
    return hexadecimal_code(Datum(format, int(codes.reshape(-1)[0])))


def _codes(path: Path) -> list[str | None]:
    return [_code(codes, path.format) for codes in path.codes]


_EXPLANATION = Schema(
    None,
    {
        "way": shown("text"),
        **attributes("matching", "total", "elements", "fits"),
        "code": shown(lambda explanation: _code(explanation.codes, explanation.format)),
    },
)
_PATCH = Schema(
    None,
    {
        "axis": shown(lambda patch: ("rows", "columns")[patch.axis]),
        "places": shown(lambda patch: [*patch.places]),
        "way": shown("explanation.text"),
        "others": shown("rest.text"),
    },
)
_REFUTATION = Schema(
    None,
    {
        "cause": shown("cause.value"),
        "tried": shown("tried"),
        "first": shown("first.text"),
        "second": shown("second.text"),
        "codes": shown(lambda refutation: _codes(refutation.path)),
        "ulps": shown(lambda refutation: refutation.path.steps[0][1], INTEGER),
    },
)


_PAIR = Schema(
    None,
    {
        "first": shown("first.text"),
        "second": shown("second.text"),
        "differ_by": shown(lambda pair: [cause.value for cause in pair.causes]),
        "paths": shown(
            lambda pair: [[[cause.value, integer(ulps)] for cause, ulps in path.steps] for path in pair.paths]
        ),
        "codes": shown(lambda pair: [_codes(path) for path in pair.paths]),
    },
)


_OBSERVED = Schema(  # a result as typed, the candidates that give it, and the tile edge that explains it
    None,
    {
        "given": shown(lambda row: row[0]),
        "explanations": shown(lambda row: row[1][:_MOST], listed(_EXPLANATION)),
        "patch": shown(lambda row: row[2], optional(_PATCH)),
    },
)


def _observed(attribution: Attribution) -> list[tuple[object, ...]]:
    return [*zip(attribution.observed, attribution.explanations, attribution.tile_edges, strict=True)]


_ATTRIBUTION: dict[str, Any] = {
    "format": FORMAT,
    "context": CONTEXT,
    "tried": shown("candidate_count"),
    "observed": shown(_observed, listed(_OBSERVED)),
    "verdict": shown(lambda attribution: attribution.verdict and attribution.verdict.value),
    "verdicts": shown(lambda attribution: [verdict.value for verdict in attribution.verdicts]),
    "refuted": shown("refutations", listed(_REFUTATION)),
    "pairs": shown(lambda attribution: attribution.pairs[:_MOST], listed(_PAIR)),
}
PART = Schema(None, _ATTRIBUTION)
ATTRIBUTION = Schema(None, heading("attribute") | _ATTRIBUTION)
