"""The diagnosis of two results as records: a status, a sentence for people, and causes with their places."""

from __future__ import annotations

from floatlab.record import Record

Evidence = tuple[tuple[str, str], ...]
Place = tuple[tuple[int, int], ...] | tuple[int, ...]


class DiagnosedCause(Record):
    """One cause of a difference. `side` is the affected result, `share` the share of its elements that are affected.

    `where` holds indices of elements, half-open ranges of rows and columns (for regions), or ranges of terms. For moved
    elements it holds pairs (new index, old index). If `where` is empty, the cause affects all elements.
    """

    name: str
    stage: str
    side: str
    share: float
    where: tuple[Place, ...]
    evidence: Evidence


class Diagnosis(Record):
    """Why two results of one product differ.

    `status` is "identical", "rounding", "bug" or "unknown"; `first` is the answer as a sentence. `nearer` is the result
    that is nearer to the exact product: "actual", "expected", or None if neither is. `stopped` is true if Ctrl-C
    ended the search.
    """

    status: str
    first: str
    causes: tuple[DiagnosedCause, ...]
    nearer: str | None
    stopped: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the causes, each once."""
        return tuple(dict.fromkeys(cause.name for cause in self.causes))
