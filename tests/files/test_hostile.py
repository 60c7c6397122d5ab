"""Malicious files: each gives a one-line error that names the file, in little time and memory; no code is executed."""

import contextlib
import io
import os
import pickle
import socket
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError, printable
from floatlab.files import open_array
from tests.auditing.gguf_making import GGUF
from tests.files.making import npy, safetensors, tensor

RAN = []


class Harmful:
    """An object that reports that it was unpickled."""

    def __reduce__(self):
        return RAN.append, ("unpickled",)


def zipped(members, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as bundle:
        for name, data in members:
            bundle.writestr(name, data)
    return out.getvalue()


def lying_zip(size):
    """Return a zip file whose only member has a wrong size in its header."""
    data = npy(np.zeros(8, np.float32))
    found = bytearray(zipped([("a.npy", data)], zipfile.ZIP_DEFLATED))
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = found.index(signature) + place
        found[at : at + 4] = struct.pack("<I", size)
    return bytes(found)


def directory_of(size):
    """Return the end of a zip file whose directory claims this length."""
    return b"\0" * 100 + struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, 0, 0)


ONE = np.zeros(8, np.float32)
EIGHT = {"a": tensor()}
HOSTILE = {
    "cut.npy": npy(ONE)[:-1],
    "longer.npy": npy(ONE) + b"more",
    "header only.npy": npy(ONE)[:40],
    "empty.npy": b"",
    "absurd.npy": npy(ONE, "(99999999999999999,)"),
    "negative.npy": npy(ONE, "(-1,)"),
    "axes.npy": npy(ONE, f"({'1,' * 70})"),
    "empty and huge.npy": npy(np.zeros(0, np.float32), f"(0, {10**30})"),
    "object.npy": npy(np.array([Harmful()], object)),
    "pickle.npy": pickle.dumps(Harmful()),
    "records.npy": npy(np.zeros(2, [("a", "<f4")])),
    "text.npy": npy(np.array(["a"])),
    "long double.npy": npy(np.zeros(2, np.longdouble)),
    "complex.npy": npy(np.zeros(2, complex)),
    "nested.npy": b"\x93NUMPY\x01\x00\xa0\x0f" + b"(" * 4000,
    "header of 4 GB.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 100,
    "version.npy": b"\x93NUMPY\x09\x09" + npy(ONE)[8:],
    "code.npy": npy(ONE, descr="__import__('os').system('false')"),
    "no zip.npz": b"PK\x03\x04 and no more",
    "nothing in it.npz": zipped([]),
    "object.npz": zipped([("a.npy", npy(np.array([Harmful()], object)))]),
    "no npy.npz": zipped([("a.npy", b"no array")]),
    "two.npz": zipped([("a.npy", npy(ONE)), ("b.npy", npy(ONE))]),
    "bomb.npz": lying_zip((1 << 32) - 2),
    "short.npz": lying_zip(3),
    "lzma.npz": zipped([("a.npy", npy(ONE))], zipfile.ZIP_LZMA),
    "huge directory.npz": directory_of((1 << 32) - 2),
    "bad sum.npz": zipped([("a.npy", npy(ONE + 1))]).replace(b"\x00\x00\x80\x3f" * 2, b"\x00\x00\x80\x40" * 2, 1),
    "contents.npz": zipped([("a.npy", npy(ONE)), ("floatlab.json", b"[" * 100_000)]),
    "short.safetensors": b"\x01\x02",
    "header 2^63.safetensors": safetensors(EIGHT, bytes(8), 1 << 63),
    "header 2^64 - 1.safetensors": safetensors(EIGHT, bytes(8), (1 << 64) - 1),
    "other order.safetensors": len(b"{}").to_bytes(8, "big") + b"{}",
    "header past the end.safetensors": safetensors(EIGHT, b"", 1000),
    "no json.safetensors": safetensors(b"{what"),
    "no object.safetensors": safetensors(b"[1, 2]"),
    "no text.safetensors": safetensors(b'{"\xff\xff": 1}'),
    "deep.safetensors": safetensors(b'{"a":' * 200_000),
    "deep lists.safetensors": safetensors(b'{"a":' + b"[" * 500_000),
    "brackets.safetensors": safetensors(b'{"a":[' + b"[]," * 2_000_000 + b"[]]}"),
    "twice.safetensors": safetensors(b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":1}', b"1"),
    "half a character.safetensors": safetensors(b'{"\\uD800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "long number.safetensors": safetensors(b'{"a":' + b"9" * 100_000 + b"}"),
    "out of range.safetensors": safetensors({"a": tensor(offsets=(0, 8))}, bytes(4)),
    "far out.safetensors": safetensors({"a": tensor(offsets=(1 << 62, (1 << 62) + 8))}, bytes(8)),
    "negative.safetensors": safetensors({"a": tensor(offsets=(-8, 0))}, bytes(8)),
    "backward.safetensors": safetensors({"a": tensor(shape=(0,), offsets=(8, 0))}, bytes(8)),
    "overlap.safetensors": safetensors({"a": tensor(), "b": tensor(offsets=(4, 12))}, bytes(12)),
    "gap.safetensors": safetensors({"a": tensor(), "b": tensor(offsets=(12, 20))}, bytes(20)),
    "left over.safetensors": safetensors(EIGHT, bytes(9)),
    "wrong size.safetensors": safetensors({"a": tensor(shape=(3,))}, bytes(8)),
    "absurd.safetensors": safetensors({"a": tensor(shape=(1 << 62, 1 << 62))}, bytes(8)),
    "axes.safetensors": safetensors({"a": tensor(shape=[1] * 100 + [2])}, bytes(8)),
    "true.safetensors": safetensors({"a": tensor(shape=(True, 2))}, bytes(8)),
    "fraction.safetensors": safetensors({"a": tensor(shape=(2.0,))}, bytes(8)),
    "dtype.safetensors": safetensors({"a": tensor(dtype="F33")}, bytes(8)),
    "no dtype.safetensors": safetensors({"a": {"shape": [2], "data_offsets": [0, 8]}}, bytes(8)),
    "more.safetensors": safetensors({"a": tensor(code="import os")}, bytes(8)),
    "metadata.safetensors": safetensors({"__metadata__": {"a": 1}, **EIGHT}, bytes(8)),
    "none.safetensors": safetensors({}),
    "binary.txt": bytes(range(256)),
    "ragged.txt": b"1 2 3\n4 5\n",
    "words.txt": b"1\ntwo\n3\n",
    "empty.txt": b"# nothing\n",
    "one long line.txt": b"1," * (3 << 20),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_one_line_and_nothing_more(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    tracemalloc.start()
    try:
        with pytest.raises((FileFormatError, UnsupportedError)) as refusal:
            read_all(str(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    words = str(refusal.value)
    assert name in words
    assert len(words.splitlines()) == 1
    assert len(words) < 300 + len(str(tmp_path))
    assert words.isprintable()
    assert peak < 100 << 20
    assert not RAN


@pytest.mark.parametrize(
    ("name", "octets", "said"),
    [
        ("x.safetensors", HOSTILE["brackets.safetensors"], "has over 1,048,576 brackets"),
        ("x.gguf", GGUF["arrays in arrays"], "has GGUF metadata with over 4 levels of arrays"),
    ],
)
def test_a_limit_that_is_exceeded_is_named(name, octets, said, tmp_path):
    (tmp_path / name).write_bytes(octets)
    with pytest.raises(FileFormatError, match=said):
        read_all(str(tmp_path / name))


def read_all(word, **given):
    with open_array(word, **given) as source:
        for _ in source.blocks():
            pass


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (os.mkdir, "is a directory"),
        (os.mkfifo, "is a pipe"),
        (lambda path: os.symlink("/dev/zero", path), "is a device"),
        (lambda path: os.symlink("/dev/stdin", path), "is a "),
        (lambda path: os.symlink(path, path), "cannot be read|is not a file"),
    ],
    ids=["directory", "pipe", "device", "standard input", "link to itself"],
)
@pytest.mark.parametrize("ending", [".npy", ".npz", ".safetensors", ".txt"])
def test_what_is_no_file_is_not_waited_for(make, named, ending, tmp_path):
    path = str(tmp_path / f"x{ending}")
    make(path)
    with pytest.raises(FileFormatError, match=named):
        read_all(path)


@pytest.mark.parametrize("ending", [".npy", ".npz", ".safetensors", ".txt", ""])
def test_a_file_that_has_nothing_yet_is_not_waited_for(ending, monkeypatch, tmp_path):
    """Like /proc/kmsg: a regular file by its mode, but reading it blocks until there are bytes."""
    path = tmp_path / f"x{ending}"
    path.write_bytes(b"")
    monkeypatch.setattr("builtins.open", lambda *_, **__: Waiting(path))
    with pytest.raises(FileFormatError, match=rf"x{ending}' (is no|cannot be read|has no numbers)"):
        read_all(str(path))


class Waiting(io.FileIO):
    """A file from which a read would block."""

    def read(self, size=-1):
        return None

    def readinto(self, buffer):
        return None


def test_a_socket_is_no_file(tmp_path):
    path = str(tmp_path / "s.npy")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(path)
        with pytest.raises(FileFormatError, match="is a socket"):
            read_all(path)


@pytest.mark.parametrize("name", ["nowhere.npy", "a\0b.npy", "x" * 5000 + ".npy", "", "nowhere"])
def test_names_of_nothing(name):
    with pytest.raises(FileFormatError) as refusal:
        read_all(name)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("ending", [".npy", ".safetensors", ".npz", ".raw"])
def test_a_file_that_shrinks_while_it_is_read(ending, tmp_path):
    path = tmp_path / f"x{ending}"
    array = np.ones(1 << 19, np.float32)
    data = {
        ".npy": lambda: npy(array),
        ".npz": lambda: zipped([("a.npy", npy(array))]),
        ".raw": array.tobytes,
        ".safetensors": lambda: safetensors(
            {"a": tensor(shape=array.shape, offsets=(0, array.nbytes))}, array.tobytes()
        ),
    }
    path.write_bytes(data[ending]())
    with open_array(str(path), dtype="f32" if ending == ".raw" else None) as source:
        blocks = source.blocks(1 << 17)
        next(blocks)
        os.truncate(path, 1 << 19)
        with pytest.raises(FileFormatError, match=rf"x\{ending}' (ends early|cannot be read)"):
            list(blocks)


def test_what_a_bundle_says_of_its_codes_is_checked(tmp_path):
    import floatlab as fl

    path = tmp_path / "x.npz"
    fl.arrays.save(path, {"a": fl.FloatArray([1.0] * 8, "e2m1")})
    with open_array(f"{path}::a") as source:
        assert source.format.name == "e2m1fn"
    with zipfile.ZipFile(path) as bundle:
        members = [(each, bundle.read(each)) for each in bundle.namelist()]
    changed = [(name, data.replace(b"\x02" * 8, b"\xff" * 8)) for name, data in members]
    path.write_bytes(zipped(changed))
    with pytest.raises(FileFormatError, match="codes of more than 4 bits"):
        read_all(f"{path}::a")


@pytest.fixture
def honest(tmp_path):
    """Return small files of every kind, as bytes by name."""
    import floatlab as fl

    out = io.BytesIO()
    np.savez_compressed(out, a=np.ones(3000, np.float16))
    fl.arrays.save(tmp_path / "x.npz", {"a": fl.FloatArray([1, 2, 3], "e4m3")})
    return {
        "a.npy": npy(np.arange(20, dtype=np.float32).reshape(4, 5)),
        "b.npz": zipped([("a.npy", npy(ONE))]),
        "c.npz": out.getvalue(),
        "d.npz": (tmp_path / "x.npz").read_bytes(),
        "e.safetensors": safetensors({"a": tensor("F4", (5, 4), (0, 10)), "__metadata__": {"x": "y"}}, bytes(10)),
        "f.txt": b"1 2 3\n4 5 0x6\nnan inf 1/3\n",
    }


def damaged(data, generator):
    """Return bytes with random changes, deletions and insertions."""
    found = bytearray(data)
    for _ in range(generator.choice([1, 1, 2, 5])):
        at = generator.randrange(len(found) or 1)
        way = generator.randrange(4)
        if way == 0:
            found[at : at + 1] = bytes([generator.choice([0, 255, ord("9"), ord("["), generator.randrange(256)])])
        elif way == 1:
            del found[at : at + generator.choice([1, 2, 8, 100])]
        elif way == 2:
            found[at:at] = generator.randbytes(generator.choice([1, 4]))
        else:
            found[at : at + 8] = generator.choice([0, 1 << 31, (1 << 32) - 1, 1 << 63]).to_bytes(8, "little")
    return bytes(found)


def test_damaged_files_are_read_or_refused(honest, tmp_path, generator):
    refusals = []
    for _ in range(60):
        for name, data in honest.items():
            path = tmp_path / name
            path.write_bytes(damaged(data, generator))
            try:
                read_all(str(path))
            except FloatlabError as error:
                refusals.append(str(error))
    assert len(refusals) > 100
    assert [each for each in refusals if len(each.splitlines()) != 1 or printable(each) != each] == []
