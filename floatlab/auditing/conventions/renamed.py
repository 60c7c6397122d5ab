"""Recognise fp8 and int8 weights whose scales are not called `weight_scale`, as in ComfyUI and TensorRT-LLM.

Sources: ComfyUI (QUANTIZATION.md), ModelOpt (torch/export, TensorRT-LLM), DeepSeek-V3 (inference/convert.py),
transformers (integrations/finegrained_fp8.py, FP8Experts; integrations/fbgemm_fp8.py, FbgemmFp8Llama4TextExperts),
optimum-quanto (tensor/weights/qbytes.py).
"""

from __future__ import annotations

from floatlab.auditing.conventions.scaled import activations, multiplied, must_be_scaled
from floatlab.auditing.stored_parts import FLOATS, FP8, StoredParts, Weight, block_of_scales
from floatlab.auditing.weight_streams import octets
from floatlab.errors import UnsupportedError, quoted
from floatlab.files.checkpoints import StoredTensor
from floatlab.files.json_files import parse_object

_E8M0 = "e8m0fnu"
# Names of scales, each with the convention that uses this name.
_SCALES = (("scale_weight", "ComfyUI"), ("weights_scaling_factor", "TensorRT-LLM"), ("scale", "DeepSeek inference"))
_ACTIVATIONS = ("scale_input", "activation_scaling_factor")
_EXPERTS = ("_scale_inv", "_scales_inv", "_scale", "_weight_scale")
# Names of formats in `comfy_quant` (ComfyUI) whose scales are numbers in row-major order.
_COMFY = ("float8_e4m3fn", "float8_e5m2", "int8_tensorwise", "int8_blockwise")
_MOST_DESCRIPTION = 1 << 16


def other_scale(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise the codes `STEM.weight` in fp8 or int8 if the name of their scale is not `STEM.weight_scale`."""
    weight = parts.tensors[f"{stem}.weight"]
    _check_comfy(parts, stem)
    if weight.kind not in (*FP8, "int8"):
        return None
    for name, library in _SCALES:
        scale = parts.get(f"{stem}.{name}")
        is_int8 = weight.kind == "int8"
        if scale is None or scale.kind not in (*FLOATS, _E8M0) or (is_int8 and name == "scale"):
            continue
        extra = (*activations(parts, stem), *parts.present(*(f"{stem}.{each}" for each in _ACTIVATIONS)))
        return _scaled(parts, weight, scale, f"{library} {'INT8' if is_int8 else 'FP8'}", extra)
    return None


def _scaled(
    parts: StoredParts, weight: StoredTensor, scale: StoredTensor, convention: str, extra: tuple[str, ...] = ()
) -> Weight:
    block = block_of_scales(parts, scale, weight.shape, weight.name)
    element = weight.kind.replace("e4m3fn", "e4m3") if weight.kind in FP8[:2] else weight.kind
    formula = f"{element} × {_last(weight, scale)}"
    return multiplied(parts, weight, scale, block, convention, formula, ("fp8", "modelopt", "fbgemm_fp8"), extra)


def _last(weight: StoredTensor, scale: StoredTensor) -> str:
    """Return the last part of a scale's name.

    If the scale's name is the name of the codes, followed by `_` and an ending, the last part is this ending: `scale`
    in `a.weight_scale`. Otherwise, the last part is the part after the last dot.
    """
    return scale.name.removeprefix(f"{weight.name}_").rpartition(".")[2]


def _check_comfy(parts: StoredParts, stem: str) -> None:
    """Raise UnsupportedError if ComfyUI's description of a weight names a format that is not read, such as NVFP4.

    ComfyUI stores the scales of block formats in the 128×4 layout, and pads the codes.
    """
    stored = parts.get(f"{stem}.comfy_quant")
    if stored is None:
        return
    with stored.open() as source:
        said = parse_object(octets(source, 0, min(source.size, _MOST_DESCRIPTION)).tobytes(), f"{stored.name} ")
    format = said.get("format")
    if format not in _COMFY:
        raise UnsupportedError(f"{quoted(f'{stem}.weight', 90)} is ComfyUI's {quoted(str(format))}, which is not read")


def experts(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise fp8 weights of all experts in one tensor `NAME_proj`, beside `NAME_proj_scale_inv` or similar names.

    There is a scale for each block of the last two axes. Alternatively, all elements along one axis share a scale; this
    axis has length 1 in the array of scales.
    """
    weight = parts.tensors[f"{stem}_proj"]
    if weight.kind not in FP8:
        return None
    names = parts.present(*(f"{weight.name}{end}" for end in _EXPERTS))
    if not names:
        if must_be_scaled(parts, weight):
            parts.need(f"{weight.name}_scale_inv", weight.name)
        return None
    scale = parts.need(names[0], weight.name, *FLOATS, _E8M0)
    shape = weight.shape
    if len(shape) == 3 and scale.shape == (shape[0], 1, shape[2]):
        element = weight.kind.replace("e4m3fn", "e4m3")
        return multiplied(
            parts, weight, scale, (shape[1], 1), "scaled FP8", f"{element} × {_last(weight, scale)}",
            ("fbgemm_fp8", "fp8"), (),
        )  # fmt: skip
    return _scaled(parts, weight, scale, "scaled FP8")


def quanto(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise quanto's weights of 8 bits: `weight._data` in int8 or fp8, beside `weight._scale`."""
    codes = parts.tensors[f"{stem}.weight._data"]
    if codes.kind not in (*FP8, "int8"):
        return None
    scale = parts.need(f"{stem}.weight._scale", codes.name, *FLOATS)
    found = _scaled(parts, codes, scale, f"quanto {'INT8' if codes.kind == 'int8' else 'FP8'}")
    return found.replace(name=f"{stem}.weight")
