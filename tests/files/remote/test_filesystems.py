"""Checkpoints at the URLs of fsspec: an object store in memory that counts what is requested."""

import json

import numpy as np
import pytest

from floatlab.arrays.codec import native
from floatlab.errors import FileFormatError, MissingPartError
from floatlab.files.checkpoints import open_checkpoint
from tests.auditing.making import checkpoint_file

fsspec = pytest.importorskip("fsspec")
memory = pytest.importorskip("fsspec.implementations.memory")

LONG = np.arange(1 << 20, dtype=np.float32)
FILE = checkpoint_file({"a": ("F32", LONG), "b": ("F16", np.float16([1, 2, 3]))})


class Store(memory.MemoryFileSystem):
    """An object store; `wrong` says how it misbehaves."""

    protocol = "store"
    store = {}
    pseudo_dirs = [""]
    requested = []
    wrong = ""

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(path.removeprefix("store://"))

    def cat_file(self, path, start=None, end=None, **options):
        self.requested.append(end - start)
        if self.wrong == "raises":
            raise RuntimeError("the bucket\n is on \x1b[31mfire")
        found = super().cat_file(path, start, end, **options)
        return {"sends more": found + b"x", "sends less": found[1:]}.get(self.wrong, found)

    def info(self, path, **options):
        told = super().info(path, **options)
        if told["type"] == "file" and self.wrong.startswith("claims"):
            told["size"] = {"claims nothing": None, "claims less than 0": -5, "claims more": 1 << 60}[self.wrong]
        return told


@pytest.fixture
def store(monkeypatch):
    fsspec.register_implementation("store", Store, clobber=True)
    monkeypatch.setattr(Store, "store", {})
    monkeypatch.setattr(Store, "requested", [])
    system = fsspec.filesystem("store")
    system.pipe("/m/x.safetensors", FILE)
    return Store


def numbers(place, name):
    with open_checkpoint(place) as checkpoint, checkpoint.open(name) as source:
        return native(source.whole())


def test_tensors_are_read_by_ranges(store):
    assert numbers("store://m/x.safetensors", "b").tolist() == [1, 2, 3]
    assert sum(store.requested) < 1 << 18
    assert (numbers("store://m/x.safetensors", "a") == LONG).all()


def test_folders_and_indices(store):
    assert numbers("store://m", "b").tolist() == [1, 2, 3]
    index = json.dumps({"weight_map": {"a": "x.safetensors"}}).encode()
    fsspec.filesystem("store").pipe("/m/model.safetensors.index.json", index)
    for place in ("store://m/", "store://m/model.safetensors.index.json"):
        with open_checkpoint(place) as checkpoint:
            assert list(checkpoint.tensors) == ["a"]


WRONG = {
    "raises": "cannot be read: 'the bucket is on ",
    "sends more": "bytes were sent, but",
    "claims nothing": "does not give its length",
    "claims less than 0": "does not give its length",
    "claims more": "goes on past its tensors",
    "sends less": "bytes were sent, but",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_stores_that_misbehave(store, monkeypatch, wrong):
    monkeypatch.setattr(Store, "wrong", wrong)
    with pytest.raises(FileFormatError, match=WRONG[wrong]) as caught:
        numbers("store://m/x.safetensors", "a")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("store://m/y.safetensors", "is not a file"),
        ("file:///etc/x.safetensors", "is on this computer"),
        ("LOCAL://x.safetensors", "is on this computer"),
        ("nonsense://x.safetensors", "cannot be read"),
        ("store://m/nothing/", "is not a file|no checkpoint|is not a checkpoint"),
    ],
)
def test_urls_that_are_not_read(store, url, said):
    with pytest.raises(FileFormatError, match=said) as caught:
        open_checkpoint(url)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(MissingPartError, match="s3:// needs another package: pip install s3fs"):
        open_checkpoint("s3://bucket/x.safetensors")
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(MissingPartError, match=r"store:// needs fsspec: pip install 'floatlab\[remote\]'"):
        open_checkpoint("store://m/x.safetensors")
