"""`tally`: each figure against a plain NumPy expression or exact arithmetic, the lanes against each other."""

from fractions import Fraction
from itertools import pairwise
from math import fsum, inf, isfinite

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import arrays
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.tally_lanes import CHUNK, LANES, Tally
from floatlab.arrays.round_trips.tally import merge, tally
from floatlab.errors import UnsupportedError

LANES_BUILT = ["numpy", "compiled"] if compiled.is_built() else ["numpy"]
SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 2.0**-149, 2.0**-126, 3.4e38, -3.4e38, 1e-40]


def numbers(kind, count, seed=0):
    """Random words: every exponent, NaN, infinities, subnormal numbers."""
    draw = np.random.default_rng(seed)
    bits = draw.integers(0, 1 << 8 * np.dtype(kind).itemsize, count, np.uint64)
    return bits.astype(f"u{np.dtype(kind).itemsize}").view(kind)


def expected(x, y, smallest, threshold):
    """Count and measure with Python's exact numbers, element by element; limits are one number for each element."""
    found = dict.fromkeys(("nonfinite", "zeros", "exact", "lost", "saturated", "flushed", "subnormal"), 0)
    errors, relative = [], []
    for a, b, least, beyond in zip(x.tolist(), y.tolist(), smallest, threshold, strict=True):
        if not isfinite(a):
            found["nonfinite"] += 1
            continue
        found["zeros"] += a == 0
        if not isfinite(b):
            found["lost"] += 1
            continue
        found["exact"] += a == b
        found["saturated"] += abs(a) >= beyond
        found["flushed"] += a != 0 and b == 0
        found["subnormal"] += 0 < abs(b) < least
        errors.append((Fraction(a), Fraction(b)))
        if a:
            relative.append(abs(Fraction(b) - Fraction(a)) / abs(Fraction(a)))
    sums = {
        "error_squares": sum((b - a) ** 2 for a, b in errors),
        "squares": sum(a * a for a, _ in errors),
        "rounded_squares": sum(b * b for _, b in errors),
        "products": sum(a * b for a, b in errors),
        "relative_sum": sum(relative),
    }
    return found, sums, errors, relative


@pytest.mark.one_in(2)
@pytest.mark.parametrize("lane", LANES_BUILT)
@pytest.mark.parametrize("format", ["e4m3", "bf16", "e2m1", "e5m2"])
def test_every_figure_is_that_of_exact_arithmetic(lane, format):
    x = (np.random.default_rng(1).standard_normal(3000) * 2.0 ** np.arange(-20, 10).repeat(100)).astype(np.float32)
    x[::97], x[5], x[6], x[7] = 0, np.nan, np.inf, 1e-42
    y = arrays.quantize(x, format)
    y[[20, 21]] = np.nan, -np.inf
    least, beyond = 2.0**-6, 464.0
    found, sums, errors, relative = expected(x, y, [least] * 3000, [beyond] * 3000)
    got = tally(x, y, smallest=least, threshold=beyond, first=100, lane=lane)
    assert {name: getattr(got, name) for name in found} == found
    assert got.elements == 3000
    assert got.measured == len(errors)
    for name, exact in sums.items():
        assert getattr(got, name) == pytest.approx(float(exact), rel=1e-14)
    assert got.mean_relative == pytest.approx(float(sum(relative) / len(relative)), rel=1e-14)
    assert got.largest_error == max(float(abs(b - a)) for a, b in errors)
    assert got.largest_relative == max(map(float, relative))
    at = got.largest_relative_at - 100
    assert abs(np.float64(y[at]) - x[at]) / abs(np.float64(x[at])) == got.largest_relative
    finite = np.abs(x[np.isfinite(x)])
    assert got.largest == finite.max()
    assert got.smallest == finite[finite > 0].min() == np.float32(1e-42)
    exponents = np.frexp(finite[finite > 0].astype(np.float64))[1] - 1
    assert dict(zip(got.exponents.bins - 1023.0, got.exponents.counts, strict=True)) == dict(
        zip(*np.unique(exponents, return_counts=True), strict=True)
    )
    upper = [int(np.float32(float(each)).view(np.uint32)) >> 16 for each in relative]
    assert dict(zip(got.relative_errors.bins, got.relative_errors.counts, strict=True)) == dict(
        zip(*np.unique(upper, return_counts=True), strict=True)
    )
    for share in (0, 0.5, 0.99, 0.999, 1):
        exact = np.quantile([float(each) for each in relative], share, method="inverted_cdf")
        assert exact <= got.relative_quantile(share) <= exact * (1 + 2**-7)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lane", LANES_BUILT)
