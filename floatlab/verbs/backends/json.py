"""A product on several backends as JSON: every time, error and distance, and who was absent."""

from __future__ import annotations

from floatlab.verbs.compare.json import judgement_to_wire
from floatlab.wire.encode import SCHEMA, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.reduce.timing.backends import BackendComparison, BackendPair, BackendTiming

    Wire = dict[str, Any]


def backends_to_wire(found: BackendComparison) -> Wire:
    """Return all of it but the products themselves; of the causes that were tried, once."""
    judgements = [run.judgement for run in found.runs] + [pair.judgement for pair in found.pairs]
    judged = [each for each in judgements if each is not None]
    return {
        "schema": SCHEMA,
        "operation": "matmul",
        "format": found.format.name,
        "shape": [*found.shape],
        "measured_rows": found.measured,
        "backends": [_run(run) for run in found.runs],
        "absent": [{"name": each.name, "reason": each.reason} for each in found.absent],
        "pairs": [_pair(pair) for pair in found.pairs],
        "trials": judgement_to_wire(judged[0])["trials"] if judged else None,
    }


def _run(run: BackendTiming) -> Wire:
    errors = run.errors
    return {
        "name": run.name,
        "words": run.words,
        "settings": [*run.settings],
        "seconds": {
            "sent": run.sent,
            "first": run.first,
            "rest": [*run.rest.runs],
            "average": run.rest.average,
            "sum": run.rest.total,
            "fetched": run.fetched,
        },
        "repeats": run.repeats,
        "nearest": errors.nearest,
        "looked_at": errors.looked_at,
        "error": {"ulps_largest": errors.largest, "ulps_rms": errors.rms},
        "q": {"largest": errors.q_largest, "rms": errors.q_rms},
        "causes": None if run.judgement is None else [each.value for each in run.judgement.causes],
    }


def _pair(pair: BackendPair) -> Wire:
    return {
        "names": [*pair.names],
        "equal_bits": integer(pair.equal),
        "ulps": integer(pair.ulps),
        "q": {"largest": pair.q_largest, "rms": pair.q_rms},
        "causes": None if pair.judgement is None else [each.value for each in pair.judgement.causes],
    }
