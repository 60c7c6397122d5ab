"""The schemas of products that were timed: in parts and on several backends, with their errors and distances."""

from __future__ import annotations

from floatlab.reduce.timing.backends import Absence, BackendComparison
from floatlab.reduce.timing.partitions import ulps_apart
from floatlab.verbs.compare.json import EFFECTS
from floatlab.verbs.reduce.json import SIZES_OF_ERRORS
from floatlab.wire.codecs import FORMAT, INTEGER, listed, optional
from floatlab.wire.schema import Schema, attributes, heading, schema_of, shown, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce.results.judgements import Effect
    from floatlab.reduce.timing.backends import BackendPair, BackendTiming

_PARTITION = {
    "name": shown("name"),
    "seconds": shown(lambda product: list(product.timing.runs)),
    "average": shown("timing.average"),
    "sum": shown("timing.total"),
    "cumulative": shown(lambda product: list(product.timing.cumulative)),
    **attributes("largest_error", "largest_q"),
}
PARTITIONS = Schema(
    None,
    {
        **heading("matmul"),
        "ways": shown(lambda products: products, listed(Schema(None, _PARTITION))),
        "ulps_apart": shown(lambda products: ulps_apart(products), listed(listed(INTEGER))),
    },
)


def _causes(judged: BackendTiming | BackendPair) -> list[str] | None:
    return None if judged.judgement is None else [cause.value for cause in judged.judgement.causes]


def _effects(compared: BackendComparison) -> tuple[Effect, ...] | None:
    """Return what causes do to these inputs: the same in every judgement."""
    judgements = [run.judgement for run in compared.runs] + [pair.judgement for pair in compared.pairs]
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
    **within("errors", {**attributes("nearest", "looked_at"), **SIZES_OF_ERRORS}),
    "causes": shown(_causes),
}
_PAIR = {
    "names": shown(lambda pair: [*pair.names]),
    "equal_bits": shown("equal", INTEGER),
    "ulps": INTEGER,
    "q": SIZES_OF_ERRORS["q"],
    "causes": shown(_causes),
}
COMPARISON = Schema(
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
