"""Files: saved arrays can be loaded, an interrupted save loses nothing, and malicious files are harmless."""

import io
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floatlab as fl
from floatlab.arrays.container.array import FloatArray
from floatlab.arrays.container.storage import CONTENTS, load, save
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError
from floatlab.formats import CATALOG, Format, parse_format
from floatlab.numbers.rounding import LATER_FIELDS
from floatlab.record import Record


def same(a, b):
    if isinstance(a, FloatArray):
        return (
            isinstance(b, FloatArray)
            and (a.format, a.context, a.shape) == (b.format, b.context, b.shape)
            and np.array_equal(a.codes, b.codes)
            and a.codes.dtype == b.codes.dtype
        )
    return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "arrays.npz"


NARROW = [row.format for row in CATALOG if row.format.width <= 64]


@pytest.mark.parametrize("format", NARROW, ids=lambda each: each.name)
def test_every_code_comes_back(format, path):
    codes = np.arange(min(1 << format.width, 1 << 16)).astype(np.uint64)
    x = FloatArray.from_codes(codes.reshape(2, -1), format)
    save(path, x)
    assert same(x, load(path))


def test_lists_dicts_and_plain_arrays_come_back(path):
    x = FloatArray([[1.0, -2.5]], "bf16", fl.Context("RTZ", overflow="saturate", seed=9, flush_inputs=True))
    things = [x, x.T, np.arange(3), np.float32(2.5), np.zeros((0, 4)), FloatArray(np.zeros((0, 3)), "e2m1")]
    save(path, things)
    found = load(path)
    assert isinstance(found, list)
    assert all(map(same, [np.asarray(t) if isinstance(t, np.generic) else t for t in things], found))
    named = {"weight": x, "WEIGHT": x.T, "a/b": x, "../../etc/passwd": x, "": x, "é ∞": x, "floatlab": x, "array_1": x}
    save(path, named)
    found = load(path)
    assert list(found) == list(named)
    assert all(same(named[key], found[key]) for key in named)
    save(path, {})
    assert load(path) == {}
    save(path, [])
    assert load(path) == []


def test_members_are_plain_names_and_plain_integers(path):
    save(path, {"weight": FloatArray([1.0], "e4m3"), "../up": FloatArray([1.0], "fp16"), "C:\\x": np.ones(2)})
    with np.load(path, allow_pickle=False) as plain:
        assert plain["weight"].tolist() == [0x38]
        assert set(plain.files) == {CONTENTS, "weight", "array_1", "array_2"}
    first = path.read_bytes()
    save(path, load(path))
    assert path.read_bytes() == first  # the same arrays make the same file


def test_formats_without_a_name_come_back(path):
    own = Format("ours", 4, 4, bias=9, infinities=False, nans=3, subnormals=False)
    usurper = Format("e4m3fn", 3, 5)  # a different format with a known name
    for format in (own, usurper, parse_format("e5m6fnuz"), parse_format("p3109_k6p3se")):
        x = FloatArray([0.5, 1.25, -3], format)
        save(path, [x])
        assert same(x, load(path)[0])


def test_numpy_and_pickle_keep_codes_too(tmp_path):
    x = FloatArray([1.0, 448.0], "e4m3", fl.Context("RTP"))
    np.save(tmp_path / "codes.npy", x.codes, allow_pickle=False)
    assert same(FloatArray.from_codes(np.load(tmp_path / "codes.npy"), "e4m3", fl.Context("RTP")), x)
    assert same(x, pickle.loads(pickle.dumps(x)))


def test_an_interrupted_save_loses_nothing(path, monkeypatch):
    save(path, FloatArray([1.0], "fp16"))
    before = path.read_bytes()
    for broken in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, broken, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                save(path, FloatArray([2.0], "fp16"))
        assert path.read_bytes() == before
        assert os.listdir(path.parent) == [path.name]
    with pytest.raises(UnsupportedError, match="obj must hold FloatArrays and NumPy arrays, not str"):
        save(path, [FloatArray([2.0], "fp16"), "text"])
    assert path.read_bytes() == before


def test_a_save_keeps_the_mode_and_follows_a_link(path, tmp_path):
    save(path, FloatArray([1.0], "fp16"))
    path.chmod(0o640)
    link = tmp_path / "link.npz"
    link.symlink_to(path)
    save(link, FloatArray([2.0], "fp16"))
    assert link.is_symlink()
    assert load(path).tolist() == [2.0]
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("obj", "named"),
    [
        ("text", "obj must hold FloatArrays and NumPy arrays, not str"),
        ([np.array([None])], "stored safely as .npy"),
        ({1: np.ones(1)}, "the keys of obj must be strings, not 1"),
        ({"\ud800": np.ones(1)}, "not text"),
        (np.array(["a"]), "stored safely as .npy"),
        (np.zeros(2, [("a", int)]), "stored safely as .npy"),
    ],
)
def test_what_is_not_saved_is_named(obj, named, path):
    with pytest.raises(UnsupportedError, match=named):
        save(path, obj)
    assert not path.exists()


