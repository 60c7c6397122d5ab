"""Checkpoints are matched by name, and each tensor is compared as an array; the worst comes first."""

import json

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.sources import BLOCK, HeldSource
from floatlab.auditing.comparison import TensorDifference
from floatlab.auditing.roundings import CopySearch
from floatlab.cli.main import main
from tests.auditing.making import QUANTIZED, write_checkpoint

X = np.random.default_rng(1).normal(size=(300, 7)).astype(np.float32)


def results(found):
    return {each.tensor: each.result for each in found.tensors}


def test_every_result_the_worst_first():
    actual = {
        "extra": X, "same": X, "shape": X[:2], "far": X + 1, "near": X + np.float32(1e-3),
        "close": X * np.float32(1 + 1e-6),
        "equal": X.astype(np.float64),
    }  # fmt: skip
    expected = {name: X for name in actual if name != "extra"} | {"missing": X}
    found = fl.compare_checkpoints(actual, expected)
    assert [(each.tensor, each.result) for each in found.tensors] == [
        ("missing", "only in expected"), ("extra", "only in actual"), ("shape", "other shape"),
        ("far", "beyond tolerance"), ("near", "beyond tolerance"), ("close", "close"), ("equal", "equal"),
        ("same", "same bits"),
    ]  # fmt: skip
    assert not found.within
    assert [each.tensor for each in found.tensors if not each.within] == ["missing", "extra", "shape", "far", "near"]
    with pytest.raises(fl.TruthValueError, match=r"use \.within"):
        bool(found)


def test_each_row_is_that_of_compare():
    y = X.copy()
    y[3, 2] += 1
    y[5, 5] = np.nan
    [row] = fl.compare_checkpoints({"a": y}, {"a": X}, rtol=1e-3, atol=1e-4).tensors
    single = fl.compare(y, X, rtol=1e-3, atol=1e-4)
    assert (row.failing, row.size) == (single.allclose.failing, single.size) == (2, X.size)
    assert row.absolute == single.absolute.largest.value
    assert row.relative == single.relative.largest.value
    assert row.ulps == single.ulps.largest.value
    assert row.share is None or np.isnan(row.share) or row.share == single.allclose.share.value


DIRECTIONS = {"RNE": "", "RTZ": " toward zero"}


@pytest.mark.parametrize("rounding", DIRECTIONS)
@pytest.mark.parametrize("name", ["fp16", "bf16", "e4m3", "e5m2"])
@pytest.mark.parametrize("wide", [False, True])
def test_a_copy_that_was_rounded_is_recognised(rounding, name, wide):
    """Stored in its own format, and widened again to that of the original."""
    codes = fl.arrays.encode(X, name, rounding)
    copy = fl.arrays.decode(codes, name, dtype="float32") if wide else fl.FloatArray.from_codes(codes, name)
    for turned in (False, True):
        pair = ({"a": copy, "b": X[0]}, {"a": X, "b": X[0]})
        found = fl.compare_checkpoints(*(pair[::-1] if turned else pair))
        assert found.rounded is not None
        assert (found.rounded.format, found.rounded.direction.value) == (fl.parse_format(name), rounding)
        assert found.rounded.expected_is_rounded == turned
        assert found.rounded.words.startswith("expected is actual" if turned else "actual is expected")


def test_a_copy_with_one_other_number_is_not_called_rounded():
    copy = X.astype(np.float16)
    copy[-1, -1] = np.nextafter(copy[-1, -1], np.float16(9))
    found = fl.compare_checkpoints({"a": copy}, {"a": X})
    assert found.rounded is None
    assert found.tensors[0].rounded is None
    mixed = fl.compare_checkpoints({"a": X.astype(np.float16), "b": copy}, {"a": X, "b": X})
    assert mixed.rounded is None
    assert [each.rounded is None for each in mixed.tensors] in ([True, False], [False, True])


def test_saturation_of_a_copy_is_told():
    x = np.float32([1, 1000, -9000, np.nan])
    copy = x.astype(np.float32).clip(-448, 448).astype(ml_dtypes.float8_e4m3fn)
    assert (
        CopySearch(HeldSource(copy), HeldSource(x)).found().words == "actual is expected rounded to e4m3fn, saturating"
    )
    assert CopySearch(HeldSource(np.int8([1, 2])), HeldSource(np.int8([1, 2]))).found() is None


def test_tensors_are_read_once(monkeypatch):
    read = []
    plain = HeldSource.read
    monkeypatch.setattr(HeldSource, "read", lambda self, first, count: read.append(count) or plain(self, first, count))
    x = np.random.default_rng(2).standard_normal(3 * BLOCK + 5).astype(np.float32)
    found = fl.compare_checkpoints({"x": x.astype(np.float16)}, {"x": x})
    assert found.rounded is not None
    assert sum(read) == 2 * x.size


