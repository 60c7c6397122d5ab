"""One update of one weight: every rounding from w to its new value, and the reason if w is unchanged.

Every stage of the step is computed by an operation of `floatlab.arith`, or by a conversion; both return a `Derivation`
with each rounding. The smallest update that changes w follows from the interval of reals that round to w.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from floatlab import arith
from floatlab.arrays.recurrences import CONVERT, RecurrenceStage, advance_draws
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Datum, Derivation, Direction, Exact, convert, encode, read
from floatlab.numbers.rounding import Flags
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.training.optimizers import (
    COMPENSATION,
    GRADIENT,
    SGD,
    WEIGHTS,
    Adam,
    Optimizer,
    Program,
    Updates,
    is_drawn,
)
from floatlab.training.setup import AnyFormat, Setup
from floatlab.training.validation import beyond, exactly

if TYPE_CHECKING:
    from floatlab.training.thresholds import Threshold


class Why(Enum):
    """The outcome of a step for a weight, with its reason."""

    MOVED = "moved"
    NO_UPDATE = "no update"  # the given update or gradient is zero
    GRADIENT_VANISHED = "gradient vanished"  # the gradient is zero in its format
    UPDATE_VANISHED = "update vanished"  # the gradient is not zero, but the update computed from it is
    BELOW_HALF = "below half"  # the sum is nearer to w than to its neighbour
    TIE = "tie"  # the sum is halfway between w and its neighbour, and was rounded to w
    BY_DIRECTION = "direction"  # a directed rounding gave w
    DRAWN = "drawn"  # a stochastic rounding gave w
    CONVERTED = "converted"  # the sum differs from w, but its conversion to the format of stored weights gave w
    COMPENSATED = "compensated"  # w is unchanged, but the compensation keeps the rounding error
    IN_MASTER = "in master"  # w is unchanged, but the master copy moved
    AT_THE_END = "at the end"  # w is the finite number of largest magnitude, and overflow saturates
    NOT_FINITE = "not finite"  # a value became NaN or infinite


class TracedStage(Record):
    """A stage of a step with its derivation."""

    stage: RecurrenceStage
    derivation: Derivation


@methods_in_default_mode
class UpdateTrace(Answering, Record):
    """One update of one weight, rounding by rounding.

    `readings` has a pair for each number that the caller of `step` gave: the name of the row (variable) to which the
    number belongs, and the derivation that rounds the number to the row's format. `stages` has the operations in order.
    `before` and `after` are the weight before and after the step. `carried` is the exact value of the master copy or of
    the compensated weight after the step; `carried` is None if neither exists, or if the stored weight is not finite.
    `update` is the number that is added to w or subtracted from it.
    """

    program: Program
    readings: tuple[tuple[str, Derivation], ...]
    stages: tuple[TracedStage, ...]
    before: Datum
    after: Datum
    update: Datum
    exact_update: Fraction | None  # exact change of w; None for Adam, momentum and weight decay
    carried: Fraction | None
    why: Why
    _ASKS = ".moved"

    def __repr__(self) -> str:
        """Show w before and after, and the reason."""
        return f"UpdateTrace({self.before!r} → {self.after!r}: {self.why.value})"

    @property
    def total(self) -> TracedStage:
        """The stage that adds the update to w, with its derivation."""
        return _total(self.program, self.stages)

    @property
    def kept(self) -> Datum:
        """The stored weight before the step: w itself, or its master copy."""
        name = self.program.kept
        first = next(each for each in self.stages if name in each.stage.operands)
        kept = first.derivation.operands[first.stage.operands.index(name)]
        assert isinstance(kept, Datum)
        return kept

    @property
    def up(self) -> Threshold:
        """The smallest update that moves the stored weight upward."""
        return self._threshold(True)

    @property
    def down(self) -> Threshold:
        """The smallest update that moves the stored weight downward."""
        return self._threshold(False)

    def _threshold(self, up: bool) -> Threshold:
        from floatlab.training.thresholds import smallest_move

        return smallest_move(self.kept, self.program, up)

    @property
    def moved(self) -> bool:
        """Whether the value of the weight changed."""
        both = self.before.is_finite and self.after.is_finite
        return self.before.exact != self.after.exact if both else self.before != self.after

    @property
    def update_ulps(self) -> Fraction | None:
        """The magnitude of the update in ulps of w, or None if the update is NaN or infinite."""
        if not self.update.is_finite:
            return None
        return abs(self.update.exact.as_fraction()) / self.before.ulp.as_fraction()

    @property
    def ratio(self) -> Fraction | None:
        """The magnitude of the update relative to w, or None if the update is not finite or w is zero."""
        if not self.update.is_finite or not self.before.exact:
            return None
        return abs(self.update.exact.as_fraction() / self.before.exact.as_fraction())

    @property
    def threshold(self) -> Threshold:
        """The threshold in the direction in which the update moves w."""
        negative = self.update.is_finite and bool(self.update.sign_bit)
        return self.up if negative != self.program.optimizer.adds else self.down

    @property
    def chance(self) -> Fraction | None:
        """The probability that stochastic rounding moves w; None if w is not finite or not rounded stochastically."""
        drawn = [each for each in self.stages if each.stage.to in ("t", WEIGHTS)]
        rounded = next((each.derivation.rounded for each in drawn if is_drawn(each.stage)), None)
        if rounded is None or not self.before.is_finite:
            return None
        beyond = Fraction(rounded.threshold, 1 << 32)
        near, far = (Exact(rounded.negative, rounded.kept + each, rounded.quantum) for each in (0, 1))
        return beyond if self.before.exact == near else 1 - beyond if self.before.exact == far else Fraction(1)


def single(format: AnyFormat) -> Format:
    """Return a format of single numbers unchanged; raises UnsupportedError for a block format."""
    if not isinstance(format, Format):
        raise UnsupportedError(f"one weight cannot be in {format.name}: its rounding depends on its block")
    return format


def trace(
    program: Program, rows: Mapping[str, Datum], given: Fraction, index: int = 0, taken: int = 0,
    readings: tuple[tuple[str, Derivation], ...] = (),
) -> UpdateTrace:  # fmt: skip
    """Trace one step of one weight.

    `rows` maps the name of each row of the program to its number before the step (the weight, the gradient, …). `given`
    is the exact gradient or update, not multiplied by the loss scale. `index` is the number of the draw that each
    stochastic stage uses. `taken` is the number of earlier steps that were not skipped. Raises UnsupportedError for
    weights in a block format, since the rounding of a weight depends on its block.
    """
    after = dict(program.constants) | dict(rows)
    for name, values in program.schedules:
        after[name] = encode(values(taken + 1), program.setup.update)
    stages = []
    for stage in program.stages:
        fmt, context = single(stage.format), advance_draws(stage.context, index)
        operation: Callable[..., Derivation] = convert
        if stage.operation != CONVERT:
            operation = getattr(arith, stage.operation)
        derivation = operation(*(after[name] for name in stage.operands), format=fmt, context=context)
        after[stage.to] = derivation.result
        stages.append(TracedStage(stage, derivation))
    optimizer, kept = program.optimizer, after[program.kept]
    update = _total(program, stages).derivation.operands[1]
    assert isinstance(update, Datum)
    exact = given if optimizer.adds else None
    if isinstance(optimizer, SGD) and not optimizer.momentum and not optimizer.weight_decay:
        exact = -optimizer.lr * given
    carried = None
    if kept.is_finite and (program.setup.compensated or program.setup.master is not None):
        carried = kept.exact.as_fraction()
        if program.setup.compensated and after[COMPENSATION].is_finite:
            carried -= after[COMPENSATION].exact.as_fraction()
    return UpdateTrace(
        program=program, readings=readings, stages=tuple(stages), before=rows[WEIGHTS], after=after[WEIGHTS],
        update=update, exact_update=exact, carried=carried, why=_why(program, stages, rows, after, given, update),
    )  # fmt: skip


@in_default_mode
def step(
    weight: object,
    update: object = None,
    *,
    grad: object = None,
    lr: object = None,
    optimizer: Optimizer | None = None,
    setup: Setup | None = None,
    state: Mapping[str, object] | None = None,
    index: int = 0,
    **formats: Any,
) -> UpdateTrace:
    """Return one update of one weight, rounding by rounding.

    Parameters
    ----------
    weight
        The weight: text, or any number that `encode` takes.
    update
        A number that is added to the weight. Give either an update or a gradient.
    grad, lr, optimizer
        A gradient, with either a learning rate (w − lr·grad) or an optimizer: `SGD(…)` or `Adam(…)`.
    setup, **formats
        A Setup, or its arguments by name: `weights="fp16"`, `update_format=` for the arithmetic of updates, and so on.
    state
        Other numbers before the step, by name: momentum `b`, Adam's `m` and `v`, compensation `c`, and the weight's
        master copy `master`. The default of each number is 0, but the default of `master` is the weight.
    index
        Number of earlier steps; it selects the stochastic draws and Adam's bias corrections.

    Returns
    -------
    UpdateTrace

    Raises
    ------
    UnsupportedError
        For numbers that are not finite, for formats that lack a sign or a zero, for block formats, and for arguments
        that are missing or exclude each other.

    Examples
    --------
    >>> found = step("1.125", "0.00041999", weights="fp16")
    >>> found.moved, found.why.value, float(found.update_ulps), found.threshold.bound, found.threshold.included
    (False, 'below half', 0.43017578125, Fraction(1, 2048), False)
    >>> step("1", grad="0.5", lr="0.1", weights="bf16").after
    Datum(bfloat16 0x3f73 = 0.95)
    """
    if setup is None:
        if "update_format" in formats:
            formats["update"] = formats.pop("update_format")
        setup = Setup(**formats)
    elif not isinstance(setup, Setup):
        raise UnsupportedError(f"setup must be a Setup, not {quoted(str(setup))}")
    elif formats:
        raise UnsupportedError(f"give either a setup or {next(iter(formats))}=, not both")
    given, chosen = _asked(update, grad, lr, optimizer)
    program = Program.of(setup, chosen)
    single(setup.weights)
    name = "update" if chosen.adds else "gradient"
    readings = _read(program, weight, given, name, state or {}, index)
    rows = {row: encode(0, fmt) for row, fmt in program.states} | {row: made.result for row, made in readings.items()}
    return trace(program, rows, exactly(given, name), index, index, tuple(readings.items()))


def _asked(update: object, grad: object, lr: object, optimizer: Optimizer | None) -> tuple[object, Optimizer]:
    if (update is None) == (grad is None):
        raise UnsupportedError("give an update, or a gradient (grad=) with a learning rate (lr=)")
    if update is not None:
        if lr is not None or optimizer is not None:
            raise UnsupportedError("lr and optimizer need a gradient (grad=): an update is added without them")
        return update, Updates()
    if optimizer is not None and lr is not None:
        raise UnsupportedError("the optimizer has a learning rate: do not give lr as well")
    if optimizer is None and lr is None:
        raise UnsupportedError("a gradient needs a learning rate (lr=), or an optimizer")
    if not isinstance(optimizer, SGD | Adam | None):
        raise UnsupportedError(f"optimizer must be an SGD(…) or an Adam(…), not {quoted(str(optimizer))}")
    return grad, optimizer if optimizer is not None else SGD(lr)


def _read(
    program: Program, weight: object, given: object, name: str, state: Mapping[str, object], index: int
) -> dict[str, Derivation]:
    """Round the given numbers to the formats of their rows (variables), and return the derivation for each row.

    The gradient is first multiplied by the loss scale.
    """
    setup, formats = program.setup, dict(program.states)
    exactly(weight, "the weight")
    readings = {program.kept: read(weight, single(setup.kept))}
    if setup.master is not None:
        readings[WEIGHTS] = read(weight, single(setup.weights))
    scale = 1 if setup.scaling is None else setup.scaling.scale
    exact = exactly(given, name)
    scaled = given if scale == 1 else exact * Fraction(scale)
    readings[GRADIENT] = read(scaled, setup.grads, advance_draws(setup.gradient_context, index))
    for row, number in state.items():
        if row not in formats:
            known = " ".join(formats) or "none"
            raise UnsupportedError(f"this program has no state {row} (its state: {known})")
        exactly(number, f"state {row}")
        readings[row] = read(number, formats[row])
    for row in (WEIGHTS, program.kept):
        if not readings[row].result.is_finite:
            raise beyond(f"the weight {weight}", readings[row].result.format)
    return readings


def _total(program: Program, stages: Sequence[TracedStage]) -> TracedStage:
    return next(each for each in stages if each.stage == program.roundings[0])


def _why(
    program: Program, stages: list[TracedStage], rows: Mapping[str, Datum], after: Mapping[str, Datum],
    given: Fraction, update: Datum,
) -> Why:  # fmt: skip
    w, now = rows[WEIGHTS], after[WEIGHTS]
    if not now.is_finite or not after[program.kept].is_finite or not update.is_finite:
        return Why.NOT_FINITE
    if now.exact != w.exact:
        return Why.MOVED
    before, kept = rows[program.kept], after[program.kept]
    if program.setup.master is not None and kept.exact != before.exact:
        return Why.IN_MASTER
    if program.setup.compensated and after[COMPENSATION] != rows[COMPENSATION]:
        return Why.COMPENSATED
    if not given and not update.exact:
        return Why.NO_UPDATE
    if not rows[GRADIENT].exact:
        return Why.GRADIENT_VANISHED
    if not update.exact:
        return Why.UPDATE_VANISHED
    total = _total(program, stages)
    if total.stage.to == "sum" and total.derivation.result.exact != before.exact:
        return Why.DRAWN if any(is_drawn(each.stage) for each in stages) else Why.CONVERTED
    return _by_rounding(total, before)


def _by_rounding(total: TracedStage, before: Datum) -> Why:
    """Return the reason why w plus (or minus) the update was rounded to w."""
    stage, truth = total.stage, total.derivation.truth
    if Flags.OVERFLOW in total.derivation.flags:
        return Why.AT_THE_END
    if is_drawn(stage):
        return Why.DRAWN
    if stage.context.rounding not in (Direction.RNE, Direction.RNA) or not isinstance(truth, Exact):
        return Why.BY_DIRECTION
    w = encode(before.exact, single(stage.format))  # its neighbours are those in the accumulator's format
    neighbour = w.next_up if before.exact < truth else w.next_down
    gap = abs(neighbour.exact - w.exact).as_fraction() if neighbour.is_finite else w.ulp.as_fraction()
    missed = abs(truth - w.exact).as_fraction()
    return Why.TIE if 2 * missed == gap else Why.BELOW_HALF
