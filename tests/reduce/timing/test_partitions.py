"""Four ways to one product: the same numbers but for rounding, timed, and held to the exact product."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab.errors import UnsupportedError
from floatlab.reduce.timing.partitions import PARTITIONS, Timing, time_partitions, ulps_apart


def test_the_ways_differ_by_rounding_only():
    rng = np.random.default_rng(2)
    a, b = rng.random((40, 200), np.float32), rng.random((200, 30), np.float32)
    ways = time_partitions(a, b, 2)
    assert [way.name for way in ways] == [*PARTITIONS]
    for way in ways:
        assert way.product.shape == (40, 30)
        assert way.product.dtype == np.float32
        assert len(way.timing.runs) == 2
        assert 0 < way.largest_q < 200  # n: what no order exceeds, to first order
    exact = sum(Fraction(float(a[3, k])) * Fraction(float(b[k, 4])) for k in range(200))
    for way in ways:
        assert abs(Fraction(float(way.product[3, 4])) - exact) <= Fraction(way.largest_error) * Fraction(1001, 1000)


def test_how_far_they_part():
    found = ulps_apart(time_partitions(np.eye(5), np.arange(25.0).reshape(5, 5), 1))
    assert found == [[0] * 4] * 4
    rng = np.random.default_rng(2)
    found = np.array(ulps_apart(time_partitions(rng.standard_normal((20, 300)), rng.standard_normal((300, 20)), 1)))
    assert np.array_equal(found, found.T)
    assert found.max() > 0
    assert not found.diagonal().any()


def test_time_adds_up():
    timing = Timing((1.0, 3.0))
    assert (timing.total, timing.average, timing.cumulative) == (4.0, 2.0, (1.0, 4.0))


def test_what_is_no_product_is_refused():
    ones = np.ones((2, 3))
    for a, b in ((ones[0], ones), (ones, ones), (ones.astype(int), ones.T)):
        with pytest.raises(UnsupportedError):
            time_partitions(a, b)
