"""The quantised tensors of other libraries: the equal recipes of floatlab, and how the tensors are compared."""

import json
from functools import cache

import numpy as np

from tests.differential.shared import FOLDER

QUANTIZED = FOLDER / "quantized"

_MX = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4")
# id of the library's recipe: recipe of floatlab
RECIPES = {
    **{
        f"torchao_{name}_{rule}": f"{name}:torchao_{rule}"
        for name in _MX
        for rule in ("floor", "ceil", "even", "rceil")
    },
    **{f"microxcaling_{name}_{rule}": f"{name}:microxcaling_{rule}" for name in _MX for rule in ("nearest", "even")},
    "microxcaling_mxfp4_floor": "mxfp4:microxcaling_floor",
    "modelopt_mxfp4": "mxfp4:modelopt",
    "modelopt_mxfp8": "mxfp8_e4m3:modelopt",
    "te_mxfp4_pow2_1x32": "mxfp4:te",
    "fouroversix_mxfp4_static_6": "mxfp4:fouroversix_6",
    "fouroversix_mxfp4_static_4": "mxfp4:fouroversix_4",
    "ct_mxfp4": "mxfp4:ct",
    "ct_mxfp8": "mxfp8_e4m3:ct",
    "ct_mxfp6_e2m3": "mxfp6_e2m3:ct",
    "gguf_mxfp4": "mxfp4:ggml",
    "ggml_mxfp4": "mxfp4:ggml",
    "modelopt_nvfp4": "nvfp4:modelopt",
    "torchao_nvfp4_2level": "nvfp4:torchao",
    "torchao_nvfp4_1level": "nvfp4:torchao_single",
    "te_nvfp4_1x16": "nvfp4:te",
    "te_nvfp4_16x16": "nvfp4/16x16:te",
    "te_nvfp4_rowscaled": "nvfp4/16/channel:te",
    **{
        f"te_nvfp4_4over6_{rule}": f"nvfp4:te_4over6_{rule}"
        for rule in ("mae448", "mse448", "mae256", "mse256", "mae256_fast")
    },
    "te_nvfp4_4over6_mse256_16x16": "nvfp4/16x16:te_4over6_mse256",
    "fouroversix_nvfp4_static_6": "nvfp4:fouroversix_6",
    "fouroversix_nvfp4_static_4": "nvfp4:fouroversix_4",
    "fouroversix_nvfp4_static_6_2d": "nvfp4/16x16:fouroversix_6",
    "fouroversix_nvfp4_mse_2d": "nvfp4/16x16:fouroversix_mse",
    **{f"fouroversix_nvfp4_{rule}": f"nvfp4:fouroversix_{rule}" for rule in ("mse", "mae", "abs_max")},
    "ct_nvfp4": "nvfp4:ct",
    "ggml_nvfp4": "nvfp4:ggml",
    "torchao_float8tensor_e4m3_tensor": "e4m3/tensor:torchao",
    "torchao_float8tensor_e4m3_row": "e4m3/channel:torchao",
    "torchao_float8tensor_e4m3_block128x128": "e4m3/128x128:torchao",
    "torchao_float8training_tensorwise": "e4m3/tensor:torchao_training",
    "torchao_float8training_rowwise": "e4m3/channel:torchao_training",
    "torchao_float8training_rowwise_pow2": "e4m3/channel:torchao_training_pow2",
    "te_fp8_e4m3_1x128": "e4m3/1x128:te",
    "te_fp8_e4m3_1x128_pow2": "e4m3/1x128:te_pow2",
    "te_fp8_e5m2_1x128_pow2": "e5m2/1x128:te_pow2",
    "te_fp8_e4m3_128x128": "e4m3/128x128:te",
    "te_fp8_e4m3_128x128_pow2": "e4m3/128x128:te_pow2",
    "te_fp8_current": "e4m3/tensor:te",
    "te_fp8_current_pow2": "e4m3/tensor:te_pow2",
    "modelopt_fp8_tensor": "e4m3/tensor:modelopt",
    "modelopt_fp8_row": "e4m3/channel:modelopt",
    "modelopt_fp8_block128x128": "e4m3/128x128:modelopt",
    "modelopt_fp8_block1x128": "e4m3/1x128:modelopt",
    "ct_fp8_tensor": "e4m3/tensor:ct",
    "ct_fp8_row": "e4m3/channel:ct",
    "ct_fp8_block128x128": "e4m3/128x128:ct",
    "deepseek_1x128": "e4m3/1x128:deepseek",
    "deepseek_128x128": "e4m3/128x128:deepseek",
    "deepseek_1x128_ue8m0": "e4m3/1x128:deepseek_pow2",
    "modelopt_int8_row": "int8/channel:modelopt",
    "ct_int8_row": "int8/channel:ct",
    "modelopt_int4_b32": "int4/flat32:modelopt",
    "ggml_q8_0": "q8_0:ggml",
    "gguf_q8_0": "q8_0:ggml",
    "ggml_q4_0": "q4_0:ggml",
    "gguf_q4_0": "q4_0:gguf",
    "ggml_q4_1": "q4_1:ggml",
    "gguf_q4_1": "q4_1:ggml",
    "ggml_q4_k": "q4_k",
    "bnb_nf4_b64": "nf4/flat64:bnb",
    "bnb_fp4_b64": "bnb_fp4/flat64:bnb",
}


@cache
def index() -> dict[str, list[dict[str, str]]]:
    return json.loads((QUANTIZED / "codes" / "index.json").read_text())


def cases() -> list[str]:
    return [case["case"] for case in index()["cases"]] if QUANTIZED.is_dir() else ["no folder"]


@cache
def case(name: str) -> dict[str, np.ndarray]:
    [file] = [each["file"] for each in index()["cases"] if each["case"] == name]
    with np.load(QUANTIZED / file, allow_pickle=False) as found:
        return dict(found)


def packed(blocks) -> np.ndarray:
    """Return the scales of blocks as the libraries store them: codes, and minima beside them; q4_k packs both."""
    scales = np.array([block.scale.code for block in blocks], np.uint32)
    if not blocks[0].format.minimum:
        return scales
    minima = np.array([block.minimum.code for block in blocks], np.uint32)
    if blocks[0].format.superblock is None:
        return np.stack([scales, minima], axis=1)
    units = [np.array([block.tensor.datum.code, block.tensor.minimum.code], "<u2") for block in blocks[::8]]
    first, last = scales.reshape(-1, 2, 4).swapaxes(0, 1)
    low, high = minima.reshape(-1, 2, 4).swapaxes(0, 1)
    six = np.concatenate([first | last >> 4 << 6, low | high >> 4 << 6, last & 15 | (high & 15) << 4], axis=1)
    return np.concatenate([np.stack(units).view(np.uint8), six.astype(np.uint8)], axis=1)


def results(name: str):
    """Yield each result of a case: id, family, codes, scales, the tensor's scale."""
    stored = case(name)
    for family in sorted({key.partition("/")[0] for key in stored} - {"input"}):
        for at, identity in enumerate(stored[f"{family}/names"]):
            scale = stored[f"{family}/global"][at] if f"{family}/global" in stored else None
            yield str(identity), family, stored[f"{family}/codes"][at], stored[f"{family}/scales"][at], scale
