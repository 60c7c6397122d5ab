"""What `reveal` found as JSON: the tree as nested lists of terms, the schedule as text, and the replays."""

from __future__ import annotations

from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.simulate.adders import PartlyFused
from floatlab.wire.encode import SCHEMA, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.reduce.plan.plan import Plan
    from floatlab.reduce.replay.explanations import Explanation
    from floatlab.reduce.reveal.revelation import Findings

    Wire = dict[str, Any]


def findings_to_wire(found: Findings) -> Wire:
    """Return all that was found; `claim` is null where no replay gives all results.

    Of a product of this `shape`, plan and claim are those of one `element`, which `elements_alike` share, as replayed.
    """
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
        "shape": [*found.target.shape],
        "element": [0 for _ in found.target.shape],
        "elements": found.elements,
        "elements_alike": found.agreeing,
        "replays": [_replay(each) for each in found.replays],
        "flushes_subnormals": found.flushes,
        "probes": integer(found.probes),
    }


def plan_to_wire(plan: Plan) -> Wire:
    """Return an order: its nodes, and the expression that equals it, or null."""
    schedule = schedule_of(plan)
    return {
        "schema": SCHEMA,
        "operation": "plan",
        "terms": plan.terms,
        "nodes": [[*node] for node in plan.nodes],
        "schedule": None if schedule is None else schedule.text,
    }


def _replay(replay: Explanation) -> Wire:
    ways = [
        {
            "accumulator": way.accumulator.name,
            "products": way.products.name,
            "fma": way.fma,
            "fused_pairs": way.fma and way.pairs,
            "fused_terms": [*way.fused] if isinstance(way, PartlyFused) else None,
        }
        for way in replay.candidate.adders
    ]
    return {"ways": ways, "matching": replay.matching, "trials": replay.total}
