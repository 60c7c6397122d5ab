"""The JSON schemas of timed products, computed in parts or on several backends, with their errors and differences."""

from __future__ import annotations

from floatlab.reduce.timing.backends import Absence, BackendComparison
from floatlab.reduce.timing.partitions import ulps_apart
from floatlab.verbs.compare.json import EFFECTS
from floatlab.verbs.reduce.json import SIZES_OF_ERRORS
from floatlab.wire.codecs import FORMAT, INTEGER, list_of, optional
from floatlab.wire.schema import Schema, attributes, common_members, constant, derived, flattened, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce.results.judgements import Effect
    from floatlab.reduce.timing.backends import BackendPair, BackendTiming
    from floatlab.reduce.timing.measurement import Ranking


def _words(ranking: Ranking) -> str:
    from floatlab.verbs.timing.page import fastest_words

    return fastest_words(ranking) if ranking.names else "no backend"


_STATISTICS = attributes("minimum", "median", "spread")
_RUNS = derived(lambda timing: [*timing.runs])
_TIMES = Schema(None, {"runs": _RUNS, **_STATISTICS})
# Members of both schemas. The page shows them as remarks below the times.
_MEASURES = {
    "runs": derived("ranking.runs"),
    "runs_asked": derived("asked"),
    "interrupted": derived("interrupted"),
    "measures": {
        "spread": constant("interquartile range"),
        "gflops": constant("2 * rows * terms * columns / median / 10^9"),
    },
}
_RANKING = Schema(
    None,
    {
        "name": derived("fastest"),
        "candidates": derived(lambda ranking: [*ranking.candidates]),
        "words": derived(_words),
    },
)
_PARTITION = {
    "name": derived("name"),
    "first": derived("first"),
    "seconds": derived(lambda product: list(product.timing.runs)),
    "average": derived("timing.average"),
    "sum": derived("timing.total"),
    "cumulative": derived(lambda product: list(product.timing.cumulative)),
    **flattened("timing", _STATISTICS),
    "gflops": derived("gigaflops"),
    **attributes("largest_error", "largest_q"),
}
PARTITIONS = Schema(
    None,
    {
        **common_members("matmul"),
        "shape": list_of(INTEGER),
        "block_size": derived("block"),
        **_MEASURES,
        "ways": derived("products", list_of(Schema(None, _PARTITION))),
        "ulps_apart": derived(lambda comparison: ulps_apart(comparison.products), list_of(list_of(INTEGER))),
        "fastest": derived("ranking", _RANKING),
        "nearest": derived(lambda comparison: [*comparison.nearest]),
    },
)


def _causes(judged: BackendTiming | BackendPair) -> list[str] | None:
    return None if judged.judgement is None else [cause.value for cause in judged.judgement.causes]


def _effects(compared: BackendComparison) -> tuple[Effect, ...] | None:
    """Return how large a difference each possible cause would give on these inputs.

    The effects depend only on the inputs, so they are the same for all pairs of backends.
    """
    judgements = [run.judgement for run in compared.runs] + [pair.judgement for pair in compared.pairs]
    return next((judgement.effects for judgement in judgements if judgement is not None), None)


_TIMING = {
    **attributes("name", "words"),
    "settings": derived(lambda run: [*run.settings]),
    "seconds": {
        **attributes("sent", "first"),
        "rest": derived(lambda run: [*run.rest.runs]),
        "average": derived("rest.average"),
        "sum": derived("rest.total"),
        **flattened("rest", _STATISTICS),
        "fetched": derived("fetched"),
    },
    "transfers": {"to_device": derived("sending", _TIMES), "from_device": derived("fetching", _TIMES)},
    "total": derived("complete", _TIMES),
    "gflops": derived("gigaflops"),
    "repeats": derived("repeats"),
    **flattened("errors", {**attributes("nearest", "looked_at"), **SIZES_OF_ERRORS}),
    "causes": derived(_causes),
}
_PAIR = {
    "names": derived(lambda pair: [*pair.names]),
    "equal_bits": derived("equal", INTEGER),
    "ulps": INTEGER,
    "q": SIZES_OF_ERRORS["q"],
    "causes": derived(_causes),
}
COMPARISON = Schema(
    None,
    {
        **common_members("matmul"),
        "format": FORMAT,
        "shape": list_of(INTEGER),
        "measured_rows": derived("measured"),
        **_MEASURES,
        "backends": derived("runs", list_of(Schema(None, _TIMING))),
        "absent": list_of(schema_of(Absence)),
        "pairs": list_of(Schema(None, _PAIR)),
        "fastest": derived("ranking", _RANKING),
        "fastest_with_transfers": derived("complete_ranking", _RANKING),
        "trials": derived(_effects, optional(EFFECTS)),
    },
)
