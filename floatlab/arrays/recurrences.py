"""Recurrences: a straight line of rounded operations on rows of numbers, done over and over.

What a step of training does to its weights is one. Every stage is an operation of `operate`, a conversion, or a
rounding into a format of blocks; the compiled lane walks through many steps in one call, and NumPy goes stage by stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import quantize
from floatlab.arrays.lanes import compiled, dispatch
from floatlab.arrays.lanes.parameters import (  # fmt: skip
    DOUBLE,
    Recipe,
    can_read,
    is_enough,
    recipe_for,
    rounds_as_processors,
)
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.formats.blocks import BlockFormat
from floatlab.numbers import Context, Direction
from floatlab.numbers.rounding import STREAM
from floatlab.record import Record

# A stage as the compiled lane does it: the operation, the rows it reads, and how it rounds.
Part = tuple[str, tuple[str, ...], Recipe]
CONVERT = "convert"
# Rows that the compiled lane does binary64's own operations with: x + y is 1·x + y there.
_CONSTANTS = {"+1": 1.0, "-1": -1.0, "-0": -0.0}
_HISTORY = 1 << 18  # numbers of a history: 2 MB, so that thousands of weights take several steps at a time, too


class RecurrenceStage(Record):
    """One operation of a step: the row it writes, what it does to which rows, and the format that it rounds into.

    A format of blocks goes with `convert` only.
    """

    to: str
    operation: str
    operands: tuple[str, ...]
    format: Format | BlockFormat
    context: Context


def drawing(context: Context, index: int) -> Context:
    """Return a context whose first stochastic draw is number `index` of this one's; others are returned as they are.

    >>> from floatlab.numbers.rounding import draw
    >>> draw(drawing(Context("SR", seed=5), 3).seed) == draw(5, 3)
    True
    """
    if context.rounding is not Direction.SR or not index:
        return context
    return context.replace(seed=(context.seed + index * STREAM) % (1 << 64))


class _History:
    """The rows before a step and after each of the next ones, as many as stay in a processor's cache."""

    def __init__(self, rows: Array, steps: int, kept: Sequence[int], memory: Array | None) -> None:
        """Start with rows, of which some are kept as they are by all stages; in memory that an earlier one had."""
        self.room = max(1, min(steps, _HISTORY // max(rows.size, 1)))
        shape = self.room + 1, *rows.shape
        fits = memory is not None and memory.shape[1:] == rows.shape and len(memory) > self.room
        self.memory: Array = memory if memory is not None and fits else np.empty(shape)
        self.states = self.memory[: self.room + 1]
        self.states[0] = rows
        self.states[1:, kept] = rows[kept]

    def fill(self, row: int, numbers: Array) -> None:
        """Put numbers into a row: of each step and element, or one a step."""
        self.states[1 : len(numbers) + 1, row] = numbers if numbers.ndim > 1 else numbers[:, None]

    def kept(self, did: int, finite: Sequence[int]) -> tuple[int, bool]:
        """Return how many of these steps count, up to one in which a row is not finite, and whether there is one."""
        are_finite = [np.isfinite(self.states[1 : did + 1, row]) for row in finite]
        if all(each.all() for each in are_finite):
            return did, False
        good = np.logical_and.reduce([each.all(axis=1) for each in are_finite])
        return int(np.argmin(good)) + 1, True

    def note_moves(self, did: int, watched: Sequence[int], start: int, last: Array, moves: Array) -> None:
        """Note for each element the last step that changed a watched row, and how many did."""
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
        """Go on from the rows after a step."""
        self.states[0] = self.states[did]


class Recurrence:
    """What every step does to named rows of `count` numbers, all of them binary64 whatever their formats.

    Threads may walk at the same time, each on rows of its own.

    Under stochastic rounding, element i of a stage in step k (from 0) takes draw k·count + i of the stage's seed.

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
        """Give every name a row, and prepare the compiled lane where it serves; raises UnsupportedError."""
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
        # Memory of walks that are over: each walk takes one out, so that threads may walk at the same time.
        self._memories: list[Array] = []
        if self.lane == "compiled" and self._parts is None:
            raise UnsupportedError("lane compiled cannot do all of these stages; lane numpy can")

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled lane walks."""
        return self._parts is not None

    def _compiled_part(self, stage: RecurrenceStage) -> Part | None:
        """Return a stage as the kernel takes it, or None where it does not."""
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
        elif not is_enough(DOUBLE, fmt, context.rounding is Direction.SR) or not can_read(fmt, DOUBLE):
            return None
        recipe = recipe_for(fmt, context, DOUBLE)
        return None if recipe.refuses else (operation, operands, recipe)

    def _program(self, fed: frozenset[str]) -> compiled.KernelProgram:
        """Return the stages for the compiled lane, where these rows are filled before every step."""
        if fed not in self._programs:
            program = compiled.KernelProgram(len(self.names))
            # What a stage writes only later on, it reads as the step before left it.
            old = {stage.to for stage in self.stages} - fed
            for stage, (operation, operands, recipe) in zip(self.stages, self._parts or (), strict=True):
                rows = [(self.names[name], name not in old) for name in operands]
                program.add(operation, rows, self.names[stage.to], recipe)
                old.discard(stage.to)
            self._programs[fed] = program
        return self._programs[fed]

    def rows(self, count: int, start: Mapping[str, Array | float]) -> Array:
        """Return rows of `count` numbers, zero but for those that start otherwise."""
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
        """Do steps on rows, in place; return how many were done: fewer where a row of `finite` is so no longer.

        `inputs` fill a row before every step: (steps, count) numbers, or one a step; `outputs` get it after every
        `every`th one, counted from the very first step, of which `first` were done. For each element `last` gets the
        number (from 1) of the last step that changed a watched row, and `moves` how many did.
        """
        count = rows.shape[1]
        fed = {name: np.ascontiguousarray(each, np.float64) for name, each in (inputs or {}).items()}
        outputs = outputs or {}
        last = np.zeros(count, np.int64) if last is None else last
        moves = np.zeros(count, np.int64) if moves is None else moves
        try:
            memory = self._memories.pop()  # one operation, which no other thread interrupts
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
            pace = 2 * pace if did else 1  # steps that the compiled lane cannot do often follow each other
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
        """Do one step, stage by stage."""
        index = number * rows.shape[1]
        for stage in self.stages:
            operands = [rows[self.names[name]] for name in stage.operands]
            rows[self.names[stage.to]] = self._result(stage, operands, drawing(stage.context, index))

    def _result(self, stage: RecurrenceStage, operands: list[Array], context: Context) -> Array:
        fmt = stage.format
        if not isinstance(fmt, Format):
            return blockwise(operands[0], fmt, context)
        lane = "numpy" if self.lane == "numpy" and is_enough(DOUBLE, fmt) else None
        if stage.operation == CONVERT:
            return quantize(operands[0], fmt, context=context, lane=lane, threads=1)
        from floatlab.arrays.operations import operate

        return operate(stage.operation, operands, fmt, context=context, lane=lane, threads=1)


def blockwise(numbers: Array, format: BlockFormat, context: Context) -> Array:
    """Return a row of numbers in a format of blocks; the last block is filled with zeros, which change no scale.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> blockwise(np.array([1.0, 0.013]), parse_block_format("mxfp4"), Context()).tolist()
    [1.0, 0.0]
    """
    padded = np.zeros(-(-len(numbers) // format.block) * format.block)
    padded[: len(numbers)] = numbers
    from floatlab.arrays.blocks import quantize_blocks

    return quantize_blocks(padded, format, context=context)[: len(numbers)].astype(np.float64)


def recurrence_format(name: str | Format) -> Format:
    """Return a format that rows can have; raises FormatError, or UnsupportedError for one beyond binary64.

    >>> recurrence_format("bf16").name
    'bfloat16'
    """
    fmt = parse_format(name)
    if not holds(DOUBLE, fmt):
        raise UnsupportedError(f"{fmt.name} has numbers that binary64 does not hold: no array lane has it")
    return fmt
