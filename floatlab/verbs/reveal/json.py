"""The JSON schemas of `reveal`: a plan (an order of additions), the findings, and an order map."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers.rounding import DEFAULT
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.replay.candidates import NodeAdder
from floatlab.reduce.reveal.order_map_record import OrderClass, Region
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import Adder, PartlyFused
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.verbs.reveal.map_reading import ReadClass, order_map_of
from floatlab.wire.codecs import BOOLEAN, FORMAT, INTEGER, NUMBER, TEXT, list_of, optional
from floatlab.wire.schema import Member, Schema, common_members, derived, schema_of

_NODES = list_of(list_of(INTEGER))


def _schedule(answer: Plan | Findings | OrderClass) -> str | None:
    """Return an order as a schedule expression, such as pairwise; None if no expression denotes it."""
    schedule = schedule_of(answer) if isinstance(answer, Plan) else answer.schedule
    return None if schedule is None else schedule.text


PLAN = Schema(Plan, {**common_members("plan"), "terms": INTEGER, "nodes": _NODES, "schedule": derived(_schedule)})


def _read_adder(
    accumulator: Format,
    products: Format,
    fma: bool,
    pairs: bool,
    fused: tuple[int, ...] | None,
    partials: Format | None = None,
    kept: tuple[int, ...] = (),
    compensation: str | None = None,
) -> NodeAdder:
    if compensation is not None:
        return Compensated(compensation, accumulator, products, DEFAULT)
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
            optional(list_of(INTEGER)), lambda adder: adder.fused if isinstance(adder, PartlyFused) else None, "fused"
        ),
        "partials": Member(FORMAT, lambda adder: getattr(adder, "partials", None), "partials", is_optional=True),
        "kept_nodes": Member(
            list_of(INTEGER), lambda adder: getattr(adder, "kept", None) or None, "kept", is_optional=True
        ),
        "compensation": Member(TEXT, lambda adder: getattr(adder, "rule", None), "compensation", is_optional=True),
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
        ),  # `plan` and `claim` describe only the first element
        "elements": derived("elements"),
        "elements_alike": derived("agreeing"),
        "replays": list_of(_REPLAY),
        "flushes_subnormals": derived("flushes"),
        "probes": INTEGER,
    },
)

_CLASS = Schema(
    ReadClass,
    {
        "elements": derived("elements", INTEGER),
        "share": derived("share", NUMBER),
        "agreement": derived("agreement", NUMBER),
        "order": derived("text"),
        "nodes": Member(optional(_NODES), lambda one: None if one.plan is None else one.plan.nodes, "nodes"),
        "schedule": derived(_schedule),
        "ways": Member(list_of(_WAY), lambda one: () if one.candidate is None else one.candidate.adders, "adders"),
        "reason": TEXT,
        "regions": list_of(schema_of(Region)),
    },
)
ORDER_MAP = Schema(
    order_map_of,
    {
        **common_members("reveal"),
        "target": TEXT,
        "shape": list_of(INTEGER),
        "batch": INTEGER,
        "layout": TEXT,
        "terms_format": FORMAT,
        "format": FORMAT,
        "share": derived("share", NUMBER),
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
        "formats": list_of(TEXT),
        "nans": BOOLEAN,
        "rows": INTEGER,
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
        "verdict": derived("verdict"),
        "circumstances": list_of(_CIRCUMSTANCE),
    },
)
