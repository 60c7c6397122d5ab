"""Optimizers: what turns a gradient into an update, as operations in a documented order.

Each is a straight line of rounded operations, with the names that the stages have in `Program`:

* `Updates`: the numbers given are the updates, w ← w + g.
* `SGD`: d = wd·w, g = g + d (with weight decay); p = μ·b, b = p + g (with momentum); u = lr·b; w ← w − u.
* `Adam`: with L2 decay d = wd·w, g = g + d, or decoupled k = (1 − lr·wd)·w in place of w; then
  p = β₁·m, q = (1 − β₁)·g, m = p + q; s = g·g, p = β₂·v, q = (1 − β₂)·s, v = p + q; r = √v, r = r / √(1 − β₂ᵗ),
  r = r + ε, q = m / r, u = (lr / (1 − β₁ᵗ))·q; w ← w − u. The corrections
  stand where PyTorch has them: in the root and in the rate.

b, m and v are rounded to the state's format, everything else to the update's, and w − u as `Program` says. Constants
are rounded to the update's format once, to nearest: 1 − β, 1 − lr·wd and what depends on t after binary64 computed
them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Protocol

from floatlab.errors import UnsupportedError, quoted
from floatlab.fpmode import methods_in_default_mode
from floatlab.record import Record
from floatlab.training.validation import checked_number, exactly


class Builder(Protocol):
    """What stages are told to."""

    def constant(self, name: str, value: Any) -> str:
        """Have a constant; return its row."""

    def schedule(self, name: str, values: Any) -> str:
        """Have a number that depends on the step; return its row."""

    def state(self, name: str) -> str:
        """Have a row that starts at zero and stays from step to step."""

    def do(self, to: str, operation: str, *operands: str, part: str = "update") -> str:
        """Add a stage; return its row."""


def _exactly(value: Any, name: str, above: float | None = None, at_least: float | None = None) -> Fraction:
    """Return a number as it was given, text or float, exactly."""
    checked_number(value, name, above=above, at_least=at_least)
    return exactly(value, name)


@methods_in_default_mode
class Updates(Record):
    """No optimizer: what is given as gradients are the updates, which are added."""

    name = "updates"
    adds = True

    def stages(self, to: Builder, gradient: str, kept: str) -> tuple[str, str]:
        """Return the rows of w and the update."""
        return kept, gradient


@methods_in_default_mode
class SGD(Record):
    """Stochastic gradient descent, with momentum and weight decay where they are not zero.

    >>> SGD("0.1").lr
    Fraction(1, 10)
    """

    lr: Fraction
    momentum: float
    weight_decay: float

    def __init__(self, lr: Any = "0.01", momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        """Check the numbers; raises UnsupportedError."""
        put = object.__setattr__
        put(self, "lr", _exactly(lr, "the learning rate", above=0))
        put(self, "momentum", checked_number(momentum, "momentum", at_least=0))
        put(self, "weight_decay", checked_number(weight_decay, "weight_decay", at_least=0))

    name = "sgd"
    adds = False

    def stages(self, to: Builder, gradient: str, kept: str) -> tuple[str, str]:
        """Add the operations; return the rows of w and the update."""
        if self.weight_decay:
            decay = to.do("d", "multiply", to.constant("wd", self.weight_decay), kept)
            gradient = to.do("g'", "add", gradient, decay)
        if self.momentum:
            old = to.do("p", "multiply", to.constant("mu", self.momentum), to.state("b"))
            gradient = to.do("b", "add", old, gradient, part="state")
        return kept, to.do("u", "multiply", to.constant("lr", self.lr), gradient)


@methods_in_default_mode
class Adam(Record):
    """Adam (Kingma and Ba, 2015), or with `decoupled` decay AdamW (Loshchilov and Hutter, 2019).

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
        lr: Any = "0.001",
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        decoupled: bool = True,
    ) -> None:
        """Check the numbers; raises UnsupportedError."""
        put = object.__setattr__
        put(self, "lr", _exactly(lr, "the learning rate", above=0))
        try:
            pair = tuple(checked_number(each, "a beta", at_least=0) for each in betas)
        except TypeError:
            pair = ()
        if len(pair) != 2 or max(pair) >= 1:
            raise UnsupportedError(f"betas are two numbers from 0 up, below 1, not {quoted(str(betas))}")
        put(self, "betas", pair)
        put(self, "eps", checked_number(eps, "eps", at_least=0))
        put(self, "weight_decay", checked_number(weight_decay, "weight_decay", at_least=0))
        put(self, "decoupled", bool(decoupled))

    name = "adam"
    adds = False

    def stages(self, to: Builder, gradient: str, kept: str) -> tuple[str, str]:
        """Add the operations; return the rows of w and the update."""
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
OPTIMIZERS = ("updates", "sgd", "momentum", "adam", "adamw")
