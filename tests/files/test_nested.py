"""Nested lists and arrays as Python prints them: compared with NumPy; hostile text gets a one-line error at once."""

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import floatlab as fl
from floatlab.arrays.codec import native
from floatlab.errors import FileFormatError, FloatlabError, LiteralError
from floatlab.files import open_array, open_arrays
from floatlab.files.nested import split_arrays
from floatlab.files.readers import kind_of

TORCH = """tensor([[[ 1.0000e+00, -2.5000e-03],
         [ 3.0000e+00,  4.0000e+00]],

        [[ 5.0000e+00,         inf],
         [        nan,  8.0000e+00]]], device='cuda:0', dtype=torch.float16,
       grad_fn=<MmBackward0>)"""


def opened(word, **options):
    with open_array(word, **options) as source:
        return source.kind, native(source.whole())


def np_kind(kind):
    return getattr(np, kind, np.float32)


def written(tmp_path, text):
    path = tmp_path / "x.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


PRINTED = [
    ("[[1, 2], [3, 4]]", "float32", [[1, 2], [3, 4]]),
    ("[[1 2]\n [3 4]]", "float32", [[1, 2], [3, 4]]),
    ("[[1, 2,], [3, 4,],]", "float32", [[1, 2], [3, 4]]),
    ("[1, 0x1p-3, 1/4, nan, -inf]", "float32", [1, 0.125, 0.25, np.nan, -np.inf]),
    ("[[[1]]]", "float32", [[[1]]]),
    ("tensor([1., 2.])", "float32", [1, 2]),
    ("tensor([1, 2])", "float32", [1, 2]),
    ("tensor([1., 2.], requires_grad=True)", "float32", [1, 2]),
    ("tensor([1., 2.], grad_fn=<AddBackward0>)", "float32", [1, 2]),
    ("tensor([1., 2.],\n  device='mps:0', dtype=torch.float64)", "float64", [1, 2]),
    ("tensor([1., 2.], names=('a',))", "float32", [1, 2]),
    ("torch.tensor([[1, 2]], dtype=torch.double)", "float64", [[1, 2]]),
    ("torch.tensor([[1, 2]], dtype=torch.float)", "float32", [[1, 2]]),
    ("tensor([1, 2], dtype=torch.int32)", "int32", [1, 2]),
    ("tensor([1, 2], dtype=torch.long)", "int64", [1, 2]),
    ("tensor([-1, 2], dtype=torch.int8)", "int8", [-1, 2]),
    ("tensor(1.5)", "float32", 1.5),
    ("Parameter containing:\ntensor([1., 2.], requires_grad=True)", "float32", [1, 2]),
    ("array([1., 2.])", "float64", [1, 2]),
    ("array([[1., 2.]], dtype=float32)", "float32", [[1, 2]]),
    ("array([1., 2.], dtype='>f4')", "float32", [1, 2]),
    ("array([1., 2.], dtype=dtype('float16'))", "float16", [1, 2]),
    ("np.array([[1, 2]], dtype=np.float16)", "float16", [[1, 2]]),
    ("numpy.asarray([[1, 2]], dtype=float)", "float64", [[1, 2]]),
    ("array(1.5, dtype=float32)", "float32", 1.5),
    ("Array([[1., 2.]], dtype=float32)", "float32", [[1, 2]]),
    ("Array(1.5, dtype=float32, weak_type=True)", "float32", 1.5),
    ("jnp.array([1., 2.], dtype=jnp.bfloat16)", "bfloat16", [1, 2]),
    ("Array([1., 2.], dtype=float8_e4m3fn)", "e4m3fn", [1, 2]),
    ("[np.float16(1.5), np.float16(-2.0)]", "float16", [1.5, -2]),
    ("[[1, 2], [3, 4]]@fp16", "float16", [[1, 2], [3, 4]]),
    ("tensor([1., 2.])@fp16", "float16", [1, 2]),
    ("tensor([1., 2.], dtype=torch.bfloat16)@bf16", "bfloat16", [1, 2]),
    (TORCH, "float16", [[[1, -2.5e-3], [3, 4]], [[5, np.inf], [np.nan, 8]]]),
]


@pytest.mark.parametrize(("text", "kind", "expected"), PRINTED)
def test_what_is_printed_is_read(text, kind, expected, tmp_path):
    found, values = opened(text, format="fp32")
    assert found == kind
    np.testing.assert_array_equal(fl.arrays.quantize(values, "fp64"), np.asarray(expected).astype(np_kind(kind)))
    if "@" not in text:
        again, same = opened(written(tmp_path, f"# printed\n\n{text}\n"), format="fp32")
        assert again == kind
        np.testing.assert_array_equal(np.asarray(same), np.asarray(values))


KINDS = st.sampled_from([np.float16, np.float32, np.float64])
SHAPES = arrays.array_shapes(min_dims=1, max_dims=4, max_side=5)


@given(KINDS.flatmap(lambda kind: arrays.arrays(kind, SHAPES)))
@settings(max_examples=150, deadline=None)
def test_what_numpy_prints_comes_back(x):
    with np.printoptions(threshold=10**6, floatmode="unique"):
        for text, wanted in ((repr(x), None), (str(x), x.dtype.name)):
            kind, found = opened(text, format=wanted or "fp64")
            assert kind == x.dtype.name
            np.testing.assert_array_equal(found, x)
    assert opened(str(x.tolist()), format=x.dtype.name)[1].shape == x.shape


def test_json_of_lists(tmp_path):
    x = np.random.default_rng(1).standard_normal((30, 200))
    path = tmp_path / "x.json"
    path.write_text(json.dumps(x.tolist()))
    kind, found = opened(str(path), format="fp64")
    assert kind == "float64"
    np.testing.assert_array_equal(found, x)


