"""Networks in chosen formats: every operation of a step rounded, forward, backward and in the update.

One step on the whole of a problem's data, in this order, `n` the number of samples and S the loss scale:

    forward, for each layer: z = x·W in the products' accumulator, z = z + b in the format of outputs, and between
    layers a = max(z, 0). Operands of products, x and W, are rounded to the format `forward` first.
    at the end: e = z − y in the accumulator, for a logistic loss p − y with p = 1/(1 + exp −z) by binary64, rounded to
    the accumulator; then dz = e·(c·λ·S/n), rounded to the format `backward`, with λ the weight of the loss, and
    c = 2 for squares, 1 else.
    backward, for each layer: dW = xᵀ·dz and db = 1ᵀ·dz in the accumulator, rounded to the setup's gradients; then
    dx = dz·Wᵀ in the accumulator, 0 where z ≤ 0, rounded to `backward`: the dz of the layer before.

Products are summed serially in their accumulator, each product rounded into it (`reduce.matmul`), or as a model of a
matrix unit does it. Operands that overflow a format without infinities saturate. The update is the setup's program.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import quantize
from floatlab.arrays.operations import add, multiply, subtract
from floatlab.arrays.recurrences import recurrence_format
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import methods_in_default_mode
from floatlab.record import Record
from floatlab.reduce import matmul
from floatlab.training.network.problems import Problem
from floatlab.training.scaling import check_needs
from floatlab.training.setup import REMEDIES, Setup, parse_remedy
from floatlab.training.validation import listed_words

PARTS = ("forward", "backward", "outputs", "accumulator")


@methods_in_default_mode
class Configuration(Record):
    """The formats of a network: operands forward and backward, outputs, what products are summed in, and the setup.

    `machine` is a model of a matrix unit, such as `hopper.f16.f32`, in place of the accumulator.

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
        """Settle the formats: backward and outputs are as forward, unless something else is said."""
        given = {"forward": forward, "backward": backward or forward, "outputs": outputs or forward}
        put = object.__setattr__
        for name, value in (given | {"accumulator": accumulator}).items():
            fmt = recurrence_format(value)
            check_needs(fmt, name)
            put(self, name, fmt)
        put(self, "label", label)
        put(self, "setup", setup)
        put(self, "machine", machine)

    @classmethod
    def named(cls, text: str) -> Configuration:
        """Return what a name means: fp32, fp16, bf16 or fp8, or any format, and remedies, as in `fp16+master+dynamic`.

        fp8 is e4m3 forward, e5m2 backward, bfloat16 outputs and gradients, weights kept in bfloat16, and loss scaling
        that adapts. Raises UnsupportedError and FormatError.
        """
        if not isinstance(text, str):
            raise UnsupportedError(f"a configuration is a name such as fp16+master, not {quoted(str(text))}")
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
    """Return what products of a format are summed in: binary32, or binary64 for what is wider."""
    return "binary32" if holds(recurrence_format("binary32"), recurrence_format(name)) else "binary64"


# What stands side by side where nothing else is asked for.
USUAL = (
    "fp32", "fp16", "fp16+dynamic", "fp16+master", "fp16+master+dynamic", "bf16", "bf16+stochastic", "bf16+kahan",
    "bf16+master", "fp8", "fp8+stochastic", "fp8+master",
)  # fmt: skip


class Pass(Record):
    """What one pass forward and backward made: outputs, and the gradients of all weights times the loss scale."""

    outputs: Array
    gradients: Array


