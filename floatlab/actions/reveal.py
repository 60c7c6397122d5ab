"""`reveal`: the order in which a real implementation accumulates."""

from __future__ import annotations

from floatlab.actions.answer import Answer
from floatlab.reduce.revelation import Findings, examine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.views.page import Page


def reveal_answer(
    target: str, terms: int, dtype: str, kind: str | None = None, device: str = "cpu", seed: int = 1
) -> Answer:
    """Return the answer that shows how a target adds so many terms; raises FloatlabError.

    >>> reveal_answer("numpy.sum", 8, "float32").words()
    ['pairwise']
    """
    return answer_of(examine(target, terms, dtype, kind=kind, device=device, seed=seed))


def answer_of(found: Findings) -> Answer:
    """Return the answer that shows what was found."""

    def page() -> Page:
        from floatlab.views.revelations import reveal_page

        return reveal_page(found)

    def records() -> list[dict[str, Any]]:
        from floatlab.render.revelations import findings_to_wire

        return [findings_to_wire(found)]

    words = [found.schedule.text if found.schedule is not None else found.plan.text]
    return Answer(page, records, lambda: words, lambda: words)
