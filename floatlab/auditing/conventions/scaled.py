"""Codes of fp8, fp4 and int8 that are multiplied by scales: ModelOpt, compressed-tensors, DeepSeek, gpt-oss.

Sources: nvidia-modelopt (torch/quantization/qtensor, torch/export), compressed-tensors (compressors/),
DeepSeek-V3 (README_WEIGHTS.md, inference/kernel.py), gpt-oss (gpt_oss/torch/weights.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from floatlab.arrays.codec import decode_array
from floatlab.arrays.sources import ArraySource
from floatlab.auditing.ggml_blocks import E2M1
from floatlab.auditing.stored_parts import (
    FLOATS,
    FP8,
    Shape,
    StoredParts,
    Weight,
    block_of_scales,
    check_shape,
    grouped_shape,
    groups_of,
    opened,
    scale_reader,
    shape_error,
    zero_points,
)
from floatlab.auditing.weight_streams import (
    Reader,
    codes_as,
    divided,
    numbers,
    one_number,
    packed,
    product,
    spread,
    times,
)
from floatlab.errors import FileFormatError, UnsupportedError
from floatlab.files.checkpoints import StoredTensor

E8M0 = decode_array(np.arange(256, dtype=np.uint8), "e8m0").astype(np.float64)
_NVFP4_BLOCK, _MX_BLOCK = 16, 32
UNSCALED = "FP8 without scales"
# Tensors that are stored beside a weight but do not change its numbers: scales of activations, and ComfyUI's
# description of a layer. Like the weight's scales, they are not listed as tensors.
_ACTIVATIONS = (
    "input_scale", "input_global_scale", "input_zero_point", "input_amax", "output_scale", "comfy_quant",
)  # fmt: skip


def activations(parts: StoredParts, stem: str) -> tuple[str, ...]:
    """Return the names of tensors beside a weight that do not change its numbers, such as the scales of activations."""
    return parts.present(*(f"{stem}.{name}" for name in _ACTIVATIONS))


def _doubled(shape: Shape) -> Shape:
    """Return the shape of a weight whose elements are packed in pairs: its last axis is twice as long."""
    return (*shape[:-1], 2 * shape[-1])


def weight_with_scale(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise `weight` beside `weight_scale`: ModelOpt's formats, and scaled fp8 and int8 of any library."""
    weight, scale = parts.tensors[f"{stem}.weight"], parts.get(f"{stem}.weight_scale")
    is_packed = weight.kind == "uint8" and len(weight.shape) > 1
    if scale is None:
        if parts.get(f"{stem}.weight_scale_2") is not None:
            parts.need(f"{stem}.weight_scale", weight.name)
        if must_be_scaled(parts, weight):
            parts.need(_scale_needed(parts, stem, weight), weight.name)
        return None
    if is_packed and scale.kind == "e4m3fn":
        second = parts.need(f"{stem}.weight_scale_2", weight.name, "float32")
        return _nvfp4(parts, stem, weight, scale, second, divides=False)
    if is_packed and scale.kind in ("uint8", "e8m0fnu"):
        return _mxfp4(parts, stem, weight, scale, "ModelOpt MXFP4", ("modelopt",))
    if weight.kind == "e4m3fn" and scale.kind in ("uint8", "e8m0fnu"):
        return _mxfp8(parts, stem, weight, scale)
    if weight.kind in (*FP8, "int8") and scale.kind in FLOATS:
        return _scaled(parts, stem, weight, scale)
    if weight.kind in FLOATS:
        return None
    raise UnsupportedError(f"{weight.name} is {weight.dtype} with scales of {scale.dtype}: no known convention")


def must_be_scaled(parts: StoredParts, weight: StoredTensor) -> bool:
    """Return whether a weight must have a scale, such as `weight_scale`.

    Three conditions must hold. A configuration names the method of quantisation. The weight has several axes and a type
    for codes (fp8, int8 or uint8). No scale of another convention belongs to the weight.
    """
    others = parts.present(f"{weight.name}_scale_inv", f"{weight.name}.absmax")
    is_coded = weight.kind in (*FP8, "uint8", "int8") and len(weight.shape) > 1
    return bool(parts.settings.method) and is_coded and not others


