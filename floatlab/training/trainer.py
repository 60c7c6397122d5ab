"""`Trainer`: a resumable run of many steps. `TrainingRun`: the recorded weights and events.

A float64 stores every value exactly, because formats that binary64 does not contain are refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.recurrences import Recurrence, round_in_blocks
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import methods_in_default_mode
from floatlab.numbers import Context, encode
from floatlab.record import Individual, Record
from floatlab.training.gradients import Gradients, starting_numbers
from floatlab.training.loss_scale import Scaler
from floatlab.training.optimizers import COMPENSATION, GRADIENT, MASTER, UNSCALE, WEIGHTS, Optimizer, Program, Updates
from floatlab.training.setup import AnyFormat, Setup
from floatlab.training.trace import UpdateTrace, single, trace
from floatlab.training.validation import beyond, checked_whole

_AHEAD = 1 << 10  # schedules are computed for at least this many steps at a time
_CHUNK = 1 << 16  # numbers computed per call of the extension, so that a run can be interrupted
MAX_VALUES = 1 << 24  # by default, a run records about this many numbers at most


class Divergence(Record):
    """Why a run ended early: the step (from 1), the index of a weight or gradient (0 if none), its value, the cause."""

    step: int
    element: int
    value: float
    why: str


@methods_in_default_mode
class TrainingRun(Individual):
    """The recorded weights of a run, and its events.

    `at` has the recorded steps: 0 is the start, and the last step is always included. `values` has the weights that the
    model computes with; its shape is (recorded, n), or (recorded,) for a scalar weight. `kept` (the master copy) and
    `compensation` (Kahan's) have the same shape, or are None. `scales` has pairs of a step (from 0) and the loss scale
    from this step on; `skipped` has the steps (from 0) that dynamic scaling skipped. For each weight, `moves` is the
    number of steps that changed `carrier` or `compensation`; `last_moves` is the last such step (from 1), or 0.
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
        """Show the settings and the final weights."""
        end = self.diverged.why if self.diverged else f"{self.final}"
        steps = f"{self.steps:,} steps of {self.optimizer.name} in {self.setup.weights.name}"
        return f"TrainingRun({self.label}: {steps}: {end[:80]})"

    @property
    def final(self) -> float | Array:
        """The weights at the end: a float, or an array of floats."""
        last: Array = self.values[-1]
        return last if last.ndim else float(last)

    @property
    def carrier(self) -> Array:
        """The weights that are stored from step to step: the master copy, or the weights if there is none."""
        return self.values if self.kept is None else self.kept

    @property
    def carried(self) -> Array:
        """`carrier` minus the compensation; `carrier` itself if there is no compensation."""
        if self.compensation is None:
            return self.carrier
        with np.errstate(invalid="ignore"):  # inf − inf is possible if the run diverged
            stands: Array = self.carrier - self.compensation
        return stands


@methods_in_default_mode
class Trainer:
    """A resumable run: `advance` does more steps, and `change` replaces the setup between two steps.

    `start` is a number or a row of numbers, as text, floats or any array. `gradient` is a number, a row, a table
    (steps, n), or a function with two arguments: the weights (a float, or a float64 array), and the step number (from
    0). Raises UnsupportedError for a start that is not finite or overflows its format.

    >>> trainer = Trainer("1.125", "0.00041999", setup=Setup("fp16", master="fp32"))
    >>> trainer.advance(101)
    >>> run = trainer.run
    >>> run.final, float(run.kept[-1])
    (1.1669921875, 1.1674294471740723)
    """

    def __init__(
        self,
        start: object,
        gradient: object,
        optimizer: Optimizer | None = None,
        setup: Setup | None = None,
        *,
        label: str = "",
        every: int = 1,
        lane: str | None = None,
    ) -> None:
        """Read the start, and build the program."""
        self.optimizer = Updates() if optimizer is None else optimizer
        self.label, self.lane = label, lane
        self.every = checked_whole(every, "every", 1)
        self.start, self.is_scalar = starting_numbers(start)
        self.count = len(self.start)
        name = "update" if self.optimizer.adds else "gradient"
        self.gradients = Gradients(gradient, self.count, self.is_scalar, name)
        self.steps, self.taken = 0, 0
        self.scales: list[tuple[int, float]] = []
        self.skipped: list[int] = []
        self.diverged: Divergence | None = None
        self.last, self.moved = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        self._records: list[dict[str, Array]] = []
        self._at: list[Array] = [np.zeros(1, np.int64)]
        self._install(setup or Setup(), is_new=True)
        self._records.append(self._now())

    setup: Setup
    program: Program
    recurrence: Recurrence

    def _install(self, setup: Setup, is_new: bool) -> None:
        """Build the program of a setup. If `is_new`, its rows start anew; otherwise the rows keep their numbers."""
        keeps_scale = not is_new and setup.scaling == self.setup.scaling
        program = Program.of(setup, self.optimizer)
        recurrence = Recurrence(program.names, program.stages, self.lane)
        start: dict[str, Array | float] = {name: float(datum) for name, datum in program.constants}
        start |= {name: 0.0 for name, _ in program.states}
        start[WEIGHTS] = self._starting_weights(setup.weights) if is_new else _into(self.row(WEIGHTS), setup.weights)
        if setup.master:
            kept = self._starting_weights(setup.master) if is_new else _into(self.row(self.program.kept), setup.master)
            start[MASTER] = kept
        if not is_new:
            old = self.recurrence.names
            start |= {name: _into(self.row(name), fmt) for name, fmt in program.states if name in old}
        self.setup, self.program, self.recurrence = setup, program, recurrence
        self._schedules: dict[str, tuple[int, Array]] = {}
        self.rows: Array = recurrence.rows(self.count, start)
        if not keeps_scale:
            self.scaler = None if setup.scaling is None else Scaler(setup.scaling)
        if self.scaler is not None:
            self._note_scale()

    def _starting_weights(self, format: AnyFormat) -> Array:
        """Return the starting weights in a format; raises UnsupportedError for overflow (except in block formats)."""
        numbers = self.start
        if isinstance(numbers, list):  # exact numbers, rounded once
            numbers = np.array([float(encode(x, format) if isinstance(format, Format) else x) for x in numbers])
        rounded = _into(numbers, format)
        if isinstance(format, Format) and not np.isfinite(rounded).all():
            try:
                typed = f"{float(self.start[int(np.argmin(np.isfinite(rounded)))]):g}"
            except OverflowError:
                typed = "given"
            raise beyond(f"start {typed}", format)
        return rounded

    @property
    def _recorded(self) -> tuple[str, ...]:
        rows = {WEIGHTS: True, MASTER: self.setup.master is not None, COMPENSATION: self.setup.compensated}
        return tuple(name for name, is_there in rows.items() if is_there)

    def _note_scale(self) -> None:
        """Record the loss scale S if it changed, and write 1/S to the row `UNSCALE`."""
        assert self.scaler is not None
        if not self.scales or self.scales[-1][1] != self.scaler.scale:
            self.scales.append((self.steps, self.scaler.scale))
        if self.scaler.scale:
            self.row(UNSCALE)[:] = float(encode(1 / self.scaler.scale, self.setup.update))

    def change(self, setup: Setup) -> None:
        """Continue in `setup`: stored values are rounded to its formats, and a changed loss scale starts anew."""
        self._install(setup, is_new=False)

    def advance(self, steps: int, tick: Callable[[int], None] | None = None) -> None:
        """Do `steps` more steps, or fewer if the run diverges; `tick` is called with the number of new steps.

        Raises UnsupportedError if there are fewer gradients than steps.
        """
        left = checked_whole(steps, "steps", 0)
        self.gradients.check_last(self.steps + left)
        chunk = 1 if self.gradients.function is not None else max(_CHUNK // self.count, 1)
        while left and self.diverged is None:
            growth = None if self.scaler is None else self.scaler.until_growth
            did = self._take(self._given(min(left, chunk, left if growth is None else growth)))
            left -= did
            if tick is not None:
                tick(did)

    def take(self, given: Array) -> None:
        """Do one step with gradients that are already multiplied by the loss scale and rounded to their format.

        Raises UnsupportedError if the number of gradients is not the number of weights.
        """
        row = np.asarray(given, np.float64).reshape(1, -1)
        if row.shape[1] != self.count:
            raise UnsupportedError(f"there are {self.count} weights, but {row.shape[1]} gradients")
        self._take(row)

    def row(self, name: str) -> Array:
        """Return the array with the current numbers of a row; writing to this array changes the program's state."""
        return self.rows[self.recurrence.names[name]]

    @property
    def weights(self) -> Array:
        """A copy of the weights that the model computes with."""
        return self.row(WEIGHTS).copy()

    def _take(self, given: Array) -> int:
        """Do steps with scaled, rounded gradients, at most up to the first step with NaN or ∞; return how many."""
        finite = np.isfinite(given).all(axis=1)
        good = len(given) if finite.all() else int(np.argmin(finite))
        dynamic = self.scaler is not None and self.scaler.rules.is_dynamic
        if not dynamic and good < len(given) and not self._format_without_nan:
            good += 1  # also do the step that makes the weights NaN or infinite
        if good:
            return self._walk(given[:good])
        if dynamic:
            return self._skip()
        i = int(np.argmin(np.isfinite(given[0])))
        why = f"the {self.gradients.name} is {given[0, i]}, which {self._format_without_nan} cannot represent"
        self.diverged = Divergence(self.steps + 1, i, float(given[0, i]), why)
        return 0

    @property
    def _format_without_nan(self) -> str:
        """The first format without NaN among the formats of the gradients and the stages; empty if all have NaN."""
        formats = (self.setup.grads, *(stage.format for stage in self.program.stages))
        return next((each.name for each in formats if isinstance(each, Format) and not each.has_nan), "")

    def _given(self, steps: int) -> Array:
        """Return the gradients of the next `steps` steps, multiplied by the loss scale and rounded."""
        weights = self.row(WEIGHTS)
        return self.gradients.rounded(
            self.steps, steps, 1.0 if self.scaler is None else self.scaler.scale, self.setup.grads,
            self.setup.gradient_context, float(weights[0]) if self.is_scalar else weights.copy(),
        )  # fmt: skip

    def _walk(self, given: Array) -> int:
        inputs = {GRADIENT: given}
        for name, values in self.program.schedules:
            inputs[name] = self._scheduled(name, values, len(given))
        first, every = self.steps, self.every
        many = (first + len(given)) // every - first // every
        found = {name: np.empty((many, self.count)) for name in self._recorded}
        carriers = {name: self.recurrence.names[name] for name in (*self.program.watched, WEIGHTS)}
        did = self.recurrence.walk(
            self.rows, len(given), inputs, found, every, self.program.watched, tuple(carriers), self.last, self.moved,
            first,
        )  # fmt: skip
        self._end(did, found)
        if self.scaler is not None:
            self.scaler.update(False, did)
            self._note_scale()
        if not np.isfinite(self.rows[[*carriers.values()]]).all():
            self._diverge(given[did - 1])
        return did

    def _scheduled(self, name: str, values: Callable[[int], float], many: int) -> Array:
        """Return a schedule's numbers for the next `many` steps. At least `_AHEAD` numbers are computed at a time."""
        start, made = self._schedules.get(name, (0, np.empty(0)))
        if not start <= self.taken <= self.taken + many <= start + len(made):
            start = self.taken
            more = range(start + 1, start + max(many, _AHEAD) + 1)
            made = quantize(np.array([values(t) for t in more]), self.setup.update)
            self._schedules[name] = start, made
        return made[self.taken - start : self.taken - start + many]

    def _now(self) -> dict[str, Array]:
        """Return the current numbers of the rows of the program that are recorded, such as the weights."""
        return {name: self.row(name)[None].copy() for name in self._recorded}

    def _end(self, did: int, found: dict[str, Array]) -> None:
        first, every = self.steps, self.every
        self.steps += did
        self.taken += did
        many = self.steps // every - first // every
        self._records.append({name: each[:many] for name, each in found.items()})
        self._at.append(every * np.arange(first // every + 1, self.steps // every + 1))

    def _skip(self) -> int:
        """Skip a step and reduce the loss scale, as dynamic scaling does."""
        assert self.scaler is not None
        self.skipped.append(self.steps)
        self._end(1, self._now())
        self.taken -= 1
        self.scaler.update(True)
        self._note_scale()
        if not self.scaler.scale:
            why = "the loss scale fell to zero: the gradients are NaN or infinite at every scale"
            self.diverged = Divergence(self.steps, 0, math.nan, why)
        return 1

    def _diverge(self, given: Array) -> None:
        """Record the first weight that is NaN or infinite, and the cause."""
        setup, zeros = self.setup, ", ".join(self.program.vanished)
        name = next(each for each in (*self.program.watched, WEIGHTS) if not np.isfinite(self.row(each)).all())
        row = self.row(name)
        i = int(np.argmin(np.isfinite(row)))
        if not np.isfinite(given[i]):
            why = f"the {self.gradients.name} became {given[i]} in {setup.grads.name}"
        elif "eps" in self.program.vanished:
            why = f"division by zero: √v and eps are zero in {setup.update.name}"
        else:
            format = setup.weights if name == WEIGHTS else setup.kept
            why = f"w became {row[i]} in {format.name}" + (f" ({zeros} is zero there)" if zeros else "")
        self.diverged = Divergence(self.steps, i, float(row[i]), why)

    @property
    def can_step(self) -> bool:
        """Whether `next_step` can trace a step."""
        lasts = self.gradients.length is None or self.steps < self.gradients.length
        finite = lasts and self.diverged is None and bool(np.isfinite(self._given(1)).all())
        return finite and isinstance(self.setup.weights, Format)

    def next_step(self, element: int = 0) -> UpdateTrace:
        """Trace the next step for one weight, rounding by rounding, without doing the step.

        Raises UnsupportedError for block weights, for an unknown element, and if no step with finite numbers is left.

        >>> trainer = Trainer("1.125", "0.00041999")
        >>> trainer.advance(100)
        >>> trainer.next_step()
        UpdateTrace(Datum(binary16 0x3c80 = 1.125) → Datum(binary16 0x3c80 = 1.125): below half)
        """
        if not 0 <= element < self.count:
            raise UnsupportedError(f"element must be from 0 to {self.count - 1}, not {element}")
        if self.diverged is not None:
            raise UnsupportedError(f"there is no next step: {self.diverged.why}")
        weights = single(self.setup.weights)
        if self.gradients.length is not None and self.steps >= self.gradients.length:
            raise UnsupportedError(
                f"there is no next step: {self.gradients.name} has numbers for {self.gradients.length:,} steps"
            )
        setup, program = self.setup, self.program
        formats = {**dict(program.states), WEIGHTS: weights, GRADIENT: setup.grads}
        if setup.master is not None:
            formats[MASTER] = setup.master
        if setup.scaling is not None:
            formats[UNSCALE] = setup.update
        given = self._given(1)
        self.row(GRADIENT)[:] = given[0]
        rows = {name: encode(float(self.row(name)[element]), fmt) for name, fmt in formats.items()}
        if not rows[GRADIENT].is_finite:
            raise UnsupportedError(f"there is no next step: the {self.gradients.name} is {float(given[0, element])}")
        exact = self.gradients.at(self.steps, element)
        if exact is None:
            exact = rows[GRADIENT].exact.as_fraction() / Fraction(self.scaler.scale if self.scaler else 1)
        return trace(program, rows, exact, self.steps * self.count + element, self.taken)

    def _values(self, name: str) -> Array:
        """Return a row's numbers after each recorded step and the last step; NaN if the row did not exist then."""
        none = np.full((1, self.count), np.nan)
        parts = [part[name] if name in part else np.repeat(none, len(part[WEIGHTS]), 0) for part in self._records]
        if self.steps % self.every:  # the last step was not recorded
            parts.append(self.row(name)[None].copy())
        found: Array = np.concatenate(parts)
        return found[:, 0] if self.is_scalar else found

    @property
    def run(self) -> TrainingRun:
        """The record of the run so far."""
        setup = self.setup
        last = [np.array([self.steps])] if self.steps % self.every else []
        return TrainingRun(
            label=self.label, setup=setup, optimizer=self.optimizer, program=self.program, steps=self.steps,
            every=self.every, at=np.concatenate([*self._at, *last]), values=self._values(WEIGHTS),
            kept=self._values(MASTER) if setup.master else None,
            compensation=self._values(COMPENSATION) if setup.compensated else None, scales=tuple(self.scales),
            skipped=tuple(self.skipped), last_moves=self.last.copy(), moves=self.moved.copy(),
            diverged=self.diverged, is_compiled=self.recurrence.is_compiled,
        )  # fmt: skip


def _into(numbers: Array, format: AnyFormat) -> Array:
    return quantize(numbers, format) if isinstance(format, Format) else round_in_blocks(numbers, format, Context())
