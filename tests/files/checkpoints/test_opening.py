"""Checkpoints of every kind list the same tensors, and read them piece by piece."""

import json

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError
from floatlab.files import open_array
from floatlab.files.checkpoints import open_checkpoint
from floatlab.files.safetensors_writing import NewTensor, write_safetensors
from tests.auditing.gguf_making import ARRAY, STRING, UINT8, entry, gguf, key, text
from tests.auditing.making import checkpoint_file

A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.float16([1, 2])
TENSORS = {"a.weight": ("F32", A), "b": ("F16", B)}


def single(folder):
    (folder / "m.safetensors").write_bytes(checkpoint_file(TENSORS))
    return folder / "m.safetensors"


def sharded(folder, extra=()):
    """Write two files and their index; return the index."""
    for number, name in enumerate(TENSORS):
        (folder / f"m-{number}.safetensors").write_bytes(checkpoint_file({name: TENSORS[name]}))
    placed = {name: f"m-{number}.safetensors" for number, name in enumerate(TENSORS)}
    (folder / "m.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": placed}))
    return folder / "m.safetensors.index.json"


def folder_with_index(folder):
    return sharded(folder).parent


def folder_without_index(folder):
    sharded(folder).unlink()
    return folder


def npz(folder):
    np.savez(folder / "m.npz", **{"a.weight": A, "b": B})
    return folder / "m.npz"


def compressed(folder):
    np.savez_compressed(folder / "m.npz", **{"a.weight": A, "b": B})
    return folder


def arrays(folder):
    np.save(folder / "a.weight.npy", A)
    np.save(folder / "b.npy", B)
    return folder


def gguf_file(folder):
    keys = [
        key("general.name", STRING, text("x")),
        key("k", ARRAY, b"\x08\0\0\0" + b"\2\0\0\0\0\0\0\0" + text("u") * 2),
    ]
    keys.append(key("n", ARRAY, b"\0\0\0\0" + b"\3\0\0\0\0\0\0\0" + b"123"))
    keys.append(key("u", UINT8, b"\7"))
    entries = [entry("a.weight", (3, 2)), entry("b", (2,), 1, 32)]
    (folder / "m.gguf").write_bytes(gguf(entries, A.tobytes() + b"\0" * 8 + B.tobytes(), keys))
    return folder / "m.gguf"


def mapping(folder):
    return {"a.weight": A, "b": B}


@pytest.mark.parametrize(
    "make",
    [single, sharded, folder_with_index, folder_without_index, npz, compressed, arrays, gguf_file, mapping],
    ids=lambda make: make.__name__,
)
def test_every_kind_lists_and_reads_the_same(tmp_path, make):
    with open_checkpoint(make(tmp_path)) as found:
        assert {name: each.shape for name, each in found.tensors.items()} == {"a.weight": (2, 3), "b": (2,)}
        assert [each.kind for each in found.tensors.values()] == ["float32", "float16"]
        for _ in range(2):  # a tensor can be opened again
            with found.open("a.weight") as source:
                assert [piece.tolist() for piece in source.blocks(4)] == [[0, 1, 2, 3], [4, 5]]
            with found.open("b") as source:
                assert source.whole().tolist() == [1, 2]
        assert found.matching("*.weight") == ["a.weight"]
        with pytest.raises(UnsupportedError, match="--only 'c' matches no tensor of"):
            found.matching("c")
        with pytest.raises(FileFormatError, match="has no tensor 'c'"):
            found.open("c")


def test_the_index_says_from_which_file_a_tensor_is_taken(tmp_path):
    index = sharded(tmp_path)
    both = {"a.weight": ("F32", np.zeros((2, 3), np.float32)), "b": TENSORS["b"]}
    (tmp_path / "m-1.safetensors").write_bytes(checkpoint_file(both))
    with open_checkpoint(index) as found, found.open("a.weight") as source:
        assert source.whole().tolist() == A.tolist()
    index.unlink()
    with pytest.raises(FileFormatError, match=r"has the tensor 'a\.weight', which another file also has"):
        open_checkpoint(tmp_path)