# Ends of the names of scales, by the type of the codes; the most common one comes first.
_SCALES_OF = {
    "uint8": (".weight_scale", ".weight.absmax"),
    "int8": (".weight_scale", ".SCB", ".weight_scale_inv"),
    "": (".weight_scale", ".weight_scale_inv", ".scale_weight"),
}


def _scale_needed(parts: StoredParts, stem: str, weight: StoredTensor) -> str:
    """Return the name under which the missing scale of a weight would be stored.

    The name follows other weights of the checkpoint or, if there are none, the configuration.
    """
    if parts.present(f"{stem}.weight.quant_map"):
        return f"{stem}.weight.absmax"
    ends = _SCALES_OF.get(weight.kind, _SCALES_OF[""])
    known = max(ends, key=lambda end: parts.last_words[end.rpartition(".")[2]])
    if parts.last_words[known.rpartition(".")[2]]:
        return f"{stem}{known}"
    method, is_fp8 = parts.settings.method, weight.kind in FP8
    if method == "bitsandbytes" and not is_fp8:
        return f"{stem}{ends[1]}"
    return f"{stem}.weight_scale" + "_inv" * (method == "fp8" and is_fp8 and bool(parts.settings.blocks))


def _nvfp4(
    parts: StoredParts, stem: str, weight: StoredTensor, scale: StoredTensor, second: StoredTensor, divides: bool
) -> Weight:
    shape = _doubled(weight.shape)
    if shape[-1] % _NVFP4_BLOCK:
        raise FileFormatError(f"{weight.name} has rows of {shape[-1]:,} elements, which blocks of 16 do not divide")
    check_shape(scale, grouped_shape(shape, _NVFP4_BLOCK), weight.name)
    check_sizes(parts, weight, _NVFP4_BLOCK)
    block = (0, 0)
    if second.shape not in ((), (1,)):
        if len(shape) < 3:
            raise shape_error(second, "one number", weight.name)
        block = block_of_scales(parts, second, shape, weight.name)

    def make(codes: ArraySource, scales: ArraySource, last: ArraySource) -> Reader:
        blocks = spread(numbers(scales), shape, (1, _NVFP4_BLOCK))
        found = product(packed(codes, E2M1), blocks)
        if block == (0, 0):
            return divided(found, one_number(last)) if divides else times(found, one_number(last))
        whole = scale_reader(last, shape, block)
        if divides:
            return lambda first, count: found(first, count) / whole(first, count)
        return product(found, whole)

    name = f"{stem}.weight"
    said = "compressed-tensors NVFP4" if divides else "ModelOpt NVFP4"
    rule = "weight_scale ÷ weight_global_scale" if divides else "weight_scale × weight_scale_2"
    return Weight(
        name=name, shape=shape, convention=said, formula=f"e2m1 × {rule}",
        evidence=parts.settings.evidence("compressed-tensors" if divides else "modelopt"), codes=weight.name,
        parts=(weight.name, scale.name, second.name, *activations(parts, stem)),
        open=partial(opened, name, shape, (weight, scale, second), make),
    )  # fmt: skip


def check_sizes(parts: StoredParts, weight: StoredTensor, size: int) -> None:
    """Raise FileFormatError if the configuration names group sizes, but `size` is none of them."""
    if parts.settings.groups and size not in parts.settings.groups:
        said = " or ".join(map(str, sorted(parts.settings.groups)))
        raise FileFormatError(f"{parts.settings.source} has group_size {said}, but {weight.name} has blocks of {size}")


def powers_of_two(scales: ArraySource) -> Reader:
    """Return a reader of the numbers of e8m0 scales, whose codes are stored as bytes."""
    return codes_as(scales, E8M0)


