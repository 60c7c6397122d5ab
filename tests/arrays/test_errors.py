"""Differences of two arrays: compared with a plain computation, for every division of the arrays into pieces."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import floatlab as fl
from floatlab.arrays.compare import measure as errors
from floatlab.arrays.compare.differences import Distances, Finder
from floatlab.arrays.sources import ArraySource, HeldSource
from floatlab.files import open_array

SPECIALS = [math.nan, math.inf, -math.inf, 0.0, -0.0]


def pairs(dtype):
    """Draw two arrays of one shape, most of whose elements are equal or near."""
    width = {np.float16: 16, np.float32: 32, np.float64: 64}[dtype]
    numbers = st.floats(width=width) | st.sampled_from(SPECIALS)

    @st.composite
    def drawn(draw):
        shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=6))
        x = draw(hnp.arrays(dtype, shape, elements=numbers))
        others = draw(hnp.arrays(dtype, shape, elements=numbers))
        choice = draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 3)))
        with np.errstate(all="ignore"):
            near = np.nextafter(x, dtype(np.inf))
        return np.select([choice < 2, choice == 2], [x, near], others), x

    return drawn()


def plainly(x, y):
    """Measure element by element, with data from the scalar codec."""
    fmt = fl.parse_format(x.dtype.name)
    unsigned = f"u{x.dtype.itemsize}"
    found = {"absolute": [], "relative": [], "ulps": [], "equal_bits": 0, "equal": 0, "signs": 0, "infinity": 0}
    for a, b in zip(x.ravel(), y.ravel(), strict=True):
        code = [int(np.asarray(each).view(unsigned)) for each in (a, b)]
        p, q = float(a), float(b)
        found["equal_bits"] += code[0] == code[1]
        found["equal"] += p == q
        found["signs"] += p == q == 0 and code[0] != code[1]
        numbers = not math.isnan(p) and not math.isnan(q)
        found["infinity"] += numbers and p != q and (math.isinf(p) or math.isinf(q))
        if math.isfinite(p) and math.isfinite(q):
            found["absolute"].append(abs(p - q))
            if q:
                found["relative"].append(abs(p - q) / abs(q))
        if numbers:
            ranks = [fl.decode(each, fmt).ordinal for each in code]
            found["ulps"].append(min(abs(ranks[0] - ranks[1]), (1 << 63) - 1))
    return found


def percentile(values, percent):
    """Return the percentile by the nearest-rank definition."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * round(percent * 10) // 1000) - 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64], ids=lambda kind: kind.__name__)
def test_every_measure_is_the_plain_one(dtype):
    @settings(max_examples=60)
    @given(pairs(dtype))
    def check(both):
        x, y = both
        with np.errstate(all="ignore"):
            found, plain = fl.compare(x, y), plainly(x, y)
        assert found.size == x.size
        assert found.equal_bits == plain["equal_bits"]
        assert found.equal == plain["equal"]
        assert found.specials.sign_of_zero == plain["signs"]
        assert found.specials.infinity == plain["infinity"]
        nan = np.isnan(x), np.isnan(y)
        assert found.specials.nan_in_actual == np.count_nonzero(nan[0] & ~nan[1])
        assert found.specials.nan_in_expected == np.count_nonzero(nan[1] & ~nan[0])
        assert found.specials.nan_in_both == np.count_nonzero(nan[0] & nan[1])
        for name in ("absolute", "relative"):
            errors = getattr(found, name)
            assert errors.count == len(plain[name])
            if plain[name]:
                assert errors.largest.value == max(plain[name])
                with np.errstate(all="ignore"):
                    mean = math.fsum(plain[name]) / len(plain[name]) if max(plain[name]) < 1e300 else None
                assert mean is None or errors.mean == pytest.approx(mean, rel=1e-14)
        assert found.ulps.count == len(plain["ulps"])
        if plain["ulps"]:
            assert found.ulps.largest.value == max(plain["ulps"])
            for percent, most in found.ulps.percentiles:
                true = percentile(plain["ulps"], percent)
                assert most == true if true < 4096 else most <= true < most * (1 + 2**-11) + 1
        for low, high, count in found.ulps.histogram:
            assert count == sum(low <= each <= high for each in plain["ulps"])
        assert sum(count for *_, count in found.ulps.histogram) == len(plain["ulps"])

    check()


