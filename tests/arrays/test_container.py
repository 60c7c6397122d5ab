"""FloatArray against NumPy's float16 and float32 and ml_dtypes' bfloat16, and against the scalar codec."""

import copy
import operator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import floatlab as fl
from floatlab.arrays import operations
from floatlab.arrays.container.array import FloatArray
from floatlab.errors import FloatlabError, FormatError, UnsupportedError
from floatlab.formats import CATALOG

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

KINDS = {"fp16": np.dtype(np.float16), "fp32": np.dtype(np.float32), "bf16": np.dtype(ml_dtypes.bfloat16)}
BINARY = [
    np.add, np.subtract, np.multiply, np.divide, np.less, np.less_equal, np.equal, np.not_equal, np.greater,
    np.greater_equal, np.copysign,
]  # fmt: skip
UNARY = [
    np.negative, np.absolute, np.sqrt, np.positive, np.square, np.reciprocal, np.isnan, np.isfinite, np.isinf,
    np.signbit, np.floor, np.ceil, np.trunc, np.rint,
]  # fmt: skip


def codes_of(format, shape):
    """Draw codes, many of them special; bfloat16's far from the ends, where ml_dtypes rounds twice."""
    if format == "fp32":
        common = st.sampled_from([0, 1 << 31, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F7FFFFF, 0x00800000])
        return npst.arrays(np.uint32, shape, elements=common | st.integers(0, (1 << 32) - 1))
    common = {
        "fp16": [0, 0x8000, 1, 0x7C00, 0xFC00, 0x7E00, 0x3C00, 0x7BFF, 0x0400],
        "bf16": [0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x3F80, 0x4049],
    }[format]
    drawn = st.integers(0, 0xFFFF) if format == "fp16" else st.integers(0x3000, 0x4F00) | st.integers(0xB000, 0xCF00)
    return npst.arrays(np.uint16, shape, elements=st.sampled_from(common) | drawn)


def pair(format, codes):
    return FloatArray.from_codes(codes, format), codes.view(KINDS[format])


def assert_same(ours, theirs):
    """Assert that both have the same bits; for NaNs, assert only that both are NaN."""
    theirs = np.asarray(theirs)
    if not isinstance(ours, FloatArray):
        assert np.array_equal(ours, theirs)
        return
    assert ours.shape == theirs.shape
    bits = theirs.view(f"u{theirs.itemsize}")
    nan = np.isnan(theirs.astype(np.float32))
    assert np.array_equal(np.isnan(ours), nan)
    assert np.array_equal(np.where(nan, 0, ours.codes), np.where(nan, 0, bits))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(KINDS)), st.sampled_from(BINARY), st.data())
def test_ufuncs_of_two_are_those_of_numpy(format, ufunc, data):
    shapes = data.draw(npst.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3)).input_shapes
    (x, nx), (y, ny) = (pair(format, data.draw(codes_of(format, shape))) for shape in shapes)
    with np.errstate(all="ignore"):
        assert_same(ufunc(x, y), ufunc(nx, ny))


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(list(KINDS)), st.sampled_from([np.maximum, np.minimum, np.fmax, np.fmin]), st.data())
def test_the_larger_and_the_smaller_are_those_of_numpy(format, ufunc, data):
    (x, nx), (y, ny) = (pair(format, data.draw(codes_of(format, (6,)))) for _ in "xy")
    with np.errstate(all="ignore"):
        assert np.array_equal(ufunc(x, y).values, ufunc(nx, ny).astype(np.float32), equal_nan=True)


@pytest.mark.parametrize("length", [1, 3, 16, 100])
def test_a_signaling_nan_is_a_nan_in_arrays_of_any_length(length):
    signaling = FloatArray(np.full(length, 0x7C01, np.uint16).view(np.float16), "fp16")
    numbers = FloatArray(np.full(length, -2.0), "fp16")
    for choose in (np.fmax, np.fmin):
        assert (
            choose(numbers, signaling).values.tolist() == choose(signaling, numbers).values.tolist() == [-2.0] * length
        )
    for choose in (np.maximum, np.minimum):
        assert np.isnan(choose(numbers, signaling).values).all()


