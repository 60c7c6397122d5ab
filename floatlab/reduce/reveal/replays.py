"""Replays: ways to add along an order that a library was seen to have, against what it really computed."""

from __future__ import annotations

from floatlab.reduce.explain.candidates import trials_along
from floatlab.reduce.explain.evaluator import Bench
from floatlab.reduce.explain.explanations import Explanation, explain
from floatlab.reduce.explain.observations import Observed
from floatlab.reduce.plan.orders import Schedule

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
