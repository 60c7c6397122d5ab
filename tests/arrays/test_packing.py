"""Packed codes: the layout compared with a stream of bits, round trips, and rejected calls."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import floatlab as fl
from floatlab.arrays.packing import pack, packed_length, unpack
from floatlab.errors import FloatlabError


def as_one_number(codes, width):
    """Return the layout in another form: a row is an integer, the sum of code i times 2^(width·i), little-endian."""
    whole = sum(int(code) << (width * i) for i, code in enumerate(codes))
    return list(whole.to_bytes(-(-len(codes) * width // 8), "little"))


@given(st.integers(1, 8), st.data())
def test_a_row_is_one_stream_of_bits(width, data):
    codes = data.draw(st.lists(st.integers(0, (1 << width) - 1), max_size=40))
    packed = pack(codes, width)
    assert packed.tolist() == as_one_number(codes, width)
    assert len(packed) == packed_length(len(codes), width)
    assert unpack(packed, width, len(codes)).tolist() == codes


@pytest.mark.parametrize(("format", "count", "octets"), [("e2m1", 32, 16), ("e3m2", 32, 24), ("e2m3", 5, 4)])
def test_rows_are_packed_one_by_one(format, count, octets):
    width = fl.parse_format(format).width
    codes = np.random.default_rng(0).integers(0, 1 << width, (3, 2, count), dtype=np.uint8)
    packed = pack(codes, format)
    assert packed.shape == (3, 2, octets)
    assert packed.dtype == np.uint8
    assert packed[2, 1].tolist() == as_one_number(codes[2, 1], width)
    assert np.array_equal(unpack(packed, format, count), codes)
    assert np.array_equal(pack(codes[::-1, :, ::-1], format), pack(codes[::-1, :, ::-1].copy(), format))


def test_the_low_half_of_the_byte_is_first():
    # 1.0 and −6.0 in e2m1 are codes 2 and 15; CUDA's __nv_fp4x2_e2m1 and ONNX's FLOAT4E2M1 have the same layout.
    assert pack(fl.arrays.encode([1.0, -6.0], "e2m1"), "e2m1").tolist() == [0xF2]


def test_numpy_reads_the_same_stream():
    codes = np.random.default_rng(1).integers(0, 64, 1000, dtype=np.uint8)
    bits = np.unpackbits(codes[:, None], axis=1, bitorder="little")[:, :6]
    assert np.array_equal(pack(codes, 6), np.packbits(bits.ravel(), bitorder="little"))


def test_ml_dtypes_codes_are_these_codes():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    for name in ("float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"):
        x = np.linspace(-8, 8, 33, dtype=np.float32)
        theirs = x.astype(getattr(ml_dtypes, name)).view(np.uint8)
        format = fl.parse_format(name)
        assert np.array_equal(unpack(pack(theirs, format), format, 33), fl.arrays.encode(x, format))


def test_what_is_left_out_is_zeros():
    assert pack([5, 6, 7], 4).tolist() == [0x65, 0x07]
    assert unpack([0x65, 0x07], 4).tolist() == [5, 6, 7, 0]
    assert pack([], 4).shape == (0,)
    assert unpack(np.zeros((2, 0), np.uint8), 6).shape == (2, 0)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: pack([16], 4), "codes must be codes of 4 bits, from 0 to 0xf, not 0x10"),
        (lambda: pack([-1], 6), "codes must be codes of 6 bits, from 0 to 0x3f, not -0x1"),
        (lambda: pack([0.5], 4), "codes must be an array of integers, not of float64"),
        (lambda: pack(3, 4), "no axis"),
        (lambda: pack([1]), "width is missing"),
        (lambda: pack([1], 9), "width must be 1 to 8 bits"),
        (lambda: pack([1], True), "width must be 1 to 8 bits"),
        (lambda: pack([1], "fp16"), "width must be 1 to 8 bits"),
        (lambda: unpack([256], 4), "packed must hold bytes"),
        (lambda: unpack(np.array([1]), 4), "packed must be an array of uint8, not of int64"),
        (lambda: unpack(np.uint8(1), 4), "no axis"),
        (
            lambda: unpack([1, 2], 4, 5),
            "count must be an integer from 3 to 4, not 5: 2 bytes hold 3 to 4 codes of 4 bits",
        ),
        (lambda: unpack([1, 2], 4, 2), "count must be .*, not 2"),
        (lambda: unpack([1, 2, 3], 6, 2.0), "count must be .*, not 2.0"),
    ],
)
def test_what_cannot_be_done_is_named(ask, named):
    with pytest.raises(FloatlabError, match=named):
        ask()
