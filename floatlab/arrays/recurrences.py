"""Recurrences: a straight line of rounded operations on rows of numbers, done over and over.

What a step of training does to its weights is one. Every stage is an operation of `operate`, a conversion, or a
rounding into a format of blocks; the compiled lane walks through many steps in one call, and NumPy goes stage by stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.blocks import quantize_blocks
from floatlab.arrays.conversion import quantize
from floatlab.arrays.lanes import compiled, dispatch
from floatlab.arrays.lanes.numpy_operations import rounds_as_processors
from floatlab.arrays.lanes.pairs import is_enough
from floatlab.arrays.lanes.reading import DOUBLE, reading_for
from floatlab.arrays.lanes.rounding_parameters import recipe_for
from floatlab.arrays.operations import operate
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.formats.blocks import BlockFormat
from floatlab.numbers import Context, Direction
from floatlab.numbers.rounding import STREAM
from floatlab.record import Record

CONVERT = "convert"
# Rows that the compiled lane does binary64's own operations with: x + y is 1·x + y there.
_CONSTANTS = {"+1": 1.0, "-1": -1.0, "-0": -0.0}


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


class Recurrence:
    """What every step does to named rows of `count` numbers, all of them binary64 whatever their formats.

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
        self._packed = self._pack() if dispatch.is_compiled(self.lane) else None
        if self.lane == "compiled" and self._packed is None:
            raise UnsupportedError("lane compiled cannot do all of these stages; lane numpy can")

    @property
    def is_compiled(self) -> bool:
        """Whether the compiled lane walks."""
        return self._packed is not None

    def _pack(self) -> bytes | None:
        packed = [self._packed_stage(stage) for stage in self.stages]
        return None if None in packed else b"".join(each for each in packed if each is not None)

    def _packed_stage(self, stage: RecurrenceStage) -> bytes | None:
        """Return a stage as the kernel takes it, or None where it does not."""
        fmt, context, operation = stage.format, stage.context, stage.operation
        if isinstance(fmt, BlockFormat) or context.flush_inputs or (fmt.width > 32 and fmt != DOUBLE):
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
        elif not is_enough(DOUBLE, fmt, context.rounding is Direction.SR) or not dispatch.can_read(fmt, DOUBLE):
            return None
        recipe = recipe_for(fmt, context, DOUBLE)
        if recipe.refuses:
            return None
        rows = [self.names[name] for name in operands]
        target = None if fmt == DOUBLE else reading_for(fmt, DOUBLE)
        return compiled.stage(operation, rows, self.names[stage.to], recipe, target)

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
        done = 0
        while done < steps:
            start = first + done
            written = start // every - first // every
            if self._packed is not None:
                did = compiled.walk(
                    rows, len(rows), self._packed,
                    tuple((self.names[name], each[done:]) for name, each in fed.items()),
                    tuple((self.names[name], each[written:]) for name, each in outputs.items()),
                    every, tuple(self.names[name] for name in watched), tuple(self.names[name] for name in finite),
                    last, moves, steps - done, start,
                )  # fmt: skip
                done += did
                if done == steps or (did and not self._are_finite(rows, finite)):
                    break
                start, written = first + done, (first + done) // every - first // every
            for name, each in fed.items():
                rows[self.names[name]] = each[done]
            self._step(rows, start, watched, last, moves)
            done += 1
            if (start + 1) % every == 0:
                for name, each in outputs.items():
                    each[written] = rows[self.names[name]]
            if not self._are_finite(rows, finite):
                break
        return done

    def _are_finite(self, rows: Array, names: Sequence[str]) -> bool:
        return all(np.isfinite(rows[self.names[name]]).all() for name in names)

    def _step(self, rows: Array, number: int, watched: Sequence[str], last: Array, moves: Array) -> None:
        """Do one step, stage by stage."""
        index = number * rows.shape[1]
        before = [rows[self.names[name]].copy() for name in watched]
        for stage in self.stages:
            operands = [rows[self.names[name]] for name in stage.operands]
            rows[self.names[stage.to]] = self._found(stage, operands, drawing(stage.context, index))
        moved = np.zeros(rows.shape[1], np.bool_)
        for name, old in zip(watched, before, strict=True):
            moved |= rows[self.names[name]] != old
        last[moved] = number + 1
        moves += moved

    def _found(self, stage: RecurrenceStage, operands: list[Array], context: Context) -> Array:
        fmt = stage.format
        if isinstance(fmt, BlockFormat):
            return blockwise(operands[0], fmt, context)
        lane = "numpy" if self.lane == "numpy" and is_enough(DOUBLE, fmt) else None
        if stage.operation == CONVERT:
            return quantize(operands[0], fmt, context=context, lane=lane, threads=1)
        return operate(stage.operation, operands, fmt, context=context, lane=lane, threads=1)


def blockwise(numbers: Array, format: BlockFormat, context: Context) -> Array:
    """Return a row of numbers in a format of blocks; the last block is filled with zeros, which change no scale.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> blockwise(np.array([1.0, 0.013]), parse_block_format("mxfp4"), Context()).tolist()
    [1.0, 0.0]
    """
    padded = np.zeros(-(-len(numbers) // format.block) * format.block)
    padded[: len(numbers)] = numbers
    found: Array = quantize_blocks(padded, format, context=context)
    return found[: len(numbers)].astype(np.float64)


def recurrence_format(name: str | Format) -> Format:
    """Return a format that rows can have; raises FormatError, or UnsupportedError for one beyond binary64.

    >>> recurrence_format("bf16").name
    'bfloat16'
    """
    fmt = parse_format(name)
    if not holds(DOUBLE, fmt):
        raise UnsupportedError(f"{fmt.name} has numbers that binary64 does not hold: no array lane has it")
    return fmt