def mx_weight(
    parts: StoredParts, name: str, stored: tuple[StoredTensor, StoredTensor], shape: Shape, convention: str,
    formula: str, evidence: str, codes: Callable[[ArraySource], Reader], extra: tuple[str, ...] = (),
) -> Weight:  # fmt: skip
    """Return a weight of an MX format: elements in blocks of 32 along the last axis, with e8m0 scales."""
    weight, scale = stored
    if shape[-1] % _MX_BLOCK:
        raise FileFormatError(f"{weight.name} has rows of {shape[-1]:,} elements, which blocks of 32 do not divide")
    check_shape(scale, grouped_shape(shape, _MX_BLOCK), weight.name)

    def make(elements: ArraySource, scales: ArraySource) -> Reader:
        return product(codes(elements), spread(powers_of_two(scales), shape, (1, _MX_BLOCK)))

    return Weight(
        name=name, shape=shape, convention=convention, formula=formula, evidence=evidence, codes=weight.name,
        parts=(weight.name, scale.name, *extra), open=partial(opened, name, shape, stored, make),
    )  # fmt: skip


def _mxfp4(
    parts: StoredParts, stem: str, weight: StoredTensor, scale: StoredTensor, convention: str, methods: tuple[str, ...]
) -> Weight:
    check_sizes(parts, weight, _MX_BLOCK)
    return mx_weight(
        parts, f"{stem}.weight", (weight, scale), _doubled(weight.shape), convention, "e2m1 × 2^(weight_scale − 127)",
        parts.settings.evidence(*methods), lambda codes: packed(codes, E2M1), activations(parts, stem),
    )  # fmt: skip


def _mxfp8(parts: StoredParts, stem: str, weight: StoredTensor, scale: StoredTensor) -> Weight:
    check_sizes(parts, weight, _MX_BLOCK)
    return mx_weight(
        parts, weight.name, (weight, scale), weight.shape, "ModelOpt MXFP8", "e4m3 × 2^(weight_scale − 127)",
        parts.settings.evidence("modelopt"), numbers, activations(parts, stem),
    )  # fmt: skip


def _scaled(parts: StoredParts, stem: str, weight: StoredTensor, scale: StoredTensor) -> Weight:
    """Return fp8 or int8 codes with a scale per tensor, row, group or block."""
    try:
        block = block_of_scales(parts, scale, weight.shape, weight.name)
    except FileFormatError:
        if not parts.settings.groups:
            raise
        block = 1, groups_of(parts, scale, weight.shape, weight.name)
    element = "int8" if weight.kind == "int8" else weight.kind.replace("e4m3fn", "e4m3") if weight.kind else ""
    zeros = zero_points(parts, stem, weight.name, (8, block[1], weight.shape[-1])) if element == "int8" else None
    if zeros is not None:
        check_shape(zeros, scale.shape, weight.name)
    elif element != "int8" and parts.get(f"{stem}.weight_zero_point") is not None:
        raise UnsupportedError(f"{weight.name} has codes of fp8 with zero points, which are not read")
    library = {"modelopt": "ModelOpt", "compressed-tensors": "compressed-tensors"}.get(parts.settings.method, "scaled")
    formula = f"{element} × weight_scale" if zeros is None else "(int8 − weight_zero_point) × weight_scale"
    return multiplied(
        parts, weight, scale, block, f"{library} {'INT8' if element == 'int8' else 'FP8'}", formula,
        ("modelopt", "compressed-tensors", "fp8", "fbgemm_fp8"), activations(parts, stem), zeros,
    )  # fmt: skip


def multiplied(
    parts: StoredParts, weight: StoredTensor, scale: StoredTensor, block: tuple[int, int], convention: str,
    formula: str, methods: tuple[str, ...], extra: tuple[str, ...], zeros: StoredTensor | None = None,
) -> Weight:  # fmt: skip
    """Return a weight whose numbers are codes × scales, or (codes − zero points) × scales.

    `block` has the numbers of rows and columns of a block with one scale. `methods` are the names of the convention in
    configuration files. `extra` has the names of further tensors that are stored beside the weight but do not change
    its numbers, as from `activations`.
    """
    shape = weight.shape

    def make(codes: ArraySource, scales: ArraySource, *points: ArraySource) -> Reader:
        scale_of = scale_reader(scales, shape, block)
        if not points:
            return product(numbers(codes), scale_of)
        read, zero_of = numbers(codes), scale_reader(points[0], shape, block)
        return lambda first, count: (read(first, count) - zero_of(first, count)) * scale_of(first, count)

    stored = (weight, scale) if zeros is None else (weight, scale, zeros)
    rows = shape[-2] if len(shape) > 1 else 1
    is_tiled = block[0] > 1 and block != (rows, shape[-1])
    of = f" per {block[0]}×{block[1]}" if is_tiled else ""
    assumed = f", blocks of {block[0]}×{block[1]} assumed" if is_tiled and not parts.settings.blocks else ""
    return Weight(
        name=weight.name, shape=shape, convention=convention, formula=formula + of,
        evidence=parts.settings.evidence(*methods) + assumed, codes=weight.name,
        parts=(*(each.name for each in stored), *extra), open=partial(opened, weight.name, shape, stored, make),
    )  # fmt: skip


