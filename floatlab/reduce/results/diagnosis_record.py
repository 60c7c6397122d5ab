"""The diagnosis of two results as records: a status, a sentence that explains it, and the causes with their places."""

from __future__ import annotations

from floatlab.record import Record

Evidence = tuple[tuple[str, str], ...]
Place = tuple[tuple[int, int], ...] | tuple[int, ...]


class DiagnosedCause(Record):
    """One cause of a difference.

    `side` is the affected result, and `share` is the fraction of this result's elements that the cause affects. `stage`
    is the stage of the computation at which the cause acts. `evidence` holds details as pairs (name, text). `where`
    lists up to 4,096 affected elements by their indices, or affected regions by two half-open ranges: rows and columns.
    For missing terms, `where` lists half-open ranges of terms; for moved elements, it lists pairs (new index, old
    index). If `where` is empty, the cause affects all elements.
    """

    name: str
    stage: str
    side: str
    share: float
    where: tuple[Place, ...]
    evidence: Evidence


class Diagnosis(Record):
    """The answer to the question why two results of one product differ.

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
        """The name of each cause, without repetitions."""
        return tuple(dict.fromkeys(cause.name for cause in self.causes))
