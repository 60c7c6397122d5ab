"""Finds the stored codes, their scales and the original by their names, in checkpoints and in other files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from math import prod

import numpy as np

from floatlab.arrays.sources import ArraySource, HeldSource
from floatlab.arrays.types import Array
from floatlab.auditing.conventions.described import NestedScales, nested_scales
from floatlab.auditing.quantized import QuantizedCheckpoint, load_quantized
from floatlab.auditing.recipe_search.ggml_codes import ggml_parts
from floatlab.auditing.recipe_search.integers.zero_points import has_zero_points
from floatlab.auditing.recipe_search.matching import Evidence, check_original, surveyed
from floatlab.auditing.recipe_search.search import Names
from floatlab.auditing.recipe_search.stored_codes import CodeLayout, ScaleReading, code_layouts, scale_readings
from floatlab.auditing.stored_parts import Weight, is_scale
from floatlab.auditing.weight_streams import numbers
from floatlab.errors import FileFormatError, UnsupportedError, quoted
from floatlab.files.checkpoints import StoredTensor
from floatlab.files.checkpoints.opening import KINDS
from floatlab.files.readers import open_array, split_place
from floatlab.files.safe_open import shown
from floatlab.sandbox import is_folder

# Ends of the names of scales, after the name of the codes or after its stem.
_BLOCK_SCALES = ("_scale_inv", "_scale", "_scales", ".scale", ".scales", ".absmax")
_TENSOR_SCALES = ("_scale_2", "_global_scale", "_tensor_scale", "_per_tensor_scale")
_CODES = ("_packed", "_qdata", "_codes", "_blocks", ".codes", ".blocks")
_OF_TENSORS = ("weight_scale_2", "global_scale", "per_tensor_scale", "tensor_scale", ".scale")
_FEW = 3


@contextmanager
def opened_evidence(
    codes: object, original: object, scales: object = None, tensor_scale: object = None
) -> Iterator[tuple[Evidence, Names]]:
    """Open codes, scales and original, each given by name (`FILE::NAME`) or as an array.

    Without `scales`, the scales that are stored beside the codes are used; the conventions of checkpoints find these
    scales. Raises FloatlabError if anything cannot be read, or if shapes do not fit together.
    """
    with ExitStack() as held:
        parts = _stored(codes, held)
        before = _original(original, parts.name, held)
        if scales is not None:
            parts.scales = [_array(scales, "scales", held)]
            parts.tensor = None
        if tensor_scale is not None:
            parts.tensor = _array(tensor_scale, "tensor_scale", held)
        check_original(before)
        _check_shapes(parts, before)
        layouts, readings = parts.readings(before.shape)
        survey = surveyed(before)  # last, since it reads the whole original
        tensor = None if parts.tensor is None else _tensor_numbers(parts.tensor)
        names = Names(_shown(codes, parts.label), _shown(original, before.name))
        yield Evidence(before, survey, layouts, readings, tensor, parts.nested), names


@contextmanager
def opened_with_zero_points(
    codes: object, original: object
) -> Iterator[tuple[QuantizedCheckpoint, Weight, ArraySource, tuple[str, str]] | None]:
    """Open a weight of integers with zero points, and its original; return None if the codes are not such integers.

    The result is a tuple: the checkpoint, the weight, the original, and the names under which codes and original are
    shown.
    """
    with ExitStack() as held:
        path, name = split_place(os.fspath(codes)) if isinstance(codes, str | os.PathLike) else ("", None)
        if not path or not _is_checkpoint(path):
            yield None
            return
        checkpoint = held.enter_context(load_quantized(path))
        stored = _chosen(checkpoint, name)
        weight = next((each for each in checkpoint.weights.values() if each.codes == stored.name), None)
        if weight is None or not has_zero_points(weight):
            yield None
            return
        before = _original(original, weight.name, held)
        surveyed(before)
        yield checkpoint, weight, before, (_shown(codes, stored.name), _shown(original, before.name))


class _Parts:
    """The stored parts of a weight: its codes, and the scales of its blocks and of the tensor, if there are any."""

    def __init__(self, name: str, label: str, codes: ArraySource, shape: tuple[int, ...] | None = None) -> None:
        self.name, self.label, self.codes, self.shape = name, label, codes, shape
        self.scales: list[ArraySource] = []
        self.tensor: ArraySource | None = None
        self.ggml = ""
        self.nested: NestedScales | None = None

    def readings(self, shape: tuple[int, ...]) -> tuple[list[CodeLayout], list[ScaleReading]]:
        if self.ggml:
            layout, reading = ggml_parts(self.codes, self.ggml, prod(shape))
            return [layout], [reading]
        found = [reading for each in self.scales for reading in scale_readings(each)]
        return code_layouts(self.codes, shape), found


def _check_shapes(parts: _Parts, original: ArraySource) -> None:
    shape = parts.shape or parts.codes.shape
    is_same = shape == original.shape
    if (parts.ggml and not is_same) or (
        not is_same and prod(shape) == prod(original.shape) and parts.shape is not None
    ):
        said = f"{shown(parts.label)} has the shape {_times(shape)}, but the original {_times(original.shape)}"
        raise FileFormatError(said)
    if not is_same and shape == original.shape[::-1]:
        said = f"{shown(parts.label)} has the shape {_times(shape)}, and the original {_times(original.shape)}"
        raise FileFormatError(f"{said}: transpose one of them")


def _times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "of one number"


def _shown(place: object, name: str) -> str:
    return str(place) if isinstance(place, str | os.PathLike) else name


def _array(place: object, name: str, held: ExitStack) -> ArraySource:
    """Return a given array, or the array in the file that `place` names, as an `ArraySource`."""
    if isinstance(place, ArraySource):
        return place
    if isinstance(place, str | os.PathLike):
        return held.enter_context(open_array(os.fspath(place), "binary32"))
    return HeldSource(place, name)


def _is_checkpoint(path: str) -> bool:
    return is_folder(path) or (path.endswith((*KINDS, ".index.json")) and not path.endswith(".npy"))


def _stored(place: object, held: ExitStack) -> _Parts:
    """Open the codes at `place`, and the scales that the conventions of checkpoints find beside these codes."""
    if not isinstance(place, str | os.PathLike):
        return _Parts("codes", "codes", _array(place, "codes", held))
    path, name = split_place(os.fspath(place))
    if not _is_checkpoint(path):
        source = _array(place, "codes", held)
        return _Parts("", source.name, source)
    checkpoint = held.enter_context(load_quantized(path))
    stored = _chosen(checkpoint, name)
    weight = checkpoint.weights.get(name or stored.name)
    weight = weight or next((each for each in checkpoint.weights.values() if each.codes == stored.name), None)
    tensors = checkpoint.checkpoint.tensors
    if weight is not None:
        stored = tensors[weight.codes]
    parts = _Parts(
        stored.name if weight is None else weight.name, stored.name, held.enter_context(stored.open()),
        None if weight is None else weight.shape,
    )  # fmt: skip
    if not stored.kind:
        parts.ggml, parts.shape = stored.dtype, stored.shape
    beside = _beside(stored.name, tensors) if weight is None else [part for part in weight.parts if is_scale(part)]
    if weight is not None and has_zero_points(weight):
        raise UnsupportedError(f"{quoted(stored.name, 90)} has zero points ({weight.convention}), which no recipe has")
    if weight is not None and any(part.endswith(".biases") for part in weight.parts):
        raise UnsupportedError(f"{quoted(stored.name, 90)} has biases ({weight.convention}), which no recipe has")
    if weight is not None and any("nested" in part for part in weight.parts):
        beside, parts.nested = [], nested_scales(checkpoint.parts, weight)
    for part in beside:
        source = held.enter_context(tensors[part].open())
        if part.endswith(_OF_TENSORS) and (parts.ggml or len(beside) > 1):
            parts.tensor = source
        else:
            parts.scales.append(source)
    return parts


def _chosen(checkpoint: QuantizedCheckpoint, name: str | None) -> StoredTensor:
    """Return the stored tensor that has the codes; `name` names the tensor itself or its weight.

    Without a name, the checkpoint must have only one weight (or tensor). Raises FileFormatError if there is no such
    tensor, or if several are possible.
    """
    tensors = checkpoint.checkpoint.tensors
    if name is None:
        found = [weight.codes for weight in checkpoint.weights.values()] or list(tensors)
        if len(found) != 1:
            few = ", ".join(quoted(each, 60) for each in found[:_FEW])
            has = f"it has {few}{', …' * (len(found) > _FEW)}" if found else "it has no tensors"
            raise FileFormatError(f"{shown(checkpoint.name)}: name one tensor after ::; {has}")
        return tensors[found[0]]
    if name in checkpoint.weights:
        return tensors[checkpoint.weights[name].codes]
    if name not in tensors:
        raise FileFormatError(f"{shown(checkpoint.name)} has no tensor {quoted(name, 80)}")
    return tensors[name]


def _beside(name: str, tensors: Mapping[str, StoredTensor]) -> list[str]:
    """Return the names of scale tensors for codes of no known convention, such as `w_scale` for `w`."""
    stems = [name, *(name.removesuffix(end) for end in _CODES if name.endswith(end))]
    found = []
    for ends in (_BLOCK_SCALES, _TENSOR_SCALES):
        names = [f"{stem}{end}" for stem in stems for end in ends]
        found += [each for each in names if each in tensors][:1]
    return found


def _original(place: object, name: str, held: ExitStack) -> ArraySource:
    """Open the original: an array, or a tensor of a checkpoint.

    If `place` names no tensor, the original is the tensor called `name`. If the checkpoint has no such tensor, the
    original is its only tensor.
    """
    if not isinstance(place, str | os.PathLike):
        return _array(place, "original", held)
    path, own = split_place(os.fspath(place))
    if not _is_checkpoint(path):
        return _array(place, "original", held)
    checkpoint = held.enter_context(load_quantized(path))
    tensors = checkpoint.checkpoint.tensors
    wanted = own or (name if name in tensors else next(iter(tensors)) if len(tensors) == 1 else "")
    if not wanted:
        few = ", ".join(quoted(each, 60) for each in list(tensors)[:_FEW])
        raise FileFormatError(f"{shown(path)}: name the original after ::; it has {few}")
    if wanted not in tensors:
        raise FileFormatError(f"{shown(path)} has no tensor {quoted(wanted, 80)}")
    if not tensors[wanted].kind:
        raise UnsupportedError(f"{quoted(wanted, 90)} is {tensors[wanted].dtype}, but an original has floats")
    return held.enter_context(tensors[wanted].open())


def _tensor_numbers(source: ArraySource) -> Array:
    """Return the scale of the tensor, or the scales of its rows, as float64."""
    if source.size > 1 << 24:
        raise FileFormatError(f"{quoted(source.name, 90)} has {source.size:,} numbers, but is the scale of a tensor")
    return np.asarray(numbers(source)(0, source.size), np.float64)
