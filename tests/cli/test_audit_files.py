"""The files that `audit` writes: what it reads is never overwritten."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import save_file

WRITES = ("--plan", "--html", "--csv", "--svg")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make a checkpoint, also as a folder with an index, in the working directory."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("whole")
    for name in ("model.safetensors", "whole/a.safetensors"):
        save_file({"w": np.float32([[1, 2, 3, 4]])}, name)
    index = {"metadata": {}, "weight_map": {"w": "a.safetensors"}}
    (tmp_path / "whole" / "model.safetensors.index.json").write_text(json.dumps(index))
    os.symlink("model.safetensors", "link")
    return tmp_path


@pytest.mark.parametrize("option", WRITES)
@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("model.safetensors", "model.safetensors"), ("model.safetensors", "link"), ("link", "model.safetensors"),
        ("whole", "whole/a.safetensors"), ("whole/model.safetensors.index.json", "whole/a.safetensors"),
        ("whole", "whole/model.safetensors.index.json"),
    ],
)  # fmt: skip
def test_what_is_read_is_not_overwritten(place, command, option, read, written):
    before = (place / written).read_bytes()
    ended = command("audit", read, "--to", "e4m3", option, written)
    assert ended.status == 2
    assert "is read by this command: name another file" in ended.err
    assert ended.err.count("\n") == 1
    assert (place / written).read_bytes() == before


def test_other_files_are_written_again(place, command):
    for _ in range(2):
        assert command("audit", "whole", "--to", "e4m3", "--plan", "whole/plan.json").status == 0
    assert json.loads((place / "whole" / "plan.json").read_text())["tensors"] == {"w": "e4m3"}


def test_one_file_is_not_written_twice(place, command):
    ended = command("audit", "model.safetensors", "--to", "e4m3", "--plan", "x", "--html", "x")
    assert (ended.status, os.path.exists("x")) == (2, False)
    ended = command("audit", "model.safetensors", "--to", "e4m3", "--resume", "./x", "--csv", "x")
    assert (ended.status, os.path.exists("x")) == (2, False)
    assert "is what --resume keeps" in ended.err


def test_no_tensor_is_listed(place, command):
    assert command("audit", "model.safetensors", "--to", "e4m3", "--worst", "0").status == 0