def test_zeros_are_told_apart_by_their_signs():
    x, y = FloatArray([0.0, -0.0, -0.0], "fp16"), FloatArray([-0.0, 0.0, -0.0], "fp16")
    for larger in (np.maximum, np.fmax):
        assert np.signbit(larger(x, y)).tolist() == [False, False, True]
    for smaller in (np.minimum, np.fmin):
        assert np.signbit(smaller(x, y)).tolist() == [True, True, True]
    for zeros in (x, y):
        assert not np.signbit(zeros.max())
        assert np.signbit(zeros.min())
    assert np.signbit(FloatArray([-0.0, -1.0], "fp16").max())
    assert np.isnan(FloatArray([-0.0, np.nan], "fp16").max())


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(list(KINDS)), st.sampled_from(UNARY), st.data())
def test_ufuncs_of_one_are_those_of_numpy(format, ufunc, data):
    x, nx = pair(format, data.draw(codes_of(format, (5,))))
    with np.errstate(all="ignore"):
        assert_same(ufunc(x), ufunc(nx))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_indexing_is_that_of_numpy(data):
    x, nx = pair("fp16", data.draw(codes_of("fp16", data.draw(npst.array_shapes(max_dims=3, max_side=4)))))
    index = data.draw(npst.basic_indices(nx.shape, allow_newaxis=True) | npst.arrays(bool, nx.shape))
    assert_same(x[index], nx[index])
    new = data.draw(codes_of("fp16", nx[index].shape))
    x[index], nx[index] = FloatArray.from_codes(new, "fp16"), new.view(np.float16)
    assert_same(x, nx)


def test_slices_are_views_and_setting_rounds():
    x = FloatArray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "e4m3")
    row = x[0]
    row[1:] = [0.1, 1000]
    assert np.array_equal(x.tolist()[0], [1.0, 0.1015625, np.nan], equal_nan=True)
    x.T[0, 1] = Fraction(1, 3)
    assert x.tolist()[1] == [0.34375, 5.0, 6.0]
    x[:, 2] = FloatArray(7.7, "fp16")
    assert x[:, 2].tolist() == [7.5, 7.5]
    x[1, 1] = "0x1.2p3"
    assert x.item(1, 1) == 9.0
    x[x > 7] = 0
    assert x[:, 2].tolist() == [0, 0]
    before = x.copy()
    x[0] = 1
    assert before.tolist() != x.tolist()
    with pytest.raises(ValueError, match="read-only"):
        x.codes[0] = 3
    with pytest.raises(IndexError):
        x[5]


def test_what_is_made_of_what():
    x = FloatArray([0.1, 3.3], "e4m3")
    assert x.codes.dtype == np.uint8
    assert x.values.dtype == np.float32
    assert not np.shares_memory(FloatArray(x).codes, x.codes)
    assert FloatArray(np.float16([1, 2])).format.name == "binary16"
    assert FloatArray([1.0, 2.0]).format.name == "binary64"
    assert FloatArray(np.ones(2, ml_dtypes.float8_e5m2)).format.name == "e5m2"
    assert FloatArray(np.ones(2, ml_dtypes.float4_e2m1fn)).tolist() == [1.0, 1.0]
    assert FloatArray([1, 2], float).format.name == "binary64"
    assert FloatArray([1, 2], np.float16).format.name == "binary16"
    assert FloatArray([1, 2], np.dtype(ml_dtypes.bfloat16)).format.name == "bfloat16"
    assert FloatArray(Decimal("0.1"), "fp16").tolist() == float(np.float16(0.1))
    assert FloatArray("1/3", "bf16").item() == float(fl.encode("1/3", "bf16"))
    assert FloatArray(fl.encode(2, "fp16"), "bf16").item() == 2.0
    assert FloatArray(np.array([True, False]), "fp16").tolist() == [1.0, 0.0]
    assert FloatArray(10**30, "fp32").item() == float(np.float32(10**30))
    assert FloatArray.from_dlpack(np.ones(2, np.float32)).format.name == "binary32"
    assert FloatArray.from_dlpack(np.ones(2, np.float32), "e5m2").codes.tolist() == [0x3C, 0x3C]
    assert np.from_dlpack(x).tolist() == x.tolist()
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).tolist() == x.tolist()
    kept = FloatArray(np.array([0x7E01, 0x7C01], np.uint16).view(np.float16))
    assert kept.codes.tolist() == [0x7E01, 0x7C01]  # its own codes, including NaNs with payloads
    assert (-kept).codes.tolist() == [0xFE01, 0xFC01]
    assert x.nbytes == 2
    assert (len(x), x.ndim, x.size, x.shape) == (2, 1, 2, (2,))
    assert [float(each) for each in x] == x.tolist()
    assert FloatArray(list(x), "e4m3").tolist() == x.tolist()
    assert FloatArray([x, x], "e4m3").shape == (2, 2)
    assert float(sum(x)) == 3.25  # ((0 + 0.1015625) + 3.25), rounded to e4m3
    assert float(max(x)) == 3.25
    assert x.datum(1) == fl.encode("3.3", "e4m3")
    assert not np.shares_memory(copy.deepcopy(x).codes, x.codes)
    assert 3.25 in x
    assert int(x[1]) == 3
    assert bool(x[1])
    assert float(x[1]) == 3.25


