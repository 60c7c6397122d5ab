"""Weights whose parts are joined to the layer's name by an underscore: `w13_weight` beside `w13_weight_scale`.

vLLM uses such names for tensors with the weights of all experts. `w13_weight` has the rows of gate_proj and up_proj,
and `w2_weight` has the rows of down_proj. Source: vLLM (model_executor/layers/fused_moe/layer.py and the quantisation
methods in the same folder).
"""

from __future__ import annotations

from copy import copy

from floatlab.auditing.conventions.integers import packed_words
from floatlab.auditing.conventions.scaled import compressed, weight_with_inverse_scale, weight_with_scale
from floatlab.auditing.stored_parts import StoredParts, Weight
from floatlab.errors import FloatlabError

_CODES = ("uint8", "int8", "int32", "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")
_ENDS = (
    "weight", "weight_packed", "weight_scale", "weight_scale_inv", "weight_scale_2", "weight_global_scale",
    "weight_shape", "weight_zero_point", "weight_g_idx", "input_scale", "input_global_scale",
)  # fmt: skip


def joined(parts: StoredParts, stem: str, end: str) -> Weight | None:
    """Recognise the weight whose codes are `STEM_weight` or `STEM_weight_packed`; `end` is the part after `STEM_`."""
    if parts.tensors[f"{stem}_{end}"].kind not in _CODES:
        return None
    names = {f"{stem}.{each}": f"{stem}_{each}" for each in _ENDS if f"{stem}_{each}" in parts.tensors}
    dotted = copy(parts)
    dotted.tensors = {**parts.tensors, **{name: parts.tensors[stored] for name, stored in names.items()}}
    rules = (compressed, packed_words) if end == "weight_packed" else (weight_with_inverse_scale, weight_with_scale)
    try:
        found = next((weight for rule in rules if (weight := rule(dotted, stem)) is not None), None)
    except FloatlabError as trouble:
        raise type(trouble)(str(trouble).replace(f"{stem}.", f"{stem}_")) from None
    if found is None:
        return None
    return found.replace(name=f"{stem}_weight", parts=tuple(names.get(each, each) for each in found.parts))
