"""The conventions that floatlab cannot decode: tensors with such codes must not be read as plain numbers."""

from __future__ import annotations

from floatlab.auditing.stored_parts import StoredParts, Weight
from floatlab.errors import UnsupportedError, quoted

# In each row: the suffix of the codes' names, the suffixes of the tensors stored beside them, the library, and the
# reason why its codes cannot be decoded.
_UNREAD = (
    (".codes", (".codebooks",), "AQLM's (indices into codebooks)"),
    (".indices", (".centroids",), "VPTQ's (indices into centroids)"),
    (".Qidxs", (".SU", ".SV"), "QuIP#'s (indices into a lattice)"),
    (".trellis", (".suh", ".svh"), "EXL3's (a trellis)"),
    (".q_weight", (".q_scale", ".q_perm", ".q_invperm", ".q_group_map", ".q_groups", ".q_scale_max"),
        "EXL2's (groups of different widths)"),
    (".W_q", (".scale", ".zero"), "HQQ's (packed along the rows)"),
    (".qweight", (".wscales", ".wtscale", ".wcscales", ".wzeros", ".smooth_factor", ".smooth_factor_orig"),
        "SVDQuant's (in the order of matrix units)"),
    (".B", (".s",), "Marlin's (in the order of matrix units)"),
    (".weight", (".weight_scales",), "EETQ's (in the order of matrix units)"),
    (".weight._data", (".weight._shift",), "quanto's with zero points (packed groups)"),
    (".dense_weights", (".row_offsets", ".col_vals"), "SpQR's (scales of two levels)"),
    (".compressed", (".bitmask",), "of a sparse weight of compressed-tensors (bit masks)"),
    (".weight_packed", (".meta",), "Marlin's with 2:4 sparsity (in the order of matrix units)"),
)  # fmt: skip
ENDS = tuple(dict.fromkeys(end for end, _, _ in _UNREAD))
PARTS = tuple(dict.fromkeys(part for _, beside, _ in _UNREAD for part in beside))
_INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


def unread(parts: StoredParts, name: str) -> Weight | None:
    """Raise UnsupportedError if a tensor has the codes of a convention that is not read; return None otherwise."""
    for end, beside, words in _UNREAD:
        stem = name.removesuffix(end)
        if stem == name or not parts.present(*(f"{stem}{each}" for each in beside)):
            continue
        weight = parts.tensors[name]
        if weight.kind in _INTEGERS or end == ".compressed":
            raise UnsupportedError(f"{quoted(name, 90)} is {words}, which is not read")
    if parts.settings.method == "bitnet" and name.endswith(".weight") and parts.tensors[name].kind == "uint8":
        raise UnsupportedError(f"{quoted(name, 90)} is BitNet's (codes of 2 bits), which is not read")
    return None