@given(st.recursive(st.floats(-9, 9), lambda inner: st.lists(inner, max_size=3), max_leaves=12))
@settings(max_examples=300, deadline=None)
def test_any_nested_list_is_read_as_numpy_reads_it(x):
    if not isinstance(x, list):
        return
    try:
        expected = np.array(x, np.float64)
    except ValueError:
        expected = None
    if expected is None or not expected.size:
        with pytest.raises(LiteralError):
            opened(str(x), format="fp64")
    else:
        np.testing.assert_array_equal(opened(str(x), format="fp64")[1], expected)


def test_text_takes_the_format_of_arrays_with_a_dtype(tmp_path):
    printed = written(tmp_path, "tensor([1., 2.], dtype=torch.float16)")
    with open_arrays(("1,2", "[3, 4]", printed)) as (x, y, z):
        assert [x.kind, y.kind, z.kind] == ["float16"] * 3
    assert kind_of(printed) == "nested"
    assert kind_of("[[1, 2]]") == "list"


HOSTILE = {
    "[[1, 2], [3]]": "lists of 2 numbers and one of 1",
    "[[[1], [2]], [[3]]]": "lists of 2 lists and one of 1",
    "[[1, 2], 3]": "numbers and lists in one list",
    "[3, [1, 2]]": "numbers and lists in one list",
    "[[1], [[2]]]": "different depths",
    "[1,, 2]": "a comma without a number",
    "[, 1]": "a comma without a number",
    "[[1],, [2]]": "an extra comma",
    "[[1][2]]": "no comma between two lists",
    "[1, 2": "brackets that are not closed",
    "[[1, 2]": "a bracket that is not closed",
    "[1, 2]]": "more than one array",
    "[1] [2]": "more than one array",
    "[]": "an empty list",
    "[[], []]": "an empty list",
    "[1, ..., 2]": "set_printoptions",
    "array([[1., ..., 2.]], shape=(1, 1000))": "set_printoptions",
    "[1 … 2]": "set_printoptions",
    "[1, True]": "'True' is not a number",
    "[None]": "'None' is not a number",
    "[1+2j]": "'1+2j' is not a number",
    "[1 2, 3]": "'1 2' is not a number",
    "[1, 2]xx": "has 'xx' after its end",
    "tensor([1.]": "does not end with )",
    "tensor([1.)": "not closed",
    "tensor([1.], foo)": "', foo)' after its numbers",
    "tensor([1.], dtype=torch.complex64)": "has dtype 'torch.complex64'",
    "array([1.], dtype=object)": "has dtype 'object'",
    "array([1.], dtype=[('a', '<f4')])": "",
    "array([1.5], dtype=int32)": "has dtype int32",
    "array([300], dtype=int8)": "has dtype int8",
    "array([nan], dtype=int8)": "has dtype int8",
    "tensor()": "is not a number",
    "tensor([1.], dtype=torch.bfloat16)@fp16": "leave one out",
    "[np.float32(1), np.float64(2)]": "several dtypes",
    "[np.float32(1), 2]": "in place of a number",
    "[__import__('os').system('false')]": "",
    "[1\0]": "",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_wrong_is_said_in_one_line(text, tmp_path):
    with pytest.raises(FloatlabError) as refusal:
        opened(text)
    said = str(refusal.value)
    assert HOSTILE[text] in said
    assert len(said.splitlines()) == 1
    assert said.isprintable()
    if "@" not in text:
        path = written(tmp_path, text)
        with pytest.raises(FileFormatError, match=r"x\.txt") as refusal:
            opened(path)
        assert len(str(refusal.value).splitlines()) == 1


def test_the_line_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"'two' is not a number .*\(line 3\)"):
        opened(written(tmp_path, "# numbers\n[[1, 2],\n [3, two]]"))


HUGE = {
    "opening": "[" * 10**7,
    "nested": "[" * 10**6 + "]" * 10**6,
    "closing": "[1" + "]" * 10**7,
    "empty": "[" + "[]," * 3 * 10**6 + "]",
    "commas": "[1" + "," * 10**7 + "]",
    "spaces": "[[1]" + " " * 10**7,
    "words": "tensor([1]" + ", a=1" * 10**6,
    "dots": "a." * 10**6 + "array([1])",
    "unclosed rows": "[" + "[1]," * 10**5,
    "uneven": "[" + "[1]," * 10**5 + "[1,2]]",
    "late word": "[" + "1," * 10**5 + "x]",
    "hexadecimal": "[" + ",".join(map(hex, range(1000))) + ",z]",
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("in_file", [False, True])
def test_huge_text_is_refused_at_once(name, in_file, tmp_path):
    word = written(tmp_path, HUGE[name]) if in_file else HUGE[name]
    start = time.process_time()
    with pytest.raises(FloatlabError) as refusal:
        opened(word)
    assert time.process_time() - start < 3
    assert len(str(refusal.value)) < 600 + len(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "shape"),
    [("[" + "[1]," * 10**6 + "]", (10**6, 1)), ("[" + "0.1," * 10**6 + "]", (10**6,)),
     ("[" * 32 + "1" + "]" * 32, (1,) * 32)],
)  # fmt: skip
def test_much_is_read_in_little_time(text, shape, tmp_path):
    start = time.process_time()
    assert opened(written(tmp_path, text))[1].shape == shape
    assert time.process_time() - start < 10


def test_arrays_between_commas():
    assert split_arrays("[[1,2],[3,4]],tensor([1,2], dtype=x)") == ("[[1,2],[3,4]]", "tensor([1,2], dtype=x)")
    assert split_arrays("a.npy,b.npy") == ("a.npy", "b.npy")
    assert split_arrays("]],[,") == ("]]", "[,")
