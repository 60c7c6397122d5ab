"""Does the same training steps with several remedies side by side, and compares the weights with a reference.

The reference is exact if the updates, or the gradients of plain SGD, are known in advance. The exact weights are w₀ +
Σu or w₀ − lr·Σg in rational arithmetic, with start w₀, updates u and gradients g. Updates may depend on earlier steps:
with momentum, Adam or weight decay, or if the gradients are a function of the weights. The reference is then the same
optimizer in binary64. If a table of gradients has NaN or infinite numbers for a step, the reference takes all gradients
of this step as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import FloatlabError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Context, as_context
from floatlab.numbers.rounding import AnyContext
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.training.gradients import numbers_of
from floatlab.training.optimizers import SGD, Optimizer, Updates, is_drawn, parse_optimizer
from floatlab.training.setup import USUAL, AnyFormat, Setup, parse_remedy
from floatlab.training.trace import Why
from floatlab.training.trainer import MAX_VALUES, Trainer, TrainingRun
from floatlab.training.validation import checked_whole, listed_words


@methods_in_default_mode
class Reference:
    """The run with which remedies are compared: exact, or in binary64 if updates depend on earlier steps."""

    def __init__(self, start: object, gradient: object, optimizer: Optimizer, every: int) -> None:
        """Choose exact arithmetic or binary64."""
        self._wide = Trainer(start, gradient, optimizer, Setup("binary64"), label="reference", every=every)
        plain = isinstance(optimizer, SGD) and not optimizer.momentum and not optimizer.weight_decay
        given = self._wide.gradients
        if given.table is not None:
            given.table = np.where(np.isfinite(given.table).all(axis=1, keepdims=True), given.table, 0.0)
        self.is_exact = given.function is None and (isinstance(optimizer, Updates) or plain)
        self._factor = -optimizer.lr if isinstance(optimizer, SGD) else Fraction(1)
        begin = self._wide.start
        self._start = [Fraction(x) for x in (begin if isinstance(begin, list) else begin.tolist())]
        self.every = every
        self._final: tuple[int, list[Fraction]] | None = None

    @property
    def kind(self) -> str:
        """Either `exact` or `binary64`."""
        return "exact" if self.is_exact else "binary64"

    def advance(self, steps: int, tick: Callable[[int], None] | None = None) -> None:
        """Do more steps; do nothing if the reference is exact, because its weights are computed in closed form."""
        if not self.is_exact:
            self._wide.advance(steps, tick)

    def at(self, steps: list[int], element: int = 0) -> list[Fraction]:
        """Return the exact weight after each of these steps, which are in ascending order.

        Raises UnsupportedError if the reference is binary64.

        >>> Reference("1.125", "0.00041999", Updates(), 1).at([0, 101])
        [Fraction(9, 8), Fraction(116741899, 100000000)]
        """
        if not self.is_exact:
            raise UnsupportedError("the reference is binary64: it has no exact values")
        sums, unit = self._wide.gradients.totals(steps, element)
        return [self._start[element] + self._factor * unit * each for each in sums]

    def curve(self, at: Array) -> Array:
        """Return the weights after the steps in `at`: a float64 array (steps, n), or (steps,) for a scalar weight.

        If the reference is binary64, these must be recorded steps.
        """
        if not self.is_exact:
            return self._wide.run.values[-(-at // self.every)]  # the last step need not be a multiple of `every`
        columns = []
        for element, start in enumerate(self._start):
            sums, unit = self._wide.gradients.totals(at.tolist(), element)
            by = self._factor * unit
            bottom = start.denominator * by.denominator
            first, each = start.numerator * by.denominator, by.numerator * start.denominator
            columns.append(np.array([(first + each * total) / bottom for total in sums]))
        return columns[0] if self._wide.is_scalar else np.stack(columns, axis=1)

    def moves_after(self, last: Array, steps: int) -> Array:
        """Return, for each weight, whether the reference changes this weight after step `last`, up to step `steps`.

        `last` is an array with a step for each weight.
        """
        moved = self._wide.gradients.last_given(steps) if self.is_exact else self._wide.last
        return moved > last

    def final(self, steps: int) -> Sequence[Fraction | float]:
        """Return the exact weights after `steps` steps. A binary64 reference returns its last weights instead."""
        if not self.is_exact:
            return list(map(float, self._wide.weights))
        if self._final is None or self._final[0] != steps:
            self._final = steps, [self.at([steps], element)[0] for element in range(len(self._start))]
        return self._final[1]


@methods_in_default_mode
class Trajectory(Record):
    """The result of one remedy after some steps.

    `error` is weight − reference; for several weights, it is the error of largest magnitude. `carried_error` is the
    error of the master copy or of the compensated value; it is None if the remedy has neither. `error` and
    `carried_error` are None if the run or the reference diverged.

    A weight is stalled if it did not change in the last 1 % of all steps, and the reference has changed since the
    weight last changed. One step without a change suffices if all steps have the same effect: the same gradient, no
    momentum or other state, and no stochastic rounding. A weight never counts as stalled if the run diverged, if the
    last step was skipped, if stochastic rounding may still move the weight (for several weights, this is assumed), or
    if a gradient function returned 0 for it.

    If the weight is stalled, `stalled` is the number of the last step that changed it, or 0 if no step did. Otherwise,
    `stalled` is None. For several weights, `stalled` is the largest of these step numbers. `still` is the number of
    stalled weights. `moves` is the number of changes of a weight, summed over all weights.

    `why` is the outcome of the next step for one weight: the one with the largest `stalled`, or the first one if none
    is stalled. `why` is None if that step cannot be traced.
    """

    label: str
    final: float | Array
    error: float | None
    carried_error: float | None
    stalled: int | None
    still: int
    moves: int
    skipped: int
    scale: float | None
    why: Why | None
    diverged: str | None


@methods_in_default_mode
class Training(Answering):
    """A comparison of remedies: a trainer for each remedy, and a reference. The reference does the same steps.

    `trainers` are in the order of the remedies; `runs` has the recorded weights of each trainer; `lines` is the table
    of results.
    """

    _ASKS = ".lines or .runs"

    def __init__(self, trainers: list[Trainer], reference: Reference) -> None:
        """Store the reference and the trainers, which must not have done a step yet."""
        self.trainers, self.reference, self.steps = trainers, reference, 0

    def __repr__(self) -> str:
        """Show the remedies."""
        return f"Training({self.steps:,} steps: {', '.join(each.label for each in self.trainers)})"

    def advance(self, steps: int, tick: Callable[[int], None] | None = None) -> None:
        """Do `steps` more steps with all trainers, and then with the reference.

        `tick` is called from time to time, with the number of steps done since the previous call. The steps of all
        trainers and of the reference are counted.
        """
        checked_whole(steps, "steps", 0)
        for each in self.trainers:
            each.advance(steps, tick)
        self.reference.advance(steps, tick)
        self.steps += steps

    @property
    def seed(self) -> int:
        """The seed of the stochastic roundings."""
        return self.trainers[0].setup.context.seed

    @property
    def runs(self) -> tuple[TrainingRun, ...]:
        """The recorded run of each remedy."""
        return tuple(each.run for each in self.trainers)

    def __getitem__(self, label: str) -> TrainingRun:
        """Return the run of a remedy; raises UnsupportedError if there is none."""
        return self.trainer(label).run

    def trainer(self, label: str) -> Trainer:
        """Return the trainer of a remedy; raises UnsupportedError if there is none."""
        known = [each.label for each in self.trainers]
        if label in known:
            return self.trainers[known.index(label)]
        raise UnsupportedError(f"there is no run {quoted(label)}{guess(label, known)} (the runs are {' '.join(known)})")

    @property
    def lines(self) -> tuple[Trajectory, ...]:
        """The table of results: a `Trajectory` for each remedy."""
        return tuple(self._line(each) for each in self.trainers)

    def _line(self, trainer: Trainer) -> Trajectory:
        run = trainer.run
        stalled = self._stalled(trainer, run)
        why = trainer.next_step(int(stalled.argmax())).why if trainer.can_step else None
        error, carried = self._errors(run)
        return Trajectory(
            label=trainer.label, final=run.final, error=error, carried_error=carried,
            stalled=int(stalled.max()) if (stalled >= 0).any() else None, still=int((stalled >= 0).sum()),
            moves=int(run.moves.sum()), skipped=len(run.skipped), scale=run.scales[-1][1] if run.scales else None,
            why=why, diverged=None if run.diverged is None else run.diverged.why,
        )  # fmt: skip

    def _errors(self, run: TrainingRun) -> tuple[float | None, float | None]:
        if run.diverged is not None:
            return None, None
        truth = self.reference.final(run.steps)
        if not all(isinstance(each, Fraction) or math.isfinite(each) for each in truth):
            return None, None  # the reference became infinite or NaN (gradients from a function)
        carried = None
        if run.kept is not None or run.compensation is not None:
            high = run.carrier[-1]
            low = np.zeros(1) if run.compensation is None else run.compensation[-1]
            if np.isfinite(high - low).all():  # NaN if `change` added these rows after the last step
                carried = _furthest(high, truth, low)
        return _furthest(run.values[-1], truth), carried

    def _stalled(self, trainer: Trainer, run: TrainingRun) -> Array:
        """Return, for each weight, the last step that changed this weight if the weight is stalled; otherwise −1."""
        last, quiet, given = run.last_moves, run.steps - run.last_moves, trainer.gradients
        draws = any(map(is_drawn, run.program.stages))
        # If a constant update left the weight unchanged once, it always will.
        proven = given.is_constant and not run.program.states and not draws
        still = (quiet > 0 if proven else quiet > run.steps // 100) & self.reference.moves_after(last, run.steps)
        waits = bool(run.skipped) and run.skipped[-1] == run.steps - 1  # the loss scale is still shrinking
        if run.diverged is not None or waits or (draws and trainer.count > 1):
            still[:] = False
        elif still.any() and trainer.can_step:
            # A stochastically rounded weight may still move; with a gradient function, the weights may be at the
            # minimum.
            if given.function is not None and given.raw is not None:
                still &= given.raw != 0
            if draws and trainer.next_step().why in (Why.DRAWN, Why.MOVED, Why.IN_MASTER):
                still[:] = False
        return np.where(still, last, -1)


def _furthest(values: Array, truth: Sequence[Fraction | float], low: Array | float = 0.0) -> float:
    """Return the error of largest magnitude. The errors are (values − low) − truth; `low` is the compensation."""
    numbers, less = np.atleast_1d(values).tolist(), np.broadcast_to(low, (len(truth),)).tolist()
    errors = [float(Fraction(x) - Fraction(c) - Fraction(t)) for x, c, t in zip(numbers, less, truth, strict=True)]
    return max(errors, key=abs)


@in_default_mode
def train(
    start: object,
    gradient: object = None,
    *,
    update: object = None,
    steps: int = 100,
    lr: object = None,
    optimizer: Optimizer | str | None = None,
    remedies: str | Iterable[str] | None = None,
    weights: AnyFormat | str = "binary16",
    grads: Format | str | None = None,
    update_format: Format | str | None = None,
    accumulator: Format | str | None = None,
    state: Format | str | None = None,
    rounding: str = "RNE",
    seed: int = 0,
    context: AnyContext = None,
    every: int | None = None,
    lane: str | None = None,
    tick: Callable[[int], None] | None = None,
) -> Training:
    """Train weights for some steps with several remedies side by side, in any formats.

    Parameters
    ----------
    start
        The weights: a number or a row of n numbers, as text, floats or an array.
    gradient, update
        Give either an update or a gradient. An update is added to the weights; a gradient is passed to the optimizer.
        Each is a number, a row, a table (steps, n), or a function of the weights and the step number. A row has n
        numbers; for a scalar weight, it has a number for each step.
    steps
        Number of steps.
    lr, optimizer
        `lr` is the learning rate. `optimizer` is `sgd`, `momentum`, `adam`, `adamw`, or an `SGD(…)` or `Adam(…)`, which
        has its own learning rate.
    remedies
        Names such as `plain`, `master`, `bf16+kahan`, `master+dynamic` (see `REMEDIES`). The default is `USUAL`,
        without the remedies that do not apply to these formats or that repeat an earlier setup.
    weights, grads, update_format, accumulator, state
        Formats, as in `Setup`, before the remedies change them.
    rounding, seed, context
        The rounding rules of every stage. `context`, if given, replaces `rounding` and `seed`.
    every
        Record every N steps. The default records every step, or fewer steps if the record would exceed 2^24 numbers.
    lane
        As in `arrays.encode`.
    tick
        Function that is called from time to time, with the number of steps done since the previous call. The steps of
        all trainers and of the reference are counted.

    Returns
    -------
    Training
        `lines` is the table, one `Trajectory` per remedy; `runs` are the weights step by step.

    Raises
    ------
    UnsupportedError
        For numbers that are not finite, for formats that lack a sign or a zero, and for unknown remedies and
        optimizers.

    Examples
    --------
    >>> found = train("1.125", update="0.00041999", steps=101, remedies="plain master kahan")
    >>> [(line.label, line.final, line.stalled) for line in found.lines]
    [('plain', 1.125, 0), ('master', 1.1669921875, None), ('kahan', 1.1669921875, None)]
    """
    if (update is None) == (gradient is None):
        raise UnsupportedError("give a gradient, or an update (update=)")
    adds = update is not None
    given, chosen = (update if adds else gradient), parse_optimizer(optimizer, lr, adds)
    rules = as_context(context) if context is not None else Context(rounding, seed=seed)
    base = Setup(weights, grads, update_format, accumulator, state, context=rules)
    number = checked_whole(steps, "steps", 0)
    begin = numbers_of(start, "start")
    count = len(begin) if isinstance(begin, list) else max(begin.size, 1)
    often = max(1, -(-number * count // MAX_VALUES)) if every is None else every
    trainers = [
        Trainer(start, given, chosen, setup, label=label, every=often, lane=lane)
        for label, setup in _setups(base, remedies)
    ]
    made = Training(trainers, Reference(start, given, chosen, often))
    made.advance(number, tick)
    return made


def _setups(base: Setup, remedies: str | Iterable[str] | None) -> list[tuple[str, Setup]]:
    """Return the label and the setup of each remedy.

    A default remedy is omitted if it does not apply, or if its setup equals the setup of an earlier remedy.
    """
    if remedies is not None:
        words = listed_words(remedies, "remedies")
        if not words:
            raise UnsupportedError("remedies is empty: use plain for training without a remedy")
        return [(word, parse_remedy(word)(base)) for word in words]
    found: list[tuple[str, Setup]] = []
    for word in USUAL:
        try:
            setup = parse_remedy(word)(base)
        except FloatlabError:
            continue
        if all(setup != other for _, other in found):
            found.append((word, setup))
    return found