def unscaled(parts: StoredParts, weight: StoredTensor) -> Weight | None:
    """Recognise an fp8 matrix without scales. Its codes are the numbers themselves."""
    if weight.kind not in FP8 or len(weight.shape) < 2 or "scale" in weight.name.rpartition(".")[2]:
        return None
    return Weight(
        name=weight.name, shape=weight.shape, convention=UNSCALED, formula=weight.kind.replace("e4m3fn", "e4m3"),
        evidence="the type in the file, and no scales", codes=weight.name, parts=(weight.name,),
        open=partial(opened, weight.name, weight.shape, (weight,), numbers),
    )  # fmt: skip


def weight_with_inverse_scale(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise codes with a scale `weight_scale_inv` (DeepSeek, transformers).

    In spite of the name of the scale, codes are multiplied by the scale.
    """
    scale = parts.get(f"{stem}.weight_scale_inv")
    if scale is None:
        return None
    weight = parts.need(f"{stem}.weight", scale.name, *FP8)
    if scale.kind not in (*FLOATS, "e8m0fnu"):
        raise FileFormatError(f"{scale.name} is {scale.dtype}, but a scale is {', '.join(FLOATS)} or e8m0")
    block = block_of_scales(parts, scale, weight.shape, weight.name)
    return multiplied(
        parts, weight, scale, block, "DeepSeek FP8", "e4m3 × weight_scale_inv", ("fp8",),
        activations(parts, stem),
    )  # fmt: skip


def compressed(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise `weight_packed` of compressed-tensors in fp4. Integer weights are recognised in `integers.py`."""
    weight = parts.tensors[f"{stem}.weight_packed"]
    if weight.kind != "uint8":
        return None
    if len(weight.shape) < 2:
        raise FileFormatError(f"{weight.name} has {len(weight.shape)} axes, but packed weights have two or three")
    scale = parts.need(f"{stem}.weight_scale", weight.name, "e4m3fn", "uint8", "e8m0fnu")
    if scale.kind != "e4m3fn":
        return _mxfp4(parts, stem, weight, scale, "compressed-tensors MXFP4", ("compressed-tensors",))
    second = parts.need(f"{stem}.weight_global_scale", weight.name, "float32")
    return _nvfp4(parts, stem, weight, scale, second, divides=True)


def blocks_and_scales(parts: StoredParts, stem: str, codes: str, scales: str) -> Weight:
    """Recognise gpt-oss: the last axis of the codes is a block of 16 bytes, which hold 32 elements.

    Each block has an e8m0 scale, so the array of scales has the axes of the codes except the last one. `codes` and
    `scales` are the suffixes of the names of both tensors.
    """
    weight = parts.tensors[f"{stem}{codes}"]
    scale = parts.need(f"{stem}{scales}", weight.name, "uint8", "e8m0fnu")
    if len(weight.shape) < 3 or weight.shape[-1] != _MX_BLOCK // 2:
        raise FileFormatError(f"{weight.name} has the shape {weight.shape}, but gpt-oss has blocks of 16 bytes last")
    shape = (*weight.shape[:-2], weight.shape[-2] * _MX_BLOCK)
    return mx_weight(
        parts, stem, (weight, scale), shape, "gpt-oss MXFP4", "e2m1 × 2^(scale − 127)",
        parts.settings.evidence("mxfp4"), lambda found: packed(found, E2M1),
    )  # fmt: skip
