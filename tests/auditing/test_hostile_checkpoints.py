"""Malicious checkpoints: status 2, one line, little time and memory, and no file is written; no code is executed."""

import contextlib
import io
import json
import os
import pickle
import time
import tracemalloc

import numpy as np
import pytest

from floatlab.cli.main import main
from tests.auditing.gguf_making import GGUF
from tests.auditing.making import QUANTIZED, checkpoint_file, write_checkpoint

RAN = []


class Harmful:
    """An object that tells if it is unpickled."""

    def __reduce__(self):
        return RAN.append, ("unpickled",)


def refused(path, capsys, verb="dequantize", most_bytes=64 << 20, most_seconds=20.0):
    """Check that a checkpoint is refused in one line; return the line."""
    target = path.parent / "written.safetensors" if path.parent.is_dir() else "written.safetensors"
    tracemalloc.start()
    start = time.process_time()
    others = {"dequantize": [str(target)], "compare": [str(path)], "audit": ["--to", "e4m3,nvfp4"]}
    status = main([verb, str(path), *others[verb]])
    used, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = capsys.readouterr()
    assert (status, said.out) == (2, ""), said
    assert said.err.count("\n") == 1
    assert len(said.err) < 700
    assert said.err.isascii() or said.err.strip().isprintable()
    assert "Traceback" not in said.err
    assert peak < most_bytes
    assert used < most_seconds
    assert not os.path.lexists(target)
    assert RAN == []
    return said.err


@pytest.mark.parametrize("name", GGUF)
@pytest.mark.parametrize("verb", ["dequantize", "compare", "audit"])
def test_hostile_gguf(tmp_path, capsys, name, verb):
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF[name])
    assert "model.gguf" in refused(path, capsys, verb)


# Index files.

SHARD = {"a": ("F32", np.zeros(4, np.float32))}
INDICES = {
    "a parent folder": {"weight_map": {"a": "../secret.safetensors"}},
    "an absolute path": {"weight_map": {"a": "/etc/secret.safetensors"}},
    "a folder below": {"weight_map": {"a": "sub/x.safetensors"}},
    "a parent folder on Windows": {"weight_map": {"a": "..\\secret.safetensors"}},
    "a drive": {"weight_map": {"a": "C:secret.safetensors"}},
    "itself": {"weight_map": {"a": "model.safetensors.index.json"}},
    "a hidden file": {"weight_map": {"a": ".safetensors"}},
    "no name": {"weight_map": {"a": ""}},
    "a name with a null": {"weight_map": {"a": "x\0.safetensors"}},
    "a name that turns the text": {"weight_map": {"a": "x\u202egnp.safetensors"}},
    "a pickle": {"weight_map": {"a": "pytorch_model.bin"}},
    "a number": {"weight_map": {"a": 3}},
    "a list": {"weight_map": [["a", "x.safetensors"]]},
    "nothing": {"weight_map": {}},
    "no map": {"metadata": {}},
    "a file that is missing": {"weight_map": {"a": "y.safetensors"}},
    "a tensor that is missing": {"weight_map": {"b": "x.safetensors"}},
    "too many files": {"weight_map": {f"t{n}": f"x{n}.safetensors" for n in range(5000)}},
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("by", ["index", "folder"])
@pytest.mark.parametrize("verb", ["dequantize", "compare", "audit"])
def test_hostile_indices(tmp_path, capsys, name, by, verb):
    (tmp_path / "secret.safetensors").write_bytes(checkpoint_file(SHARD))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "x.safetensors").write_bytes(checkpoint_file(SHARD))
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps(INDICES[name]))
    refused(index if by == "index" else folder, capsys, verb)


