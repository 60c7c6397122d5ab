"""The pages of `matmul --ways` and `--backends`: products timed, measured, and compared pair by pair."""

from __future__ import annotations

import numpy as np

from floatlab.page.measures import factors_text, number, percent, seconds
from floatlab.page.model import Block, Gap, Line, Page, Role, Row, Span, Table, heading, line
from floatlab.page.words import counted
from floatlab.reduce.results.judgements import Judgement
from floatlab.reduce.timing.backends import BackendComparison, BackendPair
from floatlab.reduce.timing.partitions import BLOCK, TimedProduct, ulps_apart
from floatlab.verbs.judge.page import judgement_words

_ROUNDED = 0.9  # of the elements as near to the exact ones as can be: added in more digits, and rounded once


def partitions_page(products: tuple[TimedProduct, ...], shapes: tuple[tuple[int, ...], ...]) -> Page:
    """Return the page of a product of matrices of these shapes, computed whole and in parts."""
    title = f"matrix product {factors_text(*shapes)}, in four ways (blocks of {BLOCK} terms)"
    timings = [each.timing for each in products]
    passed = np.cumsum([timing.total for timing in timings])
    times = [
        (each.name, *map(seconds, (each.timing.average, each.timing.total, total)))
        for each, total in zip(products, passed, strict=True)
    ]
    errors = [(each.name, number(each.largest_error), number(each.largest_q)) for each in products]
    apart = [
        (each.name, *(f"{ulps:,}" for ulps in row)) for each, row in zip(products, ulps_apart(products), strict=True)
    ]
    fastest = min(products, key=lambda each: each.timing.average)
    best = min(products, key=lambda each: each.largest_q)
    blocks: list[Block] = [
        heading(title),
        Table(("way", "average", f"sum of {counted(len(timings[0].runs), 'run')}", "cumulative"), times, (1, 2, 3)),
        Gap(),
        heading("Against the exact product"),
        Table(("way", "largest error", "largest q"), errors, (1, 2)),
        Gap(),
        heading("How many ulps the ways are apart, at most"),
        Table(("", *(each.name.split()[-1] for each in products)), apart, (1, 2, 3, 4)),
        Gap(),
        Row("verdict", f"fastest {fastest.name}, nearest to the exact product {best.name}"),
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
        blocks += [_times(found), Gap(), *_errors(found)]
    if found.pairs:
        pairs = [
            (_named(pair), percent(pair.equal, found.elements), f"{pair.ulps:,}",
             number(pair.q_rms), number(pair.q_largest))
            for pair in found.pairs
        ]  # fmt: skip
        header = ("pair", "equal bits", "ulps", "rms q", "largest q")
        blocks += [Gap(), heading("Pair by pair"), Table(header, pairs, (1, 2, 3, 4))]
    blocks.append(Gap())
    for run in found.runs:
        blocks.append(Row(run.name, ", ".join((run.words, *run.settings))))
        if not run.repeats:
            blocks.append(Row("", Span("its last product has other bits than its first", Role.FLAG)))
    blocks += [Row("absent", f"{each.name}: {each.reason}") for each in found.absent]
    if found.runs:
        said = f"fastest {found.fastest.name}, nearest to the exact product {found.nearest.name}"
        blocks += [Gap(), Row("verdict", said), *_verdicts(found)]
    return Page(tuple(blocks), title)


def _times(found: BackendComparison) -> Table:
    timed = counted(len(found.runs[0].rest.runs), "more call")
    header = ("backend", "sent in", "first call", "average", f"sum of {timed}", "fetched in")
    times = {run.name: (run.sent, run.first, run.rest.average, run.rest.total, run.fetched) for run in found.runs}
    return Table(header, [(name, *map(seconds, row)) for name, row in times.items()], (1, 2, 3, 4, 5))


def _errors(found: BackendComparison) -> list[Block]:
    head = "Against the exact product"
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
    """Return why the pairs differ, pairs with one reason together; and who is far from the exact product."""
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
    return "numbers that are not finite: floatlab compare tells where" if found is None else judgement_words(found)


def _line(words: str) -> Line:
    fine = words.startswith(("the same", "within rounding", "indistinguishable"))
    return line(Span(words, Role.VALUE if fine else Role.FLAG))
