"""The schemas of timed products, in parts and on several backends, with their errors and differences."""

from __future__ import annotations

from floatlab.reduce.timing.backends import Absence, BackendComparison
from floatlab.reduce.timing.partitions import ulps_apart
from floatlab.verbs.compare.json import EFFECTS
from floatlab.verbs.reduce.json import SIZES_OF_ERRORS
from floatlab.wire.codecs import FORMAT, INTEGER, listed, optional
from floatlab.wire.schema import Schema, attributes, constant, heading, schema_of, shown, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce.results.judgements import Effect
    from floatlab.reduce.timing.backends import BackendPair, BackendTiming
    from floatlab.reduce.timing.measurement import Ranking


def _words(ranking: Ranking) -> str:
    from floatlab.verbs.timing.page import fastest_words

    return fastest_words(ranking) if ranking.names else "no backend"


_STATISTICS = attributes("minimum", "median", "spread")
_RUNS = shown(lambda timing: [*timing.runs])
_TIMES = Schema(None, {"runs": _RUNS, **_STATISTICS})
# The members of both comparisons that the page shows as remarks below the times.
_MEASURES = {
    "runs": shown("ranking.runs"),
    "runs_asked": shown("asked"),
    "interrupted": shown("interrupted"),
    "measures": {
        "spread": constant("interquartile range"),
        "gflops": constant("2 * rows * terms * columns / median / 10^9"),
    },
}
_RANKING = Schema(
    None, {"name": shown("fastest"), "candidates": shown(lambda ranking: [*ranking.candidates]), "words": shown(_words)}
)
_PARTITION = {
    "name": shown("name"),
    "first": shown("first"),
    "seconds": shown(lambda product: list(product.timing.runs)),
    "average": shown("timing.average"),
    "sum": shown("timing.total"),
    "cumulative": shown(lambda product: list(product.timing.cumulative)),
    **within("timing", _STATISTICS),
    "gflops": shown("gigaflops"),
    **attributes("largest_error", "largest_q"),
}
PARTITIONS = Schema(
    None,
    {
        **heading("matmul"),
        "shape": listed(INTEGER),
        "block_size": shown("block"),
        **_MEASURES,
        "ways": shown("products", listed(Schema(None, _PARTITION))),
        "ulps_apart": shown(lambda comparison: ulps_apart(comparison.products), listed(listed(INTEGER))),
        "fastest": shown("ranking", _RANKING),
        "nearest": shown(lambda comparison: [*comparison.nearest]),
    },
)


def _causes(judged: BackendTiming | BackendPair) -> list[str] | None:
    return None if judged.judgement is None else [cause.value for cause in judged.judgement.causes]


def _effects(compared: BackendComparison) -> tuple[Effect, ...] | None:
    """Return the effects of the causes on these inputs; they are the same in all judgements."""
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
        **within("rest", _STATISTICS),
        "fetched": shown("fetched"),
    },
    "transfers": {"to_device": shown("sending", _TIMES), "from_device": shown("fetching", _TIMES)},
    "total": shown("complete", _TIMES),
    "gflops": shown("gigaflops"),
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
        **_MEASURES,
        "backends": shown("runs", listed(Schema(None, _TIMING))),
        "absent": listed(schema_of(Absence)),
        "pairs": listed(Schema(None, _PAIR)),
        "fastest": shown("ranking", _RANKING),
        "fastest_with_transfers": shown("complete_ranking", _RANKING),
        "trials": shown(_effects, optional(EFFECTS)),
    },
)