def test_it_looks_like_an_array():
    assert repr(FloatArray([1.0, 448, np.nan], "e4m3")) == "FloatArray([1.0, 448.0, nan], e4m3fn)"
    assert repr(FloatArray(1e-20, "bf16")) == "FloatArray(1.0005577e-20, bfloat16)"
    assert repr(FloatArray(np.zeros((2, 0)), "fp16")) == "FloatArray([], shape=(2, 0), binary16)"
    assert repr(FloatArray([], "fp16")) == "FloatArray([], binary16)"
    assert repr(FloatArray([2], "fp16", fl.Context("RTZ"))) == "FloatArray([2.0], binary16, Context(rounding='RTZ'))"
    assert repr(FloatArray([[1, 10], [0.5, 3]], "fp16")).splitlines() == [
        "FloatArray([[ 1.0, 10.0],",
        "            [ 0.5,  3.0]], binary16)",
    ]
    assert "..." in repr(FloatArray(np.zeros(5000), "fp16"))
    assert f"{FloatArray(1.5, 'fp16'):.3f} {FloatArray([2], 'fp16')}" == "1.500 [2.0]"


def test_scalars_take_the_arrays_format_and_arrays_bring_theirs():
    x = FloatArray([1.0, 2.0], "e4m3")
    for other in (0.1, np.float64(0.1), Decimal("0.1"), Fraction(1, 10), [0.1, 0.1]):
        assert (x + other).format.name == "e4m3fn"
        assert (x + other).tolist() == (x + 0.1015625).tolist()
    assert (3 - x).tolist() == [2.0, 1.0]
    assert (np.float32(3) - x).tolist() == [2.0, 1.0]
    assert (x * np.array([1, 2])).format.name == "e4m3fn"
    assert (x + np.float32([0.1, 0.1])).format.name == "binary32"
    assert (np.float32([0.1, 0.1]) + x).tolist() == np.float32([1.1, 2.1]).tolist()
    assert (x + fl.encode("0.1", "fp16")).format.name == "binary16"
    for a, b, result in [
        ("e4m3", "e5m2", "binary16"), ("fp16", "bf16", "binary32"), ("e4m3", "bf16", "bfloat16"),
        ("fp32", "fp64", "binary64"), ("e2m1", "e8m0", "bfloat16"), ("e2m1", "e3m2", "binary16"),
    ]:  # fmt: skip
        assert (FloatArray(1, a) + FloatArray(1, b)).format.name == result
        assert (fl.add(fl.encode(1, a), fl.encode(1, b)).result.format.name) == result
    with pytest.raises(FormatError, match="convert one with astype"):
        FloatArray(1, "fp16") + fl.encode(1, "fp128")