def test_ml_dtypes_are_told_what_keeps_them(path):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    x = np.ones(2, ml_dtypes.bfloat16)
    with pytest.raises(UnsupportedError, match=r"FloatArray\(x\) keeps it"):
        save(path, x)
    save(path, FloatArray(x))
    assert load(path).format.name == "bfloat16"


def npy(array, shape=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=array.dtype.hasobject)
    return out.getvalue().replace(str(array.shape).encode(), shape.encode(), 1) if shape else out.getvalue()


def bundle(path, contents=None, members=(), compression=zipfile.ZIP_STORED, entry=None):
    """Write a file directly: with these `contents`, or with an array of codes whose entry is partly changed."""
    if contents is None:
        one = {"key": None, "member": "array.npy", "format": "e4m3fn", "context": None} | (entry or {})
        contents = {"floatlab": 1, "kind": "one", "arrays": [one]}
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr(CONTENTS, contents if isinstance(contents, bytes) else json.dumps(contents))
        for name, data in members or [("array.npy", npy(np.array([56], np.uint8)))]:
            file.writestr(name, data)


def said_of(format):
    return {field: getattr(format, field) for field in Format._fields}


GOOD = said_of(Format("ours", 4, 4))
RULES = {"rounding": "RNE", "seed": 0, "overflow": "native", "absent": "largest", "tininess": "after",
         "flush_inputs": False, "flush_results": False, "nan": "first", "fma_invalid": True}  # fmt: skip
HOSTILE = {
    "not a zip": lambda p: p.write_bytes(b"GIF89a" * 50),
    "empty": lambda p: p.write_bytes(b""),
    "plain npz": lambda p: np.savez(p, a=np.ones(2)),
    "pickle": lambda p: p.write_bytes(pickle.dumps({"a": 1})),
    "compressed": lambda p: bundle(p, compression=zipfile.ZIP_DEFLATED),
    "bomb": lambda p: bundle(p, members=[("array.npy", bytes(1 << 24))], compression=zipfile.ZIP_DEFLATED),
    "no json": lambda p: bundle(p, b"[1, 2"),
    "deep json": lambda p: bundle(p, b"[" * 100_000),
    "another version": lambda p: bundle(p, {"floatlab": 2}),
    "a list of nothing": lambda p: bundle(p, {"floatlab": 1, "kind": "one", "arrays": []}),
    "entries of numbers": lambda p: bundle(p, {"floatlab": 1, "kind": "list", "arrays": [1]}),
    "missing member": lambda p: bundle(p, entry={"member": "other.npy"}),
    "a path": lambda p: bundle(p, entry={"member": "../../array.npy"}),
    "member no text": lambda p: bundle(p, entry={"member": 3}),
    "extra words": lambda p: bundle(p, entry={"code": "import os"}),
    "unknown format": lambda p: bundle(p, entry={"format": "fp17"}),
    "long name": lambda p: bundle(p, entry={"format": "e" * 10**6}),
    "wide format": lambda p: bundle(p, entry={"format": "fp128"}),
    "format of nothing": lambda p: bundle(p, entry={"format": {}}),
    "format of text": lambda p: bundle(p, entry={"format": GOOD | {"precision": "4"}}),
    "format of 1": lambda p: bundle(p, entry={"format": GOOD | {"zero": 1}}),
    "format too large": lambda p: bundle(p, entry={"format": GOOD | {"precision": 10**9}}),
    "escapes in a name": lambda p: bundle(p, entry={"format": GOOD | {"name": "\x1b[31m"}}),
    "context of words": lambda p: bundle(p, entry={"context": RULES | {"rounding": "upper"}}),
    "context of lists": lambda p: bundle(p, entry={"context": RULES | {"seed": []}}),
    "context in part": lambda p: bundle(p, entry={"context": {"seed": 1}}),
    "wrong dtype": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint16)))]),
    "signed codes": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.int8)))]),
    "float codes": lambda p: bundle(p, members=[("array.npy", npy(np.array([56.0])))]),
    "codes too wide": lambda p: bundle(p, entry={"format": "e2m1"}),
    "objects": lambda p: bundle(p, members=[("array.npy", npy(np.array([None])))]),
    "text": lambda p: bundle(p, members=[("array.npy", npy(np.array(["a"])))]),
    "records": lambda p: bundle(p, members=[("array.npy", npy(np.zeros(1, [("a", "u1")])))]),
    "no npy": lambda p: bundle(p, members=[("array.npy", b"\x93NUMPY\x01\x00\x10\x00" + b"(" * 16)]),
    "nested header": lambda p: bundle(p, members=[("array.npy", b"\x93NUMPY\x01\x00\xa0\x0f" + b"(" * 4000)]),
    "huge header": lambda p: bundle(
        p, members=[("array.npy", b"\x93NUMPY\x02\x00\x00\x00\x10\x00" + b" " * (1 << 20))]
    ),
    "huge shape": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint8), "(10**15,)"))]),
    "huge number": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint8), "(999999999999,)"))]),
    "empty and huge": lambda p: bundle(p, members=[("array.npy", npy(np.zeros(0, np.uint8), f"(0, {10**30})"))]),
    "negative shape": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint8), "(-1,)"))]),
    "many axes": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint8), f"({'1,' * 70})"))]),
    "too long": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint8)) + b"more")]),
    "too short": lambda p: bundle(p, members=[("array.npy", npy(np.array([56], np.uint8))[:-1])]),
}  # fmt: skip


