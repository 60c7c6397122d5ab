"""Ranks, distances, spacing and neighbours, compared with Datum and NumPy's functions; and rejected calls."""

import numpy as np
import pytest

import floatlab as fl
from floatlab import Datum, parse_format
from floatlab.arrays.conversion import decode
from floatlab.arrays.ulps import NAN_RANK, next_after, ordinal, spacing, ulp_distance
from floatlab.errors import FloatlabError
from floatlab.formats import CATALOG, Format

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

SMALL = [row.format for row in CATALOG if row.format.width <= 8] + [
    Format("no_subnormals", 4, 4, subnormals=False),
    *(parse_format(name) for name in ("p3109_k6p3uf", "p3109_k8p1ue", "p3109_k8p3se", "e3m2fnuz")),
]


@pytest.mark.parametrize("format", SMALL, ids=lambda each: each.name)
def test_every_code_is_ranked_as_the_codec_ranks_it(format):
    data = [Datum(format, code) for code in range(1 << format.width)]
    x = decode([each.code for each in data], format)
    for given, expected in (
        (ordinal(x, format), [NAN_RANK if each.is_nan else each.ordinal for each in data]),
        (spacing(x, format), [float(each.ulp.as_fraction()) if each.is_finite else np.nan for each in data]),
        (next_after(x, "up", format), [float(each.next_up) for each in data]),
        (next_after(x, "down", format), [float(each.next_down) for each in data]),
    ):
        assert np.array_equal(given, expected, equal_nan=True)
    for given, expected in (("up", "next_up"), ("down", "next_down")):
        signs = np.signbit(next_after(x, given, format))
        numbers = ~np.isnan(x)
        assert np.array_equal(signs[numbers], np.signbit([float(getattr(each, expected)) for each in data])[numbers])


@pytest.mark.parametrize("format", [f for f in SMALL if f.width <= 6], ids=lambda each: each.name)
def test_every_pair_is_as_far_apart_and_lies_the_same_way(format):
    data = [Datum(format, code) for code in range(1 << format.width)]
    x = decode([each.code for each in data], format)
    far, toward = ulp_distance(x[:, None], x, format), next_after(x[:, None], x, format)
    for i, a in enumerate(data):
        for j, b in enumerate(data):
            if a.is_nan or b.is_nan:
                assert far[i, j] == (0 if a.is_nan and b.is_nan else -1)
                assert np.isnan(toward[i, j])
                continue
            assert far[i, j] == abs(a.ordinal - b.ordinal)
            way = b if x[i] == x[j] else a.next_up if x[i] < x[j] else a.next_down
            assert toward[i, j] == float(way)
            assert np.signbit(toward[i, j]) == np.signbit(float(way))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_has_the_same_neighbours_and_spacing(dtype):
    rng = np.random.default_rng(1)
    word = f"u{np.dtype(dtype).itemsize}"
    x = rng.integers(0, np.iinfo(word).max, 20_000, dtype=word, endpoint=True).view(dtype)
    x[:8] = [0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal, 1]
    y = rng.permutation(x)
    y[100:200] = x[100:200]
    with np.errstate(all="ignore"):
        numbers = ~(np.isnan(x) | np.isnan(y))
        assert np.array_equal(next_after(x, y)[numbers].view(word), np.nextafter(x, y)[numbers].view(word))
        assert np.isnan(next_after(x, y)[~numbers]).all()
        theirs = np.abs(np.spacing(x))  # NumPy's is infinite for the largest number
        some = np.isfinite(theirs)
        if dtype is np.float16:  # NumPy's is half as large at negative powers of two only
            some &= (x > 0) | (np.frexp(x)[0] != -0.5)
        assert np.array_equal(spacing(x)[some], theirs[some])
    assert next_after(x, "up").dtype == dtype
    up = next_after(x, "up")
    assert set(ulp_distance(x, up).tolist()) <= {0, 1}


def test_ranks_of_libraries_dtypes():
    x = np.array([1, 1.0078125, -2], ml_dtypes.bfloat16)
    assert ordinal(x).tolist() == [fl.decode(code, "bf16").ordinal for code in (0x3F80, 0x3F81, 0xC000)]
    assert next_after(x, "up").dtype == ml_dtypes.bfloat16
    small = np.array([448, -0.0], ml_dtypes.float8_e4m3fn)
    assert next_after(small, "up").astype(float).tolist() == [448.0, 0.001953125]
    assert ulp_distance(np.float16([1]), x[:2]).tolist() == [0, 1 << 16]  # in binary32, which has both


def test_distances_that_int64_lacks_are_the_most_it_has():
    most = np.finfo(np.float64).max
    assert ulp_distance(-most, most, "fp64") == np.iinfo(np.int64).max
    assert ulp_distance(0.0, most, "fp64") == fl.encode(most, "fp64").ordinal
    assert ulp_distance(np.float64(-np.inf), np.float64(np.inf)) == np.iinfo(np.int64).max
    assert ulp_distance(np.float64([2.0, -(2.0**-500)]), np.float64([-(2.0**-1022), 2.0**-500])).tolist() == [
        fl.encode(2.0, "fp64").ordinal + fl.encode(2.0**-1022, "fp64").ordinal,
        2 * fl.encode(2.0**-500, "fp64").ordinal,
    ]


def test_operands_broadcast_and_numbers_take_the_format():
    x = np.float32([[1], [2]])
    assert ulp_distance(x, np.float32([1, 2, 4])).tolist() == [[0, 1 << 23, 2 << 23], [1 << 23, 0, 1 << 23]]
    assert ulp_distance(np.float16([0.0999755859375]), 0.1).tolist() == [0]  # 0.1 is read into binary16
    assert ulp_distance(1.0, 1.0 + 2**-52) == 1  # two numbers: binary64
    assert ulp_distance(np.float32(3), 3).dtype == np.int64
    assert ordinal(np.zeros((0, 2), np.float32)).shape == (0, 2)


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: ordinal(np.float32([1, 0.1]), "e4m3"), r"x holds 0\.1\d*, which e4m3fn does not have"),
        (lambda: ordinal(np.float32([np.inf]), "e4m3"), "x holds inf, which e4m3fn does not have"),
        (lambda: spacing(np.float32([-1]), "e8m0"), "x holds -1.0, which e8m0fnu does not have"),
        (lambda: ulp_distance(np.float32([1]), np.float64([0.1]), "fp32"), "y holds 0.1"),
        (
            lambda: ulp_distance(np.float32([1, 2]), np.float32([1, 2, 3])),
            r"shapes do not broadcast: x \(2,\), y \(3,\)",
        ),
        (
            lambda: ulp_distance(np.float32([1]), np.array(["a"])),
            "y must be an array of floats or integers, not of strings",
        ),
        (lambda: next_after(np.float32([1]), "upp"), "did you mean 'up'"),
        (lambda: next_after(np.float32([1]), [np.nan], "e2m1"), "toward has a NaN, but e2m1fn has none"),
        (lambda: next_after(np.float32([1]), [1j]), "toward must be an array of floats or integers, not of complex"),
        (lambda: ordinal(np.float32([1]), "fp128"), "arrays hold at most 63"),
        (lambda: ordinal(np.float32([1]), "fp17"), "fp17"),
    ],
)
def test_what_cannot_be_done_is_named(ask, named):
    with pytest.raises(FloatlabError, match=named):
        ask()
