"""What `reveal` found as JSON: the tree as nested lists of terms, the schedule as text, and the replays."""

from __future__ import annotations

from floatlab.render.wire import SCHEMA, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.reduce.explanations import Explanation
    from floatlab.reduce.revelation import Findings

    Wire = dict[str, Any]


def findings_to_wire(found: Findings) -> Wire:
    """Return all that was found; `claim` is null where no replay gives all results."""
    return {
        "schema": SCHEMA,
        "operation": "reveal",
        "target": found.target.name,
        "kind": found.target.kind,
        "format": found.format.name,
        "terms": found.plan.terms,
        "nodes": [[*node] for node in found.plan.nodes],
        "schedule": None if found.schedule is None else found.schedule.text,
        "claim": None if found.claim is None else _replay(found.claim),
        "replays": [_replay(each) for each in found.replays],
        "flushes_subnormals": found.flushes,
        "probes": integer(found.probes),
    }


def _replay(replay: Explanation) -> Wire:
    ways = [
        {
            "accumulator": way.accumulator.name,
            "products": way.products.name,
            "fma": way.fma,
            "fused_pairs": way.fma and way.pairs,
        }
        for way in replay.trial.adders
    ]
    return {"ways": ways, "matching": replay.matching, "trials": replay.total}
