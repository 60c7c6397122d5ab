"""Lists of folders, files and the arrays in them: listing never blocks, and every name can be shown."""

import os

import numpy as np
import pytest
from safetensors.numpy import save_file

from floatlab.errors import FileFormatError
from floatlab.files.listing import completed, entries
from floatlab.files.readers import open_array
from tests.auditing.gguf_making import entry, gguf


@pytest.fixture
def folder(tmp_path, monkeypatch):
    np.save(tmp_path / "b.npy", np.zeros(3))
    np.savez(tmp_path / "a.npz", weight=np.ones((2, 3), np.float16), bias=np.zeros(3))
    save_file({"w": np.ones((4, 5), np.float32), "v": np.zeros((), np.int8)}, tmp_path / "c.safetensors")
    for name in ("notes.md", ".hidden.npy", "line\nbreak.npy", "Z.TXT"):
        (tmp_path / name).write_text("1")
    (tmp_path / "folder.npz").mkdir()
    os.mkfifo(tmp_path / "pipe.npy")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_lists_folders_and_files_of_arrays(folder):
    found = entries("")
    assert [each.name for each in found] == [f"folder.npz{os.sep}", "a.npz", "b.npy", "c.safetensors", "Z.TXT"]
    assert [each.is_container for each in found] == [True, True, False, True, False]
    assert found[2].size == (folder / "b.npy").stat().st_size
    assert [each.word for each in entries(str(folder))][2] == str(folder / "b.npy")
    assert entries(f"folder.npz{os.sep}") == []


def test_a_file_lists_its_arrays_and_each_word_opens_one(folder):
    told = {"a.npz": {"weight": ("float16", (2, 3)), "bias": ("float64", (3,))},
            "c.safetensors": {"w": ("F32", (4, 5)), "v": ("I8", ())}}  # fmt: skip
    for path, arrays in told.items():
        assert {each.name: (each.kind, each.shape) for each in entries(path)} == arrays
        for each in entries(path):
            with open_array(each.word) as source:
                assert source.shape == each.shape


def test_checkpoints_are_listed_too(folder):
    """Of a GGUF, the tensors of plain numbers can be opened; an index can only be opened as a whole."""
    values = np.arange(32, dtype="<f4")
    tensors = [entry("a", (32,)), entry("q", (32,), 8, 128)]
    (folder / "m.gguf").write_bytes(gguf(tensors, values.tobytes() + bytes(34)))
    (folder / "m.safetensors.index.json").write_text("{}")
    (folder / "other.json").write_text("{}")
    assert [each.name for each in entries("")][-3:] == ["c.safetensors", "m.gguf", "Z.TXT"]
    found = {each.name: each for each in entries("", whole=True)}
    assert not found["m.safetensors.index.json"].is_container
    assert "other.json" not in found
    [one] = entries("m.gguf")
    assert (one.word, one.kind, one.shape) == ("m.gguf::a", "F32", (32,))
    with open_array(one.word) as source:
        assert (source.whole() == values).all()
    (folder / "m.gguf").write_bytes(b"GGUF" + b"\xff" * 99)
    with pytest.raises(FileFormatError, match="is GGUF of version"):
        entries("m.gguf")
    assert completed("m.saf") == "m.safetensors.index.json"


def test_what_has_changed_is_read_again(folder):
    assert len(entries("a.npz")) == 2
    np.savez("a.npz", other=np.zeros(9))
    assert [each.name for each in entries("a.npz")] == ["other"]


@pytest.mark.parametrize("place", ["nowhere", "nowhere.npz", "b.npy", "pipe.npy", "\x00", "\x00.npz", "Z.TXT"])
def test_what_is_no_place_is_a_line(folder, place):
    with pytest.raises(FileFormatError) as caught:
        entries(place)
    assert "\n" not in str(caught.value)


def test_broken_bundles_are_a_line(folder):
    (folder / "a.npz").write_bytes(b"PK\x03\x04" + bytes(99))
    (folder / "c.safetensors").write_bytes(b"\xff" * 99)
    os.mkfifo("pipe.npz")
    for place in ("a.npz", "c.safetensors", "pipe.npz"):
        with pytest.raises(FileFormatError, match=place):
            entries(place)
    whole = bytearray((folder / "b.npy").read_bytes())
    with open("d.npz", "wb") as file:
        import zipfile

        with zipfile.ZipFile(file, "w") as bundle:
            bundle.writestr("good.npy", bytes(whole))
            bundle.writestr("bad.npy", bytes(whole[:9]))
    assert {each.name: each.kind for each in entries("d.npz")} == {"good": "float64", "bad": "cannot be read"}


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("b", "b.npy"),
        ("f", f"folder.npz{os.sep}"),
        ("a.npz::b", "a.npz::bias"),
        ("a.npz::", "a.npz::weight"),
        ("c.safetensors::w", None),
        ("b.npy", None),
        ("", None),
        ("1,2", None),
        ("::", None),
        ("random:normal", None),
        ("b.npy::x", None),
        ("\x00", None),
    ],
)
def test_words_are_completed(folder, typed, word):
    assert completed(typed) == word
