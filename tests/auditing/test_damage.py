"""Weights in every convention: sound ones are never called broken, and damage is named with the original."""

import re
import struct

import numpy as np
import pytest

import floatlab as fl
from tests.auditing.gguf_making import entry, gguf, key
from tests.auditing.making import write_checkpoint
from tests.auditing.quantizing import CONVENTIONS, changed, codes_name, gptoss_mxfp4, scale_names
from tests.auditing.test_conventions import swizzled

SHAPES = ((64, 128), (128, 256), (384, 96))


def weights(shape, kind="normal", seed=0):
    """Return two weights of different size: normally distributed, with an outlier, positive, or almost constant."""
    found = []
    for scale in (0.02, 0.035):
        rng = np.random.default_rng(seed := seed + 1)
        x = rng.standard_t(3, shape) if kind == "long tails" else rng.normal(size=shape)
        if kind == "outlier":
            x[:, 3] *= 50
        if kind in ("positive", "almost 1"):
            x = np.abs(x) if kind == "positive" else 1 + x / 50
        found.append((x * scale).astype(np.float32))
    return found


def audited(tmp_path, parts, config, originals=None):
    path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
    return {re.split(r"[._]", each.name)[0]: each for each in fl.audit(path, originals).tensors}


def named(convention, x, y):
    return {"x": x, "y": y} if convention == "gpt-oss" else {"x.weight": x, "y.weight": y}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ["normal", "long tails", "outlier", "positive", "almost 1"])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_no_sound_weight_is_called_broken(tmp_path, convention, kind):
    make, config = CONVENTIONS[convention]
    for seed, shape in enumerate(SHAPES):
        x, y = weights(shape, kind, seed)
        parts = make("x", x) | make("y", y)
        found = audited(tmp_path, parts, config, named(convention, x, y))
        assert {each.verdict for each in found.values()} == {"sound"}, found
        assert {each.verdict for each in audited(tmp_path, parts, config).values()} == {"cannot tell"}


def reciprocal(values):
    with np.errstate(divide="ignore"):
        return (1 / values.astype(np.float64)).astype(values.dtype)


