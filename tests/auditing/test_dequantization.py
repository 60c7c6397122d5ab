"""Quantised checkpoints, written as numbers, are read by others as the same numbers."""

import json
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.cli.main import main
from tests.auditing.gguf_making import entry, gguf
from tests.auditing.making import FP8, QUANTIZED, write_checkpoint

NAME = "model.layers.0.mlp.down_proj.weight"
VALUES = FP8.view(ml_dtypes.float8_e4m3fn).astype(np.float64) * np.float64([[0.25], [0.5], [1], [2]])
DTYPES = {"fp32": np.float32, "bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp64": np.float64}


@pytest.mark.parametrize("to", DTYPES)
def test_the_file_is_read_by_safetensors(tmp_path, to):
    library = pytest.importorskip("safetensors")
    path = write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    done = fl.dequantize(path, tmp_path / "out.safetensors", to=to)
    assert done.bytes == (tmp_path / "out.safetensors").stat().st_size
    assert (done.unchanged, done.left_out) == (("model.norm.weight",), (f"{NAME}_scale",))
    assert done.weights[0].overflows == 0
    found = dict(library.deserialize((tmp_path / "out.safetensors").read_bytes()))
    assert found.keys() == {NAME, "model.norm.weight"}
    assert found["model.norm.weight"]["dtype"] == "F32"
    stored = np.frombuffer(found[NAME]["data"], DTYPES[to]).reshape(found[NAME]["shape"])
    assert stored.tolist() == VALUES.astype(DTYPES[to]).tolist()


def test_numbers_beyond_the_format_are_counted(tmp_path, capsys):
    codes, scales = np.full((1, 16), 0x77, np.uint8), np.full((1, 1), 254, np.uint8)  # 6 × 2^127
    path = write_checkpoint(
        tmp_path / "m.safetensors", {"l.weight_packed": ("U8", codes), "l.weight_scale": ("U8", scales)}
    )
    assert main(["dequantize", str(path), str(tmp_path / "out.safetensors")]) == 0
    assert "32 numbers beyond binary32 became infinite" in capsys.readouterr().out
    assert fl.dequantize(path, tmp_path / "out.safetensors", to="fp64").weights[0].overflows == 0


def test_each_number_is_rounded_once(tmp_path):
    """The product is just above a tie of bfloat16; rounded to float32 first, it would be the tie, and go down."""
    tie = 1 + 2**-8
    scale = np.float32(tie / 1.125)
    if 1.125 * float(scale) <= tie:
        scale = np.nextafter(scale, np.float32(1))
    exact = 1.125 * float(scale)
    assert exact > tie
    assert float(np.float32(exact)) == tie
    parts = {
        "l.weight": ("U8", np.full((1, 8), 0x22, np.uint8)), "l.weight_scale": ("F8_E4M3", np.uint8([[0x39]])),
        "l.weight_scale_2": ("F32", scale),
    }  # fmt: skip
    path = write_checkpoint(tmp_path / "m.safetensors", parts)
    fl.dequantize(path, tmp_path / "out.safetensors", to="bf16")
    with fl.load_quantized(tmp_path / "out.safetensors") as found:
        assert found["l.weight"].tolist() == [[1 + 2**-7] * 16]


@pytest.mark.parametrize("only", ["*norm*", "*.mlp.*"])
def test_only_some(tmp_path, only, capsys):
    path = write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    assert main(["dequantize", str(path), str(tmp_path / "out.safetensors"), "--only", only, "--json"]) == 0
    wire = json.loads(capsys.readouterr().out)
    assert (len(wire["weights"]), len(wire["unchanged"])) == ((0, 1) if "norm" in only else (1, 0))
    found = fl.from_json(json.dumps(wire))
    assert found.to_json() == json.dumps(wire)


def test_other_tensors_are_copied_bit_for_bit(tmp_path):
    rng = np.random.default_rng(1)
    parts = {
        "nan": ("F32", np.uint32([0x7FA00001, 0xFFC00000])), "bf16": ("BF16", rng.integers(0, 1 << 16, 7, np.uint16)),
        "fp8": ("F8_E5M2", rng.integers(0, 256, (3, 5), np.uint8)), "i": ("I64", np.int64([1 << 62, -3])),
        "flag": ("BOOL", np.uint8([1, 0, 1])), "none": ("F16", np.zeros((0, 4), np.float16)),
        "one": ("F64", np.float64(2)),
    }  # fmt: skip
    path = write_checkpoint(tmp_path / "m.safetensors", QUANTIZED | parts)
    fl.dequantize(path, tmp_path / "out.safetensors")
    library = pytest.importorskip("safetensors")
    before, after = (dict(library.deserialize(each.read_bytes())) for each in (path, tmp_path / "out.safetensors"))
    assert {name: after[name] for name in parts} == {name: before[name] for name in parts}


def test_fortran_order_is_written_by_rows(tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.savez(tmp_path / "m.npz", x=np.asfortranarray(x))
    fl.dequantize(tmp_path / "m.npz", tmp_path / "out.safetensors")
    with fl.load_quantized(tmp_path / "out.safetensors") as found:
        assert found["x"].tolist() == x.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--to", "e4m3"], "numbers must be written as fp32, bf16, fp16, fp64, not as 'e4m3'"),
        (["--to", "fp33"], "fp33"),
        (["--only", "q"], "--only 'q' matches no tensor of"),
        (["-f", "fp16"], "--to bf16 names the format of the numbers"),
        (["more"], "dequantize takes a checkpoint and the file to write, not 3 values"),
    ],
)
def test_wrong_options(tmp_path, capsys, options, message):
    path = write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    assert main(["dequantize", str(path), str(tmp_path / "out.safetensors"), *options]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not (tmp_path / "out.safetensors").exists()


def test_a_large_checkpoint_takes_little_memory(tmp_path):
    """A sparse GGUF of a tensor with 2^26 numbers is read and written piece by piece."""
    elements = 1 << 26
    path = tmp_path / "model.gguf"
    head = gguf([entry("a.weight", (1 << 13, elements >> 13), 2)])
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + elements // 32 * 18)
    tracemalloc.start()
    done = fl.dequantize(path, tmp_path / "out.safetensors", to="bf16")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32 << 20
    assert done.bytes > 2 * elements
    (tmp_path / "out.safetensors").unlink()
