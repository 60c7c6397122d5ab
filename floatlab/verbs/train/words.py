"""Descriptions of setups, remedies, optimizers, and the causes of stalled weights."""

from __future__ import annotations

from fractions import Fraction

from floatlab.formats import Format, parse_format
from floatlab.numbers.printing import rounded_decimal, terminating_decimal
from floatlab.training.optimizers import SGD, Optimizer, Updates
from floatlab.training.setup import REMEDIES, Setup
from floatlab.training.trace import Why

# Short descriptions of what an update did to a weight, and why.
CAUSES = {
    Why.MOVED: "it moves",
    Why.NO_UPDATE: "there is no update",
    Why.GRADIENT_VANISHED: "the gradient is zero in its format",
    Why.UPDATE_VANISHED: "the update is zero in its format",
    Why.BELOW_HALF: "the update is under half an ulp",
    Why.TIE: "a tie, and w is even",
    Why.BY_DIRECTION: "the sum is rounded back to w",
    Why.DRAWN: "the sum is stochastically rounded to w",
    Why.CONVERTED: "the sum is rounded to w in the format of w",
    Why.COMPENSATED: "w is unchanged; the error is carried",
    Why.IN_MASTER: "w is unchanged; the master copy moves",
    Why.AT_THE_END: "w is the largest number",
    Why.NOT_FINITE: "it is no longer finite",
}


def figures(x: Fraction | float, digits: int = 4, room: int = 13) -> str:
    """Return a number as text: its exact decimal if this has up to `room` characters, else rounded to `digits` digits.

    >>> figures(Fraction(1, 2048)), figures(Fraction(1, 3)), figures(-0.5)
    ('0.00048828125', '0.3333', '−0.5')
    """
    value = Fraction(x)
    text = terminating_decimal(abs(value), room + 1)
    if text is None or len(text) > room:
        text = rounded_decimal(abs(value), digits)
    return f"{'−' if value < 0 else ''}{text}"


def long_figures(x: Fraction) -> str:
    """Return a number as text: its exact decimal if this has at most 40 characters, else rounded to 10 digits.

    >>> long_figures(Fraction(1, 3)), long_figures(Fraction(1, 1 << 20))
    ('0.3333333333', '9.5367431640625e-7')
    """
    return figures(x, 10, 40)


def setup_words(setup: Setup) -> str:
    """Return a setup as text: the format of the weights, other formats that are not the defaults, and remedies.

    By default, gradients have the format of the weights. Updates and sums have the format of the master copy, or of the
    weights if there is no master copy. The optimizer's state has the format of the updates.

    >>> setup_words(Setup("fp16", master="fp32"))
    'weights in binary16, a master copy in binary32'
    """
    kept, scaling = setup.kept.name, setup.scaling
    plain = setup.weights.name if isinstance(setup.weights, Format) else ""
    parts = [
        ("weights in", setup.weights.name, ""),
        ("gradients in", setup.grads.name, plain),
        ("a master copy in", "" if setup.master is None else setup.master.name, ""),
        ("updates computed in", setup.update.name, kept),
        ("sums in", setup.accumulator.name, kept),
        ("state in", setup.state.name, setup.update.name),
    ]
    words = [f"{what} {name}" for what, name, usual in parts if name not in ("", usual)]
    words += ["with Kahan's compensation"] if setup.compensated else []
    if scaling is not None:
        kind = "a loss scale that adapts, from" if scaling.is_dynamic else "loss scale"
        words.append(f"{kind} {scaling.scale:g}")
    return ", ".join(words + ["weights round stochastically"] * setup.stochastic)


def remedy_words(label: str) -> str:
    """Return the description of a remedy, or of several remedies joined by +.

    >>> remedy_words("master+static:128")
    'a master copy in binary32 receives the updates; the loss is multiplied by 128'
    """
    said = []
    for word in label.lower().split("+"):
        name, _, given = word.strip().partition(":")
        known = name.replace("-", "_")
        if known not in REMEDIES:
            said.append(f"{parse_format(name).name} everywhere")
        elif known == "master":
            said.append(f"a master copy in {parse_format(given or 'binary32').name} receives the updates")
        elif known == "static":
            said.append(f"the loss is multiplied by {given or 1024}")
        elif known == "dynamic":
            said.append(f"the loss scale adapts, from {given or 65536}")
        else:
            said.append(REMEDIES[known].what)
    return "; ".join(said)


def optimizer_words(optimizer: Optimizer) -> str:
    """Return the description of an optimizer and its learning rate.

    >>> from floatlab.training import SGD
    >>> optimizer_words(SGD("0.1", 0.9))
    'SGD, learning rate 0.1, momentum 0.9'
    """
    if isinstance(optimizer, Updates):
        return "updates, added without an optimizer"
    words = ["SGD", f"learning rate {figures(optimizer.lr)}"]
    if isinstance(optimizer, SGD):
        words += [f"momentum {optimizer.momentum:g}"] if optimizer.momentum else []
    else:
        words[0] = "AdamW" if optimizer.weight_decay and optimizer.decoupled else "Adam"
    words += [f"weight decay {optimizer.weight_decay:g}"] if optimizer.weight_decay else []
    return ", ".join(words)
