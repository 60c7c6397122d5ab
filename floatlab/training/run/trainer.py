"""A trainer: many steps of training, as far as it is told to go."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.recurrences import Recurrence, blockwise
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import methods_in_default_mode
from floatlab.numbers import Context, encode
from floatlab.training.gradients import Gradients, numbers_of
from floatlab.training.optimizers import Optimizer, Updates
from floatlab.training.run.training_run import Divergence, TrainingRun
from floatlab.training.scaling import Scaler
from floatlab.training.setup import Setup
from floatlab.training.update.program import COMPENSATION, GRADIENT, MASTER, UNSCALE, WEIGHTS, Program, stream
from floatlab.training.update.trace import UpdateTrace, judged, single, trace
from floatlab.training.validation import beyond, checked_whole

_AHEAD = 1 << 10  # steps that schedules are made for
_CHUNK = 1 << 16  # numbers that a walk goes through at a time, so that it can be interrupted
MAX_VALUES = 1 << 24  # numbers that a run keeps where nothing else is asked for


@methods_in_default_mode
class Trainer:
    """A run under way: it goes on as far as it is told, and its setup may change between two steps.

    `start` is a number or a row of them, as text, floats or any array; `gradient` a number, a row or table, or a
    function of the weights (a float, or a float64 array) and the number of the step, from 0. Raises UnsupportedError
    for a start that is no finite number of its format.

    >>> trainer = Trainer("1.125", "0.00041999", setup=Setup("fp16", master="fp32"))
    >>> trainer.advance(101)
    >>> run = trainer.run
    >>> run.final, float(run.kept[-1])
    (1.1669921875, 1.1674294471740723)
    """

    def __init__(
        self,
        start: Any,
        gradient: Any,
        optimizer: Optimizer | None = None,
        setup: Setup | None = None,
        *,
        label: str = "",
        every: int = 1,
        lane: str | None = None,
    ) -> None:
        """Read the start, and write the program."""
        self.optimizer = Updates() if optimizer is None else optimizer
        self.label, self.lane = label, lane
        self.every = checked_whole(every, "every", 1)
        begin = numbers_of(start, "start")
        self.alone = isinstance(begin, list) and (isinstance(start, str) or not hasattr(start, "__len__"))
        if not isinstance(begin, list):
            self.alone = begin.ndim == 0
            if begin.ndim > 1 or not begin.size:
                raise UnsupportedError(f"start is a number or a row of them, not of shape {begin.shape}")
            begin = begin.reshape(-1)
            if not np.isfinite(begin).all():
                i = int(np.argmin(np.isfinite(begin)))
                raise UnsupportedError(f"start[{i}] is {begin[i]}: training begins from finite numbers")
        self.count = len(begin)
        self.gradients = Gradients(gradient, self.count, self.alone, "update" if self.optimizer.adds else "gradient")
        self.steps, self.taken = 0, 0
        self.scales: list[tuple[int, float]] = []
        self.skipped: list[int] = []
        self.diverged: Divergence | None = None
        self.last, self.moved = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        self._records: list[dict[str, Array]] = []
        self._at: list[Array] = [np.zeros(1, np.int64)]
        self._begin = begin
        self._install(setup or Setup(), None)
        self._records.append(self._now())

    def _install(self, setup: Setup, old: Trainer | None) -> None:
        """Write the program of a setup, and start its rows: from the beginning, or from where this trainer stands."""
        keeps_scale = old is not None and setup.scaling == old.setup.scaling
        program = Program.of(setup, self.optimizer)
        recurrence = Recurrence(program.names, program.stages, self.lane)
        states = {name: 0.0 for name, _ in program.states}
        start: dict[str, Any] = {name: float(datum) for name, datum in program.constants} | states
        if old is None:
            start |= {WEIGHTS: self._first(setup.weights)} | (
                {MASTER: self._first(setup.master)} if setup.master else {}
            )
        else:
            carrier = old.row(old.program.kept)
            start[WEIGHTS] = _into(old.row(WEIGHTS), setup.weights)
            if setup.master:
                start[MASTER] = _into(carrier, setup.master)
            for name, fmt in program.states:
                if name in old.recurrence.names:
                    start[name] = _into(old.row(name), fmt)
        self.setup: Setup = setup
        self.program: Program = program
        self.recurrence: Recurrence = recurrence
        self._schedules: dict[str, tuple[int, Array]] = {}
        self.rows: Array = recurrence.rows(self.count, start)
        if not keeps_scale:
            self.scaler = None if setup.scaling is None else Scaler(setup.scaling)
        if self.scaler is not None:
            self._note_scale()

    def _first(self, format: Any) -> Array:
        """Return the start in a format; raises UnsupportedError where it overflows."""
        if not isinstance(format, Format):
            wide = np.array([float(each) for each in self._begin]) if isinstance(self._begin, list) else self._begin
            return blockwise(wide, format, Context())
        if isinstance(self._begin, list):
            found = np.array([float(encode(each, format)) for each in self._begin])
        else:
            found = quantize(self._begin, format)
        if not np.isfinite(found).all():
            i = int(np.argmin(np.isfinite(found)))
            try:
                given = f"{float(self._begin[i]):g}"
            except OverflowError:
                given = "given"
            raise beyond(f"start {given}", format)
        return found

    @property
    def _recorded(self) -> tuple[str, ...]:
        names = [WEIGHTS]
        if self.setup.master is not None:
            names.append(MASTER)
        if self.setup.compensated:
            names.append(COMPENSATION)
        return tuple(names)

    def _note_scale(self) -> None:
        """Put the loss scale where the program finds it."""
        assert self.scaler is not None
        if not self.scales or self.scales[-1][1] != self.scaler.scale:
            self.scales.append((self.steps, self.scaler.scale))
        if self.scaler.scale:
            self.row(UNSCALE)[:] = float(encode(1 / self.scaler.scale, self.setup.update))

    def change(self, setup: Setup) -> None:
        """Go on in another setup: what is kept is rounded to its formats, and a new loss scale starts anew."""
        self._install(setup, self)

    def advance(self, steps: int, tick: Callable[[int], None] | None = None) -> None:
        """Do more steps, or as many as there are before the weights are no numbers; `tick` is told how many are done.

        Raises UnsupportedError where the gradients that were given do not last.
        """
        left = checked_whole(steps, "steps", 0)
        self.gradients.check_last(self.steps + left)
        while left and self.diverged is None:
            did = self._advance(min(left, max(_CHUNK // self.count, 1)))
            left -= did
            if tick is not None:
                tick(did)

    def _advance(self, most: int) -> int:
        """Do some steps, at most so many; return how many."""
        if self.gradients.function is not None:
            most = 1
        if self.scaler is not None and self.scaler.until_growth is not None:
            most = min(most, self.scaler.until_growth)
        return self._take(self._given(most))

    def take(self, given: Array) -> None:
        """Do one step with gradients from elsewhere: numbers of their format already, times the loss scale.

        Raises UnsupportedError where there are not as many as weights.
        """
        row = np.asarray(given, np.float64).reshape(1, -1)
        if row.shape[1] != self.count:
            raise UnsupportedError(f"there are {self.count} weights, and {row.shape[1]} gradients")
        self._take(row)

    def row(self, name: str) -> Array:
        """Return a row of the program as it is now, to be read or written."""
        found: Array = self.rows[self.recurrence.names[name]]
        return found

    @property
    def weights(self) -> Array:
        """The weights as the model computes with them: a copy."""
        found: Array = self.row(WEIGHTS).copy()
        return found

    def _take(self, given: Array) -> int:
        """Do steps with gradients that are scaled and rounded, up to one that is to be skipped; return how many."""
        finite = np.isfinite(given).all(axis=1)
        good = len(given) if finite.all() else int(np.argmin(finite))
        dynamic = self.scaler is not None and self.scaler.rules.is_dynamic
        if not dynamic and good < len(given) and self._tells:
            good += 1  # the step that brings the weights beyond numbers
        if good:
            return self._walk(given[:good])
        if dynamic:
            return self._skip()
        i = int(np.argmin(np.isfinite(given[0])))
        why = f"the {self.gradients.name} is {given[0, i]}, and {self._mute} has no such number: the step is not done"
        self.diverged = Divergence(self.steps + 1, i, float(given[0, i]), why)
        return 0

    @property
    def _tells(self) -> bool:
        """Whether what is no number makes the weights no numbers: not in formats that have none."""
        return not self._mute

    @property
    def _mute(self) -> str:
        """The first format on the way from gradients to weights that has no NaN; empty where all have."""
        formats = (self.setup.grads, *(stage.format for stage in self.program.stages))
        return next((each.name for each in formats if isinstance(each, Format) and not each.has_nan), "")

    def _given(self, steps: int) -> Array:
        """Return the gradients of the next steps, scaled and rounded."""
        weights = self.row(WEIGHTS)
        return self.gradients.rounded(
            self.steps, steps, 1.0 if self.scaler is None else self.scaler.scale, self.setup.grads,
            stream(self.setup.context, 1), float(weights[0]) if self.alone else weights.copy(),
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
        """Return a schedule's numbers for the next steps, which are made some thousand at a time."""
        start, made = self._schedules.get(name, (0, np.empty(0)))
        if not start <= self.taken <= self.taken + many <= start + len(made):
            start = self.taken
            more = range(start + 1, start + max(many, _AHEAD) + 1)
            made = quantize(np.array([values(t) for t in more]), self.setup.update)
            self._schedules[name] = start, made
        found: Array = made[self.taken - start : self.taken - start + many]
        return found

    def _now(self) -> dict[str, Array]:
        """Return what is recorded, as it is now."""
        return {name: self.row(name)[None].copy() for name in self._recorded}

    def _end(self, did: int, found: dict[str, Array]) -> None:
        first, every = self.steps, self.every
        self.steps += did
        self.taken += did
        many = self.steps // every - first // every
        self._records.append({name: each[:many] for name, each in found.items()})
        self._at.append(every * np.arange(first // every + 1, self.steps // every + 1))

    def _skip(self) -> int:
        """Skip a step, as dynamic scaling does."""
        assert self.scaler is not None
        self.skipped.append(self.steps)
        self._end(1, self._now())
        self.taken -= 1
        self.scaler.update(True)
        self._note_scale()
        if not self.scaler.scale:
            why = "the loss scale fell to zero: the gradients are no numbers, whatever they are scaled by"
            self.diverged = Divergence(self.steps, 0, math.nan, why)
        return 1

    def _diverge(self, given: Array) -> None:
        """Say which weight is no number, and why."""
        setup, zeros = self.setup, ", ".join(self.program.vanished)
        for name in (*self.program.watched, WEIGHTS):
            row = self.row(name)
            if not np.isfinite(row).all():
                break
        i = int(np.argmin(np.isfinite(row)))
        if not np.isfinite(given[i]):
            why = f"the {self.gradients.name} became {given[i]} in {setup.grads.name}"
        elif "eps" in self.program.vanished:
            why = f"eps is zero in {setup.update.name}, and so was what it was added to: a division by zero"
        else:
            format = setup.weights if name == WEIGHTS else setup.kept
            why = f"w became {row[i]} in {format.name}" + (f" ({zeros} is zero there)" if zeros else "")
        self.diverged = Divergence(self.steps, i, float(row[i]), why)

    @property
    def can_step(self) -> bool:
        """Whether `next_step` has something to show."""
        lasts = self.gradients.length is None or self.steps < self.gradients.length
        finite = lasts and self.diverged is None and bool(np.isfinite(self._given(1)).all())
        return finite and isinstance(self.setup.weights, Format)

    def next_step(self, element: int = 0) -> UpdateTrace:
        """Return what the next step would do to one weight, rounding by rounding; nothing changes.

        Raises UnsupportedError for weights in blocks, for one that is no number, and where the gradients end.

        >>> trainer = Trainer("1.125", "0.00041999")
        >>> trainer.advance(100)
        >>> trainer.next_step()
        UpdateTrace(Datum(binary16 0x3c80 = 1.125) → Datum(binary16 0x3c80 = 1.125): below half)
        """
        if not 0 <= element < self.count:
            raise UnsupportedError(f"element is from 0 to {self.count - 1}, not {element}")
        if self.diverged is not None:
            raise UnsupportedError(f"there is no next step: {self.diverged.why}")
        weights = single(self.setup.weights)
        if self.gradients.length is not None and self.steps >= self.gradients.length:
            raise UnsupportedError(
                f"{self.gradients.name} has numbers for {self.gradients.length:,} steps, and all are done"
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
        stages, after = trace(program, rows, self.steps * self.count + element, self.taken)
        return judged(program, (), stages, dict(program.constants) | rows, after, exact)

    def _values(self, name: str) -> Array:
        """Return what was recorded of a row, and where it stands now; NaN while there was none."""
        none = np.full((1, self.count), np.nan)
        parts = [part[name] if name in part else np.repeat(none, len(part[WEIGHTS]), 0) for part in self._records]
        if self._stands_between:
            parts.append(self.row(name)[None].copy())
        found: Array = np.concatenate(parts)
        return found[:, 0] if self.alone else found

    @property
    def _stands_between(self) -> bool:
        """Whether the last step is none of those that are recorded."""
        return self.steps % self.every != 0

    @property
    def run(self) -> TrainingRun:
        """What has become of the weights so far."""
        setup = self.setup
        last = [np.array([self.steps])] if self._stands_between else []
        return TrainingRun(
            self.label, setup, self.optimizer, self.program, self.steps, self.every, np.concatenate([*self._at, *last]),
            self._values(WEIGHTS), self._values(MASTER) if setup.master else None,
            self._values(COMPENSATION) if setup.compensated else None, tuple(self.scales), tuple(self.skipped),
            self.last.copy(), self.moved.copy(), self.diverged, self.recurrence.is_compiled,
        )  # fmt: skip


def _into(numbers: Array, format: Any) -> Array:
    found: Array = quantize(numbers, format) if isinstance(format, Format) else blockwise(numbers, format, Context())
    return found
