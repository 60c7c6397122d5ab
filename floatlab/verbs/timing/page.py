"""The pages of `matmul --ways` and `--backends`: the times and errors of products, and comparisons of pairs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from floatlab.page.measures import factors_text, number, percent, seconds
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, heading, hint, line
from floatlab.page.words import counted, listed
from floatlab.reduce.results.judgements import Judgement
from floatlab.reduce.timing.backends import BackendComparison, BackendPair
from floatlab.reduce.timing.measurement import FEWEST, Ranking, Timing
from floatlab.reduce.timing.partitions import PartitionComparison, ulps_apart
from floatlab.verbs.judge.page import judgement_words

_ROUNDED = 0.9  # if this fraction of the elements is correctly rounded, the sums were computed in a wider format


def fastest_words(ranking: Ranking) -> str:
    """Return text that says which candidate is the fastest, or why none of them is known to be the fastest.

    >>> from floatlab.reduce.timing.measurement import Timing, rank
    >>> a, b = Timing((1.0, 2.0, 1.5, 1.0)), Timing((1.5, 2.0, 1.5, 2.0))
    >>> fastest_words(rank({"a": a, "b": b}))
    'a and b cannot be told apart: their medians differ by 500 ms, the spread is 625 ms'
    >>> fastest_words(rank({"a": a, "c": Timing((3.0,) * 4)}))
    'fastest a: median 1.25 s; then c, median 3 s'
    """
    names, candidates = ranking.names, ranking.candidates
    if len(names) < 2:
        return f"only {names[0]} was timed"
    if ranking.runs < FEWEST:
        runs = "1 run does" if ranking.runs == 1 else f"{ranking.runs} runs do"
        return f"{runs} not show which is fastest: use --runs {FEWEST} or more"
    if ranking.fastest:
        first, second = ranking.timings[:2]
        return f"fastest {names[0]}: median {seconds(first.median)}; then {names[1]}, median {seconds(second.median)}"
    up_to = "" if len(candidates) == 2 else "up to "
    reason = (
        "their medians differ"
        if ranking.difference <= ranking.spread
        else "their runs overlap, though their medians differ"
    )
    said = f"{listed([*candidates])} cannot be told apart: {reason} by {up_to}{seconds(ranking.difference)}"
    said += f", the spread is {up_to}{seconds(ranking.spread)}"
    slower = [name for name in names if name not in candidates]
    return f"{said}; slower: {', '.join(slower)}" if slower else said


def partitions_page(found: PartitionComparison) -> Page:
    """Return the page of a product computed as a whole and in parts."""
    products, (rows, n, columns) = found.products, found.shape
    factors = factors_text((rows, n), (n, columns))
    title = f"matrix product {factors}, in {len(products)} ways (blocks of {counted(found.block, 'term')})"
    timings = {each.name: each.timing for each in products}
    passed = np.cumsum([timing.total for timing in timings.values()])
    times = [
        (name, *map(seconds, (timing.average, timing.total, total)))
        for (name, timing), total in zip(timings.items(), passed, strict=True)
    ]
    errors = [(each.name, number(each.largest_error), number(each.largest_q)) for each in products]
    apart = [
        (each.name, *(f"{ulps:,}" for ulps in row)) for each, row in zip(products, ulps_apart(products), strict=True)
    ]
    runs = found.ranking.runs
    blocks: list[Block] = [
        heading(title),
        *_interruption(runs, found.asked),
        _statistics("way", timings, {each.name: each.gigaflops for each in products}),
        Gap(),
        Table(("way", "average", f"sum of {counted(runs, 'run')}", "cumulative"), times, (1, 2, 3)),
        _measures("ways"),
        Gap(),
        heading("Errors against the exact product"),
        Table(("way", "largest error", "largest q"), errors, (1, 2)),
        Gap(),
        heading("Largest differences in ulps"),
        Table(("", *(each.name.split()[-1] for each in products)), apart, tuple(range(1, len(products) + 1))),
        Gap(),
        Row("verdict", fastest_words(found.ranking)),
        Row("nearest", f"{listed([*found.nearest])} to the exact product"),
    ]
    return Page(tuple(blocks), title)


def backends_page(found: BackendComparison) -> Page:
    """Return the page of a product on several backends.

    >>> import numpy as np
    >>> from floatlab.reduce.timing.backends import multiply_on
    >>> page = backends_page(multiply_on(np.ones((2, 3)), np.ones((3, 2)), "numpy", 1))
    >>> page.title
    'matrix product (2 × 3) · (3 × 2) in binary64, on 1 backend'
    """
    rows, n, columns = found.shape
    there = counted(len(found.runs), "backend") if found.runs else "no backend"
    title = f"matrix product {factors_text((rows, n), (n, columns))} in {found.format.name}, on {there}"
    blocks: list[Block] = [heading(title)]
    if found.runs:
        blocks += [*_interruption(found.ranking.runs, found.asked), *_times(found), Gap(), *_errors(found)]
    if found.pairs:
        pairs = [
            (_named(pair), percent(pair.equal, found.elements), f"{pair.ulps:,}",
             number(pair.q_rms), number(pair.q_largest))
            for pair in found.pairs
        ]  # fmt: skip
        header = ("pair", "equal bits", "ulps", "rms q", "largest q")
        blocks += [Gap(), heading("Differences of pairs"), Table(header, pairs, (1, 2, 3, 4))]
    blocks.append(Gap())
    for run in found.runs:
        blocks.append(Row(run.name, ", ".join((run.words, *run.settings))))
        if not run.repeats:
            blocks.append(Row("", Span("its bits differ from run to run", Role.FLAG)))
    blocks += [Row("absent", f"{each.name}: {each.reason}") for each in found.absent]
    if found.runs:
        least = found.nearest.errors.q_rms
        nearest = listed([run.name for run in found.runs if run.errors.q_rms == least])
        blocks += [
            Gap(),
            Row("verdict", fastest_words(found.ranking)),
            Row("in total", fastest_words(found.complete_ranking)),
            Row("nearest", f"{nearest} to the exact product"),
            *_verdicts(found),
        ]
    return Page(tuple(blocks), title)


def _times(found: BackendComparison) -> list[Block]:
    runs, products = found.ranking.runs, {run.name: run.rest for run in found.runs}
    calls = [(run.name, *map(seconds, (run.first, run.rest.average, run.rest.total))) for run in found.runs]
    transfers = [
        (run.name, seconds(run.sent), seconds(run.fetched), *_least_and_median(run.complete)) for run in found.runs
    ]
    return [
        _statistics("backend", products, {run.name: run.gigaflops for run in found.runs}),
        Gap(),
        Table(("backend", "first call", "average", f"sum of {counted(runs, 'more call')}"), calls, (1, 2, 3)),
        Gap(),
        heading("With transfers: medians of sending and fetching, and the total"),
        Table(("backend", "sent in", "fetched in", "minimum", "median", "spread"), transfers, (1, 2, 3, 4, 5)),
        _measures("backends"),
    ]


def _statistics(noun: str, timings: Mapping[str, Timing], rates: Mapping[str, float | None]) -> Table:
    rows = [(name, *_least_and_median(timing), number(rates[name])) for name, timing in timings.items()]
    return Table((noun, "minimum", "median", "spread", "GFLOP/s"), rows, (1, 2, 3, 4))


def _least_and_median(timing: Timing) -> tuple[str, str, str]:
    spread = "unknown" if timing.spread is None else seconds(timing.spread)
    return seconds(timing.minimum), seconds(timing.median), spread


def _measures(noun: str) -> Note:
    return hint(
        "spread: the interquartile range. GFLOP/s: 2 × rows × terms × columns operations in the median time. "
        f"The runs of the {noun} alternate."
    )


def _interruption(runs: int, asked: int) -> list[Block]:
    return [Note(Span(f"interrupted after {runs} of {counted(asked, 'run')}", Role.FLAG))] if runs < asked else []


def _errors(found: BackendComparison) -> list[Block]:
    head = "Errors against the exact product"
    if found.measured < found.shape[0]:
        head += f", in {found.measured:,} of {found.shape[0]:,} rows"
    rows = []
    for run in found.runs:
        sizes = map(number, (run.errors.largest, run.errors.q_rms, run.errors.q_largest))
        rows.append((run.name, percent(run.errors.nearest, run.errors.looked_at), *sizes))
    header = ("backend", "nearest", "ulps", "rms q", "largest q")
    return [heading(head), Table(header, rows, (1, 2, 3, 4))]


def _named(pair: BackendPair) -> str:
    return " and ".join(pair.names)


def _verdicts(found: BackendComparison) -> list[Block]:
    """Return rows with the verdicts on pairs of backends, where pairs with the same verdict share a row.

    Further rows are for backends whose errors against the exact product may have other causes than rounding. Backends
    with almost only correctly rounded elements have no such row.
    """
    said: dict[str, list[str]] = {}
    for pair in found.pairs:
        same = pair.equal == found.elements
        said.setdefault("the same bits" if same else _words(pair.judgement), []).append(_named(pair))
    if len(found.pairs) > 1 and len(said) == 1:
        blocks: list[Block] = [Row("all pairs", _line(words)) for words in said]
    else:
        blocks = [Row("; ".join(names), _line(words)) for words, names in said.items()]
    for run in found.runs:
        words = _words(run.judgement)
        if not words.startswith("within") and run.errors.nearest < _ROUNDED * run.errors.looked_at:
            blocks.append(Row(run.name, line("against the exact product: ", _line(words))))
    return blocks


def _words(found: Judgement | None) -> str:
    return "some numbers are not finite: floatlab compare shows where" if found is None else judgement_words(found)


def _line(words: str) -> Line:
    fine = words.startswith(("the same", "within rounding", "indistinguishable"))
    return line(Span(words, Role.VALUE if fine else Role.FLAG))
