"""Finds samples of a layer's inputs in a file whose arrays are named after the layers."""

from __future__ import annotations

from math import prod

from floatlab.auditing.quantized import QuantizedCheckpoint
from floatlab.errors import FileFormatError, quoted
from floatlab.files.safe_open import shown

_ENDS = ("", ".input", ".inputs")


def layer_inputs(samples: QuantizedCheckpoint, tensor: str, shape: tuple[int, ...]) -> str:
    """Return the name of the array with samples of the inputs that a weight multiplies, or "" if there is none.

    For `mlp.weight`, the names `mlp.weight`, `mlp`, `mlp.input` and `mlp.inputs` are tried in this order. For a tensor
    that is not a matrix, such as the weight of a norm, the result is empty. Raises FileFormatError if the array has no
    samples, or if its last axis is not as long as the last axis of the weight.
    """
    if len(shape) != 2:
        return ""
    stem = tensor.removesuffix(".weight")
    for name in dict.fromkeys((tensor, *(f"{stem}{end}" for end in _ENDS))):
        if name not in samples:
            continue
        with samples.open(name) as source:
            found = source.shape
        if found and not prod(found):
            raise FileFormatError(
                f"{quoted(name, 80)} in {shown(samples.name)} has no samples ({'×'.join(map(str, found))})"
            )
        if not found or found[-1] != shape[1]:
            sizes = ["×".join(map(str, each)) or "one number" for each in (found, shape)]
            raise FileFormatError(
                f"{quoted(name, 80)} in {shown(samples.name)} has the shape {sizes[0]}, but inputs of "
                f"{quoted(tensor, 80)} ({sizes[1]}) have {shape[1]} columns"
            )
        return name
    return ""
