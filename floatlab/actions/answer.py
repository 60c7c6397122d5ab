"""An answer: one model that can be looked at, read by programs, or taken as one word."""

from __future__ import annotations

from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.views.page import Page


class Answer(Record):
    """What a question was answered with; nothing is drawn or written before it is asked for.

    `page` draws it, `records` gives its JSON objects (one a line), `words` its values in the fewest
    characters, and `codes` its codes.
    """

    page: Callable[[], Page]
    records: Callable[[], list[dict[str, Any]]]
    words: Callable[[], list[str]]
    codes: Callable[[], list[str]]
    hints: tuple[str, ...] = ()
    missing: str = ""  # an optional part that would have said more: exit status 3
