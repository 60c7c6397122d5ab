"""The schemas of orders: a plan, and what `reveal` found, with the replays that a claim rests on."""

from __future__ import annotations

from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import PartlyFused
from floatlab.wire.codecs import BOOLEAN, FORMAT, INTEGER, listed, optional
from floatlab.wire.schema import Schema, heading, shown

_NODES = listed(listed(INTEGER))


def _schedule(answer: Plan | Findings) -> str | None:
    """Return the expression that equals an order."""
    schedule = schedule_of(answer) if isinstance(answer, Plan) else answer.schedule
    return None if schedule is None else schedule.text


PLAN = Schema(Plan, {**heading("plan"), "terms": INTEGER, "nodes": _NODES, "schedule": shown(_schedule)})

_WAY = Schema(
    None,
    {
        "accumulator": FORMAT,
        "products": FORMAT,
        "fma": BOOLEAN,
        "fused_pairs": shown(lambda adder: adder.fma and adder.pairs),
        "fused_terms": shown(lambda adder: [*adder.fused] if isinstance(adder, PartlyFused) else None),
    },
)
_REPLAY = Schema(
    None,
    {"ways": shown("candidate.adders", listed(_WAY)), "matching": shown("matching"), "trials": shown("total")},
)


FINDINGS = Schema(
    None,
    {
        **heading("reveal"),
        "target": shown("target.name"),
        "kind": shown("target.kind"),
        "format": FORMAT,
        "terms": shown("plan.terms"),
        "nodes": shown("plan.nodes", _NODES),
        "schedule": shown(_schedule),
        "claim": optional(_REPLAY),
        "shape": shown(lambda findings: [*findings.target.shape]),
        "element": shown(lambda findings: [0] * len(findings.target.shape)),  # that plan and claim are of: the first
        "elements": shown("elements"),
        "elements_alike": shown("agreeing"),
        "replays": listed(_REPLAY),
        "flushes_subnormals": shown("flushes"),
        "probes": INTEGER,
    },
)