@settings(max_examples=25)
@given(pairs(np.float32), st.integers(1, 9))
def test_the_answer_does_not_depend_on_the_pieces(both, block):
    x, y = both
    whole = fl.compare(x, y, 1e-3, 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(errors, "BLOCK", block)
        found = fl.compare(x, y, 1e-3, 0.1)
    for name in set(whole._fields) - {"absolute", "relative"}:
        assert repr(getattr(found, name)) == repr(getattr(whole, name)), name  # NaNs are among them
    for name in ("absolute", "relative"):
        assert getattr(found, name).largest == getattr(whole, name).largest
        mean = getattr(whole, name).mean
        assert getattr(found, name).mean == (mean and pytest.approx(mean, rel=1e-14, nan_ok=True))


@settings(max_examples=60)
@given(hnp.arrays(bool, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9)))
def test_places_are_where_the_elements_are(meant):
    finder = Finder(meant.shape)
    for part in np.array_split(np.flatnonzero(meant.ravel()), 3):
        finder.add(part)
    found = finder.result()
    if not meant.any():
        assert found is None
        return
    places = np.argwhere(meant)
    assert found.count == len(places)
    for axis, extent in enumerate(found.extents):
        distinct = np.unique(places[:, axis])
        assert (extent.low, extent.high, extent.distinct) == (distinct[0], distinct[-1], len(distinct))
        assert extent.step == np.gcd.reduce(np.diff(distinct))
    assert found.first == np.flatnonzero(meant)[0]
    assert found.last == np.flatnonzero(meant)[-1]


@given(st.lists(st.integers(0, (1 << 63) - 1), min_size=1, max_size=30))
def test_distances_are_told_apart_by_twelve_digits(values):
    distances = Distances()
    distances.add(np.array(values, np.int64), np.arange(len(values)))
    found = distances.result(fl.parse_format("fp64"), lambda n: (n,))
    assert found.largest.value == max(values)
    assert found.largest.index == (values.index(max(values)),)
    for low, high, count in found.histogram:
        assert count == sum(low <= each <= high for each in values)
    for percent, most in found.percentiles:
        true = percentile(values, percent)
        assert true >= most > true - max(true >> 11, 1)
        assert most == true or true >= 4096


def test_the_worst_come_first_and_the_first_of_the_same():
    y = np.ones(1000, np.float32)
    x = y.copy()
    x[[7, 500, 900]] += np.float32([0.25, 0.5, 0.25])
    x[3] = np.nan
    found = fl.compare(x, y, worst=3)
    assert [each.index for each in found.worst] == [(3,), (500,), (7,)]
    assert found.worst[1].actual_code == 0x3FC00000
    assert (found.worst[1].absolute, found.worst[1].ulps) == (0.5, 1 << 22)
    assert found.worst[0].ulps == -1
    assert fl.compare(x, y, worst=0).worst == ()


def test_formats_that_numpy_lacks():
    x = fl.FloatArray([1.0, 448.0, -0.0, math.nan], "e4m3")
    y = fl.FloatArray([1.125, 448.0, 0.0, math.nan], "e4m3")
    found = fl.compare(x, y)
    assert (found.actual.kind, found.equal_bits, found.equal) == ("e4m3fn", 2, 2)
    assert found.specials.nan_in_both == 1
    assert found.ulps.format.name == "e4m3fn"
    assert found.ulps.largest.value == 1
    assert found.assert_close.rtol == found.assert_close.atol == 0.0


def test_formats_that_binary32_does_not_hold():
    x = fl.FloatArray([1e300, 2.0, -1e-300], "e11m9")
    y = fl.FloatArray([1.01e300, 2.0, -1e-300], "e11m9")
    found = fl.compare(x, y, rtol=0.02)
    assert (found.within, found.allclose.least_atol is None) == (True, False)
    assert found.allclose.share.value == pytest.approx(0.01 / 1.01 / 0.02, rel=0.2)
    assert fl.compare(x, y).allclose.failing == 1


def test_ulps_of_two_formats_are_those_of_the_narrower():
    x = np.linspace(0, 1, 100, dtype=np.float32)
    y = x.astype(np.float16)
    found = fl.compare(x, y)
    assert (found.ulps.format.name, found.ulps.largest.value) == ("binary16", 0)
    assert found.equal_bits is None
    assert found.assert_close.unlike == "dtype"
    assert fl.compare(x, y, format="fp32").ulps.largest.value > 1000


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.int32, np.int64])
def test_integers_are_taken_as_numbers(dtype):
    x = np.array([0, 1, 1, 0], dtype)
    y = np.array([0, 1, 0, 0], dtype)
    found = fl.compare(x, y)
    assert (found.actual.kind, found.allclose.failing, found.absolute.largest.index) == (np.dtype(dtype).name, 1, (2,))
    assert found.assert_close.failing == 1


def test_integers_beyond_what_binary64_has_are_refused():
    x = np.array([1 << 60])
    with pytest.raises(fl.UnsupportedError, match=r"actual holds integers beyond 2\^53"):
        fl.compare(x, x + 1)


