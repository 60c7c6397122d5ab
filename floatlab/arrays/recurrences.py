"""Recurrences: a straight-line sequence of rounded operations on rows of numbers, repeated for many steps.

An example is the weight update of a training step. A *stage* is one operation: an operation of `operate`, a conversion,
or a rounding into a block format. A *step* runs all stages once. The compiled lane does many steps in one call; the
NumPy lane needs a call per stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import quantize
from floatlab.arrays.lanes import compiled, dispatch
from floatlab.arrays.lanes.parameters import (  # fmt: skip
    DOUBLE,
    RoundingRule,
    can_read,
    is_enough,
    rounding_rule_for,
    rounds_as_processors,
)
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.formats.blocks import BlockFormat
from floatlab.numbers import Context
from floatlab.numbers.rounding import STREAM
from floatlab.record import Record

# A stage for the compiled lane: the operation, the rows that it reads, and its rounding.
Part = tuple[str, tuple[str, ...], RoundingRule]
CONVERT = "convert"
# Rows that hold constants. The compiled lane computes operations on binary64 as FMAs, for instance x + y as x·1 + y.
_CONSTANTS = {"+1": 1.0, "-1": -1.0, "-0": -0.0}
_HISTORY = 1 << 18  # the most numbers in a history (2 MB): enough for several steps with thousands of weights


class RecurrenceStage(Record):
    """One operation of a step: its name, the rows that it reads, the row that it writes, its format and its context.

    Block formats are allowed with `convert` only.
    """

    to: str
    operation: str
    operands: tuple[str, ...]
    format: Format | BlockFormat
    context: Context


def advance_draws(context: Context, index: int) -> Context:
    """Return a context whose first random draw is draw `index` of `context`; contexts without draws stay unchanged.

    >>> from floatlab.numbers.rounding import draw
    >>> draw(advance_draws(Context("SR", seed=5), 3).seed) == draw(5, 3)
    True
    """
    if not context.rounding.is_stochastic or not index:
        return context
    return context.replace(seed=(context.seed + index * STREAM) % (1 << 64))


class _History:
    """The numbers of all rows before a run of steps, and after each step of this run.

    `room` is the number of steps that fit into the history. This number is limited, so that the history stays in the
    processor's cache.
    """

    def __init__(self, rows: Array, steps: int, kept: Sequence[int], memory: Array | None) -> None:
        """Start from `rows`; no stage changes the rows with the indices `kept`.

        `memory` is the array of an earlier history. This array is reused if the shape fits.
        """
        self.room = max(1, min(steps, _HISTORY // max(rows.size, 1)))
        shape = self.room + 1, *rows.shape
        fits = memory is not None and memory.shape[1:] == rows.shape and len(memory) > self.room
        self.memory: Array = memory if memory is not None and fits else np.empty(shape)
        self.states = self.memory[: self.room + 1]
        self.states[0] = rows
        self.states[1:, kept] = rows[kept]

    def fill(self, row: int, numbers: Array) -> None:
        """Fill one row of every step; `numbers` has the shape (steps, count), or (steps,) for one number per step."""
        self.states[1 : len(numbers) + 1, row] = numbers if numbers.ndim > 1 else numbers[:, None]

    def kept(self, did: int, finite: Sequence[int]) -> tuple[int, bool]:
        """Return the number of valid steps, and whether the last valid step made an infinity or NaN.

        `did` is the number of steps done, and `finite` has the indices of the rows that must stay finite. The first
        step that makes an infinity or NaN in one of these rows is the last valid step.
        """
        are_finite = [np.isfinite(self.states[1 : did + 1, row]) for row in finite]
        if all(each.all() for each in are_finite):
            return did, False
        good = np.logical_and.reduce([each.all(axis=1) for each in are_finite])
        return int(np.argmin(good)) + 1, True

    def note_moves(self, did: int, watched: Sequence[int], start: int, last: Array, moves: Array) -> None:
        """Count the steps that changed each element, and note the last such step; a NaN counts as a change.

        A step changes element i if it changes number i of at least one of the rows `watched`. For each element, the
        count of such steps is added to `moves`, and the number of the last such step is written to `last`. This run has
        `did` steps; `start` steps were done before it.
        """
        if not watched:
            return
        before, after = self.states[:did], self.states[1 : did + 1]
        moved = np.logical_or.reduce([after[:, row] != before[:, row] for row in watched])
        if moved.all():
            moves += did
            last[...] = start + did
            return
        moves += moved.sum(axis=0, dtype=np.int32)
        latest = np.where(moved, np.arange(1, did + 1, dtype=np.int32)[:, None], np.int32(0)).max(axis=0)
        np.copyto(last, start + latest, where=latest > 0)

    def restart(self, did: int) -> None:
        """Start the next run from the state that the rows had after step `did`."""
        self.states[0] = self.states[did]


class Recurrence:
    """Operations on named rows of numbers; every step repeats them. All rows are stored as binary64.

    Several threads may call `walk` at the same time, each with its own rows.

    Under stochastic rounding, each stage has a seed. In step k (from 0), element i uses the draw k·count + i of this
    seed, where `count` is the length of a row.

    >>> fp16 = recurrence_format("fp16")
    >>> each = Recurrence(["w", "u"], [RecurrenceStage("w", "add", ("w", "u"), fp16, Context())])
    >>> rows = each.rows(1, {"w": 2046.0, "u": 1.0})
    >>> found = np.empty((4, 1))
    >>> each.walk(rows, 4, outputs={"w": found})
    4
    >>> found[:, 0].tolist()
    [2047.0, 2048.0, 2048.0, 2048.0]
    """

    def __init__(self, names: Sequence[str], stages: Sequence[RecurrenceStage], lane: str | None = None) -> None:
        """Assign a row to every name, and prepare the compiled lane if it can do all stages.

        Raises UnsupportedError if binary64 does not contain a stage's format, or if `lane` is "compiled" and that lane
        cannot do all stages.
        """
        self.names = {name: row for row, name in enumerate(dict.fromkeys([*names, *_CONSTANTS]))}
        self.stages = tuple(stages)
        self.lane = dispatch.parse_lane(lane)
        for stage in stages:
            if isinstance(stage.format, Format):
                recurrence_format(stage.format)
        parts = [self._compiled_part(stage) for stage in stages] if dispatch.is_compiled(self.lane) else [None]
        compiled_parts = [part for part in parts if part is not None]
        self._parts = compiled_parts if len(compiled_parts) == len(parts) else None
        self._programs: dict[frozenset[str], compiled.KernelProgram] = {}
        written = {stage.to for stage in stages}
        self._kept = [row for name, row in self.names.items() if name not in written]
        # Histories of finished walks, for reuse. Each walk takes one off the list, so threads do not share any.
        self._memories: list[Array] = []
        if self.lane == "compiled" and self._parts is None:
            raise UnsupportedError("lane compiled cannot do all of these stages; use lane numpy")

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled lane does the steps."""
        return self._parts is not None

    def _compiled_part(self, stage: RecurrenceStage) -> Part | None:
        """Return a stage in the form for the compiled lane, or None if that lane does not support the stage."""
        fmt, context, operation = stage.format, stage.context, stage.operation
        if not isinstance(fmt, Format) or context.flush_inputs or (fmt.width > 32 and fmt != DOUBLE):
            return None
        operands = stage.operands
        if fmt == DOUBLE:
            if not rounds_as_processors(context):
                return None
            own = {
                "add": (*operands[:1], "+1", *operands[1:]),
                "subtract": (*operands[1:], "-1", *operands[:1]),
                "multiply": (*operands, "-0"),
                CONVERT: (*operands, "+1", "-0"),
            }
            operands = own.get(operation, operands)
            operation = f"{operation}_to_nearest" if operation in ("divide", "sqrt") else "fma_to_nearest"
        elif fmt.is_table or not is_enough(DOUBLE, fmt, context.rounding.is_stochastic) or not can_read(fmt, DOUBLE):
            return None
        rule = rounding_rule_for(fmt, context, DOUBLE)
        return None if rule.refuses else (operation, operands, rule)

    def _program(self, fed: frozenset[str]) -> compiled.KernelProgram:
        """Return the stages for the compiled lane; the rows `fed` are inputs, which are filled before every step."""
        if fed not in self._programs:
            program = compiled.KernelProgram(len(self.names))
            # A stage that reads a row before the step has written it gets the value of the previous step.
            old = {stage.to for stage in self.stages} - fed
            for stage, (operation, operands, rule) in zip(self.stages, self._parts or (), strict=True):
                rows = [(self.names[name], name not in old) for name in operands]
                program.add(operation, rows, self.names[stage.to], rule)
                old.discard(stage.to)
            self._programs[fed] = program
        return self._programs[fed]

    def rows(self, count: int, start: Mapping[str, Array | float]) -> Array:
        """Return rows of `count` numbers. `start` gives the numbers of some rows; all other rows are zeros."""
        made = np.zeros((len(self.names), count))
        for name, values in (_CONSTANTS | dict(start)).items():
            made[self.names[name]] = values
        return made

    def walk(
        self,
        rows: Array,
        steps: int,
        inputs: Mapping[str, Array] | None = None,
        outputs: Mapping[str, Array] | None = None,
        every: int = 1,
        watched: Sequence[str] = (),
        finite: Sequence[str] = (),
        last: Array | None = None,
        moves: Array | None = None,
        first: int = 0,
    ) -> int:
        """Do steps on rows in place, and return the number of steps done.

        The walk stops after a step that makes an infinity or NaN in a row of `finite`. Before each step, the rows in
        `inputs` get new values: for each row, `inputs` has an array of shape (steps, count), or one number per step.
        `outputs` receives rows after every `every`-th step. Steps are numbered from 1; `first` steps were done before
        this call. For each element, `moves` is increased by the number of steps that changed the element in a row of
        `watched`, and the number of the last such step is written to `last`.
        """
        count = rows.shape[1]
        fed = {name: np.ascontiguousarray(each, np.float64) for name, each in (inputs or {}).items()}
        outputs = outputs or {}
        last = np.zeros(count, np.int64) if last is None else last
        moves = np.zeros(count, np.int64) if moves is None else moves
        try:
            memory = self._memories.pop()  # atomic, so safe with threads
        except IndexError:
            memory = None
        history = _History(rows, steps if self.is_compiled else 1, self._kept, memory)
        done, pace = 0, history.room
        while done < steps:
            start = first + done
            many = min(steps - done, pace, history.room)
            for name, each in fed.items():
                history.fill(self.names[name], each[done : done + many])
            did = 0
            if self.is_compiled:
                did = self._program(frozenset(fed)).walk(history.states[: many + 1], start)
            pace = 2 * pace if did else 1  # after a step that the compiled lane refuses, try only one
            if not did:
                history.states[1] = history.states[0]
                for name, each in fed.items():
                    history.fill(self.names[name], each[done : done + 1])
                self._step(history.states[1], start)
                did = 1
            did, is_over = history.kept(did, [self.names[name] for name in finite])
            history.note_moves(did, [self.names[name] for name in watched], start, last, moves)
            written, skipped = start // every - first // every, -(start + 1) % every
            for name, each in outputs.items():
                found = history.states[1 + skipped : did + 1 : every, self.names[name]]
                each[written : written + len(found)] = found
            history.restart(did)
            done += did
            if is_over:
                break
        rows[...] = history.states[0]
        self._memories.append(history.memory)
        return done

    def _step(self, rows: Array, number: int) -> None:
        """Do step `number` (from 0) in the NumPy lane: one stage after the other."""
        index = number * rows.shape[1]
        for stage in self.stages:
            operands = [rows[self.names[name]] for name in stage.operands]
            rows[self.names[stage.to]] = self._result(stage, operands, advance_draws(stage.context, index))

    def _result(self, stage: RecurrenceStage, operands: list[Array], context: Context) -> Array:
        fmt = stage.format
        if not isinstance(fmt, Format):
            return round_in_blocks(operands[0], fmt, context)
        lane = "numpy" if self.lane == "numpy" and is_enough(DOUBLE, fmt) else None
        if stage.operation == CONVERT:
            return quantize(operands[0], fmt, context=context, lane=lane, threads=1)
        from floatlab.arrays.operations import operate

        return operate(stage.operation, operands, fmt, context=context, lane=lane, threads=1)


def round_in_blocks(numbers: Array, format: BlockFormat, context: Context) -> Array:
    """Round a row of numbers into a block format; the last block is padded with zeros, which do not change its scale.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> round_in_blocks(np.array([1.0, 0.013]), parse_block_format("mxfp4"), Context()).tolist()
    [1.0, 0.0]
    """
    size = format.block or max(len(numbers), 1)
    padded = np.zeros(-(-len(numbers) // size) * size)
    padded[: len(numbers)] = numbers
    from floatlab.arrays.blocks import quantize_blocks

    return quantize_blocks(padded, format, context=context)[: len(numbers)].astype(np.float64)


def recurrence_format(name: str | Format) -> Format:
    """Return the format `name` for the rows of a recurrence.

    Raises FormatError for an unknown name, and UnsupportedError if binary64 does not contain the format.

    >>> recurrence_format("bf16").name
    'bfloat16'
    """
    fmt = parse_format(name)
    if not holds(DOUBLE, fmt):
        raise UnsupportedError(f"{fmt.name} has numbers that binary64 does not hold, so arrays do not support it")
    return fmt