def test_in_place_and_out_keep_their_format_and_round_once():
    x = FloatArray([1.0, 2.0], "fp16")
    same = x
    x += FloatArray([2.0**-11, 2.0**-30], "fp32")  # a tie, seen exactly
    assert x is same
    assert x.tolist() == [1.0, 2.0]
    # 1 + 2^-11 + 2^-30: rounded to binary32 first it is a tie, and goes down.
    y = FloatArray([1.0], "fp16")
    y += FloatArray([2.0**-11 + 2.0**-34], "fp32")
    assert y.tolist() == [1 + 2.0**-10]
    out = FloatArray(np.zeros(2), "bf16")
    assert np.add(x, 0.1, out=out) is out
    assert out.tolist() == (x.values.astype(np.float64) + float(np.float16(0.1))).astype(ml_dtypes.bfloat16).tolist()
    plain = np.empty(2, np.float32)
    assert np.add(x, x, out=plain) is plain
    assert plain.tolist() == [2.0, 4.0]
    half = np.ones(2, np.float16)
    half += FloatArray([0.5, 2.0], "e4m3")
    assert half.tolist() == [1.5, 3.0]
    assert np.less(x, 1.5, out=np.empty(2, bool)).tolist() == [True, False]
    x *= 2
    x /= 3
    x -= 1
    assert x.tolist() == ((np.float16([1, 2]) * 2) / 3 - np.float16(1)).tolist()


def test_the_context_rounds_every_result():
    down, up = (FloatArray([1.0, 3.0], "bf16", fl.Context(rounding)) for rounding in ("RTN", "RTP"))
    for ours, one in (
        (operator.add, fl.add), (operator.sub, fl.subtract), (operator.mul, fl.multiply), (operator.truediv, fl.divide)
    ):  # fmt: skip
        for x in (down, up):
            y = FloatArray([0.1, 7.7], "bf16")
            found = ours(x, y)
            assert [found.datum(i) for i in (0, 1)] == [
                one(x.datum(i), y.datum(i), context=x.context).result for i in (0, 1)
            ]
            assert found.context == x.context
    assert np.exp(down).tolist()[0] < np.e < np.exp(up).tolist()[0]
    assert (down * 0.1).tolist() == (down * FloatArray([0.1, 0.1], "bf16")).tolist()  # constants are read to nearest
    with pytest.raises(UnsupportedError, match="contexts differ"):
        down + up
    assert (down + up.with_context(down.context)).context == down.context
    saturating = FloatArray([448, 1.0], "e4m3", fl.Context(overflow="saturate"))
    assert (saturating * 2).tolist() == [448.0, 2.0]
    tossed = FloatArray(np.ones(4000), "e4m3", fl.Context("SR", seed=3)) + 2.0**-5
    assert set(tossed.tolist()) == {1.0, 1.125}
    assert tossed.values.mean() == pytest.approx(1.03125, abs=0.005)


def test_comparisons_round_nothing():
    x = FloatArray([0.1, 6.0, np.nan], "e2m1", fl.Context(absent="zero"))
    assert (x < 7).tolist() == [True, True, True]
    assert (FloatArray([448.0], "e4m3") < 1000).tolist() == [True]
    assert (FloatArray([0.1], "fp16") == 0.1).tolist() == [False]
    assert (FloatArray([0.1], "fp16") == np.float16(0.1)).tolist() == [True]
    assert (FloatArray([1.0], "fp64") < FloatArray([1 + 2.0**-52], "fp64")).tolist() == [True]
    assert (FloatArray([-0.0], "fp16") == FloatArray([0.0], "bf16")).tolist() == [True]
    for number in (Fraction(1, 3), 10**400, Decimal("1e400"), 2**53 + 1):
        with pytest.raises(UnsupportedError, match="is not a float64"):
            operator.lt(x, number)
    assert (FloatArray([np.inf], "fp16") == Decimal("inf")).tolist() == [True]
    assert (x == None).tolist() == [False] * 3  # noqa: E711
    assert (x != "1").tolist() == [True] * 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


@pytest.mark.parametrize("row", [r for r in CATALOG if r.format.width <= 8], ids=lambda row: row.format.name)
def test_signs_are_bits(row):
    x = FloatArray.from_codes(np.arange(1 << row.format.width), row.format)
    for ours, theirs in ((-x, -x.values), (abs(x), abs(x.values)), (+x, x.values)):
        expected = fl.arrays.decode(fl.arrays.encode(theirs, row.format), row.format)
        assert np.array_equal(ours.values, expected, equal_nan=True)
        zero = expected == 0
        assert np.array_equal(np.signbit(ours.values)[zero], np.signbit(expected)[zero])


