"""Replays: ways to add along an order that a library was seen to have, against what it really computed."""

from __future__ import annotations

from floatlab.reduce.bench import Bench
from floatlab.reduce.explanations import Explanation, explain
from floatlab.reduce.observations import Observed
from floatlab.reduce.orders import Schedule
from floatlab.reduce.trials import trials_along

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def replays(
    bench: Bench,
    schedule: Schedule,
    real: Observed,
    order: str = "",
    fused: Callable[[], tuple[int, ...]] | None = None,
) -> Iterator[Explanation]:
    """Try accumulators, products, fused multiply-adds and remainders; stop at the first that gives all results.

    `fused` asks the library which products it fuses, where nothing simpler gives all.
    """
    for trial in trials_along(schedule, bench.terms, bench.formats, bench.into, order, bench.context, fused):
        yield (found := explain(bench, trial, real))
        if found.fits:
            return
