"""The files that `audit` writes: what it reads is never overwritten."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import save_file

from floatlab.cli.main import run

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
    assert "is read by this command; name another file" in ended.err
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
    assert "is the file of --resume" in ended.err


def test_no_tensor_is_listed(place, command):
    assert command("audit", "model.safetensors", "--to", "e4m3", "--worst", "0").status == 0


def test_documents_go_to_standard_output(place, command):
    ended = command("audit", "model.safetensors", "--to", "e4m3", "--plan", "-")
    assert (ended.status, json.loads(ended.out)["tensors"]) == (0, {"w": "e4m3"})
    ended = command("audit", "model.safetensors", "--to", "e4m3", "--html", "-", "--csv", "figures.csv")
    assert (ended.status, ended.out[:15], ended.out[-8:]) == (0, "<!DOCTYPE html>", "</html>\n")
    assert os.path.exists("figures.csv")
    assert not os.path.exists("-")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--html", "-", "--plan", "-"), "--html - and --plan - both write to standard output"),
        (("--plan", "-", "--json"), "--json and --plan - both write to standard output"),
        (("--html", "-", "--quiet"), "--quiet and --html - both write to standard output"),
        (("--plot", "-"), "--plot takes the name of a file"),
        (("--worst", "few"), "--worst takes a number of tensors, or all, not 'few'"),
        (("--plan", "nowhere/plan.json"), "--plan 'nowhere/plan.json' cannot be written"),
        (("--resume", "nowhere/kept"), "nowhere/kept"),
    ],
)
def test_outputs_that_cannot_be_are_refused(place, command, words, said):
    ended = command("audit", "model.safetensors", "--to", "e4m3", *words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert os.listdir(".") == os.listdir(place)
    assert not os.path.exists("-")


def test_a_figure_of_an_unknown_kind_is_refused_before_the_work(place, command):
    pytest.importorskip("matplotlib")
    ended = command("audit", "missing.safetensors", "--to", "e4m3", "--plot", "plot.xyz")
    assert ended.status == 2
    assert "--plot 'plot.xyz' has no extension of a figure format: use .png" in ended.err


def test_a_resumed_audit_says_what_it_takes(place, command):
    asked = ("audit", "model.safetensors", "--to", "e4m3", "--resume", "kept")
    assert command(*asked).err == ""
    assert command(*asked).err == "floatlab: tensors already in 'kept': 1 of 1\n"


@pytest.mark.parametrize(("more", "said"), [((), "nothing is kept"), (("--resume", "kept"), "'kept' keeps what is")])
def test_an_interrupt_says_what_is_kept(place, command, monkeypatch, capsys, more, said):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("floatlab.verbs.audit.recipes_answer.audit_recipes", interrupted)
    monkeypatch.setattr("sys.argv", ["floatlab", "audit", "model.safetensors", "--to", "e4m3", *more])
    with pytest.raises(SystemExit) as left:
        run()
    assert left.value.code == 130
    assert said in capsys.readouterr().err
