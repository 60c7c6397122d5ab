"""Canonical names of tensors: those that transformers uses, without prefix and without `.weight`.

Sources: gguf-py (gguf/constants.py, gguf/tensor_mapping.py), Llama (meta-llama/llama-models, model.py), Mixtral and
gpt-oss in transformers (models/mixtral, models/gpt_oss), gpt-oss (gpt_oss/torch/weights.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain

_PREFIXES = ("model.", "language_model.", "module.", "_orig_mod.", "base_model.")

# Names outside of the layers.
_GGUF = {
    "token_embd": "embed_tokens", "output": "lm_head", "output_norm": "norm", "rope_freqs": "rope_freqs",
}  # fmt: skip
_META = {"tok_embeddings": "embed_tokens", "output": "lm_head"}
# Names inside of a layer: llama.cpp's `blk.N.…`, Llama's `layers.N.…`, gpt-oss's `block.N.…`.
_GGUF_LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "attn_qkv": "self_attn.qkv_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "attn_q_a": "self_attn.q_a_proj", "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa", "attn_kv_b": "self_attn.kv_b_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj", "ffn_gate_inp": "mlp.gate",
    "ffn_gate_exps": "mlp.experts.gate_proj", "ffn_up_exps": "mlp.experts.up_proj",
    "ffn_down_exps": "mlp.experts.down_proj", "ffn_gate_up_exps": "mlp.experts.gate_up_proj",
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj", "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}  # fmt: skip
_META_LAYER = {
    "attention.wq": "self_attn.q_proj", "attention.wk": "self_attn.k_proj", "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj", "feed_forward.w1": "mlp.gate_proj", "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj", "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
}  # fmt: skip
_GPT_OSS_LAYER = {
    "mlp.mlp1_weight": "mlp.experts.gate_up_proj", "mlp.mlp2_weight": "mlp.experts.down_proj",
    "mlp.mlp1_bias": "mlp.experts.gate_up_proj_bias", "mlp.mlp2_bias": "mlp.experts.down_proj_bias",
    "mlp.gate": "mlp.gate", "attn.qkv": "self_attn.qkv_proj", "attn.out": "self_attn.o_proj",
}  # fmt: skip
# Other names of the same parts in transformers.
_VARIANTS = (
    (re.compile(r"\bblock_sparse_moe\b"), "mlp"), (re.compile(r"(experts\.\d+)\.w1$"), r"\1.gate_proj"),
    (re.compile(r"(experts\.\d+)\.w2$"), r"\1.down_proj"), (re.compile(r"(experts\.\d+)\.w3$"), r"\1.up_proj"),
    (re.compile(r"\bfeed_forward\.experts\b"), "mlp.experts"), (re.compile(r"\bmlp\.router$"), "mlp.gate"),
    (re.compile(r"\bshared_expert\b"), "shared_experts"), (re.compile(r"\bqkv$"), "qkv_proj"),
    (re.compile(r"\bin_proj_qkv$"), "qkv_proj"), (re.compile(r"(experts)\.w13_weight$"), r"\1.gate_up_proj"),
    (re.compile(r"(experts)\.w2_weight$"), r"\1.down_proj"),
)  # fmt: skip
_LAYERS = (
    (re.compile(r"blk\.(\d+)\.(.+)"), _GGUF_LAYER), (re.compile(r"block\.(\d+)\.(.+)"), _GPT_OSS_LAYER),
    (re.compile(r"layers\.(\d+)\.(.+)"), _META_LAYER),
)  # fmt: skip

_FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}
_EXPERTS = re.compile(r"(.*\bexperts)\.(\w+)")
_EXPERT = re.compile(r"(.*\bexperts)\.(\d+)\.(\w+)")


def canonical(name: str) -> str:
    """Return a tensor's name in the convention of transformers, without prefixes and without `.weight`.

    >>> canonical("blk.3.attn_q.weight"), canonical("model.layers.3.self_attn.q_proj.weight")
    ('layers.3.self_attn.q_proj', 'layers.3.self_attn.q_proj')
    >>> canonical("block.0.mlp.mlp1_weight"), canonical("layers.1.feed_forward.w2.weight")
    ('layers.0.mlp.experts.gate_up_proj', 'layers.1.mlp.down_proj')
    """
    if name.endswith(".bias"):
        return f"{canonical(name.removesuffix('.bias'))}.bias"
    found = name.removesuffix(".weight")
    while (prefix := next((each for each in _PREFIXES if found.startswith(each)), None)) is not None:
        found = found.removeprefix(prefix)
    if found == name.removesuffix(".weight"):  # GGUF and Llama use no prefixes
        found = _GGUF.get(found, found) if found in _GGUF else _META.get(found, found)
        for pattern, table in _LAYERS:
            if (layer := pattern.fullmatch(found)) and layer[2] in table:
                found = f"layers.{layer[1]}.{table[layer[2]]}"
    for pattern, other in _VARIANTS:
        found = pattern.sub(other, found)
    return found


def permutes_rope(name: str) -> bool:
    """Return whether a name is that of q or k in llama.cpp or Llama, whose rows have another order in transformers.

    Rotary position embeddings (rope) rotate pairs of rows of a head. In llama.cpp and Llama, these are neighbouring
    rows; in transformers, they are half a head apart.
    """
    return re.match(r"blk\.\d+\.attn_[qk]\.|layers\.\d+\.attention\.w[qk]\.", name) is not None


def stated_heads(heads: Mapping[str, tuple[int, ...]], name: str) -> tuple[int, ...]:
    """Return the stated numbers of attention heads that a tensor may have.

    `heads` has the numbers that are stated for "q_proj" and for "k_proj". For tensors with other names, the result has
    the numbers stated for either.

    >>> heads = {"q_proj": (32,), "k_proj": (8,)}
    >>> stated_heads(heads, "blk.3.attn_k.weight"), stated_heads(heads, "layers.3.key.weight")
    ((8,), (32, 8))
    """
    last = canonical(name).rpartition(".")[2]
    return heads.get(last, ()) if last in ("q_proj", "k_proj") else tuple(dict.fromkeys(chain(*heads.values())))


def parts_of(name: str, known: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the names of the tensors that a fused or stacked tensor consists of.

    A fused tensor holds several weights, such as q, k and v. A stacked tensor holds the same weight of all experts. The
    result has a tuple for each expert, or one tuple if there are no experts; the result is empty for other tensors.
    `known` has the names of all tensors; the number of experts is taken from these names.

    >>> parts_of("layers.0.self_attn.qkv_proj", ["layers.0.self_attn.q_proj"])
    [('layers.0.self_attn.q_proj', 'layers.0.self_attn.k_proj', 'layers.0.self_attn.v_proj')]
    >>> parts_of("a.experts.down_proj", ["a.experts.0.down_proj", "a.experts.1.down_proj"])
    [('a.experts.0.down_proj',), ('a.experts.1.down_proj',)]
    """
    names = set(known)
    if stacked := _EXPERTS.fullmatch(name):
        ends = _FUSED.get(stacked[2], (stacked[2],))
        found: list[tuple[str, ...]] = []
        while f"{stacked[1]}.{len(found)}.{ends[0]}" in names:
            found.append(tuple(f"{stacked[1]}.{len(found)}.{end}" for end in ends))
        return found
    stem, _, last = name.rpartition(".")
    return [tuple(f"{stem}.{end}" for end in _FUSED[last])] if last in _FUSED else []


class FusedPart:
    """Where a tensor is in a fused or stacked tensor: the name of the latter, the index of the part, and the expert."""

    def __init__(self, whole: str, at: int, count: int, expert: int | None) -> None:
        """Take the name of the fused tensor. The part has the index `at`, and the fused tensor has `count` parts."""
        self.whole, self.at, self.count, self.expert = whole, at, count, expert


def wholes_of(name: str) -> list[FusedPart]:
    """Return the fused and stacked tensors that may contain the tensor `name`.

    >>> [each.whole for each in wholes_of("a.experts.3.up_proj")]
    ['a.experts.up_proj', 'a.experts.gate_up_proj']
    """
    found: list[FusedPart] = []
    stem, _, last = name.rpartition(".")
    expert = None
    if one := _EXPERT.fullmatch(name):
        stem, last, expert = one[1], one[3], int(one[2])
        found.append(FusedPart(f"{stem}.{last}", 0, 1, expert))
    for fused, ends in _FUSED.items():
        if last in ends:
            found.append(FusedPart(f"{stem}.{fused}", ends.index(last), len(ends), expert))
    return found