@pytest.mark.parametrize(
    ("shapes", "together"),
    [(((3, 1), (1, 4)), (3, 4)), (((4,), ()), (4,)), (((2, 3), (3,)), (2, 3)), (((2, 3), (2,)), None)],
)
def test_shapes_broadcast_as_numpys(shapes, together):
    x, y = (np.arange(math.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes)
    found = fl.compare(x, y)
    assert found.shape == together
    assert found.assert_close.unlike == "shape"
    if together is None:
        assert not found.within
        return
    d = np.abs(np.subtract(x, y, dtype=np.float64))
    assert found.absolute.largest.value == d.max()
    assert found.absolute.largest.index == np.unravel_index(d.argmax(), d.shape)
    assert found.within == np.allclose(x, y)


def test_memory_order_does_not_matter(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((7, 5, 3))
    y = x + 1e-3 * (rng.random(x.shape) < 0.1)
    expected = fl.compare(x, y)
    for name, kept in (("x", x), ("y", y)):
        np.save(tmp_path / f"c{name}.npy", kept)
        np.save(tmp_path / f"f{name}.npy", np.asfortranarray(kept))
    for a in "cf":
        for b in "cf":
            with open_array(f"{tmp_path}/{a}x.npy") as p, open_array(f"{tmp_path}/{b}y.npy") as q:
                found = fl.compare(p, q)
            assert found.failing.extents == expected.failing.extents
            assert found.allclose == expected.allclose or found.allclose.share.value == expected.allclose.share.value
            assert found.ulps.histogram == expected.ulps.histogram


def test_two_memory_orders_need_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("floatlab.arrays.compare.measure.MOST_AT_ONCE", 5)
    np.save(tmp_path / "c.npy", np.ones((2, 3)))
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((2, 3))))
    with open_array(f"{tmp_path}/c.npy") as x, open_array(f"{tmp_path}/f.npy") as y:
        assert fl.compare(x, x).within
        assert fl.compare(y, y).within
        with pytest.raises(fl.UnsupportedError, match=r"f\.npy is column-major"):
            fl.compare(x, y)


def test_nans_that_are_to_be_equal_are_no_difference():
    x, y = np.float32([1, np.nan, 2]), np.float32([1, np.nan, 3])
    alike = fl.compare(x, x, equal_nan=True)
    assert (alike.within, alike.differing, alike.worst, alike.specials.nan_in_both) == (True, None, (), 1)
    other = x.view(np.uint32) + np.uint32([0, 1, 0])
    assert fl.compare(x, other.view(np.float32), equal_nan=True).differing.extents[0].low == 1  # another payload
    assert fl.compare(x, x.astype(np.float64), equal_nan=True).differing is None
    found = fl.compare(x, y, equal_nan=True)
    assert (found.allclose.failing, [each.index for each in found.worst]) == (1, [(2,)])
    assert fl.compare(x, x).allclose.failing == 1


def test_empty_and_single():
    assert fl.compare(np.zeros((0, 3)), np.zeros((0, 3))).within
    found = fl.compare(1.0, 2.0)
    assert (found.shape, found.size, found.allclose.share.index) == ((), 1, ())


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        ({"rtol": -1}, "rtol must be a finite number from 0 up, not -1"),
        ({"atol": math.nan}, "atol must be a finite number from 0 up, not nan"),
        ({"rtol": math.inf}, "rtol must be a finite number from 0 up, not inf"),
        ({"torch_tolerances": (0, "x")}, "each of torch_tolerances must be a finite number from 0 up, not 'x'"),
        ({"worst": -1}, "worst must be a number of elements from 0 to .*, not -1"),
        ({"format": "fp128"}, "format is binary128"),
    ],
)
def test_bad_arguments_are_named(given_, named):
    with pytest.raises(fl.UnsupportedError, match=named):
        fl.compare(np.ones(2), np.ones(2), **given_)


@pytest.mark.parametrize("x", [np.array(["a"]), np.zeros(2, complex), object(), np.zeros(2, np.longdouble)])
def test_what_is_no_array_of_numbers_is_named(x):
    with pytest.raises(fl.UnsupportedError, match="actual"):
        fl.compare(x, np.ones(2))


def test_progress_counts_every_element_and_memory_stays_small(monkeypatch):
    class Zeros(ArraySource):
        def read(self, first, count):
            return np.zeros(count, np.float32)

    size, told = 1 << 22, []
    x = Zeros("x", (size,), np.dtype(np.float32))
    tracemalloc.start()
    try:
        found = fl.compare(x, HeldSource(np.float32(0)), progress=told.append)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(told) == size == found.equal_bits
    assert peak < size * 4
