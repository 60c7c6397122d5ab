"""What networks learned and what a gradient check found, as `train` shows and writes them."""

from __future__ import annotations

from floatlab.record import Record
from floatlab.training.gradient_check import Check, StepSweep
from floatlab.training.learner import Learning, LearningComparison


class Learnings(Record):
    """What networks learned: a row for each configuration, with one for each seed, compared with the reference."""

    rows: list[list[Learning]]
    compared: list[LearningComparison]
    reference: str


class GradientCheck(Record):
    """Curves of one function at one point, and what a reported derivative was found to be, if one was."""

    function: str
    curves: tuple[StepSweep, ...]
    check: Check | None = None