def test_links_to_files_elsewhere_are_followed(tmp_path):
    """As in the cache of huggingface_hub, whose folders hold links to files named by their hash."""
    (tmp_path / "blobs").mkdir()
    (tmp_path / "model").mkdir()
    index = sharded(tmp_path / "blobs")
    for path in list((tmp_path / "blobs").iterdir()):
        (tmp_path / "model" / path.name).symlink_to(path)
    with open_checkpoint(tmp_path / "model" / index.name) as found:
        assert list(found.tensors) == ["a.weight", "b"]


def test_mappings_hold_arrays_of_any_library():
    bf16 = np.float32([1, 2]).astype(ml_dtypes.bfloat16)
    with open_checkpoint({"a": bf16, "b": fl.FloatArray([0.5], "e4m3"), "c": [1.0]}) as found:
        assert [each.kind for each in found.tensors.values()] == ["bfloat16", "e4m3fn", "float64"]
    with pytest.raises(UnsupportedError, match="but has the key 3"):
        open_checkpoint({3: bf16})


def test_a_random_array_is_a_checkpoint_with_one_tensor(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    word = "random:lognormal:4x6:seed=3@bf16"
    with open_checkpoint(word) as checkpoint, open_array(word) as array:
        [tensor] = checkpoint.tensors.values()
        assert (tensor.name, tensor.dtype, tensor.shape) == ("lognormal", "bfloat16", (4, 6))
        with tensor.open() as opened:
            assert np.array_equal(opened.whole().codes, array.whole().codes)
    for wrong in ("random:", "random:normal", "random:norml:3", "random:normal:4x4@fp99"):
        with pytest.raises(FloatlabError):
            open_checkpoint(wrong)


def test_gguf_metadata_are_read_and_long_ones_skipped(tmp_path):
    with open_checkpoint(gguf_file(tmp_path)) as found:
        assert found.metadata == {"general.name": "x", "k": None, "n": None, "u": 7}


def test_gguf_tensors_are_arrays_too(tmp_path):
    path = gguf_file(tmp_path)
    with open_array(f"{path}::b") as source:
        assert (source.kind, source.whole().tolist()) == ("float16", [1, 2])
    with pytest.raises(FileFormatError, match="choose one as FILE::NAME"):
        open_array(str(path))
    path.write_bytes(gguf([entry("q", (32,), 2)], b"\0" * 18))
    with pytest.raises(UnsupportedError, match=r"'q' is quantised \(Q4_0\): floatlab dequantize .* OUT.safetensors"):
        open_array(str(path))


def test_a_file_that_is_written_is_read_by_safetensors(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "m.safetensors"
    new = [
        NewTensor("é", "F16", (2,), 2, lambda: iter([B[:1], B[1:]])),
        NewTensor("a", "F32", (2, 3), 4, lambda: iter([A.ravel()])),
        NewTensor("none", "F64", (0, 2), 8, lambda: iter(())),
    ]
    assert write_safetensors(str(path), new, {"format": "pt"}) == path.stat().st_size
    found = library.load_file(path)
    assert found["é"].tolist() == [1, 2]
    assert found["a"].tolist() == A.tolist()
    assert found["none"].shape == (0, 2)
    assert path.read_bytes()[8:9] == b"{"
    assert int.from_bytes(path.read_bytes()[:8], "little") % 8 == 0


def test_a_file_with_too_few_pieces_is_not_written(tmp_path):
    path = tmp_path / "m.safetensors"
    with pytest.raises(FileFormatError, match="a gave 2 bytes, but its shape takes 4"):
        write_safetensors(str(path), [NewTensor("a", "F16", (2,), 2, lambda: iter([B[:1]]))])
    assert list(tmp_path.iterdir()) == []
