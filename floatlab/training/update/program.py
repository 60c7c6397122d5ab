"""A program: one step of an optimizer in a setup, as a straight line of rounded operations on named rows.

Read three ways: traced (`step`, with derivations), stage by stage by NumPy, and by the compiled lane for many steps.

The order: g is the gradient in its format, times the loss scale S; g/S = g·(1/S) in the update's format where there is
a scale; then the optimizer's stages, which end with u; then

    t = w − u      (w + u for `Updates`) in the accumulator's format, and from there into that of the weights kept
    y = u + c, t = w − y, d = t − w, c = d + y      instead, with compensation; signs change for `Updates`
    w = t      with a master copy, which is what the above works on, rounded to the format of the weights

Under stochastic rounding, what writes the weights draws from the context's seed; where every stage is stochastic,
gradients draw from seed + 1, and stage j of the program, from 0, from seed + 2 + j. In step k, from 0, element i of n
takes draw number k·n + i.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floatlab.arrays.recurrences import CONVERT, RecurrenceStage
from floatlab.formats import Format
from floatlab.formats.blocks import BlockFormat
from floatlab.numbers import Context, Datum, Direction, encode
from floatlab.record import Record
from floatlab.training.optimizers import Optimizer
from floatlab.training.setup import Setup
from floatlab.training.validation import beyond

GRADIENT, WEIGHTS, MASTER, COMPENSATION, UNSCALE = "g", "w", "master", "c", "1/S"


class Program(Record):
    """One step: its stages, the rows that they start from, and where the weights are.

    `kept` is the row that carries the weights from step to step; `constants` have their numbers in the update's format,
    and `schedules` one for every step t, from 1. `vanished` names constants that are zero only in their format.

    >>> from floatlab.training.optimizers import SGD
    >>> program = Program.of(Setup("fp16", master="fp32"), SGD("0.1"))
    >>> print(program.text)
    u = lr multiply g             binary32
    master = master subtract u    binary32
    w = master                    binary16
    """

    setup: Setup
    optimizer: Optimizer
    stages: tuple[RecurrenceStage, ...]
    constants: tuple[tuple[str, Datum], ...]
    schedules: tuple[tuple[str, Callable[[int], float]], ...]
    states: tuple[tuple[str, Format], ...]
    kept: str
    vanished: tuple[str, ...]

    @classmethod
    def of(cls, setup: Setup, optimizer: Optimizer) -> Program:
        """Write the program of an optimizer in a setup; raises UnsupportedError for numbers beyond a format."""
        made = _Writer(setup)
        gradient = GRADIENT
        if setup.scaling is not None:
            gradient = made.do("g/S", "multiply", GRADIENT, made.constant(UNSCALE, 1 / setup.scaling.scale))
        kept = WEIGHTS if setup.master is None else MASTER
        base, update = optimizer.stages(made, gradient, kept)
        forth, back = ("add", "subtract") if optimizer.adds else ("subtract", "add")
        if not setup.compensated:
            made.total(kept, forth, base, update)
        else:
            made.state(COMPENSATION)
            made.do("y", back, update, COMPENSATION, part="kept")
            made.total("t", forth, base, "y")
            made.do("d", "subtract", "t", base, part="kept")
            made.do(COMPENSATION, back, "d", "y", part="kept")
            made.do(kept, CONVERT, "t", part="kept")
        if setup.master is not None:
            made.add(WEIGHTS, CONVERT, (MASTER,), setup.weights, writes=True)
        return cls(
            setup, optimizer, tuple(made.stages), tuple(made.constants), tuple(made.schedules), tuple(made.states),
            kept, tuple(made.vanished),
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """All rows."""
        rows = [GRADIENT, WEIGHTS, self.kept, *(name for name, _ in self.constants)]
        rows += [*(name for name, _ in self.schedules), *(name for name, _ in self.states)]
        return tuple(dict.fromkeys([*rows, *(stage.to for stage in self.stages)]))

    @property
    def watched(self) -> tuple[str, ...]:
        """The rows that carry the weights: what is kept, and what compensates it."""
        return (self.kept, COMPENSATION) if self.setup.compensated else (self.kept,)

    @property
    def text(self) -> str:
        """The stages, one a line.

        >>> from floatlab.training.optimizers import Updates
        >>> print(Program.of(Setup("fp16", compensated=True), Updates()).text)
        y = g subtract c              binary16
        t = w add y                   binary16
        d = t subtract w              binary16
        c = d subtract y              binary16
        w = t                         binary16
        """
        lines = []
        for stage in self.stages:
            first, *rest = stage.operands
            said = f"{stage.to} = {first} {stage.operation} {' '.join(rest)}" if rest else f"{stage.to} = {first}"
            if not rest and stage.operation != CONVERT:
                said = f"{stage.to} = {stage.operation} {first}"
            drawn = " SR" if stage.context.rounding is Direction.SR else ""
            lines.append(f"{said:<29} {stage.format.name}{drawn}")
        return "\n".join(lines)


class _Writer:
    """Stages as they are written down."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.stages: list[RecurrenceStage] = []
        self.constants: list[tuple[str, Datum]] = []
        self.schedules: list[tuple[str, Any]] = []
        self.states: list[tuple[str, Format]] = []
        self.vanished: list[str] = []

    def constant(self, name: str, value: Any) -> str:
        """Have a constant in the update's format."""
        fmt = self.setup.update
        datum = encode(value, fmt)
        if not datum.is_finite:
            raise beyond(f"{name}, {float(value):g},", fmt)
        if value and not datum.exact:
            self.vanished.append(name)
        self.constants.append((name, datum))
        return name

    def schedule(self, name: str, values: Callable[[int], float]) -> str:
        """Have a number for every step."""
        self.schedules.append((name, values))
        return name

    def state(self, name: str) -> str:
        """Have a row that starts at zero."""
        setup = self.setup
        self.states.append((name, setup.state if name != COMPENSATION else self._kept()))
        return name

    def _kept(self) -> Format:
        kept = self.setup.kept
        return kept if isinstance(kept, Format) else self.setup.accumulator

    def do(self, to: str, operation: str, *operands: str, part: str = "update") -> str:
        """Add a stage in the format of a part."""
        fmt = self._kept() if part == "kept" else getattr(self.setup, part)
        return self.add(to, operation, operands, fmt)

    def total(self, to: str, operation: str, left: str, right: str) -> None:
        """Add w and the update in the accumulator's format, and round to that of the weights kept."""
        setup = self.setup
        writes = setup.master is None
        if setup.accumulator == setup.kept:
            self.add(to, operation, (left, right), setup.accumulator, writes)
            return
        self.add("sum", operation, (left, right), setup.accumulator)
        self.add(to, CONVERT, ("sum",), setup.kept, writes)

    def add(
        self, to: str, operation: str, operands: tuple[str, ...], format: Format | BlockFormat, writes: bool = False
    ) -> str:
        """Add a stage; `writes` says that it writes the weights."""
        self.stages.append(RecurrenceStage(to, operation, operands, format, self._context(writes)))
        return to

    def _context(self, writes: bool) -> Context:
        context = self.setup.context
        if writes:
            return context.replace(rounding=Direction.SR) if self.setup.stochastic else context
        return stream(context, 2 + len(self.stages))


def stream(context: Context, number: int) -> Context:
    """Return a context that draws from the seed that lies `number` further on.

    >>> stream(Context("SR", seed=7), 1).seed, stream(Context(seed=7), 1).seed
    (8, 7)
    """
    if context.rounding is not Direction.SR:
        return context
    return context.replace(seed=(context.seed + number) % (1 << 64))