def damages(convention, own, other, x):
    """Yield damaged parts of a weight, with words of the cause."""
    scales, codes = scale_names(own), codes_name(own)
    kind = own[scales[0]][0]
    is_fp4 = convention in ("modelopt nvfp4", "ct nvfp4", "modelopt mxfp4", "gpt-oss")
    if kind in ("F32", "F16"):
        if convention not in ("awq", "gptq", "ct int4"):
            yield "is the reciprocal", changed(own, scales[0], reciprocal)
        yield "times too large", changed(own, scales[0], lambda found: (found * 37.9).astype(found.dtype))
        yield "times too large", changed(own, scales[0], lambda found: (found * 1.5).astype(found.dtype))
    if kind == "U8":
        yield "a bias of 128 instead of 127", changed(own, scales[0], lambda found: found + 1)
        yield "a bias of 126 instead of 127", changed(own, scales[0], lambda found: found - 1)
    for name in scales[1:]:
        yield "is the reciprocal", changed(own, name, reciprocal)
    if is_fp4 or convention == "bitsandbytes":
        yield "nibbles are in the other order", changed(own, codes, lambda found: found >> 4 | found << 4)
        yield "shifted by 2", changed(own, codes, lambda found: np.roll(found.reshape(-1), 1).reshape(found.shape))
    if is_fp4:
        turned = changed(own, scales[0], lambda found: found.T.reshape(found.shape))
        yield "is transposed", turned
        if len(x) == 128:
            yield "is swizzled", changed(own, scales[0], swizzled)
    if any(name.endswith(("qzeros", "weight_zero_point")) for name in own):
        name = next(name for name in own if name.endswith(("qzeros", "weight_zero_point")))
        yield "zero points are too small by 1", changed(own, name, lessened)
    if convention in ("modelopt nvfp4", "modelopt mxfp8", "fp8 rows", "int8 rows"):
        halves = own
        for name in own:
            if np.ndim(own[name][1]) and len(own[name][1]) == len(x):
                halves = changed(halves, name, lambda found: np.roll(found, len(found) // 2, axis=0))
        yield "the halves are exchanged", halves
    yield "are those of y", {name: other[name.replace("x", "y", 1)] for name in own}
    yield "which is missing", {name: own[name] for name in own if name != scales[0]}


def lessened(words):
    """Return zero points of 4 bits that are smaller by 1."""
    octets = np.ascontiguousarray(words).view(np.uint8)
    return ((octets - 1 & 15) | (octets >> 4) - 1 << 4).astype(np.uint8).view("<i4").reshape(words.shape)


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_damage_is_named_with_the_original(tmp_path, convention, shape):
    make, config = CONVENTIONS[convention]
    x, y = weights(shape)
    own, other = make("x", x), make("y", y)
    for words, parts in damages(convention, own, other, x):
        found = audited(tmp_path, parts | other, config, named(convention, x, y))
        assert found["x"].verdict == "broken", words
        assert words in found["x"].reasons[0]
        assert found["y"].verdict == "sound", words


def test_codes_of_nan_are_proof(tmp_path):
    make, config = CONVENTIONS["fp8 tensor"]
    parts = make("x", weights((64, 128))[0])
    parts["x.weight"][1][5, 7] = 0x7F
    found = audited(tmp_path, parts, config)["x"]
    assert (found.verdict, found.reasons) == ("broken", ("1 of 8,192 numbers are NaN or infinite",))


def test_a_dropped_bias_is_found(tmp_path):
    make, config = CONVENTIONS["fp8 rows"]
    x, y = weights((64, 128))
    parts, originals = make("x", x) | make("y", y), named("", x, y) | {"x.bias": y[:, 0], "y.bias": 0 * y[:, 0]}
    path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
    first = fl.audit(path, originals).tensors[0]
    assert (first.name, first.verdict) == ("x.bias", "broken")
    assert first.reasons == ("the original has this bias, but the checkpoint does not",)
    assert fl.audit(path, originals, only="y*").is_sound
    path = write_checkpoint(tmp_path / "m.safetensors", parts | {"x.bias": ("F32", y[:, 0])}, config)
    assert fl.audit(path, originals).is_sound


# Originals with other names and in another arrangement.


def experts(seed, count=2, shape=(64, 96)):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, *shape)).astype(np.float32)


def test_fused_and_stacked_originals(tmp_path):
    """In gpt-oss, gate and up alternate; the original may be transposed, in two tensors per expert, or nameless."""
    gate, up = experts(1), experts(2)
    both = np.stack([gate, up], axis=2).reshape(2, 128, 96)
    parts = gptoss_mxfp4("model.layers.0.mlp.experts.gate_up_proj", both)
    name = "model.layers.0.mlp.experts"
    separate = {f"{name}.{e}.{p}_proj.weight": w[e] for e in (0, 1) for p, w in (("gate", gate), ("up", up))}
    originals = (
        ({f"{name}.gate_up_proj": both}, ""),
        ({f"{name}.gate_up_proj": both.swapaxes(1, 2)}, ", transposed"),
        ({"block.0.mlp.mlp1_weight": both}, "block.0.mlp.mlp1_weight, by convention"),
        (separate, "(4 tensors), by convention, with alternating rows"),
        ({"a": both[0], "b": both[1]}, "a and b, found by content"),
    )
    for original, words in originals:
        [found] = audited(tmp_path, parts, None, original).values()
        assert (found.verdict, found.reasons) == ("sound", ()), words
        assert found.original.endswith(words) if words.startswith((",", "(")) else words in found.original
    wrong = changed(parts, f"{name}.gate_up_proj_scales", lambda found: found + 1)
    for original, _ in originals:
        [found] = audited(tmp_path, wrong, None, original).values()
        assert "has a bias of 128 instead of 127" in found.reasons[0]
    [found] = audited(tmp_path, parts, None, {"a": np.random.default_rng(5).normal(size=(128, 96))}).values()
    assert (found.verdict, found.original) == ("cannot tell", "")
    assert "nor one that resembles it" in found.reasons[0]


