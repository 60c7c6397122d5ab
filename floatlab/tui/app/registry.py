"""The table of screens. To add a screen, add a row and a function that returns its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from floatlab.record import Record
from floatlab.verbs.registry import VERBS

if TYPE_CHECKING:  # the command line imports this module before Textual is loaded
    from floatlab.tui.screens.task import TaskScreen


class ScreenRow(Record):
    """A screen, with its default command. `verbs/registry.py` says which verbs each screen answers.

    `load` imports and returns the class when the screen first opens. If `slow`, the screen computes answers on a
    background thread.
    """

    name: str
    start: tuple[str, ...]
    load: Callable[[], type[TaskScreen]]
    slow: bool = False
    purpose: str = ""  # what the screen shows, for the first steps

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs whose answers the screen shows."""
        return tuple(name for name, entry in VERBS.items() if entry.screen == self.name)


def _inspect() -> type[TaskScreen]:
    from floatlab.tui.screens.inspect.screen import InspectScreen

    return InspectScreen


def _arithmetic() -> type[TaskScreen]:
    from floatlab.tui.screens.arithmetic.screen import ArithmeticScreen

    return ArithmeticScreen


def _formats() -> type[TaskScreen]:
    from floatlab.tui.screens.formats.screen import FormatsScreen

    return FormatsScreen


def _block() -> type[TaskScreen]:
    from floatlab.tui.screens.block.screen import BlockScreen

    return BlockScreen


def _reduce() -> type[TaskScreen]:
    from floatlab.tui.screens.reduce.screen import ReduceScreen

    return ReduceScreen


def _compare() -> type[TaskScreen]:
    from floatlab.tui.screens.compare.screen import CompareScreen

    return CompareScreen


def _audit() -> type[TaskScreen]:
    from floatlab.tui.screens.audit.screen import AuditScreen

    return AuditScreen


def _train() -> type[TaskScreen]:
    from floatlab.tui.screens.train.screen import TrainScreen

    return TrainScreen


_VALUE = ("show", "1.12156456132", "--fp16", "--bf16", "--e4m3", "--fp32")
_SUM = ("add", "1.125", "0.12457275390625", "--fp16")
_BLOCK = ("block", "0.1", "-2.5", "3", "7.3", "0.02", "--to", "nvfp4")
_X = "random:normal:64x64:seed=1"
_ARRAYS = ("compare", f"{_X}@fp32", f"{_X}@bf16", "--fp32", "--rtol", "0.003")
_WEIGHTS = ("random:normal:64x256:seed=1@bf16", "random:lognormal:64x256:sigma=3:seed=2@bf16")
_AUDIT = ("audit", *_WEIGHTS, "--to", "e4m3,mxfp4,nvfp4")
_REMEDIES = "plain,master,stochastic,kahan"
_TRAINING = ("train", "1.125", "--update", "0.00041999", "--steps", "101", "--remedies", _REMEDIES)

SCREENS: dict[str, ScreenRow] = {
    row.name: row
    for row in (
        ScreenRow("inspect", _VALUE, _inspect, False, "one number in several formats: its bits and its error"),
        ScreenRow("arithmetic", _SUM, _arithmetic, False, "one operation, step by step, with the digits it loses"),
        ScreenRow("formats", ("formats", "fp16", "bf16"), _formats, False, "all formats, their ranges and their codes"),
        ScreenRow("block", _BLOCK, _block, True, "numbers that share a scale, as in MXFP4 and NVFP4"),
        ScreenRow(
            "reduce", ("dot", "--preset", "forum"), _reduce, True, "sums and products, in any order of additions"
        ),
        ScreenRow("compare", _ARRAYS, _compare, True, "two arrays or files: where they differ, and why"),
        ScreenRow("train", _TRAINING, _train, True, "updates of a weight, and why some of them vanish"),
        ScreenRow("audit", _AUDIT, _audit, True, "what a quantisation would do to a checkpoint"),
    )
}


def screen_for(verb: str) -> ScreenRow | None:
    """Return the screen that shows the answers of a verb, or None if no screen does."""
    return SCREENS.get(VERBS[verb].screen)
