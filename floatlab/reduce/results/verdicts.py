"""The diagnosis of two results as records: a status, a first line for a person, and causes with their places."""

from __future__ import annotations

from floatlab.record import Record

Evidence = tuple[tuple[str, str], ...]
Place = tuple[tuple[int, int], ...] | tuple[int, ...]


class DiagnosedCause(Record):
    """One cause: its name, the stage, whose it is, the share of elements, where, and what is known of it.

    `where` holds indices of elements, half-open ranges of rows and columns for regions, ranges of terms, or for what
    moved pairs of the place and the place that it came from. Nothing in it means everywhere.
    """

    name: str
    stage: str
    side: str
    share: float
    where: tuple[Place, ...]
    evidence: Evidence


class Diagnosis(Record):
    """Why two results of one product differ.

    `status` is "identical", "rounding", "bug" or "unknown", `first` the answer in a line for a person, `nearer` the
    result that is nearer to the exact product: "actual", "expected", or None where neither is. `stopped` says that
    Ctrl-C ended the search.
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
