"""The schemas of orders: a plan, the findings of `reveal` with the replays that support a claim, and order maps."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.order_map import OrderClass, Region
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import Adder, PartlyFused
from floatlab.verbs.reveal.map_reading import ReadClass, order_map_of
from floatlab.wire.codecs import BOOLEAN, FORMAT, INTEGER, NUMBER, TEXT, listed, optional
from floatlab.wire.schema import Member, Schema, heading, schema_of, shown

_NODES = listed(listed(INTEGER))


def _schedule(answer: Plan | Findings | OrderClass) -> str | None:
    """Return the schedule expression for an order; None if there is none."""
    schedule = schedule_of(answer) if isinstance(answer, Plan) else answer.schedule
    return None if schedule is None else schedule.text


PLAN = Schema(Plan, {**heading("plan"), "terms": INTEGER, "nodes": _NODES, "schedule": shown(_schedule)})


def _read_adder(
    accumulator: Format,
    products: Format,
    fma: bool,
    pairs: bool,
    fused: tuple[int, ...] | None,
    partials: Format | None = None,
    kept: tuple[int, ...] = (),
) -> Adder | PartlyFused:
    if fused is not None:
        return PartlyFused(accumulator, fused, partials, kept)
    return Adder(accumulator, products, fma, pairs=pairs or not fma)


_WAY = Schema(
    _read_adder,
    {
        "accumulator": FORMAT,
        "products": FORMAT,
        "fma": BOOLEAN,
        "fused_pairs": Member(BOOLEAN, lambda adder: adder.fma and adder.pairs, "pairs"),
        "fused_terms": Member(
            optional(listed(INTEGER)), lambda adder: adder.fused if isinstance(adder, PartlyFused) else None, "fused"
        ),
        "partials": Member(FORMAT, lambda adder: getattr(adder, "partials", None), "partials", is_optional=True),
        "kept_nodes": Member(
            listed(INTEGER), lambda adder: getattr(adder, "kept", None) or None, "kept", is_optional=True
        ),
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
        "element": shown(lambda findings: [0] * len(findings.target.shape)),  # the plan and the claim are for the first
        "elements": shown("elements"),
        "elements_alike": shown("agreeing"),
        "replays": listed(_REPLAY),
        "flushes_subnormals": shown("flushes"),
        "probes": INTEGER,
    },
)

_CLASS = Schema(
    ReadClass,
    {
        "elements": shown("elements", INTEGER),
        "share": shown("share", NUMBER),
        "agreement": shown("agreement", NUMBER),
        "order": shown("text"),
        "nodes": Member(optional(_NODES), lambda one: None if one.plan is None else one.plan.nodes, "nodes"),
        "schedule": shown(_schedule),
        "ways": Member(listed(_WAY), lambda one: () if one.candidate is None else one.candidate.adders, "adders"),
        "reason": TEXT,
        "regions": listed(schema_of(Region)),
    },
)
ORDER_MAP = Schema(
    order_map_of,
    {
        **heading("reveal"),
        "target": TEXT,
        "shape": listed(INTEGER),
        "batch": INTEGER,
        "layout": TEXT,
        "terms_format": FORMAT,
        "format": FORMAT,
        "share": shown("share", NUMBER),
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
