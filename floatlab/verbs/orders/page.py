"""Orders of one sum side by side: what each of them makes of the same terms, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from floatlab.formats.catalog import short_name
from floatlab.numbers import Datum, Direction
from floatlab.numbers.datum import shortest
from floatlab.page.datum import bits_strip, coded
from floatlab.page.model import Block, Line, Page, Role, Row, Span, Table, line
from floatlab.page.sums import signed, way_words
from floatlab.page.words import counted
from floatlab.reduce.results.reduction import Reduction
from floatlab.verbs.arithmetic.relations import with_changes_marked
from floatlab.verbs.reduce.page import limit_rows, truth_rows

_GLANCE = 48  # characters of an order that is told
HEADER = ("order", "result", "ulps", "bits changed", "bits", "the same here")


def orders_table(rows: Sequence[tuple[str, str, Datum, Fraction | None]], shown: Datum) -> Table:
    """Return a table of names, other names, results and errors in ulps; bits are compared with the result shown.

    >>> from floatlab import encode
    >>> one, two = encode(1, "fp16"), encode(1.5, "fp16")
    >>> table = orders_table([("pairwise", "adjacent", two, None)], one)
    >>> ["".join(run.text for run in cell) for cell in table.rows[0]]
    ['pairwise', '1.5', '·', '1', '0 01111 1000000000', 'adjacent']
    """
    return Table(HEADER, tuple(_cells(*row, shown) for row in rows), (1, 2, 3))


def _cells(name: str, same: str, result: Datum, error: Fraction | None, shown: Datum) -> tuple[Line, ...]:
    ulps = line("·") if error is None else line(Span(signed(error), Role.LOST) if error else Span("exact", Role.HINT))
    bits = differing(result, shown)
    apart = line(Span(str(bits), Role.CHANGED)) if bits else line(Span("none", Role.HINT))
    fields = bits_strip(result, "", ruler=False).lines[-1]
    return (line(name), line(Span(shortest(result), Role.VALUE)), ulps, apart, fields, line(Span(same, Role.HINT)))


def differing(a: Datum, b: Datum) -> int:
    """Return how many bits of two codes differ."""
    return (a.code ^ b.code).bit_count()


def result_page(result: Datum, before: Datum | None, words: str = "", name: str = "before") -> Page:
    """Return a result's bits, and below them those of another one, marked where they differ; `words` say which.

    >>> from floatlab import encode
    >>> from floatlab.page.layout import to_text
    >>> print(to_text(result_page(encode(1.5, "fp16"), encode(1, "fp16"), "serial")), end="")
      result       0 01111 1000000000         0x3e00 1.5
                           ^
      before       0 01111 0000000000         0x3c00 1
                   serial: 1 bit differs, 512 steps apart
    """
    blocks: list[Block] = [bits_strip(result, "result", coded(result, shortest(result)), ruler=False)]
    if before is None:
        return Page(tuple(blocks))
    if before == result:
        return Page((*blocks, Row(name, line(Span("the same bits", Role.GOOD), f" as {words}" if words else ""))))
    blocks.append(bits_strip(before, name, coded(before, shortest(before)), ruler=False))
    if before.format == result.format:
        blocks = with_changes_marked(blocks)
        bits = differing(result, before)
        apart = f"{counted(bits, 'bit')} {'differs' if bits == 1 else 'differ'}"
        if result.is_finite and before.is_finite:
            apart += f", {counted(abs(result.ordinal - before.ordinal), 'step')} apart"
        words = f"{words}: {apart}" if words else apart
    return Page((*blocks, Row("", Span(words, Role.HINT))))


def figures_page(found: Reduction) -> Page:
    """Return what is known of a result's error."""
    return Page((*truth_rows(found), *limit_rows(found)))


def way_of(found: Reduction) -> str:
    """Say in which way a reduction was computed, as far as it is not the usual one.

    >>> from floatlab import sum
    >>> way_of(sum([1, 2], "pairwise", format="fp16", accumulator="fp32"))
    'pairwise, sums in fp32'
    """
    words = [way_words(found.schedule, found.adder) if len(found.schedule.text) <= _GLANCE else "an order by hand"]
    if found.machine is not None:
        words.append(found.machine.name)
    elif found.accumulated.format != found.result.format:
        words.append(f"sums in {short_name(found.accumulated.format)}")
    if found.y is not None and found.machine is None and found.adder.products != found.adder.accumulator:
        words.append(f"products in {short_name(found.adder.products)}")
    rounding = found.adder.context.rounding
    if rounding is not Direction.RNE:
        words.append(rounding.value)
    return ", ".join(words)
