"""Networks in chosen formats: all operations of the forward pass, the backward pass and the update are rounded.

A step uses all samples of a problem. With n samples and loss scale S, a step does the following:

* forward, for each layer: z = x·W in the format of the accumulator, z = z + b in the format of outputs. W, and the
  layer's input x, are first rounded to the format `forward`. Between layers, x = max(z, 0).
* output: e = z − y for a squared loss, e = p − y for a logistic one, in the format of the accumulator. The probability
  p = 1/(1 + exp(−z)) is computed in binary64 and rounded to the format of the accumulator.
* gradient of the outputs: dz = e·f, rounded to the format `backward`. The factor f = c·λ·S/n is first rounded to the
  format of the accumulator. λ is the weight of the loss; c is 2 for a squared loss and 1 for a logistic one.
* backward, for each layer, the last one first: dW = xᵀ·dz and db = 1ᵀ·dz in the format of the accumulator, rounded to
  the format `grads`. The dz of the preceding layer is dz·Wᵀ in the format of the accumulator, set to 0 unless
  the layer's input x is positive, and rounded to `backward`.

`reduce.matmul` computes the matrix products: it rounds each product of two elements to the accumulator's format and
sums serially, or it uses a model of a matrix unit. x, W and f saturate if they overflow a format without infinities.
The setup's `Program` (see `optimizers`) computes the new weights.

The problems are small and generated from a seed: linear and logistic regression, and a two-layer network. The targets
of linear problems and networks are the outputs of a teacher model of the same kind, plus noise. A logistic teacher
gives the probability that a target is 1. NumPy's `default_rng` (PCG64) draws the data and the starting weights, which
are stored in binary32.
"""

from __future__ import annotations

from itertools import pairwise
from math import inf

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import quantize
from floatlab.arrays.operations import add, multiply, subtract
from floatlab.arrays.recurrences import recurrence_format
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.record import Individual, Record
from floatlab.reduce import matmul
from floatlab.training.setup import REMEDIES, Setup, parse_remedy
from floatlab.training.validation import check_needs, checked_number, checked_whole, listed_words, set_fields

LOSSES = {"linear": "square", "logistic": "logistic", "network": "square"}  # kind of problem: its loss


