"""A program: one step of an optimizer, as a sequence of rounded operations on named rows of numbers.

A row has one number for each weight. The formats of the operations come from a `Setup`. Programs are run in three
ways: `trace.step` explains every rounding for one weight, NumPy computes all weights stage by stage, and the compiled
extension runs many steps at once.

The input row g is the gradient times the loss scale S, rounded to the gradients' format. With a loss scale, the first
stage computes g/S = g·(1/S) in the update's format, and this quotient takes the place of g below. The optimizer's
stages follow; they compute the update u. The last stages compute the new weight. The lines on the right are those for
`Updates`:

    without compensation:  w = w − u                                     w = w + u
    with compensation:     y = u + c, t = w − y, d = t − w,              y = u − c, t = w + y, d = t − w,
                           c = d + y, w = t                              c = d − y, w = t

w ± u and w ± y are computed in the accumulator's format, and then rounded to the format of the stored weights. y, d and
c are rounded once, to the format of the stored weights. With a master copy, w in these lines is the copy; one more
stage rounds the copy to the format of the weights.

The optimizers turn a gradient into an update:

* `Updates`: the given numbers are the updates, u = g.
* `SGD`: with weight decay, d = wd·w and g = g + d. With momentum, p = μ·b, b = p + g, u = lr·b; without it, u = lr·g.
* `Adam`, as in PyTorch: one bias correction divides the square root, the other divides the learning rate.

      L2 decay:         d = wd·w, g = g + d
      decoupled decay:  k = (1 − lr·wd)·w; the last stages read k instead of w
      first moment:     p = β₁·m, q = (1 − β₁)·g, m = p + q
      second moment:    s = g·g, p = β₂·v, q = (1 − β₂)·s, v = p + q
      update:           r = √v, r = r / √(1 − β₂ᵗ), r = r + ε, q = m / r, u = (lr / (1 − β₁ᵗ))·q

Of these results, b, m and v are rounded to the state's format, and all others to the update's format. Constants are
rounded once, to nearest, to the update's format. Before that, 1/S, 1 − β, 1 − lr·wd and the constants that depend on t
are computed in binary64.

With stochastic rounding, the stage that writes the weights draws with the context's seed. If all stages are stochastic,
gradients draw with seed + 1. A stage that does not write the weights then draws with seed + 2 + j, where j is the index
of the stage among all stages (from 0). In step k (from 0), element i of n uses draw number k·n + i.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from floatlab.arrays.recurrences import CONVERT, RecurrenceStage
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.formats.blocks import BlockFormat
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Context, Datum, Direction, encode
from floatlab.record import Record
from floatlab.training.setup import Setup, stream
from floatlab.training.validation import beyond, checked_number, exactly, set_fields

GRADIENT, WEIGHTS, MASTER, COMPENSATION, UNSCALE = "g", "w", "master", "c", "1/S"
Schedule = Callable[[int], float]  # function of the step t, from 1


@methods_in_default_mode
class Updates(Record):
    """No optimizer: the given numbers are updates, which are added to the weights."""

    name = "updates"
    adds = True

    def stages(self, to: ProgramWriter, gradient: str, kept: str) -> tuple[str, str]:
        """Add no stage; return the names of the rows of w and of the update."""
        return kept, gradient


@methods_in_default_mode
class SGD(Record):
    """Stochastic gradient descent, with momentum and weight decay unless they are zero.

    >>> SGD("0.1").lr
    Fraction(1, 10)
    """

    lr: Fraction
    momentum: float
    weight_decay: float

    def __init__(self, lr: object = "0.01", momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        """Check the numbers; raise UnsupportedError if one is out of range."""
        rate, share = _rate(lr), _from_zero(momentum, "momentum")
        set_fields(self, lr=rate, momentum=share, weight_decay=_from_zero(weight_decay, "weight_decay"))

    name = "sgd"
    adds = False

    def stages(self, to: ProgramWriter, gradient: str, kept: str) -> tuple[str, str]:
        """Add the stages of the optimizer; return the names of the rows of w and of the update."""
        if self.weight_decay:
            decay = to.do("d", "multiply", to.constant("wd", self.weight_decay), kept)
            gradient = to.do("g'", "add", gradient, decay)
        if self.momentum:
            old = to.do("p", "multiply", to.constant("mu", self.momentum), to.state("b"))
            gradient = to.do("b", "add", old, gradient, part="state")
        return kept, to.do("u", "multiply", to.constant("lr", self.lr), gradient)


@methods_in_default_mode
class Adam(Record):
    """Adam (Kingma and Ba, 2015); if `decoupled` is true, AdamW (Loshchilov and Hutter, 2019).

    >>> Adam(1e-3).betas
    (0.9, 0.999)
    """

    lr: Fraction
    betas: tuple[float, float]
    eps: float
    weight_decay: float
    decoupled: bool

    def __init__(
        self,
        lr: object = "0.001",
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled: bool = True,
    ) -> None:
        """Check the numbers; raise UnsupportedError if one is out of range."""
        rate = _rate(lr)
        try:
            pair = tuple(_from_zero(each, "a beta") for each in betas)
        except TypeError:
            pair = ()
        if len(pair) != 2 or max(pair) >= 1:
            raise UnsupportedError(f"betas must be two numbers from 0 up, below 1, not {quoted(str(betas))}")
        least, decay = _from_zero(eps, "eps"), _from_zero(weight_decay, "weight_decay")
        set_fields(self, lr=rate, betas=pair, eps=least, weight_decay=decay, decoupled=bool(decoupled))

    name = "adam"
    adds = False

    def stages(self, to: ProgramWriter, gradient: str, kept: str) -> tuple[str, str]:
        """Add the stages of the optimizer; return the names of the rows of w and of the update."""
        lr, (one, two) = float(self.lr), self.betas
        if self.weight_decay and not self.decoupled:
            decay = to.do("d", "multiply", to.constant("wd", self.weight_decay), kept)
            gradient = to.do("g'", "add", gradient, decay)
        elif self.weight_decay:
            kept = to.do("k", "multiply", to.constant("1-lr*wd", 1 - lr * self.weight_decay), kept)
        for name, beta, term in (("m", one, gradient), ("v", two, "s")):
            if name == "v":
                to.do("s", "multiply", gradient, gradient)
            number = "1" if name == "m" else "2"
            old = to.do("p", "multiply", to.constant(f"beta{number}", beta), to.state(name))
            new = to.do("q", "multiply", to.constant(f"1-beta{number}", 1 - beta), term)
            to.do(name, "add", old, new, part="state")
        root = to.do("r", "sqrt", "v")
        root = to.do("r", "divide", root, to.schedule("c2", lambda t: math.sqrt(1 - two**t)))
        root = to.do("r", "add", root, to.constant("eps", self.eps))
        ratio = to.do("q", "divide", "m", root)
        return kept, to.do("u", "multiply", to.schedule("lr/c1", lambda t: lr / (1 - one**t)), ratio)


Optimizer = Updates | SGD | Adam


def _rate(lr: object) -> Fraction:
    """Return a learning rate as a Fraction; raises UnsupportedError if it is not positive and finite."""
    checked_number(lr, "the learning rate", above=0)
    return exactly(lr, "the learning rate")


def _from_zero(value: object, name: str) -> float:
    return checked_number(value, name, at_least=0)


@in_default_mode
def parse_optimizer(given: object, lr: object, adds: bool) -> Optimizer:
    """Return the optimizer that a name and a learning rate describe.

    Parameters
    ----------
    given
        `sgd`, `momentum` (0.9), `adam`, `adamw` (weight decay 0.01), or an SGD or Adam, which is returned. None means
        SGD. If `adds` is true, only None, the name `updates` and `Updates()` are valid; all three mean `Updates`.
    lr
        The learning rate. None means 0.001 for Adam and AdamW; SGD has no default, and `Updates` has no learning rate.
    adds
        Whether updates are given instead of gradients.

    Returns
    -------
    Updates, SGD or Adam

    Raises
    ------
    UnsupportedError
        For other names and optimizers, and for a learning rate that is missing, not positive, given twice, or given for
        updates.

    Examples
    --------
    >>> parse_optimizer("momentum", "0.1", False).momentum
    0.9
    """
    if adds:
        if given not in (None, "updates", Updates()):
            name = given.name if isinstance(given, SGD | Adam) else str(given)
            raise UnsupportedError(f"optimizer {quoted(name)} needs gradients; updates are added without an optimizer")
        if lr is not None:
            raise UnsupportedError("a learning rate needs a gradient; updates are added without a learning rate")
        return Updates()
    if isinstance(given, SGD | Adam):
        if lr is not None:
            raise UnsupportedError("the optimizer has a learning rate: do not give lr as well")
        return given
    known = ["sgd", "momentum", "adam", "adamw"]
    if given is not None and given not in known:
        near = guess(str(given), known)
        raise UnsupportedError(f"optimizer must be one of {' '.join(known)}, not {quoted(str(given))}{near}")
    if given in ("adam", "adamw"):
        return Adam("0.001" if lr is None else lr, weight_decay=0.01 if given == "adamw" else 0.0)
    if lr is None:
        raise UnsupportedError("a gradient needs a learning rate (lr=)")
    return SGD(lr, 0.9 if given == "momentum" else 0.0)


class Program(Record):
    """One step: its stages, the initial numbers of its rows, and the row of the stored weights.

    `kept` is the row that stores the weights from step to step. `constants` are numbers in the update's format.
    `schedules` are functions of the step t, which begins at 1. `states` are the rows that begin at zero, with their
    formats. `vanished` names the nonzero constants that round to zero.

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
    schedules: tuple[tuple[str, Schedule], ...]
    states: tuple[tuple[str, Format], ...]
    kept: str
    vanished: tuple[str, ...]

    @classmethod
    def of(cls, setup: Setup, optimizer: Optimizer) -> Program:
        """Build the program of an optimizer in a setup.

        Raises UnsupportedError if a constant is rounded to infinity or NaN in the update's format.
        """
        made = ProgramWriter(setup)
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
            setup=setup, optimizer=optimizer, stages=tuple(made.stages), constants=tuple(made.constants),
            schedules=tuple(made.schedules), states=tuple(made.states), kept=kept, vanished=tuple(made.vanished),
        )  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all rows."""
        rows = [GRADIENT, WEIGHTS, self.kept, *(name for name, _ in self.constants)]
        rows += [*(name for name, _ in self.schedules), *(name for name, _ in self.states)]
        return tuple(dict.fromkeys([*rows, *(stage.to for stage in self.stages)]))

    @property
    def roundings(self) -> tuple[RecurrenceStage, ...]:
        """The one or two stages that add the update to w and round the sum to the format of the stored weight."""
        total, *rest = (stage for stage in self.stages if stage.to in ("sum", "t", self.kept))
        return total, *(stage for stage in rest if stage.operands == ("sum",))

    @property
    def watched(self) -> tuple[str, ...]:
        """The rows that store the weights from step to step: `kept`, and the compensation if there is one."""
        return (self.kept, COMPENSATION) if self.setup.compensated else (self.kept,)

    @property
    def text(self) -> str:
        """The stages, one per line.

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
            drawn = " SR" if is_drawn(stage) else ""
            lines.append(f"{said:<29} {stage.format.name}{drawn}")
        return "\n".join(lines)


