"""Conversion of arrays to formats and back: every code, shapes and dtypes, and arguments that are rejected."""

import tracemalloc

import numpy as np
import pytest

import floatlab as fl
from floatlab import Context
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.operations import add
from floatlab.errors import FloatlabError
from floatlab.formats import CATALOG
from tests.arrays.values import telling

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_every_binary16_and_bfloat16_comes_back_and_goes_into_every_small_format(name):
    codes = np.arange(1 << 16, dtype=np.uint16)
    every = decode(codes, name)
    numbers = ~np.isnan(every)
    assert np.array_equal(encode(every, name)[numbers], codes[numbers])
    for small in (row.format for row in CATALOG if row.format.width <= 8):
        some = slice(small.width, None, 61)
        assert np.array_equal(encode(every, small)[some], encode(every[some], small, lane="scalar"))
        assert np.array_equal(encode(every, small), encode(every, small, lane="numpy"))


@pytest.mark.parametrize("row", [row for row in CATALOG if row.format.width <= 16], ids=lambda row: row.format.name)
def test_every_code_is_read_as_the_codec_reads_it(row):
    fmt = row.format
    codes = np.arange(1 << fmt.width, dtype=np.uint16)
    expected = np.array([float(fl.decode(int(code), fmt)) for code in codes[:: max(1, len(codes) // 4096)]])
    with np.errstate(invalid="ignore"):  # NumPy 2.5 signals where a signaling NaN is widened for the comparison
        assert np.array_equal(decode(codes, fmt)[:: max(1, len(codes) // 4096)], expected, equal_nan=True)


def test_shapes_strides_and_dtypes():
    x = np.linspace(-4, 4, 24, dtype=np.float32).reshape(2, 3, 4)
    assert encode(x, "e4m3").shape == (2, 3, 4)
    assert np.array_equal(encode(x[:, ::2, ::-1], "e4m3"), encode(x, "e4m3")[:, ::2, ::-1])
    assert quantize(np.float32(1.1), "bf16").shape == ()
    assert encode(np.zeros((0, 3)), "fp16").shape == (0, 3)
    assert quantize(x, "fp16").dtype == np.float32
    assert quantize(x.astype(np.float16), "bf16").dtype == np.float32
    assert quantize(x.astype(np.float16), "e4m3").dtype == np.float16
    assert quantize([1, 2, 3], "fp16").dtype == np.float32
    assert quantize(x.astype(ml_dtypes.bfloat16), "e5m2").dtype == ml_dtypes.bfloat16
    assert encode(x, "e2m1").dtype == np.uint8
    assert encode(x, "fp64").dtype == np.uint64
    x.flags.writeable = False
    out = np.empty(x.shape, np.float32)
    assert quantize(x, "e4m3", out=out) is out
    assert np.array_equal(out, quantize(x, "e4m3"))


def test_the_worked_facts():
    assert quantize(np.float16(65504), "bf16") == 65536
    assert encode(np.float32(1000), "e4m3", overflow="saturate") == 0x7E
    codes, flags = encode(np.array([0.1, 1.0, 1e6, np.nan]), "fp16", return_flags=True)
    assert [str(fl.Flags(int(flag)).names) for flag in flags] == ["['inexact']", "[]", "['overflow', 'inexact']", "[]"]
    assert codes[0] == fl.encode("0.1", "fp16").code


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: encode(np.array(["a"]), "fp16"), "x must be an array of floats or integers, not of strings"),
        (lambda: encode(np.array([1j]), "fp16"), "x must be an array of floats or integers, not of complex128"),
        (lambda: encode(np.array([None]), "fp16"), "x must be an array of floats or integers, not of object"),
        (lambda: encode(np.array([True]), "fp16"), "x must be an array of floats or integers, not of bool"),
        (lambda: encode(np.array([2**63 - 1]), "fp16"), "integers beyond 2"),
        (lambda: encode([1.0], "fp17"), "fp17"),
        (lambda: encode([1.0], "fp128"), "at most 64"),
        (lambda: encode([1.0], "fp16", lane="fast"), "lane must be one of"),
        (lambda: encode([1.0], "fp16", rounding="sideways"), "rounding"),
        (lambda: encode([1.0], "fp16", out=np.empty(2, np.uint16)), "out must have shape"),
        (lambda: encode([1.0], "fp16", out=np.empty(1, np.uint8)), "out must have shape"),
        (lambda: encode([1.0], "fp16", out=[0]), "out must be a NumPy array"),
        (lambda: decode([0.5], "fp16"), "codes must be an array of integers"),
        (lambda: decode([256], "e4m3"), "codes of e4m3fn, from 0 to 0xff"),
        (lambda: decode([-1], "e4m3"), "codes of e4m3fn, from 0 to 0xff"),
        (lambda: decode([1], "fp32", dtype=np.float16), "float16 does not hold"),
        (lambda: decode([1], "e15m40"), "float64 does not hold"),
    ],
)
def test_what_cannot_be_done_is_named(ask, named):
    with pytest.raises(FloatlabError, match=named):
        ask()


def test_a_refused_value_leaves_out_as_it_was():
    out = np.full(3, 7, np.uint8)
    with pytest.raises(FloatlabError, match="has no infinity"):
        encode([1.0, 2.0, np.inf], "e2m1", context=Context(absent="error"), out=out)
    assert out.tolist() == [7, 7, 7]


def test_formats_of_blocks_go_by_the_same_three_functions():
    x = np.array([957.0, *[1.1] * 31], np.float32)
    scales, codes = encoded = encode(x, "mxfp8_e4m3")
    assert scales.tolist() == [128]
    assert codes[:2].tolist() == [126, 49]
    assert decode(encoded, "mxfp8_e4m3")[:2].tolist() == [896.0, 1.125]
    rows = quantize(np.stack([x, x]).T, "mxfp8_e4m3", axis=0)
    assert np.array_equal(rows[:, 1], quantize(x, "mxfp8_e4m3"))
    with pytest.raises(FloatlabError, match="axis is for block formats"):
        quantize(x, "e4m3", axis=0)
    with pytest.raises(FloatlabError, match="out is not for block formats"):
        quantize(x, "mxfp4", out=x)


def test_a_result_may_go_where_its_operand_was():
    x = telling(fl.parse_format("e4m3"), np.float32, 300)
    expected = quantize(x, "e4m3")
    for view in (slice(None), slice(None, None, -1)):
        own = x.copy()
        quantize(own[view], "e4m3", out=own)
        assert np.array_equal(own, expected[view], equal_nan=True)


def test_flags_are_counted():
    x = np.array([0.1, 1.0, 1e6, np.nan, 1e-9])
    _, each = encode(x, "fp16", return_flags="each")
    _, counts = encode(x, "fp16", return_flags="counts")
    assert counts == {flag: int(((each & flag.value) != 0).sum()) for flag in fl.Flags}
    assert counts[fl.Flags.INEXACT] == 3


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, np.float16])
def test_arrays_of_any_dtype_are_read_by_their_codes(dtype):
    width = np.dtype(dtype).itemsize
    codes = np.arange(1 << 8 * width, dtype=f"u{width}")
    x = codes.view(dtype)
    for format in ("e5m2", "e2m1", "fp16", "fp64"):
        for context in (Context(), Context("RTP", flush_inputs=True)):
            found, flags = encode(x, format, context=context, return_flags=True)
            expected, raised = encode(x[::7], format, context=context, return_flags=True, lane="scalar")
            assert np.array_equal(found[::7], expected)
            assert np.array_equal(flags[::7], raised)


@pytest.mark.parametrize("format", ["e4m3", "fp16", "mxfp4", "nvfp4"])
@pytest.mark.parametrize("lane", [None, "numpy"])
def test_memory_beside_the_result_does_not_grow_with_it(format, lane):
    x = np.ones((1 << 14, 1 << 9), np.float32)
    quantize(x[:1], format, lane=lane)
    tracemalloc.start()
    try:
        made = quantize(x, format, lane=lane)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - made.nbytes < 16 << 20  # of 32 MiB


def test_what_is_flushed_is_zero_where_minus_zero_is_a_nan():
    codes = np.arange(256, dtype=np.uint8)
    x = codes.view(ml_dtypes.float8_e4m3fnuz)
    context = Context(flush_inputs=True)
    assert np.array_equal(encode(x, "fp16", context=context), encode(x, "fp16", context=context, lane="scalar"))


def test_a_word_that_is_none_is_named_whatever_it_is():
    x = np.ones(3, np.float32)
    for ask, named in (
        (lambda: encode(x, ["e4m3"]), "a format must be a name or a Format, not list"),
        (lambda: encode(x, "e4m3", ["RNE"]), "unknown rounding direction"),
        (lambda: encode(x, "e4m3", overflow=["native"]), "overflow must be one of"),
        (lambda: encode(x, "e4m3", lane=["numpy"]), "lane must be one of"),
        (lambda: add(x, x, ["e4m3"]), "a format must be a name or a Format, not list"),
        (lambda: add(x, x, "e4m3", ["RNE"]), "unknown rounding direction"),
        (lambda: add(x, x, "e4m3", lane=["numpy"]), "lane must be one of"),
        (lambda: encode(x, "e4m3", threads=0), "threads must be a number from 1"),
        (lambda: encode(x, "e4m3", return_flags="all"), "return_flags must be"),
    ):
        with pytest.raises(FloatlabError, match=named):
            ask()


def test_what_is_settled_for_one_call_is_not_another_ones():
    # Prepared work is cached by its arguments: alternating calls that differ in one argument get different work.
    x = np.float32([1.0625, 1.1, -1.1, 1e6, np.nan])
    ways = [
        (given, name, direction, overflow, flags)
        for given in (x, x.astype(np.float64), x.astype(">f4"), x[::2])
        for name in ("e4m3", "e5m2")
        for direction in ("RNE", "RTZ", "RTP")
        for overflow in ("native", "saturate")
        for flags in (False, True, "counts")
    ]
    for given, name, direction, overflow, flags in [*ways, *ways[::-1]]:
        more = {"overflow": overflow, "return_flags": flags}
        found, expected = (encode(given, name, direction, lane=lane, **more) for lane in (None, "scalar"))
        assert np.array_equal(found if flags is False else found[0], expected if flags is False else expected[0])
        assert flags is False or np.array_equal(found[1], expected[1]) or found[1] == expected[1]
        sums = [add(given, given, name, direction, lane=lane, **more) for lane in (None, "scalar")]
        mine, truth = sums if flags is False else [each[0] for each in sums]
        assert mine.dtype == given.dtype.newbyteorder("=")
        assert np.array_equal(mine, truth, equal_nan=True)


@pytest.mark.parametrize("name", ["e8m0", "p3109_k8p1ue", "p3109_k8p3uf"])
@pytest.mark.parametrize("lane", [None, "numpy", "scalar"])
def test_a_nan_has_no_sign_that_an_unsigned_format_could_refuse(name, lane):
    refusing = Context(absent="error")
    codes = encode(np.copysign(np.float32([np.nan, 1]), np.float32([-1, 1])), name, context=refusing, lane=lane)
    assert codes.tolist() == encode([np.nan, 1.0], name, lane="scalar").tolist()
    for number in (-1.0, -np.inf):
        with pytest.raises(FloatlabError, match="is unsigned"):
            encode(np.float32([number]), name, context=refusing, lane=lane)


@pytest.mark.parametrize("x", [[True, 1.0], (1, False), [[1.0, True]], [np.True_, 2]])
def test_truth_values_among_numbers_are_refused(x):
    with pytest.raises(fl.UnsupportedError, match="x must hold floats or integers, not True or False"):
        fl.arrays.encode(x, "e4m3")
