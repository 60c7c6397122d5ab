"""Weights of MLX: codes of 2 to 8 bits in 32-bit words, with scales for groups and, in affine mode, biases.

Source: MLX (mlx/ops.cpp, affine_quantize; mlx/backend/cpu/quantized.cpp; python/mlx/nn/layers/quantized.py).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from floatlab.arrays.codec import decode_array
from floatlab.arrays.sources import ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.conventions.scaled import E8M0
from floatlab.auditing.ggml_blocks import E2M1
from floatlab.auditing.stored_parts import FLOATS, Shape, StoredParts, Weight, check_shape, opened, shape_error
from floatlab.auditing.weight_streams import Reader, codes_as, numbers, octets, packed, product, spread
from floatlab.errors import FileFormatError, UnsupportedError, quoted
from floatlab.files.checkpoints import StoredTensor

_BITS = (2, 3, 4, 5, 6, 8)
_WORD = 32
_E4M3 = decode_array(np.arange(256, dtype=np.uint8), "e4m3", np.float64)
# The modes without biases. For each mode: the values of the element codes, those of the scale codes, and the formula.
_MODES = {
    "mxfp4": (E2M1, E8M0, "e2m1 × 2^(scales − 127)"),
    "mxfp8": (_E4M3, E8M0, "e4m3 × 2^(scales − 127)"),
    "nvfp4": (E2M1, _E4M3, "e2m1 × scales"),
}


def mlx(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise MLX: `weight` in 32-bit words beside `scales`, in affine mode also beside `biases`."""
    weight = parts.tensors[f"{stem}.weight"]
    if weight.kind != "uint32" or (parts.get(f"{stem}.scales") is None and parts.settings.method != "mlx"):
        return None
    scale = parts.need(f"{stem}.scales", weight.name, *FLOATS, "uint8")
    bits, size, mode = _sizes(parts, stem, weight.name)
    if not weight.shape or weight.shape[-1] * _WORD % bits:
        raise FileFormatError(f"{weight.name} has {weight.shape} words, which are no codes of {bits} bits")
    shape = (*weight.shape[:-1], weight.shape[-1] * _WORD // bits)
    if shape[-1] % size:
        raise shape_error(weight, f"rows that groups of {size} codes of {bits} bits divide", stem)
    check_shape(scale, (*shape[:-1], shape[-1] // size), weight.name)
    if mode == "affine":
        bias = parts.need(f"{stem}.biases", weight.name, *FLOATS)
        check_shape(bias, scale.shape, weight.name)
        stored: tuple[StoredTensor, ...] = (weight, scale, bias)
        make, formula = partial(_affine, shape, bits, size), f"u{bits} × scales + biases"
    elif mode in _MODES:
        parts.need(scale.name, weight.name, "uint8")
        values, _, formula = _MODES[mode]
        if len(values) != 1 << bits:
            raise FileFormatError(f"{parts.settings.source} has {bits} bits for {mode} in {weight.name}")
        stored, make = (weight, scale), partial(_of_mode, shape, bits, size, mode)
    else:
        raise UnsupportedError(f"{weight.name} is in MLX's mode {quoted(mode)}, which is not read")
    name = "INT" + str(bits) if mode == "affine" else mode.upper()
    return Weight(
        name=weight.name, shape=shape, convention=f"MLX {name}", formula=formula,
        evidence=parts.settings.evidence("mlx"), codes=weight.name, parts=tuple(each.name for each in stored),
        open=partial(opened, weight.name, shape, stored, make),
    )  # fmt: skip


def _sizes(parts: StoredParts, stem: str, owner: str) -> tuple[int, int, str]:
    """Return the number of bits of a code, the number of elements of a group, and the mode of this layer."""
    own = parts.settings.option(stem)
    said = {**dict(parts.settings.options), **(own if isinstance(own, dict) else {})}
    bits, size, mode = said.get("bits"), said.get("group_size"), said.get("mode", "affine")
    if parts.settings.method != "mlx":
        raise UnsupportedError(f"{owner} is MLX's: the config.json beside the file is needed, which says the bits")
    if type(bits) is not int or bits not in _BITS or type(size) is not int or size < 1:
        raise UnsupportedError(f"{owner} has {quoted(str(bits))} bits in groups of {quoted(str(size))}: not MLX's")
    return bits, size, str(mode)


def _affine(
    shape: Shape, bits: int, size: int, codes: ArraySource, scales: ArraySource, biases: ArraySource
) -> Reader:  # fmt: skip
    read = _codes(codes, bits)
    scale_of, bias_of = (spread(numbers(each), shape, (1, size)) for each in (scales, biases))
    return lambda first, count: read(first, count) * scale_of(first, count) + bias_of(first, count)


def _of_mode(shape: Shape, bits: int, size: int, mode: str, codes: ArraySource, scales: ArraySource) -> Reader:
    elements, factors, _ = _MODES[mode]
    return product(packed(codes, elements, bits), spread(codes_as(scales, factors), shape, (1, size)))


def _codes(source: ArraySource, bits: int) -> Reader:
    """Return a reader of codes that are packed without gaps, beginning with the low bits of the first byte."""
    if 8 % bits == 0:
        return packed(source, np.arange(1 << bits, dtype=np.float64), bits)

    def read(first: int, count: int) -> Array:
        start, stop = first * bits // 8, -(-(first + count) * bits // 8)
        held = np.append(octets(source, start, stop - start), np.uint8(0)).astype(np.uint16)
        place = np.arange(first, first + count) * bits - start * 8
        pair = held[place >> 3] | held[(place >> 3) + 1] << np.uint16(8)
        found: Array = (pair >> (place & 7).astype(np.uint16) & np.uint16((1 << bits) - 1)).astype(np.float64)
        return found

    return read
