"""The worst elements of two arrays: what each holds, its code, and how far apart the two are."""

from __future__ import annotations

from math import isfinite

from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.decimals import shortest
from floatlab.page.model import Block, Line, Note, Role, Span, Table, line
from floatlab.page.words import plural
from floatlab.verbs.compare.measures import number, share_of_tolerance, steps_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.arrays.compare.differences import ComparedElement, Differences


def worst_blocks(found: Differences) -> list[Block]:
    """Return the worst elements as a page lists them, under a heading; nothing where all are the same."""
    if not found.worst:
        return []
    rows = tuple(_element_cells(each, found) for each in found.worst)
    header = ("index", "actual", "expected", "ulps", "of the tolerance")
    count = plural(len(rows), "The worst element", f"The worst {len(rows)} elements")
    heading = f"{count}, by the share of rtol {number(found.allclose.rtol)}, atol {number(found.allclose.atol)}"
    return [Note(line(Span(heading, Role.HEADING))), Table(header, rows, right=(3, 4))]


def _element_cells(each: ComparedElement, found: Differences) -> tuple[Line, ...]:
    cells = [line(_value(datum), " ", _code(datum)) for datum in _data(each, found)]
    return (line(_index(each)), *cells, line(_steps(each)), line(share_of_tolerance(each.share)))


def elements_table(found: Differences) -> Table:
    """Return the worst elements with a column for all that is known of each, for tables whose columns turn.

    >>> import numpy as np
    >>> from floatlab.arrays.compare.measure import compare
    >>> from floatlab.page.model import text_of
    >>> [row] = elements_table(compare(np.float16([1, 3]), np.float16([1, 2]))).rows
    >>> [text_of(cell) for cell in row]
    ['1', '3', '2', '512', '0.5', '49,932 times', '0x4200', '0x4000', '1']
    """
    header = ("index", "actual", "expected", "ulps", "relative", "uses", "bits", "bits", "absolute")
    rows = []
    for each in found.worst:
        x, y = _data(each, found)
        relative = abs(each.absolute / each.expected) if each.expected and isfinite(each.absolute) else None
        measures = (
            _steps(each),
            "·" if relative is None else number(relative),
            share_of_tolerance(each.share),
        )
        absolute = number(each.absolute) if isfinite(each.absolute) else "·"
        rows.append((
            line(_index(each)), line(_value(x)), line(_value(y)), *map(line, measures),
            line(_code(x)), line(_code(y)), line(absolute),
        ))  # fmt: skip
    return Table(header, tuple(rows), right=(3, 4, 5, 8))


def _data(each: ComparedElement, found: Differences) -> tuple[Datum, Datum]:
    return Datum(found.actual.format, each.actual_code), Datum(found.expected.format, each.expected_code)


def _value(datum: Datum) -> Span:
    return Span(shortest(datum), Role.VALUE)


def _code(datum: Datum) -> Span:
    return Span(hexadecimal_code(datum), Role.CODE)


def _index(each: ComparedElement) -> str:
    return ", ".join(map(str, each.index)) or "·"


def _steps(each: ComparedElement) -> str:
    return "·" if each.ulps < 0 else steps_text(each.ulps)
