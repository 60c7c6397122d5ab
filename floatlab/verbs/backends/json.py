"""The schema of a product on several backends: every time, error and distance, and who was absent."""

from __future__ import annotations

from floatlab.reduce.timing.backends import Absence, BackendComparison
from floatlab.verbs.compare.json import EFFECTS
from floatlab.wire.schema import FORMAT, INTEGER, Schema, attributes, heading, listed, optional, schema_of, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce.results.judgements import Effect
    from floatlab.reduce.timing.backends import BackendPair, BackendTiming


def _causes(judged: BackendTiming | BackendPair) -> list[str] | None:
    return None if judged.judgement is None else [cause.value for cause in judged.judgement.causes]


def _effects(standing: BackendComparison) -> tuple[Effect, ...] | None:
    """Return what causes do to these inputs: the same in every judgement."""
    judgements = [run.judgement for run in standing.runs] + [pair.judgement for pair in standing.pairs]
    return next((judgement.effects for judgement in judgements if judgement is not None), None)


_TIMING = {
    **attributes("name", "words"),
    "settings": shown(lambda run: [*run.settings]),
    "seconds": {
        **attributes("sent", "first"),
        "rest": shown(lambda run: [*run.rest.runs]),
        "average": shown("rest.average"),
        "sum": shown("rest.total"),
        "fetched": shown("fetched"),
    },
    "repeats": shown("repeats"),
    "nearest": shown("errors.nearest"),
    "looked_at": shown("errors.looked_at"),
    "error": {"ulps_largest": shown("errors.largest"), "ulps_rms": shown("errors.rms")},
    "q": {"largest": shown("errors.q_largest"), "rms": shown("errors.q_rms")},
    "causes": shown(_causes),
}
_PAIR = {
    "names": shown(lambda pair: [*pair.names]),
    "equal_bits": shown("equal", INTEGER),
    "ulps": INTEGER,
    "q": {"largest": shown("q_largest"), "rms": shown("q_rms")},
    "causes": shown(_causes),
}
STANDING = Schema(
    None,
    {
        **heading("matmul"),
        "format": FORMAT,
        "shape": listed(INTEGER),
        "measured_rows": shown("measured"),
        "backends": shown("runs", listed(Schema(None, _TIMING))),
        "absent": listed(schema_of(Absence)),
        "pairs": listed(Schema(None, _PAIR)),
        "trials": shown(_effects, optional(EFFECTS)),
    },
)
