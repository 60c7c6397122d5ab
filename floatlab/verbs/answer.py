"""An answer: one model that can be looked at, read by programs, or taken as one word."""

from __future__ import annotations

from floatlab.numbers import Derivation
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.decimals import shortest
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    from floatlab.numbers import Datum
    from floatlab.page.model import Chart, Page
    from floatlab.verbs.arithmetic.step_pages import Scene
    from floatlab.wire.schema import Wire

    # Told how much work there is, and of what; returns what is told how much of it was done.
    Started: TypeAlias = Callable[[int, str], Callable[[int], None]]


class Answer(Record):
    """What a question was answered with; nothing is drawn or written before it is asked for.

    `page` draws it, `records` gives its JSON objects (one a line), `words` its values in the fewest
    characters, and `codes` its codes. `results` are the data found, and `parts` draws each by itself,
    where the page is a stack of such parts. `operands` are an operation's, as they were read, and
    `scenes` gives its page as a film, with strips of the operands' bits or without. `found` is the model itself, and
    `status` what a command exits with: 1 where the answer is a check that failed. `table` gives its numbers as CSV,
    and `chart` the picture that a plot is made of.
    """

    page: Callable[[], Page]
    records: Callable[[], list[Wire]]
    words: Callable[[], list[str]]
    codes: Callable[[], list[str]]
    hints: tuple[str, ...] = ()
    results: tuple[Datum, ...] = ()
    parts: Callable[[], list[Page]] | None = None
    operands: tuple[Datum, ...] = ()
    scenes: Callable[[bool], tuple[Scene, ...]] | None = None
    missing: str = ""  # an optional part that would have said more: exit status 3
    found: Any = None
    status: int = 0
    table: Callable[[], str] | None = None
    chart: Callable[[], Chart] | None = None


def written(*answers: object) -> Callable[[], list[Wire]]:
    """Return what writes answers of any kind as JSON objects."""

    def records() -> list[Wire]:
        from floatlab.verbs.documents import document_of

        return [document_of(answer) for answer in answers]

    return records


def answer_for(found: list[Derivation], interval: bool = False, hints: tuple[str, ...] = ()) -> Answer:
    """Return the answer that stacks the pages of these derivations."""

    def parts() -> list[Page]:
        from floatlab.verbs.show.page import show_page

        return [show_page(each, interval) for each in found]

    def page() -> Page:
        from floatlab.page.model import joined

        return joined(parts())

    def records() -> list[Wire]:
        from floatlab.wire.derivations import interval_to_wire

        wires = written(*found)()
        if interval:
            for wire, each in zip(wires, found, strict=True):
                wire["interval"] = interval_to_wire(each.result, each.context)
        return wires

    results = tuple(each.result for each in found)
    return Answer(
        page,
        records,
        lambda: [shortest(d) for d in results],
        lambda: [hexadecimal_code(d) for d in results],
        hints,
        results,
        parts,
    )
