"""Weights whose originals have other names: an order or an exchange that nothing explains is not called sound."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.auditing.originals.arranged import rope_rows
from tests.auditing.gguf_making import entry, gguf
from tests.auditing.making import write_checkpoint
from tests.auditing.quantizing import CONVENTIONS
from tests.auditing.test_damage import q4_0, q8_0

SHAPES = {"q_proj": (64, 96), "up_proj": (128, 96), "down_proj": (96, 128), "gate_proj": (128, 96)}


def model(layers=3, seed=1):
    """Return weights under the names of transformers."""
    rng = np.random.default_rng(seed)
    return {
        f"model.layers.{layer}.{part}.weight": (rng.normal(size=shape) / 50).astype(np.float32)
        for layer in range(layers)
        for part, shape in SHAPES.items()
    }


def verdicts(tmp_path, weights, originals, convention="fp8 rows"):
    """Quantise weights, and return the audited tensors by name."""
    make, config = CONVENTIONS[convention]
    parts = {}
    for name, x in weights.items():
        parts |= make(name.removesuffix(".weight"), np.ascontiguousarray(x))
    path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
    return {each.name: each for each in fl.audit(path, originals).tensors}


def renamed(weights, layer="net.blocks"):
    return {name.replace("model.layers", layer): x for name, x in weights.items()}


def doubtful(found):
    return {name for name, each in found.items() if each.verdict == "cannot tell"}


def test_renamed_weights_are_sound(tmp_path):
    x = model()
    neutral = {f"t.{at}.weight": each for at, each in enumerate(x.values())}
    shifted = {
        name.replace(f"layers.{layer}.", f"layer{layer + 1}_"): each
        for name, each in x.items()
        for layer in [int(name.split(".")[2])]
    }
    kept = {name.replace("layers.2", "layers.1"): each for name, each in x.items() if "layers.1" not in name}
    for weights in (renamed(x), neutral, shifted, renamed(kept)):
        assert {each.verdict for each in verdicts(tmp_path, weights, x).values()} == {"sound"}


@pytest.mark.parametrize("kind", ["layers", "parts", "copy", "all of a layer"])
def test_exchanged_weights_are_doubted(tmp_path, kind):
    x = model()
    y = renamed(x)
    first, second = {
        "layers": ("net.blocks.0.up_proj.weight", "net.blocks.1.up_proj.weight"),
        "parts": ("net.blocks.1.up_proj.weight", "net.blocks.1.gate_proj.weight"),
        "copy": ("net.blocks.0.up_proj.weight", "net.blocks.1.up_proj.weight"),
        "all of a layer": ("net.blocks.0.", "net.blocks.1."),
    }[kind]
    if kind == "copy":
        y[second] = y[first]
        wrong = {second}
    else:
        pairs = [(name, name.replace(first, second)) for name in y if name.startswith(first)]
        for a, b in pairs:
            y[a], y[b] = y[b], y[a]
        wrong = {name for pair in pairs for name in pair}
    found = verdicts(tmp_path, y, x)
    assert doubtful(found) == wrong
    assert all(found[name].reasons[0].startswith("it fits model.layers.") for name in wrong)


def test_orders_that_no_convention_has_are_doubted(tmp_path):
    x = model()
    name = "net.blocks.1.up_proj.weight"
    for change, words in (
        (lambda w: w[::-1], "its rows in reverse order"),
        (lambda w: np.roll(w, 64, axis=0), "its rows in another order"),
        (lambda w: w[rope_rows(128, 2)], "its rows in another order"),
        (lambda w: w[:, np.random.default_rng(3).permutation(96)], "its columns in another order"),
    ):
        y = renamed(x)
        y[name] = change(y[name])
        found = verdicts(tmp_path, y, x)
        assert doubtful(found) == {name}
        assert found[name].reasons == (f"it fits only {words}: no known convention explains this order",)
    y = renamed(x)
    for layer in range(3):
        y[f"net.blocks.{layer}.q_proj.weight"] = y[f"net.blocks.{layer}.q_proj.weight"][rope_rows(64, 2)]
    found = verdicts(tmp_path, y, x)
    assert not doubtful(found)
    assert found["net.blocks.0.q_proj.weight"].original.endswith("its rows permuted for rope with 2 heads")


def test_a_missing_layer_is_named_under_other_names(tmp_path):
    x = model()
    first = {name: each for name, each in renamed(x).items() if ".2." not in name}
    make, config = CONVENTIONS["fp8 rows"]
    parts = {}
    for name, each in first.items():
        parts |= make(name.removesuffix(".weight"), each)
    found = fl.audit(write_checkpoint(tmp_path / "m.safetensors", parts, config), x | {"norm": np.ones(4, np.float32)})
    assert found.is_sound
    assert set(found.missing) == {name for name in x if ".2." in name}


def test_a_fused_weight_with_another_name_is_sound(tmp_path):
    x = model()
    gate, up = (x[f"model.layers.1.{part}.weight"] for part in ("gate_proj", "up_proj"))
    for fused, words in (
        (np.concatenate([gate, up]), "their rows, one tensor after the other"),
        (np.stack([gate, up], axis=1).reshape(256, 96), "their rows, alternating"),
    ):
        [found] = verdicts(tmp_path, {"net.1.w13.weight": fused}, x).values()
        assert (found.verdict, found.original.endswith(words)) == ("sound", True)


def test_exchanged_nibbles_are_the_cause_under_other_names(tmp_path):
    x = np.random.default_rng(1).normal(size=(2, 64, 128)).astype(np.float32)
    data = q4_0(x[0], swapped=True) + q8_0(x[1])
    entries = [entry("a", (128, 64), 2), entry("b", (128, 64), 8, len(q4_0(x[0])))]
    (tmp_path / "m.gguf").write_bytes(gguf(entries, data))
    found = {each.name: each for each in fl.audit(tmp_path / "m.gguf", {"c": x[0], "d": x[1]}).tensors}
    assert (found["a"].verdict, found["b"].verdict) == ("broken", "sound")
    assert found["a"].reasons[0].startswith("the nibbles are in the other order; corrected")
