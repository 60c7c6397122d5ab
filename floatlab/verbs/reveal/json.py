"""The schemas of a plan, and of the findings of `reveal` with the replays that support a claim."""

from __future__ import annotations

from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.order_map import OrderClass
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import PartlyFused
from floatlab.wire.codecs import BOOLEAN, FORMAT, INTEGER, NUMBER, TEXT, listed, optional
from floatlab.wire.schema import Schema, heading, shown

_NODES = listed(listed(INTEGER))


def _schedule(answer: Plan | Findings | OrderClass) -> str | None:
    """Return the schedule expression for an order; None if there is none."""
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
        "element": shown(lambda findings: [0] * len(findings.target.shape)),  # plan and claim are its
        "elements": shown("elements"),
        "elements_alike": shown("agreeing"),
        "replays": listed(_REPLAY),
        "flushes_subnormals": shown("flushes"),
        "probes": INTEGER,
    },
)

_STRIPES = listed(Schema(None, {"start": INTEGER, "width": INTEGER, "step": INTEGER, "count": INTEGER}))
_CLASS = Schema(
    None,
    {
        "elements": INTEGER,
        "share": NUMBER,
        "agreement": NUMBER,
        "order": shown("text"),
        "nodes": shown(lambda one: None if one.plan is None else one.plan.nodes, optional(_NODES)),
        "schedule": shown(_schedule),
        "ways": shown(lambda one: () if one.candidate is None else one.candidate.adders, listed(_WAY)),
        "reason": TEXT,
        "regions": listed(Schema(None, {"rows": _STRIPES, "columns": _STRIPES})),
    },
)
ORDER_MAP = Schema(
    None,
    {
        **heading("reveal"),
        "target": TEXT,
        "shape": listed(INTEGER),
        "batch": INTEGER,
        "layout": TEXT,
        "terms_format": FORMAT,
        "format": FORMAT,
        "share": NUMBER,
        "classes": listed(_CLASS),
        "probes": INTEGER,
        "products": INTEGER,
    },
)

_CIRCUMSTANCE = Schema(
    None,
    {
        "name": TEXT,
        "meaning": TEXT,
        "changes": BOOLEAN,
        "first": shown("first"),
        "tried": listed(INTEGER),
        "groups": listed(listed(INTEGER)),
        "share": NUMBER,
        "ulps": INTEGER,
        "reason": TEXT,
    },
)
INVARIANCE = Schema(
    None,
    {
        **heading("reveal"),
        "target": TEXT,
        "shape": listed(INTEGER),
        "dtype": TEXT,
        "invariant": shown("is_invariant"),
        "circumstances": listed(_CIRCUMSTANCE),
    },
)