@methods_in_default_mode
class Network:
    """A problem's network in a configuration.

    >>> from floatlab.training.network.problems import make_problem
    >>> network = Network(make_problem("linear", features=2, samples=3), Configuration.named("fp32"))
    >>> network.forward(network.problem.start).shape
    (3, 1)
    """

    def __init__(self, problem: Problem, configuration: Configuration) -> None:
        """Round the data."""
        self.problem, self.configuration = problem, configuration
        formats = (configuration.forward, configuration.backward, configuration.outputs, configuration.accumulator)
        single = recurrence_format("binary32")
        narrow = all(holds(single, each) for each in (*formats, configuration.setup.grads))
        self.kind: type[Any] = np.float32 if narrow else np.float64
        self.x = self._operand(problem.x.astype(self.kind))
        self.y = problem.y.astype(self.kind)

    def _operand(self, numbers: Array) -> Array:
        return self._rounded(numbers, self.configuration.forward)

    def _rounded(self, numbers: Array, format: Format) -> Array:
        if self.kind is np.float32 and format.name == "binary32":
            return numbers
        overflow = "native" if format.infinities else "saturate"
        found: Array = quantize(numbers, format, overflow=overflow, threads=1)
        return found

    def _product(self, a: Array, b: Array) -> Array:
        """Return a matrix product as the accumulator, or the machine, has it."""
        configuration = self.configuration
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
        if configuration.machine is not None:
            found: Array = matmul(a, b, machine=configuration.machine)
        else:
            found = matmul(a, b, format=configuration.accumulator)
        return found.astype(self.kind, copy=False)

    def forward(self, weights: Array) -> Array:
        """Return the outputs for some weights, (samples, outputs)."""
        return self._forward(self._layers(weights))[-1]

    def _layers(self, weights: Array) -> list[tuple[Array, Array]]:
        row = np.asarray(weights).astype(self.kind)
        return [(self._operand(matrix), bias) for matrix, bias in self.problem.split(row)]

    def _forward(self, layers: list[tuple[Array, Array]]) -> list[Array]:
        """Return the operands of every layer, and the outputs."""
        found = [self.x]
        for i, (matrix, bias) in enumerate(layers):
            z = add(self._product(found[-1], matrix), bias, self.configuration.outputs, threads=1)
            if i < len(layers) - 1:
                z = self._operand(np.maximum(z, 0))
            found.append(z.astype(self.kind, copy=False))
        return found

    def step(self, weights: Array, scale: float = 1.0) -> Pass:
        """Return outputs, and the gradients of the loss times a scale, as numbers of the setup's gradients."""
        configuration, problem = self.configuration, self.problem
        layers = self._layers(weights)
        with np.errstate(all="ignore"):
            *inputs, z = self._forward(layers)
            factor = (2.0 if problem.loss == "square" else 1.0) * problem.weight * scale / len(z)
            by = self._rounded(self.kind(factor), configuration.accumulator)
            dz = multiply(self._error(z), by, configuration.backward, threads=1).astype(self.kind, copy=False)
            parts: list[Array] = []
            ones = np.ones((len(z), 1), self.kind)
            for i in range(len(layers) - 1, -1, -1):
                # The biases' gradients are one more row, of an operand that is 1.
                given = self._product(np.concatenate([inputs[i], ones], axis=1).T, dz)
                found = quantize(given, configuration.setup.grads, threads=1)
                parts.insert(0, found.reshape(-1).astype(np.float64))
                if i:
                    back = self._product(dz, layers[i][0].T)
                    dz = quantize(np.where(inputs[i] > 0, back, self.kind(0)), configuration.backward, threads=1)
        return Pass(z, np.concatenate(parts))

    def _error(self, z: Array) -> Array:
        """Return z − y, or p − y."""
        accumulator = self.configuration.accumulator
        if self.problem.loss == "logistic":
            z = quantize(1 / (1 + np.exp(-z.astype(np.float64))), accumulator, threads=1).astype(self.kind)
        found: Array = subtract(z, self.y, accumulator, threads=1)
        return found


def parse_configurations(given: Any) -> list[Configuration]:
    """Return configurations of names in a text or a list, or the usual ones for None; raises UnsupportedError."""
    if given is None:
        given = USUAL
    words = listed_words(given, "configurations")
    if not words:
        raise UnsupportedError(f"configurations names none{guess('', [*USUAL])}: {' '.join(USUAL[:5])} … would do")
    return [each if isinstance(each, Configuration) else Configuration.named(each) for each in words]