class ProgramWriter:
    """Builds the list of stages of a program."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.stages: list[RecurrenceStage] = []
        self.constants: list[tuple[str, Datum]] = []
        self.schedules: list[tuple[str, Schedule]] = []
        self.states: list[tuple[str, Format]] = []
        self.vanished: list[str] = []

    def constant(self, name: str, value: Fraction | float) -> str:
        """Add a constant in the update's format; return its name."""
        fmt = self.setup.update
        datum = encode(value, fmt)
        if not datum.is_finite:
            raise beyond(f"{name}, {float(value):g},", fmt)
        if value and not datum.exact:
            self.vanished.append(name)
        self.constants.append((name, datum))
        return name

    def schedule(self, name: str, values: Schedule) -> str:
        """Add a row, in the update's format, whose number depends on the step; return its name."""
        self.schedules.append((name, values))
        return name

    def state(self, name: str) -> str:
        """Add a row whose initial numbers are zero; return its name."""
        self.states.append((name, self.setup.state if name != COMPENSATION else self._kept()))
        return name

    def _kept(self) -> Format:
        kept = self.setup.kept
        return kept if isinstance(kept, Format) else self.setup.accumulator

    def do(self, to: str, operation: str, *operands: str, part: str = "update") -> str:
        """Append a stage, and return the name of the row that this stage writes.

        The result is rounded to the format that the setup has for `part`, such as `state`. If `part` is `kept`, the
        result is rounded to the format of the stored weights.
        """
        fmt = self._kept() if part == "kept" else getattr(self.setup, part)
        return self.add(to, operation, operands, fmt)

    def total(self, to: str, operation: str, left: str, right: str) -> None:
        """Append the stages that compute w plus or minus the update and round the result to the stored weights' format.

        If the accumulator has another format, the result is first rounded to the accumulator's format.
        """
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
        """Append a stage that writes the row `to`; return `to`. `writes`: whether it rounds to the weights' format."""
        self.stages.append(RecurrenceStage(to, operation, operands, format, self._context(writes)))
        return to

    def _context(self, writes: bool) -> Context:
        context = self.setup.context
        if writes:
            return context.replace(rounding=Direction.SR) if self.setup.stochastic else context
        return stream(context, 2 + len(self.stages))


def is_drawn(stage: RecurrenceStage) -> bool:
    """Return whether a stage rounds stochastically."""
    return stage.context.rounding.is_stochastic
