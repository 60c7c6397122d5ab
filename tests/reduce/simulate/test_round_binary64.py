"""Nodes of many operands in Python's floats, compared with exact rationals and with `fold` on single numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floatlab as fl
from floatlab import FloatArray
from floatlab.numbers import Context
from floatlab.reduce.simulate.round_binary64 import exact_adder, odd_sum

numbers = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 2.0**-1074, -(2.0**-149), 65504.0, 1.7e308, 3.4028234663852886e38, 1.0, -1.0]),
    st.integers(-40, 40).map(lambda k: 2.0**k),
)


@settings(max_examples=400)
@given(st.lists(numbers, min_size=1, max_size=6))
def test_sums_to_odd_lie_on_the_side_of_the_exact_sum(found):
    odd = odd_sum(found)
    if not np.isfinite(found).all():
        assert odd is None
        return
    exact = sum(map(Fraction, found))
    if odd is None:
        assert exact == 0 or abs(exact) >= Fraction(1.7e308)
        return
    if exact != Fraction(odd):
        assert int(np.float64(odd).view(np.int64)) & 1
        assert abs(exact - Fraction(odd)) < Fraction(math.ulp(odd))


@settings(max_examples=400)
@given(st.lists(numbers, min_size=1, max_size=6), st.sampled_from(["fp16", "bf16", "fp32", "e4m3", "e5m2", "fp64"]))
def test_a_sum_is_rounded_once(found, name):
    fmt = fl.parse_format(name)
    made = exact_adder(fmt, Context())(found)
    if not np.isfinite(found).all():
        assert made is None
        return
    exact = sum(map(Fraction, found))
    wanted = fl.read(exact, fmt).result
    if made is None:
        assert not wanted.is_finite or not wanted.exact.as_fraction() or abs(exact) > fmt.largest
    else:
        assert Fraction(made) == wanted.exact.as_fraction()


@pytest.mark.parametrize("rounding", ["RTZ", "RNA", "SR"])
def test_other_directions_are_left_to_others(rounding):
    assert exact_adder(fl.parse_format("fp16"), Context(rounding=rounding)) is None
    assert exact_adder(fl.parse_format("fp16"), Context(flush_results=True)) is None


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64", "e5m2"])
@pytest.mark.parametrize("special", [None, np.inf, np.nan, 0.0])
def test_long_chains_of_wide_nodes_are_the_fold(name, special, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    values = rng.normal(size=61) * 2.0 ** rng.integers(-8, 9, 61)
    values[20:23] = [values[19], -values[19], -0.0]
    if special is not None:
        values[40] = special
    for schedule in ("fused(4)", "fused(16)", "lanes(2, fused(3))"):
        x = FloatArray(values, name)
        one = fl.sum(x, schedule=schedule)
        assert one.result == one.nodes[-1].value
        for fma in (False, True):
            both = fl.dot(x, x, schedule=schedule, fma=fma)
            assert both.result == both.nodes[-1].value, (schedule, fma)