@pytest.mark.parametrize("make", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_get_one_line(make, path):
    make(path)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError) as refusal:
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    words = str(refusal.value)
    assert len(words.splitlines()) == 1
    assert len(words) < 300
    assert words.isprintable()
    assert path.name in words
    assert peak < 3_000_000 + 60 * path.stat().st_size


def test_a_member_repeated_or_shared_is_refused(path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        bundle(path, members=[("array.npy", npy(np.array([56], np.uint8)))] * 2)
    with pytest.raises(FileFormatError, match="two members have the same name"):
        load(path)
    # Many members that share the same bytes: each is small, but their sum is larger than the file.
    data = npy(np.zeros(100_000, np.uint8))
    one = {"key": None, "member": "array.npy", "format": "e4m3fn", "context": None}
    bundle(path, {"floatlab": 1, "kind": "list", "arrays": [one | {"member": "array.npy"}] * 50}, [("array.npy", data)])
    with pytest.raises(FileFormatError, match="share a member"):
        load(path)


def test_a_file_cut_anywhere_or_changed_anywhere_does_no_harm(path):
    x = FloatArray([1.0, -2.5, 448.0], "e4m3", fl.Context("RTZ"))
    save(path, {"weight": x, "bias": np.arange(4.0)})
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(FileFormatError):
            load(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    save(path, {"weight": FloatArray([1.0, -2.5, 448.0], "e4m3"), "bias": np.arange(4.0)})
    return path, path.read_bytes()


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_file_with_any_bytes_changed_is_read_or_refused(whole, data):
    path, saved = whole
    changed = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(changed)
    try:
        found = load(path)
    except FileFormatError:
        return
    assert all(isinstance(each, FloatArray | np.ndarray) for each in found.values())


def test_long_arrays_are_read_in_pieces(path, monkeypatch):
    from floatlab.arrays.container import storage

    monkeypatch.setattr(storage, "_PIECE", 7)
    x = FloatArray(np.linspace(-5, 5, 999).reshape(27, 37), "fp16")
    save(path, [x, x.T])
    assert all(map(same, load(path), [x, x.T]))


def test_arrays_of_other_machines_and_orders_are_read(path):
    plain = {"key": None, "member": "array.npy", "format": None, "context": None}
    for array in (np.arange(6.0).reshape(2, 3).T, np.arange(3, dtype=">u4"), np.array([True, False])):
        bundle(path, {"floatlab": 1, "kind": "one", "arrays": [plain]}, [("array.npy", npy(array))])
        found = load(path)
        assert found.tolist() == array.tolist()
        assert found.dtype.isnative
    odd = npy(np.array([True]))[:-1] + b"\x07"
    bundle(path, {"floatlab": 1, "kind": "one", "arrays": [plain]}, [("array.npy", odd)])
    assert load(path).view(np.uint8).tolist() == [1]


def test_a_missing_file_is_the_systems_business(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nowhere.npz")
    with pytest.raises(FileNotFoundError):
        save(tmp_path / "nowhere" / "a.npz", FloatArray([1.0], "fp16"))
    with pytest.raises(UnsupportedError, match="is a directory, not a file"):
        save(tmp_path, FloatArray([1.0], "fp16"))


def test_later_choices_of_a_context_are_written_where_they_are_not_the_default(path):
    few = fl.Context("SRB", random_bits=3, draw=5, negative="drop", overflow="none-nan", nan="riscv-fp8")
    for context in (few, fl.Context("SRA"), fl.Context(negative="zero")):
        save(path, FloatArray([1.0, 2.5], "Binary8p4se", context))
        assert load(path)._context == context
    with zipfile.ZipFile(path) as file:
        (entry,) = json.loads(file.read("floatlab.json"))["arrays"]
    assert set(entry["context"]) == {*RULES, "negative"}


def test_a_context_and_a_format_are_all_written():
    assert {*RULES, *LATER_FIELDS} == set(fl.Context._fields)
    assert issubclass(Format, Record)
    assert issubclass(FileFormatError, FloatlabError)
