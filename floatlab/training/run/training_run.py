"""A run: what became of weights in many steps.

All values are float64, whatever their format: it holds every number of the formats that arrays take.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from floatlab.arrays.types import Array
from floatlab.fpmode import methods_in_default_mode
from floatlab.record import Individual, Record
from floatlab.training.optimizers import Optimizer
from floatlab.training.setup import Setup
from floatlab.training.update.program import Program


class Divergence(Record):
    """Where a run ended: in which step (from 1), what became of which weight, and why."""

    step: int
    element: int
    value: float
    why: str


@methods_in_default_mode
class TrainingRun(Individual):
    """What became of weights: their values after each recorded step, and what happened on the way.

    `at` are the recorded steps, 0 being the start, and the last one; `values` the weights that the model computes with,
    (recorded, n), or (recorded,) of a single weight; `kept` is the master copy, and `compensation` what Kahan's sums
    carry, likewise, or None. `scales` are the loss scales with the step that each was first used in (from 0); `skipped`
    the steps, from 0, that dynamic scaling skipped. `last_moves` and `moves` say for each weight after which step it
    (or what carries it) last changed, and how often it did.
    """

    label: str
    setup: Setup
    optimizer: Optimizer
    program: Program
    steps: int
    every: int
    at: Array
    values: Array
    kept: Array | None
    compensation: Array | None
    scales: tuple[tuple[int, float], ...]
    skipped: tuple[int, ...]
    last_moves: Array
    moves: Array
    diverged: Divergence | None
    is_compiled: bool

    def __repr__(self) -> str:
        """Show what was done and where it ended."""
        end = self.diverged.why if self.diverged else f"{self.final}"
        return (
            f"Run({self.label}: {self.steps:,} steps of {self.optimizer.name} in {self.setup.weights.name}: {end[:80]})"
        )

    @property
    def final(self) -> Any:
        """The weights at the end: a float, or an array of them."""
        last = self.values[-1]
        return last if last.ndim else float(last)

    @property
    def carrier(self) -> Array:
        """What carries the weights from step to step: the master copy where there is one."""
        return self.values if self.kept is None else self.kept

    @property
    def carried(self) -> Array:
        """What the weights stand for: the master copy, less what is compensated, where there are such."""
        if self.compensation is None:
            return self.carrier
        with np.errstate(invalid="ignore"):  # of what diverged, both are infinite
            stands: Array = self.carrier - self.compensation
        return stands
