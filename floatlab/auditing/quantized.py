"""Quantised checkpoints as numbers: `load_quantized`, and the conventions of quantisation that it recognises."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Self

from floatlab.arrays.codec import float_for, native, round_array
from floatlab.arrays.sources import ArraySource, array_format
from floatlab.arrays.types import Array
from floatlab.auditing.conventions.described import bitsandbytes, torchao
from floatlab.auditing.conventions.integers import packed_words, transposed
from floatlab.auditing.conventions.joined import joined
from floatlab.auditing.conventions.mlx import mlx
from floatlab.auditing.conventions.renamed import experts, other_scale, quanto
from floatlab.auditing.conventions.scaled import (
    blocks_and_scales,
    compressed,
    unscaled,
    weight_with_inverse_scale,
    weight_with_scale,
)
from floatlab.auditing.conventions.unread import ENDS as UNREAD_ENDS
from floatlab.auditing.conventions.unread import PARTS as UNREAD_PARTS
from floatlab.auditing.conventions.unread import unread
from floatlab.auditing.ggml_blocks import is_read, reader, unsupported
from floatlab.auditing.stored_parts import StoredParts, Weight, opened
from floatlab.auditing.weight_streams import Reader, one_number, times
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError, printable, quoted
from floatlab.files.checkpoints import Checkpoint, StoredTensor, open_checkpoint
from floatlab.fpmode import in_default_mode

Rule = Callable[[StoredParts, str], Weight | None]

# The codes of a convention have names with a certain suffix. For each suffix: the functions that recognise conventions.
# The first function that returns a weight decides.
_RULES: tuple[tuple[str, tuple[Rule, ...]], ...] = (
    (".weight_packed", (compressed, packed_words)),
    ("_qdata", (lambda parts, stem: torchao(parts, f"{stem}_qdata"),)),
    (".qweight", (transposed,)),
    ("_blocks", (lambda parts, stem: blocks_and_scales(parts, stem, "_blocks", "_scales"),)),
    (".blocks", (lambda parts, stem: blocks_and_scales(parts, stem, ".blocks", ".scales"),)),
    (".weight", (mlx, weight_with_inverse_scale, bitsandbytes, other_scale, weight_with_scale)),
    (".weight._data", (quanto,)),
    ("_proj", (experts,)),
    ("_weight", (partial(joined, end="weight"),)),
    ("_weight_packed", (partial(joined, end="weight_packed"),)),
)
# For each suffix of scales or zero points (`a.weight_scale`): the suffixes that their codes may have (`a.weight`).
_OWNERS = (
    (".weight_scale_inv", (".weight",)),
    (".weight_scale_2", (".weight",)),
    (".weight_global_scale", (".weight_packed",)),
    (".weight_scale", (".weight", ".weight_packed")),
    ("_scales", ("_blocks",)),
    (".qzeros", (".qweight",)),
    (".absmax", ("",)),
    (".scale_weight", (".weight",)),
    ("_proj_scale_inv", ("_proj",)),
)
# The suffixes of all parts but the codes. If a weight cannot be read, tensors with these suffixes count as its parts.
_PARTS = (
    ".weight_scale", ".weight_scale_2", ".weight_scale_inv", ".weight_global_scale", ".weight_zero_point",
    ".weight_shape", ".weight_g_idx", ".input_scale", ".input_global_scale", ".weight.absmax", ".weight.quant_map",
    ".weight.nested_absmax", ".weight.nested_quant_map", ".weight.quant_state.bitsandbytes__nf4",
    ".weight.quant_state.bitsandbytes__fp4", ".scales", ".qzeros", ".g_idx", "_scales", "_scale", "_weight_scale",
    "_weight_scale_inv", "_weight_scale_2", "_weight_global_scale", ".biases", ".comfy_quant", ".scale_weight",
    *UNREAD_PARTS,
)  # fmt: skip


class QuantizedCheckpoint(Mapping[str, Array]):
    """A checkpoint as numbers: the quantised weights, and all other tensors, by their names.

    As a mapping, it gives each tensor as an array of float32, correctly rounded (`array` also gives other formats).
    Integers and truth values are unchanged. An array is read when it is requested. `weights` has the quantised weights
    by name, with their conventions. `plain` has the other tensors. `unreadable` has the reason for each tensor that
    cannot be read as numbers: damaged or unsupported codes, and scales or zero points without codes. `unsupported` has
    the names of the codes whose type or layout floatlab does not read. Close the checkpoint after use, or open it in a
    `with` statement.
    """

    def __init__(self, checkpoint: Checkpoint, takes_unscaled: bool = False) -> None:
        """Take an open checkpoint, and find its quantised weights.

        If `takes_unscaled`, matrices in fp8 without scales count as quantised weights, too.
        """
        self.checkpoint, self.name = checkpoint, checkpoint.name
        self.weights: dict[str, Weight] = {}
        self.unreadable: dict[str, str] = {}
        self.unsupported: set[str] = set()
        self.parts = StoredParts(checkpoint, takes_unscaled)
        used: dict[str, str] = {}
        for stored in checkpoint.tensors.values():
            try:
                weight = recognised(self.parts, stored)
                if weight is None:
                    continue
                for part in weight.parts:
                    if part in used:
                        raise FileFormatError(f"{quoted(part, 90)} belongs to {used[part]} and to {weight.name}")
                if weight.name in self.weights or (weight.name in checkpoint.tensors and weight.name != stored.name):
                    raise FileFormatError(f"{quoted(weight.name, 90)} is stored twice, once as a quantised weight")
            except FloatlabError as trouble:
                self.unreadable[stored.name] = str(trouble)
                if isinstance(trouble, UnsupportedError):
                    self.unsupported.add(stored.name)
                continue
            used |= dict.fromkeys(weight.parts, weight.name)
            self.weights[weight.name] = weight
        unread = {part for name in self.unreadable for part in self._parts_of(name)}
        self.plain = {
            name: stored
            for name, stored in checkpoint.tensors.items()
            if name not in used and name not in self.unreadable and name not in unread
        }
        self._find_orphans()

    def _parts_of(self, name: str) -> Iterator[str]:
        """Yield the names that the stored parts of an unreadable weight may have in the known conventions."""
        ends = (*(end for end, _ in _RULES), *UNREAD_ENDS)
        stem = next((name.removesuffix(end) for end in ends if name.endswith(end)), name)
        yield from self.parts.present(*(f"{stem}{part}" for part in _PARTS))

    def _find_orphans(self) -> None:
        """Record scales and zero points without codes as unreadable."""
        for name in list(self.plain):
            for end, owners in _OWNERS:
                stem = name.removesuffix(end)
                if stem != name and not any(f"{stem}{owner}" in self.checkpoint.tensors for owner in owners):
                    if end != "_scales" or self.plain[name].kind == "uint8":
                        part = "has zero points" if end == ".qzeros" else "is a scale"
                        self.unreadable[name] = f"{quoted(name, 90)} {part}, but its weight is missing"
                        del self.plain[name]
                    break

    def open(self, name: str) -> ArraySource:
        """Open a tensor as a stream of numbers; raises FileFormatError if it is missing or cannot be read."""
        if name in self.weights:
            return self.weights[name].open()
        if name in self.unreadable:
            raise FileFormatError(self.unreadable[name])
        return self.checkpoint.open(name)

    @property
    def names(self) -> list[str]:
        """The names of all tensors in the order of the file. A quantised weight has the place of its codes."""
        place = {weight.codes: name for name, weight in self.weights.items()}
        names = (place.get(name, name) for name in self.checkpoint.tensors)
        return [name for name in names if name in self]

    @property
    def conventions(self) -> dict[str, int]:
        """The conventions of the weights, each with the number of its weights."""
        found: dict[str, int] = {}
        for weight in self.weights.values():
            found[weight.convention] = found.get(weight.convention, 0) + 1
        return found

    @in_default_mode
    def array(self, name: str, format: str = "binary32") -> Array:
        """Return a whole tensor as floats rounded to a format (`fp32`, `bf16`, `fp64`); integers are unchanged.

        At most 2^25 numbers are read at once; `open(name).blocks()` reads larger tensors.
        """
        with self.open(name) as source:
            piece = source.whole()
            if source.dtype is not None and source.dtype.kind in "iub":
                return native(piece)
            found: Array = round_array(piece, array_format(format))
            return found.astype(float_for(array_format(format)), copy=False)

    def __getitem__(self, name: str) -> Array:
        """Return a tensor as float32, or as integers if it is stored as integers; raises KeyError if it is missing."""
        if name not in self:
            raise KeyError(name)
        return self.array(name)

    def __contains__(self, name: object) -> bool:
        """Return whether the checkpoint has a tensor of this name, even if the tensor cannot be read."""
        return name in self.weights or name in self.plain or name in self.unreadable

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the tensors."""
        return iter(self.names)

    def __len__(self) -> int:
        """Return the number of tensors."""
        return len(self.weights) + len(self.plain) + len(self.unreadable)

    def close(self) -> None:
        """Close the files."""
        self.checkpoint.close()

    def __enter__(self) -> Self:
        """Return the checkpoint; it is closed at the end of the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()


def recognised(parts: StoredParts, stored: StoredTensor) -> Weight | None:
    """Return the quantised weight whose codes this tensor has, if any; raises FloatlabError if its parts are wrong."""
    if not stored.kind:
        return _ggml(parts, stored)
    if stored.name.endswith(UNREAD_ENDS):
        unread(parts, stored.name)
    for end, rules in _RULES:
        if stored.name.endswith(end):
            stem = stored.name.removesuffix(end)
            found = next((weight for rule in rules if (weight := rule(parts, stem)) is not None), None)
            break
    else:
        found = None
    return unscaled(parts, stored) if found is None and parts.takes_unscaled else found


def _ggml(parts: StoredParts, stored: StoredTensor) -> Weight | None:
    """Return a weight of one of GGUF's quantised types; NVFP4 may also have a scale for the whole tensor."""
    if parts.checkpoint.kind != "gguf":
        return None  # the type is not supported
    if not is_read(stored.dtype):
        raise unsupported(printable(f"{parts.checkpoint.name}::{stored.name}"), stored.dtype)
    stem = stored.name.removesuffix(".weight")
    scales = parts.present(f"{stem}.scale", f"{stored.name}.scale") if stored.dtype == "NVFP4" else ()
    second = parts.need(scales[0], stored.name, "float32") if scales else None

    def make(blocks: ArraySource, *scale: ArraySource) -> Reader:
        read = reader(blocks, stored.dtype)
        return times(read, one_number(scale[0])) if scale else read

    present = (stored,) if second is None else (stored, second)
    return Weight(
        name=stored.name, shape=stored.shape, convention=f"GGUF {stored.dtype}",
        formula=f"ggml's {stored.dtype}" + (f" × {scales[0].rpartition('.')[2]}" if scales else ""),
        evidence="the type in the file", codes=stored.name, parts=tuple(each.name for each in present),
        open=partial(opened, stored.name, stored.shape, present, make),
    )  # fmt: skip