@pytest.mark.parametrize("format", ["fp16", "e4m3", "e5m2fnuz", "e2m1", "e8m0", "p3109_k6p3se", "e3m2"])
def test_every_pair_is_added_and_multiplied_as_the_codec_does(format):
    fmt = fl.parse_format(format)
    codes = np.random.default_rng(0).integers(0, 1 << fmt.width, (2, 60))
    x, y = (FloatArray.from_codes(each, fmt) for each in codes)
    for ours, operation in ((x + y, fl.add), (x * y, fl.multiply), (x / y, fl.divide)):
        for i in range(60):
            expected = operation(x.datum(i), y.datum(i)).result
            assert ours.datum(i) == expected


def test_functions_without_a_kernel_are_float64s_rounded_once():
    x = FloatArray(np.linspace(0.1, 5, 40), "e5m2")
    for function in (np.exp, np.log, np.sin, np.tanh, np.cbrt):
        assert function(x).tolist() == FloatArray(function(x.values.astype(np.float64)), "e5m2").tolist()
    assert (x**2).tolist() == (x * x).tolist()
    assert np.hypot(x, x).format.name == "e5m2"
    whole, part = divmod(FloatArray([7.5], "fp16"), 2)
    assert (whole.tolist(), part.tolist()) == ([3.0], [1.5])
    part, exponent = np.frexp(FloatArray([7.5], "fp16"))
    assert (part.tolist(), exponent.tolist()) == ([0.9375], [3])
    assert np.ldexp(FloatArray([0.9375], "fp16"), [3]).tolist() == [7.5]
    assert np.spacing(FloatArray([1.0, -300.0, 0.0], "fp16")).tolist() == [2.0**-10, 0.25, 2.0**-24]
    assert np.nextafter(FloatArray([1.0, 448.0], "e4m3"), 0).tolist() == [0.9375, 416.0]
    assert x.fma(x, 1).tolist() == operations.fma(x.values, x.values, np.float32(1), "e5m2").tolist()


def test_functions_that_move_elements_are_numpys():
    codes = np.arange(24, dtype=np.uint16).reshape(2, 3, 4) * 977
    x, nx = pair("fp16", codes)
    for move in (
        np.ravel, np.transpose, np.squeeze, np.fliplr, np.rot90, np.copy,
        lambda a: np.reshape(a, (4, 6)), lambda a: np.swapaxes(a, 0, 2), lambda a: np.moveaxis(a, 0, 1),
        lambda a: np.expand_dims(a, 1), lambda a: np.broadcast_to(a, (5, 2, 3, 4)), lambda a: np.roll(a, 3),
        lambda a: np.take(a, [1, 0], axis=2), lambda a: np.repeat(a, 2, axis=1), lambda a: np.tile(a, (1, 2, 1)),
        lambda a: np.concatenate([a, a[:, ::-1]], axis=1), lambda a: np.stack([a, a], axis=-1),
        lambda a: np.vstack([a, a]), lambda a: np.hstack((a, a)), lambda a: np.append(a, a, axis=0),
        lambda a: a.reshape(6, -1), lambda a: a.T, lambda a: a.transpose(1, 0, 2), lambda a: a.ravel(),
        lambda a: np.where(a > 1, a, a.T.reshape(2, 3, 4)), lambda a: np.clip(a, -1, 1), lambda a: np.delete(a, 1, 2),
        lambda a: a[None].squeeze(0), lambda a: a.flatten(), lambda a: a.clip(-1, 1), lambda a: a.clip(max=0.5),
        lambda a: np.clip(a, a_min=None, a_max=2),
    ):  # fmt: skip
        assert_same(move(x), move(nx))
    assert_same(np.outer(x[0, 0], x[0, 1]), np.outer(nx[0, 0], nx[0, 1]))
    for ours, theirs in zip(np.split(x, 2), np.split(nx, 2), strict=True):
        assert_same(ours, theirs)
    numbers = FloatArray([3.0, -1.0, 2.0, np.inf], "fp16")
    assert np.sort(numbers).tolist() == [-1.0, 2.0, 3.0, np.inf]
    assert np.argsort(numbers).tolist() == [1, 2, 0, 3]
    assert (numbers.argmax(), numbers.argmin(), numbers.any(), numbers.all()) == (3, 1, True, True)
    assert np.allclose(numbers, numbers.values)
    assert np.array_equal(numbers, numbers)
    assert np.zeros_like(numbers).tolist() == [0.0] * 4
    assert np.ones_like(numbers).format.name == "binary16"
    assert np.full_like(numbers, 0.1).item(0) == float(np.float16(0.1))
    assert np.concatenate([numbers, FloatArray([1], "bf16")]).format.name == "binary32"
    assert np.concatenate([numbers, [0.1]]).item(4) == float(np.float16(0.1))
    assert (np.shape(numbers), np.ndim(numbers), np.size(numbers)) == ((4,), 1, 4)