TEXTS = {
    "no JSON": b"{",
    "a list": b"[]",
    "nested brackets": b'{"weight_map": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "millions of brackets": b'{"weight_map": [' + b"[]," * 1_100_000 + b"[]]}",
    "a name twice": b'{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}',
    "no UTF-8": b'{"weight_map": {"\xff": "x.safetensors"}}',
    "a long number": b'{"weight_map": ' + b"9" * 10_000 + b"}",
    "pickled": pickle.dumps(Harmful()),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("file", ["model.safetensors.index.json", "config.json"])
def test_hostile_json(tmp_path, capsys, name, file):
    write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    (tmp_path / file).write_bytes(TEXTS[name])
    if file == "config.json" and name in ("a name twice",):
        (tmp_path / file).write_bytes(b'{"a": 1, "a": 2}')
    path = tmp_path if "index" in file else tmp_path / "model.safetensors"
    refused(path, capsys)


def test_an_index_of_4_gb_is_not_read(tmp_path, capsys):
    path = tmp_path / "model.safetensors.index.json"
    with open(path, "wb") as file:
        file.truncate(4 << 30)
    assert "4,294,967,296 bytes" in refused(path, capsys)


# Folders.


def test_a_folder_without_a_checkpoint(tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    assert "no checkpoint" in refused(folder, capsys)


def test_a_folder_of_pickles(tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Harmful()))
    assert "not read; convert it" in refused(folder, capsys)


def test_a_tensor_in_two_files(tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in "xy":
        (folder / f"{name}.safetensors").write_bytes(checkpoint_file(SHARD))
    assert "which another file also has" in refused(folder, capsys)


def test_two_indices(tmp_path, capsys):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in "xy":
        (folder / f"{name}.safetensors.index.json").write_text("{}")
    assert "name one index" in refused(folder, capsys)


def in_a_circle(folder):
    (folder / "x.safetensors").symlink_to(folder / "y.safetensors")
    (folder / "y.safetensors").symlink_to(folder / "x.safetensors")


def to_itself(folder):
    (folder / "x.safetensors").symlink_to(folder, target_is_directory=True)


def as_pipe(folder):
    os.mkfifo(folder / "x.safetensors")


def as_device(folder):
    (folder / "x.safetensors").symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [in_a_circle, to_itself, as_pipe, as_device], ids=lambda make: make.__name__)
@pytest.mark.parametrize("has_index", [True, False])
def test_files_that_are_none(tmp_path, capsys, make, has_index):
    folder = tmp_path / "model"
    folder.mkdir()
    make(folder)
    if has_index:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "x.safetensors"}}))
    refused(folder, capsys)


# Quantised weights whose parts do not fit.

BYTES, SCALES = np.zeros((4, 16), np.uint8), np.full((4, 2), 0x38, np.uint8)
ONE = ("F32", np.float32(1))
NVFP4 = {"l.weight": ("U8", BYTES), "l.weight_scale": ("F8_E4M3", SCALES), "l.weight_scale_2": ONE}
PACKED = {"l.weight_packed": ("U8", BYTES), "l.weight_scale": ("F8_E4M3", SCALES), "l.weight_global_scale": ONE}
FP8 = {"l.weight": ("F8_E4M3", np.zeros((4, 16), np.uint8)), "l.weight_scale": ("F32", np.ones(4, np.float32))}
TILES = {"l.weight": FP8["l.weight"], "l.weight_scale_inv": ("F32", np.ones((1, 1), np.float32))}
INTEGERS = {
    "l.weight_packed": ("I32", np.zeros((4, 4), np.int32)), "l.weight_scale": ("F32", np.ones((4, 1), np.float32)),
    "l.weight_shape": ("I64", np.int64([4, 32])),
}  # fmt: skip
GPTQ = {
    "l.qweight": ("I32", np.zeros((4, 8), np.int32)), "l.scales": ("F16", np.ones((1, 8), np.float16)),
    "l.qzeros": ("I32", np.zeros((1, 1), np.int32)), "l.g_idx": ("I32", np.zeros(32, np.int32)),
}  # fmt: skip
AWQ = {
    "l.qweight": ("I32", np.zeros((32, 1), np.int32)), "l.scales": ("F16", np.ones((1, 8), np.float16)),
    "l.qzeros": ("I32", np.zeros((1, 1), np.int32)),
}  # fmt: skip
GPT_OSS = {"l_blocks": ("U8", np.zeros((2, 3, 16), np.uint8)), "l_scales": ("U8", np.zeros((2, 3), np.uint8))}