@pytest.mark.parametrize("run", [1, 3, 16, 32, 2048, 5000])
def test_runs_have_their_own_limits(lane, run):
    draw = np.random.default_rng(run)
    x = draw.standard_normal(5000).astype(np.float32)
    y = arrays.quantize(x, "e2m1", overflow="saturate")
    least, beyond = draw.random((2, -(-5000 // run)))
    of_element = [np.repeat(each, run)[:5000] for each in (least, beyond)]
    found, *_ = expected(x, y, *of_element)
    got = tally(x, y, run, least, beyond, lane=lane)
    assert {name: getattr(got, name) for name in found} == found


@pytest.mark.parametrize("lane", LANES_BUILT)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_order_of_the_sums(lane, kind):
    x = numbers(kind, 2 * CHUNK + 77, 5)
    x = np.where(np.isfinite(x) & (np.abs(x) < kind(1e30)), x, kind(1))
    y = x * kind(1.5)
    found = tally(x, y, lane=lane)
    total = 0.0
    for first in range(0, len(x), CHUNK):
        lanes = [0.0] * LANES
        for i, each in enumerate(x[first : first + CHUNK].tolist()):
            lanes[i % LANES] += each * each
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [a + b for a, b in zip(lanes[:half], lanes[half:], strict=True)]
        total += lanes[0]
    assert found.squares == total


def same(one: Tally, other: Tally) -> bool:
    """Return whether all figures are equal; NaN equals NaN."""
    pairs = zip(one._values(), other._values(), strict=True)
    return all(a == b or (a != a and b != b) for a, b in pairs)


@pytest.mark.skipif(len(LANES_BUILT) < 2, reason="the extension is not built")
@given(
    st.integers(0, 3 * CHUNK + 40),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 7, 16, 32, 100, 2048, 10**6]),
    st.integers(0, 3),
)
def test_the_lanes_are_equal(count, kind, seed, run, cut):
    draw = np.random.default_rng(seed)
    x, noise = numbers(kind, count + cut, seed)[cut:], numbers(kind, count, seed + 1)
    with np.errstate(all="ignore"):
        near = (x * draw.choice([0, 0.5, 1, 1, 1.125], count)).astype(kind)
    y = np.where(draw.random(count) < 0.9, near, noise)
    for array in (x, y):
        array[draw.random(count) < 0.05] = draw.choice(SPECIALS)
    runs = -(-count // run)
    limits = 2.0 ** draw.integers(-150, 120, (2, runs))
    strange = [0.0, -1.0, np.inf, np.nan, 1e-300, 1e300, 1 + 2.0**-40, 2.0**-149 * 1.5]
    limits = np.where(draw.random((2, runs)) < 0.3, draw.choice(strange, (2, runs)), limits)
    assert same(tally(x, y, run, *limits, lane="numpy"), tally(x, y, run, *limits, lane="compiled"))


@given(st.lists(st.integers(0, 600), max_size=6), st.randoms())
def test_merging_does_not_depend_on_the_order(sizes, random):
    x = np.random.default_rng(len(sizes)).standard_normal(sum(sizes)).astype(np.float32)
    y = arrays.quantize(x, "e4m3")
    ends = np.cumsum([0, *sizes])
    pieces = [tally(x[a:b], y[a:b], first=int(a)) for a, b in pairwise(ends)]
    merged, whole = merge(pieces), tally(x, y)
    random.shuffle(pieces)
    assert merge(pieces) == merged
    sums = ("error_squares", "squares", "rounded_squares", "products", "relative_sum")
    for name in sums:
        assert getattr(merged, name) == fsum(getattr(each, name) for each in pieces)
        assert getattr(merged, name) == pytest.approx(getattr(whole, name), rel=1e-13)
    assert merged.replace(**dict.fromkeys(sums, 0.0)) == whole.replace(**dict.fromkeys(sums, 0.0))


@pytest.mark.parametrize("lane", LANES_BUILT)
def test_nothing_and_only_specials(lane):
    empty = tally(np.zeros(0, np.float32), np.zeros(0, np.float32), lane=lane)
    assert empty == merge([])
    assert (empty.largest, empty.smallest, empty.largest_relative_at, empty.relative_quantile(0.5)) == (0, inf, -1, 0)
    x = np.array([np.nan, np.inf, 0.0, -0.0])
    found = tally(x, np.zeros(4), lane=lane)
    assert (found.nonfinite, found.zeros, found.exact, found.relative_errors.total) == (2, 2, 2, 0)


def test_strides_and_shapes():
    x = np.random.default_rng(3).standard_normal((40, 60)).astype(np.float32)
    y = arrays.quantize(x, "e4m3")
    assert tally(x.T, y.T) == tally(x.T.copy(), y.T.copy())
    assert tally(x, y) == tally(x.reshape(-1), y.reshape(-1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3), np.zeros(3, np.float32)), "both float32 or both float64, not float64"),
        ((np.zeros(3), np.zeros((3, 1))), "arrays of one shape"),
        ((np.zeros(3, np.int32), np.zeros(3, np.int32)), "not int32"),
        ((np.zeros(5), np.zeros(5), 2, [1.0, 2.0]), "smallest must have 3 numbers for 5 elements in runs of 2, not 2"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(UnsupportedError, match=message):
        tally(*arguments)