def test_torch_gets_the_same_bits():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for format in ("fp16", "bf16", "fp32", "fp64", "e4m3", "e5m2", "e4m3fnuz", "e8m0", "e2m1"):
        x = FloatArray([1.0, 2.0, 0.5], format)
        tensor = x.to_torch()
        assert tensor.to(torch.float64).tolist() == x.tolist()
        if format != "e2m1":
            assert FloatArray(tensor).format == x.format
            assert np.array_equal(FloatArray(tensor).codes, x.codes)
            assert np.array_equal(FloatArray.from_dlpack(tensor).codes, x.codes)
    assert (FloatArray([1.0], "bf16") + torch.ones(1)).format.name == "binary32"


def test_without_torch_the_way_to_it_is_said(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(fl.MissingPartError, match="pip install torch"):
        FloatArray([1.0], "fp16").to_torch()


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda x: FloatArray([1.0], "fp17"), "fp17"),
        (lambda x: FloatArray([1.0], "fp128"), "fp128 has numbers|binary128 has numbers"),
        (lambda x: FloatArray([1.0], np.int8), "dtype int8"),
        (lambda x: FloatArray(["a"], "fp16"), "not of strings"),
        (lambda x: FloatArray(None, "fp16"), "not of object"),
        (lambda x: FloatArray([1.0], "fp16", "RTX"), "unknown rounding direction 'RTX'"),
        (lambda x: FloatArray([1.0], "fp16", 1), "context must be a floatlab.Context, or a rounding direction"),
        (lambda x: FloatArray.from_codes([256], "e4m3"), "codes of e4m3fn, from 0 to 0xff"),
        (lambda x: FloatArray.from_codes([-1], "e4m3"), "codes of e4m3fn, from 0 to 0xff"),
        (lambda x: FloatArray.from_codes([1.0], "e4m3"), "codes must be an array of integers"),
        (lambda x: FloatArray.from_dlpack([1.0]), "no __dlpack__"),
        (lambda x: x + "1", "text"),
        (lambda x: x + 1j, "complex"),
        (lambda x: x + None, "object"),
        (lambda x: x < "1", "an operand must be a number or an array of numbers, not str"),
        (lambda x: np.std(x), "numpy.std is not defined"),
        (lambda x: np.linalg.norm(x), "linalg.norm is not defined"),
        (lambda x: np.sum(x, dtype=np.float32), "dtype"),
        (lambda x: np.add(x, x, dtype=np.float32), "takes no dtype="),
        (lambda x: np.add(x, x, where=[True, False]), "takes no where="),
        (lambda x: np.add(x, x, out=FloatArray([1.0], "fp16")), "out must have shape"),
        (lambda x: np.add(x, 1, out=np.empty(2, ml_dtypes.bfloat16)), "does not hold all of binary16"),
        (lambda x: np.less(x, 1, out=np.empty(2, np.float16)), "out must have dtype"),
        (lambda x: np.add.at(x, [0], 1), "not defined"),
        (lambda x: np.add.accumulate(x), "not defined"),
        (lambda x: np.concatenate([x, x], dtype=np.float32), "takes no dtype="),
    ],
)
def test_what_cannot_be_done_is_named(ask, named):
    with pytest.raises(FloatlabError, match=named) as refusal:
        ask(FloatArray([1.0, 2.0], "fp16"))
    assert len(str(refusal.value).splitlines()) == 1


class Integers:
    """An array of integers of another library."""

    dtype = np.dtype(np.int64)

    def __array__(self, dtype=None, copy=None):
        return np.array([1, 2])


def test_integers_bring_no_format_whatever_library_they_come_from():
    found = FloatArray([1.0, 2.0], "e4m3") + Integers()
    assert found.format.name == "e4m3fn"
    assert found.tolist() == [2.0, 4.0]