def state(**said):
    known = {"quant_type": "nf4", "blocksize": 64, "shape": [8, 16]} | said
    return "U8", np.frombuffer(json.dumps(known).encode(), np.uint8)


STATE = "l.weight.quant_state.bitsandbytes__nf4"
BNB = {
    "l.weight": ("U8", np.zeros((64, 1), np.uint8)), "l.weight.absmax": ("F32", np.ones(2, np.float32)),
    "l.weight.quant_map": ("F32", np.ones(16, np.float32)), STATE: state(),
}  # fmt: skip
GPTQ_CONFIG = {"quant_method": "gptq", "bits": 4}


def without(parts, *names):
    return {name: part for name, part in parts.items() if name not in names}


def u8(*shape):
    return "U8", np.zeros(shape, np.uint8)


def f32(*shape):
    return "F32", np.ones(shape, np.float32)


PARTS = {
    "nvfp4: scale missing": (without(NVFP4, "l.weight_scale"), None),
    "nvfp4: global scale missing": (without(NVFP4, "l.weight_scale_2"), None),
    "nvfp4: scales turned": (NVFP4 | {"l.weight_scale": ("F8_E4M3", SCALES.T)}, None),
    "nvfp4: too few scales": (NVFP4 | {"l.weight_scale": ("F8_E4M3", SCALES[:, :1])}, None),
    "nvfp4: scales of another layer": (NVFP4 | {"l.weight_scale": ("F8_E4M3", SCALES[:3])}, None),
    "nvfp4: flat scales": (NVFP4 | {"l.weight_scale": ("F8_E4M3", SCALES.ravel())}, None),
    "nvfp4: two global scales": (NVFP4 | {"l.weight_scale_2": f32(2)}, None),
    "nvfp4: global scale of bytes": (NVFP4 | {"l.weight_scale_2": u8()}, None),
    "nvfp4: rows that are no blocks": (NVFP4 | {"l.weight": u8(4, 13)}, None),
    "nvfp4: another group_size": (NVFP4, {"quant_method": "modelopt", "group_size": 32}),
    "nvfp4: scales of float": (NVFP4 | {"l.weight_scale": f32(4, 2)}, None),
    "packed: scale missing": (without(PACKED, "l.weight_scale"), None),
    "packed: global scale missing": (without(PACKED, "l.weight_global_scale"), None),
    "packed: one axis": (PACKED | {"l.weight_packed": u8(64)}, None),
    "packed: weight there twice": (PACKED | {"l.weight": f32(4, 32)}, None),
    "mxfp4: scales that do not fit": (PACKED | {"l.weight_scale": u8(4, 2)}, None),
    "scale without weight": ({"l.weight_scale": f32(4), "x": ONE}, None),
    "inverse scale without weight": ({"l.weight_scale_inv": f32(1, 1)}, None),
    "fp8: too many scales": (FP8 | {"l.weight_scale": f32(5)}, None),
    "fp8: scale missing": (without(FP8, "l.weight_scale"), {"quant_method": "fp8"}),
    "fp8: blocks that do not fit": (TILES, {"quant_method": "fp8", "weight_block_size": [2, 2]}),
    "fp8: blocks of 0": (TILES, {"quant_method": "fp8", "weight_block_size": [0, 128]}),
    "fp8: blocks of text": (TILES, {"quant_method": "fp8", "weight_block_size": "128"}),
    "fp8: blocks of one number": (TILES, {"quant_method": "fp8", "weight_block_size": [128]}),
    "fp8: group_size as text": (TILES, {"quant_method": "fp8", "group_size": "16"}),
    "fp8: weights of float": (TILES | {"l.weight": f32(4, 16)}, None),
    "fp8: zero points": (FP8 | {"l.weight_zero_point": f32(4)}, None),
    "mxfp8: too few scales": (FP8 | {"l.weight_scale": u8(4, 2)}, None),
    "integers: shape missing": (without(INTEGERS, "l.weight_shape"), None),
    "integers: absurd shape": (INTEGERS | {"l.weight_shape": ("I64", np.int64([4, 1 << 40]))}, None),
    "integers: negative shape": (INTEGERS | {"l.weight_shape": ("I64", np.int64([4, -32]))}, None),
    "integers: three sides": (INTEGERS | {"l.weight_shape": ("I64", np.int64([4, 4, 8]))}, None),
    "integers: groups of 3": (INTEGERS | {"l.weight_scale": f32(4, 3)}, None),
    "integers: scales of another layer": (INTEGERS | {"l.weight_scale": f32(3, 1)}, None),
    "integers: too few zero points": (INTEGERS | {"l.weight_zero_point": ("I32", np.zeros((0, 1), np.int32))}, None),
    "integers: groups beyond the scales": (INTEGERS | {"l.weight_g_idx": ("I32", np.full(32, 1, np.int32))}, None),
    "integers: a column in no group": (INTEGERS | {"l.weight_g_idx": ("I32", -np.eye(1, 32, dtype=np.int32)[0])}, None),
    "integers: groups of another layer": (INTEGERS | {"l.weight_g_idx": ("I32", np.zeros(31, np.int32))}, None),
    "gptq: no version": (GPTQ, None),
    "gptq: unknown version": (GPTQ, GPTQ_CONFIG | {"checkpoint_format": "marlin"}),
    "gptq: 3 bits": (GPTQ, GPTQ_CONFIG | {"bits": 3}),
    "gptq: scales missing": (without(GPTQ, "l.scales"), GPTQ_CONFIG),
    "gptq: zero points missing": (without(GPTQ, "l.qzeros"), GPTQ_CONFIG),
    "gptq: too many zero points": (GPTQ | {"l.qzeros": ("I32", np.zeros((1, 2), np.int32))}, GPTQ_CONFIG),
    "gptq: groups beyond the scales": (GPTQ | {"l.g_idx": ("I32", np.full(32, 7, np.int32))}, GPTQ_CONFIG),
    "gptq: negative groups": (GPTQ | {"l.g_idx": ("I32", np.full(32, -1, np.int32))}, GPTQ_CONFIG),
    "gptq: order of another layer": (GPTQ | {"l.g_idx": ("I32", np.zeros(31, np.int32))}, GPTQ_CONFIG),
    "gptq: words of float": (GPTQ | {"l.qweight": f32(4, 8)}, GPTQ_CONFIG),
    "gptq: no scales at all": (GPTQ | {"l.scales": ("F16", np.ones((0, 8), np.float16))}, GPTQ_CONFIG),
    "awq: outputs that do not fit": (AWQ | {"l.scales": ("F16", np.ones((1, 9), np.float16))}, None),
    "awq: groups that do not divide": (AWQ | {"l.scales": ("F16", np.ones((5, 8), np.float16))}, None),
    "awq: another layout": (AWQ, {"quant_method": "awq", "version": "gemv"}),
    "gpt-oss: scales missing": (without(GPT_OSS, "l_scales"), None),
    "gpt-oss: blocks of 15 bytes": (GPT_OSS | {"l_blocks": u8(2, 3, 15)}, None),
    "gpt-oss: scales that do not fit": (GPT_OSS | {"l_scales": u8(3, 2)}, None),
    "gpt-oss: blocks missing": (without(GPT_OSS, "l_blocks"), None),
    "bitsandbytes: state missing": (without(BNB, STATE), None),
    "bitsandbytes: state that is no JSON": (BNB | {STATE: u8(20)}, None),
    "bitsandbytes: absurd shape": (BNB | {STATE: state(shape=[1 << 39, 1 << 39])}, None),
    "bitsandbytes: negative shape": (BNB | {STATE: state(shape=[-8, -16])}, None),
    "bitsandbytes: blocks of 0": (BNB | {STATE: state(blocksize=0)}, None),
    "bitsandbytes: too few scales": (BNB | {"l.weight.absmax": f32(1)}, None),
    "bitsandbytes: too few values": (BNB | {"l.weight.quant_map": f32(15)}, None),
    "bitsandbytes: scales of scales missing": (BNB | {"l.weight.absmax": u8(2)}, None),
    "bitsandbytes: weight missing": (without(BNB, "l.weight"), None),
    "bitsandbytes: too few rows": ({"l.weight": ("I8", np.zeros((4, 8), np.int8)), "l.SCB": f32(3)}, None),
    "torchao: not described": ({"l._weight_qdata": u8(4, 16), "l._weight_scale": u8(4, 1)}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_do_not_fit(tmp_path, capsys, name):
    tensors, config = PARTS[name]
    said = refused(write_checkpoint(tmp_path / "model.safetensors", tensors, config), capsys)
    assert "l." in said or "l_" in said or "config.json has" in said


TORCHAO = {"l._weight_qdata": u8(4, 16), "l._weight_scale": u8(4, 1)}
NAMED = {"_type": "MXTensor", "_data": {"elem_dtype": {"_data": "float4_e2m1fn_x2"}, "block_size": 32}}
DESCRIPTIONS = {
    "no JSON": "{",
    "a list": "[]",
    "nothing": "{}",
    "a class that is not read": json.dumps(NAMED | {"_type": "os.system"}),
    "blocks of 0": json.dumps(NAMED | {"_data": NAMED["_data"] | {"block_size": 0}}),
    "unknown elements": json.dumps(NAMED | {"_data": NAMED["_data"] | {"elem_dtype": "float3"}}),
    "scales that are not swizzled": json.dumps(NAMED | {"_data": NAMED["_data"] | {"is_swizzled_scales": True}}),
    "a float8 that is none": json.dumps(NAMED | {"_type": "Float8Tensor"}),
    "an nvfp4 that is none": json.dumps(NAMED | {"_type": "NVFP4Tensor"}),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_hostile_descriptions(tmp_path, capsys, name):
    path = write_checkpoint(tmp_path / "model.safetensors", TORCHAO, metadata={"l.weight": DESCRIPTIONS[name]})
    refused(path, capsys)


def test_the_sound_ones_are_read(tmp_path):
    """The parts that the hostile files are made from are sound."""
    sound = [(NVFP4, None), (PACKED, None), (FP8, None), (TILES, None), (INTEGERS, None), (GPTQ, GPTQ_CONFIG)]
    sound += [(AWQ, None), (GPT_OSS, None), (BNB, None)]
    for number, (tensors, config) in enumerate(sound):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write_checkpoint(folder / "model.safetensors", tensors, config)
        with contextlib.redirect_stdout(io.StringIO()):
            assert main(["dequantize", str(path), str(tmp_path / f"{number}.safetensors")]) == 0
    path = write_checkpoint(tmp_path / "model.safetensors", TORCHAO, metadata={"l.weight": json.dumps(NAMED)})
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["dequantize", str(path), str(tmp_path / "t.safetensors")]) == 0


@pytest.mark.parametrize("target", ["model.safetensors", "./model.safetensors", "link.safetensors"])
def test_the_checkpoint_is_not_overwritten(tmp_path, capsys, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    path = write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    (tmp_path / "link.safetensors").symlink_to(path)
    before = path.read_bytes()
    assert main(["dequantize", "model.safetensors", target]) == 2
    assert "is part of the checkpoint that is read" in capsys.readouterr().err
    assert path.read_bytes() == before


@pytest.mark.parametrize("target", ["x.npz", "x", "", "missing/x.safetensors", "folder.safetensors"])
def test_targets_that_cannot_be_written(tmp_path, capsys, monkeypatch, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.safetensors").mkdir()
    write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    assert main(["dequantize", "model.safetensors", target]) == 2
    assert capsys.readouterr().err.count("\n") == 1
