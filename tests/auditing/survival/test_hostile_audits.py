"""Malicious checkpoints given to `audit --to`: one line, status 2, little time and memory; no code is executed.

If only some tensors are bad, the others are measured, the bad ones are listed with the reason, and the status is 1.
"""

import json
import os
import time
import tracemalloc

import numpy as np
import pytest

from floatlab.cli.main import main
from floatlab.files.remote import http_file
from tests.auditing import test_hostile_checkpoints as checkpoints
from tests.auditing.gguf_making import GGUF
from tests.auditing.making import QUANTIZED, checkpoint_file, write_checkpoint
from tests.files import test_hostile as files
from tests.files.making import npy, safetensors
from tests.files.remote.serving import serving
from tests.files.remote.test_http import FAULTS

RECIPES = "mxfp4,nvfp4,e4m3/tensor,int8/channel"


def audited(place, capsys, *options, most_bytes=64 << 20, most_seconds=20.0):
    """Audit a checkpoint; return the status and what was said, after checks of time and memory."""
    tracemalloc.start()
    start = time.process_time()
    status = main(["audit", str(place), "--to", RECIPES, *options])
    used, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    said = capsys.readouterr()
    assert peak < most_bytes
    assert used < most_seconds
    assert "Traceback" not in said.err + said.out
    assert said.err.replace("\n", "").isprintable()
    assert checkpoints.RAN == []
    return status, said


def refused(place, capsys, *options, **limits):
    status, said = audited(place, capsys, *options, **limits)
    assert (status, said.out) == (2, ""), said
    assert said.err.count("\n") == 1
    assert len(said.err) < 700
    return said.err


@pytest.mark.parametrize("name", GGUF)
def test_gguf(tmp_path, capsys, name):
    path = tmp_path / "model.gguf"
    path.write_bytes(GGUF[name])
    status, said = audited(path, capsys)
    assert status in (1, 2)  # an unsupported type affects only one tensor
    assert "model.gguf" in "".join((said.out + said.err).split())  # a page may break the name


SOUND_HERE = ("two.npz", "binary.txt", "ragged.txt", "words.txt", "empty.txt", "one long line.txt")


@pytest.mark.parametrize("name", sorted({*files.HOSTILE} - {*SOUND_HERE}))
def test_other_files(tmp_path, capsys, name):
    path = tmp_path / name.replace(" ", "_").replace("/", "_")
    path.write_bytes(files.HOSTILE[name])
    status, _ = audited(path, capsys)
    assert status in (1, 2)  # the tensors of an archive are opened one by one
    assert files.RAN == []


@pytest.mark.parametrize("name", checkpoints.INDICES)
@pytest.mark.parametrize("by", ["index", "folder", "url"])
def test_indices(tmp_path, capsys, name, by):
    (tmp_path / "secret.safetensors").write_bytes(checkpoint_file(checkpoints.SHARD))
    folder = tmp_path / "model"
    folder.mkdir()
    shard, text = checkpoint_file(checkpoints.SHARD), json.dumps(checkpoints.INDICES[name]).encode()
    (folder / "x.safetensors").write_bytes(shard)
    index = folder / "model.safetensors.index.json"
    index.write_bytes(text)
    if by != "url":
        refused(index if by == "index" else folder, capsys)
        return
    held = {f"m/{index.name}": text, "m/x.safetensors": shard, "secret.safetensors": shard}
    with serving(held) as server:
        refused(f"{server.url}/m/{index.name}", capsys)
        assert "secret.safetensors" not in {path for path, *_ in server.requests}


@pytest.mark.parametrize("name", checkpoints.TEXTS)
@pytest.mark.parametrize("file", ["model.safetensors.index.json", "config.json"])
def test_json(tmp_path, capsys, name, file):
    write_checkpoint(tmp_path / "model.safetensors", QUANTIZED)
    twice = file == "config.json" and name == "a name twice"
    (tmp_path / file).write_bytes(b'{"a": 1, "a": 2}' if twice else checkpoints.TEXTS[name])
    refused(tmp_path if "index" in file else tmp_path / "model.safetensors", capsys)


@pytest.mark.parametrize("make", ["in_a_circle", "to_itself", "as_pipe", "as_device"])
def test_files_that_are_none(tmp_path, capsys, make):
    getattr(checkpoints, make)(tmp_path)
    refused(tmp_path / "x.safetensors", capsys)
    refused(tmp_path, capsys)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", checkpoints.PARTS)
def test_parts_that_do_not_fit(tmp_path, capsys, name):
    """Such weights are listed, with the reason; what can be read is measured."""
    tensors, config = checkpoints.PARTS[name]
    status, said = audited(write_checkpoint(tmp_path / "model.safetensors", tensors, config), capsys)
    assert status in (1, 2)
    assert (said.err.count("\n"), said.out) == (1, "") if status == 2 else "l" in said.out


