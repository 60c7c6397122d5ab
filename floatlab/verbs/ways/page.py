"""The page of `matmul --ways`: four ways to one product, timed, their errors, and how far they part."""

from __future__ import annotations

from floatlab.page.measures import factors_text, number, seconds
from floatlab.page.model import Block, Gap, Page, Row, Table, heading, line
from floatlab.page.words import counted
from floatlab.reduce.timing.ways import BLOCK, TimedProduct, apart


def ways_page(ways: tuple[TimedProduct, ...], shapes: tuple[tuple[int, ...], ...]) -> Page:
    """Return the page of the ways to multiply matrices of these shapes."""
    title = f"matrix product {factors_text(*shapes)}, in four ways"
    runs = counted(len(ways[0].timing.runs), "run")
    times, passed = [], 0.0
    for way in ways:
        passed += way.timing.total
        cells = (way.name, seconds(way.timing.average), seconds(way.timing.total), seconds(passed))
        times.append(tuple(line(cell) for cell in cells))
    errors = tuple((way.name, number(way.largest_error), number(way.largest_q)) for way in ways)
    fastest = min(ways, key=lambda way: way.timing.average)
    best = min(ways, key=lambda way: way.largest_q)
    title += f" (blocks of {BLOCK} terms)"
    verdict = f"fastest {fastest.name}, nearest to the exact product {best.name}"
    blocks: list[Block] = [
        heading(title),
        Table(("way", "average", f"sum of {runs}", "cumulative"), times, (1, 2, 3)),
        Gap(),
        heading("Against the exact product"),
        Table(("way", "largest error", "largest q"), errors, (1, 2)),
        Gap(),
        heading("How many ulps the ways are apart, at most"),
        Table(("", *(way.name.split()[-1] for way in ways)), _distances(ways), (1, 2, 3, 4)),
        Gap(),
        Row("verdict", verdict),
    ]
    return Page(tuple(blocks), title)


def _distances(ways: tuple[TimedProduct, ...]) -> list[tuple[str, ...]]:
    rows = zip(ways, apart(ways), strict=True)
    return [(way.name, *(f"{each:,}" for each in row)) for way, row in rows]