@methods_in_default_mode
class Problem(Individual):
    """Training data, and the layer sizes and initial weights of the model.

    `x` has shape (samples, features) and `y` has shape (samples, 1); for a `logistic` loss, every y is 0 or 1. `layers`
    has the number of inputs, the number of hidden units (if there is a hidden layer), and the number of outputs.
    `start` has the initial weights, layer by layer: first the matrix (inputs × outputs) row by row, then the biases.
    """

    name: str
    x: Array
    y: Array
    layers: tuple[int, ...]
    loss: str
    start: Array
    seed: int
    weight: float = 1.0  # factor of the loss, applied before differentiation

    def __repr__(self) -> str:
        """Show the sizes."""
        shape = " → ".join(str(each) for each in self.layers)
        return f"Problem({self.name}: {len(self.x)} samples, {shape}, {self.parameters:,} parameters, seed {self.seed})"

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return len(self.start)

    def split(self, weights: Array) -> list[tuple[Array, Array]]:
        """Return the matrix (inputs, outputs) and the biases of every layer."""
        return _split(weights, self.layers)

    def loss_of(self, outputs: Array) -> float:
        """Return the loss of these outputs in binary64, without the factor `weight`."""
        z, y = np.asarray(outputs, np.float64), self.y.astype(np.float64)
        with np.errstate(all="ignore"):
            if self.loss == "square":
                return float(np.mean((z - y) ** 2))
            return float(np.mean(np.logaddexp(0, z) - y * z))


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
    """Return a problem generated from a seed; a teacher model of the same kind gives the targets.

    Parameters
    ----------
    kind
        `linear`, `logistic`, or `network`: one hidden layer of rectified units.
    seed
        Seed of NumPy's `default_rng`.
    samples, features, hidden
        Numbers of samples, inputs and hidden units, at least 1. Only `network` has hidden units.
    noise
        Standard deviation of the normal noise on the targets. `logistic` has no such noise: its targets are 0 or 1,
        drawn with the probabilities that the teacher gives.
    weight
        Factor of the loss. A small factor makes the gradients small, so that they underflow in narrow formats. In SGD,
        dividing the learning rate by this factor compensates for the factor, but does not restore gradients that
        underflowed.

    Returns
    -------
    Problem

    Raises
    ------
    UnsupportedError
        For other kinds, for sizes below 1, and for other numbers out of range.

    Examples
    --------
    >>> make_problem("network", seed=1)
    Problem(network: 64 samples, 16 → 56 → 1, 1,009 parameters, seed 1)
    """
    if kind not in (kinds := [*LOSSES]):
        raise UnsupportedError(
            f"problem must be one of {' '.join(kinds)}, not {quoted(str(kind))}{guess(str(kind), kinds)}"
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
            raise UnsupportedError(f"noise, {noisy:g}, gives targets beyond binary32, in which they are stored")
        y = y.astype(np.float32)
    start = _normal_weights(rng, layers).astype(np.float32)
    return Problem(
        name=kind, x=x, y=y, layers=layers, loss=LOSSES[kind], start=start, seed=int(seed),
        weight=checked_number(weight, "weight", above=0),
    )  # fmt: skip


def _normal_weights(rng: np.random.Generator, layers: tuple[int, ...]) -> Array:
    """Return random weights with biases of zero, for the start of a training or for a teacher.

    The variance of a layer's weights is 1/inputs, or 2/inputs if rectified units follow the layer.
    """
    parts = []
    for i, (many, out) in enumerate(pairwise(layers)):
        gain = 2.0 if i < len(layers) - 2 else 1.0
        parts += [rng.standard_normal(many * out) * np.sqrt(gain / many), np.zeros(out)]
    return np.concatenate(parts)


def _split(weights: Array, layers: tuple[int, ...]) -> list[tuple[Array, Array]]:
    parts, at = [], 0
    for many, out in pairwise(layers):
        bias = at + many * out
        parts.append((weights[at:bias].reshape(many, out), weights[bias : bias + out]))
        at = bias + out
    return parts


def _outputs(weights: Array, layers: tuple[int, ...], x: Array) -> Array:
    for i, (matrix, bias) in enumerate(_split(weights, layers)):
        x = (x if i == 0 else np.maximum(x, 0)) @ matrix + bias
    return x


@in_default_mode
def exact_loss(problem: Problem, weights: Array) -> float:
    """Return the loss for some weights, evaluated in binary64: mean squared error, or mean negative log-likelihood.

    Parameters
    ----------
    problem
        The data and the kind of loss; the factor `weight` is ignored.
    weights
        All weights, layer by layer, as in `Problem.start`.

    Returns
    -------
    float

    Examples
    --------
    >>> problem = make_problem("linear", noise=0.0)
    >>> exact_loss(problem, problem.start) > 1
    True
    """
    return problem.loss_of(_outputs(np.asarray(weights, np.float64), problem.layers, problem.x.astype(np.float64)))


@methods_in_default_mode
class Configuration(Record):
    """The formats of a network.

    The operands of matrix products are in two formats: the layers' inputs and W in `forward`, dz in `backward` (see the
    module). `outputs` is the format of the layers' outputs. `accumulator` is the format in which matrix products are
    summed, and in which the error at the output is computed. `setup` has the formats of the weights and their update.
    If `machine` names a model of a matrix unit, such as `hopper.f16.f32`, it computes the matrix products.

    >>> fp8 = Configuration.named("fp8+master")
    >>> fp8.forward.name, fp8.backward.name, fp8.outputs.name, fp8.setup.formats["master"]
    ('e4m3fn', 'e5m2', 'bfloat16', 'binary32')
    """

    label: str
    setup: Setup
    forward: Format
    backward: Format
    outputs: Format
    accumulator: Format
    machine: str | None

    def __init__(
        self,
        label: str,
        setup: Setup,
        forward: Format | str,
        backward: Format | str | None = None,
        outputs: Format | str | None = None,
        accumulator: Format | str = "binary32",
        machine: str | None = None,
    ) -> None:
        """Parse the formats; `backward` and `outputs` default to `forward`."""
        typed = {"forward": forward, "backward": backward or forward, "outputs": outputs or forward}
        formats = {name: recurrence_format(each) for name, each in (typed | {"accumulator": accumulator}).items()}
        for name, fmt in formats.items():
            check_needs(fmt, name)
        set_fields(self, label=label, setup=setup, machine=machine, **formats)

    @classmethod
    def named(cls, text: str) -> Configuration:
        """Return the configuration with this name: fp8 or a format, followed by remedies if any (`fp16+master`).

        fp8 means e4m3 forward, e5m2 backward, bfloat16 outputs and gradients, weights stored in bfloat16, and dynamic
        loss scaling. Raises FormatError for an unknown format, and UnsupportedError for an unknown remedy.
        """
        if not isinstance(text, str):
            raise UnsupportedError(f"a configuration must be a name such as fp16+master, not {quoted(str(text))}")
        base, _, remedies = text.lower().partition("+")
        name = base.strip()
        if name in ("fp8", "float8"):
            setup = parse_remedy("dynamic")(Setup("bf16", update="bf16"))
            made = cls(text, setup, "e4m3", "e5m2", "bf16")
        else:
            if name in REMEDIES and name not in ("fp16", "bf16", "fp32"):
                raise UnsupportedError(f"{quoted(text)} begins with a remedy: name a format first, as in fp16+{name}")
            made = cls(text, Setup(name), name, accumulator=_summing(name))
        return made.replace(setup=parse_remedy(remedies)(made.setup)) if remedies else made


def _summing(name: str) -> str:
    """Return the format in which products of numbers of the format `name` are summed.

    The result is binary32 if binary32 contains all numbers of the format `name`, otherwise binary64.
    """
    return "binary32" if holds(recurrence_format("binary32"), recurrence_format(name)) else "binary64"


# The default configurations.
USUAL = (
    "fp32", "fp16", "fp16+dynamic", "fp16+master", "fp16+master+dynamic", "bf16", "bf16+stochastic", "bf16+kahan",
    "bf16+master", "fp8", "fp8+stochastic", "fp8+master",
)  # fmt: skip


class Pass(Record):
    """Result of a forward and a backward pass: the outputs, and the gradients times the loss scale."""

    outputs: Array
    gradients: Array


@methods_in_default_mode
class Network:
    """The network of a problem, computed in the formats of a configuration.

    >>> network = Network(make_problem("linear", features=2, samples=3), Configuration.named("fp32"))
    >>> network.forward(network.problem.start).shape
    (3, 1)
    """

    def __init__(self, problem: Problem, configuration: Configuration) -> None:
        """Store the problem and the configuration; round the problem's inputs `x` to the format `forward`."""
        self.problem, self.configuration = problem, configuration
        formats = (configuration.forward, configuration.backward, configuration.outputs, configuration.accumulator)
        single = recurrence_format("binary32")
        narrow = all(holds(single, each) for each in (*formats, configuration.setup.grads))
        self.kind: type[np.float32] | type[np.float64] = np.float32 if narrow else np.float64
        self.x = self._operand(problem.x.astype(self.kind))
        self.y = problem.y.astype(self.kind)

    def _operand(self, numbers: Array) -> Array:
        return self._rounded(numbers, self.configuration.forward)

    def _rounded(self, numbers: Array, format: Format) -> Array:
        if self.kind is np.float32 and format.name == "binary32":
            return numbers
        overflow = "native" if format.infinities else "saturate"
        return quantize(numbers, format, overflow=overflow, threads=1)

    def _product(self, a: Array, b: Array) -> Array:
        """Return a matrix product.

        If the configuration names a model of a matrix unit, this model computes the product. Otherwise, the product is
        summed in the accumulator's format.
        """
        configuration = self.configuration
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        if configuration.machine is not None:
            found: Array = matmul(a, b, machine=configuration.machine)
        else:
            found = matmul(a, b, format=configuration.accumulator)
        return found.astype(self.kind, copy=False)

    def forward(self, weights: Array) -> Array:
        """Return the outputs for these weights, with shape (samples, outputs)."""
        return self._forward(self._layers(weights))[-1]

    def _layers(self, weights: Array) -> list[tuple[Array, Array]]:
        row = np.asarray(weights).astype(self.kind)
        return [(self._operand(matrix), bias) for matrix, bias in self.problem.split(row)]

    def _forward(self, layers: list[tuple[Array, Array]]) -> list[Array]:
        """Return the inputs of every layer, rounded to the format `forward`, and then the outputs."""
        found = [self.x]
        for i, (matrix, bias) in enumerate(layers):
            z = add(self._product(found[-1], matrix), bias, self.configuration.outputs, threads=1)
            if i < len(layers) - 1:
                z = self._operand(np.maximum(z, 0))
            found.append(z.astype(self.kind, copy=False))
        return found

    def step(self, weights: Array, scale: float = 1.0) -> Pass:
        """Return the outputs and the gradients.

        The gradients are those of loss · `problem.weight` · `scale`, rounded to the format `grads`.
        """
        configuration, problem = self.configuration, self.problem
        layers = self._layers(weights)
        with np.errstate(all="ignore"):
            *inputs, z = self._forward(layers)
            factor = (2.0 if problem.loss == "square" else 1.0) * problem.weight * scale / len(z)
            by = self._rounded(np.asarray(factor, self.kind), configuration.accumulator)
            dz = multiply(self._error(z), by, configuration.backward, threads=1).astype(self.kind, copy=False)
            parts: list[Array] = []
            ones = np.ones((len(z), 1), self.kind)
            for i in range(len(layers) - 1, -1, -1):
                # A column of ones beside the inputs gives the gradients of the biases as one more row of the product.
                given = self._product(np.concatenate([inputs[i], ones], axis=1).T, dz)
                found = quantize(given, configuration.setup.grads, threads=1)
                parts.insert(0, found.reshape(-1).astype(np.float64))
                if i:
                    back = self._product(dz, layers[i][0].T)
                    dz = quantize(np.where(inputs[i] > 0, back, self.kind(0)), configuration.backward, threads=1)
        return Pass(z, np.concatenate(parts))

    def _error(self, z: Array) -> Array:
        """Return the error at the outputs: z − y for a squared loss, p − y for a logistic one.

        For a logistic loss, p is the probability 1/(1 + exp(−z)).
        """
        accumulator = self.configuration.accumulator
        if self.problem.loss == "logistic":
            z = quantize(1 / (1 + np.exp(-z.astype(np.float64))), accumulator, threads=1).astype(self.kind)
        return subtract(z, self.y, accumulator, threads=1)


def parse_configurations(given: object) -> list[Configuration]:
    """Return the configurations that a text or a list names; None selects the default configurations.

    Raises UnsupportedError or FormatError for an unknown name, and UnsupportedError if no configuration is named.
    """
    words = listed_words(USUAL if given is None else given, "configurations")
    if not words:
        raise UnsupportedError(f"configurations is empty{guess('', [*USUAL])}: name some of {' '.join(USUAL[:5])} …")
    return [each if isinstance(each, Configuration) else Configuration.named(each) for each in words]
