"""Checkpoints with chosen contents."""

import json

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
