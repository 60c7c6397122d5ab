"""An answer: one model that can be looked at, read by programs, or taken as one word."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.numbers import Derivation
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.numbers import Datum, Flags
    from floatlab.page.model import Chart, Line, Page

# Is told how much work there is, and of what; returns a function that is told how much of it was done.
Started = Callable[[int, str], Callable[[int], None]]


class Scene(Record):
    """One step of a derivation as it is looked at.

    `page` holds everything seen so far, the newest rows marked; `reason` says why the step does
    what it does; `flags` are those raised so far, `separate_flags` those of the separate multiply-add
    beside a fused one; `frames` are pictures between the scene before and this one, such as the
    smaller term moving right; `steps` are the steps that it shows, each by its derivation and its
    place there.
    """

    name: str
    page: Page
    reason: Line
    flags: Flags
    frames: tuple[Page, ...] = ()
    steps: tuple[tuple[Derivation, int], ...] = ()
    separate_flags: Flags | None = None


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
    records: Callable[[], list[dict[str, Any]]]
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


def answer_for(found: list[Derivation], interval: bool = False, hints: tuple[str, ...] = ()) -> Answer:
    """Return the answer that stacks the pages of these derivations."""

    def parts() -> list[Page]:
        from floatlab.page.datum import show_page

        return [show_page(each, interval) for each in found]

    def page() -> Page:
        from floatlab.page.model import joined

        return joined(parts())

    def records() -> list[dict[str, Any]]:
        from floatlab.wire.encode import interval_to_wire, to_wire

        wires = [to_wire(each) for each in found]
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
