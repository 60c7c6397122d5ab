"""Originals that conventions arrange differently: fused tensors, and rows of q and k that are permuted for rope."""

import struct

import numpy as np
import pytest

import floatlab as fl
from tests.auditing.gguf_making import entry, gguf, key
from tests.auditing.test_damage import q8_0
from tests.auditing.test_found_by_content import verdicts

PARTS = {"q_proj": 64, "k_proj": 32, "v_proj": 32, "gate_proj": 96, "up_proj": 96}


def layers(count=2):
    """Return the weights of some layers, as transformers names them."""
    rng = np.random.default_rng(7)
    rooms = {part: "mlp" if part in ("gate_proj", "up_proj") else "self_attn" for part in PARTS}
    return {
        f"model.layers.{layer}.{rooms[part]}.{part}.weight": (rng.normal(size=(rows, 64)) / 50).astype(np.float32)
        for layer in range(count)
        for part, rows in PARTS.items()
    }


def fused(x, count=2):
    """Return the same weights as fused tensors."""
    found = {}
    for layer in range(count):
        at = f"model.layers.{layer}"
        found[f"{at}.self_attn.qkv_proj.weight"] = np.concatenate([x[f"{at}.self_attn.{p}_proj.weight"] for p in "qkv"])
        halves = [x[f"{at}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
        found[f"{at}.mlp.gate_up_proj.weight"] = np.concatenate(halves)
    return found


def not_sound(found):
    return {name.rpartition(".weight")[0].partition("layers.")[2] for name in found if found[name].verdict != "sound"}


def permuted(x, heads):
    """Return rows in the order of llama.cpp, as its converter permutes them."""
    return np.ascontiguousarray(x.reshape(heads, 2, -1, x.shape[1]).swapaxes(1, 2).reshape(x.shape))


def test_parts_of_fused_originals_are_told_by_their_names(tmp_path):
    x = layers()
    assert not not_sound(verdicts(tmp_path, x, fused(x)))
    gate, up, k, v = (
        f"model.layers.1.{part}_proj.weight" for part in ("mlp.gate", "mlp.up", "self_attn.k", "self_attn.v")
    )
    assert not_sound(verdicts(tmp_path, x | {up: x[gate]}, fused(x))) == {"1.mlp.up_proj"}
    y = x | {gate: x[up], up: x[gate], k: x[v], v: x[k]}
    assert not_sound(verdicts(tmp_path, y, fused(x))) == {
        "1.mlp.gate_proj", "1.mlp.up_proj", "1.self_attn.k_proj", "1.self_attn.v_proj"
    }  # fmt: skip


@pytest.mark.parametrize("alternate", [False, True])
def test_experts_cut_from_fused_stacks(tmp_path, alternate):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(2, 2, 48, 64)).astype(np.float32)  # expert, gate or up, row, column
    stack = x.swapaxes(1, 2) if alternate else x
    original = {
        "model.layers.0.mlp.experts.gate_up_proj": np.ascontiguousarray(stack.reshape(2, 96, 64).swapaxes(1, 2))
    }
    names = [[f"model.layers.0.mlp.experts.{e}.{part}_proj.weight" for part in ("gate", "up")] for e in range(2)]
    weights = {names[e][at]: x[e, at] for e in range(2) for at in range(2)}
    assert not not_sound(verdicts(tmp_path, weights, original))
    weights[names[1][1]] = x[1, 0]
    assert not_sound(verdicts(tmp_path, weights, original)) == {"0.mlp.experts.1.up_proj"}


@pytest.mark.parametrize(("q_heads", "k_heads", "wrong"), [(4, 2, ()), (2, 2, "q"), (4, 4, "k")])
def test_originals_that_are_permuted_for_rope(tmp_path, q_heads, k_heads, wrong):
    x = layers()
    names = {"self_attn.q_proj": "attention.wq", "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv"}
    names |= {"mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3"}
    heads = {"attention.wq": q_heads, "attention.wk": k_heads}
    original = {}
    for name, each in x.items():
        layer, part = name.removeprefix("model.layers.").removesuffix(".weight").split(".", 1)
        other = names[part]
        original[f"layers.{layer}.{other}.weight"] = permuted(each, heads[other]) if other in heads else each
    assert not not_sound(verdicts(tmp_path, x, original))  # no number of heads is stated
    found = audited_gguf(tmp_path, x, q_heads, k_heads)
    assert not_sound(found) == {f"{layer}.attn_{part}" for layer in range(2) for part in wrong}
    for name in found:
        if found[name].verdict != "sound":
            assert found[name].reasons[0].startswith("its rows are permuted for rope with ")


def audited_gguf(tmp_path, x, q_heads, k_heads, straight=()):
    """Write q and k of each layer as a GGUF file that states 4 heads of q and 2 of k; return the audited tensors."""
    entries, data = [], b""
    for name, each in x.items():
        part = name.split(".")[-2].removesuffix("_proj")
        if part in ("q", "k"):
            stored = each if name in straight else permuted(each, q_heads if part == "q" else k_heads)
            own = f"blk.{name.split('.')[2]}.attn_{part}.weight"
            entries.append(entry(own, each.shape[::-1], 8, len(data)))
            data += q8_0(stored)
    keys = [
        key("llama.attention.head_count", 4, struct.pack("<I", 4)),
        key("llama.attention.head_count_kv", 4, struct.pack("<I", 2)),
    ]
    (tmp_path / "m.gguf").write_bytes(gguf(entries, data, keys))
    return {each.name.replace("blk.", "layers."): each for each in fl.audit(tmp_path / "m.gguf", x).tensors}


def test_a_weight_whose_rows_are_permuted_unlike_the_others_is_doubted(tmp_path):
    x = layers()
    found = audited_gguf(tmp_path, x, 4, 2, ["model.layers.1.self_attn.k_proj.weight"])
    assert not_sound(found) == {"1.attn_k"}
    assert "are not permuted for rope, but those of other weights" in found["layers.1.attn_k.weight"].reasons[0]


def test_the_number_of_heads_is_found_if_none_is_stated(tmp_path):
    x = (np.random.default_rng(9).normal(size=(64, 1024)) / 50).astype(np.float32)
    # Rows 0, 21, 42 and 63 are the same ones for 2 and for 4 heads.
    [found] = verdicts(
        tmp_path, {"layers.0.attention.wq.weight": permuted(x, 4)}, {"model.layers.0.self_attn.q_proj.weight": x}
    ).values()
    assert (found.verdict, found.original.endswith("its rows permuted for rope with 4 heads")) == ("sound", True)
