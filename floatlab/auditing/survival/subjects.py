"""The tensors that an audit measures, and how each is cut into regions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from floatlab.auditing.quantized import QuantizedCheckpoint
from floatlab.auditing.stored_parts import Weight, stored_bits
from floatlab.auditing.survival.activations import layer_inputs
from floatlab.auditing.survival.jobs import checkpoint_at, version_of
from floatlab.auditing.survival.regions import Cut, cuts
from floatlab.errors import FloatlabError, UnsupportedError, quoted
from floatlab.files.checkpoints import matching
from floatlab.files.safe_open import shown
from floatlab.formats import parse_format
from floatlab.formats.recipes import Recipe
from floatlab.record import Individual

Place = str | os.PathLike[str] | Mapping[str, object]


_MOST_REGIONS = 1 << 21  # regions of all tensors together; a checkpoint of 20 GB has a few thousand


class Subject(Individual):
    """A tensor to measure: its checkpoint, its properties, and the regions in which it is measured.

    Each item of `groups` has a group of recipes, and the regions (parts of the tensor) for these recipes; see `cuts`.
    `bits` is the number of stored bits per element, scales included. `left_out` says why the tensor cannot be measured;
    it is "" if the tensor can be measured. `is_readable` is false if the tensor cannot be read. `layer` is the name of
    the array with samples of the layer's inputs, or "" if there is no such array.
    """

    place: Place
    source: str
    name: str
    kind: str
    shape: tuple[int, ...]
    convention: str
    bits: float
    version: str
    left_out: str
    is_readable: bool
    layer: str
    groups: tuple[Cut, ...]


def subjects_of(
    places: Sequence[Place], recipes: tuple[Recipe, ...], only: str | None, activations: Place | None
) -> list[Subject]:
    """Return the tensors that `only` chooses (None: all), in the order of the files. Some may not be measurable."""
    named = [(place, checkpoint_at(place)) for place in places]
    samples = None if activations is None else checkpoint_at(activations)
    where = " and ".join(read.name for _, read in named[:3])
    chosen = set(matching(list(dict.fromkeys(name for _, read in named for name in read.names)), only, where))
    if not chosen:
        raise UnsupportedError(f"{shown(where)} has no tensors")
    found, regions = [], 0
    for place, read in named:
        version = version_of(read)
        for name in read.names:
            if name not in chosen:
                continue
            weight, stored = read.weights.get(name), read.checkpoint.tensors.get(name)
            shape = weight.shape if weight is not None else stored.shape if stored is not None else ()
            kind = "number" if weight is not None else stored.kind or stored.dtype if stored is not None else ""
            trouble, is_readable = read.unreadable.get(name, ""), name not in read.unreadable
            if not trouble and kind.startswith(("int", "uint", "bool")):
                trouble = f"{'truth values' if kind == 'bool' else 'integers'}, not floats"
            layer = ""
            if samples is not None and not trouble:
                layer = layer_inputs(samples, name, shape)
            groups: tuple[Cut, ...] = ()
            if not trouble:
                try:
                    groups = tuple(cuts(shape, recipes, whole_rows=bool(layer)))
                except UnsupportedError as many:
                    raise UnsupportedError(f"the tensor {quoted(name, 80)} of {shown(read.name)} {many}") from None
                regions += sum(len(each) for _, each in groups)
                if regions > _MOST_REGIONS:
                    raise UnsupportedError(
                        f"{shown(read.name)} has too many elements for one audit; choose with --only"
                    )
            found.append(
                Subject(
                    place=place,
                    source=read.name,
                    name=name,
                    kind=kind,
                    shape=shape,
                    convention="" if weight is None else weight.convention,
                    bits=_width(kind) if weight is None else _stored_bits(read, weight),
                    version=version,
                    left_out=trouble,
                    is_readable=is_readable,
                    layer=layer,
                    groups=groups,
                )
            )
    if samples is not None and not any(each.layer for each in found):
        few = ", ".join(quoted(name, 60) for name in samples.names[:2]) or "nothing"
        raise UnsupportedError(f"{shown(samples.name)} has no inputs of these tensors that are matrices; it has {few}")
    return found


def _stored_bits(read: QuantizedCheckpoint, weight: Weight) -> float:
    """Return the bits of a quantised weight in the file (scales included), divided by the number of its elements."""
    codes = read.checkpoint.tensors[weight.codes]
    if not codes.kind:
        return stored_bits(weight, codes)
    parts = (read.checkpoint.tensors[name] for name in weight.parts)
    return sum(prod(part.shape) * _width(part.kind) for part in parts) / max(prod(weight.shape), 1)


def _width(kind: str) -> int:
    """Return how many bits a number of type `kind` has, or 32 if `kind` is neither a format nor a dtype."""
    try:
        return parse_format(kind).width
    except FloatlabError:
        pass
    try:
        return np.dtype(kind).itemsize * 8
    except TypeError:
        return 32