@in_default_mode
def load_quantized(place: str | os.PathLike[str] | Mapping[str, object]) -> QuantizedCheckpoint:
    """Open a quantised checkpoint as a mapping of names to arrays of numbers.

    Weights are paired with their scales by the conventions of ModelOpt, compressed-tensors, DeepSeek, torchao, gpt-oss,
    bitsandbytes, GPTQ, AWQ, MLX, quanto, ComfyUI, TensorRT-LLM and GGUF. Conventions are recognised by names, by
    shapes, and by the configuration beside the file. A weight of another convention is listed in `unreadable`, with the
    reason.

    Parameters
    ----------
    place
        A `.safetensors`, `.gguf`, `.npz` or `.npy` file, an index of several `.safetensors`, a folder, or a mapping of
        names to arrays.

    Returns
    -------
    QuantizedCheckpoint
        A mapping. Its `weights` give the convention of each quantised weight, and `open(name)` reads a tensor piece by
        piece.

    Raises
    ------
    FileFormatError
        If a file is not valid. Weights that cannot be read are listed in `unreadable`; a request for such a weight
        raises this error.

    Examples
    --------
    >>> import numpy as np
    >>> codes = np.uint8([[0x21] * 8])  # the codes 1 and 2 of e2m1: 0.5 and 1
    >>> q = load_quantized({"a_blocks": codes.reshape(1, 1, 8).repeat(2, axis=2), "a_scales": np.uint8([[128]])})
    >>> q["a"].tolist() == [[1.0, 2.0] * 16], q.weights["a"].convention, q.weights["a"].formula
    (True, 'gpt-oss MXFP4', 'e2m1 × 2^(scale − 127)')
    """
    return QuantizedCheckpoint(open_checkpoint(place))
