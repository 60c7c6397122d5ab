"""Checkpoints written by the libraries themselves are read to the errors that were measured when they were made."""

import json

import numpy as np
import pytest

import floatlab as fl
from floatlab.auditing.quantized import load_quantized
from tests.conftest import ORACLES

FOLDER = ORACLES / "quantized" / "checkpoints"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the checkpoints of the libraries are not on this machine")
CHECKPOINTS = json.loads((FOLDER / "index.json").read_text())["checkpoints"] if FOLDER.is_dir() else []
SOUND = [each for each in CHECKPOINTS if not each["broken"]]
BROKEN = [each for each in CHECKPOINTS if each["broken"]]
# The convention of each checkpoint, by words of its name.
CONVENTIONS = {
    "modelopt_nvfp4": "ModelOpt NVFP4", "modelopt_fp8": "ModelOpt FP8", "modelopt_mxfp8": "ModelOpt MXFP8",
    "ct_nvfp4": "compressed-tensors NVFP4", "ct_float_block": "compressed-tensors FP8",
    "ct_mxfp4": "compressed-tensors MXFP4", "ct_w4a16": "compressed-tensors INT4", "deepseek_fp8": "DeepSeek FP8",
    "transformers_fp8_b32": "DeepSeek FP8", "torchao_mxfp4": "torchao MXTensor",
    "torchao_nvfp4": "torchao NVFP4Tensor", "gptoss_mxfp4": "gpt-oss MXFP4", "awq_gemm": "AWQ INT4 (GEMM)",
    "gptq_v1": "GPTQ INT4", "bnb_nf4": "bitsandbytes NF4",
}  # fmt: skip


def original(name, checkpoint, weights):
    """Return what a weight was before it was quantised, in the arrangement of its checkpoint."""
    if checkpoint["name"] == "gguf":
        name = json.loads((FOLDER / "gguf" / "map.json").read_text())[name][0].split()[0]
    if "gptoss" not in checkpoint["name"]:
        return weights[name].astype(np.float64)
    gate, up, down = (weights[f"model.layers.0.mlp.{each}_proj.weight"] for each in ("gate", "up", "down"))
    if "gate_up" not in name:
        return np.stack([down, down[:, ::-1]]).astype(np.float64)
    both = np.stack([gate, up], axis=1).reshape(-1, gate.shape[1])
    return np.stack([both, both[::-1]]).astype(np.float64)


def errors(checkpoint):
    """Return |read − original| of each weight of a checkpoint that can be read."""
    found = {}
    folder = FOLDER / checkpoint["name"]
    with load_quantized(FOLDER / "original.safetensors") as weights, load_quantized(folder) as read:
        for name in read.weights:
            with read.open(name) as source:
                values = source.whole()
            if checkpoint["name"] == "bnb_nf4":  # their stated errors are those of values in bfloat16
                values = fl.arrays.quantize(values, "bf16")
            found[name] = np.abs(values - original(name, checkpoint, weights).reshape(values.shape))
    return found


@pytest.mark.parametrize("checkpoint", SOUND, ids=lambda each: each["name"])
def test_sound_checkpoints_are_read_to_their_stated_errors(checkpoint):
    found = errors(checkpoint)
    worst = max(each.max() for each in found.values())
    stated = checkpoint["max_abs_error"]
    assert worst == pytest.approx(stated["correct"], rel=1e-5)
    for reading, error in stated.items():
        assert reading == "correct" or worst < 0.7 * error, f"the reading is: {reading}"
    checked = 0
    for layer, measured in checkpoint["per_layer_correct"].items():
        for name in found:
            if name.removesuffix(".weight") == layer:
                checked += 1
                assert found[name].max() == pytest.approx(measured["max"], rel=1e-5)
                assert np.sqrt((found[name] ** 2).mean()) == pytest.approx(measured["rms"], rel=1e-5)
    assert checked >= len(found) - 7 if "gguf" in checkpoint["name"] else checked or "gptoss" in checkpoint["name"]


@pytest.mark.parametrize("checkpoint", SOUND, ids=lambda each: each["name"])
def test_the_convention_is_stated(checkpoint):
    with load_quantized(FOLDER / checkpoint["name"]) as read:
        assert not read.unreadable
        if checkpoint["name"] == "gguf":
            assert {each.convention for each in read.weights.values()} == {
                f"GGUF {kind}" for kind in ("Q8_0", "Q4_0", "Q4_1", "Q4_K", "MXFP4", "NVFP4")
            }
            return
        assert read.conventions == {CONVENTIONS[checkpoint["name"]]: len(read.weights)}
        has_config = (FOLDER / checkpoint["name"] / "config.json").exists()
        words = "quant_state" if "bnb" in checkpoint["name"] else "config.json" if has_config else "metadata"
        assert all(words in each.evidence for each in read.weights.values())


@pytest.mark.parametrize("checkpoint", BROKEN, ids=lambda each: each["name"])
def test_broken_checkpoints_are_read_as_they_are_stored(checkpoint):
    stated = checkpoint["max_abs_error"].get("correct reading of the stored bytes")
    with load_quantized(FOLDER / checkpoint["name"]) as read:
        unreadable = dict(read.unreadable)
    if stated is None:
        assert list(unreadable) == ["model.layers.0.self_attn.q_proj.weight"]
        assert (
            "needs the tensor 'model.layers.0.self_attn.q_proj.weight_scale', which is missing"
            in unreadable.popitem()[1]
        )
        return
    assert not unreadable
    largest = [each[np.isfinite(each)].max() for each in errors(checkpoint).values()]
    assert any(each == pytest.approx(stated, rel=1e-5) for each in largest)


def test_a_scale_that_is_nan_gives_nan():
    with load_quantized(FOLDER / "broken_nvfp4_nan_scale") as read:
        values = read["model.layers.0.mlp.up_proj.weight"]
    assert np.isnan(values[5, 16:32]).all()
    assert np.isnan(values).sum() == 16
    assert (values[9, 32:48] == 0).all()


@pytest.mark.parametrize(
    ("name", "recipe"), [("transformers_fp8_b32", "e4m3/32x32:transformers"), ("ct_w4a16", "int4/32:ct")]
)
def test_the_recipe_of_a_checkpoint(name, recipe):
    with load_quantized(FOLDER / name) as read:
        weights = list(read.weights)
    for weight in weights:
        found = fl.find_recipe(f"{FOLDER / name}::{weight}", str(FOLDER / "original.safetensors"))
        assert recipe in [each.name for each in found.recipes], weight