# Sparse files, with absurd shapes that fit the length of the file.
SPARSE = {
    "one long row": (1, 1 << 43),
    "a vector": (1 << 43,),
    "one long column": (1 << 43, 1),
    "many matrices": (1 << 41, 2, 2),
    "many axes": (2,) * 31 + (1 << 12,),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_files_of_many_terabytes(tmp_path, capsys, name):
    path, shape = tmp_path / "model.safetensors", SPARSE[name]
    header = {"a": {"dtype": "F8_E4M3", "shape": list(shape), "data_offsets": [0, 1 << 43]}}
    whole = safetensors(header, b"")
    with open(path, "wb") as file:
        file.write(whole)
        try:
            file.truncate(len(whole) + (1 << 43))
        except OSError:
            pytest.skip("the file system has no files of this size")
    assert "elements" in refused(path, capsys)


def test_a_url_that_claims_a_petabyte(capsys):
    """The server says that the file is as long as its header claims."""
    size = 1 << 50
    whole = safetensors({"a": {"dtype": "F8_E4M3", "shape": [size], "data_offsets": [0, size]}}, bytes(1 << 16))
    with serving({"model.safetensors": whole}, f"claims {len(whole) - (1 << 16) + size}") as server:
        assert "elements" in refused(f"{server.url}/model.safetensors", capsys)


@pytest.mark.parametrize("columns", [0, 1, 1 << 20])
def test_empty_and_odd_shapes(tmp_path, capsys, columns):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": {"dtype": "F32", "shape": [0, columns], "data_offsets": [0, 0]}}, b""))
    status, said = audited(path, capsys)
    assert (status, said.err) == (0, "")


@pytest.mark.parametrize("fault", FAULTS)
def test_servers_that_misbehave(capsys, monkeypatch, fault):
    monkeypatch.setattr(http_file, "_LATEST", 1.0)
    monkeypatch.setattr(http_file, "_SLOWEST", 1 << 24)
    whole = checkpoint_file({"a": ("F32", np.ones((64, 4096), np.float32))})
    with serving({"model.safetensors": whole}, fault) as server:
        status, said = audited(f"{server.url}/model.safetensors", capsys)
    assert status in ((0,) if fault in ("stops early", "sends without end") else (1, 2))
    assert said.err.count("\n") == (status == 2)


URLS = [
    "file:///etc/passwd", "file:///etc/x.safetensors", "local://x.npz", "http://", "http:///x.safetensors",
    "http://[::1/x.safetensors", "http://127.0.0.1:99999/x.safetensors", "http://127.0.0.1:1/x.safetensors",
    "http://a b/x.safetensors", "http://127.0.0.1:1/\r\nX: y/x.safetensors", "ftp-x://h/x.safetensors",
    "memory://nothing.safetensors", "memory://", "memory://a\0b.npz", "https://user:word@127.0.0.1:1/x.safetensors",
    "HTTP://127.0.0.1:1/x.safetensors", "http://127.0.0.1:1/", "javascript://x.npz", "zip://x.npz",
    "simplecache::file:///etc/x.npz", "http://\u2028/x.npz", "http://" + "a" * 5000 + "/x.npz",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS, ids=range(len(URLS)))
def test_urls(tmp_path, capsys, monkeypatch, url):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(http_file, "_LATEST", 2.0)
    refused(url, capsys)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["scalar", "complex", "objects", "text"])
def test_arrays_that_are_not_floats(tmp_path, capsys, kind):
    arrays = {"scalar": np.array(3), "complex": np.ones(3, complex), "objects": np.array([None]), "text": np.array("a")}
    path = tmp_path / "x.npy"
    path.write_bytes(npy(arrays[kind]))
    status, said = audited(path, capsys)
    assert status in (0, 1, 2)
    assert said.err.count("\n") == (status == 2)


@pytest.mark.parametrize("option", ["--activations", "--resume"])
@pytest.mark.parametrize("name", ["a pickle", "a folder", "nothing", "itself"])
def test_other_files_that_are_read(tmp_path, capsys, option, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(checkpoint_file({"a": ("F32", np.ones((4, 64), np.float32))}))
    place = {"a folder": tmp_path / "folder", "itself": path}.get(name, tmp_path / "x.npz")
    if name == "a folder":
        place.mkdir()
    if name == "a pickle":
        place.write_bytes(b"\x80\x04cos\nsystem\n(S'touch ran'\ntR.")
    if (option, name) == ("--resume", "nothing"):
        place = tmp_path / "none" / "x"
    before = path.read_bytes()
    if (option, name) == ("--activations", "itself"):
        status, _ = audited(path, capsys, option, str(place))
        assert status in (0, 2)
    else:
        refused(path, capsys, option, str(place))
    assert path.read_bytes() == before
