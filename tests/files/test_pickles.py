"""Pickled files are never read: one line names the command that converts them, and that command works."""

import io
import os
import pickle
import shlex
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from floatlab.errors import FileFormatError
from floatlab.files import open_array

RAN = []


class Harmful:
    """An object that reports that it was unpickled."""

    def __reduce__(self):
        return RAN.append, ("unpickled",)


def saved_by_torch():
    """Return the start of a file as torch.save writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as bundle:
        bundle.writestr("archive/data.pkl", pickle.dumps(Harmful()))
        bundle.writestr("archive/data/0", bytes(64))
    return out.getvalue()


OLD_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."
FILES = [
    ("w.pt", saved_by_torch(), "torch"), ("w.pth", saved_by_torch(), "torch"), ("w.ckpt", saved_by_torch(), "torch"),
    ("pytorch_model.bin", saved_by_torch(), "torch"), ("old.bin", OLD_TORCH, "torch"),
    ("no ending", saved_by_torch(), "torch"),
    ("W.PT", b"", "torch"), ("w.pkl", pickle.dumps(Harmful()), "pickle"), ("w.pickle", b"", "pickle"),
    ("w.bin", pickle.dumps(Harmful(), 2), "pickle"), ("w.dat", pickle.dumps(Harmful(), 5), "pickle"),
    ("it's a name.pkl", pickle.dumps(1), "pickle"),
]  # fmt: skip


def refusal(path):
    with pytest.raises(FileFormatError) as refused, open_array(str(path)):
        pass
    return str(refused.value)


def run_command(said):
    command = said[said.index("python -c") :].replace("python", shlex.quote(sys.executable), 1)
    subprocess.run(command, shell=True, check=True)


@pytest.mark.parametrize(("name", "data", "kind"), FILES)
def test_a_pickle_is_refused_with_the_command(name, data, kind, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    said = refusal(path)
    assert not RAN
    assert len(said.splitlines()) == 1
    assert said.isprintable()
    words = shlex.split(said[said.index("python -c") :])
    assert words[:2] == ["python", "-c"]
    assert words[3] == str(path)
    assert words[4].endswith(".safetensors" if kind == "torch" else ".npy")
    assert ("weights_only=True" in words[2]) == (kind == "torch")
    compile(words[2], "command", "exec")


@pytest.mark.skipif(os.name == "nt", reason="the command is for a shell of Unix")
def test_the_command_converts_a_pickle(tmp_path):
    x = np.random.default_rng(1).random((3, 4))
    (tmp_path / "my x.pkl").write_bytes(pickle.dumps(x))
    run_command(refusal(tmp_path / "my x.pkl"))
    with open_array(str(tmp_path / "my x.npy")) as found:
        np.testing.assert_array_equal(found.whole(), x)


def test_the_command_converts_tensors_of_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    for name, data in (("one", torch.ones(2, 3).T), ("several", {"a": torch.ones(3, dtype=torch.bfloat16)})):
        path = tmp_path / f"{name}.pt"
        torch.save(data, path)
        run_command(refusal(path))
        with open_array(str(path.with_suffix(".safetensors"))) as found:
            assert found.size in (3, 6)


def test_other_files_of_these_names_are_read_as_before(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(3))
    (tmp_path / "x.npy").rename(tmp_path / "x.pt")
    with open_array(str(tmp_path / "x.pt")) as found:
        assert found.shape == (3,)
    (tmp_path / "x.bin").write_text("1 2 3")
    with open_array(str(tmp_path / "x.bin")) as found:
        assert found.shape == (3,)
    (tmp_path / "y.bin").write_bytes(b"\x80\x04\x95\x00")
    with open_array(str(tmp_path / "y.bin"), dtype="e4m3") as found:
        assert found.shape == (4,)
    np.savez(tmp_path / "z.npz", a=np.ones(3))
    (tmp_path / "z.npz").rename(tmp_path / "z.bin")
    with open_array(f"{tmp_path}/z.bin::a") as found:
        assert found.shape == (3,)
