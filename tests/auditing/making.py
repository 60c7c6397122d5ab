"""Checkpoints with chosen contents."""

import contextlib
import json
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from tests.files.making import safetensors

FP8 = np.arange(0x30, 0x70, dtype=np.uint8).reshape(4, 16)
# A quantised layer, and a tensor beside it: dtype as the file calls it, and the stored array.
QUANTIZED = {
    "model.layers.0.mlp.down_proj.weight": ("F8_E4M3", FP8),
    "model.layers.0.mlp.down_proj.weight_scale": ("F32", np.float32([0.25, 0.5, 1, 2])),
    "model.norm.weight": ("F32", np.float32([1, 2, 3])),
}


def checkpoint_file(tensors, metadata=None):
    """Return the bytes of a .safetensors with these tensors, each a dtype and an array, or (dtype, array, shape)."""
    header, data = {} if metadata is None else {"__metadata__": metadata}, b""
    for name, (dtype, array, *shape) in tensors.items():
        octets = np.ascontiguousarray(array).tobytes()
        shape = list(shape[0] if shape else np.shape(array))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(octets)]}
        data += octets
    return safetensors(header, data)


def write_checkpoint(path, tensors, config=None, metadata=None):
    """Write a .safetensors, and beside it a config.json with a quantization_config."""
    path.write_bytes(checkpoint_file(tensors, metadata))
    if config is not None:
        (path.parent / "config.json").write_text(json.dumps({"quantization_config": config}))
    return path


def nvfp4(x):
    """Return a weight in NVFP4 as ModelOpt stores it: packed codes, scales of 16 elements, the scale of the tensor."""
    whole = np.float32(np.abs(x).max() / np.float32(6 * 448))
    blocks = x.reshape(len(x), -1, 16)
    scales = (np.abs(blocks).max(axis=2) / np.float32(6) / whole).astype(ml_dtypes.float8_e4m3fn)
    codes = (blocks / (scales.astype(np.float32) * whole)[..., None]).astype(ml_dtypes.float4_e2m1fn)
    nibbles = codes.reshape(x.shape).view(np.uint8)
    return ("U8", nibbles[:, ::2] | nibbles[:, 1::2] << 4), ("F8_E4M3", scales.view(np.uint8)), ("F32", whole)


def write_examples(folder):
    """Write the files of the examples: original.safetensors, half.safetensors in fp16, model.safetensors in NVFP4."""
    rng = np.random.default_rng(1)
    weights = {
        name: ((rng.integers(0, 1 << 16, shape) - (1 << 15)) / (1 << 17)).astype(np.float32)
        for name, shape in (
            ("model.embed_tokens.weight", (16, 64)),
            ("model.layers.0.self_attn.q_proj.weight", (64, 64)),
            ("model.layers.0.mlp.down_proj.weight", (64, 128)),
            ("model.norm.weight", (64,)),
        )
    }
    write_checkpoint(folder / "original.safetensors", {name: ("F32", x) for name, x in weights.items()})
    half = {name: ("F16", x.astype(np.float16)) for name, x in weights.items()}
    write_checkpoint(folder / "half.safetensors", half)
    model = {}
    for name, x in weights.items():
        if "layers" in name:
            model |= dict(zip((name, f"{name}_scale", f"{name}_scale_2"), nvfp4(x), strict=True))
        else:
            model[name] = ("F32", x)
    write_checkpoint(folder / "model.safetensors", model, {"quant_method": "modelopt", "quant_algo": "NVFP4"})
    write_trained(folder)


def write_trained(folder):
    """Write trained.safetensors, with weights like those of a trained model, and inputs.npz, inputs of its layers.

    Weights are roughly normally distributed. One of them has rows of different magnitude, one has an outlier, and one
    has tiny numbers.
    """
    rng = np.random.default_rng(4)

    def normal(*shape):
        return (rng.integers(0, 1 << 12, (8, *shape)).sum(axis=0) - (1 << 14)) / 3344

    outlier = normal(96, 128) * 0.02
    outlier[17, 40] = 25.0
    rows = np.ldexp(0.02, rng.integers(-3, 3, (64, 1)))
    weights = {
        "model.embed_tokens.weight": normal(80, 64) * 0.03,
        "model.layers.0.self_attn.q_proj.weight": normal(64, 64) * rows,
        "model.layers.0.mlp.up_proj.weight": normal(128, 64) * 0.02,
        "model.layers.0.mlp.down_proj.weight": outlier,
        "model.norm.weight": 1 + normal(64) / 8,
        "lm_head.weight": normal(80, 64) * 0.0004,
    }
    stored = {name: ("F32", x.astype(np.float32)) for name, x in weights.items()}
    write_checkpoint(folder / "trained.safetensors", stored | {"model.position_ids": ("I64", np.arange(64))})
    inputs = {name: normal(16, x.shape[1]).astype(np.float32) for name, x in weights.items() if "layers" in name}
    inputs["model.layers.0.mlp.down_proj.weight"][:, 40] = 0  # the outlier is multiplied by 0
    np.savez(folder / "inputs.npz", **inputs)


@contextlib.contextmanager
def example_folder():
    """Make a folder with the files of the examples the current folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_examples(Path(folder))
        yield


def needs_examples(command):
    """Return whether a command names files of the examples."""
    return ".safetensors" in command and ("::" not in command or "--from" in command)
