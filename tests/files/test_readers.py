"""Arrays that arguments name: all kinds of files as NumPy and safetensors write them, lists, and random arrays."""

import gc
import math
import os
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floatlab as fl
from floatlab.arrays.codec import native
from floatlab.errors import FileFormatError, FloatlabError, LiteralError, UnsupportedError
from floatlab.files import open_array, open_arrays
from floatlab.files.text import Reader
from tests.files.making import npy, safetensors, tensor

DECIMAL = r"-?[0-9]{1,30}\.[0-9]{1,30}(e-?[0-9]{1,3})?"
DTYPES = ["f2", "f4", "f8", ">f2", ">f4", ">f8", "i1", "u2", ">i4", "u8", "?"]


def values(word, **given):
    with open_array(word, **given) as source:
        return native(source.whole())


def sample(dtype, shape=(3, 5)):
    return (np.arange(math.prod(shape)) % 7 - (0 if "u" in dtype or "?" in dtype else 2)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", "CF")
def test_npy_as_numpy_writes_it(dtype, order, tmp_path):
    x = sample(dtype)
    np.save(tmp_path / "x.npy", np.asarray(x, order=order))
    with open_array(str(tmp_path / "x.npy")) as source:
        found = source.whole()
        assert (source.shape, source.kind, source.by_columns) == (x.shape, x.dtype.newbyteorder("=").name, order == "F")
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", DTYPES)
def test_npz_as_numpy_writes_it(write, dtype, tmp_path):
    x = sample(dtype)
    write(tmp_path / "x.npz", a=x, b=x[0])
    np.testing.assert_array_equal(values(f"{tmp_path}/x.npz::a"), x)
    np.testing.assert_array_equal(values(f"{tmp_path}/x.npz::b"), x[0])
    with pytest.raises(FileFormatError, match="has 2 arrays: choose one as FILE::NAME, from 'a', 'b'"):
        values(f"{tmp_path}/x.npz")
    with pytest.raises(FileFormatError, match="has no array 'c'"):
        values(f"{tmp_path}/x.npz::c")


def test_a_member_is_read_from_any_place_on(tmp_path):
    x = np.arange(1 << 18, dtype=np.float32)
    np.savez_compressed(tmp_path / "x.npz", a=x)
    with open_array(f"{tmp_path}/x.npz") as source:
        for first, count in ((200_000, 9), (5, 3), (5, 3), (0, 1), (len(x) - 2, 2)):
            np.testing.assert_array_equal(source.read(first, count), x[first : first + count])


@pytest.mark.parametrize("format", ["e4m3", "e2m1", "e2m3", "bf16", "e5m2fnuz", "e8m0"])
def test_arrays_of_our_own_files_keep_their_format(format, tmp_path):
    codes = np.arange(12, dtype=np.uint8 if format != "bf16" else np.uint16)
    x = fl.FloatArray.from_codes(codes, format)
    fl.arrays.save(tmp_path / "x.npz", {"a": x})
    with open_array(f"{tmp_path}/x.npz::a") as source:
        assert source.format == x.format
        np.testing.assert_array_equal(source.whole().codes, x.codes)


def test_safetensors_as_its_library_writes_it(tmp_path):
    library = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")
    arrays = {each.strip(">?") or "b": sample(each) for each in ("f2", "f4", "f8", "i1", "i4", "i8", "u1", "?")}
    library.save_file(arrays, tmp_path / "x.safetensors", {"who": "somebody"})
    for name, x in arrays.items():
        np.testing.assert_array_equal(values(f"{tmp_path}/x.safetensors::{name}"), x)


@pytest.mark.parametrize(
    ("dtype", "format", "octets", "codes"),
    [
        ("BF16", "bfloat16", 4, [0x0100, 0x0302]),
        ("F8_E4M3", "e4m3fn", 2, [0, 1]),
        ("F8_E5M2", "e5m2", 2, [0, 1]),
        ("F8_E8M0", "e8m0fnu", 2, [0, 1]),
        ("F6_E2M3", "e2m3fn", 3, [0, 4, 32, 0]),
        ("F6_E3M2", "e3m2fn", 3, [0, 4, 32, 0]),
        ("F4", "e2m1fn", 2, [0, 0, 1, 0]),
    ],
)
def test_tensors_that_numpy_has_no_dtype_for(dtype, format, octets, codes, tmp_path):
    path = tmp_path / "x.safetensors"
    header = {"a": tensor("F32", (1,), (0, 4)), "b": tensor(dtype, (len(codes),), (4, 4 + octets))}
    path.write_bytes(safetensors(header, bytes(4) + bytes(range(octets))))
    with open_array(f"{path}::b") as source:
        assert source.kind == format
        assert source.whole().codes.tolist() == codes
        assert [source.read(i, 1).codes.item() for i in range(len(codes))] == codes


def test_names_with_colons_and_files_with_colons(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors({"a::b": tensor("U8", (2,), (0, 2))}, b"\1\2"))
    assert values(f"{path}::a::b").tolist() == [1, 2]
    other = tmp_path / "y::z.npy"
    np.save(other, np.ones(3))
    assert values(str(other)).tolist() == [1, 1, 1]


def test_a_file_is_known_by_its_start(tmp_path):
    (tmp_path / "x.dat").write_bytes(npy(np.float32([1, 2])))
    assert values(str(tmp_path / "x.dat")).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("dtype", "data", "expected"),
    [
        ("f32", np.float32([1, -2]).tobytes(), [1, -2]),
        (">f4", np.array([1, -2], ">f4").tobytes(), [1, -2]),
        ("f16", np.float16([1, -2]).tobytes(), [1, -2]),
        ("int16", np.int16([1, -2]).tobytes(), [1, -2]),
        ("bf16", bytes([0x80, 0x3F]), [1]),
        (">bf16", bytes([0x3F, 0x80]), [1]),
        ("e4m3", bytes([0x38, 0x7E]), [1, 448]),
        ("e2m1", bytes([0x21]), [0.5, 1]),
        ("bool", bytes([0, 1, 7]), [0, 1, 1]),
    ],
)
def test_raw_numbers(dtype, data, expected, tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(data)
    assert values(str(path), dtype=dtype).tolist() == expected
    assert values(str(path), dtype=dtype, shape=f"1x{len(expected)}").shape == (1, len(expected))
    with pytest.raises(FileFormatError, match="bytes"):
        values(str(path), dtype=dtype, shape="7,9")


@pytest.mark.parametrize(
    ("given_", "named"),
    [({"dtype": "f33"}, "--dtype 'f33'"), ({"dtype": "O"}, "--dtype 'O'"), ({"dtype": "U3"}, "--dtype 'U3'"),
     ({"dtype": "c16"}, "--dtype 'c16'"), ({"dtype": "f32", "shape": "2xx"}, "--shape '2xx'"),
     ({"dtype": "f32", "shape": "-1"}, "--shape '-1'"), ({"dtype": ""}, "--dtype ''"),
     ({"dtype": "a,b"}, "--dtype 'a,b'"), ({"dtype": "fp128"}, "--dtype 'fp128'")],
)  # fmt: skip
def test_raw_numbers_of_nothing(given_, named, tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(8))
    with pytest.raises(UnsupportedError, match=named):
        values(str(path), **given_)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n2\n3\n", [1, 2, 3]),
        ("1,2,3", [1, 2, 3]),
        ("\ufeff# a, b\n1, 2,\n3\t4 # two\n\n", [[1, 2], [3, 4]]),
        ("0x1p-3 1/4 inf -nan bits:0x3c00", [0.125, 0.25, math.inf, math.nan, 1]),
    ],
)
def test_text(text, expected, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    np.testing.assert_array_equal(values(str(path), format="fp16"), expected)


def test_text_as_numpy_writes_it(tmp_path):
    x = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
    np.savetxt(tmp_path / "x.txt", x, header="three columns")
    np.testing.assert_array_equal(values(str(tmp_path / "x.txt"), format="fp32"), x)


@settings(max_examples=300)
@given(
    st.sampled_from(["fp16", "bf16", "fp32", "e4m3", "e5m2", "fp64", "e2m1"]),
    st.lists(st.floats(allow_nan=False).map(repr) | st.from_regex(DECIMAL, fullmatch=True)),
)
def test_literals_are_rounded_once(format, words):
    reader = Reader(fl.parse_format(format))
    for each in words:
        reader.take(each)
    assert reader.codes().tolist() == [fl.encode(each, format).code for each in words]


@pytest.mark.parametrize("format", ["fp16", "bf16", "fp32", "e4m3"])
def test_literals_next_to_a_tie_are_rounded_once(format):
    fmt = fl.parse_format(format)
    reader, expected = Reader(fmt), []
    for code in (*range(1, 50), *range(fmt.largest_magnitude - 50, fmt.largest_magnitude + 1)):
        x = fl.decode(code, fmt)
        middle = x.exact.as_fraction() + x.ulp.as_fraction() / 2
        for nudge in (0, 1, -1):
            word = str(middle.numerator) if middle.denominator == 1 else f"{middle.numerator}/{middle.denominator}"
            if middle.denominator != 1 or nudge:
                from decimal import Decimal, getcontext

                getcontext().prec = 400
                word = f"{Decimal(middle.numerator) / Decimal(middle.denominator) * (1 + nudge * Decimal(10) ** -60):f}"
            reader.take(word)
            expected.append(fl.encode(word, fmt).code)
    assert reader.codes().tolist() == expected


@pytest.mark.parametrize(
    ("format", "words", "changed"),
    [
        ("e2m1", "6,-6,1,0,0.50", 0), ("e2m1", "7,-7,6.0000000000000000001,1e300,1e400", 5),
        ("e2m1", "inf,-inf,nan,5", 4),
        ("nf4", "1,-1", 0), ("nf4", "2,-2,1", 2), ("ue5m3", "-5,1,inf,nan", 2), ("fp16", "inf,nan,65504,70000", 1),
    ],
)  # fmt: skip
def test_numbers_that_were_changed_are_counted(format, words, changed):
    """Also those beyond the largest number of a format without infinity, and those without a code."""
    with open_array(words, format=format) as source:
        assert source.origin.inexact == changed


def test_literals_that_take_long_are_not_without_end(monkeypatch):
    monkeypatch.setattr("floatlab.files.text.MAX_EXACT", 3)
    reader = Reader(fl.parse_format("fp16"))
    for each in ("0", "0", "nan", "1/3", "0", "nan"):
        reader.take(each)
    with pytest.raises(LiteralError, match="over 3 literals"):
        reader.take("1/7")


def test_lists_on_the_line():
    assert values("1.5,-2,0x1p-3").tolist() == [1.5, -2, 0.125]
    assert values("1,2;3,4").tolist() == [[1, 2], [3, 4]]
    with open_array("-0.1@fp16") as source:
        assert (source.kind, source.whole().tolist()) == ("float16", [-0.0999755859375])
    assert values("nan,inf,-inf", format="fp16").dtype == np.float16
    with open_array("1,2@e4m3") as source:
        assert source.kind == "e4m3fn"
    assert values("1/4,2^-3").tolist() == [0.25, 0.125]
    with pytest.raises(LiteralError, match="a number is missing"):
        values("1,,2")
    for name in ("1.npy", "infer.txt", "2024/nan.safetensors::a"):
        with pytest.raises(FileFormatError, match="is not a file"):
            values(name)
    with pytest.raises(LiteralError, match="its rows have different lengths, such as 2 and 1"):
        values("1,2;3")


def test_rows_of_unequal_length_are_counted(tmp_path):
    (tmp_path / "x.txt").write_text("1 2\n3\n")
    with pytest.raises(FileFormatError, match="line 2 has 1 number; earlier lines have 2"):
        values(str(tmp_path / "x.txt"))


def test_text_beside_other_arrays_is_read_into_their_format(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(2, np.float16))
    (tmp_path / "x.txt").write_text("1 2")
    (tmp_path / "x.bin").write_bytes(bytes(8))
    files = [str(tmp_path / f"x.{end}") for end in ("npy", "txt", "bin")]

    def kinds(*words, **options):
        with open_arrays(words, **options) as opened:
            return [each.kind for each in opened]

    for text in ("1,2", "random:normal:3", files[1]):
        assert kinds(text, text) == ["float32"] * 2
        assert kinds(text, text, usual="binary64") == ["float64"] * 2
        assert kinds(text, files[0]) == ["float16"] * 2
        assert kinds(text, "1,2@bf16", files[0]) == ["bfloat16", "bfloat16", "float16"]
        assert kinds(text, files[0], format=fl.parse_format("fp32")) == ["float32", "float16"]
    assert kinds("1,2", files[2], dtype="f64") == ["float64"] * 2


def test_arrays_that_belong_together_are_closed_where_one_cannot_be_opened(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(2))
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(FileFormatError), open_arrays((str(tmp_path / "x.npy"), str(tmp_path / "y.npy"))):
            pass
        gc.collect()
    assert not left_open


def test_a_file_is_meant_before_a_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("1.npy", np.zeros(2))
    os.rename("1.npy", "1,2")
    assert values("1,2").tolist() == [0, 0]


class TestChance:
    def test_uniform_is_what_the_document_says(self):
        from floatlab.numbers.rounding import draw

        found = values("random:uniform:3x4:seed=9").ravel()
        for i, x in enumerate(found):
            n = draw(9, 2 * i) << 32 | draw(9, 2 * i + 1)
            assert x == (n >> 11) / 2**53

    def test_any_part_is_made_by_itself(self):
        with open_array("random:lognormal:1000:seed=3@fp32") as source:
            whole = source.whole()
            np.testing.assert_array_equal(source.read(700, 5), whole[700:705])

    @pytest.mark.parametrize(
        ("word", "mean", "deviation"),
        [
            ("random:uniform:100000", 0.5, math.sqrt(1 / 12)),
            ("random:uniform:100000:low=-1:high=3", 1, 4 * math.sqrt(1 / 12)),
            ("random:normal:100000", 0, 1),
            ("random:normal:100000:mean=5:std=0.1", 5, 0.1),
            (
                "random:lognormal:100000:sigma=0.25",
                math.exp(0.03125),
                math.exp(0.03125) * math.sqrt(math.exp(0.0625) - 1),
            ),
        ],
    )
    def test_moments(self, word, mean, deviation):
        x = values(word)
        assert abs(x.mean() - mean) < 5 * deviation / math.sqrt(len(x))
        assert x.std() == pytest.approx(deviation, rel=0.02)

    def test_a_narrower_format_is_the_same_array_rounded(self):
        wide = values("random:normal:64x64:seed=1")
        np.testing.assert_array_equal(values("random:normal:64x64:seed=1@fp16"), wide.astype(np.float16))

    @pytest.mark.parametrize(
        "word",
        ["random:gauss:3", "random:uniform", "random:uniform:3x", "random:uniform:3:seed=-1", "random:uniform:3:seed=x",
         "random:uniform:3:std=1", "random:normal:3:std=inf", "random:normal:3:std=", "random:",
         "random:uniform:999999999999x999999999999", "random:normal:3@e8m0", "random:normal:3@fp17"],
    )  # fmt: skip
    def test_what_makes_no_array_is_named(self, word):
        with pytest.raises(FloatlabError) as refusal:
            values(word)
        assert len(str(refusal.value).splitlines()) == 1

    def test_too_many_at_once(self):
        with pytest.raises(UnsupportedError, match="at most"):
            values("random:uniform:100000x100000")
