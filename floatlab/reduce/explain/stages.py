"""Models of a product: each model assumes a change of the inputs, the terms or partial sums, and computes the product.

This product is computed in binary64, so the order of addition hardly matters. If the assumption is right, a result
differs from this product only by the rounding errors of its sums and its final rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import quantize
from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.record import Record
from floatlab.reduce.explain.quantisers import (
    flushed,
    in_groups,
    quantized,
    rounded,
    rounded_twice,
    scaled,
    with_zero,
)

Known = tuple[tuple[str, str], ...]
# Changes an input; the arguments are a part of the input, the whole input, and the axis of its terms.
Change = Callable[[Array, Array, int], Array]
# Computes a product; the arguments are parts of x and y, and the whole x and y.
Maker = Callable[[Array, Array, Array, Array], Array]

DIRECTIONS = ("RNE", "RNA", "RTZ")
_NARROWER = ("fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2")
_MOST_PRODUCTS = 1 << 26  # the flushing of single products x·y is modelled for at most this many of them
_CHUNK = 64  # the products of this many terms are rounded at once
# Inputs may be split into parts: (number of parts, limit). Products of parts i and j are added if i + j < limit.
_PARTS = ((2, 2), (2, 3), (3, 2), (3, 3), (3, 4))
_GROUPS = (32, 64, 128)  # numbers of terms that share a scale
_FP8 = (("e4m3", 448.0), ("e4m3", 240.0), ("e5m2", 57344.0))  # FP8 formats, with the largest magnitude after scaling
# The largest magnitude after scaling is assumed to be an integer in this range. A factor of 2 is enough: powers of two
# in the scale do not change how normal numbers are rounded.
_LARGEST = 224, 449
_STORED = 2.0**-26  # relative changes up to this do not change numbers that are stored in binary32
ALIKE = ("tf32", "binary16")  # formats with the same precision
_SIDES = (("both", (True, True)), ("x", (True, False)), ("y", (False, True)))

_ROUNDED_PARTS = {"products": "products", "partials": "partial sums"}


class Model(Record):
    """A model: an assumed change of the inputs, the terms or partial sums.

    `name` is the cause that is reported, and `stage` is the stage of the computation that is changed. `evidence` holds
    the details of the change as pairs (name, text). `make` computes the product after the change.
    """

    name: str
    stage: str
    evidence: tuple[tuple[str, str], ...]
    make: Maker
    weight: int = 1  # the complexity of the change; models with a lower weight are preferred
    changes: tuple[Change, Change] | None = None  # the changes of x and of y, if each input is changed separately

    @property
    def text(self) -> str:
        """The details of the change, separated by commas, such as "binary16, RNE, both"."""
        return ", ".join(value for _, value in self.evidence)

    @property
    def changes_both(self) -> bool:
        """Whether the model changes both inputs."""
        return ("inputs", "both") in self.evidence

    @property
    def is_one_rounding(self) -> bool:
        """Whether the inputs are rounded to a single format in a single direction. Sums can then be replayed.

        The inputs may be rounded to binary32 first.
        """
        return self.name == "inputs-rounded" and {"format", "rounding"} <= dict(self.evidence).keys()

    @property
    def words(self) -> str:
        """The model in a few words."""
        if self.name in _ROUNDED_PARTS:
            return f"{_ROUNDED_PARTS[self.name]} rounded ({self.text})"
        verb = {"inputs-quantized": "quantised", "inputs-split": "in parts"}.get(self.name, "rounded")
        return f"inputs {verb} ({self.text})"


def plain(x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    """Return the product of the unchanged inputs."""
    with np.errstate(all="ignore"):
        product: Array = x @ y
    return product


PLAIN = Model("", "inputs", (), plain, 0)


def _as_is(part: Array, whole: Array, axis: int) -> Array:
    return part


def _results_flushed(least: float, make: Maker, x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    return flushed(least, make(x, y, all_x, all_y), all_x, 0)


def _products_flushed(least: float, x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    total = np.zeros((x.shape[0], y.shape[1]))
    with np.errstate(all="ignore"):
        for k in range(x.shape[1]):
            total += flushed(least, x[:, k : k + 1] * y[k : k + 1], all_x, 0)
    return total


def _on_both(first: Change, second: Change, x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    with np.errstate(all="ignore"):
        product: Array = first(x, all_x, 1) @ second(y, all_y, 0)
    return product


def _in_parts(name: str, count: int, below: int, x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    parts = []
    for side in (x, y):
        rest, found = side, []
        for _ in range(count):
            found.append(np.asarray(quantize(rest, name), np.float64))
            rest = rest - found[-1]
        parts.append(found)
    with np.errstate(all="ignore"):
        pairs = [a @ b for i, a in enumerate(parts[0]) for j, b in enumerate(parts[1]) if i + j < below]
    total = pairs[-1]
    for each in pairs[-2::-1]:
        total = total + each
    return total


def _changing(name: str, known: Known, changes: tuple[Change, Change], weight: int) -> Model:
    return Model(
        name=name, stage="inputs", evidence=known, make=partial(_on_both, *changes), weight=weight, changes=changes
    )  # fmt: skip


def _changing_each(name: str, known: Known, change: Change) -> Iterator[tuple[str, Model]]:
    """Yield pairs: the name of the changed inputs ("both", "x" or "y"), and a model that changes these inputs."""
    for which, (left, right) in _SIDES:
        changes = change if left else _as_is, change if right else _as_is
        yield which, _changing(name, (*known, ("inputs", which)), changes, 1)


def input_models(formats: tuple[Format, Format], x: Array, y: Array) -> Iterator[Model]:
    """Yield the usual models: inputs rounded to narrower formats, quantised to int8, or split into parts.

    If some inputs or products are smaller than the normal numbers of x's format, models that flush such numbers to zero
    are also yielded.
    """
    widest = max(each.precision for each in formats)
    for name in _NARROWER:
        format = parse_format(name)
        if all(holds(format, each) for each in formats):
            continue
        for direction in DIRECTIONS:
            known = (("format", format.name), ("rounding", direction))
            for which, model in _changing_each("inputs-rounded", known, partial(rounded, name, direction)):
                weight = (2 if which == "both" else 3) + (direction != "RNE") + (format.precision < 8) * 2
                yield model.replace(weight=weight)
    for by_row, words in ((False, "tensor"), (True, "row")):
        known = (("format", "int8"), ("scale per", words))
        for which, model in _changing_each("inputs-quantized", known, partial(quantized, by_row)):
            yield model.replace(weight=3 if which == "both" else 4)
    for name in ("bf16", "tf32", "fp16"):
        if parse_format(name).precision < widest:
            for count, below in _PARTS:
                evidence = (
                    ("format", parse_format(name).name),
                    ("parts", str(count)),
                    ("products", f"i + j < {below}"),
                )
                yield Model("inputs-split", "inputs", evidence, partial(_in_parts, name, count, below), 4)
    least = 2.0 ** formats[0].emin
    smallest = [float(np.abs(side[side != 0]).min(initial=np.inf)) for side in (x, y)]
    if smallest[0] * smallest[1] < least and x.size * y.shape[1] <= _MOST_PRODUCTS:
        make = partial(_products_flushed, least)
        yield Model("flush-to-zero", "products", (("flushed", "products"),), make, 2)
        both = partial(_results_flushed, least, make)
        yield Model("flush-to-zero", "products", (("flushed", "products and results"),), both, 2)
    if any(((np.abs(side) < least) & (side != 0)).any() for side in (x, y)):
        flush = partial(flushed, least)
        model = _changing("flush-to-zero", (("flushed", "inputs"),), (flush, flush), 1)
        yield model
        yield model.replace(
            evidence=(("flushed", "inputs and results"),), make=partial(_results_flushed, least, model.make)
        )


def rare_models(formats: tuple[Format, Format], n: int) -> Iterator[Model]:
    """Yield less usual models: inputs quantised to other integers or with other scales than in `input_models`.

    They include inputs in scaled FP8.

    If an input is more precise than binary32, there are also models in which the inputs are rounded to binary32 and
    then to TF32, binary16 or bfloat16.
    """
    known: Known
    rows = {True: "row", False: "tensor"}
    for by_row in (True, False):
        changes_both = partial(quantized, by_row), partial(quantized, not by_row)
        known = (("format", "int8"), ("scale per", f"{rows[by_row]} of x, {rows[not by_row]} of y"))
        yield _changing("inputs-quantized", known, changes_both, 4)
    changes: list[tuple[Change, Known]] = []
    for by_row, words in rows.items():
        changes.append((partial(quantized, by_row, steps=7), (("format", "int4"), ("scale per", words))))
        for steps in (128.0, 127.5):
            known = (("format", "int8"), ("scale per", words), ("scale", f"largest / {steps:g}"))
            changes.append((partial(quantized, by_row, steps=steps), known))
        changes.append((partial(with_zero, by_row), (("format", "uint8"), ("scale per", f"{words} with a zero"))))
        for name, most in _FP8:
            known = (("format", parse_format(name).name), ("scale per", words), ("largest", f"{most:g}"))
            changes.append((partial(scaled, name, most, by_row), known))
    for size in _GROUPS:
        for name, steps in (("int4", 7), ("int8", 127)):
            for zero in (False, True):
                known = (("format", name), ("scale per", f"group of {size} terms{' with a zero' * zero}"))
                if size < n:
                    changes.append((partial(in_groups, size, steps, zero), known))
    for by_row, words in rows.items():
        for other in (True, False):
            changes_both = partial(with_zero, by_row), partial(quantized, other)
            known = (("format", "uint8 and int8"), ("scale per", f"{words} of x with a zero, {rows[other]} of y"))
            yield _changing("inputs-quantized", known, changes_both, 5)
    if max(each.precision for each in formats) > parse_format("fp32").precision:
        for name in ("tf32", "fp16", "bf16"):
            for direction in DIRECTIONS:
                known = (("format", parse_format(name).name), ("rounding", direction), ("first", "to binary32 first"))
                for _, model in _changing_each("inputs-rounded", known, partial(rounded_twice, name, direction)):
                    yield model.replace(weight=4)
    for change, known in changes:
        for _, model in _changing_each("inputs-quantized", known, change):
            yield model.replace(weight=5)


INT4_HALF_STEPS = 14.0  # the largest number of int4, in half steps


def coarsest_models() -> Iterator[Model]:
    """Yield the models with the largest plausible errors: inputs in int4, with one scale per tensor or per row."""
    for by_row, words in ((False, "tensor"), (True, "row")):
        change = partial(quantized, by_row, steps=7)
        known = (("format", "int4"), ("scale per", words), ("inputs", "both"))
        yield _changing("inputs-quantized", known, (change, change), 5)


def scaled_models() -> Iterator[Model]:
    """Yield the models of scaled FP8 inputs.

    Each model scales x and y so that the largest magnitude in each of them becomes a given integer.
    """
    for name in ("e4m3", "e5m2"):
        for most in range(*_LARGEST):
            known = (("format", parse_format(name).name), ("scale per", "tensor"), ("largest", str(most)))
            change = partial(scaled, name, float(most), False)
            yield _changing("inputs-quantized", (*known, ("inputs", "both")), (change, change), 6)


def known_of(model: Model, x: Array, y: Array) -> tuple[tuple[str, str], ...]:
    """Return the evidence of a model, adapted to these inputs.

    If the numbers of only one input change, only this input is named. If several rounding directions give the same
    numbers, all these directions are named. If TF32 and binary16 give the same numbers, both formats are named.
    """
    known = dict(model.evidence)
    if model.changes is not None and known.get("inputs") == "both":
        changed = [
            name
            for name, side, axis, change in (("x", x, 1, model.changes[0]), ("y", y, 0, model.changes[1]))
            if (np.abs(change(side, side, axis) - side) > _STORED * np.abs(side)).any()
        ]
        known["inputs"] = changed[0] if len(changed) == 1 else "both"
    if not model.is_one_rounding or "first" in known or "or" in known:
        return tuple(known.items())
    sides = [side for side, name in ((x, "x"), (y, "y")) if known["inputs"] in ("both", name)]
    goal = [quantize(side, known["format"], rounding=known["rounding"]) for side in sides]
    for key, others in (("rounding", DIRECTIONS), ("format", ALIKE)):
        if known[key] not in others:
            continue
        alike = [
            other
            for other in others
            if all(
                np.array_equal(quantize(side, made["format"], rounding=made["rounding"]), wanted, equal_nan=True)
                for made in ({**dict(model.evidence), key: other},)
                for side, wanted in zip(sides, goal, strict=True)
            )
        ]
        known[key] = " or ".join(alike)
    return tuple(known.items())


def _products_rounded(name: str, x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    total = np.zeros((x.shape[0], y.shape[1]))
    with np.errstate(all="ignore"):
        for k in range(0, x.shape[1], _CHUNK):
            products = x.T[k : k + _CHUNK, :, None] * y[k : k + _CHUNK, None]
            total += np.asarray(quantize(products, name), np.float64).sum(axis=0)
    return total


def _partials_rounded(name: str, edges: tuple[int, ...], x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    total = np.zeros((x.shape[0], y.shape[1]))
    with np.errstate(all="ignore"):
        for low, high in pairwise(edges):
            total += np.asarray(quantize(x[:, low:high] @ y[low:high], name), np.float64)
    return total


def sum_models(result: Format, n: int) -> Iterator[Model]:
    """Yield the models that round products, or the sums of blocks of terms, to formats narrower than `result`."""
    for name in ("fp32", "fp16", "bf16"):
        format = parse_format(name)
        if format.precision >= result.precision:
            continue
        yield Model("products", "products", (("format", format.name),), partial(_products_rounded, name), 3)
        for edges, words in block_edges(n):
            evidence = (("format", format.name), ("blocks", words))
            yield Model("partials", "partials", evidence, partial(_partials_rounded, name, edges), 4)


def block_edges(n: int) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield the usual divisions of n terms into blocks: the edges of the blocks, and a description of the division.

    >>> [edges for edges, _ in block_edges(5)][:2]
    [(0, 2, 5), (0, 3, 5)]
    """
    seen = set()
    for count in (*range(2, 17), 24, 32, 64):
        even = tuple(np.linspace(0, n, count + 1).astype(int).tolist())
        upper = tuple(min(i * -(-n // count), n) for i in range(count + 1))
        for edges in (even, upper):
            if count < n and edges not in seen:
                seen.add(edges)
                yield edges, f"{count} of about {n // count} terms"
    for size in (16, 32, 64, 128, 256, 512):
        edges = (*range(0, n, size), n)
        if 2 < len(edges) < 40 and edges not in seen:
            seen.add(edges)
            yield edges, f"of {size} terms"


def transposed_inputs(x: Array, y: Array) -> Iterator[tuple[str, str, Array, Array]]:
    """Yield factors that may have been multiplied by mistake: transposed, swapped or misread inputs of matching shapes.

    Each item has the name of the cause, a text that says which operand is transposed, and both factors. The text
    "x in memory" means that the memory of x was read in the wrong order, as if it held the transpose.
    """
    (m, n), columns = x.shape, y.shape[1]
    if m == columns and m > 1:
        yield "transposed-output", "the result", y.T, x.T
    if n == columns and n > 1:
        yield "transposed-operand", "y", x, y.T
    if m == n and n > 1:
        yield "transposed-operand", "x", x.T, y
    if m == n == columns and n > 1:
        yield "transposed-operand", "x and y", x.T, y.T
        yield "transposed-operand", "none: y·x", y, x
    if n != columns and min(n, columns) > 1:
        for read in (y.reshape(columns, n).T, y.T.reshape(n, columns)):
            yield "transposed-operand", "y in memory", x, read
    if m != n and min(m, n) > 1:
        for read in (x.reshape(n, m).T, x.T.reshape(m, n)):
            yield "transposed-operand", "x in memory", read, y
