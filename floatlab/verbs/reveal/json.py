"""The schemas of orders: a plan, and the findings of `reveal`, with the replays that support a claim."""

from __future__ import annotations

from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.order_map import OrderClass
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import PartlyFused
from floatlab.wire.codecs import BOOLEAN, FORMAT, INTEGER, NUMBER, TEXT, list_of, optional
from floatlab.wire.schema import Schema, common_members, derived

_NODES = list_of(list_of(INTEGER))


def _schedule(answer: Plan | Findings | OrderClass) -> str | None:
    """Return the schedule expression for an order; None if there is none."""
    schedule = schedule_of(answer) if isinstance(answer, Plan) else answer.schedule
    return None if schedule is None else schedule.text


PLAN = Schema(Plan, {**common_members("plan"), "terms": INTEGER, "nodes": _NODES, "schedule": derived(_schedule)})

_WAY = Schema(
    None,
    {
        "accumulator": FORMAT,
        "products": FORMAT,
        "fma": BOOLEAN,
        "fused_pairs": derived(lambda adder: adder.fma and adder.pairs),
        "fused_terms": derived(lambda adder: [*adder.fused] if isinstance(adder, PartlyFused) else None),
    },
)
_REPLAY = Schema(
    None,
    {
        "ways": derived("candidate.adders", list_of(_WAY)),
        "matching": derived("matching"),
        "trials": derived("total"),
    },
)


FINDINGS = Schema(
    None,
    {
        **common_members("reveal"),
        "target": derived("target.name"),
        "kind": derived("target.kind"),
        "format": FORMAT,
        "terms": derived("plan.terms"),
        "nodes": derived("plan.nodes", _NODES),
        "schedule": derived(_schedule),
        "claim": optional(_REPLAY),
        "shape": derived(lambda findings: [*findings.target.shape]),
        "element": derived(
            lambda findings: [0] * len(findings.target.shape)
        ),  # the plan and the claim are for the first
        "elements": derived("elements"),
        "elements_alike": derived("agreeing"),
        "replays": list_of(_REPLAY),
        "flushes_subnormals": derived("flushes"),
        "probes": INTEGER,
    },
)

_STRIPES = list_of(Schema(None, {"start": INTEGER, "width": INTEGER, "step": INTEGER, "count": INTEGER}))
_CLASS = Schema(
    None,
    {
        "elements": INTEGER,
        "share": NUMBER,
        "agreement": NUMBER,
        "order": derived("text"),
        "nodes": derived(lambda one: None if one.plan is None else one.plan.nodes, optional(_NODES)),
        "schedule": derived(_schedule),
        "ways": derived(lambda one: () if one.candidate is None else one.candidate.adders, list_of(_WAY)),
        "reason": TEXT,
        "regions": list_of(Schema(None, {"rows": _STRIPES, "columns": _STRIPES})),
    },
)
ORDER_MAP = Schema(
    None,
    {
        **common_members("reveal"),
        "target": TEXT,
        "shape": list_of(INTEGER),
        "batch": INTEGER,
        "layout": TEXT,
        "terms_format": FORMAT,
        "format": FORMAT,
        "share": NUMBER,
        "classes": list_of(_CLASS),
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
        "first": derived("first"),
        "tried": list_of(INTEGER),
        "groups": list_of(list_of(INTEGER)),
        "share": NUMBER,
        "ulps": INTEGER,
        "reason": TEXT,
    },
)
INVARIANCE = Schema(
    None,
    {
        **common_members("reveal"),
        "target": TEXT,
        "shape": list_of(INTEGER),
        "dtype": TEXT,
        "invariant": derived("is_invariant"),
        "circumstances": list_of(_CIRCUMSTANCE),
    },
)