def q8_0(x):
    """Return a tensor in ggml's Q8_0."""
    blocks = x.reshape(-1, 32)
    d = (np.abs(blocks).max(axis=1) / 127).astype("<f2")
    codes = np.rint(blocks / d.astype(np.float32)[:, None]).astype(np.int8)
    return np.concatenate([d.view(np.uint8).reshape(-1, 2), codes.view(np.uint8)], axis=1).tobytes()


def q4_0(x, swapped=False):
    """Return a tensor in ggml's Q4_0; `swapped` exchanges the nibbles of each byte of codes."""
    blocks = x.reshape(-1, 32)
    d = (blocks[np.arange(len(blocks)), np.abs(blocks).argmax(axis=1)] / -8).astype("<f2")
    codes = np.clip(np.rint(blocks / d.astype(np.float32)[:, None]) + 8, 0, 15).astype(np.uint8)
    low, high = (codes[:, 16:], codes[:, :16]) if swapped else (codes[:, :16], codes[:, 16:])
    return np.concatenate([d.view(np.uint8).reshape(-1, 2), low | high << 4], axis=1).tobytes()


def test_exchanged_nibbles_of_gguf_are_the_cause(tmp_path):
    """With its nibbles exchanged, the columns of a weight are also those of the original in another order."""
    x, y = weights((64, 128))
    data = q4_0(x, swapped=True) + q4_0(y)
    entries = [entry("blk.0.ffn_up.weight", (128, 64), 2), entry("blk.0.ffn_down.weight", (128, 64), 2, len(data) // 2)]
    (tmp_path / "m.gguf").write_bytes(gguf(entries, data))
    original = {"model.layers.0.mlp.up_proj.weight": x, "model.layers.0.mlp.down_proj.weight": y}
    found = {each.name: each for each in fl.audit(tmp_path / "m.gguf", original).tensors}
    assert found["blk.0.ffn_up.weight"].verdict == "broken"
    assert found["blk.0.ffn_up.weight"].reasons[0].startswith("the nibbles are in the other order; corrected")
    assert found["blk.0.ffn_down.weight"].verdict == "sound"


def test_a_scale_of_0_is_not_told_as_a_factor_of_a_longer_block(tmp_path):
    make, config = CONVENTIONS["modelopt nvfp4"]
    x, y = weights((64, 128))
    parts = make("x", x) | make("y", y)
    parts["x.weight_scale"][1][9, 3] = 0
    found = audited(tmp_path, parts, config, named("", x, y))["x"]
    assert found.verdict == "broken"
    assert found.reasons[0].startswith("1 scale in x.weight_scale is 0, though")
    assert not any("times too" in each for each in found.reasons)
    parts = changed(
        make("x", x), "x.weight_scale", lambda scales: np.where(np.arange(512).reshape(64, 8) == 75, 1, scales)
    )
    found = audited(tmp_path, parts | make("y", y), config, named("", x, y))["x"]
    assert not any("block of 32" in each for each in found.reasons)


def test_gguf_names_and_rows_permuted_for_rope(tmp_path):
    x, y = weights((64, 128))
    permuted = x.reshape(4, 2, 8, 128).swapaxes(1, 2).reshape(64, 128)
    heads = [key("llama.attention.head_count", 4, struct.pack("<I", 4))]
    for stored, words in ((permuted, "its rows permuted for rope with 4 heads"), (x, "by convention")):
        data = q8_0(stored) + q8_0(y)
        size = len(data) // 2
        entries = [entry("blk.0.attn_q.weight", (128, 64), 8), entry("blk.0.ffn_up.weight", (128, 64), 8, size)]
        (tmp_path / "m.gguf").write_bytes(gguf(entries, data, heads))
        original = {"model.layers.0.self_attn.q_proj.weight": x, "model.layers.0.mlp.up_proj.weight": y}
        found = {each.name: each for each in fl.audit(tmp_path / "m.gguf", original).tensors}
        assert {each.verdict for each in found.values()} == {"sound"}
        assert found["blk.0.attn_q.weight"].original.endswith(words)
        assert found["blk.0.ffn_up.weight"].original == "model.layers.0.mlp.up_proj.weight, by convention"


STALE = {"modelopt mxfp8": 0.28, "fp8 tensor": 0.2, "fp8 rows": 0.2, "deepseek": 0.2, "int8 rows": 0.1} | dict.fromkeys(
    ("ct int4", "gptq", "awq", "bitsandbytes", "modelopt mxfp4", "gpt-oss", "modelopt nvfp4", "ct nvfp4"), 0.3
)


@pytest.mark.parametrize("convention", STALE)
def test_a_weight_of_another_version_is_not_sound(tmp_path, convention):
    """The other version differs by noise that is small for codes of 4 bits, but large for codes of 8 bits."""
    make, config = CONVENTIONS[convention]
    x, y = weights((64, 128))
    noise = np.random.default_rng(8).normal(size=x.shape) * STALE[convention] * np.linalg.norm(x) / np.sqrt(x.size)
    found = audited(tmp_path, make("x", (x + noise).astype(np.float32)) | make("y", y), config, named(convention, x, y))
    if STALE[convention] < 0.3:
        # Integers may have a fixed scale that is far larger than their numbers need.
        assert found["x"].verdict == ("cannot tell" if convention == "int8 rows" else "broken")
        assert "is this the original, or another version of it?" in found["x"].reasons[0]
    assert found["x"].verdict != "sound"
    assert (found["y"].verdict, found["y"].reasons) == ("sound", ())


@pytest.mark.parametrize(("pack", "number"), [(q8_0, 8), (q4_0, 2)])
def test_a_gguf_weight_of_another_version_is_not_sound(tmp_path, pack, number):
    x, y = weights((64, 128))
    noise = np.random.default_rng(8).normal(size=x.shape) * 0.3 * np.linalg.norm(x) / np.sqrt(x.size)
    data = pack((x + noise).astype(np.float32)) + pack(y)
    entries = [entry("a.weight", (128, 64), number), entry("b.weight", (128, 64), number, len(data) // 2)]
    (tmp_path / "m.gguf").write_bytes(gguf(entries, data))
    found = {each.name: each.verdict for each in fl.audit(tmp_path / "m.gguf", {"a.weight": x, "b.weight": y}).tensors}
    assert found == {"a.weight": "broken", "b.weight": "sound"}


def test_integers_of_4_bits_in_bytes_are_sound(tmp_path):
    x, _ = weights((64, 128))
    scale = (np.abs(x).max(axis=1, keepdims=True) / 7).astype(np.float32)
    parts = {"x.weight": ("I8", np.rint(x / scale).astype(np.int8)), "x.weight_scale": ("F32", scale)}
    [found] = audited(tmp_path, parts, None, {"x.weight": x}).values()
    assert (found.verdict, found.fidelity.relative_error > 0.1) == ("sound", True)


def test_a_wrong_scale_in_a_row_of_small_numbers_is_found(tmp_path):
    """Its error is small beside the other rows, but the group has its own scale."""
    x, y = weights((64, 128))
    x[32] /= 200
    make, config = CONVENTIONS["awq"]
    parts = make("x", x)
    double = changed(parts, "x.scales", lambda found: np.where(np.arange(256).reshape(4, 64) == 160, 2 * found, found))
    found = audited(tmp_path, double | make("y", y), config, named("awq", x, y))
    assert (found["x"].verdict, found["y"].verdict) == ("broken", "sound")
    assert found["x"].fidelity.bad_blocks == 1
