"""Small problems to train on, generated from a seed: linear and logistic regression, and a two-layer network.

Each has a teacher of its own kind, whose answers the pupil is to learn, so that the loss it can reach is known: that
of the noise. Data and starting weights come from NumPy's `default_rng` (PCG64), as binary32.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.record import Individual
from floatlab.training.validation import checked_number, checked_whole

KINDS = ("linear", "logistic", "network")
LOSSES = {"linear": "square", "logistic": "logistic", "network": "square"}


@methods_in_default_mode
class Problem(Individual):
    """Data to learn, and the shape of what learns it.

    `x` is (samples, features), `y` (samples, 1): numbers, or 0 and 1 for a `logistic` loss. `layers` are the numbers
    of inputs, of the hidden units if any, and of outputs; `start` the weights to begin with, layer after layer, each
    its matrix row by row (inputs × outputs) and then its biases.
    """

    name: str
    x: Array
    y: Array
    layers: tuple[int, ...]
    loss: str
    start: Array
    seed: int
    weight: float = 1.0  # what the loss is multiplied by before it is differentiated

    def __repr__(self) -> str:
        """Show its shape."""
        shape = " → ".join(str(each) for each in self.layers)
        return f"Problem({self.name}: {len(self.x)} samples, {shape}, {self.parameters:,} parameters, seed {self.seed})"

    @property
    def parameters(self) -> int:
        """How many weights there are."""
        return len(self.start)

    def split(self, weights: Array) -> list[tuple[Array, Array]]:
        """Return the matrix (inputs, outputs) and the biases of every layer."""
        found, at = [], 0
        for many, out in pairwise(self.layers):
            matrix = weights[at : at + many * out].reshape(many, out)
            at += many * out
            found.append((matrix, weights[at : at + out]))
            at += out
        return found


@in_default_mode
def make_problem(
    kind: str = "network",
    seed: int = 0,
    *,
    samples: int = 64,
    features: int = 16,
    hidden: int = 56,
    noise: float = 0.05,
    weight: float = 1.0,
) -> Problem:
    """Return a problem: `linear`, `logistic`, or `network`, a hidden layer of rectified units that learns such another.

    Features are normal numbers; answers are the teacher's and normal `noise` (of a logistic teacher: 0 or 1, drawn
    with its probabilities). A small `weight` of the loss makes gradients as small as an average over many more terms
    does; a learning rate larger by as much undoes it, but not what was lost. Raises UnsupportedError for other kinds
    and sizes below 1.

    >>> make_problem("network", seed=1)
    Problem(network: 64 samples, 16 → 56 → 1, 1,009 parameters, seed 1)
    """
    if kind not in KINDS:
        raise UnsupportedError(
            f"a problem is one of {' '.join(KINDS)}, not {quoted(str(kind))}{guess(str(kind), [*KINDS])}"
        )
    for name, value in (("samples", samples), ("features", features), ("hidden", hidden)):
        checked_whole(value, name, 1)
    checked_whole(seed, "a seed", 0, inf)
    noisy = checked_number(noise, "noise", at_least=0)
    rng = np.random.default_rng(seed)
    layers = (features, hidden, 1) if kind == "network" else (features, 1)
    x = rng.standard_normal((samples, features)).astype(np.float32)
    teacher = _normal_weights(rng, layers)
    answer = _outputs(teacher, layers, x.astype(np.float64))
    if kind == "logistic":
        y = (rng.random(answer.shape) < 1 / (1 + np.exp(-3 * answer))).astype(np.float32)
    else:
        y = answer + noisy * rng.standard_normal(answer.shape)
        if np.abs(y).max() > np.finfo(np.float32).max:
            raise UnsupportedError(f"noise, {noisy:g}, leads beyond binary32, in which answers are given")
        y = y.astype(np.float32)
    start = _normal_weights(rng, layers).astype(np.float32)
    return Problem(kind, x, y, layers, LOSSES[kind], start, int(seed), checked_number(weight, "weight", above=0))


def _normal_weights(rng: np.random.Generator, layers: tuple[int, ...]) -> Array:
    """Return weights with variance 1/inputs (2/inputs before rectified units), and biases of zero."""
    parts = []
    for i, (many, out) in enumerate(pairwise(layers)):
        gain = 2.0 if i < len(layers) - 2 else 1.0
        parts += [rng.standard_normal(many * out) * np.sqrt(gain / many), np.zeros(out)]
    return np.concatenate(parts)


def _outputs(weights: Array, layers: tuple[int, ...], x: Array) -> Array:
    at = 0
    for i, (many, out) in enumerate(pairwise(layers)):
        matrix, bias = weights[at : at + many * out].reshape(many, out), weights[at + many * out :][:out]
        x = x @ matrix + bias
        at += many * out + out
        if i < len(layers) - 2:
            x = np.maximum(x, 0)
    return x


@in_default_mode
def exact_loss(problem: Problem, weights: Array) -> float:
    """Return the loss that binary64 finds for some weights: mean square error, or mean log-likelihood, negative.

    >>> problem = make_problem("linear", noise=0.0)
    >>> exact_loss(problem, problem.start) > 1
    True
    """
    z = _outputs(np.asarray(weights, np.float64), problem.layers, problem.x.astype(np.float64))
    return loss_of(problem, z)


@in_default_mode
def loss_of(problem: Problem, outputs: Array) -> float:
    """Return the loss of some outputs, in binary64, whatever its weight."""
    z, y = np.asarray(outputs, np.float64), problem.y.astype(np.float64)
    with np.errstate(all="ignore"):
        if problem.loss == "square":
            return float(np.mean((z - y) ** 2))
        return float(np.mean(np.logaddexp(0, z) - y * z))