def test_a_beginning_that_is_equal_must_fit_the_rounding_too():
    x = np.random.default_rng(3).standard_normal(2 * BLOCK).astype(np.float32)
    copy = x.astype(np.float16).astype(np.float32)
    for first, is_copy in ((x[:BLOCK], False), (copy[:BLOCK], True)):
        whole = np.concatenate([first, x[BLOCK:]])
        found = fl.compare_checkpoints({"x": np.concatenate([first, copy[BLOCK:]])}, {"x": whole})
        assert (found.rounded is not None) == is_copy


def test_only_and_stored(tmp_path):
    path = write_checkpoint(tmp_path / "a.safetensors", QUANTIZED)
    numbers = tmp_path / "b.safetensors"
    done = fl.dequantize(path, numbers)
    assert done.weights[0].convention == "scaled FP8"
    found = fl.compare_checkpoints(path, numbers)
    assert results(found) == {"model.layers.0.mlp.down_proj.weight": "equal", "model.norm.weight": "same bits"}
    assert found.tensors[0].actual.convention == "scaled FP8"
    stored = fl.compare_checkpoints(path, numbers, stored=True)
    assert results(stored)["model.layers.0.mlp.down_proj.weight_scale"] == "only in actual"
    assert results(fl.compare_checkpoints(path, numbers, only="*.norm.*")) == {"model.norm.weight": "same bits"}
    with pytest.raises(fl.UnsupportedError, match="--only 'x' matches no tensor"):
        fl.compare_checkpoints(path, numbers, only="x")


def test_a_weight_that_cannot_be_read_has_a_row(tmp_path):
    parts = {name: part for name, part in QUANTIZED.items() if "scale" not in name}
    path = write_checkpoint(tmp_path / "a.safetensors", parts, {"quant_method": "fp8"})
    found = fl.compare_checkpoints(path, path)
    assert results(found)["model.layers.0.mlp.down_proj.weight"] == "unreadable"
    assert "needs the tensor 'model.layers.0.mlp.down_proj.weight_scale', which is missing" in found.tensors[0].reason
    assert found.tensors[0].reason in found.page().text(400)


def test_the_command_has_a_line_of_json_for_each_tensor(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=X, y=X, z=X)
    np.savez(tmp_path / "b.npz", x=X, y=X.astype(np.float16), w=X)
    words = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]
    assert main([*words, "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["tensor"], each["result"]) for each in lines] == [
        ("w", "only in expected"), ("z", "only in actual"), ("y", "beyond tolerance"), ("x", "same bits")
    ]  # fmt: skip
    assert lines[2]["rounded"] == {
        "format": "binary16", "direction": "RNE", "overflow": "native", "expected_is_rounded": True,
    }  # fmt: skip
    for line in lines:
        assert isinstance(fl.from_json(json.dumps(line)), TensorDifference)
        assert fl.from_json(json.dumps(line)).tensor == line["tensor"]
    assert main([*words, "--only", "x"]) == 0
    assert "the only tensor agrees" in " ".join(capsys.readouterr().out.split())
    assert main([*words, "--only", "[xy]", "--rtol", "0.01"]) == 0
    assert main([*words, "--worst", "1", "--quiet"]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3"


def test_the_page_lists_the_worst(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", **{f"t{n}": X + n for n in range(9)})
    np.savez(tmp_path / "b.npz", **{f"t{n}": X for n in range(9)})
    words = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--width", "200"]
    assert main([*words, "--worst", "2"]) == 1
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if line.lstrip().startswith("t")][1:] == ["t8", "t7"]
    assert "7 more tensors: --worst N lists more" in out
    assert main([*words, "--svg", str(tmp_path / "a.svg")]) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--inputs", "1", "2"], "--inputs is for two arrays, but these are checkpoints"),
        (["--only", "x", "--inputs", "1", "2"], "--only and --inputs exclude each other"),
        (["--stored", "--dtype", "f32"], "--stored and --dtype exclude each other"),
        (["--only", "q*"], "--only 'q*' matches no tensor"),
    ],
)
def test_options_of_arrays_are_refused(tmp_path, capsys, options, message):
    np.savez(tmp_path / "a.npz", x=X, y=X)
    assert main(["compare", str(tmp_path / "a.npz"), str(tmp_path / "a.npz"), *options]) == 2
    assert message in capsys.readouterr().err


def test_files_of_one_array_are_compared_as_arrays(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=X)
    words = ["compare", str(tmp_path / "a.npz"), str(tmp_path / "a.npz")]
    assert main(words) == 0
    assert "the same: all 2,100 elements have the same bits" in capsys.readouterr().out
    assert main([*words, "--only", "*"]) == 0
    assert "the only tensor agrees" in " ".join(capsys.readouterr().out.split())


def test_an_array_and_a_checkpoint_are_not_compared(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", x=X, y=X)
    assert main(["compare", str(tmp_path / "a.npz"), "1,2"]) == 2
    assert "choose one as FILE::NAME" in capsys.readouterr().err
