"""Inputs rounded to TF32 or to binary16: both formats have the same precision, so both often explain a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from floatlab.reduce.explain.stages import ALIKE, Model
from floatlab.reduce.results.diagnosis_record import DiagnosedCause


def is_same_rounding(first: Model, second: Model) -> bool:
    """Return whether two models round the same inputs in the same direction, one to TF32 and one to binary16."""
    if not (first.is_one_rounding and second.is_one_rounding):
        return False
    one, other = dict(first.evidence), dict(second.evidence)
    return {one.pop("format"), other.pop("format")} == {*ALIKE} and one == other


def with_formats(causes: Iterable[DiagnosedCause], side: str, formats: Sequence[str]) -> tuple[DiagnosedCause, ...]:
    """Return the causes. In each cause that says that inputs of the result `side` were rounded, the format is replaced.

    The new format consists of those names in ALIKE (TF32 and binary16) that are also in `formats`, joined by "or".
    """
    named = " or ".join(name for name in ALIKE if name in formats)

    def renamed(cause: DiagnosedCause) -> DiagnosedCause:
        if cause.name != "inputs-rounded" or cause.side != side:
            return cause
        evidence = tuple((key, named if key == "format" else value) for key, value in cause.evidence)
        return cause.replace(evidence=evidence)

    return tuple(map(renamed, causes))
