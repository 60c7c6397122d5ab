"""A value rounded along a path of formats, compared with the same value rounded once."""

from __future__ import annotations

from floatlab.numbers import Derivation
from floatlab.record import Record


class Conversion(Record):
    """A value's conversion along a path of formats, stage by stage, and the direct rounding of the same value."""

    stages: tuple[Derivation, ...]
    direct: Derivation

    @property
    def same(self) -> bool:
        """Whether the path and the direct rounding give the same bits."""
        return self.direct.result == self.stages[-1].result
